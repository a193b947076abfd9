-- Changes of a series: upstream's vectors G1 to G5, T29 to T31, D16 to D18.
SET client_min_messages TO warning;
CREATE EXTENSION metrics_ext;
SET timezone TO 'UTC';
SET datestyle TO 'ISO';

-- Series of one push a value, and of pushes [[time, push, value…], …].
CREATE FUNCTION scores(vals float8[], windows integer[] DEFAULT '{12,24,12}', threshold float8 DEFAULT 7)
RETURNS TABLE (n bigint, t float8, prev_value float8, new_value float8, is_change boolean)
BEGIN ATOMIC
    SELECT push_id, s.t, s.prev_value, s.new_value, s.is_change
    FROM metrics_change_scores(ARRAY(SELECT to_timestamp(i) FROM generate_subscripts(vals, 1) i),
                               ARRAY(SELECT i::bigint - 1 FROM generate_subscripts(vals, 1) i), vals,
                               windows[1], windows[2], windows[3], threshold) s;
END;
CREATE FUNCTION pushes(series jsonb, windows integer[] DEFAULT '{12,24,12}', threshold float8 DEFAULT 7)
RETURNS TABLE (at bigint, n bigint, t float8, prev_value float8, new_value float8, is_change boolean)
BEGIN ATOMIC
    SELECT extract(epoch FROM push_timestamp)::bigint, push_id, s.t, s.prev_value, s.new_value, s.is_change
    FROM (SELECT array_agg(to_timestamp((p ->> 0)::float8) ORDER BY k, m) AS times, array_agg((p ->> 1)::bigint ORDER BY k, m) AS ids,
                 array_agg(v::text::float8 ORDER BY k, m) AS vals
          FROM jsonb_array_elements(series) WITH ORDINALITY e(p, k), jsonb_array_elements(p) WITH ORDINALITY f(v, m) WHERE m > 2) a,
    metrics_change_scores(times, ids, vals, windows[1], windows[2], windows[3], threshold) s;
END;
CREATE FUNCTION times(n integer, v float8) RETURNS float8[] BEGIN ATOMIC SELECT array_fill(v, ARRAY[n]); END;
-- A push of n0 values 0 and n1 values 1.
CREATE FUNCTION push(at integer, id integer, n0 integer, v0 float8, n1 integer, v1 float8) RETURNS jsonb
BEGIN ATOMIC SELECT to_jsonb(ARRAY[at, id]::float8[] || times(n0, v0) || times(n1, v1)); END;

-- G1: 15 pushes of 0.5, 15 of 1.
SELECT * FROM scores(times(15, 0.5) || times(15, 1)) WHERE n BETWEEN 13 AND 17;
-- G2: noise around 100, then around 110; without the last push the window from 12 on is too short.
SELECT * FROM scores('{100,101,99,100,102,98,100,101,99,100,100,101,110,111,109,110,112,108,110,111,109,110,110,111}') WHERE n BETWEEN 10 AND 14;
SELECT n FROM scores('{100,101,99,100,102,98,100,101,99,100,100,101,110,111,109,110,112,108,110,111,109,110,110}') WHERE is_change;
-- G3: two steps without noise.
SELECT * FROM scores(times(12, 0) || times(12, 1) || times(12, 2)) WHERE is_change;
-- G4, D18: short windows.
SELECT n FROM scores(times(8, 0) || times(8, 1), '{5,5,5}', 2) WHERE is_change;
-- G5: two pushes of one time stay in order of arrival.
SELECT * FROM pushes(jsonb_build_array(push(0, 7, 50, 0, 30, 1), push(1, 5, 10, 0, 30, 1), push(1, 3, 10, 0, 30, 1)), '{5,10,5}', 2);

-- T30, D16: t of two pushes.
SELECT t FROM pushes('[[0, 1, 0, 0], [1, 2, 1, 2]]') WHERE n = 2;
SELECT t FROM pushes('[[0, 1, 0, 0], [1, 2, 0, 0]]') WHERE n = 2;
SELECT t FROM pushes('[[0, 1, 0, 0], [1, 2, 1, 1]]') WHERE n = 2;
-- T29, D17: mean and variance, linear: by t against 0 and 1 without noise, which is |mean| and |1 - mean| over sqrt(variance / n);
-- uniform: the mean before.
SELECT prev_value, t = 2 / sqrt(0.5::float8) AS linear FROM pushes('[[0, 1, 4], [1, 2, 3], [2, 3, 2], [3, 4, 1], [4, 5, 0, 0]]') WHERE n = 5;
SELECT t = 1 / sqrt(0.5::float8) AS linear FROM pushes('[[0, 1, 4], [1, 2, 3], [2, 3, 2], [3, 4, 1], [4, 5, 1, 1]]') WHERE n = 5;
SELECT prev_value, t = 3 / sqrt(0.25::float8) AS linear FROM pushes('[[0, 1, 4, 4], [1, 2, 2, 3], [2, 3, 0, 0]]') WHERE n = 3;
SELECT prev_value FROM pushes('[[0, 1, 4, 4], [1, 2, 1, 3], [2, 3, 0, 0]]') WHERE n = 3;
-- T31: retriggers.
SELECT * FROM pushes(jsonb_build_array(push(0, 1, 20, 0.5, 0, 0), push(1, 2, 5, 0.5, 15, 1))) WHERE is_change;
-- T30: 11 measurements from the step on are too few, 12 are enough.
SELECT n, prev_value, new_value FROM scores(times(12, 1) || times(11, 2)) WHERE is_change;
SELECT n, prev_value, new_value FROM scores(times(12, 1) || times(12, 2)) WHERE is_change;
-- metrics_detect_changes() is the changes among the scores, with defaults.
SELECT c.* FROM (SELECT array_agg(to_timestamp(i) ORDER BY i) AS times, array_agg(i::bigint ORDER BY i) AS ids,
                        array_agg(CASE WHEN i < 40 THEN 1 ELSE 2 END + (i % 7) * 0.01::float8 ORDER BY i) AS vals
                 FROM generate_series(1, 80) i) s, metrics_detect_changes(times, ids, vals) c;

