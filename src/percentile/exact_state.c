/*
 * exact_state.c
 *	  State of the exact percentile aggregates: all the values of a group.
 *
 * The values of a group are an array that grows.  Arrays of all the groups of
 * an aggregate together stay below hash_mem; when they would not, all are
 * written to a temporary file and start anew.  What is not bounded is what each
 * group needs in any case: its state, with room for the first few values.
 *
 * Who owns what: the pool hangs on the transition (or combine) function's call
 * site and lives as long as the query.  States lie in the aggregate's context,
 * which the executor resets when it is done with a group or with a batch of
 * them; all states of one such context share an arena, which lies there too.
 * Before a reset the executor lets the arena close its file; after an error it
 * does not, but then the file's resource owner does.
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "utils/memutils.h"

#include "args.h"
#include "percentile/exact.h"

/*
 * From this size on the C library moves a block without copying it, and memory
 * is not there before it is touched.
 */
#define LARGE_ARRAY (128 * 1024)

/* Before that, each step costs a copy. */
#define FEW_STEPS 8

struct ExactArena
{
	ExactArena *next;
	ExactPool  *pool;
	MemoryContext context;		/* the aggregate's */
	MemoryContext values;		/* a child of it, for what is outside states */
	ExactState *grown;			/* states with an array there */
	SpillFile  *file;
	MemoryContextCallback callback;
};

/* The executor is done with the arena's states. */
static void
close_file(Datum argument)
{
	ExactArena *arena = (ExactArena *) DatumGetPointer(argument);

	if (arena->file != NULL)
		spill_close(arena->file);
	arena->file = NULL;
}

/* The context is reset or deleted: forget it. */
static void
forget_arena(void *argument)
{
	ExactArena *arena = argument;
	ExactArena **link = &arena->pool->arenas;

	while (*link != arena)
		link = &(*link)->next;
	*link = arena->next;
}

static ExactPool *
get_pool(FmgrInfo *flinfo)
{
	ExactPool  *pool = flinfo->fn_extra;

	if (pool == NULL)
	{
		pool = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(ExactPool));
		pool->limit = get_hash_memory_limit();
		flinfo->fn_extra = pool;
	}
	return pool;
}

/* The arena of the aggregate's context, new for its first state. */
static ExactArena *
get_arena(FunctionCallInfo fcinfo)
{
	MemoryContext context;
	int			call = check_aggregate(fcinfo, &context);
	ExactPool  *pool = get_pool(fcinfo->flinfo);
	ExactArena *arena;

	/* There are as many as grouping sets at most, and usually one. */
	for (arena = pool->arenas; arena != NULL; arena = arena->next)
	{
		if (arena->context == context)
			return arena;
	}
	arena = MemoryContextAllocZero(context, sizeof(ExactArena));
	arena->pool = pool;
	arena->context = context;
	arena->next = pool->arenas;
	pool->arenas = arena;
	arena->callback.func = forget_arena;
	arena->callback.arg = arena;
	MemoryContextRegisterResetCallback(context, &arena->callback);
	/* A window has no such callback, but also never a file: see next_size(). */
	if (call == AGG_CONTEXT_AGGREGATE)
		AggRegisterCallback(fcinfo, close_file, PointerGetDatum(arena));
	return arena;
}

static ExactState *
new_state(FunctionCallInfo fcinfo, bool weighted, bool integer)
{
	ExactArena *arena = get_arena(fcinfo);
	ExactState *state = MemoryContextAllocZero(arena->context, sizeof(ExactState));

	state->arena = arena;
	state->weighted = weighted;
	state->integer = integer;
	return state;
}

/*
 * Is an argument of the aggregate the same for all rows of a group, so that we
 * need not look at each?  Parameters change only between scans.
 */
static bool
argument_is_constant(FunctionCallInfo fcinfo, int argument)
{
	Aggref	   *aggref = AggGetAggref(fcinfo);
	Expr	   *expr;

	if (PG_NARGS() <= argument)
		return true;
	if (aggref == NULL)
		return false;			/* a window does not tell */
	/* The first argument of the transition function is the state. */
	expr = ((TargetEntry *) list_nth(aggref->args, argument - 1))->expr;
	return IsA(expr, Const) || IsA(expr, Param);
}

