/*
 * report.c
 *	  Writing one report: metrics_report().
 *
 * A report of a group whose partition key is of kind time is one more row.  One
 * of kind batch is identified by its steps: it takes the place of what earlier
 * runs reported from there on, is merged into what the run reported there
 * before, and goes into the summary of its trial.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "report/report.h"
#include "report/trial.h"

PG_FUNCTION_INFO_V1(metrics_report);

/* The error for an argument that must not be NULL. */
void
report_null_argument(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be NULL", name)));
}

/* The groups that 1.1 gave a partition, which an older layout cannot take. */
static bool
is_profiling_group(const char *group)
{
	static const char *const groups[] = {"cpu", "disk", "gpu", "memory", "network"};

	for (int i = 0; i < (int) lengthof(groups); i++)
	{
		if (strcmp(group, groups[i]) == 0)
			return true;
	}
	return false;
}

/* epoch and epochs, where they are there, are numbers. */
static void
check_epoch(Jsonb *metrics, const char *key)
{
	JsonbValue	value;

	if (!getKeyJsonValueFromContainer(&metrics->root, key, strlen(key), &value) ||
		value.type == jbvNull || value.type == jbvNumeric)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot add metric with non numeric '%s' value got %s", key,
					metric_value_text(&value)),
			 errhint("Report \"%s\" as a finite number, or leave it out.", key)));
}

/* Refuse what no group may carry. */
static void
check_report(const MetricsStore *store, const Report *report)
{
	Size		size = VARSIZE_ANY(report->metrics) +
		(report->batch_metrics ? VARSIZE_ANY(report->batch_metrics) : 0);

	if (report->group[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("metric group cannot be empty"),
				 errhint("Name the group, for example \"training\" or \"validation\".")));
	if (strchr(report->group, '.') != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("metric group cannot contain '.'"),
				 errdetail("The group is \"%s\".", report->group),
				 errhint("A dot separates the group from the name of a metric; use '_'.")));
	if (size > (Size) metrics_max_document_size * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("metrics document of %zu bytes is too large", size),
				 errhint("The limit is metrics_ext.max_document_size, %d kB: report less at a time, or raise it.",
						 metrics_max_document_size)));
	if (!JB_ROOT_IS_OBJECT(report->metrics))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("metrics must be a JSON object, got %s", metric_document_text(report->metrics)),
				 errhint("Report an object of names and values, for example {\"loss\": 0.5}.")));
	if (report->batch_metrics != NULL)
	{
		bool		valid = JB_ROOT_IS_ARRAY(report->batch_metrics) &&
			!JB_ROOT_IS_SCALAR(report->batch_metrics);

		for (uint32 i = 0; valid && i < JB_ROOT_COUNT(report->batch_metrics); i++)
		{
			JsonbValue *element = getIthJsonbValueFromContainer(&report->batch_metrics->root, i);

			valid = element->type == jbvBinary &&
				JsonContainerIsObject(element->val.binary.data);
		}
		if (!valid)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("batch_metrics must be a JSON array of objects, got %s",
							metric_document_text(report->batch_metrics)),
					 errhint("Report one object for each batch.")));
	}
	check_epoch(report->metrics, "epoch");
	check_epoch(report->metrics, "epochs");
	if (report->has_steps && report->steps < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("steps_completed must not be negative, got %d", report->steps),
				 errhint("Steps are counted in batches from the start of the trial.")));
	if (report->has_time && TIMESTAMP_NOT_FINITE(report->time))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("report_time must be finite, got %s", timestamptz_to_str(report->time)),
				 errhint("Leave it out to take the time of the transaction.")));

	if (store->layout < LAYOUT_1_1 && (report->has_time || is_profiling_group(report->group)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 report->has_time ?
				 errmsg("report_time is not supported by store layout %s", layout_name(store->layout)) :
				 errmsg("profiling group \"%s\" is not supported by store layout %s",
						report->group, layout_name(store->layout)),
				 errhint("Run ALTER EXTENSION metrics_ext UPDATE, or metrics_upgrade_store() if the extension is at the newest version.")));
}

/* Refuse what a group that is identified by steps may not carry. */
static void
check_batch_report(const Report *report)
{
	JsonbIterator *it = JsonbIteratorInit(&report->metrics->root);
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	if (strcmp(report->group, METRICS_KEY) == 0 || strcmp(report->group, VALIDATION_KEY) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("metric group \"%s\" violates check constraint \"custom_type_check\"",
						report->group),
				 errhint("The summary of a trial uses this name itself; use another.")));
	if (!report->has_steps)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("steps_completed is required for metric group \"%s\"", report->group),
				 errhint("Only groups whose partition key is of kind \"time\" do without; see metrics_route and metrics_partition_kind.")));

	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		double		number;

		if (token != WJB_KEY)
			continue;
		JsonbIteratorNext(&it, &value, true);
		if (value.type != jbvNumeric)
			continue;
		number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
													NumericGetDatum(value.val.numeric)));
		if (isinf(number) ||
			(number == 0 && DatumGetBool(DirectFunctionCall2(numeric_ne,
															 NumericGetDatum(value.val.numeric),
															 NumericGetDatum(int64_to_numeric(0))))))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("metric \"%.*s\" is out of range for type double precision",
							key.val.string.len, key.val.string.val),
					 errhint("Report a number that a double can hold, or the string Infinity or -Infinity.")));
	}
}

