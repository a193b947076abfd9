\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.2'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

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

CREATE FUNCTION @extschema@.metrics_sketch_from_bytea(bytea)
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

SELECT @extschema@.metrics_upgrade_store();
