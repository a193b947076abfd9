"""Collector, writer, aggregator and models, without a database."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import tracemalloc
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conftest import run_operators
from metrics_ext import (
    MetricsAggregator,
    MetricsCollector,
    MetricsWriter,
    OperatorMetrics,
    RunMetrics,
    StageMetrics,
    models,
    writer,
)
from metrics_ext.collector import MAX_SAMPLES

NOON = datetime(2026, 1, 24, 12, tzinfo=timezone.utc)


def operator(name: str = "Filter", worker_id: str = "worker_0", **fields: Any) -> OperatorMetrics:
    values: dict[str, Any] = {
        "input_records": 100,
        "output_records": 90,
        "total_time": 0.5,
        "timestamp": NOON,
        **fields,
    }
    return OperatorMetrics.measured("run_a", "stage_0", name, worker_id, **values)


def two_by_two() -> list[OperatorMetrics]:
    """Two operators on two workers; B on worker_1 took no time."""
    later = NOON + timedelta(seconds=1)
    return [
        operator("A", "w0", input_records=60, output_records=50, total_time=2.0),
        operator("A", "w1", input_records=40, output_records=30, total_time=1.0, error_count=1),
        operator("B", "w0", input_records=50, output_records=25, total_time=4.0, timestamp=later),
        operator("B", "w1", input_records=30, output_records=15, total_time=0.0, timestamp=later),
    ]


class TestMetricsCollector:
    def test_generates_run_ids(self) -> None:
        first, second = MetricsCollector(), MetricsCollector()
        assert first.run_id != second.run_id
        assert re.fullmatch(r"run_\d{8}_\d{6}_[0-9a-f]{8}", first.run_id)

    def test_keeps_the_run_id(self) -> None:
        assert MetricsCollector("any id, ünïcode").run_id == "any id, ünïcode"

    def test_tracks_a_run(self) -> None:
        collector = MetricsCollector()
        assert collector.get_run_metrics() is None
        collector.set_config({"batch_size": 7})
        with collector.track_run() as tracked:
            assert tracked is collector
            assert collector.get_run_metrics() is None
        run = collector.get_run_metrics()
        assert run is not None
        assert (run.run_id, run.num_stages, run.config) == (collector.run_id, 0, {"batch_size": 7})
        assert (run.total_input_records, run.overall_pass_rate, run.avg_throughput) == (0, 0.0, 0.0)
        assert run.start_time < run.end_time and run.duration >= 0

    def test_sums_up_a_run_from_first_and_last_stage(self) -> None:
        collector = MetricsCollector("run_a")
        with collector.track_run():
            with collector.track_stage("stage_0"):
                for row in two_by_two():
                    collector.add_operator_metrics(row)
            with collector.track_stage("stage_1"):
                row = operator("C", input_records=10, output_records=5, error_count=2)
                collector.add_operator_metrics(replace(row, stage_name="stage_1"))
        run = collector.get_run_metrics()
        assert run is not None
        assert (run.total_input_records, run.total_output_records) == (100, 5)
        assert (run.overall_pass_rate, run.total_errors, run.num_stages) == (5.0, 3, 2)
        assert run.avg_throughput == pytest.approx(100 / run.duration)

    def test_stages_are_in_order_of_their_beginning(self) -> None:
        collector = MetricsCollector()
        for name in ("stage_9", "stage_10", "a"):
            with collector.track_stage(name):
                pass
        assert [stage.stage_name for stage in collector.get_stage_metrics()] == [
            "stage_9",
            "stage_10",
            "a",
        ]

    def test_a_stage_has_its_rows_wherever_they_were_added(self) -> None:
        collector = MetricsCollector("run_a")
        collector.add_operator_metrics(operator())
        with collector.track_stage("stage_0"):
            with collector.track_operator("Other", "stage_1", "worker_0"):
                pass
        first, second = collector.get_stage_metrics()
        assert [row.operator_name for row in first.operator_metrics] == ["Filter"]
        assert [row.operator_name for row in second.operator_metrics] == ["Other"]

    def test_an_empty_stage_is_zeros(self) -> None:
        collector = MetricsCollector()
        with collector.track_run(), collector.track_stage("empty"):
            pass
        [stage] = collector.get_stage_metrics()
        assert (stage.num_workers, stage.input_records, stage.pass_rate) == (0, 0, 0.0)
        run = collector.get_run_metrics()
        assert run is not None and run.num_stages == 1

    def test_tracks_an_operator(self) -> None:
        collector = MetricsCollector()
        with collector.track_operator("Filter", "stage_0", "worker_0") as tracked:
            tracked.update_from_stats({"input_records": 4, "output_records": 3, "error_count": 1})
            tracked.add_custom_metric("cache_hits", 7)
        [row] = collector.get_operator_metrics()
        assert (row.input_records, row.output_records, row.error_count) == (4, 3, 1)
        assert (row.pass_rate, row.custom_metrics) == (75.0, {"cache_hits": 7})
        assert row.total_time > 0
        assert row.throughput == pytest.approx(4 / row.total_time)
        assert row.min_latency == row.p99_latency == row.avg_latency == row.total_time / 4

    def test_batches_give_percentiles(self) -> None:
        collector = MetricsCollector()
        with collector.track_operator("Filter", "stage_0", "worker_0") as tracked:
            tracked.add_batch(99, 50, 0.99)
            tracked.add_batch(1, 1, 1.0)
            tracked.add_batch(0, 0, 5.0)
        [row] = collector.get_operator_metrics()
        assert (row.input_records, row.output_records) == (100, 51)
        assert row.total_time == pytest.approx(1.99)
        assert row.avg_latency == pytest.approx(0.0199)
        latencies = (row.min_latency, row.p50_latency, row.p95_latency, row.p99_latency)
        assert latencies == pytest.approx((0.01, 0.01, 0.01, 1.0))
        assert row.max_latency == 1.0

    def test_many_batches_stay_few_samples(self) -> None:
        collector = MetricsCollector()
        count = 10 * MAX_SAMPLES
        with collector.track_operator("Filter", "stage_0", "worker_0") as tracked:
            for n in range(count):
                tracked.add_batch(1, 1, (n + 1) / count)
        [row] = collector.get_operator_metrics()
        assert len(row.latencies) <= MAX_SAMPLES + 1
        assert sum(row.weights) == count
        assert (row.p50_latency, row.p99_latency) == pytest.approx((0.5, 0.99), rel=0.005)

    def test_exceptions_propagate_and_are_recorded(self) -> None:
        collector = MetricsCollector()
        with pytest.raises(ZeroDivisionError):
            with collector.track_run(), collector.track_stage("stage_0"):
                with collector.track_operator("Filter", "stage_0", "worker_0") as tracked:
                    tracked.input_records = 5
                    tracked.input_records // 0
        [row] = collector.get_operator_metrics()
        assert (row.input_records, row.error_count) == (5, 1)
        assert row.custom_metrics == {"exception": "ZeroDivisionError"}
        [stage] = collector.get_stage_metrics()
        assert stage.error_count == 1
        run = collector.get_run_metrics()
        assert run is not None and run.total_errors == 1

    def test_a_mistake_in_recording_does_not_reach_the_pipeline(self) -> None:
        collector = MetricsCollector()
        with collector.track_run():
            with collector.track_operator("Filter", "stage_0", "worker_0") as tracked:
                tracked.input_records = None  # type: ignore[assignment]
            collector.add_operator_metrics(replace(operator(), input_records=None))  # type: ignore[arg-type]

    def test_cancelled_coroutines_are_recorded(self) -> None:
        collector = MetricsCollector()

        async def pipeline() -> None:
            with collector.track_operator("Filter", "stage_0", "worker_0"):
                await asyncio.sleep(60)

        async def cancel() -> None:
            task = asyncio.create_task(pipeline())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        [row] = collector.get_operator_metrics()
        assert (row.error_count, row.custom_metrics) == (1, {"exception": "CancelledError"})

    def test_threads_may_share_a_collector_and_names(self) -> None:
        collector = MetricsCollector(keep=False)
        threads = [threading.Thread(target=run_operators, args=(collector, 1000)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [stage] = collector.get_stage_metrics()
        assert stage.input_records == 800_000
        assert collector.get_operator_metrics() == []

    def test_rows_are_told_apart_by_time(self) -> None:
        collector = MetricsCollector()
        run_operators(collector, 1000)
        assert len({row.timestamp for row in collector.get_operator_metrics()}) == 1000

    def test_forgotten_rows_count(self) -> None:
        kept, forgotten = MetricsCollector("run_a"), MetricsCollector("run_a", keep=False)
        for collector in (kept, forgotten):
            for n in range(2500):
                collector.add_operator_metrics(
                    operator(f"op {n % 7}", f"worker {n % 3}", total_time=n / 1000)
                )
        assert forgotten.get_operator_metrics() == []
        [full], [bare] = kept.get_stage_metrics(), forgotten.get_stage_metrics()
        assert bare.operator_metrics == []
        assert bare.to_dict() == full.to_dict()

    def test_takes_about_a_kilobyte_a_metric(self) -> None:
        collector = MetricsCollector()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        run_operators(collector, 1000)
        after = tracemalloc.get_traced_memory()[0]
        rows = collector.get_operator_metrics()
        made = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(rows) == 1000
        assert (after - before) / 1000 < 1000
        assert (made - after) / 1000 < 1000

    def test_clear(self) -> None:
        collector = MetricsCollector()
        with collector.track_run():
            run_operators(collector, 1)
        collector.clear()
        assert collector.get_operator_metrics() == [] == collector.get_stage_metrics()
        assert collector.get_run_metrics() is None

    def test_custom_metrics_are_left_out_if_so_configured(self) -> None:
        collector = MetricsCollector(collect_custom_metrics=False)
        with collector.track_operator("Filter", "stage_0", "worker_0") as tracked:
            tracked.add_custom_metric("cache_hits", 7)
        collector.add_operator_metrics(operator(custom_metrics={"cache_hits": 7}))
        assert [row.custom_metrics for row in collector.get_operator_metrics()] == [{}, {}]


class TestMetricsWriter:
    def test_makes_the_folders(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path / "new" / "metrics")
        assert files.runs_path.is_dir() and files.stages_path.is_dir()
        assert files.operators_path.is_dir()

    def test_writes_and_reads_back(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path)
        rows = [operator(custom_metrics={"schlüssel": [1, None], "nan": float("nan")})]
        stage = MetricsAggregator("run_a").aggregate_to_stage_metrics(rows, "stage_0")
        run = RunMetrics("run_a", NOON, NOON, 2.5, 1, 100, 90, 90.0, 40.0, config={"a": 1})
        files.write_all(run_metrics=run, stage_metrics=[stage], operator_metrics=rows)
        [read] = files.read_operator_metrics("run_a")
        assert json.loads(read.pop("custom_metrics")) == {"schlüssel": [1, None], "nan": "NaN"}
        expected = rows[0].to_dict()
        del expected["custom_metrics"]
        assert read == {**expected, "timestamp": NOON.replace(tzinfo=None)}
        [read] = files.read_stage_metrics("run_a")
        assert read == {**stage.to_dict(), "timestamp": NOON.replace(tzinfo=None)}
        found = files.read_run_metrics("run_a")
        assert found is not None
        assert (found["duration"], found["config"]) == (2.5, '{"a":1}')
        assert sorted(path.name for path in tmp_path.rglob("*.parquet")) == [
            "operators_run_a.parquet",
            "run_a.parquet",
            "stages_run_a.parquet",
        ]

    def test_no_rows_make_no_file(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path)
        files.write_operator_metrics([], "run_a")
        files.write_stage_metrics([], "run_a")
        files.write_all()
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_what_is_not_there_reads_as_nothing(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path)
        assert files.read_operator_metrics("x") == [] == files.read_stage_metrics("x")
        assert files.read_run_metrics("x") is None
        assert files.list_runs() == []

    def test_lists_runs_by_the_ids_that_read_them(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path)
        run_ids = ["run_1", "no prefix", "../../etc/../x", "ünïcode/%2F", ".."]
        for n, run_id in enumerate(run_ids):
            begin = NOON + timedelta(days=n)
            files.write_run_metrics(RunMetrics(run_id, begin, begin, 0.0, 0, 0, 0, 0.0, 0.0))
        assert files.list_runs() == run_ids[::-1]
        for run_id in run_ids:
            found = files.read_run_metrics(run_id)
            assert found is not None and found["run_id"] == run_id
        assert {path.parent for path in tmp_path.rglob("*.parquet")} == {files.runs_path}

    def test_operators_alone_are_no_run(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path)
        files.write_operator_metrics([operator()], "run_a")
        assert files.list_runs() == []

    def test_a_failure_leaves_what_was_there(self, tmp_path: Path) -> None:
        files = MetricsWriter(tmp_path)
        files.write_operator_metrics([operator()], "run_a")
        with pytest.raises(pa.ArrowException):
            files.write_operator_metrics([replace(operator(), input_records="many")], "run_a")  # type: ignore[arg-type]
        assert len(files.read_operator_metrics("run_a")) == 1
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1

    def test_a_run_takes_less_than_a_megabyte(self, tmp_path: Path) -> None:
        """Ten stages of ten operators on ten workers."""
        files = MetricsWriter(tmp_path)
        rows = [
            replace(operator(f"operator {o}", f"worker_{w}", total_time=w + o / 7), stage_name=s)
            for s in map(str, range(10))
            for o in range(10)
            for w in range(10)
        ]
        files.write_operator_metrics(rows, "run_a")
        assert sum(path.stat().st_size for path in tmp_path.rglob("*.parquet")) < 1_000_000


class Remote:
    """A method of a remote worker: called by .remote(), answers with whatever ray would."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def remote(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Worker:
    def __init__(self, answer: Any) -> None:
        self.get_operator_stats = Remote(answer)


