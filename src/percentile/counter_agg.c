/*
 * counter_agg.c
 *	  Aggregates over a counter or a gauge: metrics_increase(at, v),
 *	  metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v).
 *
 * They are sums over neighbours in time, and share one state.  It holds all
 * samples, since a row that comes late, or in another process, can stand between
 * any two.
 *
 * Window frames: what is known of the samples so far is kept, so that a growing
 * frame costs only the new ones.  For a moving one there are two stacks, as in
 * sketch_window.c: of the older samples of the frame, the changes from each one
 * to the last of the older ones; of the newer ones, all together.
 */
#include "postgres.h"

#include <math.h>

#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "args.h"
#include "percentile/series.h"

PG_FUNCTION_INFO_V1(metrics_counter_add);
PG_FUNCTION_INFO_V1(metrics_counter_remove);
PG_FUNCTION_INFO_V1(metrics_counter_combine);
PG_FUNCTION_INFO_V1(metrics_counter_serialize);
PG_FUNCTION_INFO_V1(metrics_counter_deserialize);
PG_FUNCTION_INFO_V1(metrics_increase_final);
PG_FUNCTION_INFO_V1(metrics_resets_final);
PG_FUNCTION_INFO_V1(metrics_rise_final);
PG_FUNCTION_INFO_V1(metrics_delta_final);

#define SERIAL_VERSION 1

/* A sum, and what rounding took off it. */
typedef struct Sum
{
	double		sum;
	double		carry;
} Sum;

/* What happened from a sample to a later one. */
typedef struct Change
{
	double		first;
	double		last;
	Sum			increase;
	Sum			rise;
	int64		resets;
} Change;

typedef struct CounterState
{
	Series		series;
	int			begin;			/* samples before have left the frame */
	int			nolder;			/* end of the older ones */
	int			nknown;			/* end of those in newer */
	Change		newer;			/* samples nolder to nknown - 1, if any */
	int			older_capacity;
	Change	   *older;			/* older[i]: samples i to nolder - 1 */
} CounterState;

/* Knuth's two-sum. */
static void
sum_add(Sum *sum, double value)
{
	double		total = sum->sum + value;
	double		part = total - sum->sum;

	sum->carry += (sum->sum - (total - part)) + (value - part);
	sum->sum = total;
}

static void
sum_add_sum(Sum *sum, Sum other)
{
	sum_add(sum, other.sum);
	sum->carry += other.carry;
}

/* Of what is not finite rounding takes off nonsense. */
static double
sum_value(Sum sum)
{
	return isfinite(sum.sum) ? sum.sum + sum.carry : sum.sum;
}

/* What happens within one sample: nothing, but NaN makes all sums NaN. */
static Change
change_of(double value)
{
	Change		change = {.first = value, .last = value};

	if (isnan(value))
		change.increase.sum = change.rise.sum = value;
	return change;
}

/* From one value to another; from an infinity to the same there is no way. */
static double
difference(double from, double to)
{
	return from == to ? 0 : to - from;
}

/*
 * Append what happened from the next sample on.  A counter that falls has begun
 * at 0 again.
 */
static void
change_append(Change *change, const Change *next)
{
	if (next->first < change->last)
	{
		change->resets++;
		sum_add(&change->increase, next->first);
	}
	else
	{
		sum_add(&change->increase, difference(change->last, next->first));
		sum_add(&change->rise, difference(change->last, next->first));
	}
	change->last = next->last;
	sum_add_sum(&change->increase, next->increase);
	sum_add_sum(&change->rise, next->rise);
	change->resets += next->resets;
}

/* Forget what is known of the samples, and those that have left the frame. */
static void
start_over(CounterState *state)
{
	Series	   *series = &state->series;

	series->count -= state->begin;
	memmove(series->samples, series->samples + state->begin, series->count * sizeof(Sample));
	state->begin = state->nolder = state->nknown = 0;
}

/* Make all samples of the frame older ones. */
static void
turn_over(CounterState *state, MemoryContext context)
{
	int			n;

	start_over(state);
	n = state->series.count;
	if (state->older_capacity < n)
	{
		if (state->older != NULL)
			pfree(state->older);
		state->older_capacity = n + n / 4;
		state->older = MemoryContextAllocHuge(context, state->older_capacity * sizeof(Change));
	}
	for (int i = n - 1; i >= 0; i--)
	{
		CHECK_FOR_INTERRUPTS();
		state->older[i] = change_of(state->series.samples[i].y);
		if (i < n - 1)
			change_append(&state->older[i], &state->older[i + 1]);
	}
	state->nolder = state->nknown = n;
}

