/*
 * sketch_query.c
 *	  What a sketch answers.
 *
 * Values are ordered as core orders float8: -Infinity, the finite ones,
 * Infinity, NaN.  A rank counts from 1.  Functions take a sketch in the
 * ordered form that holds at least one value.
 */
#include "postgres.h"

#include <math.h>

#include "percentile/sketch.h"

/* The answer for a bucket of either sign, within the extremes. */
static double
answer(const Sketch *sketch, int32 index, int sign)
{
	double		value = sign * sketch_grid_answer(sketch->grid, sketch->level, index);

	return Min(Max(value, sketch->min), sketch->max);
}

double
sketch_min(const Sketch *sketch)
{
	if (sketch->negative_infinity > 0)
		return -INFINITY;
	if (sketch_finite_count(sketch) > 0)
		return sketch->min;
	return sketch->positive_infinity > 0 ? INFINITY : NAN;
}

double
sketch_max(const Sketch *sketch)
{
	if (sketch->nan > 0)
		return NAN;
	if (sketch->positive_infinity > 0)
		return INFINITY;
	return sketch_finite_count(sketch) > 0 ? sketch->max : -INFINITY;
}

/* Whatever the finite values are, the sum and the mean are this, if not 0. */
static double
special_sum(const Sketch *sketch)
{
	double		sum = 0;

	if (sketch->nan > 0)
		sum += NAN;
	if (sketch->negative_infinity > 0)
		sum -= INFINITY;
	if (sketch->positive_infinity > 0)
		sum += INFINITY;
	return sum;
}

/* Infinite without an infinite value: it overflowed. */
double
sketch_sum(const Sketch *sketch)
{
	double		special = special_sum(sketch);

	if (special != 0)
		return special;
	return ldexp(sketch_moments_sum(&sketch->moments), sketch->moments.scale);
}

double
sketch_mean(const Sketch *sketch)
{
	double		special = special_sum(sketch);
	double		mean;

	if (special != 0)
		return special;
	mean = ldexp(sketch_moments_sum(&sketch->moments) / sketch->count, sketch->moments.scale);
	return Min(Max(mean, sketch->min), sketch->max);
}

/* The sample's, for a count of at least 2. */
double
sketch_stddev(const Sketch *sketch)
{
	if (sketch->nan > 0 || sketch->negative_infinity > 0 || sketch->positive_infinity > 0)
		return NAN;
	return ldexp(sqrt(sketch->moments.squares / (sketch->count - 1)), sketch->moments.scale);
}

/* The value of a rank; the first and the last finite ones are known exactly. */
static double
value_of_rank(const Sketch *sketch, int64 rank)
{
	int64		finite = sketch_finite_count(sketch);

	if (rank <= sketch->negative_infinity)
		return -INFINITY;
	rank -= sketch->negative_infinity;
	if (rank > finite)
		return rank - finite <= sketch->positive_infinity ? INFINITY : NAN;
	if (rank == 1)
		return sketch->min;
	if (rank == finite)
		return sketch->max;

	for (int i = sketch->negative.nbuckets - 1; i >= 0; i--)
	{
		if (rank <= sketch->negative.buckets[i].count)
			return answer(sketch, sketch->negative.buckets[i].index, -1);
		rank -= sketch->negative.buckets[i].count;
	}
	if (rank <= sketch->zero)
		return 0;
	rank -= sketch->zero;
	for (int i = 0; i < sketch->positive.nbuckets - 1; i++)
	{
		if (rank <= sketch->positive.buckets[i].count)
			return answer(sketch, sketch->positive.buckets[i].index, 1);
		rank -= sketch->positive.buckets[i].count;
	}
	return answer(sketch, sketch->positive.buckets[sketch->positive.nbuckets - 1].index, 1);
}

/* Of n ordered values, that of rank ceil(fraction * n), at least the first. */
double
sketch_percentile(const Sketch *sketch, double fraction)
{
	double		rank = ceil(fraction * sketch->count);

	if (!(rank > 1))
		return value_of_rank(sketch, 1);
	/* also guards the conversion: the product can round up */
	if (rank >= sketch->count)
		return value_of_rank(sketch, sketch->count);
	return value_of_rank(sketch, (int64) rank);
}

/*
 * The fraction of the values that are less than or equal to value, where all
 * values of value's own bucket count as equal to it.
 */
