/*
 * views_pipeline.c
 *	  Views of pipelines: operators, stages and runs, and what is compared with
 *	  what.
 *
 * The first columns of operators, stages and runs are those of the Parquet
 * files that other tools write, in order and type.
 *
 * A row of pipeline_operators is one report; the reports of one operator and
 * worker add up.  Views reach the rows of a stage or run by LATERAL, through
 * the primary key: a filter on the run, or on the time at which runs or stages
 * began, leaves all other rows unread.
 */
#include "postgres.h"

#include "store/store.h"
#include "store/view.h"

#define LATENCY(sketch, fraction) "@extension@.metrics_latency(" sketch ", " fraction ")"

/* Latencies in ascending order, of a row or subquery with a sketch. */
#define LATENCY_COLUMNS(sketch) \
	{"min_latency", LATENCY(sketch, "0"), "least seconds a record took; 0 without latencies"}, \
	{"max_latency", LATENCY(sketch, "1"), "most seconds a record took; 0 without latencies"}, \
	{"p50_latency", LATENCY(sketch, "0.5"), "median seconds a record took, within 1 %; 0 without latencies"}, \
	{"p95_latency", LATENCY(sketch, "0.95"), "95th percentile of seconds a record took, within 1 %; 0 without latencies"}, \
	{"p99_latency", LATENCY(sketch, "0.99"), "99th percentile of seconds a record took, within 1 %; 0 without latencies"}

#define MORE_LATENCY_COLUMNS(sketch, avg) \
	{"p25_latency", LATENCY(sketch, "0.25"), "25th percentile of seconds a record took, within 1 %; 0 without latencies"}, \
	{"p75_latency", LATENCY(sketch, "0.75"), "75th percentile of seconds a record took, within 1 %; 0 without latencies"}, \
	{"latency_count", "COALESCE(@extension@.metrics_count(" sketch "::@extension@.metrics_sketch), 0)", \
		"records whose latency was measured"}, \
	{"avg_latency_ms", "1000 * " avg, "mean milliseconds a record took"}, \
	{"p50_latency_ms", "1000 * " LATENCY(sketch, "0.5"), "median milliseconds a record took, within 1 %"}, \
	{"p95_latency_ms", "1000 * " LATENCY(sketch, "0.95"), "95th percentile of milliseconds a record took, within 1 %"}, \
	{"p99_latency_ms", "1000 * " LATENCY(sketch, "0.99"), "99th percentile of milliseconds a record took, within 1 %"}

/* What a worker did in an operator, over its reports; a WHERE follows and closes it. */
#define BY_WORKER \
	"(SELECT o.stage_name, o.operator_name, o.worker_id, count(*) AS reports," \
	" min(o.at) AS first_at, min(o.ordinal) AS first_ordinal," \
	" sum(o.input_records)::bigint AS input_records, sum(o.output_records)::bigint AS output_records," \
	" sum(o.total_time) AS total_time, sum(o.error_count)::bigint AS error_count," \
	" " RATIO("sum(o.input_records)::double precision", "sum(o.total_time)") " AS throughput," \
	" @extension@.metrics_sketch_merge(o.latency_sketch::@extension@.metrics_sketch) AS sketch" \
	" FROM @store@.pipeline_operators o"
#define BY_WORKER_END " GROUP BY o.stage_name, o.operator_name, o.worker_id) w"

static const ViewColumn operators[] = {
	{"run_id", "o.run_id", "run"},
	{"stage_name", "o.stage_name", "stage"},
	{"operator_name", "o.operator_name", "operator"},
	{"worker_id", "o.worker_id", "worker"},
	{"timestamp", "o.at", "when it was measured"},
	{"input_records", "o.input_records", "records that went in"},
	{"output_records", "o.output_records", "records that came out"},
	{"pass_rate", RATIO("100 * o.output_records::double precision", "o.input_records"), "records that came out, in percent of those that went in; 0 if none did"},
	{"total_time", "o.total_time", "seconds spent in the operator"},
	{"avg_latency", RATIO("o.total_time", "o.input_records"), "mean seconds a record took; 0 without records"},
	LATENCY_COLUMNS("o.latency_sketch"),
	{"throughput", RATIO("o.input_records", "o.total_time"), "records a second; 0 without time"},
	{"error_count", "o.error_count", "errors"},
	{"custom_metrics", "o.custom_metrics::text", "metrics of the operator's own, as JSON"},
	MORE_LATENCY_COLUMNS("o.latency_sketch", RATIO("o.total_time", "o.input_records")),
	{0}
};

