--
-- Exact percentiles: small inputs from bug reports of comparable software
-- (A, B, C, D: see the cases), errors, and the ways aggregates are used.
--
SET client_min_messages TO warning;
CREATE EXTENSION metrics_ext;
SET extra_float_digits TO 0;

-- A01, A02: the least and the greatest are reached; one row
SELECT metrics_percentiles(v, '{0,.25,.5,.75,1}'), metrics_percentiles_disc(v, '{0,.25,.5,.75,1}')
  FROM generate_series(0, 4) v;
SELECT metrics_percentiles(v, '{0,.5,.9,1}'), metrics_percentiles_disc(v, '{0,.5,.9,1}')
  FROM (VALUES (123::float8)) t(v);
SELECT metrics_percentiles(v, '{0,.5,.9,1}') FROM (VALUES (1234::float8)) t(v);

-- A03: the forms of a result
SELECT metrics_percentiles(v) AS cont, metrics_percentiles_disc(v) AS disc
  FROM generate_series(1, 100) v;
SELECT (metrics_percentiles(v)).* FROM generate_series(1, 100) v;
SELECT (metrics_percentiles(v)).p95, metrics_percentile(v, .95), metrics_percentile_disc(v, .95)
  FROM generate_series(1, 100) v;

-- A04, A05: infinities are values
SELECT metrics_percentiles(v, '{.25,.5}') FROM (SELECT 'Infinity'::float8 FROM generate_series(1, 5)) t(v);
SELECT metrics_percentile(v, .5) FROM (VALUES ('inf'::float8), (0), ('-inf')) t(v);
SELECT metrics_percentile(v, .5), metrics_percentile_disc(v, .5) FROM (VALUES (1::float8), ('inf')) t(v);

-- A07, A08: NaN is the greatest
SELECT metrics_percentile(v, .5) FROM (VALUES (1::float8), ('NaN'), (2)) t(v);
SELECT metrics_percentiles_disc(v, '{.1,.9,1}')
  FROM (SELECT 'NaN'::float8 UNION ALL SELECT generate_series(1, 99) UNION ALL SELECT '-NaN') t(v);

-- A09, A10: NULL is skipped; nothing gives NULL
SELECT metrics_percentile(v, .5) FROM (VALUES (65536::float8), (NULL), (NULL), (NULL)) t(v);
SELECT metrics_percentiles(v), metrics_percentiles(v, '{.5}'), metrics_percentile(v, .5),
       metrics_percentiles_disc(v), metrics_percentiles_weighted(v, 1)
  FROM (VALUES (NULL::float8), (NULL)) t(v);
SELECT metrics_percentiles(v) IS NULL AS composite, metrics_percentiles(v, '{.5}') IS NULL AS of_array
  FROM generate_series(1, 0) v;
SELECT g, metrics_percentile(v, .5)
  FROM (VALUES ('a', 1::float8), ('b', NULL), ('b', NULL), ('c', 3)) t(g, v) GROUP BY g ORDER BY g;

-- A11: fractions out of range, even where all values are NULL
\set SHOW_CONTEXT never
DO $$
DECLARE
    call text;
BEGIN
    FOREACH call IN ARRAY ARRAY[
        'metrics_percentile(v, 1.5)', 'metrics_percentile(v, -0.1)', 'metrics_percentile(v, ''NaN'')',
        'metrics_percentiles(v, ''{0.5,1.5}'')', 'metrics_percentiles(v, ''{NULL,NaN}'')',
        'metrics_percentile_disc(v, 1.5)', 'metrics_percentiles_disc(v, ''{-0.1}'')',
        'metrics_percentile_disc(v::bigint, 1.5)', 'metrics_percentile_weighted(v, 1, 1.5)',
        'metrics_percentile(nullif(v, 1), 1.5)']
    LOOP
        BEGIN
            EXECUTE 'SELECT ' || call || ' FROM (VALUES (1::float8)) t(v)';
            RAISE WARNING '%: no error', call;
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING '%: % %', call, sqlstate, sqlerrm;
        END;
    END LOOP;
END $$;

-- A12: NULL fractions; arrays keep their shape
SELECT metrics_percentiles(v, '{0,.5,1,NULL}') FROM (VALUES (1::float8), (2)) t(v);
SELECT metrics_percentile(v, NULL), metrics_percentiles(v, NULL::float8[]), metrics_percentiles(v, '{NULL}'),
       metrics_percentiles(v, '{}')
  FROM (VALUES (1::float8), (2)) t(v);
