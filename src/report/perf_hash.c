/*
 * perf_hash.c
 *	  The hash by which Perfherder's clients name a series:
 *	  metrics_perf_signature_hash().
 *
 * It is the SHA-1 of the keys and values of the properties, sorted and joined
 * without a separator.  So two series can have the same ({suite a, test b} and
 * {suite b, test a} do): it serves look-ups, and nothing else.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "common/sha1.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "report/perf_hash.h"

PG_FUNCTION_INFO_V1(metrics_perf_signature_hash);

static const char *
to_utf8(const char *text)
{
	return pg_server_to_any(text, strlen(text), PG_UTF8);
}

/*
 * A JSON document as Python writes it: the same as PostgreSQL, but for
 * characters outside ASCII, which are escaped as UTF-16.
 */
static char *
json_as_python(Jsonb *document)
{
	const unsigned char *c = (const unsigned char *) to_utf8(JsonbToCString(NULL, &document->root, 0));
	StringInfoData buf;

	initStringInfo(&buf);
	for (; *c; c += pg_utf_mblen(c))
	{
		pg_wchar	code = utf8_to_unicode(c);

		if (code < 0x7F)
			appendStringInfoChar(&buf, *c);
		else if (code < 0x10000)
			appendStringInfo(&buf, "\\u%04x", (unsigned int) code);
		else
			appendStringInfo(&buf, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
							 0xDC00 + (code & 0x3FF));
	}
	return buf.data;
}

static int
compare_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The SHA-1 of a UTF-8 text in hexadecimal. */
static char *
sha1_hex(const char *text)
{
	uint8		digest[SHA1_DIGEST_LENGTH];
	char	   *hex = palloc0(2 * SHA1_DIGEST_LENGTH + 1);
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA1);

	if (context == NULL || pg_cryptohash_init(context) < 0 ||
		pg_cryptohash_update(context, (const uint8 *) text, strlen(text)) < 0 ||
		pg_cryptohash_final(context, digest, sizeof(digest)) < 0)
		elog(ERROR, "could not compute SHA-1");
	pg_cryptohash_free(context);
	hex_encode((const char *) digest, sizeof(digest), hex);
	return hex;
}

/* The SHA-1 of a text of the database. */
char *
perf_text_hash(const char *text)
{
	return sha1_hex(to_utf8(text));
}

/* The hash of properties, a JSON object; strings count as they are, other values as JSON. */
char *
perf_properties_hash(Jsonb *properties)
{
	int			nparts = 0;
	const char **parts = palloc_array(const char *, 2 * JB_ROOT_COUNT(properties) + 1);
	JsonbIterator *it = JsonbIteratorInit(&properties->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	StringInfoData buf;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token != WJB_KEY && token != WJB_VALUE)
			continue;
		parts[nparts++] = value.type == jbvString ?
			to_utf8(pnstrdup(value.val.string.val, value.val.string.len)) :
			json_as_python(JsonbValueToJsonb(&value));
	}
	qsort(parts, nparts, sizeof(char *), compare_bytes);
	initStringInfo(&buf);
	for (int i = 0; i < nparts; i++)
		appendStringInfoString(&buf, parts[i]);
	return sha1_hex(buf.data);
}

/* metrics_perf_signature_hash(properties) → text */
Datum
metrics_perf_signature_hash(PG_FUNCTION_ARGS)
{
	Jsonb	   *properties = PG_GETARG_JSONB_P(0);

	if (!JB_ROOT_IS_OBJECT(properties))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("properties must be a JSON object"),
				 errhint("For example {\"suite\": \"tp5o\", \"machine_platform\": \"linux64\", \"option_collection_hash\": \"…\"}.")));
	PG_RETURN_TEXT_P(cstring_to_text(perf_properties_hash(properties)));
}
