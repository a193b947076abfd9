/*
 * by_time.c
 *	  Time ranges for a table of the store, run by pg_partman.
 *
 * A plain table cannot become a partitioned one, so another takes its place:
 * under its name, in its place in the tree, with its grants, policies, keys and
 * indexes.  All happens in one transaction that holds the table for itself, so
 * that whatever interrupts it leaves the plain table whole.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "args.h"
#include "partition/list_table.h"
#include "partition/model.h"
#include "sql.h"
#include "store/store.h"

PG_FUNCTION_INFO_V1(metrics_partition_by_time);

/* More ranges than this make every query on the table slow. */
#define MAX_RANGES 5000

/* A table on its way to time ranges. */
typedef struct TimeTable
{
	Oid			relid;			/* of the plain table */
	const char *schema;
	const char *relname;
	char	   *name;			/* qualified and quoted */
	const char *column;			/* by whose time it is partitioned */
	Oid			parent;			/* that it is a partition of, or InvalidOid */
	char	   *bound;			/* and for which values */
	char	   *plain;			/* the plain table's name for the time being, like name */
	List	   *keys;			/* statements that make its keys and indexes */
} TimeTable;

/* One text of the first row of a query; NULL if there is none. */
static char *
first_value(void)
{
	return SPI_processed == 0 ? NULL : SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* All rows of the last query, which has one column of text. */
static List *
all_values(void)
{
	SPITupleTable *rows = SPI_tuptable;
	List	   *values = NIL;

	for (uint64 row = 0; row < rows->numvals; row++)
		values = lappend(values, SPI_getvalue(rows->vals[row], rows->tupdesc, 1));
	return values;
}

/* The schema of pg_partman, as SQL. */
static const char *
partman_schema(void)
{
	run_sql("SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
			" WHERE extname = 'pg_partman'");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"pg_partman\" is not installed in this database"),
				 errhint("Install the package postgresql-%d-partman, then run CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman.",
						 PG_VERSION_NUM / 10000)));
	return first_value();
}

/* The column by whose time a table of the store can be partitioned. */
static const char *
time_column(const MetricsStore *store, Oid relid)
{
	if (relid == store_relation(store, "pipeline_operators"))
		return "at";
	if (get_rel_relispartition(relid) && get_partition_parent(relid, false) == store->metrics)
	{
		run_sql("SELECT FROM %s.metrics_partition_kind WHERE kind = 'time' AND partition_key = %s",
				quote_identifier(store->schema), quote_literal_cstr(partition_bound_value(relid)));
		if (SPI_processed > 0)
			return "end_time";
	}
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a table of the store that can be partitioned by time", get_rel_name(relid)),
			 errhint("Those are pipeline_operators and the partitions of metrics whose key is of kind \"time\", such as system_metrics.")));
}

/*
 * Lock what is involved: tables that it references, its parent, the table.  All
 * of them alone: dropping the plain table takes its triggers off the tables that
 * it references.  Looks at the table when it holds the locks.
 */
static void
open_table(const MetricsStore *store, Oid relid, TimeTable *table)
{
	table->relid = relid;
	table->column = time_column(store, relid);

	run_sql("SELECT DISTINCT confrelid::regclass FROM pg_constraint WHERE contype = 'f' AND conrelid = %u ORDER BY 1", relid);
	for (uint64 row = 0; row < SPI_processed; row++)
	{
		bool		isnull;

		LockRelationOid(DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1, &isnull)),
						AccessExclusiveLock);
	}
	table->parent = get_rel_relispartition(relid) ? get_partition_parent(relid, false) : InvalidOid;
	if (OidIsValid(table->parent))
		LockRelationOid(table->parent, AccessExclusiveLock);
	LockRelationOid(relid, AccessExclusiveLock);

	table->schema = get_namespace_name(get_rel_namespace(relid));
	table->relname = get_rel_name(relid);
	if (table->schema == NULL || table->relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the table was replaced while we waited for it"),
				 errhint("Try again.")));
	if (strchr(table->schema, '.') || strchr(table->relname, '.'))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("pg_partman does not support the name %s", qualified_name(relid)),
				 errhint("Rename schema or table so that there is no dot in it.")));
	table->name = qualified_name(relid);
	table->plain = quote_qualified_identifier(table->schema, psprintf("metrics_plain_%u", relid));
}

