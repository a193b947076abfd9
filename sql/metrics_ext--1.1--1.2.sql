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

SELECT @extschema@.metrics_upgrade_store();
