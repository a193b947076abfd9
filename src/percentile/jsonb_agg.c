/*
 * jsonb_agg.c
 *	  Percentiles and sketches of a number in JSON documents.
 *
 * Layers on the aggregates of the same names over float8: the number is looked
 * up here, their states take it, and all but transitions is theirs.  Where a
 * document has no number at the path, it is as if v were NULL.
 */
#include "postgres.h"

#include "args.h"
#include "percentile/exact.h"
#include "percentile/json_document.h"

PG_FUNCTION_INFO_V1(metrics_percentiles_json_trans);
PG_FUNCTION_INFO_V1(metrics_percentiles_json_remove);
PG_FUNCTION_INFO_V1(metrics_sketch_json_trans);
PG_FUNCTION_INFO_V1(metrics_sketch_json_window_add);
PG_FUNCTION_INFO_V1(metrics_sketch_json_window_remove);

extern Datum metrics_sketch_trans(PG_FUNCTION_ARGS);
extern Datum metrics_sketch_window_add(PG_FUNCTION_ARGS);
extern Datum metrics_sketch_window_remove(PG_FUNCTION_ARGS);

/* Number of the argument with the fractions, after state, metrics and path. */
static const ExactKind json_kind = {false, false, 3};

/* The group's state, new for its first row. */
static inline ExactState *
transition_state(FunctionCallInfo fcinfo)
{
	ExactState *state;

	if (unlikely(PG_ARGISNULL(0)))
	{
		LOCAL_FCINFO(below, 4);

		/* The call as it is, but that both of us keep something in flinfo. */
		memcpy(below, fcinfo, SizeForFunctionCallInfo(PG_NARGS()));
		below->flinfo = &json_reader(fcinfo)->below;
		return exact_begin(below, &json_kind);
	}
	state = (ExactState *) PG_GETARG_POINTER(0);
	exact_check_fractions(state, fcinfo, &json_kind);
	return state;
}

/* (internal, metrics jsonb, path text[] [, fraction float8 | fractions float8[]]) → internal */
Datum
metrics_percentiles_json_trans(PG_FUNCTION_ARGS)
{
	ExactState *state = transition_state(fcinfo);
	double		number;

	if (json_argument_number(fcinfo, 1, &number))
		exact_add(state, float8_to_key(number));
	PG_RETURN_POINTER(state);
}

/* The same for a row that leaves a window frame. */
Datum
metrics_percentiles_json_remove(PG_FUNCTION_ARGS)
{
	ExactState *state = PG_ARGISNULL(0) ? NULL : (ExactState *) PG_GETARG_POINTER(0);
	double		number;

	check_aggregate(fcinfo, NULL);
	if (state == NULL || !state->window)
		elog(ERROR, "no window state to remove a value from");
	if (json_argument_number(fcinfo, 1, &number))
		exact_remove(state, float8_to_key(number), 1);
	PG_RETURN_POINTER(state);
}

/*
 * Call a transition function of the sketch over float8 with the number in the
 * place of metrics and path.
 */
static Datum
call_with_number(FunctionCallInfo fcinfo, PGFunction function)
{
	LOCAL_FCINFO(below, 3);
	double		number = 0;
	bool		found = json_argument_number(fcinfo, 1, &number);
	Datum		state;

	InitFunctionCallInfoData(*below, &json_reader(fcinfo)->below, PG_NARGS() - 1,
							 PG_GET_COLLATION(), fcinfo->context, fcinfo->resultinfo);
	below->args[0] = fcinfo->args[0];
	below->args[1].value = Float8GetDatum(number);
	below->args[1].isnull = !found;
	if (PG_NARGS() > 3)
		below->args[2] = fcinfo->args[3];
	state = function(below);
	fcinfo->isnull = below->isnull;
	return state;
}

/* (internal, metrics jsonb, path text[] [, relative_error float8]) → internal */
Datum
metrics_sketch_json_trans(PG_FUNCTION_ARGS)
{
	return call_with_number(fcinfo, metrics_sketch_trans);
}

Datum
metrics_sketch_json_window_add(PG_FUNCTION_ARGS)
{
	return call_with_number(fcinfo, metrics_sketch_window_add);
}

Datum
metrics_sketch_json_window_remove(PG_FUNCTION_ARGS)
{
	return call_with_number(fcinfo, metrics_sketch_window_remove);
}
