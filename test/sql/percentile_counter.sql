--
-- Counters and gauges: increase, resets, rise and delta
--
SET client_min_messages TO warning;
CREATE EXTENSION IF NOT EXISTS metrics_ext;
SET extra_float_digits TO 1;
SET timezone TO 'UTC';
SET datestyle TO ISO;
\pset null (null)
-- A minute each, in the order of the array.
CREATE FUNCTION minutes("values" float8[]) RETURNS TABLE (at timestamptz, v float8) LANGUAGE sql IMMUTABLE AS $$
SELECT timestamptz '2026-01-01' + n * interval '1 min', v FROM unnest("values") WITH ORDINALITY u(v, n) $$;

-- D11: resets
SELECT metrics_increase(at, v), metrics_resets(at, v) FROM minutes('{10,120,3045,205,5200,500,3010}');
-- D12
SELECT metrics_increase(at, v), metrics_rise(at, v), metrics_delta(at, v), metrics_resets(at, v) FROM minutes('{10,20,15,40}');
-- D14: buckets with the value before carried in, so that they sum up; and each by itself, which misses what happens between them.
CREATE VIEW carried AS SELECT at, metrics_increase(at, v) OVER (ORDER BY at, v ROWS 1 PRECEDING) AS step
FROM (SELECT timestamptz '2026-01-01' + n * interval '1 min' AS at, n::float8 AS v FROM generate_series(0, 12) n) series;
SELECT date_bin('5 min', at, '2026-01-01') AS bucket, sum(step) FROM carried GROUP BY bucket ORDER BY bucket;
SELECT sum(step), metrics_increase(at, extract(minute FROM at)::float8) FROM carried;
SELECT sum(increase) FROM (SELECT metrics_increase(at, extract(minute FROM at)::float8) AS increase
                           FROM carried GROUP BY date_bin('5 min', at, '2026-01-01')) bucket;
-- D15: a late row, in another partition and another process
CREATE TABLE late (at timestamptz, v float8) PARTITION BY RANGE (at);
CREATE TABLE late_1 PARTITION OF late FOR VALUES FROM ('2026-01-01 10:15') TO ('2026-01-01 10:45');
CREATE TABLE late_2 PARTITION OF late DEFAULT;
INSERT INTO late VALUES ('2026-01-01 10:00', 1), ('2026-01-01 11:00', 3);
INSERT INTO late VALUES ('2026-01-01 10:30', 2);
INSERT INTO late SELECT timestamptz '2026-01-01 10:00' + n * interval '1 s', NULL FROM generate_series(1, 4000) n;
ANALYZE late;
SELECT metrics_increase(at, v), metrics_resets(at, v) FROM late;
BEGIN;
SET LOCAL parallel_setup_cost TO 0;
SET LOCAL parallel_tuple_cost TO 0;
SET LOCAL min_parallel_table_scan_size TO 0;
SET LOCAL parallel_leader_participation TO off;
EXPLAIN (COSTS OFF) SELECT metrics_increase(at, v), metrics_resets(at, v) FROM late;
SELECT metrics_increase(at, v), metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v) FROM late;
COMMIT;
BEGIN;
SET LOCAL enable_partitionwise_aggregate TO on;
EXPLAIN (COSTS OFF) SELECT metrics_increase(at, v) FROM late GROUP BY v IS NULL HAVING count(v) > 0;
SELECT metrics_increase(at, v) FROM late GROUP BY v IS NULL HAVING count(v) > 0;
COMMIT;

