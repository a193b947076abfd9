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

SELECT @extschema@.metrics_upgrade_store();
