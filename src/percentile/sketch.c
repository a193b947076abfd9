/*
 * sketch.c
 *	  Putting values into a sketch, and sketches into one another.
 *
 * All buckets collapse together, those of both signs, as soon as a sign has
 * more than SKETCH_MAX_BUCKETS occupied ones.  Collapsing commutes with adding,
 * and more values never occupy fewer buckets, so the level is the least at
 * which the buckets of all values are few enough, whatever the order.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"

#include "percentile/sketch.h"

/* Moments of magnitudes in [2^-LIMIT, 2^LIMIT) are kept as they are. */
#define SCALE_LIMIT 400
#define SCALE 600

#define NLANES 4

bool
sketch_error_is_valid(double relative_error)
{
	return relative_error >= SKETCH_MIN_ERROR && relative_error <= SKETCH_MAX_ERROR;
}

/* Make an empty sketch. */
void
sketch_init(Sketch *sketch, double relative_error)
{
	memset(sketch, 0, sizeof(Sketch));
	sketch->relative_error = relative_error;
	sketch->min = INFINITY;
	sketch->max = -INFINITY;
	sketch->moments.scale = -SCALE;
	sketch->grid = sketch_grid(relative_error);
}

/* Give back what hangs on a sketch. */
void
sketch_free(Sketch *sketch)
{
	sketch_store_free(&sketch->negative);
	sketch_store_free(&sketch->positive);
}

int64
sketch_finite_count(const Sketch *sketch)
{
	return sketch->count - sketch->nan - sketch->negative_infinity - sketch->positive_infinity;
}

/* The scale of moments of values between two finite ones. */
int
sketch_scale(double min, double max)
{
	double		magnitude = Max(fabs(min), fabs(max));

	if (magnitude >= ldexp(1, SCALE_LIMIT))
		return SCALE;
	return magnitude >= ldexp(1, -SCALE_LIMIT) ? 0 : -SCALE;
}

/*
 * Moments of at most SKETCH_BATCH finite values between min and max: two
 * passes, so that squares do not suffer from a mean that is far from zero.
 */
void
sketch_moments_of(SketchMoments *moments, const double *values, int n, double min, double max)
{
	double		scaled[SKETCH_BATCH];
	double		lanes[NLANES] = {0};
	double		squares[NLANES] = {0};
	double		mean;
	int			i;

	moments->n = n;
	moments->scale = sketch_scale(min, max);
	moments->carry = 0;
	if (moments->scale != 0)
	{
		for (i = 0; i < n; i++)
			scaled[i] = ldexp(values[i], -moments->scale);
		values = scaled;
	}
	for (i = 0; i + NLANES <= n; i += NLANES)
		for (int lane = 0; lane < NLANES; lane++)
			lanes[lane] += values[i + lane];
	for (; i < n; i++)
		lanes[0] += values[i];
	moments->sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);

	mean = moments->sum / n;
	for (i = 0; i + NLANES <= n; i += NLANES)
		for (int lane = 0; lane < NLANES; lane++)
			squares[lane] += (values[i + lane] - mean) * (values[i + lane] - mean);
	for (; i < n; i++)
		squares[0] += (values[i] - mean) * (values[i] - mean);
	moments->squares = (squares[0] + squares[1]) + (squares[2] + squares[3]);
}

void
sketch_moments_rescale(SketchMoments *moments, int scale)
{
	int			shift = moments->scale - scale;

	if (shift == 0)
		return;
	moments->sum = ldexp(moments->sum, shift);
	moments->carry = ldexp(moments->carry, shift);
	moments->squares = ldexp(moments->squares, 2 * shift);
	moments->scale = scale;
}

double
sketch_moments_sum(const SketchMoments *moments)
{
	return moments->sum + moments->carry;
}

/*
 * Round moments to what is stored.  Of equal values they are known exactly,
 * whatever rounding did on the way.
 */
void
sketch_moments_settle(SketchMoments *moments, double min, double max)
{
	moments->sum = sketch_moments_sum(moments) + 0.0;	/* -0 is 0 */
	moments->carry = 0;
	if (min == max)
	{
		moments->sum = ldexp(min, -moments->scale) * moments->n;
		moments->squares = 0;
	}
}

/*
 * Add moments.  The sum carries along what rounding takes off (Knuth's
 * two-sum); the squares follow Chan, Golub and LeVeque.
 */
void
sketch_moments_add(SketchMoments *moments, const SketchMoments *other)
{
	SketchMoments added = *other;
	double		distance;
	double		sum;
	double		part;

	if (added.n == 0)
		return;
	if (moments->n == 0)
	{
		*moments = added;
		return;
	}
	sketch_moments_rescale(moments, Max(moments->scale, added.scale));
	sketch_moments_rescale(&added, moments->scale);

	distance = sketch_moments_sum(&added) / added.n - sketch_moments_sum(moments) / moments->n;
	moments->squares += added.squares +
		distance * distance * ((double) moments->n / ((double) moments->n + added.n)) * added.n;

	sum = moments->sum + added.sum;
	part = sum - moments->sum;
	moments->carry += (moments->sum - (sum - part)) + (added.sum - part) + added.carry;
	moments->sum = sum;
	moments->n += added.n;
}