-- No rows, one, NULL, equal times (in order of v), and times without end
SELECT metrics_increase(at, v), metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v) FROM minutes('{}');
SELECT metrics_increase(at, v), metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v) FROM minutes('{NULL,NULL}');
SELECT metrics_increase(at, v), metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v) FROM minutes('{7}');
SELECT metrics_increase(at, v), metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v) FROM minutes('{NULL,3,NULL,5,1,NULL}');
SELECT metrics_increase(NULL, v) FROM minutes('{1,2}');
SELECT metrics_increase('2026-01-01', v), metrics_resets('2026-01-01', v), metrics_delta('2026-01-01', v) FROM unnest('{5,1,3}'::float8[]) v;
SELECT metrics_delta(at, v) FROM (VALUES (timestamptz 'infinity', 8), ('2026-01-01', 3), ('-infinity', 1), ('294276-12-31', 5)) t(at, v);
-- NaN makes what it is part of NaN; infinities are values; -0 is 0
SELECT series, metrics_increase(at, v), metrics_resets(at, v), metrics_rise(at, v), metrics_delta(at, v)
FROM (VALUES ('{NaN}'), ('{NaN,1}'), ('{1,NaN}'), ('{1,NaN,3}'), ('{NaN,NaN}'), ('{Infinity}'), ('{1,Infinity}'), ('{Infinity,Infinity}'),
      ('{Infinity,5,7}'), ('{-Infinity,5}'), ('{5,-Infinity,5}'), ('{-Infinity,-Infinity}'), ('{0,-0,0}'), ('{1.7e308,-1.7e308}'), ('{-1.7e308,1.7e308}')) s(series),
     minutes(series::float8[]) GROUP BY series ORDER BY series;
-- What rounding takes off is carried along.
SELECT metrics_increase(timestamptz '2026-01-01' + n * interval '1 s', n % 2 * 0.1) - 5000 AS increase,
       metrics_rise(timestamptz '2026-01-01' + n * interval '1 s', n % 2 * 0.1) - 5000 AS rise FROM generate_series(0, 99999) n;
SELECT increase, count(*) FROM (
    SELECT n, metrics_increase(timestamptz '2026-01-01' + n * interval '1 s', n % 2 * 0.1) OVER (ORDER BY n ROWS 1000 PRECEDING) AS increase
    FROM generate_series(1, 10000) n) f WHERE n > 1000 GROUP BY increase;

-- Against the definition, row by row: groups of all sizes and any order of rows, some values special.
CREATE TABLE counters AS
    SELECT g, n, CASE WHEN h % 23 = 0 THEN NULL ELSE timestamptz '2026-01-01' + (h % (20 + 8 * g)) * interval '1 s' END AS at,
           CASE WHEN h % 19 = 0 THEN NULL WHEN g % 10 = 9 AND h % 17 = 0 THEN (ARRAY['NaN', 'Infinity', '-Infinity'])[1 + h % 3]::float8
                ELSE (h / 1000 % 100)::float8 - CASE WHEN g % 7 = 6 THEN 50 ELSE 0 END END AS v
    FROM generate_series(0, 99) g, generate_series(1, 10 * g) n, LATERAL (SELECT abs(hashint8extended(n, g) % 1000000) AS h) r;
