/*
 * perf_read.c
 *	  Reading performance data: metrics_perf_data(), metrics_perf_signatures(),
 *	  metrics_perf_compare().
 *
 * A look-up by job or by push asks performance_run first: which runs, and
 * between which times their measurements lie.  So it touches only the partition
 * of the repository and, in there, only the slices of those times, however long
 * the history is.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/perf.h"

PG_FUNCTION_INFO_V1(metrics_perf_data);
PG_FUNCTION_INFO_V1(metrics_perf_signatures);
PG_FUNCTION_INFO_V1(metrics_perf_compare);

/* Some runs, and the times of the first and the last of their measurements. */
typedef struct RunSet
{
	Datum		ids;			/* bigint[] */
	Datum		first;
	Datum		last;
} RunSet;

static const StoreQuery find_runs_query = {
	"SELECT pg_catalog.array_agg(id), min(first_timestamp), max(last_timestamp)"
	" FROM @store@.performance_run WHERE repository = $1"
	" AND ($2 IS NULL OR push_id = ANY ($2)) AND ($3 IS NULL OR job_id = ANY ($3))",
	.reader = true, .nargs = 3, .argtypes = {TEXTOID, INT8ARRAYOID, INT8ARRAYOID}
};

/* The runs of pushes, of jobs, or of both; false if there are none. */
static bool
find_runs(const MetricsStore *store, Datum repository, const NullableDatum *pushes,
		  const NullableDatum *jobs, RunSet *runs)
{
	Datum		values[] = {repository, pushes->value, jobs->value};
	char		nulls[] = {' ', pushes->isnull ? 'n' : ' ', jobs->isnull ? 'n' : ' '};
	bool		isnull;

	store_execute(store, &find_runs_query, NULL, values, nulls);
	runs->ids = store_column(1, &isnull);
	if (isnull)
		return false;
	runs->first = store_column(2, &isnull);
	runs->last = store_column(3, &isnull);
	return true;
}

/*
 * $1 repository, $2 signatures, $3 runs and between $4 and $5 their times, $6
 * and $7 open interval, $8 without retriggers, $9 with replicates.  What is NULL
 * or false is no condition in the plan.
 */
static const StoreQuery data_query = {
	"SELECT d.signature_id, d.push_timestamp, d.push_id, p.revision, r.job_id,"
	" COALESCE(x.value, d.value), x.number::integer, r.machine, r.submit_time, d.multi_commit"
	" FROM (SELECT *, pg_catalog.row_number() OVER (PARTITION BY signature_id, push_id ORDER BY push_timestamp, run_id) AS place"
	"  FROM @store@.performance_datum"
	"  WHERE repository = $1 AND ($2 IS NULL OR signature_id = ANY ($2))"
	"  AND ($3 IS NULL OR (run_id = ANY ($3) AND push_timestamp >= $4 AND push_timestamp <= $5))"
	"  AND ($6 IS NULL OR push_timestamp > $6) AND ($7 IS NULL OR push_timestamp < $7)) d"
	" JOIN @store@.performance_run r ON r.id = d.run_id"
	" JOIN @store@.performance_push p ON p.id = d.push_id"
	" LEFT JOIN LATERAL pg_catalog.unnest(CASE WHEN $9 THEN d.replicates END) WITH ORDINALITY AS x (value, number) ON true"
	" WHERE NOT $8 OR d.place = 1"
	" ORDER BY d.signature_id, d.push_timestamp, d.push_id, d.run_id, x.number",
	.reader = true, .nargs = 9, .argtypes = {TEXTOID, INT4ARRAYOID, INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID, BOOLOID}
};

/* Where the interval begins: since, or so long before now. */
static NullableDatum
interval_begin(const NullableDatum *since, const NullableDatum *until, const NullableDatum *age)
{
	NullableDatum begin = *since;

	if (age->isnull)
		return begin;
	if (!since->isnull || !until->isnull)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("age cannot be given together with since or until"),
				 errhint("An interval is either so long up to now, or between two times.")));
	begin.value = DirectFunctionCall2(timestamptz_mi_interval,
									  TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()), age->value);
	begin.isnull = false;
	return begin;
}

/*
 * metrics_perf_data(repository, signature_ids, push_ids, job_ids, since, until,
 * age, no_retriggers, replicates) → setof (…)
 */