/* Refuse a table with something on it that would not come along. */
static void
check_dependents(const TimeTable *table)
{
	List	   *dependents;
	StringInfoData detail;
	ListCell   *cell;

	run_sql("SELECT DISTINCT dependent FROM ("
			"SELECT pg_describe_object('pg_class'::regclass, r.ev_class, 0) AS dependent"
			" FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid"
			" WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = %1$u AND r.ev_class <> %1$u"
			" AND NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
			"  WHERE c.oid = r.ev_class AND nspname = '" STORE_VIEWS "')"
			" UNION ALL SELECT pg_describe_object('pg_rewrite'::regclass, oid, 0) FROM pg_rewrite WHERE ev_class = %1$u"
			" UNION ALL SELECT pg_describe_object('pg_trigger'::regclass, oid, 0) FROM pg_trigger"
			"  WHERE tgrelid = %1$u AND NOT tgisinternal AND tgparentid = 0"
			" UNION ALL SELECT pg_describe_object('pg_constraint'::regclass, oid, 0) FROM pg_constraint WHERE contype = 'f' AND confrelid = %1$u"
			" UNION ALL SELECT pg_describe_object('pg_publication_rel'::regclass, oid, 0) FROM pg_publication_rel WHERE prrelid = %1$u"
			" UNION ALL SELECT pg_describe_object('pg_class'::regclass, inhrelid, 0) FROM pg_inherits WHERE inhparent = %1$u"
			" UNION ALL SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend"
			"  WHERE refclassid = 'pg_class'::regclass AND refobjid = %1$u AND classid = 'pg_proc'::regclass"
			" UNION ALL SELECT pg_describe_object('pg_class'::regclass, attrelid, attnum) FROM pg_attribute"
			"  WHERE attrelid = %1$u AND attidentity <> '') d ORDER BY 1", table->relid);
	dependents = all_values();
	if (dependents == NIL)
		return;

	initStringInfo(&detail);
	foreach(cell, dependents)
		appendStringInfo(&detail, "%s%s", detail.len > 0 ? "\n" : "", (char *) lfirst(cell));
	ereport(ERROR,
			(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			 errmsg("cannot partition %s by time because other objects depend on it", table->name),
			 errdetail_internal("%s", detail.data),
			 errhint("Drop them, and create them again afterwards.")));
}

/* Take the plain table out of the way, and remember what it needs again. */
static void
set_aside(TimeTable *table)
{
	run_sql("SELECT format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', %2$s, conname, pg_get_constraintdef(oid))"
			" FROM pg_constraint WHERE conrelid = %1$u AND contype IN ('p', 'u', 'x')"
			" UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index"
			" WHERE indrelid = %1$u AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = %1$u)",
			table->relid, quote_literal_cstr(table->name));
	table->keys = all_values();

	if (OidIsValid(table->parent))
	{
		run_sql("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = %u", table->relid);
		table->bound = first_value();
		run_sql("ALTER TABLE %s DETACH PARTITION %s", qualified_name(table->parent), table->name);
	}
	run_sql("ALTER TABLE %s RENAME TO metrics_plain_%u", table->name, table->relid);
}

/* The time of the first row, as a text; NULL if there is none.  Refuses too many ranges. */
static char *
first_time(const TimeTable *table, const char *width)
{
	char	   *first;

	run_sql("SELECT min(%1$s)::text, extract(epoch FROM now() - min(%1$s)) / extract(epoch FROM %2$s::interval) > %4$d"
			" FROM %3$s WHERE isfinite(%1$s)", table->column, quote_literal_cstr(width), table->plain, MAX_RANGES);
	first = first_value();
	if (first != NULL && *SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2) == 't')
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("ranges of %s since %s are more than %d", width, first, MAX_RANGES),
				 errhint("Take wider ranges, or delete what is older.")));
	return first;
}

