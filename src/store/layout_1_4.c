/*
 * layout_1_4.c
 *	  Layout 1.4: runs, stages and operators of pipelines, and views for BI
 *	  tools.
 *
 * A row of an operator is a fact: it says what one worker has measured up to a
 * time, and its key makes that a report sent twice is one.  All figures of
 * stages and runs are views over the facts.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"

#include "sql.h"
#include "store/layout.h"

/*
 * Bounds that keep every figure of a view within its type: records exact in a
 * double and in JavaScript, seconds far from what a sum could overflow, and
 * keys within an index entry.
 */
#define NAME_CHECK(table, column) \
	" CONSTRAINT " table "_" column "_check CHECK (octet_length(" column ") BETWEEN 1 AND 500)"
#define RECORDS_CHECK(column) \
	" CONSTRAINT pipeline_operators_" column "_check CHECK (" column " BETWEEN 0 AND 9007199254740991)"
#define FINITE_CHECK(table, column) \
	" CONSTRAINT " table "_" column "_check CHECK (isfinite(" column "))"

#define SKETCH_CHECK \
	"CONSTRAINT pipeline_operators_latency_sketch_check CHECK (@extension@.metrics_is_latency_sketch(latency_sketch))"

/* The check on sketches goes with the extension, whose function it calls. */
static void
restore_sketch_check(const MetricsStore *store)
{
	run_sql("SELECT FROM pg_constraint WHERE conrelid = 'pipeline_operators'::regclass"
			" AND conname = 'pipeline_operators_latency_sketch_check'");
	if (SPI_processed == 0)
		run_sql("%s", store_query_text(store, "ALTER TABLE pipeline_operators ADD " SKETCH_CHECK, NULL));
}

/* Whoever may read or write the store's metrics may do so with these tables. */
static void
grant_to_readers_and_writers(const MetricsStore *store)
{
	SPITupleTable *rows;

	run_sql("SELECT CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,"
			" bool_or(privilege_type = 'INSERT')"
			" FROM pg_class c, aclexplode(relacl)"
			" WHERE c.oid = 'metrics'::regclass AND privilege_type IN ('SELECT', 'INSERT') AND grantee <> relowner"
			" AND (grantee = 0 OR has_table_privilege(grantee, 'metrics_layout', 'SELECT'))"
			" GROUP BY grantee");
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
	{
		const char *role = SPI_getvalue(rows->vals[row], rows->tupdesc, 1);

		store_grant_views(store, role);
		store_grant_pipeline(store, role, *SPI_getvalue(rows->vals[row], rows->tupdesc, 2) == 't');
	}
}

const LayoutLock layout_locks_1_4[] = {
	{0}
};

