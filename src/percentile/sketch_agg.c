/*
 * sketch_agg.c
 *	  Aggregates that make sketches.
 *
 * A transition puts the value into a small array and nothing else; when that
 * is full, its values go into the sketch together, which is several times as
 * fast as one by one.  A group of few rows never has more than the array.
 *
 * With many groups, what a transition costs is the memory that it touches.  So
 * a state that has left its first array is known to the executor not by its
 * address, but by that of the next free place in its array: a transition
 * stores the value there and passes the address of the place after it.  The
 * state is aligned to its size, which leads back from the place to it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/memutils.h"

#include "percentile/sketch_sql.h"

/* Size and alignment of a state; and the size of a small one. */
#define STATE_SIZE 1024
#define SMALL_STATE_SIZE 128

/* In the datum of a small state, which is the address plus this. */
#define SMALL_STATE 1

typedef struct SketchState
{
	int			npending;		/* set by get_state(), but for a small one */
	int			nflushed;		/* of pending, in the sketch already */
	double		relative_error;
	Sketch	   *sketch;			/* NULL until there are more values than pending */
	double		pending[FLEXIBLE_ARRAY_MEMBER];
} SketchState;

#define STATE_CAPACITY ((STATE_SIZE - (int) offsetof(SketchState, pending)) / (int) sizeof(double))
#define SMALL_STATE_CAPACITY ((SMALL_STATE_SIZE - (int) offsetof(SketchState, pending)) / (int) sizeof(double))

StaticAssertDecl(STATE_SIZE % sizeof(double) == 0 && STATE_CAPACITY <= SKETCH_BATCH, "a state is a batch at most");

PG_FUNCTION_INFO_V1(metrics_sketch_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_weighted_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_merge_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_combine);
PG_FUNCTION_INFO_V1(metrics_sketch_serialize);
PG_FUNCTION_INFO_V1(metrics_sketch_deserialize);
PG_FUNCTION_INFO_V1(metrics_sketch_final);

/* Make a small state. */
static SketchState *
make_state(MemoryContext context, double relative_error)
{
	SketchState *state = MemoryContextAlloc(context, SMALL_STATE_SIZE);

	state->npending = 0;
	state->nflushed = 0;
	state->relative_error = relative_error;
	state->sketch = NULL;
	return state;
}

/* The state of a datum that is not NULL. */
static SketchState *
get_state(Datum datum)
{
	SketchState *state;

	if (datum & SMALL_STATE)
		return (SketchState *) (datum - SMALL_STATE);
	/* the place after the last one is the end of the state */
	state = (SketchState *) TYPEALIGN_DOWN(STATE_SIZE, datum - 1);
	state->npending = (int) ((double *) datum - state->pending);
	return state;
}

#define PG_GETARG_STATE(n) (PG_ARGISNULL(n) ? NULL : get_state(PG_GETARG_DATUM(n)))
#define PG_RETURN_SMALL_STATE(state) PG_RETURN_DATUM(PointerGetDatum(state) + SMALL_STATE)

/* The sketch of a state, made in context if there is none yet. */
static Sketch *
get_sketch(SketchState *state, MemoryContext context)
{
	if (state->sketch == NULL)
	{
		state->sketch = MemoryContextAlloc(context, sizeof(Sketch));
		sketch_init(state->sketch, state->relative_error);
	}
	return state->sketch;
}

/*
 * Put the pending values into the state's sketch.  They also stay where they
 * are, for only a transition can take the executor back to the first place.
 */
static void
flush(SketchState *state, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	int			first = state->nflushed;

	state->nflushed = state->npending;
	if (first < state->npending &&
		!sketch_add(get_sketch(state, context), state->pending + first, state->npending - first))
		sketch_count_overflow();
	MemoryContextSwitchTo(caller);
}

/*
 * All that a state holds.  A state that has not needed a sketch gets none now,
 * but a temporary one in the current context: finishing a million small groups
 * must not make them larger.
 */
static Sketch *
whole_sketch(SketchState *state, MemoryContext context)
{
	Sketch	   *sketch;
	double		pending[SKETCH_BATCH];

	if (state->sketch != NULL)
	{
		flush(state, context);
		return state->sketch;
	}
	sketch = palloc(sizeof(Sketch));
	sketch_init(sketch, state->relative_error);
	memcpy(pending, state->pending, state->npending * sizeof(double));
	if (state->npending > 0 && !sketch_add(sketch, pending, state->npending))
		sketch_count_overflow();
	return sketch;
}

/*
 * The relative error of a call, its argument number n, which is absent or NULL
 * for the default.  If one is declared already, it must be the same.
 */
double
sketch_get_relative_error(FunctionCallInfo fcinfo, int n, const double *declared)
{
	double		relative_error = SKETCH_DEFAULT_ERROR;

	if (PG_NARGS() > n && !PG_ARGISNULL(n))
		relative_error = PG_GETARG_FLOAT8(n);
	if (declared != NULL && *declared == relative_error)
		return relative_error;
	if (!sketch_error_is_valid(relative_error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("relative error %g is not between %g and %g",
						relative_error, SKETCH_MIN_ERROR, SKETCH_MAX_ERROR),
				 errhint("%g stands for one percent.", SKETCH_DEFAULT_ERROR)));
	if (declared != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("relative error changes from %.15g to %.15g within a group", *declared, relative_error),
				 errhint("Give a constant, or group by it.")));
	return relative_error;
}

/* Move a small state that is full to one of full size. */
static SketchState *
enlarge(SketchState *small, MemoryContext context)
{
	char	   *memory = MemoryContextAlloc(context, 2 * STATE_SIZE - MAXIMUM_ALIGNOF);
	SketchState *state = (SketchState *) TYPEALIGN(STATE_SIZE, memory);

	memcpy(state, small, offsetof(SketchState, pending) + small->npending * sizeof(double));
	pfree(small);
	return state;
}

