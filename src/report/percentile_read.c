/*
 * percentile_read.c
 *	  Percentiles over the store: of one metric, and of the latencies of operators.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/trial.h"

PG_FUNCTION_INFO_V1(metrics_percentiles_read);
PG_FUNCTION_INFO_V1(metrics_operator_percentiles);

/*
 * Buckets are counted from Monday, 3 January 2000, 00:00 UTC, so that buckets
 * of a week begin on Mondays.
 */
#define BUCKET_ORIGIN "'2000-01-03 00:00:00+00'::timestamptz"

#define SELECT_PERCENTILES \
	"SELECT bucket, n, p[1], p[2], p[3], p[4], p[5] FROM (" \
	"SELECT bucket, pg_catalog.count(value) AS n," \
	" @extension@.metrics_percentiles(value, '{0,0.5,0.95,0.99,1}'::float8[]) AS p FROM ("

#define SELECT_BUCKET \
	"SELECT pg_catalog.date_bin($6, m.end_time, " BUCKET_ORIGIN ") AS bucket, "

#define WHERE_ROWS \
	" WHERE m.metric_group = $1 AND NOT m.archived AND m.partition_type OPERATOR(pg_catalog.=) @keys@" \
	" AND ($3 IS NULL OR m.trial_id = $3)" \
	" AND ($4 IS NULL OR m.end_time >= $4) AND ($5 IS NULL OR m.end_time < $5)"

/* With OFFSET, which no planner looks through, the value is looked up once. */
#define GROUP_BUCKETS \
	" OFFSET 0) AS numbers WHERE value IS NOT NULL GROUP BY bucket) AS buckets ORDER BY bucket"

static const StoreQuery batch_query = {
	SELECT_PERCENTILES SELECT_BUCKET "@extension@.metrics_number(m.metrics, ARRAY[$7, $2]) AS value"
	" FROM @store@.metrics m" WHERE_ROWS GROUP_BUCKETS,
	.reader = true, .nargs = 7,
	.argtypes = {TEXTOID, TEXTOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID, TEXTOID}
};

/* Of all agents and devices. */
static const StoreQuery profiling_query = {
	SELECT_PERCENTILES SELECT_BUCKET "v.value"
	" FROM @store@.metrics m, @extension@.metrics_profiling_values(m.metrics) v"
	WHERE_ROWS " AND v.name = $2" GROUP_BUCKETS,
	.reader = true, .nargs = 6,
	.argtypes = {TEXTOID, TEXTOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID}
};

/* Refuse a bucket that date_bin() would refuse, in terms of our arguments. */
static void
check_bucket(const Interval *bucket)
{
	if (bucket->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("bucket must not contain months or years"),
				 errhint("Use days or weeks, for instance '30 days'.")));
	if (bucket->day < 0 || bucket->time < 0 || (bucket->day == 0 && bucket->time == 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bucket must be greater than zero"),
				 errhint("For example '1 hour'.")));
}

/* metrics_percentiles(metric_group, metric_name, trial_id, since, until, bucket) */
Datum
metrics_percentiles_read(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"metric_group", "metric_name"};
	MetricsStore store;
	StoreRoute	route;
	const char *group;
	Datum		values[7];
	char		nulls[] = "       ";

	for (int i = 0; i < 6; i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		if (PG_ARGISNULL(i))
			nulls[i] = 'n';
	}
	check_not_null(fcinfo, names, lengthof(names));
	if (!PG_ARGISNULL(5))
		check_bucket(PG_GETARG_INTERVAL_P(5));

	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	group = text_to_cstring(PG_GETARG_TEXT_PP(0));
	values[6] = CStringGetTextDatum(group_document_key(group));
	store_route(&store, group, &route);
	store_return_rows(fcinfo, &store, route.by_time ? &profiling_query : &batch_query,
					  route.literal, values, nulls);
	SPI_finish();
	return (Datum) 0;
}

/* A parameter that is NULL is folded away, so that what remains finds partitions and indexes. */
static const StoreQuery operator_query = {
	"SELECT t.bucket, t.stage_name, t.operator_name, t.input_records, t.total_time,"
	" COALESCE(@extension@.metrics_count(t.sketch), 0), @extension@.metrics_latency(t.sketch::bytea, 0),"
	" @extension@.metrics_latency(t.sketch::bytea, 0.5), @extension@.metrics_latency(t.sketch::bytea, 0.95),"
	" @extension@.metrics_latency(t.sketch::bytea, 0.99), @extension@.metrics_latency(t.sketch::bytea, 1) FROM ("
	"SELECT pg_catalog.date_bin($1, o.at, " BUCKET_ORIGIN ") AS bucket, o.stage_name, o.operator_name,"
	" pg_catalog.sum(o.input_records)::bigint AS input_records, pg_catalog.sum(o.total_time) AS total_time,"
	" @extension@.metrics_sketch_merge(o.latency_sketch::@extension@.metrics_sketch) AS sketch"
	" FROM @store@.pipeline_operators o"
	" WHERE ($2 IS NULL OR o.stage_name = $2) AND ($3 IS NULL OR o.operator_name = $3) AND ($4 IS NULL OR o.run_id = $4)"
	" AND ($5 IS NULL OR o.at >= $5) AND ($6 IS NULL OR o.at < $6)"
	" GROUP BY 1, 2, 3) t ORDER BY 1, 2, 3",
	.reader = true, .nargs = 6,
	.argtypes = {INTERVALOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID}
};

/* metrics_operator_percentiles(bucket, stage_name, operator_name, run_id, since, until) */
Datum
metrics_operator_percentiles(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"bucket"};
	MetricsStore store;
	Datum		values[6];
	char		nulls[] = "      ";

	check_not_null(fcinfo, names, lengthof(names));
	check_bucket(PG_GETARG_INTERVAL_P(0));
	for (int i = 0; i < 6; i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		if (PG_ARGISNULL(i))
			nulls[i] = 'n';
	}
	store_open_since(fcinfo, AccessShareLock, LAYOUT_1_4, &store);
	store_return_rows(fcinfo, &store, &operator_query, NULL, values, nulls);
	return (Datum) 0;
}