const LayoutStep layout_steps_1_4[] = {
	{
		.action = "create the tables of pipelines",
		.relation = "pipeline_operators",
		.estimate = 15000,
		.sql = (const char *const []) {
		"CREATE SEQUENCE pipeline_ordinal_seq AS bigint",
		"COMMENT ON SEQUENCE pipeline_ordinal_seq IS 'order in which stages and operator rows came'",

		"CREATE TABLE pipeline_runs ("
		" run_id text NOT NULL CONSTRAINT pipeline_runs_pkey PRIMARY KEY,"
		" status text NOT NULL DEFAULT 'running',"
		" start_time timestamp with time zone NOT NULL DEFAULT clock_timestamp(),"
		" end_time timestamp with time zone,"
		" config jsonb NOT NULL DEFAULT '{}',"
		NAME_CHECK("pipeline_runs", "run_id") ","
		" CONSTRAINT pipeline_runs_status_check CHECK (status IN ('running', 'completed', 'failed')),"
		FINITE_CHECK("pipeline_runs", "start_time") ","
		" CONSTRAINT pipeline_runs_end_time_check CHECK ((end_time IS NULL) = (status = 'running') AND isfinite(end_time)),"
		" CONSTRAINT pipeline_runs_config_check CHECK (jsonb_typeof(config) = 'object'))",
		"CREATE INDEX pipeline_runs_start_time_run_id ON pipeline_runs (start_time, run_id)",
		"CREATE INDEX pipeline_runs_config_start_time_run_id"
		" ON pipeline_runs (jsonb_hash_extended(config, 0), start_time, run_id)",
		"COMMENT ON TABLE pipeline_runs IS 'runs of pipelines'",
		"COMMENT ON COLUMN pipeline_runs.status IS 'running, completed or failed'",
		"COMMENT ON COLUMN pipeline_runs.config IS 'what the run was started with; runs of equal config are compared'",

		"CREATE TABLE pipeline_stages ("
		" run_id text NOT NULL"
		" CONSTRAINT pipeline_stages_run_id_fkey REFERENCES pipeline_runs (run_id) ON DELETE CASCADE,"
		" stage_name text NOT NULL,"
		" ordinal bigint NOT NULL DEFAULT nextval('pipeline_ordinal_seq'),"
		" started boolean NOT NULL DEFAULT true,"
		" start_time timestamp with time zone NOT NULL DEFAULT clock_timestamp(),"
		" end_time timestamp with time zone,"
		" CONSTRAINT pipeline_stages_pkey PRIMARY KEY (run_id, stage_name),"
		NAME_CHECK("pipeline_stages", "stage_name") ","
		FINITE_CHECK("pipeline_stages", "start_time") ","
		FINITE_CHECK("pipeline_stages", "end_time") ")",
		"CREATE INDEX pipeline_stages_start_time ON pipeline_stages (start_time)",
		"COMMENT ON TABLE pipeline_stages IS 'stages of runs'",
		"COMMENT ON COLUMN pipeline_stages.ordinal IS 'order of execution within the run'",
		"COMMENT ON COLUMN pipeline_stages.started IS 'false: made by the first report of an operator; start_time is that of the earliest'",

		"CREATE TABLE pipeline_operators ("
		" run_id text NOT NULL,"
		" stage_name text NOT NULL,"
		" operator_name text NOT NULL,"
		" worker_id text NOT NULL,"
		" at timestamp with time zone NOT NULL,"
		" input_records bigint NOT NULL,"
		" output_records bigint NOT NULL,"
		" total_time double precision NOT NULL,"
		" error_count bigint NOT NULL DEFAULT 0,"
		" latency_sketch bytea,"
		" custom_metrics jsonb NOT NULL DEFAULT '{}',"
		" ordinal bigint NOT NULL DEFAULT nextval('pipeline_ordinal_seq'),"
		" CONSTRAINT pipeline_operators_pkey PRIMARY KEY (run_id, stage_name, operator_name, worker_id, at),"
		" CONSTRAINT pipeline_operators_run_id_stage_name_fkey FOREIGN KEY (run_id, stage_name)"
		" REFERENCES pipeline_stages (run_id, stage_name) ON DELETE CASCADE,"
		NAME_CHECK("pipeline_operators", "operator_name") ","
		NAME_CHECK("pipeline_operators", "worker_id") ","
		FINITE_CHECK("pipeline_operators", "at") ","
		RECORDS_CHECK("input_records") ","
		RECORDS_CHECK("output_records") ","
		" CONSTRAINT pipeline_operators_total_time_check CHECK (total_time BETWEEN 0 AND 1e15),"
		RECORDS_CHECK("error_count") ","
		" " SKETCH_CHECK ","
		" CONSTRAINT pipeline_operators_custom_metrics_check CHECK (jsonb_typeof(custom_metrics) = 'object'))",
		"COMMENT ON TABLE pipeline_operators IS 'what workers reported of operators: rows of one operator and worker add up'",
		"COMMENT ON COLUMN pipeline_operators.at IS 'when it was measured; with the names, the key of a report'",
		"COMMENT ON COLUMN pipeline_operators.total_time IS 'seconds that the worker spent in the operator'",
		"COMMENT ON COLUMN pipeline_operators.latency_sketch IS 'seconds a record took, as a metrics_sketch of relative error 0.01'",
		"COMMENT ON COLUMN pipeline_operators.ordinal IS 'order of arrival, for rows of the same time'",
		NULL},
		.run = restore_sketch_check,
		.rebuilds = true,
	},
	{
		.action = "create the views for BI tools",
		.relation = STORE_VIEWS,
		.estimate = 30000,
		.run = store_create_views,
		.rebuilds = true,
		.blockers = store_views_blockers,
		.obstacle = "its views cannot be made",
		.hint = "Drop or rename what stands in their place, or grant the owner of the store what it lacks; metrics_upgrade_plan() lists it, too."
	},
	{
		.action = "grant them to the readers and writers of the store",
		.relation = "pipeline_operators",
		.estimate = 1000,
		.run = grant_to_readers_and_writers,
	},
	{0}
};
