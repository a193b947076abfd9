/*
 * managed.c
 *	  Managed tables, the store's own and those of users, and their partitions one
 *	  at a time.
 *
 * That a table is managed, and what was made for it, is written in the store.
 * What is done to a table is done as its owner, so the owner of the store must
 * be able to act as that role: who may write the store's tables cannot reach
 * through them what he could not do himself.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "args.h"
#include "compat.h"
#include "guc.h"
#include "maintenance/maintenance.h"
#include "sql.h"
#include "worker/worker.h"

PG_FUNCTION_INFO_V1(metrics_manage_partitions);
PG_FUNCTION_INFO_V1(metrics_unmanage_partitions);
PG_FUNCTION_INFO_V1(metrics_add_partition);
PG_FUNCTION_INFO_V1(metrics_add_partition_to_table);
PG_FUNCTION_INFO_V1(metrics_drop_partition);
PG_FUNCTION_INFO_V1(metrics_drop_partition_of_table);
PG_FUNCTION_INFO_V1(metrics_partition_key);
PG_FUNCTION_INFO_V1(metrics_partitions);

/* Open the store for a function that maintains partitions. */
void
managed_open_store(FunctionCallInfo fcinfo, MetricsStore *store)
{
	store_open(fcinfo, AccessShareLock, store);
	if (store->layout < LAYOUT_1_3)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("partitions are not managed in store layout %s", layout_name(store->layout)),
				 errhint("Run ALTER EXTENSION metrics_ext UPDATE, or metrics_upgrade_store() if the extension is at the newest version.")));
}

/*
 * Run a query against the store as its owner; returns the number of rows.  They
 * stand in SPI_tuptable.
 */
uint64
managed_execute(const MetricsStore *store, const StoreQuery *query, Datum *values, const char *nulls)
{
	SavedIdentity saved;
	uint64		rows;

	act_as(store_owner(store), "pg_catalog, pg_temp", &saved);
	rows = store_execute(store, query, NULL, values, nulls);
	act_as_before(&saved);
	return rows;
}

/* Refuse a caller who is not the owner of a table, and a table that does not exist. */
void
managed_check_caller(Oid parent)
{
	(void) relation_owner(parent);
	if (!metrics_relation_ownercheck(parent))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(parent));
}

/* Refuse a table whose owner the owner of the store may not act as. */
void
managed_check_owner(const MetricsStore *store, Oid parent)
{
	Oid			owner = relation_owner(parent);
	char	   *keeper = GetUserNameFromId(store_owner(store), false);

	if (!has_privs_of_role(store_owner(store), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" owns the metrics store and may not act as the owner of %s",
						keeper, qualified_name(parent)),
				 superuser_arg(owner) ? errhint("Give the table to a role that is no superuser.") :
				 errhint("GRANT %s TO %s.", quote_identifier(GetUserNameFromId(owner, false)),
						 quote_identifier(keeper))));
}

static void
check_key(const char *key)
{
	if (strlen(key) > STORE_MAX_KEY_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("partition key of %zu bytes is too long", strlen(key)),
				 errhint("The limit is %d bytes.", STORE_MAX_KEY_BYTES)));
}

