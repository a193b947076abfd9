/*
 * sketch_codec.c
 *	  The stored form of a sketch, which is also its binary form on the wire.
 *
 * Version 1; it never changes, a later one would have another first byte.
 *
 *	bytes	what
 *	1		version: 1
 *	1		level: times that the buckets have collapsed
 *	8		declared relative error: an IEEE 754 double, big-endian
 *	n		count of all values: a number, see below
 *	n		count of NaN
 *	n		count of -Infinity
 *	n		count of Infinity
 *	n		count of zeros
 *	n		number of occupied buckets of negative values
 *	n		number of occupied buckets of positive values
 *	32		if there are finite values, four doubles, big-endian: the least, the
 *			greatest, the sum, the sum of squared distances from the mean; the
 *			last two of values divided by 2^600 if the greatest magnitude is at
 *			least 2^400, by 2^-600 if it is less than 2^-400, else by 1
 *	n..		the buckets of negative values, the least magnitude first
 *	n..		the buckets of positive values, the least first
 *
 * A number is at most 2^63 - 1, written in groups of 7 bits, the lowest first,
 * one a byte, the top bit of a byte set if another follows; as short as
 * possible.  A bucket is the number 2 * (count - 1) + skip, which is below
 * 2^64.  If skip is 1, a number follows that is one less than the buckets left
 * out since the one before; at first, since bucket 0 inclusive.  Which values
 * are in which bucket: sketch_grid.c.
 *
 * Equal content is equal bytes, since there is one way to write each part.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "port/pg_bswap.h"

#include "percentile/sketch.h"

#define VERSION 1
#define FIXED_BYTES 10
#define MAX_NUMBER_BYTES 10
#define MAX_GAP_BYTES 3
#define NUMBERS 7
#define DOUBLES 4

/* What sums may differ by from what extremes and counts allow. */
#define SUM_TOLERANCE 1e-9

static unsigned char *
put_number(unsigned char *out, uint64 number)
{
	while (number >= 0x80)
	{
		*out++ = (unsigned char) (number | 0x80);
		number >>= 7;
	}
	*out++ = (unsigned char) number;
	return out;
}

static unsigned char *
put_double(unsigned char *out, double value)
{
	uint64		bits;

	memcpy(&bits, &value, sizeof(bits));
	bits = pg_hton64(bits);
	memcpy(out, &bits, sizeof(bits));
	return out + sizeof(bits);
}

static unsigned char *
put_buckets(unsigned char *out, const SketchStore *store)
{
	SketchBucket bucket;
	int32		cursor = 0;
	int32		expected = 0;

	while (sketch_store_next(store, &cursor, &bucket))
	{
		bool		skip = bucket.index > expected;

		out = put_number(out, (uint64) (bucket.count - 1) * 2 + skip);
		if (skip)
			out = put_number(out, bucket.index - expected - 1);
		expected = bucket.index + 1;
	}
	return out;
}

/* Bytes that sketch_encode() takes at most. */
size_t
sketch_encoded_size(const Sketch *sketch)
{
	return FIXED_BYTES + NUMBERS * MAX_NUMBER_BYTES + DOUBLES * sizeof(double) +
		(sketch->negative.nbuckets + sketch->positive.nbuckets) * (MAX_NUMBER_BYTES + MAX_GAP_BYTES);
}

/* Write the stored form; returns its size. */
size_t
sketch_encode(const Sketch *sketch, unsigned char *out)
{
	unsigned char *begin = out;
	SketchMoments moments = sketch->moments;

	*out++ = VERSION;
	*out++ = (unsigned char) sketch->level;
	out = put_double(out, sketch->relative_error);
	out = put_number(out, sketch->count);
	out = put_number(out, sketch->nan);
	out = put_number(out, sketch->negative_infinity);
	out = put_number(out, sketch->positive_infinity);
	out = put_number(out, sketch->zero);
	out = put_number(out, sketch->negative.nbuckets);
	out = put_number(out, sketch->positive.nbuckets);
	if (sketch_finite_count(sketch) > 0)
	{
		sketch_moments_settle(&moments, sketch->min, sketch->max);
		out = put_double(out, sketch->min);
		out = put_double(out, sketch->max);
		out = put_double(out, moments.sum);
		out = put_double(out, moments.squares);
	}
	out = put_buckets(out, &sketch->negative);
	out = put_buckets(out, &sketch->positive);
	return out - begin;
}

