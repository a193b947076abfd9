/*
 * jsonb_summary.c
 *	  Aggregate metrics_summary(metrics jsonb [, path text[]]).
 *
 * Numbers go to a sketch of the default error: its size has a bound whatever
 * the number of documents, partial ones merge without a trace, and adding to
 * it costs less than keeping every value for the exact answer.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "common/shortest_dec.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "args.h"
#include "percentile/json_document.h"
#include "percentile/json_summary.h"

PG_FUNCTION_INFO_V1(metrics_summary_add);
PG_FUNCTION_INFO_V1(metrics_summary_combine);
PG_FUNCTION_INFO_V1(metrics_summary_serialize);
PG_FUNCTION_INFO_V1(metrics_summary_deserialize);
PG_FUNCTION_INFO_V1(metrics_summary_final);

#define SERIAL_VERSION 1

/*
 * Arguments: state, metrics and, maybe, path.  A row with a NULL in it is
 * skipped; a document that is no object, or has none at the path, has no keys.
 */
Datum
metrics_summary_add(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Summary    *summary = PG_ARGISNULL(0) ? NULL : (Summary *) PG_GETARG_POINTER(0);
	JsonReader *reader;
	Jsonb	   *document;
	JsonbValue	value;

	if (PG_ARGISNULL(1) || (PG_NARGS() > 2 && PG_ARGISNULL(2)))
	{
		if (summary == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(summary);
	}

	if (summary == NULL)
		summary = summary_create(context);
	reader = json_reader(fcinfo);
	document = json_reader_document(reader, PG_GETARG_DATUM(1));
	if (PG_NARGS() == 2)
	{
		if (JB_ROOT_IS_OBJECT(document))
			summary_add_object(summary, summary->root, &document->root);
	}
	else
	{
		json_reader_path(reader, PG_GETARG_DATUM(2));
		if (json_reader_find(reader, document, &value) && value.type == jbvBinary &&
			JsonContainerIsObject(value.val.binary.data))
			summary_add_object(summary, summary->root, value.val.binary.data);
	}
	json_reader_release(reader, document, PG_GETARG_DATUM(1));
	PG_RETURN_POINTER(summary);
}

Datum
metrics_summary_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo);
	Summary    *summary = PG_ARGISNULL(0) ? NULL : (Summary *) PG_GETARG_POINTER(0);
	Summary    *other = PG_ARGISNULL(1) ? NULL : (Summary *) PG_GETARG_POINTER(1);

	if (other == NULL)
	{
		if (summary == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(summary);
	}
	if (summary == NULL)
		summary = summary_create(context);
	summary_merge(summary, other);
	PG_RETURN_POINTER(summary);
}

/* Write the numbers of a key. */
static void
send_numbers(StringInfo buf, Summary *summary, SummaryNumbers *numbers)
{
	unsigned char *encoded;
	Size		size;

	summary_flush(summary, numbers);
	encoded = palloc(sketch_encoded_size(&numbers->sketch));
	size = sketch_encode(&numbers->sketch, encoded);
	pq_sendint32(buf, size);
	pq_sendbytes(buf, (const char *) encoded, size);
	pfree(encoded);
}

/* Version, number of keys; of each where it stands, its name and what is known. */
Datum
metrics_summary_serialize(PG_FUNCTION_ARGS)
{
	Summary    *summary = (Summary *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, SERIAL_VERSION);
	pq_sendint32(&buf, summary->nkeys);
	for (int i = 0; i < summary->nkeys; i++)
	{
		SummaryKey *key = summary->keys[i];

		CHECK_FOR_INTERRUPTS();
		pq_sendint32(&buf, key->object->key == NULL ? -1 : key->object->key->index);
		pq_sendint32(&buf, key->len);
		pq_sendbytes(&buf, key->name, key->len);
		pq_sendbyte(&buf, key->types);
		pq_sendint64(&buf, key->skipped);
		pq_sendint64(&buf, key->opened);
		if (key->numbers == NULL)
			pq_sendint32(&buf, 0);
		else
			send_numbers(&buf, summary, key->numbers);
	}
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

static void
invalid_serial(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid partial result of metrics_summary"),
			 errdetail_internal("%s", detail)));
}

