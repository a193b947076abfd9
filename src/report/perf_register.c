/*
 * perf_register.c
 *	  What measurements refer to: metrics_add_framework(),
 *	  metrics_add_repository(), metrics_add_push().
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "args.h"
#include "partition/partition.h"
#include "report/perf.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(metrics_add_framework);
PG_FUNCTION_INFO_V1(metrics_add_repository);
PG_FUNCTION_INFO_V1(metrics_add_push);

/* Open a store that has the tables of performance data. */
void
perf_open(FunctionCallInfo fcinfo, LOCKMODE lockmode, MetricsStore *store)
{
	store_open(fcinfo, lockmode, store);
	if (store->layout < LAYOUT_1_5)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the metrics store in schema \"%s\" has layout %s, which knows no performance data",
						store->schema, layout_name(store->layout)),
				 errhint("Call metrics_upgrade_store().")));
}

/*
 * Find a row, or make it: whoever makes it first, it is there when the second
 * query has run.  The row stands in SPI_tuptable.
 */
void
perf_find_or_create(const MetricsStore *store, const StoreQuery *find,
					const StoreQuery *create, Datum *values, const char *nulls)
{
	for (int attempt = 0; store_execute(store, find, NULL, values, nulls) == 0; attempt++)
	{
		CHECK_FOR_INTERRUPTS();
		if (attempt == 10)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("a row of performance data vanishes as soon as it is written"),
					 errhint("Look for a trigger or a policy on the tables in schema \"%s\".",
							 store->schema)));
		store_execute(store, create, NULL, values, nulls);
	}
}

/* The same where the first column is the id that is wanted. */
Datum
perf_get_id(const MetricsStore *store, const StoreQuery *find,
			const StoreQuery *create, Datum *values, const char *nulls)
{
	bool		isnull;

	perf_find_or_create(store, find, create, values, nulls);
	return store_column(1, &isnull);
}

/* The error for a repository that nobody has added. */
void
perf_unknown_repository(const char *repository)
{
	ereport(ERROR,
			(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
			 errmsg("unknown repository \"%s\"", repository),
			 errhint("Call metrics_add_repository() first.")));
}

/* A name that is not empty, or an error that says which. */
static void
check_name(FunctionCallInfo fcinfo, int number, const char *name, int max_length)
{
	char	   *given = text_to_cstring(PG_GETARG_TEXT_PP(number));

	if (given[0] == '\0' || strlen(given) > (size_t) max_length)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must have 1 to %d bytes, got %zu", name, max_length, strlen(given)),
				 errhint("Give a name.")));
}

static const StoreQuery add_framework_query = {
	"INSERT INTO @store@.performance_framework AS f (name, enabled) VALUES ($1, $2)"
	" ON CONFLICT (name) DO UPDATE SET enabled = EXCLUDED.enabled RETURNING id",
	.nargs = 2, .argtypes = {TEXTOID, BOOLOID}
};

/* metrics_add_framework(name, enabled) → integer */
Datum
metrics_add_framework(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"name", "enabled"};
	Datum		values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
	MetricsStore store;
	bool		isnull;
	Datum		id;

	check_not_null(fcinfo, names, lengthof(names));
	check_name(fcinfo, 0, names[0], 255);
	PreventCommandIfReadOnly("metrics_add_framework()");
	perf_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	store_execute(&store, &add_framework_query, NULL, values, NULL);
	id = store_column(1, &isnull);
	SPI_finish();
	PG_RETURN_DATUM(id);
}

/*
 * The partition of performance_datum for a repository, which is made if it is
 * not there.  Its unique key holds what it may be split by later, the time.
 */
static Oid
add_datum_partition(const MetricsStore *store, const char *repository)
{
	Oid			datum = store_relation(store, "performance_datum");
	PartitionAdded added;

	partition_add(datum, repository, datum, false, &added);
	if (added.created)
		run_sql("ALTER TABLE %1$s ADD UNIQUE (signature_id, push_timestamp, run_id);"
				"CREATE INDEX ON %1$s (run_id)", qualified_name(added.partition));
	return added.partition;
}

static const StoreQuery add_repository_query = {
	"INSERT INTO @store@.performance_repository (name, alerts_enabled, is_try, keep) VALUES ($1, $2, $3, $4)"
	" ON CONFLICT (name) DO UPDATE SET alerts_enabled = EXCLUDED.alerts_enabled, is_try = EXCLUDED.is_try,"
	" keep = EXCLUDED.keep",
	.nargs = 4, .argtypes = {TEXTOID, BOOLOID, BOOLOID, INTERVALOID}
};

/* metrics_add_repository(name, alerts_enabled, is_try, keep) → regclass */
Datum
metrics_add_repository(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"name", "alerts_enabled", "is_try", NULL};
	Datum		values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2), PG_GETARG_DATUM(3)};
	char		nulls[] = {' ', ' ', ' ', PG_ARGISNULL(3) ? 'n' : ' '};
	MetricsStore store;
	Oid			partition;

	check_not_null(fcinfo, names, lengthof(names));
	check_name(fcinfo, 0, names[0], 50);
	PreventCommandIfReadOnly("metrics_add_repository()");
	perf_open(fcinfo, RowExclusiveLock, &store);
	store_check_owner(&store);
	SPI_connect();
	/* The row first: another who adds the same repository waits here. */
	store_execute(&store, &add_repository_query, NULL, values, nulls);
	partition = add_datum_partition(&store, TextDatumGetCString(values[0]));
	SPI_finish();
	PG_RETURN_OID(partition);
}

static const StoreQuery find_push_query = {
	"SELECT id, push_time FROM @store@.performance_push WHERE repository = $1 AND revision = $2",
	.nargs = 4, .argtypes = {TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID}
};

static const StoreQuery create_push_query = {
	"INSERT INTO @store@.performance_push (repository, revision, push_time, author)"
	" SELECT name, $2, $3, $4 FROM @store@.performance_repository WHERE name = $1"
	" ON CONFLICT (repository, revision) DO NOTHING",
	.nargs = 4, .argtypes = {TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID}
};

static const StoreQuery find_repository_query = {
	"SELECT 1 FROM @store@.performance_repository WHERE name = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

/* metrics_add_push(repository, revision, push_time, author) → bigint */
Datum
metrics_add_push(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", "revision", "push_time", NULL};
	Datum		values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2), PG_GETARG_DATUM(3)};
	char		nulls[] = {' ', ' ', ' ', PG_ARGISNULL(3) ? 'n' : ' '};
	MetricsStore store;
	bool		isnull;
	Datum		id;

	check_not_null(fcinfo, names, lengthof(names));
	check_name(fcinfo, 1, names[1], 40);
	if (TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(2)))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("push_time must be finite"),
				 errhint("It is the place of the push on the axis of time.")));
	PreventCommandIfReadOnly("metrics_add_push()");
	perf_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	if (store_execute(&store, &find_repository_query, NULL, values, NULL) == 0)
		perf_unknown_repository(TextDatumGetCString(values[0]));
	id = perf_get_id(&store, &find_push_query, &create_push_query, values, nulls);
	if (DatumGetTimestampTz(store_column(2, &isnull)) != PG_GETARG_TIMESTAMPTZ(2))
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("push \"%s\" of repository \"%s\" has another time already",
						TextDatumGetCString(values[1]), TextDatumGetCString(values[0])),
				 errhint("A push happens once; to correct its time, update it in \"%s.performance_push\" before it has measurements.",
						 store.schema)));
	SPI_finish();
	PG_RETURN_DATUM(id);
}
