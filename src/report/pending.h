/*
 * pending.h
 *	  Reported rows that wait for their partition.
 */
#ifndef METRICS_PENDING_H
#define METRICS_PENDING_H

#include "store/store.h"
#include "utils/snapshot.h"

extern int64 pending_insert(const MetricsStore *store, const StoreQuery *insert, const char *keys,
							Datum *values, Snapshot snapshot);
extern uint64 pending_move(const MetricsStore *store, const char *key, uint64 limit);

#endif							/* METRICS_PENDING_H */