/*
 * The first operator of a stage is the one whose earliest row is the earliest,
 * the last the one whose earliest row is the latest; of rows of the same time,
 * that which came first.
 */
static const char stages_from[] =
	"FROM @store@.pipeline_stages s JOIN @store@.pipeline_runs r ON r.run_id = s.run_id"
	" CROSS JOIN LATERAL ("
	"SELECT count(*) AS operators,"
	" COALESCE((array_agg(p.input_records ORDER BY p.first_at, p.first_ordinal))[1], 0) AS input_records,"
	" COALESCE((array_agg(p.output_records ORDER BY p.first_at DESC, p.first_ordinal DESC))[1], 0) AS output_records,"
	" COALESCE(sum(p.input_records), 0)::bigint AS sum_input_records,"
	" COALESCE(sum(p.output_records), 0)::bigint AS sum_output_records,"
	" COALESCE(max(p.total_time), 0) AS total_time,"
	" COALESCE(" RATIO("sum(p.throughput)", "sum(p.active)") ", 0) AS avg_throughput,"
	" COALESCE(min(p.min_throughput), 0) AS min_throughput, COALESCE(max(p.max_throughput), 0) AS max_throughput,"
	" COALESCE(sum(p.error_count), 0)::bigint AS error_count"
	" FROM (SELECT min(w.first_at) AS first_at, min(w.first_ordinal) AS first_ordinal,"
	"  sum(w.input_records)::bigint AS input_records, sum(w.output_records)::bigint AS output_records,"
	"  max(w.total_time) AS total_time, sum(w.error_count)::bigint AS error_count, sum(w.throughput) AS throughput,"
	"  count(*) FILTER (WHERE w.throughput > 0) AS active,"
	"  min(w.throughput) FILTER (WHERE w.throughput > 0) AS min_throughput, max(w.throughput) AS max_throughput"
	"  FROM " BY_WORKER " WHERE o.run_id = s.run_id AND o.stage_name = s.stage_name" BY_WORKER_END
	"  GROUP BY w.operator_name) p) t";

static const ViewColumn stages[] = {
	{"run_id", "s.run_id", "run"},
	{"stage_name", "s.stage_name", "stage"},
	{"timestamp", "s.start_time", "when it was started, or if it was not, the time of its earliest operator row"},
	{"num_workers", "(SELECT count(DISTINCT o.worker_id) FROM @store@.pipeline_operators o"
	" WHERE o.run_id = s.run_id AND o.stage_name = s.stage_name)", "different workers"},
	{"input_records", "t.input_records", "records that went into the first operator, over its workers"},
	{"output_records", "t.output_records", "records that came out of the last operator, over its workers"},
	{"pass_rate", RATIO("100 * t.output_records::double precision", "t.input_records"), "records that came out of the stage, in percent of those that went in; 0 if none did"},
	{"total_time", "t.total_time", "seconds of the worker that spent most in one operator: the bottleneck"},
	{"avg_throughput", "t.avg_throughput", "records a second, mean over operators and workers that have any"},
	{"min_throughput", "t.min_throughput", "least records a second of an operator on a worker that has any"},
	{"max_throughput", "t.max_throughput", "most records a second of an operator on a worker"},
	{"error_count", "t.error_count", "errors of all operators"},
	{"sum_input_records", "t.sum_input_records", "records that went into operators: a record counts in each that it goes through"},
	{"sum_output_records", "t.sum_output_records", "records that came out of operators, likewise"},
	{"sum_pass_rate", RATIO("100 * t.sum_output_records::double precision", "t.sum_input_records"), "sum_output_records in percent of sum_input_records; 0 if there are none"},
	{"num_operators", "t.operators", "different operators"},
	{"ordinal", "s.ordinal", "order of execution: of two stages of a run, that with the lower began first"},
	{"status", "CASE WHEN s.end_time IS NULL THEN r.status ELSE 'completed' END", "running, completed or failed; a stage that was not finished is as its run"},
	{"end_time", "s.end_time", "when it was finished; NULL if it was not"},
	{"wall_time", "GREATEST(EXTRACT(epoch FROM s.end_time - s.start_time)::double precision, 0)", "seconds from start to end; 0 if it was not finished"},
	{0}
};

