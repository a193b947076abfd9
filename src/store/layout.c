/*
 * layout.c
 *	  The layouts of the store, oldest first, and how to get from each to the
 *	  next.
 *
 * A new store is made in the oldest layout and taken through all the steps, so
 * that it equals an upgraded one by construction.  What a step does, what it
 * locks and what metrics_upgrade_plan() shows are one and the same table, one
 * file a layout: layout_1_0.c and so on.
 *
 * Steps run as the owner of the store, in a security-restricted operation and
 * with the store's schema first on the search path after pg_catalog; and with
 * creating_extension off, or what they make inside ALTER EXTENSION would become
 * members of the extension.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "sql.h"
#include "store/layout.h"

PG_FUNCTION_INFO_V1(metrics_upgrade_plan);

/* For a version that changes nothing in the store. */
static const LayoutLock no_locks[] = {{0}};
static const LayoutStep no_steps[] = {{0}};

static const LayoutVersion layouts[] = {
	[LAYOUT_1_0] = {"1.0", no_locks, layout_steps_1_0},
	[LAYOUT_1_1] = {"1.1", layout_locks_1_1, layout_steps_1_1},
	[LAYOUT_1_2] = {"1.2", no_locks, no_steps},
	[LAYOUT_1_3] = {"1.3", no_locks, no_steps},
};

/* The name of a layout; the version of the extension that brought it. */
const char *
layout_name(StoreLayout layout)
{
	return layouts[layout].name;
}

/* The layout of that name; one that this library does not know is an error. */
StoreLayout
layout_by_name(const char *name)
{
	for (int layout = 0; layout <= LAYOUT_NEWEST; layout++)
	{
		if (strcmp(layouts[layout].name, name) == 0)
			return layout;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the installed library of metrics_ext does not know version \"%s\"", name),
			 errhint("Install a newer build of metrics_ext and restart the server.")));
}

/* Refuse to run a step that a user's object would make fail, naming all. */
static void
check_blockers(const MetricsStore *store, const LayoutStep *step)
{
	List	   *blockers = step->blockers ? step->blockers(store) : NIL;
	StringInfoData detail;
	ListCell   *cell;

	if (blockers == NIL)
		return;

	initStringInfo(&detail);
	foreach(cell, blockers)
		appendStringInfo(&detail, "%s%s", detail.len > 0 ? "\n" : "",
						 (char *) lfirst(cell));
	ereport(ERROR,
			(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			 errmsg("cannot upgrade the metrics store because %s", step->obstacle),
			 errdetail_internal("%s", detail.data),
			 errhint("Drop or rename them, upgrade, and create them again; metrics_upgrade_plan() lists them, too.")));
}

/* Run the locks and steps of one layout; already the owner. */
static void
run_layout(MetricsStore *store, StoreLayout target)
{
	const LayoutVersion *layout = &layouts[target];

	for (const LayoutLock *lock = layout->locks; lock->relation; lock++)
	{
		Oid			relid = store_relation(store, lock->relation);

		LockRelationOid(relid, lock->mode);
		if (lock->and_partitions)
			(void) find_all_inheritors(relid, lock->mode, NULL);
	}

	/* Another session may have been faster while we waited. */
	if (store->layout != LAYOUT_NONE)
		store->layout = store_read_layout(store);
	if (store->layout >= target)
		return;

	SPI_connect();
	for (const LayoutStep *step = layout->steps; step->action; step++)
		check_blockers(store, step);
	for (const LayoutStep *step = layout->steps; step->action; step++)
	{
		for (const char *const *sql = step->sql; sql && *sql; sql++)
			run_sql("%s", *sql);
		if (step->run)
			step->run(store);
	}
	run_sql("UPDATE metrics_layout SET version = %s",
						  quote_literal_cstr(layout->name));
	SPI_finish();

	store->layout = target;
	store->metrics = store_relation(store, "metrics");
	CacheInvalidateRelcacheByRelid(store->metrics); /* see store_open() */
	CommandCounterIncrement();
}

