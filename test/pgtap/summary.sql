-- Summaries by example: B19 to B24, the rows of 2.8, and cases C10 and C11.
-- Random sequences are in summary_property.sql.
BEGIN;
\ir include/store.sql
SELECT plan(98);

-- Report a list of documents to a new trial, one batch after the other;
-- "archive" puts an archived row of another name before the last, as
-- upstream's test does.
CREATE FUNCTION helper.summarise(trial integer, metric_group text, documents jsonb, archive boolean DEFAULT false)
RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    n integer := jsonb_array_length(documents);
BEGIN
    PERFORM metrics_register_trial(trial);
    FOR i IN 1 .. n - 1 LOOP
        PERFORM metrics_report(trial, metric_group, documents -> (i - 1), i);
    END LOOP;
    IF archive THEN
        PERFORM metrics_report(trial, metric_group, '{"archived name": 99, "a": -1000, "b": "x"}', n + 5);
        PERFORM metrics_register_trial(trial, 1);
    END IF;
    PERFORM metrics_report(trial, metric_group, documents -> (n - 1), n, CASE WHEN archive THEN 1 ELSE 0 END);
    RETURN (SELECT summary_metrics -> CASE metric_group WHEN 'training' THEN 'avg_metrics'
                                                        WHEN 'validation' THEN 'validation_metrics'
                                                        ELSE metric_group END
            FROM metrics.trials WHERE id = trial);
END $$;

CREATE TEMP TABLE example (n serial, name text, documents jsonb, want jsonb);
INSERT INTO example (name, documents, want) VALUES
('B19, C10', '[{"a": 1.0, "b": -0.5}, {"a": 1.5, "b": 0.0}, {"a": 2.0}]',
 '{"a": {"type": "number", "count": 3, "min": 1, "max": 2, "sum": 4.5, "mean": 1.5, "last": 2},
   "b": {"type": "number", "count": 2, "min": -0.5, "max": 0, "sum": -0.5, "mean": -0.25, "last": null}}'),
('B20, C11', '[{"a": "NaN", "b": "-Infinity"}, {"a": 1.0, "b": "Infinity"}]',
 '{"a": {"type": "number", "count": 2, "min": "NaN", "max": "NaN", "sum": "NaN", "mean": "NaN", "last": 1},
   "b": {"type": "number", "count": 2, "min": "-Infinity", "max": "Infinity", "sum": "NaN", "mean": "NaN", "last": "Infinity"}}'),
('B20: one infinity', '[{"a": "Infinity"}, {"a": 5}]',
 '{"a": {"type": "number", "count": 2, "min": 5, "max": "Infinity", "sum": "Infinity", "mean": "Infinity", "last": 5}}'),
('2.8: Infinity, then NaN', '[{"a": "Infinity"}, {"a": "NaN"}]',
 '{"a": {"type": "number", "count": 2, "min": "NaN", "max": "NaN", "sum": "NaN", "mean": "NaN", "last": "NaN"}}'),
('2.8: NaN, then -Infinity', '[{"a": "NaN"}, {"a": "-Infinity"}, {"a": 3}]',
 '{"a": {"type": "number", "count": 3, "min": "NaN", "max": "NaN", "sum": "NaN", "mean": "NaN", "last": 3}}'),
('B21', '[{"s": "1.5", "d1": "2023-04-19T18:37:29.091626", "d2": "2023-04-19T18:37:29.091626+10:10", "d3": "2021-03-15T13:32:18.91626111111Z",
           "o": {}, "a": [], "n": null, "b": false}]',
 '{"s": {"type": "string", "last": "1.5"}, "d1": {"type": "date", "last": "2023-04-19T18:37:29.091626"},
   "d2": {"type": "date", "last": "2023-04-19T18:37:29.091626+10:10"}, "d3": {"type": "date", "last": "2021-03-15T13:32:18.91626111111Z"},
   "o": {"type": "object", "last": {}}, "a": {"type": "array", "last": []}, "n": {"type": "null", "last": null},
   "b": {"type": "boolean", "last": false}}'),
