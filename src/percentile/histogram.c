/*
 * histogram.c
 *	  Aggregate metrics_histogram(v float8, edges float8[]).
 *
 * Buckets are numbered as core's width_bucket(v, edges) numbers them: one below
 * the first edge, one from each edge, inclusive, to the next, exclusive, and
 * one from the last edge on.  NaN sorts last, so it is in the last bucket.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "libpq/pqformat.h"
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/memutils.h"

#include "args.h"

PG_FUNCTION_INFO_V1(metrics_histogram_add);
PG_FUNCTION_INFO_V1(metrics_histogram_remove);
PG_FUNCTION_INFO_V1(metrics_histogram_combine);
PG_FUNCTION_INFO_V1(metrics_histogram_serialize);
PG_FUNCTION_INFO_V1(metrics_histogram_deserialize);
PG_FUNCTION_INFO_V1(metrics_histogram_final);

#define SERIAL_VERSION 1

typedef struct HistogramState
{
	int64		total;
	bool		has_edges;		/* false: no row has told them yet */
	int			nedges;
	ArrayType  *source;			/* the edges as they were given; NULL in a copy */
	bool		same_edges;		/* no row can have others */
	double	   *edges;
	int64	   *counts;			/* nedges + 1 */
} HistogramState;

/*
 * Are the edges the same in all rows of a group for certain?  A parameter's
 * value changes only from one execution of the aggregate to the next.
 */
static bool
edges_are_constant(FunctionCallInfo fcinfo)
{
	Aggref	   *aggref = AggGetAggref(fcinfo);
	Node	   *edges;

	if (aggref == NULL)
		return false;			/* a window does not tell */
	edges = (Node *) lsecond_node(TargetEntry, aggref->args)->expr;
	return IsA(edges, Const) || IsA(edges, Param);
}

/* Does each edge lie above the one before?  NaN lies nowhere. */
static bool
edges_ascend(const double *edges, int nedges)
{
	for (int i = 0; i < nedges; i++)
	{
		if (isnan(edges[i]) || (i > 0 && !(edges[i] > edges[i - 1])))
			return false;
	}
	return true;
}

/* Make room for so many edges in a new state. */
static void
allocate_edges(HistogramState *state, MemoryContext context, int nedges)
{
	state->has_edges = true;
	state->nedges = nedges;
	state->edges = MemoryContextAlloc(context, mul_size(nedges + 1, sizeof(double)));
	state->counts = MemoryContextAllocZero(context, mul_size(nedges + 1, sizeof(int64)));
}

/* Take the edges from a row. */
static void
set_edges(HistogramState *state, FunctionCallInfo fcinfo, MemoryContext context)
{
	ArrayType  *edges = PG_GETARG_ARRAYTYPE_P(2);
	int			nedges = ArrayGetNItems(ARR_NDIM(edges), ARR_DIMS(edges));

	if (ARR_NDIM(edges) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("edges must have one dimension, not %d", ARR_NDIM(edges)),
				 errhint("Write edges as '{0,1,10}'.")));
	if (array_contains_nulls(edges))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("edges must not contain nulls"),
				 errhint("Leave them out: array_remove(edges, NULL).")));

	allocate_edges(state, context, nedges);
	memcpy(state->edges, ARR_DATA_PTR(edges), nedges * sizeof(double));
	if (!edges_ascend(state->edges, nedges))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("edges must ascend, without duplicates and NaN"),
				 errhint("Sort them: ARRAY(SELECT DISTINCT e FROM unnest(edges) e ORDER BY e).")));
	state->source = MemoryContextAlloc(context, VARSIZE(edges));
	memcpy(state->source, edges, VARSIZE(edges));
	state->same_edges = edges_are_constant(fcinfo);
}

static void
edges_differ(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("edges must be the same in all rows"),
			 errhint("Group by the edges, or give one constant array.")));
}

/* Are the edges of a row those of the state? */
static void
check_edges(HistogramState *state, ArrayType *edges)
{
	if (state->source != NULL && VARSIZE(edges) == VARSIZE(state->source) &&
		memcmp(edges, state->source, VARSIZE(edges)) == 0)
		return;

	/* Equal arrays may differ in their bytes, as '[0:1]={1,2}' and -0 do. */
	if (ARR_NDIM(edges) > 1 || array_contains_nulls(edges) ||
		ArrayGetNItems(ARR_NDIM(edges), ARR_DIMS(edges)) != state->nedges)
		edges_differ();
	for (int i = 0; i < state->nedges; i++)
	{
		if (((double *) ARR_DATA_PTR(edges))[i] != state->edges[i])
			edges_differ();
	}
}