/*
 * The state for a group's first row, allocated in the aggregate's context.
 * Errors if the call is not an aggregate's or a fraction is out of range.
 */
ExactState *
exact_begin(FunctionCallInfo fcinfo, const ExactKind *kind)
{
	int			argument = kind->fractions_argument;
	ExactState *state = new_state(fcinfo, kind->weighted, kind->integer);
	ExactPool  *pool = state->arena->pool;

	state->window = AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_WINDOW;
	state->constant_fractions = argument_is_constant(fcinfo, argument);
	if (pool->fractions == NULL)
		pool->fractions = fractions_from_argument(fcinfo, argument,
												  fcinfo->flinfo->fn_mcxt);
	if (fractions_are_argument(pool->fractions, fcinfo, argument))
		state->fractions = pool->fractions;
	else
		state->fractions = fractions_from_argument(fcinfo, argument, exact_context(state));
	return state;
}

/* An empty state of the same kind as another, in the aggregate's context. */
ExactState *
exact_begin_like(FunctionCallInfo fcinfo, const ExactState *model)
{
	ExactState *state = new_state(fcinfo, model->weighted, model->integer);
	ExactPool  *pool = state->arena->pool;

	if (pool->fractions == NULL)
		pool->fractions = fractions_copy(model->fractions,
										 fcinfo->flinfo->fn_mcxt);
	if (fractions_equal(pool->fractions, model->fractions))
		state->fractions = pool->fractions;
	else
		state->fractions = fractions_copy(model->fractions, exact_context(state));
	return state;
}

static Size
memory_of(const ExactPool *pool)
{
	Size		memory = 0;

	for (ExactArena *arena = pool->arenas; arena != NULL; arena = arena->next)
	{
		if (arena->values != NULL)
			memory += MemoryContextMemAllocated(arena->values, false);
	}
	return memory;
}

static void
spill_arena(ExactArena *arena)
{
	if (arena->grown == NULL)
		return;
	if (arena->file == NULL)
		arena->file = spill_create(arena->context);
	for (ExactState *state = arena->grown; state != NULL;
		 state = state->next_grown)
	{
		spill_write(arena->file, &state->last_run, state->elements,
					state->nelements, exact_element_size(state));
		state->nspilled += state->nelements;
		state->elements = NULL;
		state->nelements = 0;
		state->capacity = 0;
	}
	arena->grown = NULL;
	MemoryContextReset(arena->values);
}

/* Write the arrays of all states of the pool to the file, and free them. */
void
exact_spill(ExactState *state)
{
	ExactPool  *pool = state->arena->pool;

	for (ExactArena *arena = pool->arenas; arena != NULL; arena = arena->next)
		spill_arena(arena);
}

/* What all states together, or the answer of one, may use. */
Size
exact_limit(const ExactState *state)
{
	return state->arena->pool->limit;
}

/* The context of a state, and so for what has to live as long. */
MemoryContext
exact_context(const ExactState *state)
{
	return state->arena->context;
}

/*
 * The size to let a full array grow to, if it may grow by a quarter at least;
 * otherwise 0.
 */
static Size
next_size(const ExactState *state)
{
	ExactPool  *pool = state->arena->pool;
	Size		size = state->capacity * exact_element_size(state);
	Size		wanted = size == 0 ? 2 * sizeof(state->room) : 2 * size;
	Size		used = memory_of(pool);
	Size		others = used - size;
	Size		room = pool->limit > others ? pool->limit - others : 0;

	/* What is in a window frame must stay at hand. */
	if (state->window)
		return wanted;

	/* With memory to spare, grow in few steps. */
	if (size > 0 && wanted < LARGE_ARRAY &&
		used + FEW_STEPS * size < pool->limit / 4)
	{
		wanted = FEW_STEPS * size;
		if (wanted > LARGE_ARRAY / FEW_STEPS)
			wanted = LARGE_ARRAY;
	}
	if (room >= wanted)
		return wanted;
	return size > 0 && room >= size + size / 4 ? room : 0;
}

