/*
 * store.c
 *	  Finding, creating, granting and upgrading the store.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "args.h"
#include "compat.h"
#include "partition/list_table.h"
#include "sql.h"
#include "store/layout.h"

PG_FUNCTION_INFO_V1(metrics_create_store);
PG_FUNCTION_INFO_V1(metrics_upgrade_store);
PG_FUNCTION_INFO_V1(metrics_grant);

/*
 * Column number 1, or number 2 of the row that has key in number 1, of a table
 * of ours that says where something is: the registry, the layout, the routes.
 * false if there is no such row.  text is copied.
 *
 * Each report begins with several of these, so they go below SQL; and past the
 * caller's privileges, for there is nothing secret in where things are.
 */
static bool
read_value(Oid relid, const char *key, Snapshot snapshot, Datum *value)
{
	Relation	rel = table_open(relid, AccessShareLock);
	int			column = key ? 2 : 1;
	ScanKeyData scan_key[1];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		isnull = true;

	if (key)
		ScanKeyEntryInitialize(&scan_key[0], 0, 1, BTEqualStrategyNumber, TEXTOID,
							   TupleDescAttr(RelationGetDescr(rel), 0)->attcollation,
							   F_TEXTEQ, CStringGetTextDatum(key));
	scan = systable_beginscan(rel, key ? metrics_primary_key(rel) : InvalidOid, key != NULL,
							  snapshot, key ? 1 : 0, scan_key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		*value = heap_getattr(tuple, column, RelationGetDescr(rel), &isnull);
	if (!isnull)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), column - 1);

		*value = datumCopy(*value, att->attbyval, att->attlen);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return !isnull;
}

/* The same as it is now, whatever snapshot the caller has. */
bool
store_read_value(Oid relid, const char *key, Datum *value)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	bool		found = read_value(relid, key, snapshot, value);

	UnregisterSnapshot(snapshot);
	return found;
}

/*
 * The extension's registry, which stands in the schema of its functions, so
 * also in that of the one being called.
 */
static Oid
registry_relation(FunctionCallInfo fcinfo)
{
	Oid			registry = get_relname_relid("metrics_store",
											 get_func_namespace(fcinfo->flinfo->fn_oid));

	/*
	 * Locked until the end of the transaction, so that DROP EXTENSION waits
	 * for us: the functions that run must not be dropped under them.
	 */
	if (OidIsValid(registry))
		LockRelationOid(registry, AccessShareLock);
	if (!OidIsValid(registry) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(registry)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("extension \"metrics_ext\" has no table \"metrics_store\" beside its functions"),
				 errhint("It was dropped meanwhile, or taken apart: create the extension again.")));
	return registry;
}

/* In which schema the store is now; false if it was dropped. */
static bool
look_up_schema(MetricsStore *store)
{
	store->namespace = get_rel_namespace(store->metrics);
	store->schema = OidIsValid(store->namespace) ? get_namespace_name(store->namespace) : NULL;
	return store->schema != NULL;
}

/* store_find() for a registry at hand. */
bool
store_find_registered(Oid registry, MetricsStore *store)
{
	Datum		relid;

	store->registry = registry;
	store->extension_schema = get_namespace_name(get_rel_namespace(store->registry));
	store->layout = LAYOUT_NONE;
	if (!store_read_value(store->registry, NULL, &relid))
		return false;

	store->metrics = DatumGetObjectId(relid);
	return look_up_schema(store);
}

/*
 * Look up the registered store, without a lock on it; false if there is none
 * or it was dropped.  Fills all but the layout and whether it is active.
 */
bool
store_find(FunctionCallInfo fcinfo, MetricsStore *store)
{
	return store_find_registered(registry_relation(fcinfo), store);
}

/*
 * A transaction whose snapshot is older than the layout of the store would not
 * see the rows that came with it: there is no right answer then but to start
 * again.
 */
static void
check_transaction_snapshot(const MetricsStore *store)
{
	Datum		layout;

	if (IsolationUsesXactSnapshot() &&
		(!read_value(store_relation(store, "metrics_layout"), NULL, GetActiveSnapshot(), &layout) ||
		 layout_by_name(TextDatumGetCString(layout)) != store->layout))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent upgrade of the metrics store"),
				 errhint("The transaction might succeed if retried.")));
}