/* Make the partitioned table and its ranges, and move the rows. */
static void
fill_ranges(const MetricsStore *store, TimeTable *table, const char *partman, const char *width)
{
	bool		force_row_security;
	char	   *first = first_time(table, width);
	const char *type;
	const char *partman_name = quote_literal_cstr(psprintf("%s.%s", table->schema, table->relname));

	run_sql("CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES) PARTITION BY RANGE (%s)",
			table->name, table->plain, table->column);
	run_sql("SELECT CASE WHEN split_part(extversion, '.', 1)::integer < 5 THEN 'native' ELSE 'range' END"
			" FROM pg_extension WHERE extname = 'pg_partman'");
	type = first_value();
	run_sql("SELECT %s.create_parent(p_parent_table := %s, p_control := %s, p_type := %s, p_interval := %s, p_start_partition := %s)",
			partman, partman_name, quote_literal_cstr(table->column), quote_literal_cstr(type),
			quote_literal_cstr(width), first ? quote_literal_cstr(first) : "NULL");

	/* Not one row is left behind by a policy: what would hide one is an error. */
	run_sql("SELECT relforcerowsecurity FROM pg_class WHERE oid = %u", table->relid);
	force_row_security = *first_value() == 't';
	run_sql("ALTER TABLE %s NO FORCE ROW LEVEL SECURITY", table->plain);
	set_local("row_security", "off");
	run_sql("SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
			" WHERE attrelid = %u AND attnum > 0 AND NOT attisdropped AND attgenerated = ''", table->relid);
	run_sql("INSERT INTO %1$s (%3$s) SELECT %3$s FROM %2$s", table->name, table->plain, first_value());

	copy_properties(table->relid, get_relname_relid(table->relname, get_namespace_oid(table->schema, false)),
					table->parent);
	if (force_row_security)
		run_sql("ALTER TABLE %s FORCE ROW LEVEL SECURITY", table->name);

	/* The views look at the plain table, until they are made again. */
	store_create_views(store);
	run_sql("UPDATE %s.metrics_partition SET partition = %s::regclass WHERE partition = %u",
			quote_identifier(store->schema), quote_literal_cstr(table->name), table->relid);
	run_sql("DROP TABLE %s", table->plain);
}

/* Let pg_partman keep making ranges, and drop old ones after retention, if it is not NULL. */
static void
configure(const TimeTable *table, const char *partman, const char *retention)
{
	run_sql("UPDATE %s.part_config SET infinite_time_partitions = true, retention_keep_table = false, retention = %s"
			" WHERE parent_table = %s", partman, retention ? quote_literal_cstr(retention) : "NULL",
			quote_literal_cstr(psprintf("%s.%s", table->schema, table->relname)));
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s is partitioned already, and not by pg_partman", table->name),
				 errhint("Partition it again yourself, or hand it over to pg_partman.")));
}

/* An interval argument as text, NULL for NULL; refuses one that is not positive. */
static const char *
positive_interval(FunctionCallInfo fcinfo, int argno, const char *name)
{
	Interval   *interval;
	Interval	zero = {0};

	if (PG_ARGISNULL(argno))
		return NULL;
	interval = PG_GETARG_INTERVAL_P(argno);
	if (!DatumGetBool(DirectFunctionCall2(interval_gt, IntervalPGetDatum(interval), IntervalPGetDatum(&zero))))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be greater than zero", name),
				 errhint("For example '1 day'.")));
	return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(interval)));
}

/* metrics_partition_by_time(table, width, retention) */
Datum
metrics_partition_by_time(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"table", "width"};
	MetricsStore store;
	TimeTable	table = {0};
	const char *width;
	const char *retention;
	const char *partman;
	SavedIdentity saved;
	ListCell   *cell;

	check_not_null(fcinfo, names, lengthof(names));
	width = positive_interval(fcinfo, 1, "width");
	retention = positive_interval(fcinfo, 2, "retention");

	PreventCommandIfReadOnly("metrics_partition_by_time()");
	store_open_since(fcinfo, AccessShareLock, LAYOUT_1_4, &store);
	store_check_owner(&store);
	SPI_connect();
	act_as(store_owner(&store), "pg_catalog, pg_temp", &saved);
	partman = partman_schema();
	open_table(&store, PG_GETARG_OID(0), &table);
	if (get_rel_relkind(table.relid) != RELKIND_PARTITIONED_TABLE)
	{
		check_dependents(&table);
		set_aside(&table);
		fill_ranges(&store, &table, partman, width);
		foreach(cell, table.keys)
			run_sql("%s", (char *) lfirst(cell));
		if (OidIsValid(table.parent))
			run_sql("ALTER TABLE %s ATTACH PARTITION %s %s", qualified_name(table.parent), table.name, table.bound);
		run_sql("ANALYZE %s", table.name);
	}
	configure(&table, partman, retention);
	act_as_before(&saved);
	SPI_finish();
	PG_RETURN_VOID();
}
