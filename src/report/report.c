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

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "args.h"
#include "guc.h"
#include "report/report.h"
#include "report/row.h"
#include "report/trial.h"
#include "report/value.h"

PG_FUNCTION_INFO_V1(metrics_report);

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

/* Refuse a document, or documents, of more bytes than one report may carry. */
void
report_check_size(Size size)
{
	if (size > (Size) metrics_max_document_size * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("metrics document of %zu bytes is too large", size),
				 errhint("The limit is metrics_ext.max_document_size, %d kB: report less at a time, or raise it.",
						 metrics_max_document_size)));
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
	if (strlen(report->group) > STORE_MAX_KEY_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("metric group of %zu bytes is too long", strlen(report->group)),
				 errhint("The limit is %d bytes.", STORE_MAX_KEY_BYTES)));
	if (strchr(report->group, '.') != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("metric group cannot contain '.'"),
				 errdetail("The group is \"%s\".", report->group),
				 errhint("A dot separates the group from the name of a metric; use '_'.")));
	report_check_size(size);
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

/* The state of the trial, and the row of the same run, group and step. */
static const StoreQuery state_query = {
	"SELECT s.run_id, s.rolled_back_to, s.latest_validation_time, s.last_rows, s.ctid,"
	" m.id, m.end_time, m.metrics"
	" FROM (SELECT) AS one"
	" LEFT JOIN @store@.metrics_trial_state s ON s.trial_id = $1"
	" LEFT JOIN @store@.metrics m ON m.trial_id = $1 AND m.total_batches = $2"
	" AND m.trial_run_id = $3 AND m.metric_group = $4 AND NOT m.archived"
	" AND m.partition_type OPERATOR(pg_catalog.=) @keys@",
	.nargs = 4, .argtypes = {INT4OID, INT4OID, INT4OID, TEXTOID}
};

/*
 * Bring the trial to what its rows are now.  A trigger of the user's may have
 * changed the row, which is then not what the report said, or have computed the
 * trial again with the row in it.
 */
static void
account_for_row(const MetricsStore *store, const Report *report, const StoreRoute *route,
				const Row *row, Trial *trial, uint64 recomputes)
{
	if (trial_rollback(store, trial, route->key, report->steps) > 0 ||
		trial->out_of_date || row->changed_by_trigger || trial_recomputes != recomputes)
		trial_recompute(store, trial);
	else if (row->added != NULL)
	{
		trial->total_batches = Max(trial->total_batches, report->steps);
		trial_add(trial, report->group, row->metrics, row->added, row->end_time, row->id);
	}
}

/*
 * Write a report of kind batch; returns the id of the row, 0 if suppressed.
 * The trial is left in the set to be saved with the others, or saved at once.
 */
static int64
write_batch_report(const MetricsStore *store, const Report *report, const StoreRoute *route,
				   TrialSet *set)
{
	uint64		recomputes = trial_recomputes;
	Trial		alone = {.context = CurrentMemoryContext};
	Trial	   *trial = &alone;
	bool		is_open = false;
	Row			row = {0};
	Datum		values[4];
	bool		isnull;

	check_batch_report(report);
	if (set)
		trial = hash_search(set->trials, &report->trial_id, HASH_ENTER, &is_open);
	if (!is_open)
	{
		if (set)
			trial->context = set->context;
		if (!trial_lock(store, report->trial_id, trial))
			trial_unknown(report->trial_id);
	}
	trial_check_run(report->trial_id, report->run_id, trial->run_id);

	values[0] = Int32GetDatum(report->trial_id);
	values[1] = Int32GetDatum(report->steps);
	values[2] = Int32GetDatum(report->run_id);
	values[3] = CStringGetTextDatum(report->group);
	store_execute(store, &state_query, route->literal, values, NULL);
	if (!is_open)
		trial_read_state(trial, 1);
	row.id = DatumGetInt64(store_column(6, &isnull));

	if (isnull)
		row_insert(store, report, route, &row);
	else
	{
		Jsonb	   *document = DatumGetJsonbP(store_column(8, &isnull));

		row.end_time = DatumGetTimestampTz(store_column(7, &isnull));
		row.metrics = document_metrics(document, report->group);
		row_merge(store, report, route, document, &row);
	}
	if (row.id == 0)
		return 0;

	do
		account_for_row(store, report, route, &row, trial, recomputes);
	while (!set && trial->dirty && !trial_save(store, trial));
	return row.id;
}

/*
 * Write a report; returns the id of its row, 0 if a trigger suppressed it.
 * With a set of trials, what is derived from the rows is left there, for
 * trial_set_save().  Needs an SPI connection and the store opened for writing.
 */
int64
report_write(const MetricsStore *store, const Report *report, TrialSet *set)
{
	StoreRoute	route;

	check_report(store, report);
	store_route(store, report->group, &route);
	if (route.by_time)
		return row_insert_by_time(store, report, &route);
	return write_batch_report(store, report, &route, set);
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

	check_not_null(fcinfo, names, lengthof(names));
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
	id = report_write(&store, &report, NULL);
	SPI_finish();
	if (id == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(id);
}
