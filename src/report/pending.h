/*
 * pending.h
 *	  Reported rows that wait for their partition.
 */
#ifndef METRICS_PENDING_H
#define METRICS_PENDING_H

#include "report/report.h"

extern int64 pending_insert(const MetricsStore *store, const Report *report, const StoreRoute *route);
extern uint64 pending_move(const MetricsStore *store, const char *key, uint64 limit);

#endif							/* METRICS_PENDING_H */
