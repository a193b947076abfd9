--
-- metrics_sketch: cases A, B and C of the reference (cases.md) that concern
-- sketches, and what its functions refuse.  Properties over many inputs:
-- test/t/102_sketch_property.pl.
--
CREATE EXTENSION metrics_ext;
\set SHOW_CONTEXT never
\pset null NULL
\getenv output PG_ABS_BUILDDIR
\cd :output/results

-- is_near(r, x, a): r is right for x within the relative error a
CREATE FUNCTION is_near(r float8, x float8, a float8 DEFAULT 0.01) RETURNS boolean LANGUAGE SQL IMMUTABLE AS
$$ SELECT r = x OR abs(r - x) <= a * abs(x) * (1 + 1e-9) $$;

-- A01
SELECT q, is_near(metrics_percentile(s, q), 4 * q) AS near
FROM (SELECT metrics_sketch(v) AS s FROM generate_series(0, 4) v) s, unnest('{0, .25, .5, .75, 1}'::float8[]) q;
-- A02
SELECT v, metrics_percentiles(metrics_sketch(v), '{0, .5, .9, 1}') FROM unnest('{123, 1234}'::float8[]) v GROUP BY v ORDER BY v;
-- A03: within 1 % of 50, 95 and 99
SELECT q, is_near(metrics_percentile(s, q), 100 * q) AS near
FROM (SELECT metrics_sketch(v) AS s FROM generate_series(1, 100) v) s, unnest('{.5, .95, .99}'::float8[]) q;
-- A04, A05: infinities are values
SELECT metrics_percentiles(metrics_sketch('Infinity'::float8), '{.25, .5}') FROM generate_series(1, 5);
SELECT metrics_percentile(metrics_sketch(v), .5) FROM unnest('{Infinity, 0, -Infinity}'::float8[]) v;
SELECT metrics_percentile(metrics_sketch(v), .5) FROM unnest('{1, Infinity}'::float8[]) v;
-- A07, A08: NaN sorts last and is counted
SELECT is_near(metrics_percentile(metrics_sketch(v), .5), 2), metrics_max(metrics_sketch(v)), metrics_count(metrics_sketch(v))
FROM unnest('{1, NaN, 2}'::float8[]) v;
SELECT is_near(metrics_percentile(s, .1), 11), is_near(metrics_percentile(s, .9), 91)
FROM (SELECT metrics_sketch(v) AS s FROM (SELECT 'NaN'::float8 UNION ALL SELECT generate_series(1, 99) UNION ALL SELECT 'NaN') s(v)) s;
-- A09, A10: NULL is skipped, nothing gives NULL
SELECT metrics_percentile(metrics_sketch(v), .5) FROM unnest('{65536, NULL, NULL, NULL}'::float8[]) v;
SELECT metrics_sketch(v) FROM unnest('{NULL, NULL}'::float8[]) v;
SELECT metrics_sketch(v) FROM unnest('{}'::float8[]) v;
SELECT k, metrics_percentile(metrics_sketch(v), .5) FROM (VALUES ('a', 1.0), ('b', NULL)) s(k, v) GROUP BY k ORDER BY k;
-- A11, A12: fractions
SELECT metrics_percentile(metrics_sketch(1), 1.5);
SELECT metrics_percentile(metrics_sketch(1), -0.1);
SELECT metrics_percentile(metrics_sketch(1), 'NaN');
SELECT metrics_percentiles(metrics_sketch(1), '{0.5, 1.5}');
SELECT metrics_percentile(metrics_sketch(1), NULL) AS one, metrics_percentiles(metrics_sketch(v), '{0, .5, 1, NULL}')
FROM unnest('{1, 2}'::float8[]) v;
SELECT metrics_percentiles(metrics_sketch(1), '[2:3][1:2]={{0, NULL}, {0.5, 1}}'), metrics_percentiles(metrics_sketch(1), '{}');
-- A19
SELECT is_near(metrics_percentile(metrics_sketch(v), .9), 3000), is_near(metrics_percentile(metrics_sketch(v), .95), 9000)
FROM (SELECT 1000 FROM generate_series(1, 26) UNION ALL SELECT 3000 FROM generate_series(1, 11) UNION ALL VALUES (9000), (9000)) s(v);

