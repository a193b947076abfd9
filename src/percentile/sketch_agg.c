/*
 * sketch_agg.c
 *	  Aggregates that make sketches.
 *
 * A transition puts the value into a small array and nothing else; when that
 * is full, its values go into the sketch together, which is several times as
 * fast as one by one.  A group of few rows never has more than the array.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/memutils.h"

#include "percentile/sketch_sql.h"

#define FIRST_CAPACITY 16

typedef struct SketchState
{
	int			npending;
	int			capacity;		/* of pending */
	double		relative_error;
	Sketch	   *sketch;			/* NULL until pending was full once */
	double		pending[FLEXIBLE_ARRAY_MEMBER];
} SketchState;

PG_FUNCTION_INFO_V1(metrics_sketch_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_weighted_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_merge_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_combine);
PG_FUNCTION_INFO_V1(metrics_sketch_serialize);
PG_FUNCTION_INFO_V1(metrics_sketch_deserialize);
PG_FUNCTION_INFO_V1(metrics_sketch_final);

/* The aggregate's memory context; an error if there is no aggregate. */
MemoryContext
sketch_aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (unlikely(!AggCheckCallContext(fcinfo, &context)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("aggregate support function called in non-aggregate context"),
				 errhint("Call the aggregate.")));
	return context;
}

static SketchState *
make_state(MemoryContext context, double relative_error)
{
	SketchState *state = MemoryContextAlloc(context, offsetof(SketchState, pending) +
											FIRST_CAPACITY * sizeof(double));

	state->npending = 0;
	state->capacity = FIRST_CAPACITY;
	state->relative_error = relative_error;
	state->sketch = NULL;
	return state;
}

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

/* Put the pending values into the state's sketch. */
static void
flush(SketchState *state, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	int			n = state->npending;

	state->npending = 0;
	if (!sketch_add(get_sketch(state, context), state->pending, n))
		sketch_count_overflow();
	MemoryContextSwitchTo(caller);
}

/* Pending is full: make it longer, or empty it.  Returns the state's new place. */
static pg_noinline SketchState *
make_room(SketchState *state, FunctionCallInfo fcinfo)
{
	if (state->capacity == SKETCH_BATCH)
		flush(state, sketch_aggregate_context(fcinfo));
	else
	{
		state = repalloc(state, offsetof(SketchState, pending) + SKETCH_BATCH * sizeof(double));
		state->capacity = SKETCH_BATCH;
	}
	return state;
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
		if (state->npending > 0)
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

/*
 * What is rare in the next function: the first row, and an explicit relative
 * error.  Returns NULL if there is neither a state nor a value.
 */
static pg_noinline SketchState *
begin_or_check(FunctionCallInfo fcinfo, SketchState *state)
{
	MemoryContext context;
	double		relative_error;

	if (state != NULL)
	{
		(void) sketch_get_relative_error(fcinfo, 2, &state->relative_error);
		return state;
	}
	context = sketch_aggregate_context(fcinfo);
	relative_error = sketch_get_relative_error(fcinfo, 2, NULL);
	return PG_ARGISNULL(1) ? NULL : make_state(context, relative_error);
}

/*
 * metrics_sketch(v [, relative_error])
 *
 * Called for every row, so that it does nothing that is not needed: a state is
 * proof enough of an aggregate, for SQL has no way to make one.
 */
Datum
metrics_sketch_trans(PG_FUNCTION_ARGS)
{
	SketchState *state = PG_ARGISNULL(0) ? NULL : (SketchState *) PG_GETARG_POINTER(0);

	if (unlikely(state == NULL || PG_NARGS() > 2))
	{
		state = begin_or_check(fcinfo, state);
		if (state == NULL)
			PG_RETURN_NULL();
	}
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);
	if (unlikely(state->npending == state->capacity))
		state = make_room(state, fcinfo);
	state->pending[state->npending++] = PG_GETARG_FLOAT8(1);
	PG_RETURN_POINTER(state);
}

