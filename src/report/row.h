/*
 * row.h
 *	  The row of a report.
 */
#ifndef METRICS_ROW_H
#define METRICS_ROW_H

#include "report/report.h"

/* A row of a group that is identified by steps, after a report was written. */
typedef struct Row
{
	int64		id;				/* 0: a trigger suppressed it */
	TimestampTz end_time;
	JsonbContainer *metrics;	/* all that it has now */
	JsonbContainer *added;		/* what it did not have before, NULL for nothing */
	bool		changed_by_trigger; /* none of this can be relied on */
} Row;

extern int64 row_insert_by_time(const MetricsStore *store, const Report *report,
								const StoreRoute *route);
extern void row_insert(const MetricsStore *store, const Report *report,
					   const StoreRoute *route, Row *row);
extern void row_merge(const MetricsStore *store, const Report *report,
					  const StoreRoute *route, Jsonb *document, Row *row);

#endif							/* METRICS_ROW_H */
