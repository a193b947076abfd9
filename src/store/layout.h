/*
 * layout.h
 *	  What a layout of the store consists of: the locks and the steps that lead
 *	  to it from the one before.
 */
#ifndef METRICS_LAYOUT_H
#define METRICS_LAYOUT_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

#include "store/store.h"

typedef struct LayoutLock
{
	const char *relation;
	LOCKMODE	mode;
	bool		and_partitions;
} LayoutLock;

typedef struct LayoutStep
{
	const char *action;			/* what it does, for people */
	const char *relation;		/* the table it is about */
	int			estimate;		/* microseconds, whatever the number of rows */
	const char *const *sql;		/* statements, as in a StoreQuery, up to a NULL */
	void		(*run) (const MetricsStore *store); /* after them */
	bool		rebuilds;		/* run makes what goes with the extension, if it is not there */
	List	   *(*blockers) (const MetricsStore *store);	/* what would make it fail */
	const char *obstacle;		/* and why, for people */
	const char *hint;			/* what to do about it; NULL: drop or rename */
} LayoutStep;

typedef struct LayoutVersion
{
	const char *name;			/* the version of the extension that brought it */
	const LayoutLock *locks;	/* in order: referenced tables, parent, partitions */
	const LayoutStep *steps;
} LayoutVersion;

extern const LayoutStep layout_steps_1_0[];
extern const LayoutLock layout_locks_1_1[];
extern const LayoutStep layout_steps_1_1[];
extern const LayoutLock layout_locks_1_4[];
extern const LayoutStep layout_steps_1_4[];

#endif							/* METRICS_LAYOUT_H */
