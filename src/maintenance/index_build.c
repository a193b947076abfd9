/*
 * index_build.c
 *	  Building the index by which the rows of a default partition are found.
 *
 * CREATE INDEX CONCURRENTLY keeps nobody waiting, but wants to be on its own: it
 * commits in the middle, and waits for the transactions of others.  So a worker
 * does it that does nothing else, and may fail.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "parser/analyze.h"
#include "postmaster/bgworker.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "maintenance/maintenance.h"
#include "partition/relocate.h"
#include "sql.h"

PGDLLEXPORT void metrics_index_worker_main(Datum main_arg);

/* Waiting for the transactions of others ends after so long; a later round tries again. */
#define WAIT_LIMIT "10s"

/*
 * The class of advisory locks on tables whose index is being built, which
 * pg_advisory_lock() does not reach: "mi" in ASCII, for metrics_ext and index.
 */
#define INDEX_LOCK_CLASS 0x6D69

/*
 * What has to be run for a table: DROP INDEX for what an earlier attempt left,
 * then CREATE INDEX.  The index compares as the partition key does.
 */
static const char *const statements_query =
	"SELECT 'DROP INDEX CONCURRENTLY ' || i.indexrelid::regclass::text,"
	"  format('CREATE INDEX CONCURRENTLY %%I ON %%s (%%I%%s %%I.%%I)', %3$s::text, %1$u::regclass, a.attname,"
	"   (SELECT format(' COLLATE %%I.%%I', n.nspname, c.collname) FROM pg_collation c"
	"    JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = p.partcollation[0]), n.nspname, o.opcname)"
	" FROM pg_partitioned_table p"
	" JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]"
	" JOIN pg_opclass o ON o.oid = p.partclass[0] JOIN pg_namespace n ON n.oid = o.opcnamespace"
	" LEFT JOIN pg_class c ON c.relname = %3$s AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = %1$u)"
	" LEFT JOIN pg_index i ON i.indexrelid = c.oid AND i.indrelid = %1$u AND NOT i.indisvalid"
	" WHERE p.partrelid = %2$u";

/*
 * Run a utility statement as if a client had sent it, outside a transaction.  It
 * commits in the middle, so its memory is that of the caller.
 */
static void
run_alone(const char *sql)
{
	MemoryContext context = CurrentMemoryContext;
	RawStmt    *raw = linitial_node(RawStmt, raw_parser(sql, RAW_PARSE_DEFAULT));
	PlannedStmt *statement = makeNode(PlannedStmt);

	statement->commandType = CMD_UTILITY;
	statement->canSetTag = true;
	statement->utilityStmt = raw->stmt;
	statement->stmt_len = strlen(sql);

	StartTransactionCommand();
	MemoryContextSwitchTo(context);
	PushActiveSnapshot(GetTransactionSnapshot());
	ProcessUtility(statement, sql, false, PROCESS_UTILITY_TOPLEVEL, NULL, NULL, None_Receiver, NULL);
	if (ActiveSnapshotSet())
		PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
}

/*
 * Wait for another worker that builds the index of the same table, outside a
 * transaction, for which the other would wait.  The lock is held to the end.
 */
static void
take_turn(Oid table)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, table, 0, INDEX_LOCK_CLASS);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
}

/* Does the table still exist, and want the index? */
static bool
is_wanted(const WantedIndex *wanted)
{
	ListTable	table;

	if (!get_rel_name(wanted->parent) || !get_rel_name(wanted->table))
		return false;
	list_table_look(wanted->parent, &table);
	return relocate_wants_index(wanted->table, &table);
}

/* Build the index of a table, unless there is no need any more. */
static void
build_index(const WantedIndex *wanted)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *drop = NULL;
	char	   *create = NULL;
	char	   *result;
	char	   *name;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (is_wanted(wanted))
	{
		name = makeObjectName(get_rel_name(wanted->table), "metrics_ext", "key");
		run_sql(statements_query, wanted->table, wanted->parent, quote_literal_cstr(name));
		result = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
		drop = result ? MemoryContextStrdup(context, result) : NULL;
		result = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2);
		create = MemoryContextStrdup(context, result);
	}
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();

	MemoryContextSwitchTo(context);
	if (drop)
		run_alone(drop);
	if (create)
	{
		run_alone(create);
		ereport(LOG, (errmsg_internal("metrics_ext: %s", create)));
	}
}

/* Main function of a worker that builds the index of one table. */
void
metrics_index_worker_main(Datum main_arg)
{
	WantedIndex wanted;

	memcpy(&wanted, MyBgworkerEntry->bgw_extra, sizeof(wanted));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(main_arg), InvalidOid, 0);
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_OVERRIDE);
	SetConfigOption("statement_timeout", "0", PGC_USERSET, PGC_S_OVERRIDE);
	SetConfigOption("lock_timeout", WAIT_LIMIT, PGC_USERSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_read_only", "off", PGC_USERSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_USERSET, PGC_S_OVERRIDE);
	take_turn(wanted.table);
	build_index(&wanted);
}

/*
 * Have the index of a table built by a worker, and wait for it; false if none
 * could be started.  The caller must hold no lock and no snapshot that the
 * building would wait for.
 */
bool
maintenance_request_index(const WantedIndex *wanted)
{
	BackgroundWorker worker = {0};
	BackgroundWorkerHandle *handle;

	strlcpy(worker.bgw_name, "metrics_ext index worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "metrics_ext index worker", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "metrics_ext", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "metrics_index_worker_main", sizeof(worker.bgw_function_name));
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	memcpy(worker.bgw_extra, wanted, sizeof(*wanted));
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return false;
	if (WaitForBackgroundWorkerShutdown(handle) == BGWH_POSTMASTER_DIED)
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("postmaster exited during a command")));
	return true;
}
