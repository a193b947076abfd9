"""Parquet files: the schemas, and metrics-parquet between them and the database."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import TestDatabase, run_operators, waiting
from metrics_ext import MetricsCollector, MetricsWriter, Reporter
from test_metrics import NOON, operator, two_by_two

# The schemas as the source of these metrics has them.
SCHEMAS = {
    "operators": """
        run_id: string
        stage_name: string
        operator_name: string
        worker_id: string
        timestamp: timestamp[us]
        input_records: int64
        output_records: int64
        pass_rate: double
        total_time: double
        avg_latency: double
        min_latency: double
        max_latency: double
        p50_latency: double
        p95_latency: double
        p99_latency: double
        throughput: double
        error_count: int64
        custom_metrics: string""",
    "stages": """
        run_id: string
        stage_name: string
        timestamp: timestamp[us]
        num_workers: int64
        input_records: int64
        output_records: int64
        pass_rate: double
        total_time: double
        avg_throughput: double
        min_throughput: double
        max_throughput: double
        error_count: int64""",
    "runs": """
        run_id: string
        start_time: timestamp[us]
        end_time: timestamp[us]
        duration: double
        num_stages: int64
        total_input_records: int64
        total_output_records: int64
        overall_pass_rate: double
        avg_throughput: double
        total_errors: int64
        config: string""",
}
DUCKDB_TYPES = {
    "string": "VARCHAR",
    "timestamp[us]": "TIMESTAMP",
    "int64": "BIGINT",
    "double": "DOUBLE",
}


def columns(schema: str) -> list[tuple[str, str]]:
    return [tuple(line.strip().split(": ")) for line in schema.strip().splitlines()]  # type: ignore[misc]


def metrics_parquet(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "metrics-parquet", *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def run(*arguments: str | Path) -> str:
    done = metrics_parquet(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: str | Path) -> str:
    done = metrics_parquet(*arguments)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def record_run(database: TestDatabase, spool: Path, run_id: str, rows: int = 1) -> None:
    with Reporter(database.conninfo, spool=spool) as reporter:
        collector = MetricsCollector(run_id, reporter=reporter)
        collector.set_config({"größe": 7})
        with collector.track_run():
            for name in ("stage_9", "stage_10"):
                with collector.track_stage(name):
                    for n in range(rows):
                        with collector.track_operator("Filter", name, f"worker_{n % 3}") as tracked:
                            tracked.add_batch(10, 9, 0.5)
                            tracked.add_batch(1, 0, 0.5)
                            tracked.add_custom_metric("wörd", "\u2028")
        assert reporter.flush(30)
    assert waiting(spool) == []


def contents(database: TestDatabase) -> dict[str, list[tuple[Any, ...]]]:
    """All that the files hold, with latencies in two digits: they are estimates once imported."""
    return {
        "operators": database.query(
            "SELECT run_id, stage_name, operator_name, worker_id, timestamp, input_records,"
            " output_records, pass_rate, total_time, avg_latency, round(min_latency::numeric, 2),"
            " round(p50_latency::numeric, 2), round(p99_latency::numeric, 2),"
            " round(max_latency::numeric, 2), throughput, error_count, custom_metrics"
            " FROM metrics_bi.operators ORDER BY 1, 2, 3, 4, 5"
        ),
        "stages": database.query(
            "SELECT run_id, stage_name, timestamp, num_workers, input_records, output_records,"
            " pass_rate, total_time, avg_throughput, error_count, status"
            " FROM metrics_bi.stages ORDER BY run_id, ordinal"
        ),
        "runs": database.query("SELECT * FROM metrics_bi.runs ORDER BY run_id"),
    }


@pytest.mark.parametrize("rows", [0, 1, 11_000])
def test_export_import_and_twice(
    database: TestDatabase, spool: Path, tmp_path: Path, rows: int
) -> None:
    run_ids = ["run_a", "ünï/code .."]
    for run_id in run_ids:
        record_run(database, spool, run_id, rows)
    before = contents(database)
    said = run("export", "-d", database.conninfo, tmp_path / "metrics")
    assert said == f"2 runs, {4 * rows} rows of operators exported\n"
    files = MetricsWriter(tmp_path / "metrics")
    assert sorted(files.list_runs()) == sorted(run_ids)
    assert len(files.read_operator_metrics(run_ids[1])) == 2 * rows

    database.execute("TRUNCATE metrics.pipeline_runs CASCADE")
    for new in (4 * rows, 0):
        said = run("import", "-d", database.conninfo, tmp_path / "metrics")
        assert said == f"2 runs, {new} rows of operators new in the database\n"
        assert contents(database) == before


def test_files_have_the_schemas(database: TestDatabase, spool: Path, tmp_path: Path) -> None:
    """Those of the command and those of the writer, read by pyarrow and by DuckDB."""
    record_run(database, spool, "run_a", 10)
    run("export", "-d", database.conninfo, tmp_path / "exported")
    collector = MetricsCollector("run_a")
    with collector.track_run():
        run_operators(collector, 10)
    MetricsWriter(tmp_path / "written").write_all(
        collector.get_run_metrics(),
        collector.get_stage_metrics(),
        collector.get_operator_metrics(),
    )
    for folder in ("exported", "written"):
        for kind, schema in SCHEMAS.items():
            name = "run_a" if kind == "runs" else f"{kind}_run_a"
            path = tmp_path / folder / kind / f"{name}.parquet"
            with pq.ParquetFile(path) as file:
                found = [(field.name, str(field.type)) for field in file.schema_arrow]
                assert found == columns(schema)
                group = file.metadata.row_group(0)
                for n in range(group.num_columns):
                    assert group.column(n).compression == "SNAPPY"
                    assert file.schema.column(n).max_definition_level == 1  # optional
                rows = file.read().to_pylist()
            connection = duckdb.connect()
            found = connection.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
            assert [row[:2] for row in found] == [
                (column, DUCKDB_TYPES[kind]) for column, kind in columns(schema)
            ]
            found = connection.sql(f"SELECT * FROM '{path}'").fetchall()
            assert found == [tuple(row.values()) for row in rows]


def write_foreign(folder: Path, kind: str, name: str, rows: list[dict[str, Any]]) -> None:
    """A file as another program writes it."""
    schema = pa.schema([(column, kind) for column, kind in columns(SCHEMAS[kind])])
    (folder / kind).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / kind / name)


def test_imports_what_others_write(database: TestDatabase, tmp_path: Path) -> None:
    """Any file names, several runs in a file, a run in several, nothing but what is needed."""
    names = {"stage_name": "stage_0", "operator_name": "Filter", "worker_id": "worker_0"}
    rows = [
        {**names, "run_id": run_id, "timestamp": NOON + timedelta(seconds=n), "input_records": 10}
        for run_id in ("run_a", "run_b")
        for n in range(4)
    ]
    write_foreign(tmp_path, "operators", "x.parquet", rows[:6])
    write_foreign(tmp_path, "operators", "y.parquet", rows[6:])
    ended = {"start_time": NOON, "end_time": NOON + timedelta(seconds=2)}
    write_foreign(
        tmp_path, "runs", "all.parquet", [{"run_id": "run_a", **ended, "config": '{"a": 1}'}]
    )
    stages = [
        {"run_id": "run_a", "stage_name": name, "timestamp": NOON + timedelta(seconds=n)}
        for n, name in enumerate(["empty_9", "empty_10", "late"])
    ]
    write_foreign(tmp_path, "stages", "s.parquet", stages[::-1])
    for new in (8, 0):
        said = run("import", "-d", database.conninfo, tmp_path)
        assert said == f"2 runs, {new} rows of operators new in the database\n"
        # One of run_a's rows came after its end.
        assert database.count() == 8
        assert database.query(
            "SELECT run_id, start_time, end_time, num_stages, status, config::jsonb"
            " FROM metrics_bi.runs ORDER BY 1"
        ) == [
            ("run_a", NOON, NOON + timedelta(seconds=2), 4, "completed", {"a": 1}),
            ("run_b", NOON, NOON + timedelta(seconds=3), 1, "completed", {}),
        ]
        found = database.query(
            "SELECT stage_name FROM metrics_bi.stages WHERE run_id = 'run_a' ORDER BY ordinal"
        )
        assert found[:3] == [("empty_9",), ("empty_10",), ("late",)]


def test_imports_one_run_of_many(database: TestDatabase, tmp_path: Path) -> None:
    files = MetricsWriter(tmp_path)
    for run_id in ("run_a", "run_b"):
        collector = MetricsCollector(run_id)
        with collector.track_run():
            run_operators(collector, 5)
        files.write_all(collector.get_run_metrics(), (), collector.get_operator_metrics())
    run("import", "-d", database.conninfo, tmp_path, "run_b")
    assert database.query("SELECT run_id FROM metrics_bi.runs") == [("run_b",)]
    assert database.count() == 5


def test_a_running_run_stays_running(database: TestDatabase, spool: Path, tmp_path: Path) -> None:
    with Reporter(database.conninfo, spool=spool) as reporter:
        collector = MetricsCollector("run_a", reporter=reporter)
        tracked = collector.track_run()
        tracked.__enter__()
        run_operators(collector, 1)
        assert reporter.flush(10)
        run("export", "-d", database.conninfo, tmp_path)
        database.execute("TRUNCATE metrics.pipeline_runs CASCADE")
        run("import", "-d", database.conninfo, tmp_path)
        assert database.query("SELECT status, end_time FROM metrics_bi.runs") == [("running", None)]
        tracked.__exit__(None, None, None)


def test_errors_are_said_and_leave_nothing(database: TestDatabase, tmp_path: Path) -> None:
    assert "no run run_x" in refused("export", "-d", database.conninfo, tmp_path / "new", "run_x")
    assert not (tmp_path / "new").exists()
    assert "no run run_x" in refused("import", "-d", database.conninfo, tmp_path, "run_x")
    assert "nobody" in refused("export", "-d", "dbname=nobody_has_it", tmp_path / "new")

    for wrong, reason in (
        ({"custom_metrics": "{"}, "no JSON: '{'"),
        ({"custom_metrics": "[1]"}, "custom_metrics"),
        ({"timestamp": None}, "without timestamp"),
        ({"worker_id": None}, "without worker_id"),
        ({"run_id": None}, "without run_id"),
        ({"input_records": -1}, "input_records"),
    ):
        row = operator().to_dict() | {"custom_metrics": "{}"} | wrong
        write_foreign(tmp_path, "operators", "x.parquet", [row])
        assert reason in refused("import", "-d", database.conninfo, tmp_path)
    for table, reason in (
        (pa.table({"run_id": ["run_a"]}), "has no column"),
        (pa.table({name: ["x"] for name, _ in columns(SCHEMAS["operators"])}), "x.parquet"),
    ):
        pq.write_table(table, tmp_path / "operators" / "x.parquet")
        assert reason in refused("import", "-d", database.conninfo, tmp_path)
    (tmp_path / "operators" / "x.parquet").write_text("no Parquet")
    assert "x.parquet" in refused("import", "-d", database.conninfo, tmp_path)
    assert database.query("SELECT run_id FROM metrics_bi.runs") == []


def test_a_run_is_imported_whole_or_not(database: TestDatabase, tmp_path: Path) -> None:
    rows = [row.to_dict() | {"custom_metrics": "{}"} for row in two_by_two()]
    rows[3]["input_records"] = -1
    write_foreign(tmp_path, "operators", "x.parquet", rows)
    assert "input_records" in refused("import", "-d", database.conninfo, tmp_path)
    assert database.query("SELECT run_id FROM metrics_bi.runs") == []


def test_times_are_utc_in_any_session(
    database: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTZ", "America/New_York")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    write_foreign(
        tmp_path, "operators", "x.parquet", [operator().to_dict() | {"custom_metrics": "{}"}]
    )
    run("import", "-d", database.conninfo, tmp_path)
    assert database.value("SELECT timestamp FROM metrics_bi.operators") == NOON
    run("export", "-d", database.conninfo, tmp_path / "again")
    [row] = MetricsWriter(tmp_path / "again").read_operator_metrics("run_a")
    assert row["timestamp"] == datetime(2026, 1, 24, 12)


def test_needs_are_said(tmp_path: Path) -> None:
    """Without pyarrow the command says what to install, and the rest of the package works."""
    (tmp_path / "pyarrow.py").write_text("raise ImportError('no pyarrow')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "from metrics_ext.parquet_command import main"],
        capture_output=True,
        text=True,
    )
    assert "pip install 'metrics-ext[parquet]'" in done.stderr
    code += "import metrics_ext; metrics_ext.MetricsCollector()"
    subprocess.run([sys.executable, "-c", code], check=True)
