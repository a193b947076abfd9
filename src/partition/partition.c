/*
 * partition.c
 *	  Making and detaching partitions of a table partitioned by LIST on a text
 *	  column.
 *
 * A partition is made as a table of its own, equal to its model, and attached;
 * CREATE TABLE … PARTITION OF would lock the parent against readers.  Locks are
 * taken in one order, each at its final strength before a row moves: tables
 * that foreign keys connect, parent, default partition, new partition.
 *
 * Where no row moves, the parent is held at ShareUpdateExclusiveLock and others
 * read and write it.  Where rows of the key leave the default partition, it is
 * held at AccessExclusiveLock from before they move until the commit: with
 * less, a reader that waited behind ATTACH would find them in neither place.
 *
 * ATTACH looks through the default partition for rows of the key, unless a
 * constraint says that there are none.  There are none, by the index, or they
 * will have moved before anybody else sees the partitions; so the constraint is
 * entered for as long as ATTACH takes.  Rows move after it: whoever decodes the
 * log for a subscriber has to know by then which table they are in.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/timestamp.h"

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
	const char *plain_column;	/* of the key, as SQL */
	const char *column;			/* the same with the collation of the key */
	const char *literal;
	List	   *default_tables;	/* those that have the rows of the default partition */
} Addition;

/* Give up waiting for locks soon: whoever comes later waits behind us. */
static void
limit_lock_waits(int64 milliseconds)
{
	set_local("lock_timeout", psprintf(INT64_FORMAT "ms", Max(1, milliseconds)));
}

/* The same for all locks until a time. */
static void
limit_lock_waits_until(TimestampTz deadline)
{
	limit_lock_waits(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline));
}

/*
 * Lock what foreign keys connect with a partition, as attaching it will.  If
 * the parent references itself it gets that lock here, too, unless a stronger
 * one follows: two in turn would be in each other's way.
 */
static void
lock_connected_tables(Oid parent, Oid model, LOCKMODE parent_lockmode)
{
	SPITupleTable *rows;

	run_sql("SELECT relid, max(lockmode) FROM ("
			"SELECT confrelid, %d FROM pg_constraint WHERE conrelid IN (%u, %u) AND contype = 'f'"
			" UNION ALL SELECT conrelid, %d FROM pg_constraint WHERE confrelid = %u AND contype = 'f'"
			") tables(relid, lockmode) GROUP BY relid ORDER BY relid",
			ShareRowExclusiveLock, parent, model, AccessShareLock, parent);
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
	{
		bool		isnull;
		Oid			relid = DatumGetObjectId(SPI_getbinval(rows->vals[row], rows->tupdesc, 1, &isnull));
		LOCKMODE	lockmode = DatumGetInt32(SPI_getbinval(rows->vals[row], rows->tupdesc, 2, &isnull));

		if (relid != parent || lockmode > parent_lockmode)
			LockRelationOid(relid, lockmode);
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

/* Refuse to look for rows where that would be a scan while others wait. */
void
partition_check_index(const ListTable *table, Oid default_table)
{
	if (relocate_wants_index(default_table, table))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s has no index that leads with \"%s\"", qualified_name(default_table), table->column),
				 errdetail("Without one, it would be scanned while others wait."),
				 errhint("CREATE INDEX CONCURRENTLY ON %s (%s), or leave it to the background worker or CALL metrics_drain(); if that was tried, the server's log says why it failed.",
						 qualified_name(default_table), quote_identifier(table->column))));
}

/* Has the default partition rows of the key? */
static bool
default_has_key(const Addition *addition)
{
	ListCell   *cell;

	foreach(cell, addition->default_tables)
	{
		partition_check_index(&addition->table, lfirst_oid(cell));
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
 * Drop the check that says what the bound of the model says, which a table made
 * like it has, too; returns its name, or NULL if there is none.
 */
static char *
drop_check_of_model(const Addition *addition, const char *name, Oid relid)
{
	char	   *model_key = partition_bound_value(addition->model);
	char	   *check;

	if (model_key == NULL)
		return NULL;
	run_sql("SELECT quote_ident(conname) FROM pg_constraint WHERE conrelid = %u AND contype = 'c'"
			" AND pg_get_constraintdef(oid) = format('CHECK ((%%s = %%L::text))', %s::text, %s)", relid,
			quote_literal_cstr(quote_identifier(addition->table.column)), quote_literal_cstr(model_key));
	if (SPI_processed == 0)
		return NULL;
	check = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	run_sql("ALTER TABLE %s DROP CONSTRAINT %s", name, check);
	return check;
}

/*
 * Make the partition as a table of its own.  One that is made like another
 * partition gets its own key for that one's in the default and the check.
 */
static Oid
create_table(const Addition *addition)
{
	Oid			relid = create_like(addition->model, addition->table.relid,
									partition_name(addition->table.relid, addition->key));
	char	   *name = qualified_name(relid);
	char	   *check;

	if (addition->model == addition->table.relid)
		return relid;
	run_sql("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s", name,
			quote_identifier(addition->table.column), addition->literal);
	check = drop_check_of_model(addition, name, relid);
	if (check == NULL)
		check = pstrdup(quote_identifier(ChooseConstraintName(get_rel_name(relid), addition->table.column,
															  "check", addition->table.namespace, NIL)));
	run_sql("ALTER TABLE %s ADD CONSTRAINT %s CHECK (%s = %s)", name, check, addition->column, addition->literal);
	return relid;
}

/*
 * Attach the empty partition.  The default partition may still have the rows of
 * the key that will move.
 */
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
				addition->plain_column, addition->column, addition->literal);
		mark_check_valid(default_partition, default_check);
	}

	run_sql("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s)",
			addition->table.name, qualified_name(partition), addition->literal);
	copy_foreign_key_comments(partition);

	if (default_check)
		run_sql("ALTER TABLE %s DROP CONSTRAINT %s", qualified_name(default_partition),
				quote_identifier(default_check));
}

