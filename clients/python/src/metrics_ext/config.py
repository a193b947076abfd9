"""The block executor.metrics of a pipeline's configuration.

executor:
  metrics:
    enabled: true                 # false: nothing is written or reported
    output_path: "./metrics"      # where the Parquet files go
    collect_custom_metrics: false # true: keep custom metrics of operators
    write_on_completion: true     # false: write no Parquet files
    database: "dbname=postgres"   # report to this database, too; none by default
    spool: "./metrics-spool"      # where records wait for the database
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import Any

from .collector import MetricsCollector
from .reporter import Reporter

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetricsConfig:
    enabled: bool = True
    output_path: str = "./metrics"
    collect_custom_metrics: bool = False
    write_on_completion: bool = True
    database: str | None = None
    spool: str | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> MetricsConfig:
        """From a whole configuration; what it does not say has its default."""
        block = dict((config.get("executor") or {}).get("metrics") or {})
        known = {field.name for field in fields(cls)}
        if unknown := sorted(block.keys() - known):
            log.warning("executor.metrics: unknown settings %s", ", ".join(unknown))
        return cls(**{name: value for name, value in block.items() if name in known})

    @contextmanager
    def track_run(
        self, run_id: str | None = None, config: dict[str, Any] | None = None
    ) -> Iterator[MetricsCollector]:
        """track_run() of a collector that reports and writes as configured.

        A run that fails is written, too.
        """
        with ExitStack() as stack:
            reporter = writer = None
            if self.enabled and self.database is not None:
                reporter = stack.enter_context(Reporter(self.database, spool=self.spool))
            if self.enabled and self.write_on_completion:
                from .writer import MetricsWriter

                writer = MetricsWriter(self.output_path)
            collector = MetricsCollector(
                run_id,
                reporter=reporter,
                keep=writer is not None,
                collect_custom_metrics=self.collect_custom_metrics,
            )
            collector.set_config(config or {})
            try:
                with collector.track_run():
                    yield collector
            finally:
                if writer is not None:
                    try:
                        writer.write_all(
                            run_metrics=collector.get_run_metrics(),
                            stage_metrics=collector.get_stage_metrics(),
                            operator_metrics=collector.get_operator_metrics(),
                        )
                    except Exception:
                        log.exception("the metrics of %s are not written", collector.run_id)
