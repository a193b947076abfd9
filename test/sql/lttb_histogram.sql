--
-- Downsampling by largest triangle three buckets, and histograms
--
SET client_min_messages TO warning;
CREATE EXTENSION IF NOT EXISTS metrics_ext;
SET extra_float_digits TO 1;
SET timezone TO 'UTC';
SET datestyle TO ISO;
\pset null (null)
-- Run a statement and say how it fails, without what differs by version.
CREATE FUNCTION failure(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(hint, ''));
END $$;

-- D08
SELECT p.* FROM unnest((SELECT metrics_lttb(x, y, 3)
                        FROM (VALUES (0, 0), (1, 1), (2, 10), (3, 1), (4, 0)) v(x, y))) p;
-- The rule of the reference implementation, on ten points and four.
SELECT metrics_lttb(x, y, 4)
FROM (VALUES (0, 5), (1, 6), (2, 1), (3, 2), (4, 9), (5, 4), (6, 4), (7, 0), (8, 3), (9, 7)) v(x, y);

-- D10: no rows, one, two; as many as asked for, and fewer.
SELECT n, metrics_lttb(x, x * x, 3) FILTER (WHERE x <= n)
FROM generate_series(0, 4) n, generate_series(1, 4) x GROUP BY n ORDER BY n;
SELECT metrics_lttb(x, y, 5) FROM (VALUES (NULL::float8, NULL::float8), (NULL, 1), (1, NULL)) v(x, y);
SELECT metrics_lttb(x, y, 5) FROM (VALUES (3, 1), (NULL, 1), (1, 2), (2, NULL)) v(x, y);
-- Two are the first and the last.
SELECT metrics_lttb(x, x % 7, 2) FROM generate_series(1, 1000) x;
-- Order of input and parallel plans leave no trace; equal x in order of y.
CREATE TABLE series AS
    SELECT g AS x, (g % 10) * 1.5::float8 AS y, timestamptz '2020-01-01' + g % 500 * interval '1 min' AS at
    FROM generate_series(1, 2000) g;
ANALYZE series;
SELECT count(DISTINCT a) FROM (
    SELECT metrics_lttb(x, y, 50) FROM series
    UNION ALL SELECT metrics_lttb(x, y, 50 ORDER BY x DESC) FROM series
    UNION ALL SELECT metrics_lttb(x, y, 50 ORDER BY md5(x::text)) FROM series) s(a);
SELECT count(DISTINCT a), min(cardinality(a)), min((a[2]).y) FROM (
    SELECT metrics_lttb(at, y, 2000) FROM series
    UNION ALL SELECT metrics_lttb(at, y, 2000 ORDER BY y DESC, at) FROM series
    UNION ALL SELECT metrics_lttb(at, y, 2000 ORDER BY md5(x::text)) FROM series) s(a);
BEGIN;
CREATE TEMP TABLE serial ON COMMIT DROP AS SELECT metrics_lttb(x, y, 50) AS number, metrics_lttb(at, y, 50) AS time,
    metrics_histogram(y, '{2,5,7}') AS histogram FROM series;
SET LOCAL parallel_setup_cost TO 0;
SET LOCAL parallel_tuple_cost TO 0;
SET LOCAL min_parallel_table_scan_size TO 0;
SET LOCAL max_parallel_workers_per_gather TO 2;
ALTER TABLE series SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT metrics_lttb(x, y, 50), metrics_lttb(at, y, 50), metrics_histogram(y, '{2,5,7}') FROM series;
SELECT metrics_lttb(x, y, 50) = (SELECT number FROM serial) AS number, metrics_lttb(at, y, 50) = (SELECT time FROM serial) AS time,
       metrics_histogram(y, '{2,5,7}') = (SELECT histogram FROM serial) AS histogram FROM series;
-- A worker without a row of the group, and one without any.
SELECT metrics_lttb(x, y, 3) FILTER (WHERE x < 4), metrics_histogram(y, '{1}') FILTER (WHERE x < 4),
       metrics_lttb(x, y, 3) FILTER (WHERE x < 0), metrics_histogram(y, '{1}') FILTER (WHERE x < 0) FROM series;
COMMIT;
-- Time keeps its microseconds, at either end of what can be told.
SELECT p.* FROM unnest((SELECT metrics_lttb(t, 1, 4) FROM (VALUES
    (timestamptz '294276-12-31 23:59:59.999999+00'), ('4713-01-01 00:00:00.000001+00 BC'),
    ('2026-01-01 00:00:00.000001+00'), ('infinity'), ('-infinity')) v(t))) p;
-- An x that is no finite number has no place; a y that is none stays.
SELECT metrics_lttb(x, y, 10) FROM (VALUES (1::float8, 1::float8), ('NaN', 2), ('Infinity', 3), ('-Infinity', 4), (2, 'NaN'),
    (3, 'Infinity'), (4, '-Infinity'), (5, 5)) v(x, y);
