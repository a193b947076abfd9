/*
 * round.c
 *	  Rounds of maintenance, and CALL metrics_maintain(), metrics_drain().
 *
 * A round is a list of tasks, each of them one transaction: look which keys a
 * table needs, make the partition of a key, move the rows of a key.  Looking
 * adds the others.  A task runs in a subtransaction; what goes wrong in it is
 * written down, to be tried again later, and the round goes on with the next.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "args.h"
#include "guc.h"
#include "maintenance/maintenance.h"
#include "partition/relocate.h"
#include "report/pending.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(metrics_maintain);
PG_FUNCTION_INFO_V1(metrics_drain);

/* Rows that one transaction moves out of metrics_pending. */
#define PENDING_BATCH 10000

/* What is to be done in one transaction. */
typedef struct MaintenanceTask
{
	Oid			parent;
	char	   *key;			/* NULL: look which keys need something */
	Oid			asked_index;	/* an index of this table was asked for already */
} MaintenanceTask;

struct MaintenanceRound
{
	MemoryContext context;
	bool		everything;		/* also what failed and has to wait */
	bool		started;
	List	   *tasks;
	WantedIndex wanted_index;	/* its table is InvalidOid if there is none */
};

static void
add_task(MaintenanceRound *round, Oid parent, const char *key, Oid asked_index)
{
	MemoryContext old_context = MemoryContextSwitchTo(round->context);
	MaintenanceTask *task = palloc(sizeof(MaintenanceTask));

	task->parent = parent;
	task->key = key ? pstrdup(key) : NULL;
	task->asked_index = asked_index;
	round->tasks = lappend(round->tasks, task);
	MemoryContextSwitchTo(old_context);
}

/* Begin a round, which lives in a memory context.  Nothing is read yet. */
MaintenanceRound *
maintenance_begin(MemoryContext context, bool everything)
{
	MaintenanceRound *round = MemoryContextAllocZero(context, sizeof(MaintenanceRound));

	round->context = context;
	round->everything = everything;
	return round;
}

/*
 * Must an index be built before the round can go on with a table?  To be asked
 * between transactions, which building it needs; an index is asked for once.
 */
bool
maintenance_wants_index(MaintenanceRound *round, WantedIndex *wanted)
{
	*wanted = round->wanted_index;
	round->wanted_index.table = InvalidOid;
	return OidIsValid(wanted->table);
}

static const StoreQuery tables_query = {
	"SELECT m.parent FROM @store@.metrics_managed_table m WHERE $1 OR m.parent OPERATOR(pg_catalog.=) $2"
	" OR NOT EXISTS (SELECT FROM @store@.metrics_failure f WHERE f.parent OPERATOR(pg_catalog.=) m.parent"
	"  AND f.partition_key IS NULL AND f.next_attempt > pg_catalog.clock_timestamp())"
	" ORDER BY m.parent OPERATOR(pg_catalog.<>) $2, m.parent::pg_catalog.oid",
	.nargs = 2, .argtypes = {BOOLOID, REGCLASSOID}
};

static void
plan_tables(MaintenanceRound *round, const MetricsStore *store)
{
	Datum		values[] = {BoolGetDatum(round->everything), ObjectIdGetDatum(store->metrics)};
	SPITupleTable *rows;

	managed_execute(store, &tables_query, values, NULL);
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
	{
		bool		isnull;

		add_task(round, DatumGetObjectId(SPI_getbinval(rows->vals[row], rows->tupdesc, 1, &isnull)),
				 NULL, InvalidOid);
	}
}

/* Keys with rows that are due, one descent into the index a key. */
static const StoreQuery pending_keys_query = {
	"WITH RECURSIVE keys AS ("
	" (SELECT partition_type AS key FROM @store@.metrics_pending ORDER BY partition_type LIMIT 1)"
	" UNION ALL"
	" SELECT (SELECT p.partition_type FROM @store@.metrics_pending p WHERE p.partition_type > keys.key"
	"  ORDER BY p.partition_type LIMIT 1) FROM keys WHERE keys.key IS NOT NULL)"
	" SELECT key, f.next_attempt > pg_catalog.clock_timestamp() FROM keys"
	" LEFT JOIN @store@.metrics_failure f ON f.parent OPERATOR(pg_catalog.=) $2 AND f.partition_key = key"
	" WHERE key IS NOT NULL AND EXISTS (SELECT FROM @store@.metrics_pending p"
	"  WHERE p.partition_type = key AND ($1 OR p.next_attempt <= pg_catalog.clock_timestamp()))"
	" ORDER BY key",
	.nargs = 2, .argtypes = {BOOLOID, REGCLASSOID}
};