#ifdef USE_ASSERT_CHECKING
/* The parts of a store agree; returns how many values it counts. */
static int64
check_store(const Sketch *sketch, const SketchStore *store)
{
	SketchBucket bucket;
	int32		cursor = 0;
	int32		last = -1;
	int			nbuckets = 0;
	int64		count = 0;

	while (sketch_store_next(store, &cursor, &bucket))
	{
		Assert(bucket.index > last && bucket.index <= sketch_grid_max_index(sketch->grid, sketch->level));
		Assert(bucket.count > 0);
		last = bucket.index;
		count += bucket.count;
		nbuckets++;
	}
	Assert(nbuckets == store->nbuckets && nbuckets <= SKETCH_MAX_BUCKETS);
	return count;
}

static void
AssertCheckSketch(const Sketch *sketch)
{
	int64		finite = sketch->zero + check_store(sketch, &sketch->negative) + check_store(sketch, &sketch->positive);

	Assert(sketch_error_is_valid(sketch->relative_error));
	Assert(sketch->level >= 0 && sketch->level <= sketch_grid_max_level(sketch->grid));
	Assert(finite == sketch_finite_count(sketch) && finite == sketch->moments.n);
	Assert(finite > 0 ? isfinite(sketch->min) && isfinite(sketch->max) : sketch->min > sketch->max);
	Assert(finite == 0 || sketch->moments.scale == sketch_scale(sketch->min, sketch->max));
}
#else
#define AssertCheckSketch(sketch) ((void) 0)
#endif

/* Collapse as often as it takes. */
void
sketch_collapse(Sketch *sketch)
{
	while (sketch->negative.nbuckets > SKETCH_MAX_BUCKETS || sketch->positive.nbuckets > SKETCH_MAX_BUCKETS)
	{
		sketch_store_halve(&sketch->negative);
		sketch_store_halve(&sketch->positive);
		sketch->level++;
	}
}

/* Count finite values of one sign. */
static void
add_side(Sketch *sketch, SketchStore *store, const double *values, int n)
{
	const SketchGrid *grid = sketch->grid;
	int32		index[SKETCH_BATCH];
	int			level = sketch->level;
	int32		low = PG_INT32_MAX;
	int32		high = 0;

	if (n == 0)
		return;
	for (int i = 0; i < n; i++)
	{
		index[i] = sketch_grid_index(grid, level, values[i]);
		low = Min(low, index[i]);
		high = Max(high, index[i]);
	}
	sketch_store_add_batch(store, index, n, low, high);
}

/* Count finite values of any sign. */
static void
add_both_sides(Sketch *sketch, const double *values, int n)
{
	double		negative[SKETCH_BATCH];
	double		positive[SKETCH_BATCH];
	int			nnegative = 0;
	int			npositive = 0;

	for (int i = 0; i < n; i++)
	{
		negative[nnegative] = values[i];
		nnegative += values[i] < 0;
		positive[npositive] = values[i];
		npositive += values[i] > 0;
	}
	sketch->zero += n - nnegative - npositive;
	add_side(sketch, &sketch->negative, negative, nnegative);
	add_side(sketch, &sketch->positive, positive, npositive);
}

/* Count what is not finite, and close the gaps; returns how many are left. */
static int
take_special(Sketch *sketch, double *values, int n)
{
	int			nfinite = 0;

	for (int i = 0; i < n; i++)
	{
		if (isnan(values[i]))
			sketch->nan++;
		else if (isinf(values[i]))
		{
			if (values[i] < 0)
				sketch->negative_infinity++;
			else
				sketch->positive_infinity++;
		}
		else
			values[nfinite++] = values[i];
	}
	return nfinite;
}

/*
 * Least and greatest value.  Returns whether all are finite; if not, neither
 * is their sum, but a sum that overflows shows the same.
 */
