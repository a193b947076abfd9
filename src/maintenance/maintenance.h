/*
 * maintenance.h
 *	  Maintenance of partitions: which tables are managed, and rounds that
 *	  create what is missing and move the rows that wait, one transaction after
 *	  another.
 *
 * The background worker and CALL metrics_maintain() run the same rounds.  What
 * a round knows from one transaction to the next lives in its memory context;
 * what the next round has to know is in tables of the store.
 */
#ifndef METRICS_MAINTENANCE_H
#define METRICS_MAINTENANCE_H

#include "partition/partition.h"
#include "store/store.h"
#include "utils/palloc.h"

typedef struct MaintenanceRound MaintenanceRound;

/* An index by which rows of a key can be found in a table, which has none. */
typedef struct WantedIndex
{
	Oid			parent;			/* whose key it is */
	Oid			table;
} WantedIndex;

/* round.c */
extern MaintenanceRound *maintenance_begin(MemoryContext context, bool everything);
extern bool maintenance_step(MaintenanceRound *round, const MetricsStore *store);
extern bool maintenance_wants_index(MaintenanceRound *round, WantedIndex *wanted);
extern bool maintenance_is_due(const MetricsStore *store);

/* managed.c */
extern void managed_open_store(FunctionCallInfo fcinfo, MetricsStore *store);
extern uint64 managed_execute(const MetricsStore *store, const StoreQuery *query,
							  Datum *values, const char *nulls);
extern void managed_check(const MetricsStore *store, Oid parent);
extern void managed_check_caller(Oid parent);
extern void managed_check_owner(const MetricsStore *store, Oid parent);
extern int	managed_partition_count(Oid parent);
extern void managed_count(const MetricsStore *store, Oid parent, int partitions, uint64 moved);
extern void managed_add(const MetricsStore *store, Oid parent, const char *key,
						const char *created_by, bool only_for_rows, PartitionAdded *added);
extern Oid	managed_add_now(const MetricsStore *store, Oid parent, const char *key);
extern void managed_check_kind(const char *kind);
extern void managed_add_key(const MetricsStore *store, const char *key, const char *kind);

/* failure.c */
extern char *table_text(Oid relid);
extern void note_failure(const MetricsStore *store, Oid parent, const char *key, const ErrorData *error);
extern void note_success(const MetricsStore *store, Oid parent, const char *key);
extern void forget_failures(const MetricsStore *store, Oid parent, List *keys);
extern void forget_pending_failures(const MetricsStore *store);
extern List *waiting_keys(const MetricsStore *store, Oid parent);

/* patience.c */
extern bool is_contention(const ErrorData *error);
extern void wait_for_next_attempt(int attempts);
extern void insist(bool (*function) (void *arg), void *arg);

/* index_build.c */
extern bool maintenance_request_index(const WantedIndex *wanted);

#endif							/* METRICS_MAINTENANCE_H */
