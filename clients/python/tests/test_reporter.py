"""What reaches the database, and what becomes of records while it cannot."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Server, TestDatabase, run_operators, waiting
from metrics_ext import MetricsCollector, Reporter
from metrics_ext import reporter as reporter_module
from metrics_ext import spool as spool_module
from metrics_ext.reporter import default_spool
from test_metrics import NOON, operator, two_by_two


def test_a_run_arrives_as_it_was(database: TestDatabase, reporter: Reporter) -> None:
    collector = MetricsCollector('ünïcode \\ "run" {0}', reporter=reporter)
    collector.set_config({"batch_size": 1000, "nan": math.nan})
    with collector.track_run(), collector.track_stage("stage_0"):
        run_operators(collector, 3)
        with collector.track_operator("Embed", "stage_0", "worker_1") as tracked:
            tracked.add_batch(99, 90, 0.99)
            tracked.add_batch(1, 1, 1.0)
            tracked.add_custom_metric("cache_hits", 7)
    assert reporter.flush(10)
    columns = ", ".join(operator().to_dict())
    rows = database.query(f"SELECT {columns} FROM metrics_bi.operators ORDER BY timestamp")
    for row, expected in zip(rows, collector.get_operator_metrics(), strict=True):
        values = dict(zip(expected.to_dict(), row))
        assert json.loads(values.pop("custom_metrics")) == expected.custom_metrics
        for name, value in values.items():
            wanted = getattr(expected, name)
            assert value == (pytest.approx(wanted, rel=0.01) if type(wanted) is float else wanted)
    [stage] = collector.get_stage_metrics()
    columns = ", ".join(stage.to_dict())
    [row] = database.query(f"SELECT {columns} FROM metrics_bi.stages")
    for value, (name, wanted) in zip(row, stage.to_dict().items()):
        assert value == (pytest.approx(wanted) if type(wanted) is float else wanted), name
    run = collector.get_run_metrics()
    assert run is not None
    [row] = database.query(
        "SELECT run_id, start_time, end_time, num_stages, total_input_records,"
        " total_output_records, config::jsonb, status FROM metrics_bi.runs"
    )
    assert row == (
        run.run_id,
        run.start_time,
        run.end_time,
        1,
        run.total_input_records,
        run.total_output_records,
        {"batch_size": 1000, "nan": "NaN"},
        "completed",
    )
    assert (reporter.refused, reporter.dropped, waiting(reporter.spool)) == (0, 0, [])


def test_database_and_client_sum_up_alike(database: TestDatabase, reporter: Reporter) -> None:
    collector = MetricsCollector("run_a", reporter=reporter)
    with collector.track_run():
        for row in two_by_two():
            # In the past the run's time does not matter: it is still running.
            collector.add_operator_metrics(row)
        reporter.flush(10)
    [stage] = collector.get_stage_metrics()
    assert reporter.flush(10)
    [row] = database.query(
        "SELECT num_workers, input_records, output_records, pass_rate, total_time, avg_throughput,"
        " min_throughput, max_throughput, error_count FROM metrics_bi.stages"
    )
    assert row == (2, 100, 40, 40.0, 4.0, 27.5, 12.5, 40.0, 1)
    assert row == tuple(stage.to_dict().values())[3:]


def test_an_exception_makes_run_and_stage_failed(
    database: TestDatabase, reporter: Reporter
) -> None:
    collector = MetricsCollector(reporter=reporter)
    with pytest.raises(KeyboardInterrupt):
        with collector.track_run(), collector.track_stage("stage_0"):
            with collector.track_operator("Filter", "stage_0", "worker_0"):
                raise KeyboardInterrupt
    assert reporter.flush(10)
    assert database.value("SELECT status FROM metrics_bi.runs") == "failed"
    assert database.value("SELECT status FROM metrics_bi.stages") == "failed"
    [row] = database.query("SELECT error_count, custom_metrics::jsonb FROM metrics_bi.operators")
    assert row == (1, {"exception": "KeyboardInterrupt"})


def test_rows_without_samples_keep_their_percentiles(
    database: TestDatabase, reporter: Reporter
) -> None:
    row = replace(
        operator(input_records=1000),
        latencies=(),
        weights=(),
        min_latency=0.001,
        p50_latency=0.002,
        p95_latency=0.005,
        p99_latency=0.01,
        max_latency=0.05,
    )
    collector = MetricsCollector("run_a", reporter=reporter)
    with collector.track_run():
        collector.add_operator_metrics(row)
    assert reporter.flush(10)
    [figures] = database.query(
        "SELECT min_latency, p50_latency, p95_latency, p99_latency, max_latency, latency_count"
        " FROM metrics_bi.operators"
    )
    assert figures == pytest.approx((0.001, 0.002, 0.005, 0.01, 0.05, 1000), rel=0.01)


def test_a_record_sent_twice_is_one(database: TestDatabase, spool: Path) -> None:
    with Reporter(database.conninfo, spool=spool, interval=60) as reporter:
        collector = MetricsCollector("run_a", reporter=reporter)
        with collector.track_run(), collector.track_stage("stage_0"):
            run_operators(collector, 10)
        lines = b"\n".join(waiting(spool)) + b"\n"
    assert lines.count(b"metrics_report_operator ") == 10
    for n in range(2):
        (spool / f"again-{n}.spool").write_bytes(lines)
    with Reporter(database.conninfo, spool=spool) as reporter:
        assert reporter.flush(10)
        assert (reporter.refused, waiting(spool)) == (0, [])
    assert database.count() == 10
    assert database.value("SELECT count(*) FROM metrics_bi.runs WHERE status = 'completed'") == 1


def test_types_that_json_lacks(database: TestDatabase, reporter: Reporter) -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    class Scalar:
        """As numpy's."""

        def tolist(self) -> float:
            return 2.5

    custom = {
        "inf": math.inf,
        "time": NOON,
        ("a", 1): {2, 3} - {3},
        "odd": Odd(),
        "scalar": Scalar(),
        "text": "\u2028 \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    }
    collector = MetricsCollector("run_a", reporter=reporter)
    with collector.track_run():
        collector.add_operator_metrics(operator(custom_metrics=custom, input_records=True))
        collector.add_operator_metrics(operator("Fraction", total_time=1, timestamp=NOON))
    assert reporter.flush(10)
    assert (reporter.refused, reporter.dropped) == (0, 0)
    found = database.value(
        "SELECT custom_metrics::jsonb FROM metrics_bi.operators WHERE operator_name = 'Filter'"
    )
    assert found == {
        "inf": "Infinity",
        "time": "2026-01-24T12:00:00+00:00",
        "('a', 1)": [2],
        "odd": "odd",
        "scalar": 2.5,
        "text": "\u2028 \U0001f600",
    }


def test_what_cannot_be_encoded_is_dropped(reporter: Reporter) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    loop: dict[str, Any] = {}
    loop["loop"] = loop
    collector = MetricsCollector(reporter=reporter)
    collector.add_operator_metrics(operator(custom_metrics={"broken": Broken()}))
    collector.add_operator_metrics(operator(custom_metrics=loop))
    assert reporter.dropped == 2


def test_refused_records_are_set_aside(
    database: TestDatabase, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    bad = [
        operator("negative", input_records=-1),
        operator("nan", total_time=math.nan),
        operator("", input_records=1),
        operator("nul \0 character"),
        operator("surrogate \udc80"),
        operator("large", input_records=10**30),
    ]
    collector = MetricsCollector("run_a", reporter=reporter)
    with collector.track_run():
        for n in range(500):
            collector.add_operator_metrics(operator(f"good {n}"))
            if n % 80 == 40:
                collector.add_operator_metrics(bad[n // 80])
    assert reporter.flush(30)
    assert database.count() == 500
    assert database.value("SELECT status FROM metrics_bi.runs") == "completed"
    assert (reporter.refused, waiting(reporter.spool)) == (6, [])
    kept = (reporter.spool / "rejected").read_bytes().splitlines()
    assert len(kept) == 12
    assert all(reason.startswith(b"-- ") for reason in kept[::2])
    assert [b"negative" in kept[1], b'"nan"' in kept[3]] == [True, True]
    assert "rejected" in caplog.text


def test_what_was_done_after_the_end_of_a_run_is_refused(
    database: TestDatabase, reporter: Reporter
) -> None:
    collector = MetricsCollector("run_a", reporter=reporter)
    with collector.track_run():
        early = MetricsCollector("run_a", reporter=reporter)
        late_arrival = early.track_operator("Filter", "stage_0", "worker_0")
        late_arrival.__enter__()
    assert reporter.flush(10)
    late_arrival.__exit__(None, None, None)
    run_operators(collector, 1)
    assert reporter.flush(10)
    assert (database.count(), reporter.refused) == (1, 1)


def test_garbage_in_the_spool_is_set_aside(database: TestDatabase, spool: Path) -> None:
    spool.mkdir()
    (spool / "0-garbage.spool").write_bytes(
        b"drop_everything {}\n\0\0\0\nmetrics_start_run not json\n\nmetrics_report_operator\n"
        b'metrics_start_run {"run_id":"run_a","config":{},"at":null}\n'
        b'metrics_start_run {"run_id":"torn","config":{},'
    )
    with Reporter(database.conninfo, spool=spool) as reporter:
        assert reporter.flush(10)
    assert database.query("SELECT run_id FROM metrics_bi.runs") == [("run_a",)]
    assert reporter.refused == 5
    assert waiting(spool) == []


def test_a_worker_may_report_before_its_run_is_started(database: TestDatabase, spool: Path) -> None:
    with Reporter(database.conninfo, spool=spool, interval=0.05) as reporter:
        run_operators(MetricsCollector("run_a", reporter=reporter), 10)
        assert not reporter.flush(0.5)
        assert reporter.refused == 0
        database.query("SELECT extensions.metrics_start_run('run_a', at => '2026-01-01')")
        assert reporter.flush(10)
    assert (database.count(), reporter.refused) == (10, 0)


def test_patience_ends(
    database: TestDatabase, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_module, "PATIENCE", 0.3)
    run_operators(MetricsCollector("nobody starts it", reporter=reporter), 10)
    time.sleep(0.5)
    while reporter.refused < 10:
        reporter.flush(1)
    collector = MetricsCollector(reporter=reporter)
    with collector.track_run():
        run_operators(collector, 1)
    assert reporter.flush(10)
    assert (database.count(), reporter.refused) == (1, 10)


def test_without_extension_or_store_records_wait(
    database: TestDatabase, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(
        "DROP EXTENSION metrics_ext CASCADE", "DROP SCHEMA metrics, metrics_bi CASCADE"
    )
    collector = MetricsCollector(reporter=reporter)
    with collector.track_run():
        run_operators(collector, 10)
    assert not reporter.flush(1)
    assert "no extension metrics_ext" in caplog.text
    database.execute("CREATE EXTENSION metrics_ext SCHEMA extensions")
    assert not reporter.flush(1)
    database.query("SELECT extensions.metrics_create_store()")
    deadline = time.monotonic() + 20
    while not reporter.flush(1):
        assert time.monotonic() < deadline
    assert (database.count(), reporter.refused) == (10, 0)


def test_an_idle_connection_is_closed(database: TestDatabase, reporter: Reporter) -> None:
    connections = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'metrics_ext'"
    )
    collector = MetricsCollector(reporter=reporter)
    with collector.track_run():
        reporter.flush(10)
        assert database.value(connections) == 1
    reporter.flush(10)
    deadline = time.monotonic() + 20
    while database.value(connections) > 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_spool_of_a_database_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setenv("PGDATABASE", "one")
    spools = {
        default_spool(conninfo)
        for conninfo in ("", "dbname=one", "dbname=two", "dbname=two password=x", "port=1")
    }
    assert len(spools) == 3
    assert all(path.parent == Path("/state/metrics_ext") for path in spools)


# The database goes away and comes back.


def test_the_server_is_killed_in_the_middle_of_a_run(
    server: Server, database: TestDatabase, spool: Path
) -> None:
    """How long it stays away makes no difference; METRICS_ABSENCE sets it."""
    absence = float(os.environ.get("METRICS_ABSENCE", "3"))
    rounds = int(100 * (absence + 4))
    times = []
    with Reporter(database.conninfo, spool=spool, interval=0.1) as reporter:
        collector = MetricsCollector(reporter=reporter)
        with collector.track_run(), collector.track_stage("stage_0"):
            controller = threading.Thread(
                target=lambda: (time.sleep(1), server.kill(), time.sleep(absence), server.start())
            )
            controller.start()
            for _ in range(rounds):
                start = time.perf_counter()
                run_operators(collector, 1)
                times.append(time.perf_counter() - start)
                time.sleep(0.01)
            controller.join()
        deadline = time.monotonic() + 30
        while not reporter.flush(1):
            assert time.monotonic() < deadline
        assert (reporter.refused, reporter.dropped, waiting(spool)) == (0, 0, [])
    assert database.count() == rounds
    assert database.value("SELECT status FROM metrics_bi.runs") == "completed"
    run = collector.get_run_metrics()
    assert run is not None
    assert database.value("SELECT end_time FROM metrics_bi.runs") == run.end_time
    times.sort()
    print(f"{rounds} operators, the longest {times[-1] * 1000:.2f} ms")
    # Once or twice the machine may have had other things to do.
    assert times[-3] < 0.05


def test_connections_break_all_the_time(database: TestDatabase, spool: Path) -> None:
    stop = threading.Event()

    def cut() -> None:
        while not stop.wait(0.02):
            database.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'metrics_ext'"
            )

    with Reporter(database.conninfo, spool=spool, interval=0.01) as reporter:
        collector = MetricsCollector(reporter=reporter)
        cutter = threading.Thread(target=cut)
        cutter.start()
        with collector.track_run():
            for _ in range(100):
                run_operators(collector, 50)
                time.sleep(0.01)
        stop.set()
        cutter.join()
        deadline = time.monotonic() + 30
        while not reporter.flush(1):
            assert time.monotonic() < deadline
    assert (database.count(), reporter.refused) == (5000, 0)


def test_what_stays_at_the_end_is_sent_by_the_next(
    server: Server, database: TestDatabase, spool: Path
) -> None:
    server.kill()
    try:
        with Reporter(database.conninfo, spool=spool) as reporter:
            collector = MetricsCollector(reporter=reporter)
            with collector.track_run():
                run_operators(collector, 100)
            assert not reporter.close()
        assert len(waiting(spool)) == 102
    finally:
        server.start()
    with Reporter(database.conninfo, spool=spool) as reporter:
        assert reporter.flush(10)
    assert (database.count(), waiting(spool)) == (100, [])


def test_a_server_that_does_not_answer_holds_nobody_up(spool: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        host, port = listener.getsockname()
        reporter = Reporter(f"host={host} port={port}", spool=spool, interval=0.01)
        collector = MetricsCollector(reporter=reporter)
        start = time.monotonic()
        with collector.track_run():
            run_operators(collector, 100)
        assert not reporter.flush(0.2)
        assert not reporter.close(timeout=0.2)
        assert time.monotonic() - start < 2
        assert len(waiting(spool)) == 102


# The process goes away.

KILLED = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[3])
from conftest import run_operators
from metrics_ext import MetricsCollector, Reporter

reporter = Reporter(sys.argv[1], spool=sys.argv[2], interval=0.02)
collector = MetricsCollector("run_a", reporter=reporter)
run = collector.track_run()
run.__enter__()
while True:
    run_operators(collector, 1)
    os.write(1, b".")
"""


def test_nothing_handed_over_is_lost_with_the_process(database: TestDatabase, spool: Path) -> None:
    """Killed while it hands over and sends, several times."""
    handed_over = 0
    for n in range(5):
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                KILLED,
                database.conninfo,
                str(spool),
                str(Path(__file__).parent),
            ],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        handed_over += len(process.stdout.read(2000 * (n + 1)))
        process.kill()
        handed_over += len(process.stdout.read())
        process.wait()
    with Reporter(database.conninfo, spool=spool) as reporter:
        assert reporter.flush(30)
        assert (reporter.refused, waiting(spool)) == (0, [])
    # The block that the kill ended may have been handed over without saying so.
    assert handed_over <= database.count() <= handed_over + 5


def work_in_child(collector: MetricsCollector, worker_id: str, die: bool) -> None:
    run_operators(collector, 100, worker_id)
    if die:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("die", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_workers(database: TestDatabase, reporter: Reporter, die: bool) -> None:
    """They leave their records in the spool, and the parent sends them."""
    fork = multiprocessing.get_context("fork")
    collector = MetricsCollector(reporter=reporter)
    with collector.track_run():
        stop = threading.Event()
        busy = threading.Thread(
            target=lambda: [run_operators(collector, 10) for _ in iter(stop.is_set, True)]
        )
        busy.start()
        try:
            workers = [
                fork.Process(target=work_in_child, args=(collector, f"child {n}", die))
                for n in range(20)
            ]
            for worker in workers:
                worker.start()
                run_operators(collector, 10, "parent")
            for worker in workers:
                worker.join(30)
        finally:
            stop.set()
            busy.join()
    assert [worker.exitcode for worker in workers] == [-signal.SIGKILL if die else 0] * 20
    assert reporter.flush(30)
    counts = dict(
        database.query(
            "SELECT worker_id, count(*) FROM metrics_bi.operators"
            " WHERE worker_id <> 'worker_0' GROUP BY 1"
        )
    )
    assert counts == {"parent": 200, **{f"child {n}": 100 for n in range(20)}}
    assert (reporter.refused, waiting(reporter.spool)) == (0, [])


def test_threads(database: TestDatabase, reporter: Reporter) -> None:
    collector = MetricsCollector(reporter=reporter, keep=False)
    with collector.track_run():
        threads = [threading.Thread(target=run_operators, args=(collector, 500)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert reporter.flush(30)
    assert database.count() == 4000


def test_a_program_need_not_close_its_reporter(database: TestDatabase, spool: Path) -> None:
    program = (
        "import sys; from metrics_ext import *;"
        " collector = MetricsCollector(reporter=Reporter(sys.argv[1], spool=sys.argv[2]));"
        " run = collector.track_run(); run.__enter__(); run.__exit__(None, None, None)"
    )
    subprocess.run([sys.executable, "-c", program, database.conninfo, str(spool)], check=True)
    assert database.value("SELECT status FROM metrics_bi.runs") == "completed"
    assert waiting(spool) == []


# The disk takes no more.


@pytest.fixture
def no_space(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Files of this process may not grow beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(
    database: TestDatabase, reporter: Reporter, no_space: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Records wait in memory, in order; a record is in the file whole or not at all."""
    collector = MetricsCollector(reporter=reporter)
    with collector.track_run():
        for limit in (1000, 100, 0, 1001, 2**30):
            no_space(limit)
            run_operators(collector, 500)
            assert reporter.flush(10)
    assert reporter.flush(10)
    assert (database.count(), reporter.refused, reporter.dropped) == (2500, 0, 0)
    assert database.value("SELECT status FROM metrics_bi.runs") == "completed"
    assert "records wait in memory" in caplog.text


@pytest.mark.parametrize("kind", ["file", "missing"])
def test_a_folder_that_cannot_be(database: TestDatabase, tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "spool" if kind == "missing" else tmp_path / "file"
    with Reporter(database.conninfo, spool=folder, interval=0.05) as reporter:
        collector = MetricsCollector(reporter=reporter)
        with collector.track_run():
            run_operators(collector, 100)
        assert reporter.flush(10)
    assert (database.count(), reporter.dropped) == (100, 0)


def test_the_limits_of_spool_and_memory(
    server: Server, database: TestDatabase, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no room is dropped, the newest; what was there before is sent."""
    monkeypatch.setattr(spool_module, "MEMORY_LIMIT", 20_000)
    server.kill()
    try:
        with Reporter(database.conninfo, spool=spool, spool_limit=20_000) as reporter:
            collector = MetricsCollector(reporter=reporter)
            with collector.track_run():
                run_operators(collector, 1000)
            size = sum(path.stat().st_size for path in spool.iterdir())
            assert 19_000 < size <= 20_000
            dropped = reporter.dropped
        left = waiting(spool)
        # About as much was in memory, which ends with the process.
        assert reporter.dropped == 1002 - len(left)
        assert len(left) / 2 < reporter.dropped - dropped < len(left) * 2
    finally:
        server.start()
    with Reporter(database.conninfo, spool=spool) as reporter:
        assert reporter.flush(10)
    assert database.count() == sum(line.startswith(b"metrics_report_operator ") for line in left)


def test_a_file_removed_by_somebody_is_not_missed(
    database: TestDatabase, reporter: Reporter
) -> None:
    collector = MetricsCollector(reporter=reporter)
    with collector.track_run():
        run_operators(collector, 10)
        for path in reporter.spool.glob("*.spool"):
            path.unlink()
        run_operators(collector, 10)
    assert reporter.flush(10)
    assert database.count() == 20


def test_the_log_says_once_that_the_database_is_away(
    server: Server, database: TestDatabase, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.kill()
    try:
        with caplog.at_level(logging.INFO):
            with Reporter(database.conninfo, spool=spool, interval=0.01) as reporter:
                run_operators(MetricsCollector("run_a", reporter=reporter), 1)
                for _ in range(5):
                    assert not reporter.flush(0.2)
                assert caplog.text.count("cannot send") == 1
                server.start()
                database.query("SELECT extensions.metrics_start_run('run_a')")
                deadline = time.monotonic() + 20
                while not reporter.flush(1):
                    assert time.monotonic() < deadline
        assert "the database is back" in caplog.text
    finally:
        if not (server.data / "postmaster.pid").exists():
            server.start()
