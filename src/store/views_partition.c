/*
 * views_partition.c
 *	  The view of partitions: what metrics_partitions shows, in the types that BI
 *	  tools know.
 */
#include "postgres.h"

#include "store/view.h"

static const ViewColumn partitions[] = {
	{"table_name", "m.parent::text", "partitioned table"},
	{"partition_key", "k.partition_key", "key of the partition; NULL for a default partition and for one of several keys"},
	{"partition_name", "c.oid::regclass::text", "the partition"},
	{"kind", "(SELECT kind FROM @store@.metrics_partition_kind WHERE partition_key = k.partition_key"
	" AND m.parent = (SELECT s.oid FROM pg_class s JOIN pg_class own ON own.relnamespace = s.relnamespace"
	"  WHERE own.oid = m.tableoid AND s.relname = 'metrics'))", "batch or time; NULL outside the store"},
	{"created", "p.created", "when metrics_ext made it; NULL if it did not"},
	{"created_by", "p.created_by", "for whom; metrics_ext if rows asked for it"},
	{"rows_estimate", "(SELECT COALESCE(sum(GREATEST(l.reltuples, 0)), 0)::bigint FROM pg_partition_tree(c.oid) t"
	" JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf)", "rows, as of the last ANALYZE"},
	{"size_bytes", "(SELECT COALESCE(sum(pg_total_relation_size(t.relid)), 0)::bigint FROM pg_partition_tree(c.oid) t)", "bytes on disk, indexes included"},
	{0}
};

const StoreView store_views_partition[] = {
	{"partitions", "Partitions of the store and of managed tables.",
		"FROM @store@.metrics_managed_table m JOIN pg_inherits i ON i.inhparent = m.parent"
		" JOIN pg_class c ON c.oid = i.inhrelid LEFT JOIN @store@.metrics_partition p ON p.partition = c.oid"
	" CROSS JOIN LATERAL (SELECT @extension@.metrics_partition_key(c.oid) AS partition_key) k", partitions},
	{0}
};
