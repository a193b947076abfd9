/*
 * failure.c
 *	  What maintenance could not do: rows of metrics_failure, which say when it is
 *	  tried again.
 *
 * All needs an SPI connection.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "nodes/value.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "maintenance/maintenance.h"

static const StoreQuery failed_query = {
	"INSERT INTO @store@.metrics_failure AS f (parent, partition_key, failed_at, next_attempt, sqlstate, message)"
	" SELECT $1, $2, pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp() + $5, $3, $4"
	" FROM @store@.metrics_managed_table WHERE parent OPERATOR(pg_catalog.=) $1 FOR KEY SHARE"
	" ON CONFLICT ON CONSTRAINT metrics_failure_parent_partition_key_key DO UPDATE"
	" SET attempts = f.attempts + 1, failed_at = EXCLUDED.failed_at, sqlstate = EXCLUDED.sqlstate,"
	" message = EXCLUDED.message, next_attempt = EXCLUDED.failed_at +"
	"  LEAST($5 * pg_catalog.power(2, LEAST(f.attempts, 20)), $6)",
	.nargs = 6, .argtypes = {REGCLASSOID, TEXTOID, TEXTOID, TEXTOID, INTERVALOID, INTERVALOID}
};

static Datum
seconds(double value)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = (int64) (value * USECS_PER_SEC);
	return IntervalPGetDatum(interval);
}

/* A table for a message, whether or not it exists. */
char *
table_text(Oid relid)
{
	return get_rel_name(relid) ? qualified_name(relid) : psprintf("table with OID %u", relid);
}

/*
 * Write down that something failed, if the table is still managed: the next
 * attempt is after a second, then two, four and so on, give or take a quarter, up
 * to an hour.  A lock that was not to be had is asked for more often.
 */
void
note_failure(const MetricsStore *store, Oid parent, const char *key, const ErrorData *error)
{
	double		jitter = 0.75 + 0.5 * pg_prng_double(&pg_global_prng_state);
	double		longest = is_contention(error) ? 10 : 3600;
	char	   *subject = key ? psprintf("%s, key \"%s\"", table_text(parent), key) : table_text(parent);
	Datum		values[6];
	char		nulls[] = "      ";

	values[0] = ObjectIdGetDatum(parent);
	if (key)
		values[1] = CStringGetTextDatum(key);
	else
		nulls[1] = 'n';
	values[2] = CStringGetTextDatum(unpack_sql_state(error->sqlerrcode));
	values[3] = CStringGetTextDatum(error->hint ? psprintf("%s (%s)", error->message, error->hint) :
									error->message);
	values[4] = seconds(jitter);
	values[5] = seconds(longest * jitter);
	managed_execute(store, &failed_query, values, nulls);

	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("maintenance of %s: %s", subject, error->message),
			 error->hint ? errhint("%s", error->hint) : 0));
}

static const StoreQuery succeeded_query = {
	"DELETE FROM @store@.metrics_failure"
	" WHERE parent OPERATOR(pg_catalog.=) $1 AND partition_key IS NOT DISTINCT FROM $2",
	.nargs = 2, .argtypes = {REGCLASSOID, TEXTOID}
};

/* Write down that there is nothing to be tried again. */
void
note_success(const MetricsStore *store, Oid parent, const char *key)
{
	Datum		values[2] = {ObjectIdGetDatum(parent), key ? CStringGetTextDatum(key) : (Datum) 0};

	managed_execute(store, &succeeded_query, values, key ? "  " : " n");
}

static const StoreQuery forget_failures_query = {
	"DELETE FROM @store@.metrics_failure"
	" WHERE parent OPERATOR(pg_catalog.=) $1 AND partition_key <> ALL ($2)",
	.nargs = 2, .argtypes = {REGCLASSOID, TEXTARRAYOID}
};

/* Forget failures of keys that are not among those with rows to move: others moved or deleted them. */
void
forget_failures(const MetricsStore *store, Oid parent, List *keys)
{
	Datum	   *texts = palloc_array(Datum, list_length(keys) + 1);
	Datum		values[2];
	ListCell   *cell;

	foreach(cell, keys)
		texts[foreach_current_index(cell)] = CStringGetTextDatum(lfirst(cell));
	values[0] = ObjectIdGetDatum(parent);
	values[1] = PointerGetDatum(construct_array(texts, list_length(keys), TEXTOID, -1, false, TYPALIGN_INT));
	managed_execute(store, &forget_failures_query, values, NULL);
}

static const StoreQuery forget_pending_failures_query = {
	"DELETE FROM @store@.metrics_failure f"
	" WHERE parent OPERATOR(pg_catalog.=) $1 AND partition_key IS NOT NULL"
	"  AND NOT EXISTS (SELECT FROM @store@.metrics_pending p WHERE p.partition_type = f.partition_key)",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

/* The same where pending rows are what moves. */
void
forget_pending_failures(const MetricsStore *store)
{
	Datum		values[] = {ObjectIdGetDatum(store->metrics)};

	managed_execute(store, &forget_pending_failures_query, values, NULL);
}

static const StoreQuery waiting_keys_query = {
	"SELECT partition_key FROM @store@.metrics_failure WHERE parent OPERATOR(pg_catalog.=) $1"
	" AND partition_key IS NOT NULL AND next_attempt > pg_catalog.clock_timestamp()",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

/* The keys of a table that failed and have to wait. */
List *
waiting_keys(const MetricsStore *store, Oid parent)
{
	Datum		values[] = {ObjectIdGetDatum(parent)};
	List	   *keys = NIL;

	managed_execute(store, &waiting_keys_query, values, NULL);
	for (uint64 row = 0; row < SPI_processed; row++)
		keys = lappend(keys, makeString(SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1)));
	return keys;
}
