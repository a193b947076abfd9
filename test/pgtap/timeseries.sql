-- Time series of one metric, sampled by largest triangle three buckets: B28,
-- D08, D10.
BEGIN;
\ir include/store.sql
SELECT plan(56);

-- A series of a trial from its values.
CREATE FUNCTION helper.series(trial integer, name text, series jsonb, metric_group text DEFAULT 'training', first_batch integer DEFAULT 0) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metrics_register_trial(trial);
    PERFORM metrics_report(trial, metric_group, jsonb_build_object(name, v), (first_batch + n - 1)::integer,
                           report_time => '2024-01-01 00:00:00+00'::timestamptz + n * interval '1 minute')
    FROM jsonb_array_elements(series) WITH ORDINALITY e(v, n);
END $$;

-- Upstream's vector of the time before it sampled at random.
SELECT helper.series(1, 'loss', '[0.8784277338451055, 0.1499321530254274, 0.49489164039056865, 0.296325207554909, 0.7954332017957191,
    0.37920694146084544, 0.262280416971284, 0.2115412028253334, 0.6010906649928144, 0.8143458607144891]') \gset
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', 5)$$, ARRAY[0, 1, 4, 7, 9],
    'LTTB chooses the points of upstream''s vector');
SELECT results_eq($$SELECT value, end_time FROM metrics_timeseries(1, 'training', 'loss', 5)$$,
    $$VALUES (jsonb '0.8784277338451055', timestamptz '2024-01-01 00:01+00'), ('0.1499321530254274', '2024-01-01 00:02+00'),
             ('0.7954332017957191', '2024-01-01 00:05+00'), ('0.2115412028253334', '2024-01-01 00:08+00'), ('0.8143458607144891', '2024-01-01 00:10+00')$$,
    'with their values and times');
SELECT is((SELECT count(*)::int FROM metrics_timeseries(1, 'training', 'loss', 7)), 7, 'B28: of 10 points at most 7 are 7');
SELECT is((SELECT array_agg(total_batches) = array_agg(total_batches ORDER BY total_batches) AND count(DISTINCT total_batches) = 7
           FROM metrics_timeseries(1, 'training', 'loss', 7)), true, 'B28: in order of batches, each once');
SELECT results_eq($$SELECT * FROM metrics_timeseries(1, 'training', 'loss', 7)$$, $$SELECT * FROM metrics_timeseries(1, 'training', 'loss', 7)$$,
    'B28: twice the same');
SELECT results_eq(format($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', %s)$$, n), $$SELECT generate_series(0, 9)$$,
    format('B28: at most %s of 10 are all', n)) FROM unnest(ARRAY[10, 11, 1000, 2147483647]) n;
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss')$$, $$SELECT generate_series(0, 9)$$, 'the default is more');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', 2)$$, ARRAY[0, 9], 'two points are the first and the last');
SELECT helper.refuses(format($$SELECT * FROM metrics_timeseries(1, 'training', 'loss', %s)$$, n), '22023', '', format('%s points are none', n))
FROM unnest(ARRAY[1, 0, -5]) n;

SELECT helper.series(2, 'v', '[0, 1, 10, 1, 0]') \gset
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(2, 'training', 'v', 3)$$, ARRAY[0, 2, 4], 'D08: the peak is kept');

-- LTTB written once more, from its description: the first and the last point,
-- and between them of each bucket the point with the largest triangle, the
-- first of equals.
CREATE FUNCTION helper.lttb(x float8[], y float8[], points integer) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    n integer := cardinality(x);
    width float8 := (n - 2)::float8 / (points - 2);
    chosen integer[] := '{1}';
    a integer := 1;
    from_next integer;
    to_next integer;
    mean_x float8;
    mean_y float8;
    area float8;
    largest float8;
    best integer;