/*
 * Let a state's array grow, if need be after spilling.  Afterwards there are as
 * many elements free as the state has room for outside the array.
 */
static void
grow(ExactState *state)
{
	ExactArena *arena = state->arena;
	Size		size;

	/* Small blocks: a context's growth should not exceed what we account. */
	if (arena->values == NULL)
		arena->values = AllocSetContextCreate(arena->context,
											  "percentile values",
											  0, 8 * 1024, 64 * 1024);
	size = next_size(state);
	if (size == 0)
	{
		exact_spill(state);
		size = Max(next_size(state), 2 * sizeof(state->room));
	}
	if (state->elements != NULL)
		state->elements = repalloc_huge(state->elements, size);
	else
	{
		state->elements = MemoryContextAllocHuge(arena->values, size);
		state->next_grown = arena->grown;
		arena->grown = state;
	}
	state->capacity = size / exact_element_size(state);
}

/* Move what is in the state's room to its array. */
void
exact_empty_room(ExactState *state)
{
	Size		size = exact_element_size(state);

	if (unlikely(state->capacity - state->nelements < state->nroom))
		grow(state);
	memcpy((char *) state->elements + state->nelements * size, &state->room,
		   state->nroom * size);
	state->nelements += state->nroom;
	state->nroom = 0;
}

/* Append elements of the state's kind.  The caller accounts for weights. */
void
exact_append(ExactState *state, const void *elements, int64 count)
{
	Size		size = exact_element_size(state);

	if (state->elements == NULL &&
		(state->nroom + count) * size < sizeof(state->room))
	{
		memcpy((char *) &state->room + state->nroom * size, elements,
			   count * size);
		state->nroom += count;
		return;
	}
	while (count > 0)
	{
		int64		part = Min(count, state->capacity - state->nelements);

		if (part == 0)
		{
			CHECK_FOR_INTERRUPTS();
			grow(state);
			continue;
		}
		memcpy((char *) state->elements + state->nelements * size, elements,
			   part * size);
		state->nelements += part;
		elements = (const char *) elements + part * size;
		count -= part;
	}
}

/* All elements of a state that has not spilled, in one piece. */
void *
exact_elements(ExactState *state, int64 *nelements)
{
	if (state->elements == NULL)
	{
		*nelements = state->nroom;
		return &state->room;
	}
	if (state->capacity - state->nelements < state->nroom)
	{
		/* This little more is not worth spilling. */
		state->capacity += EXACT_ROOM_KEYS;
		state->elements = repalloc_huge(state->elements,
										state->capacity * exact_element_size(state));
	}
	exact_empty_room(state);
	*nelements = state->nelements;
	return state->elements;
}

/* Add to the sum of weights, which must stay a bigint. */
void
exact_add_weight(ExactState *state, int64 weight)
{
	if (pg_add_s64_overflow(state->weight, weight, &state->weight))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("sum of weights is out of range for type bigint")));
}

/* Begin a pass through all elements of a state, in no particular order. */
void
exact_begin_scan(ExactScan *scan, const ExactState *state)
{
	scan->state = state;
	scan->step = 0;
	scan->reader = NULL;
	if (state->nspilled > 0)
		scan->reader = spill_begin_read(state->arena->file, state->last_run,
										exact_element_size(state));
}

/* The next elements, valid until the next call, or NULL after the last. */
const void *
exact_next(ExactScan *scan, int64 *count)
{
	switch (scan->step++)
	{
		case 0:
			*count = scan->state->nroom;
			return &scan->state->room;
		case 1:
			*count = scan->state->nelements;
			if (*count > 0)
				return scan->state->elements;
	}
	return scan->reader != NULL ? spill_read(scan->reader, count) : NULL;
}

void
exact_end_scan(ExactScan *scan)
{
	if (scan->reader != NULL)
		spill_end_read(scan->reader);
}