Datum
metrics_perf_data(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", NULL, NULL, NULL, NULL, NULL, NULL, "no_retriggers", "replicates"};
	NullableDatum *args = fcinfo->args;
	MetricsStore store;
	RunSet		runs = {0};
	NullableDatum begin;
	Datum		values[9] = {0};
	char		nulls[] = "         ";
	bool		by_run = !args[2].isnull || !args[3].isnull;

	check_not_null(fcinfo, names, lengthof(names));
	if (args[1].isnull && !by_run)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("signature_ids, push_ids or job_ids must be given"),
				 errhint("metrics_perf_signatures() lists the series of a repository.")));
	begin = interval_begin(&args[4], &args[5], &args[6]);

	perf_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	if (by_run && !find_runs(&store, args[0].value, &args[2], &args[3], &runs))
	{
		SPI_finish();
		InitMaterializedSRF(fcinfo, 0);
		return (Datum) 0;
	}
	values[0] = args[0].value;
	values[1] = args[1].value;
	values[2] = runs.ids;
	values[3] = runs.first;
	values[4] = runs.last;
	values[5] = begin.value;
	values[6] = args[5].value;
	values[7] = args[7].value;
	values[8] = args[8].value;
	nulls[1] = args[1].isnull ? 'n' : ' ';
	nulls[2] = nulls[3] = nulls[4] = by_run ? ' ' : 'n';
	nulls[5] = begin.isnull ? 'n' : ' ';
	nulls[6] = args[5].isnull ? 'n' : ' ';
	store_return_rows(fcinfo, &store, &data_query, NULL, values, nulls);
	SPI_finish();
	return (Datum) 0;
}

static const StoreQuery signatures_query = {
	"SELECT s.id, s.signature_hash, f.name, s.application, p.name, o.options, o.hash, s.suite, s.test, s.extra_options,"
	" s.parent_id, s.has_subtests, s.lower_is_better, s.measurement_unit, s.tags, a.last_updated"
	" FROM @store@.performance_signature s"
	" JOIN @store@.performance_activity a ON a.signature_id = s.id"
	" JOIN @store@.performance_framework f ON f.id = s.framework_id"
	" JOIN @store@.performance_platform p ON p.id = s.platform_id"
	" JOIN @store@.performance_option_collection o ON o.id = s.option_collection_id"
	" WHERE s.repository = $1 AND ($2 IS NULL OR f.name = $2) AND ($3 IS NULL OR p.name = $3)"
	" AND ($4 IS NULL OR s.signature_hash = $4) AND ($5 IS NULL OR s.parent_id = $5)"
	" AND ($6 IS NULL OR (s.parent_id IS NOT NULL) = $6)"
	" AND ($7 IS NULL OR a.last_updated >= $7) AND ($8 IS NULL OR a.last_updated <= $8)"
	" ORDER BY s.id",
	.reader = true, .nargs = 8, .argtypes = {TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT4OID, BOOLOID,
	TIMESTAMPTZOID, TIMESTAMPTZOID}
};

/*
 * metrics_perf_signatures(repository, framework, platform, signature_hash,
 * parent_id, subtests, since, until) → setof (…)
 */
Datum
metrics_perf_signatures(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository"};
	MetricsStore store;
	Datum		values[8];
	char		nulls[8];

	check_not_null(fcinfo, names, lengthof(names));
	for (int i = 0; i < 8; i++)
	{
		values[i] = fcinfo->args[i].value;
		nulls[i] = fcinfo->args[i].isnull ? 'n' : ' ';
	}
	perf_open(fcinfo, AccessShareLock, &store);
	store_return_rows(fcinfo, &store, &signatures_query, NULL, values, nulls);
	return (Datum) 0;
}

#define COMPARED_COLUMNS \
	"side, id, framework_id, application, platform_id, option_collection_id, suite, test, extra_options," \
	" measurement_unit, lower_is_better, measured"

/*
 * Of each side ($1 to $4, and $5 to $8) the measurements of each series, of
 * series that differ in no more than their parent those of the latest one; and
 * what stands on either side compared.
 */
