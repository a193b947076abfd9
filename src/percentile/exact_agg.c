/*
 * exact_agg.c
 *	  SQL functions of the exact percentile aggregates.
 *
 * One C function serves several aggregates: whether there are fractions, and
 * how they were given, is read from the call once a group.  Transition
 * functions are not strict, because only so can they make the first state; they
 * check for an aggregate's context there, since no one but an aggregate can
 * pass a state that is not null.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "libpq/pqformat.h"

#include "args.h"
#include "percentile/exact.h"

/* What a partial state may take, and still travel as one value of a row. */
#define MAX_PARTIAL_SIZE (MaxAllocSize - 64 * 1024)

PG_FUNCTION_INFO_V1(metrics_percentiles_trans);
PG_FUNCTION_INFO_V1(metrics_percentiles_trans_bigint);
PG_FUNCTION_INFO_V1(metrics_percentiles_trans_weighted);
PG_FUNCTION_INFO_V1(metrics_percentiles_remove);
PG_FUNCTION_INFO_V1(metrics_percentiles_remove_bigint);
PG_FUNCTION_INFO_V1(metrics_percentiles_remove_weighted);
PG_FUNCTION_INFO_V1(metrics_percentiles_combine);
PG_FUNCTION_INFO_V1(metrics_percentiles_serialize);
PG_FUNCTION_INFO_V1(metrics_percentiles_deserialize);
PG_FUNCTION_INFO_V1(metrics_percentiles_final);
PG_FUNCTION_INFO_V1(metrics_percentiles_disc_final);

static const ExactKind float8_kind = {false, false, 2};
static const ExactKind bigint_kind = {false, true, 2};
static const ExactKind weighted_kind = {true, false, 3};

/* The group's state, new for its first row. */
static inline ExactState *
transition_state(FunctionCallInfo fcinfo, const ExactKind *kind)
{
	ExactState *state;

	if (unlikely(PG_ARGISNULL(0)))
		return exact_begin(fcinfo, kind);
	state = (ExactState *) PG_GETARG_POINTER(0);
	exact_check_fractions(state, fcinfo, kind);
	return state;
}

/* The state in a support function that is not the first to be called. */
static ExactState *
given_state(FunctionCallInfo fcinfo, int argument)
{
	check_aggregate(fcinfo, NULL);
	return PG_ARGISNULL(argument) ? NULL :
		(ExactState *) PG_GETARG_POINTER(argument);
}

/* (internal, v float8 [, fraction float8 | fractions float8[]]) → internal */
Datum
metrics_percentiles_trans(PG_FUNCTION_ARGS)
{
	ExactState *state = transition_state(fcinfo, &float8_kind);

	if (!PG_ARGISNULL(1))
		exact_add(state, float8_to_key(PG_GETARG_FLOAT8(1)));
	PG_RETURN_POINTER(state);
}

/* (internal, v bigint [, fraction float8 | fractions float8[]]) → internal */
Datum
metrics_percentiles_trans_bigint(PG_FUNCTION_ARGS)
{
	ExactState *state = transition_state(fcinfo, &bigint_kind);

	if (!PG_ARGISNULL(1))
		exact_add(state, PG_GETARG_INT64(1));
	PG_RETURN_POINTER(state);
}

/*
 * Read a value and its weight from arguments 1 and 2; false if there is nothing
 * to count.
 */
static bool
weighted_argument(FunctionCallInfo fcinfo, int64 *key, int64 *weight)
{
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		return false;
	*key = float8_to_key(PG_GETARG_FLOAT8(1));
	*weight = PG_GETARG_INT64(2);
	if (*weight < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("weight " INT64_FORMAT " is negative", *weight),
				 errhint("Weights count how often a value stands.")));
	return *weight > 0;
}

/*
 * (internal, v float8, weight bigint [, fraction float8 | fractions float8[]])
 * → internal
 */
Datum
metrics_percentiles_trans_weighted(PG_FUNCTION_ARGS)
{
	ExactState *state = transition_state(fcinfo, &weighted_kind);
	int64		key;
	int64		weight;

	if (weighted_argument(fcinfo, &key, &weight))
		exact_add_weighted(state, key, weight);
	PG_RETURN_POINTER(state);
}

