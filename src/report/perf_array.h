/*
 * perf_array.h
 *	  Arrays of measurements as arguments.
 */
#ifndef METRICS_PERF_ARRAY_H
#define METRICS_PERF_ARRAY_H

#include "fmgr.h"

extern const void *perf_array_argument(FunctionCallInfo fcinfo, int number, const char *name, int *count);
extern const double *perf_float8_argument(FunctionCallInfo fcinfo, int number, const char *name, int *count);

#endif							/* METRICS_PERF_ARRAY_H */
