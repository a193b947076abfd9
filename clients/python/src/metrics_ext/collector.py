"""Measuring a run: context managers around run, stages and operators.

They may be used from many threads and in coroutines.  An exception inside a block goes on its way;
the block is recorded as failed.  Nothing that goes wrong in recording reaches the pipeline.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from time import perf_counter
from types import TracebackType
from typing import Any

from . import fork
from .aggregator import StageTotals
from .models import (
    OperatorMetrics,
    RunMetrics,
    StageMetrics,
    as_utc,
    microseconds,
    moment,
    new_run_id,
    ratio,
    utc_now,
    utc_text,
)
from .reporter import Reporter

log = logging.getLogger(__name__)

# So many different latencies of a block are kept as they are; beyond, in three digits.
MAX_SAMPLES = 10_000

# So many rows of a stage are in memory when none are to be kept.
MAX_ROWS = 1000


class MetricsCollector:
    """The metrics of one run, in memory, and in the database if there is a reporter.

    keep=False keeps no operator rows in memory, for runs that are long or have many; stages and
    run are summed up all the same.
    """

    def __init__(
        self,
        run_id: str | None = None,
        *,
        reporter: Reporter | None = None,
        keep: bool = True,
        collect_custom_metrics: bool = True,
    ) -> None:
        self.run_id = run_id or new_run_id()
        self._reporter = reporter
        self._keep = keep
        self.collect_custom_metrics = collect_custom_metrics
        self._config: dict[str, Any] = {}
        self._stages: dict[str, _Stage] = {}
        self._run: RunMetrics | None = None
        self.after_fork()
        fork.register(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def set_config(self, config: dict[str, Any]) -> None:
        """What the run is configured with; the database gets it when the run starts."""
        self._config = config

    @contextmanager
    def track_run(self) -> Iterator[MetricsCollector]:
        """The run begins and ends with the block; an exception makes it a failed one."""
        start_time, started = utc_now(), perf_counter()
        self._report("metrics_start_run", config=self._config, at=start_time)
        ended = "metrics_fail_run"
        try:
            yield self
            ended = "metrics_finish_run"
        finally:
            duration, end_time = perf_counter() - started, utc_now()
            self._report(ended, at=end_time)
            try:
                self._run = self._run_metrics(start_time, end_time, duration)
            except Exception:
                log.exception("cannot sum up %s", self.run_id)

    @contextmanager
    def track_stage(self, stage_name: str) -> Iterator[None]:
        """A stage whose block ends by an exception stays unfinished, and fails with its run."""
        start_time = utc_now()
        with self._lock:
            stage = self._stage(stage_name)
            stage.start_time = stage.start_time or start_time
        self._report("metrics_start_stage", stage_name=stage_name, at=start_time)
        yield
        self._report("metrics_finish_stage", stage_name=stage_name, at=utc_now())

    def track_operator(
        self, operator_name: str, stage_name: str, worker_id: str
    ) -> OperatorContext:
        return OperatorContext(self, operator_name, stage_name, worker_id)

    def add_operator_metrics(self, metrics: OperatorMetrics) -> None:
        """Add a row that was measured elsewhere."""
        if metrics.custom_metrics and not self.collect_custom_metrics:
            metrics = replace(metrics, custom_metrics={})
        self._add(metrics)

    def add_stage_metrics(self, metrics: StageMetrics) -> None:
        """Add a stage that was summed up elsewhere.

        Its operators have to be added by themselves: the database derives stages from them.
        """
        with self._lock:
            self._stage(metrics.stage_name).ready = metrics
        self._report(
            "metrics_start_stage", stage_name=metrics.stage_name, at=as_utc(metrics.timestamp)
        )
        self._report("metrics_finish_stage", stage_name=metrics.stage_name, at=utc_now())

    def get_operator_metrics(self) -> list[OperatorMetrics]:
        with self._lock:
            return [row for stage in self._stages.values() for row in stage.operators(self._keep)]

    def get_stage_metrics(self) -> list[StageMetrics]:
        """The stages in the order in which they began."""
        with self._lock:
            return [
                stage.metrics(self.run_id, name, self._keep) for name, stage in self._stages.items()
            ]

    def get_run_metrics(self) -> RunMetrics | None:
        """None until the run has ended."""
        return self._run

    def clear(self) -> None:
        """Forget what was collected; what was reported stays reported."""
        with self._lock:
            self._stages.clear()
            self._run = None

    def _add(self, row: OperatorMetrics | OperatorContext) -> None:
        if self._reporter is not None:
            self._reporter.report_operator(row)
        with self._lock:
            stage = self._stage(row.stage_name)
            stage.rows.append(row)
            if not self._keep and len(stage.rows) >= MAX_ROWS:
                stage.forget_rows()

    def _stage(self, name: str) -> _Stage:
        stage = self._stages.get(name)
        if stage is None:
            stage = self._stages[name] = _Stage()
        return stage

    def _run_metrics(self, start_time: datetime, end_time: datetime, duration: float) -> RunMetrics:
        stages = self.get_stage_metrics()
        input_records = stages[0].input_records if stages else 0
        output_records = stages[-1].output_records if stages else 0
        return RunMetrics(
            run_id=self.run_id,
            start_time=start_time,
            end_time=end_time,
            duration=duration,
            num_stages=len(stages),
            total_input_records=input_records,
            total_output_records=output_records,
            overall_pass_rate=100.0 * ratio(output_records, input_records),
            avg_throughput=ratio(input_records, duration),
            total_errors=sum(stage.error_count for stage in stages),
            stage_metrics=stages,
            config=self._config,
        )

    def _report(self, function: str, at: datetime, **arguments: Any) -> None:
        if self._reporter is not None:
            self._reporter.report(
                function, {"run_id": self.run_id, **arguments, "at": at.isoformat()}
            )


class _Stage:
    """What a collector knows of a stage."""

    def __init__(self) -> None:
        self.start_time: datetime | None = None
        self.ready: StageMetrics | None = None
        self.rows: list[OperatorMetrics | OperatorContext] = []
        self._forgotten = StageTotals()

    def forget_rows(self) -> None:
        rows, self.rows = self.rows, []
        self._forgotten.add(rows)

    def operators(self, keep: bool) -> list[OperatorMetrics]:
        return [
            row if isinstance(row, OperatorMetrics) else row.metrics()
            for row in (self.rows if keep else ())
        ]

    def metrics(self, run_id: str, name: str, keep: bool) -> StageMetrics:
        if self.ready is not None:
            return self.ready
        totals = copy.deepcopy(self._forgotten)
        totals.add(self.rows)
        return totals.result(run_id, name, self.start_time, self.operators(keep))


class OperatorContext:
    """Counts what an operator does in a block.

    At the block's end it is recorded as it stands: making an OperatorMetrics of it, which is done
    when somebody asks, would take longer than all the rest.
    """

    __slots__ = (
        "_at",
        "_collector",
        "_custom_metrics",
        "_samples",
        "_started",
        "error_count",
        "input_records",
        "operator_name",
        "output_records",
        "run_id",
        "stage_name",
        "total_time",
        "worker_id",
    )

    def __init__(
        self, collector: MetricsCollector, operator_name: str, stage_name: str, worker_id: str
    ) -> None:
        self._collector = collector
        self.run_id = collector.run_id
        self.operator_name = operator_name
        self.stage_name = stage_name
        self.worker_id = worker_id
        self.input_records = 0
        self.output_records = 0
        self.error_count = 0
        self.total_time = 0.0
        self._custom_metrics: dict[str, Any] | None = None
        self._samples: dict[float, int] | None = None

    def add_batch(self, input_records: int, output_records: int, seconds: float) -> None:
        """Count a batch and how long it took.

        With batches the row has their latencies, and their total time instead of the block's.
        A batch without records counts for nothing.
        """
        if input_records <= 0:
            return
        self.input_records += input_records
        self.output_records += output_records
        self.total_time += seconds
        if self._samples is None:
            self._samples = {}
        latency = seconds / input_records
        if len(self._samples) >= MAX_SAMPLES:
            latency = _rounded(latency)
            if latency not in self._samples:
                self._round_samples()
        self._samples[latency] = self._samples.get(latency, 0) + input_records

    def update_from_stats(self, stats: Mapping[str, Any]) -> None:
        """Take the counts from a dictionary; what is not in it is 0."""
        self.input_records = stats.get("input_records", 0)
        self.output_records = stats.get("output_records", 0)
        self.error_count = stats.get("error_count", 0)

    def add_custom_metric(self, name: str, value: Any) -> None:
        if self._custom_metrics is None:
            self._custom_metrics = {}
        self._custom_metrics[name] = value

    def __enter__(self) -> OperatorContext:
        self._at = microseconds()
        self._started = perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        elapsed = perf_counter() - self._started
        try:
            self.input_records = int(self.input_records)
            self.output_records = int(self.output_records)
            self.error_count = int(self.error_count)
            if self._samples is None:
                self.total_time = elapsed
            if not self._collector.collect_custom_metrics:
                self._custom_metrics = None
            if kind is not None:
                self.error_count += 1
                self.add_custom_metric("exception", kind.__name__)
            self._collector._add(self)
        except Exception:
            log.exception("no row for %s in %s", self.operator_name, self.stage_name)

    @property
    def custom_metrics(self) -> dict[str, Any]:
        return self._custom_metrics or {}

    @property
    def timestamp(self) -> datetime:
        return moment(self._at)

    def at(self) -> str:
        return utc_text(self._at)

    def samples(self) -> tuple[Sequence[float], Sequence[int]]:
        """What the batches took for each record; without batches, what the block took."""
        if self._samples is None:
            count = self.input_records
            return ((self.total_time / count,), (count,)) if count > 0 else ((), ())
        latencies = sorted(self._samples)
        return latencies, [self._samples[latency] for latency in latencies]

    def metrics(self) -> OperatorMetrics:
        latencies, weights = self.samples()
        return OperatorMetrics.measured(
            self.run_id,
            self.stage_name,
            self.operator_name,
            self.worker_id,
            input_records=self.input_records,
            output_records=self.output_records,
            total_time=self.total_time,
            latencies=latencies,
            weights=weights,
            error_count=self.error_count,
            custom_metrics=self.custom_metrics,
            timestamp=self.timestamp,
        )

    def _round_samples(self) -> None:
        samples: dict[float, int] = {}
        for latency, weight in (self._samples or {}).items():
            rounded = _rounded(latency)
            samples[rounded] = samples.get(rounded, 0) + weight
        self._samples = samples


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
