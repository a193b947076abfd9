/*
 * sketch_text.c
 *	  The text form of a sketch: JSON with fixed keys in a fixed order.
 *
 *	{"version": 1, "relative_error": 0.01, "level": 0, "count": 5, "nan": 0,
 *	 "negative_infinity": 0, "positive_infinity": 0, "zero": 1,
 *	 "min": -2, "max": 3, "sum": 2, "squares": 17.2,
 *	 "negative": [[39445, 1]], "positive": [[39410, 2], [39465, 1]]}
 *
 * min to squares are left out if there are no finite values.  The parts mean
 * what they mean in the stored form, sketch_codec.c; a bucket is its number
 * and its count.
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "common/shortest_dec.h"
#include "lib/stringinfo.h"

#include "percentile/sketch.h"

static void
skip_space(const char **at)
{
	while (**at == ' ' || **at == '\t' || **at == '\n' || **at == '\r')
		(*at)++;
}

/* Read one punctuation mark. */
static bool
take(const char **at, char mark)
{
	skip_space(at);
	if (**at != mark)
		return false;
	(*at)++;
	return true;
}

/* Read "name": after a mark. */
static bool
take_key(const char **at, char mark, const char *name)
{
	size_t		length = strlen(name);

	if (!take(at, mark) || !take(at, '"') || strncmp(*at, name, length) != 0)
		return false;
	*at += length;
	return **at == '"' && take(at, '"') && take(at, ':');
}

