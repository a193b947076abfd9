/*
 * guc.h
 *	  Settings of metrics_ext.
 */
#ifndef METRICS_GUC_H
#define METRICS_GUC_H

/* metrics_ext.max_document_size, in kB */
extern int	metrics_max_document_size;

/* of maintenance and its worker; naptime in s, lock_timeout in ms */
extern bool metrics_worker_enabled;
extern int	metrics_naptime;
extern int	metrics_max_partitions;
extern int	metrics_lock_timeout;
extern int	metrics_drain_rows;

extern void metrics_init_guc(void);

#endif							/* METRICS_GUC_H */