static const StoreQuery limit_query = {
	"SELECT FROM @store@.metrics_failure WHERE parent OPERATOR(pg_catalog.=) $1"
	" AND partition_key IS NULL AND next_attempt > pg_catalog.clock_timestamp()",
	.nargs = 1, .argtypes = {REGCLASSOID}
};

/* The keys of pending rows. */
typedef struct DueKeys
{
	List	   *keys;			/* those for which something can be done */
	int			beyond_limit;	/* number of those for which there is no room */
	bool		limit_noted;	/* that was written down, and it is not yet time again */
} DueKeys;

static void
find_due_keys(const MetricsStore *store, bool everything, DueKeys *due)
{
	Datum		values[] = {BoolGetDatum(everything), ObjectIdGetDatum(store->metrics)};
	int			room;
	SPITupleTable *rows;

	memset(due, 0, sizeof(DueKeys));
	if (managed_execute(store, &pending_keys_query, values, NULL) == 0)
		return;
	rows = SPI_tuptable;
	room = metrics_max_partitions - managed_partition_count(store->metrics);

	for (uint64 row = 0; row < rows->numvals; row++)
	{
		bool		isnull;
		Datum		key = SPI_getbinval(rows->vals[row], rows->tupdesc, 1, &isnull);
		bool		waits = DatumGetBool(SPI_getbinval(rows->vals[row], rows->tupdesc, 2, &isnull));

		if (!OidIsValid(list_table_partition(store->metrics, key)))
		{
			if (!isnull && waits && !everything)
				continue;
			if (room-- <= 0)
			{
				due->beyond_limit++;
				continue;
			}
		}
		due->keys = lappend(due->keys, TextDatumGetCString(key));
	}
	if (due->beyond_limit > 0 && !everything)
		due->limit_noted = managed_execute(store, &limit_query, &values[1], NULL) > 0;
}

/* Is there anything to do for the store now?  Needs no SPI connection. */
bool
maintenance_is_due(const MetricsStore *store)
{
	DueKeys		due;

	SPI_connect();
	find_due_keys(store, false, &due);
	SPI_finish();
	return due.keys != NIL || (due.beyond_limit > 0 && !due.limit_noted);
}

/* Say what was done; in the server's log, if nobody asked for it. */
static void
report_done(const char *message)
{
	ereport(MyBackendType == B_BG_WORKER ? LOG : DEBUG1, (errmsg_internal("metrics_ext: %s", message)));
}

static void
refuse_more_partitions(Oid parent, int keys)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg_plural("%d key waits for a partition, because %s has %d",
						   "%d keys wait for a partition, because %s has %d", keys,
						   keys, qualified_name(parent), managed_partition_count(parent)),
			 errhint("The limit is metrics_ext.max_partitions: raise it, or drop partitions.")));
}

/* Who deletes their trial, or moves them, keeps us from rows for as long as he likes. */
static const StoreQuery retry_rows_query = {
	"UPDATE @store@.metrics_pending SET next_attempt = '-infinity' WHERE id = ANY (ARRAY("
	"SELECT id FROM @store@.metrics_pending WHERE next_attempt > pg_catalog.clock_timestamp() FOR UPDATE SKIP LOCKED))",
	.nargs = 0
};

/*
 * Look which keys of the store have pending rows.  false if nothing can be said
 * of the limit of partitions, since it was not tried.
 */
static bool
look_into_pending(MaintenanceRound *round, const MetricsStore *store)
{
	DueKeys		due;
	ListCell   *cell;

	if (round->everything)
		managed_execute(store, &retry_rows_query, NULL, NULL);
	forget_pending_failures(store);
	find_due_keys(store, round->everything, &due);
	foreach(cell, due.keys)
		add_task(round, store->metrics, lfirst(cell), InvalidOid);
	if (due.beyond_limit > 0 && !due.limit_noted)
		refuse_more_partitions(store->metrics, due.beyond_limit);
	return due.beyond_limit == 0;
}

/* The first of the tables that wants an index, or InvalidOid. */
static Oid
table_without_index(const ListTable *table)
{
	ListCell   *cell;

	foreach(cell, partition_default_tables(table, NoLock))
	{
		if (relocate_wants_index(lfirst_oid(cell), table))
			return lfirst_oid(cell);
	}
	return InvalidOid;
}

/*
 * Look which keys the default partition of a table has rows of.  false if that
 * has to wait for an index.
 */
