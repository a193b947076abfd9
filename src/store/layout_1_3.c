/*
 * layout_1_3.c
 *	  Layout 1.3: rows that wait for their partition, routes by pattern, and
 *	  what maintenance of partitions has to remember.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"

#include "sql.h"
#include "store/layout.h"

/* Who may read the layout may read what maintenance says of itself. */
static void
grant_maintenance_tables(const MetricsStore *store)
{
	SPITupleTable *rows;

	(void) store;				/* names are found on the search path */
	run_sql("SELECT DISTINCT CASE WHEN grantee = 0 THEN 'public' ELSE quote_ident(pg_get_userbyid(grantee)) END"
			" FROM pg_class, aclexplode(relacl)"
			" WHERE oid = 'metrics_layout'::regclass AND privilege_type = 'SELECT' AND grantee <> relowner");
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
		run_sql("GRANT SELECT ON metrics_route_pattern, metrics_partition, metrics_managed_table, metrics_failure TO %s",
				SPI_getvalue(rows->vals[row], rows->tupdesc, 1));
}

const LayoutLock layout_locks_1_3[] = {
	{"trials", ShareRowExclusiveLock, false}, /* for the new foreign key to it */
	{0}
};

const LayoutStep layout_steps_1_3[] = {
	{
		.action = "create the table of rows that wait for their partition",
		.relation = "metrics_pending",
		.estimate = 5000,
		.sql = (const char *const []) {
		"CREATE TABLE metrics_pending ("
		" trial_id integer NOT NULL"
		" CONSTRAINT metrics_pending_trial_id_fkey REFERENCES trials (id) ON DELETE CASCADE,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq') CONSTRAINT metrics_pending_pkey PRIMARY KEY,"
		" metric_group text,"
		" partition_type text NOT NULL,"
		" attempts integer NOT NULL DEFAULT 0,"
		" sqlstate text,"
		" message text,"
		" next_attempt timestamp with time zone NOT NULL DEFAULT '-infinity',"
		" added_columns jsonb)",
		"CREATE INDEX metrics_pending_partition_type_next_attempt_id"
		" ON metrics_pending (partition_type, next_attempt, id)",
		"CREATE INDEX metrics_pending_trial_id ON metrics_pending (trial_id)",
		"COMMENT ON TABLE metrics_pending IS 'reported rows whose partition does not exist yet, in the columns of metrics; the background worker or metrics_maintain() moves them'",
		"COMMENT ON COLUMN metrics_pending.attempts IS 'how often metrics has refused the row; sqlstate and message say why'",
		"COMMENT ON COLUMN metrics_pending.next_attempt IS 'not before then'",
		"COMMENT ON COLUMN metrics_pending.added_columns IS 'what columns that were added to metrics had as their defaults when the row was reported, by name'",
		NULL},
	},
	{
		.action = "create the tables that say what partitions there should be and how maintenance fares",
		.relation = "metrics_managed_table",
		.estimate = 10000,
		.sql = (const char *const []) {
		"CREATE TABLE metrics_route_pattern ("
		" pattern text NOT NULL CONSTRAINT metrics_route_pattern_pkey PRIMARY KEY,"
		" partition_key text"
		" CONSTRAINT metrics_route_pattern_partition_key_fkey REFERENCES metrics_partition_kind (partition_key))",
		"COMMENT ON TABLE metrics_route_pattern IS 'partition key of the metric groups that are LIKE a pattern and have no route of their own; the longest pattern counts'",
		"COMMENT ON COLUMN metrics_route_pattern.partition_key IS 'NULL: each group is a key of its own, of kind time'",

		"CREATE TABLE metrics_managed_table ("
		" parent regclass NOT NULL CONSTRAINT metrics_managed_table_pkey PRIMARY KEY,"
		" partitions_created bigint NOT NULL DEFAULT 0,"
		" rows_moved bigint NOT NULL DEFAULT 0,"
		" last_change timestamp with time zone)",
		"COMMENT ON TABLE metrics_managed_table IS 'tables partitioned by a text key that get their partitions from metrics_ext, this store among them'",
		"COMMENT ON COLUMN metrics_managed_table.last_change IS 'when maintenance last created a partition or moved rows'",
		"INSERT INTO metrics_managed_table VALUES ('metrics')",

		"CREATE TABLE metrics_partition ("
		" partition regclass NOT NULL CONSTRAINT metrics_partition_pkey PRIMARY KEY,"
		" created timestamp with time zone NOT NULL DEFAULT now(),"
		" created_by text NOT NULL)",
		"COMMENT ON TABLE metrics_partition IS 'partitions that metrics_ext made, when, and for whom'",

		"CREATE TABLE metrics_failure ("
		" parent regclass NOT NULL"
		" CONSTRAINT metrics_failure_parent_fkey REFERENCES metrics_managed_table (parent) ON DELETE CASCADE,"
		" partition_key text,"
		" attempts integer NOT NULL DEFAULT 1,"
		" failed_at timestamp with time zone NOT NULL DEFAULT now(),"
		" next_attempt timestamp with time zone NOT NULL,"
		" sqlstate text NOT NULL,"
		" message text NOT NULL,"
		" CONSTRAINT metrics_failure_parent_partition_key_key UNIQUE NULLS NOT DISTINCT (parent, partition_key))",
		"COMMENT ON TABLE metrics_failure IS 'what maintenance could not do, until it succeeds'",
		"COMMENT ON COLUMN metrics_failure.partition_key IS 'NULL: the whole table'",
		NULL},
		.run = grant_maintenance_tables,
	},
	{
		.action = "add the mark that says where maintenance may run by itself",
		.relation = "metrics_layout",
		.estimate = 500,
		.sql = (const char *const []) {
		"ALTER TABLE metrics_layout ADD COLUMN active_in text",
		"COMMENT ON COLUMN metrics_layout.active_in IS 'server, database and table for which maintenance was allowed to run by itself; a restored copy is none of them until its first report'",
		NULL},
	},
	{0}
};
