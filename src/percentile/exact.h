/*
 * exact.h
 *	  State of the exact percentile aggregates: all the values of a group.
 *
 * exact_state.c keeps it, exact_select.c answers from it, exact_agg.c makes SQL
 * functions of both.
 */
#ifndef METRICS_EXACT_H
#define METRICS_EXACT_H

#include "percentile/fractions.h"
#include "percentile/multiset.h"
#include "percentile/select.h"
#include "percentile/spill.h"

typedef struct ExactState ExactState;
typedef struct ExactArena ExactArena;

/* What an aggregate's states have in common. */
typedef struct ExactPool
{
	ExactArena *arenas;
	Size		limit;			/* of the memory of all of them */
	Fractions  *fractions;		/* of the first state */
} ExactPool;

/*
 * A state has room for the next few keys (or pairs of key and weight) beside
 * its counter, and only when it is full they move to the array.  With many
 * groups, whose rows come in any order, a row so touches one place in memory
 * and not two far from each other; and small groups need no array.
 */
#define EXACT_ROOM_KEYS 8
#define EXACT_ROOM_PAIRS 4

struct ExactState
{
	int			nroom;
	bool		weighted;
	bool		integer;		/* keys are bigints, not images of float8s */
	bool		window;
	bool		constant_fractions;
	union
	{
		int64		keys[EXACT_ROOM_KEYS];
		WeightedKey pairs[EXACT_ROOM_PAIRS];
	}			room;

	/* The array: int64 keys, or WeightedKeys if weighted; or NULL. */
	void	   *elements;
	int64		nelements;
	int64		capacity;

	int64		nspilled;		/* elements in the arena's file */
	SpillRun	last_run;
	int64		weight;			/* sum of all weights, or of those in multiset */
	Fractions  *fractions;
	ExactArena *arena;
	ExactState *next_grown;		/* among those with an array */
	Multiset   *multiset;		/* in a window; elements then are to be added */
	bool		answered;		/* a window asked before, and may again */
};

/* What distinguishes the aggregates. */
typedef struct ExactKind
{
	bool		weighted;
	bool		integer;
	int			fractions_argument; /* its number, if there is one */
} ExactKind;

/* Pass through all elements of a state. */
typedef struct ExactScan
{
	const ExactState *state;
	SpillReader *reader;
	int			step;
} ExactScan;

extern ExactState *exact_begin(FunctionCallInfo fcinfo, const ExactKind *kind);
extern ExactState *exact_begin_like(FunctionCallInfo fcinfo,
									const ExactState *model);
extern void exact_empty_room(ExactState *state);
extern void *exact_elements(ExactState *state, int64 *nelements);
extern void exact_append(ExactState *state, const void *elements, int64 count);
extern void exact_add_weight(ExactState *state, int64 weight);
extern void exact_spill(ExactState *state);
extern Size exact_limit(const ExactState *state);
extern MemoryContext exact_context(const ExactState *state);

extern void exact_begin_scan(ExactScan *scan, const ExactState *state);
extern const void *exact_next(ExactScan *scan, int64 *count);
extern void exact_end_scan(ExactScan *scan);

extern void exact_remove(ExactState *state, int64 key, int64 weight);
extern void exact_answer(ExactState *state, bool continuous,
						 Datum *results, bool *nulls);

static inline Size
exact_element_size(const ExactState *state)
{
	return state->weighted ? sizeof(WeightedKey) : sizeof(int64);
}

/* Elements of the state, wherever they are. */
static inline int64
exact_nelements(const ExactState *state)
{
	return state->nspilled + state->nelements + state->nroom;
}

/* How many values the state stands for. */
static inline int64
exact_count(const ExactState *state)
{
	return state->weight +
		(state->weighted ? 0 : exact_nelements(state));
}

/*
 * The next row of this group will write there: have it at hand by then.  Among
 * many groups it is in no cache otherwise.
 */
static inline void
exact_prefetch(const void *address)
{
#ifdef __GNUC__
	__builtin_prefetch(address, 1);
#else
	(void) address;
#endif
}

/* Refuse a row whose fractions are not those of its group. */
static inline void
exact_check_fractions(const ExactState *state, FunctionCallInfo fcinfo,
					  const ExactKind *kind)
{
	if (unlikely(!state->constant_fractions) &&
		!fractions_are_argument(state->fractions, fcinfo,
								kind->fractions_argument))
		fractions_differ();
}

/* Add a value to an unweighted state. */
static inline void
exact_add(ExactState *state, int64 key)
{
	state->room.keys[state->nroom++] = key;
	if (state->nroom >= EXACT_ROOM_KEYS - 1)
	{
		if (state->nroom == EXACT_ROOM_KEYS)
			exact_empty_room(state);
		else
			exact_prefetch((int64 *) state->elements + state->nelements);
	}
}

/* Add a value with its weight (at least 1) to a weighted state. */
static inline void
exact_add_weighted(ExactState *state, int64 key, int64 weight)
{
	exact_add_weight(state, weight);
	state->room.pairs[state->nroom].key = key;
	state->room.pairs[state->nroom++].weight = weight;
	if (state->nroom == EXACT_ROOM_PAIRS)
		exact_empty_room(state);
}

#endif							/* METRICS_EXACT_H */
