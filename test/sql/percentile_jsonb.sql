--
-- Percentiles, sketches and summaries straight from documents, and percentiles
-- over the store
--
SET client_min_messages TO warning;
CREATE EXTENSION IF NOT EXISTS metrics_ext;
SET extra_float_digits TO 1;
SET timezone TO 'UTC';
SET datestyle TO ISO;
\pset null (null)
-- Run a statement and say how it fails.
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
-- The documents in the lines of a text.
CREATE FUNCTION docs(lines text) RETURNS SETOF jsonb LANGUAGE sql AS $$
    SELECT line::jsonb FROM regexp_split_to_table(lines, '\s*;\s*') line
$$;

-- D01: NaN is the greatest value, missing and null never count.
SELECT metrics_percentile(d, '{loss}', 0.5) FROM docs('{"loss":1};{"loss":"NaN"};{"loss":3};{};{"loss":null}') d;
-- D02: what is no number is skipped.
SELECT metrics_percentile(d, '{loss}', 0.5), metrics_summary(d) -> 'loss' AS summary
FROM docs('{"loss":1};{"loss":"abc"};{"loss":true};{"loss":3};{"loss":"1"};{"loss":[2]};{"loss":{}}') d;
-- D03: so is what float8 cannot hold; what to_jsonb() makes of NaN is a number.
SELECT metrics_percentiles(d, '{loss}', '{0,1}'), metrics_summary(d) -> 'loss' AS summary
FROM docs('{"loss":1e400};{"loss":-1e400};{"loss":1e-400};{"loss":2}') d;
SELECT metrics_number(to_jsonb(x), '{}') FROM unnest('{NaN,Infinity,-Infinity,-0,1e-310,1.7976931348623157e308}'::float8[]) x;
-- D04, and what else a path can be.
SELECT metrics_percentile(d, '{avg_metrics,loss}', 0.5) FROM docs('{"avg_metrics":{"loss":2}};{"avg_metrics":3};{"loss":4};[1]') d;
SELECT path, metrics_number(d, path) AS number, d #> path AS value
FROM docs('{"a":{"b":[1,{"c":2}],"":3,"0":4},"x.y":5}') d,
     (VALUES ('{a,b,0}'::text[]), ('{a,b,-1,c}'), ('{a,b,2}'), ('{a,b,-3}'), ('{a,b,x}'), ('{a,""}'), ('{a,0}'), ('{x.y}'), ('{a}'),
             ('{}'), ('{{a,b},{1,c}}'), ('{a,NULL}'), ('{a,b,0,c}'), ('{a,b,9999999999}'), (NULL)) p(path);
SELECT metrics_number('7', '{}'), metrics_number('"NaN"', '{}'), metrics_number('7', '{0}'), metrics_number('[7]', '{0}');
-- The path is looked at in each row.
SELECT metrics_percentiles('{"a":1,"b":2}'::jsonb, ARRAY[k], '{0,1}') FROM unnest('{a,b,c,NULL}'::text[]) k;
-- A05, A07, A08
SELECT metrics_percentile(d, '{v}', 0.5) FROM docs('{"v":"Infinity"};{"v":0};{"v":"-Infinity"}') d;
SELECT metrics_percentile(d, '{v}', 0.5) FROM docs('{"v":1};{"v":"Infinity"}') d;
SELECT metrics_percentile(d, '{v}', 0.5), metrics_percentile(metrics_sketch(d, '{v}'), 0.5)
FROM docs('{"v":1};{"v":"NaN"};{"v":2}') d;
SELECT metrics_percentiles(metrics_sketch(to_jsonb(x), '{}'), '{0.1,0.9}') AS sketch, percentile_disc('{0.1,0.9}'::float8[]) WITHIN GROUP (ORDER BY x)
FROM (SELECT 'NaN'::float8 UNION ALL SELECT 'NaN' UNION ALL SELECT generate_series(1, 99)) t(x);
-- Forms of the result, and of nothing
SELECT metrics_percentiles(d, '{v}'), (metrics_percentiles(d, '{v}')).p95, metrics_percentiles(d, '{v}', '{0.5,NULL,1}'),
       metrics_percentile(d, '{v}', NULL), metrics_count(metrics_sketch(d, '{v}', 0.05))
