/*
 * layout.c
 *	  The layouts of the store, oldest first, and how to get from each to the
 *	  next.
 *
 * A new store is made in the oldest layout and taken through all the steps, so
 * that it equals an upgraded one by construction.  What a step does, what it
 * locks and what metrics_upgrade_plan() shows are one and the same table.
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

#include "partition/rekey.h"
#include "sql.h"
#include "store/store.h"

PG_FUNCTION_INFO_V1(metrics_upgrade_plan);

typedef struct LayoutLock
{
	const char *relation;
	LOCKMODE	mode;
	bool		and_partitions;
} LayoutLock;

typedef struct LayoutStep
{
	const char *action;			/* what it does, for people */
	const char *relation;		/* the table it is about */
	int			estimate;		/* microseconds, whatever the number of rows */
	const char *const *sql;		/* statements, up to a NULL */
	void		(*run) (const MetricsStore *store); /* after them */
	List	   *(*blockers) (const MetricsStore *store);	/* what would make it fail */
	const char *obstacle;		/* and why, for people */
} LayoutStep;

typedef struct LayoutVersion
{
	const char *name;			/* the version of the extension that brought it */
	const LayoutLock *locks;	/* in order: referenced tables, parent, partitions */
	const LayoutStep *steps;
} LayoutVersion;

/*
 * 1.0: the layout before the change of the key.
 *
 * metrics_trial_state holds what the summary of a trial does not say and the
 * next report needs to know; see report/trial.h.
 */
