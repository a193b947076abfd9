/*
 * register.c
 *	  Registering trials, and which of them is best.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "report/trial.h"

PG_FUNCTION_INFO_V1(metrics_register_trial);
PG_FUNCTION_INFO_V1(metrics_best_trial);

static const StoreQuery register_query = {
	"INSERT INTO @store@.trials (id, run_id, experiment_id, searcher_metric, smaller_is_better)"
	" VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
	.nargs = 5, .argtypes = {INT4OID, INT4OID, INT4OID, TEXTOID, BOOLOID}
};

static const StoreQuery register_again_query = {
	"UPDATE @store@.trials SET run_id = $2, experiment_id = COALESCE($3, experiment_id),"
	" searcher_metric = COALESCE($4, searcher_metric),"
	" smaller_is_better = CASE WHEN $4 IS NULL THEN smaller_is_better ELSE $5 END"
	" WHERE id = $1",
	.nargs = 5, .argtypes = {INT4OID, INT4OID, INT4OID, TEXTOID, BOOLOID}
};

/* Register the next run of a trial, which is locked, or other facts of it. */
static void
register_again(const MetricsStore *store, const Trial *trial, Datum *values, const char *nulls)
{
	int32		run_id = DatumGetInt32(values[1]);
	const char *metric = nulls[3] == 'n' ? NULL : TextDatumGetCString(values[3]);

	if (run_id < trial->run_id)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("trial %d is at run %d already, cannot register run %d",
						trial->id, trial->run_id, run_id),
				 errhint("Run ids of a trial only grow.")));
	store_execute(store, &register_again_query, NULL, values, nulls);

	/* Another searcher metric finds another best validation. */
	if (metric && (trial->searcher_metric == NULL || strcmp(metric, trial->searcher_metric) != 0 ||
				   DatumGetBool(values[4]) != trial->smaller_is_better))
		trial_recompute_and_save(store, trial->id);
}

/* metrics_register_trial(trial_id, run_id, experiment_id, searcher_metric, smaller_is_better) */
Datum
metrics_register_trial(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id", "run_id", NULL, NULL, "smaller_is_better"};
	MetricsStore store;
	Trial		trial;
	Datum		values[5];
	char		nulls[] = "     ";

	check_not_null(fcinfo, names, lengthof(names));
	for (int i = 0; i < 5; i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		if (PG_ARGISNULL(i))
			nulls[i] = 'n';
	}
	if (PG_GETARG_INT32(1) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("run_id must not be negative, got %d", PG_GETARG_INT32(1)),
				 errhint("The first run of a trial is 0.")));

	PreventCommandIfReadOnly("metrics_register_trial()");
	store_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	trial.context = CurrentMemoryContext;
	/* Whoever inserts it first, the trial is there after the second statement. */
	if (trial_lock(&store, PG_GETARG_INT32(0), &trial) ||
		(store_execute(&store, &register_query, NULL, values, nulls) == 0 &&
		 trial_lock(&store, PG_GETARG_INT32(0), &trial)))
		register_again(&store, &trial, values, nulls);
	SPI_finish();
	PG_RETURN_VOID();
}

static const StoreQuery best_trial_query = {
	"SELECT id FROM @store@.trials WHERE experiment_id = $1 AND best_validation_id IS NOT NULL"
	" ORDER BY searcher_metric_value = 'NaN', searcher_metric_value_signed, id LIMIT 1",
	.reader = true, .nargs = 1, .argtypes = {INT4OID}
};

/* metrics_best_trial(experiment_id) → integer */
Datum
metrics_best_trial(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"experiment_id"};
	Datum		values[] = {PG_GETARG_DATUM(0)};
	MetricsStore store;
	bool		isnull = true;
	Datum		result = 0;

	check_not_null(fcinfo, names, lengthof(names));
	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	if (store_execute(&store, &best_trial_query, NULL, values, NULL) > 0)
		result = store_column(1, &isnull);
	SPI_finish();
	if (isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(result);
}
