/*
 * perf.h
 *	  What the functions of performance data share.
 */
#ifndef METRICS_PERF_H
#define METRICS_PERF_H

#include "compat.h"
#include "report/change_detection.h"
#include "store/store.h"

/* Of performance_signature s. */
#define PERF_WINDOW_COLUMNS "s.min_back_window, s.max_back_window, s.fore_window"

extern void perf_open(FunctionCallInfo fcinfo, LOCKMODE lockmode, MetricsStore *store);
extern void perf_find_or_create(const MetricsStore *store, const StoreQuery *find,
								const StoreQuery *create, Datum *values, const char *nulls);
extern ChangeWindows perf_window_columns(int column);
extern void perf_detect_changes(const MetricsStore *store, const StoreQuery *query, Datum *values,
								const char *nulls, const ChangeWindows *windows, Series *series);
extern Datum perf_get_id(const MetricsStore *store, const StoreQuery *find,
						 const StoreQuery *create, Datum *values, const char *nulls);
pg_noreturn extern void perf_unknown_repository(const char *repository);

#endif							/* METRICS_PERF_H */