/*
 * What is rare in the next function: the first rows, an explicit relative
 * error, NULL, and no place left.
 */
static pg_noinline Datum
slow_trans(FunctionCallInfo fcinfo)
{
	MemoryContext context = aggregate_context(fcinfo);
	SketchState *state = PG_GETARG_STATE(0);
	bool		small = state == NULL || (PG_GETARG_DATUM(0) & SMALL_STATE);
	double		relative_error = sketch_get_relative_error(fcinfo, 2, state == NULL ? NULL : &state->relative_error);

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		return PG_GETARG_DATUM(0);
	}
	if (state == NULL)
		state = make_state(context, relative_error);
	if (small && state->npending == SMALL_STATE_CAPACITY)
	{
		state = enlarge(state, context);
		small = false;
	}
	if (!small && state->npending == STATE_CAPACITY)
	{
		flush(state, context);
		state->npending = state->nflushed = 0;
	}
	state->pending[state->npending++] = PG_GETARG_FLOAT8(1);
	if (small)
		PG_RETURN_SMALL_STATE(state);
	return PointerGetDatum(&state->pending[state->npending]);
}

/*
 * metrics_sketch(v [, relative_error])
 *
 * A state is proof enough of an aggregate, for SQL has no way to make one.
 */
Datum
metrics_sketch_trans(PG_FUNCTION_ARGS)
{
	Datum		place = PG_GETARG_DATUM(0);

	if (unlikely(PG_ARGISNULL(0) || (place & SMALL_STATE) || place % STATE_SIZE == 0 ||
				 PG_ARGISNULL(1) || PG_NARGS() > 2))
		return slow_trans(fcinfo);
	*(double *) place = PG_GETARG_FLOAT8(1);
	return place + sizeof(double);
}

/* metrics_sketch_weighted(v, weight [, relative_error]) */
Datum
metrics_sketch_weighted_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	MemoryContext caller;
	SketchState *state = PG_GETARG_STATE(0);
	double		relative_error = sketch_get_relative_error(fcinfo, 3, state == NULL ? NULL : &state->relative_error);
	int64		weight = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT64(2);

	if (weight < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("weight " INT64_FORMAT " is negative", weight),
				 errhint("Weights count how often a value stands.")));
	if (PG_ARGISNULL(1) || weight == 0)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_SMALL_STATE(state);
	}
	if (state == NULL)
		state = make_state(context, relative_error);
	caller = MemoryContextSwitchTo(context);
	if (!sketch_add_weighted(get_sketch(state, context), PG_GETARG_FLOAT8(1), weight))
		sketch_count_overflow();
	MemoryContextSwitchTo(caller);
	PG_RETURN_SMALL_STATE(state);
}

/* metrics_sketch_merge(sketch) */
Datum
metrics_sketch_merge_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	MemoryContext caller;
	SketchState *state = PG_GETARG_STATE(0);
	bytea	   *bytes;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_SMALL_STATE(state);
	}
	bytes = PG_GETARG_BYTEA_PP(1);
	if (state == NULL)
	{
		Sketch		sketch;

		sketch_from_bytes(&sketch, bytes);
		state = make_state(context, sketch.relative_error);
		sketch_free(&sketch);
	}
	caller = MemoryContextSwitchTo(context);
	sketch_merge_bytes(get_sketch(state, context), bytes);
	MemoryContextSwitchTo(caller);
	PG_RETURN_SMALL_STATE(state);
}

/* The second state is another context's: it is read, never kept or changed. */
Datum
metrics_sketch_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	MemoryContext caller;
	double		pending[SKETCH_BATCH];
	int			n;
	SketchState *state = PG_GETARG_STATE(0);
	SketchState *other = PG_GETARG_STATE(1);

	if (other == NULL && state == NULL)
		PG_RETURN_NULL();
	if (other == NULL)
		return PG_GETARG_DATUM(0);
	if (state == NULL)
		state = make_state(context, other->relative_error);
	sketch_require_same_error(state->relative_error, other->relative_error);
	caller = MemoryContextSwitchTo(context);
	n = other->npending - other->nflushed;
	memcpy(pending, other->pending + other->nflushed, n * sizeof(double));
	if ((other->sketch != NULL && !sketch_merge(get_sketch(state, context), other->sketch)) ||
		(n > 0 && !sketch_add(get_sketch(state, context), pending, n)))
		sketch_count_overflow();
	MemoryContextSwitchTo(caller);
	if (PG_ARGISNULL(0))
		PG_RETURN_SMALL_STATE(state);
	return PG_GETARG_DATUM(0);
}

Datum
metrics_sketch_serialize(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	SketchState *state = get_state(PG_GETARG_DATUM(0));

	PG_RETURN_BYTEA_P(sketch_to_bytes(whole_sketch(state, context)));
}

Datum
metrics_sketch_deserialize(PG_FUNCTION_ARGS)
{
	SketchState *state;
	Sketch	   *sketch;

	(void) aggregate_context(fcinfo);
	/* lives as long as the combine function needs it */
	sketch = palloc(sizeof(Sketch));
	PG_GETARG_SKETCH(sketch, 0);
	state = make_state(CurrentMemoryContext, sketch->relative_error);
	state->sketch = sketch;
	PG_RETURN_SMALL_STATE(state);
}

/* Changes nothing but where the values are. */
Datum
metrics_sketch_final(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(sketch_to_bytes(whole_sketch(get_state(PG_GETARG_DATUM(0)), context)));
}
