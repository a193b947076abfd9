/*
 * views_trial.c
 *	  Views of trial metrics, in long form.
 *
 * Keys of another kind are ruled out twice: by name, for the planner to leave
 * their partitions out, and by kind, for those that users have added.
 */
#include "postgres.h"

#include "store/view.h"

#define ROWS_OF_KIND(kind, other_keys) \
	"FROM @store@.metrics m JOIN @store@.metrics_partition_kind k ON k.partition_key = m.partition_type AND k.kind = '" kind "'" \
	" AND m.partition_type <> ALL ('" other_keys "'::text[]) AND NOT m.archived"

static const ViewColumn trial_metrics[] = {
	{"trial_id", "m.trial_id", "trial"},
	{"trial_run_id", "m.trial_run_id", "run of the trial"},
	{"metric_group", "m.metric_group", "group, such as training or validation"},
	{"metric_name", "e.key", "name of the metric"},
	{"total_batches", "m.total_batches", "batches since the start of the trial"},
	{"end_time", "m.end_time", "time of the report"},
	{"value", "v.value", "value of the metric; only finite numbers are here"},
	{0}
};

static const ViewColumn profiling[] = {
	{"trial_id", "m.trial_id", "trial"},
	{"trial_run_id", "m.trial_run_id", "run of the trial"},
	{"metric_group", "m.metric_group", "group, such as cpu or gpu"},
	{"agent", "v.agent", "machine; NULL if the report names none"},
	{"device", "v.device", "GPU or disk; NULL if the report names none"},
	{"metric_name", "v.name", "name of the metric"},
	{"end_time", "m.end_time", "time of the reading"},
	{"value", "v.value", "value of the metric, in its own unit; only finite numbers are here"},
	{0}
};

const StoreView store_views_trial[] = {
	{"trial_metrics", "Unarchived metrics that trials reported, a row a number.",
		ROWS_OF_KIND("batch", "{PROFILING}")
		" CROSS JOIN LATERAL (SELECT m.metrics -> CASE m.metric_group WHEN 'validation' THEN 'validation_metrics' ELSE 'avg_metrics' END AS document) d"
		" CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(d.document) WHEN 'object' THEN d.document END) e"
		" CROSS JOIN LATERAL (SELECT @extension@.metrics_number(d.document, ARRAY[e.key]) AS value) v"
	" WHERE jsonb_typeof(e.value) = 'number' AND v.value > '-Infinity' AND v.value < 'Infinity'", trial_metrics},
	{"profiling", "Unarchived readings of profilers, a row a number.",
		ROWS_OF_KIND("time", "{TRAINING,VALIDATION,GENERIC}")
		" CROSS JOIN LATERAL @extension@.metrics_profiling_values(m.metrics) v"
	" WHERE v.value > '-Infinity' AND v.value < 'Infinity'", profiling},
	{0}
};
