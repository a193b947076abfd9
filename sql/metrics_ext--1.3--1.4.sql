\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.4'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

--
-- What the views are made of
--
CREATE FUNCTION @extschema@.metrics_ratio(numerator double precision, denominator double precision)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_ratio'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_ratio(double precision, double precision) IS
'numerator / denominator; 0 unless the denominator is positive and the result finite';

CREATE FUNCTION @extschema@.metrics_latency(sketch bytea, fraction double precision)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_latency'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_latency(bytea, double precision) IS
'the value at index int(n * fraction) of n sorted latencies, from their stored sketch, within its error; 0 without a sketch';

CREATE FUNCTION @extschema@.metrics_is_latency_sketch(stored bytea)
RETURNS boolean
AS 'MODULE_PATHNAME', 'metrics_is_latency_sketch'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_is_latency_sketch(bytea) IS
'whether bytes are a stored metrics_sketch of relative error 0.01 with finite values that are not negative; a CHECK of the store asks it';

--
-- Writers
--
CREATE FUNCTION @extschema@.metrics_start_run(
    run_id text DEFAULT NULL, config jsonb DEFAULT '{}', at timestamptz DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'metrics_start_run'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_start_run(text, jsonb, timestamptz) IS
'start a run of a pipeline; returns its id, run_YYYYmmdd_HHMMSS_xxxxxxxx in UTC if none is given. at NULL means now';

CREATE FUNCTION @extschema@.metrics_finish_run(run_id text, at timestamptz DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_finish_run'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_finish_run(text, timestamptz) IS
'a running run is completed; called again it changes nothing. at NULL means now';

CREATE FUNCTION @extschema@.metrics_fail_run(run_id text, at timestamptz DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_fail_run'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_fail_run(text, timestamptz) IS
'a running run has failed; what was reported stays. Called again it changes nothing. at NULL means now';

CREATE FUNCTION @extschema@.metrics_start_stage(run_id text, stage_name text, at timestamptz DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_start_stage'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_start_stage(text, text, timestamptz) IS
'start a stage of a run; of two starts the first counts. A stage that is not started begins with the earliest report of an operator. at NULL means now';

CREATE FUNCTION @extschema@.metrics_finish_stage(run_id text, stage_name text, at timestamptz DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_finish_stage'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_finish_stage(text, text, timestamptz) IS
'finish a stage of a run; of two ends the later counts. at NULL means now';

CREATE FUNCTION @extschema@.metrics_report_operator(
    run_id text, stage_name text, operator_name text, worker_id text,
    input_records bigint, output_records bigint, total_time double precision, error_count bigint DEFAULT 0,
    latencies double precision[] DEFAULT NULL, weights bigint[] DEFAULT NULL,
    sketch @extschema@.metrics_sketch DEFAULT NULL, custom_metrics jsonb DEFAULT '{}',
    at timestamptz DEFAULT pg_catalog.now())
RETURNS boolean
AS 'MODULE_PATHNAME', 'metrics_report_operator'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_report_operator(text, text, text, text, bigint, bigint, double precision, bigint, double precision[], bigint[], @extschema@.metrics_sketch, jsonb, timestamptz) IS
'report what a worker did in an operator since its last report; false if the same names were reported at the same time before. Times in seconds, latencies of records with how many took as long, or a sketch of them. Without at there is no protection against a report sent twice';

CREATE FUNCTION @extschema@.metrics_report_operators(reports jsonb)
RETURNS bigint
AS 'MODULE_PATHNAME', 'metrics_report_operators'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_report_operators(jsonb) IS
'report an array of objects whose keys are the arguments of metrics_report_operator(), all or nothing; returns how many were not reported before';

--
-- Retention
--
CREATE FUNCTION @extschema@.metrics_drop_runs(older_than timestamptz)
RETURNS bigint
AS 'MODULE_PATHNAME', 'metrics_drop_runs'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_drop_runs(timestamptz) IS
'drop the runs that ended before a time, with their stages and operator rows; returns how many. A running run stays. For the owner of the store';

CREATE FUNCTION @extschema@.metrics_partition_by_time("table" regclass, width interval, retention interval DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_partition_by_time'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_partition_by_time(regclass, interval, interval) IS
'turn pipeline_operators, or system_metrics, into time ranges that pg_partman makes and, after retention, drops; called again it sets retention. Holds the table for itself while rows move. For the owner of the store';

--
-- Readers
--
CREATE FUNCTION @extschema@.metrics_list_runs(OUT run_id text)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'metrics_list_runs'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 1000;
COMMENT ON FUNCTION @extschema@.metrics_list_runs() IS
'the ids of all runs, the one that was started last first';

CREATE FUNCTION @extschema@.metrics_operator_percentiles(
    bucket interval, stage_name text DEFAULT NULL, operator_name text DEFAULT NULL, run_id text DEFAULT NULL,
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
    OUT bucket timestamptz, OUT stage text, OUT operator text, OUT input_records bigint, OUT total_time double precision,
    OUT n bigint, OUT min double precision, OUT p50 double precision, OUT p95 double precision,
    OUT p99 double precision, OUT max double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_operator_percentiles'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_operator_percentiles(interval, text, text, text, timestamptz, timestamptz) IS
'latencies of operators by hour, day or any bucket, counted from Monday 2000-01-03 00:00 UTC, over workers and runs; since inclusive, until exclusive. Seconds, within 1 %; n is the records whose latency was measured';

SELECT @extschema@.metrics_upgrade_store();
