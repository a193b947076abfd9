/*
 * comparison.h
 *	  How two sets of measurements differ.
 */
#ifndef METRICS_COMPARISON_H
#define METRICS_COMPARISON_H

typedef struct Sample
{
	int			count;
	double	   *sorted;
	double		mean;
	double		median;
	double		stddev;			/* with n - 1; 0 for a single measurement */
} Sample;

/* Mann-Whitney's test. */
typedef struct RankTest
{
	double		u;				/* pairs in which the base is greater, ties count half */
	double		p;				/* two-sided */
	double		cliffs_delta;	/* from -1 to 1, above 0 if the new ones are greater */
} RankTest;

typedef struct Interval95
{
	double		low;
	double		high;
} Interval95;

extern Sample sample_of(const double *values, int count);
extern double comparison_t(const Sample *base, const Sample *other);
extern RankTest comparison_ranks(const Sample *base, const Sample *other);
extern Interval95 comparison_interval(const Sample *base, const Sample *other, int resamples);

#endif							/* METRICS_COMPARISON_H */