/* A request for a partition. */
typedef struct Request
{
	Oid			parent;
	const char *key;
	Oid			model;
	bool		only_for_rows;	/* none is wanted if there are no rows to move */
	LOCKMODE	lockmode;		/* of the parent */
	PartitionAdded *added;
} Request;

/*
 * Add a partition while holding the parent at a lock mode; false if none was
 * added, because there are no rows or because they move, which takes
 * AccessExclusiveLock.  All locks together are waited for no longer than one.
 */
static bool
try_add(void *arg)
{
	Request    *request = arg;
	PartitionAdded *added = request->added;
	Addition	addition = {
		.model = request->model, .key = request->key
	};
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), metrics_lock_timeout);
	bool		moves;
	ListCell   *cell;

	SPI_connect();
	limit_lock_waits_until(deadline);
	lock_connected_tables(request->parent, request->model, request->lockmode);
	limit_lock_waits_until(deadline);
	list_table_open(request->parent, request->lockmode, &addition.table);
	list_table_check_text_key(&addition.table);
	addition.value = list_table_key(&addition.table, request->key);
	added->created = false;
	added->moved = 0;
	added->partition = list_table_partition(request->parent, addition.value);
	if (OidIsValid(added->partition))
	{
		SPI_finish();
		return true;
	}

	addition.literal = quote_literal_cstr(request->key);
	addition.column = addition.plain_column = quote_identifier(addition.table.column);
	if (addition.table.collation != addition.table.column_collation)
		addition.column = psprintf("%s COLLATE %s", addition.column,
								   generate_collation_name(addition.table.collation));
	limit_lock_waits_until(deadline);
	addition.default_tables = partition_default_tables(&addition.table, AccessExclusiveLock);
	limit_lock_waits(metrics_lock_timeout);
	moves = default_has_key(&addition);
	if (moves ? request->lockmode == AccessExclusiveLock : !request->only_for_rows)
	{
		if (moves)
			check_direct_references(&addition);
		added->partition = create_table(&addition);
		attach(&addition, added->partition);
		foreach(cell, moves ? addition.default_tables : NIL)
			added->moved += relocate_rows(lfirst_oid(cell), added->partition, &addition.table,
										  addition.value);
		added->created = true;
	}
	SPI_finish();
	return OidIsValid(added->partition);
}

/*
 * Make sure that a table has a partition for a key: made like the model, which
 * is the parent or one of its partitions, and attached together with the rows
 * of the key that the default partition has.  What is there already, is taken
 * as it is.  If it is only for those rows, none is made when there are none.
 * Acts as the owner of the parent; the locks last until the end of the
 * transaction, and waiting for them is limited.
 *
 * A row of a key that had none, inserted while its partition is attached, is
 * refused by the default partition if it was on its way there.  So rows that
 * may come and go at the moment are a reason to ask only for what is there.
 */
void
partition_add(Oid parent, const char *key, Oid model, bool only_for_rows, PartitionAdded *added)
{
	Request		request = {parent, key, model, only_for_rows, ShareUpdateExclusiveLock, added};
	SavedIdentity saved;

	act_as(relation_owner(parent), "pg_catalog, pg_temp", &saved);
	set_local("default_tablespace", "");

	/* In a subtransaction, to be rid of its locks if stronger ones are needed. */
	if (!only_for_rows)
	{
		ErrorData  *error = run_in_subtransaction(try_add, &request);

		if (error)
			ReThrowError(error);
	}
	if (only_for_rows || !OidIsValid(added->partition))
	{
		request.lockmode = AccessExclusiveLock;
		(void) try_add(&request);
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
	limit_lock_waits(metrics_lock_timeout);
	SPI_connect();
	run_sql("ALTER TABLE %s DETACH PARTITION %s", qualified_name(parent), name);
	if (!keep_table)
		run_sql("DROP TABLE %s", name);
	SPI_finish();
	act_as_before(&saved);
}
