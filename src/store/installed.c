/*
 * installed.c
 *	  The store as somebody finds it who was not called through the extension:
 *	  the background worker.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_extension.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "store/store.h"

/* The schema of the extension in this database; InvalidOid if it has none. */
static Oid
extension_namespace(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	Oid			namespace = InvalidOid;
	ScanKeyData scan_key[1];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&scan_key[0], Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("metrics_ext"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, scan_key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		namespace = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return namespace;
}

/*
 * Open the store for reading, as store_open() does, but wait for nobody: whoever
 * has it for himself may be about to drop it.  Locks are kept until the end of
 * the transaction; a store of a layout that has nothing to maintain counts as
 * none.
 */
StoreAccess
store_open_installed(MetricsStore *store)
{
	Oid			namespace = extension_namespace();
	Oid			registry = OidIsValid(namespace) ? get_relname_relid("metrics_store", namespace) : InvalidOid;
	Oid			metrics;
	Oid			trials;

	if (!OidIsValid(registry))
		return STORE_ABSENT;
	if (!ConditionalLockRelationOid(registry, AccessShareLock))
		return STORE_BUSY;
	if (get_relname_relid("metrics_store", namespace) != registry ||
		!store_find_registered(registry, store))
		return STORE_ABSENT;

	metrics = store->metrics;
	trials = get_relname_relid("trials", store->namespace);
	if (!OidIsValid(trials))
		return STORE_ABSENT;
	if (!ConditionalLockRelationOid(trials, AccessShareLock) ||
		!ConditionalLockRelationOid(metrics, AccessShareLock))
		return STORE_BUSY;

	/* Now that it stays as it is. */
	if (!store_find_registered(registry, store) || store->metrics != metrics)
		return STORE_ABSENT;
	store->layout = store_read_layout(store);
	store->active = store_is_active(store);
	return store->layout < LAYOUT_1_3 ? STORE_ABSENT : STORE_OPEN;
}