/* Read the numbers of a key. */
static void
receive_numbers(StringInfo buf, Summary *summary, SummaryKey *key)
{
	int			size = pq_getmsgint(buf, 4);
	const unsigned char *data;
	Sketch	   *sketch;
	const char *problem;

	if (size == 0)
		return;
	if (size < 0)
		invalid_serial("negative size");
	data = (const unsigned char *) pq_getmsgbytes(buf, size);
	sketch = &summary_numbers(summary, key)->sketch;
	problem = sketch_decode(sketch, data, size);
	if (problem != NULL)
		invalid_serial(problem);
	if (sketch->relative_error != SKETCH_DEFAULT_ERROR)
		invalid_serial("another relative error");
}

Datum
metrics_summary_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *serial;
	StringInfoData buf;
	Summary    *summary;
	int			nkeys;

	aggregate_context(fcinfo);
	serial = PG_GETARG_BYTEA_PP(0);
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(serial), VARSIZE_ANY_EXHDR(serial));

	if (pq_getmsgbyte(&buf) != SERIAL_VERSION)
		invalid_serial("unknown version");
	nkeys = pq_getmsgint(&buf, 4);
	if (nkeys < 0 || nkeys > SUMMARY_MAX_KEYS)
		invalid_serial("number of keys out of range");

	summary = summary_create(CurrentMemoryContext);
	for (int i = 0; i < nkeys; i++)
	{
		int			parent = pq_getmsgint(&buf, 4);
		int			len = pq_getmsgint(&buf, 4);
		SummaryObject *object = summary->root;
		SummaryKey *key;

		if (parent < -1 || parent >= i || len < 0)
			invalid_serial("key out of place");
		if (parent >= 0)
			object = summary_below(summary, summary->keys[parent]);
		if (object->depth >= SUMMARY_MAX_DEPTH)
			invalid_serial("key too deep");
		key = summary_key(summary, object, pq_getmsgbytes(&buf, len), len);
		if (summary->nkeys != i + 1)
			invalid_serial("duplicate key");
		key->types = pq_getmsgbyte(&buf);
		key->skipped = pq_getmsgint64(&buf);
		key->opened = pq_getmsgint64(&buf);
		if ((key->types & ~SUMMARY_ALL_TYPES) != 0 || key->skipped < 0 || key->opened < 0)
			invalid_serial("counts out of range");
		receive_numbers(&buf, summary, key);
	}
	pq_getmsgend(&buf);
	pfree(buf.data);
	PG_RETURN_POINTER(summary);
}

/*
 * The path of a key below the root.  Dots part its keys; a key that is empty or
 * has a dot or a double quote in it stands in double quotes, with its own
 * doubled, so that two paths are never the same text.
 */
static void
append_path(StringInfo buf, const SummaryKey *key)
{
	bool		quoted = key->len == 0 || memchr(key->name, '.', key->len) != NULL ||
		memchr(key->name, '"', key->len) != NULL;

	if (key->object->key != NULL)
	{
		append_path(buf, key->object->key);
		appendStringInfoChar(buf, '.');
	}
	if (!quoted)
	{
		appendBinaryStringInfo(buf, key->name, key->len);
		return;
	}
	appendStringInfoChar(buf, '"');
	for (int i = 0; i < key->len; i++)
	{
		if (key->name[i] == '"')
			appendStringInfoChar(buf, '"');
		appendStringInfoChar(buf, key->name[i]);
	}
	appendStringInfoChar(buf, '"');
}

static void
push_string(JsonbParseState **parse, JsonbIteratorToken token, const char *text, int len)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = len;
	pushJsonbValue(parse, token, &value);
}

static void
push_integer(JsonbParseState **parse, const char *name, int64 integer)
{
	JsonbValue	value = {.type = jbvNumeric};

	push_string(parse, WJB_KEY, name, strlen(name));
	value.val.numeric = int64_to_numeric(integer);
	pushJsonbValue(parse, WJB_VALUE, &value);
}