static const LayoutStep steps_1_0[] = {
	{
		.action = "create the tables",
		.relation = "metrics",
		.estimate = 50000,
		.sql = (const char *const []) {
		"CREATE TYPE metric_partition_type AS ENUM ('VALIDATION', 'TRAINING', 'GENERIC')",
		"CREATE SEQUENCE metrics_id_seq AS bigint",

		"CREATE TABLE metrics_layout ("
		" version text NOT NULL CONSTRAINT metrics_layout_pkey PRIMARY KEY)",
		"COMMENT ON TABLE metrics_layout IS 'layout version of this metrics store'",
		"INSERT INTO metrics_layout VALUES ('1.0')",

		"CREATE TABLE trials ("
		" id integer NOT NULL CONSTRAINT trials_pkey PRIMARY KEY,"
		" experiment_id integer,"
		" run_id integer NOT NULL DEFAULT 0,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" summary_metrics jsonb NOT NULL DEFAULT '{}',"
		" summary_metrics_timestamp timestamp with time zone,"
		" latest_validation_id bigint,"
		" best_validation_id bigint,"
		" searcher_metric text,"
		" smaller_is_better boolean NOT NULL DEFAULT true,"
		" searcher_metric_value double precision,"
		" searcher_metric_value_signed double precision"
		") WITH (fillfactor = 70)",
		"CREATE INDEX trials_experiment_id_metric_value ON trials (experiment_id, searcher_metric_value_signed)",
		"CREATE INDEX trials_latest_validation_id ON trials (latest_validation_id)",
		"COMMENT ON TABLE trials IS 'trials that report metrics'",
		"COMMENT ON COLUMN trials.run_id IS 'current run of the trial; reports of other runs are refused'",
		"COMMENT ON COLUMN trials.total_batches IS 'greatest number of batches among the unarchived rows'",
		"COMMENT ON COLUMN trials.summary_metrics IS 'type, count, sum, min, max, mean and last value of each metric by group, over the unarchived rows'",
		"COMMENT ON COLUMN trials.searcher_metric IS 'validation metric by which the best validation is chosen'",
		"COMMENT ON COLUMN trials.searcher_metric_value IS 'searcher metric of the best validation'",
		"COMMENT ON COLUMN trials.searcher_metric_value_signed IS 'the same, negated unless smaller is better'",

		"CREATE TABLE metrics_trial_state ("
		" trial_id integer NOT NULL CONSTRAINT metrics_trial_state_pkey PRIMARY KEY"
		" CONSTRAINT metrics_trial_state_trial_id_fkey REFERENCES trials (id) ON DELETE CASCADE,"
		" run_id integer NOT NULL,"
		" rolled_back_to integer NOT NULL,"
		" latest_validation_time timestamp with time zone,"
		" last_rows jsonb NOT NULL"
		") WITH (fillfactor = 70)",
		"COMMENT ON TABLE metrics_trial_state IS 'what metrics_report() keeps to write the next summary without reading rows; computed again where it is missing'",
		"COMMENT ON COLUMN metrics_trial_state.rolled_back_to IS 'no unarchived row of a run before run_id has more batches'",
		"COMMENT ON COLUMN metrics_trial_state.last_rows IS 'end_time (microseconds since 2000) and id of the last row of each group'",

		"CREATE TABLE metrics_partition_kind ("
		" partition_key text NOT NULL CONSTRAINT metrics_partition_kind_pkey PRIMARY KEY,"
		" kind text NOT NULL,"
		" CONSTRAINT metrics_partition_kind_kind_check CHECK (kind IN ('batch', 'time')))",
		"COMMENT ON TABLE metrics_partition_kind IS 'how the rows of a partition key are identified: by batches, or by time'",
		"INSERT INTO metrics_partition_kind VALUES ('TRAINING', 'batch'), ('VALIDATION', 'batch'), ('GENERIC', 'batch')",

		"CREATE TABLE metrics_route ("
		" metric_group text NOT NULL CONSTRAINT metrics_route_pkey PRIMARY KEY,"
		" partition_key text NOT NULL"
		" CONSTRAINT metrics_route_partition_key_fkey REFERENCES metrics_partition_kind (partition_key))",
		"COMMENT ON TABLE metrics_route IS 'partition key of a metric group; a group without a route goes to GENERIC'",
		"INSERT INTO metrics_route VALUES ('training', 'TRAINING'), ('validation', 'VALIDATION')",

		"CREATE TABLE metrics ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" metric_group text,"
		" partition_type metric_partition_type NOT NULL DEFAULT 'GENERIC'"
		") PARTITION BY LIST (partition_type)",
		"COMMENT ON TABLE metrics IS 'reported metrics of all trials'",

		"CREATE TABLE raw_steps ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" metric_group text NOT NULL DEFAULT 'training',"
		" partition_type metric_partition_type NOT NULL DEFAULT 'TRAINING',"
		" CONSTRAINT custom_type_check CHECK (metric_group = 'training'),"
		" CONSTRAINT steps_trial_id_total_batches_run_id_unique UNIQUE (trial_id, total_batches, trial_run_id),"
		" CONSTRAINT steps_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX steps_archived ON raw_steps (archived)",

		"CREATE TABLE raw_validations ("
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" metric_group text NOT NULL DEFAULT 'validation',"
		" partition_type metric_partition_type NOT NULL DEFAULT 'VALIDATION',"
		" CONSTRAINT custom_type_check CHECK (metric_group = 'validation'),"
		" CONSTRAINT validations_pkey PRIMARY KEY (id),"
		" CONSTRAINT validations_trial_id_total_batches_run_id_unique UNIQUE (trial_id, total_batches, trial_run_id),"
		" CONSTRAINT raw_validations_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX ix_validations_trial_id ON raw_validations (trial_id)",
		"CREATE INDEX validations_archived ON raw_validations (archived)",
		"ALTER TABLE trials ADD CONSTRAINT trials_latest_validation_id_fkey"
		" FOREIGN KEY (latest_validation_id) REFERENCES raw_validations (id) ON DELETE SET NULL",

		"CREATE TABLE generic_metrics ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" metric_group text NOT NULL,"
		" partition_type metric_partition_type NOT NULL DEFAULT 'GENERIC',"
		" CONSTRAINT custom_type_check CHECK (metric_group <> ALL ('{validation,training,avg_metrics,validation_metrics}')),"
		" CONSTRAINT generic_metrics_trial_id_total_batches_run_id_custom_type_uniqu"
		" UNIQUE (trial_id, total_batches, trial_run_id, metric_group),"
		" CONSTRAINT generic_metrics_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX generic_metrics_archived ON generic_metrics (archived)",

		"ALTER TABLE metrics ATTACH PARTITION generic_metrics FOR VALUES IN ('GENERIC')",
		"ALTER TABLE metrics ATTACH PARTITION raw_validations FOR VALUES IN ('VALIDATION')",
		"ALTER TABLE metrics ATTACH PARTITION raw_steps FOR VALUES IN ('TRAINING')",
		NULL},
	},
	{0}
};

/*
 * The key of metrics from enum to text; see partition/rekey.c.  total_batches
 * goes along because NOT NULL can be dropped from the parent alone only while
 * it has no partitions.
 */
static void
rekey_metrics(const MetricsStore *store)
{
	rekey_to_text(store->metrics,
				  "ALTER TABLE metrics ALTER COLUMN total_batches DROP NOT NULL,"
				  " ALTER COLUMN total_batches DROP DEFAULT");
}

static List *
rekey_metrics_blockers(const MetricsStore *store)
{
	return rekey_blockers(store->metrics);
}

/*
 * What a user added to metrics before (columns, checks) must be there in a new
 * partition, too, or it cannot be attached; what attaching adds by itself
 * (indexes, foreign keys, triggers) need not.
 */