SELECT metrics_percentiles(v, '{{0,.5},{NULL,1}}'), metrics_percentiles(v, '[3:4]={0,1}'),
       metrics_percentiles_disc(v::bigint, '{{0,.5},{NULL,1}}')
  FROM (VALUES (1::float8), (2)) t(v);
SELECT metrics_percentiles(v, '{{0,.5},{NULL,1}}') IS NOT DISTINCT FROM
       percentile_cont('{{0,.5},{NULL,1}}'::float8[]) WITHIN GROUP (ORDER BY v) AS as_core
  FROM (VALUES (1::float8), (2)) t(v);

-- A14, A16, A19: no overflow on the way, interpolation
SELECT metrics_percentile(v, .5) FROM (VALUES (1e308::float8), (1.7e308)) t(v);
SELECT metrics_percentile(v, .2), metrics_percentile_disc(v, .2)
  FROM unnest('{708,717,769,1022,1097,1108,1400,1460,2469,2761}'::float8[]) v;
SELECT metrics_percentiles(v, '{.9,.95}'), metrics_percentiles_disc(v, '{.9,.95}')
  FROM (VALUES (1000, 26), (3000, 11), (9000, 2)) t(v, n), generate_series(1, n);

-- A15: other types. Bigint keeps every digit where the result is a value.
SELECT metrics_percentile_disc(v, .5), metrics_percentiles_disc(v), metrics_percentiles_disc(v, '{0,1}'),
       metrics_percentile(v, .5) = 9007199254740992 AS cont_is_float8
  FROM (VALUES (9007199254740993), (9007199254740993)) t(v);
SELECT metrics_percentiles_disc(v, '{0,.5,1}')
  FROM (VALUES (9223372036854775807), (-9223372036854775808), (0::bigint)) t(v);
SELECT metrics_percentile(v::float4, .5) AS float4, metrics_percentile(v::int2, .5) AS int2,
       metrics_percentile(v::int4, .5) AS int4, metrics_percentile(v::int8, .5) AS int8,
       metrics_percentile(v::numeric, .5) AS numeric, pg_typeof(metrics_percentile_disc(v::int4, .5)),
       pg_typeof(metrics_percentile_disc(v::int8, .5)), pg_typeof(metrics_percentiles_disc(v::int8, '{.5}'))
  FROM generate_series(1, 4) v;
SELECT metrics_percentile_disc(v, .5) FROM (VALUES (0.1::float4)) t(v);

-- B18, B19, B20: weights
SELECT metrics_percentile_weighted(v, w, .5) AS zero_is_skipped
  FROM (VALUES (1::float8, 0), (2, 1), (3, NULL), (NULL, 5)) t(v, w);
SELECT metrics_percentile_weighted(v, 0, .5), metrics_percentiles_weighted(v, 0), metrics_percentiles_weighted(v, 0, '{.5}')
  FROM (VALUES (1::float8), (2)) t(v);
SELECT metrics_percentile_weighted(v, -1, .5) FROM (VALUES (1::float8)) t(v);
SELECT metrics_percentile_weighted(v, w, .5), metrics_percentile_disc_weighted(v, w, .5)
  FROM (VALUES (1e6::float8, 1), (3e6, 4), (5e6, 1), (7e6, 1), (9e6, 1)) t(v, w);
SELECT metrics_percentile(v, .5) FROM unnest('{1e6,3e6,3e6,3e6,3e6,5e6,7e6,9e6}'::float8[]) v;
SELECT metrics_percentiles_weighted(v, w, '{.25,.5,.75}'), metrics_percentiles_weighted(v, w),
       metrics_percentiles_disc_weighted(v, w, '{0,1}'), metrics_percentiles_disc_weighted(v, w)
  FROM (VALUES (1, 2), (50, 1000000), (100, 2)) t(v, w);
SELECT metrics_percentiles_weighted(v, 9223372036854775807) FROM (VALUES (1)) t(v);
SELECT metrics_percentiles_weighted(v, 9223372036854775807) FROM (VALUES (1), (2)) t(v);

-- -0 equals 0; subnormals
SELECT metrics_percentiles(v, '{0,.5,1}') FROM (VALUES ('-0'::float8), (0), ('-0')) t(v);
SELECT metrics_percentiles(v, '{0,1}') = '{-4.94065645841247e-324,4.94065645841247e-324}' AS subnormal
  FROM (VALUES ('4.94065645841247e-324'::float8), (0), ('-4.94065645841247e-324')) t(v);

