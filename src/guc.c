/*
 * guc.c
 *	  All settings of metrics_ext.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "guc.h"

int			metrics_max_document_size = 96 * 1024;

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

	MarkGUCPrefixReserved("metrics_ext");
}
