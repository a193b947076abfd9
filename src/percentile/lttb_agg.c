/*
 * lttb_agg.c
 *	  Aggregates metrics_lttb(x, y, points), for x of type float8 and timestamptz.
 *
 * The state holds every point, so that their order does not matter.  Points of
 * equal x are taken in order of y, which makes the answer independent of plan
 * and input order.  An x that is no finite number has no place on an axis and
 * is skipped like NULL.  A y that is none stays, and weighs as 0 in the choice
 * of points, as in metrics_timeseries().
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "args.h"
#include "percentile/lttb.h"

PG_FUNCTION_INFO_V1(metrics_lttb_add);
PG_FUNCTION_INFO_V1(metrics_lttb_add_time);
PG_FUNCTION_INFO_V1(metrics_lttb_combine);
PG_FUNCTION_INFO_V1(metrics_lttb_serialize);
PG_FUNCTION_INFO_V1(metrics_lttb_deserialize);
PG_FUNCTION_INFO_V1(metrics_lttb_final);

typedef struct Sample
{
	union
	{
		double		number;
		TimestampTz time;
	}			x;
	double		y;
} Sample;

typedef struct LttbState
{
	int32		points;			/* how many to choose */
	bool		is_time;
	bool		sorted;
	int			count;
	int			allocated;
	Sample	   *samples;
} LttbState;

/* A state, whole or serialised, is at most 1 GB, and so is what is returned. */
#define MAX_SAMPLES ((int) ((MaxAllocSize - 64) / sizeof(Sample)))
#define MAX_RESULT_POINTS ((int) (MaxAllocSize / 64))

#define SERIAL_VERSION 1
#define SERIAL_HEADER_SIZE (1 + 1 + 4 + 4)

static inline int
compare_numbers(const Sample *a, const Sample *b)
{
	if (a->x.number != b->x.number)
		return a->x.number < b->x.number ? -1 : 1;
	return float8_cmp_internal(a->y, b->y);
}

static inline int
compare_times(const Sample *a, const Sample *b)
{
	if (a->x.time != b->x.time)
		return a->x.time < b->x.time ? -1 : 1;
	return float8_cmp_internal(a->y, b->y);
}

#define ST_SORT sort_by_number
#define ST_ELEMENT_TYPE Sample
#define ST_COMPARE compare_numbers
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_by_time
#define ST_ELEMENT_TYPE Sample
#define ST_COMPARE compare_times
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* A new state with room for a number of samples, in the current context. */
static LttbState *
new_state(int32 points, bool is_time, int room)
{
	LttbState  *state = palloc0_object(LttbState);

	state->points = points;
	state->is_time = is_time;
	state->sorted = true;
	state->allocated = Max(room, 64);
	state->samples = palloc_array(Sample, state->allocated);
	return state;
}

/* Make room for more samples. */
static void
reserve(LttbState *state, int more)
{
	if (more <= state->allocated - state->count)
		return;
	if (more > MAX_SAMPLES - state->count)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("metrics_lttb takes at most %d points", MAX_SAMPLES),
				 errhint("Narrow the series with WHERE, or group it into intervals first.")));
	state->allocated = (int) Min((int64) MAX_SAMPLES,
								 Max((int64) state->allocated * 2, (int64) state->count + more));
	state->samples = repalloc(state->samples, state->allocated * sizeof(Sample));
}

static inline int
compare_samples(const LttbState *state, const Sample *a, const Sample *b)
{
	return state->is_time ? compare_times(a, b) : compare_numbers(a, b);
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
	if (is_time)
	{
		sample.x.time = PG_GETARG_TIMESTAMPTZ(1);
		if (TIMESTAMP_NOT_FINITE(sample.x.time))
			goto done;
	}
	else
	{
		sample.x.number = PG_GETARG_FLOAT8(1);
		if (!isfinite(sample.x.number))
			goto done;
	}
	sample.y = PG_GETARG_FLOAT8(2);

	if (state == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		state = new_state(points, is_time, 0);
		MemoryContextSwitchTo(old_context);
	}
	reserve(state, 1);
	if (state->sorted && state->count > 0 &&
		compare_samples(state, &state->samples[state->count - 1], &sample) > 0)
		state->sorted = false;
	state->samples[state->count++] = sample;

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

		state = new_state(other->points, other->is_time, other->count);
		MemoryContextSwitchTo(old_context);
	}
	if (state->points != other->points)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("points must be the same in all rows, got %d and %d",
						state->points, other->points),
				 errhint("Give a constant, or group by it.")));

	reserve(state, other->count);
	memcpy(state->samples + state->count, other->samples, other->count * sizeof(Sample));
	state->sorted = other->sorted && (state->count == 0 ||
									  (state->sorted &&
									   compare_samples(state, &state->samples[state->count - 1],
													   &other->samples[0]) <= 0));
	state->count += other->count;
	PG_RETURN_POINTER(state);
}

