/*
 * trial_read.c
 *	  Readers of the metrics of trials.
 *
 * Pages are found by key, never by offset, and archived rows are never seen.
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "args.h"
#include "percentile/lttb.h"
#include "report/report.h"
#include "report/trial.h"

PG_FUNCTION_INFO_V1(metrics_rows);
PG_FUNCTION_INFO_V1(metrics_timeseries);
PG_FUNCTION_INFO_V1(metrics_trials_snapshot);
PG_FUNCTION_INFO_V1(metrics_names);

static const StoreQuery rows_query = {
	"SELECT id, trial_run_id, metric_group, total_batches, end_time, metrics"
	" FROM @store@.metrics"
	" WHERE trial_id = $1 AND NOT archived AND partition_type OPERATOR(pg_catalog.=) ANY (ARRAY[@keys@])"
	" AND total_batches >= $2 AND (total_batches > $2 OR id > $3)"
	" AND ($4 IS NULL OR metric_group = $4)"
	" ORDER BY total_batches, id LIMIT $5",
	.reader = true, .nargs = 5, .argtypes = {INT4OID, INT4OID, INT8OID, TEXTOID, INT8OID}
};

/* metrics_rows(trial_id, metric_group, after_batches, max_rows, after_id) */
Datum
metrics_rows(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id"};
	MetricsStore store;
	StoreRoute	route;
	const char *keys;
	Datum		values[5];
	char		nulls[] = "     ";

	check_not_null(fcinfo, names, lengthof(names));
	if (!PG_ARGISNULL(3) && PG_GETARG_INT32(3) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_rows must not be negative, got %d", PG_GETARG_INT32(3)),
				 errhint("NULL means all rows.")));

	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	if (PG_ARGISNULL(1))
		keys = store_keys_of_kind(&store, "batch");
	else
	{
		store_route(&store, text_to_cstring(PG_GETARG_TEXT_PP(1)), &route);
		keys = route.literal;
	}
	values[0] = PG_GETARG_DATUM(0);
	values[1] = Int32GetDatum(PG_ARGISNULL(2) ? -1 : PG_GETARG_INT32(2));
	values[2] = Int64GetDatum(PG_ARGISNULL(4) ? PG_INT64_MAX : PG_GETARG_INT64(4));
	values[3] = PG_GETARG_DATUM(1);
	values[4] = Int64GetDatum(PG_ARGISNULL(3) ? 0 : PG_GETARG_INT32(3));
	if (PG_ARGISNULL(1))
		nulls[3] = 'n';
	if (PG_ARGISNULL(3))
		nulls[4] = 'n';
	store_return_rows(fcinfo, &store, &rows_query, keys, values, nulls);
	SPI_finish();
	return (Datum) 0;
}

/*
 * The last column is what the points are spread by: steps, or, for groups that
 * have none, time.
 */
static const StoreQuery timeseries_query = {
	"SELECT total_batches, end_time, epoch, value, x FROM ("
	" SELECT id, total_batches, end_time,"
	" CASE WHEN total_batches IS NULL THEN metrics->$3"
	"  ELSE metrics->$4->$3 END AS value,"
	" CASE WHEN total_batches IS NULL THEN NULL"
	"  ELSE COALESCE(NULLIF(metrics->$4->'epochs'::text, 'null'),"
	"   NULLIF(metrics->$4->'epoch'::text, 'null'))::float8 END AS epoch,"
	" COALESCE(total_batches::float8,"
	"  EXTRACT(epoch FROM end_time)::float8) AS x"
	" FROM @store@.metrics"
	" WHERE trial_id = $1 AND metric_group = $2 AND NOT archived AND partition_type OPERATOR(pg_catalog.=) @keys@"
	" AND ($5 IS NULL OR total_batches >= $5) AND ($6 IS NULL OR total_batches <= $6)"
	" AND ($7 IS NULL OR end_time >= $7) AND ($8 IS NULL OR end_time < $8)) AS series"
	" WHERE value IS NOT NULL ORDER BY x, id",
	.reader = true, .nargs = 8,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, TEXTOID, INT4OID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID}
};

/* The points of a series, with the rows that they stand for. */
typedef struct Series
{
	MemoryContext context;
	LttbPoint  *points;
	Datum	  (*values)[4];
	bool	  (*nulls)[4];
	int			count;
	int			allocated;
} Series;

