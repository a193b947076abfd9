/*
 * database_worker.c
 *	  The worker of a database: does what there is to do, waits a moment for
 *	  more, and leaves.
 *
 * A worker that stayed would be in the way of DROP DATABASE and of CREATE
 * DATABASE … TEMPLATE; so would one that has much to do, and hence makes room
 * for them between two transactions.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "executor/spi.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "maintenance/maintenance.h"
#include "store/store.h"
#include "worker/worker.h"

/* How often a worker without work looks for more, and for how long, in ms. */
#define POLL_TIME 15
#define LINGER_TIME 1000

/* Was it a report that wanted this worker, or the launcher? */
static bool requested;

static emit_log_hook_type previous_log_hook;

/* What may be there to do. */
typedef enum Work
{
	WORK_NONE,					/* nothing here is ours to maintain */
	WORK_LATER,
	WORK_DUE,
} Work;

typedef struct Situation
{
	Work		work;
	int64		done;			/* if work is due: how much was done so far */
} Situation;

/* The lock of the worker of this database. */
static void
set_worker_lock(LOCKTAG *tag, Oid database)
{
	SET_LOCKTAG_ADVISORY(*tag, database, 0, 0, WORKER_LOCK_CLASS);
}

/* Is a worker at work in this database?  Needs no transaction. */
bool
worker_is_at_work(void)
{
	LOCKTAG		tag;

	set_worker_lock(&tag, MyDatabaseId);
	return LockWaiterCount(&tag) > 0;	/* which counts the holder, too */
}

/* Become the worker of a database; false if another is. */
static bool
take_place(Oid database)
{
	LOCKTAG		tag;

	set_worker_lock(&tag, database);
	return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

static void
leave_place(Oid database)
{
	LOCKTAG		tag;

	set_worker_lock(&tag, database);
	LockRelease(&tag, ExclusiveLock, true);
}

/*
 * Does somebody wait for all sessions to leave the database?  DROP DATABASE and
 * CREATE DATABASE … TEMPLATE then keep new ones from connecting; so could one?
 */
static bool
database_is_wanted(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

static bool
should_leave(void)
{
	return !metrics_worker_enabled || database_is_wanted();
}

/*
 * Settings that are ours, whatever stands in postgresql.conf or was set for the
 * database; the override outlives a reload.
 */
static void
override_settings(void)
{
	static const char *const settings[][2] = {
		{"application_name", WORKER_TYPE},
		{"search_path", "pg_catalog, pg_temp"},
		{"statement_timeout", "0"},
		{"transaction_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"idle_session_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"session_replication_role", "origin"},
		{"row_security", "on"},
	};

	for (int i = 0; i < (int) lengthof(settings); i++)
	{
		/* Not every version has all of them. */
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	}
	SetConfigOption("lock_timeout", psprintf("%d", metrics_lock_timeout),
					PGC_SUSET, PGC_S_OVERRIDE);
}

/* To be called outside a transaction, since settings may change. */
static void
obey_signals(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		override_settings();
	}
}

/* Wait, but not for longer than it takes to be told something. */
static void
nap(long timeout)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 timeout, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	obey_signals();
}

static void
end_transaction(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/*
 * Begin a transaction in which the store is open; if it is not, there is no
 * transaction.  A store that was restored stays alone until a report comes,
 * which we are witness of if it was one that wanted us.
 */
static StoreAccess
begin_transaction(MetricsStore *store)
{
	StoreAccess access;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());

	access = store_open_installed(store);
	if (access == STORE_OPEN && !store->active)
	{
		if (requested)
			store_activate(store);
		else
			access = STORE_ABSENT;
	}
	if (access != STORE_OPEN)
		end_transaction();
	return access;
}

static const StoreQuery done_query = {
	"SELECT pg_catalog.sum(partitions_created OPERATOR(pg_catalog.+) rows_moved)::pg_catalog.int8"
	" FROM @store@.metrics_managed_table",
	.reader = true
};

/* How much was done for all tables so far. */
static int64
done_so_far(const MetricsStore *store)
{
	bool		isnull;
	Datum		sum;

	SPI_connect();
	managed_execute(store, &done_query, NULL, NULL);
	sum = store_column(1, &isnull);
	SPI_finish();
	return isnull ? 0 : DatumGetInt64(sum);
}