/*
 * Where the store was when it was opened last, and its layout: a report would
 * otherwise spend a tenth of its time on finding out.  It holds until the
 * relation cache is told of a change to the registry or to the partitioned
 * table; what writes the registry or the layout sees to that.
 */
static bool last_opened_valid = false;
static MetricsStore last_opened;

static void
forget_store(Datum arg, Oid relid)
{
	(void) arg;
	if (!OidIsValid(relid) || relid == last_opened.metrics || relid == last_opened.registry)
		last_opened_valid = false;
}

/*
 * Open the store for reading or writing its rows: lock it, then look at its
 * layout.  lockmode is AccessShareLock or RowExclusiveLock; the lock is kept
 * until the end of the transaction.  Who comes to write makes the store active.
 *
 * An upgrade locks trials before metrics, and so do we: see layout.c.
 */
void
store_open(FunctionCallInfo fcinfo, LOCKMODE lockmode, MetricsStore *store)
{
	static bool callback_registered = false;
	Oid			registry = registry_relation(fcinfo);

	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(forget_store, 0);
		callback_registered = true;
	}

	if (last_opened_valid && last_opened.registry == registry)
	{
		*store = last_opened;
		store->schema = get_namespace_name(store->namespace);
		store->extension_schema = get_namespace_name(get_rel_namespace(registry));
	}
	else
	{
		last_opened_valid = false;
		if (!store_find(fcinfo, store))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("database \"%s\" has no metrics store",
							get_database_name(MyDatabaseId)),
					 errhint("Call metrics_create_store() first.")));
	}

	if (store->schema != NULL)
	{
		LockRelationOid(store_relation(store, "trials"), lockmode);
		LockRelationOid(store->metrics, lockmode);
	}
	if (!last_opened_valid)
	{
		/* It may have been dropped, moved or renamed while we waited. */
		if (!look_up_schema(store))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("the metrics store was dropped while we waited for it"),
					 errhint("Call metrics_create_store() to make another.")));

		/* What comes in while we look makes it invalid again. */
		last_opened = *store;
		last_opened_valid = true;
		store->layout = last_opened.layout = store_read_layout(store);
		store->active = last_opened.active = store_is_active(store);
	}
	check_transaction_snapshot(store);
	if (lockmode == RowExclusiveLock && !store->active)
		store_activate(store);
}

/* The same for what the store has since a layout. */
void
store_open_since(FunctionCallInfo fcinfo, LOCKMODE lockmode, StoreLayout layout, MetricsStore *store)
{
	store_open(fcinfo, lockmode, store);
	if (store->layout < layout)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("store layout %s has no tables for this, %s is needed",
						layout_name(store->layout), layout_name(layout)),
				 errhint("Call metrics_upgrade_store().")));
}

/* A relation of the store by name; an error if it is not there. */
Oid
store_relation(const MetricsStore *store, const char *relname)
{
	Oid			relid = get_relname_relid(relname, store->namespace);

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the metrics store in schema \"%s\" has no table \"%s\"",
						store->schema, relname),
				 errhint("Restore the table, or drop the schema and call metrics_create_store().")));
	return relid;
}

/* The role that owns the store. */
Oid
store_owner(const MetricsStore *store)
{
	return relation_owner(store->metrics);
}

/* Refuse a caller who is not the owner of the store. */
void
store_check_owner(const MetricsStore *store)
{
	if (!metrics_relation_ownercheck(store->metrics))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   get_rel_name(store->metrics));
}

/* The layout that the store has now, whatever snapshot the caller has. */
StoreLayout
store_read_layout(const MetricsStore *store)
{
	Oid			relid = store_relation(store, "metrics_layout");
	Datum		layout;

	if (!store_read_value(relid, NULL, &layout))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s.metrics_layout\" is empty", store->schema),
				 errhint("It holds one row, the layout version of the store: restore it from a backup.")));
	return layout_by_name(TextDatumGetCString(layout));
}

/* What makes a literal one of the key's type, so that no operator is looked for. */
const char *
store_key_cast(const MetricsStore *store)
{
	if (store->layout < LAYOUT_1_1)
		return psprintf("::%s.metric_partition_type", quote_identifier(store->schema));
	return "::text";
}