/* What a value weighs in the choice of points; that which is no number, nothing. */
static double
point_height(Jsonb *value)
{
	JsonbValue	scalar;

	if (!JB_ROOT_IS_SCALAR(value) || !JsonbExtractScalar(&value->root, &scalar))
		return 0;
	if (scalar.type == jbvNumeric)
		return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
												  NumericGetDatum(scalar.val.numeric)));
	return scalar.type == jbvBool && scalar.val.boolean ? 1 : 0;
}

static void
add_point(HeapTuple row, TupleDesc desc, void *arg)
{
	Series	   *series = arg;
	bool		isnull;
	Jsonb	   *value = DatumGetJsonbP(SPI_getbinval(row, desc, 4, &isnull));
	MemoryContext old_context = MemoryContextSwitchTo(series->context);

	if (series->count == series->allocated)
	{
		if (series->allocated > INT_MAX / 2)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("series of more than %d points is too long", series->allocated),
					 errhint("Narrow it by batches or time.")));
		series->allocated *= 2;
		series->points = repalloc_huge(series->points, series->allocated * sizeof(LttbPoint));
		series->values = repalloc_huge(series->values, series->allocated * sizeof(Datum[4]));
		series->nulls = repalloc_huge(series->nulls, series->allocated * sizeof(bool[4]));
	}
	for (int i = 0; i < 3; i++)
		series->values[series->count][i] = SPI_getbinval(row, desc, i + 1,
														 &series->nulls[series->count][i]);
	series->values[series->count][3] = PointerGetDatum(PG_DETOAST_DATUM_COPY(PointerGetDatum(value)));
	series->nulls[series->count][3] = false;
	series->points[series->count].x = DatumGetFloat8(SPI_getbinval(row, desc, 5, &isnull));
	series->points[series->count].y = point_height(value);
	series->count++;
	MemoryContextSwitchTo(old_context);
}

/*
 * metrics_timeseries(trial_id, metric_group, metric_name, max_points, start_batches,
 *					  end_batches, since, until)
 */
Datum
metrics_timeseries(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id", "metric_group", "metric_name", "max_points"};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MetricsStore store;
	Series		series = {.allocated = 1024};
	StoreRoute	route;
	char	   *group;
	int		   *chosen;
	int			nchosen;
	Datum		values[8];
	char		nulls[] = "        ";

	check_not_null(fcinfo, names, lengthof(names));
	if (PG_GETARG_INT32(3) < 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_points must be at least 2, got %d", PG_GETARG_INT32(3)),
				 errhint("The first and the last point of a series are always kept.")));

	InitMaterializedSRF(fcinfo, 0);
	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	group = text_to_cstring(PG_GETARG_TEXT_PP(1));
	for (int i = 0; i < 3; i++)
		values[i] = PG_GETARG_DATUM(i);
	values[3] = CStringGetTextDatum(group_document_key(group));
	for (int i = 4; i < 8; i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		if (PG_ARGISNULL(i))
			nulls[i] = 'n';
	}

	series.context = AllocSetContextCreate(CurrentMemoryContext, "metrics_ext series",
										   ALLOCSET_DEFAULT_SIZES);
	series.points = palloc_array(LttbPoint, series.allocated);
	series.values = palloc(series.allocated * sizeof(Datum[4]));
	series.nulls = palloc(series.allocated * sizeof(bool[4]));
	store_route(&store, group, &route);
	store_for_each(&store, &timeseries_query, route.literal, values, nulls,
				   add_point, &series);

	chosen = palloc_array(int, Min(series.count, PG_GETARG_INT32(3)) + 1);
	nchosen = lttb_select(series.points, series.count, chosen, PG_GETARG_INT32(3));
	for (int i = 0; i < nchosen; i++)
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc,
							 series.values[chosen[i]], series.nulls[chosen[i]]);
	SPI_finish();
	return (Datum) 0;
}

