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

--
-- Summary of documents
--
CREATE FUNCTION @extschema@.metrics_summary_add(internal, jsonb)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_summary_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_summary_add(internal, jsonb) IS
'transition of metrics_summary';
CREATE FUNCTION @extschema@.metrics_summary_add(internal, jsonb, text[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_summary_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_summary_add(internal, jsonb, text[]) IS
'transition of metrics_summary below a path';
CREATE FUNCTION @extschema@.metrics_summary_combine(internal, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_summary_combine'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_summary_combine(internal, internal) IS
'combine function of metrics_summary';
CREATE FUNCTION @extschema@.metrics_summary_serialize(internal)
RETURNS bytea
AS 'MODULE_PATHNAME', 'metrics_summary_serialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_summary_serialize(internal) IS
'serialize function of metrics_summary';
CREATE FUNCTION @extschema@.metrics_summary_deserialize(bytea, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_summary_deserialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_summary_deserialize(bytea, internal) IS
'deserialize function of metrics_summary';
CREATE FUNCTION @extschema@.metrics_summary_final(internal)
RETURNS jsonb
AS 'MODULE_PATHNAME', 'metrics_summary_final'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_summary_final(internal) IS
'final function of metrics_summary';
CREATE AGGREGATE @extschema@.metrics_summary(metrics jsonb) (
    SFUNC = @extschema@.metrics_summary_add,
    STYPE = internal,
    SSPACE = 65536,
    FINALFUNC = @extschema@.metrics_summary_final,
    COMBINEFUNC = @extschema@.metrics_summary_combine,
    SERIALFUNC = @extschema@.metrics_summary_serialize,
    DESERIALFUNC = @extschema@.metrics_summary_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_summary(jsonb) IS
'every key of the documents as an object {key: {type, count, min, max, sum, mean, p50, p95, p99, nan, skipped}}: percentiles within 1 %, count, sum and mean of numbers, NaN among them, skipped other values but null; nested keys by path, a.b or "a.b".c, eight deep; at most 1000 keys';
CREATE AGGREGATE @extschema@.metrics_summary(metrics jsonb, path text[]) (
    SFUNC = @extschema@.metrics_summary_add,
    STYPE = internal,
    SSPACE = 65536,
    FINALFUNC = @extschema@.metrics_summary_final,
    COMBINEFUNC = @extschema@.metrics_summary_combine,
    SERIALFUNC = @extschema@.metrics_summary_serialize,
    DESERIALFUNC = @extschema@.metrics_summary_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_summary(jsonb, text[]) IS
'every key of the objects at a path as an object {key: {type, count, min, max, sum, mean, p50, p95, p99, nan, skipped}}: percentiles within 1 %, count, sum and mean of numbers, NaN among them, skipped other values but null; nested keys by path, a.b or "a.b".c, eight deep; at most 1000 keys';

--
-- Percentiles over the store
--
CREATE FUNCTION @extschema@.metrics_percentiles(
    metric_group text, metric_name text, trial_id integer DEFAULT NULL,
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, bucket interval DEFAULT NULL,
    OUT bucket timestamptz, OUT n bigint, OUT min double precision, OUT p50 double precision,
    OUT p95 double precision, OUT p99 double precision, OUT max double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_percentiles_read'
LANGUAGE C CALLED ON NULL INPUT STABLE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION @extschema@.metrics_percentiles(text, text, integer, timestamptz, timestamptz, interval) IS
'exact percentiles of a metric over the unarchived rows of a group, of one trial or of all, since inclusive, until exclusive; one row a bucket, counted from Monday 2000-01-03 00:00 UTC, or one in all. For profiling groups of all agents and devices; no row where there is no number';

SELECT @extschema@.metrics_upgrade_store();
