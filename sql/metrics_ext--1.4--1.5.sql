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

SELECT @extschema@.metrics_upgrade_store();
