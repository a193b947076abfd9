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
 * possible.  The buckets of a sign, if there are any, begin with the number of
 * the first occupied one.  Then follow, up to the last occupied one, the counts,
 * where 0 stands for a bucket that is not occupied; but only one or two zeros
 * follow each other, and after two there is a number: how many more buckets
 * are not occupied.  Which values are in which bucket: sketch_grid.c.
 *
 * Equal content is equal bytes, since there is one way to write each part.
 * Counts one after another, nearly all in a byte, can be read without a branch
 * that depends on them; that makes merging fast.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "port/pg_bswap.h"

#include "percentile/sketch.h"

#define VERSION 1
#define FIXED_BYTES 10
#define MAX_NUMBER_BYTES 9
#define MAX_INDEX_BYTES 3
#define MAX_BUCKET_BYTES (MAX_NUMBER_BYTES + 2 + MAX_INDEX_BYTES)
#define NUMBERS 7
#define DOUBLES 4

#define EACH_TOP_BIT UINT64CONST(0x8080808080808080)

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
	int32		expected = -1;

	while (sketch_store_next(store, &cursor, &bucket))
	{
		int32		gap = bucket.index - expected;

		if (expected < 0)
			out = put_number(out, bucket.index);
		else if (gap == 1)
			*out++ = 0;
		else if (gap > 1)
		{
			*out++ = 0;
			*out++ = 0;
			out = put_number(out, gap - 2);
		}
		out = put_number(out, bucket.count);
		expected = bucket.index + 1;
	}
	return out;
}

