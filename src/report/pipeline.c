/*
 * pipeline.c
 *	  The life of runs and stages of pipelines.
 *
 * Only what happened is stored; all figures of stages and runs are views, see
 * store/views_pipeline.c.  So there is nothing to roll up when a run ends, and
 * rows that arrive late are in the figures like any other.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "args.h"
#include "partition/list_table.h"
#include "report/pipeline.h"
#include "report/value.h"
#include "sql.h"
#include "store/store.h"

PG_FUNCTION_INFO_V1(metrics_start_run);
PG_FUNCTION_INFO_V1(metrics_finish_run);
PG_FUNCTION_INFO_V1(metrics_fail_run);
PG_FUNCTION_INFO_V1(metrics_start_stage);
PG_FUNCTION_INFO_V1(metrics_finish_stage);
PG_FUNCTION_INFO_V1(metrics_list_runs);
PG_FUNCTION_INFO_V1(metrics_drop_runs);

void
run_unknown(const char *run_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
			 errmsg("run \"%s\" does not exist", run_id),
			 errhint("Call metrics_start_run() first.")));
}

/*
 * Refuse what was done after a run had ended.  What was done before may arrive
 * later: workers report on their own, and some were cut off for a while.
 */
void
run_check_open(const char *run_id, const char *status, TimestampTz end_time, TimestampTz at)
{
	if (strcmp(status, "running") != 0 && at >= end_time)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("run \"%s\" is %s", run_id, status),
				 errdetail("It ended at %s, not after %s.", pstrdup(timestamptz_to_str(end_time)),
						   pstrdup(timestamptz_to_str(at))),
				 errhint("Start another run, or give \"at\" if it was before.")));
}

void
check_pipeline_time(const char *name, TimestampTz at)
{
	if (TIMESTAMP_NOT_FINITE(at))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("\"%s\" must be finite, got %s", name, timestamptz_to_str(at)),
				 errhint("Leave it out to take the time of the call.")));
}

/* The time of an event: the argument, or now, which goes on within a transaction. */
static TimestampTz
event_time(FunctionCallInfo fcinfo, int argno)
{
	TimestampTz at = PG_ARGISNULL(argno) ? GetCurrentTimestamp() : PG_GETARG_TIMESTAMPTZ(argno);

	check_pipeline_time("at", at);
	return at;
}

/* run_YYYYmmdd_HHMMSS_xxxxxxxx, in UTC, which two runs do not share */
static char *
new_run_id(void)
{
	pg_time_t	now = timestamptz_to_time_t(GetCurrentTimestamp());
	char		time[32];
	uint32		random;

	if (!pg_strong_random(&random, sizeof(random)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	pg_strftime(time, sizeof(time), "%Y%m%d_%H%M%S", pg_gmtime(&now));
	return psprintf("run_%s_%08x", time, random);
}

static const StoreQuery start_run_query = {
	"INSERT INTO @store@.pipeline_runs (run_id, config, start_time) VALUES ($1, $2, $3)",
	.nargs = 3, .argtypes = {TEXTOID, JSONBOID, TIMESTAMPTZOID}
};

/* metrics_start_run(run_id, config, at) → text */
Datum
metrics_start_run(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {NULL, "config"};
	MetricsStore store;
	Datum		values[3];

	check_not_null(fcinfo, names, lengthof(names));
	if (!JB_ROOT_IS_OBJECT(PG_GETARG_JSONB_P(1)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("config must be a JSON object, got %s", metric_document_text(PG_GETARG_JSONB_P(1))),
				 errhint("For example {\"batch_size\": 1000}.")));
	values[0] = PG_ARGISNULL(0) ? CStringGetTextDatum(new_run_id()) : PG_GETARG_DATUM(0);
	values[1] = PG_GETARG_DATUM(1);
	values[2] = TimestampTzGetDatum(event_time(fcinfo, 2));

	PreventCommandIfReadOnly("metrics_start_run()");
	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);
	SPI_connect();
	store_execute(&store, &start_run_query, NULL, values, NULL);
	SPI_finish();
	PG_RETURN_DATUM(values[0]);
}

static const StoreQuery end_run_query = {
	"UPDATE @store@.pipeline_runs SET status = $2, end_time = $3 WHERE run_id = $1 AND status = 'running'",
	.nargs = 3, .argtypes = {TEXTOID, TEXTOID, TIMESTAMPTZOID}
};

static const StoreQuery run_query = {
	"SELECT status, end_time FROM @store@.pipeline_runs WHERE run_id = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

/* End a run; ending it the same way again changes nothing. */
static void
end_run(FunctionCallInfo fcinfo, const char *status)
{
	static const char *const names[] = {"run_id"};
	MetricsStore store;
	Datum		values[3];
	const char *run_id;
	bool		isnull;

	check_not_null(fcinfo, names, lengthof(names));
	run_id = text_to_cstring(PG_GETARG_TEXT_PP(0));
	values[0] = PG_GETARG_DATUM(0);
	values[1] = CStringGetTextDatum(status);
	values[2] = TimestampTzGetDatum(event_time(fcinfo, 1));

	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);
	SPI_connect();
	if (store_execute(&store, &end_run_query, NULL, values, NULL) == 0)
	{
		const char *current;

		if (store_execute(&store, &run_query, NULL, values, NULL) == 0)
			run_unknown(run_id);
		current = TextDatumGetCString(store_column(1, &isnull));
		if (strcmp(current, status) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("run \"%s\" is %s, it cannot become %s", run_id, current, status),
					 errhint("A run ends once; start another.")));
	}
	SPI_finish();
}