-- C03 is core's own; our values agree with it
SELECT percent_rank(20) WITHIN GROUP (ORDER BY v), cume_dist(20) WITHIN GROUP (ORDER BY v),
       metrics_percentile_disc(v, .25) AS at_rank
  FROM (VALUES (10::float8), (20), (20), (30)) t(v);

-- D05: grouping sets, hashed, sorted and mixed
CREATE TABLE d05 (a text, b text, v float8);
INSERT INTO d05 VALUES ('a', 'x', 1), ('a', 'x', 3), ('a', 'y', 10), ('b', 'y', 20);
SELECT a, b, metrics_percentile(v, .5) FROM d05 GROUP BY CUBE (a, b) ORDER BY a, b;
SET enable_hashagg TO off;
SELECT a, b, metrics_percentile(v, .5) FROM d05 GROUP BY CUBE (a, b) ORDER BY a, b;
RESET enable_hashagg;

-- FILTER, DISTINCT, ORDER BY, HAVING; percentiles of one state
SELECT metrics_percentile(v, .5) FILTER (WHERE v > 2) AS filtered,
       metrics_percentile(DISTINCT v, .5) AS distinct_values,
       metrics_percentile(v, .5 ORDER BY v DESC) AS ordered,
       metrics_percentile(v, .5) AS cont, metrics_percentile_disc(v, .5) AS disc,
       metrics_percentile(v, .5) AS again
  FROM (VALUES (1::float8), (1), (1), (2), (3), (8)) t(v);
SELECT a, metrics_percentile(v, .5) FROM d05 GROUP BY a HAVING metrics_percentile(v, .5) > 5 ORDER BY a;

-- Fractions may differ between groups, not in one
SELECT f, metrics_percentile(v, f), metrics_percentiles(v, ARRAY[f, 1 - f])
  FROM generate_series(1, 5) v, (VALUES (.25::float8), (.5)) t(f) GROUP BY f ORDER BY f;
SELECT metrics_percentile(v, v / 10.0) FROM generate_series(1, 5) v;
SELECT metrics_percentiles(v, ARRAY[v / 10.0]) FROM generate_series(1, 5) v;
SELECT metrics_percentile(v, CASE WHEN v < 3 THEN .5 END) FROM generate_series(1, 5) v;
SELECT metrics_percentile(v, v / 10.0) OVER (ORDER BY v) FROM generate_series(1, 5) v;
PREPARE by_parameter(float8[]) AS SELECT metrics_percentiles(v, $1) FROM generate_series(1, 5) v;
EXECUTE by_parameter('{0,.5}');
EXECUTE by_parameter('{1}');

-- Windows: moving, growing, whole; NULL and weights leave a frame as they came
SELECT i, v, metrics_percentile(v, .5) OVER (ORDER BY i ROWS 2 PRECEDING) AS moving,
       metrics_percentile(v, .5) OVER (ORDER BY i) AS growing,
       metrics_percentile(v, .5) OVER () AS whole,
       (metrics_percentiles(v) OVER (ORDER BY i ROWS 2 PRECEDING)).p50,
       metrics_percentiles_disc(v::bigint, '{0,1}') OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS disc,
       metrics_percentile_weighted(v, i % 3, .5) OVER (ORDER BY i ROWS 3 PRECEDING) AS weighted
  FROM (VALUES (1, 5::float8), (2, NULL), (3, 1), (4, 1), (5, 7), (6, 3), (7, NULL), (8, NULL), (9, NULL), (10, 2)) t(i, v)
 ORDER BY i;
