/*
 * view.h
 *	  Views for BI tools, as tables of columns: name, expression and comment
 *	  stand together.
 */
#ifndef METRICS_VIEW_H
#define METRICS_VIEW_H

/*
 * In expressions and in from, @store@ and @extension@ stand for schemas, as in
 * a StoreQuery; the list of columns ends with a name that is NULL.
 */
typedef struct ViewColumn
{
	const char *name;
	const char *expression;
	const char *comment;		/* with the unit */
} ViewColumn;

typedef struct StoreView
{
	const char *name;
	const char *comment;
	const char *from;			/* FROM and what follows */
	const ViewColumn *columns;
} StoreView;

/* Each list ends with a name that is NULL; a view stands after those that it reads. */
extern const StoreView store_views_pipeline[];
extern const StoreView store_views_trial[];
extern const StoreView store_views_partition[];
extern const StoreView store_views_perf[];

/* Division that is 0 where there is nothing to divide by. */
#define RATIO(numerator, denominator) "@extension@.metrics_ratio(" numerator ", " denominator ")"

#endif							/* METRICS_VIEW_H */