static bool
look_into_default(MaintenanceRound *round, const MetricsStore *store, const MaintenanceTask *task)
{
	ListTable	table;
	Oid			unindexed;
	int			room;
	int			beyond_limit = 0;
	List	   *waiting;
	List	   *keys = NIL;
	ListCell   *cell;

	managed_check_owner(store, task->parent);
	list_table_look(task->parent, &table);
	unindexed = table_without_index(&table);
	if (OidIsValid(unindexed) && unindexed != task->asked_index)
	{
		round->wanted_index = (WantedIndex) {task->parent, unindexed};
		add_task(round, task->parent, NULL, unindexed);
		return false;
	}
	if (OidIsValid(unindexed))
		partition_check_index(&table, unindexed);

	room = metrics_max_partitions - managed_partition_count(task->parent);
	waiting = round->everything ? NIL : waiting_keys(store, task->parent);
	foreach(cell, partition_default_tables(&table, NoLock))
		keys = list_concat(keys, relocate_keys(lfirst_oid(cell), &table));
	forget_failures(store, task->parent, keys);
	foreach(cell, keys)
	{
		if (list_member(waiting, makeString(lfirst(cell))))
			continue;
		if (room-- > 0)
			add_task(round, task->parent, lfirst(cell), InvalidOid);
		else
			beyond_limit++;
	}
	if (beyond_limit > 0)
		refuse_more_partitions(task->parent, beyond_limit);
	return true;
}

/* Make the partition of a key of the store, or move its pending rows if it is there. */
static void
serve_pending_key(MaintenanceRound *round, const MetricsStore *store, const char *key)
{
	PartitionAdded added;
	uint64		moved;

	managed_add(store, store->metrics, key, "metrics_ext", false, &added);
	if (added.created)
	{
		report_done(psprintf("created partition %s for key \"%s\"", qualified_name(added.partition), key));
		add_task(round, store->metrics, key, InvalidOid);
		return;
	}

	moved = pending_move(store, key, PENDING_BATCH);
	if (moved > 0)
	{
		managed_count(store, store->metrics, 0, moved);
		report_done(psprintf("moved " UINT64_FORMAT " pending rows of key \"%s\" to %s", moved, key,
							 qualified_name(added.partition)));
	}
	if (moved == PENDING_BATCH)
		add_task(round, store->metrics, key, InvalidOid);
}

/* How many rows of a key its default partition has, counting no further than a limit. */
static uint64
default_rows(const ListTable *table, const char *key, uint64 limit)
{
	uint64		count = 0;
	ListCell   *cell;

	foreach(cell, partition_default_tables(table, NoLock))
		count += relocate_count(lfirst_oid(cell), table, list_table_key(table, key), limit);
	return count;
}

/* Move the rows of a key out of the default partition of a table. */
static void
serve_default_key(const MetricsStore *store, Oid parent, const char *key)
{
	ListTable	table;
	PartitionAdded added;
	uint64		rows;

	managed_check_owner(store, parent);
	list_table_look(parent, &table);
	rows = default_rows(&table, key, (uint64) metrics_drain_rows + 1);
	if (rows == 0)
		return;
	if (rows > (uint64) metrics_drain_rows)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the default partition of %s has more than %d rows of key \"%s\"", table.name,
						metrics_drain_rows, key),
				 errhint("CALL metrics_drain(%s, %s), or raise metrics_ext.drain_rows.",
						 quote_literal_cstr(table.name), quote_literal_cstr(key))));

	managed_add(store, parent, key, "metrics_ext", true, &added);
	if (added.created)
		report_done(psprintf("created partition %s for key \"%s\" and moved " UINT64_FORMAT " rows to it",
							 qualified_name(added.partition), key, added.moved));
}

static void
do_task(MaintenanceRound *round, const MetricsStore *store, const MaintenanceTask *task)
{
	bool		success = true;

	if (MyBackendType == B_BG_WORKER)
		pgstat_report_activity(STATE_RUNNING, task->key ?
							   psprintf("metrics_ext: key \"%s\" of %s", task->key, table_text(task->parent)) :
							   psprintf("metrics_ext: keys of %s", table_text(task->parent)));
	if (task->key == NULL && task->parent == store->metrics)
		success = look_into_pending(round, store);
	else if (task->key == NULL)
		success = look_into_default(round, store, task);
	else if (task->parent == store->metrics)
		serve_pending_key(round, store, task->key);
	else
		serve_default_key(store, task->parent, task->key);
	if (success)
		note_success(store, task->parent, task->key);
}

typedef struct TaskCall
{
	MaintenanceRound *round;
	const MetricsStore *store;
	const MaintenanceTask *task;
} TaskCall;

static bool
call_task(void *arg)
{
	TaskCall   *call = arg;

	do_task(call->round, call->store, call->task);
	return true;
}

