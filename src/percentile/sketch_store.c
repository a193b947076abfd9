/*
 * sketch_store.c
 *	  The counts of a sketch's buckets of one sign.
 */
#include "postgres.h"

#include "percentile/sketch.h"

/* The longest dense array, 64 kB. */
#define MAX_DENSE 8192

/* Occupied buckets are a range; first and last of them in either form. */
static void
occupied_range(const SketchStore *store, int32 *first, int32 *last)
{
	Assert(store->nbuckets > 0);
	if (store->counts == NULL)
	{
		*first = store->buckets[0].index;
		*last = store->buckets[store->nbuckets - 1].index;
		return;
	}
	*first = store->first;
	while (store->counts[*first - store->first] == 0)
		(*first)++;
	*last = store->first + store->ncounts - 1;
	while (store->counts[*last - store->first] == 0)
		(*last)--;
}

/* Give the memory back; the store is empty afterwards. */
void
sketch_store_free(SketchStore *store)
{
	if (store->counts != NULL)
		pfree(store->counts);
	if (store->buckets != NULL)
		pfree(store->buckets);
	memset(store, 0, sizeof(SketchStore));
}

/* Bring the store into the ordered form. */
void
sketch_store_order(SketchStore *store)
{
	SketchStore ordered = {0};
	SketchBucket bucket;
	int32		cursor = 0;

	if (store->counts == NULL)
		return;
	ordered.capacity = Max(store->nbuckets, 8);
	ordered.buckets = palloc(sizeof(SketchBucket) * ordered.capacity);
	while (sketch_store_next(store, &cursor, &bucket))
		ordered.buckets[ordered.nbuckets++] = bucket;
	sketch_store_free(store);
	*store = ordered;
}

/*
 * Make a dense array from bucket first on.  Frees the old form.
 */
static void
make_dense(SketchStore *store, int32 first, int32 ncounts)
{
	SketchStore dense = {0};
	SketchBucket bucket;
	int32		cursor = 0;

	dense.first = first;
	dense.ncounts = ncounts;
	dense.nbuckets = store->nbuckets;
	dense.counts = palloc0(sizeof(int64) * ncounts);
	while (sketch_store_next(store, &cursor, &bucket))
		dense.counts[bucket.index - first] = bucket.count;
	sketch_store_free(store);
	*store = dense;
}

/*
 * Prepare for counts from bucket low to bucket high.  Afterwards the dense array
 * has room for them, or false is returned and the store has the ordered form.
 * A growing array takes a
 * quarter more than it needs, so that growing stays cheap.
 */
bool
sketch_store_reserve(SketchStore *store, int32 low, int32 high)
{
	int32		first = low;
	int32		last = high;
	int32		margin;

	if (store->counts != NULL && low >= store->first && high < store->first + store->ncounts)
		return true;
	if (store->nbuckets > 0)
	{
		occupied_range(store, &first, &last);
		first = Min(first, low);
		last = Max(last, high);
	}
	if (last - first >= MAX_DENSE)
	{
		sketch_store_order(store);
		return false;
	}
	margin = 4 + (last - first) / 8;
	first = Max(first - margin, 0);
	make_dense(store, first, last + margin - first + 1);
	return true;
}

