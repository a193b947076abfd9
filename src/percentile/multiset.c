/*
 * multiset.c
 *	  Keys in order, with fast insertion, removal and access by rank.
 *
 * The percentiles of a moving or growing window frame come from this.  Equal
 * keys are one entry with a weight.  Entries lie sorted in blocks; what is
 * needed to find a block, by key or by rank, lies in arrays of its own, so that
 * a search touches little memory.  Splitting or dropping a block costs a move
 * of these arrays, but happens once in many insertions.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "percentile/multiset.h"
#include "percentile/select.h"

/* Half of it is moved on average: 2 kB, less than a cache miss or two costs. */
#define BLOCK_ENTRIES 256

/* Blocks whose weights are added up for a faster way to a rank. */
#define SECTION_BLOCKS 64

typedef struct Block
{
	int			nentries;
	WeightedKey entries[BLOCK_ENTRIES];
} Block;

struct Multiset
{
	MemoryContext context;
	int			nblocks;		/* at least 1 */
	int			maxblocks;
	Block	  **blocks;
	int64	   *bounds;			/* not above a block's keys, above those before */
	int64	   *weights;		/* of a block's entries */
	int64	   *sections;		/* sums of SECTION_BLOCKS weights */
};

static Block *
new_block(Multiset *set)
{
	Block	   *block = MemoryContextAlloc(set->context, sizeof(Block));

	block->nentries = 0;
	return block;
}

static void
allocate_arrays(Multiset *set, int maxblocks)
{
	Size		nsections = maxblocks / SECTION_BLOCKS + 1;

	set->maxblocks = maxblocks;
	set->blocks = MemoryContextAllocHuge(set->context, maxblocks * sizeof(Block *));
	set->bounds = MemoryContextAllocHuge(set->context, maxblocks * sizeof(int64));
	set->weights = MemoryContextAllocHuge(set->context, maxblocks * sizeof(int64));
	set->sections = MemoryContextAllocHuge(set->context, nsections * sizeof(int64));
}

/* An empty set; it and all it will hold is allocated in the context. */
Multiset *
multiset_create(MemoryContext context)
{
	Multiset   *set = MemoryContextAlloc(context, sizeof(Multiset));

	set->context = context;
	set->nblocks = 1;
	allocate_arrays(set, 16);
	set->blocks[0] = new_block(set);
	set->bounds[0] = PG_INT64_MIN;
	set->weights[0] = 0;
	set->sections[0] = 0;
	return set;
}

/* The block a key belongs to. */
static int
find_block(const Multiset *set, int64 key)
{
	int			lo = 0;
	int			hi = set->nblocks;

	while (hi - lo > 1)
	{
		int			middle = lo + (hi - lo) / 2;

		if (set->bounds[middle] <= key)
			lo = middle;
		else
			hi = middle;
	}
	return lo;
}

