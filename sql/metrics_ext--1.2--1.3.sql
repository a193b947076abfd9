\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.3'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

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