static const StoreQuery is_managed_query = {
	"SELECT FROM @store@.metrics_managed_table WHERE parent OPERATOR(pg_catalog.=) $1",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

/* Refuse a table that is not managed.  Needs an SPI connection, as do those below. */
void
managed_check(const MetricsStore *store, Oid parent)
{
	Datum		values[] = {ObjectIdGetDatum(parent)};

	if (managed_execute(store, &is_managed_query, values, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the partitions of %s are not managed", qualified_name(parent)),
				 errhint("Call metrics_manage_partitions() first.")));
}

/* How many partitions a table has. */
int
managed_partition_count(Oid parent)
{
	return list_length(find_inheritance_children(parent, NoLock));
}

static const StoreQuery kind_query = {
	"SELECT kind FROM @store@.metrics_partition_kind WHERE partition_key = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

static const StoreQuery add_kind_query = {
	"INSERT INTO @store@.metrics_partition_kind VALUES ($1, $2) ON CONFLICT DO NOTHING",
	.nargs = 2, .argtypes = {TEXTOID, TEXTOID}
};

/* The kind of a key of the store, NULL if it has none. */
static const char *
kind_of_key(const MetricsStore *store, const char *key)
{
	Datum		values[] = {CStringGetTextDatum(key)};
	bool		isnull;

	if (managed_execute(store, &kind_query, values, NULL) == 0)
		return NULL;
	return TextDatumGetCString(store_column(1, &isnull));
}

static const StoreQuery record_query = {
	"INSERT INTO @store@.metrics_partition (partition, created_by) VALUES ($1, $2)"
	" ON CONFLICT (partition) DO UPDATE SET created = EXCLUDED.created, created_by = EXCLUDED.created_by",
	.nargs = 2, .argtypes = {REGCLASSOID, TEXTOID}
};

static const StoreQuery count_query = {
	"UPDATE @store@.metrics_managed_table SET partitions_created = partitions_created + $2,"
	" rows_moved = rows_moved + $3, last_change = pg_catalog.clock_timestamp()"
	" WHERE parent OPERATOR(pg_catalog.=) $1",
	.nargs = 3, .argtypes = {REGCLASSOID, INT8OID, INT8OID}
};

/* Add to what was done for a table so far. */
void
managed_count(const MetricsStore *store, Oid parent, int partitions, uint64 moved)
{
	Datum		values[3];

	values[0] = ObjectIdGetDatum(parent);
	values[1] = Int64GetDatum(partitions);
	values[2] = Int64GetDatum(moved);
	managed_execute(store, &count_query, values, NULL);
}

/*
 * Make sure that a managed table has a partition for a key, perhaps only if its
 * default partition has rows of it, and write down that it was made and for
 * whom.  Partitions of the store are made like the one that stands for their
 * kind; a key without a kind is of kind time.
 */
void
managed_add(const MetricsStore *store, Oid parent, const char *key, const char *created_by,
			bool only_for_rows, PartitionAdded *added)
{
	Oid			model = parent;
	Datum		values[2];
	ListTable	table;

	check_key(key);
	list_table_look(parent, &table);
	list_table_check_text_key(&table);
	key = list_table_stored_key(&table, key);
	added->partition = list_table_partition(parent, list_table_key(&table, key));
	added->created = false;
	added->moved = 0;
	if (OidIsValid(added->partition))
		return;
	if (managed_partition_count(parent) >= metrics_max_partitions)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%s has %d partitions and gets no more", table.name,
						managed_partition_count(parent)),
				 errhint("The limit is metrics_ext.max_partitions: raise it, or drop partitions.")));

	if (parent == store->metrics)
	{
		const char *kind = kind_of_key(store, key);

		if (kind == NULL)
		{
			values[0] = CStringGetTextDatum(key);
			values[1] = CStringGetTextDatum("time");
			managed_execute(store, &add_kind_query, values, NULL);
		}
		model = store_relation(store, kind && strcmp(kind, "batch") == 0 ?
							   "generic_metrics" : "system_metrics");
	}
	partition_add(parent, key, model, only_for_rows, added);
	if (!added->created)
		return;

	values[0] = ObjectIdGetDatum(added->partition);
	values[1] = CStringGetTextDatum(created_by);
	managed_execute(store, &record_query, values, NULL);
	managed_count(store, parent, 1, added->moved);
}

typedef struct AddCall
{
	const MetricsStore *store;
	Oid			parent;
	const char *key;
	PartitionAdded added;
} AddCall;

static bool
call_add(void *arg)
{
	AddCall    *call = arg;

	managed_add(call->store, call->parent, call->key, GetUserNameFromId(GetUserId(), false), false,
				&call->added);
	return true;
}

/* The partition of a key, for somebody who wants it now. */
Oid
managed_add_now(const MetricsStore *store, Oid parent, const char *key)
{
	AddCall		call = {.store = store, .parent = parent, .key = key};

	insist(call_add, &call);
	return call.added.partition;
}

/* Refuse what is no kind of a key. */
void
managed_check_kind(const char *kind)
{
	if (strcmp(kind, "batch") != 0 && strcmp(kind, "time") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown kind \"%s\"", kind),
				 errhint("Use \"batch\" or \"time\".")));
}

/*
 * Make sure that the store has a key of a kind.  One that is of the other kind
 * already is an error.
 */
void
managed_add_key(const MetricsStore *store, const char *key, const char *kind)
{
	Datum		values[] = {CStringGetTextDatum(key), CStringGetTextDatum(kind)};
	const char *known;

	managed_check_kind(kind);
	check_key(key);
	managed_execute(store, &add_kind_query, values, NULL);
	known = kind_of_key(store, key);
	if (known == NULL)
		elog(ERROR, "partition key \"%s\" has vanished", key);
	if (strcmp(known, kind) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partition key \"%s\" is of kind \"%s\", not \"%s\"", key, known, kind),
				 errhint("Pass kind => '%s', or choose another key: the kind of one cannot change.", known)));
}

