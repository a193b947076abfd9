/*
 * row.c
 *	  The row of a report: its document, inserting it and merging into it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "report/pending.h"
#include "report/row.h"
#include "report/trial.h"

/* A jsonb as a value that can be pushed into another. */
static JsonbValue
embed(Jsonb *jsonb)
{
	JsonbValue	value;

	JsonbToJsonbValue(jsonb, &value);
	return value;
}

static void
push_member(JsonbParseState **state, const char *name, JsonbValue value)
{
	JsonbValue	key = {.type = jbvString};

	key.val.string.val = unconstify(char *, name);
	key.val.string.len = strlen(name);
	pushJsonbValue(state, WJB_KEY, &key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/*
 * The document of a row: {"avg_metrics": …, "batch_metrics": …}, and for
 * validations {"validation_metrics": …}, which have no batches.
 */
static Jsonb *
make_document(const char *group, JsonbValue metrics, JsonbValue batch_metrics)
{
	JsonbParseState *state = NULL;
	const char *key = group_document_key(group);

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	push_member(&state, key, metrics);
	if (strcmp(key, METRICS_KEY) == 0)
		push_member(&state, "batch_metrics", batch_metrics);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

static bool
values_equal(const JsonbValue *a, const JsonbValue *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type)
	{
		case jbvNull:
			return true;
		case jbvBool:
			return a->val.boolean == b->val.boolean;
		case jbvNumeric:
			return DatumGetBool(DirectFunctionCall2(numeric_eq, NumericGetDatum(a->val.numeric),
													NumericGetDatum(b->val.numeric)));
		case jbvString:
			return a->val.string.len == b->val.string.len &&
				memcmp(a->val.string.val, b->val.string.val, a->val.string.len) == 0;
		case jbvBinary:
			return compareJsonbContainers(a->val.binary.data, b->val.binary.data) == 0;
		default:
			elog(ERROR, "unexpected jsonb value type %d", (int) a->type);
	}
}

/*
 * Unite the metrics of a row with reported ones: names that both have must have
 * equal values.  Returns the union and, in *added, what only the report has.
 */
static Jsonb *
unite_metrics(JsonbContainer *stored, Jsonb *reported, Jsonb **added)
{
	JsonbParseState *united_state = NULL;
	JsonbParseState *added_state = NULL;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;
	JsonbValue	old_value;

	pushJsonbValue(&united_state, WJB_BEGIN_OBJECT, NULL);
	it = JsonbIteratorInit(stored);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		if (token == WJB_KEY || token == WJB_VALUE)
			pushJsonbValue(&united_state, token, &key);
	}

	pushJsonbValue(&added_state, WJB_BEGIN_OBJECT, NULL);
	it = JsonbIteratorInit(&reported->root);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		JsonbIteratorNext(&it, &value, true);
		if (getKeyJsonValueFromContainer(stored, key.val.string.val, key.val.string.len, &old_value))
		{
			if (!values_equal(&value, &old_value))
				ereport(ERROR,
						(errcode(ERRCODE_UNIQUE_VIOLATION),
						 errmsg("overwriting existing metric keys is not supported, conflicting key: \"%.*s\"",
								key.val.string.len, key.val.string.val),
						 errhint("It was reported with another value at the same step; report each metric once, or under another step.")));
			continue;
		}
		pushJsonbValue(&united_state, WJB_KEY, &key);
		pushJsonbValue(&united_state, WJB_VALUE, &value);
		pushJsonbValue(&added_state, WJB_KEY, &key);
		pushJsonbValue(&added_state, WJB_VALUE, &value);
	}

	*added = JsonbValueToJsonb(pushJsonbValue(&added_state, WJB_END_OBJECT, NULL));
	return JsonbValueToJsonb(pushJsonbValue(&united_state, WJB_END_OBJECT, NULL));
}

static TimestampTz
report_end_time(const Report *report)
{
	return report->has_time ? report->time : GetCurrentTransactionStartTimestamp();
}

/*
 * The key is a literal, here and below: then only its partition is looked at.
 * $6 is the key, too, for pending_insert().
 */
static const StoreQuery insert_time_query = {
	"INSERT INTO @store@.metrics"
	" (trial_id, trial_run_id, end_time, metrics, metric_group, partition_type)"
	" SELECT $1, $2, $3, $4, $5, @keys@ FROM @store@.trials WHERE id = $1 AND run_id = $2"
	" RETURNING id",
	.nargs = 6, .argtypes = {INT4OID, INT4OID, TIMESTAMPTZOID, JSONBOID, TEXTOID, TEXTOID}
};

static const StoreQuery run_query = {
	"SELECT run_id FROM @store@.trials WHERE id = $1",
	.nargs = 1, .argtypes = {INT4OID}
};

/*
 * Insert a row of a group that is identified by time, or have it wait for its
 * partition; returns its id, 0 if a trigger suppressed it.  An error if the run
 * is not the current one.
 *
 * The trial is not locked, so it may go to another run meanwhile.  Why nothing
 * was inserted is therefore asked with the snapshot of the insert, and if it
 * was the run, once more as of now.
 */
