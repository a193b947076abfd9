/*
 * lttb_agg.c
 *	  Aggregates metrics_lttb(x, y, points), for x of type float8 and timestamptz.
 *
 * An x that is no finite number has no place on an axis and is skipped like
 * NULL.  A y that is none stays, and weighs as 0 in the choice of points, as in
 * metrics_timeseries().
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "args.h"
#include "percentile/lttb.h"
#include "percentile/select.h"
#include "percentile/series.h"

PG_FUNCTION_INFO_V1(metrics_lttb_add);
PG_FUNCTION_INFO_V1(metrics_lttb_add_time);
PG_FUNCTION_INFO_V1(metrics_lttb_combine);
PG_FUNCTION_INFO_V1(metrics_lttb_serialize);
PG_FUNCTION_INFO_V1(metrics_lttb_deserialize);
PG_FUNCTION_INFO_V1(metrics_lttb_final);

typedef struct LttbState
{
	int32		points;			/* how many to choose */
	bool		is_time;
	Series		series;
} LttbState;

/* What is returned is at most 1 GB. */
#define MAX_RESULT_POINTS ((int) (MaxAllocSize / 64))

#define SERIAL_VERSION 1

/* A new state with room for a number of samples, in the current context. */
static LttbState *
new_state(int32 points, bool is_time, int room)
{
	LttbState  *state = palloc0_object(LttbState);

	state->points = points;
	state->is_time = is_time;
	series_init(&state->series, room);
	return state;
}

/* Has an x a place on the axis? */
static bool
is_finite(int64 x, bool is_time)
{
	return is_time ? !TIMESTAMP_NOT_FINITE(x) : isfinite(key_to_float8(x));
}

/*
 * Arguments of a transition: state, x, y, points.  points is checked in every
 * row, also in those that are skipped.
 */
static Datum
add_sample(FunctionCallInfo fcinfo, bool is_time)
{
	MemoryContext context = aggregate_context(fcinfo);
	LttbState  *state = PG_ARGISNULL(0) ? NULL : (LttbState *) PG_GETARG_POINTER(0);
	Sample		sample;
	int32		points;

	if (PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("points must not be null"),
				 errhint("Give a constant of at least 2.")));
	points = PG_GETARG_INT32(3);
	if (points < 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("points must be at least 2, got %d", points),
				 errhint("The first and the last point of a series are always kept.")));
	if (state != NULL && points != state->points)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("points must be the same in all rows, got %d and %d", state->points, points),
				 errhint("Give a constant, or group by it.")));

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		goto done;
	sample.x = is_time ? PG_GETARG_TIMESTAMPTZ(1) : float8_to_key(PG_GETARG_FLOAT8(1));
	sample.y = PG_GETARG_FLOAT8(2);
	if (!is_finite(sample.x, is_time))
		goto done;

	if (state == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		state = new_state(points, is_time, 0);
		MemoryContextSwitchTo(old_context);
	}
	series_add(&state->series, sample);

done:
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(state);
}

Datum
metrics_lttb_add(PG_FUNCTION_ARGS)
{
	return add_sample(fcinfo, false);
}

Datum
metrics_lttb_add_time(PG_FUNCTION_ARGS)
{
	return add_sample(fcinfo, true);
}

Datum
metrics_lttb_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	LttbState  *state = PG_ARGISNULL(0) ? NULL : (LttbState *) PG_GETARG_POINTER(0);
	LttbState  *other = PG_ARGISNULL(1) ? NULL : (LttbState *) PG_GETARG_POINTER(1);

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		state = new_state(other->points, other->is_time, other->series.count);
		MemoryContextSwitchTo(old_context);
	}
	if (state->points != other->points)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("points must be the same in all rows, got %d and %d",
						state->points, other->points),
				 errhint("Give a constant, or group by it.")));

	series_append(&state->series, &other->series);
	PG_RETURN_POINTER(state);
}

Datum
metrics_lttb_serialize(PG_FUNCTION_ARGS)
{
	LttbState  *state = (LttbState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, SERIAL_VERSION);
	pq_sendbyte(&buf, state->is_time);
	pq_sendint32(&buf, state->points);
	series_send(&buf, &state->series);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

static void
invalid_serial(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid partial result of metrics_lttb")));
}

Datum
metrics_lttb_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *serial;
	StringInfoData buf;
	LttbState  *state;

	aggregate_context(fcinfo);
	serial = PG_GETARG_BYTEA_PP(0);
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(serial), VARSIZE_ANY_EXHDR(serial));

	if (pq_getmsgbyte(&buf) != SERIAL_VERSION)
		invalid_serial();
	state = palloc0_object(LttbState);
	state->is_time = pq_getmsgbyte(&buf) != 0;
	state->points = pq_getmsgint(&buf, 4);
	if (state->points < 2)
		invalid_serial();
	series_receive(&buf, &state->series);
	for (int i = 0; i < state->series.count; i++)
	{
		if (!is_finite(state->series.samples[i].x, state->is_time))
			invalid_serial();
	}
	pfree(buf.data);
	PG_RETURN_POINTER(state);
}

/* Sort the samples and choose among them; returns how many were chosen. */
static int
choose(LttbState *state, int **chosen)
{
	const Series *series = &state->series;
	LttbPoint  *points;
	int			nchosen;

	series_sort(&state->series);
	*chosen = palloc_array(int, Min(series->count, state->points) + 1);
	points = palloc_array(LttbPoint, series->count + 1);
	for (int i = 0; i < series->count; i++)
	{
		const Sample *sample = &series->samples[i];

		/* Microseconds since the first: exact, where absolute ones may not be. */
		points[i].x = state->is_time ?
			(double) ((uint64) sample->x - (uint64) series->samples[0].x) :
			key_to_float8(sample->x);
		points[i].y = isfinite(sample->y) ? sample->y : 0;
	}
	nchosen = lttb_select(points, series->count, *chosen, state->points);
	pfree(points);
	return nchosen;
}

/* The chosen points as an array of rows (x, y), in order of x; NULL without points. */
Datum
metrics_lttb_final(PG_FUNCTION_ARGS)
{
	LttbState  *state;
	Oid			element;
	TupleDesc	desc;
	int		   *chosen;
	int			nchosen;
	Datum	   *rows;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (LttbState *) PG_GETARG_POINTER(0);
	if (state->series.count == 0)
		PG_RETURN_NULL();
	if (Min(state->series.count, state->points) > MAX_RESULT_POINTS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("metrics_lttb returns at most %d points", MAX_RESULT_POINTS),
				 errhint("Ask for fewer points.")));

	nchosen = choose(state, &chosen);
	element = get_element_type(get_fn_expr_rettype(fcinfo->flinfo));
	desc = lookup_rowtype_tupdesc(element, -1);
	rows = palloc_array(Datum, nchosen);
	for (int i = 0; i < nchosen; i++)
	{
		const Sample *sample = &state->series.samples[chosen[i]];
		Datum		values[] = {state->is_time ? TimestampTzGetDatum(sample->x) :
			Float8GetDatum(key_to_float8(sample->x)), Float8GetDatum(sample->y)};
		bool		nulls[] = {false, false};

		CHECK_FOR_INTERRUPTS();
		rows[i] = HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
	}
	ReleaseTupleDesc(desc);
	PG_RETURN_ARRAYTYPE_P(construct_array(rows, nchosen, element, -1, false, TYPALIGN_DOUBLE));
}