static const StoreQuery manage_query = {
	"INSERT INTO @store@.metrics_managed_table (parent) VALUES ($1) ON CONFLICT DO NOTHING",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

/*
 * metrics_manage_partitions(parent)
 *
 * From now on, rows in the default partition of a table get a partition of their
 * key.
 */
Datum
metrics_manage_partitions(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"parent"};
	Oid			parent;
	Datum		values[1];
	MetricsStore store;
	ListTable	table;

	check_not_null(fcinfo, names, lengthof(names));
	parent = PG_GETARG_OID(0);
	PreventCommandIfReadOnly("metrics_manage_partitions()");
	managed_open_store(fcinfo, &store);

	managed_check_caller(parent);
	list_table_look(parent, &table);
	list_table_check_text_key(&table);
	(void) partition_default_tables(&table, NoLock);
	if (get_rel_persistence(parent) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is a temporary table", table.name),
				 errhint("Partitions of permanent and unlogged tables can be managed.")));
	managed_check_owner(&store, parent);

	SPI_connect();
	values[0] = ObjectIdGetDatum(parent);
	managed_execute(&store, &manage_query, values, NULL);
	SPI_finish();
	store_activate(&store);
	worker_request();
	PG_RETURN_VOID();
}

static const StoreQuery unmanage_query = {
	"DELETE FROM @store@.metrics_managed_table WHERE parent OPERATOR(pg_catalog.=) $1",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

/*
 * metrics_unmanage_partitions(parent) → boolean
 *
 * The table stays as it is.  It may have been dropped meanwhile; then the owner
 * of the store may say so.
 */
Datum
metrics_unmanage_partitions(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"parent"};
	Oid			parent;
	Datum		values[1];
	MetricsStore store;
	bool		was_managed;

	check_not_null(fcinfo, names, lengthof(names));
	parent = PG_GETARG_OID(0);
	PreventCommandIfReadOnly("metrics_unmanage_partitions()");
	managed_open_store(fcinfo, &store);
	if (parent == store.metrics)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is the metrics store's own table", qualified_name(parent)),
				 errhint("Set metrics_ext.worker to off to do without the worker.")));
	managed_check_caller(SearchSysCacheExists1(RELOID, ObjectIdGetDatum(parent)) ? parent : store.metrics);

	SPI_connect();
	values[0] = ObjectIdGetDatum(parent);
	was_managed = managed_execute(&store, &unmanage_query, values, NULL) > 0;
	SPI_finish();
	PG_RETURN_BOOL(was_managed);
}

/*
 * metrics_add_partition(partition_key, kind) → regclass
 */
Datum
metrics_add_partition(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"partition_key", "kind"};
	char	   *key;
	MetricsStore store;
	Oid			partition;

	check_not_null(fcinfo, names, lengthof(names));
	key = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PreventCommandIfReadOnly("metrics_add_partition()");
	managed_open_store(fcinfo, &store);
	store_check_owner(&store);
	SPI_connect();
	managed_add_key(&store, key, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	partition = managed_add_now(&store, store.metrics, key);
	SPI_finish();
	PG_RETURN_OID(partition);
}

/*
 * metrics_add_partition(parent, partition_key) → regclass
 */
Datum
metrics_add_partition_to_table(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"parent", "partition_key"};
	Oid			parent;
	MetricsStore store;
	Oid			partition;

	check_not_null(fcinfo, names, lengthof(names));
	parent = PG_GETARG_OID(0);
	PreventCommandIfReadOnly("metrics_add_partition()");
	managed_open_store(fcinfo, &store);
	managed_check_caller(parent);
	SPI_connect();
	managed_check(&store, parent);
	partition = managed_add_now(&store, parent, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	SPI_finish();
	PG_RETURN_OID(partition);
}

static const StoreQuery forget_query = {
	"DELETE FROM @store@.metrics_partition WHERE partition OPERATOR(pg_catalog.=) $1",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

static const StoreQuery forget_key_query = {
	"WITH routes AS (DELETE FROM @store@.metrics_route WHERE partition_key = $1),"
	" patterns AS (DELETE FROM @store@.metrics_route_pattern WHERE partition_key = $1)"
	" DELETE FROM @store@.metrics_partition_kind WHERE partition_key = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

/*
 * Detach the partition of a key, and drop it unless it is to be kept; returns
 * it if it was kept.  The store forgets the key and its routes.
 */
static Oid
drop_partition(const MetricsStore *store, Oid parent, const char *key, bool keep_table)
{
	ListTable	table;
	Oid			partition;
	Datum		values[1];

	list_table_look(parent, &table);
	list_table_check_text_key(&table);
	partition = list_table_partition(parent, list_table_key(&table, key));
	if (!OidIsValid(partition))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("%s has no partition for key \"%s\"", table.name, key),
				 errhint("metrics_partitions lists the partitions there are.")));
	if (partition_bound_value(partition) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is the partition of other keys, too", qualified_name(partition)),
				 errhint("Detach it with ALTER TABLE.")));

	values[0] = ObjectIdGetDatum(partition);
	managed_execute(store, &forget_query, values, NULL);
	if (parent == store->metrics)
	{
		values[0] = CStringGetTextDatum(key);
		managed_execute(store, &forget_key_query, values, NULL);
	}
	partition_detach(parent, partition, keep_table);
	return keep_table ? partition : InvalidOid;
}

