/*
 * summary.c
 *	  Summary of a trial's metrics.
 *
 * Type, count, min, max and last are exact.  The sum is kept in decimal with
 * SUM_DIGITS significant digits, more than the error of doubles would need over
 * any number of rows; the mean is derived from it.  NaN, Infinity and
 * -Infinity are strings in JSON and numbers here.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "report/summary.h"
#include "report/value.h"

#define SUM_DIGITS 34
#define MEAN_DIGITS 17

typedef struct MetricName
{
	const char *text;
	int			len;
} MetricName;

/* A metric of a group. */
typedef struct Metric
{
	MetricName	name;
	const char *type;			/* one of the constants of value.h */
	int64		count;			/* this and the next three: of numbers only */
	Numeric		sum;
	Numeric		min;
	Numeric		max;
	JsonbValue	last;			/* in the row with the greatest (end_time, id) */
	uint32		hash;
	char		status;
} Metric;

#define SH_PREFIX metrics
#define SH_ELEMENT_TYPE Metric
#define SH_KEY_TYPE MetricName
#define SH_KEY name
#define SH_HASH_KEY(tb, key) \
	hash_bytes((const unsigned char *) (key).text, (key).len)
#define SH_EQUAL(tb, a, b) \
	((a).len == (b).len && memcmp((a).text, (b).text, (a).len) == 0)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Group
{
	const char *name;
	metrics_hash *metrics;
	bool		has_last;
	TimestampTz last_time;
	int64		last_id;
} Group;

struct Summary
{
	MemoryContext context;		/* of this and everything below */
	MemoryContext scratch;		/* reset after each row */
	Jsonb	   *metrics;		/* what we began with; groups not in the list */
	Jsonb	   *last_rows;		/* still stand as they are */
	List	   *groups;
};

static const JsonbValue json_null = {.type = jbvNull};

static JsonbValue
json_string(const char *text)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = strlen(text);
	return value;
}

/* A number of JSON as numeric, which knows NaN and the infinities. */
static Numeric
number_value(const JsonbValue *value)
{
	if (value->type == jbvNumeric)
		return value->val.numeric;
	return DatumGetNumeric(DirectFunctionCall3(numeric_in,
											   CStringGetDatum(pnstrdup(value->val.string.val,
																		value->val.string.len)),
											   ObjectIdGetDatum(InvalidOid),
											   Int32GetDatum(-1)));
}

/* The same back: special values as strings. */
static JsonbValue
number_to_json(Numeric number)
{
	JsonbValue	value = {.type = jbvNumeric};

	if (numeric_is_nan(number) || numeric_is_inf(number))
		return json_string(DatumGetCString(DirectFunctionCall1(numeric_out,
															   NumericGetDatum(number))));
	value.val.numeric = DatumGetNumeric(DirectFunctionCall1(numeric_trim_scale,
															NumericGetDatum(number)));
	return value;
}

/* Round to a number of significant digits. */
static Numeric
round_digits(Numeric number, int digits)
{
	double		magnitude;
	int			scale;

	/* A numeric this short cannot have so many digits (4 in each 2 bytes). */
	if (VARSIZE_ANY_EXHDR(number) <= (Size) digits / 2 ||
		numeric_is_nan(number) || numeric_is_inf(number))
		return number;

	magnitude = fabs(DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
														NumericGetDatum(number))));
	/* Outside the range of double there is no telling: keep more digits. */
	if (magnitude == 0)
		scale = digits - DBL_MIN_10_EXP + DBL_DIG;
	else if (isinf(magnitude))
		scale = digits - DBL_MAX_10_EXP - 2;
	else
		scale = digits - 1 - (int) floor(log10(magnitude));

	if (DatumGetInt32(DirectFunctionCall1(numeric_scale, NumericGetDatum(number))) <= scale)
		return number;
	return DatumGetNumeric(DirectFunctionCall2(numeric_round, NumericGetDatum(number),
											   Int32GetDatum(scale)));
}

static int
compare_numbers(Numeric a, Numeric b)
{
	return DatumGetInt32(DirectFunctionCall2(numeric_cmp, NumericGetDatum(a),
											 NumericGetDatum(b)));
}

