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

CREATE FUNCTION @extschema@.metrics_pending_keys(
    OUT partition_key text, OUT rows bigint, OUT failing bigint, OUT first_report timestamptz,
    OUT attempts integer, OUT next_attempt timestamptz, OUT sqlstate text, OUT message text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_pending_keys'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION @extschema@.metrics_pending_keys() IS
'what the view metrics_pending_keys shows';

CREATE VIEW @extschema@.metrics_pending_keys AS
SELECT * FROM @extschema@.metrics_pending_keys();
GRANT SELECT ON @extschema@.metrics_pending_keys TO PUBLIC;
COMMENT ON VIEW @extschema@.metrics_pending_keys IS
'the partition keys with rows that wait for their partition, and why; for who may read metrics_failure';
COMMENT ON COLUMN @extschema@.metrics_pending_keys.failing IS 'rows that metrics has refused';
COMMENT ON COLUMN @extschema@.metrics_pending_keys.first_report IS 'end_time of the row that is first in line';
COMMENT ON COLUMN @extschema@.metrics_pending_keys.message IS
'why the key has no partition, or why the row that is tried last was refused, or why nothing is done for the table';

--
-- Partitions
--
CREATE FUNCTION @extschema@.metrics_add_partition(partition_key text, kind text DEFAULT 'time')
RETURNS regclass
AS 'MODULE_PATHNAME', 'metrics_add_partition'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_add_partition(text, text) IS
'make sure that the store has a partition for a key of kind batch or time; returns the partition. For the owner of the store';

CREATE FUNCTION @extschema@.metrics_add_partition(parent regclass, partition_key text)
RETURNS regclass
AS 'MODULE_PATHNAME', 'metrics_add_partition_to_table'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_add_partition(regclass, text) IS
'make sure that a managed table has a partition for a key, and that rows of the key in its default partition are there; returns the partition. For the owner of the table';

CREATE FUNCTION @extschema@.metrics_drop_partition(partition_key text, keep_table boolean DEFAULT true)
RETURNS regclass
AS 'MODULE_PATHNAME', 'metrics_drop_partition'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_drop_partition(text, boolean) IS
'detach the partition of a key from the store, with the routes to it; keep_table false drops it with its rows, otherwise the table is returned. For the owner of the store';

CREATE FUNCTION @extschema@.metrics_drop_partition(parent regclass, partition_key text, keep_table boolean DEFAULT true)
RETURNS regclass
AS 'MODULE_PATHNAME', 'metrics_drop_partition_of_table'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_drop_partition(regclass, text, boolean) IS
'detach the partition of a key from a managed table; keep_table false drops it with its rows, otherwise the table is returned. For the owner of the table';

CREATE FUNCTION @extschema@.metrics_manage_partitions(parent regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'metrics_manage_partitions'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_manage_partitions(regclass) IS
'from now on, rows in the default partition of a table partitioned by LIST on a text, varchar or name column get a partition of their key from the background worker or metrics_maintain(). For the owner of the table, as whom the owner of the store must be able to act';

CREATE FUNCTION @extschema@.metrics_unmanage_partitions(parent regclass)
RETURNS boolean
AS 'MODULE_PATHNAME', 'metrics_unmanage_partitions'
LANGUAGE C CALLED ON NULL INPUT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.metrics_unmanage_partitions(regclass) IS
'leave a table as it is from now on; false if it was not managed. For the owner of the table';

CREATE PROCEDURE @extschema@.metrics_drain(parent regclass, partition_key text)
AS 'MODULE_PATHNAME', 'metrics_drain'
LANGUAGE C;
COMMENT ON PROCEDURE @extschema@.metrics_drain(regclass, text) IS
'move the rows of a key out of the default partition of a managed table into a partition of their own, however many there are; waits and tries again until it gets the locks, unless it is called within a transaction. For the owner of the table';

CREATE PROCEDURE @extschema@.metrics_maintain()
AS 'MODULE_PATHNAME', 'metrics_maintain'
LANGUAGE C;
COMMENT ON PROCEDURE @extschema@.metrics_maintain() IS
'do now what the background worker does by itself, also what failed and would be tried again later: create partitions, move rows; what fails is a warning, and a row of metrics_failure. For the owner of the store';

CREATE FUNCTION @extschema@.metrics_partition_key(partition regclass)
RETURNS text
AS 'MODULE_PATHNAME', 'metrics_partition_key'
LANGUAGE C STRICT STABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_partition_key(regclass) IS
'the key that a list partition is for; NULL for a default partition, one of several keys, and what is no partition';

CREATE FUNCTION @extschema@.metrics_partitions(
    OUT parent regclass, OUT partition_key text, OUT partition regclass, OUT kind text,
    OUT rows_estimate bigint, OUT size bigint, OUT created timestamptz, OUT created_by text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_partitions'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_partitions() IS
'the partitions of managed tables; what the view metrics_partitions shows';

CREATE VIEW @extschema@.metrics_partitions AS SELECT * FROM @extschema@.metrics_partitions();
COMMENT ON VIEW @extschema@.metrics_partitions IS
'partitions of the store and of managed tables: key, kind, estimated rows, size in bytes, when and by whom they were made; none if there is no store';
GRANT SELECT ON @extschema@.metrics_partitions TO PUBLIC;

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

--
-- Counters and gauges: sums over neighbours in time, of one state
--
CREATE FUNCTION @extschema@.metrics_counter_add(state internal, at timestamptz, v float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_counter_add';
COMMENT ON FUNCTION @extschema@.metrics_counter_add(internal, timestamptz, float8) IS 'transition function of aggregates over counters and gauges';

CREATE FUNCTION @extschema@.metrics_counter_remove(state internal, at timestamptz, v float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_counter_remove';
COMMENT ON FUNCTION @extschema@.metrics_counter_remove(internal, timestamptz, float8) IS 'inverse transition function of aggregates over counters and gauges';

CREATE FUNCTION @extschema@.metrics_counter_combine(state internal, other internal) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_counter_combine';
COMMENT ON FUNCTION @extschema@.metrics_counter_combine(internal, internal) IS 'combine function of aggregates over counters and gauges';

CREATE FUNCTION @extschema@.metrics_counter_serialize(state internal) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_counter_serialize';
COMMENT ON FUNCTION @extschema@.metrics_counter_serialize(internal) IS 'serialization function of aggregates over counters and gauges';

CREATE FUNCTION @extschema@.metrics_counter_deserialize(value bytea, unused internal) RETURNS internal
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_counter_deserialize';
COMMENT ON FUNCTION @extschema@.metrics_counter_deserialize(bytea, internal) IS 'deserialization function of aggregates over counters and gauges';

CREATE FUNCTION @extschema@.metrics_increase_final(state internal) RETURNS float8
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_increase_final';
COMMENT ON FUNCTION @extschema@.metrics_increase_final(internal) IS 'final function of metrics_increase';

CREATE FUNCTION @extschema@.metrics_resets_final(state internal) RETURNS bigint
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_resets_final';
COMMENT ON FUNCTION @extschema@.metrics_resets_final(internal) IS 'final function of metrics_resets';

CREATE FUNCTION @extschema@.metrics_rise_final(state internal) RETURNS float8
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_rise_final';
COMMENT ON FUNCTION @extschema@.metrics_rise_final(internal) IS 'final function of metrics_rise';

CREATE FUNCTION @extschema@.metrics_delta_final(state internal) RETURNS float8
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_delta_final';
COMMENT ON FUNCTION @extschema@.metrics_delta_final(internal) IS 'final function of metrics_delta';

CREATE AGGREGATE @extschema@.metrics_increase(at timestamptz, v float8) (
    SFUNC = @extschema@.metrics_counter_add, STYPE = internal, SSPACE = 2048,
    FINALFUNC = @extschema@.metrics_increase_final,
    COMBINEFUNC = @extschema@.metrics_counter_combine,
    SERIALFUNC = @extschema@.metrics_counter_serialize,
    DESERIALFUNC = @extschema@.metrics_counter_deserialize,
    MSFUNC = @extschema@.metrics_counter_add, MSTYPE = internal, MSSPACE = 2048,
    MINVFUNC = @extschema@.metrics_counter_remove,
    MFINALFUNC = @extschema@.metrics_increase_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_increase(timestamptz, float8) IS 'how much a counter rose, where a value below the one before counts from 0 again; 0 of one row, NaN where a value is NaN; in order of time, at equal times of v; rows with NULL are skipped; NULL without rows';

CREATE AGGREGATE @extschema@.metrics_resets(at timestamptz, v float8) (
    SFUNC = @extschema@.metrics_counter_add, STYPE = internal, SSPACE = 2048,
    FINALFUNC = @extschema@.metrics_resets_final,
    COMBINEFUNC = @extschema@.metrics_counter_combine,
    SERIALFUNC = @extschema@.metrics_counter_serialize,
    DESERIALFUNC = @extschema@.metrics_counter_deserialize,
    MSFUNC = @extschema@.metrics_counter_add, MSTYPE = internal, MSSPACE = 2048,
    MINVFUNC = @extschema@.metrics_counter_remove,
    MFINALFUNC = @extschema@.metrics_resets_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_resets(timestamptz, float8) IS 'how often a counter fell below the value before; in order of time, at equal times of v; rows with NULL are skipped; NULL without rows';

CREATE AGGREGATE @extschema@.metrics_rise(at timestamptz, v float8) (
    SFUNC = @extschema@.metrics_counter_add, STYPE = internal, SSPACE = 2048,
    FINALFUNC = @extschema@.metrics_rise_final,
    COMBINEFUNC = @extschema@.metrics_counter_combine,
    SERIALFUNC = @extschema@.metrics_counter_serialize,
    DESERIALFUNC = @extschema@.metrics_counter_deserialize,
    MSFUNC = @extschema@.metrics_counter_add, MSTYPE = internal, MSSPACE = 2048,
    MINVFUNC = @extschema@.metrics_counter_remove,
    MFINALFUNC = @extschema@.metrics_rise_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_rise(timestamptz, float8) IS 'how much a gauge rose, falls not counted against it; 0 of one row, NaN where a value is NaN; in order of time, at equal times of v; rows with NULL are skipped; NULL without rows';

CREATE AGGREGATE @extschema@.metrics_delta(at timestamptz, v float8) (
    SFUNC = @extschema@.metrics_counter_add, STYPE = internal, SSPACE = 2048,
    FINALFUNC = @extschema@.metrics_delta_final,
    COMBINEFUNC = @extschema@.metrics_counter_combine,
    SERIALFUNC = @extschema@.metrics_counter_serialize,
    DESERIALFUNC = @extschema@.metrics_counter_deserialize,
    MSFUNC = @extschema@.metrics_counter_add, MSTYPE = internal, MSSPACE = 2048,
    MINVFUNC = @extschema@.metrics_counter_remove,
    MFINALFUNC = @extschema@.metrics_delta_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_delta(timestamptz, float8) IS 'the last value of a gauge less the first; in order of time, at equal times of v; rows with NULL are skipped; NULL without rows';

SELECT @extschema@.metrics_upgrade_store();
