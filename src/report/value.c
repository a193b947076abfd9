/*
 * value.c
 *	  Values of metrics: what a JSON value is to us, and how it is shown.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "report/value.h"

/* As much of a document as a message shows. */
#define MESSAGE_BYTES 100

/* Is a JSON string this text? */
bool
json_string_equals(const JsonbValue *value, const char *text)
{
	return value->val.string.len == (int) strlen(text) &&
		memcmp(value->val.string.val, text, value->val.string.len) == 0;
}

/* A document for a message: its text, cut to what a reader wants to see of it. */
const char *
metric_document_text(Jsonb *document)
{
	char	   *text = JsonbToCString(NULL, &document->root, 0);
	int			len = strlen(text);

	if (len > MESSAGE_BYTES)
	{
		len = pg_mbcliplen(text, len, MESSAGE_BYTES);
		return psprintf("%s...", pnstrdup(text, len));
	}
	return text;
}

/* The same for a value in a document. */
const char *
metric_value_text(const JsonbValue *value)
{
	return metric_document_text(JsonbValueToJsonb(unconstify(JsonbValue *, value)));
}

/* Is a value a number: one of JSON's, or a special one spelled as a string? */
bool
metric_is_number(const JsonbValue *value)
{
	return value->type == jbvNumeric ||
		(value->type == jbvString &&
		 (json_string_equals(value, "NaN") ||
		  json_string_equals(value, "Infinity") ||
		  json_string_equals(value, "-Infinity")));
}

/*
 * Is a text of the form YYYY-MM-DDTHH:MM:SS[.f…][Z|±HH:MM]?  The form only, as
 * upstream has it: the values are not looked at.
 */
bool
metric_is_timestamp(const char *text, int len, bool zone_required)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd";
	static const char offset[] = "dd:dd";
	int			pos = 0;

	for (const char *f = form; *f; f++, pos++)
	{
		if (pos >= len || (*f == 'd' ? !isdigit((unsigned char) text[pos]) : text[pos] != *f))
			return false;
	}
	if (pos < len && text[pos] == '.')
	{
		int			start = ++pos;

		while (pos < len && isdigit((unsigned char) text[pos]))
			pos++;
		if (pos == start)
			return false;
	}
	if (pos == len)
		return !zone_required;
	if (text[pos] == 'Z')
		return pos + 1 == len;
	if (text[pos] != '+' && text[pos] != '-')
		return false;
	pos++;
	for (const char *f = offset; *f; f++, pos++)
	{
		if (pos >= len || (*f == 'd' ? !isdigit((unsigned char) text[pos]) : text[pos] != *f))
			return false;
	}
	return pos == len;
}

const char *const type_number = "number";
const char *const type_string = "string";
const char *const type_date = "date";
const char *const type_boolean = "boolean";
const char *const type_object = "object";
const char *const type_array = "array";
const char *const type_null = "null";

/* The type of a metric's value: one of the constants, so compare by address. */
const char *
metric_type(const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvNull:
			return type_null;
		case jbvBool:
			return type_boolean;
		case jbvNumeric:
			return type_number;
		case jbvString:
			if (metric_is_number(value))
				return type_number;
			return metric_is_timestamp(value->val.string.val, value->val.string.len, false) ?
				type_date : type_string;
		case jbvBinary:
			return JsonContainerIsArray(value->val.binary.data) ? type_array : type_object;
		default:
			elog(ERROR, "unexpected jsonb value type %d", (int) value->type);
	}
}

/* The type with that name. */
const char *
metric_type_by_name(const JsonbValue *name)
{
	const char *const types[] = {type_number, type_string, type_date, type_boolean,
	type_object, type_array, type_null};

	for (int i = 0; i < (int) lengthof(types); i++)
	{
		if (name->type == jbvString && json_string_equals(name, types[i]))
			return types[i];
	}
	return type_string;			/* not written by us: keep it, without statistics */
}
