\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.2'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

--
-- Numbers in documents
--
CREATE FUNCTION @extschema@.metrics_number(metrics jsonb, path text[])
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_number'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_number(jsonb, text[]) IS
'the number at a path of a document, where "NaN", "Infinity" and "-Infinity" are numbers; NULL if there is none, or it is out of range';

--
-- Downsampling
--
CREATE TYPE @extschema@.metrics_point AS (x double precision, y double precision);
COMMENT ON TYPE @extschema@.metrics_point IS 'a point of a series over a number';
CREATE TYPE @extschema@.metrics_time_point AS (x timestamptz, y double precision);
COMMENT ON TYPE @extschema@.metrics_time_point IS 'a point of a series over time';

CREATE FUNCTION @extschema@.metrics_lttb_add(internal, double precision, double precision, integer)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_lttb_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_add(internal, double precision, double precision, integer) IS
'transition of metrics_lttb over a number';
CREATE FUNCTION @extschema@.metrics_lttb_add_time(internal, timestamptz, double precision, integer)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_lttb_add_time'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_add_time(internal, timestamptz, double precision, integer) IS
'transition of metrics_lttb over time';
CREATE FUNCTION @extschema@.metrics_lttb_combine(internal, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_lttb_combine'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_combine(internal, internal) IS
'combine function of metrics_lttb';
CREATE FUNCTION @extschema@.metrics_lttb_serialize(internal)
RETURNS bytea
AS 'MODULE_PATHNAME', 'metrics_lttb_serialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_serialize(internal) IS
'serialize function of metrics_lttb';
CREATE FUNCTION @extschema@.metrics_lttb_deserialize(bytea, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_lttb_deserialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_deserialize(bytea, internal) IS
'deserialize function of metrics_lttb';
CREATE FUNCTION @extschema@.metrics_lttb_final(internal)
RETURNS @extschema@.metrics_point[]
AS 'MODULE_PATHNAME', 'metrics_lttb_final'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_final(internal) IS
'final function of metrics_lttb over a number';
CREATE FUNCTION @extschema@.metrics_lttb_final_time(internal)
RETURNS @extschema@.metrics_time_point[]
AS 'MODULE_PATHNAME', 'metrics_lttb_final'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_lttb_final_time(internal) IS
'final function of metrics_lttb over time';
CREATE AGGREGATE @extschema@.metrics_lttb(x double precision, y double precision, points integer) (
    SFUNC = @extschema@.metrics_lttb_add,
    STYPE = internal,
    SSPACE = 65536,
    FINALFUNC = @extschema@.metrics_lttb_final,
    COMBINEFUNC = @extschema@.metrics_lttb_combine,
    SERIALFUNC = @extschema@.metrics_lttb_serialize,
    DESERIALFUNC = @extschema@.metrics_lttb_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_lttb(double precision, double precision, integer) IS
'at most points (2 or more) of the points of a series, chosen by largest triangle three buckets, in order of x, the first and the last among them; unnest() gives columns x and y. NULL and an x that is NaN or infinite are skipped; NULL without points';
CREATE AGGREGATE @extschema@.metrics_lttb(x timestamptz, y double precision, points integer) (
    SFUNC = @extschema@.metrics_lttb_add_time,
    STYPE = internal,
    SSPACE = 65536,
    FINALFUNC = @extschema@.metrics_lttb_final_time,
    COMBINEFUNC = @extschema@.metrics_lttb_combine,
    SERIALFUNC = @extschema@.metrics_lttb_serialize,
    DESERIALFUNC = @extschema@.metrics_lttb_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_lttb(timestamptz, double precision, integer) IS
'at most points (2 or more) of the points of a series, chosen by largest triangle three buckets, in order of x, the first and the last among them; unnest() gives columns x and y. NULL and infinite times are skipped; NULL without points';

--
-- Histogram
--
CREATE FUNCTION @extschema@.metrics_histogram_add(internal, double precision, double precision[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_histogram_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_histogram_add(internal, double precision, double precision[]) IS
'transition of metrics_histogram';
CREATE FUNCTION @extschema@.metrics_histogram_remove(internal, double precision, double precision[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_histogram_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_histogram_remove(internal, double precision, double precision[]) IS
'inverse transition of metrics_histogram';
CREATE FUNCTION @extschema@.metrics_histogram_combine(internal, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_histogram_combine'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_histogram_combine(internal, internal) IS
'combine function of metrics_histogram';
CREATE FUNCTION @extschema@.metrics_histogram_serialize(internal)
RETURNS bytea
AS 'MODULE_PATHNAME', 'metrics_histogram_serialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_histogram_serialize(internal) IS
'serialize function of metrics_histogram';
CREATE FUNCTION @extschema@.metrics_histogram_deserialize(bytea, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_histogram_deserialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_histogram_deserialize(bytea, internal) IS
'deserialize function of metrics_histogram';
CREATE FUNCTION @extschema@.metrics_histogram_final(internal)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'metrics_histogram_final'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_histogram_final(internal) IS
'final function of metrics_histogram';
CREATE AGGREGATE @extschema@.metrics_histogram(v double precision, edges double precision[]) (
    SFUNC = @extschema@.metrics_histogram_add,
    STYPE = internal,
    FINALFUNC = @extschema@.metrics_histogram_final,
    COMBINEFUNC = @extschema@.metrics_histogram_combine,
    SERIALFUNC = @extschema@.metrics_histogram_serialize,
    DESERIALFUNC = @extschema@.metrics_histogram_deserialize,
    MSFUNC = @extschema@.metrics_histogram_add,
    MINVFUNC = @extschema@.metrics_histogram_remove,
    MSTYPE = internal,
    MFINALFUNC = @extschema@.metrics_histogram_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_histogram(double precision, double precision[]) IS
'how many values lie below the first of ascending edges, from each edge, inclusive, to the next, and from the last on, where NaN is too: bucket i + 1 is that of width_bucket(v, edges) = i; NULL without values';

SELECT @extschema@.metrics_upgrade_store();
