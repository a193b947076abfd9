/*
 * route_group.c
 *	  Routing metric groups to partition keys.
 *
 * A route is a row that store_route() reads.  What is like no other group is
 * found by its name, in metrics_route; the rest is in metrics_route_pattern.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "args.h"
#include "maintenance/maintenance.h"

PG_FUNCTION_INFO_V1(metrics_route_group);
PG_FUNCTION_INFO_V1(metrics_unroute_group);

/* A pattern of LIKE; without wildcards it is the group itself. */
typedef struct GroupPattern
{
	char	   *text;			/* what the table of routes has: the pattern, or the group */
	bool		has_wildcard;
} GroupPattern;

/* Read a pattern; an error if no group can be like it. */
static void
read_pattern(text *arg, GroupPattern *pattern)
{
	char	   *text = text_to_cstring(arg);
	char	   *group = palloc(strlen(text) + 1);
	char	   *end = group;

	if (text[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pattern of metric groups cannot be empty"),
				 errhint("Name a group, or a pattern of LIKE, for example 'node_%%'.")));
	if (strlen(text) > STORE_MAX_KEY_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("pattern of %zu bytes is too long", strlen(text)),
				 errhint("The limit is %d bytes.", STORE_MAX_KEY_BYTES)));
	if (strchr(text, '.') != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pattern \"%s\" contains '.', which no metric group does", text),
				 errhint("A dot separates the group from the name of a metric; leave both out.")));

	pattern->has_wildcard = false;
	for (const char *c = text; *c; c++)
	{
		if (*c == '%' || *c == '_')
			pattern->has_wildcard = true;
		if (*c == '\\' && *++c == '\0')
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_ESCAPE_SEQUENCE),
					 errmsg("pattern \"%s\" ends with the escape character", text),
					 errhint("Write \\\\ for a backslash.")));
		*end++ = *c;
	}
	*end = '\0';
	pattern->text = pattern->has_wildcard ? text : group;
}

/*
 * Make sure that there is a key of a kind.  One of kind batch gets its partition
 * now; that of a key of kind time is made when the first report waits for it.
 */
static void
add_key(const MetricsStore *store, const char *key, const char *kind)
{
	managed_add_key(store, key, kind);
	if (strcmp(kind, "batch") == 0)
		(void) managed_add_now(store, store->metrics, key);
}

static const StoreQuery route_query = {
	"INSERT INTO @store@.metrics_route AS r (metric_group, partition_key) VALUES ($1, $2)"
	" ON CONFLICT (metric_group) DO UPDATE SET partition_key = EXCLUDED.partition_key"
	" WHERE r.partition_key <> EXCLUDED.partition_key",
	.nargs = 2, .argtypes = {TEXTOID, TEXTOID}
};

static const StoreQuery route_pattern_query = {
	"INSERT INTO @store@.metrics_route_pattern AS r (pattern, partition_key) VALUES ($1, $2)"
	" ON CONFLICT (pattern) DO UPDATE SET partition_key = EXCLUDED.partition_key"
	" WHERE r.partition_key IS DISTINCT FROM EXCLUDED.partition_key",
	.nargs = 2, .argtypes = {TEXTOID, TEXTOID}
};

/*
 * metrics_route_group(pattern, partition_key, kind) → text
 *
 * Acts as the owner of the store.  Reports of the transactions that follow go
 * where the route says; rows stay where they are.
 */
Datum
metrics_route_group(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"pattern", NULL, "kind"};
	MetricsStore store;
	GroupPattern pattern;
	char	   *key;
	char	   *kind;
	Datum		values[2];
	char		nulls[] = "  ";

	check_not_null(fcinfo, names, lengthof(names));
	read_pattern(PG_GETARG_TEXT_PP(0), &pattern);
	key = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	kind = text_to_cstring(PG_GETARG_TEXT_PP(2));
	managed_check_kind(kind);
	if (key == NULL && pattern.has_wildcard && strcmp(kind, "time") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the groups that are like pattern \"%s\" cannot each be a key of kind \"%s\"",
						pattern.text, kind),
				 errhint("A partition of kind \"batch\" is made together with its route: name its key, or route each group.")));
	if (key == NULL && !pattern.has_wildcard)
		key = pattern.text;

	PreventCommandIfReadOnly("metrics_route_group()");
	managed_open_store(fcinfo, &store);
	store_check_owner(&store);
	SPI_connect();
	if (key)
		add_key(&store, key, kind);
	values[0] = CStringGetTextDatum(pattern.text);
	values[1] = key ? CStringGetTextDatum(key) : (Datum) 0;
	nulls[1] = key ? ' ' : 'n';
	managed_execute(&store, pattern.has_wildcard ? &route_pattern_query : &route_query, values, nulls);
	SPI_finish();
	if (key == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(key));
}

static const StoreQuery unroute_query = {
	"DELETE FROM @store@.metrics_route WHERE metric_group = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

static const StoreQuery unroute_pattern_query = {
	"DELETE FROM @store@.metrics_route_pattern WHERE pattern = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

/*
 * metrics_unroute_group(pattern) → boolean
 *
 * Keys, partitions and rows stay.
 */
Datum
metrics_unroute_group(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"pattern"};
	MetricsStore store;
	GroupPattern pattern;
	Datum		values[1];
	bool		was_routed;

	check_not_null(fcinfo, names, lengthof(names));
	read_pattern(PG_GETARG_TEXT_PP(0), &pattern);
	PreventCommandIfReadOnly("metrics_unroute_group()");
	managed_open_store(fcinfo, &store);
	store_check_owner(&store);
	SPI_connect();
	values[0] = CStringGetTextDatum(pattern.text);
	was_routed = managed_execute(&store, pattern.has_wildcard ? &unroute_pattern_query : &unroute_query,
								 values, NULL) > 0;
	SPI_finish();
	PG_RETURN_BOOL(was_routed);
}