/* A number as to_jsonb(float8) gives it; null if there are none to speak of. */
static void
push_number(JsonbParseState **parse, const char *name, double number, bool isnull)
{
	JsonbValue	value = {.type = jbvNull};
	char	   *text;

	push_string(parse, WJB_KEY, name, strlen(name));
	if (isnull)
	{
		pushJsonbValue(parse, WJB_VALUE, &value);
		return;
	}
	text = double_to_shortest_decimal(number);
	if (!isfinite(number))
	{
		push_string(parse, WJB_VALUE, text, strlen(text));
		return;
	}
	value.type = jbvNumeric;
	value.val.numeric = DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
															ObjectIdGetDatum(InvalidOid),
															Int32GetDatum(-1)));
	pushJsonbValue(parse, WJB_VALUE, &value);
}

/* What types, a set of SUMMARY_…, are called. */
static const char *
type_name(int types)
{
	switch (types & ~SUMMARY_NULL)
	{
		case 0:
			return "null";
		case SUMMARY_NUMBER:
			return "number";
		case SUMMARY_STRING:
			return "string";
		case SUMMARY_BOOLEAN:
			return "boolean";
		case SUMMARY_ARRAY:
			return "array";
		case SUMMARY_OBJECT:
			return "object";
		default:
			return "mixed";
	}
}

static void
push_key(JsonbParseState **parse, Summary *summary, SummaryKey *key)
{
	static const Sketch no_numbers = {0};
	const Sketch *sketch = &no_numbers;
	bool		none = key->numbers == NULL;
	int			types = key->types;
	int64		skipped = key->skipped;
	const char *type;
	StringInfoData path;

	/* Objects that have entries of their own below need none here ... */
	if (key->opened > 0)
	{
		if ((types & ~SUMMARY_NULL) == 0)
			return;
		/* ... but where there was something else, too, they tell. */
		types |= SUMMARY_OBJECT;
		if (pg_add_s64_overflow(skipped, key->opened, &skipped))
			skipped = PG_INT64_MAX;
	}

	initStringInfo(&path);
	append_path(&path, key);
	push_string(parse, WJB_KEY, path.data, path.len);
	if (!none)
	{
		summary_flush(summary, key->numbers);
		sketch_store_order(&key->numbers->sketch.negative);
		sketch_store_order(&key->numbers->sketch.positive);
		sketch = &key->numbers->sketch;
	}

	pushJsonbValue(parse, WJB_BEGIN_OBJECT, NULL);
	type = type_name(types);
	push_string(parse, WJB_KEY, "type", 4);
	push_string(parse, WJB_VALUE, type, strlen(type));
	push_integer(parse, "count", sketch->count);
	push_number(parse, "min", none ? 0 : sketch_min(sketch), none);
	push_number(parse, "max", none ? 0 : sketch_max(sketch), none);
	push_number(parse, "sum", none ? 0 : sketch_sum(sketch), none);
	push_number(parse, "mean", none ? 0 : sketch_mean(sketch), none);
	push_number(parse, "p50", none ? 0 : sketch_percentile(sketch, 0.5), none);
	push_number(parse, "p95", none ? 0 : sketch_percentile(sketch, 0.95), none);
	push_number(parse, "p99", none ? 0 : sketch_percentile(sketch, 0.99), none);
	push_integer(parse, "nan", sketch->nan);
	push_integer(parse, "skipped", skipped);
	pushJsonbValue(parse, WJB_END_OBJECT, NULL);
}

/* The summary as one object, {} without keys; NULL without documents. */
Datum
metrics_summary_final(PG_FUNCTION_ARGS)
{
	Summary    *summary;
	JsonbParseState *parse = NULL;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	summary = (Summary *) PG_GETARG_POINTER(0);

	pushJsonbValue(&parse, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < summary->nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		push_key(&parse, summary, summary->keys[i]);
	}
	PG_RETURN_JSONB_P(JsonbValueToJsonb(pushJsonbValue(&parse, WJB_END_OBJECT, NULL)));
}