/*
 * Take a store to a layout as its owner, all or nothing.  A store of a layout
 * after the target stays as it is.  Sets the store's layout and relation.
 */
void
layout_upgrade(MetricsStore *store, Oid owner, StoreLayout target)
{
	bool		save_creating_extension = creating_extension;
	int			save_nestlevel;
	Oid			save_userid;
	int			save_sec_context;

	GetUserIdAndSecContext(&save_userid, &save_sec_context);
	SetUserIdAndSecContext(owner, save_sec_context |
						   SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	save_nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path",
							 psprintf("%s, pg_temp", quote_identifier(store->schema)),
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);

	PG_TRY();
	{
		creating_extension = false;
		for (StoreLayout layout = store->layout + 1; layout <= target; layout++)
			run_layout(store, layout);
	}
	PG_FINALLY();
	{
		creating_extension = save_creating_extension;
	}
	PG_END_TRY();

	AtEOXact_GUC(false, save_nestlevel);
	SetUserIdAndSecContext(save_userid, save_sec_context);
}

/* One row of metrics_upgrade_plan(). */
static void
put_plan_row(ReturnSetInfo *rsinfo, int step, StoreLayout layout,
			 const char *action, const char *relation, const char *lock_mode,
			 int64 estimate)
{
	Datum		values[6] = {0};
	bool		nulls[6] = {0};

	values[0] = Int32GetDatum(step);
	values[1] = CStringGetTextDatum(layout_name(layout));
	values[2] = CStringGetTextDatum(action);
	values[3] = CStringGetTextDatum(relation);
	nulls[4] = lock_mode == NULL;
	if (lock_mode)
		values[4] = CStringGetTextDatum(lock_mode);
	nulls[5] = estimate < 0;
	if (estimate >= 0)
	{
		Interval   *interval = palloc0(sizeof(Interval));

		interval->time = estimate;
		values[5] = IntervalPGetDatum(interval);
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * metrics_upgrade_plan() → setof (step, layout, action, relation, lock_mode, estimate)
 *
 * What layout_upgrade() to the newest layout of this library would do, read
 * from the same table.  The estimate counts from when the locks are held, and
 * is NULL where the step would fail.
 */
Datum
metrics_upgrade_plan(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MetricsStore store;
	int			number = 0;
	int			save_nestlevel;

	InitMaterializedSRF(fcinfo, 0);
	store_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	/* It reads the catalogs with all their types: no operators but core's. */
	save_nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	for (StoreLayout layout = store.layout + 1; layout <= LAYOUT_NEWEST; layout++)
	{
		for (const LayoutLock *lock = layouts[layout].locks; lock->relation; lock++)
		{
			Oid			relid = store_relation(&store, lock->relation);
			List	   *relids = lock->and_partitions ?
				find_all_inheritors(relid, AccessShareLock, NULL) : list_make1_oid(relid);
			ListCell   *cell;

			foreach(cell, relids)
				put_plan_row(rsinfo, ++number, layout, "lock", get_rel_name(lfirst_oid(cell)),
							 GetLockmodeName(DEFAULT_LOCKMETHOD, lock->mode), 0);
		}
		for (const LayoutStep *step = layouts[layout].steps; step->action; step++)
		{
			List	   *blockers = step->blockers ? step->blockers(&store) : NIL;
			ListCell   *cell;

			foreach(cell, blockers)
				put_plan_row(rsinfo, ++number, layout,
							 psprintf("refused: drop or rename first: %s", (char *) lfirst(cell)),
							 step->relation, NULL, -1);
			put_plan_row(rsinfo, ++number, layout, step->action, step->relation,
						 NULL, step->estimate);
		}
	}
	AtEOXact_GUC(false, save_nestlevel);
	SPI_finish();
	return (Datum) 0;
}
