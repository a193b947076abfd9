/*
 * status.c
 *	  What the worker does, what it did, and what it could not do.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "maintenance/maintenance.h"
#include "store/store.h"
#include "worker/worker.h"

PG_FUNCTION_INFO_V1(metrics_worker_status);

static const StoreQuery pending_query = {
	"SELECT pg_catalog.count(*) FROM @store@.metrics_pending", .reader = true
};

/*
 * How many rows wait.  Counted as the owner, for readers may not see the rows:
 * these have not passed the policies of metrics yet.
 */
static Datum
count_pending(const MetricsStore *store)
{
	bool		isnull;
	Datum		count;

	SPI_connect();
	managed_execute(store, &pending_query, NULL, NULL);
	count = store_column(1, &isnull);
	SPI_finish();
	return count;
}

/*
 * Who works is read from the locks, which everybody may see; what he does, from
 * what PostgreSQL shows the caller.
 */
static const StoreQuery status_query = {
	"SELECT m.parent, w.pid, w.activity, m.partitions_created, m.rows_moved, m.last_change,"
	" CASE WHEN m.parent::pg_catalog.oid OPERATOR(pg_catalog.=) $1 THEN $2 END,"
	" (SELECT pg_catalog.count(*) FROM @store@.metrics_failure f WHERE f.parent::pg_catalog.oid OPERATOR(pg_catalog.=) m.parent::pg_catalog.oid),"
	" l.partition_key, l.sqlstate, l.message, l.attempts, l.next_attempt"
	" FROM @store@.metrics_managed_table m"
	" LEFT JOIN (SELECT l.pid, CASE WHEN a.state OPERATOR(pg_catalog.=) 'active' THEN a.query END AS activity"
	"  FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid"
	"  WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory' AND l.database OPERATOR(pg_catalog.=) $3"
	"  AND l.objsubid OPERATOR(pg_catalog.=) $4 AND l.granted) w ON true"
	" LEFT JOIN LATERAL (SELECT * FROM @store@.metrics_failure f"
	"  WHERE f.parent::pg_catalog.oid OPERATOR(pg_catalog.=) m.parent::pg_catalog.oid"
	"  ORDER BY f.failed_at DESC, f.partition_key LIMIT 1) l ON true"
	" ORDER BY m.parent::pg_catalog.oid",
	.reader = true, .nargs = 4, .argtypes = {OIDOID, INT8OID, OIDOID, INT2OID}
};

/* metrics_worker_status(), for the view of that name */
Datum
metrics_worker_status(PG_FUNCTION_ARGS)
{
	MetricsStore store;
	Datum		values[4];

	if (store_find(fcinfo, &store))
		store_open(fcinfo, AccessShareLock, &store);
	if (store.layout < LAYOUT_1_3)
	{
		InitMaterializedSRF(fcinfo, 0);
		return (Datum) 0;
	}

	values[0] = ObjectIdGetDatum(store.metrics);
	values[1] = count_pending(&store);
	values[2] = ObjectIdGetDatum(MyDatabaseId);
	values[3] = Int16GetDatum(WORKER_LOCK_CLASS);
	store_return_rows(fcinfo, &store, &status_query, NULL, values, NULL);
	return (Datum) 0;
}