/* metrics_finish_run(run_id, at) */
Datum
metrics_finish_run(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("metrics_finish_run()");
	end_run(fcinfo, "completed");
	PG_RETURN_VOID();
}

/* metrics_fail_run(run_id, at) */
Datum
metrics_fail_run(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("metrics_fail_run()");
	end_run(fcinfo, "failed");
	PG_RETURN_VOID();
}

/* Started twice, a stage began the first time. */
static const StoreQuery start_stage_query = {
	"INSERT INTO @store@.pipeline_stages AS s (run_id, stage_name, start_time) VALUES ($1, $2, $3)"
	" ON CONFLICT (run_id, stage_name) DO UPDATE SET started = true, start_time = EXCLUDED.start_time"
	" WHERE NOT s.started",
	.nargs = 3, .argtypes = {TEXTOID, TEXTOID, TIMESTAMPTZOID}
};

/* metrics_start_stage(run_id, stage_name, at) */
Datum
metrics_start_stage(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"run_id", "stage_name"};
	MetricsStore store;
	Datum		values[3];
	const char *run_id;
	TimestampTz at;
	bool		isnull;

	check_not_null(fcinfo, names, lengthof(names));
	run_id = text_to_cstring(PG_GETARG_TEXT_PP(0));
	at = event_time(fcinfo, 2);
	values[0] = PG_GETARG_DATUM(0);
	values[1] = PG_GETARG_DATUM(1);
	values[2] = TimestampTzGetDatum(at);

	PreventCommandIfReadOnly("metrics_start_stage()");
	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);
	SPI_connect();
	if (store_execute(&store, &run_query, NULL, values, NULL) == 0)
		run_unknown(run_id);
	run_check_open(run_id, TextDatumGetCString(store_column(1, &isnull)),
				   DatumGetTimestampTz(store_column(2, &isnull)), at);
	store_execute(&store, &start_stage_query, NULL, values, NULL);
	SPI_finish();
	PG_RETURN_VOID();
}

/* Finished twice, a stage ended the last time. */
static const StoreQuery finish_stage_query = {
	"UPDATE @store@.pipeline_stages SET end_time = GREATEST(end_time, $3) WHERE run_id = $1 AND stage_name = $2",
	.nargs = 3, .argtypes = {TEXTOID, TEXTOID, TIMESTAMPTZOID}
};

