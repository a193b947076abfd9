/*
 * report.h
 *	  One report of metrics.
 */
#ifndef METRICS_REPORT_H
#define METRICS_REPORT_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "report/trial.h"
#include "store/store.h"

typedef struct Report
{
	int32		trial_id;
	char	   *group;
	Jsonb	   *metrics;
	bool		has_steps;
	int32		steps;			/* steps_completed, in batches */
	int32		run_id;
	bool		has_time;
	TimestampTz time;			/* report_time */
	Jsonb	   *batch_metrics;	/* or NULL */
} Report;

extern void report_check_size(Size size);
extern int64 report_write(const MetricsStore *store, const Report *report, TrialSet *set);

#endif							/* METRICS_REPORT_H */
