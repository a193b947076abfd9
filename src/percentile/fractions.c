/*
 * fractions.c
 *	  The fractions an aggregate was asked for, and what they mean in rows.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "libpq/pqformat.h"
#include "utils/memutils.h"

#include "percentile/fractions.h"

static const double fixed_fractions[] = {0.5, 0.95, 0.99};

/* The error and its text are those of percentile_cont(). */
static void
check_fraction(double fraction)
{
	if (!(fraction >= 0 && fraction <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("percentile value %g is not between 0 and 1",
						fraction)));
}

static Fractions *
make_fractions(FractionsForm form, int nitems, MemoryContext context)
{
	Fractions  *fractions = MemoryContextAllocZero(context, sizeof(Fractions));

	fractions->form = form;
	fractions->nitems = nitems;
	fractions->values = MemoryContextAllocZero(context,
											   (Size) nitems * sizeof(double));
	fractions->nulls = MemoryContextAllocZero(context,
											  (Size) nitems * sizeof(bool));
	return fractions;
}

static Fractions *
from_array(const ArrayType *array, MemoryContext context)
{
	int			nitems = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	Fractions  *fractions = make_fractions(FRACTIONS_ARRAY, nitems, context);
	const char *data = ARR_DATA_PTR(array);
	const bits8 *bitmap = ARR_NULLBITMAP(array);

	fractions->ndim = ARR_NDIM(array);
	memcpy(fractions->dims, ARR_DIMS(array), fractions->ndim * sizeof(int));
	memcpy(fractions->lbound, ARR_LBOUND(array), fractions->ndim * sizeof(int));
	for (int i = 0; i < nitems; i++)
	{
		if (bitmap != NULL && !(bitmap[i / 8] & (1 << (i % 8))))
		{
			fractions->nulls[i] = true;
			continue;
		}
		memcpy(&fractions->values[i], data, sizeof(double));
		check_fraction(fractions->values[i]);
		data += sizeof(double);
	}
	fractions->given = MemoryContextAlloc(context, VARSIZE(array));
	memcpy(fractions->given, array, VARSIZE(array));
	return fractions;
}

/*
 * The fractions given as an argument of the call, or the fixed ones if the
 * function has no such argument.  The result is allocated in the context.
 */
Fractions *
fractions_from_argument(FunctionCallInfo fcinfo, int argument,
						MemoryContext context)
{
	Fractions  *fractions;
	FractionsForm form;

	if (PG_NARGS() <= argument)
	{
		fractions = make_fractions(FRACTIONS_FIXED, lengthof(fixed_fractions),
								   context);
		memcpy(fractions->values, fixed_fractions, sizeof(fixed_fractions));
		return fractions;
	}

	form = get_fn_expr_argtype(fcinfo->flinfo, argument) == FLOAT8OID ?
		FRACTIONS_ONE : FRACTIONS_ARRAY;
	if (PG_ARGISNULL(argument))
	{
		fractions = make_fractions(form, 0, context);
		fractions->isnull = true;
	}
	else if (form == FRACTIONS_ONE)
	{
		fractions = make_fractions(form, 1, context);
		fractions->values[0] = PG_GETARG_FLOAT8(argument);
		check_fraction(fractions->values[0]);
	}
	else
		fractions = from_array(PG_GETARG_ARRAYTYPE_P(argument), context);
	return fractions;
}

/*
 * Whether an argument, of the type that fractions came from, is still the same.
 * Called for each row if the argument is not a constant.
 */
bool
fractions_are_argument(const Fractions *fractions,
					   FunctionCallInfo fcinfo, int argument)
{
	ArrayType  *array;

	if (fractions->form == FRACTIONS_FIXED)
		return true;
	if (fractions->isnull || PG_ARGISNULL(argument))
		return fractions->isnull && PG_ARGISNULL(argument);
	if (fractions->form == FRACTIONS_ONE)
		return fractions->values[0] == PG_GETARG_FLOAT8(argument);
	array = PG_GETARG_ARRAYTYPE_P(argument);
	return fractions->given != NULL &&
		VARSIZE(array) == VARSIZE(fractions->given) &&
		memcmp(array, fractions->given, VARSIZE(array)) == 0;
}

/* The error for a row with other fractions than its group. */
void
fractions_differ(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("fractions must be the same for all rows of a group"),
			 errhint("Group by the fraction too, or ask for several fractions at once with an array.")));
}

