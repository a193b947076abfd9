/*
 * summary.h
 *	  Summary of a trial's metrics: arithmetic on jsonb, without SQL.
 *
 * A summary is a jsonb object of groups, each an object of metrics:
 * {"avg_metrics": {"loss": {"type": "number", "count": …, "min": …, …}}}.  It is
 * a function of the rows alone, not of their order, so adding them one by one
 * as they are reported gives what a recompute over all of them gives.
 */
#ifndef METRICS_SUMMARY_H
#define METRICS_SUMMARY_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

typedef struct Summary Summary;

extern Summary *summary_begin(Jsonb *metrics, Jsonb *last_rows);
extern void summary_add(Summary *summary, const char *group, JsonbContainer *metrics,
						TimestampTz end_time, int64 id);
extern void summary_free(Summary *summary);
extern Jsonb *summary_finish(Summary *summary, Jsonb **last_rows);

#endif							/* METRICS_SUMMARY_H */
