/*
 * perf_array.c
 *	  Arrays of measurements as arguments.
 *
 * array_agg() over no rows is NULL, so a NULL array is an empty one.
 */
#include "postgres.h"

#include <math.h>

#include "utils/array.h"

#include "report/perf_array.h"

/*
 * The elements of an array argument whose type is eight bytes wide; they stay
 * in the array, which may be a copy in the current context.
 */
const void *
perf_array_argument(FunctionCallInfo fcinfo, int number, const char *name, int *count)
{
	ArrayType  *array;

	*count = 0;
	if (PG_ARGISNULL(number))
		return NULL;
	array = PG_GETARG_ARRAYTYPE_P(number);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("%s must have one dimension, got %d", name, ARR_NDIM(array)),
				 errhint("Give a list of measurements.")));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not contain NULL", name),
				 errhint("Leave rows without a value out.")));
	*count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return ARR_DATA_PTR(array);
}

/* The same of float8, all of them finite. */
const double *
perf_float8_argument(FunctionCallInfo fcinfo, int number, const char *name, int *count)
{
	const double *values = perf_array_argument(fcinfo, number, name, count);

	for (int i = 0; i < *count; i++)
	{
		if (!isfinite(values[i]))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("%s must contain finite numbers only, got %g", name, values[i]),
					 errhint("Leave rows without a measurement out.")));
	}
	return values;
}