/* The version of the extension as installed in this database. */
static StoreLayout
installed_layout(void)
{
	StoreLayout layout;

	SPI_connect();
	if (SPI_execute("SELECT extversion FROM pg_catalog.pg_extension"
					" WHERE extname = 'metrics_ext'", false, 0) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "extension \"metrics_ext\" is not installed");
	layout = layout_by_name(SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	SPI_finish();
	return layout;
}

/*
 * Write down where the store is.  The registry belongs to the owner of the
 * extension, whose right to write it we borrow for just this.
 */
static void
register_store(const MetricsStore *store)
{
	Oid			argtypes[] = {REGCLASSOID};
	Datum		values[] = {ObjectIdGetDatum(store->metrics)};
	char	   *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(store->registry)),
												  get_rel_name(store->registry));
	Oid			save_userid;
	int			save_sec_context;

	GetUserIdAndSecContext(&save_userid, &save_sec_context);
	SetUserIdAndSecContext(relation_owner(store->registry),
						   save_sec_context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	run_sql("DELETE FROM %s", name);
	if (SPI_execute_with_args(psprintf("INSERT INTO %s (store) VALUES ($1)", name),
							  1, argtypes, values, NULL, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not register the metrics store");
	SPI_finish();
	SetUserIdAndSecContext(save_userid, save_sec_context);
	CacheInvalidateRelcacheByRelid(store->registry);
}

/*
 * metrics_create_store(schema) → regclass
 *
 * Creates the store of the caller, or takes up the one that stands in the
 * schema: brings it to the installed layout, makes again what went with an
 * extension that was dropped, and registers it.  Whoever may create schemas in
 * the database may do this; reporters trust the owner of the store as they
 * trust the owner of any table with triggers.
 */
Datum
metrics_create_store(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"schema"};
	char	   *schema;
	MetricsStore store;
	AclResult	aclresult = metrics_database_aclcheck(ACL_CREATE);
	Oid			owner = GetUserId();
	StoreLayout found;

	check_not_null(fcinfo, names, lengthof(names));
	schema = NameStr(*PG_GETARG_NAME(0));
	PreventCommandIfReadOnly("metrics_create_store()");
	if (aclresult != ACLCHECK_OK)
		aclcheck_error(aclresult, OBJECT_DATABASE, get_database_name(MyDatabaseId));

	/* One at a time, so that two callers cannot both find no store. */
	LockRelationOid(registry_relation(fcinfo), ShareRowExclusiveLock);
	if (store_find(fcinfo, &store) && strcmp(store.schema, schema) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("database \"%s\" has a metrics store in schema \"%s\" already",
						get_database_name(MyDatabaseId), store.schema),
				 errhint("One database holds one store: use it, or drop schema \"%s\" first.",
						 store.schema)));

	store.schema = schema;
	store.namespace = get_namespace_oid(schema, true);
	if (!OidIsValid(store.namespace))
	{
		SPI_connect();
		run_sql("CREATE SCHEMA %s", quote_identifier(schema));
		SPI_finish();
		store.namespace = get_namespace_oid(schema, false);
	}

	store.metrics = get_relname_relid("metrics", store.namespace);
	if (OidIsValid(store.metrics) &&
		OidIsValid(get_relname_relid("metrics_layout", store.namespace)))
	{
		store_check_owner(&store);
		owner = store_owner(&store);
		store.layout = store_read_layout(&store);
	}

	found = store.layout;
	layout_upgrade(&store, owner, installed_layout());
	if (found != LAYOUT_NONE)
		layout_rebuild(&store, owner);
	register_store(&store);
	PG_RETURN_OID(store.metrics);
}

/*
 * metrics_upgrade_store() → text
 *
 * ALTER EXTENSION … UPDATE calls it, and whoever restores a dump of an older
 * store.  No store is no error, or an empty database could not be updated.
 */
Datum
metrics_upgrade_store(PG_FUNCTION_ARGS)
{
	MetricsStore store;
	StoreLayout target;

	PreventCommandIfReadOnly("metrics_upgrade_store()");
	if (!store_find(fcinfo, &store))
		PG_RETURN_NULL();
	store_check_owner(&store);
	store.layout = store_read_layout(&store);
	target = installed_layout();
	layout_upgrade(&store, store_owner(&store), target);
	PG_RETURN_TEXT_P(cstring_to_text(layout_name(store.layout)));
}

