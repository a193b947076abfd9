/*
 * figures.c
 *	  Pure functions from which the views of pipelines are made.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"

#include "percentile/sketch_sql.h"
#include "report/pipeline.h"

PG_FUNCTION_INFO_V1(metrics_ratio);
PG_FUNCTION_INFO_V1(metrics_latency);
PG_FUNCTION_INFO_V1(metrics_is_latency_sketch);

/* metrics_ratio(numerator, denominator) → float8: 0 where it is not finite */
Datum
metrics_ratio(PG_FUNCTION_ARGS)
{
	double		numerator = PG_GETARG_FLOAT8(0);
	double		denominator = PG_GETARG_FLOAT8(1);
	double		ratio = denominator > 0 ? numerator / denominator : 0;

	PG_RETURN_FLOAT8(isfinite(ratio) ? ratio : 0);
}

/*
 * metrics_latency(sketch, fraction) → float8
 *
 * The value at index int(n * fraction) of the n latencies in order, the last
 * for fraction 1, within the error of the sketch; 0 if there are none.  A sketch
 * answers for x[ceil(q * n) - 1], so it is asked for the middle of the index.
 */
Datum
metrics_latency(PG_FUNCTION_ARGS)
{
	Sketch		sketch;
	double		fraction;
	double		index;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	fraction = PG_GETARG_FLOAT8(1);
	if (!(fraction >= 0 && fraction <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("fraction %g is not between 0 and 1", fraction),
				 errhint("0 is the least latency, 1 the greatest.")));
	if (PG_ARGISNULL(0))
		PG_RETURN_FLOAT8(0);

	PG_GETARG_SKETCH(&sketch, 0);
	if (sketch.count == 0)
		PG_RETURN_FLOAT8(0);
	index = Min(floor(sketch.count * fraction), sketch.count - 1);
	PG_RETURN_FLOAT8(sketch_percentile(&sketch, (index + 0.5) / sketch.count));
}

/* Latencies are finite, not negative, and of one relative error, so that all of them merge. */
bool
sketch_holds_latencies(const Sketch *sketch)
{
	return sketch->relative_error == SKETCH_DEFAULT_ERROR &&
		sketch->nan == 0 && sketch->positive_infinity == 0 && sketch->negative_infinity == 0 &&
		sketch->negative.nbuckets == 0;
}

/* metrics_is_latency_sketch(stored) → boolean */
Datum
metrics_is_latency_sketch(PG_FUNCTION_ARGS)
{
	bytea	   *stored = PG_GETARG_BYTEA_PP(0);
	Sketch		sketch;

	PG_RETURN_BOOL(sketch_decode(&sketch, (const unsigned char *) VARDATA_ANY(stored),
								 VARSIZE_ANY_EXHDR(stored)) == NULL &&
				   sketch_holds_latencies(&sketch));
}
