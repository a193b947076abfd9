/*
 * batch.c
 *	  Many reports in one call: metrics_report_batch().
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/member.h"
#include "report/report.h"
#include "report/value.h"

PG_FUNCTION_INFO_V1(metrics_report_batch);

/* Say which report an error is about. */
static void
report_context(void *arg)
{
	errcontext("report %d of the batch", *(int *) arg);
}

/* Read a report from an object whose keys are the arguments of metrics_report(). */
static void
read_report(const JsonbValue *element, Report *report)
{
	static const char *const required[] = {"trial_id", "metric_group", "metrics"};
	bool		seen[lengthof(required)] = {false};
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	memset(report, 0, sizeof(Report));
	if (element->type != jbvBinary || !JsonContainerIsObject(element->val.binary.data))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a report must be a JSON object, got %s", metric_value_text(element)),
				 errhint("Its keys are the arguments of metrics_report().")));

	it = JsonbIteratorInit(element->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		const char *name;
		bool		isnull;

		if (token != WJB_KEY)
			continue;
		name = pnstrdup(key.val.string.val, key.val.string.len);
		JsonbIteratorNext(&it, &value, true);
		isnull = value.type == jbvNull;
		for (int i = 0; i < (int) lengthof(required); i++)
			seen[i] |= !isnull && strcmp(name, required[i]) == 0;

		if (strcmp(name, "trial_id") == 0)
			report->trial_id = isnull ? 0 : member_int32(name, &value);
		else if (strcmp(name, "metric_group") == 0)
			report->group = isnull ? NULL : member_string(name, &value);
		else if (strcmp(name, "metrics") == 0)
			report->metrics = JsonbValueToJsonb(&value);
		else if (strcmp(name, "steps_completed") == 0)
		{
			report->has_steps = !isnull;
			report->steps = isnull ? 0 : member_int32(name, &value);
		}
		else if (strcmp(name, "trial_run_id") == 0)
		{
			if (isnull)
				null_argument(name);
			report->run_id = member_int32(name, &value);
		}
		else if (strcmp(name, "report_time") == 0)
		{
			report->has_time = !isnull;
			report->time = isnull ? 0 : member_time(name, &value);
		}
		else if (strcmp(name, "batch_metrics") == 0)
			report->batch_metrics = isnull ? NULL : JsonbValueToJsonb(&value);
		else
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unknown key \"%s\" in a report", name),
					 errhint("The keys are the arguments of metrics_report(): trial_id, metric_group, metrics, steps_completed, trial_run_id, report_time, batch_metrics.")));
	}
	for (int i = 0; i < (int) lengthof(required); i++)
	{
		if (!seen[i])
			null_argument(required[i]);
	}
}

static const StoreQuery lock_query = {
	"SELECT 1 FROM @store@.trials WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
	.nargs = 1, .argtypes = {INT4ARRAYOID}
};

/*
 * Lock the trials of the reports that count steps in order of their ids, so
 * that two batches in a different order of trials do not deadlock.
 */
static void
lock_trials(const MetricsStore *store, const Report *reports, int count)
{
	Datum	   *ids = palloc_array(Datum, count);
	int			nids = 0;
	Datum		values[1];

	for (int i = 0; i < count; i++)
	{
		if (reports[i].has_steps)
			ids[nids++] = Int32GetDatum(reports[i].trial_id);
	}
	if (nids == 0)
		return;
	values[0] = PointerGetDatum(construct_array(ids, nids, INT4OID, sizeof(int32), true, TYPALIGN_INT));
	store_execute(store, &lock_query, NULL, values, NULL);
}

/* metrics_report_batch(reports) → bigint[] */
Datum
metrics_report_batch(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"reports"};
	MemoryContext result_context = CurrentMemoryContext;
	MemoryContext garbage;
	MetricsStore store;
	TrialSet   *set;
	Jsonb	   *batch;
	int			count;
	Report	   *reports;
	Datum	   *ids;
	bool	   *nulls;
	int			number = 0;
	int			lower_bound = 1;
	ErrorContextCallback context = {.callback = report_context,.arg = &number};

	check_not_null(fcinfo, names, lengthof(names));
	batch = PG_GETARG_JSONB_P(0);
	count = JB_ROOT_COUNT(batch);
	if (!JB_ROOT_IS_ARRAY(batch) || JB_ROOT_IS_SCALAR(batch))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("reports must be a JSON array, got %s", metric_document_text(batch)),
				 errhint("Give an array of objects whose keys are the arguments of metrics_report().")));

	PreventCommandIfReadOnly("metrics_report_batch()");
	store_open(fcinfo, RowExclusiveLock, &store);
	ids = palloc_array(Datum, Max(count, 1));
	nulls = palloc_array(bool, Max(count, 1));
	reports = palloc_array(Report, Max(count, 1));

	context.previous = error_context_stack;
	error_context_stack = &context;
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		number = i + 1;
		read_report(getIthJsonbValueFromContainer(&batch->root, i), &reports[i]);
	}
	error_context_stack = context.previous;

	SPI_connect();
	lock_trials(&store, reports, count);
	SPI_finish();

	/* Each report leaves its garbage behind, so each gets its own connection. */
	set = trial_set_create();
	garbage = AllocSetContextCreate(result_context, "metrics_ext report", ALLOCSET_DEFAULT_SIZES);
	error_context_stack = &context;
	for (int i = 0; i < count; i++)
	{
		int64		id;

		CHECK_FOR_INTERRUPTS();
		number = i + 1;
		MemoryContextSwitchTo(garbage);
		SPI_connect();
		id = report_write(&store, &reports[i], set);
		SPI_finish();
		MemoryContextReset(garbage);
		ids[i] = Int64GetDatum(id);
		nulls[i] = id == 0;
	}
	error_context_stack = context.previous;
	MemoryContextSwitchTo(result_context);

	SPI_connect();
	trial_set_save(&store, set);
	SPI_finish();

	if (count == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(INT8OID));
	PG_RETURN_ARRAYTYPE_P(construct_md_array(ids, nulls, 1, &count, &lower_bound, INT8OID,
											 sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