FROM (SELECT jsonb_build_object('v', g) FROM generate_series(1, 101) g) t(d);
SELECT metrics_percentiles(d, '{w}'), metrics_percentiles(d, '{w}', '{0.5}'), metrics_percentile(d, '{w}', 0.5), metrics_sketch(d, '{w}'), metrics_summary(d)
FROM docs('{"v":1}') d;
SELECT metrics_percentiles(d, '{v}'), metrics_sketch(d, '{v}'), metrics_summary(d), metrics_summary(d, '{v}') FROM docs('{"v":1}') d WHERE false;
SELECT metrics_percentiles(d, '{v}'), metrics_sketch(d, '{v}'), metrics_summary(d) FROM (VALUES (NULL::jsonb)) t(d);
SELECT metrics_percentiles(d, NULL), metrics_sketch(d, NULL::text[]), metrics_summary(d, NULL) FROM docs('{"v":1}') d;
SELECT failure($$ SELECT metrics_percentile('{"v":1}'::jsonb, '{v}', 1.5) $$);
SELECT failure($$ SELECT metrics_percentiles('{"v":1}'::jsonb, '{v}', '{0.5,NaN}') $$);
SELECT failure($$ SELECT metrics_percentile(jsonb '{"v":1}', '{v}', f) FROM unnest('{0.1,0.2}'::float8[]) f $$);
SELECT failure($$ SELECT metrics_sketch(jsonb '{"v":1}', '{v}', 0.5) $$);
-- As aggregates are used; large documents, too, that are stored outside the row.
CREATE TABLE document AS
    SELECT g AS id, g % 3 AS kind, jsonb_build_object('loss', (g * 7919) % 1000 / 8.0, 'name', 'n' || g,
        'filler', CASE WHEN g % 10 = 0 THEN (SELECT string_agg(md5(g || '-' || i), '') FROM generate_series(1, 200) i) END) AS metrics
    FROM generate_series(1, 3000) g;
ANALYZE document;
SELECT kind, metrics_percentiles(metrics, '{loss}') AS all, metrics_percentiles(metrics, '{loss}', '{0.5}') FILTER (WHERE id % 10 = 0) AS large,
       metrics_percentile(DISTINCT metrics, '{loss}', 0.5), metrics_percentile(metrics, '{loss}', 0.5 ORDER BY id DESC)
FROM document GROUP BY GROUPING SETS (kind, ()) HAVING metrics_percentile(metrics, '{loss}', 0.5) > 0 ORDER BY kind;
SELECT count(*) FROM (
    SELECT id, metrics_percentile(metrics, '{loss}', 0.25) OVER (ORDER BY id ROWS BETWEEN 30 PRECEDING AND 10 FOLLOWING) AS mine,
           metrics_percentiles(metrics_sketch(metrics, '{loss}') OVER (ORDER BY id ROWS 5 PRECEDING), '{0,1}') AS ends FROM document WHERE id <= 500) w
WHERE mine IS DISTINCT FROM (SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY (metrics->>'loss')::float8) FROM document d
                             WHERE d.id BETWEEN w.id - 30 AND w.id + 10 AND d.id <= 500)
   OR ends IS DISTINCT FROM (SELECT ARRAY[min((metrics->>'loss')::float8), max((metrics->>'loss')::float8)] FROM document d WHERE d.id BETWEEN w.id - 5 AND w.id);
SELECT id, metrics_percentile(d, '{v}', 0.5) OVER w, metrics_percentile(metrics_sketch(d, '{v}') OVER w, 0.5)
FROM (VALUES (1, NULL::jsonb), (2, '{"v":1}'), (3, '{"v":null}'), (4, NULL), (5, '{"v":2}')) t(id, d)
WINDOW w AS (ORDER BY id ROWS 1 PRECEDING) ORDER BY id;
BEGIN;
CREATE TEMP TABLE serial ON COMMIT DROP AS SELECT metrics_percentiles(metrics, '{loss}', '{0.1,0.5}') AS exact,
    metrics_sketch(metrics, '{loss}') AS sketch, metrics_summary(metrics) AS summary FROM document;
SET LOCAL parallel_setup_cost TO 0;
SET LOCAL parallel_tuple_cost TO 0;
SET LOCAL min_parallel_table_scan_size TO 0;
SET LOCAL max_parallel_workers_per_gather TO 2;
ALTER TABLE document SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT metrics_percentiles(metrics, '{loss}'), metrics_sketch(metrics, '{loss}'), metrics_summary(metrics) FROM document;
-- The sums are exact here, so all is equal.
SELECT metrics_percentiles(metrics, '{loss}', '{0.1,0.5}') = (SELECT exact FROM serial) AS exact,
       metrics_summary(metrics) = (SELECT summary FROM serial) AS summary,
       metrics_percentiles(metrics_sketch(metrics, '{loss}'), '{0,0.1,0.5,1}') = (SELECT metrics_percentiles(sketch, '{0,0.1,0.5,1}') FROM serial) AS sketch
