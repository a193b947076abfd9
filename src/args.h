/*
 * args.h
 *	  Arguments of functions.
 */
#ifndef METRICS_ARGS_H
#define METRICS_ARGS_H

#include "fmgr.h"
#include "nodes/parsenodes.h"

#include "compat.h"

extern void check_not_null(FunctionCallInfo fcinfo, const char *const *names, int count);
pg_noreturn extern void null_argument(const char *name);
pg_noreturn extern void not_in_aggregate(void);

/*
 * Is this call part of an aggregate?  Says of which kind, and where its states
 * belong.  A user can call support functions with nulls for their internal
 * arguments; nothing else gets a state to a function.
 */
static inline int
check_aggregate(FunctionCallInfo fcinfo, MemoryContext *context)
{
	int			kind = AggCheckCallContext(fcinfo, context);

	if (unlikely(kind == 0))
		not_in_aggregate();
	return kind;
}

/* The same where only the context matters. */
static inline MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	check_aggregate(fcinfo, &context);
	return context;
}

/* May a procedure commit?  Not if CALL is part of a greater transaction. */
static inline bool
may_commit(FunctionCallInfo fcinfo)
{
	return fcinfo->context && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic;
}

#endif							/* METRICS_ARGS_H */
