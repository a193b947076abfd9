"""What recording costs beside the work that is recorded."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from conftest import TestDatabase
from metrics_ext import MetricsCollector, Reporter


def work(loops: int) -> int:
    total = 0
    for n in range(loops):
        total += n * n
    return total


def loops_of_a_millisecond() -> int:
    loops = 1000
    while True:
        start = time.thread_time()
        for _ in range(20):
            work(loops)
        each = (time.thread_time() - start) / 20
        if each >= 0.001:
            return loops
        loops = int(loops * min(2, 0.00101 / each)) + 1


def test_a_thousand_operators_a_second(database: TestDatabase, spool: Path) -> None:
    """What blocks cost around work of a millisecond each, and what the sender's thread costs.

    The bound is for a busy machine; README.md says what it is on another.
    """
    loops = loops_of_a_millisecond()
    count = 3000
    worked, recorded = [], []
    with Reporter(database.conninfo, spool=spool) as reporter:
        collector = MetricsCollector(reporter=reporter, keep=False)
        with collector.track_run():
            others = time.process_time() - time.thread_time()
            for _ in range(count):
                before = time.perf_counter()
                with collector.track_operator("Filter", "stage_0", "worker_0") as operator:
                    start = time.perf_counter()
                    work(loops)
                    end = time.perf_counter()
                    operator.input_records = 100
                    operator.output_records = 90
                after = time.perf_counter()
                worked.append(end - start)
                recorded.append(after - before - (end - start))
            assert reporter.flush(10)
            others = (time.process_time() - time.thread_time() - others) / count
    assert database.count() == count
    each = statistics.median(worked)
    blocks = 100 * statistics.median(recorded) / each
    print(f"blocks {blocks:.2f} %, sender {100 * others / each:.2f} % of the work")
    assert blocks + 100 * others / each < 10
