/*
 * sketch.c
 *	  What must hold for every input of the sketch's parsers, without a server:
 *	  it is refused, or it is a valid sketch that all functions can take.
 */
#include "postgres.h"

#include <math.h>

#include "percentile/sketch.h"
#include "sketch.h"

#define require(condition) \
	do { if (!(condition)) { fprintf(stderr, "broken: %s, line %d\n", #condition, __LINE__); abort(); } } while (0)

static int
compare(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return (a > b) - (a < b);
}

/* Everything that can be asked of a sketch that is not empty. */
static void
query(const Sketch *sketch)
{
	SketchRange *ranges = palloc(sizeof(SketchRange) * sketch_nranges(sketch));
	double		least = sketch_min(sketch);
	double		greatest = sketch_max(sketch);
	double		last = least;
	int64		count = 0;

	for (int i = 0; i <= 16; i++)
	{
		double		value = sketch_percentile(sketch, i / 16.0);
		double		rank = sketch_rank(sketch, value);

		require(compare(value, last) >= 0 && compare(value, greatest) <= 0);
		require(rank >= 0 && rank <= 1);
		last = value;
	}
	(void) sketch_sum(sketch);
	require(isnan(sketch_mean(sketch)) || (sketch_mean(sketch) >= least && compare(sketch_mean(sketch), greatest) <= 0));
	if (sketch->count > 1)
		require(!(sketch_stddev(sketch) < 0));
	(void) sketch_trimmed_mean(sketch, 0.1, 0.7);
	sketch_ranges(sketch, ranges);
	for (int i = 0; i < sketch_nranges(sketch); i++)
	{
		require(compare(ranges[i].lower, ranges[i].upper) <= 0);
		count += ranges[i].count;
	}
	require(count == sketch->count);
	pfree(ranges);
}

static bool
encodes_to(const Sketch *sketch, const unsigned char *data, size_t size)
{
	unsigned char *bytes = palloc(sketch_encoded_size(sketch));
	bool		result = sketch_encode(sketch, bytes) == size && memcmp(bytes, data, size) == 0;

	pfree(bytes);
	return result;
}

/* A sketch that a parser accepted. */
static void
check_accepted(const Sketch *sketch)
{
	unsigned char *bytes = palloc(sketch_encoded_size(sketch));
	size_t		size = sketch_encode(sketch, bytes);
	char	   *text = sketch_print(sketch);
	Sketch		copy;
	Sketch		sum;
	double		relative_error;
	const char *problem;

	require(size <= sketch_encoded_size(sketch));
	require(sketch_decode(&copy, bytes, size) == NULL && encodes_to(&copy, bytes, size));
	sketch_free(&copy);
	require(sketch_parse(&copy, text) == NULL && encodes_to(&copy, bytes, size));
	sketch_free(&copy);
	if (sketch->count > 0)
		query(sketch);

	sketch_init(&sum, sketch->relative_error);
	require(sketch_merge(&sum, sketch) && sum.level == sketch->level);
	require(encodes_to(&sum, bytes, size));

	/* the short cut leads to the same place, from an empty sketch and from a full one */
	sketch_init(&copy, sketch->relative_error);
	require(sketch_merge_encoded(&copy, bytes, size, &relative_error, &problem) == SKETCH_MERGED);
	require(relative_error == sketch->relative_error && encodes_to(&copy, bytes, size));
	if (sketch->count <= PG_INT64_MAX / 2)
	{
		unsigned char *twice;

		require(sketch_merge(&sum, sketch));
		require(sketch_merge_encoded(&copy, bytes, size, &relative_error, &problem) == SKETCH_MERGED);
		twice = palloc(sketch_encoded_size(&sum));
		require(encodes_to(&copy, twice, sketch_encode(&sum, twice)));
		pfree(twice);
	}
	else
		require(sketch_merge_encoded(&copy, bytes, size, &relative_error, &problem) == SKETCH_OVERFLOWS &&
				!sketch_merge(&sum, sketch));
	sketch_free(&copy);
	sketch_store_order(&sum.negative);
	sketch_store_order(&sum.positive);
	if (sum.count > 0)
		query(&sum);
	sketch_free(&sum);
	pfree(text);
	pfree(bytes);
}

bool
check_binary(const unsigned char *data, size_t size)
{
	Sketch		sketch;
	Sketch		sum;
	double		relative_error;
	const char *problem;

	/* what was validated once may have been damaged since */
	sketch_init(&sum, SKETCH_DEFAULT_ERROR);
	(void) sketch_merge_encoded(&sum, data, size, &relative_error, &problem);
	sketch_free(&sum);

	problem = sketch_decode(&sketch, data, size);
	if (problem == NULL)
	{
		require(encodes_to(&sketch, data, size));
		check_accepted(&sketch);
	}
	sketch_free(&sketch);
	return problem == NULL;
}

bool
check_text(const char *text)
{
	Sketch		sketch;
	const char *problem = sketch_parse(&sketch, text);

	if (problem == NULL)
		check_accepted(&sketch);
	sketch_free(&sketch);
	return problem == NULL;
}