static const StoreQuery snapshot_query = {
	"SELECT trial_id, total_batches, end_time,"
	" CASE pg_catalog.jsonb_typeof(value) WHEN 'number' THEN value::float8"
	"  ELSE (value #>> '{}'::text[])::float8 END"
	" FROM (SELECT m.id, m.trial_id, m.total_batches, m.end_time,"
	"  m.metrics->$6->$3 AS value"
	"  FROM @store@.trials t JOIN @store@.metrics m ON m.trial_id = t.id"
	"  WHERE t.experiment_id = $1 AND m.metric_group = $2 AND NOT m.archived"
	"  AND m.partition_type OPERATOR(pg_catalog.=) @keys@ AND m.total_batches >= $4 AND m.total_batches <= $5"
	"  AND ($7 IS NULL OR m.end_time > $7)) AS snapshot"
	" WHERE pg_catalog.jsonb_typeof(value) = 'number' OR value IN ('\"NaN\"', '\"Infinity\"', '\"-Infinity\"')"
	" ORDER BY end_time, id",
	.reader = true, .nargs = 7,
	.argtypes = {INT4OID, TEXTOID, TEXTOID, INT4OID, INT4OID, TEXTOID, TIMESTAMPTZOID}
};

/*
 * metrics_trials_snapshot(experiment_id, metric_group, metric_name, batches_processed,
 *						   batches_margin, since)
 */
Datum
metrics_trials_snapshot(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"experiment_id", "metric_group", "metric_name",
	"batches_processed", "batches_margin"};
	MetricsStore store;
	StoreRoute	route;
	char	   *group;
	int32		batches;
	int32		margin;
	int32		upper;
	Datum		values[7];
	char		nulls[] = "       ";

	check_not_null(fcinfo, names, lengthof(names));
	group = text_to_cstring(PG_GETARG_TEXT_PP(1));
	batches = PG_GETARG_INT32(3);
	margin = PG_GETARG_INT32(4);
	if (margin > 100)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("margin must be <= 100"),
				 errdetail("batches_margin is %d.", margin),
				 errhint("Ask for a narrower window, or use metrics_timeseries().")));
	if (margin < 0 || batches < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("batches_processed and batches_margin must not be negative, got %d and %d",
						batches, margin),
				 errhint("Batches are counted from the start of a trial.")));
	if (pg_add_s32_overflow(batches, margin, &upper))
		upper = INT_MAX;

	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	for (int i = 0; i < 3; i++)
		values[i] = PG_GETARG_DATUM(i);
	values[3] = Int32GetDatum(Max(batches - margin, 0));
	values[4] = Int32GetDatum(upper);
	values[5] = CStringGetTextDatum(group_document_key(group));
	values[6] = PG_GETARG_DATUM(5);
	if (PG_ARGISNULL(5))
		nulls[6] = 'n';
	store_route(&store, group, &route);
	store_return_rows(fcinfo, &store, &snapshot_query, route.literal, values, nulls);
	SPI_finish();
	return (Datum) 0;
}

/*
 * Names of batch metrics come from the summaries; those of profiling metrics,
 * which are in no summary, from the rows.
 */
static const StoreQuery names_query = {
	"SELECT group_name, name, CASE WHEN pg_catalog.count(DISTINCT type) = 1 THEN pg_catalog.min(type) END"
	" FROM (SELECT CASE g.key WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN 'validation'"
	"   ELSE g.key END AS group_name, m.key AS name, m.value->>'type'::text AS type"
	"  FROM @store@.trials t, pg_catalog.jsonb_each(t.summary_metrics) g, pg_catalog.jsonb_each(g.value) m"
	"  WHERE t.experiment_id = $1"
	"  UNION ALL"
	"  SELECT m.metric_group, v.name, 'number'"
	"  FROM @store@.trials t JOIN @store@.metrics m ON m.trial_id = t.id,"
	"  @extension@.metrics_profiling_values(m.metrics) v"
	"  WHERE t.experiment_id = $1 AND NOT m.archived"
	"  AND m.partition_type OPERATOR(pg_catalog.=) ANY (ARRAY[@keys@])) AS names"
	" GROUP BY 1, 2 ORDER BY 1, 2",
	.reader = true, .nargs = 1, .argtypes = {INT4OID}
};

/* metrics_names(experiment_id) */
Datum
metrics_names(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"experiment_id"};
	Datum		values[] = {PG_GETARG_DATUM(0)};
	MetricsStore store;

	check_not_null(fcinfo, names, lengthof(names));
	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	store_return_rows(fcinfo, &store, &names_query, store_keys_of_kind(&store, "time"), values, NULL);
	SPI_finish();
	return (Datum) 0;
}
