/*
 * comparison.c
 *	  How two sets of measurements differ: Student's t as Perfherder defines it,
 *	  Mann-Whitney's test, and a bootstrap of the difference of the means.
 *
 * Nothing depends on the order of the measurements.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"

#include "report/comparison.h"

#define ST_SORT sort_doubles
#define ST_ELEMENT_TYPE double
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Describe measurements, which are finite.  Allocates in the current context;
 * of no measurements only the count means something.
 */
Sample
sample_of(const double *values, int count)
{
	Sample		sample = {.count = count};
	double		sum = 0;
	double		squares = 0;

	sample.sorted = palloc_array(double, count + 1);
	if (count == 0)
		return sample;
	memcpy(sample.sorted, values, count * sizeof(double));
	sort_doubles(sample.sorted, count);

	for (int i = 0; i < count; i++)
		sum += sample.sorted[i];
	sample.mean = sum / count;
	sample.median = count % 2 ? sample.sorted[count / 2] :
		(sample.sorted[count / 2 - 1] + sample.sorted[count / 2]) / 2;
	if (count > 1)
	{
		for (int i = 0; i < count; i++)
			squares += (sample.sorted[i] - sample.mean) * (sample.sorted[i] - sample.mean);
		sample.stddev = sqrt(squares / (count - 1));
	}
	return sample;
}

/*
 * The deviation to reckon with.  A single measurement has none of its own: it
 * is taken to vary like the other sample, and two single ones by 15 %.
 */
static double
assumed_stddev(const Sample *sample, const Sample *other)
{
	if (sample->count > 1)
		return sample->stddev;
	if (other->count == 1)
		return 0.15 * sample->mean;
	return other->mean == 0 ? 0 : sample->mean * other->stddev / other->mean;
}

/* The distance of the means in standard errors; 0 if there is no error or no sample. */
double
comparison_t(const Sample *base, const Sample *other)
{
	double		base_stddev;
	double		other_stddev;
	double		error;

	if (base->count == 0 || other->count == 0)
		return 0;
	base_stddev = assumed_stddev(base, other);
	other_stddev = assumed_stddev(other, base);
	error = sqrt(base_stddev * base_stddev / base->count + other_stddev * other_stddev / other->count);
	return error == 0 ? 0 : fabs(other->mean - base->mean) / error;
}

/*
 * The share of all ways to deal count_a and count_b distinct values whose U is
 * at least u.  ways[k * (max_u + 1) + x] is how many ways there are to have
 * taken k of the values so far, such that x of those not taken lie below.
 */
static double
exact_upper_tail(int count_a, int count_b, int u)
{
	int			max_u = count_a * count_b;
	int			width = max_u + 1;
	double	   *ways = palloc0_array(double, (size_t) (count_a + 1) * width);
	double		tail = 0;
	double		total = 0;

	ways[0] = 1;
	for (int rank = 0; rank < count_a + count_b; rank++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int taken = Min(count_a, rank + 1); taken > 0; taken--)
		{
			int			below = rank - (taken - 1);
			double	   *to = &ways[taken * width];
			const double *from = &ways[(taken - 1) * width];

			for (int x = below; x <= max_u && below <= count_b; x++)
				to[x] += from[x - below];
		}
	}
	for (int x = 0; x <= max_u; x++)
	{
		total += ways[count_a * width + x];
		if (x >= u)
			tail += ways[count_a * width + x];
	}
	pfree(ways);
	return tail / total;
}

/* For so many values the distribution of U is taken exactly, if there are no ties. */
#define EXACT_SMALLER 8
#define EXACT_LARGER 400

/*
 * The two-sided p of U: exact for few distinct values, and otherwise by the
 * normal distribution with corrections for continuity and ties.  ties is the
 * sum of t^3 - t over groups of t equal values.
 */
static double
p_of_u(double u, double ties, int count_a, int count_b)
{
	double		a = count_a;
	double		b = count_b;
	double		n = a + b;
	double		greater = Max(u, a * b - u);
	double		variance;

	if (ties == 0 && Min(count_a, count_b) <= EXACT_SMALLER && Max(count_a, count_b) <= EXACT_LARGER)
		return Min(1, 2 * exact_upper_tail(Min(count_a, count_b), Max(count_a, count_b), (int) greater));

	variance = a * b / 12 * (n + 1 - ties / (n * (n - 1)));
	if (!(variance > 0))
		return 1;				/* all values are equal */
	return Min(1, erfc((greater - a * b / 2 - 0.5) / sqrt(2 * variance)));
}

/* Mann-Whitney's test of two samples that are not empty. */
RankTest
comparison_ranks(const Sample *base, const Sample *other)
{
	const double *a = base->sorted;
	const double *b = other->sorted;
	int			i = 0;
	int			j = 0;
	double		ties = 0;
	double		pairs = (double) base->count * other->count;
	RankTest	test = {0};

	/* Value by value, as the two are merged. */
	while (i < base->count || j < other->count)
	{
		double		value = j == other->count || (i < base->count && a[i] < b[j]) ? a[i] : b[j];
		int			first_i = i;
		int			first_j = j;
		double		equal;

		while (i < base->count && a[i] == value)
			i++;
		while (j < other->count && b[j] == value)
			j++;
		test.u += (double) (i - first_i) * (first_j + (j - first_j) / 2.0);
		equal = (i - first_i) + (j - first_j);
		ties += equal * equal * equal - equal;
	}
	test.p = p_of_u(test.u, ties, base->count, other->count);
	test.cliffs_delta = (pairs - 2 * test.u) / pairs;
	return test;
}

/* Random numbers by Vigna's splitmix64: the same on every machine and version. */
static uint64
next_random(uint64 *state)
{
	uint64		z = (*state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* The mean of as many values as the sample has, drawn from it with replacement. */
static double
resampled_mean(const Sample *sample, uint64 *state)
{
	double		sum = 0;

	for (int i = 0; i < sample->count; i++)
		sum += sample->sorted[((next_random(state) >> 32) * (uint64) sample->count) >> 32];
	return sum / sample->count;
}

/* The value at a fraction of sorted values, interpolated. */
static double
value_at(const double *sorted, int count, double fraction)
{
	double		position = fraction * (count - 1);
	int			below = (int) position;

	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + (position - below) * (sorted[below + 1] - sorted[below]);
}

/*
 * The interval from the 2.5th to the 97.5th percentile of the difference of the
 * means (other - base) over so many resamples of both, at least one.  The same
 * samples give the same interval.
 */
Interval95
comparison_interval(const Sample *base, const Sample *other, int resamples)
{
	double	   *differences = palloc_array(double, resamples);
	uint64		state = 0;
	Interval95	interval;

	for (int i = 0; i < resamples; i++)
	{
		double		base_mean = resampled_mean(base, &state);

		CHECK_FOR_INTERRUPTS();
		differences[i] = resampled_mean(other, &state) - base_mean;
	}
	sort_doubles(differences, resamples);
	interval.low = value_at(differences, resamples, 0.025);
	interval.high = value_at(differences, resamples, 0.975);
	pfree(differences);
	return interval;
}
