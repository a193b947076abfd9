/*
 * pipeline_operator.h
 *	  One row that a worker reports of an operator.
 */
#ifndef METRICS_PIPELINE_OPERATOR_H
#define METRICS_PIPELINE_OPERATOR_H

#include "utils/jsonb.h"

#include "report/pipeline.h"

/* run, stage, operator, worker: with the time, the key */
#define NNAMES 4

/* What can be said of a record's latency. */
typedef struct Latencies
{
	bool		given;
	int			n;
	double	   *values;
	bool		weighted;
	int			nweights;
	int64	   *weights;
	bytea	   *sketch;
} Latencies;

typedef struct OperatorRow
{
	text	   *names[NNAMES];
	int64		input_records;
	int64		output_records;
	double		total_time;
	int64		error_count;
	Latencies	latencies;
	bytea	   *sketch;			/* of the latencies, or NULL */
	Jsonb	   *custom_metrics;
	bool		has_at;
	TimestampTz at;
} OperatorRow;

extern int64 write_operators(const MetricsStore *store, const OperatorRow *rows, int count);

#endif							/* METRICS_PIPELINE_OPERATOR_H */
