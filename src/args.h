/*
 * args.h
 *	  Arguments of functions.
 */
#ifndef METRICS_ARGS_H
#define METRICS_ARGS_H

#include "fmgr.h"

#include "compat.h"

extern void check_not_null(FunctionCallInfo fcinfo, const char *const *names, int count);
pg_noreturn extern void null_argument(const char *name);

#endif							/* METRICS_ARGS_H */