Datum
metrics_lttb_serialize(PG_FUNCTION_ARGS)
{
	LttbState  *state = (LttbState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	enlargeStringInfo(&buf, SERIAL_HEADER_SIZE + state->count * sizeof(Sample));
	pq_sendbyte(&buf, SERIAL_VERSION);
	pq_sendbyte(&buf, state->is_time);
	pq_sendint32(&buf, state->points);
	pq_sendint32(&buf, state->count);
	for (int i = 0; i < state->count; i++)
	{
		pq_sendint64(&buf, state->samples[i].x.time);	/* or the image of a number */
		pq_sendfloat8(&buf, state->samples[i].y);
	}
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* Trusts nothing but that whoever wrote it may choose the points at will. */
Datum
metrics_lttb_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *serial;
	StringInfoData buf;
	LttbState  *state;
	int			version;
	int			is_time;
	int32		points;
	int32		count;

	aggregate_context(fcinfo);
	serial = PG_GETARG_BYTEA_PP(0);
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(serial), VARSIZE_ANY_EXHDR(serial));

	version = pq_getmsgbyte(&buf);
	is_time = pq_getmsgbyte(&buf);
	points = pq_getmsgint(&buf, 4);
	count = pq_getmsgint(&buf, 4);
	if (version != SERIAL_VERSION || is_time > 1 || points < 2 || count < 0 || count > MAX_SAMPLES ||
		(Size) (buf.len - buf.cursor) != count * sizeof(Sample))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid partial result of metrics_lttb")));

	state = new_state(points, is_time == 1, count);
	for (int i = 0; i < count; i++)
	{
		Sample	   *sample = &state->samples[i];

		sample->x.time = pq_getmsgint64(&buf);
		sample->y = pq_getmsgfloat8(&buf);
		if (is_time ? TIMESTAMP_NOT_FINITE(sample->x.time) : !isfinite(sample->x.number))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("invalid partial result of metrics_lttb")));
		if (i > 0 && compare_samples(state, &state->samples[i - 1], sample) > 0)
			state->sorted = false;
	}
	state->count = count;
	pq_getmsgend(&buf);
	pfree(buf.data);
	PG_RETURN_POINTER(state);
}

/* Sort the samples and choose among them; returns how many were chosen. */
static int
choose(LttbState *state, int **chosen)
{
	LttbPoint  *points;
	int			nchosen;

	if (!state->sorted)
	{
		if (state->is_time)
			sort_by_time(state->samples, state->count);
		else
			sort_by_number(state->samples, state->count);
		state->sorted = true;
	}

	*chosen = palloc_array(int, Min(state->count, state->points) + 1);
	points = palloc_array(LttbPoint, state->count + 1);
	for (int i = 0; i < state->count; i++)
	{
		const Sample *sample = &state->samples[i];

		/* Microseconds since the first: exact, where absolute ones may not be. */
		points[i].x = state->is_time ?
			(double) ((uint64) sample->x.time - (uint64) state->samples[0].x.time) :
			sample->x.number;
		points[i].y = isfinite(sample->y) ? sample->y : 0;
	}
	nchosen = lttb_select(points, state->count, *chosen, state->points);
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
	if (state->count == 0)
		PG_RETURN_NULL();
	if (Min(state->count, state->points) > MAX_RESULT_POINTS)
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
		const Sample *sample = &state->samples[chosen[i]];
		Datum		values[] = {state->is_time ? TimestampTzGetDatum(sample->x.time) :
			Float8GetDatum(sample->x.number), Float8GetDatum(sample->y)};
		bool		nulls[] = {false, false};

		CHECK_FOR_INTERRUPTS();
		rows[i] = HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
	}
	ReleaseTupleDesc(desc);
	PG_RETURN_ARRAYTYPE_P(construct_array(rows, nchosen, element, -1, false, TYPALIGN_DOUBLE));
}