/*
 * Do the next task of a round, in the transaction that has opened the store; it
 * should be committed then.  false if nothing is left.
 */
bool
maintenance_step(MaintenanceRound *round, const MetricsStore *store)
{
	SPI_connect();
	if (!round->started)
	{
		round->started = true;
		plan_tables(round, store);
	}
	else if (round->tasks != NIL)
	{
		MaintenanceTask *task = linitial(round->tasks);
		TaskCall	call = {round, store, task};
		ErrorData  *error;

		round->tasks = list_delete_first(round->tasks);
		error = run_in_subtransaction(call_task, &call);
		if (error)
			note_failure(store, task->parent, task->key, error);
	}
	SPI_finish();
	return round->tasks != NIL;
}

/*
 * metrics_maintain()
 *
 * One round, of everything that there is to do.
 */
Datum
metrics_maintain(PG_FUNCTION_ARGS)
{
	bool		commits = may_commit(fcinfo);
	MemoryContext context = AllocSetContextCreate(commits ? PortalContext : CurrentMemoryContext,
												  "metrics_ext maintenance", ALLOCSET_DEFAULT_SIZES);
	MaintenanceRound *round = maintenance_begin(context, true);
	bool		more;

	PreventCommandIfReadOnly("metrics_maintain()");
	SPI_connect_ext(commits ? SPI_OPT_NONATOMIC : 0);
	do
	{
		MetricsStore store;
		WantedIndex wanted;

		managed_open_store(fcinfo, &store);
		store_check_owner(&store);
		store_activate(&store);
		more = maintenance_step(round, &store);
		if (commits)
		{
			SPI_commit();
			if (maintenance_wants_index(round, &wanted))
				maintenance_request_index(&wanted);
		}
	} while (more);
	SPI_finish();
	MemoryContextDelete(context);
	PG_RETURN_VOID();
}

typedef struct DrainCall
{
	const MetricsStore *store;
	Oid			parent;
	const char *key;
	PartitionAdded added;
} DrainCall;

static bool
call_drain(void *arg)
{
	DrainCall  *call = arg;

	managed_add(call->store, call->parent, call->key, GetUserNameFromId(GetUserId(), false), true,
				&call->added);
	note_success(call->store, call->parent, call->key);
	return true;
}

/* Have an index built, or say why it cannot be. */
static void
build_index(const WantedIndex *wanted)
{
	if (!maintenance_request_index(wanted))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start a background worker to build an index: all slots are taken"),
				 errhint("Increase max_worker_processes, or use CREATE INDEX CONCURRENTLY on the partition key of %s.",
						 qualified_name(wanted->table))));
}

/*
 * metrics_drain(parent, partition_key)
 *
 * Move the rows of a key out of the default partition, however many there are.
 * Where it may commit, it goes on until it gets the locks.
 */
Datum
metrics_drain(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"parent", "partition_key"};
	bool		commits = may_commit(fcinfo);
	MetricsStore store;
	DrainCall	call = {.store = &store};
	Oid			built = InvalidOid;

	check_not_null(fcinfo, names, lengthof(names));
	call.parent = PG_GETARG_OID(0);
	call.key = text_to_cstring(PG_GETARG_TEXT_PP(1));
	PreventCommandIfReadOnly("metrics_drain()");
	SPI_connect_ext(commits ? SPI_OPT_NONATOMIC : 0);
	for (int attempts = 0;; attempts++)
	{
		ListTable	table;
		Oid			unindexed;
		ErrorData  *error;

		managed_open_store(fcinfo, &store);
		managed_check_caller(call.parent);
		managed_check(&store, call.parent);
		list_table_look(call.parent, &table);
		unindexed = table_without_index(&table);
		if (commits && OidIsValid(unindexed) && unindexed != built)
		{
			SPI_commit();
			build_index(&(WantedIndex) {call.parent, unindexed});
			built = unindexed;
			continue;
		}
		if (OidIsValid(unindexed))
			partition_check_index(&table, unindexed);
		if (default_rows(&table, call.key, 1) == 0)
			break;

		error = run_in_subtransaction(call_drain, &call);
		if (error == NULL)
			break;
		if (!commits || !is_contention(error))
			ReThrowError(error);
		SPI_commit();
		wait_for_next_attempt(attempts);
	}
	SPI_finish();
	if (call.added.moved > 0)
		ereport(NOTICE,
				(errmsg("moved " UINT64_FORMAT " rows of key \"%s\" to %s", call.added.moved, call.key,
						qualified_name(call.added.partition))));
	else
		ereport(NOTICE,
				(errmsg("there are no rows of key \"%s\" to move", call.key)));
	PG_RETURN_VOID();
}