int64
row_insert_by_time(const MetricsStore *store, const Report *report, const StoreRoute *route)
{
	Datum		values[6];
	bool		isnull;

	values[0] = Int32GetDatum(report->trial_id);
	values[1] = Int32GetDatum(report->run_id);
	values[2] = TimestampTzGetDatum(report_end_time(report));
	values[3] = JsonbPGetDatum(report->metrics);
	values[4] = CStringGetTextDatum(report->group);
	values[5] = CStringGetTextDatum(route->key);
	for (;;)
	{
		Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
		int64		id = 0;
		bool		suppressed = false;

		if (route->waits)
			id = pending_insert(store, &insert_time_query, "$6", values, snapshot);
		else if (store_execute_at(store, &insert_time_query, route->literal, values, snapshot) > 0)
			id = DatumGetInt64(store_column(1, &isnull));
		if (id == 0 && store_execute_at(store, &run_query, NULL, values, snapshot) > 0)
			suppressed = DatumGetInt32(store_column(1, &isnull)) == report->run_id;
		UnregisterSnapshot(snapshot);
		if (id != 0 || suppressed)
			return id;

		if (store_execute(store, &run_query, NULL, values, NULL) == 0)
			trial_unknown(report->trial_id);
		trial_check_run(report->trial_id, report->run_id,
						DatumGetInt32(store_column(1, &isnull)));
	}
}

static const StoreQuery insert_query = {
	"INSERT INTO @store@.metrics"
	" (trial_id, trial_run_id, end_time, metrics, total_batches, metric_group, partition_type)"
	" VALUES ($1, $2, $3, $4, $5, $6, @keys@)"
	" RETURNING id, end_time, metrics,"
	" trial_id = $1 AND trial_run_id = $2 AND total_batches = $5 AND metric_group = $6 AND NOT archived",
	.nargs = 6, .argtypes = {INT4OID, INT4OID, TIMESTAMPTZOID, JSONBOID, INT4OID, TEXTOID}
};

/* Insert a row of a group that is identified by steps. */
void
row_insert(const MetricsStore *store, const Report *report, const StoreRoute *route, Row *row)
{
	JsonbValue	batches = {.type = jbvNull};
	Datum		values[6];
	bool		isnull;
	Datum		document;

	memset(row, 0, sizeof(Row));
	if (report->batch_metrics)
		batches = embed(report->batch_metrics);
	values[0] = Int32GetDatum(report->trial_id);
	values[1] = Int32GetDatum(report->run_id);
	values[2] = TimestampTzGetDatum(report_end_time(report));
	values[3] = JsonbPGetDatum(make_document(report->group, embed(report->metrics), batches));
	values[4] = Int32GetDatum(report->steps);
	values[5] = CStringGetTextDatum(report->group);
	if (store_execute(store, &insert_query, route->literal, values, NULL) == 0)
		return;

	row->id = DatumGetInt64(store_column(1, &isnull));
	row->end_time = DatumGetTimestampTz(store_column(2, &isnull));
	row->changed_by_trigger = isnull;
	document = store_column(3, &isnull);
	if (!isnull)
		row->metrics = document_metrics(DatumGetJsonbP(document), report->group);
	row->added = row->metrics;
	if (row->metrics == NULL || !DatumGetBool(store_column(4, &isnull)) || isnull)
		row->changed_by_trigger = true;
}

static const StoreQuery merge_query = {
	"UPDATE @store@.metrics SET metrics = $1"
	" WHERE id = $2 AND trial_id = $3 AND total_batches = $4 AND partition_type OPERATOR(pg_catalog.=) @keys@"
	" RETURNING end_time, metrics",
	.nargs = 4, .argtypes = {JSONBOID, INT8OID, INT4OID, INT4OID}
};

/*
 * Merge a report into the row that the run has at this step: their metrics are
 * united, end_time and id stay.  The row comes with id, end_time and metrics.
 */
void
row_merge(const MetricsStore *store, const Report *report, const StoreRoute *route,
		  Jsonb *document, Row *row)
{
	bool		takes_batches = strcmp(group_document_key(report->group), METRICS_KEY) == 0;
	JsonbValue	batches = {.type = jbvNull};
	Jsonb	   *united;
	Jsonb	   *added;
	Jsonb	   *merged;
	Datum		values[4];
	bool		isnull;

	if (row->metrics == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the document of row " INT64_FORMAT " of \"%s.metrics\" has no object \"%s\" to merge into",
						row->id, store->schema, group_document_key(report->group)),
				 errhint("It was not written by metrics_report(); correct or remove it.")));
	united = unite_metrics(row->metrics, report->metrics, &added);
	row->added = JB_ROOT_COUNT(added) > 0 ? &added->root : NULL;

	if (takes_batches)
	{
		getKeyJsonValueFromContainer(&document->root, "batch_metrics", 13, &batches);
		if (report->batch_metrics && batches.type != jbvNull)
			ereport(ERROR,
					(errcode(ERRCODE_UNIQUE_VIOLATION),
					 errmsg("overwriting batch metrics is not supported"),
					 errdetail("Batch metrics of trial %d, group \"%s\", were reported at step %d already.",
							   report->trial_id, report->group, report->steps),
					 errhint("Report the batches of a step once.")));
	}
	if (row->added == NULL && !(takes_batches && report->batch_metrics))
		return;					/* nothing that was not there */

	if (report->batch_metrics)
		batches = embed(report->batch_metrics);
	merged = make_document(report->group, embed(united), batches);
	values[0] = JsonbPGetDatum(merged);
	values[1] = Int64GetDatum(row->id);
	values[2] = Int32GetDatum(report->trial_id);
	values[3] = Int32GetDatum(report->steps);
	if (store_execute(store, &merge_query, route->literal, values, NULL) == 0)
	{
		row->id = 0;
		return;
	}
	row->metrics = &united->root;
	row->changed_by_trigger =
		DatumGetTimestampTz(store_column(1, &isnull)) != row->end_time || isnull ||
		compareJsonbContainers(&DatumGetJsonbP(store_column(2, &isnull))->root, &merged->root) != 0;
}
