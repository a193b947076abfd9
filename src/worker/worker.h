/*
 * worker.h
 *	  The background worker: a launcher for periodic duties, and short-lived
 *	  workers, one a database at a time.
 */
#ifndef METRICS_WORKER_H
#define METRICS_WORKER_H

extern void worker_init(void);
extern void worker_request(void);

#endif							/* METRICS_WORKER_H */
