\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.5'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

--
-- Performance data: changes of a series
--
CREATE FUNCTION @extschema@.metrics_detect_changes(
    push_timestamps timestamptz[], push_ids bigint[], vals double precision[],
    min_back_window integer DEFAULT 12, max_back_window integer DEFAULT 24,
    fore_window integer DEFAULT 12, t_threshold double precision DEFAULT 7,
    OUT push_timestamp timestamptz, OUT push_id bigint, OUT t double precision,
    OUT prev_value double precision, OUT new_value double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_detect_changes'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE COST 1000 ROWS 1;
COMMENT ON FUNCTION @extschema@.metrics_detect_changes(timestamptz[], bigint[], double precision[], integer, integer, integer, double precision) IS
'pushes where the level of a series changes, in order of time: t is Student''s t of the measurements before and from it, prev_value and new_value their means. The arrays are those of the measurements, in order of arrival; windows count measurements, the back windows pushes as well. The rules are Perfherder''s';

CREATE FUNCTION @extschema@.metrics_change_scores(
    push_timestamps timestamptz[], push_ids bigint[], vals double precision[],
    min_back_window integer DEFAULT 12, max_back_window integer DEFAULT 24,
    fore_window integer DEFAULT 12, t_threshold double precision DEFAULT 7,
    OUT push_timestamp timestamptz, OUT push_id bigint, OUT t double precision,
    OUT prev_value double precision, OUT new_value double precision, OUT is_change boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_change_scores'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE COST 1000 ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_change_scores(timestamptz[], bigint[], double precision[], integer, integer, integer, double precision) IS
'every push of a series with what metrics_detect_changes() found there; prev_value of the first push is NULL';

--
-- Performance data: comparing two sets of measurements
--
CREATE FUNCTION @extschema@.metrics_compare(
    base_values double precision[], new_values double precision[],
    lower_is_better boolean DEFAULT true, resamples integer DEFAULT 1000,
    OUT base_count integer, OUT new_count integer,
    OUT base_mean double precision, OUT new_mean double precision,
    OUT base_median double precision, OUT new_median double precision,
    OUT base_stddev double precision, OUT new_stddev double precision,
    OUT base_stddev_pct double precision, OUT new_stddev_pct double precision,
    OUT delta double precision, OUT delta_pct double precision, OUT magnitude double precision,
    OUT t double precision, OUT confidence text, OUT is_confident boolean, OUT more_runs_needed boolean,
    OUT is_better boolean, OUT class text,
    OUT u double precision, OUT p_value double precision, OUT cliffs_delta double precision, OUT effect text,
    OUT ci_low double precision, OUT ci_high double precision)
AS 'MODULE_PATHNAME', 'metrics_compare'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION @extschema@.metrics_compare(double precision[], double precision[], boolean, integer) IS
'how two sets of measurements differ: Student''s t with Perfherder''s rules for single measurements, Mann-Whitney''s U (pairs in which the base is greater) with its two-sided p, Cliff''s delta (above 0 if the new ones are greater), and a 95 % bootstrap interval of the difference of the means';

--
-- Performance data: what measurements refer to
--
CREATE FUNCTION @extschema@.metrics_add_framework(name text, enabled boolean DEFAULT true) RETURNS integer
AS 'MODULE_PATHNAME', 'metrics_add_framework'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_add_framework(text, boolean) IS
'registers a framework whose measurements are taken, or says whether they still are, and returns its id; for the owner of the store';

CREATE FUNCTION @extschema@.metrics_add_repository(
    name text, alerts_enabled boolean DEFAULT true, is_try boolean DEFAULT false, keep interval DEFAULT NULL)
RETURNS regclass
AS 'MODULE_PATHNAME', 'metrics_add_repository'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_add_repository(text, boolean, boolean, interval) IS
'registers a repository, or changes what is said of it, and returns its partition of performance_datum; for the owner of the store';

CREATE FUNCTION @extschema@.metrics_add_push(
    repository text, revision text, push_time timestamptz, author text DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'metrics_add_push'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_add_push(text, text, timestamptz, text) IS
'registers a push to a repository and returns its id, also if it is there already; another time for the same push is an error';

CREATE FUNCTION @extschema@.metrics_perf_signature_hash(properties jsonb) RETURNS text
AS 'MODULE_PATHNAME', 'metrics_perf_signature_hash'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_perf_signature_hash(jsonb) IS
'the hash that Perfherder gives a series of these properties: suite, option_collection_hash, machine_platform, and test, test_options, parent_signature where it has them';

--
-- Performance data: ingestion
--
CREATE FUNCTION @extschema@.metrics_report_perf(
    repository text, push bigint, job bigint, artifact jsonb, platform text DEFAULT '',
    options text[] DEFAULT '{}', machine text DEFAULT NULL, submit_time timestamptz DEFAULT NULL,
    tier integer DEFAULT 1,
    OUT created integer, OUT existing integer, OUT skipped integer, OUT reason text)
AS 'MODULE_PATHNAME', 'metrics_report_perf'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_report_perf(text, bigint, bigint, jsonb, text, text[], text, timestamptz, integer) IS
'stores the measurements of a PERFHERDER_DATA artifact that a job of a push made, all or none, and says how many were created, how many were there already (their first value stays), and how many were skipped for a reason, which is an unknown framework or one that is not enabled. platform and options (of the build) tell series apart; submit_time and tier are those of the job';

--
-- Performance data: look-ups
--
CREATE FUNCTION @extschema@.metrics_perf_data(
    repository text, signature_ids integer[] DEFAULT NULL, push_ids bigint[] DEFAULT NULL,
    job_ids bigint[] DEFAULT NULL, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
    age interval DEFAULT NULL, no_retriggers boolean DEFAULT false, replicates boolean DEFAULT false,
    OUT signature_id integer, OUT push_timestamp timestamptz, OUT push_id bigint, OUT revision text,
    OUT job_id bigint, OUT value double precision, OUT replicate integer, OUT machine text,
    OUT submit_time timestamptz, OUT multi_commit boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_perf_data'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 1000;
COMMENT ON FUNCTION @extschema@.metrics_perf_data(text, integer[], bigint[], bigint[], timestamptz, timestamptz, interval, boolean, boolean) IS
'measurements of series, of pushes, of jobs, or of what is of all that are given, within an interval whose bounds are not part of it; in order of series, push_timestamp, push and arrival. no_retriggers keeps the first of a series and push; replicates gives each replicate instead of the value, numbered from 1';

CREATE FUNCTION @extschema@.metrics_perf_signatures(
    repository text, framework text DEFAULT NULL, platform text DEFAULT NULL,
    signature_hash text DEFAULT NULL, parent_id integer DEFAULT NULL, subtests boolean DEFAULT NULL,
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
    OUT id integer, OUT signature_hash text, OUT framework text, OUT application text, OUT platform text,
    OUT options text[], OUT option_collection_hash text, OUT suite text, OUT test text,
    OUT extra_options text[], OUT parent_id integer, OUT has_subtests boolean, OUT lower_is_better boolean,
    OUT measurement_unit text, OUT tags text[], OUT last_updated timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_perf_signatures'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_perf_signatures(text, text, text, text, integer, boolean, timestamptz, timestamptz) IS
'series of a repository in order of id, read without a look at their measurements; since and until bound last_updated and are part of the interval; subtests true: only series with a parent, false: only those without';

CREATE FUNCTION @extschema@.metrics_perf_compare(
    repository text, base_pushes bigint[], new_pushes bigint[], new_repository text DEFAULT NULL,
    framework text DEFAULT NULL, subtests boolean DEFAULT true, replicates boolean DEFAULT false,
    resamples integer DEFAULT 1000,
    OUT base_signature_id integer, OUT new_signature_id integer, OUT framework text, OUT platform text,
    OUT options text[], OUT application text, OUT suite text, OUT test text, OUT extra_options text[],
    OUT measurement_unit text, OUT lower_is_better boolean,
    OUT base_count integer, OUT new_count integer,
    OUT base_mean double precision, OUT new_mean double precision,
    OUT base_median double precision, OUT new_median double precision,
    OUT base_stddev double precision, OUT new_stddev double precision,
    OUT base_stddev_pct double precision, OUT new_stddev_pct double precision,
    OUT delta double precision, OUT delta_pct double precision, OUT magnitude double precision,
    OUT t double precision, OUT confidence text, OUT is_confident boolean, OUT more_runs_needed boolean,
    OUT is_better boolean, OUT class text,
    OUT u double precision, OUT p_value double precision, OUT cliffs_delta double precision, OUT effect text,
    OUT ci_low double precision, OUT ci_high double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_perf_compare'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_perf_compare(text, bigint[], bigint[], text, text, boolean, boolean, integer) IS
'each series of some pushes compared with the same series of others, by metrics_compare(), in order of framework, suite and test; series are the same if framework, suite, test, platform, build options, extra options and application are. new_repository NULL: the same repository';

CREATE FUNCTION @extschema@.metrics_perf_changes(
    repository text, signature_id integer, since timestamptz DEFAULT NULL,
    OUT push_timestamp timestamptz, OUT push_id bigint, OUT t double precision,
    OUT prev_value double precision, OUT new_value double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_perf_changes'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION @extschema@.metrics_perf_changes(text, integer, timestamptz) IS
'pushes where the level of a stored series changes, from since (inclusive) on, with the windows that the series was reported with';

--
-- Performance data: alerts
--
CREATE FUNCTION @extschema@.metrics_perf_alert(
    repository text, signature_id integer, max_age interval DEFAULT '14 days') RETURNS integer
AS 'MODULE_PATHNAME', 'metrics_perf_alert'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_perf_alert(text, integer, interval) IS
'generates the alerts of a series from its measurements of at most max_age after its latest alert, and returns how many are new. A change of less than the series'' threshold (2 %) is none; alerts of one push and framework share a summary';

CREATE PROCEDURE @extschema@.metrics_generate_alerts(
    repository text, framework text DEFAULT NULL, max_age interval DEFAULT '14 days')
AS 'MODULE_PATHNAME', 'metrics_generate_alerts'
LANGUAGE C;
COMMENT ON PROCEDURE @extschema@.metrics_generate_alerts(text, text, interval) IS
'calls metrics_perf_alert() for each series of a repository that was measured within max_age, and commits after each unless it is called within a transaction';

--
-- Performance data: retention
--
CREATE PROCEDURE @extschema@.metrics_expire_perf(repository text DEFAULT NULL, max_runs integer DEFAULT 1000)
AS 'MODULE_PATHNAME', 'metrics_expire_perf'
LANGUAGE C;
COMMENT ON PROCEDURE @extschema@.metrics_expire_perf(text, integer) IS
'removes the runs of a repository, or of all, whose last measurement is as old as the repository keeps them, with their measurements, max_runs at a time; commits after each step unless it is called within a transaction. For the owner of the store';

SELECT @extschema@.metrics_upgrade_store();
