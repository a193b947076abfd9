"""From operators to stages, and from stages to runs.

A stage is a funnel: its input is what its first operator got, its output what its last one gave,
each summed over workers.  Operators are in the order of their earliest rows.  Rows of one operator
and worker add up; its time is the most that one worker spent in one operator, and throughputs
are those of an operator on a worker, without those that have none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .models import OperatorMetrics, StageMetrics, ratio, utc_now

if TYPE_CHECKING:
    from .collector import OperatorContext

log = logging.getLogger(__name__)


class StageTotals:
    """What rows of a stage add up to."""

    def __init__(self) -> None:
        self._operators: dict[str, list[Any]] = {}  # earliest time, input, output
        self._workers: dict[tuple[str, str], list[Any]] = {}  # input, total time
        self._errors = 0

    def add(self, rows: Iterable[OperatorMetrics | OperatorContext]) -> None:
        for row in rows:
            operator = self._operators.setdefault(row.operator_name, [row.timestamp, 0, 0])
            operator[0] = min(operator[0], row.timestamp)
            operator[1] += row.input_records
            operator[2] += row.output_records
            worker = self._workers.setdefault((row.operator_name, row.worker_id), [0, 0.0])
            worker[0] += row.input_records
            worker[1] += row.total_time
            self._errors += row.error_count

    def result(
        self,
        run_id: str,
        stage_name: str,
        timestamp: datetime | None = None,
        rows: Iterable[OperatorMetrics] = (),
    ) -> StageMetrics:
        """The stage; its time is that of its earliest row unless one is given."""
        operators = sorted(self._operators.values(), key=lambda operator: operator[0])
        earliest, input_records, _ = operators[0] if operators else (utc_now(), 0, 0)
        output_records = operators[-1][2] if operators else 0
        throughputs = [ratio(*worker) for worker in self._workers.values()]
        throughputs = [throughput for throughput in throughputs if throughput > 0]
        return StageMetrics(
            run_id=run_id,
            stage_name=stage_name,
            timestamp=timestamp or earliest,
            num_workers=len({worker_id for _, worker_id in self._workers}),
            input_records=input_records,
            output_records=output_records,
            pass_rate=100.0 * ratio(output_records, input_records),
            total_time=max((time for _, time in self._workers.values()), default=0.0),
            avg_throughput=ratio(sum(throughputs), len(throughputs)),
            min_throughput=min(throughputs, default=0.0),
            max_throughput=max(throughputs, default=0.0),
            error_count=self._errors,
            operator_metrics=list(rows),
        )


class MetricsAggregator:
    """Collects rows from the workers of a stage and sums them up."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def collect_from_workers(
        self, workers: Sequence[Any], stage_name: str = "unknown"
    ) -> list[OperatorMetrics]:
        """A row for each operator of each worker.

        worker.get_operator_stats.remote() has to return {operator name: {field: value}}, or what
        ray returns for it, or a future.  All workers are asked before the first answer is
        awaited; one that fails is logged and left out.
        """
        asked = [_ask(worker) for worker in workers]
        rows = []
        for index, answer in enumerate(asked):
            try:
                rows += [
                    self._row(stage_name, operator_name, f"worker_{index}", stats)
                    for operator_name, stats in _await(answer).items()
                ]
            except Exception as error:
                log.warning("worker %d gives no metrics: %r", index, error)
        return rows

    def aggregate_to_stage_metrics(
        self, operator_metrics: Sequence[OperatorMetrics], stage_name: str
    ) -> StageMetrics:
        totals = StageTotals()
        totals.add(operator_metrics)
        return totals.result(self.run_id, stage_name, rows=operator_metrics)

    def collect_stage_metrics(self, workers: Sequence[Any], stage_name: str) -> StageMetrics:
        rows = self.collect_from_workers(workers, stage_name)
        return self.aggregate_to_stage_metrics(rows, stage_name)

    def _row(
        self, stage_name: str, operator_name: str, worker_id: str, stats: Mapping[str, Any]
    ) -> OperatorMetrics:
        """What a worker counted; what it derived itself counts more than what is derived here."""
        row = OperatorMetrics.measured(
            self.run_id,
            stage_name,
            operator_name,
            worker_id,
            input_records=stats.get("input_records", 0),
            output_records=stats.get("output_records", 0),
            total_time=stats.get("total_time", 0.0),
        )
        given = {name: stats[name] for name in _GIVEN if name in stats}
        if given:
            row = replace(row, latencies=(), weights=(), **given)
        return row


_GIVEN = (
    "pass_rate",
    "avg_latency",
    "min_latency",
    "max_latency",
    "p50_latency",
    "p95_latency",
    "p99_latency",
    "throughput",
    "error_count",
    "custom_metrics",
)


def _ask(worker: Any) -> Any:
    """Start the call, or return the error for _await to raise."""
    try:
        return worker.get_operator_stats.remote()
    except Exception as error:
        return error


def _await(answer: Any) -> Any:
    """What a remote call returned: behind ray's reference, a future, or as it is."""
    if isinstance(answer, Exception):
        raise answer
    if hasattr(answer, "future"):
        answer = answer.future()
    return answer.result() if hasattr(answer, "result") else answer