FROM document;
COMMIT;
DROP TABLE document;

-- Summary. C10 without last, which the summaries of trials have.
SELECT key, value FROM jsonb_each((SELECT metrics_summary(d) FROM docs('{"a":1.0,"b":-0.5};{"a":1.5,"b":0.0};{"a":2.0}') d)) ORDER BY key;
-- C11: as core's min and max; the summaries of trials differ, as README says.
SELECT key, value FROM jsonb_each((SELECT metrics_summary(d) FROM docs('{"a":"NaN","b":"-Infinity"};{"a":1.0,"b":"Infinity"}') d)) ORDER BY key;
-- Types: null makes nothing mixed and is not skipped.
SELECT key, value ->> 'type' AS type, value -> 'count' AS count, value -> 'skipped' AS skipped FROM jsonb_each((SELECT metrics_summary(d)
    FROM docs('{"n":1,"s":"x","b":true,"a":[],"o":{},"z":null,"m":1,"k":1e400,"t":"NaN"};{"n":null,"s":null,"b":false,"a":[1],"o":{},"z":null,"m":"x","k":null,"t":2}') d)) ORDER BY key;
-- Nested keys by path; a name with a dot or a double quote in it, and an empty one, are quoted.
SELECT key, value -> 'count' AS count, value -> 'sum' AS sum FROM jsonb_each((SELECT metrics_summary(d)
    FROM docs('{"a":{"b":1,"":2,"x.y":3},"a.b":4,"q\"r":{"s":5},"\"a\"":6,"é":7}') d)) ORDER BY key COLLATE "C";
-- An object is its keys; where there was something else, too, it is told as well.
SELECT key, value ->> 'type' AS type, value -> 'count' AS count, value -> 'skipped' AS skipped FROM jsonb_each((SELECT metrics_summary(d)
    FROM docs('{"a":{"x":1},"b":{"x":1},"c":{"x":1}};{"a":2,"b":null,"c":{}};{"a":{"y":{}}}') d)) ORDER BY key;
-- Eight keys deep
SELECT key, value ->> 'type' AS type FROM jsonb_each((SELECT metrics_summary(d) FROM docs(
    '{"1":{"2":{"3":{"4":{"5":{"6":{"7":{"8":1}}}}}}}};{"1":{"2":{"3":{"4":{"5":{"6":{"7":{"eight":{"9":1}}}}}}}}}') d)) ORDER BY key;
-- Below a path
SELECT metrics_summary(d, '{a,0}') FROM docs('{"a":[{"b":1}]};{"a":[{"b":3}]};{"a":5};[];{"a":[[1]]}') d;
SELECT metrics_summary(d) FROM docs('[1];2;"x";null') d;
SELECT metrics_summary(d) FROM docs('{}') d;
-- Shapes that come and go, more of them than are remembered
SELECT sum((value ->> 'count')::int), min((value ->> 'sum')::numeric), max((value ->> 'sum')::numeric), count(*) FROM jsonb_each((
    SELECT metrics_summary(d) FROM (SELECT jsonb_object_agg('k' || k, 1) FROM generate_series(1, 600) g, generate_series(1, 40) k
                                    WHERE (g + k) % (2 + g % 17) <> 0 GROUP BY g) t(d)));
-- Bounds
SELECT count(*) FROM jsonb_object_keys((SELECT metrics_summary(d) FROM (SELECT jsonb_object_agg('k' || g, g) FROM generate_series(1, 1000) g) t(d)));
SELECT failure($$ SELECT metrics_summary(d) FROM (SELECT jsonb_object_agg('k' || g, g) FROM generate_series(1, 1001) g) t(d) $$);
SELECT failure($$ SELECT metrics_summary(jsonb_build_object('k' || g, g)) FROM generate_series(1, 1001) g $$);
SELECT failure($$ SELECT metrics_summary(jsonb_build_object(repeat('k', 100000 + g), g)) FROM generate_series(1, 20) g $$);
SELECT metrics_summary(d, '{k7}') FROM (SELECT jsonb_object_agg('k' || g, jsonb_build_object('v', g)) FROM generate_series(1, 2000) g) t(d);

-- Percentiles over the store
SELECT failure($$ SELECT * FROM metrics_percentiles('training', 'loss') $$);
SELECT metrics_create_store();
SELECT metrics_register_trial(t) FROM generate_series(1, 2) t;
SELECT count(metrics_report(t, 'training', jsonb_build_object('loss', CASE g WHEN 7 THEN '"NaN"' WHEN 8 THEN '"text"' ELSE to_jsonb(g * t) END), g, 0,
    timestamptz '2026-01-05 00:00+00' + g * interval '1 hour')) FROM generate_series(1, 2) t, generate_series(1, 10) g;