BEGIN
    FOR i IN 0 .. points - 3 LOOP
        from_next := floor((i + 1) * width)::integer + 1;
        to_next := least(floor((i + 2) * width)::integer + 1, n);
        SELECT avg(x[j + 1]), avg(y[j + 1]) INTO mean_x, mean_y FROM generate_series(from_next, to_next - 1) j;
        largest := -1;
        FOR j IN floor(i * width)::integer + 1 .. from_next - 1 LOOP
            area := abs((x[a] - mean_x) * (y[j + 1] - y[a]) - (x[a] - x[j + 1]) * (mean_y - y[a]));
            IF area > largest THEN
                largest := area;
                best := j + 1;
            END IF;
        END LOOP;
        a := best;
        chosen := chosen || a;
    END LOOP;
    RETURN chosen || n;
END $$;
SELECT is(helper.lttb('{0,1,2,3,4,5,6,7,8,9}', '{0.8784277338451055,0.1499321530254274,0.49489164039056865,0.296325207554909,0.7954332017957191,0.37920694146084544,0.262280416971284,0.2115412028253334,0.6010906649928144,0.8143458607144891}', 5),
    '{1,2,5,8,10}', 'the description gives upstream''s points');
-- Batches at uneven distances, and values from a generator.
CREATE TEMP TABLE long AS
WITH RECURSIVE g AS (
    SELECT 1 AS n, 42::bigint AS state, 0 AS batch
    UNION ALL
    SELECT n + 1, (state * 1103515245 + 12345) % 2147483648, batch + 1 + ((state >> 9) % 50)::integer FROM g WHERE n < 1500
)
SELECT n, batch, ((state >> 5) % 1000003)::numeric / 997 AS v FROM g;
SELECT metrics_register_trial(3) \gset
SELECT count(metrics_report(3, 'inference', jsonb_build_object('v', v, 'epoch', n), batch)) FROM long \gset
SELECT results_eq(format($$SELECT total_batches FROM metrics_timeseries(3, 'inference', 'v', %s)$$, points),
    (SELECT array_agg(b.batch ORDER BY b.n) FROM unnest(
        (SELECT helper.lttb(array_agg(batch ORDER BY n), array_agg(v ORDER BY n), points) FROM long)) c JOIN long b ON b.n = c),
    format('%s of 1500 points are those of the description', points))
FROM unnest(ARRAY[3, 4, 10, 99, 750, 1499]) points;
SELECT is((SELECT bool_and(t.value = to_jsonb(l.v) AND t.epoch = l.n) FROM metrics_timeseries(3, 'inference', 'v', 99) t
           JOIN long l ON l.batch = t.total_batches), true, 'each with its own value and epoch');

-- Typed values.
SELECT helper.series(4, 'yes', '[true, false, null, true]') \gset
SELECT results_eq($$SELECT value FROM metrics_timeseries(4, 'training', 'yes')$$, $$VALUES (jsonb 'true'), ('false'), ('null'), ('true')$$,
    'B28: booleans are booleans, null is kept');
SELECT helper.series(5, 'any', '["text", 1, [1, 2], {"k": 1}, "NaN", "Infinity", "2023-04-19T18:37:29Z"]') \gset
SELECT results_eq($$SELECT value FROM metrics_timeseries(5, 'training', 'any')$$,
    $$VALUES (jsonb '"text"'), ('1'), ('[1, 2]'), ('{"k": 1}'), ('"NaN"'), ('"Infinity"'), ('"2023-04-19T18:37:29Z"')$$, 'and so is every other');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(5, 'training', 'any', 2)$$, ARRAY[0, 6], 'sampled as well');
SELECT is((SELECT count(*)::int FROM metrics_timeseries(5, 'training', 'any', 4)), 4, 'to any number of points');
SELECT is(epoch, NULL, 'without an epoch there is none') FROM metrics_timeseries(5, 'training', 'any') LIMIT 1;
-- True is 1, false 0, and so is what is no number, to LTTB.
SELECT helper.series(6, 'b', '[false, false, false, true, false, false, false, false, false]') \gset
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(6, 'training', 'b', 4)$$,
    (SELECT array_agg(c - 1) FROM unnest(helper.lttb('{0,1,2,3,4,5,6,7,8}', '{0,0,0,1,0,0,0,0,0}', 4)) c), 'B28: true is 1 and false 0');