ANALYZE counters;
CREATE FUNCTION step(prior float8, v float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
SELECT CASE WHEN prior = 'NaN' OR v = 'NaN' THEN 'NaN' WHEN prior IS NULL OR prior = v THEN 0 ELSE v - prior END $$;
CREATE VIEW defined AS
    SELECT g, sum(CASE WHEN v < prior AND 'NaN' NOT IN (v, prior) THEN v ELSE step(prior, v) END) AS increase,
           count(*) FILTER (WHERE v < prior AND 'NaN' NOT IN (v, prior)) AS resets,
           sum(CASE WHEN v < prior AND 'NaN' NOT IN (v, prior) THEN 0 ELSE step(prior, v) END) AS rise,
           step((array_agg(v ORDER BY at, v))[1], (array_agg(v ORDER BY at DESC, v DESC))[1]) AS delta
    FROM (SELECT *, lag(v) OVER (PARTITION BY g ORDER BY at, v) AS prior FROM counters WHERE at IS NOT NULL AND v IS NOT NULL) c GROUP BY g;
CREATE VIEW answered AS
    SELECT g, metrics_increase(at, v) AS increase, metrics_resets(at, v) AS resets, metrics_rise(at, v) AS rise, metrics_delta(at, v) AS delta
    FROM counters GROUP BY g;
SELECT count(*), count(*) FILTER (WHERE increase = 'NaN') > 5 AS nan, count(*) FILTER (WHERE abs(increase) < 'Infinity' AND resets > 9) > 50 AS finite FROM defined;
SELECT count(*) FILTER (WHERE d IS DISTINCT FROM a) AS wrong FROM defined d FULL JOIN answered a USING (g);
-- The steps from value to value add up to the whole, as in D14.
SELECT count(*) FILTER (WHERE d.increase IS DISTINCT FROM s.increase) AS wrong FROM defined d FULL JOIN (
    SELECT g, sum(step) AS increase
    FROM (SELECT g, metrics_increase(at, v) OVER (PARTITION BY g ORDER BY at, v ROWS 1 PRECEDING) AS step
          FROM counters WHERE at IS NOT NULL AND v IS NOT NULL) s GROUP BY g) s USING (g);
BEGIN;
SET LOCAL parallel_setup_cost TO 0;
SET LOCAL parallel_tuple_cost TO 0;
SET LOCAL min_parallel_table_scan_size TO 0;
SET LOCAL max_parallel_workers_per_gather TO 2;
ALTER TABLE counters SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT * FROM answered;
CREATE TEMP TABLE in_parallel ON COMMIT DROP AS SELECT * FROM answered;
SELECT count(*) FILTER (WHERE d IS DISTINCT FROM a) AS wrong FROM defined d FULL JOIN in_parallel a USING (g);
COMMIT;

-- Moving and growing frames, against each by itself: in order of time, and in
-- two others, in which not the earliest row leaves.
CREATE TABLE frames AS SELECT g, n, at, v FROM counters WHERE g IN (9, 18);
CREATE FUNCTION wrong_frames("order" text, preceding text, following int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    columns text := 'metrics_increase(at, v) %1$s AS increase, metrics_resets(at, v) %1$s AS resets,'
                    ' metrics_rise(at, v) %1$s AS rise, metrics_delta(at, v) %1$s AS delta';
    result bigint;
BEGIN
    EXECUTE format('WITH ordered AS (SELECT g, at, v, row_number() OVER (PARTITION BY g ORDER BY %1$s) AS i FROM frames)
        SELECT count(*) FROM (SELECT g, i, %2$s FROM ordered
            WINDOW w AS (PARTITION BY g ORDER BY i ROWS BETWEEN %3$s PRECEDING AND %4$s FOLLOWING)) f,
        LATERAL (SELECT %5$s FROM ordered o WHERE o.g = f.g AND o.i BETWEEN f.i - %6$s AND f.i + %4$s) e
        WHERE (f.increase, f.resets, f.rise, f.delta) IS DISTINCT FROM (e.increase, e.resets, e.rise, e.delta)',
        "order", format(columns, 'OVER w'), preceding, following, format(columns, ''), replace(preceding, 'UNBOUNDED', '1000000'))
    INTO result;
    RETURN result;
END $$;
SELECT "order", preceding, following, wrong_frames("order", preceding, following) AS wrong
FROM unnest('{"at, v","n","at DESC, v"}'::text[]) "order", unnest('{0,1,7,100,UNBOUNDED}'::text[]) preceding, unnest('{0,3}'::int[]) following;
SELECT at, metrics_increase(at, v) OVER (ORDER BY at RANGE '90 s' PRECEDING) AS in_90_s, metrics_increase(at, v) OVER (ORDER BY at) AS so_far,
       metrics_resets(at, v) FILTER (WHERE v <> 3) OVER (ORDER BY at ROWS 2 PRECEDING) AS filtered
FROM minutes('{1,5,3,NULL,NULL,NULL,10,11}');

-- As aggregates are used
SELECT g % 2 AS odd, metrics_resets(at, v) > 100 AS many, metrics_delta(DISTINCT at, v) = metrics_delta(at, v ORDER BY n DESC) AS same
FROM counters WHERE g % 10 < 9 GROUP BY GROUPING SETS ((g % 2), ()) HAVING metrics_increase(at, v) > 0 ORDER BY 1;

DROP VIEW carried, answered, defined;
DROP TABLE late, counters, frames;
DROP FUNCTION minutes, step, wrong_frames;
DROP EXTENSION metrics_ext;