-- B02
SELECT metrics_count(s), metrics_percentiles(s, '{0, .5, 1}') FROM (SELECT metrics_sketch(v) AS s FROM unnest('{-20, -2, 0, 0, 2, 20}'::float8[]) v) s;
-- B04
SELECT metrics_percentiles(metrics_sketch(1.0), '{0, .5, 1}'), metrics_mean(metrics_sketch(0.1)) FROM generate_series(1, 1000);
-- B05
SELECT metrics_sketch(1, 1e-17);
SELECT metrics_sketch(1, 0);
SELECT metrics_sketch(1, 1);
SELECT metrics_sketch(1, -1);
SELECT metrics_sketch(1, 'NaN');
SELECT metrics_sketch(NULL::float8, 0.2);
SELECT metrics_sketch_weighted(1, 1, 0.2);
SELECT metrics_relative_error(metrics_sketch(1)) AS omitted, metrics_relative_error(metrics_sketch(1, NULL)) AS "null",
	metrics_relative_error(metrics_sketch(1, 0.001)) AS least, metrics_relative_error(metrics_sketch(1, '0.1')) AS greatest;
SELECT metrics_sketch(1, e) FROM (VALUES (0.01), (0.02)) s(e);
-- B07
SELECT metrics_percentiles(metrics_sketch(v), '{0, .5, 1}') FROM unnest('{1e-320, 4.9e-324, 1e308}'::float8[]) v;
-- B08
SELECT is_near(metrics_percentile(s, .5), 1), is_near(metrics_percentile(s, 1), 1e300), metrics_relative_error(s)
FROM (SELECT metrics_sketch(('1e' || i)::float8) AS s FROM generate_series(-300, 300) i) s;
-- B09: more buckets than there may be, on either side
SELECT metrics_count(s), is_near(metrics_percentile(s, 1), '1e300'::float8 * 1.999, metrics_relative_error(s)) AS q1,
	is_near(metrics_percentile(s, .5), 1.481, metrics_relative_error(s)) AS q5, metrics_relative_error(s) > 0.001 AS grown,
	metrics_relative_error(s) < 0.3 AS bounded
FROM (SELECT metrics_sketch(('1e' || i)::float8 * (1 + j / 1000.0), 0.001) AS s FROM generate_series(-300, 300) i, generate_series(0, 999, 37) j) s;
SELECT metrics_count(s), metrics_relative_error(s) > 0.001 AS grown, metrics_percentile(s, .999) AS one
FROM (SELECT metrics_sketch_merge(s) AS s FROM (
	SELECT metrics_sketch(-('1e' || i)::float8 * (1 + j / 1000.0), 0.001) AS s FROM generate_series(-300, 300) i, generate_series(0, 999, 37) j
	UNION ALL SELECT metrics_sketch(1, 0.001) FROM generate_series(1, 1000)) s) s;
-- B11
SELECT metrics_sketch_merge(s) FROM (SELECT metrics_sketch(1, 0.01) UNION ALL SELECT metrics_sketch(1, 0.02)) t(s);
SELECT metrics_sketch(1, 0.01) + metrics_sketch(2, 0.02);
-- B13
CREATE TABLE sketches (id int, s metrics_sketch);
INSERT INTO sketches SELECT 1, metrics_sketch(v) FROM generate_series(-2, 2) v;
INSERT INTO sketches SELECT 2, metrics_sketch(v) FROM generate_series(1, 1000) v;
INSERT INTO sketches SELECT 3, metrics_sketch(v) FROM unnest('{NaN, Infinity, -Infinity, 1e-320, -1e308}'::float8[]) v;
INSERT INTO sketches SELECT 4, metrics_sketch('1e300'::float8 * random()) FROM generate_series(1, 1000) v;
CREATE TABLE copies (LIKE sketches);
\copy sketches to sketch.copy
\copy copies from sketch.copy
\copy sketches to sketch.copy (format binary)
\copy copies from sketch.copy (format binary)
INSERT INTO copies SELECT id, s::bytea::metrics_sketch FROM sketches;
SELECT id, count(*) AS copies, count(DISTINCT c.s::bytea) AS different, bool_and(c.s::bytea = s.s::bytea AND metrics_sketch_send(c.s) = s.s::bytea) AS identical
FROM sketches s JOIN copies c USING (id) GROUP BY id ORDER BY id;
SELECT s FROM sketches WHERE id IN (1, 3) ORDER BY id;
SELECT s::bytea FROM sketches WHERE id IN (1, 3) ORDER BY id;
-- B14
SELECT ''::metrics_sketch;
SELECT '{}'::metrics_sketch;
SELECT '{"version": 2}'::metrics_sketch;
-- each line breaks the one before in one place
CREATE TABLE bad (id int GENERATED ALWAYS AS IDENTITY, pattern text, replacement text);
INSERT INTO bad (pattern, replacement) VALUES
	('$', 'x'), ('}$', ''), ('"count": 5', '"count": 6'), ('"count": 5', '"count": -5'), ('"count": 5', '"count": 99999999999999999999'),
	('"zero": 1', '"zero": 2'), ('"zero": 1', '"zero": 9223372036854775807'), ('"min": -2', '"min": NaN'), ('"min": -2', '"min": 1e999'), ('"min": -2', '"min": -3'),
	('"max": 2', '"max": 1'), ('"sum": 0', '"sum": 100'), ('"sum": 0', '"sum": -0'), ('"sum": 0', '"sum": 0x1'), ('"squares": 10', '"squares": -1'),
	('"squares": 10', '"squares": NaN'), ('"squares": 10', '"squares": 1000'), ('"relative_error": 0.01', '"relative_error": NaN'),
	('"relative_error": 0.01', '"relative_error": 1e-17'), ('"level": 0', '"level": 100'), ('39445', '99999999999'), ('39445', '39410'), ('39445, 1', '39445, 0'),
	('39445, 1', '39445, 9223372036854775807'), ('39445, 1', '39445, -1'), ('"negative"', '"positive"'), ('\[', '[['), ('"nan": 0, ', '');
