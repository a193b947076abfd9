/*
 * series.c
 *	  Samples of a series, collected in any order and brought into one.
 *
 * What aggregates need whose answer depends on the order of the samples, but
 * must not depend on that of the rows, nor on the plan: all samples, until the
 * end.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "percentile/series.h"

/* A series, whole or serialised, is at most 1 GB. */
#define MAX_SAMPLES ((int) ((MaxAllocSize - 64) / sizeof(Sample)))

#define ST_SORT sort_samples
#define ST_ELEMENT_TYPE Sample
#define ST_COMPARE series_compare
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* An empty series with room for some samples, in the current context. */
void
series_init(Series *series, int room)
{
	series->sorted = true;
	series->count = 0;
	series->allocated = Max(room, 64);
	series->samples = palloc_array(Sample, series->allocated);
}

/* Make room for more samples, in the context in which the series was made. */
static void
reserve(Series *series, int more)
{
	if (more <= series->allocated - series->count)
		return;
	if (more > MAX_SAMPLES - series->count)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a series has at most %d samples", MAX_SAMPLES),
				 errhint("Narrow it with WHERE, or group it into intervals.")));
	series->allocated = (int) Min((int64) MAX_SAMPLES,
								  Max((int64) series->allocated * 2, (int64) series->count + more));
	series->samples = repalloc(series->samples, series->allocated * sizeof(Sample));
}

void
series_add(Series *series, Sample sample)
{
	reserve(series, 1);
	if (series->sorted && series->count > 0 &&
		series_compare(&series->samples[series->count - 1], &sample) > 0)
		series->sorted = false;
	series->samples[series->count++] = sample;
}

/* Add all samples of another series, which stays as it is. */
void
series_append(Series *series, const Series *other)
{
	if (other->count == 0)
		return;
	reserve(series, other->count);
	if (!other->sorted ||
		(series->count > 0 && series_compare(&series->samples[series->count - 1], &other->samples[0]) > 0))
		series->sorted = false;
	memcpy(series->samples + series->count, other->samples, other->count * sizeof(Sample));
	series->count += other->count;
}

void
series_sort(Series *series)
{
	if (!series->sorted)
		sort_samples(series->samples, series->count);
	series->sorted = true;
}

/* Write a series into a message, for series_receive(). */
void
series_send(StringInfo buffer, const Series *series)
{
	enlargeStringInfo(buffer, sizeof(int32) + series->count * sizeof(Sample));
	pq_sendint32(buffer, series->count);
	for (int i = 0; i < series->count; i++)
	{
		pq_sendint64(buffer, series->samples[i].x);
		pq_sendfloat8(buffer, series->samples[i].y);
	}
}

/*
 * Read a series, which is the rest of a message, in the current context.
 * Trusts nothing but that whoever wrote it may choose the samples at will.
 */
void
series_receive(StringInfo buffer, Series *series)
{
	int32		count = pq_getmsgint(buffer, 4);

	if (count < 0 || count > MAX_SAMPLES || (Size) (buffer->len - buffer->cursor) != count * sizeof(Sample))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid partial result of an aggregate over a series")));
	series_init(series, count);
	for (int i = 0; i < count; i++)
	{
		Sample		sample;

		sample.x = pq_getmsgint64(buffer);
		sample.y = pq_getmsgfloat8(buffer);
		series_add(series, sample);
	}
	pq_getmsgend(buffer);
}
