/*
 * metrics_ext.c
 *	  Module entry point.
 */
#include "postgres.h"

#include "fmgr.h"

#include "guc.h"
#include "worker/worker.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	metrics_init_guc();
	worker_init();
}