-- try(input, function): what an expression over $1 comes to
CREATE FUNCTION try(input text, function text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT %s', function) USING input;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	DECLARE detail text;
	BEGIN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		RETURN concat_ws(': ', SQLSTATE, SQLERRM, nullif(detail, ''));
	END;
END $$;
SELECT pattern, replacement, try(regexp_replace(s::text, pattern, replacement), '$1::metrics_sketch')
FROM bad, sketches WHERE sketches.id = 1 ORDER BY bad.id;
SELECT try('{"version":1,"relative_error":0.01,"level":0,"count":2100,"nan":0,"negative_infinity":0,"positive_infinity":0,"zero":0,"min":1,"max":2,"sum":3,"squares":0,"negative":[],"positive":['
	|| string_agg(format('[%s,1]', i), ',') || ']}', '$1::metrics_sketch') FROM generate_series(1, 2100) i;
-- every prefix and every byte appended, by cast and on the wire
SELECT try(substr(s::bytea, 1, i)::text, '$1::bytea::metrics_sketch'), count(*)
FROM sketches, generate_series(0, length(s::bytea) - 1) i WHERE id = 1 GROUP BY 1 ORDER BY 1;
SELECT try((s::bytea || '\x00'::bytea)::text, '$1::bytea::metrics_sketch') FROM sketches WHERE id = 1;
SELECT try('\x01003f847ae147ae147bffffffffffffffffff01000000000000', '$1::bytea::metrics_sketch') AS too_large,
	try('\x01003f847ae147ae147b8000000000000000', '$1::bytea::metrics_sketch') AS not_the_shortest,
	try('\x01003f847ae147ae147b00000000000000', '$1::bytea::metrics_sketch') AS empty,
	try('\x01003f847ae147ae147b0000000000ff7f00', '$1::bytea::metrics_sketch') AS many_buckets;
\copy (SELECT '\x0100'::bytea) to sketch.copy (format binary)
CREATE TABLE received (s metrics_sketch);
\copy received from sketch.copy (format binary)
-- B15
CREATE TABLE numbers AS SELECT v::float8, v % 10 AS part FROM generate_series(1, 1000) v;
ANALYZE numbers;
SELECT count(DISTINCT s::bytea) AS different FROM (SELECT metrics_sketch(v ORDER BY v) FROM numbers UNION ALL
	SELECT metrics_sketch(v ORDER BY v DESC) FROM numbers UNION ALL SELECT metrics_sketch(v ORDER BY md5(v::text)) FROM numbers) t(s);
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 2;
ALTER TABLE numbers SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT metrics_sketch(v) FROM numbers;
SELECT metrics_sketch(v)::bytea = (SELECT s::bytea FROM sketches WHERE id = 2) AS same FROM numbers;
-- B11 in a parallel partitionwise plan
CREATE TABLE parted (k int, s metrics_sketch) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1) WITH (parallel_workers = 2);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2) WITH (parallel_workers = 2);
INSERT INTO parted SELECT 1, metrics_sketch(v, 0.01) FROM numbers;
INSERT INTO parted SELECT 2, metrics_sketch(v, 0.01) FROM numbers;
SET LOCAL enable_partitionwise_aggregate = on;
EXPLAIN (COSTS OFF) SELECT metrics_count(metrics_sketch_merge(s)) FROM parted;
SELECT metrics_count(metrics_sketch_merge(s)) FROM parted;
UPDATE parted SET s = (SELECT metrics_sketch(v, 0.02) FROM numbers) WHERE k = 2;
SELECT metrics_count(metrics_sketch_merge(s)) FROM parted;
ROLLBACK;
-- B16
SELECT metrics_sketch_merge(s) FROM (VALUES (NULL::metrics_sketch), (NULL)) t(s);
SELECT metrics_count(metrics_sketch_merge(t.s)) FROM (VALUES (NULL), ((SELECT s FROM sketches WHERE id = 2)), (NULL)) t(s);
SELECT metrics_sketch_merge(s) FROM sketches WHERE false;
CREATE TABLE nothing AS SELECT '\x01003f847ae147ae147b00000000000000'::bytea::metrics_sketch AS s;
SELECT s, metrics_count(s), metrics_percentile(s, .5), metrics_percentiles(s, '{.5}'), metrics_rank(s, 1), metrics_sum(s), metrics_min(s), metrics_max(s),
	metrics_mean(s), metrics_stddev(s), metrics_trimmed_mean(s, 0, 1), metrics_relative_error(s) FROM nothing;