/*
 * Let a reader or a writer use the tables of pipelines; role as SQL.  Needs an
 * SPI connection.
 */
void
store_grant_pipeline(const MetricsStore *store, const char *role, bool writer)
{
	const char *schema = quote_identifier(store->schema);

	run_sql("GRANT SELECT ON %1$s.pipeline_runs, %1$s.pipeline_stages, %1$s.pipeline_operators TO %2$s",
			schema, role);
	if (writer)
		run_sql("GRANT INSERT, UPDATE ON %1$s.pipeline_runs, %1$s.pipeline_stages TO %2$s;"
				"GRANT INSERT ON %1$s.pipeline_operators TO %2$s;"
				"GRANT USAGE ON SEQUENCE %1$s.pipeline_ordinal_seq TO %2$s",
				schema, role);
}

/*
 * Let a BI tool read the views and nothing else.  The views run with its own
 * rights, so it needs SELECT on what they read, but it has no USAGE on the
 * schema: it cannot name a table of the store.
 */
static void
grant_bi(const MetricsStore *store, const char *role)
{
	if (store->layout < LAYOUT_1_4)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access \"bi\" is not supported by store layout %s", layout_name(store->layout)),
				 errhint("Run ALTER EXTENSION metrics_ext UPDATE, or metrics_upgrade_store() if the extension is at the newest version.")));
	store_grant_views(store, role);
	store_grant_pipeline(store, role, false);
	run_sql("GRANT SELECT ON %1$s.metrics, %1$s.metrics_partition_kind, %1$s.metrics_managed_table,"
			" %1$s.metrics_partition TO %2$s",
			quote_identifier(store->schema), role);
	if (store->layout >= LAYOUT_1_5)
		layout_1_5_grant(store, role, false);
}

/*
 * metrics_grant(role, access)
 *
 * Grants are on partitioned tables, not on their partitions, so that a policy
 * on metrics cannot be passed by reading a partition.
 */
Datum
metrics_grant(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"role", "access"};
	const char *role;
	char	   *access;
	bool		writer;
	bool		bi;
	MetricsStore store;
	const char *schema;

	check_not_null(fcinfo, names, lengthof(names));
	role = quote_identifier(NameStr(*PG_GETARG_NAME(0)));
	access = text_to_cstring(PG_GETARG_TEXT_PP(1));
	writer = strcmp(access, "writer") == 0;
	bi = strcmp(access, "bi") == 0;
	if (!writer && !bi && strcmp(access, "reader") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown access \"%s\"", access),
				 errhint("Use \"reader\", \"writer\" or \"bi\".")));

	store_open(fcinfo, AccessShareLock, &store);
	store_check_owner(&store);
	schema = quote_identifier(store.schema);

	SPI_connect();
	if (bi)
		grant_bi(&store, role);
	else
	{
		run_sql("GRANT USAGE ON SCHEMA %1$s TO %2$s;"
				"GRANT SELECT ON %1$s.metrics, %1$s.trials, %1$s.metrics_layout,"
				" %1$s.metrics_partition_kind, %1$s.metrics_route,"
				" %1$s.metrics_trial_state TO %2$s", schema, role);
		if (writer)
			run_sql("GRANT INSERT, UPDATE ON %1$s.metrics, %1$s.trials,"
					" %1$s.metrics_trial_state TO %2$s;"
					"GRANT USAGE ON SEQUENCE %1$s.metrics_id_seq TO %2$s",
					schema, role);
		if (store.layout >= LAYOUT_1_3)
			run_sql("GRANT SELECT ON %1$s.metrics_route_pattern, %1$s.metrics_partition,"
					" %1$s.metrics_managed_table, %1$s.metrics_failure TO %2$s", schema, role);
		if (store.layout >= LAYOUT_1_4)
		{
			store_grant_views(&store, role);
			store_grant_pipeline(&store, role, writer);
		}
		if (store.layout >= LAYOUT_1_5)
			layout_1_5_grant(&store, role, writer);
	}
	SPI_finish();
	PG_RETURN_VOID();
}
