"""Parquet files of runs: three folders with a file for each run, Snappy-compressed.

    runs/RUN.parquet    stages/stages_RUN.parquet    operators/operators_RUN.parquet

Times are UTC without saying so, custom_metrics and config are JSON.  What a file name cannot hold
of a run's id is percent-encoded there.  Needs pyarrow: pip install 'metrics-ext[parquet]'.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from .models import OperatorMetrics, RunMetrics, StageMetrics, as_utc
from .record import encode

Row = Mapping[str, Any]

OPERATOR_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("stage_name", pa.string()),
        ("operator_name", pa.string()),
        ("worker_id", pa.string()),
        ("timestamp", pa.timestamp("us")),
        ("input_records", pa.int64()),
        ("output_records", pa.int64()),
        ("pass_rate", pa.float64()),
        ("total_time", pa.float64()),
        ("avg_latency", pa.float64()),
        ("min_latency", pa.float64()),
        ("max_latency", pa.float64()),
        ("p50_latency", pa.float64()),
        ("p95_latency", pa.float64()),
        ("p99_latency", pa.float64()),
        ("throughput", pa.float64()),
        ("error_count", pa.int64()),
        ("custom_metrics", pa.string()),
    ]
)
STAGE_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("stage_name", pa.string()),
        ("timestamp", pa.timestamp("us")),
        ("num_workers", pa.int64()),
        ("input_records", pa.int64()),
        ("output_records", pa.int64()),
        ("pass_rate", pa.float64()),
        ("total_time", pa.float64()),
        ("avg_throughput", pa.float64()),
        ("min_throughput", pa.float64()),
        ("max_throughput", pa.float64()),
        ("error_count", pa.int64()),
    ]
)
RUN_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("start_time", pa.timestamp("us")),
        ("end_time", pa.timestamp("us")),
        ("duration", pa.float64()),
        ("num_stages", pa.int64()),
        ("total_input_records", pa.int64()),
        ("total_output_records", pa.int64()),
        ("overall_pass_rate", pa.float64()),
        ("avg_throughput", pa.float64()),
        ("total_errors", pa.int64()),
        ("config", pa.string()),
    ]
)


class MetricsWriter:
    """Writes and reads the files below output_path, which is made if need be."""

    def __init__(self, output_path: str | os.PathLike[str]) -> None:
        self.output_path = Path(output_path)
        self.runs_path = self.output_path / "runs"
        self.stages_path = self.output_path / "stages"
        self.operators_path = self.output_path / "operators"
        for path in (self.runs_path, self.stages_path, self.operators_path):
            path.mkdir(parents=True, exist_ok=True)

    def write_operator_metrics(self, metrics: Sequence[OperatorMetrics], run_id: str) -> None:
        """All rows of a run, instead of what may be there; no file if there are none."""
        rows = [row.to_dict() for row in metrics]
        write(self.operators_file(run_id), OPERATOR_SCHEMA, [rows])

    def write_stage_metrics(self, metrics: Sequence[StageMetrics], run_id: str) -> None:
        rows = [row.to_dict() for row in metrics]
        write(self.stages_file(run_id), STAGE_SCHEMA, [rows])

    def write_run_metrics(self, metrics: RunMetrics) -> None:
        write(self.run_file(metrics.run_id), RUN_SCHEMA, [[metrics.to_dict()]])

    def write_all(
        self,
        run_metrics: RunMetrics | None = None,
        stage_metrics: Sequence[StageMetrics] = (),
        operator_metrics: Sequence[OperatorMetrics] = (),
    ) -> None:
        """Write what there is, under the id of the run, of the first stage or first operator."""
        first = next(iter([*filter(None, [run_metrics]), *stage_metrics, *operator_metrics]), None)
        if first is None:
            return
        self.write_operator_metrics(operator_metrics, first.run_id)
        self.write_stage_metrics(stage_metrics, first.run_id)
        if run_metrics is not None:
            self.write_run_metrics(run_metrics)

    def read_operator_metrics(self, run_id: str) -> list[dict[str, Any]]:
        """The rows of a run; none if there is no file."""
        return _read(self.operators_file(run_id))

    def read_stage_metrics(self, run_id: str) -> list[dict[str, Any]]:
        return _read(self.stages_file(run_id))

    def read_run_metrics(self, run_id: str) -> dict[str, Any] | None:
        rows = _read(self.run_file(run_id))
        return rows[0] if rows else None

    def list_runs(self) -> list[str]:
        """The ids of the runs that have a file in runs/, those that began last first."""
        runs = [row for path in self.runs_path.glob("*.parquet") for row in _read(path)]
        runs.sort(key=lambda run: (run["start_time"] or datetime.min, run["run_id"]), reverse=True)
        return [run["run_id"] for run in runs]

    def run_file(self, run_id: str) -> Path:
        return self.runs_path / f"{quote(run_id, safe='')}.parquet"

    def stages_file(self, run_id: str) -> Path:
        return self.stages_path / f"stages_{quote(run_id, safe='')}.parquet"

    def operators_file(self, run_id: str) -> Path:
        return self.operators_path / f"operators_{quote(run_id, safe='')}.parquet"


def write(path: Path, schema: pa.Schema, chunks: Iterable[Sequence[Row]]) -> int:
    """Write a file whole or not at all, and none for no rows; returns how many there were."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    count = 0
    try:
        with pq.ParquetWriter(unfinished, schema, compression="snappy") as file:
            for rows in chunks:
                file.write_table(_table(rows, schema))
                count += len(rows)
        if count:
            os.replace(unfinished, path)
        else:
            path.unlink(missing_ok=True)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    columns = {name: [_stored(row[name]) for row in rows] for name in schema.names}
    return pa.table(columns, schema=schema)


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return as_utc(value).replace(tzinfo=None)
    return encode(value) if isinstance(value, Mapping) else value


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
        return rows
    except FileNotFoundError:
        return []