static const StoreQuery run_query = {
	"SELECT run_id FROM @store@.trials WHERE id = $1",
	.nargs = 1, .argtypes = {INT4OID}
};

/* Refuse a report of a trial that is not there, or not of its current run. */
static void
check_run(const MetricsStore *store, const Report *report)
{
	Datum		values[] = {Int32GetDatum(report->trial_id)};
	bool		isnull;

	if (store_execute(store, &run_query, NULL, values, NULL) == 0)
		trial_unknown(report->trial_id);
	trial_check_run(report->trial_id, report->run_id, DatumGetInt32(store_column(1, &isnull)));
}

/* The key is a literal: then only its partition is looked at. */
static const StoreQuery insert_batch_query = {
	"INSERT INTO @store@.metrics"
	" (trial_id, trial_run_id, end_time, metrics, total_batches, metric_group, partition_type)"
	" VALUES ($1, $2, $3, $4, $5, $6, @keys@) RETURNING id, end_time",
	.nargs = 6, .argtypes = {INT4OID, INT4OID, TIMESTAMPTZOID, JSONBOID, INT4OID, TEXTOID}
};

/* The same for a trial that is not locked, if the run is the current one. */
static const StoreQuery insert_time_query = {
	"INSERT INTO @store@.metrics"
	" (trial_id, trial_run_id, end_time, metrics, metric_group, partition_type)"
	" SELECT $1, $2, $3, $4, $6, @keys@ FROM @store@.trials WHERE id = $1 AND run_id = $2"
	" RETURNING id, end_time",
	.nargs = 6, .argtypes = {INT4OID, INT4OID, TIMESTAMPTZOID, JSONBOID, INT4OID, TEXTOID}
};

/*
 * Insert a row; returns its id, or 0 if a trigger suppressed it.  *end_time is
 * what was stored.
 */
static int64
insert_row(const MetricsStore *store, const Report *report, const StoreRoute *route, Jsonb *document,
		   TimestampTz *end_time)
{
	Datum		values[6];
	bool		isnull;
	int64		id;

	values[0] = Int32GetDatum(report->trial_id);
	values[1] = Int32GetDatum(report->run_id);
	values[2] = TimestampTzGetDatum(report->has_time ? report->time :
									GetCurrentTransactionStartTimestamp());
	values[3] = JsonbPGetDatum(document);
	values[4] = Int32GetDatum(report->steps);
	values[5] = CStringGetTextDatum(report->group);
	if (store_execute(store, route->by_time ? &insert_time_query : &insert_batch_query,
					  route->literal, values, NULL) == 0)
	{
		if (route->by_time)
			check_run(store, report);
		return 0;
	}

	id = DatumGetInt64(store_column(1, &isnull));
	*end_time = DatumGetTimestampTz(store_column(2, &isnull));
	return id;
}

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
 * equal values.  Returns the union and, in *added, what only the report has;
 * NULL if that is nothing.
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
	if (JB_ROOT_COUNT(*added) == 0)
		*added = NULL;
	return JsonbValueToJsonb(pushJsonbValue(&united_state, WJB_END_OBJECT, NULL));
}

static const StoreQuery merge_query = {
	"UPDATE @store@.metrics SET metrics = $1"
	" WHERE id = $2 AND trial_id = $3 AND total_batches = $4 AND partition_type = @keys@",
	.nargs = 4, .argtypes = {JSONBOID, INT8OID, INT4OID, INT4OID}
};

/*
 * Merge a report into the row that the run has at this step: its metrics are
 * united, end_time and id stay.  Returns false if that changed nothing;
 * otherwise *united and *added are as of unite_metrics().
 */
static bool
merge_row(const MetricsStore *store, const Report *report, const StoreRoute *route,
		  int64 id, Jsonb *document, Jsonb **united, Jsonb **added)
{
	const char *key = group_document_key(report->group);
	bool		takes_batches = strcmp(key, METRICS_KEY) == 0;
	JsonbValue	stored;
	JsonbValue	batches = {.type = jbvNull};
	Datum		values[4];

	if (!JB_ROOT_IS_OBJECT(document) ||
		!getKeyJsonValueFromContainer(&document->root, key, strlen(key), &stored) ||
		stored.type != jbvBinary || !JsonContainerIsObject(stored.val.binary.data))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the document of row " INT64_FORMAT " of \"%s.metrics\" has no object \"%s\" to merge into",
						id, store->schema, key),
				 errhint("It was not written by metrics_report(); correct or remove it.")));
	*united = unite_metrics(stored.val.binary.data, report->metrics, added);

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
	if (*added == NULL && !(takes_batches && report->batch_metrics))
		return false;

	if (report->batch_metrics)
		batches = embed(report->batch_metrics);
	values[0] = JsonbPGetDatum(make_document(report->group, embed(*united), batches));
	values[1] = Int64GetDatum(id);
	values[2] = Int32GetDatum(report->trial_id);
	values[3] = Int32GetDatum(report->steps);
	return store_execute(store, &merge_query, route->literal,
						 values, NULL) > 0;
}