SELECT helper.series(7, 'm', '[5, 5, "NaN", 5, 5, 5, "x", 5, 5, 5, 5]') \gset
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(7, 'training', 'm', 4)$$,
    (SELECT array_agg(c - 1) FROM unnest(helper.lttb('{0,1,2,3,4,5,6,7,8,9,10}', '{5,5,0,5,5,5,0,5,5,5,5}', 4)) c), 'B28: what is no number is 0');

-- Names.
SELECT metrics_register_trial(8) \gset
CREATE TEMP TABLE name AS SELECT * FROM (VALUES ('a.loss'), ('b/loss'), (repeat('a', 100)), (''), ('it''s'), ('"'), ('\'), ('{a,b}'), ('avg_metrics'),
    ((SELECT string_agg(chr(c), '' ORDER BY c) FROM generate_series(1, 255) c))) v(name);
SELECT metrics_report(8, 'validation', (SELECT jsonb_object_agg(name, length(name)) FROM name), 1) \gset
SELECT results_eq(format($$SELECT value FROM metrics_timeseries(8, 'validation', %L)$$, name), ARRAY[to_jsonb(length(name))],
    format('B28: name %s', left(to_jsonb(name)::text, 30))) FROM name;
SELECT is_empty($$SELECT * FROM metrics_timeseries(8, 'validation', 'A.loss')$$, 'names are case sensitive');
SELECT is_empty($$SELECT * FROM metrics_timeseries(8, 'validation', 'validation_metrics')$$, 'and no part of the document');

-- Rows without the name are no points; rows of other trials, groups and
-- archived rows neither.
SELECT metrics_register_trial(9) \gset
SELECT metrics_report(9, 'training', CASE WHEN b % 2 = 0 THEN '{"even": 1}' ELSE '{"odd": 2}' END::jsonb, b) FROM generate_series(1, 9) b \g /dev/null
SELECT metrics_report(9, 'validation', '{"even": 3}', 3) \gset
SELECT metrics_report(8, 'training', '{"even": 3}', 3) \gset
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(9, 'training', 'even')$$, ARRAY[2, 4, 6, 8], 'rows without the name are no points');
SELECT metrics_register_trial(9, 1) \gset
SELECT metrics_report(9, 'training', '{"even": 7}', 5, 1) \gset
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(9, 'training', 'even')$$, ARRAY[2, 4, 5], 'nor are archived rows');

-- Ranges: batches inclusive, since inclusive, until exclusive.
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', 1000, 3, 5)$$, ARRAY[3, 4, 5], 'a range of batches');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', start_batches => 8)$$, ARRAY[8, 9], 'open above');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', end_batches => 0)$$, ARRAY[0], 'open below');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', since => '2024-01-01 00:03+00', until => '2024-01-01 00:05+00')$$, ARRAY[2, 3],
    'a range of time: since inclusive, until exclusive');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', 2, start_batches => 2, until => '2024-01-01 00:05+00')$$, ARRAY[2, 3], 'both');
SELECT results_eq($$SELECT total_batches FROM metrics_timeseries(1, 'training', 'loss', 2, 2, 6)$$, ARRAY[2, 6], 'the range is taken first, then the sample');
SELECT is_empty($$SELECT * FROM metrics_timeseries(1, 'training', 'loss', 5, 20, 30)$$, 'a range of nothing');
SELECT is_empty($$SELECT * FROM metrics_timeseries(404, 'training', 'loss')$$, 'a trial of nothing');

-- The caller's random() is not touched (upstream's sample sets its seed).
SELECT setseed(0.25) \gset
SELECT random() AS first_draw \gset
SELECT setseed(0.25) \gset
SELECT count(*) FROM metrics_timeseries(3, 'inference', 'v', 10) \gset
SELECT is(random(), :first_draw::float8, 'B28: the state of random() is the caller''s');

-- Bad input.
SELECT helper.refuses(format('SELECT * FROM metrics_timeseries(%s)', a), '22004', '', format('NULL: %s', a))
FROM (VALUES ($$NULL, 'training', 'loss'$$), ($$1, NULL, 'loss'$$), ($$1, 'training', NULL$$)) v(a);

SELECT * FROM finish();
ROLLBACK;
