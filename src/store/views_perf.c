/*
 * views_perf.c
 *	  Views of performance data.
 *
 * They name the repository in every join of measurements, so that a filter on
 * it leaves the other partitions out.
 */
#include "postgres.h"

#include "store/view.h"

#define SERIES_JOINS \
	" JOIN @store@.performance_framework f ON f.id = s.framework_id" \
	" JOIN @store@.performance_platform p ON p.id = s.platform_id" \
	" JOIN @store@.performance_option_collection o ON o.id = s.option_collection_id"

#define SERIES_COLUMNS \
	{"repository", "s.repository", "repository"}, \
	{"framework", "f.name", "what runs the test"}, \
	{"suite", "s.suite", "suite"}, \
	{"test", "s.test", "subtest; empty for the suite as a whole"}, \
	{"platform", "p.name", "kind of machine"}, \
	{"build_options", "array_to_string(o.options, ' ')", "options of the build"}, \
	{"extra_options", "array_to_string(s.extra_options, ' ')", "options of the test"}, \
	{"application", "s.application", "application under test"}, \
	{"measurement_unit", "s.measurement_unit", "unit of the values"}, \
	{"lower_is_better", "s.lower_is_better", "whether less is better"}, \
	{"signature_id", "s.id", "series"}

static const ViewColumn perf_series[] = {
	SERIES_COLUMNS,
	{"signature_hash", "s.signature_hash", "name of the series in Perfherder"},
	{"parent_id", "s.parent_id", "series of the suite as a whole"},
	{"tags", "array_to_string(s.tags, ' ')", "tags"},
	{"last_updated", "a.last_updated", "time of the latest push that was measured"},
	{0}
};

static const ViewColumn perf_points[] = {
	SERIES_COLUMNS,
	{"push_timestamp", "d.push_timestamp", "time of the push"},
	{"push_id", "d.push_id", "push"},
	{"revision", "h.revision", "revision of the push"},
	{"job_id", "r.job_id", "job; NULL when CI has forgotten it"},
	{"machine", "r.machine", "machine that the job ran on"},
	{"submit_time", "r.submit_time", "time when the job was submitted"},
	{"multi_commit", "d.multi_commit", "whether the report measured several pushes at once"},
	{"value", "d.value", "measured value, in measurement_unit"},
	{0}
};

static const ViewColumn perf_alerts[] = {
	SERIES_COLUMNS,
	{"summary_id", "m.id", "alerts of one push"},
	{"push_timestamp", "h.push_time", "time of the push at which the series changes"},
	{"push_id", "m.push_id", "push at which the series changes"},
	{"revision", "h.revision", "its revision"},
	{"prev_revision", "q.revision", "revision after which it changed at the earliest"},
	{"is_regression", "a.is_regression", "whether it changed for the worse"},
	{"amount_pct", "a.amount_pct", "amount of the change, in per cent"},
	{"amount_abs", "a.amount_abs", "amount of the change, in measurement_unit"},
	{"prev_value", "a.prev_value", "mean before, in measurement_unit"},
	{"new_value", "a.new_value", "mean from the push on, in measurement_unit"},
	{"t_value", "a.t_value", "Student's t, at most 1000"},
	{"status", "a.status", "what came of the alert"},
	{"summary_status", "m.status", "what came of the alerts of the push"},
	{"created", "a.created", "time when the alert was made"},
	{0}
};

static const ViewColumn perf_compare[] = {
	SERIES_COLUMNS,
	{"push_timestamp", "n.push_timestamp", "time of the push"},
	{"push_id", "n.push_id", "push"},
	{"prev_push_id", "n.prev_push_id", "push that the series was measured at before"},
	{"prev_count", "c.base_count", "measurements before"},
	{"new_count", "c.new_count", "measurements of the push"},
	{"prev_mean", "c.base_mean", "mean before, in measurement_unit"},
	{"new_mean", "c.new_mean", "mean, in measurement_unit"},
	{"delta_pct", "c.delta_pct", "difference of the means, in per cent"},
	{"t", "c.t", "Student's t"},
	{"confidence", "c.confidence", "Low below 3, Medium below 5, High"},
	{"class", "c.class", "success, warning or danger, if there is something to say"},
	{"p_value", "c.p_value", "p of Mann-Whitney's test"},
	{"cliffs_delta", "c.cliffs_delta", "Cliff's delta, above 0 if the new ones are greater"},
	{0}
};

const StoreView store_views_perf[] = {
	{"perf_series", "Series of performance data.",
		"FROM @store@.performance_signature s" SERIES_JOINS
	" JOIN @store@.performance_activity a ON a.signature_id = s.id", perf_series},
	{"perf_points", "Measurements of performance data, a row each; filter by repository, and by signature_id or time.",
		"FROM @store@.performance_datum d"
		" JOIN @store@.performance_signature s ON s.id = d.signature_id AND s.repository = d.repository" SERIES_JOINS
		" JOIN @store@.performance_run r ON r.id = d.run_id"
	" JOIN @store@.performance_push h ON h.id = d.push_id", perf_points},
	{"perf_alerts", "Changes of series that were found important.",
		"FROM @store@.performance_alert a JOIN @store@.performance_alert_summary m ON m.id = a.summary_id"
		" JOIN @store@.performance_signature s ON s.id = a.signature_id" SERIES_JOINS
		" JOIN @store@.performance_push h ON h.id = m.push_id"
	" JOIN @store@.performance_push q ON q.id = m.prev_push_id", perf_alerts},
	{"perf_compare", "Each push of a series compared with the one measured before it; filter by repository and signature_id.",
		"FROM (SELECT g.*, lag(g.push_id) OVER before AS prev_push_id, lag(g.measured) OVER before AS prev_measured"
		"  FROM (SELECT repository, signature_id, push_id, min(push_timestamp) AS push_timestamp,"
		"   array_agg(value ORDER BY push_timestamp, run_id) AS measured"
		"   FROM @store@.performance_datum GROUP BY repository, signature_id, push_id) g"
		"  WINDOW before AS (PARTITION BY g.repository, g.signature_id ORDER BY g.push_timestamp, g.push_id)) n"
		" JOIN @store@.performance_signature s ON s.id = n.signature_id AND s.repository = n.repository" SERIES_JOINS
		" CROSS JOIN LATERAL @extension@.metrics_compare(n.prev_measured, n.measured, s.lower_is_better, 0) c"
	" WHERE n.prev_push_id IS NOT NULL", perf_compare},
	{0}
};
