"""The dashboards in a browser: all charts drawn, filters that filter, numbers that equal SQL."""

import pytest
from conftest import CHARTS, DASHBOARDS, Dashboard

OPERATORS = """
    SELECT stage_name, operator_name, num_workers, input_records, output_records, pass_rate, total_time, throughput,
        p50_latency_ms, p95_latency_ms, p99_latency_ms, error_count
    FROM metrics_bi.operator_totals WHERE run_id = %s ORDER BY first_time"""
OPERATORS_FORMAT = "{} {} {} {:,} {:,} {:.1f} {:,.0f} {:,.0f} {:,.2f} {:,.2f} {:,.2f} {:,}"


def formatted(rows, pattern):
    return [pattern.format(*row).split() for row in rows]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_all_charts_are_drawn(dashboards, name):
    dashboard = dashboards[name]
    dashboard.screenshot(name)
    assert dashboard.errors() == []
    assert set(dashboard.queries) == {dashboard.ids[uuid] for uuid in dashboard.charts}


@pytest.mark.parametrize("file", CHARTS)
def test_chart_has_data(dashboards, superset, file):
    """The query that the browser sent for a chart, sent again to the API."""
    uuid = CHARTS[file]["uuid"]
    (name,) = (name for name, dashboard in DASHBOARDS.items() if uuid in str(dashboard["position"]))
    answer = superset.call("post", "chart/data", json=dashboards[name].queries[superset.ids("chart")[uuid]])
    assert answer["result"]
    for result in answer["result"]:
        assert result["error"] is None
        assert result["rowcount"] > 0


def test_runs(dashboards, database):
    dashboard = dashboards["pipeline_runs"]
    assert dashboard.number("runs_count") == database.value("SELECT count(*)::text FROM metrics_bi.runs")
    assert dashboard.number("runs_errors") == f"{database.value('SELECT sum(total_errors) FROM metrics_bi.runs'):,}"
    shown = database.rows("""
        SELECT run_id, to_char(start_time, 'YYYY-MM-DD'), to_char(start_time, 'HH24:MI'), status, duration, duration_change,
            total_input_records, overall_pass_rate, pass_rate_change, avg_throughput, throughput_change, total_errors
        FROM metrics_bi.run_comparison ORDER BY start_time DESC LIMIT 10""")
    pattern = "{} {} {} {} {:,.0f} {:+.1f} {:,} {:.1f} {:+.1f} {:,.1f} {:+.1f} {:,}"
    cells = [" ".join(row).replace("\N{MINUS SIGN}", "-").split() for row in dashboard.table("run_list")]
    assert cells == formatted(shown, pattern)


def test_latest_run_is_chosen(dashboards, database):
    run = database.value("SELECT run_id FROM metrics_bi.runs ORDER BY start_time DESC LIMIT 1")
    shown = formatted(database.rows(OPERATORS, run), OPERATORS_FORMAT)
    assert len(shown) == 9
    assert dashboards["pipeline_runs"].table("operator_list") == shown


def test_box_plot_is_exact(dashboards, superset, database):
    query = dashboards["pipeline_runs"].queries[superset.ids("chart")[CHARTS["operator_latency"]["uuid"]]]
    boxes = superset.call("post", "chart/data", json=query)["result"][0]["data"]
    run = database.value("SELECT run_id FROM metrics_bi.runs ORDER BY start_time DESC LIMIT 1")
    totals = database.rows(
        """
        SELECT stage_name, operator_name, 1000 * min_latency, 1000 * p25_latency, 1000 * p50_latency, 1000 * p75_latency, 1000 * max_latency
        FROM metrics_bi.operator_totals WHERE run_id = %s ORDER BY 1, 2""",
        run,
    )
    parts = "min", "q1", "median", "q3", "max"
    keys = [f"highest_latency_ms__{part}" for part in parts]
    boxes.sort(key=lambda box: (box["stage_name"], box["operator_name"]))
    assert [[box["stage_name"], box["operator_name"], *(box[key] for key in keys)] for box in boxes] == [list(row) for row in totals]


def test_filters_of_runs(dashboards, database):
    dashboard = dashboards["pipeline_runs"]
    dashboard.screenshot("superset_pipeline_runs", last="run_list")
    dashboard.screenshot("superset_one_run", first="operator_time", last="operator_list")
    run = database.value("SELECT run_id FROM metrics_bi.runs WHERE status = 'failed'")
    dashboard.filter("run", run)
    shown = formatted(database.rows(OPERATORS, run), OPERATORS_FORMAT)
    assert dashboard.table("operator_list") == shown
    dashboard.filter("stage", "filter")
    assert dashboard.table("operator_list") == [row for row in shown if row[0] == "filter"]
    assert dashboard.errors() == []
    dashboard.screenshot("pipeline_runs_filtered")


def test_filter_of_trials(dashboards, database):
    dashboard = dashboards["trials"]
    dashboard.screenshot("superset_trials", last="profiling_series")
    lowest = "SELECT min(value) FROM metrics_bi.trial_metrics WHERE metric_group = 'validation' AND metric_name = 'validation_loss'"
    readings = "SELECT count(*) FROM metrics_bi.profiling"
    assert dashboard.number("profiling_count") == f"{database.value(readings):,}"
    assert float(dashboard.number("validation_lowest")) == pytest.approx(database.value(lowest), abs=5e-5)
    dashboard.filter("trial", "5")
    assert dashboard.number("trials_count") == "1"
    assert dashboard.number("profiling_count") == f"{database.value(readings + ' WHERE trial_id = 5'):,}"
    assert float(dashboard.number("validation_lowest")) == pytest.approx(database.value(lowest + " AND trial_id = 5"), abs=5e-5)
    assert {row[0] for row in dashboard.table("trial_list")} == {"5"}
    assert dashboard.errors() == []
    dashboard.screenshot("trials_filtered")


def test_time_filter_is_in_utc(browser, superset, database):
    """Not in the time zone of the database, which is another."""
    days = "'2026-01-20 : 2026-01-22'"
    mask = f"(extraFormData:(time_range:{days}),filterState:(value:{days}),id:NATIVE_FILTER-time,ownState:())"
    dashboard = Dashboard(browser, superset, "pipeline_runs", f"?native_filters=(NATIVE_FILTER-time:{mask})")
    errors = "SELECT sum(total_errors)::text FROM metrics_bi.runs WHERE start_time >= %s AND start_time < %s"
    shown = database.value(errors, "2026-01-20 00:00Z", "2026-01-22 00:00Z")
    assert shown != database.value(errors, "2026-01-20 00:00-05", "2026-01-22 00:00-05")
    assert dashboard.number("runs_errors") == shown
    assert {row[1][:10] for row in dashboard.table("run_list")} <= {"2026-01-20", "2026-01-21"}
    assert dashboard.errors() == []
