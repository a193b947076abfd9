\echo Use "CREATE EXTENSION metrics_ext" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

-- Where the store is: at most one row.  The store itself belongs to the user
-- who called metrics_create_store(), never to the extension.
CREATE TABLE @extschema@.metrics_store (
    store regclass NOT NULL,
    singleton boolean NOT NULL DEFAULT true,
    CONSTRAINT metrics_store_pkey PRIMARY KEY (singleton),
    CONSTRAINT metrics_store_singleton_check CHECK (singleton)
);
GRANT SELECT ON TABLE @extschema@.metrics_store TO PUBLIC;
COMMENT ON TABLE @extschema@.metrics_store IS
'where the metrics store of this database is; written by metrics_create_store()';
COMMENT ON COLUMN @extschema@.metrics_store.store IS 'the partitioned table metrics of the store';
COMMENT ON COLUMN @extschema@.metrics_store.singleton IS 'always true: one store a database';
SELECT pg_catalog.pg_extension_config_dump('@extschema@.metrics_store', '');

--
-- The store
--
CREATE FUNCTION @extschema@.metrics_create_store(schema name DEFAULT 'metrics')
RETURNS regclass
AS 'MODULE_PATHNAME', 'metrics_create_store'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_create_store(name) IS
'create the metrics store in a schema, owned by the caller, or register the one that is there; returns the partitioned table';

CREATE FUNCTION @extschema@.metrics_upgrade_store()
RETURNS text
AS 'MODULE_PATHNAME', 'metrics_upgrade_store'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_upgrade_store() IS
'bring the store to the layout of the installed version; returns that layout, NULL if there is no store';

CREATE FUNCTION @extschema@.metrics_upgrade_plan(
    OUT step integer, OUT layout text, OUT action text, OUT relation text,
    OUT lock_mode text, OUT estimate interval)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_upgrade_plan'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_upgrade_plan() IS
'what an update would do to the store: locks, steps and what stands in the way, in order, with the time each takes once its lock is held';

CREATE FUNCTION @extschema@.metrics_grant(role name, access text)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_grant'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_grant(name, text) IS
'grant a role what a ''reader'' or a ''writer'' of the store needs; for the owner of the store';

--
-- Writers
--
CREATE FUNCTION @extschema@.metrics_register_trial(
    trial_id integer, run_id integer DEFAULT 0, experiment_id integer DEFAULT NULL,
    searcher_metric text DEFAULT NULL, smaller_is_better boolean DEFAULT true)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_register_trial'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_register_trial(integer, integer, integer, text, boolean) IS
'register a trial, or its next run; experiment_id and searcher_metric NULL keep what is registered, smaller_is_better counts with searcher_metric, a lower run id is an error';

CREATE FUNCTION @extschema@.metrics_report(
    trial_id integer, metric_group text, metrics jsonb, steps_completed integer DEFAULT NULL,
    trial_run_id integer DEFAULT 0, report_time timestamptz DEFAULT NULL,
    batch_metrics jsonb DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'metrics_report'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_report(integer, text, jsonb, integer, integer, timestamptz, jsonb) IS
'report metrics of a trial; returns the id of the row. report_time NULL means now, steps_completed is in batches and required unless the group is a profiling group';

CREATE FUNCTION @extschema@.metrics_report_batch(reports jsonb)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'metrics_report_batch'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_report_batch(jsonb) IS
'report an array of objects whose keys are the arguments of metrics_report(), all or nothing; returns the ids of the rows in the order of the array';

CREATE FUNCTION @extschema@.metrics_recompute_summary(trial_id integer)
RETURNS jsonb
AS 'MODULE_PATHNAME', 'metrics_recompute_summary'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_recompute_summary(integer) IS
'compute the summary, the latest and the best validation of a trial again from its unarchived rows, store and return the summary; needed only after rows were written without metrics_report()';

CREATE FUNCTION @extschema@.metrics_populate(trials integer, steps integer)
RETURNS integer
AS 'MODULE_PATHNAME', 'metrics_populate'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_populate(integer, integer) IS
'fill the store with sample data: new trials with as many training steps each, validations and, from version 1.1, profiling; returns the first trial id';

--
-- Readers
--
CREATE FUNCTION @extschema@.metrics_rows(
    trial_id integer, metric_group text DEFAULT NULL, after_batches integer DEFAULT -1,
    max_rows integer DEFAULT 1000, after_id bigint DEFAULT NULL,
    OUT id bigint, OUT trial_run_id integer, OUT group_name text, OUT total_batches integer,
    OUT end_time timestamptz, OUT metrics jsonb)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_rows'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 1000;
COMMENT ON FUNCTION @extschema@.metrics_rows(integer, text, integer, integer, bigint) IS
'unarchived rows of a trial, of one group or of all that count steps, in order of batches and id; the next page starts after the last row''s total_batches and id';

CREATE FUNCTION @extschema@.metrics_timeseries(
    trial_id integer, metric_group text, metric_name text, max_points integer DEFAULT 1000,
    start_batches integer DEFAULT NULL, end_batches integer DEFAULT NULL,
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
    OUT total_batches integer, OUT end_time timestamptz, OUT epoch double precision, OUT value jsonb)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_timeseries'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 1000;
COMMENT ON FUNCTION @extschema@.metrics_timeseries(integer, text, text, integer, integer, integer, timestamptz, timestamptz) IS
'one metric of a trial, at most max_points points chosen by largest triangle three buckets, the first and the last among them; batches inclusive, since inclusive, until exclusive';

CREATE FUNCTION @extschema@.metrics_trials_snapshot(
    experiment_id integer, metric_group text, metric_name text, batches_processed integer,
    batches_margin integer DEFAULT 0, since timestamptz DEFAULT NULL,
    OUT trial_id integer, OUT total_batches integer, OUT end_time timestamptz, OUT value double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_trials_snapshot'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_trials_snapshot(integer, text, text, integer, integer, timestamptz) IS
'a metric of all trials of an experiment within batches_margin (at most 100) of a number of batches, unarchived rows later than since, in order of time';

CREATE FUNCTION @extschema@.metrics_names(
    experiment_id integer, OUT group_name text, OUT name text, OUT type text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_names'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_names(integer) IS
'the groups, names and types of the metrics that the trials of an experiment reported, profiling metrics included; type NULL where the trials differ';

CREATE FUNCTION @extschema@.metrics_profiling_values(
    metrics jsonb, OUT agent text, OUT device text, OUT name text, OUT value double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_profiling_values'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE ROWS 4;
COMMENT ON FUNCTION @extschema@.metrics_profiling_values(jsonb) IS
'the numbers in a profiling document {name: value}, {agent: {name: value}} or {agent: {device: {name: value}}}, one row each';

CREATE FUNCTION @extschema@.metrics_best_trial(experiment_id integer)
RETURNS integer
AS 'MODULE_PATHNAME', 'metrics_best_trial'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_best_trial(integer) IS
'the trial of an experiment with the best value of its searcher metric; the lower id of equals, NaN last';
