/*
 * sketch.h
 *	  Quantile sketch with a guaranteed relative error.
 *
 * A sketch counts values in buckets whose bounds grow geometrically, so that
 * one number answers for all values of a bucket within the relative error.
 * It is a function of the multiset of its values alone: neither the order in
 * which they came nor the way in which partial sketches were merged leaves a
 * trace, but for the last bits of sum and squares.
 *
 * These files know neither fmgr nor SPI.  What they allocate comes from the
 * caller's current memory context and grows where it lies.
 */
#ifndef METRICS_SKETCH_H
#define METRICS_SKETCH_H

/* More occupied buckets of a sign than this, and all buckets collapse. */
#define SKETCH_MAX_BUCKETS 2048

/* Values that sketch_add() takes at a time. */
#define SKETCH_BATCH 128

#define SKETCH_MIN_ERROR 0.001
#define SKETCH_MAX_ERROR 0.1
#define SKETCH_DEFAULT_ERROR 0.01

/* sketch_grid.c: where the buckets are */

#define SKETCH_CELL_BITS 9

/* The part of an octave whose fractions begin with the same bits. */
typedef struct SketchCell
{
	uint32		last;			/* last fraction that is in bucket index */
	uint32		index;			/* the next ones are in the next bucket */
} SketchCell;

typedef struct SketchGrid
{
	int			per_octave;		/* buckets between a power of two and the next */
	SketchCell	cells[1 << SKETCH_CELL_BITS];
	uint32		lower[FLEXIBLE_ARRAY_MEMBER];	/* fraction a bucket begins with */
} SketchGrid;

extern const SketchGrid *sketch_grid(double relative_error);
extern int32 sketch_grid_subnormal_index(const SketchGrid *grid, double value);
extern int	sketch_grid_max_level(const SketchGrid *grid);
extern int32 sketch_grid_max_index(const SketchGrid *grid, int level);
extern double sketch_grid_bound(const SketchGrid *grid, int level, int32 index);
extern double sketch_grid_answer(const SketchGrid *grid, int level, int32 index);
extern double sketch_grid_error(double relative_error, int level);

#define SKETCH_FRACTION_BITS 52
#define SKETCH_MAGNITUDE_MASK UINT64CONST(0x7fffffffffffffff)
#define SKETCH_SMALLEST_NORMAL UINT64CONST(0x0010000000000000)

/* Octaves below the smallest normal double, each of two as wide as it. */
#define SKETCH_SUBNORMAL_OCTAVES 104

/*
 * Bucket of a positive normal double, given its bits, before collapsing and
 * counted from that of the smallest double.
 */
static inline int32
sketch_grid_normal_index(const SketchGrid *grid, uint64 bits)
{
	uint32		fraction = (uint32) (bits >> (SKETCH_FRACTION_BITS - 32));
	const SketchCell *cell = &grid->cells[fraction >> (32 - SKETCH_CELL_BITS)];

	return ((int32) (bits >> SKETCH_FRACTION_BITS) + SKETCH_SUBNORMAL_OCTAVES - 1) * grid->per_octave +
		(int32) cell->index + (fraction > cell->last);
}

/* Bucket of |value|, finite and not zero, at a level. */
static inline int32
sketch_grid_index(const SketchGrid *grid, int level, double value)
{
	union
	{
		double		value;
		uint64		bits;
	}			image;

	image.value = value;
	image.bits &= SKETCH_MAGNITUDE_MASK;
	if (unlikely(image.bits < SKETCH_SMALLEST_NORMAL))
		return sketch_grid_subnormal_index(grid, image.value) >> level;
	return sketch_grid_normal_index(grid, image.bits) >> level;
}

/* sketch_store.c: the counts of one sign */

typedef struct SketchBucket
{
	int32		index;
	int64		count;
} SketchBucket;

/*
 * Either a dense array around the occupied range or, if the range is wide or
 * the sketch was read from its stored form, the occupied buckets in order.
 */
typedef struct SketchStore
{
	int			nbuckets;		/* occupied ones */
	int32		first;			/* bucket of counts[0] */
	int32		ncounts;
	int64	   *counts;			/* dense form, or NULL */
	int			capacity;
	SketchBucket *buckets;		/* ordered form, or NULL */
} SketchStore;

extern bool sketch_store_reserve(SketchStore *store, int32 low, int32 high);
extern void sketch_store_add_batch(SketchStore *store, const int32 *index, int n, int32 low, int32 high);
extern void sketch_store_add(SketchStore *store, int32 index, int64 count);
extern void sketch_store_remove(SketchStore *store, int32 index);
extern void sketch_store_merge(SketchStore *store, const SketchStore *other, int shift);
extern void sketch_store_halve(SketchStore *store);
extern void sketch_store_order(SketchStore *store);
extern void sketch_store_free(SketchStore *store);