/* Read digits: a number of at most 2^63 - 1. */
static bool
take_number(const char **at, int64 *number)
{
	skip_space(at);
	if (!isdigit((unsigned char) **at))
		return false;
	*number = 0;
	for (; isdigit((unsigned char) **at); (*at)++)
	{
		int			digit = **at - '0';

		if (*number > (PG_INT64_MAX - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return true;
}

static bool
take_double(const char **at, double *value)
{
	char	   *end;

	skip_space(at);
	/* strtod() would take more than JSON has: hexadecimal, inf, nan */
	for (const char *c = *at; *c != '\0' && strchr(",}] \t\n\r", *c) == NULL; c++)
	{
		if (strchr("+-.eE0123456789", *c) == NULL)
			return false;
	}
	*value = strtod(*at, &end);
	if (end == *at || !isfinite(*value))
		return false;
	*at = end;
	return true;
}

static bool
take_count(const char **at, const char *name, int64 *count)
{
	return take_key(at, ',', name) && take_number(at, count);
}

static bool
take_value(const char **at, const char *name, double *value)
{
	return take_key(at, ',', name) && take_double(at, value);
}

/* The array grows with what is read. */
static const char *
take_buckets(const char **at, const char *name, SketchStore *store, int32 max_index)
{
	int64		previous = -1;

	if (!take_key(at, ',', name) || !take(at, '['))
		return "syntax error";
	if (take(at, ']'))
		return NULL;
	do
	{
		int64		index;
		int64		count;

		if (!take(at, '[') || !take_number(at, &index) || !take(at, ',') || !take_number(at, &count) || !take(at, ']'))
			return "malformed bucket";
		if (index <= previous)
			return "buckets are not in order";
		if (index > max_index)
			return "bucket out of range";
		if (count == 0)
			return "empty bucket";
		if (store->nbuckets == SKETCH_MAX_BUCKETS)
			return "too many buckets";
		if (store->buckets == NULL)
		{
			store->capacity = 64;
			store->buckets = palloc(sizeof(SketchBucket) * store->capacity);
		}
		if (store->nbuckets == store->capacity)
		{
			store->capacity *= 2;
			store->buckets = repalloc(store->buckets, sizeof(SketchBucket) * store->capacity);
		}
		store->buckets[store->nbuckets].index = (int32) index;
		store->buckets[store->nbuckets++].count = count;
		previous = index;
	} while (take(at, ','));
	return take(at, ']') ? NULL : "syntax error";
}

/* Read the text form; as sketch_decode(). */
const char *
sketch_parse(Sketch *sketch, const char *text)
{
	const char *at = text;
	const char *next;
	const char *problem;
	double		relative_error;
	int64		version;
	int64		level;
	int32		max_index;

	memset(sketch, 0, sizeof(Sketch));
	if (!take_key(&at, '{', "version") || !take_number(&at, &version))
		return "syntax error";
	if (version != 1)
		return "unknown version";
	if (!take_value(&at, "relative_error", &relative_error))
		return "syntax error";
	if (!sketch_error_is_valid(relative_error))
		return "relative error out of range";
	sketch_init(sketch, relative_error);
	if (!take_count(&at, "level", &level))
		return "syntax error";
	if (level > sketch_grid_max_level(sketch->grid))
		return "level out of range";
	sketch->level = (int) level;
	if (!take_count(&at, "count", &sketch->count) || !take_count(&at, "nan", &sketch->nan) ||
		!take_count(&at, "negative_infinity", &sketch->negative_infinity) ||
		!take_count(&at, "positive_infinity", &sketch->positive_infinity) ||
		!take_count(&at, "zero", &sketch->zero))
		return "malformed count";
	/* whether they must be there is for sketch_check() to say */
	next = at;
	if (take_key(&next, ',', "min"))
	{
		if (!take_value(&at, "min", &sketch->min) || !take_value(&at, "max", &sketch->max) ||
			!take_value(&at, "sum", &sketch->moments.sum) || !take_value(&at, "squares", &sketch->moments.squares))
			return "malformed value";
	}
	max_index = sketch_grid_max_index(sketch->grid, sketch->level);
	problem = take_buckets(&at, "negative", &sketch->negative, max_index);
	if (problem == NULL)
		problem = take_buckets(&at, "positive", &sketch->positive, max_index);
	if (problem != NULL)
		return problem;
	if (!take(&at, '}'))
		return "syntax error";
	skip_space(&at);
	if (*at != '\0')
		return "trailing characters";
	return sketch_check(sketch);
}

/* The shortest form that reads back the same, whatever the session's settings. */
static void
print_double(StringInfo out, const char *name, double value)
{
	char		digits[DOUBLE_SHORTEST_DECIMAL_LEN];

	double_to_shortest_decimal_buf(value, digits);
	appendStringInfo(out, ", \"%s\": %s", name, digits);
}

static void
print_count(StringInfo out, const char *name, int64 count)
{
	appendStringInfo(out, ", \"%s\": " INT64_FORMAT, name, count);
}

static void
print_buckets(StringInfo out, const char *name, const SketchStore *store)
{
	SketchBucket bucket;
	int32		cursor = 0;
	const char *separator = "";

	appendStringInfo(out, ", \"%s\": [", name);
	while (sketch_store_next(store, &cursor, &bucket))
	{
		appendStringInfo(out, "%s[%d, " INT64_FORMAT "]", separator, bucket.index, bucket.count);
		separator = ", ";
	}
	appendStringInfoChar(out, ']');
}

/* Write the text form, in the current memory context. */
char *
sketch_print(const Sketch *sketch)
{
	StringInfoData out;
	SketchMoments moments = sketch->moments;

	initStringInfo(&out);
	appendStringInfoString(&out, "{\"version\": 1");
	print_double(&out, "relative_error", sketch->relative_error);
	print_count(&out, "level", sketch->level);
	print_count(&out, "count", sketch->count);
	print_count(&out, "nan", sketch->nan);
	print_count(&out, "negative_infinity", sketch->negative_infinity);
	print_count(&out, "positive_infinity", sketch->positive_infinity);
	print_count(&out, "zero", sketch->zero);
	if (sketch_finite_count(sketch) > 0)
	{
		sketch_moments_settle(&moments, sketch->min, sketch->max);
		print_double(&out, "min", sketch->min);
		print_double(&out, "max", sketch->max);
		print_double(&out, "sum", moments.sum);
		print_double(&out, "squares", moments.squares);
	}
	print_buckets(&out, "negative", &sketch->negative);
	print_buckets(&out, "positive", &sketch->positive);
	appendStringInfoChar(&out, '}');
	return out.data;
}