class Reference:
    """Like ray's ObjectRef: its future() has the result."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def future(self) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(self.value, Exception):
            future.set_exception(self.value)
        else:
            future.set_result(self.value)
        return future


class TestMetricsAggregator:
    def test_collects_from_workers(self) -> None:
        stats = {
            "Filter": {"input_records": 10, "output_records": 5, "total_time": 2.0},
            "Embed": {
                "input_records": 5,
                "output_records": 5,
                "total_time": 1.0,
                "pass_rate": 100.0,
                "p50_latency": 0.2,
                "p95_latency": 0.3,
                "p99_latency": 0.4,
                "min_latency": 0.1,
                "max_latency": 0.5,
                "throughput": 5.0,
            },
        }
        workers = [Worker(Reference(stats)), Worker(Reference(stats).future()), Worker(stats)]
        rows = MetricsAggregator("run_a").collect_from_workers(workers)
        assert [(row.operator_name, row.worker_id) for row in rows] == [
            (name, f"worker_{n}") for n in range(3) for name in ("Filter", "Embed")
        ]
        assert {row.stage_name for row in rows} == {"unknown"}
        filtered, embedded = rows[:2]
        assert (filtered.pass_rate, filtered.throughput, filtered.p99_latency) == (50.0, 5.0, 0.2)
        assert (embedded.p50_latency, embedded.p99_latency, embedded.max_latency) == (0.2, 0.4, 0.5)

    def test_leaves_out_workers_that_fail(self) -> None:
        stats = {"Filter": {"input_records": 10, "output_records": 5, "total_time": 2.0}}
        lost = RuntimeError("worker died")
        workers = [Worker(lost), Worker(Reference(lost)), Worker(None), object(), Worker(stats)]
        stage = MetricsAggregator("run_a").collect_stage_metrics(workers, "stage_0")
        [row] = stage.operator_metrics
        assert (row.worker_id, row.stage_name, stage.input_records) == ("worker_4", "stage_0", 10)

    def test_aggregates_to_a_stage(self) -> None:
        stage = MetricsAggregator("run_a").aggregate_to_stage_metrics(two_by_two(), "stage_0")
        assert (stage.num_workers, stage.input_records, stage.output_records) == (2, 100, 40)
        assert (stage.pass_rate, stage.total_time, stage.error_count) == (40.0, 4.0, 1)
        throughputs = (stage.avg_throughput, stage.min_throughput, stage.max_throughput)
        assert throughputs == (27.5, 12.5, 40.0)
        assert stage.timestamp == NOON
        assert stage.operator_metrics == two_by_two()

    def test_aggregates_two_operators_as_a_funnel(self) -> None:
        rows = [operator("Op1", "worker_0"), operator("Op2", "worker_1", output_records=80)]
        stage = MetricsAggregator("run_a").aggregate_to_stage_metrics(rows, "stage_0")
        assert (stage.num_workers, stage.input_records, stage.output_records) == (2, 100, 80)

    def test_the_order_is_of_time_and_not_of_name(self) -> None:
        rows = [
            operator("A", input_records=8, output_records=2, timestamp=NOON + timedelta(seconds=1)),
            operator("Z", input_records=10, output_records=8),
        ]
        stage = MetricsAggregator("run_a").aggregate_to_stage_metrics(rows, "stage_0")
        assert (stage.input_records, stage.output_records) == (10, 2)

    def test_at_the_same_time_the_order_is_of_arrival(self) -> None:
        rows = [operator("Z", input_records=10), operator("A", output_records=2)]
        stage = MetricsAggregator("run_a").aggregate_to_stage_metrics(rows, "stage_0")
        assert (stage.input_records, stage.output_records) == (10, 2)

    def test_aggregates_nothing(self) -> None:
        stage = MetricsAggregator("run_a").aggregate_to_stage_metrics([], "empty")
        assert (stage.stage_name, stage.num_workers, stage.input_records) == ("empty", 0, 0)
        assert (stage.avg_throughput, stage.min_throughput, stage.total_time) == (0.0, 0.0, 0.0)


class TestMetricsModels:
    def test_operator_fields(self) -> None:
        row = operator(custom_metrics={"test": "value"})
        assert list(row.to_dict()) == writer.OPERATOR_SCHEMA.names
        assert row.to_dict()["custom_metrics"] == {"test": "value"}

    def test_stage_fields(self) -> None:
        stage = StageMetrics("run_a", "stage_0", NOON, 2, 200, 180, 90.0, 2.0, 100.0, 90.0, 110.0)
        assert list(stage.to_dict()) == writer.STAGE_SCHEMA.names
        assert (stage.error_count, stage.operator_metrics) == (0, [])

    def test_run_fields(self) -> None:
        run = RunMetrics("run_a", NOON, NOON, 1.0, 1, 10, 9, 90.0, 10.0)
        assert list(run.to_dict()) == writer.RUN_SCHEMA.names
        assert (run.total_errors, run.stage_metrics, run.config) == (0, [], {})

    @pytest.mark.parametrize(
        ("count", "expected"),
        [
            (1, [1, 1, 1]),
            (2, [2, 2, 2]),
            (4, [3, 4, 4]),
            (5, [3, 5, 5]),
            (20, [11, 20, 20]),
            (100, [51, 96, 100]),
            (101, [51, 96, 100]),
            (10_000, [5001, 9501, 9901]),
        ],
    )
    def test_percentiles_are_values_by_rank(self, count: int, expected: list[float]) -> None:
        values = list(range(1, count + 1))
        assert models.percentiles(values, [1] * count) == expected
        assert models.percentiles([v for v in values for _ in "ab"], [1] * 2 * count) == (
            models.percentiles(values, [2] * count)
        )

    def test_nothing_measured_is_zeros(self) -> None:
        row = operator(input_records=0, output_records=0, total_time=0.0)
        assert {type(value) for value in list(row.to_dict().values())[5:-1]} == {int, float}
        assert not any(list(row.to_dict().values())[5:])

    def test_records_without_time(self) -> None:
        row = operator(total_time=0.0)
        assert (row.throughput, row.avg_latency) == (0.0, 0.0)

    def test_more_output_than_input_is_not_clamped(self) -> None:
        assert operator(output_records=250).pass_rate == 250.0

    @pytest.mark.parametrize("count", [2, 3, 10, 99, 100, 101, 1000, 12_345, 10**9])
    def test_estimated_latencies_have_the_figures_of_the_row(self, count: int) -> None:
        row = replace(
            operator(input_records=count),
            latencies=(),
            weights=(),
            min_latency=0.001,
            p50_latency=0.002,
            p95_latency=0.005,
            p99_latency=0.01,
            max_latency=0.05,
        )
        latencies, weights = row.samples()
        assert sum(weights) == count and min(weights) > 0
        assert list(latencies) == sorted(latencies) and len(latencies) < 100
        assert (latencies[0], latencies[-1]) == (0.001, 0.05)
        if count >= 100:
            assert models.percentiles(latencies, weights)[:2] == [0.002, 0.005]
        if count > 100:
            assert models.percentiles(latencies, weights)[2] == 0.01

    def test_times_without_zone_are_utc(self) -> None:
        assert operator(timestamp=NOON.replace(tzinfo=None)).timestamp == NOON

    def test_the_clock_never_stands_or_goes_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = models.microseconds()
        monkeypatch.setattr(models.time, "time_ns", lambda: (first - 3_600_000_000) * 1000)
        assert [models.microseconds() for _ in range(3)] == [first + 1, first + 2, first + 3]

    def test_times_are_exact(self) -> None:
        for microseconds in (1_769_256_000_123_457, 1_799_999_999_999_999, 4_102_444_800_000_001):
            moment = models.moment(microseconds)
            assert (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) == timedelta(
                microseconds=microseconds
            )
            assert (
                datetime.fromisoformat(models.utc_text(microseconds).replace("Z", "+00:00"))
                == moment
            )
