/*
 * perf_expire.c
 *	  Removing old measurements: metrics_expire_perf().
 *
 * Runs go, and their measurements with them, in order of arrival and a bounded
 * number at a time: what is removed is not looked at again, and whoever stops it
 * loses one step.  Series, pushes and alerts stay.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/perf.h"

PG_FUNCTION_INFO_V1(metrics_expire_perf);

/* Repositories that do not keep everything, and until when their measurements go. */
static const StoreQuery repositories_query = {
	"SELECT pg_catalog.array_agg(name ORDER BY name), pg_catalog.array_agg($2 - keep ORDER BY name)"
	" FROM @store@.performance_repository WHERE keep IS NOT NULL AND ($1 IS NULL OR name = $1)",
	.nargs = 2, .argtypes = {TEXTOID, TIMESTAMPTZOID}
};

static const StoreQuery expired_runs_query = {
	"SELECT pg_catalog.array_agg(id), max(id) FROM (SELECT id FROM @store@.performance_run"
	" WHERE repository = $1 AND last_timestamp <= $2 AND id > $3 ORDER BY id LIMIT $4) r",
	.nargs = 4, .argtypes = {TEXTOID, TIMESTAMPTZOID, INT8OID, INT8OID}
};

/* First these, by statement, so that the foreign key finds nothing more to do for each run. */
static const StoreQuery delete_measurements_query = {
	"DELETE FROM @store@.performance_datum WHERE repository = $1 AND run_id = ANY ($2)",
	.nargs = 2, .argtypes = {TEXTOID, INT8ARRAYOID}
};

static const StoreQuery delete_runs_query = {
	"DELETE FROM @store@.performance_run WHERE repository = $1 AND id = ANY ($2)",
	.nargs = 2, .argtypes = {TEXTOID, INT8ARRAYOID}
};

/* Remove the next runs of a repository after one; false if there are none. */
static bool
expire_runs(const MetricsStore *store, Datum repository, Datum until, int64 *after, int32 max_runs)
{
	Datum		next[] = {repository, until, Int64GetDatum(*after), Int64GetDatum(max_runs)};
	Datum		runs[2] = {repository};
	bool		isnull;

	store_execute(store, &expired_runs_query, NULL, next, NULL);
	runs[1] = store_column(1, &isnull);
	if (isnull)
		return false;
	*after = DatumGetInt64(store_column(2, &isnull));
	store_execute(store, &delete_measurements_query, NULL, runs, NULL);
	store_execute(store, &delete_runs_query, NULL, runs, NULL);
	return true;
}

/*
 * metrics_expire_perf(repository, max_runs)
 *
 * Commits after each max_runs runs, unless it is called within a transaction.
 */
Datum
metrics_expire_perf(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {NULL, "max_runs"};
	bool		commits = may_commit(fcinfo);
	MetricsStore store;
	Datum		values[] = {PG_GETARG_DATUM(0), TimestampTzGetDatum(GetCurrentTransactionStartTimestamp())};
	char		nulls[] = {PG_ARGISNULL(0) ? 'n' : ' ', ' '};
	Datum		arrays[2];
	Datum	   *repositories;
	Datum	   *until;
	int			count = 0;
	bool		isnull;

	check_not_null(fcinfo, names, lengthof(names));
	if (PG_GETARG_INT32(1) < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_runs must be at least 1, got %d", PG_GETARG_INT32(1)),
				 errhint("The default is 1000.")));
	PreventCommandIfReadOnly("metrics_expire_perf()");
	SPI_connect_ext(commits ? SPI_OPT_NONATOMIC : 0);
	perf_open(fcinfo, RowExclusiveLock, &store);
	store_check_owner(&store);
	store_execute(&store, &repositories_query, NULL, values, nulls);
	arrays[0] = store_column(1, &isnull);
	arrays[1] = store_column(2, &isnull);
	if (!isnull)
	{
		deconstruct_array(DatumGetArrayTypePCopy(arrays[0]), TEXTOID, -1, false, TYPALIGN_INT,
						  &repositories, NULL, &count);
		deconstruct_array(DatumGetArrayTypePCopy(arrays[1]), TIMESTAMPTZOID, sizeof(TimestampTz), FLOAT8PASSBYVAL,
						  TYPALIGN_DOUBLE, &until, NULL, &count);
	}

	for (int i = 0; i < count; i++)
	{
		int64		after = 0;

		while (expire_runs(&store, repositories[i], until[i], &after, PG_GETARG_INT32(1)))
		{
			CHECK_FOR_INTERRUPTS();
			if (commits)
			{
				SPI_commit();
				EnsurePortalSnapshotExists();
				perf_open(fcinfo, RowExclusiveLock, &store);
			}
		}
	}
	SPI_finish();
	PG_RETURN_VOID();
}