SELECT count(metrics_report(1, 'validation', jsonb_build_object('loss', g * 100), g, 0, timestamptz '2026-01-05 00:00+00' + g * interval '1 day'))
FROM generate_series(1, 3) g;
SELECT count(metrics_report(1, 'my group', jsonb_build_object('loss', g * 1000), g, 0, '2026-01-05 00:00+00')) FROM generate_series(1, 3) g;
SELECT count(metrics_report(t, 'gpu', jsonb_build_object('agent' || g, jsonb_build_object('GPU-0', jsonb_build_object('util', g, 'mem', 5),
    'GPU-1', jsonb_build_object('util', g * 10))), NULL, 0, timestamptz '2026-01-05 00:00+00' + g * interval '1 min')) FROM generate_series(1, 2) t, generate_series(1, 4) g;
-- Two unknown literals are a group and a name, not a document and a path.
SELECT * FROM metrics_percentiles('training', 'loss');
SELECT * FROM metrics_percentiles('training', 'loss', 1);
SELECT * FROM metrics_percentiles('validation', 'loss');
SELECT * FROM metrics_percentiles('my group', 'loss');
SELECT * FROM metrics_percentiles('gpu', 'util', trial_id => 1);
SELECT * FROM metrics_percentiles('gpu', 'mem', bucket => '2 min');
SELECT * FROM metrics_percentiles('training', 'nothing');
SELECT * FROM metrics_percentiles('no such group', 'loss');
-- since inclusive, until exclusive
SELECT n, min, max FROM metrics_percentiles('training', 'loss', 1, '2026-01-05 02:00+00', '2026-01-05 04:00+00');
SELECT bucket, n, min, p50, max FROM metrics_percentiles('training', 'loss', 2, bucket => '3 hours');
SELECT bucket, extract(isodow FROM bucket) AS day FROM metrics_percentiles('validation', 'loss', bucket => '7 days');
-- Names are data.
SELECT count(metrics_report(1, 'training', '{"it''s \"x\", {y}": 1}', 11));
SELECT n, max FROM metrics_percentiles('training', 'it''s "x", {y}');
SELECT failure($$ SELECT metrics_percentiles('training', 'loss', bucket => '1 month') $$);
SELECT failure($$ SELECT metrics_percentiles('training', 'loss', bucket => '-1 day') $$);
SELECT failure($$ SELECT metrics_percentiles('training', 'loss', bucket => '0') $$);
SELECT failure($$ SELECT metrics_percentiles(NULL::text, 'loss') $$);
SELECT failure($$ SELECT metrics_percentiles('training', NULL) $$);
-- Unarchived rows only
SELECT metrics_register_trial(2, 1);
SELECT count(metrics_report(2, 'training', '{"loss": 1}', 5, 1));
SELECT n, min, max FROM metrics_percentiles('training', 'loss', 2);
-- Pruned to the group's partition, which is the only one to be locked.
BEGIN;
SELECT count(*) FROM metrics_percentiles('validation', 'loss');
SELECT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'metrics.metrics'::regclass);
COMMIT;
BEGIN;
SELECT count(*) FROM metrics_percentiles('gpu', 'util');
SELECT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'metrics.metrics'::regclass);
COMMIT;
-- Which function a call means
CREATE VIEW resolved AS SELECT
    metrics_percentiles(d, '{v}') AS document, metrics_percentiles(d, '{v}', '{0.5}') AS documents, metrics_percentile(d, '{v}', 0.5) AS one,
    metrics_percentiles(x, '{0.5}') AS numbers, metrics_percentiles(x) AS number, metrics_percentile(x, 0.5) AS a_number,
    metrics_sketch(d, '{v}') AS sketch, metrics_sketch(x, 0.05) AS a_sketch, metrics_histogram(x, '{0,5}') AS histogram
FROM (VALUES (jsonb '{"v":1}', 1), (jsonb '{"v":2}', 2)) t(d, x);
SELECT document, documents, one, numbers, number, a_number, metrics_count(sketch), metrics_count(a_sketch), histogram FROM resolved;

DROP VIEW resolved;
SET client_min_messages TO error;
DROP SCHEMA metrics CASCADE;
DROP EXTENSION metrics_ext CASCADE;
DROP FUNCTION failure(text);
DROP FUNCTION docs(text);