/* What happened in the frame, or false if there is no sample. */
static bool
whole_change(CounterState *state, MemoryContext context, Change *change)
{
	Series	   *series = &state->series;

	if (!series->sorted)
	{
		start_over(state);
		series_sort(series);
	}
	if (state->begin > state->nolder)
		turn_over(state, context);
	for (; state->nknown < series->count; state->nknown++)
	{
		Change		next = change_of(series->samples[state->nknown].y);

		CHECK_FOR_INTERRUPTS();
		if (state->nknown == state->nolder)
			state->newer = next;
		else
			change_append(&state->newer, &next);
	}

	if (state->begin == series->count)
		return false;
	if (state->begin == state->nolder)
		*change = state->newer;
	else
	{
		*change = state->older[state->begin];
		if (state->nknown > state->nolder)
			change_append(change, &state->newer);
	}
	return true;
}

static CounterState *
new_state(MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	CounterState *state = palloc0_object(CounterState);

	series_init(&state->series, 0);
	MemoryContextSwitchTo(caller);
	return state;
}

/*
 * Arguments: state, at, v.  A row with a NULL in it is skipped, but makes a
 * state: in a moving frame there must be one.
 */
Datum
metrics_counter_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	CounterState *state = PG_ARGISNULL(0) ? new_state(context) : (CounterState *) PG_GETARG_POINTER(0);
	Sample		sample;

	if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2))
	{
		sample.x = PG_GETARG_TIMESTAMPTZ(1);
		sample.y = PG_GETARG_FLOAT8(2);
		series_add(&state->series, sample);
	}
	PG_RETURN_POINTER(state);
}

/* Where a sample is in a sorted series, or would be. */
static int
find_sample(const Series *series, const Sample *sample)
{
	int			low = 0;
	int			high = series->count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (series_compare(&series->samples[middle], sample) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The same for a row that leaves a window frame.  It is the earliest one, but
 * where the window has another order.
 */
Datum
metrics_counter_remove(PG_FUNCTION_ARGS)
{
	CounterState *state;
	Series	   *series;
	Sample		sample;
	int			i;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		elog(ERROR, "row leaves a counter that has none");
	state = (CounterState *) PG_GETARG_POINTER(0);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_POINTER(state);

	series = &state->series;
	sample.x = PG_GETARG_TIMESTAMPTZ(1);
	sample.y = PG_GETARG_FLOAT8(2);
	Assert(state->begin < series->count);
	if (series_compare(&series->samples[state->begin], &sample) == 0)
	{
		state->begin++;
		PG_RETURN_POINTER(state);
	}
	start_over(state);
	series_sort(series);
	i = find_sample(series, &sample);
	Assert(i < series->count && series_compare(&series->samples[i], &sample) == 0);
	series->count--;
	memmove(&series->samples[i], &series->samples[i + 1], (series->count - i) * sizeof(Sample));
	PG_RETURN_POINTER(state);
}

/* The second state is another context's: its samples are copied. */
Datum
metrics_counter_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	CounterState *state = PG_ARGISNULL(0) ? NULL : (CounterState *) PG_GETARG_POINTER(0);
	CounterState *other = PG_ARGISNULL(1) ? NULL : (CounterState *) PG_GETARG_POINTER(1);

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
		state = new_state(context);
	series_append(&state->series, &other->series);
	PG_RETURN_POINTER(state);
}

Datum
metrics_counter_serialize(PG_FUNCTION_ARGS)
{
	CounterState *state = (CounterState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, SERIAL_VERSION);
	series_send(&buf, &state->series);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
metrics_counter_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *serial;
	StringInfoData buf;
	CounterState *state;

	aggregate_context(fcinfo);
	serial = PG_GETARG_BYTEA_PP(0);
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(serial), VARSIZE_ANY_EXHDR(serial));

	if (pq_getmsgbyte(&buf) != SERIAL_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid partial result of an aggregate over a counter")));
	state = palloc0_object(CounterState);
	series_receive(&buf, &state->series);
	pfree(buf.data);
	PG_RETURN_POINTER(state);
}

/* The state's change in a final function, or false if there is none. */
static bool
final_change(FunctionCallInfo fcinfo, Change *change)
{
	MemoryContext context = aggregate_context(fcinfo);

	return !PG_ARGISNULL(0) && whole_change((CounterState *) PG_GETARG_POINTER(0), context, change);
}

Datum
metrics_increase_final(PG_FUNCTION_ARGS)
{
	Change		change;

	if (!final_change(fcinfo, &change))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sum_value(change.increase));
}

Datum
metrics_resets_final(PG_FUNCTION_ARGS)
{
	Change		change;

	if (!final_change(fcinfo, &change))
		PG_RETURN_NULL();
	PG_RETURN_INT64(change.resets);
}

Datum
metrics_rise_final(PG_FUNCTION_ARGS)
{
	Change		change;

	if (!final_change(fcinfo, &change))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sum_value(change.rise));
}

Datum
metrics_delta_final(PG_FUNCTION_ARGS)
{
	Change		change;

	if (!final_change(fcinfo, &change))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(difference(change.first, change.last));
}
