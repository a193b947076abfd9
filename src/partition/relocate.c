/*
 * relocate.c
 *	  Finding the rows of a key in a table, and moving them to another.
 *
 * A row that moves from one partition to another of the same table stays the
 * same row, so nothing may happen to it: no trigger fires, no foreign key acts,
 * no policy is asked, no default or generated value is computed.  SQL cannot
 * say that, so rows are deleted and inserted below it.  Foreign keys that
 * reference the partitioned table go on holding, because they look the row up
 * by its values.
 *
 * Rows are found by an index that leads with the key.  Only a table of a few
 * pages is scanned without one.
 *
 * What only looks gives its locks back at once, so that stronger ones can be
 * taken in the right order afterwards.
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "partition/relocate.h"

/* Scanning so much takes less than building an index for it: one megabyte. */
#define MAX_SCANNED_PAGES 128

/* The key column in a partition, whose columns may stand in another order. */
static AttrNumber
key_column(Relation rel, const ListTable *table)
{
	return get_attnum(RelationGetRelid(rel), table->column);
}

/*
 * An index of a table that leads with the key and compares as it does; its
 * options tell the order.  InvalidOid if there is none.
 */
static Oid
leading_index(Relation rel, const ListTable *table, int16 *options)
{
	Oid			found = InvalidOid;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (index->rd_rel->relam == BTREE_AM_OID &&
			index->rd_index->indisvalid &&
			index->rd_index->indkey.values[0] == key_column(rel, table) &&
			index->rd_opfamily[0] == table->opfamily &&
			index->rd_indcollation[0] == table->collation &&
			RelationGetIndexPredicate(index) == NIL)
		{
			found = RelationGetRelid(index);
			*options = index->rd_indoption[0];
		}
		index_close(index, AccessShareLock);
		if (OidIsValid(found))
			break;
	}
	return found;
}

/* Must an index be built before the rows of a key can be looked for? */
bool
relocate_wants_index(Oid source, const ListTable *table)
{
	Relation	rel = table_open(source, AccessShareLock);
	int16		options;
	bool		wants = !OidIsValid(leading_index(rel, table, &options)) &&
		RelationGetNumberOfBlocks(rel) > MAX_SCANNED_PAGES;

	table_close(rel, AccessShareLock);
	return wants;
}

/* The function that compares keys in the way of a btree strategy. */
static Oid
comparison(const ListTable *table, StrategyNumber strategy)
{
	return get_opcode(get_opfamily_member(table->opfamily, table->optype, table->optype,
										  strategy));
}

static SysScanDesc
begin_scan(Relation rel, const ListTable *table, Datum key, Snapshot snapshot)
{
	int16		options;
	Oid			index = leading_index(rel, table, &options);
	ScanKeyData scan_key;

	ScanKeyEntryInitialize(&scan_key, 0, key_column(rel, table), BTEqualStrategyNumber,
						   InvalidOid, table->collation,
						   comparison(table, BTEqualStrategyNumber), key);
	return systable_beginscan(rel, index, OidIsValid(index), snapshot, 1, &scan_key);
}