/* The state of the trial, and the row of the same run, group and step. */
static const StoreQuery state_query = {
	"SELECT s.run_id, s.rolled_back_to, s.latest_validation_time, s.last_rows, s.ctid,"
	" m.id, m.end_time, m.metrics"
	" FROM (SELECT) AS one"
	" LEFT JOIN @store@.metrics_trial_state s ON s.trial_id = $1"
	" LEFT JOIN @store@.metrics m ON m.trial_id = $1 AND m.total_batches = $2"
	" AND m.trial_run_id = $3 AND m.metric_group = $4 AND NOT m.archived"
	" AND m.partition_type = @keys@",
	.nargs = 4, .argtypes = {INT4OID, INT4OID, INT4OID, TEXTOID}
};

/* Write a report of kind batch; returns the id of the row, 0 if suppressed. */
static int64
write_batch_report(const MetricsStore *store, const Report *report, const StoreRoute *route)
{
	Trial		trial;
	Datum		values[4];
	bool		isnull;
	int64		id;
	TimestampTz end_time = 0;
	Jsonb	   *united = report->metrics;
	Jsonb	   *added = report->metrics;
	uint64		archived = 0;

	check_batch_report(report);
	if (!trial_lock(store, report->trial_id, &trial))
		trial_unknown(report->trial_id);
	trial_check_run(report->trial_id, report->run_id, trial.run_id);

	values[0] = Int32GetDatum(report->trial_id);
	values[1] = Int32GetDatum(report->steps);
	values[2] = Int32GetDatum(report->run_id);
	values[3] = CStringGetTextDatum(report->group);
	store_execute(store, &state_query, route->literal, values, NULL);
	trial_read_state(&trial, 1);
	id = DatumGetInt64(store_column(6, &isnull));

	if (isnull)
	{
		JsonbValue	batches = {.type = jbvNull};

		if (report->batch_metrics)
			batches = embed(report->batch_metrics);
		id = insert_row(store, report, route,
						make_document(report->group, embed(report->metrics), batches), &end_time);
		if (id == 0)
			return 0;
	}
	else
	{
		end_time = DatumGetTimestampTz(store_column(7, &isnull));
		if (!merge_row(store, report, route, id, DatumGetJsonbP(store_column(8, &isnull)),
					   &united, &added))
			added = NULL;
	}

	for (;;)
	{
		archived += trial_rollback(store, &trial, route->key, report->steps);
		if (archived > 0 || !trial.has_state)
			trial_recompute(store, &trial);
		else if (added == NULL)
			return id;			/* nothing that was not there */
		else
		{
			trial.total_batches = Max(trial.total_batches, report->steps);
			trial_add(&trial, report->group, &united->root, &added->root, end_time, id);
		}
		if (trial_save(store, &trial))
			return id;
		if (!trial_read(store, report->trial_id, &trial))
			return id;			/* a trigger deleted the trial, so the row, too */
	}
}

/*
 * Write a report; returns the id of its row, 0 if a trigger suppressed it.
 * Needs an SPI connection and the store opened for writing.
 */
int64
report_write(const MetricsStore *store, const Report *report)
{
	StoreRoute	route;
	TimestampTz end_time;

	check_report(store, report);
	store_route(store, report->group, &route);
	if (route.by_time)
		return insert_row(store, report, &route, report->metrics, &end_time);
	return write_batch_report(store, report, &route);
}

/*
 * metrics_report(trial_id, metric_group, metrics, steps_completed, trial_run_id,
 *				  report_time, batch_metrics) → bigint
 */
Datum
metrics_report(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id", "metric_group", "metrics", NULL, "trial_run_id"};
	MetricsStore store;
	Report		report;
	int64		id;

	for (int i = 0; i < (int) lengthof(names); i++)
	{
		if (PG_ARGISNULL(i) && names[i] != NULL)
			report_null_argument(names[i]);
	}
	report.trial_id = PG_GETARG_INT32(0);
	report.group = text_to_cstring(PG_GETARG_TEXT_PP(1));
	report.metrics = PG_GETARG_JSONB_P(2);
	report.has_steps = !PG_ARGISNULL(3);
	report.steps = report.has_steps ? PG_GETARG_INT32(3) : 0;
	report.run_id = PG_GETARG_INT32(4);
	report.has_time = !PG_ARGISNULL(5);
	report.time = report.has_time ? PG_GETARG_TIMESTAMPTZ(5) : 0;
	report.batch_metrics = PG_ARGISNULL(6) ? NULL : PG_GETARG_JSONB_P(6);

	PreventCommandIfReadOnly("metrics_report()");
	store_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	id = report_write(&store, &report);
	SPI_finish();
	if (id == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(id);
}
