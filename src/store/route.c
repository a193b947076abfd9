/*
 * route.c
 *	  Which partition key a metric group is routed to.
 *
 * Each report asks this, so it goes below SQL, as in store.c: a group with a
 * route of its own costs two index lookups.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_collation.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "partition/list_table.h"
#include "store/store.h"

/* Does a pattern count before another?  The longer does, or the first by bytes. */
static bool
outranks(Datum pattern, Datum other)
{
	text	   *a = DatumGetTextPP(pattern);
	text	   *b = DatumGetTextPP(other);
	Size		alen = VARSIZE_ANY_EXHDR(a);
	Size		blen = VARSIZE_ANY_EXHDR(b);

	return alen > blen || (alen == blen && memcmp(VARDATA_ANY(a), VARDATA_ANY(b), alen) < 0);
}

/*
 * The key of the pattern that counts for a group; false if the group is like
 * none.  The key is NULL where the group is one itself.
 */
static bool
match_pattern(const MetricsStore *store, const char *group, char **key)
{
	Relation	rel = table_open(store_relation(store, "metrics_route_pattern"), AccessShareLock);
	TupleDesc	desc = RelationGetDescr(rel);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, snapshot, 0, NULL);
	Datum		subject = CStringGetTextDatum(group);
	Datum		best = 0;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		pattern = heap_getattr(tuple, 1, desc, &isnull);
		Datum		value;

		if (!DatumGetBool(DirectFunctionCall2Coll(textlike, C_COLLATION_OID, subject, pattern)) ||
			(best != 0 && !outranks(pattern, best)))
			continue;
		best = datumCopy(pattern, false, -1);
		value = heap_getattr(tuple, 2, desc, &isnull);
		*key = isnull ? NULL : TextDatumGetCString(value);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return best != 0;
}

/* The partition key that a metric group is routed to, and of which kind it is. */
void
store_route(const MetricsStore *store, const char *group, StoreRoute *route)
{
	bool		derived = false;
	Datum		value;

	route->key = "GENERIC";
	if (store_read_value(store_relation(store, "metrics_route"), group, &value))
		route->key = TextDatumGetCString(value);
	else if (store->layout >= LAYOUT_1_3 && match_pattern(store, group, &route->key) &&
			 route->key == NULL)
	{
		derived = true;
		route->key = pstrdup(group);
	}

	if (store_read_value(store_relation(store, "metrics_partition_kind"), route->key, &value))
		route->by_time = strcmp(TextDatumGetCString(value), "time") == 0;
	else if (derived)
		route->by_time = true;
	else
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partition key \"%s\" has no kind in table \"%s.metrics_partition_kind\"",
						route->key, store->schema),
				 errhint("Insert it again, with kind \"batch\" or \"time\".")));

	/* Those that wait can be any number, and each literal leaves a plan in the session. */
	route->waits = route->by_time && store->layout >= LAYOUT_1_3 &&
		!OidIsValid(list_table_partition(store->metrics, CStringGetTextDatum(route->key)));
	if (route->waits && !OidIsValid(get_default_partition_oid(store->metrics)))
		route->literal = "NULL::text";
	else
		route->literal = psprintf("%s%s", quote_literal_cstr(route->key), store_key_cast(store));
}