/* How many rows of a key a table has, counting no further than a limit. */
uint64
relocate_count(Oid source, const ListTable *table, Datum key, uint64 limit)
{
	Relation	rel = table_open(source, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	SysScanDesc scan = begin_scan(rel, table, key, snapshot);
	uint64		count = 0;

	while (count < limit && HeapTupleIsValid(systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		count++;
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return count;
}

/* The key of a row as text, in the caller's memory. */
static char *
row_key(HeapTuple tuple, Relation rel, const ListTable *table)
{
	Oid			output;
	bool		varlena;
	bool		isnull;
	Datum		value = heap_getattr(tuple, key_column(rel, table), RelationGetDescr(rel), &isnull);

	if (isnull)
		return NULL;
	getTypeOutputInfo(table->type, &output, &varlena);
	return OidOutputFunctionCall(output, value);
}

/*
 * Keys by way of an index: the first, then each that is greater than the last.
 * It costs one descent a key, however many rows have it.
 */
static List *
indexed_keys(Relation rel, Relation index, int16 options, const ListTable *table,
			 Snapshot snapshot)
{
	ScanDirection direction = options & INDOPTION_DESC ? BackwardScanDirection : ForwardScanDirection;
	List	   *keys = NIL;
	ScanKeyData scan_key;

	ScanKeyEntryInitialize(&scan_key, SK_ISNULL | SK_SEARCHNOTNULL, key_column(rel, table),
						   InvalidStrategy, InvalidOid, InvalidOid, InvalidOid, (Datum) 0);
	for (;;)
	{
		SysScanDesc scan = systable_beginscan_ordered(rel, index, snapshot, 1, &scan_key);
		HeapTuple	tuple = systable_getnext_ordered(scan, direction);
		char	   *key = HeapTupleIsValid(tuple) ? row_key(tuple, rel, table) : NULL;

		systable_endscan_ordered(scan);
		CHECK_FOR_INTERRUPTS();
		if (key == NULL)
			return keys;
		keys = lappend(keys, key);
		ScanKeyEntryInitialize(&scan_key, 0, key_column(rel, table), BTGreaterStrategyNumber,
							   InvalidOid, table->collation,
							   comparison(table, BTGreaterStrategyNumber),
							   list_table_key(table, key));
	}
}

static int
compare_keys(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* Keys by scanning a table, which is small then. */
static List *
scanned_keys(Relation rel, const ListTable *table, Snapshot snapshot)
{
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, snapshot, 0, NULL);
	List	   *keys = NIL;
	List	   *distinct = NIL;
	HeapTuple	tuple;
	ListCell   *cell;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		char	   *key = row_key(tuple, rel, table);

		CHECK_FOR_INTERRUPTS();
		if (key != NULL)
			keys = lappend(keys, key);
	}
	systable_endscan(scan);

	list_sort(keys, compare_keys);
	foreach(cell, keys)
	{
		if (distinct == NIL || strcmp(llast(distinct), lfirst(cell)) != 0)
			distinct = lappend(distinct, lfirst(cell));
	}
	return distinct;
}

/*
 * The keys that a table has rows of, as texts; NULL is none.  Only for a table
 * that wants no index.
 */
List *
relocate_keys(Oid source, const ListTable *table)
{
	Relation	rel = table_open(source, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int16		options;
	Oid			indexid = leading_index(rel, table, &options);
	List	   *keys;

	if (OidIsValid(indexid))
	{
		Relation	index = index_open(indexid, AccessShareLock);

		keys = indexed_keys(rel, index, options, table, snapshot);
		index_close(index, AccessShareLock);
	}
	else
		keys = scanned_keys(rel, table, snapshot);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return keys;
}

/*
 * Move the rows of a key from one table to another, which has all its columns;
 * returns how many there were.  The caller holds AccessExclusiveLock on both,
 * and on the table that both are partitions of before anybody else sees it.
 *
 * A subscriber to the partitioned table gets a row to delete and the same row to
 * insert, in this order, or it would find it twice.
 */
uint64
relocate_rows(Oid source, Oid target, const ListTable *table, Datum key)
{
	Relation	from = table_open(source, NoLock);
	Relation	to = table_open(target, NoLock);
	AttrMap    *map = metrics_build_attrmap(RelationGetDescr(from), RelationGetDescr(to));
	TupleTableSlot *from_slot = MakeSingleTupleTableSlot(RelationGetDescr(from), &TTSOpsHeapTuple);
	TupleTableSlot *to_slot = table_slot_create(to, NULL);
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *result = makeNode(ResultRelInfo);
	BulkInsertState bulk = GetBulkInsertState();
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	SysScanDesc scan = begin_scan(from, table, key, snapshot);
	CommandId	command = GetCurrentCommandId(true);
	uint64		count = 0;
	HeapTuple	tuple;

	CheckCmdReplicaIdentity(from, CMD_DELETE);
	InitResultRelInfo(result, to, 1, NULL, 0);
	ExecOpenIndices(result, false);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		ResetPerTupleExprContext(estate);

		ExecStoreHeapTuple(tuple, from_slot, false);
		execute_attr_map_slot(map, from_slot, to_slot);
		simple_table_tuple_delete(from, &tuple->t_self, snapshot);
		table_tuple_insert(to, to_slot, command, 0, bulk);
		metrics_insert_index_tuples(result, to_slot, estate);
		count++;
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);

	ExecCloseIndices(result);
	FreeBulkInsertState(bulk);
	table_finish_bulk_insert(to, 0);
	ExecDropSingleTupleTableSlot(from_slot);
	ExecDropSingleTupleTableSlot(to_slot);
	FreeExecutorState(estate);
	free_attrmap(map);
	table_close(from, NoLock);
	table_close(to, NoLock);
	CommandCounterIncrement();
	return count;
}
