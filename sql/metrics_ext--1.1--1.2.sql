\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.2'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

-- Exact percentiles.  The aggregates differ in what they take (float8, bigint,
-- float8 with a weight), in how fractions are given, and in the kind of
-- percentile; they share one state and the C functions behind these names.

CREATE TYPE @extschema@.metrics_quantiles AS (p50 float8, p95 float8, p99 float8);
COMMENT ON TYPE @extschema@.metrics_quantiles IS 'the 50th, 95th and 99th percentile';

CREATE TYPE @extschema@.metrics_quantiles_bigint AS (p50 bigint, p95 bigint, p99 bigint);
COMMENT ON TYPE @extschema@.metrics_quantiles_bigint IS 'the 50th, 95th and 99th percentile of bigints';

-- Support functions: transition, inverse transition for moving windows,
-- parallel plans, final.

CREATE FUNCTION @extschema@.metrics_percentiles_trans(state internal, v float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_trans(internal, float8) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_remove(state internal, v float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_remove(internal, float8) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_trans(state internal, v float8, fraction float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_trans(internal, float8, float8) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_remove(state internal, v float8, fraction float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_remove(internal, float8, float8) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_trans(state internal, v float8, fractions float8[]) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_trans(internal, float8, float8[]) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_remove(state internal, v float8, fractions float8[]) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_remove(internal, float8, float8[]) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_trans(state internal, v bigint) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans_bigint';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_trans(internal, bigint) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_remove(state internal, v bigint) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove_bigint';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_remove(internal, bigint) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_trans(state internal, v bigint, fraction float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans_bigint';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_trans(internal, bigint, float8) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_remove(state internal, v bigint, fraction float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove_bigint';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_remove(internal, bigint, float8) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_trans(state internal, v bigint, fractions float8[]) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans_bigint';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_trans(internal, bigint, float8[]) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_remove(state internal, v bigint, fractions float8[]) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove_bigint';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_remove(internal, bigint, float8[]) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_weighted_trans(state internal, v float8, weight bigint) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans_weighted';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_weighted_trans(internal, float8, bigint) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_weighted_remove(state internal, v float8, weight bigint) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove_weighted';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_weighted_remove(internal, float8, bigint) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_weighted_trans(state internal, v float8, weight bigint, fraction float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans_weighted';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_weighted_trans(internal, float8, bigint, float8) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_weighted_remove(state internal, v float8, weight bigint, fraction float8) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove_weighted';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_weighted_remove(internal, float8, bigint, float8) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_weighted_trans(state internal, v float8, weight bigint, fractions float8[]) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_trans_weighted';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_weighted_trans(internal, float8, bigint, float8[]) IS 'transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_weighted_remove(state internal, v float8, weight bigint, fractions float8[]) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_remove_weighted';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_weighted_remove(internal, float8, bigint, float8[]) IS 'inverse transition function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_combine(state internal, other internal) RETURNS internal
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_combine';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_combine(internal, internal) IS 'combine function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_serialize(state internal) RETURNS bytea
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_serialize';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_serialize(internal) IS 'serialization function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_deserialize(value bytea, unused internal) RETURNS internal
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_deserialize';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_deserialize(bytea, internal) IS 'deserialization function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_final(state internal) RETURNS @extschema@.metrics_quantiles
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_final';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_array_final(state internal) RETURNS float8[]
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_final';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_array_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentile_final(state internal) RETURNS float8
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_final';
COMMENT ON FUNCTION @extschema@.metrics_percentile_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_disc_final(state internal) RETURNS @extschema@.metrics_quantiles
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_disc_final';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_disc_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_disc_array_final(state internal) RETURNS float8[]
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_disc_final';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_disc_array_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentile_disc_final(state internal) RETURNS float8
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_disc_final';
COMMENT ON FUNCTION @extschema@.metrics_percentile_disc_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_disc_bigint_final(state internal) RETURNS @extschema@.metrics_quantiles_bigint
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_disc_final';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_disc_bigint_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentiles_disc_bigint_array_final(state internal) RETURNS bigint[]
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_disc_final';
COMMENT ON FUNCTION @extschema@.metrics_percentiles_disc_bigint_array_final(internal) IS 'final function of percentile aggregates';

CREATE FUNCTION @extschema@.metrics_percentile_disc_bigint_final(state internal) RETURNS bigint
    LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'metrics_percentiles_disc_final';
COMMENT ON FUNCTION @extschema@.metrics_percentile_disc_bigint_final(internal) IS 'final function of percentile aggregates';

-- The percentile between two values is interpolated.

CREATE AGGREGATE @extschema@.metrics_percentiles(v float8) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles(float8) IS 'exact 50th, 95th and 99th percentile (p50, p95, p99), interpolated as by percentile_cont. NULL is skipped, NaN is the greatest value; NULL if there are no values';

CREATE AGGREGATE @extschema@.metrics_percentiles(v float8, fractions float8[]) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_array_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_array_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles(float8, float8[]) IS 'exact percentiles in an array of the shape of fractions, interpolated as by percentile_cont. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; fractions must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentile(v float8, fraction float8) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentile_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentile_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentile(float8, float8) IS 'exact percentile, interpolated as by percentile_cont. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the fraction must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentiles_weighted(v float8, weight bigint) (
    SFUNC = @extschema@.metrics_percentiles_weighted_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_weighted_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_weighted_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_weighted(float8, bigint) IS 'exact 50th, 95th and 99th percentile (p50, p95, p99), interpolated as by percentile_cont; each value counts weight times, 0 not at all, negative is error 22003. NULL is skipped, NaN is the greatest value; NULL if there are no values';

CREATE AGGREGATE @extschema@.metrics_percentiles_weighted(v float8, weight bigint, fractions float8[]) (
    SFUNC = @extschema@.metrics_percentiles_weighted_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_array_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_weighted_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_weighted_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_array_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_weighted(float8, bigint, float8[]) IS 'exact percentiles in an array of the shape of fractions, interpolated as by percentile_cont; each value counts weight times, 0 not at all, negative is error 22003. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; fractions must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentile_weighted(v float8, weight bigint, fraction float8) (
    SFUNC = @extschema@.metrics_percentiles_weighted_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentile_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_weighted_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_weighted_remove,
    MFINALFUNC = @extschema@.metrics_percentile_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentile_weighted(float8, bigint, float8) IS 'exact percentile, interpolated as by percentile_cont; each value counts weight times, 0 not at all, negative is error 22003. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the fraction must be the same for all rows of a group';

-- The percentile is one of the values.

CREATE AGGREGATE @extschema@.metrics_percentiles_disc(v float8) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_disc_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_disc_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_disc(float8) IS 'exact 50th, 95th and 99th percentile (p50, p95, p99), each a value that occurs, as by percentile_disc. NULL is skipped, NaN is the greatest value; NULL if there are no values';

CREATE AGGREGATE @extschema@.metrics_percentiles_disc(v float8, fractions float8[]) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_disc_array_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_disc_array_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_disc(float8, float8[]) IS 'exact percentiles in an array of the shape of fractions, each a value that occurs, as by percentile_disc. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; fractions must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentile_disc(v float8, fraction float8) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentile_disc_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentile_disc_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentile_disc(float8, float8) IS 'exact percentile, each a value that occurs, as by percentile_disc. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the fraction must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentiles_disc(v bigint) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_disc_bigint_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_disc_bigint_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_disc(bigint) IS 'exact 50th, 95th and 99th percentile (p50, p95, p99), each a value that occurs, as by percentile_disc; bigints are taken and returned without loss. NULL is skipped, NaN is the greatest value; NULL if there are no values';

CREATE AGGREGATE @extschema@.metrics_percentiles_disc(v bigint, fractions float8[]) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_disc_bigint_array_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_disc_bigint_array_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_disc(bigint, float8[]) IS 'exact percentiles in an array of the shape of fractions, each a value that occurs, as by percentile_disc; bigints are taken and returned without loss. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; fractions must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentile_disc(v bigint, fraction float8) (
    SFUNC = @extschema@.metrics_percentiles_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentile_disc_bigint_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_remove,
    MFINALFUNC = @extschema@.metrics_percentile_disc_bigint_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentile_disc(bigint, float8) IS 'exact percentile, each a value that occurs, as by percentile_disc; bigints are taken and returned without loss. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the fraction must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentiles_disc_weighted(v float8, weight bigint) (
    SFUNC = @extschema@.metrics_percentiles_weighted_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_disc_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_weighted_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_weighted_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_disc_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_disc_weighted(float8, bigint) IS 'exact 50th, 95th and 99th percentile (p50, p95, p99), each a value that occurs, as by percentile_disc; each value counts weight times, 0 not at all, negative is error 22003. NULL is skipped, NaN is the greatest value; NULL if there are no values';

CREATE AGGREGATE @extschema@.metrics_percentiles_disc_weighted(v float8, weight bigint, fractions float8[]) (
    SFUNC = @extschema@.metrics_percentiles_weighted_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_disc_array_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_weighted_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_weighted_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_disc_array_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles_disc_weighted(float8, bigint, float8[]) IS 'exact percentiles in an array of the shape of fractions, each a value that occurs, as by percentile_disc; each value counts weight times, 0 not at all, negative is error 22003. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; fractions must be the same for all rows of a group';

CREATE AGGREGATE @extschema@.metrics_percentile_disc_weighted(v float8, weight bigint, fraction float8) (
    SFUNC = @extschema@.metrics_percentiles_weighted_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentile_disc_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_weighted_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_weighted_remove,
    MFINALFUNC = @extschema@.metrics_percentile_disc_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentile_disc_weighted(float8, bigint, float8) IS 'exact percentile, each a value that occurs, as by percentile_disc; each value counts weight times, 0 not at all, negative is error 22003. NULL is skipped, NaN is the greatest value; NULL if there are no values; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the fraction must be the same for all rows of a group';

--
-- Sketches: src/percentile/sketch*.c
--
CREATE TYPE @extschema@.metrics_sketch;

CREATE FUNCTION @extschema@.metrics_sketch_in(cstring)
RETURNS @extschema@.metrics_sketch
AS 'MODULE_PATHNAME', 'metrics_sketch_in'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_in(cstring) IS
'input function of type metrics_sketch';

CREATE FUNCTION @extschema@.metrics_sketch_out(@extschema@.metrics_sketch)
RETURNS cstring
AS 'MODULE_PATHNAME', 'metrics_sketch_out'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_out(@extschema@.metrics_sketch) IS
'output function of type metrics_sketch: JSON';

CREATE FUNCTION @extschema@.metrics_sketch_recv(internal)
RETURNS @extschema@.metrics_sketch
AS 'MODULE_PATHNAME', 'metrics_sketch_recv'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_recv(internal) IS
'binary input function of type metrics_sketch';

CREATE FUNCTION @extschema@.metrics_sketch_send(@extschema@.metrics_sketch)
RETURNS bytea
AS 'MODULE_PATHNAME', 'metrics_sketch_send'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_send(@extschema@.metrics_sketch) IS
'binary output function of type metrics_sketch: the stored form';

CREATE TYPE @extschema@.metrics_sketch (
    INPUT = @extschema@.metrics_sketch_in, OUTPUT = @extschema@.metrics_sketch_out, RECEIVE = @extschema@.metrics_sketch_recv, SEND = @extschema@.metrics_sketch_send,
    INTERNALLENGTH = VARIABLE, STORAGE = extended
);
COMMENT ON TYPE @extschema@.metrics_sketch IS
'quantile sketch: counts of values in buckets of a guaranteed relative error; as text JSON, as bytea its stored form, which never changes';

CREATE FUNCTION @extschema@.metrics_sketch_from_bytea(stored bytea)
RETURNS @extschema@.metrics_sketch
AS 'MODULE_PATHNAME', 'metrics_sketch_from_bytea'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_from_bytea(bytea) IS
'sketch of its stored form, which is validated; behind the cast from bytea; 22P03 if it is malformed';

CREATE CAST (bytea AS @extschema@.metrics_sketch) WITH FUNCTION @extschema@.metrics_sketch_from_bytea(bytea) AS ASSIGNMENT;
COMMENT ON CAST (bytea AS @extschema@.metrics_sketch) IS 'validates the stored form of a sketch';
CREATE CAST (@extschema@.metrics_sketch AS bytea) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON CAST (@extschema@.metrics_sketch AS bytea) IS 'the stored form of a sketch';

CREATE FUNCTION @extschema@.metrics_percentile(sketch @extschema@.metrics_sketch, fraction double precision)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_percentile'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentile(sketch @extschema@.metrics_sketch, fraction double precision) IS
'value of rank ceil(fraction * count) within the relative error that the sketch guarantees; NULL of an empty sketch; 22003 if fraction is not between 0 and 1';

CREATE FUNCTION @extschema@.metrics_percentiles(sketch @extschema@.metrics_sketch, fractions double precision[])
RETURNS double precision[]
AS 'MODULE_PATHNAME', 'metrics_sketch_percentiles'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles(sketch @extschema@.metrics_sketch, fractions double precision[]) IS
'metrics_percentile() of each fraction, in an array of the same shape, with NULL for NULL';

CREATE FUNCTION @extschema@.metrics_rank(sketch @extschema@.metrics_sketch, value double precision)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_rank'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_rank(sketch @extschema@.metrics_sketch, value double precision) IS
'fraction of the values that are less than or equal to value, where those within a bucket of it count as equal; NaN is the greatest value';

CREATE FUNCTION @extschema@.metrics_count(sketch @extschema@.metrics_sketch)
RETURNS bigint
AS 'MODULE_PATHNAME', 'metrics_sketch_count'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_count(sketch @extschema@.metrics_sketch) IS
'number of values in a sketch, NaN and infinities included';

CREATE FUNCTION @extschema@.metrics_sum(sketch @extschema@.metrics_sketch)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_sum'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sum(sketch @extschema@.metrics_sketch) IS
'sum of the values in a sketch; 22003 on overflow';

CREATE FUNCTION @extschema@.metrics_min(sketch @extschema@.metrics_sketch)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_min'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_min(sketch @extschema@.metrics_sketch) IS
'least value in a sketch, exactly';

CREATE FUNCTION @extschema@.metrics_max(sketch @extschema@.metrics_sketch)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_max'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_max(sketch @extschema@.metrics_sketch) IS
'greatest value in a sketch, exactly; NaN if there is one';

CREATE FUNCTION @extschema@.metrics_mean(sketch @extschema@.metrics_sketch)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_mean'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_mean(sketch @extschema@.metrics_sketch) IS
'mean of the values in a sketch; never overflows';

CREATE FUNCTION @extschema@.metrics_stddev(sketch @extschema@.metrics_sketch)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_stddev'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_stddev(sketch @extschema@.metrics_sketch) IS
'standard deviation of the sample in a sketch; NULL of less than two values, NaN if a value is not finite';

CREATE FUNCTION @extschema@.metrics_trimmed_mean(sketch @extschema@.metrics_sketch, low double precision, high double precision)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_trimmed_mean'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_trimmed_mean(sketch @extschema@.metrics_sketch, low double precision, high double precision) IS
'mean of the values between two fractions of the count, within the relative error; 22003 if a fraction is not between 0 and 1, 22023 if low is not less than high';

CREATE FUNCTION @extschema@.metrics_histogram(sketch @extschema@.metrics_sketch, OUT lower double precision, OUT upper double precision, OUT count bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'metrics_sketch_histogram'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE ROWS 500;
COMMENT ON FUNCTION @extschema@.metrics_histogram(@extschema@.metrics_sketch) IS
'occupied buckets of a sketch in order, their bounds cut to min and max; zeros, NaN and each infinity are rows of their own';

CREATE FUNCTION @extschema@.metrics_relative_error(sketch @extschema@.metrics_sketch)
RETURNS double precision
AS 'MODULE_PATHNAME', 'metrics_sketch_relative_error'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_relative_error(sketch @extschema@.metrics_sketch) IS
'relative error that a sketch guarantees now: the declared one, or what it has become after its buckets collapsed';

CREATE FUNCTION @extschema@.metrics_sketch_add(@extschema@.metrics_sketch, @extschema@.metrics_sketch)
RETURNS @extschema@.metrics_sketch
AS 'MODULE_PATHNAME', 'metrics_sketch_add'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_add(@extschema@.metrics_sketch, @extschema@.metrics_sketch) IS
'sketch of the values of two sketches; behind operator +; 22023 if their declared relative errors differ';

CREATE OPERATOR @extschema@.+ (
    LEFTARG = @extschema@.metrics_sketch, RIGHTARG = @extschema@.metrics_sketch, FUNCTION = @extschema@.metrics_sketch_add, COMMUTATOR = OPERATOR(@extschema@.+)
);
COMMENT ON OPERATOR @extschema@.+ (@extschema@.metrics_sketch, @extschema@.metrics_sketch) IS 'sketch of the values of both';

CREATE FUNCTION @extschema@.metrics_sketch_trans(internal, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_trans(internal, double precision) IS
'transition function of metrics_sketch(v)';

CREATE FUNCTION @extschema@.metrics_sketch_trans(internal, double precision, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_trans(internal, double precision, double precision) IS
'transition function of metrics_sketch(v, relative_error)';

CREATE FUNCTION @extschema@.metrics_sketch_weighted_trans(internal, double precision, bigint)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_weighted_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_weighted_trans(internal, double precision, bigint) IS
'transition function of metrics_sketch_weighted(v, weight)';

CREATE FUNCTION @extschema@.metrics_sketch_weighted_trans(internal, double precision, bigint, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_weighted_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_weighted_trans(internal, double precision, bigint, double precision) IS
'transition function of metrics_sketch_weighted(v, weight, relative_error)';

CREATE FUNCTION @extschema@.metrics_sketch_merge_trans(internal, @extschema@.metrics_sketch)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_merge_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_merge_trans(internal, @extschema@.metrics_sketch) IS
'transition function of metrics_sketch_merge(sketch)';

CREATE FUNCTION @extschema@.metrics_sketch_combine(internal, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_combine'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_combine(internal, internal) IS
'combine function of the aggregates that make sketches';

CREATE FUNCTION @extschema@.metrics_sketch_serialize(internal)
RETURNS bytea
AS 'MODULE_PATHNAME', 'metrics_sketch_serialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_serialize(internal) IS
'serialization function of the aggregates that make sketches';

CREATE FUNCTION @extschema@.metrics_sketch_deserialize(bytea, internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_deserialize'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_deserialize(bytea, internal) IS
'deserialization function of the aggregates that make sketches';

CREATE FUNCTION @extschema@.metrics_sketch_final(internal)
RETURNS @extschema@.metrics_sketch
AS 'MODULE_PATHNAME', 'metrics_sketch_final'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_final(internal) IS
'final function of the aggregates that make sketches';

CREATE FUNCTION @extschema@.metrics_sketch_window_add(internal, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_window_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_window_add(internal, double precision) IS
'moving transition function of metrics_sketch(v)';

CREATE FUNCTION @extschema@.metrics_sketch_window_remove(internal, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_window_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_window_remove(internal, double precision) IS
'inverse transition function of metrics_sketch(v)';

CREATE FUNCTION @extschema@.metrics_sketch_window_add(internal, double precision, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_window_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_window_add(internal, double precision, double precision) IS
'moving transition function of metrics_sketch(v, relative_error)';

CREATE FUNCTION @extschema@.metrics_sketch_window_remove(internal, double precision, double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_window_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_window_remove(internal, double precision, double precision) IS
'inverse transition function of metrics_sketch(v, relative_error)';

CREATE FUNCTION @extschema@.metrics_sketch_window_final(internal)
RETURNS @extschema@.metrics_sketch
AS 'MODULE_PATHNAME', 'metrics_sketch_window_final'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_window_final(internal) IS
'moving final function of metrics_sketch()';

CREATE AGGREGATE @extschema@.metrics_sketch(v double precision) (
    SFUNC = @extschema@.metrics_sketch_trans, STYPE = internal, FINALFUNC = @extschema@.metrics_sketch_final, FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.metrics_sketch_combine, SERIALFUNC = @extschema@.metrics_sketch_serialize, DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    MSFUNC = @extschema@.metrics_sketch_window_add, MINVFUNC = @extschema@.metrics_sketch_window_remove, MSTYPE = internal,
    MFINALFUNC = @extschema@.metrics_sketch_window_final, MFINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch(v double precision) IS
'sketch of the values with a relative error of 1 %; NULL is skipped, NaN sorts last and is counted, infinities are values';

CREATE AGGREGATE @extschema@.metrics_sketch(v double precision, relative_error double precision) (
    SFUNC = @extschema@.metrics_sketch_trans, STYPE = internal, FINALFUNC = @extschema@.metrics_sketch_final, FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.metrics_sketch_combine, SERIALFUNC = @extschema@.metrics_sketch_serialize, DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    MSFUNC = @extschema@.metrics_sketch_window_add, MINVFUNC = @extschema@.metrics_sketch_window_remove, MSTYPE = internal,
    MFINALFUNC = @extschema@.metrics_sketch_window_final, MFINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch(v double precision, relative_error double precision) IS
'sketch of the values with a relative error between 0.001 and 0.1, the same in all rows of a group; NULL means 0.01; 22023 otherwise';

CREATE AGGREGATE @extschema@.metrics_sketch_weighted(v double precision, weight bigint) (
    SFUNC = @extschema@.metrics_sketch_weighted_trans, STYPE = internal, FINALFUNC = @extschema@.metrics_sketch_final, FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.metrics_sketch_combine, SERIALFUNC = @extschema@.metrics_sketch_serialize, DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch_weighted(v double precision, weight bigint) IS
'sketch of values that count weight times each, with a relative error of 1 %; rows with a NULL are skipped; 22023 if a weight is not positive, 22003 if their sum passes 2^63 - 1';

CREATE AGGREGATE @extschema@.metrics_sketch_weighted(v double precision, weight bigint, relative_error double precision) (
    SFUNC = @extschema@.metrics_sketch_weighted_trans, STYPE = internal, FINALFUNC = @extschema@.metrics_sketch_final, FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.metrics_sketch_combine, SERIALFUNC = @extschema@.metrics_sketch_serialize, DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch_weighted(v double precision, weight bigint, relative_error double precision) IS
'sketch of values that count weight times each, with a relative error between 0.001 and 0.1';

CREATE AGGREGATE @extschema@.metrics_sketch_merge(sketch @extschema@.metrics_sketch) (
    SFUNC = @extschema@.metrics_sketch_merge_trans, STYPE = internal, FINALFUNC = @extschema@.metrics_sketch_final, FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = @extschema@.metrics_sketch_combine, SERIALFUNC = @extschema@.metrics_sketch_serialize, DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch_merge(sketch @extschema@.metrics_sketch) IS
'sketch of the values of all sketches; NULL is skipped; 22023 if their declared relative errors differ';

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
    SSPACE = 16384,
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
    SSPACE = 16384,
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
-- Percentiles and sketches of a number in documents
--
CREATE FUNCTION @extschema@.metrics_percentiles_json_trans(internal, jsonb, text[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_percentiles_json_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles_json_trans(internal, jsonb, text[]) IS
'transition of the percentiles of a number in documents';
CREATE FUNCTION @extschema@.metrics_percentiles_json_trans(internal, jsonb, text[], double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_percentiles_json_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles_json_trans(internal, jsonb, text[], double precision) IS
'transition of the percentiles of a number in documents';
CREATE FUNCTION @extschema@.metrics_percentiles_json_trans(internal, jsonb, text[], double precision[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_percentiles_json_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles_json_trans(internal, jsonb, text[], double precision[]) IS
'transition of the percentiles of a number in documents';
CREATE FUNCTION @extschema@.metrics_percentiles_json_remove(internal, jsonb, text[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_percentiles_json_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles_json_remove(internal, jsonb, text[]) IS
'inverse transition of the percentiles of a number in documents';
CREATE FUNCTION @extschema@.metrics_percentiles_json_remove(internal, jsonb, text[], double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_percentiles_json_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles_json_remove(internal, jsonb, text[], double precision) IS
'inverse transition of the percentiles of a number in documents';
CREATE FUNCTION @extschema@.metrics_percentiles_json_remove(internal, jsonb, text[], double precision[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_percentiles_json_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_percentiles_json_remove(internal, jsonb, text[], double precision[]) IS
'inverse transition of the percentiles of a number in documents';
CREATE AGGREGATE @extschema@.metrics_percentiles(metrics jsonb, path text[]) (
    SFUNC = @extschema@.metrics_percentiles_json_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_json_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_json_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles(jsonb, text[]) IS
'exact 50th, 95th and 99th percentile (p50, p95, p99) of the numbers at a path of documents, as by percentile_cont; documents without a number there are skipped, NaN is the greatest value; NULL without numbers';
CREATE AGGREGATE @extschema@.metrics_percentiles(metrics jsonb, path text[], fractions double precision[]) (
    SFUNC = @extschema@.metrics_percentiles_json_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentiles_array_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_json_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_json_remove,
    MFINALFUNC = @extschema@.metrics_percentiles_array_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentiles(jsonb, text[], double precision[]) IS
'exact percentiles of the numbers at a path of documents, in an array of the shape of fractions, as by percentile_cont; documents without a number there are skipped, NaN is the greatest value; NULL without numbers; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the same for all rows of a group';
CREATE AGGREGATE @extschema@.metrics_percentile(metrics jsonb, path text[], fraction double precision) (
    SFUNC = @extschema@.metrics_percentiles_json_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_percentile_final,
    COMBINEFUNC = @extschema@.metrics_percentiles_combine,
    SERIALFUNC = @extschema@.metrics_percentiles_serialize,
    DESERIALFUNC = @extschema@.metrics_percentiles_deserialize,
    MSFUNC = @extschema@.metrics_percentiles_json_trans, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_percentiles_json_remove,
    MFINALFUNC = @extschema@.metrics_percentile_final,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_percentile(jsonb, text[], double precision) IS
'exact percentile of the numbers at a path of documents, as by percentile_cont; documents without a number there are skipped, NaN is the greatest value; NULL without numbers; fractions from 0 to 1, else error 22003; a NULL fraction gives NULL; the same for all rows of a group';
CREATE FUNCTION @extschema@.metrics_sketch_json_trans(internal, jsonb, text[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_json_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_json_trans(internal, jsonb, text[]) IS
'transition of the sketch of a number in documents';
CREATE FUNCTION @extschema@.metrics_sketch_json_trans(internal, jsonb, text[], double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_json_trans'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_json_trans(internal, jsonb, text[], double precision) IS
'transition of the sketch of a number in documents';
CREATE FUNCTION @extschema@.metrics_sketch_json_window_add(internal, jsonb, text[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_json_window_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_json_window_add(internal, jsonb, text[]) IS
'moving transition of the sketch of a number in documents';
CREATE FUNCTION @extschema@.metrics_sketch_json_window_remove(internal, jsonb, text[])
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_json_window_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_json_window_remove(internal, jsonb, text[]) IS
'inverse transition of the sketch of a number in documents';
CREATE FUNCTION @extschema@.metrics_sketch_json_window_add(internal, jsonb, text[], double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_json_window_add'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_json_window_add(internal, jsonb, text[], double precision) IS
'moving transition of the sketch of a number in documents';
CREATE FUNCTION @extschema@.metrics_sketch_json_window_remove(internal, jsonb, text[], double precision)
RETURNS internal
AS 'MODULE_PATHNAME', 'metrics_sketch_json_window_remove'
LANGUAGE C CALLED ON NULL INPUT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.metrics_sketch_json_window_remove(internal, jsonb, text[], double precision) IS
'inverse transition of the sketch of a number in documents';
CREATE AGGREGATE @extschema@.metrics_sketch(metrics jsonb, path text[]) (
    SFUNC = @extschema@.metrics_sketch_json_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_sketch_final,
    COMBINEFUNC = @extschema@.metrics_sketch_combine,
    SERIALFUNC = @extschema@.metrics_sketch_serialize,
    DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    MSFUNC = @extschema@.metrics_sketch_json_window_add, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_sketch_json_window_remove,
    MFINALFUNC = @extschema@.metrics_sketch_window_final, MFINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch(jsonb, text[]) IS
'sketch, of relative error 0.01, of the numbers at a path of documents; documents without a number there are skipped; NULL without numbers';
CREATE AGGREGATE @extschema@.metrics_sketch(metrics jsonb, path text[], relative_error double precision) (
    SFUNC = @extschema@.metrics_sketch_json_trans, STYPE = internal, SSPACE = 256,
    FINALFUNC = @extschema@.metrics_sketch_final,
    COMBINEFUNC = @extschema@.metrics_sketch_combine,
    SERIALFUNC = @extschema@.metrics_sketch_serialize,
    DESERIALFUNC = @extschema@.metrics_sketch_deserialize,
    MSFUNC = @extschema@.metrics_sketch_json_window_add, MSTYPE = internal, MSSPACE = 256,
    MINVFUNC = @extschema@.metrics_sketch_json_window_remove,
    MFINALFUNC = @extschema@.metrics_sketch_window_final, MFINALFUNC_MODIFY = READ_ONLY,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.metrics_sketch(jsonb, text[], double precision) IS
'sketch, of a relative error from 0.001 to 0.1, of the numbers at a path of documents; documents without a number there are skipped; NULL without numbers';

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
    SSPACE = 16384,
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
    SSPACE = 16384,
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
