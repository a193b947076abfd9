/*
 * request.c
 *	  Starting a worker: for whoever has left work in a database, once that is
 *	  committed.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "worker/worker.h"

/* How long a worker may take from its start to its lock, in ms. */
#define START_TIME 100

/* Does this transaction want a worker? */
static bool requested = false;

/* Did an earlier one that did not surely get it? */
static bool owed = false;

/* The last worker that this session started, and when. */
static BackgroundWorkerHandle *last_worker = NULL;
static TimestampTz last_start;

/*
 * Register a worker for a database; NULL if all slots for workers are taken.
 * requested says that it was a report that wants it.  The caller, who owns the
 * handle, gets a signal when the worker starts and ends.
 */
BackgroundWorkerHandle *
worker_start(Oid database, bool requested)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "metrics_ext",
		.bgw_function_name = "metrics_database_worker_main",
		.bgw_type = WORKER_TYPE,
		.bgw_main_arg = ObjectIdGetDatum(database),
		.bgw_notify_pid = MyProcPid,
	};
	BackgroundWorkerHandle *handle = NULL;

	snprintf(worker.bgw_name, sizeof(worker.bgw_name), WORKER_TYPE " of database %u", database);
	memcpy(worker.bgw_extra, &requested, sizeof(requested));
	(void) RegisterDynamicBackgroundWorker(&worker, &handle);
	return handle;
}

/*
 * Start a worker for this database unless one is at work.  false if it has to
 * be tried again.
 *
 * A worker looks once more for work after it has given up its lock, so one
 * that still holds it will find what we have committed before.  Of one that we
 * have just started we take this for granted, lest a session that commits every
 * millisecond fills all slots, and see to it at the next commit.
 */
static bool
start_unless_at_work(void)
{
	static bool complained = false;
	MemoryContext old_context;
	pid_t		pid;

	if (!metrics_worker_enabled || worker_is_at_work())
		return true;

	if (last_worker != NULL &&
		GetBackgroundWorkerPid(last_worker, &pid) != BGWH_STOPPED &&
		!TimestampDifferenceExceeds(last_start, GetCurrentTimestamp(), START_TIME))
		return false;

	if (last_worker != NULL)
		pfree(last_worker);
	old_context = MemoryContextSwitchTo(TopMemoryContext);
	last_worker = worker_start(MyDatabaseId, true);
	MemoryContextSwitchTo(old_context);
	last_start = GetCurrentTimestamp();

	if (last_worker == NULL && !complained)
		ereport(LOG,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start a background worker of metrics_ext: all slots are taken"),
				 errdetail("Reported rows wait for their partition until the next commit of this session, or for the launcher."),
				 errhint("Increase max_worker_processes.")));
	complained = last_worker == NULL;
	return last_worker != NULL;
}

/*
 * At the end of a transaction.  It is committed, so nothing may fail here; if
 * there is no memory for the little that it takes, the next commit tries again.
 *
 * What is prepared is not committed yet: if it is this session that does it,
 * the commit comes by here, too.
 */
static void
at_transaction_end(XactEvent event, void *arg)
{
	(void) arg;
	if (event == XACT_EVENT_PREPARE)
		owed |= requested;
	else if (event == XACT_EVENT_COMMIT && (requested || owed))
	{
		MemoryContext context = CurrentMemoryContext;

		owed = true;
		PG_TRY();
		{
			owed = !start_unless_at_work();
		}
		PG_CATCH();
		{
			MemoryContextSwitchTo(context);
			FlushErrorState();
		}
		PG_END_TRY();
	}

	if (event == XACT_EVENT_PREPARE || event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		requested = false;
}

/*
 * Want a worker for this database when the transaction is committed.  One too
 * many, after a subtransaction that was rolled back, finds nothing and leaves.
 */
void
worker_request(void)
{
	static bool callback_registered = false;

	if (!callback_registered)
	{
		RegisterXactCallback(at_transaction_end, NULL);
		callback_registered = true;
	}
	requested = true;
}