SELECT i, metrics_percentile(i, .5) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW) AS excluded,
       metrics_percentile(i, .5) OVER (ORDER BY i RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS by_range,
       metrics_percentile(i, .5) FILTER (WHERE i % 2 = 1) OVER (ORDER BY i ROWS 2 PRECEDING) AS filtered,
       metrics_percentile(i, .5) OVER (PARTITION BY i % 2 ORDER BY i) AS partitioned
  FROM generate_series(1, 6) i ORDER BY i;
-- Every frame equals its own query, over blocks of the structure behind it
CREATE TABLE frames AS
    SELECT i, (hashint8extended(i, 1) % 1000)::float8 / 8 AS v, i % 4 AS w FROM generate_series(1, 4000) i;
INSERT INTO frames SELECT i, CASE i % 3 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN 'inf' ELSE i END, 1 FROM generate_series(4001, 4500) i;
SELECT count(*), count(*) FILTER (WHERE moving IS DISTINCT FROM
           (SELECT percentile_cont(.4) WITHIN GROUP (ORDER BY v) FROM frames f WHERE f.i BETWEEN m.i - 1499 AND m.i)) AS wrong,
       count(*) FILTER (WHERE growing IS DISTINCT FROM
           (SELECT percentile_disc(.9) WITHIN GROUP (ORDER BY v) FROM frames f WHERE f.i <= m.i)) AS growing_wrong,
       count(*) FILTER (WHERE weighted IS DISTINCT FROM
           (SELECT percentile_cont(.5) WITHIN GROUP (ORDER BY v) FROM frames f, generate_series(1, f.w)
             WHERE f.i BETWEEN m.i - 1200 AND m.i - 200)) AS weighted_wrong
  FROM (SELECT i, metrics_percentile(v, .4) OVER (ORDER BY i ROWS 1499 PRECEDING) AS moving,
               metrics_percentile_disc(v, .9) OVER (ORDER BY i) AS growing,
               metrics_percentile_weighted(v, w, .5) OVER (ORDER BY i ROWS BETWEEN 1200 PRECEDING AND 200 PRECEDING) AS weighted
          FROM frames) m
 WHERE i % 100 = 0;
-- A sorted column drains blocks at one end
SELECT count(*) FILTER (WHERE p <> i - 500) AS wrong
  FROM (SELECT i, metrics_percentile(i, .5) OVER (ORDER BY i ROWS 1000 PRECEDING) AS p FROM generate_series(1, 20000) i) t
 WHERE i > 1000;

-- Parallel and partitionwise plans
CREATE TABLE parts (g int, v float8) PARTITION BY LIST (g);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT 1 + i % 2, CASE WHEN i % 7 > 0 THEN i END FROM generate_series(1, 20000) i;
ANALYZE parts;
SET enable_partitionwise_aggregate TO on;
SELECT g, metrics_percentiles(v) FROM parts GROUP BY g ORDER BY g;
SET parallel_setup_cost TO 0;
SET parallel_tuple_cost TO 0;
SET min_parallel_table_scan_size TO 0;
EXPLAIN (COSTS off) SELECT metrics_percentiles(v) FROM parts_1;
SELECT metrics_percentiles(v), metrics_percentiles_disc(v::bigint, '{0,.5,NULL,1}'),
       metrics_percentiles_weighted(v, 2, '{.5,.9}') FROM parts;
SELECT metrics_percentile(v, .5), metrics_percentile(v, NULL) FROM parts WHERE v < 0;
SELECT metrics_percentiles_weighted(v, 4611686018427387904) FROM parts WHERE v < 8;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET enable_partitionwise_aggregate;

-- B23: support functions of all aggregates, called directly. SQL lets no one
-- pass an internal argument, so each is declared once more, with bytea for it.
DO $$
DECLARE
    f record;
    calls int = 0;
BEGIN
    FOR f IN SELECT p.oid, pronargs, format('CREATE FUNCTION pg_temp.direct(%s) RETURNS %s AS %L, %L LANGUAGE C',
            (SELECT string_agg(replace(t::regtype::text, 'internal', 'bytea'), ', ') FROM unnest(proargtypes) t),
            replace(prorettype::regtype::text, 'internal', 'bytea'), probin, prosrc) AS declaration
        FROM pg_proc p WHERE proname LIKE 'metrics%' AND 'internal'::regtype = ANY (proargtypes) AND proname <> 'metrics_sketch_recv'
        ORDER BY p.oid
    LOOP
        EXECUTE f.declaration;
        BEGIN
            EXECUTE format('SELECT pg_temp.direct(%s)', array_to_string(array_fill('NULL'::text, ARRAY[f.pronargs::int]), ', '));
            RAISE WARNING '%: no error', f.oid::regprocedure;
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            calls = calls + 1;
        END;
        DROP FUNCTION pg_temp.direct;
    END LOOP;
    ASSERT calls > 70, calls;
END $$;

-- Every object says what it is for
SELECT count(*) AS without_comment
  FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
 WHERE p.proname ~ '^metrics_percentiles?_' AND obj_description(p.oid, 'pg_proc') IS NULL;
