/*
 * fractions.h
 *	  The fractions an aggregate was asked for, and what they mean in rows.
 */
#ifndef METRICS_FRACTIONS_H
#define METRICS_FRACTIONS_H

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/array.h"

#include "compat.h"

/* How many there are follows from how they were given. */
typedef enum FractionsForm
{
	FRACTIONS_FIXED,			/* not at all: 0.5, 0.95, 0.99 */
	FRACTIONS_ONE,				/* a float8 */
	FRACTIONS_ARRAY				/* a float8[]; results have its shape */
} FractionsForm;

typedef struct Fractions
{
	FractionsForm form;
	bool		isnull;			/* NULL was given; there are no items */
	int			nitems;
	int			ndim;			/* this and the next two: of an array */
	int			dims[MAXDIM];
	int			lbound[MAXDIM];
	double	   *values;
	bool	   *nulls;
	ArrayType  *given;			/* the array as it was given, if it was here */
} Fractions;

/* Where between two rows (counted from 0) a percentile lies. */
typedef struct FractionRows
{
	int64		first;
	int64		second;
	double		proportion;
} FractionRows;

extern Fractions *fractions_from_argument(FunctionCallInfo fcinfo, int argument,
										  MemoryContext context);
extern bool fractions_are_argument(const Fractions *fractions,
								   FunctionCallInfo fcinfo, int argument);
pg_noreturn extern void fractions_differ(void);
extern bool fractions_equal(const Fractions *a, const Fractions *b);
extern Fractions *fractions_copy(const Fractions *fractions,
								 MemoryContext context);
extern void fractions_send(StringInfo buffer, const Fractions *fractions);
extern Fractions *fractions_receive(StringInfo buffer);

extern FractionRows fraction_rows(double fraction, int64 nrows,
								  bool continuous);

#endif							/* METRICS_FRACTIONS_H */
