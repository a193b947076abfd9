/*
 * query.c
 *	  Prepared queries against the store.
 *
 * All of them run with the rights of whoever calls, through SPI, so that
 * privileges, row security, triggers and foreign keys act as they would for
 * the same SQL.  Names are qualified, and operators are written so that
 * pg_catalog has an exact match for the types of their operands: no other
 * operator is taken instead, unless the caller has put its schema before
 * pg_catalog himself.
 *
 * What reports run is planned without sequential scans: a generic plan that was
 * made while a table was empty would outlive that.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "store/store.h"

/*
 * Cache of prepared plans, one for each query, schema and partition key.  It
 * needs no invalidation of its own: the plans do that themselves, and a schema
 * that is renamed is another entry.  It grows with the number of partition
 * keys, which the store bounds.
 */
typedef struct PlanKey
{
	const StoreQuery *query;	/* a static object, so its address is a name */
	Oid			registry;		/* tells one CREATE EXTENSION from the next */
	const char *schema;
	const char *keys;
} PlanKey;

typedef struct PlanEntry
{
	PlanKey		key;
	SPIPlanPtr	plan;
	uint32		hash;
	char		status;
} PlanEntry;

static uint32
plan_key_hash(const PlanKey *key)
{
	uint32		hash = hash_bytes((const unsigned char *) &key->query,
								  sizeof(key->query));

	hash = hash_combine(hash, hash_uint32(key->registry));
	hash = hash_combine(hash, hash_bytes((const unsigned char *) key->schema,
										 strlen(key->schema)));
	return hash_combine(hash, hash_bytes((const unsigned char *) key->keys,
										 strlen(key->keys)));
}

#define SH_PREFIX plans
#define SH_ELEMENT_TYPE PlanEntry
#define SH_KEY_TYPE PlanKey
#define SH_KEY key
#define SH_HASH_KEY(tb, key) plan_key_hash(&(key))
#define SH_EQUAL(tb, a, b) \
	((a).query == (b).query && (a).registry == (b).registry && \
	 strcmp((a).schema, (b).schema) == 0 && \
	 strcmp((a).keys, (b).keys) == 0)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static plans_hash *plan_cache = NULL;

/*
 * The text of a query with its placeholders filled in.  What is put in is not
 * looked at again, so it may contain anything.
 */
char *
store_query_text(const MetricsStore *store, const char *sql, const char *keys)
{
	const struct
	{
		const char *placeholder;
		const char *value;
	}			fillings[] = {
		{"@store@", quote_identifier(store->schema)},
		{"@extension@", quote_identifier(store->extension_schema)},
		{"@keys@", keys ? keys : ""},
	};
	StringInfoData buf;

	initStringInfo(&buf);
	for (const char *c = sql; *c;)
	{
		bool		filled = false;

		for (int i = 0; i < (int) lengthof(fillings) && !filled; i++)
		{
			size_t		len = strlen(fillings[i].placeholder);

			filled = strncmp(c, fillings[i].placeholder, len) == 0;
			if (filled)
			{
				appendStringInfoString(&buf, fillings[i].value);
				c += len;
			}
		}
		if (!filled)
			appendStringInfoChar(&buf, *c++);
	}
	return buf.data;
}

/*
 * The prepared plan of a query.  keys is SQL text for @keys@, or NULL.  Lives
 * as long as the session; needs an SPI connection.
 */
StorePlan
store_plan(const MetricsStore *store, const StoreQuery *query, const char *keys)
{
	PlanKey		key = {query, store->registry, store->schema, keys ? keys : ""};
	PlanEntry  *entry;
	bool		found;
	char	   *sql;
	SPIPlanPtr	plan;

	if (plan_cache == NULL)
		plan_cache = plans_create(TopMemoryContext, 64, NULL);

	entry = plans_lookup(plan_cache, key);
	if (entry != NULL)
		return entry->plan;

	sql = store_query_text(store, query->sql, key.keys);
	plan = SPI_prepare_cursor(sql, query->nargs, (Oid *) query->argtypes,
							  query->reader ? CURSOR_OPT_CUSTOM_PLAN : 0);
	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", sql,
			 SPI_result_code_string(SPI_result));
	SPI_keepplan(plan);

	/* Copied last: an entry, once there, must be whole. */
	key.schema = MemoryContextStrdup(TopMemoryContext, key.schema);
	key.keys = MemoryContextStrdup(TopMemoryContext, key.keys);
	entry = plans_insert(plan_cache, key, &found);
	entry->plan = plan;
	return plan;
}

