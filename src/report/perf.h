/*
 * perf.h
 *	  What the functions of performance data share.
 */
#ifndef METRICS_PERF_H
#define METRICS_PERF_H

#include "compat.h"
#include "store/store.h"

extern void perf_open(FunctionCallInfo fcinfo, LOCKMODE lockmode, MetricsStore *store);
extern void perf_find_or_create(const MetricsStore *store, const StoreQuery *find,
								const StoreQuery *create, Datum *values, const char *nulls);
extern Datum perf_get_id(const MetricsStore *store, const StoreQuery *find,
						 const StoreQuery *create, Datum *values, const char *nulls);
pg_noreturn extern void perf_unknown_repository(const char *repository);

#endif							/* METRICS_PERF_H */
