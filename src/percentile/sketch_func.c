/*
 * sketch_func.c
 *	  What SQL can ask of a metrics_sketch.
 *
 * All functions are strict, and answer NULL where the sketch holds no value.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/tuplestore.h"

#include "percentile/sketch_sql.h"

PG_FUNCTION_INFO_V1(metrics_sketch_percentile);
PG_FUNCTION_INFO_V1(metrics_sketch_percentiles);
PG_FUNCTION_INFO_V1(metrics_sketch_rank);
PG_FUNCTION_INFO_V1(metrics_sketch_count);
PG_FUNCTION_INFO_V1(metrics_sketch_sum);
PG_FUNCTION_INFO_V1(metrics_sketch_min);
PG_FUNCTION_INFO_V1(metrics_sketch_max);
PG_FUNCTION_INFO_V1(metrics_sketch_mean);
PG_FUNCTION_INFO_V1(metrics_sketch_stddev);
PG_FUNCTION_INFO_V1(metrics_sketch_trimmed_mean);
PG_FUNCTION_INFO_V1(metrics_sketch_histogram);
PG_FUNCTION_INFO_V1(metrics_sketch_relative_error);
PG_FUNCTION_INFO_V1(metrics_sketch_add);

/* Core's rule and core's message for its percentiles. */
static void
require_fraction(double fraction)
{
	if (!(fraction >= 0 && fraction <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("percentile value %g is not between 0 and 1", fraction)));
}

Datum
metrics_sketch_percentile(PG_FUNCTION_ARGS)
{
	Sketch		sketch;
	double		fraction = PG_GETARG_FLOAT8(1);

	require_fraction(fraction);
	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sketch_percentile(&sketch, fraction));
}

/* An array of the fractions' shape, NULL where the fraction is. */
Datum
metrics_sketch_percentiles(PG_FUNCTION_ARGS)
{
	ArrayType  *fractions = PG_GETARG_ARRAYTYPE_P(1);
	Sketch		sketch;
	Datum	   *values;
	bool	   *nulls;
	int			n;

	deconstruct_array(fractions, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i])
			require_fraction(DatumGetFloat8(values[i]));
	}
	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!nulls[i])
			values[i] = Float8GetDatum(sketch_percentile(&sketch, DatumGetFloat8(values[i])));
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, ARR_NDIM(fractions), ARR_DIMS(fractions),
											 ARR_LBOUND(fractions), FLOAT8OID, sizeof(float8),
											 FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

Datum
metrics_sketch_rank(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sketch_rank(&sketch, PG_GETARG_FLOAT8(1)));
}

/* Of an empty sketch it is 0. */
Datum
metrics_sketch_count(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	PG_RETURN_INT64(sketch.count);
}

/* A result that only overflow can have made infinite is an error, as in core. */
static double
in_range(const Sketch *sketch, double result)
{
	if (isinf(result) && sketch->negative_infinity == 0 && sketch->positive_infinity == 0)
		float_overflow_error();
	return result;
}

Datum
metrics_sketch_sum(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(in_range(&sketch, sketch_sum(&sketch)));
}

Datum
metrics_sketch_min(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sketch_min(&sketch));
}

Datum
metrics_sketch_max(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sketch_max(&sketch));
}

Datum
metrics_sketch_mean(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sketch_mean(&sketch));
}

/* The sample's, NULL for less than two values, as core's stddev(). */
Datum
metrics_sketch_stddev(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count < 2)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(in_range(&sketch, sketch_stddev(&sketch)));
}

Datum
metrics_sketch_trimmed_mean(PG_FUNCTION_ARGS)
{
	Sketch		sketch;
	double		low = PG_GETARG_FLOAT8(1);
	double		high = PG_GETARG_FLOAT8(2);

	require_fraction(low);
	require_fraction(high);
	if (low >= high)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("fraction %g is not less than fraction %g", low, high),
				 errhint("Values between the two are kept.")));
	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sketch_trimmed_mean(&sketch, low, high));
}

Datum
metrics_sketch_histogram(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Sketch		sketch;
	SketchRange *ranges;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	PG_GETARG_SKETCH(&sketch, 0);
	n = sketch_nranges(&sketch);
	ranges = palloc(sizeof(SketchRange) * Max(n, 1));
	sketch_ranges(&sketch, ranges);
	for (int i = 0; i < n; i++)
	{
		Datum		values[3] = {
			Float8GetDatum(ranges[i].lower),
			Float8GetDatum(ranges[i].upper),
			Int64GetDatum(ranges[i].count)
		};
		bool		nulls[3] = {false};

		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* What the sketch guarantees now. */
Datum
metrics_sketch_relative_error(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	PG_RETURN_FLOAT8(sketch_grid_error(sketch.relative_error, sketch.level));
}

/* Operator +: the sketch of the values of both. */
Datum
metrics_sketch_add(PG_FUNCTION_ARGS)
{
	Sketch		sketch;
	Sketch		other;

	PG_GETARG_SKETCH(&sketch, 0);
	PG_GETARG_SKETCH(&other, 1);
	sketch_require_same_error(sketch.relative_error, other.relative_error);
	if (!sketch_merge(&sketch, &other))
		sketch_count_overflow();
	PG_RETURN_BYTEA_P(sketch_to_bytes(&sketch));
}