static uint64
execute(const MetricsStore *store, const StoreQuery *query, const char *keys,
		Datum *values, const char *nulls, Snapshot snapshot)
{
	StorePlan	plan = store_plan(store, query, keys);
	bool		save_enable_seqscan = enable_seqscan;
	int			rc;

	PG_TRY();
	{
		enable_seqscan &= query->reader;
		rc = SPI_execute_snapshot(plan, values, nulls, snapshot, InvalidSnapshot,
								  query->reader, true, 0);
	}
	PG_FINALLY();
	{
		enable_seqscan = save_enable_seqscan;
	}
	PG_END_TRY();

	if (rc < 0)
		elog(ERROR, "could not execute \"%s\": %s", query->sql,
			 SPI_result_code_string(rc));
	return SPI_processed;
}

/*
 * Run a query and return the number of rows it gave or changed.  The rows
 * stand in SPI_tuptable, in the memory of the SPI connection.
 */
uint64
store_execute(const MetricsStore *store, const StoreQuery *query,
			  const char *keys, Datum *values, const char *nulls)
{
	return execute(store, query, keys, values, nulls, InvalidSnapshot);
}

/* The same as of a snapshot, for more than one query to see the same. */
uint64
store_execute_at(const MetricsStore *store, const StoreQuery *query, const char *keys,
				 Datum *values, Snapshot snapshot)
{
	return execute(store, query, keys, values, NULL, snapshot);
}

static Portal
open_cursor(const MetricsStore *store, const StoreQuery *query, const char *keys,
			Datum *values, const char *nulls)
{
	StorePlan	plan = store_plan(store, query, keys);
	bool		save_enable_seqscan = enable_seqscan;
	Portal		portal;

	PG_TRY();
	{
		enable_seqscan &= query->reader;
		portal = SPI_cursor_open(NULL, plan, values, nulls, query->reader);
	}
	PG_FINALLY();
	{
		enable_seqscan = save_enable_seqscan;
	}
	PG_END_TRY();
	return portal;
}

/*
 * Run a query and call back for each of its rows, without holding more than a
 * few of them.  The callback runs in a memory context that is reset after
 * each row.
 */
void
store_for_each(const MetricsStore *store, const StoreQuery *query,
			   const char *keys, Datum *values, const char *nulls,
			   StoreRowCallback callback, void *arg)
{
	Portal		portal = open_cursor(store, query, keys, values, nulls);
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext,
													  "metrics_ext row",
													  ALLOCSET_DEFAULT_SIZES);
	SPITupleTable *rows;

	for (;;)
	{
		SPI_cursor_fetch(portal, true, 100);
		rows = SPI_tuptable;
		if (SPI_processed == 0)
			break;

		for (uint64 i = 0; i < rows->numvals; i++)
		{
			MemoryContext old_context = MemoryContextSwitchTo(row_context);

			CHECK_FOR_INTERRUPTS();
			callback(rows->vals[i], rows->tupdesc, arg);
			MemoryContextSwitchTo(old_context);
			MemoryContextReset(row_context);
		}
		SPI_freetuptable(rows);
	}

	MemoryContextDelete(row_context);
	SPI_cursor_close(portal);
}

static void
put_row(HeapTuple row, TupleDesc desc, void *arg)
{
	(void) desc;
	tuplestore_puttuple(((ReturnSetInfo *) arg)->setResult, row);
}

/*
 * Return the rows of a query from a set-returning function.  Needs no SPI
 * connection but makes one, so values may come from the caller's.
 */
void
store_return_rows(FunctionCallInfo fcinfo, const MetricsStore *store, const StoreQuery *query,
				  const char *keys, Datum *values, const char *nulls)
{
	bool		scalar = get_call_result_type(fcinfo, NULL, NULL) == TYPEFUNC_SCALAR;

	InitMaterializedSRF(fcinfo, scalar ? MAT_SRF_USE_EXPECTED_DESC : 0);
	SPI_connect();
	store_for_each(store, query, keys, values, nulls, put_row, fcinfo->resultinfo);
	SPI_finish();
}

/* A column, counted from 1, of the first row that the last query returned. */
Datum
store_column(int column, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column,
						 isnull);
}

static const StoreQuery keys_of_kind_query = {
	"SELECT pg_catalog.string_agg(pg_catalog.quote_literal(partition_key) || $2, ', ' ORDER BY partition_key)"
	" FROM @store@.metrics_partition_kind WHERE kind = $1",
	.reader = true, .nargs = 2, .argtypes = {TEXTOID, TEXTOID}
};

/*
 * The partition keys of a kind, batch or time, as SQL literals in a list: a
 * query names what it wants, so that the planner leaves out the others.
 */
const char *
store_keys_of_kind(const MetricsStore *store, const char *kind)
{
	const char *cast = store_key_cast(store);
	Datum		values[] = {CStringGetTextDatum(kind), CStringGetTextDatum(cast)};
	bool		isnull;
	Datum		keys;

	store_execute(store, &keys_of_kind_query, NULL, values, NULL);
	keys = store_column(1, &isnull);
	return isnull ? psprintf("NULL%s", cast) : TextDatumGetCString(keys);
}