SELECT metrics_lttb(x, CASE WHEN x % 3 = 0 THEN 'NaN' WHEN x = 50 THEN 1e308 WHEN x = 51 THEN -1e308 ELSE 1 END, 5)
FROM generate_series(1, 100) x;
SELECT metrics_lttb(x, 'NaN', 3) FROM generate_series(1, 5) x;
-- -0 and 0 are one x.
SELECT metrics_lttb(x, y, 5) FROM (VALUES ('0'::float8, 2), ('-0', 1), ('0', 0)) v(x, y);
-- points
SELECT failure('SELECT metrics_lttb(1::float8, 1::float8, 1)');
SELECT failure('SELECT metrics_lttb(NULL::float8, 1::float8, -5)');
SELECT failure('SELECT metrics_lttb(1::float8, 1::float8, NULL)');
SELECT failure('SELECT metrics_lttb(x::float8, 1::float8, x) FROM generate_series(2, 3) x');
SELECT metrics_lttb(x, x, 2147483647) FROM generate_series(1, 2) x;
-- As aggregates are used.
SELECT x % 2 AS odd, cardinality(metrics_lttb(x, y, 5)), cardinality(metrics_lttb(DISTINCT y, y, 5)) FROM series
WHERE x <= 100 GROUP BY GROUPING SETS ((x % 2), ()) ORDER BY 1;
SELECT x, metrics_lttb(x, y, 2) OVER (ORDER BY x ROWS 2 PRECEDING) FROM series WHERE x < 5 ORDER BY x;

-- Histogram: numbered as width_bucket() does, so equal to it.
SELECT metrics_histogram(v, '{0,1,5}') FROM generate_series(-1, 10) v;
SELECT metrics_histogram(v, '{}'), metrics_histogram(v, '{3}') FROM generate_series(1, 4) v;
-- NaN is in the last bucket; infinities are values; NULL is none.
SELECT metrics_histogram(v, '{0,1}') FROM (VALUES ('NaN'::float8), ('Infinity'), ('-Infinity'), ('-0'), (NULL), ('1')) t(v);
SELECT metrics_histogram(v, '{-Infinity,0,Infinity}') FROM (VALUES ('NaN'::float8), ('Infinity'), ('-Infinity'), ('-1'), ('1')) t(v);
SELECT metrics_histogram(NULL, '{0,1}'), metrics_histogram(1, NULL), metrics_histogram(v, '{0}') FILTER (WHERE v > 5)
FROM generate_series(1, 3) v;
WITH edges AS (SELECT array_agg(e::float8 ORDER BY e) AS e FROM generate_series(-50, 50, 7) e),
     number AS (SELECT ((g * 7919) % 1500) / 10.0 - 75 AS v FROM generate_series(1, 3000) g)
SELECT metrics_histogram(v, (SELECT e FROM edges)) = (
    SELECT array_agg((SELECT count(*) FROM number WHERE width_bucket(v::float8, (SELECT e FROM edges)) = b) ORDER BY b)
    FROM generate_series(0, cardinality((SELECT e FROM edges))) b) AS equal FROM number;
-- Edges
SELECT failure('SELECT metrics_histogram(1, ''{1,1}'')');
SELECT failure('SELECT metrics_histogram(1, ''{2,1}'')');
SELECT failure('SELECT metrics_histogram(1, ''{1,NaN}'')');
SELECT failure('SELECT metrics_histogram(1, ''{1,NULL}'')');
SELECT failure('SELECT metrics_histogram(1, ''{{1,2}}'')');
SELECT failure('SELECT metrics_histogram(1, ARRAY[v]) FROM generate_series(1, 2) v');
SELECT failure('SELECT metrics_histogram(1, ARRAY[1, v]) FROM (VALUES (2), (NULL)) t(v)');
SELECT metrics_histogram(1, e) FROM (VALUES ('{0,1}'::float8[]), ('{-0,1}'), ('[0:1]={0,1}')) t(e);
-- Moving and growing frames, against counting afresh.
SELECT v, metrics_histogram(v, '{2,4}') OVER w, metrics_histogram(nullif(v, 3), '{2,4}') OVER (ORDER BY v)
FROM generate_series(1, 6) v WINDOW w AS (ORDER BY v ROWS 2 PRECEDING);
SELECT count(*) FROM (
    SELECT x, metrics_histogram(y, '{3,6,9}') OVER (ORDER BY x ROWS BETWEEN 20 PRECEDING AND 10 FOLLOWING) AS h FROM series) w
WHERE h IS DISTINCT FROM (SELECT metrics_histogram(y, '{3,6,9}') FROM series s WHERE s.x BETWEEN w.x - 20 AND w.x + 10);
-- A frame may begin with NULLs, and have no others.
SELECT i, metrics_histogram(v, '{2}') OVER (ORDER BY i ROWS 1 PRECEDING)
FROM (VALUES (1, NULL), (2, 1), (3, NULL), (4, NULL), (5, 2)) t(i, v) ORDER BY i;
-- Nobody calls the support functions: whether they are found depends on the release.
SELECT failure('SELECT metrics_lttb_final(NULL)') <> 'no error' AS fails;
SELECT failure('SELECT metrics_histogram_deserialize(''\x01'', NULL)') <> 'no error' AS fails;

DROP TABLE series;
DROP FUNCTION failure(text);
DROP EXTENSION metrics_ext;
