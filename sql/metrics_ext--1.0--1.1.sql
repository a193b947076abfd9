\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.1'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

--
-- Profiling readers
--
CREATE FUNCTION @extschema@.metrics_profiling_rows(
    trial_id integer, metric_group text, metric_name text DEFAULT NULL,
    agent_id text DEFAULT NULL, gpu_uuid text DEFAULT NULL,
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
    after_time timestamptz DEFAULT NULL, after_id bigint DEFAULT NULL, max_rows integer DEFAULT 100,
    OUT id bigint, OUT end_time timestamptz, OUT agent text, OUT device text, OUT name text,
    OUT value double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_profiling_rows'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_profiling_rows(integer, text, text, text, text, timestamptz, timestamptz, timestamptz, bigint, integer) IS
'readings of a profiling group of a trial in order of time and id, since inclusive, until exclusive, one row a value; max_rows counts reports, and the next page starts after the last row''s end_time and id';

CREATE FUNCTION @extschema@.metrics_profiling_series(
    trial_id integer, OUT group_name text, OUT agent text, OUT device text, OUT name text,
    OUT latest timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_profiling_series'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_profiling_series(integer) IS
'the profiling series that a trial reported, with the time of the latest reading; device is a GPU or a disk';

-- Bring the store along, in this transaction; as its owner, see src/store/layout.c.
SELECT @extschema@.metrics_upgrade_store();