('B21: what is a date and what is not',
 '[{"1": "2023-04-19T18:37:29", "2": "2023-04-19", "3": "2023-04-19 18:37:29", "4": "9999-99-99T99:99:99", "5": "2023-04-19T18:37:29.",
    "6": "2023-04-19T18:37:29+1010", "7": "2023-04-19T18:37:29z", "8": " 2023-04-19T18:37:29", "9": "2023-04-19T18:37:29Z ",
    "10": "2023-04-19T18:37:29Z\n", "11": "12023-04-19T18:37:29", "12": "2023-04-19T18:37:29-00:00", "13": "2023-04-19T18:37",
    "14": "2023-04-19T18:37:29.1.2", "15": "", "16": "nan", "17": "+Infinity", "18": "inf", "19": "NaN ", "20": "２０23-04-19T18:37:29",
    "21": "2023-04-19t18:37:29", "22": "2023-04-19T18:37:29Z+01:00", "23": "2023-04-19T18:37:29,5"}]',
 '{"1": {"type": "date", "last": "2023-04-19T18:37:29"}, "2": {"type": "string", "last": "2023-04-19"},
   "3": {"type": "string", "last": "2023-04-19 18:37:29"}, "4": {"type": "date", "last": "9999-99-99T99:99:99"},
   "5": {"type": "string", "last": "2023-04-19T18:37:29."}, "6": {"type": "string", "last": "2023-04-19T18:37:29+1010"},
   "7": {"type": "string", "last": "2023-04-19T18:37:29z"}, "8": {"type": "string", "last": " 2023-04-19T18:37:29"},
   "9": {"type": "string", "last": "2023-04-19T18:37:29Z "}, "10": {"type": "string", "last": "2023-04-19T18:37:29Z\n"},
   "11": {"type": "string", "last": "12023-04-19T18:37:29"}, "12": {"type": "date", "last": "2023-04-19T18:37:29-00:00"},
   "13": {"type": "string", "last": "2023-04-19T18:37"}, "14": {"type": "string", "last": "2023-04-19T18:37:29.1.2"},
   "15": {"type": "string", "last": ""}, "16": {"type": "string", "last": "nan"}, "17": {"type": "string", "last": "+Infinity"},
   "18": {"type": "string", "last": "inf"}, "19": {"type": "string", "last": "NaN "}, "20": {"type": "string", "last": "２０23-04-19T18:37:29"},
   "21": {"type": "string", "last": "2023-04-19t18:37:29"}, "22": {"type": "string", "last": "2023-04-19T18:37:29Z+01:00"},
   "23": {"type": "string", "last": "2023-04-19T18:37:29,5"}}'),
('B22: number, then string', '[{"a": 1}, {"a": "x"}]', '{"a": {"type": "string", "last": "x"}}'),
('B22: boolean, then "true"', '[{"a": true}, {"a": "true"}]', '{"a": {"type": "string", "last": "true"}}'),
('B22: string, then date', '[{"a": "x"}, {"a": "2023-04-19T18:37:29"}]', '{"a": {"type": "string", "last": "2023-04-19T18:37:29"}}'),
('B22: array, then object', '[{"a": []}, {"a": {}}]', '{"a": {"type": "string", "last": {}}}'),
('B22: boolean, then null', '[{"a": false}, {"a": null}]', '{"a": {"type": "string", "last": null}}'),
('B22: null, then number', '[{"a": null}, {"a": 1.9}]', '{"a": {"type": "string", "last": 1.9}}'),
('B22: never a number again', '[{"a": 1}, {"a": "x"}, {"a": 2}, {"a": 3}]', '{"a": {"type": "string", "last": 3}}'),
('B22: of one type again, absent last', '[{"a": 1}, {"a": true}, {"a": 2}, {}]', '{"a": {"type": "string", "last": null}}'),
('NaN is a number beside numbers, a string is not', '[{"a": "NaN"}, {"a": "x"}]', '{"a": {"type": "string", "last": "x"}}'),
('empty', '[{}, {}]', '{}'),
('min, max and last keep all digits', '[{"a": 0.1000000000000000055511151231257827}, {"a": 0.1}, {"a": 0.09999999999999999999999999999999999999999999}]',
 '{"a": {"type": "number", "count": 3, "min": 0.09999999999999999999999999999999999999999999, "max": 0.1000000000000000055511151231257827,
         "sum": 0.3000000000000000055511151231257827, "mean": 0.1, "last": 0.09999999999999999999999999999999999999999999}}'),
('a sum has 34 digits', '[{"a": 1e20}, {"a": 0.0000000000001}, {"a": 0.00000000000000001}]',
 '{"a": {"type": "number", "count": 3, "min": 0.00000000000000001, "max": 1e20, "sum": 100000000000000000000.0000000000001, "mean": 33333333333333333000, "last": 0.00000000000000001}}'),
