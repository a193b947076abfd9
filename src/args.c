/*
 * args.c
 *	  Arguments of functions.
 *
 * No function that reads or writes the store is STRICT: an argument that is
 * NULL by accident would make a report vanish without a word.
 */
#include "postgres.h"

#include "args.h"

/* Refuse NULL for the first arguments of a function, but where no name is given. */
void
check_not_null(FunctionCallInfo fcinfo, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (names[i] != NULL && PG_ARGISNULL(i))
			null_argument(names[i]);
	}
}

/* The error for an argument that must not be NULL. */
void
null_argument(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be NULL", name),
			 errhint("Give a value, or leave the argument out if it has a default.")));
}

/* The error for a support function that is called by hand. */
void
not_in_aggregate(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("aggregate support function called in non-aggregate context"),
			 errhint("Call the aggregate.")));
}