/*
 * Inverse transitions: a row leaves a window frame.  Arguments are those of the
 * transition functions.
 */
static ExactState *
window_state(FunctionCallInfo fcinfo)
{
	ExactState *state = given_state(fcinfo, 0);

	if (state == NULL || !state->window)
		elog(ERROR, "no window state to remove a value from");
	return state;
}

Datum
metrics_percentiles_remove(PG_FUNCTION_ARGS)
{
	ExactState *state = window_state(fcinfo);

	if (!PG_ARGISNULL(1))
		exact_remove(state, float8_to_key(PG_GETARG_FLOAT8(1)), 1);
	PG_RETURN_POINTER(state);
}

Datum
metrics_percentiles_remove_bigint(PG_FUNCTION_ARGS)
{
	ExactState *state = window_state(fcinfo);

	if (!PG_ARGISNULL(1))
		exact_remove(state, PG_GETARG_INT64(1), 1);
	PG_RETURN_POINTER(state);
}

Datum
metrics_percentiles_remove_weighted(PG_FUNCTION_ARGS)
{
	ExactState *state = window_state(fcinfo);
	int64		key;
	int64		weight;

	if (weighted_argument(fcinfo, &key, &weight))
		exact_remove(state, key, weight);
	PG_RETURN_POINTER(state);
}

/*
 * Add the second state's values to the first.  The second is copied even where
 * there is no first: it is gone after this call.
 */
Datum
metrics_percentiles_combine(PG_FUNCTION_ARGS)
{
	ExactState *state = given_state(fcinfo, 0);
	ExactState *other = given_state(fcinfo, 1);
	ExactScan	scan;
	const void *elements;
	int64		n;

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	if (state == NULL)
		state = exact_begin_like(fcinfo, other);
	else if (state->weighted != other->weighted ||
			 state->integer != other->integer)
		elog(ERROR, "percentile states are of different kinds");
	else if (!fractions_equal(state->fractions, other->fractions))
		fractions_differ();

	if (other->weight > 0)
		exact_add_weight(state, other->weight);
	exact_begin_scan(&scan, other);
	while ((elements = exact_next(&scan, &n)) != NULL)
		exact_append(state, elements, n);
	exact_end_scan(&scan);
	PG_RETURN_POINTER(state);
}

/*
 * A partial state as bytea: what kind it is, the fractions, the number of
 * elements, and the elements as they are in memory.  It goes from one process
 * to another of the same server and is never stored.
 */
Datum
metrics_percentiles_serialize(PG_FUNCTION_ARGS)
{
	ExactState *state = given_state(fcinfo, 0);
	Size		size = exact_element_size(state);
	int64		count = exact_nelements(state);
	StringInfoData buffer;
	StringInfoData header;
	ExactScan	scan;
	const void *elements;
	int64		n;

	pq_begintypsend(&header);
	pq_sendbyte(&header, state->weighted);
	pq_sendbyte(&header, state->integer);
	fractions_send(&header, state->fractions);
	pq_sendint64(&header, count);

	if (count > (int64) ((MAX_PARTIAL_SIZE - header.len) / size))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("values of a parallel percentile exceed 1 GB in one process"),
				 errhint("Set \"max_parallel_workers_per_gather\" to 0 for this query, or use a sketch.")));

	/* All at once, for appending would double the buffer past what we need. */
	buffer = header;
	buffer.maxlen = header.len + (int) (count * size) + 1;
	buffer.data = palloc(buffer.maxlen);
	memcpy(buffer.data, header.data, header.len);
	exact_begin_scan(&scan, state);
	while ((elements = exact_next(&scan, &n)) != NULL)
		pq_sendbytes(&buffer, elements, (int) (n * size));
	exact_end_scan(&scan);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

static void
check_weights(ExactState *state)
{
	const WeightedKey *pairs = state->elements;	/* not in the room */

	for (int64 i = 0; i < state->nelements; i++)
	{
		if (pairs[i].weight <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("malformed state of a percentile aggregate")));
		exact_add_weight(state, pairs[i].weight);
	}
}