static const char runs_from[] =
	"FROM @store@.pipeline_runs r CROSS JOIN LATERAL ("
	"SELECT count(*) AS num_stages,"
	" COALESCE((array_agg(s.input_records ORDER BY s.ordinal))[1], 0) AS input_records,"
	" COALESCE((array_agg(s.output_records ORDER BY s.ordinal DESC))[1], 0) AS output_records,"
	" COALESCE(sum(s.sum_input_records), 0)::bigint AS sum_input_records,"
	" COALESCE(sum(s.sum_output_records), 0)::bigint AS sum_output_records,"
	" COALESCE(sum(s.error_count), 0)::bigint AS error_count"
	" FROM " STORE_VIEWS ".stages s WHERE s.run_id = r.run_id) t"
	" CROSS JOIN LATERAL (SELECT CASE WHEN r.end_time IS NOT NULL"
	" THEN GREATEST(EXTRACT(epoch FROM r.end_time - r.start_time)::double precision, 0) END AS seconds) d";

static const ViewColumn runs[] = {
	{"run_id", "r.run_id", "run"},
	{"start_time", "r.start_time", "when it was started"},
	{"end_time", "r.end_time", "when it was finished or failed; NULL while it is running"},
	{"duration", "d.seconds", "seconds from start to end; NULL while it is running"},
	{"num_stages", "t.num_stages", "stages"},
	{"total_input_records", "t.input_records", "records that went into the first stage"},
	{"total_output_records", "t.output_records", "records that came out of the last stage"},
	{"overall_pass_rate", RATIO("100 * t.output_records::double precision", "t.input_records"), "records that came out of the run, in percent of those that went in; 0 if none did"},
	{"avg_throughput", "COALESCE(" RATIO("t.input_records", "d.seconds") ", 0)", "records that went in, a second of duration; 0 while it is running"},
	{"total_errors", "t.error_count", "errors of all stages"},
	{"config", "r.config::text", "what it was started with, as JSON"},
	{"sum_input_records", "t.sum_input_records", "records that went into operators: a record counts in each that it goes through"},
	{"sum_output_records", "t.sum_output_records", "records that came out of operators, likewise"},
	{"sum_pass_rate", RATIO("100 * t.sum_output_records::double precision", "t.sum_input_records"), "sum_output_records in percent of sum_input_records; 0 if there are none"},
	{"status", "r.status", "running, completed or failed"},
	{0}
};

static const char operator_totals_from[] =
	"FROM @store@.pipeline_runs r CROSS JOIN LATERAL ("
	"SELECT w.stage_name, w.operator_name, min(w.first_at) AS first_at, count(*) AS workers, sum(w.reports)::bigint AS reports,"
	" sum(w.input_records)::bigint AS input_records, sum(w.output_records)::bigint AS output_records,"
	" max(w.total_time) AS total_time, sum(w.total_time) AS sum_time, sum(w.error_count)::bigint AS error_count,"
	" avg(w.throughput) FILTER (WHERE w.throughput > 0) AS avg_throughput,"
	" min(w.throughput) FILTER (WHERE w.throughput > 0) AS min_throughput, max(w.throughput) AS max_throughput,"
	" @extension@.metrics_sketch_merge(w.sketch)::bytea AS sketch"
	" FROM " BY_WORKER " WHERE o.run_id = r.run_id" BY_WORKER_END
	" GROUP BY w.stage_name, w.operator_name) t";

