\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.3'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

--
-- Routes and pending rows
--
CREATE FUNCTION @extschema@.metrics_route_group(
    pattern text, partition_key text DEFAULT NULL, kind text DEFAULT 'time')
RETURNS text
AS 'MODULE_PATHNAME', 'metrics_route_group'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_route_group(text, text, text) IS
'route the metric groups that are LIKE a pattern, or one group, to a partition key of kind ''batch'' or ''time''; key NULL makes each group a key of its own; returns the key. For the owner of the store';

CREATE FUNCTION @extschema@.metrics_unroute_group(pattern text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'metrics_unroute_group'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_unroute_group(text) IS
'forget the route of a pattern or a group, as it was given to metrics_route_group(); false if there was none. For the owner of the store';

CREATE FUNCTION @extschema@.metrics_list_pending_keys(
    OUT partition_key text, OUT rows bigint, OUT failing bigint, OUT first_report timestamptz,
    OUT attempts integer, OUT next_attempt timestamptz, OUT sqlstate text, OUT message text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_list_pending_keys'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION @extschema@.metrics_list_pending_keys() IS
'what the view metrics_pending_keys shows';

CREATE VIEW @extschema@.metrics_pending_keys AS
SELECT * FROM @extschema@.metrics_list_pending_keys();
GRANT SELECT ON @extschema@.metrics_pending_keys TO PUBLIC;
COMMENT ON VIEW @extschema@.metrics_pending_keys IS
'the partition keys with rows that wait for their partition, and why; for who may read metrics_failure';
COMMENT ON COLUMN @extschema@.metrics_pending_keys.failing IS 'rows that metrics has refused';
COMMENT ON COLUMN @extschema@.metrics_pending_keys.first_report IS 'end_time of the row that is first in line';
COMMENT ON COLUMN @extschema@.metrics_pending_keys.message IS
'why the key has no partition, or why the row that is tried last was refused, or why nothing is done for the table';

-- Bring the store along, in this transaction; as its owner, see src/store/layout.c.
SELECT @extschema@.metrics_upgrade_store();