/* What is left of a stored form to be read. */
typedef struct Input
{
	const unsigned char *at;
	const unsigned char *end;
} Input;

static bool
get_raw_number(Input *input, uint64 *number)
{
	*number = 0;
	for (int shift = 0; shift < MAX_NUMBER_BYTES * 7; shift += 7)
	{
		unsigned char byte;

		if (input->at == input->end)
			return false;
		byte = *input->at++;
		/* the tenth byte has room for one bit; a last byte of 0 is too long */
		if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0))
			return false;
		*number |= (uint64) (byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool
get_number(Input *input, int64 *number)
{
	uint64		raw;

	if (!get_raw_number(input, &raw) || raw > PG_INT64_MAX)
		return false;
	*number = (int64) raw;
	return true;
}

static bool
get_double(Input *input, double *value)
{
	uint64		bits;

	if (input->end - input->at < (ptrdiff_t) sizeof(bits))
		return false;
	memcpy(&bits, input->at, sizeof(bits));
	input->at += sizeof(bits);
	bits = pg_ntoh64(bits);
	memcpy(value, &bits, sizeof(bits));
	return true;
}

/* Each bucket takes a byte at least, so that memory is bounded by the input. */
static const char *
get_buckets(Input *input, SketchStore *store, int64 n, int32 max_index)
{
	int64		expected = 0;

	if (n > SKETCH_MAX_BUCKETS)
		return "too many buckets";
	if (n > input->end - input->at)
		return "truncated";
	if (n == 0)
		return NULL;
	store->capacity = (int) n;
	store->buckets = palloc(sizeof(SketchBucket) * n);
	for (int64 i = 0; i < n; i++)
	{
		uint64		token;
		int64		gap = 0;

		if (!get_raw_number(input, &token))
			return "malformed bucket";
		if (token & 1)
		{
			if (!get_number(input, &gap) || gap > max_index)
				return "malformed bucket";
			gap++;
		}
		expected += gap;
		if (expected > max_index)
			return "bucket out of range";
		/* the greatest token would give 2^63 */
		if (token >> 1 == PG_INT64_MAX)
			return "count out of range";
		store->buckets[store->nbuckets].index = (int32) expected++;
		store->buckets[store->nbuckets++].count = (int64) (token >> 1) + 1;
	}
	return NULL;
}

/*
 * Read a stored form into a sketch in the ordered form.  Trusts nothing.
 * Returns NULL, or what is wrong with it; then the sketch must not be used, but
 * can be given to sketch_free().
 */
const char *
sketch_decode(Sketch *sketch, const unsigned char *data, size_t length)
{
	Input		input = {data, data + length};
	int64		nnegative;
	int64		npositive;
	int			level;
	double		relative_error;
	const char *problem;

	memset(sketch, 0, sizeof(Sketch));
	if (length < FIXED_BYTES)
		return "truncated";
	if (*input.at++ != VERSION)
		return "unknown version";
	level = *input.at++;
	if (!get_double(&input, &relative_error) || !sketch_error_is_valid(relative_error))
		return "relative error out of range";
	sketch_init(sketch, relative_error);
	if (level > sketch_grid_max_level(sketch->grid))
		return "level out of range";
	sketch->level = level;
	if (!get_number(&input, &sketch->count) || !get_number(&input, &sketch->nan) ||
		!get_number(&input, &sketch->negative_infinity) || !get_number(&input, &sketch->positive_infinity) ||
		!get_number(&input, &sketch->zero) ||
		!get_number(&input, &nnegative) || !get_number(&input, &npositive))
		return "malformed count";
	if (sketch->zero > 0 || nnegative > 0 || npositive > 0)
	{
		if (!get_double(&input, &sketch->min) || !get_double(&input, &sketch->max) ||
			!get_double(&input, &sketch->moments.sum) || !get_double(&input, &sketch->moments.squares))
			return "truncated";
	}
	problem = get_buckets(&input, &sketch->negative, nnegative, sketch_grid_max_index(sketch->grid, level));
	if (problem == NULL)
		problem = get_buckets(&input, &sketch->positive, npositive, sketch_grid_max_index(sketch->grid, level));
	if (problem != NULL)
		return problem;
	if (input.at != input.end)
		return "trailing bytes";
	return sketch_check(sketch);
}

static bool
add_counts(const SketchStore *store, int64 *sum)
{
	for (int i = 0; i < store->nbuckets; i++)
	{
		if (pg_add_s64_overflow(*sum, store->buckets[i].count, sum))
			return false;
	}
	return true;
}

/* Is an extreme, that of the given buckets, what they say? */
static bool
agrees(const Sketch *sketch, double extreme, const SketchStore *outer, int32 outer_bucket,
	   int sign, const SketchStore *inner, int32 inner_bucket)
{
	if (outer->nbuckets > 0)
		return sign * extreme > 0 &&
			sketch_grid_index(sketch->grid, sketch->level, extreme) == outer->buckets[outer_bucket].index;
	/* -0 is not a way to write it */
	if (sketch->zero > 0)
		return extreme == 0 && !signbit(extreme);
	return sign * extreme < 0 &&
		sketch_grid_index(sketch->grid, sketch->level, extreme) == inner->buckets[inner_bucket].index;
}

static const char *
check_moments(Sketch *sketch)
{
	SketchMoments *moments = &sketch->moments;
	SketchMoments settled;
	double		low;
	double		high;
	double		magnitude;
	double		n = (double) sketch_finite_count(sketch);

	moments->n = sketch_finite_count(sketch);
	moments->scale = sketch_scale(sketch->min, sketch->max);
	low = ldexp(sketch->min, -moments->scale);
	high = ldexp(sketch->max, -moments->scale);
	magnitude = Max(fabs(low), fabs(high));
	if (!isfinite(moments->sum) ||
		moments->sum < n * low - SUM_TOLERANCE * n * magnitude ||
		moments->sum > n * high + SUM_TOLERANCE * n * magnitude)
		return "sum does not agree with the extremes";
	if (!isfinite(moments->squares) || signbit(moments->squares) ||
		moments->squares > n * (high - low) * (high - low) / 4 + SUM_TOLERANCE * n * magnitude * magnitude)
		return "squares do not agree with the extremes";
	settled = *moments;
	sketch_moments_settle(&settled, sketch->min, sketch->max);
	if (memcmp(&settled.sum, &moments->sum, sizeof(double)) != 0 ||
		memcmp(&settled.squares, &moments->squares, sizeof(double)) != 0)
		return "sums are not canonical";
	return NULL;
}

/*
 * Do the parts of a sketch agree?  For what was read, with the buckets in order
 * and within their range.  Completes the moments.  Returns NULL or the problem.
 */
const char *
sketch_check(Sketch *sketch)
{
	const SketchStore *negative = &sketch->negative;
	const SketchStore *positive = &sketch->positive;
	int64		sum = sketch->nan;

	if (pg_add_s64_overflow(sum, sketch->negative_infinity, &sum) ||
		pg_add_s64_overflow(sum, sketch->positive_infinity, &sum) ||
		pg_add_s64_overflow(sum, sketch->zero, &sum) ||
		!add_counts(negative, &sum) || !add_counts(positive, &sum) || sum != sketch->count)
		return "counts do not add up";
	if (sketch_finite_count(sketch) == 0)
		return isinf(sketch->min) ? NULL : "extremes of no values";
	if (!isfinite(sketch->min) || !isfinite(sketch->max) || sketch->min > sketch->max ||
		!agrees(sketch, sketch->min, negative, negative->nbuckets - 1, -1, positive, 0) ||
		!agrees(sketch, sketch->max, positive, positive->nbuckets - 1, 1, negative, 0))
		return "extremes do not agree with the buckets";
	return check_moments(sketch);
}
