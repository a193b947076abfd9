/*
 * rekey.c
 *	  Change the key of a LIST-partitioned table to text by catalog work alone.
 *
 * The rows of a partition with one bound value all have the same key: a
 * constant, which PostgreSQL keeps in the catalog for a column that is added
 * with a default (attmissingval).  So the old column is dropped, the new one is
 * added with the constant as its default, and a CHECK that says what the bound
 * says is entered as valid, because it holds by construction.  ATTACH then
 * finds its constraint implied.  No row is read or written, and tables,
 * indexes, triggers, policies, grants and comments stay what they are.
 *
 * There is deliberately no way to call the parts from SQL: to declare a CHECK
 * valid is safe only together with what makes it true.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "partition/list_table.h"
#include "partition/rekey.h"
#include "sql.h"

/* What a column carries besides its type and its values. */
typedef struct ColumnProperties
{
	bool		notnull;
	Datum		acl;
	bool		acl_isnull;
	List	   *options;		/* of DefElem */
	bool		has_stattarget;
	int			stattarget;
	char	   *comment;
} ColumnProperties;

/* A partition that is taken off its parent and put back. */
typedef struct Partition
{
	Oid			relid;
	char	   *name;			/* qualified and quoted */
	char	   *value;			/* its one bound value, as text */
} Partition;

static ColumnProperties
read_column(Oid relid, const char *column)
{
	AttrNumber	attnum = get_attnum(relid, column);
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid),
										Int16GetDatum(attnum));
	ColumnProperties p;
	Datum		target;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for attribute %d of relation %u",
			 attnum, relid);
	p.notnull = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;
	p.acl = SysCacheGetAttr(ATTNUM, tuple, Anum_pg_attribute_attacl, &p.acl_isnull);
	if (!p.acl_isnull)
		p.acl = PointerGetDatum(DatumGetAclPCopy(p.acl));
	target = SysCacheGetAttr(ATTNUM, tuple, Anum_pg_attribute_attoptions, &isnull);
	p.options = isnull ? NIL : untransformRelOptions(target);
	target = SysCacheGetAttr(ATTNUM, tuple, Anum_pg_attribute_attstattarget, &isnull);
	p.has_stattarget = metrics_stattarget_is_set(target, isnull);
	p.stattarget = p.has_stattarget ? metrics_stattarget(target) : 0;
	p.comment = GetComment(relid, RelationRelationId, attnum);
	ReleaseSysCache(tuple);
	return p;
}

/*
 * Give a column grants, as they were, because GRANT could not keep who granted
 * them.
 */
static void
write_grants(Oid relid, AttrNumber attnum, Datum acl)
{
	Relation	catalog = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopyAttNum(relid, attnum);
	HeapTuple	rel = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Datum		values[Natts_pg_attribute] = {0};
	bool		nulls[Natts_pg_attribute] = {0};
	bool		replaces[Natts_pg_attribute] = {0};
	Oid		   *members;
	int			nmembers = aclmembers(DatumGetAclP(acl), &members);

	if (!HeapTupleIsValid(tuple) || !HeapTupleIsValid(rel))
		elog(ERROR, "cache lookup failed for attribute %d of relation %u", attnum, relid);
	values[Anum_pg_attribute_attacl - 1] = acl;
	replaces[Anum_pg_attribute_attacl - 1] = true;
	tuple = heap_modify_tuple(tuple, RelationGetDescr(catalog), values, nulls, replaces);
	CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
	updateAclDependencies(RelationRelationId, relid, attnum,
						  ((Form_pg_class) GETSTRUCT(rel))->relowner,
						  0, NULL, nmembers, members);
	ReleaseSysCache(rel);
	table_close(catalog, RowExclusiveLock);
	CommandCounterIncrement();
}

/* Give a new column what the old one carried. */
static void
write_column(Oid relid, const char *column, const ColumnProperties *p)
{
	AttrNumber	attnum = get_attnum(relid, column);
	ListCell   *cell;

	if (p->has_stattarget)
		run_sql("ALTER TABLE ONLY %s ALTER COLUMN %s SET STATISTICS %d",
				qualified_name(relid), quote_identifier(column), p->stattarget);
	foreach(cell, p->options)
	{
		DefElem    *option = lfirst(cell);

		/* The server keeps others there for itself. */
		if (strcmp(option->defname, "n_distinct") == 0 ||
			strcmp(option->defname, "n_distinct_inherited") == 0)
			run_sql("ALTER TABLE ONLY %s ALTER COLUMN %s SET (%s = %s)",
					qualified_name(relid), quote_identifier(column),
					option->defname, quote_literal_cstr(defGetString(option)));
	}
	if (p->comment)
		CreateComments(relid, RelationRelationId, attnum, p->comment);
	if (!p->acl_isnull)
		write_grants(relid, attnum, p->acl);
}

