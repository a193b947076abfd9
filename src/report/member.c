/*
 * member.c
 *	  Members of the JSON objects that batches of reports consist of: read as the
 *	  types that they have to have, or refused by name.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "percentile/json_number.h"
#include "report/member.h"
#include "report/value.h"

pg_noreturn static void
not_a_number(const char *key, const JsonbValue *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("\"%s\" must be a number, got %s", key, metric_value_text(value)),
			 errhint("Give a number, without quotes.")));
}

int32
member_int32(const char *key, const JsonbValue *value)
{
	bool		failed;
	int32		number = 0;
	Datum		rounded;

	if (value->type != jbvNumeric)
		not_a_number(key, value);
	rounded = DirectFunctionCall2(numeric_trunc, NumericGetDatum(value->val.numeric), Int32GetDatum(0));
	failed = !DatumGetBool(DirectFunctionCall2(numeric_eq, rounded, NumericGetDatum(value->val.numeric)));
	if (!failed)
		number = numeric_int4_opt_error(value->val.numeric, &failed);
	if (failed)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("\"%s\" is out of range for type integer, got %s", key, metric_value_text(value)),
				 errhint("Give a whole number between -2147483648 and 2147483647.")));
	return number;
}

/* A number that a double can hold. */
double
member_double(const char *key, const JsonbValue *value)
{
	double		number;

	if (value->type != jbvNumeric)
		not_a_number(key, value);
	if (!json_number(value, &number))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("\"%s\" is out of range for type double precision, got %s", key, metric_value_text(value)),
				 errhint("Give a number that a double can hold.")));
	return number;
}

/* A whole number that is exact as a double; its range is the caller's to check. */
int64
member_count(const char *key, const JsonbValue *value)
{
	double		number = member_double(key, value);

	if (!(number >= -MAX_EXACT_COUNT && number <= MAX_EXACT_COUNT) || number != (double) (int64) number)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("\"%s\" is not a whole number within range, got %s", key, metric_value_text(value)),
				 errhint("Give a whole number of at most " INT64_FORMAT ".", (int64) MAX_EXACT_COUNT)));
	return (int64) number;
}

char *
member_string(const char *key, const JsonbValue *value)
{
	if (value->type != jbvString)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be a string, got %s", key, metric_value_text(value)),
				 errhint("Quote it.")));
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* A time must say its zone: the reporter's is not ours. */
TimestampTz
member_time(const char *key, const JsonbValue *value)
{
	char	   *text = member_string(key, value);

	if (!metric_is_timestamp(text, strlen(text), true))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DATETIME_FORMAT),
				 errmsg("\"%s\" must be an ISO 8601 time with a zone, got \"%s\"", key, text),
				 errhint("For example \"2024-02-29T13:04:49.388948-05:00\".")));
	return DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in, CStringGetDatum(text),
												   ObjectIdGetDatum(InvalidOid),
												   Int32GetDatum(-1)));
}
