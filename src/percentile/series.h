/*
 * series.h
 *	  Samples of a series, collected in any order and brought into one.
 */
#ifndef METRICS_SERIES_H
#define METRICS_SERIES_H

#include "lib/stringinfo.h"
#include "utils/float.h"

typedef struct Sample
{
	int64		x;				/* a time, or the key of a float8: see select.h */
	double		y;
} Sample;

typedef struct Series
{
	bool		sorted;			/* as series_compare() has it, so far */
	int			count;
	int			allocated;
	Sample	   *samples;
} Series;

extern void series_init(Series *series, int room);
extern void series_add(Series *series, Sample sample);
extern void series_append(Series *series, const Series *other);
extern void series_sort(Series *series);
extern void series_send(StringInfo buffer, const Series *series);
extern void series_receive(StringInfo buffer, Series *series);

/* By x, and where that is equal by y, so that there is one order. */
static inline int
series_compare(const Sample *a, const Sample *b)
{
	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return float8_cmp_internal(a->y, b->y);
}

#endif							/* METRICS_SERIES_H */
