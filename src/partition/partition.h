/*
 * partition.h
 *	  Partitions of a table partitioned by LIST on a text column.
 */
#ifndef METRICS_PARTITION_H
#define METRICS_PARTITION_H

#include "partition/list_table.h"

/* What became of a request for a partition. */
typedef struct PartitionAdded
{
	Oid			partition;		/* InvalidOid: there were no rows to make it for */
	bool		created;		/* or it was there */
	uint64		moved;			/* rows that left the default partition */
} PartitionAdded;

extern char *partition_name(Oid parent, const char *key);
extern List *partition_default_tables(const ListTable *table, LOCKMODE lockmode);
extern void partition_check_index(const ListTable *table, Oid default_table);
extern void partition_add(Oid parent, const char *key, Oid model, bool only_for_rows,
						  PartitionAdded *added);
extern void partition_detach(Oid parent, Oid partition, bool keep_table);

#endif							/* METRICS_PARTITION_H */
