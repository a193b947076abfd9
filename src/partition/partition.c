/*
 * partition.c
 *	  Making and detaching partitions of a table partitioned by LIST on a text
 *	  column.
 *
 * A partition is made as a table of its own, equal to its model, and attached
 * when it is complete; CREATE TABLE … PARTITION OF would lock the parent against
 * readers.  Locks are taken in one order, each at its final strength before a
 * row moves: referenced tables, parent, default partition, new partition.
 *
 * Where no row moves, the parent is held at ShareUpdateExclusiveLock and others
 * read and write it.  Where rows of the key leave the default partition, it is
 * held at AccessExclusiveLock from before they move until the commit: with
 * less, a reader that waited behind ATTACH would find them in neither place.
 *
 * ATTACH looks through the default partition for rows of the key, and through
 * the new partition for rows of others, unless constraints say that there are
 * none.  Both are known here, by the index and by what was moved, so the
 * constraints are entered for as long as ATTACH takes.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/ruleutils.h"

#include "guc.h"
#include "partition/model.h"
#include "partition/partition.h"
#include "partition/relocate.h"
#include "sql.h"

/* What is known while a partition is being added. */
typedef struct Addition
{
	ListTable	table;
	Oid			model;			/* what the partition is made like */
	const char *key;
	Datum		value;			/* the same as a value of the column */
	const char *column;			/* of the key, as SQL, with the collation of the key */
	const char *literal;
	List	   *default_tables;	/* those that have the rows of the default partition */
	bool		like_parent;	/* made like the parent, not like another partition */
	char	   *check;			/* the constraint that says what the bound says */
} Addition;

/* Give up waiting for locks soon: whoever comes later waits behind us. */
static void
limit_lock_waits(void)
{
	set_local("lock_timeout", psprintf("%dms", metrics_lock_timeout));
}

/* Lock the tables that foreign keys of a partition will reference. */
static void
lock_referenced_tables(Oid parent, Oid model)
{
	SPITupleTable *rows;

	run_sql("SELECT DISTINCT confrelid FROM pg_constraint"
			" WHERE conrelid IN (%u, %u) AND contype = 'f' ORDER BY 1", parent, model);
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
	{
		bool		isnull;
		Oid			relid = DatumGetObjectId(SPI_getbinval(rows->vals[row], rows->tupdesc, 1, &isnull));

		LockRelationOid(relid, ShareRowExclusiveLock);
	}
}

/*
 * The tables that have the rows of the default partition: itself, or the leaves
 * below it.  All are locked, from the top, unless the lock mode is NoLock.
 */
List *
partition_default_tables(const ListTable *table, LOCKMODE lockmode)
{
	List	   *tables = NIL;
	ListCell   *cell;

	if (!OidIsValid(table->default_partition))
		return NIL;
	if (lockmode != NoLock)
		LockRelationOid(table->default_partition, lockmode);
	foreach(cell, find_all_inheritors(table->default_partition, lockmode, NULL))
	{
		char		relkind = get_rel_relkind(lfirst_oid(cell));

		if (relkind == RELKIND_RELATION)
			tables = lappend_oid(tables, lfirst_oid(cell));
		else if (relkind != RELKIND_PARTITIONED_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("rows cannot be moved out of %s", qualified_name(lfirst_oid(cell))),
					 errdetail("It is not an ordinary table."),
					 errhint("Use an ordinary table as the default partition of %s.", table->name)));
	}
	return tables;
}

/* Has the default partition rows of the key? */
static bool
default_has_key(const Addition *addition)
{
	ListCell   *cell;

	foreach(cell, addition->default_tables)
	{
		if (relocate_wants_index(lfirst_oid(cell), &addition->table))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("%s has no index that leads with \"%s\"",
							qualified_name(lfirst_oid(cell)), addition->table.column),
					 errdetail("Without one, it would be scanned while others wait."),
					 errhint("CREATE INDEX CONCURRENTLY ON %s (%s), or leave it to the background worker or CALL metrics_drain().",
							 qualified_name(lfirst_oid(cell)), quote_identifier(addition->table.column))));
		if (relocate_count(lfirst_oid(cell), &addition->table, addition->value, 1) > 0)
			return true;
	}
	return false;
}

/* Refuse to move rows that a foreign key references in the default partition itself. */
static void
check_direct_references(const Addition *addition)
{
	ListCell   *cell;

	foreach(cell, addition->default_tables)
	{
		run_sql("SELECT conname, conrelid::regclass::text FROM pg_constraint"
				" WHERE confrelid = %u AND contype = 'f' AND conparentid = 0"
				" UNION ALL SELECT conname, conrelid::regclass::text FROM pg_constraint"
				" WHERE confrelid = %u AND contype = 'f' AND conparentid = 0 LIMIT 1",
				lfirst_oid(cell), addition->table.default_partition);
		if (SPI_processed > 0)
			ereport(ERROR,
					(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
					 errmsg("rows cannot be moved out of %s because constraint \"%s\" of %s references it",
							qualified_name(lfirst_oid(cell)),
							SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1),
							SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2)),
					 errhint("Let the foreign key reference %s.", addition->table.name)));
	}
}

/*
 * Make the partition as a table of its own, with a check that says what its
 * bound will.  One that is made like another partition gets its own key for that
 * one's in the default and the check; otherwise the check is for ATTACH alone.
 */
