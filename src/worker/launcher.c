/*
 * launcher.c
 *	  The launcher: has a worker look into each database from time to time.
 *
 * Reports start workers by themselves; this is for what comes due later, and
 * for what happens without a report.  It needs the library to be preloaded, and
 * like autovacuum's launcher it is connected to no database.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "worker/worker.h"

#define LAUNCHER_TYPE "metrics_ext launcher"

/* After how long the launcher comes back when it had to end, in s. */
#define RESTART_TIME 5

/* How long to wait for a slot for a worker before asking again, in ms. */
#define SLOT_TIME 1000

/* Register the launcher, if the library is being preloaded. */
void
worker_init(void)
{
	BackgroundWorker worker = {
		.bgw_name = LAUNCHER_TYPE,
		.bgw_type = LAUNCHER_TYPE,
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = RESTART_TIME,
		.bgw_library_name = "metrics_ext",
		.bgw_function_name = "metrics_launcher_main",
	};

	if (process_shared_preload_libraries_in_progress)
		RegisterBackgroundWorker(&worker);
}

/*
 * Wait until the time is over or something happens.  Here, and only here, the
 * launcher obeys signals; it exits with 1 because 0 would mean never to start
 * it again.
 */
static void
nap(long timeout)
{
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout > 0 ? WL_TIMEOUT : 0),
					 timeout, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ShutdownRequestPending)
		proc_exit(1);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* Can one connect to this database? */
static bool
is_open(Form_pg_database database)
{
	return database->datallowconn && database->datconnlimit != DATCONNLIMIT_INVALID_DB;
}

/*
 * The next database, by OID, that one can connect to; InvalidOid after the
 * last.  Asked before each start, since databases come and go.  Who is
 * connected to none has no index to go by.
 */
static Oid
next_database(Oid last)
{
	Oid			next = InvalidOid;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);

		if (is_open(database) && database->oid > last &&
			(database->oid < next || !OidIsValid(next)))
			next = database->oid;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	return next;
}

/* Wait for a worker to end; if it takes long, the other databases go on. */
static void
wait_for(BackgroundWorkerHandle *worker)
{
	TimestampTz start = GetCurrentTimestamp();
	pid_t		pid;

	while (GetBackgroundWorkerPid(worker, &pid) != BGWH_STOPPED &&
		   !TimestampDifferenceExceeds(start, GetCurrentTimestamp(), metrics_naptime * 1000))
		nap(metrics_naptime * 1000L);
}

/*
 * Have a worker look into each database, one after the other.  If there is no
 * slot for it, say so once and ask again.
 */
static void
visit_databases(void)
{
	static bool complained = false;
	Oid			last = InvalidOid;
	Oid			database;

	while (metrics_worker_enabled && OidIsValid(database = next_database(last)))
	{
		BackgroundWorkerHandle *worker = worker_start(database, false);

		if (worker != NULL)
		{
			wait_for(worker);
			pfree(worker);
			last = database;
		}
		else
		{
			if (!complained)
				ereport(LOG,
						(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
						 errmsg("could not start a background worker of metrics_ext: all slots are taken"),
						 errdetail("The launcher tries again until it succeeds."),
						 errhint("Increase max_worker_processes.")));
			nap(SLOT_TIME);
		}
		complained = worker == NULL;
	}
}

/* Entry point. */
void
metrics_launcher_main(Datum arg)
{
	TimestampTz round_start;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	SetConfigOption("application_name", LAUNCHER_TYPE, PGC_SUSET, PGC_S_OVERRIDE);

	for (;;)
	{
		long		rest;

		round_start = GetCurrentTimestamp();
		visit_databases();

		/* The time counts from start to start, and may change meanwhile. */
		while ((rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
													   TimestampTzPlusMilliseconds(round_start, metrics_naptime * INT64CONST(1000)))) > 0)
			nap(rest);
	}
}