/* The four partitions that reports and the summaries of trials rely on. */
static void
check_droppable(const char *key)
{
	static const char *const fixed[] = {"TRAINING", "VALIDATION", "GENERIC", "PROFILING"};

	for (int i = 0; i < (int) lengthof(fixed); i++)
	{
		if (strcmp(key, fixed[i]) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("partition key \"%s\" belongs to every metrics store", key),
					 errhint("Delete its rows instead.")));
	}
}

/*
 * metrics_drop_partition(partition_key, keep_table) → regclass
 */
Datum
metrics_drop_partition(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"partition_key", "keep_table"};
	MetricsStore store;
	char	   *key;
	Oid			partition;

	check_not_null(fcinfo, names, lengthof(names));
	key = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PreventCommandIfReadOnly("metrics_drop_partition()");
	managed_open_store(fcinfo, &store);
	store_check_owner(&store);
	check_droppable(key);
	SPI_connect();
	partition = drop_partition(&store, store.metrics, key, PG_GETARG_BOOL(1));
	SPI_finish();
	if (!OidIsValid(partition))
		PG_RETURN_NULL();
	PG_RETURN_OID(partition);
}

/*
 * metrics_drop_partition(parent, partition_key, keep_table) → regclass
 */
Datum
metrics_drop_partition_of_table(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"parent", "partition_key", "keep_table"};
	Oid			parent;
	MetricsStore store;
	char	   *key;
	Oid			partition;

	check_not_null(fcinfo, names, lengthof(names));
	parent = PG_GETARG_OID(0);
	key = text_to_cstring(PG_GETARG_TEXT_PP(1));
	PreventCommandIfReadOnly("metrics_drop_partition()");
	managed_open_store(fcinfo, &store);
	managed_check_caller(parent);
	if (parent == store.metrics)
		check_droppable(key);
	SPI_connect();
	managed_check(&store, parent);
	partition = drop_partition(&store, parent, key, PG_GETARG_BOOL(2));
	SPI_finish();
	if (!OidIsValid(partition))
		PG_RETURN_NULL();
	PG_RETURN_OID(partition);
}

/*
 * metrics_partition_key(partition) → text
 *
 * NULL for a default partition, and for one of NULL or of several keys.
 */
Datum
metrics_partition_key(PG_FUNCTION_ARGS)
{
	char	   *key = partition_bound_value(PG_GETARG_OID(0));

	if (key == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(key));
}

static const StoreQuery list_query = {
	"SELECT parent, partition_key, partition, kind, rows_estimate, size, created, created_by FROM ("
	"SELECT m.parent, @extension@.metrics_partition_key(c.oid) AS partition_key,"
	" c.oid::pg_catalog.regclass AS partition,"
	" (SELECT pg_catalog.sum(GREATEST(l.reltuples, 0)) FROM pg_catalog.pg_partition_tree(c.oid) t"
	"  JOIN pg_catalog.pg_class l ON l.oid OPERATOR(pg_catalog.=) t.relid WHERE t.isleaf)::bigint AS rows_estimate,"
	" (SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(t.relid))"
	"  FROM pg_catalog.pg_partition_tree(c.oid) t)::bigint AS size, p.created, p.created_by"
	" FROM @store@.metrics_managed_table m"
	" JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) m.parent"
	" JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid"
	" LEFT JOIN @store@.metrics_partition p ON p.partition OPERATOR(pg_catalog.=) i.inhrelid) listed"
	" LEFT JOIN (SELECT $1 AS parent, partition_key, kind FROM @store@.metrics_partition_kind) kinds"
	" USING (parent, partition_key) ORDER BY parent::text, partition_key",
	.reader = true, .nargs = 1, .argtypes = {REGCLASSOID}
};

/*
 * metrics_partitions() → setof (parent, partition_key, partition, kind,
 *									 rows_estimate, size, created, created_by)
 *
 * None if there is no store, for whoever monitors many databases.
 */
Datum
metrics_partitions(PG_FUNCTION_ARGS)
{
	MetricsStore store;
	Datum		values[1];

	if (!store_find(fcinfo, &store) || store_read_layout(&store) < LAYOUT_1_3)
	{
		InitMaterializedSRF(fcinfo, 0);
		return (Datum) 0;
	}
	managed_open_store(fcinfo, &store);
	values[0] = ObjectIdGetDatum(store.metrics);
	store_return_rows(fcinfo, &store, &list_query, NULL, values, NULL);
	return (Datum) 0;
}
