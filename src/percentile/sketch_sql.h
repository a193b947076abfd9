/*
 * sketch_sql.h
 *	  Sketches as datums.
 */
#ifndef METRICS_SKETCH_SQL_H
#define METRICS_SKETCH_SQL_H

#include "fmgr.h"

#include "percentile/sketch.h"

extern void sketch_from_bytes(Sketch *sketch, const bytea *bytes);
extern void sketch_merge_bytes(Sketch *sketch, const bytea *bytes);
extern bytea *sketch_to_bytes(const Sketch *sketch);
extern double sketch_get_relative_error(FunctionCallInfo fcinfo, int n, const double *declared);
extern MemoryContext sketch_aggregate_context(FunctionCallInfo fcinfo);
extern void sketch_require_same_error(double one, double other);
extern void sketch_count_overflow(void);

#define PG_GETARG_SKETCH(sketch, n) sketch_from_bytes((sketch), PG_GETARG_BYTEA_PP(n))

#endif							/* METRICS_SKETCH_SQL_H */