/* Where a bucket is in the ordered form, or would be. */
static int
find(const SketchStore *store, int32 index)
{
	int			low = 0;
	int			high = store->nbuckets;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (store->buckets[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Add to a store in the ordered form. */
static void
add_ordered(SketchStore *store, int32 index, int64 count)
{
	int			i = find(store, index);

	if (i < store->nbuckets && store->buckets[i].index == index)
	{
		store->buckets[i].count += count;
		return;
	}
	if (store->nbuckets == store->capacity)
	{
		store->capacity = Max(store->capacity, 8) * 2;
		if (store->buckets == NULL)
			store->buckets = palloc(sizeof(SketchBucket) * store->capacity);
		else
			store->buckets = repalloc(store->buckets, sizeof(SketchBucket) * store->capacity);
	}
	memmove(&store->buckets[i + 1], &store->buckets[i], (store->nbuckets - i) * sizeof(SketchBucket));
	store->buckets[i].index = index;
	store->buckets[i].count = count;
	store->nbuckets++;
}

/* Count one value in each of n buckets between low and high. */
void
sketch_store_add_batch(SketchStore *store, const int32 *index, int n, int32 low, int32 high)
{
	if (sketch_store_reserve(store, low, high))
	{
		int64	   *counts = store->counts;
		int32		first = store->first;
		int			fresh = 0;

		for (int i = 0; i < n; i++)
			fresh += counts[index[i] - first]++ == 0;
		store->nbuckets += fresh;
		return;
	}
	for (int i = 0; i < n; i++)
		add_ordered(store, index[i], 1);
}

/* Count count values, at least one, in a bucket. */
void
sketch_store_add(SketchStore *store, int32 index, int64 count)
{
	if (sketch_store_reserve(store, index, index))
	{
		store->nbuckets += store->counts[index - store->first] == 0;
		store->counts[index - store->first] += count;
	}
	else
		add_ordered(store, index, count);
}

/* Take a value out again that was added to a bucket. */
void
sketch_store_remove(SketchStore *store, int32 index)
{
	int			i;

	if (store->counts != NULL)
	{
		Assert(store->counts[index - store->first] > 0);
		store->nbuckets -= --store->counts[index - store->first] == 0;
		return;
	}
	i = find(store, index);
	Assert(i < store->nbuckets && store->buckets[i].index == index);
	if (--store->buckets[i].count == 0)
	{
		store->nbuckets--;
		memmove(&store->buckets[i], &store->buckets[i + 1], (store->nbuckets - i) * sizeof(SketchBucket));
	}
}

/* Append to the ordered form, where the last bucket can be the same one. */
static void
append(SketchStore *store, int32 index, int64 count)
{
	SketchBucket *last = store->nbuckets == 0 ? NULL : &store->buckets[store->nbuckets - 1];

	if (last != NULL && last->index == index)
	{
		last->count += count;
		return;
	}
	Assert(store->nbuckets < store->capacity);
	store->buckets[store->nbuckets].index = index;
	store->buckets[store->nbuckets++].count = count;
}

/* Add the counts of a store whose buckets are narrower by shift halvings. */
void
sketch_store_merge(SketchStore *store, const SketchStore *other, int shift)
{
	SketchStore merged = {0};
	SketchBucket mine;
	SketchBucket bucket;
	int32		first;
	int32		last;
	int32		cursor = 0;
	int32		my_cursor = 0;
	bool		have_mine;

	if (other->nbuckets == 0)
		return;
	occupied_range(other, &first, &last);
	if (sketch_store_reserve(store, first >> shift, last >> shift))
	{
		int64	   *counts = store->counts;

		while (sketch_store_next(other, &cursor, &bucket))
		{
			int32		i = (bucket.index >> shift) - store->first;

			store->nbuckets += counts[i] == 0;
			counts[i] += bucket.count;
		}
		return;
	}

	merged.capacity = store->nbuckets + other->nbuckets;
	merged.buckets = palloc(sizeof(SketchBucket) * merged.capacity);
	have_mine = sketch_store_next(store, &my_cursor, &mine);
	while (sketch_store_next(other, &cursor, &bucket))
	{
		bucket.index >>= shift;
		while (have_mine && mine.index <= bucket.index)
		{
			append(&merged, mine.index, mine.count);
			have_mine = sketch_store_next(store, &my_cursor, &mine);
		}
		append(&merged, bucket.index, bucket.count);
	}
	while (have_mine)
	{
		append(&merged, mine.index, mine.count);
		have_mine = sketch_store_next(store, &my_cursor, &mine);
	}
	sketch_store_free(store);
	*store = merged;
}

/* Join buckets 2i and 2i + 1 to bucket i. */
void
sketch_store_halve(SketchStore *store)
{
	int			nbuckets = 0;
	int32		first = store->first >> 1;

	if (store->counts == NULL)
	{
		int			n = store->nbuckets;

		store->nbuckets = 0;
		for (int i = 0; i < n; i++)
			append(store, store->buckets[i].index >> 1, store->buckets[i].count);
		return;
	}
	for (int32 i = 0; i < store->ncounts; i++)
	{
		int32		to = ((store->first + i) >> 1) - first;
		int64		count = store->counts[i];

		/* never ahead of what is still to be read */
		store->counts[i] = 0;
		nbuckets += count > 0 && store->counts[to] == 0;
		store->counts[to] += count;
	}
	store->first = first;
	store->nbuckets = nbuckets;
}