/* Make a number the summary's own, in place of another or of NULL. */
static void
keep_number(Summary *summary, Numeric *slot, Numeric number)
{
	MemoryContext old_context = MemoryContextSwitchTo(summary->context);

	if (*slot)
		pfree(*slot);
	*slot = DatumGetNumeric(datumCopy(NumericGetDatum(number), false, -1));
	MemoryContextSwitchTo(old_context);
}

/* The same for a value. */
static void
keep_value(Summary *summary, JsonbValue *slot, const JsonbValue *value)
{
	MemoryContext old_context = MemoryContextSwitchTo(summary->context);

	if (slot->type == jbvString)
		pfree(slot->val.string.val);
	else if (slot->type == jbvNumeric)
		pfree(slot->val.numeric);
	else if (slot->type == jbvBinary)
		pfree(slot->val.binary.data);

	*slot = *value;
	if (value->type == jbvString)
		slot->val.string.val = pnstrdup(value->val.string.val, value->val.string.len);
	else if (value->type == jbvNumeric)
		slot->val.numeric = DatumGetNumeric(datumCopy(NumericGetDatum(value->val.numeric),
													  false, -1));
	else if (value->type == jbvBinary)
	{
		slot->val.binary.data = palloc(value->val.binary.len);
		memcpy(slot->val.binary.data, value->val.binary.data, value->val.binary.len);
	}
	MemoryContextSwitchTo(old_context);
}

/*
 * Add a number to the statistics of a metric.  One NaN makes everything but the
 * count NaN, in whatever order the numbers come.
 */
static void
add_number(Summary *summary, Metric *metric, Numeric number)
{
	if (metric->count++ == 0)
	{
		keep_number(summary, &metric->sum, round_digits(number, SUM_DIGITS));
		keep_number(summary, &metric->min, number);
		keep_number(summary, &metric->max, number);
		return;
	}
	keep_number(summary, &metric->sum,
				round_digits(numeric_add_opt_error(metric->sum, number, NULL), SUM_DIGITS));
	if (numeric_is_nan(number) ||
		(!numeric_is_nan(metric->min) && compare_numbers(number, metric->min) < 0))
		keep_number(summary, &metric->min, number);
	if (compare_numbers(number, metric->max) > 0)	/* NaN is greatest */
		keep_number(summary, &metric->max, number);
}

static void
read_metric(Summary *summary, Metric *metric, JsonbContainer *entry)
{
	JsonbValue	field;

	metric->type = getKeyJsonValueFromContainer(entry, "type", 4, &field) ?
		metric_type_by_name(&field) : type_string;
	if (getKeyJsonValueFromContainer(entry, "last", 4, &field))
		keep_value(summary, &metric->last, &field);
	metric->count = 0;
	if (metric->type != type_number)
		return;
	if (getKeyJsonValueFromContainer(entry, "count", 5, &field) && field.type == jbvNumeric)
		metric->count = DatumGetInt64(DirectFunctionCall1(numeric_int8,
														  NumericGetDatum(field.val.numeric)));
	if (metric->count == 0)
		return;
	if (getKeyJsonValueFromContainer(entry, "sum", 3, &field) && metric_is_number(&field))
		keep_number(summary, &metric->sum, number_value(&field));
	if (getKeyJsonValueFromContainer(entry, "min", 3, &field) && metric_is_number(&field))
		keep_number(summary, &metric->min, number_value(&field));
	if (getKeyJsonValueFromContainer(entry, "max", 3, &field) && metric_is_number(&field))
		keep_number(summary, &metric->max, number_value(&field));
	if (!metric->sum || !metric->min || !metric->max)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the stored summary of metric \"%.*s\" is not whole",
						metric->name.len, metric->name.text),
				 errhint("Call metrics_recompute_summary() for the trial.")));
}

