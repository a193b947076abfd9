/*
 * guc.c
 *	  All settings of metrics_ext.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "guc.h"

int			metrics_max_document_size = 96 * 1024;
bool		metrics_worker_enabled = true;
int			metrics_naptime = 60;
int			metrics_max_partitions = 1000;
int			metrics_lock_timeout = 200;
int			metrics_drain_rows = 100000;

/* Define the settings; called once, when the library is loaded. */
void
metrics_init_guc(void)
{
	DefineCustomIntVariable("metrics_ext.max_document_size",
							"Largest metrics document that a report may carry.",
							"Counts metrics and batch_metrics of one report together, as jsonb.",
							&metrics_max_document_size,
							96 * 1024, 1, 1024 * 1024 - 1,
							PGC_SUSET,
							GUC_UNIT_KB,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("metrics_ext.worker",
							 "Lets background workers maintain partitions.",
							 "Off, nothing is maintained but by CALL metrics_maintain().",
							 &metrics_worker_enabled,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("metrics_ext.naptime",
							"Time between two rounds of periodic maintenance in a database.",
							"They need the library in shared_preload_libraries; what reports leave to do is done at once in any case.",
							&metrics_naptime,
							60, 1, INT_MAX / 1000,
							PGC_SIGHUP,
							GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("metrics_ext.max_partitions",
							"Number of partitions of a table beyond which maintenance creates no more.",
							NULL,
							&metrics_max_partitions,
							1000, 1, INT_MAX,
							PGC_SUSET,
							0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("metrics_ext.lock_timeout",
							"How long maintenance waits for a lock before it gives way and tries again later.",
							"Below deadlock_timeout, or others can be the ones that are cancelled.",
							&metrics_lock_timeout,
							200, 1, INT_MAX,
							PGC_USERSET,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("metrics_ext.drain_rows",
							"Number of rows that a round of maintenance takes out of a default partition at most.",
							"A key with more rows stays there until CALL metrics_drain().",
							&metrics_drain_rows,
							100000, 0, INT_MAX,
							PGC_USERSET,
							0,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("metrics_ext");
}