static const ViewColumn operator_totals[] = {
	{"run_id", "r.run_id", "run"},
	{"stage_name", "t.stage_name", "stage"},
	{"operator_name", "t.operator_name", "operator"},
	{"start_time", "r.start_time", "when the run was started"},
	{"first_time", "t.first_at", "time of the operator's earliest row"},
	{"num_workers", "t.workers", "different workers"},
	{"num_reports", "t.reports", "rows in operators"},
	{"input_records", "t.input_records", "records that went in, over workers"},
	{"output_records", "t.output_records", "records that came out, over workers"},
	{"pass_rate", RATIO("100 * t.output_records::double precision", "t.input_records"), "records that came out, in percent of those that went in; 0 if none did"},
	{"total_time", "t.total_time", "seconds of the worker that spent most"},
	{"sum_time", "t.sum_time", "seconds of all workers"},
	{"avg_latency", RATIO("t.sum_time", "t.input_records"), "mean seconds a record took, over workers; 0 without records"},
	LATENCY_COLUMNS("t.sketch"),
	{"throughput", RATIO("t.input_records", "t.total_time"), "records of all workers, a second of the worker that spent most; 0 without time"},
	{"avg_throughput", "COALESCE(t.avg_throughput, 0)", "records a second, mean over workers that have any"},
	{"min_throughput", "COALESCE(t.min_throughput, 0)", "least records a second of a worker that has any"},
	{"max_throughput", "t.max_throughput", "most records a second of a worker"},
	{"error_count", "t.error_count", "errors of all workers"},
	MORE_LATENCY_COLUMNS("t.sketch", RATIO("t.sum_time", "t.input_records")),
	{0}
};

static const ViewColumn operator_latency[] = {
	{"run_id", "t.run_id", "run"},
	{"stage_name", "t.stage_name", "stage"},
	{"operator_name", "t.operator_name", "operator"},
	{"start_time", "t.start_time", "when the run was started"},
	{"quantile", "q.name", "min, p25, p50, p75, p95, p99 or max"},
	{"fraction", "q.fraction", "the same as a number from 0 to 1, to sort by"},
	{"in_box", "q.in_box", "true for the five values that a box plot is drawn from: min, p25, p50, p75, max"},
	{"latency", "q.latency", "seconds a record took, over workers, within 1 %"},
	{"latency_ms", "1000 * q.latency", "milliseconds a record took, over workers, within 1 %"},
	{0}
};

static const ViewColumn stage_bottlenecks[] = {
	{"run_id", "r.run_id", "run"},
	{"stage_name", "s.stage_name", "stage"},
	{"start_time", "r.start_time", "when the run was started"},
	{"ordinal", "s.ordinal", "order of execution within the run"},
	{"total_time", "s.total_time", "seconds of the worker that spent most in one operator of the stage"},
	{"time_share", RATIO("100 * s.total_time", "s.all_time"), "total_time in percent of that of all stages of the run"},
	{"is_bottleneck", "s.total_time > 0 AND s.total_time = s.longest", "true for the slowest stage of the run"},
	{"slowest_operator", "p.operator_name", "operator of the stage with the least throughput; NULL if none has any"},
	{"slowest_operator_throughput", "COALESCE(p.throughput, 0)", "records a second of that operator, over workers"},
	{"slowest_operator_time", "COALESCE(p.total_time, 0)", "seconds of the worker that spent most in that operator"},
	{"slowest_operator_p95_latency", "COALESCE(p.p95_latency, 0)", "95th percentile of seconds a record took in that operator, within 1 %"},
	{0}
};

/* The change from one value to another, in percent of the former. */
#define CHANGE(to, from) RATIO("100 * (" to " - " from ")::double precision", from)

static const ViewColumn run_comparison[] = {
	{"run_id", "c.run_id", "run"},
	{"start_time", "c.start_time", "when it was started"},
	{"status", "c.status", "running, completed or failed"},
	{"previous_run_id", "p.run_id", "the last completed run of the same config that was started before; NULL if there is none"},
	{"previous_start_time", "p.start_time", "when the previous run was started"},
	{"duration", "c.duration", "seconds from start to end; NULL while it is running"},
	{"previous_duration", "p.duration", "seconds of the previous run"},
	{"duration_change", CHANGE("c.duration", "p.duration"), "change of the duration, in percent"},
	{"total_input_records", "c.total_input_records", "records that went in"},
	{"previous_total_input_records", "p.total_input_records", "records that went into the previous run"},
	{"overall_pass_rate", "c.overall_pass_rate", "records that came out, in percent of those that went in"},
	{"previous_overall_pass_rate", "p.overall_pass_rate", "the same of the previous run"},
	{"pass_rate_change", "c.overall_pass_rate - p.overall_pass_rate", "change of the pass rate, in percentage points"},
	{"avg_throughput", "c.avg_throughput", "records a second"},
	{"previous_avg_throughput", "p.avg_throughput", "records a second of the previous run"},
	{"throughput_change", CHANGE("c.avg_throughput", "p.avg_throughput"), "change of the throughput, in percent"},
	{"total_errors", "c.total_errors", "errors"},
	{"previous_total_errors", "p.total_errors", "errors of the previous run"},
	{"config", "c.config", "what both were started with, as JSON"},
	{0}
};