/* The partition's part: a new column whose value is the bound of the partition. */
static void
rekey_partition(const Partition *partition, const char *column)
{
	ColumnProperties properties = read_column(partition->relid, column);
	char	   *check = psprintf("%s_check", column);
	ListCell   *cell;

	run_sql("ALTER TABLE %1$s DROP COLUMN %2$s,"
					 " ADD COLUMN %2$s text NOT NULL DEFAULT %3$s,"
					 " ADD CONSTRAINT %4$s CHECK (%2$s = %3$s) NOT VALID",
					 partition->name, quote_identifier(column),
					 quote_literal_cstr(partition->value), quote_identifier(check));
	foreach(cell, find_all_inheritors(partition->relid, AccessExclusiveLock, NULL))
		mark_check_valid(lfirst_oid(cell), check);
	write_column(partition->relid, column, &properties);
}

/*
 * Make another column of a partitioned table without partitions its key.
 *
 * StorePartitionKey() does it as for a new table; before that we take away
 * what it did for the old key.  The relation cache holds a key to be immutable
 * and keeps it when it rebuilds the entry of a table made in the transaction,
 * so the entry is emptied by hand; which nobody would do again after a roll-back
 * to a savepoint in between, so we refuse one.
 */
static void
replace_key_column(Oid parent, AttrNumber attnum)
{
	Relation	rel = table_open(parent, AccessExclusiveLock);
	Oid			opclass = GetDefaultOpClass(TEXTOID, BTREE_AM_OID);
	Oid			collation = DEFAULT_COLLATION_OID;

	if (rel->rd_createSubid != InvalidSubTransactionId &&
		rel->rd_createSubid != GetCurrentSubTransactionId())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot change the key of \"%s\" after a savepoint in the transaction that created it",
						RelationGetRelationName(rel)),
				 errhint("Commit first.")));

	RemovePartitionKeyByRelId(parent);
	deleteDependencyRecordsForSpecific(RelationRelationId, parent, DEPENDENCY_INTERNAL,
									   RelationRelationId, parent);
	StorePartitionKey(rel, PARTITION_STRATEGY_LIST, 1, &attnum, NIL, &opclass, &collation);

	MemoryContextDelete(rel->rd_partkeycxt);
	rel->rd_partkeycxt = NULL;
	rel->rd_partkey = NULL;
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

/*
 * The parent's part: it has no rows, but what hangs on it must stay, so it is
 * not made anew.
 */
static void
rekey_parent(Oid parent, const char *column)
{
	ColumnProperties properties = read_column(parent, column);
	char	   *name = qualified_name(parent);
	const char *old_column = quote_identifier(column);
	const char *new_column = quote_identifier(psprintf("%.40s rekeyed", column));
	char	   *default_value = NULL;

	/* The default, as a value of the old type, and then as text. */
	run_sql("SELECT pg_catalog.pg_get_expr(adbin, adrelid) FROM pg_catalog.pg_attrdef"
					 " WHERE adrelid = %u AND adnum = %d", parent, get_attnum(parent, column));
	if (SPI_processed > 0)
	{
		run_sql("SELECT (%s)::text",
						 SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
		default_value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	}

	run_sql("ALTER TABLE %s ADD COLUMN %s text%s%s", name, new_column,
					 default_value ? " DEFAULT " : "",
					 default_value ? quote_literal_cstr(default_value) : "");
	replace_key_column(parent, get_attnum(parent, psprintf("%.40s rekeyed", column)));
	run_sql("ALTER TABLE %s DROP COLUMN %s", name, old_column);
	run_sql("ALTER TABLE %s RENAME COLUMN %s TO %s", name, new_column, old_column);
	if (properties.notnull)
		run_sql("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", name, old_column);
	write_column(parent, column, &properties);
}

/* SQL that gives triggers of the partitions back what ATTACH would forget. */
static List *
trigger_states(Oid parent)
{
	List	   *statements = NIL;

	run_sql("SELECT pg_catalog.format('ALTER TABLE %%s %%s TRIGGER %%I',"
					 "  c.tgrelid::pg_catalog.regclass,"
					 "  CASE c.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA'"
					 "   WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END, c.tgname)"
					 " FROM pg_catalog.pg_trigger p JOIN pg_catalog.pg_trigger c ON c.tgparentid = p.oid"
					 " WHERE p.tgrelid = %u AND NOT p.tgisinternal AND c.tgenabled <> p.tgenabled",
					 parent);
	for (uint64 i = 0; i < SPI_processed; i++)
		statements = lappend(statements,
							 SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
	return statements;
}

/*
 * Is a dependent object the key column itself, its default or its NOT NULL, in
 * one of the tables?
 */
static bool
is_key_itself(const FormData_pg_depend *depend, List *relids, const char *column)
{
	ObjectAddress object = {depend->classid, depend->objid, depend->objsubid};
	char	   *name;

	if (object.classId == ConstraintRelationId)
	{
		HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(object.objectId));
		bool		notnull = HeapTupleIsValid(tuple) &&
			((Form_pg_constraint) GETSTRUCT(tuple))->contype == 'n';

		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		return notnull;
	}
	if (object.classId == AttrDefaultRelationId)
		object = GetAttrDefaultColumnAddress(object.objectId);
	if (object.classId != RelationRelationId || object.objectSubId == 0 ||
		!list_member_oid(relids, object.objectId))
		return false;
	name = get_attname(object.objectId, object.objectSubId, true);
	return name != NULL && strcmp(name, column) == 0;
}

/*
 * Add descriptions of what depends on an object, the key column and what makes
 * up the tables aside.  What views make of a row type is made anew each time.
 */
static List *
add_dependents(List *blockers, Oid classid, Oid objid, int32 objsubid,
			   List *relids, const char *column)
{
	Relation	catalog = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[3];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(classid));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(objid));
	ScanKeyInit(&key[2], Anum_pg_depend_refobjsubid, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(objsubid));
	scan = systable_beginscan(catalog, DependReferenceIndexId, true, NULL, 3, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);
		ObjectAddress object = {depend->classid, depend->objid, depend->objsubid};
		char	   *description;
		bool		known = false;
		ListCell   *cell;

		if (is_key_itself(depend, relids, column) ||
			(classid == TypeRelationId && depend->deptype == DEPENDENCY_INTERNAL) ||
			(classid == TypeRelationId && !type_is_enum(objid) && !type_is_enum(get_element_type(objid)) &&
			 (object.classId != RelationRelationId || get_rel_relkind(object.objectId) == RELKIND_VIEW)))
			continue;
		description = getObjectDescription(&object, false);
		foreach(cell, blockers)
			known |= strcmp(lfirst(cell), description) == 0;
		if (!known)
			blockers = lappend(blockers, description);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return blockers;
}

