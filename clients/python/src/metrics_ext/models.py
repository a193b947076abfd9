"""The three levels: one row of an operator, of a stage, of a run.

Times are in seconds, rates in percent (0 to 100, above for an operator that makes records),
throughput in records a second.  Where there is nothing to divide by, the result is 0.
"""

from __future__ import annotations

import threading
import time
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from . import fork

FRACTIONS = (0.50, 0.95, 0.99)


class _Clock:
    """UTC in microseconds, each later than the one before, even if the system's clock is set back.

    The time is what tells two rows of one worker apart in the database.
    """

    def __init__(self) -> None:
        self._last = 0
        self.after_fork()
        fork.register(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def __call__(self) -> int:
        with self._lock:
            now = time.time_ns() // 1000
            self._last = now if now > self._last else self._last + 1
            return self._last


microseconds = _Clock()


def moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, timezone.utc)


def utc_now() -> datetime:
    return moment(microseconds())


def utc_text(microseconds: int) -> str:
    """ISO 8601; many in one second cost little."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_utc_second(seconds)}.{rest:06d}Z"


@lru_cache(4)
def _utc_second(seconds: int) -> str:
    return f"{moment(seconds * 1_000_000):%Y-%m-%dT%H:%M:%S}"


def as_utc(moment: datetime) -> datetime:
    """The same moment in UTC; without a time zone it is UTC already."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)


def new_run_id() -> str:
    return f"run_{datetime.now(timezone.utc):%Y%m%d_%H%M%S}_{uuid.uuid4().hex[:8]}"


def ratio(numerator: float, denominator: float) -> float:
    """A guarded division."""
    return numerator / denominator if denominator > 0 else 0.0


class _Row:
    """What the levels have in common: a dictionary with the fields of their Parquet schemas."""

    __slots__ = ()
    run_id: str

    def to_dict(self) -> dict[str, Any]:
        return {
            column.name: getattr(self, column.name)
            for column in fields(self)  # type: ignore[arg-type]
            if column.metadata.get("stored", True)
        }


def _unstored(default: Any) -> Any:
    return field(default_factory=default, repr=False, metadata={"stored": False})


@dataclass(frozen=True, slots=True)
class OperatorMetrics(_Row):
    """What one operator did on one worker since its last row.

    latencies are seconds a record, each counted weights times.  Without them the database gets
    an estimate that has the row's minimum, percentiles and maximum.
    """

    run_id: str
    stage_name: str
    operator_name: str
    worker_id: str
    timestamp: datetime
    input_records: int
    output_records: int
    pass_rate: float
    total_time: float
    avg_latency: float
    min_latency: float
    max_latency: float
    p50_latency: float
    p95_latency: float
    p99_latency: float
    throughput: float
    error_count: int = 0
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    latencies: Sequence[float] = _unstored(tuple)
    weights: Sequence[int] = _unstored(tuple)

    def __post_init__(self) -> None:
        if self.timestamp.tzinfo is None:
            object.__setattr__(self, "timestamp", as_utc(self.timestamp))

    def at(self) -> str:
        return self.timestamp.isoformat()

    def samples(self) -> tuple[Sequence[float], Sequence[int]]:
        """Latencies in order, and how many records had each."""
        if self.latencies:
            return self.latencies, self.weights
        return estimated_samples(self)

    @classmethod
    def measured(
        cls,
        run_id: str,
        stage_name: str,
        operator_name: str,
        worker_id: str,
        *,
        input_records: int,
        output_records: int,
        total_time: float,
        latencies: Sequence[float] = (),
        weights: Sequence[int] = (),
        error_count: int = 0,
        custom_metrics: dict[str, Any] | None = None,
        timestamp: datetime | None = None,
    ) -> OperatorMetrics:
        """A row from what was counted.

        latencies are in order, each counted weights times; without them all are the average.
        """
        average = ratio(total_time, input_records)
        if not latencies:
            latencies, weights = [average], [input_records]
        p50, p95, p99 = percentiles(latencies, weights)
        return cls(
            run_id,
            stage_name,
            operator_name,
            worker_id,
            timestamp or utc_now(),
            input_records,
            output_records,
            100.0 * ratio(output_records, input_records),
            total_time,
            average,
            latencies[0],
            latencies[-1],
            p50,
            p95,
            p99,
            ratio(input_records, total_time),
            error_count,
            custom_metrics or {},
            latencies,
            weights,
        )


@dataclass(frozen=True, slots=True)
class StageMetrics(_Row):
    """What the operators of a stage did together, on all workers."""

    run_id: str
    stage_name: str
    timestamp: datetime
    num_workers: int
    input_records: int
    output_records: int
    pass_rate: float
    total_time: float
    avg_throughput: float
    min_throughput: float
    max_throughput: float
    error_count: int = 0
    operator_metrics: list[OperatorMetrics] = _unstored(list)


@dataclass(frozen=True, slots=True)
class RunMetrics(_Row):
    """What a run did, whichever way it ended."""

    run_id: str
    start_time: datetime
    end_time: datetime
    duration: float
    num_stages: int
    total_input_records: int
    total_output_records: int
    overall_pass_rate: float
    avg_throughput: float
    total_errors: int = 0
    stage_metrics: list[StageMetrics] = _unstored(list)
    config: dict[str, Any] = field(default_factory=dict)


def percentiles(latencies: Sequence[float], weights: Iterable[int]) -> list[float]:
    """The sorted values at the ranks int(n * fraction), where each stands weight times."""
    ends = list(accumulate(weights))
    last = len(ends) - 1
    return [
        latencies[min(bisect_right(ends, int(ends[-1] * fraction)), last)] for fraction in FRACTIONS
    ]


def estimated_samples(row: OperatorMetrics) -> tuple[list[float], list[int]]:
    """Latencies and weights of a row that only knows its minimum, percentiles and maximum.

    They have these five figures; the values between two of them are spread evenly.
    """
    count = row.input_records
    if count <= 0 or row.min_latency == row.max_latency:
        return [row.min_latency] * (count > 0), [count] * (count > 0)
    known = {0: row.min_latency, count - 1: row.max_latency}
    for fraction, value in zip(FRACTIONS, (row.p50_latency, row.p95_latency, row.p99_latency)):
        known.setdefault(int(count * fraction), value)
    ranks = sorted(known)
    latencies, weights = [known[0]], [1]
    for left, right in pairwise(ranks):
        between = right - left - 1
        pieces = min(between, 16)
        step = (known[right] - known[left]) / (pieces + 1)
        for piece in range(pieces):
            latencies.append(known[left] + step * (piece + 1))
            weights.append(between * (piece + 1) // pieces - between * piece // pieces)
        latencies.append(known[right])
        weights.append(1)
    return latencies, weights
