/*
 * exact_select.c
 *	  Answers of the exact percentile aggregates.
 *
 * In memory they come from a selection, which permutes the values and changes
 * nothing else; a group that has spilled and is too large to be read back is
 * answered by four passes through its values, each of which counts the next 16
 * bits of those keys that begin as an answer does; a window frame that is asked
 * more than once keeps its values in order.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "percentile/exact.h"

#define DIGIT_BITS 16
#define DIGIT_VALUES (1 << DIGIT_BITS)
#define KEY_BITS 64

/* A rank that is searched among the keys that begin with a prefix. */
typedef struct RadixTarget
{
	uint64		prefix;
	int64		rank;			/* among those keys */
} RadixTarget;

/* Which of the prefixes, which ascend, or -1. */
static inline int
find_prefix(const uint64 *prefixes, int nprefixes, uint64 prefix)
{
	int			lo = 0;
	int			hi = nprefixes;

	while (lo < hi)
	{
		int			middle = (lo + hi) / 2;

		if (prefixes[middle] < prefix)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < nprefixes && prefixes[lo] == prefix ? lo : -1;
}

/*
 * One pass: of all keys that begin with one of the prefixes, count the digits
 * that follow it, which are "shift" bits from the end.
 */
static void
count_digits(const ExactState *state, const uint64 *prefixes, int nprefixes,
			 int shift, int64 *counts)
{
	ExactScan	scan;
	const void *elements;
	int64		n;

	memset(counts, 0, (Size) nprefixes * DIGIT_VALUES * sizeof(int64));
	exact_begin_scan(&scan, state);
	while ((elements = exact_next(&scan, &n)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		for (int64 i = 0; i < n; i++)
		{
			const WeightedKey *pair = (const WeightedKey *) elements + i;
			int64		key = state->weighted ? pair->key :
				((const int64 *) elements)[i];
			/* Unsigned numbers in the same order. */
			uint64		bits = (uint64) key ^ (UINT64CONST(1) << 63);
			int			which = 0;

			if (shift + DIGIT_BITS < KEY_BITS)
				which = find_prefix(prefixes, nprefixes,
									bits >> (shift + DIGIT_BITS));
			if (which >= 0)
				counts[which * DIGIT_VALUES +
					   ((bits >> shift) & (DIGIT_VALUES - 1))] +=
					state->weighted ? pair->weight : 1;
		}
	}
	exact_end_scan(&scan);
}

/* The ranks' keys, by four passes.  One table of counts a rank must fit. */
static void
radix_select(const ExactState *state, const int64 *ranks, int nranks,
			 int64 *chosen)
{
	RadixTarget *targets = palloc(nranks * sizeof(RadixTarget));
	uint64	   *prefixes = palloc(nranks * sizeof(uint64));
	int64	   *counts = palloc_extended((Size) nranks * DIGIT_VALUES *
										 sizeof(int64), MCXT_ALLOC_HUGE);

	for (int i = 0; i < nranks; i++)
	{
		targets[i].prefix = 0;
		targets[i].rank = ranks[i];
	}
	for (int shift = KEY_BITS - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS)
	{
		int			nprefixes = 0;

		for (int i = 0; i < nranks; i++)
		{
			if (nprefixes == 0 || prefixes[nprefixes - 1] != targets[i].prefix)
				prefixes[nprefixes++] = targets[i].prefix;
		}
		count_digits(state, prefixes, nprefixes, shift, counts);
		for (int i = 0; i < nranks; i++)
		{
			RadixTarget *target = &targets[i];
			const int64 *count = counts + DIGIT_VALUES *
				find_prefix(prefixes, nprefixes, target->prefix);
			int			digit = 0;

			for (; target->rank >= count[digit]; digit++)
				target->rank -= count[digit];
			target->prefix = (target->prefix << DIGIT_BITS) | digit;
		}
	}
	for (int i = 0; i < nranks; i++)
		chosen[i] = (int64) (targets[i].prefix ^ (UINT64CONST(1) << 63));
	pfree(counts);
	pfree(prefixes);
	pfree(targets);
}

static void
select_from(const ExactState *state, void *elements, int64 nelements,
			const int64 *ranks, int nranks, int64 *chosen)
{
	int64	   *keys = elements;

	if (state->weighted)
	{
		select_weighted_ranks(elements, nelements, ranks, nranks, chosen);
		return;
	}
	select_ranks(keys, nelements, ranks, nranks);
	for (int i = 0; i < nranks; i++)
		chosen[i] = keys[ranks[i]];
}

static void
select_in_memory(ExactState *state, const int64 *ranks, int nranks,
				 int64 *chosen)
{
	int64		nelements;
	void	   *elements = exact_elements(state, &nelements);

	select_from(state, elements, nelements, ranks, nranks, chosen);
}

static void
select_spilled(ExactState *state, const int64 *ranks, int nranks, int64 *chosen)
{
	Size		limit = exact_limit(state);
	Size		size = exact_element_size(state);
	int64		total;

	/* The groups that are still to come leave the memory to this one. */
	exact_spill(state);
	total = exact_nelements(state);
	if (total <= (int64) (limit / size))
	{
		char	   *copy = palloc_extended(total * size, MCXT_ALLOC_HUGE);
		char	   *end = copy;
		ExactScan	scan;
		const void *elements;
		int64		n;

		exact_begin_scan(&scan, state);
		while ((elements = exact_next(&scan, &n)) != NULL)
		{
			memcpy(end, elements, n * size);
			end += n * size;
		}
		exact_end_scan(&scan);
		select_from(state, copy, total, ranks, nranks, chosen);
		pfree(copy);
		return;
	}

	/* As many ranks at a time as there is memory to count for. */
	for (int done = 0; done < nranks;)
	{
		Size		fit = limit / (DIGIT_VALUES * sizeof(int64));
		int			part = (int) Min(Max(fit, 1), (Size) (nranks - done));

		radix_select(state, ranks + done, part, chosen + done);
		done += part;
	}
}

/* Give the elements of a window state to its multiset. */
static void
fill_multiset(ExactState *state)
{
	ExactScan	scan;
	const void *elements;
	int64		n;

	if (state->multiset == NULL)
		state->multiset = multiset_create(exact_context(state));
	exact_begin_scan(&scan, state);
	while ((elements = exact_next(&scan, &n)) != NULL)
	{
		for (int64 i = 0; i < n; i++)
		{
			const WeightedKey *pair = (const WeightedKey *) elements + i;

			CHECK_FOR_INTERRUPTS();
			if (state->weighted)
				multiset_add(state->multiset, pair->key, pair->weight);
			else
				multiset_add(state->multiset, ((const int64 *) elements)[i], 1);
		}
	}
	exact_end_scan(&scan);
	if (!state->weighted)
		state->weight += exact_nelements(state);
	state->nelements = 0;
	state->nroom = 0;
}

/*
 * A window may ask once for a whole partition, or for each row.  So a first
 * answer comes from a selection, and only the next makes the values' order.
 */
static void
select_in_window(ExactState *state, const int64 *ranks, int nranks,
				 int64 *chosen)
{
	if (state->multiset == NULL && !state->answered)
	{
		state->answered = true;
		select_in_memory(state, ranks, nranks, chosen);
		return;
	}
	fill_multiset(state);
	for (int i = 0; i < nranks; i++)
		chosen[i] = multiset_at(state->multiset, ranks[i]);
}

/* Take a value out of a window state. */
void
exact_remove(ExactState *state, int64 key, int64 weight)
{
	fill_multiset(state);
	if (!multiset_remove(state->multiset, key, weight))
		elog(ERROR, "percentile window has lost a value");
	state->weight -= weight;
}

static int
compare_ranks(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return (x > y) - (x < y);
}

/* Sort, drop repetitions, and return how many are left. */
static int
unique_ranks(int64 *ranks, int nranks)
{
	int			n = 0;

	qsort(ranks, nranks, sizeof(int64), compare_ranks);
	for (int i = 0; i < nranks; i++)
	{
		if (n == 0 || ranks[n - 1] != ranks[i])
			ranks[n++] = ranks[i];
	}
	return n;
}

static void
find_keys(ExactState *state, const int64 *ranks, int nranks, int64 *chosen)
{
	if (state->window)
		select_in_window(state, ranks, nranks, chosen);
	else if (state->nspilled > 0)
		select_spilled(state, ranks, nranks, chosen);
	else
		select_in_memory(state, ranks, nranks, chosen);
}

/*
 * Of a group with at least one value, the percentile for each of the fractions,
 * as a float8 or, of bigints, as a bigint.
 *
 * Values may be permuted and moved to another place, but afterwards the state
 * means the same: it can be asked again and can take more values.
 */
void
exact_answer(ExactState *state, bool continuous, Datum *results, bool *nulls)
{
	const Fractions *fractions = state->fractions;
	Size		room = 2 * (Size) fractions->nitems + 1;
	FractionRows *rows = palloc_extended(room * sizeof(FractionRows),
										 MCXT_ALLOC_HUGE);
	int64	   *ranks = palloc_extended(room * sizeof(int64), MCXT_ALLOC_HUGE);
	int64	   *keys = palloc_extended(room * sizeof(int64), MCXT_ALLOC_HUGE);
	int64		count = exact_count(state);
	int			nranks = 0;

	for (int i = 0; i < fractions->nitems; i++)
	{
		nulls[i] = fractions->nulls[i];
		if (nulls[i])
			continue;
		rows[i] = fraction_rows(fractions->values[i], count, continuous);
		ranks[nranks++] = rows[i].first;
		ranks[nranks++] = rows[i].second;
	}
	nranks = unique_ranks(ranks, nranks);
	if (nranks > 0)
		find_keys(state, ranks, nranks, keys);

	for (int i = 0; i < fractions->nitems; i++)
	{
		int64	   *first;
		float8		low;
		float8		high;

		if (nulls[i])
			continue;
		first = bsearch(&rows[i].first, ranks, nranks, sizeof(int64),
						compare_ranks);
		if (state->integer)
		{
			results[i] = Int64GetDatum(keys[first - ranks]);
			continue;
		}
		low = key_to_float8(keys[first - ranks]);
		if (rows[i].second != rows[i].first)
		{
			/* Ranks next to each other stand next to each other. */
			high = key_to_float8(keys[first - ranks + 1]);
			low = low + rows[i].proportion * (high - low);
		}
		results[i] = Float8GetDatum(low);
	}
	pfree(rows);
	pfree(ranks);
	pfree(keys);
}