static const ViewColumn custom_metrics[] = {
	{"run_id", "o.run_id", "run"},
	{"stage_name", "o.stage_name", "stage"},
	{"operator_name", "o.operator_name", "operator"},
	{"worker_id", "o.worker_id", "worker"},
	{"timestamp", "o.at", "when it was measured"},
	{"metric_name", "e.key", "name of the metric"},
	{"value", "v.value", "its value, in its own unit; only numbers are here"},
	{0}
};

const StoreView store_views_pipeline[] = {
	{"operators", "What workers reported of operators, a row a report.",
	"FROM @store@.pipeline_operators o", operators},
	{"stages", "Stages of runs, over their operators.", stages_from, stages},
	{"runs", "Runs, over their stages.", runs_from, runs},
	{"operator_totals", "Operators of runs, over workers; percentiles are those of all records, from merged sketches.",
	operator_totals_from, operator_totals},
	{"operator_latency", "Latencies of operators of runs, over workers, a row a quantile; for box plots and heat maps.",
		"FROM " STORE_VIEWS ".operator_totals t CROSS JOIN LATERAL (VALUES"
		" ('min', 0::double precision, true, t.min_latency), ('p25', 0.25, true, t.p25_latency),"
		" ('p50', 0.5, true, t.p50_latency), ('p75', 0.75, true, t.p75_latency), ('p95', 0.95, false, t.p95_latency),"
		" ('p99', 0.99, false, t.p99_latency), ('max', 1, true, t.max_latency)) q(name, fraction, in_box, latency)"
	" WHERE t.latency_count > 0", operator_latency},
	{"stage_bottlenecks", "What takes longest in a run: its stages, and the slowest operator of each.",
		"FROM @store@.pipeline_runs r"
		" CROSS JOIN LATERAL (SELECT s.stage_name, s.ordinal, s.total_time, sum(s.total_time) OVER () AS all_time,"
		" max(s.total_time) OVER () AS longest FROM " STORE_VIEWS ".stages s WHERE s.run_id = r.run_id) s"
		" LEFT JOIN LATERAL (SELECT t.operator_name, t.throughput, t.total_time, t.p95_latency"
		" FROM " STORE_VIEWS ".operator_totals t WHERE t.run_id = r.run_id AND t.stage_name = s.stage_name AND t.throughput > 0"
	" ORDER BY t.throughput, t.operator_name LIMIT 1) p ON true", stage_bottlenecks},
	{"run_comparison", "Runs beside the last completed run of the same config before them.",
		"FROM " STORE_VIEWS ".runs c JOIN @store@.pipeline_runs r ON r.run_id = c.run_id"
		" LEFT JOIN LATERAL (SELECT b.run_id FROM @store@.pipeline_runs b"
		" WHERE jsonb_hash_extended(b.config, 0) = jsonb_hash_extended(r.config, 0) AND b.config = r.config"
		" AND (b.start_time, b.run_id) < (r.start_time, r.run_id) AND b.status = 'completed'"
		" ORDER BY b.start_time DESC, b.run_id DESC LIMIT 1) b ON true"
	" LEFT JOIN " STORE_VIEWS ".runs p ON p.run_id = b.run_id", run_comparison},
	{"custom_metrics", "Metrics of operators' own, a row a number.",
		"FROM @store@.pipeline_operators o CROSS JOIN LATERAL jsonb_each(o.custom_metrics) e"
		" CROSS JOIN LATERAL (SELECT @extension@.metrics_number(o.custom_metrics, ARRAY[e.key]) AS value) v"
	" WHERE jsonb_typeof(e.value) = 'number' AND v.value > '-Infinity' AND v.value < 'Infinity'", custom_metrics},
	{0}
};
