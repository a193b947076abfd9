"""The bundle against the catalog and in Superset's own interfaces."""

import io
import shutil
import subprocess
import zipfile

import psycopg2
import pytest
from conftest import BUNDLE, CHARTS, DASHBOARDS, DATASETS, ROOT


def columns(dataset):
    return [(c["column_name"], c["type"], c["is_dttm"], c["description"]) for c in dataset["columns"]]


def test_role_reads_views_only(database):
    assert database.value("SELECT count(*) FROM metrics_bi.runs") == 112
    for table in "metrics", "trials", "pipeline_operators":
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            database.rows(f"SELECT FROM metrics.{table}")


# Those of performance data are on no dashboard yet.
def test_each_view_has_a_dataset(database):
    views = database.rows("SELECT relname FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace AND relname !~ '^perf_'")
    assert {view for (view,) in views} == set(DATASETS)


def test_each_chart_is_on_a_dashboard():
    positions = [item for dashboard in DASHBOARDS.values() for item in dashboard["position"].values() if isinstance(item, dict)]
    shown = [item["meta"]["uuid"] for item in positions if item["type"] == "CHART"]
    assert sorted(shown) == sorted(chart["uuid"] for chart in CHARTS.values())


def test_superset_has_what_the_bundle_has(superset):
    for kind, bundled in ("dashboard", DASHBOARDS), ("chart", CHARTS), ("dataset", DATASETS):
        assert set(superset.ids(kind)) == {item["uuid"] for item in bundled.values()}


# Superset reads the catalog itself when it refreshes a dataset, as the role that it connects as.
@pytest.mark.parametrize("name", DATASETS)
def test_dataset_equals_catalog(superset, name):
    path = f"dataset/{superset.ids('dataset')[DATASETS[name]['uuid']]}"
    imported = superset.get(path)["result"]
    assert columns(imported) == columns(DATASETS[name])
    superset.call("put", f"{path}/refresh")
    assert columns(superset.get(path)["result"]) == columns(imported)
    assert all(description for *_, description in columns(imported))
    times = [column for column, _, is_time, _ in columns(imported) if is_time]
    assert imported["main_dttm_col"] == times[0]


def test_program_writes_the_datasets(database, tmp_path):
    for folder in "superset", "tools":
        shutil.copytree(ROOT / folder, tmp_path / folder)
    written = tmp_path / "superset/datasets/metrics"
    whole = (written / "runs.yaml").read_text()
    (written / "runs.yaml").write_text(whole[: whole.index("columns:")] + "columns:\n- column_name: outdated\n")
    (written / "profiling.yaml").unlink()
    subprocess.run([tmp_path / "tools/superset_datasets", database.uri], check=True)
    for path in (BUNDLE / "datasets/metrics").iterdir():
        text = (written / path.name).read_text()
        if path.name == "profiling.yaml":
            assert text[text.index("columns:") :] in path.read_text()
        else:
            assert text == path.read_text()


def test_import_overwrites(superset, database):
    chart = f"chart/{superset.ids('chart')[CHARTS['run_list']['uuid']]}"
    dataset = f"dataset/{superset.ids('dataset')[DATASETS['runs']['uuid']]}"
    dashboard = f"dashboard/{superset.ids('dashboard')[DASHBOARDS['trials']['uuid']]}"
    superset.call("put", chart, json={"slice_name": "changed"})
    superset.call("put", dataset, json={"description": "changed"})
    superset.call("put", dashboard, json={"dashboard_title": "changed"})
    superset.import_bundle(database.uri)
    assert superset.get(chart)["result"]["slice_name"] == "Runs"
    assert superset.get(dataset)["result"]["description"] == DATASETS["runs"]["description"]
    assert superset.get(dashboard)["result"]["dashboard_title"] == "Trials"
    test_superset_has_what_the_bundle_has(superset)


def test_bundle_for_another_superset(superset, database, tmp_path):
    file = tmp_path / "bundle.zip"
    subprocess.run([ROOT / "tools/superset", "--bundle", file, database.uri], check=True)
    with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as bundle:
        assert {name.split("/")[0] for name in bundle.namelist()} == {"metrics_ext"}
        assert f'"{database.uri}"' in bundle.read("metrics_ext/databases/metrics.yaml").decode()
    with file.open("rb") as bundle:
        superset.call("post", "dashboard/import/", files={"formData": ("bundle.zip", bundle)}, data={"overwrite": "true"})
    test_superset_has_what_the_bundle_has(superset)
