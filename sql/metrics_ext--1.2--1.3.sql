\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.3'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

--
-- Worker
--
CREATE FUNCTION @extschema@.metrics_worker_status(
    OUT parent regclass, OUT pid integer, OUT activity text, OUT partitions_created bigint, OUT rows_moved bigint,
    OUT last_change timestamptz, OUT pending_rows bigint, OUT failures bigint, OUT partition_key text, OUT sqlstate text,
    OUT message text, OUT attempts integer, OUT next_attempt timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_worker_status'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION @extschema@.metrics_worker_status() IS
'what the view metrics_worker_status shows';

CREATE VIEW @extschema@.metrics_worker_status AS
SELECT * FROM @extschema@.metrics_worker_status();
COMMENT ON VIEW @extschema@.metrics_worker_status IS
'each table that gets its partitions from metrics_ext: the background worker if it is at work in this database, what was done so far, the rows that wait, how many things fail, and the latest failure; no rows without a store';
COMMENT ON COLUMN @extschema@.metrics_worker_status.activity IS
'for those who may see what other sessions do: NULL without pg_read_all_stats';
GRANT SELECT ON @extschema@.metrics_worker_status TO PUBLIC;

SELECT @extschema@.metrics_upgrade_store();
