/*
 * select.c
 *	  Order statistics of arrays, without sorting them.
 *
 * Quickselect for several ranks at once: each partition serves all the ranks
 * that are still in the same range.  The pivot comes from a random sample and
 * lies a little beyond the wanted rank, as seen from the nearer end, so that
 * two partitions leave only a small range around the rank (Floyd and Rivest,
 * "Expected time bounds for selection", 1975).
 *
 * Worst case: when samples have misled too often, the range of the keys, which
 * are integers, is halved instead; that ends after 64 partitions whatever the
 * input.  Duplicates: a pivot that turns out to be the smallest key has all its
 * equals put aside at once, so equal keys cost two partitions, not n.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "percentile/select.h"

/* A range this small is sorted. */
#define SMALL_RANGE 32

/* Keys that are sampled at most; more would cost more than they save. */
#define MAX_SAMPLE 1024

/* Partitions that may leave more than three quarters before we halve. */
#define MAX_BAD_PIVOTS 8

/* Keys between two looks for a cancel request: about a millisecond's work. */
#define INTERRUPT_STRIDE (1 << 20)

static void select_range(int64 *keys, int64 lo, int64 hi,
						 const int64 *ranks, int nranks, int bad_pivots);

/* The next of a fixed series of pseudorandom numbers (splitmix64). */
static inline uint64
next_random(uint64 *seed)
{
	uint64		z = (*seed += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/*
 * Of a sample of this size, the position of a pivot for the given rank of n:
 * beyond it by a little more than the sample's standard error.
 */
static int
pivot_position(int64 rank, int64 n, int sample_size)
{
	double		fraction = (rank + 0.5) / n;
	double		margin = 1.3 * sqrt(sample_size * fraction * (1 - fraction));
	double		position = fraction * sample_size;

	if (sample_size < SMALL_RANGE)
		margin = 0;
	position += fraction <= 0.5 ? margin : -margin;
	return Min(Max((int) position, 0), sample_size - 1);
}

/* Keys to sample of n; never more than n. */
static int
sample_size_for(int64 n)
{
	return (int) Min(sqrt((double) n), MAX_SAMPLE);
}

/*
 * Halving: a pivot that is greater than the smallest key and divides the range
 * of keys in two, or the only key there is.
 */
static int64
middle_of(int64 smallest, int64 greatest)
{
	if (smallest == greatest)
		return smallest;
	return (int64) ((uint64) smallest +
					((uint64) greatest - (uint64) smallest) / 2 + 1);
}

/* Of the ranks, which ascend, how many are below a limit. */
static int
ranks_below(const int64 *ranks, int nranks, int64 limit)
{
	int			lo = 0;
	int			hi = nranks;

	while (lo < hi)
	{
		int			middle = lo + (hi - lo) / 2;

		if (ranks[middle] < limit)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* The rank closest to the middle of a range, which partitions it best. */
static int64
middlemost_rank(const int64 *ranks, int nranks, int64 lo, int64 hi)
{
	int64		middle = lo + (hi - lo) / 2;
	int			above = ranks_below(ranks, nranks, middle);

	if (above == nranks)
		return ranks[nranks - 1];
	if (above == 0 || ranks[above] - middle < middle - ranks[above - 1])
		return ranks[above];
	return ranks[above - 1];
}

/*
 * Move the keys less than the pivot to the front and return how many there are.
 *
 * No branch depends on a key, and no load waits for the store before it: the
 * gap left by the key just taken is filled with the first key that is not less,
 * whose place the taken key gets.
 */
static int64
partition(int64 *keys, int64 n, int64 pivot)
{
	int64		first = keys[0];
	int64	   *gap = keys;
	int64	   *less = keys;

	for (int64 i = 1; i < n;)
	{
		int64		stop = Min(n, i + INTERRUPT_STRIDE);

		CHECK_FOR_INTERRUPTS();
		for (; i < stop; i++)
		{
			int64		key = keys[i];

			*gap = *less;
			*less = key;
			gap = &keys[i];
			less += key < pivot;
		}
	}
	*gap = *less;
	*less = first;
	less += first < pivot;
	return less - keys;
}

static void
insertion_sort(int64 *keys, int64 n)
{
	for (int64 i = 1; i < n; i++)
	{
		int64		key = keys[i];
		int64		j = i;

		for (; j > 0 && keys[j - 1] > key; j--)
			keys[j] = keys[j - 1];
		keys[j] = key;
	}
}

static int64
sampled_pivot(const int64 *keys, int64 n, int64 rank)
{
	int64		sample[MAX_SAMPLE];
	int			size = sample_size_for(n);
	int64		position = pivot_position(rank, n, size);
	uint64		seed = n;

	for (int i = 0; i < size; i++)
		sample[i] = keys[next_random(&seed) % (uint64) n];
	select_range(sample, 0, size, &position, 1, 0);
	return sample[position];
}

static int64
middle_pivot(const int64 *keys, int64 n)
{
	int64		smallest = keys[0];
	int64		greatest = keys[0];

	for (int64 i = 1; i < n; i++)
	{
		smallest = Min(smallest, keys[i]);
		greatest = Max(greatest, keys[i]);
	}
	return middle_of(smallest, greatest);
}

/*
 * Put the key of each rank, counted from the start of the array, in its place,
 * permuting the keys of [lo, hi), which are the right ones for these places.
 * Recurses only where a partition separates ranks: at most log2(nranks) deep,
 * besides the samples.
 */
static void
select_range(int64 *keys, int64 lo, int64 hi,
			 const int64 *ranks, int nranks, int bad_pivots)
{
	while (nranks > 0)
	{
		int64		n = hi - lo;
		int64		pivot;
		int64		split;
		int			before;

		if (n <= SMALL_RANGE)
		{
			insertion_sort(keys + lo, n);
			return;
		}
		if (bad_pivots < MAX_BAD_PIVOTS)
			pivot = sampled_pivot(keys + lo, n,
								  middlemost_rank(ranks, nranks, lo, hi) - lo);
		else
			pivot = middle_pivot(keys + lo, n);

		split = lo + partition(keys + lo, n, pivot);
		if (split == lo)
		{
			/* The pivot is the smallest: its equals are in their places. */
			lo = pivot == PG_INT64_MAX ? hi :
				lo + partition(keys + lo, n, pivot + 1);
			before = ranks_below(ranks, nranks, lo);
			ranks += before;
			nranks -= before;
			if (hi - lo > n / 4 * 3)
				bad_pivots++;
			continue;
		}

		before = ranks_below(ranks, nranks, split);
		if (Max(before > 0 ? split - lo : 0, before < nranks ? hi - split : 0) >
			n / 4 * 3)
			bad_pivots++;
		if (before == nranks)
			hi = split;
		else if (before == 0)
			lo = split;
		else if (before <= nranks / 2)
		{
			select_range(keys, lo, split, ranks, before, bad_pivots);
			lo = split;
			ranks += before;
			nranks -= before;
		}
		else
		{
			select_range(keys, split, hi, ranks + before, nranks - before,
						 bad_pivots);
			hi = split;
			nranks = before;
		}
	}
}

/*
 * Permute the keys so that each of the ranks (places counted from 0, strictly
 * ascending, less than nkeys) holds the key it would hold after sorting.
 */
void
select_ranks(int64 *keys, int64 nkeys, const int64 *ranks, int nranks)
{
	select_range(keys, 0, nkeys, ranks, nranks, 0);
}

/* As partition(), of pairs; also adds up the weights of those in front. */
static int64
partition_pairs(WeightedKey *pairs, int64 n, int64 pivot, int64 *weight)
{
	WeightedKey first = pairs[0];
	WeightedKey *gap = pairs;
	WeightedKey *less = pairs;
	int64		sum = 0;

	for (int64 i = 1; i < n;)
	{
		int64		stop = Min(n, i + INTERRUPT_STRIDE);

		CHECK_FOR_INTERRUPTS();
		for (; i < stop; i++)
		{
			WeightedKey pair = pairs[i];
			bool		is_less = pair.key < pivot;

			*gap = *less;
			*less = pair;
			gap = &pairs[i];
			less += is_less;
			sum += is_less ? pair.weight : 0;
		}
	}
	*gap = *less;
	*less = first;
	if (first.key < pivot)
	{
		less++;
		sum += first.weight;
	}
	*weight = sum;
	return less - pairs;
}

static void
insertion_sort_pairs(WeightedKey *pairs, int64 n)
{
	for (int64 i = 1; i < n; i++)
	{
		WeightedKey pair = pairs[i];
		int64		j = i;

		for (; j > 0 && pairs[j - 1].key > pair.key; j--)
			pairs[j] = pairs[j - 1];
		pairs[j] = pair;
	}
}

/*
 * The median of a sample of the keys, whatever their weights, so that each
 * partition halves the number of pairs; when that failed too often, the middle
 * of the range of keys.
 */
static int64
pair_pivot(const WeightedKey *pairs, int64 n, int bad_pivots)
{
	int64		sample[MAX_SAMPLE];
	int			size = sample_size_for(n);
	int64		middle = size / 2;
	uint64		seed = n;
	int64		smallest = pairs[0].key;
	int64		greatest = pairs[0].key;

	if (bad_pivots < MAX_BAD_PIVOTS)
	{
		for (int i = 0; i < size; i++)
			sample[i] = pairs[next_random(&seed) % (uint64) n].key;
		select_range(sample, 0, size, &middle, 1, 0);
		return sample[middle];
	}
	for (int64 i = 1; i < n; i++)
	{
		smallest = Min(smallest, pairs[i].key);
		greatest = Max(greatest, pairs[i].key);
	}
	return middle_of(smallest, greatest);
}

/*
 * Find the key of each rank among pairs that follow others of the weight
 * "passed".  Structured as select_range(), but ranks count weights.
 */
static void
select_pairs(WeightedKey *pairs, int64 n, int64 passed,
			 const int64 *ranks, int nranks, int64 *chosen, int bad_pivots)
{
	while (nranks > 0)
	{
		int64		pivot;
		int64		split;
		int64		weight;
		int			before;

		if (n <= SMALL_RANGE)
		{
			insertion_sort_pairs(pairs, n);
			for (int64 i = 0; i < n; i++)
			{
				passed += pairs[i].weight;
				for (; nranks > 0 && *ranks < passed; nranks--, ranks++)
					*chosen++ = pairs[i].key;
			}
			Assert(nranks == 0);
			return;
		}

		pivot = pair_pivot(pairs, n, bad_pivots);
		split = partition_pairs(pairs, n, pivot, &weight);
		if (Max(split, n - split) > n / 4 * 3)
			bad_pivots++;
		if (split == 0)
		{
			if (pivot == PG_INT64_MAX)
			{
				for (int i = 0; i < nranks; i++)
					chosen[i] = pivot;
				return;
			}
			split = partition_pairs(pairs, n, pivot + 1, &weight);
			before = ranks_below(ranks, nranks, passed + weight);
			for (int i = 0; i < before; i++)
				chosen[i] = pivot;
		}
		else
		{
			before = ranks_below(ranks, nranks, passed + weight);
			if (before == nranks)
			{
				n = split;
				continue;
			}
			if (before > 0)
				select_pairs(pairs, split, passed, ranks, before, chosen,
							 bad_pivots);
		}
		pairs += split;
		n -= split;
		passed += weight;
		ranks += before;
		nranks -= before;
		chosen += before;
	}
}

/*
 * Find the keys at the given ranks (strictly ascending, counted from 0, less
 * than the sum of all weights, which must be an int64) as if each pair were so
 * many keys as its weight.  Permutes the pairs.
 */
void
select_weighted_ranks(WeightedKey *pairs, int64 npairs,
					  const int64 *ranks, int nranks, int64 *chosen)
{
	select_pairs(pairs, npairs, 0, ranks, nranks, chosen, 0);
}