('zero, minus zero', '[{"a": 0}, {"a": -0.0}]', '{"a": {"type": "number", "count": 2, "min": 0, "max": 0, "sum": 0, "mean": 0, "last": 0}}'),
('decimals add up as decimals', '[{"a": 0.1}, {"a": 0.2}, {"a": 0.3}]',
 '{"a": {"type": "number", "count": 3, "min": 0.1, "max": 0.3, "sum": 0.6, "mean": 0.2, "last": 0.3}}'),
('a small one is not lost beside a large', '[{"a": 1e16}, {"a": 1}, {"a": -1e16}]',
 '{"a": {"type": "number", "count": 3, "min": -1e16, "max": 1e16, "sum": 1, "mean": 0.33333333333333333, "last": -1e16}}'),
('integers beyond 2^53 keep their last digit', '[{"a": 9007199254740993}, {"a": 9007199254740993}]',
 '{"a": {"type": "number", "count": 2, "min": 9007199254740993, "max": 9007199254740993, "sum": 18014398509481986, "mean": 9007199254740993, "last": 9007199254740993}}'),
('a mean has 17 digits', '[{"a": 1}, {"a": 0}, {"a": 1}]',
 '{"a": {"type": "number", "count": 3, "min": 0, "max": 1, "sum": 2, "mean": 0.66666666666666667, "last": 1}}'),
('the ends of float8', '[{"a": 1.7976931348623157e308, "b": -1.7976931348623157e308, "c": 4.9e-324}, {"a": 1.7976931348623157e308, "b": 1.7976931348623157e308, "c": 0}]',
 '{"a": {"type": "number", "count": 2, "min": 1.7976931348623157e308, "max": 1.7976931348623157e308, "sum": 3.5953862697246314e308, "mean": 1.7976931348623157e308, "last": 1.7976931348623157e308},
   "b": {"type": "number", "count": 2, "min": -1.7976931348623157e308, "max": 1.7976931348623157e308, "sum": 0, "mean": 0, "last": 1.7976931348623157e308},
   "c": {"type": "number", "count": 2, "min": 0, "max": 4.9e-324, "sum": 4.9e-324, "mean": 2.45e-324, "last": 0}}'),
('names of every kind', '[{"a.b": 1, "a/b": 2, "a''b": 3, "a\"b": 4, "a\\b": 5, "": 6, "💡": 7, "sum": 8, "last": 9, "type": 10, "NaN": 11, "\u0001\u00ff": 12}]',
 '{"a.b": {"type": "number", "count": 1, "min": 1, "max": 1, "sum": 1, "mean": 1, "last": 1}, "a/b": {"type": "number", "count": 1, "min": 2, "max": 2, "sum": 2, "mean": 2, "last": 2},
   "a''b": {"type": "number", "count": 1, "min": 3, "max": 3, "sum": 3, "mean": 3, "last": 3}, "a\"b": {"type": "number", "count": 1, "min": 4, "max": 4, "sum": 4, "mean": 4, "last": 4},
   "a\\b": {"type": "number", "count": 1, "min": 5, "max": 5, "sum": 5, "mean": 5, "last": 5}, "": {"type": "number", "count": 1, "min": 6, "max": 6, "sum": 6, "mean": 6, "last": 6},
   "💡": {"type": "number", "count": 1, "min": 7, "max": 7, "sum": 7, "mean": 7, "last": 7}, "sum": {"type": "number", "count": 1, "min": 8, "max": 8, "sum": 8, "mean": 8, "last": 8},
   "last": {"type": "number", "count": 1, "min": 9, "max": 9, "sum": 9, "mean": 9, "last": 9}, "type": {"type": "number", "count": 1, "min": 10, "max": 10, "sum": 10, "mean": 10, "last": 10},
   "NaN": {"type": "number", "count": 1, "min": 11, "max": 11, "sum": 11, "mean": 11, "last": 11}, "\u0001\u00ff": {"type": "number", "count": 1, "min": 12, "max": 12, "sum": 12, "mean": 12, "last": 12}}');

SELECT is(helper.summarise(n * 10, 'training', documents), want, name || ' (training)') FROM example ORDER BY n;
SELECT is(helper.summarise(n * 10 + 1, 'inference', documents, true), want, 'B23: ' || name || ' (inference, an archived row before the last)')
FROM example ORDER BY n;
SELECT is(helper.summarise(n * 10 + 2, 'validation', documents), want, name || ' (validation)') FROM example ORDER BY n;
SELECT is((SELECT count(*)::int FROM trials WHERE summary_metrics::text LIKE '%archived name%'), 0,
    'B23: the name of the archived row is in no summary');