/* Bytes that sketch_encode() takes at most. */
size_t
sketch_encoded_size(const Sketch *sketch)
{
	return FIXED_BYTES + NUMBERS * MAX_NUMBER_BYTES + DOUBLES * sizeof(double) + 2 * MAX_INDEX_BYTES +
		(sketch->negative.nbuckets + sketch->positive.nbuckets) * MAX_BUCKET_BYTES;
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

/* Read a number; returns where it ends, or NULL if it is malformed. */
static const unsigned char *
get_number_at(const unsigned char *at, const unsigned char *end, int64 *number)
{
	uint64		result = 0;

	for (int shift = 0; shift < MAX_NUMBER_BYTES * 7; shift += 7)
	{
		unsigned char byte;

		if (at == end)
			return NULL;
		byte = *at++;
		/* a last byte of 0 makes it too long */
		if (shift > 0 && byte == 0)
			return NULL;
		result |= (uint64) (byte & 0x7f) << shift;
		if (byte < 0x80)
		{
			*number = (int64) result;
			return at;
		}
	}
	return NULL;
}

static bool
get_number(Input *input, int64 *number)
{
	const unsigned char *at = get_number_at(input->at, input->end, number);

	if (at == NULL)
		return false;
	input->at = at;
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

/* Outermost buckets of a side, and its count; of an empty side nbuckets is 0. */
typedef struct Side
{
	int64		nbuckets;
	int32		first;
	int32		last;
	int64		count;
} Side;

/*
 * Read buckets into the ordered form.  Each takes a byte at least, so that
 * memory is bounded by the input.
 */
static const char *
get_buckets(Input *input, SketchStore *store, int64 n, int32 max_index)
{
	int64		index;
	int64		gap;
	int64		count;

	if (n == 0)
		return NULL;
	store->capacity = (int) n;
	store->buckets = palloc(sizeof(SketchBucket) * n);
	if (!get_number(input, &index))
		return "malformed bucket";
	while (store->nbuckets < n)
	{
		if (!get_number(input, &count))
			return "malformed bucket";
		if (count == 0 && store->nbuckets > 0)
		{
			index++;
			if (!get_number(input, &count))
				return "malformed bucket";
			if (count == 0)
			{
				index++;
				if (!get_number(input, &gap) || gap > max_index || !get_number(input, &count))
					return "malformed bucket";
				index += gap;
			}
		}
		if (count == 0 || index > max_index)
			return "malformed bucket";
		store->buckets[store->nbuckets].index = (int32) index++;
		store->buckets[store->nbuckets++].count = count;
	}
	return NULL;
}

/*
 * Read all but the buckets, and how many there are of either sign.  Trusts
 * nothing, but that the parts agree is for later.
 */
static const char *
get_header(Input *input, Sketch *sketch, int64 *nnegative, int64 *npositive)
{
	int			level;
	double		relative_error;

	memset(sketch, 0, sizeof(Sketch));
	if (input->end - input->at < FIXED_BYTES)
		return "truncated";
	if (*input->at++ != VERSION)
		return "unknown version";
	level = *input->at++;
	if (!get_double(input, &relative_error) || !sketch_error_is_valid(relative_error))
		return "relative error out of range";
	sketch_init(sketch, relative_error);
	if (level > sketch_grid_max_level(sketch->grid))
		return "level out of range";
	sketch->level = level;
	if (!get_number(input, &sketch->count) || !get_number(input, &sketch->nan) ||
		!get_number(input, &sketch->negative_infinity) || !get_number(input, &sketch->positive_infinity) ||
		!get_number(input, &sketch->zero) ||
		!get_number(input, nnegative) || !get_number(input, npositive))
		return "malformed count";
	if (*nnegative > SKETCH_MAX_BUCKETS || *npositive > SKETCH_MAX_BUCKETS)
		return "too many buckets";
	if (sketch->zero > 0 || *nnegative > 0 || *npositive > 0)
	{
		if (!get_double(input, &sketch->min) || !get_double(input, &sketch->max) ||
			!get_double(input, &sketch->moments.sum) || !get_double(input, &sketch->moments.squares))
			return "truncated";
	}
	return *nnegative + *npositive > input->end - input->at ? "truncated" : NULL;
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
	int32		max_index;
	const char *problem = get_header(&input, sketch, &nnegative, &npositive);

	if (problem != NULL)
		return problem;
	max_index = sketch_grid_max_index(sketch->grid, sketch->level);
	problem = get_buckets(&input, &sketch->negative, nnegative, max_index);
	if (problem == NULL)
		problem = get_buckets(&input, &sketch->positive, npositive, max_index);
	if (problem != NULL)
		return problem;
	if (input.at != input.end)
		return "trailing bytes";
	return sketch_check(sketch);
}

/* Returns false if the sum of the counts is out of range. */
static bool
get_side(const SketchStore *store, Side *side)
{
	side->nbuckets = store->nbuckets;
	side->count = 0;
	if (store->nbuckets == 0)
		return true;
	side->first = store->buckets[0].index;
	side->last = store->buckets[store->nbuckets - 1].index;
	for (int i = 0; i < store->nbuckets; i++)
	{
		if (pg_add_s64_overflow(side->count, store->buckets[i].count, &side->count))
			return false;
	}
	return true;
}

/* Is an extreme, with the given sign or beyond zero, what the buckets say? */
static bool
agrees(const Sketch *sketch, double extreme, int sign, const Side *outer, const Side *inner)
{
	if (outer->nbuckets > 0)
		return sign * extreme > 0 &&
			sketch_grid_index(sketch->grid, sketch->level, extreme) == outer->last;
	/* -0 is not a way to write it */
	if (sketch->zero > 0)
		return extreme == 0 && !signbit(extreme);
	return sign * extreme < 0 &&
		sketch_grid_index(sketch->grid, sketch->level, extreme) == inner->first;
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

/* Do the parts agree?  Completes the moments. */
static const char *
check_parts(Sketch *sketch, const Side *negative, const Side *positive)
{
	int64		sum = sketch->nan;

	if (pg_add_s64_overflow(sum, sketch->negative_infinity, &sum) ||
		pg_add_s64_overflow(sum, sketch->positive_infinity, &sum) ||
		pg_add_s64_overflow(sum, sketch->zero, &sum) ||
		pg_add_s64_overflow(sum, negative->count, &sum) ||
		pg_add_s64_overflow(sum, positive->count, &sum) || sum != sketch->count)
		return "counts do not add up";
	if (sketch_finite_count(sketch) == 0)
		return isinf(sketch->min) ? NULL : "extremes of no values";
	if (!isfinite(sketch->min) || !isfinite(sketch->max) || sketch->min > sketch->max ||
		!agrees(sketch, sketch->min, -1, negative, positive) ||
		!agrees(sketch, sketch->max, 1, positive, negative))
		return "extremes do not agree with the buckets";
	return check_moments(sketch);
}

/*
 * Do the parts of a sketch agree?  For what was read, with the buckets in order
 * and within their range.  Completes the moments.  Returns NULL or the problem.
 */
const char *
sketch_check(Sketch *sketch)
{
	Side		negative;
	Side		positive;

	if (!get_side(&sketch->negative, &negative) || !get_side(&sketch->positive, &positive))
		return "counts do not add up";
	return check_parts(sketch, &negative, &positive);
}

/*
 * Read buckets of one side, from the first count on, into the dense array of a
 * store that has room for them.  Their number was right when the value came in
 * and is not looked at again; that no other memory is touched is.
 */
static const char *
merge_buckets(Input *input, SketchStore *store, int64 count, Side *side)
{
	/* copies, since what a pointer leads to would be read again each time */
	const unsigned char *at = input->at;
	const unsigned char *end = input->end;
	int64	   *to = &store->counts[side->first - store->first];
	int64	   *last = &store->counts[side->last - store->first];
	int			fresh = 0;
	int64		left = count;
	uint64		previous = 0;

	while (to <= last)
	{
		uint64		value;
		int64		number;
		bool		gap = false;

		/* eight at a time, as long as all are of one byte and no zeros meet */
		while (last - to >= 8 && end - at >= 8)
		{
			uint64		eight;
			uint64		zeros;

			memcpy(&eight, at, sizeof(eight));
#ifdef WORDS_BIGENDIAN
			eight = pg_bswap64(eight);
#endif
			zeros = ((eight + ~EACH_TOP_BIT) & EACH_TOP_BIT) ^ EACH_TOP_BIT;
			if ((eight & EACH_TOP_BIT) != 0 || (zeros & (zeros << 8)) != 0 || (previous | (eight & 0xff)) == 0)
				break;
			for (int i = 0; i < 8; i++)
			{
				value = (eight >> (8 * i)) & 0xff;
				if (unlikely(to[i] == 0))
					fresh += value > 0;
				to[i] += value;
				left -= value;
			}
			previous = value;
			at += 8;
			to += 8;
		}
		/* one at a time, up to the next gap */
		while (to <= last && !gap)
		{
			if (unlikely(at == end))
				return "malformed bucket";
			value = *at++;
			if (unlikely(value >= 0x80))
			{
				at = get_number_at(at - 1, end, &number);
				if (at == NULL || number > left)
					return "malformed bucket";
				value = number;
			}
			/* one byte each cannot take it far below 0 */
			left -= value;
			if (unlikely(*to == 0))
				fresh += value > 0;
			*to++ += value;
			gap = (value | previous) == 0;
			previous = value;
		}
		if (gap)
		{
			/* also where the first count is 0 */
			at = get_number_at(at, end, &number);
			if (at == NULL || number > last - to)
				return "malformed bucket";
			to += number;
		}
	}
	input->at = at;
	store->nbuckets += fresh;
	side->count = count - left;
	return left < 0 || previous == 0 ? "malformed bucket" : NULL;
}

/*
 * Can the buckets go straight into the sketch?  Reads the number of the first
 * one; that of the last follows from the extreme.  Makes room for all.
 */
static bool
prepare_merge(Input *input, const Sketch *sketch, const Sketch *other, SketchStore *store, double extreme, Side *side)
{
	int64		first;

	if (sketch->level != other->level || !isfinite(extreme) || extreme == 0 || !get_number(input, &first))
		return false;
	side->last = sketch_grid_index(other->grid, other->level, extreme);
	if (first > side->last)
		return false;
	side->first = (int32) first;
	return sketch_store_reserve(store, side->first, side->last);
}

/*
 * Merge a stored form.  Values of one sign, as most sketches have, do so without
 * a detour.  Sets *relative_error to that of the stored form and, if it is
 * malformed, *problem; then and on overflow the sketch must not be used any more.
 */
SketchOutcome
sketch_merge_encoded(Sketch *sketch, const unsigned char *data, size_t length,
					 double *relative_error, const char **problem)
{
	Input		input = {data, data + length};
	Sketch		other;
	Side		negative = {0};
	Side		positive = {0};
	Side	   *side;
	SketchStore *store;
	double		extreme;
	SketchOutcome outcome = SKETCH_MERGED;

	*problem = get_header(&input, &other, &negative.nbuckets, &positive.nbuckets);
	if (*problem != NULL)
		return SKETCH_MALFORMED;
	*relative_error = other.relative_error;
	if (other.relative_error != sketch->relative_error)
		return SKETCH_DIFFERS;

	side = negative.nbuckets > 0 ? &negative : &positive;
	store = negative.nbuckets > 0 ? &sketch->negative : &sketch->positive;
	extreme = negative.nbuckets > 0 ? other.min : other.max;
	if ((negative.nbuckets > 0 && positive.nbuckets > 0) ||
		!prepare_merge(&input, sketch, &other, store, extreme, side))
	{
		*problem = sketch_decode(&other, data, length);
		if (*problem != NULL)
			outcome = SKETCH_MALFORMED;
		else if (!sketch_merge(sketch, &other))
			outcome = SKETCH_OVERFLOWS;
		sketch_free(&other);
		return outcome;
	}
	if (other.count > PG_INT64_MAX - sketch->count)
		return SKETCH_OVERFLOWS;
	*problem = merge_buckets(&input, store, other.count, side);
	if (*problem == NULL && input.at != input.end)
		*problem = "trailing bytes";
	if (*problem == NULL)
		*problem = check_parts(&other, &negative, &positive);
	if (*problem != NULL)
		return SKETCH_MALFORMED;
	(void) sketch_merge_parts(sketch, &other);
	sketch_collapse(sketch);
	return SKETCH_MERGED;
}
