/*
 * guc.h
 *	  Settings of metrics_ext.
 */
#ifndef METRICS_GUC_H
#define METRICS_GUC_H

/* metrics_ext.max_document_size, in kB */
extern int	metrics_max_document_size;

extern void metrics_init_guc(void);

#endif							/* METRICS_GUC_H */