static int
compare_descriptions(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/*
 * Descriptions of the objects for which the key of a partitioned table cannot
 * be changed: whatever uses the key column of parent or partitions, or its type if
 * that is an enum; what stores rows of these tables as values; and partitions
 * whose rows need not have the same key.  DROP COLUMN would refuse some and
 * silently drop others.
 */
List *
rekey_blockers(Oid parent)
{
	ListTable	table;
	List	   *relids = find_all_inheritors(parent, AccessShareLock, NULL);
	List	   *types = NIL;
	List	   *blockers = NIL;
	ListCell   *cell;

	list_table_open(parent, AccessShareLock, &table);
	foreach(cell, find_inheritance_children(parent, AccessShareLock))
	{
		if (partition_bound_value(lfirst_oid(cell)) == NULL)
			blockers = lappend(blockers, psprintf("partition %s, which is not for one key",
												  qualified_name(lfirst_oid(cell))));
	}
	foreach(cell, relids)
	{
		Oid			relid = lfirst_oid(cell);

		blockers = add_dependents(blockers, RelationRelationId, relid, get_attnum(relid, table.column),
								  relids, table.column);
		types = lappend_oid(types, get_rel_type_id(relid));
	}
	if (type_is_enum(table.type))
		types = lappend_oid(types, table.type);
	foreach(cell, types)
	{
		blockers = add_dependents(blockers, TypeRelationId, lfirst_oid(cell), 0, relids, table.column);
		blockers = add_dependents(blockers, TypeRelationId, get_array_type(lfirst_oid(cell)), 0,
								  relids, table.column);
	}
	list_sort(blockers, compare_descriptions);
	return blockers;
}

/*
 * Change the key of a LIST-partitioned table to text, keeping the text of the
 * values.  Each partition must be for one key.  while_empty is SQL that runs
 * while the parent has no partitions, when its columns can be changed without
 * theirs.
 *
 * The caller has checked rekey_blockers(), holds AccessExclusiveLock on parent
 * and partitions, and is the owner.  Needs an SPI connection.
 */
void
rekey_to_text(Oid parent, const char *while_empty)
{
	ListTable	table;
	List	   *triggers = trigger_states(parent);
	List	   *partitions = NIL;
	ListCell   *cell;

	list_table_open(parent, AccessExclusiveLock, &table);
	foreach(cell, find_inheritance_children(parent, AccessExclusiveLock))
	{
		Partition  *partition = palloc(sizeof(Partition));

		partition->relid = lfirst_oid(cell);
		partition->name = qualified_name(partition->relid);
		partition->value = partition_bound_value(partition->relid);
		if (partition->value == NULL)
			elog(ERROR, "partition %s is not for one key", partition->name);
		partitions = lappend(partitions, partition);
		run_sql("ALTER TABLE %s DETACH PARTITION %s", table.name, partition->name);
	}

	foreach(cell, partitions)
		rekey_partition(lfirst(cell), table.column);
	rekey_parent(parent, table.column);
	if (while_empty)
		run_sql("%s", while_empty);

	foreach(cell, partitions)
	{
		Partition  *partition = lfirst(cell);

		run_sql("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s)",
						 table.name, partition->name, quote_literal_cstr(partition->value));
	}
	foreach(cell, triggers)
		run_sql("%s", (const char *) lfirst(cell));

	if (type_is_enum(table.type))
		run_sql("DROP TYPE %s", format_type_be_qualified(table.type));
}