/* metrics_sketch_weighted(v, weight [, relative_error]) */
Datum
metrics_sketch_weighted_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = sketch_aggregate_context(fcinfo);
	MemoryContext caller;
	SketchState *state = PG_ARGISNULL(0) ? NULL : (SketchState *) PG_GETARG_POINTER(0);
	double		relative_error = sketch_get_relative_error(fcinfo, 3, state == NULL ? NULL : &state->relative_error);
	int64		weight;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	weight = PG_GETARG_INT64(2);
	if (weight <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("weight " INT64_FORMAT " is not positive", weight),
				 errhint("Use FILTER (WHERE weight > 0) to skip such rows.")));
	if (state == NULL)
		state = make_state(context, relative_error);
	caller = MemoryContextSwitchTo(context);
	if (!sketch_add_weighted(get_sketch(state, context), PG_GETARG_FLOAT8(1), weight))
		sketch_count_overflow();
	MemoryContextSwitchTo(caller);
	PG_RETURN_POINTER(state);
}

/* metrics_sketch_merge(sketch) */
Datum
metrics_sketch_merge_trans(PG_FUNCTION_ARGS)
{
	MemoryContext context = sketch_aggregate_context(fcinfo);
	MemoryContext caller;
	SketchState *state = PG_ARGISNULL(0) ? NULL : (SketchState *) PG_GETARG_POINTER(0);
	bytea	   *bytes;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
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
	PG_RETURN_POINTER(state);
}

/* The second state is another context's: it is read, never kept or changed. */
Datum
metrics_sketch_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = sketch_aggregate_context(fcinfo);
	MemoryContext caller;
	double		pending[SKETCH_BATCH];
	SketchState *state = PG_ARGISNULL(0) ? NULL : (SketchState *) PG_GETARG_POINTER(0);
	SketchState *other = PG_ARGISNULL(1) ? NULL : (SketchState *) PG_GETARG_POINTER(1);

	if (other == NULL && state == NULL)
		PG_RETURN_NULL();
	if (other == NULL)
		PG_RETURN_POINTER(state);
	if (state == NULL)
		state = make_state(context, other->relative_error);
	sketch_require_same_error(state->relative_error, other->relative_error);
	caller = MemoryContextSwitchTo(context);
	memcpy(pending, other->pending, other->npending * sizeof(double));
	if ((other->sketch != NULL && !sketch_merge(get_sketch(state, context), other->sketch)) ||
		(other->npending > 0 && !sketch_add(get_sketch(state, context), pending, other->npending)))
		sketch_count_overflow();
	MemoryContextSwitchTo(caller);
	PG_RETURN_POINTER(state);
}

Datum
metrics_sketch_serialize(PG_FUNCTION_ARGS)
{
	MemoryContext context = sketch_aggregate_context(fcinfo);
	SketchState *state = (SketchState *) PG_GETARG_POINTER(0);

	PG_RETURN_BYTEA_P(sketch_to_bytes(whole_sketch(state, context)));
}

Datum
metrics_sketch_deserialize(PG_FUNCTION_ARGS)
{
	SketchState *state;
	Sketch	   *sketch;

	(void) sketch_aggregate_context(fcinfo);
	/* lives as long as the combine function needs it */
	sketch = palloc(sizeof(Sketch));
	PG_GETARG_SKETCH(sketch, 0);
	state = make_state(CurrentMemoryContext, sketch->relative_error);
	state->sketch = sketch;
	PG_RETURN_POINTER(state);
}

/* Changes nothing but where the values are. */
Datum
metrics_sketch_final(PG_FUNCTION_ARGS)
{
	MemoryContext context = sketch_aggregate_context(fcinfo);

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(sketch_to_bytes(whole_sketch((SketchState *) PG_GETARG_POINTER(0), context)));
}
