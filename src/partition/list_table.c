/*
 * list_table.c
 *	  What the catalogs say of a table partitioned by LIST on one column.
 *
 * The identity of a partition is its bound, never its name, and two keys are
 * the same if the operators of the partition key say so.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/partition.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "nodes/parsenodes.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "partition/list_table.h"

/* The name of a relation as SQL. */
char *
qualified_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/* The role that owns a relation; an error if it was dropped, relation or role. */
Oid
relation_owner(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid),
				 errhint("It was dropped; if it was managed, call metrics_unmanage_partitions(%u).", relid)));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(owner)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("the owner of %s does not exist", qualified_name(relid)),
				 errhint("Give it another with ALTER TABLE … OWNER TO.")));
	return owner;
}

/*
 * Lock a table and read what is to know of it; an error if it is not
 * partitioned by LIST on a column.  The lock is kept.
 */
void
list_table_open(Oid parent, LOCKMODE lockmode, ListTable *table)
{
	Relation	rel = table_open(parent, lockmode);
	PartitionKey key = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ?
		RelationGetPartitionKey(rel) : NULL;

	if (key == NULL || key->strategy != PARTITION_STRATEGY_LIST ||
		key->partattrs[0] == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not partitioned by LIST on a column",
						RelationGetRelationName(rel)),
				 errhint("Create the table with PARTITION BY LIST (column).")));

	table->relid = parent;
	table->namespace = RelationGetNamespace(rel);
	table->name = qualified_name(parent);
	table->attnum = key->partattrs[0];
	table->column = get_attname(parent, table->attnum, false);
	table->type = key->parttypid[0];
	table->typmod = key->parttypmod[0];
	table->opfamily = key->partopfamily[0];
	table->optype = key->partopcintype[0];
	table->collation = key->partcollation[0];
	table->column_collation = TupleDescAttr(RelationGetDescr(rel), table->attnum - 1)->attcollation;
	table->default_partition = get_default_partition_oid(parent);
	table_close(rel, NoLock);
}

/* The same, giving the lock back: for what is only looked at. */
void
list_table_look(Oid parent, ListTable *table)
{
	list_table_open(parent, AccessShareLock, table);
	UnlockRelationOid(parent, AccessShareLock);
}

/* Refuse a table whose key is no text: we make partitions for texts only. */
void
list_table_check_text_key(const ListTable *table)
{
	if (table->type == TEXTOID || table->type == VARCHAROID || table->type == NAMEOID)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("the partition key \"%s\" of %s is of type %s", table->column, table->name,
					format_type_be(table->type)),
			 errhint("Keys of type text, varchar and name can be managed.")));
}

/* A key as a value of the key's type. */
Datum
list_table_key(const ListTable *table, const char *key)
{
	Oid			input;
	Oid			ioparam;

	getTypeInputInfo(table->type, &input, &ioparam);
	return OidInputFunctionCall(input, unconstify(char *, key), ioparam, table->typmod);
}

/* The partition whose bound has a key; InvalidOid if none has. */
Oid
list_table_partition(Oid parent, Datum key)
{
	Relation	rel = table_open(parent, AccessShareLock);
	PartitionKey partkey = RelationGetPartitionKey(rel);
	PartitionDesc desc = RelationGetPartitionDesc(rel, false);
	Oid			partition = InvalidOid;

	if (desc->nparts > 0)
	{
		bool		equal;
		int			offset = partition_list_bsearch(partkey->partsupfunc, partkey->partcollation,
													desc->boundinfo, key, &equal);

		if (offset >= 0 && equal)
			partition = desc->oids[desc->boundinfo->indexes[offset]];
	}
	table_close(rel, AccessShareLock);
	return partition;
}

/* The one bound value of a partition, as text; NULL if it has none or more. */
char *
partition_bound_value(Oid partition)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(partition));
	Datum		bound;
	bool		isnull;
	PartitionBoundSpec *spec;
	Const	   *value;
	Oid			output;
	bool		varlena;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", partition);
	bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	if (isnull)
		elog(ERROR, "relation %u is not a partition", partition);
	spec = stringToNode(TextDatumGetCString(bound));
	ReleaseSysCache(tuple);

	if (spec->is_default || list_length(spec->listdatums) != 1)
		return NULL;
	value = linitial_node(Const, spec->listdatums);
	if (value->constisnull)
		return NULL;
	getTypeOutputInfo(value->consttype, &output, &varlena);
	return OidOutputFunctionCall(output, value->constvalue);
}

/*
 * Enter a CHECK constraint as valid.  Only for one that holds by construction,
 * on a table that we hold an AccessExclusiveLock on.
 */
void
mark_check_valid(Oid relid, const char *name)
{
	Relation	catalog = table_open(ConstraintRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(CONSTROID,
											ObjectIdGetDatum(get_relation_constraint_oid(relid, name, false)));

	((Form_pg_constraint) GETSTRUCT(tuple))->convalidated = true;
	CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
	table_close(catalog, RowExclusiveLock);
	CacheInvalidateRelcacheByRelid(relid);
	CommandCounterIncrement();
}
