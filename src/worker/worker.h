/*
 * worker.h
 *	  The background worker: a launcher for periodic duties, and short-lived
 *	  workers, one a database at a time.
 */
#ifndef METRICS_WORKER_H
#define METRICS_WORKER_H

#include "postmaster/bgworker.h"

/* The type of database workers in pg_stat_activity. */
#define WORKER_TYPE "metrics_ext worker"

/*
 * Whoever works in a database holds an advisory lock on it, in a class that
 * pg_advisory_lock() does not reach: "me" in ASCII, for metrics_ext.
 */
#define WORKER_LOCK_CLASS 0x6D65

/* launcher.c */
extern void worker_init(void);
extern PGDLLEXPORT void metrics_launcher_main(Datum arg);

/* request.c */
extern void worker_request(void);
extern BackgroundWorkerHandle *worker_start(Oid database, bool requested);

/* database_worker.c */
extern bool worker_is_at_work(void);
extern PGDLLEXPORT void metrics_database_worker_main(Datum arg);

#endif							/* METRICS_WORKER_H */
