/*
 * sketch_window.c
 *	  metrics_sketch() over a moving frame.
 *
 * Counts can be taken back exactly, as long as the buckets have not collapsed;
 * so they never do here, but in a copy that the result is made of.  Extremes
 * and sums cannot be taken back.  They come from two stacks: of the older
 * values of the frame, those from each one to the last of the older ones are
 * summed up; of the newer ones, all together.  When the older ones are used
 * up, the newer ones become the older ones.  That is a constant cost a row,
 * and nothing is ever subtracted.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "percentile/sketch_sql.h"

#define FIRST_CAPACITY 64

PG_FUNCTION_INFO_V1(metrics_sketch_window_add);
PG_FUNCTION_INFO_V1(metrics_sketch_window_remove);
PG_FUNCTION_INFO_V1(metrics_sketch_window_final);

/* The finite ones of some values. */
typedef struct Span
{
	double		min;
	double		max;
	SketchMoments moments;
} Span;

typedef struct SketchWindow
{
	Sketch		sketch;			/* counts of the frame, at level 0 */
	Span		newer;			/* values[nolder] to values[end - 1] */
	int64		begin;			/* first value of the frame */
	int64		nolder;			/* end of the older ones */
	int64		end;
	int64		capacity;
	double	   *values;
	int64		older_capacity;
	Span	   *older;			/* older[i]: values[i] to values[nolder - 1] */
} SketchWindow;

static void
clear_span(Span *span)
{
	memset(span, 0, sizeof(Span));
	span->min = INFINITY;
	span->max = -INFINITY;
	span->moments.scale = sketch_scale(0, 0);
}

static void
span_add_span(Span *span, const Span *other)
{
	span->min = Min(span->min, other->min);
	span->max = Max(span->max, other->max);
	sketch_moments_add(&span->moments, &other->moments);
}

static void
span_add(Span *span, double value)
{
	Span		one;

	if (!isfinite(value))
		return;
	one.min = one.max = value + 0.0;	/* -0 is 0 */
	sketch_moments_of(&one.moments, &value, 1, value, value);
	span_add_span(span, &one);
}

/* Make the newer values the older ones, and move them to the front. */
static void
turn_over(SketchWindow *window, MemoryContext context)
{
	int64		n = window->end - window->begin;
	Span		span;

	memmove(window->values, window->values + window->begin, n * sizeof(double));
	window->begin = 0;
	window->end = n;
	window->nolder = n;
	if (window->older_capacity < n)
	{
		if (window->older != NULL)
			pfree(window->older);
		window->older_capacity = n + n / 4;
		window->older = MemoryContextAllocHuge(context, window->older_capacity * sizeof(Span));
	}
	clear_span(&span);
	for (int64 i = n - 1; i >= 0; i--)
	{
		CHECK_FOR_INTERRUPTS();
		span_add(&span, window->values[i]);
		window->older[i] = span;
	}
	clear_span(&window->newer);
}

/*
 * metrics_sketch(v [, relative_error]): a value enters the frame.  A moving
 * state must exist from the first row on, even if it is NULL.
 */
Datum
metrics_sketch_window_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	MemoryContext caller;
	SketchWindow *window = PG_ARGISNULL(0) ? NULL : (SketchWindow *) PG_GETARG_POINTER(0);
	double		relative_error;

	relative_error = sketch_get_relative_error(fcinfo, 2, window == NULL ? NULL : &window->sketch.relative_error);
	caller = MemoryContextSwitchTo(context);
	if (window == NULL)
	{
		window = palloc0(sizeof(SketchWindow));
		sketch_init(&window->sketch, relative_error);
		clear_span(&window->newer);
		window->capacity = FIRST_CAPACITY;
		window->values = palloc(FIRST_CAPACITY * sizeof(double));
	}
	if (!PG_ARGISNULL(1))
	{
		if (window->end == window->capacity)
		{
			window->capacity *= 2;
			window->values = repalloc_huge(window->values, window->capacity * sizeof(double));
		}
		window->values[window->end++] = PG_GETARG_FLOAT8(1);
		span_add(&window->newer, PG_GETARG_FLOAT8(1));
		sketch_count_only(&window->sketch, PG_GETARG_FLOAT8(1), 1);
	}
	MemoryContextSwitchTo(caller);
	PG_RETURN_POINTER(window);
}

/* The oldest value leaves the frame: PostgreSQL takes them out in order. */
Datum
metrics_sketch_window_remove(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	SketchWindow *window = PG_ARGISNULL(0) ? NULL : (SketchWindow *) PG_GETARG_POINTER(0);

	if (window == NULL)
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(window);
	Assert(window->begin < window->end);
	if (window->begin == window->nolder)
		turn_over(window, context);
	sketch_count_only(&window->sketch, window->values[window->begin], -1);
	window->begin++;
	PG_RETURN_POINTER(window);
}

/* The sketch of the frame.  Changes nothing. */
Datum
metrics_sketch_window_final(PG_FUNCTION_ARGS)
{
	SketchWindow *window = PG_ARGISNULL(0) ? NULL : (SketchWindow *) PG_GETARG_POINTER(0);
	Sketch		frame;
	Sketch		collapsed;
	Span		span;

	(void) aggregate_context(fcinfo);
	if (window == NULL || window->sketch.count == 0)
		PG_RETURN_NULL();
	if (window->begin < window->nolder)
		span = window->older[window->begin];
	else
		clear_span(&span);
	span_add_span(&span, &window->newer);
	frame = window->sketch;
	frame.min = span.min;
	frame.max = span.max;
	frame.moments = span.moments;
	if (frame.negative.nbuckets <= SKETCH_MAX_BUCKETS && frame.positive.nbuckets <= SKETCH_MAX_BUCKETS)
		PG_RETURN_BYTEA_P(sketch_to_bytes(&frame));
	sketch_init(&collapsed, frame.relative_error);
	if (!sketch_merge(&collapsed, &frame))
		sketch_count_overflow();
	PG_RETURN_BYTEA_P(sketch_to_bytes(&collapsed));
}
