"""The examples of README.md and those of the source of these metrics run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from conftest import TestDatabase
from metrics_ext import MetricsWriter

README = (Path(__file__).parents[1] / "README.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SQL = re.findall(r"^```sql\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SHELL = re.findall(r"^```sh\n(metrics-parquet.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment(database: TestDatabase, tmp_path: Path) -> dict[str, str]:
    """Where dbname=postgres is the test's database, as a role that may just write."""
    name = database.conninfo.removeprefix("dbname=")
    database.execute(
        "DROP ROLE IF EXISTS metrics_ext_pipeline",
        "CREATE ROLE metrics_ext_pipeline LOGIN",
        "GRANT USAGE ON SCHEMA extensions TO metrics_ext_pipeline",
        "SELECT extensions.metrics_grant('metrics_ext_pipeline', 'writer')",
    )
    service = tmp_path / "service"
    service.write_text(f"[test]\ndbname={name}\nuser=metrics_ext_pipeline\n")
    folder = str(Path(sys.executable).parent)
    yield {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PGSERVICEFILE": str(service),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    database.execute("DROP OWNED BY metrics_ext_pipeline", "DROP ROLE metrics_ext_pipeline")


def run(program: str, environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program.replace("dbname=postgres", "service=test")],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_readme(database: TestDatabase, environment: dict[str, str], tmp_path: Path) -> None:
    measuring, parquet, configuration = PYTHON
    run(measuring, environment, tmp_path)
    [query] = SQL
    [row] = database.query(query)
    assert row[:3] == ("stage_0", "ImageFilter", 90.0)
    assert database.value("SELECT custom_metrics FROM metrics_bi.operators") == '{"cache_hits": 42}'
    assert run(parquet, environment, tmp_path).endswith(" 90.0\n")
    run(configuration, environment, tmp_path)
    assert database.count() == 2
    files = MetricsWriter(tmp_path / "metrics")
    assert len(files.list_runs()) == 2
    [commands] = SHELL
    database.execute("TRUNCATE metrics.pipeline_runs CASCADE")
    for _ in range(2):
        for command in reversed(commands.replace("dbname=postgres", "service=test").splitlines()):
            subprocess.run(
                command.split("#")[0],
                shell=True,
                check=True,
                cwd=tmp_path,
                env={**environment, "PGSERVICE": "test"},
            )
        assert database.count() == 2
    assert len(files.list_runs()) == 2


# The source's, with the line of the import changed.

BASIC = """
from datetime import datetime, timezone

from metrics_ext import (
    MetricsCollector,
    MetricsWriter,
    OperatorMetrics
)

op_metrics = OperatorMetrics(
    run_id="run_20260124_123456", stage_name="stage_0", operator_name="ImageMetadataRefiner",
    worker_id="worker_0", timestamp=datetime.now(timezone.utc), input_records=1000,
    output_records=998, pass_rate=99.8, total_time=0.5, avg_latency=0.0005, min_latency=0.0003,
    max_latency=0.001, p50_latency=0.0005, p95_latency=0.0008, p99_latency=0.0009,
    throughput=2000.0,
)

collector = MetricsCollector("run_20260124_123456")

with collector.track_run():
    with collector.track_stage("stage_0"):
        # Add operator metrics
        collector.add_operator_metrics(op_metrics)

# Write to Parquet
writer = MetricsWriter("./metrics")
writer.write_all(
    run_metrics=collector.get_run_metrics(),
    stage_metrics=collector.get_stage_metrics(),
    operator_metrics=collector.get_operator_metrics()
)

run, [stage] = collector.get_run_metrics(), collector.get_stage_metrics()
print(run.num_stages, run.total_input_records, run.total_output_records, run.overall_pass_rate)
print(stage.num_workers, stage.input_records, stage.output_records, stage.pass_rate, stage.total_time)
"""

READING = """
from metrics_ext import MetricsWriter

writer = MetricsWriter("./metrics")

# List all runs
runs = writer.list_runs()

# Read specific run
metrics = writer.read_operator_metrics("run_20260124_123456")

print(runs, len(metrics), metrics[0]["pass_rate"], metrics[0]["p95_latency"])
print(writer.read_run_metrics(runs[0])["total_input_records"], writer.read_stage_metrics(runs[0])[0]["pass_rate"])
"""

AGGREGATION = """
from datetime import datetime, timezone

from metrics_ext import MetricsAggregator, OperatorMetrics


class Method:
    def __init__(self, answer):
        self.answer = answer

    def remote(self):
        return self.answer


class Worker:
    def __init__(self, total_time, throughput, p95):
        self.get_operator_stats = Method({
            "ImageClipEmbeddingRefiner": {
                "input_records": 500, "output_records": 500, "pass_rate": 100.0,
                "total_time": total_time, "avg_latency": total_time / 500, "min_latency": 0.004,
                "max_latency": 0.009, "p50_latency": 0.005, "p95_latency": p95,
                "p99_latency": 0.008, "throughput": throughput,
            }
        })


stage = MetricsAggregator("test_run").collect_stage_metrics(
    [Worker(2.5, 200.0, 0.006), Worker(2.8, 178.6, 0.007)], "embedding_stage"
)
print(stage.stage_name, stage.num_workers, stage.input_records, stage.pass_rate, stage.total_time)
print(f"{stage.avg_throughput:.1f} {stage.min_throughput:.1f} {stage.max_throughput:.1f}")
print([row.p95_latency for row in stage.operator_metrics])
"""


def test_the_source(tmp_path: Path) -> None:
    environment = dict(os.environ)
    assert run(BASIC, environment, tmp_path) == "1 1000 998 99.8\n1 1000 998 99.8 0.5\n"
    assert run(READING, environment, tmp_path) == (
        "['run_20260124_123456'] 1 99.8 0.0008\n1000 99.8\n"
    )
    assert run(AGGREGATION, environment, tmp_path) == (
        "embedding_stage 2 1000 100.0 2.8\n189.3 178.6 200.0\n[0.006, 0.007]\n"
    )


def test_the_sources_queries(
    database: TestDatabase, environment: dict[str, str], tmp_path: Path
) -> None:
    """They run on what the client has reported."""
    run(PYTHON[0], environment, tmp_path)
    with psycopg.connect(database.conninfo) as connection:
        connection.execute("SET search_path = metrics_bi, metrics, public")
        [(name, throughput, latency)] = connection.execute(
            "SELECT operator_name, AVG(throughput) as avg_throughput,"
            " AVG(p95_latency * 1000) as p95_latency_ms FROM operators"
            " GROUP BY operator_name ORDER BY avg_throughput ASC LIMIT 10"
        ).fetchall()
        assert name == "ImageFilter" and throughput > 0
        assert latency == pytest.approx(1000 / throughput, rel=0.01)
