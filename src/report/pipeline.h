/*
 * pipeline.h
 *	  Runs of pipelines, their stages and operators.
 */
#ifndef METRICS_PIPELINE_H
#define METRICS_PIPELINE_H

#include "datatype/timestamp.h"

#include "compat.h"
#include "percentile/sketch.h"
#include "store/store.h"

/* pipeline.c */
pg_noreturn extern void run_unknown(const char *run_id);
extern void run_check_open(const char *run_id, const char *status, TimestampTz end_time, TimestampTz at);
extern void check_pipeline_time(const char *name, TimestampTz at);

/* figures.c */
extern bool sketch_holds_latencies(const Sketch *sketch);

#endif							/* METRICS_PIPELINE_H */
