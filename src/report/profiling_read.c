/*
 * profiling_read.c
 *	  Readers of profiling metrics: groups that are identified by time.
 *
 * Upstream's documents are {name: value}, {agent: {name: value}} or
 * {agent: {device: {name: value}}}, where a device is a GPU or a disk.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/report.h"
#include "report/value.h"

PG_FUNCTION_INFO_V1(metrics_profiling_values);
PG_FUNCTION_INFO_V1(metrics_profiling_rows);
PG_FUNCTION_INFO_V1(metrics_profiling_series);

/* Deepest object: agent, device, name. */
#define PROFILING_DEPTH 3

/* Return the numbers in an object that stands under a path of keys. */
static void
put_values(ReturnSetInfo *rsinfo, JsonbContainer *object, Datum *path, int depth)
{
	JsonbIterator *it = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		JsonbIteratorNext(&it, &value, true);
		path[depth] = PointerGetDatum(cstring_to_text_with_len(key.val.string.val,
															   key.val.string.len));
		if (value.type == jbvBinary && JsonContainerIsObject(value.val.binary.data))
		{
			if (depth + 1 < PROFILING_DEPTH)
				put_values(rsinfo, value.val.binary.data, path, depth + 1);
		}
		else if (metric_is_number(&value))
		{
			Datum		values[4] = {0};
			bool		nulls[4] = {depth < 1, depth < 2, false, false};

			values[0] = path[0];
			values[1] = path[1];
			values[2] = path[depth];
			values[3] = value.type == jbvNumeric ?
				DirectFunctionCall1(numeric_float8_no_overflow, NumericGetDatum(value.val.numeric)) :
				DirectFunctionCall1(float8in, CStringGetDatum(pnstrdup(value.val.string.val,
																	   value.val.string.len)));
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	}
}

/* metrics_profiling_values(metrics) → setof (agent, device, name, value) */
Datum
metrics_profiling_values(PG_FUNCTION_ARGS)
{
	Jsonb	   *metrics = PG_GETARG_JSONB_P(0);
	Datum		path[PROFILING_DEPTH] = {0};

	InitMaterializedSRF(fcinfo, 0);
	if (JB_ROOT_IS_OBJECT(metrics))
		put_values((ReturnSetInfo *) fcinfo->resultinfo, &metrics->root, path, 0);
	return (Datum) 0;
}

static const StoreQuery rows_query = {
	"SELECT page.id, page.end_time, v.agent, v.device, v.name, v.value"
	" FROM (SELECT m.id, m.end_time, m.metrics FROM @store@.metrics m"
	"  WHERE m.trial_id = $1 AND m.metric_group = $2 AND m.partition_type OPERATOR(pg_catalog.=) @keys@ AND NOT m.archived"
	"  AND m.end_time >= $6 AND m.end_time < $7 AND (m.end_time, m.id) > ($8, $9)"
	"  AND (($3 IS NULL AND $4 IS NULL AND $5 IS NULL) OR EXISTS ("
	"   SELECT FROM @extension@.metrics_profiling_values(m.metrics) v"
	"   WHERE ($3 IS NULL OR v.name = $3) AND ($4 IS NULL OR v.agent = $4)"
	"   AND ($5 IS NULL OR v.device = $5)))"
	"  ORDER BY m.end_time, m.id LIMIT $10) AS page,"
	" @extension@.metrics_profiling_values(page.metrics) v"
	" WHERE ($3 IS NULL OR v.name = $3) AND ($4 IS NULL OR v.agent = $4)"
	" AND ($5 IS NULL OR v.device = $5)"
	" ORDER BY page.end_time, page.id, v.agent NULLS FIRST, v.device NULLS FIRST, v.name",
	.reader = true, .nargs = 10,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	TIMESTAMPTZOID, INT8OID, INT8OID}
};

/*
 * metrics_profiling_rows(trial_id, metric_group, metric_name, agent_id, gpu_uuid, since,
 *						  until, after_time, after_id, max_rows)
 *
 * A page is counted in reports that have something to show, so that a page is
 * empty only at the end.
 */
Datum
metrics_profiling_rows(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id", "metric_group"};
	MetricsStore store;
	StoreRoute	route;
	char	   *group;
	Datum		values[10];
	char		nulls[] = "          ";

	check_not_null(fcinfo, names, lengthof(names));
	if (!PG_ARGISNULL(9) && PG_GETARG_INT32(9) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_rows must not be negative, got %d", PG_GETARG_INT32(9)),
				 errhint("NULL means all rows.")));

	for (int i = 0; i < 10; i++)
		values[i] = PG_GETARG_DATUM(i);
	for (int i = 2; i < 5; i++)
	{
		if (PG_ARGISNULL(i))
			nulls[i] = 'n';
	}
	if (PG_ARGISNULL(5))
		values[5] = TimestampTzGetDatum(DT_NOBEGIN);
	if (PG_ARGISNULL(6))
		values[6] = TimestampTzGetDatum(DT_NOEND);
	if (PG_ARGISNULL(7))
		values[7] = TimestampTzGetDatum(DT_NOBEGIN);
	if (PG_ARGISNULL(8))
		values[8] = Int64GetDatum(PG_INT64_MAX);
	if (PG_ARGISNULL(9))
		nulls[9] = 'n';
	else
		values[9] = Int64GetDatum(PG_GETARG_INT32(9));

	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	group = text_to_cstring(PG_GETARG_TEXT_PP(1));
	store_route(&store, group, &route);
	if (!route.by_time)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("metric group \"%s\" is identified by steps, not by time", group),
				 errhint("Read it with metrics_rows() or metrics_timeseries().")));
	store_return_rows(fcinfo, &store, &rows_query, route.literal, values, nulls);
	SPI_finish();
	return (Datum) 0;
}

static const StoreQuery series_query = {
	"SELECT m.metric_group, v.agent, v.device, v.name, pg_catalog.max(m.end_time)"
	" FROM @store@.metrics m, @extension@.metrics_profiling_values(m.metrics) v"
	" WHERE m.trial_id = $1 AND NOT m.archived AND m.partition_type OPERATOR(pg_catalog.=) ANY (ARRAY[@keys@])"
	" GROUP BY 1, 2, 3, 4 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4",
	.reader = true, .nargs = 1, .argtypes = {INT4OID}
};

/* metrics_profiling_series(trial_id) */
Datum
metrics_profiling_series(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id"};
	Datum		values[] = {PG_GETARG_DATUM(0)};
	MetricsStore store;

	check_not_null(fcinfo, names, lengthof(names));
	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	store_return_rows(fcinfo, &store, &series_query, store_keys_of_kind(&store, "time"),
					  values, NULL);
	SPI_finish();
	return (Datum) 0;
}