SELECT metrics_count(metrics_sketch_merge(s)), (SELECT count(*) FROM metrics_histogram((SELECT s FROM nothing))) AS buckets FROM nothing;
SELECT (n.s + s.s)::bytea = s.s::bytea AS same FROM nothing n, sketches s;
-- B18
SELECT metrics_sketch_weighted(1, 0);
SELECT metrics_sketch_weighted(1, -1);
SELECT metrics_sketch_weighted(v, w) FROM (VALUES (1.0::float8, NULL::bigint), (NULL, 5)) t(v, w);
-- B19
SELECT metrics_percentile(a, .5) = metrics_percentile(b, .5) AND a::bytea = b::bytea AS same, is_near(metrics_percentile(a, .5), 3e6)
FROM (SELECT metrics_sketch(v) AS a FROM unnest('{1e6, 3e6, 3e6, 3e6, 3e6, 5e6, 7e6, 9e6}'::float8[]) v) a,
	(SELECT metrics_sketch_weighted(v, w) AS b FROM (VALUES (1e6, 1), (3e6, 4), (5e6, 1), (7e6, 1), (9e6, 1)) t(v, w)) b;
-- B20
SELECT q, is_near(metrics_percentile(s, q), 50)
FROM (SELECT metrics_sketch_weighted(v, w) AS s FROM (VALUES (1, 2), (50, 1000000), (100, 2)) t(v, w)) s, unnest('{.25, .5, .75}'::float8[]) q;
-- too many
SELECT metrics_sketch_weighted(1, 9223372036854775807) FROM generate_series(1, 2);
SELECT metrics_count(s), s + s FROM (SELECT metrics_sketch_weighted(1, 9223372036854775807) AS s) s;
-- B22
SELECT is_near(r[2], 2) OR is_near(r[2], 1), r[1], r[3] FROM (SELECT metrics_percentiles(metrics_sketch(v)::text::metrics_sketch, '{0, .5, 1}') AS r
	FROM unnest('{1, Infinity, 2}'::float8[]) v) s;
SELECT is_near(r[2], 1), r[1], is_near(r[3], 2) FROM (SELECT metrics_percentiles(metrics_sketch(v)::text::metrics_sketch, '{0, .5, 1}') AS r
	FROM unnest('{1, -Infinity, 2}'::float8[]) v) s;
-- C02, and what is not a value of the sketch
SELECT y, metrics_rank(s, y) FROM (SELECT metrics_sketch(v) AS s FROM generate_series(1, 4) v) s,
	unnest('{-Infinity, -1, 0, .5, 1, 2, 3, 4, 5, Infinity, NaN}'::float8[]) y;