static const StoreQuery compare_query = {
	"WITH point AS ("
	" SELECT 0 AS side, * FROM @store@.performance_datum"
	" WHERE repository = $1 AND run_id = ANY ($2) AND push_timestamp >= $3 AND push_timestamp <= $4"
	" UNION ALL"
	" SELECT 1, * FROM @store@.performance_datum"
	" WHERE repository = $5 AND run_id = ANY ($6) AND push_timestamp >= $7 AND push_timestamp <= $8"
	"), sample AS ("
	" SELECT side, signature_id, pg_catalog.array_agg(COALESCE(x.value, d.value)"
	"  ORDER BY push_timestamp, push_id, run_id, x.number) AS measured"
	" FROM point d LEFT JOIN LATERAL pg_catalog.unnest(CASE WHEN $11 THEN d.replicates END)"
	"  WITH ORDINALITY AS x (value, number) ON true"
	" GROUP BY side, signature_id"
	"), series AS ("
	" SELECT DISTINCT ON (side, framework_id, application, platform_id, option_collection_id, suite, test, extra_options) "
	COMPARED_COLUMNS
	" FROM sample JOIN @store@.performance_signature s ON s.id = signature_id"
	" WHERE $10 OR test = ''"
	" ORDER BY side, framework_id, application, platform_id, option_collection_id, suite, test, extra_options, id DESC"
	"), pair AS ("
	" SELECT b.id AS base_id, n.id AS new_id, b.measured AS base_measured, n.measured AS new_measured,"
	"  COALESCE(n.framework_id, b.framework_id) AS framework_id, COALESCE(n.application, b.application) AS application,"
	"  COALESCE(n.platform_id, b.platform_id) AS platform_id,"
	"  COALESCE(n.option_collection_id, b.option_collection_id) AS option_collection_id,"
	"  COALESCE(n.suite, b.suite) AS suite, COALESCE(n.test, b.test) AS test,"
	"  COALESCE(n.extra_options, b.extra_options) AS extra_options,"
	"  COALESCE(n.measurement_unit, b.measurement_unit) AS measurement_unit,"
	"  COALESCE(n.lower_is_better, b.lower_is_better) AS lower_is_better"
	" FROM (SELECT * FROM series WHERE side = 0) b FULL JOIN (SELECT * FROM series WHERE side = 1) n"
	" ON b.framework_id = n.framework_id AND b.application = n.application AND b.platform_id = n.platform_id"
	" AND b.option_collection_id = n.option_collection_id AND b.suite = n.suite AND b.test = n.test"
	" AND b.extra_options OPERATOR(pg_catalog.=) n.extra_options"
	")"
	" SELECT base_id, new_id, f.name, p.name, o.options, application, suite, test, extra_options,"
	" measurement_unit, lower_is_better, c.*"
	" FROM pair JOIN @store@.performance_framework f ON f.id = framework_id"
	" JOIN @store@.performance_platform p ON p.id = platform_id"
	" JOIN @store@.performance_option_collection o ON o.id = option_collection_id"
	" CROSS JOIN LATERAL @extension@.metrics_compare(base_measured, new_measured, lower_is_better, $12) c"
	" WHERE $9 IS NULL OR f.name = $9"
	" ORDER BY f.name, suite, test, p.name, o.options, extra_options, application",
	.reader = true, .nargs = 12, .argtypes = {TEXTOID, INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
		TEXTOID, INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, BOOLOID, BOOLOID,
	INT4OID}
};

/*
 * metrics_perf_compare(repository, base_pushes, new_pushes, new_repository,
 * framework, subtests, replicates, resamples) → setof (…)
 */
Datum
metrics_perf_compare(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", "base_pushes", "new_pushes", NULL, NULL,
	"subtests", "replicates", "resamples"};
	NullableDatum *args = fcinfo->args;
	const NullableDatum no_jobs = {.isnull = true};
	MetricsStore store;
	Datum		repositories[2];
	Datum		values[12] = {0};
	char		nulls[] = "            ";

	check_not_null(fcinfo, names, lengthof(names));
	repositories[0] = args[0].value;
	repositories[1] = args[3].isnull ? args[0].value : args[3].value;

	perf_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	for (int side = 0; side < 2; side++)
	{
		RunSet		runs = {0};
		char		null = find_runs(&store, repositories[side], &args[1 + side], &no_jobs, &runs) ? ' ' : 'n';

		values[4 * side] = repositories[side];
		values[4 * side + 1] = runs.ids;
		values[4 * side + 2] = runs.first;
		values[4 * side + 3] = runs.last;
		memset(&nulls[4 * side + 1], null, 3);
	}
	for (int i = 4; i < 8; i++)
		values[4 + i] = args[i].value;
	nulls[8] = args[4].isnull ? 'n' : ' ';
	store_return_rows(fcinfo, &store, &compare_query, NULL, values, nulls);
	SPI_finish();
	return (Datum) 0;
}