/*
 * Walk over the occupied buckets in order; *cursor is 0 at first.  Writing a
 * sketch is little else.
 */
static inline bool
sketch_store_next(const SketchStore *store, int32 *cursor, SketchBucket *bucket)
{
	if (store->counts == NULL)
	{
		if (*cursor >= store->nbuckets)
			return false;
		*bucket = store->buckets[(*cursor)++];
		return true;
	}
	for (int32 i = *cursor; i < store->ncounts; i++)
	{
		if (store->counts[i] != 0)
		{
			bucket->index = store->first + i;
			bucket->count = store->counts[i];
			*cursor = i + 1;
			return true;
		}
	}
	return false;
}

/* sketch.c: the sketch */

/*
 * Sum of finite values and of the squares of their distances from the mean.
 * Both are of values divided by 2^scale, so that neither overflows nor
 * underflows as a whole; scale depends on the largest magnitude alone.
 */
typedef struct SketchMoments
{
	int64		n;
	int			scale;
	double		sum;
	double		carry;			/* what rounding took off sum */
	double		squares;
} SketchMoments;

typedef struct Sketch
{
	double		relative_error; /* declared, what it guarantees at level 0 */
	int			level;			/* times that the buckets have collapsed */
	int64		count;			/* of all values: the counts below and the buckets' */
	int64		nan;
	int64		negative_infinity;
	int64		positive_infinity;
	int64		zero;
	double		min;			/* of finite values; if there are none, Infinity */
	double		max;			/* ... and -Infinity */
	SketchMoments moments;
	SketchStore negative;		/* by magnitude */
	SketchStore positive;
	const SketchGrid *grid;
} Sketch;

extern bool sketch_error_is_valid(double relative_error);
extern void sketch_init(Sketch *sketch, double relative_error);
extern bool sketch_add(Sketch *sketch, double *values, int n);
extern bool sketch_add_weighted(Sketch *sketch, double value, int64 weight);
extern void sketch_count_only(Sketch *sketch, double value, int step);
extern bool sketch_merge(Sketch *sketch, const Sketch *other);
extern bool sketch_merge_parts(Sketch *sketch, const Sketch *other);
extern void sketch_collapse(Sketch *sketch);
extern void sketch_free(Sketch *sketch);
extern int64 sketch_finite_count(const Sketch *sketch);
extern int	sketch_scale(double min, double max);
extern void sketch_moments_add(SketchMoments *moments, const SketchMoments *other);
extern void sketch_moments_of(SketchMoments *moments, const double *values, int n, double min, double max);
extern void sketch_moments_rescale(SketchMoments *moments, int scale);
extern double sketch_moments_sum(const SketchMoments *moments);
extern void sketch_moments_settle(SketchMoments *moments, double min, double max);

/* sketch_query.c: what it answers; of sketches in the ordered form */

typedef struct SketchRange
{
	double		lower;
	double		upper;
	int64		count;
} SketchRange;

extern double sketch_min(const Sketch *sketch);
extern double sketch_max(const Sketch *sketch);
extern double sketch_sum(const Sketch *sketch);
extern double sketch_mean(const Sketch *sketch);
extern double sketch_stddev(const Sketch *sketch);
extern double sketch_percentile(const Sketch *sketch, double fraction);
extern double sketch_rank(const Sketch *sketch, double value);
extern double sketch_trimmed_mean(const Sketch *sketch, double low, double high);
extern int	sketch_nranges(const Sketch *sketch);
extern void sketch_ranges(const Sketch *sketch, SketchRange *ranges);

/* sketch_codec.c, sketch_text.c: the stored form and text */

typedef enum SketchOutcome
{
	SKETCH_MERGED,
	SKETCH_DIFFERS,				/* in the declared relative error */
	SKETCH_OVERFLOWS,
	SKETCH_MALFORMED
} SketchOutcome;

extern size_t sketch_encoded_size(const Sketch *sketch);
extern size_t sketch_encode(const Sketch *sketch, unsigned char *out);
extern const char *sketch_decode(Sketch *sketch, const unsigned char *data, size_t length);
extern SketchOutcome sketch_merge_encoded(Sketch *sketch, const unsigned char *data, size_t length,
										 double *relative_error, const char **problem);
extern const char *sketch_parse(Sketch *sketch, const char *text);
extern char *sketch_print(const Sketch *sketch);
extern const char *sketch_check(Sketch *sketch);

#endif							/* METRICS_SKETCH_H */