/* metrics_finish_stage(run_id, stage_name, at) */
Datum
metrics_finish_stage(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"run_id", "stage_name"};
	MetricsStore store;
	Datum		values[3];

	check_not_null(fcinfo, names, lengthof(names));
	values[0] = PG_GETARG_DATUM(0);
	values[1] = PG_GETARG_DATUM(1);
	values[2] = TimestampTzGetDatum(event_time(fcinfo, 2));

	PreventCommandIfReadOnly("metrics_finish_stage()");
	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);
	SPI_connect();
	if (store_execute(&store, &finish_stage_query, NULL, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
				 errmsg("run \"%s\" has no stage \"%s\"", text_to_cstring(PG_GETARG_TEXT_PP(0)),
						text_to_cstring(PG_GETARG_TEXT_PP(1))),
				 errhint("Call metrics_start_stage() first.")));
	SPI_finish();
	PG_RETURN_VOID();
}

static const StoreQuery list_runs_query = {
	"SELECT run_id FROM @store@.pipeline_runs ORDER BY start_time DESC, run_id DESC",
	.reader = true, .nargs = 0
};

/* metrics_list_runs() → setof text */
Datum
metrics_list_runs(PG_FUNCTION_ARGS)
{
	MetricsStore store;

	store_open_since(fcinfo, AccessShareLock, LAYOUT_1_4, &store);
	store_return_rows(fcinfo, &store, &list_runs_query, NULL, NULL, NULL);
	return (Datum) 0;
}

/* Ranges of time, below a table that metrics_partition_by_time() has made, that ended before. */
static const StoreQuery old_ranges_query = {
	"SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid"
	" WHERE i.inhparent = $1 AND pg_catalog.substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid), 'TO \\(''(.*)''\\)')::timestamptz <= $2"
	" ORDER BY 1",
	.nargs = 2, .argtypes = {OIDOID, TIMESTAMPTZOID}
};

static const StoreQuery drop_runs_query = {
	"DELETE FROM @store@.pipeline_runs WHERE status <> 'running' AND end_time < $1",
	.nargs = 1, .argtypes = {TIMESTAMPTZOID}
};

/*
 * Drop the ranges of operator rows that ended before a time and hold rows of
 * nothing but runs that are to be dropped: faster than deleting the rows.  The
 * tables are locked first, so that no row is added to a range once it was looked
 * at.
 */
static void
drop_old_ranges(const MetricsStore *store, TimestampTz older_than)
{
	Oid			operators = store_relation(store, "pipeline_operators");
	Datum		values[] = {ObjectIdGetDatum(operators), TimestampTzGetDatum(older_than)};
	uint64		nranges = store_execute(store, &old_ranges_query, NULL, values, NULL);
	SPITupleTable *ranges = SPI_tuptable;
	const char *schema = quote_identifier(store->schema);
	const char *limit = quote_literal_cstr(timestamptz_to_str(older_than));

	if (nranges > 0)
		run_sql("LOCK TABLE %1$s.pipeline_runs IN SHARE ROW EXCLUSIVE MODE; LOCK TABLE %1$s.pipeline_operators", schema);
	for (uint64 row = 0; row < nranges; row++)
	{
		bool		isnull;
		char	   *range = qualified_name(DatumGetObjectId(SPI_getbinval(ranges->vals[row], ranges->tupdesc, 1, &isnull)));

		run_sql("SELECT FROM %1$s o JOIN %2$s.pipeline_runs r ON r.run_id = o.run_id"
				" WHERE NOT (r.status <> 'running' AND r.end_time < %3$s) LIMIT 1", range, schema, limit);
		if (SPI_processed == 0)
			run_sql("DROP TABLE %s", range);
	}
}

/* metrics_drop_runs(older_than) → bigint */
Datum
metrics_drop_runs(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"older_than"};
	MetricsStore store;
	TimestampTz older_than;
	Datum		values[1];
	int64		dropped;

	check_not_null(fcinfo, names, lengthof(names));
	older_than = PG_GETARG_TIMESTAMPTZ(0);
	check_pipeline_time("older_than", older_than);
	values[0] = TimestampTzGetDatum(older_than);

	PreventCommandIfReadOnly("metrics_drop_runs()");
	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);
	store_check_owner(&store);
	SPI_connect();
	drop_old_ranges(&store, older_than);
	dropped = store_execute(&store, &drop_runs_query, NULL, values, NULL);
	SPI_finish();
	PG_RETURN_INT64(dropped);
}
