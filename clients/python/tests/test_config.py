"""The block executor.metrics."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from conftest import TestDatabase, run_operators
from metrics_ext import MetricsConfig, MetricsWriter


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("config", [{}, {"executor": None}, {"executor": {"metrics": None}}])
def test_defaults(config: dict[str, object]) -> None:
    metrics = MetricsConfig.from_config(config)
    assert (metrics.enabled, metrics.output_path) == (True, "./metrics")
    assert (metrics.collect_custom_metrics, metrics.write_on_completion) == (False, True)
    assert metrics.database is None


def test_unknown_settings_are_said(caplog: pytest.LogCaptureFixture) -> None:
    config = {"executor": {"metrics": {"enabled": False, "enabeld": True}}}
    assert MetricsConfig.from_config(config) == MetricsConfig(enabled=False)
    assert "enabeld" in caplog.text


def test_writes_on_completion(tmp_path: Path) -> None:
    config = {"executor": {"max_samples": 7, "metrics": {"output_path": str(tmp_path)}}}
    metrics = MetricsConfig.from_config(config)
    with metrics.track_run("run_a", config) as collector:
        with collector.track_operator("Filter", "stage_0", "worker_0") as operator:
            operator.add_custom_metric("left_out", 1)
        assert files(tmp_path) == []
    assert files(tmp_path) == ["operators_run_a.parquet", "run_a.parquet", "stages_run_a.parquet"]
    [row] = MetricsWriter(tmp_path).read_operator_metrics("run_a")
    assert row["custom_metrics"] == "{}"
    run = MetricsWriter(tmp_path).read_run_metrics("run_a")
    assert run is not None and '"max_samples":7' in run["config"]


def test_a_run_that_fails_is_written(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        with MetricsConfig(output_path=str(tmp_path)).track_run("run_a") as collector:
            run_operators(collector, 1)
            raise RuntimeError
    assert len(files(tmp_path)) == 3


def test_what_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with MetricsConfig(output_path=str(tmp_path)).track_run("x" * 300):
        pass
    assert "are not written" in caplog.text
    assert files(tmp_path) == []


def test_neither_writes_nor_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "metrics_ext.writer", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for off in ({"enabled": False, "database": "dbname=none"}, {"write_on_completion": False}):
        config = {"executor": {"metrics": {"output_path": str(tmp_path), **off}}}
        with MetricsConfig.from_config(config).track_run() as collector:
            run_operators(collector, 1)
        run = collector.get_run_metrics()
        assert run is not None and run.num_stages == 1
    assert files(tmp_path) == []


def test_reports_to_a_database(
    database: TestDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = MetricsConfig(
        output_path=str(tmp_path / "metrics"),
        collect_custom_metrics=True,
        database=database.conninfo,
        spool=str(tmp_path / "spool"),
    )
    with caplog.at_level(logging.WARNING), metrics.track_run() as collector:
        with collector.track_operator("Filter", "stage_0", "worker_0") as operator:
            operator.add_custom_metric("hits", 1)
    assert database.query("SELECT run_id, custom_metrics FROM metrics_bi.operators") == [
        (collector.run_id, '{"hits": 1}')
    ]
    assert caplog.text == ""
    assert len(files(tmp_path / "metrics")) == 3