static bool
survey(const double *values, int n, double *min, double *max)
{
	double		low[NLANES];
	double		high[NLANES];
	double		sum[NLANES] = {0};
	int			i;

	for (int lane = 0; lane < NLANES; lane++)
		low[lane] = high[lane] = values[0];
	for (i = 0; i + NLANES <= n; i += NLANES)
		for (int lane = 0; lane < NLANES; lane++)
		{
			double		value = values[i + lane];

			sum[lane] += value;
			low[lane] = value < low[lane] ? value : low[lane];
			high[lane] = value > high[lane] ? value : high[lane];
		}
	for (; i < n; i++)
	{
		sum[0] += values[i];
		low[0] = Min(low[0], values[i]);
		high[0] = Max(high[0], values[i]);
	}
	/* -0 is 0 */
	*min = Min(Min(low[0], low[1]), Min(low[2], low[3])) + 0.0;
	*max = Max(Max(high[0], high[1]), Max(high[2], high[3])) + 0.0;
	return isfinite((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/*
 * Add at most SKETCH_BATCH values, whose array is used as working space.
 * Returns false, and changes nothing, if the count would overflow.
 */
bool
sketch_add(Sketch *sketch, double *values, int n)
{
	SketchMoments moments;
	double		min;
	double		max;
	int64		count;

	Assert(n > 0 && n <= SKETCH_BATCH);
	AssertCheckSketch(sketch);
	if (pg_add_s64_overflow(sketch->count, n, &count))
		return false;
	sketch->count = count;

	if (unlikely(!survey(values, n, &min, &max)))
	{
		n = take_special(sketch, values, n);
		if (n == 0)
			return true;
		(void) survey(values, n, &min, &max);
	}
	sketch->min = Min(sketch->min, min);
	sketch->max = Max(sketch->max, max);
	sketch_moments_of(&moments, values, n, min, max);
	sketch_moments_add(&sketch->moments, &moments);
	if (min > 0)
		add_side(sketch, &sketch->positive, values, n);
	else if (max < 0)
		add_side(sketch, &sketch->negative, values, n);
	else
		add_both_sides(sketch, values, n);
	sketch_collapse(sketch);
	AssertCheckSketch(sketch);
	return true;
}

/* Add a value weight times, weight > 0; false as in sketch_add(). */
bool
sketch_add_weighted(Sketch *sketch, double value, int64 weight)
{
	SketchMoments moments;
	int64		count;

	Assert(weight > 0);
	AssertCheckSketch(sketch);
	if (pg_add_s64_overflow(sketch->count, weight, &count))
		return false;
	sketch->count = count;

	if (isnan(value))
		sketch->nan += weight;
	else if (isinf(value) && value < 0)
		sketch->negative_infinity += weight;
	else if (isinf(value))
		sketch->positive_infinity += weight;
	else
	{
		value += 0.0;			/* -0 is 0 */
		sketch->min = Min(sketch->min, value);
		sketch->max = Max(sketch->max, value);
		sketch_moments_of(&moments, &value, 1, value, value);
		moments.n = weight;
		moments.sum *= weight;
		sketch_moments_add(&sketch->moments, &moments);
		if (value == 0)
			sketch->zero += weight;
		else
			sketch_store_add(value < 0 ? &sketch->negative : &sketch->positive,
							 sketch_grid_index(sketch->grid, sketch->level, value), weight);
		sketch_collapse(sketch);
	}
	AssertCheckSketch(sketch);
	return true;
}

/*
 * Count a value, or with step -1 take one out that was counted.  Neither
 * extremes nor moments follow, and nothing collapses: that is the caller's.
 */
void
sketch_count_only(Sketch *sketch, double value, int step)
{
	SketchStore *store = value < 0 ? &sketch->negative : &sketch->positive;

	Assert(sketch->level == 0);
	sketch->count += step;
	if (isnan(value))
		sketch->nan += step;
	else if (isinf(value) && value < 0)
		sketch->negative_infinity += step;
	else if (isinf(value))
		sketch->positive_infinity += step;
	else if (value == 0)
		sketch->zero += step;
	else if (step > 0)
		sketch_store_add(store, sketch_grid_index(sketch->grid, 0, value), 1);
	else
		sketch_store_remove(store, sketch_grid_index(sketch->grid, 0, value));
}

/* Add all but the buckets of another sketch; false as in sketch_add(). */
bool
sketch_merge_parts(Sketch *sketch, const Sketch *other)
{
	int64		count;

	if (pg_add_s64_overflow(sketch->count, other->count, &count))
		return false;
	sketch->count = count;
	sketch->nan += other->nan;
	sketch->negative_infinity += other->negative_infinity;
	sketch->positive_infinity += other->positive_infinity;
	sketch->zero += other->zero;
	sketch->min = Min(sketch->min, other->min);
	sketch->max = Max(sketch->max, other->max);
	sketch_moments_add(&sketch->moments, &other->moments);
	return true;
}

/*
 * Add what another sketch of the same relative error holds; that one stays as
 * it is.  Returns false as sketch_add() does.
 */
bool
sketch_merge(Sketch *sketch, const Sketch *other)
{
	int			shift;

	Assert(sketch->relative_error == other->relative_error);
	AssertCheckSketch(sketch);
	if (!sketch_merge_parts(sketch, other))
		return false;
	while (sketch->level < other->level)
	{
		sketch_store_halve(&sketch->negative);
		sketch_store_halve(&sketch->positive);
		sketch->level++;
	}
	shift = sketch->level - other->level;
	sketch_store_merge(&sketch->negative, &other->negative, shift);
	sketch_store_merge(&sketch->positive, &other->positive, shift);
	sketch_collapse(sketch);
	AssertCheckSketch(sketch);
	return true;
}
