/*
 * list_table.h
 *	  A table partitioned by LIST on one column: its key and its partitions.
 */
#ifndef METRICS_LIST_TABLE_H
#define METRICS_LIST_TABLE_H

#include "access/attnum.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

/* A LIST-partitioned table as it was when it was opened; no lock is implied. */
typedef struct ListTable
{
	Oid			relid;
	Oid			namespace;
	char	   *name;			/* qualified and quoted */
	char	   *column;			/* of the key, not quoted */
	AttrNumber	attnum;
	Oid			type;			/* of the key column */
	int32		typmod;
	Oid			opfamily;		/* by which keys compare */
	Oid			optype;
	Oid			collation;
	Oid			column_collation;	/* usually the same */
	Oid			default_partition;	/* InvalidOid if there is none */
} ListTable;

extern void list_table_open(Oid parent, LOCKMODE lockmode, ListTable *table);
extern void list_table_look(Oid parent, ListTable *table);
extern void list_table_check_text_key(const ListTable *table);
extern Datum list_table_key(const ListTable *table, const char *key);
extern Oid	list_table_partition(Oid parent, Datum key);
extern char *partition_bound_value(Oid partition);
extern char *qualified_name(Oid relid);
extern Oid	relation_owner(Oid relid);
extern void mark_check_valid(Oid relid, const char *name);

#endif							/* METRICS_LIST_TABLE_H */