SELECT y, metrics_rank(s, y) FROM (SELECT metrics_sketch(v) AS s FROM unnest('{-Infinity, -2, -1, 0, 0, 1, Infinity, NaN}'::float8[]) v) s,
	unnest('{-Infinity, -3, -2, -1.5, -1, -0, 0.5, 1, 2, Infinity, NaN}'::float8[]) y;
-- C04
SELECT is_near(metrics_trimmed_mean(s, .25, 1), 6250.5), is_near(metrics_trimmed_mean(s, .25, .75), 5000.5), metrics_trimmed_mean(s, 0, 1) = metrics_mean(s) AS all
FROM (SELECT metrics_sketch(v) AS s FROM generate_series(1, 10000) v) s;
SELECT metrics_trimmed_mean(metrics_sketch(v), .3, .9), metrics_trimmed_mean(metrics_sketch(v), .2, .6) AS part_of_a_value, metrics_trimmed_mean(metrics_sketch(v), 0, .5) AS low
FROM unnest('{-Infinity, 0, 0, 0, 8}'::float8[]) v;
SELECT metrics_trimmed_mean(metrics_sketch(1), .5, .5);
SELECT metrics_trimmed_mean(metrics_sketch(1), .5, 1.5);
SELECT metrics_trimmed_mean(metrics_sketch(1), 'NaN', 1);
-- C06
SELECT metrics_mean(s), metrics_stddev(s), metrics_trimmed_mean(s, 0, .9), metrics_percentile(s, .5) FROM (SELECT metrics_sketch(1e308) AS s FROM generate_series(1, 3)) s;
SELECT metrics_sum(metrics_sketch(1e308)) FROM generate_series(1, 3);
SELECT metrics_stddev(metrics_sketch(v)) FROM unnest('{-1.7e308, 1.7e308}'::float8[]) v;
SELECT metrics_stddev(metrics_sketch(v)) / 1e-200, metrics_sum(metrics_sketch(v)) / 1e-200 FROM unnest('{1e-200, 3e-200}'::float8[]) v;
-- C07
SELECT metrics_mean(s), metrics_sum(s), metrics_stddev(s) FROM (SELECT metrics_sketch(v) AS s FROM unnest('{123, NaN, Infinity, -Infinity}'::float8[]) v) s;
SELECT metrics_mean(s), metrics_sum(s), metrics_stddev(s) FROM (SELECT metrics_sketch(v) AS s FROM unnest('{123, Infinity}'::float8[]) v) s;
-- C10, C11
SELECT metrics_count(s), metrics_min(s), metrics_max(s), metrics_sum(s), metrics_mean(s), metrics_stddev(s)
FROM (SELECT metrics_sketch(v) AS s FROM unnest('{1.0, 1.5, 2.0}'::float8[]) v) s;
SELECT metrics_min(s), metrics_max(s), metrics_sum(s), metrics_mean(s) FROM (SELECT metrics_sketch(v) AS s FROM unnest('{-Infinity, Infinity}'::float8[]) v) s;
SELECT metrics_min(s), metrics_max(s) FROM (SELECT metrics_sketch(v) AS s FROM unnest('{NaN, 1}'::float8[]) v) s;
SELECT metrics_count(s), metrics_min(s), metrics_max(s), metrics_stddev(s) FROM (SELECT metrics_sketch('NaN'::float8) AS s) s;
SELECT metrics_count(s), metrics_min(s), metrics_mean(s), metrics_stddev(s) FROM (SELECT metrics_sketch(5) AS s) s;

-- SQLSTATEs
SELECT expression, try('', expression) FROM unnest(ARRAY['metrics_sketch(1, 0.5)', 'metrics_percentile(metrics_sketch(1), 2)',
	'metrics_sketch(1, 0.01) + metrics_sketch(1, 0.02)', 'metrics_sketch_weighted(1, -1)', 'metrics_sum(metrics_sketch(1e308) + metrics_sketch(1e308))',
	'metrics_sketch_weighted(1, 9223372036854775807) + metrics_sketch(1)', 'metrics_trimmed_mean(metrics_sketch(1), 0.5, 0.5)']) expression;
-- histogram
SELECT h.* FROM (SELECT metrics_sketch(v, 0.1) AS s FROM unnest('{-Infinity, -3, -1, 0, -0, 1, 1.1, 3, NaN, NaN}'::float8[]) v) s, metrics_histogram(s) h;
-- -0 is 0
SELECT metrics_percentile(metrics_sketch('-0'::float8), .5), metrics_min(metrics_sketch('-0'::float8)), metrics_max(metrics_sketch_weighted('-0'::float8, 2));
-- a sketch is small
SELECT length(metrics_sketch(10 ^ (3 * i / 100000.0::float8))::bytea) <= 2048 FROM generate_series(1, 100000) i;