static void
attach_system_metrics(const MetricsStore *store)
{
	static const char *const missing =
		"SELECT format('ALTER TABLE system_metrics ADD COLUMN %I %s%s%s%s',"
		"  p.attname, format_type(p.atttypid, p.atttypmod),"
		"  CASE WHEN p.attcollation <> t.typcollation THEN"
		"   (SELECT format(' COLLATE %I.%I', n.nspname, c.collname)"
		"    FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace"
		"    WHERE c.oid = p.attcollation) END,"
		"  CASE WHEN p.attgenerated = 's' THEN format(' GENERATED ALWAYS AS (%s) STORED', d.def)"
		"   WHEN d.def IS NOT NULL THEN ' DEFAULT ' || d.def END,"
		"  CASE WHEN p.attnotnull THEN ' NOT NULL' END)"
		" FROM pg_attribute p"
		" JOIN pg_type t ON t.oid = p.atttypid"
		" LEFT JOIN LATERAL (SELECT pg_get_expr(adbin, adrelid) AS def"
		"  FROM pg_attrdef WHERE adrelid = p.attrelid AND adnum = p.attnum) d ON true"
		" WHERE p.attrelid = 'metrics'::regclass AND p.attnum > 0 AND NOT p.attisdropped"
		"  AND NOT EXISTS (SELECT 1 FROM pg_attribute c"
		"   WHERE c.attrelid = 'system_metrics'::regclass AND c.attname = p.attname)"
		" ORDER BY p.attnum";
	static const char *const checks =
		"SELECT format('ALTER TABLE system_metrics ADD CONSTRAINT %I %s',"
		"  conname, pg_get_constraintdef(oid))"
		" FROM pg_constraint"
		" WHERE conrelid = 'metrics'::regclass AND contype = 'c' AND NOT connoinherit"
		" ORDER BY conname";
	const char *const sources[] = {missing, checks};

	(void) store;				/* names are found on the search path */
	for (int i = 0; i < (int) lengthof(sources); i++)
	{
		SPITupleTable *rows;

		run_sql("%s", sources[i]);
		rows = SPI_tuptable;
		for (uint64 row = 0; row < rows->numvals; row++)
			run_sql("%s", SPI_getvalue(rows->vals[row], rows->tupdesc, 1));
	}
	run_sql("ALTER TABLE metrics ATTACH PARTITION system_metrics FOR VALUES IN ('PROFILING')");
}

static List *
system_metrics_blockers(const MetricsStore *store)
{
	if (!OidIsValid(get_relname_relid("system_metrics", store->namespace)))
		return NIL;
	return list_make1(psprintf("relation %s",
							   quote_qualified_identifier(store->schema, "system_metrics")));
}

/* 1.1: the key is text, steps are optional, and profiling has a partition. */
static const LayoutLock locks_1_1[] = {
	{"trials", ShareRowExclusiveLock, false}, /* for the new foreign key to it */
	{"metrics", AccessExclusiveLock, true},
	{0}
};

static const LayoutStep steps_1_1[] = {
	{
		.action = "change partition_type from metric_partition_type to text, and total_batches of the parent"
		" to nullable without default; no row is read or written",
		.relation = "metrics",
		.estimate = 10000,
		.run = rekey_metrics,
		.blockers = rekey_metrics_blockers,
		.obstacle = "other objects depend on the key of \"metrics\""
	},
	{
		.action = "create partition system_metrics for profiling, and attach it",
		.relation = "system_metrics",
		.estimate = 5000,
		.sql = (const char *const []) {
		"CREATE TABLE system_metrics ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" partition_type text NOT NULL DEFAULT 'PROFILING',"
		" metric_group text,"
		" CONSTRAINT partition_type_check CHECK (partition_type = 'PROFILING'),"
		" CONSTRAINT system_metrics_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX system_metrics_trial_id_metric_group_end_time_id"
		" ON system_metrics (trial_id, metric_group, end_time, id)",
		NULL},
		.run = attach_system_metrics,
		.blockers = system_metrics_blockers,
		.obstacle = "another relation has the name of a partition to be created"
	},
	{
		.action = "add kind and routes of profiling",
		.relation = "metrics_route",
		.estimate = 500,
		.sql = (const char *const []) {
		"INSERT INTO metrics_partition_kind VALUES ('PROFILING', 'time')",
		"INSERT INTO metrics_route SELECT g, 'PROFILING'"
		" FROM unnest('{cpu,disk,gpu,memory,network}'::text[]) g ON CONFLICT DO NOTHING",
		NULL},
	},
	{0}
};

/* For a version that changes nothing in the store. */
static const LayoutLock no_locks[] = {{0}};
static const LayoutStep no_steps[] = {{0}};

static const LayoutVersion layouts[] = {
	[LAYOUT_1_0] = {"1.0", no_locks, steps_1_0},
	[LAYOUT_1_1] = {"1.1", locks_1_1, steps_1_1},
	[LAYOUT_1_2] = {"1.2", no_locks, no_steps},
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