SELECT is(string_agg(helper.trial_difference(id), E'\n'), NULL, 'B24: every one of them is what its rows say') FROM trials;
CREATE TEMP TABLE incremental AS SELECT id, to_jsonb(t) - 'summary_metrics_timestamp' AS row FROM trials t;
SELECT is((SELECT count(*)::int FROM trials t WHERE summary_metrics IS DISTINCT FROM metrics_recompute_summary(id)), 0,
    'B24: metrics_recompute_summary() returns what is stored');
SELECT is_empty($$SELECT id FROM trials t JOIN incremental i USING (id) WHERE to_jsonb(t) - 'summary_metrics_timestamp' <> i.row$$,
    'B24: and changes no trial');

-- 2.8 and design 3, row by row.
SELECT metrics_register_trial(1) \gset
SELECT is(summary_metrics, '{}', 'a trial starts with an empty summary') FROM trials WHERE id = 1;
SELECT is(summary_metrics_timestamp, NULL, 'and none in time') FROM trials WHERE id = 1;
SELECT metrics_report(1, 'training', '{"a": 1}', 1, report_time => '2024-01-01 00:00:03+00') \gset
SELECT is(summary_metrics_timestamp, now(), 'a report stamps it') FROM trials WHERE id = 1;
SELECT metrics_report(1, 'training', '{"a": 2, "b": 2}', 2, report_time => '2024-01-01 00:00:02+00') \gset
SELECT is(helper.entry(1, 'avg_metrics', 'a') -> 'last', '1', '2.8: last is that of the greatest end_time, not the last to arrive');
SELECT is(helper.entry(1, 'avg_metrics', 'b') -> 'last', 'null', '2.8: and null if that row lacks the name');
SELECT metrics_report(1, 'training', '{"a": 3}', 3, report_time => '2024-01-01 00:00:03+00') \gset
SELECT is(helper.entry(1, 'avg_metrics', 'a') -> 'last', '3', 'of equal times the greater id');
SELECT metrics_report(1, 'empty', '{}', 3) \gset
SELECT is(summary_metrics -> 'empty', '{}', '2.8: a group of empty reports is there, and empty') FROM trials WHERE id = 1;
SELECT metrics_register_trial(1, 1) \gset
SELECT metrics_report(1, 'training', '{"a": 4}', 2, 1, report_time => '2023-01-01 00:00:00+00') \gset
SELECT is((SELECT array_agg(k) FROM trials, jsonb_object_keys(summary_metrics) k WHERE id = 1), '{avg_metrics}',
    'a group of which every row is archived is not');
SELECT is(helper.entry(1, 'avg_metrics', 'a'), '{"type": "number", "count": 2, "min": 1, "max": 4, "sum": 5, "mean": 2.5, "last": 1}',
    'a rollback computes the summary again');
SELECT helper.holds(1, 'and it holds');

-- A rollback takes a type back, for a summary is what its live rows say.
SELECT metrics_register_trial(2) \gset
SELECT metrics_report(2, 'training', '{"a": 1}', 1) \gset
SELECT metrics_report(2, 'training', '{"a": "x"}', 2) \gset
SELECT metrics_register_trial(2, 1) \gset
SELECT metrics_report(2, 'training', '{"a": 2}', 2, 1) \gset
SELECT is(helper.entry(2, 'avg_metrics', 'a'), '{"type": "number", "count": 2, "min": 1, "max": 2, "sum": 3, "mean": 1.5, "last": 2}',
    'a rollback of the only string makes a number again');
SELECT metrics_report(2, 'training', '{"a": 3}', 3, 1) \gset
SELECT helper.holds(2, 'and the next report counts on');

-- After rows were written without metrics_report(), the recompute is the way.
INSERT INTO metrics (trial_id, total_batches, trial_run_id, metric_group, partition_type, end_time, metrics)
VALUES (2, 50, 1, 'training', 'TRAINING', '2030-01-01 00:00:00+00', '{"avg_metrics": {"a": 9, "z": null}, "batch_metrics": null}');
DELETE FROM metrics WHERE trial_id = 2 AND total_batches = 1;
SELECT is(helper.summary_difference(metrics_recompute_summary(2), helper.expected_summary(2)), NULL, 'metrics_recompute_summary() after plain SQL');
SELECT helper.holds(2, 'stores it, with batches');
SELECT metrics_report(2, 'training', '{"a": 10}', 51, 1) \gset
SELECT helper.holds(2, 'and reports count on from there');
SELECT throws_ok('SELECT metrics_recompute_summary(999)', '23503', NULL, 'there is no summary of an unknown trial');

SELECT * FROM finish();
ROLLBACK;