double
sketch_rank(const Sketch *sketch, double value)
{
	int64		rank = sketch->negative_infinity;
	int32		index = 0;

	if (isnan(value))
		return 1;
	if (value == INFINITY)
		return (double) (sketch->count - sketch->nan) / sketch->count;
	if (sketch_finite_count(sketch) > 0 && value >= sketch->max)
		return (double) (rank + sketch_finite_count(sketch)) / sketch->count;
	if (!(value >= sketch->min))
		return (double) rank / sketch->count;

	if (value != 0)
		index = sketch_grid_index(sketch->grid, sketch->level, value);
	for (int i = sketch->negative.nbuckets - 1; i >= 0; i--)
	{
		if (value < 0 && sketch->negative.buckets[i].index < index)
			break;
		rank += sketch->negative.buckets[i].count;
	}
	if (value >= 0)
		rank += sketch->zero;
	for (int i = 0; i < sketch->positive.nbuckets; i++)
	{
		if (!(value > 0) || sketch->positive.buckets[i].index > index)
			break;
		rank += sketch->positive.buckets[i].count;
	}
	return (double) rank / sketch->count;
}

/* Rows that sketch_ranges() fills. */
int
sketch_nranges(const Sketch *sketch)
{
	return (sketch->negative_infinity > 0) + sketch->negative.nbuckets + (sketch->zero > 0) +
		sketch->positive.nbuckets + (sketch->positive_infinity > 0) + (sketch->nan > 0);
}

static void
set_range(SketchRange *range, double lower, double upper, int64 count)
{
	range->lower = lower;
	range->upper = upper;
	range->count = count;
}

/*
 * The buckets in order, with their bounds cut to the extremes.  Zeros, NaN and
 * each infinity are ranges of their own, of one value.
 */
void
sketch_ranges(const Sketch *sketch, SketchRange *ranges)
{
	const SketchBucket *bucket;

	if (sketch->negative_infinity > 0)
		set_range(ranges++, -INFINITY, -INFINITY, sketch->negative_infinity);
	for (int i = sketch->negative.nbuckets - 1; i >= 0; i--)
	{
		bucket = &sketch->negative.buckets[i];
		set_range(ranges++, Max(-sketch_grid_bound(sketch->grid, sketch->level, bucket->index + 1), sketch->min),
				  Min(-sketch_grid_bound(sketch->grid, sketch->level, bucket->index), sketch->max), bucket->count);
	}
	if (sketch->zero > 0)
		set_range(ranges++, 0, 0, sketch->zero);
	for (int i = 0; i < sketch->positive.nbuckets; i++)
	{
		bucket = &sketch->positive.buckets[i];
		set_range(ranges++, Max(sketch_grid_bound(sketch->grid, sketch->level, bucket->index), sketch->min),
				  Min(sketch_grid_bound(sketch->grid, sketch->level, bucket->index + 1), sketch->max), bucket->count);
	}
	if (sketch->positive_infinity > 0)
		set_range(ranges++, INFINITY, INFINITY, sketch->positive_infinity);
	if (sketch->nan > 0)
		set_range(ranges, NAN, NAN, sketch->nan);
}

/* One term of a mean: count values, of which those in [from, to) are wanted. */
typedef struct Trim
{
	double		from;
	double		to;
	double		seen;
	double		weight;
	double		mean;			/* of the weight so far: it cannot overflow */
} Trim;

static void
trim_add(Trim *trim, double value, int64 count)
{
	double		weight = Min(trim->seen + count, trim->to) - Max(trim->seen, trim->from);

	trim->seen += count;
	if (!(weight > 0))
		return;
	trim->weight += weight;
	if (isfinite(value) && isfinite(trim->mean))
		trim->mean += value * (weight / trim->weight) - trim->mean * (weight / trim->weight);
	else
		trim->mean += value;
}

/*
 * The mean of the values whose ranks are between two fractions of the count;
 * a value at the edge counts with the part of it that is inside.  Exact for all
 * values.
 */
double
sketch_trimmed_mean(const Sketch *sketch, double low, double high)
{
	Trim		trim = {.from = low * sketch->count, .to = high * sketch->count};

	if (low == 0 && high == 1)
		return sketch_mean(sketch);
	trim_add(&trim, -INFINITY, sketch->negative_infinity);
	for (int i = sketch->negative.nbuckets - 1; i >= 0; i--)
		trim_add(&trim, answer(sketch, sketch->negative.buckets[i].index, -1), sketch->negative.buckets[i].count);
	trim_add(&trim, 0, sketch->zero);
	for (int i = 0; i < sketch->positive.nbuckets; i++)
		trim_add(&trim, answer(sketch, sketch->positive.buckets[i].index, 1), sketch->positive.buckets[i].count);
	trim_add(&trim, INFINITY, sketch->positive_infinity);
	trim_add(&trim, NAN, sketch->nan);
	return trim.mean;
}
