/*
 * server.c
 *	  What the sketch needs of a server, and libpgcommon has not.  Without
 *	  PostgreSQL's headers, since what they declare differs by version.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void *palloc(size_t size);
extern void *MemoryContextAlloc(void *context, size_t size);
extern void ExceptionalCondition(const char *condition);

void	   *TopMemoryContext = NULL;

void *
MemoryContextAlloc(void *context, size_t size)
{
	(void) context;
	return palloc(size);
}

void
ExceptionalCondition(const char *condition)
{
	fprintf(stderr, "failed assertion: %s\n", condition);
	abort();
}