static Oid
create_table(Addition *addition)
{
	Oid			relid = create_like(addition->model, addition->table.namespace,
									partition_name(addition->table.relid, addition->key));
	char	   *name = qualified_name(relid);

	addition->check = addition->like_parent ?
		ChooseConstraintName(get_rel_name(relid), addition->table.column, "check",
							 addition->table.namespace, NIL) :
		psprintf("%s_check", addition->table.column);
	if (!addition->like_parent)
		run_sql("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s, DROP CONSTRAINT IF EXISTS %s",
				name, quote_identifier(addition->table.column), addition->literal,
				quote_identifier(addition->check));
	run_sql("ALTER TABLE %s ADD CONSTRAINT %s CHECK (%s%s = %s)", name,
			quote_identifier(addition->check),
			addition->like_parent ? psprintf("%s IS NOT NULL AND ", addition->column) : "",
			addition->column, addition->literal);
	return relid;
}

/* Attach the complete partition. */
static void
attach(const Addition *addition, Oid partition)
{
	Oid			default_partition = addition->table.default_partition;
	char	   *default_check = NULL;

	if (OidIsValid(default_partition))
	{
		default_check = ChooseConstraintName(get_rel_name(default_partition), addition->table.column,
											 "check", get_rel_namespace(default_partition), NIL);
		run_sql("ALTER TABLE %s ADD CONSTRAINT %s CHECK (%s IS NULL OR %s <> %s) NOT VALID",
				qualified_name(default_partition), quote_identifier(default_check),
				addition->column, addition->column, addition->literal);
		mark_check_valid(default_partition, default_check);
	}

	run_sql("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s)",
			addition->table.name, qualified_name(partition), addition->literal);

	if (default_check)
		run_sql("ALTER TABLE %s DROP CONSTRAINT %s", qualified_name(default_partition),
				quote_identifier(default_check));
	if (addition->like_parent)
		run_sql("ALTER TABLE %s DROP CONSTRAINT %s", qualified_name(partition),
				quote_identifier(addition->check));
}

/*
 * Add a partition while holding the parent at a lock mode; false if that would
 * have to be AccessExclusiveLock, because rows move.
 */
static bool
try_add(Oid parent, const char *key, Oid model, LOCKMODE lockmode, PartitionAdded *added)
{
	Addition	addition = {.model = model, .key = key, .like_parent = model == parent};
	bool		moves;
	ListCell   *cell;

	lock_referenced_tables(parent, model);
	list_table_open(parent, lockmode, &addition.table);
	list_table_check_text_key(&addition.table);
	addition.value = list_table_key(&addition.table, key);
	added->moved = 0;
	added->partition = list_table_partition(parent, addition.value);
	added->created = !OidIsValid(added->partition);
	if (!added->created)
		return true;

	addition.literal = quote_literal_cstr(key);
	addition.column = quote_identifier(addition.table.column);
	if (addition.table.collation != addition.table.column_collation)
		addition.column = psprintf("%s COLLATE %s", addition.column,
								   generate_collation_name(addition.table.collation));
	addition.default_tables = partition_default_tables(&addition.table, AccessExclusiveLock);
	moves = default_has_key(&addition);
	if (moves && lockmode != AccessExclusiveLock)
		return false;

	added->partition = create_table(&addition);
	if (moves)
		check_direct_references(&addition);
	foreach(cell, moves ? addition.default_tables : NIL)
		added->moved += relocate_rows(lfirst_oid(cell), added->partition, &addition.table,
									  addition.value);
	attach(&addition, added->partition);
	return true;
}

/*
 * Make sure that a table has a partition for a key: made like the model, which
 * is the parent or one of its partitions, and attached together with the rows
 * of the key that the default partition has.  What is there already, is taken
 * as it is.  Acts as the owner of the parent; the locks last until the end of
 * the transaction, and waiting for each is limited.
 */
void
partition_add(Oid parent, const char *key, Oid model, PartitionAdded *added)
{
	SavedIdentity saved;
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		done;

	act_as(relation_owner(parent), "pg_catalog, pg_temp", &saved);
	set_local("default_tablespace", "");
	limit_lock_waits();

	/* Without the locks of the first try, or their order would be lost. */
	BeginInternalSubTransaction(NULL);
	SPI_connect();
	done = try_add(parent, key, model, ShareUpdateExclusiveLock, added);
	SPI_finish();
	if (done)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	if (!done)
	{
		SPI_connect();
		(void) try_add(parent, key, model, AccessExclusiveLock, added);
		SPI_finish();
	}
	act_as_before(&saved);
}

/*
 * Take a partition off its parent, as the owner of the parent.  It stays as a
 * table of its own, or is dropped.
 */
void
partition_detach(Oid parent, Oid partition, bool keep_table)
{
	char	   *name = qualified_name(partition);
	SavedIdentity saved;

	act_as(relation_owner(parent), "pg_catalog, pg_temp", &saved);
	limit_lock_waits();
	SPI_connect();
	run_sql("ALTER TABLE %s DETACH PARTITION %s", qualified_name(parent), name);
	if (!keep_table)
		run_sql("DROP TABLE %s", name);
	SPI_finish();
	act_as_before(&saved);
}