-- The order of the pushes in the arrays does not matter, and one push may be in several places.
WITH row AS (
    SELECT to_timestamp(i / 3) AS at, (i / 3)::bigint AS push, CASE WHEN i < 90 THEN 1 ELSE 2 END + (i * 7919 % 101) * 0.003::float8 AS v, i
    FROM generate_series(0, 179) i
), shuffled AS (
    SELECT array_agg(at ORDER BY i % 3, -i) AS times, array_agg(push ORDER BY i % 3, -i) AS ids, array_agg(v ORDER BY i % 3, -i) AS vals FROM row
), sorted AS (
    SELECT array_agg(at ORDER BY i) AS times, array_agg(push ORDER BY i) AS ids, array_agg(v ORDER BY i) AS vals FROM row
)
SELECT count(*), (SELECT array_agg(a) FROM sorted, metrics_change_scores(times, ids, vals) a)
               = (SELECT array_agg(b) FROM shuffled, metrics_change_scores(times, ids, vals) b) AS same
FROM sorted, metrics_change_scores(times, ids, vals) WHERE is_change;

-- Nothing, one push, extremes.
SELECT count(*) FROM metrics_change_scores('{}', '{}', '{}');
SELECT count(*) FROM metrics_change_scores(NULL, NULL, NULL);
SELECT * FROM scores('{5}');
SELECT count(*) FILTER (WHERE is_change), max(t) FROM scores(times(50, -0.0::float8) || times(50, 0));
SELECT n, t FROM scores(times(12, 5e-324) || times(12, 1e-323)) WHERE is_change;
SELECT n, prev_value, new_value FROM scores(times(12, -1e12) || times(12, 1e12)) WHERE is_change;
SELECT count(*) FILTER (WHERE is_change) FROM scores(times(30, 1e308) || times(30, -1e308));
SELECT n, t FROM scores('{1,2,1,9,8,9}', '{1,2147483647,1}', 0) WHERE is_change;
SELECT count(*) FROM scores(times(20, 1) || times(20, 2), '{2147483647,2147483647,2147483647}') WHERE is_change;
SELECT count(*) FROM scores(times(20, 1) || times(20, 2), '{12,24,12}', 'Infinity') WHERE is_change;
SELECT count(*) FROM metrics_change_scores(ARRAY['-infinity', '2020-01-01', 'infinity']::timestamptz[], '{3,2,1}', '{1,2,3}');

-- Refused.
SELECT * FROM metrics_detect_changes('{now}', '{1}', '{NaN}');
SELECT * FROM metrics_detect_changes('{now}', '{1}', '{-Infinity}');
SELECT * FROM metrics_detect_changes('{now}', '{1}', '{NULL}');
SELECT * FROM metrics_detect_changes('{now}', '{NULL}', '{1}');
SELECT * FROM metrics_detect_changes('{now}', '{1,2}', '{1,2}');
SELECT * FROM metrics_detect_changes(NULL, '{1}', '{1}');
SELECT * FROM metrics_detect_changes('{now}', '{{1}}', '{1}');
SELECT * FROM metrics_detect_changes('{}', '{}', '{}', 0);
SELECT * FROM metrics_detect_changes('{}', '{}', '{}', 1, -1);
SELECT * FROM metrics_detect_changes('{}', '{}', '{}', 1, 1, 0);
SELECT * FROM metrics_detect_changes('{}', '{}', '{}', 1, 1, 1, 'NaN');
SELECT * FROM metrics_detect_changes('{}', '{}', '{}', 1, 1, 1, -1);
SELECT * FROM metrics_detect_changes('{}', '{}', '{}', 1, 1, NULL);
SELECT * FROM metrics_change_scores('{}', '{}', '{}', t_threshold => NULL);

-- Both run in parallel workers.
SELECT proname, provolatile, proparallel, proisstrict FROM pg_proc WHERE proname IN ('metrics_detect_changes', 'metrics_change_scores') ORDER BY 1;

DROP FUNCTION scores, pushes, push, times;
DROP EXTENSION metrics_ext;
