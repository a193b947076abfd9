/*
 * sketch_grid.c
 *	  Where the buckets of a sketch begin and end.
 *
 * An octave [2^e, 2^(e+1)) is divided into per_octave buckets, each 2^(1/n)
 * times as wide as the one before.  Where they begin is kept as the first 32
 * bits of the fraction, so that the bucket of a double follows from its bits by
 * one look into a table and one comparison of integers, and is exact: no
 * logarithm, nothing that rounds.  n is the least for which a bucket is
 * narrower than (1 + a) / (1 - a), with a margin that outweighs the 32 bits;
 * then 2 l u / (l + u), for bounds l and u, is within the relative error a of
 * each value between them.
 *
 * Stored sketches rely on the grid.  So it is made with additions,
 * multiplications and divisions of doubles only, which IEEE 754 defines to the
 * bit; a library's exp2() could differ between machines.
 *
 * Subnormals are multiples k of 2^-1074, and a bucket that holds 50 and 51 of
 * them has no double between.  Their octaves have buckets half as wide, those
 * of k * k; then rounding the answer to a multiple stays within the error too.
 */
#include "postgres.h"

#include <math.h>

#include "utils/memutils.h"

#include "percentile/sketch.h"

#define SUBNORMAL_EXPONENT (-1074)	/* of the smallest double */
#define SMALLEST_EXPONENT (-1022)	/* of the smallest normal double */
#define OCTAVES (SKETCH_SUBNORMAL_OCTAVES + 2046)
#define MAX_PER_OCTAVE 348

/* log(2.000002 / 2) / MAX_PER_OCTAVE is six times what 32 bits may cost. */
#define OCTAVE_WITH_MARGIN 2.000002

#define FRACTIONS 4294967296.0	/* 2^32 */

/*
 * The grids in use, by per_octave.  A grid is a function of that number alone,
 * so that nothing ever invalidates them; all possible ones are 2 MB.
 */
static const SketchGrid *grids[MAX_PER_OCTAVE + 1];

static double
power(double base, int exponent)
{
	double		result = 1;

	for (int i = 0; i < exponent; i++)
		result *= base;
	return result;
}

/* The greatest double whose nth power does not exceed 2. */
static double
root_of_two(int n)
{
	double		low = 1;
	double		high = 2;

	for (;;)
	{
		double		middle = low + (high - low) / 2;

		if (middle <= low || middle >= high)
			return low;
		if (power(middle, n) <= 2)
			low = middle;
		else
			high = middle;
	}
}

/* Make a grid, in TopMemoryContext. */
static const SketchGrid *
make_grid(int n)
{
	SketchGrid *grid = MemoryContextAlloc(TopMemoryContext, offsetof(SketchGrid, lower) + n * sizeof(uint32));
	double		root = root_of_two(n);
	int			index = 0;

	grid->per_octave = n;
	for (int i = 0; i < n; i++)
		grid->lower[i] = (uint32) ((power(root, i) - 1) * FRACTIONS);

	/* A cell is narrower than the narrowest bucket: one begins in it at most. */
	for (int i = 0; i < 1 << SKETCH_CELL_BITS; i++)
	{
		uint32		begin = (uint32) i << (32 - SKETCH_CELL_BITS);
		uint32		end = begin + ((uint32) 1 << (32 - SKETCH_CELL_BITS)) - 1;

		while (index + 1 < n && grid->lower[index + 1] <= begin)
			index++;
		grid->cells[i].index = index;
		grid->cells[i].last = PG_UINT32_MAX;
		if (index + 1 < n && grid->lower[index + 1] <= end)
			grid->cells[i].last = grid->lower[index + 1] - 1;
	}
	return grid;
}

/* The grid of a valid relative error; it lasts as long as the process. */
const SketchGrid *
sketch_grid(double relative_error)
{
	static double last_error = 0;
	static const SketchGrid *last_grid;
	double		ratio = (1 + relative_error) / (1 - relative_error);
	double		reached = 1;
	int			n = 0;

	if (relative_error == last_error)
		return last_grid;
	while (reached < OCTAVE_WITH_MARGIN)
	{
		reached *= ratio;
		n++;
	}
	Assert(n <= MAX_PER_OCTAVE);
	if (grids[n] == NULL)
		grids[n] = make_grid(n);
	last_error = relative_error;
	last_grid = grids[n];
	return last_grid;
}

/* Bucket of a positive subnormal at level 0. */
int32
sketch_grid_subnormal_index(const SketchGrid *grid, double value)
{
	double		multiple = ldexp(value, -SUBNORMAL_EXPONENT);
	union
	{
		double		value;
		uint64		bits;
	}			square;

	square.value = multiple * multiple;
	/* 1 * 1 is in bucket 0 */
	return sketch_grid_normal_index(grid, square.bits) - (1022 + SKETCH_SUBNORMAL_OCTAVES) * grid->per_octave;
}

/* The highest bucket at a level. */
int32
sketch_grid_max_index(const SketchGrid *grid, int level)
{
	return (OCTAVES * grid->per_octave - 1) >> level;
}

/* The level at which no sketch can have too many buckets. */
int
sketch_grid_max_level(const SketchGrid *grid)
{
	int			level = 0;

	while (sketch_grid_max_index(grid, level) >= SKETCH_MAX_BUCKETS)
		level++;
	return level;
}

/*
 * Where bucket index of level 0 begins: the result times 2^*exponent, which
 * can lie beyond the range of double.
 */
static double
bound(const SketchGrid *grid, int32 index, int *exponent)
{
	int			octave = index / grid->per_octave;
	double		mantissa = 1 + grid->lower[index % grid->per_octave] / FRACTIONS;

	if (octave >= SKETCH_SUBNORMAL_OCTAVES)
	{
		*exponent = octave - SKETCH_SUBNORMAL_OCTAVES + SMALLEST_EXPONENT;
		return mantissa;
	}
	*exponent = SUBNORMAL_EXPONENT;
	return sqrt(ldexp(mantissa, octave));
}

/* Where a bucket begins; also for the bucket after the last, Infinity. */
double
sketch_grid_bound(const SketchGrid *grid, int level, int32 index)
{
	int			exponent;
	double		mantissa;

	if (index > sketch_grid_max_index(grid, level))
		return INFINITY;
	mantissa = bound(grid, index << level, &exponent);
	return ldexp(mantissa, exponent);
}

/*
 * The value that answers for a bucket.  In the topmost one it can be Infinity;
 * callers keep it within the sketch's extremes.
 */
double
sketch_grid_answer(const SketchGrid *grid, int level, int32 index)
{
	int			exponent;
	int			upper_exponent;
	double		lower = bound(grid, index << level, &exponent);
	double		upper = bound(grid, (index + 1) << level, &upper_exponent);

	upper = ldexp(upper, upper_exponent - exponent);
	if (exponent == SUBNORMAL_EXPONENT)
	{
		/* the multiples that are in the bucket; a half is rounded down */
		lower = ceil(lower);
		upper = ceil(upper) - 1;
		return ldexp(ceil(2 * lower * upper / (lower + upper) - 0.5), exponent);
	}
	return ldexp(2 * lower * upper / (lower + upper), exponent);
}

/* What a sketch guarantees after its buckets have collapsed level times. */
double
sketch_grid_error(double relative_error, int level)
{
	double		result = relative_error;

	for (int i = 0; i < level; i++)
		result = 2 * result / (1 + result * result);
	return result;
}
