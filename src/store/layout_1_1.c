/*
 * layout_1_1.c
 *	  Layout 1.1: the key is text, steps are optional, and profiling has a
 *	  partition.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "partition/rekey.h"
#include "sql.h"
#include "store/layout.h"

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

const LayoutLock layout_locks_1_1[] = {
	{"trials", ShareRowExclusiveLock, false}, /* for the new foreign key to it */
	{"metrics", AccessExclusiveLock, true},
	{0}
};

const LayoutStep layout_steps_1_1[] = {
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