static void
push_field(JsonbParseState **state, const char *name, JsonbValue value)
{
	JsonbValue	key = json_string(name);

	pushJsonbValue(state, WJB_KEY, &key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void
write_metric(JsonbParseState **state, const Metric *metric)
{
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	push_field(state, "type", json_string(metric->type));
	if (metric->type == type_number)
	{
		Numeric		count = int64_to_numeric(metric->count);
		Numeric		mean = numeric_div_opt_error(metric->sum, count, NULL);

		push_field(state, "count", number_to_json(count));
		push_field(state, "sum", number_to_json(metric->sum));
		push_field(state, "mean", number_to_json(round_digits(mean, MEAN_DIGITS)));
		push_field(state, "min", number_to_json(metric->min));
		push_field(state, "max", number_to_json(metric->max));
	}
	push_field(state, "last", metric->last);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/* A copy of a document, or NULL. */
static Jsonb *
copy_document(Jsonb *document)
{
	if (document == NULL)
		return NULL;
	return DatumGetJsonbP(datumCopy(JsonbPGetDatum(document), false, -1));
}

/*
 * Begin with a stored summary, or with NULL for none.  last_rows, stored beside
 * it, says which row of each group is the last.  The summary lives in a child
 * of the current memory context until summary_free().
 */
Summary *
summary_begin(Jsonb *metrics, Jsonb *last_rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "metrics_ext summary",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	Summary    *summary = palloc0(sizeof(Summary));

	summary->context = context;
	summary->scratch = AllocSetContextCreate(context, "metrics_ext summary scratch",
											 ALLOCSET_SMALL_SIZES);
	summary->metrics = copy_document(metrics);
	summary->last_rows = copy_document(last_rows);
	MemoryContextSwitchTo(old_context);
	return summary;
}

void
summary_free(Summary *summary)
{
	MemoryContextDelete(summary->context);
}

/* A metric that the group does not have yet; the name must live as long. */
static Metric *
add_metric(Group *group, MetricName name)
{
	bool		found;
	Metric	   *metric = metrics_insert(group->metrics, name, &found);

	metric->type = type_null;
	metric->count = 0;
	metric->sum = metric->min = metric->max = NULL;
	metric->last = json_null;
	return metric;
}

/* The group of that name, read from what is stored when it is first asked for. */
static Group *
find_group(Summary *summary, const char *name)
{
	MemoryContext old_context;
	Group	   *group;
	ListCell   *cell;
	JsonbValue	value;

	foreach(cell, summary->groups)
	{
		group = lfirst(cell);
		if (strcmp(group->name, name) == 0)
			return group;
	}

	old_context = MemoryContextSwitchTo(summary->context);
	group = palloc0(sizeof(Group));
	group->name = pstrdup(name);
	group->metrics = metrics_create(summary->context, 32, NULL);
	summary->groups = lappend(summary->groups, group);
	MemoryContextSwitchTo(old_context);

	if (summary->metrics &&
		getKeyJsonValueFromContainer(&summary->metrics->root, name, strlen(name), &value) &&
		value.type == jbvBinary && JsonContainerIsObject(value.val.binary.data))
	{
		JsonbIterator *it = JsonbIteratorInit(value.val.binary.data);
		JsonbIteratorToken token;

		while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
		{
			if (token == WJB_KEY)
			{
				MetricName	key = {value.val.string.val, value.val.string.len};
				Metric	   *metric = add_metric(group, key);

				JsonbIteratorNext(&it, &value, true);
				read_metric(summary, metric, value.val.binary.data);
			}
		}
	}
	if (summary->last_rows &&
		getKeyJsonValueFromContainer(&summary->last_rows->root, name, strlen(name), &value))
	{
		JsonbValue *last_time = getIthJsonbValueFromContainer(value.val.binary.data, 0);
		JsonbValue *last_id = getIthJsonbValueFromContainer(value.val.binary.data, 1);

		group->has_last = true;
		group->last_time = DatumGetInt64(DirectFunctionCall1(numeric_int8,
															 NumericGetDatum(last_time->val.numeric)));
		group->last_id = DatumGetInt64(DirectFunctionCall1(numeric_int8,
														   NumericGetDatum(last_id->val.numeric)));
	}
	return group;
}

/*
 * Add a row's metrics to a group.  For a report that was merged into a row
 * there is already, only its new metrics, with the end_time and id of the row.
 * The metrics need not outlive the call.
 */
void
summary_add(Summary *summary, const char *group_name, JsonbContainer *metrics,
			TimestampTz end_time, int64 id)
{
	MemoryContext old_context = MemoryContextSwitchTo(summary->scratch);
	Group	   *group = find_group(summary, group_name);
	bool		same_row = group->has_last && id == group->last_id;
	bool		is_last = same_row || !group->has_last || end_time > group->last_time ||
		(end_time == group->last_time && id > group->last_id);
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	if (is_last && !same_row)
	{
		metrics_iterator all;
		Metric	   *metric;

		metrics_start_iterate(group->metrics, &all);
		while ((metric = metrics_iterate(group->metrics, &all)) != NULL)
			keep_value(summary, &metric->last, &json_null);
		group->has_last = true;
		group->last_time = end_time;
		group->last_id = id;
	}

	it = JsonbIteratorInit(metrics);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		const char *type;
		MetricName	name;
		Metric	   *metric;

		CHECK_FOR_INTERRUPTS();
		if (token != WJB_KEY)
			continue;
		JsonbIteratorNext(&it, &value, true);
		type = metric_type(&value);

		name.text = key.val.string.val;
		name.len = key.val.string.len;
		metric = metrics_lookup(group->metrics, name);
		if (metric == NULL)
		{
			name.text = MemoryContextStrdup(summary->context, pnstrdup(name.text, name.len));
			metric = add_metric(group, name);
			metric->type = type;
		}
		else if (metric->type != type)
			metric->type = type_string; /* values of more than one type */

		if (metric->type == type_number)
			add_number(summary, metric, number_value(&value));
		if (is_last)
			keep_value(summary, &metric->last, &value);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(summary->scratch);
}

/* Push the members of a stored object whose keys are not among the groups. */
static void
push_other_groups(JsonbParseState **state, Summary *summary, Jsonb *stored)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	if (stored == NULL)
		return;
	it = JsonbIteratorInit(&stored->root);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		bool		replaced = false;
		ListCell   *cell;

		if (token != WJB_KEY)
			continue;
		JsonbIteratorNext(&it, &value, true);
		foreach(cell, summary->groups)
			replaced |= json_string_equals(&key, ((Group *) lfirst(cell))->name);
		if (!replaced)
		{
			pushJsonbValue(state, WJB_KEY, &key);
			pushJsonbValue(state, WJB_VALUE, &value);
		}
	}
}

/*
 * The summary and, in *last_rows, what summary_begin() wants beside it, in the
 * current memory context.
 */
Jsonb *
summary_finish(Summary *summary, Jsonb **last_rows)
{
	JsonbParseState *metrics_state = NULL;
	JsonbParseState *last_state = NULL;
	ListCell   *cell;

	pushJsonbValue(&metrics_state, WJB_BEGIN_OBJECT, NULL);
	push_other_groups(&metrics_state, summary, summary->metrics);
	pushJsonbValue(&last_state, WJB_BEGIN_OBJECT, NULL);
	push_other_groups(&last_state, summary, summary->last_rows);

	foreach(cell, summary->groups)
	{
		Group	   *group = lfirst(cell);
		JsonbValue	group_key = json_string(group->name);
		JsonbValue	last_time = number_to_json(int64_to_numeric(group->last_time));
		JsonbValue	last_id = number_to_json(int64_to_numeric(group->last_id));
		metrics_iterator all;
		Metric	   *metric;

		pushJsonbValue(&metrics_state, WJB_KEY, &group_key);
		pushJsonbValue(&metrics_state, WJB_BEGIN_OBJECT, NULL);
		metrics_start_iterate(group->metrics, &all);
		while ((metric = metrics_iterate(group->metrics, &all)) != NULL)
		{
			JsonbValue	key = {.type = jbvString};

			key.val.string.val = unconstify(char *, metric->name.text);
			key.val.string.len = metric->name.len;
			pushJsonbValue(&metrics_state, WJB_KEY, &key);
			write_metric(&metrics_state, metric);
		}
		pushJsonbValue(&metrics_state, WJB_END_OBJECT, NULL);

		pushJsonbValue(&last_state, WJB_KEY, &group_key);
		pushJsonbValue(&last_state, WJB_BEGIN_ARRAY, NULL);
		pushJsonbValue(&last_state, WJB_ELEM, &last_time);
		pushJsonbValue(&last_state, WJB_ELEM, &last_id);
		pushJsonbValue(&last_state, WJB_END_ARRAY, NULL);
	}

	*last_rows = JsonbValueToJsonb(pushJsonbValue(&last_state, WJB_END_OBJECT, NULL));
	return JsonbValueToJsonb(pushJsonbValue(&metrics_state, WJB_END_OBJECT, NULL));
}