/* Look what there is to do; what cannot be looked at may be something. */
static Situation
look(void)
{
	Situation	situation = {0};
	MetricsStore store;

	switch (begin_transaction(&store))
	{
		case STORE_ABSENT:
			situation.work = WORK_NONE;
			break;
		case STORE_BUSY:
			situation.work = WORK_DUE;
			break;
		case STORE_OPEN:
			situation.work = maintenance_is_due(&store) ? WORK_DUE : WORK_LATER;
			if (situation.work == WORK_DUE)
				situation.done = done_so_far(&store);
			end_transaction();
			break;
	}
	return situation;
}

/*
 * One round of maintenance.  An index is built by another worker: it fails
 * alone, and waits for others without a lock_timeout as short as ours.
 */
static void
run_round(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "metrics_ext round",
												  ALLOCSET_DEFAULT_SIZES);
	MaintenanceRound *round = maintenance_begin(context, false);
	MetricsStore store;
	WantedIndex index;
	bool		more = true;

	while (more && !should_leave() && begin_transaction(&store) == STORE_OPEN)
	{
		more = maintenance_step(round, &store);
		end_transaction();
		if (maintenance_wants_index(round, &index))
			(void) maintenance_request_index(&index);
		obey_signals();
	}
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
	MemoryContextDelete(context);
}

/* Wait for work until it is time to leave, and look once at least. */
static Situation
await_work(void)
{
	TimestampTz start = GetCurrentTimestamp();

	for (;;)
	{
		TimestampTz before = GetCurrentTimestamp();
		Situation	situation = look();
		TimestampTz now = GetCurrentTimestamp();

		if (situation.work != WORK_LATER || !requested || should_leave() ||
			TimestampDifferenceExceeds(start, now, LINGER_TIME))
			return situation;

		/* Looking must not take more than a tenth of the time. */
		nap(Max(POLL_TIME, 10 * TimestampDifferenceMilliseconds(before, now)));
	}
}

/* Do what there is to do, as long as new work comes before it is time to leave. */
static void
serve(Situation situation)
{
	while (situation.work != WORK_NONE && !should_leave())
	{
		Situation	next;

		run_round();
		next = await_work();
		if (next.work != WORK_DUE)
			return;

		/* What is due but cannot be done, as when the store is locked, wants time. */
		if (situation.work == WORK_DUE && next.done == situation.done)
			nap(LINGER_TIME);
		situation = next;
	}
}

/*
 * Shall work that is left be left?  Without workers, yes; if all are to leave
 * the database, to another worker, which can connect when that is over.
 */
static bool
hand_over(void)
{
	if (!metrics_worker_enabled)
		return true;
	return database_is_wanted() && worker_start(MyDatabaseId, requested) != NULL;
}

/*
 * That the database was dropped, or closed, before we came to it is nothing
 * to put in the log.
 */
static void
hide_absent_database(ErrorData *edata)
{
	if (edata->elevel == FATAL &&
		(edata->sqlerrcode == ERRCODE_UNDEFINED_DATABASE ||
		 edata->sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE))
		edata->output_to_server = false;
	if (previous_log_hook)
		previous_log_hook(edata);
}

static void
connect_to(Oid database)
{
	previous_log_hook = emit_log_hook;
	emit_log_hook = hide_absent_database;
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	emit_log_hook = previous_log_hook;
}

/*
 * Entry point.  The place is taken before we connect, so that few others come
 * for the same work.  An error ends the process, and with it what it did last;
 * what a step cannot do is no error here.
 */
void
metrics_database_worker_main(Datum arg)
{
	Oid			database = DatumGetObjectId(arg);

	memcpy(&requested, MyBgworkerEntry->bgw_extra, sizeof(requested));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!take_place(database))
		proc_exit(0);
	override_settings();
	connect_to(database);
	override_settings();		/* the database has its own lock_timeout of ours */

	/*
	 * Whoever commits work while we hold the place relies on us, so we look
	 * once more after leaving it.
	 */
	do
	{
		serve(look());
		leave_place(database);
	} while (look().work == WORK_DUE && !hand_over() && take_place(database));

	proc_exit(0);
}
