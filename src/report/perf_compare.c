/*
 * perf_compare.c
 *	  metrics_compare(): two sets of measurements, as Perfherder compares them.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "args.h"
#include "report/comparison.h"
#include "report/perf_array.h"

PG_FUNCTION_INFO_V1(metrics_compare);

#define MAX_RESAMPLES 1000000

/* What t amounts to. */
static const char *
confidence_name(double t)
{
	if (!(t > 0))
		return "";
	return t < 3 ? "Low" : t < 5 ? "Medium" : "High";
}

/* What Cliff's delta amounts to. */
static const char *
effect_name(double delta)
{
	double		size = fabs(delta);

	return size < 0.15 ? "negligible" : size < 0.33 ? "small" : size < 0.47 ? "medium" : "large";
}

/*
 * What is to be said of the difference, if anything.  Means that differ by less
 * than 2 % say nothing; means of different sign, or one of them 0, differ by more.
 */
static const char *
class_name(const Sample *base, const Sample *other, double t, bool is_better)
{
	double		smaller = Min(fabs(base->mean), fabs(other->mean));
	double		greater = Max(fabs(base->mean), fabs(other->mean));
	bool		one_sign = (base->mean > 0 && other->mean > 0) || (base->mean < 0 && other->mean < 0);

	if (!(t >= 3) || (one_sign && greater / smaller < 1.02))
		return "";
	if (t < 5)
		return is_better ? "" : "warning";
	return is_better ? "success" : "danger";
}

/* 100 * part / |whole|; false where there is no whole. */
static bool
percentage(double part, double whole, double *result)
{
	*result = 100 * part / fabs(whole);
	return whole != 0;
}

/* A row that is filled in column by column. */
typedef struct Row
{
	int			ncolumns;
	Datum		values[25];
	bool		nulls[25];
} Row;

static void
put(Row *row, Datum value, bool known)
{
	Assert(row->ncolumns < (int) lengthof(row->values));
	row->values[row->ncolumns] = value;
	row->nulls[row->ncolumns++] = !known;
}

static void
put_number(Row *row, double number, bool known)
{
	put(row, Float8GetDatum(number), known);
}

static void
put_name(Row *row, const char *name, bool known)
{
	put(row, known ? CStringGetTextDatum(name) : (Datum) 0, known);
}

/*
 * metrics_compare(base_values, new_values, lower_is_better, resamples) → (…)
 *
 * What needs both samples is NULL where one is empty, but for t, its name and
 * the class, which say then that there is nothing to say.
 */
Datum
metrics_compare(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {NULL, NULL, "lower_is_better", "resamples"};
	int			base_count;
	int			new_count;
	const double *base_values = perf_float8_argument(fcinfo, 0, "base_values", &base_count);
	const double *new_values = perf_float8_argument(fcinfo, 1, "new_values", &new_count);
	Sample		base = sample_of(base_values, base_count);
	Sample		other = sample_of(new_values, new_count);
	Sample	   *samples[] = {&base, &other};
	bool		both = base_count > 0 && new_count > 0;
	bool		has_interval;
	int			resamples;
	double		t = comparison_t(&base, &other);
	double		delta = other.mean - base.mean;
	double		pct;
	double		delta_pct;
	bool		has_delta_pct;
	bool		is_better;
	bool		is_confident;
	RankTest	ranks = {0};
	Interval95	interval = {0};
	TupleDesc	desc;
	Row			row = {0};

	check_not_null(fcinfo, names, lengthof(names));
	resamples = PG_GETARG_INT32(3);
	if (resamples < 0 || resamples > MAX_RESAMPLES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resamples must be between 0 and %d, got %d", MAX_RESAMPLES, resamples),
				 errhint("The default is 1000; 0 leaves the interval out.")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	is_better = PG_GETARG_BOOL(2) ? delta < 0 : delta > 0;
	is_confident = (base_count > 1 && new_count > 1 && t >= 5) ||
		(base_count >= 6 && new_count >= 6 && t >= 3);
	has_interval = base_count > 1 && new_count > 1 && resamples > 0;
	if (both)
		ranks = comparison_ranks(&base, &other);
	if (has_interval)
		interval = comparison_interval(&base, &other, resamples);

	for (int i = 0; i < 2; i++)
		put(&row, Int32GetDatum(samples[i]->count), true);
	for (int i = 0; i < 2; i++)
		put_number(&row, samples[i]->mean, samples[i]->count > 0);
	for (int i = 0; i < 2; i++)
		put_number(&row, samples[i]->median, samples[i]->count > 0);
	for (int i = 0; i < 2; i++)
		put_number(&row, samples[i]->stddev, samples[i]->count > 0);
	for (int i = 0; i < 2; i++)
	{
		bool		known = percentage(samples[i]->stddev, samples[i]->mean, &pct);

		put_number(&row, pct, known);
	}
	put_number(&row, delta, both);
	has_delta_pct = percentage(delta, base.mean, &delta_pct) && both;
	put_number(&row, delta_pct, has_delta_pct);
	put_number(&row, Min(5 * fabs(delta_pct), 100), has_delta_pct);
	put_number(&row, t, true);
	put_name(&row, confidence_name(t), true);
	put(&row, BoolGetDatum(is_confident), true);
	put(&row, BoolGetDatum(both && !is_confident && base_count < 6), true);
	put(&row, BoolGetDatum(is_better), both);
	put_name(&row, class_name(&base, &other, t, is_better), true);
	put_number(&row, ranks.u, both);
	put_number(&row, ranks.p, both);
	put_number(&row, ranks.cliffs_delta, both);
	put_name(&row, effect_name(ranks.cliffs_delta), both);
	put_number(&row, interval.low, has_interval);
	put_number(&row, interval.high, has_interval);
	Assert(row.ncolumns == desc->natts);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), row.values, row.nulls)));
}
