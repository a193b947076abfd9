/*
 * name.c
 *	  Names for partitions.
 *
 * A name tells people what is in a partition; its identity is the bound.  So a
 * name is readable, safe to type without quotes where the key is, and free.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "partition/partition.h"

#define HASH_SUFFIX_LENGTH 9	/* "_" and eight digits */
#define MAX_PARENT_LENGTH 36

/* Append text as far as it fits into an identifier of a length, in whole characters. */
static void
append_clipped(StringInfo name, const char *text, int max_length)
{
	int			length = pg_mbcliplen(text, strlen(text), max_length - name->len);

	appendBinaryStringInfo(name, text, length);
}

/*
 * A key as part of a name: letters, digits and all that is not ASCII stay, the
 * rest becomes single underscores.
 */
static char *
slug(const char *key)
{
	StringInfoData result;

	initStringInfo(&result);
	for (; *key; key++)
	{
		unsigned char c = pg_ascii_tolower(*key);

		if (IS_HIGHBIT_SET(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			appendStringInfoChar(&result, c);
		else if (result.len > 0 && result.data[result.len - 1] != '_')
			appendStringInfoChar(&result, '_');
	}
	return result.data;
}

static bool
is_taken(const char *name, Oid namespace)
{
	return OidIsValid(get_relname_relid(name, namespace)) ||
		SearchSysCacheExists2(TYPENAMENSP, CStringGetDatum(name), ObjectIdGetDatum(namespace));
}

/*
 * A free name for the partition of a key, <parent>_<key>_<hash of the key>.  A
 * relation that happens to have the name is left alone: another hash is tried.
 */
char *
partition_name(Oid parent, const char *key)
{
	Oid			namespace = get_rel_namespace(parent);

	for (uint64 seed = 0;; seed++)
	{
		uint64		hash = hash_bytes_extended((const unsigned char *) key, strlen(key), seed);
		StringInfoData name;

		initStringInfo(&name);
		append_clipped(&name, get_rel_name(parent), MAX_PARENT_LENGTH);
		appendStringInfoChar(&name, '_');
		append_clipped(&name, slug(key), NAMEDATALEN - 1 - HASH_SUFFIX_LENGTH);
		if (name.data[name.len - 1] != '_')
			appendStringInfoChar(&name, '_');
		appendStringInfo(&name, "%08x", (uint32) hash);
		if (!is_taken(name.data, namespace))
			return name.data;
	}
}
