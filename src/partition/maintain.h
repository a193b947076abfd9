/*
 * maintain.h
 *	  Maintenance of partitions: a round creates what is missing and moves the
 *	  rows that wait, one transaction after another.
 *
 * The background worker and CALL metrics_maintain() run the same rounds.  What
 * a round knows from one transaction to the next lives in its memory context;
 * what the next round has to know is in tables of the store.
 */
#ifndef METRICS_MAINTAIN_H
#define METRICS_MAINTAIN_H

#include "store/store.h"
#include "utils/palloc.h"

typedef struct MaintenanceRound MaintenanceRound;

extern MaintenanceRound *maintenance_begin(MemoryContext context, bool everything);
extern bool maintenance_step(MaintenanceRound *round, const MetricsStore *store);
extern Oid	maintenance_wanted_index(MaintenanceRound *round);
extern bool maintenance_is_due(const MetricsStore *store);
extern void partition_build_index(Oid relid);

#endif							/* METRICS_MAINTAIN_H */