/* Where in the block the key is, or would be inserted. */
static int
find_entry(const Block *block, int64 key)
{
	int			lo = 0;
	int			hi = block->nentries;

	while (lo < hi)
	{
		int			middle = (lo + hi) / 2;

		if (block->entries[middle].key < key)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Add up the sections again from the one of this block on. */
static void
sum_sections(Multiset *set, int from)
{
	for (int i = from / SECTION_BLOCKS * SECTION_BLOCKS; i < set->nblocks; i++)
	{
		if (i % SECTION_BLOCKS == 0)
			set->sections[i / SECTION_BLOCKS] = 0;
		set->sections[i / SECTION_BLOCKS] += set->weights[i];
	}
}

static void
change_weight(Multiset *set, int b, int64 difference)
{
	set->weights[b] += difference;
	set->sections[b / SECTION_BLOCKS] += difference;
}

static int64
weight_of(const Block *block)
{
	int64		sum = 0;

	for (int i = 0; i < block->nentries; i++)
		sum += block->entries[i].weight;
	return sum;
}

static void
grow_arrays(Multiset *set)
{
	Multiset	old = *set;

	if (old.maxblocks > PG_INT32_MAX / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("window frame has too many values for percentiles")));
	allocate_arrays(set, old.maxblocks * 2);
	memcpy(set->blocks, old.blocks, old.nblocks * sizeof(Block *));
	memcpy(set->bounds, old.bounds, old.nblocks * sizeof(int64));
	memcpy(set->weights, old.weights, old.nblocks * sizeof(int64));
	memcpy(set->sections, old.sections,
		   ((old.nblocks - 1) / SECTION_BLOCKS + 1) * sizeof(int64));
	pfree(old.blocks);
	pfree(old.bounds);
	pfree(old.weights);
	pfree(old.sections);
}

/* Make room for "count" (or, if negative, remove) blocks before block b. */
static void
shift_blocks(Multiset *set, int b, int count)
{
	int			from = count < 0 ? b - count : b;
	int			to = from + count;
	int			n = set->nblocks - from;

	memmove(&set->blocks[to], &set->blocks[from], n * sizeof(Block *));
	memmove(&set->bounds[to], &set->bounds[from], n * sizeof(int64));
	memmove(&set->weights[to], &set->weights[from], n * sizeof(int64));
	set->nblocks += count;
}

/* Move the upper half of a full block to a new one behind it. */
static void
split_block(Multiset *set, int b)
{
	Block	   *lower = set->blocks[b];
	Block	   *upper = new_block(set);

	if (set->nblocks == set->maxblocks)
		grow_arrays(set);
	upper->nentries = BLOCK_ENTRIES / 2;
	lower->nentries -= upper->nentries;
	memcpy(upper->entries, &lower->entries[lower->nentries],
		   upper->nentries * sizeof(WeightedKey));

	shift_blocks(set, b + 1, 1);
	set->blocks[b + 1] = upper;
	set->bounds[b + 1] = upper->entries[0].key;
	set->weights[b + 1] = weight_of(upper);
	set->weights[b] -= set->weights[b + 1];
	sum_sections(set, b);
}

/* Add a key so many times.  The caller sees to it that the sum is an int64. */
void
multiset_add(Multiset *set, int64 key, int64 weight)
{
	int			b = find_block(set, key);
	Block	   *block = set->blocks[b];
	int			e = find_entry(block, key);

	if (e == block->nentries || block->entries[e].key != key)
	{
		if (block->nentries == BLOCK_ENTRIES)
		{
			split_block(set, b);
			multiset_add(set, key, weight);
			return;
		}
		memmove(&block->entries[e + 1], &block->entries[e],
				(block->nentries - e) * sizeof(WeightedKey));
		block->entries[e].key = key;
		block->entries[e].weight = 0;
		block->nentries++;
	}
	block->entries[e].weight += weight;
	change_weight(set, b, weight);
}

/* Append the entries of block b + 1 to block b, and drop it. */
static void
merge_blocks(Multiset *set, int b)
{
	Block	   *lower = set->blocks[b];
	Block	   *upper = set->blocks[b + 1];

	memcpy(&lower->entries[lower->nentries], upper->entries,
		   upper->nentries * sizeof(WeightedKey));
	lower->nentries += upper->nentries;
	set->weights[b] += set->weights[b + 1];
	pfree(upper);
	shift_blocks(set, b + 1, -1);
	sum_sections(set, b);
}

/* Keep blocks from being many and nearly empty. */
static void
merge_if_small(Multiset *set, int b)
{
	int			nentries = set->blocks[b]->nentries;

	if (nentries > BLOCK_ENTRIES / 4)
		return;
	if (b + 1 < set->nblocks &&
		nentries + set->blocks[b + 1]->nentries <= BLOCK_ENTRIES / 2)
		merge_blocks(set, b);
	else if (b > 0 &&
			 nentries + set->blocks[b - 1]->nentries <= BLOCK_ENTRIES / 2)
		merge_blocks(set, b - 1);
	else if (nentries == 0 && set->nblocks > 1)
		merge_blocks(set, b > 0 ? b - 1 : 0);
}

/* Take out so many of a key; false if there are not so many. */
bool
multiset_remove(Multiset *set, int64 key, int64 weight)
{
	int			b = find_block(set, key);
	Block	   *block = set->blocks[b];
	int			e = find_entry(block, key);

	if (e == block->nentries || block->entries[e].key != key ||
		block->entries[e].weight < weight)
		return false;
	change_weight(set, b, -weight);
	block->entries[e].weight -= weight;
	if (block->entries[e].weight == 0)
	{
		block->nentries--;
		memmove(&block->entries[e], &block->entries[e + 1],
				(block->nentries - e) * sizeof(WeightedKey));
		merge_if_small(set, b);
	}
	return true;
}

/* The key at a rank, counted from 0 and less than the sum of the weights. */
int64
multiset_at(const Multiset *set, int64 rank)
{
	const WeightedKey *entry;
	int			b = 0;

	for (int s = 0; rank >= set->sections[s]; s++)
	{
		rank -= set->sections[s];
		b += SECTION_BLOCKS;
	}
	for (; rank >= set->weights[b]; b++)
		rank -= set->weights[b];
	for (entry = set->blocks[b]->entries; rank >= entry->weight; entry++)
		rank -= entry->weight;
	return entry->key;
}