/*
 * A state in the current, short-lived context, fit to be the second argument of
 * combine and nothing else: it has no arena.
 */
Datum
metrics_percentiles_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *value;
	ExactState *state;
	StringInfoData buffer;
	int64		count;
	Size		size;

	check_aggregate(fcinfo, NULL);
	value = PG_GETARG_BYTEA_PP(0);
	state = palloc0(sizeof(ExactState));
	buffer.data = VARDATA_ANY(value);
	buffer.len = VARSIZE_ANY_EXHDR(value);
	buffer.maxlen = buffer.len;
	buffer.cursor = 0;

	state->weighted = pq_getmsgbyte(&buffer) != 0;
	state->integer = pq_getmsgbyte(&buffer) != 0;
	state->fractions = fractions_receive(&buffer);
	count = pq_getmsgint64(&buffer);
	size = exact_element_size(state);
	if (count < 0 || count > (int64) ((buffer.len - buffer.cursor) / size))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("malformed state of a percentile aggregate")));
	state->nelements = count;
	state->capacity = count;
	state->elements = palloc(count * size);
	pq_copymsgbytes(&buffer, state->elements, (int) (count * size));
	pq_getmsgend(&buffer);
	if (state->weighted)
		check_weights(state);
	PG_RETURN_POINTER(state);
}

/* The result as one row of a composite type, which has a column a fraction. */
static Datum
composite_result(FunctionCallInfo fcinfo, int nitems, Datum *results,
				 bool *nulls)
{
	TupleDesc	desc = fcinfo->flinfo->fn_extra;

	if (desc == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
			desc->natts != nitems)
			elog(ERROR, "return type must be a row type of %d columns", nitems);
		desc = BlessTupleDesc(desc);
		fcinfo->flinfo->fn_extra = desc;
		MemoryContextSwitchTo(old);
	}
	return HeapTupleGetDatum(heap_form_tuple(desc, results, nulls));
}

/*
 * The percentiles of a state in the form in which fractions were given.  Final
 * functions are READ_ONLY although they permute the values: see exact_answer().
 */
static Datum
finish(FunctionCallInfo fcinfo, bool continuous)
{
	ExactState *state = given_state(fcinfo, 0);
	Fractions  *fractions;
	Datum	   *results;
	bool	   *nulls;

	if (state == NULL || exact_count(state) == 0 || state->fractions->isnull)
		PG_RETURN_NULL();
	fractions = state->fractions;
	results = palloc_extended(((Size) fractions->nitems + 1) * sizeof(Datum),
							  MCXT_ALLOC_HUGE);
	nulls = palloc_extended(((Size) fractions->nitems + 1) * sizeof(bool),
							MCXT_ALLOC_HUGE);
	exact_answer(state, continuous, results, nulls);

	switch (fractions->form)
	{
		case FRACTIONS_FIXED:
			return composite_result(fcinfo, fractions->nitems, results, nulls);
		case FRACTIONS_ONE:
			if (nulls[0])
				PG_RETURN_NULL();
			return results[0];
		case FRACTIONS_ARRAY:
			if (fractions->nitems > 0)
				PG_RETURN_ARRAYTYPE_P(construct_md_array(results, nulls,
														 fractions->ndim,
														 fractions->dims,
														 fractions->lbound,
														 state->integer ? INT8OID : FLOAT8OID,
														 sizeof(int64), FLOAT8PASSBYVAL,
														 TYPALIGN_DOUBLE));
			return PointerGetDatum(construct_empty_array(state->integer ?
														 INT8OID : FLOAT8OID));
	}
	PG_RETURN_NULL();
}

/* (internal) → float8, float8[] or metrics_quantiles */
Datum
metrics_percentiles_final(PG_FUNCTION_ARGS)
{
	return finish(fcinfo, true);
}

/* (internal) → as above, or of bigints bigint, bigint[] or a row type */
Datum
metrics_percentiles_disc_final(PG_FUNCTION_ARGS)
{
	return finish(fcinfo, false);
}