/* The bucket of a value: how many edges lie at or below it. */
static int
find_bucket(const HistogramState *state, double value)
{
	int			low = 0;
	int			high = state->nedges;

	if (isnan(value))
		return high;
	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (state->edges[middle] <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Arguments: state, v, edges.  A row with a NULL in it is skipped, but makes a
 * state: in a moving frame there must be one.
 */
Datum
metrics_histogram_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	HistogramState *state = PG_ARGISNULL(0) ?
		MemoryContextAllocZero(context, sizeof(HistogramState)) :
		(HistogramState *) PG_GETARG_POINTER(0);

	if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2))
	{
		if (!state->has_edges)
			set_edges(state, fcinfo, context);
		else if (!state->same_edges)
			check_edges(state, PG_GETARG_ARRAYTYPE_P(2));
		state->counts[find_bucket(state, PG_GETARG_FLOAT8(1))]++;
		state->total++;
	}
	PG_RETURN_POINTER(state);
}

/* The same for a row that leaves a window frame. */
Datum
metrics_histogram_remove(PG_FUNCTION_ARGS)
{
	HistogramState *state;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		elog(ERROR, "row leaves a histogram that has none");
	state = (HistogramState *) PG_GETARG_POINTER(0);
	if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2))
	{
		check_edges(state, PG_GETARG_ARRAYTYPE_P(2));
		state->counts[find_bucket(state, PG_GETARG_FLOAT8(1))]--;
		state->total--;
	}
	PG_RETURN_POINTER(state);
}

Datum
metrics_histogram_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	HistogramState *state = PG_ARGISNULL(0) ? NULL : (HistogramState *) PG_GETARG_POINTER(0);
	HistogramState *other = PG_ARGISNULL(1) ? NULL : (HistogramState *) PG_GETARG_POINTER(1);

	if (other == NULL || !other->has_edges)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
		state = MemoryContextAllocZero(context, sizeof(HistogramState));
	if (!state->has_edges)
	{
		allocate_edges(state, context, other->nedges);
		memcpy(state->edges, other->edges, other->nedges * sizeof(double));
	}
	if (state->nedges != other->nedges)
		edges_differ();
	for (int i = 0; i < state->nedges; i++)
	{
		if (state->edges[i] != other->edges[i])
			edges_differ();
	}

	/* No bucket holds more than all of them together. */
	if (pg_add_s64_overflow(state->total, other->total, &state->total))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("bigint out of range")));
	for (int i = 0; i <= state->nedges; i++)
		state->counts[i] += other->counts[i];
	PG_RETURN_POINTER(state);
}

Datum
metrics_histogram_serialize(PG_FUNCTION_ARGS)
{
	HistogramState *state = (HistogramState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, SERIAL_VERSION);
	pq_sendbyte(&buf, state->has_edges);
	pq_sendint32(&buf, state->nedges);
	for (int i = 0; i < state->nedges; i++)
		pq_sendfloat8(&buf, state->edges[i]);
	for (int i = 0; state->has_edges && i <= state->nedges; i++)
		pq_sendint64(&buf, state->counts[i]);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

static void
invalid_serial(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid partial result of metrics_histogram")));
}

Datum
metrics_histogram_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *serial;
	StringInfoData buf;
	HistogramState *state;
	int			has_edges;
	int32		nedges;

	aggregate_context(fcinfo);
	serial = PG_GETARG_BYTEA_PP(0);
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(serial), VARSIZE_ANY_EXHDR(serial));

	if (pq_getmsgbyte(&buf) != SERIAL_VERSION)
		invalid_serial();
	state = palloc0_object(HistogramState);
	has_edges = pq_getmsgbyte(&buf);
	nedges = pq_getmsgint(&buf, 4);
	if (has_edges > 1 || nedges < 0 ||
		(has_edges ? (int64) nedges * 16 + 8 : nedges) != buf.len - buf.cursor)
		invalid_serial();
	if (!has_edges)
	{
		pq_getmsgend(&buf);
		PG_RETURN_POINTER(state);
	}

	allocate_edges(state, CurrentMemoryContext, nedges);
	for (int i = 0; i < nedges; i++)
		state->edges[i] = pq_getmsgfloat8(&buf);
	if (!edges_ascend(state->edges, nedges))
		invalid_serial();
	for (int i = 0; i <= nedges; i++)
	{
		state->counts[i] = pq_getmsgint64(&buf);
		if (state->counts[i] < 0 ||
			pg_add_s64_overflow(state->total, state->counts[i], &state->total))
			invalid_serial();
	}
	pq_getmsgend(&buf);
	pfree(buf.data);
	PG_RETURN_POINTER(state);
}

/* The counts as bigint[]; NULL without values. */
Datum
metrics_histogram_final(PG_FUNCTION_ARGS)
{
	HistogramState *state;
	Datum	   *counts;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (HistogramState *) PG_GETARG_POINTER(0);
	if (state->total == 0)
		PG_RETURN_NULL();
	counts = palloc_array(Datum, state->nedges + 1);
	for (int i = 0; i <= state->nedges; i++)
		counts[i] = Int64GetDatum(state->counts[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(counts, state->nedges + 1, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
