/*
 * active.c
 *	  Where maintenance may run by itself.
 *
 * A store that comes out of a dump must be left alone until it is whole: a
 * partition added while pg_restore still makes indexes would leave the
 * parent's key invalid.  So a store bears a mark that names the server, the
 * database and the table which it is for.  A dump carries the mark along, but
 * it does not fit the copy, until somebody writes to that.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "sql.h"
#include "store/store.h"
#include "worker/worker.h"

/* The mark that fits the store as it stands here. */
static char *
fitting_mark(const MetricsStore *store)
{
	return psprintf(UINT64_FORMAT "/%u/%u", GetSystemIdentifier(), MyDatabaseId,
					store->metrics);
}

/*
 * Does the store bear the mark?  It has a place for it since layout 1.3; there
 * is nothing to maintain in an older one.
 */
bool
store_is_active(const MetricsStore *store)
{
	Datum		mark;

	if (store->layout < LAYOUT_1_3)
		return true;
	return store_read_value(store_relation(store, "metrics_layout"), layout_name(store->layout), &mark) &&
		strcmp(TextDatumGetCString(mark), fitting_mark(store)) == 0;
}

static const StoreQuery mark_query = {
	"UPDATE @store@.metrics_layout SET active_in = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

/*
 * Put the mark on a store that is open for writing, and have the worker look
 * at it after the commit.
 *
 * Reporters must not wait for each other for this, so it is left to whoever
 * gets the lock on metrics_layout; nor may it fail for those whose snapshot is
 * older than somebody else's mark, so it goes by a new one, which the lock and
 * that on trials keep true.
 */
void
store_activate(const MetricsStore *store)
{
	Oid			layout_relation = store_relation(store, "metrics_layout");
	Datum		values[] = {CStringGetTextDatum(fitting_mark(store))};
	SavedIdentity saved;
	Snapshot	snapshot;

	if (XactReadOnly || store->layout < LAYOUT_1_3 ||
		!ConditionalLockRelationOid(layout_relation, ShareUpdateExclusiveLock) ||
		store_is_active(store))
		return;

	/* store_open() must look again, in all sessions and if we roll back. */
	CacheInvalidateRelcacheByRelid(store->registry);

	act_as(store_owner(store), "pg_catalog, pg_temp", &saved);
	SPI_connect();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	store_execute_at(store, &mark_query, NULL, values, snapshot);
	UnregisterSnapshot(snapshot);
	SPI_finish();
	act_as_before(&saved);

	worker_request();
}