bool
fractions_equal(const Fractions *a, const Fractions *b)
{
	if (a == b)
		return true;
	if (a->form != b->form || a->isnull != b->isnull ||
		a->nitems != b->nitems || a->ndim != b->ndim ||
		memcmp(a->dims, b->dims, a->ndim * sizeof(int)) != 0 ||
		memcmp(a->lbound, b->lbound, a->ndim * sizeof(int)) != 0)
		return false;
	for (int i = 0; i < a->nitems; i++)
	{
		if (a->nulls[i] != b->nulls[i] || a->values[i] != b->values[i])
			return false;
	}
	return true;
}

Fractions *
fractions_copy(const Fractions *fractions, MemoryContext context)
{
	Fractions  *copy = make_fractions(fractions->form, fractions->nitems,
									  context);
	double	   *values = copy->values;
	bool	   *nulls = copy->nulls;

	*copy = *fractions;
	copy->values = values;
	copy->nulls = nulls;
	copy->given = NULL;
	memcpy(values, fractions->values, fractions->nitems * sizeof(double));
	memcpy(nulls, fractions->nulls, fractions->nitems * sizeof(bool));
	return copy;
}

void
fractions_send(StringInfo buffer, const Fractions *fractions)
{
	pq_sendbyte(buffer, fractions->form);
	pq_sendbyte(buffer, fractions->isnull);
	pq_sendint32(buffer, fractions->ndim);
	for (int i = 0; i < fractions->ndim; i++)
	{
		pq_sendint32(buffer, fractions->dims[i]);
		pq_sendint32(buffer, fractions->lbound[i]);
	}
	pq_sendint32(buffer, fractions->nitems);
	for (int i = 0; i < fractions->nitems; i++)
	{
		pq_sendbyte(buffer, fractions->nulls[i]);
		pq_sendfloat8(buffer, fractions->values[i]);
	}
}

static void
malformed(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("malformed state of a percentile aggregate")));
}

/* The number of items that a form must have. */
static int
expected_items(const Fractions *fractions)
{
	if (fractions->isnull)
		return 0;
	switch (fractions->form)
	{
		case FRACTIONS_FIXED:
			return lengthof(fixed_fractions);
		case FRACTIONS_ONE:
			return 1;
		case FRACTIONS_ARRAY:
			return ArrayGetNItems(fractions->ndim, fractions->dims);
	}
	return -1;
}

/* What fractions_send() has written, checked; palloc'd. */
Fractions *
fractions_receive(StringInfo buffer)
{
	Fractions	header = {0};
	Fractions  *fractions;

	header.form = pq_getmsgbyte(buffer);
	header.isnull = pq_getmsgbyte(buffer) != 0;
	header.ndim = pq_getmsgint(buffer, 4);
	if (header.ndim < 0 || header.ndim > MAXDIM)
		malformed();
	for (int i = 0; i < header.ndim; i++)
	{
		header.dims[i] = pq_getmsgint(buffer, 4);
		header.lbound[i] = pq_getmsgint(buffer, 4);
	}
	header.nitems = pq_getmsgint(buffer, 4);
	if (header.nitems != expected_items(&header) ||
		(Size) header.nitems * (1 + sizeof(double)) >
		(Size) (buffer->len - buffer->cursor))
		malformed();

	fractions = make_fractions(header.form, header.nitems, CurrentMemoryContext);
	header.values = fractions->values;
	header.nulls = fractions->nulls;
	*fractions = header;
	for (int i = 0; i < fractions->nitems; i++)
	{
		fractions->nulls[i] = pq_getmsgbyte(buffer) != 0;
		fractions->values[i] = pq_getmsgfloat8(buffer);
		check_fraction(fractions->values[i]);
	}
	return fractions;
}

/* Beyond 2^53 rows a product may round up past the last one. */
static int64
row_number(double row, int64 nrows)
{
	if (row >= (double) (nrows - 1))
		return nrows - 1;
	return row > 0 ? (int64) row : 0;
}

/*
 * Of so many rows (at least 1) those that a fraction means.  These are the
 * formulas of percentile_cont() and percentile_disc(), operation by operation:
 * the results are the same to the last bit.
 */
FractionRows
fraction_rows(double fraction, int64 nrows, bool continuous)
{
	FractionRows rows;

	if (continuous)
	{
		double		row = fraction * (nrows - 1);

		rows.first = row_number(floor(row), nrows);
		rows.second = row_number(ceil(row), nrows);
		rows.proportion = row - floor(row);
	}
	else
	{
		rows.first = row_number(ceil(fraction * nrows) - 1, nrows);
		rows.second = rows.first;
		rows.proportion = 0;
	}
	return rows;
}