-- as aggregates are used
SELECT part % 3 AS g, metrics_count(metrics_sketch(v)) AS n, metrics_count(metrics_sketch(DISTINCT part)) AS d, metrics_count(metrics_sketch(v) FILTER (WHERE v > 500)) AS f
FROM numbers GROUP BY GROUPING SETS ((part % 3), ()) HAVING metrics_max(metrics_sketch(v)) > 1 ORDER BY g;
SELECT part, metrics_percentile(metrics_sketch_merge(s), .5) = metrics_percentile((SELECT metrics_sketch(v) FROM numbers n WHERE n.part = p.part), .5) AS same
FROM (SELECT part, v::int % 7 AS w, metrics_sketch(v) AS s FROM numbers GROUP BY 1, 2) p GROUP BY part ORDER BY part;
-- a moving frame is what the aggregate over it is; also with more buckets than there may be
CREATE TABLE series AS
SELECT i, (CASE WHEN i % 97 = 0 THEN 'NaN' WHEN i % 89 = 0 THEN NULL WHEN i % 83 = 0 THEN '-Infinity' WHEN i % 71 = 0 THEN 0
	ELSE (hashint4(i) / 1e6)::float8 * 10.0::float8 ^ (hashint4(i * 3) % 300) END)::float8 AS v FROM generate_series(1, 700) i;
CREATE FUNCTION content(metrics_sketch) RETURNS text LANGUAGE SQL IMMUTABLE AS
$$ SELECT regexp_replace($1::text, '"sum": .*, "negative"', '"negative"') $$;
SELECT count(*), count(*) FILTER (WHERE content(moving) IS DISTINCT FROM content(plain)) AS different, count(*) FILTER (WHERE moving IS NULL) AS empty FROM (
	SELECT metrics_sketch(v) OVER (ORDER BY i ROWS BETWEEN 30 PRECEDING AND 10 FOLLOWING) AS moving,
		(SELECT metrics_sketch(v) FROM series f WHERE f.i BETWEEN s.i - 30 AND s.i + 10) AS plain FROM series s
	UNION ALL
	SELECT metrics_sketch(v, 0.02) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND 2 PRECEDING),
		(SELECT metrics_sketch(v, 0.02) FROM series f WHERE f.i = s.i - 2) FROM series s) s;
CREATE TABLE wide AS SELECT i, 1.3::float8 ^ (hashint4(i) % 2690) AS v FROM generate_series(1, 3200) i;
SELECT count(*), count(*) FILTER (WHERE content(moving) IS DISTINCT FROM content(plain)) AS different, count(*) FILTER (WHERE metrics_relative_error(moving) > 0.001) > 0 AS grown FROM (
	SELECT s.i, moving, (SELECT metrics_sketch(v, 0.001) FROM wide f WHERE f.i BETWEEN s.i - 2900 AND s.i) AS plain
	FROM (SELECT i, metrics_sketch(v, 0.001) OVER (ORDER BY i ROWS 2900 PRECEDING) AS moving FROM wide) s WHERE i % 100 = 0) s;
-- sums of a moving frame do not remember what left it
SELECT i, metrics_sum(metrics_sketch(v) OVER (ORDER BY i ROWS 1 PRECEDING)), metrics_stddev(metrics_sketch(v) OVER (ORDER BY i ROWS 1 PRECEDING))
FROM (VALUES (1, 1e300), (2, 1e16), (3, 1), (4, 2), (5, 'Infinity'), (6, 3), (7, 4)) t(i, v) ORDER BY i;
-- literals and other numeric types find the function that is meant
SELECT metrics_percentile(metrics_sketch(v), '0.5') = metrics_percentile(metrics_sketch(v::numeric, '0.01'), 0.5) AS same, metrics_percentiles(metrics_sketch(v::bigint), '{0, 1}') FROM generate_series(1, 9) v;
-- every function has a comment
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
WHERE (proname LIKE 'metrics_sketch%' OR 'metrics_sketch'::regtype = ANY (proargtypes)) AND obj_description(p.oid, 'pg_proc') IS NULL;
DROP EXTENSION metrics_ext CASCADE;
