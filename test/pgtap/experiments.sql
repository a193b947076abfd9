-- What is read of all trials of an experiment: snapshots (B29) and metric
-- names (B31).
BEGIN;
\ir include/store.sql
SELECT plan(35);

SELECT metrics_register_trial(t, 0, 1, 'loss') FROM generate_series(1, 3) t \g /dev/null
SELECT metrics_register_trial(9, 0, 2) \gset
SELECT metrics_report(t, 'validation', jsonb_build_object('loss', t * 100 + b), b, 
                      report_time => '2024-01-01 00:00+00'::timestamptz + (10 * b + t) * interval '1 second')
FROM generate_series(1, 3) t, unnest(ARRAY[0, 4, 5, 10, 15, 16, 100, 105, 106]) b \g /dev/null
SELECT metrics_report(9, 'validation', '{"loss": -1}', 5) \gset
SELECT metrics_report(1, 'training', '{"loss": -2}', 5) \gset

SELECT results_eq($$SELECT trial_id, total_batches, end_time, value FROM metrics_trials_snapshot(1, 'validation', 'loss', 5)$$,
    $$VALUES (1, 5, timestamptz '2024-01-01 00:00:51+00', 105::float8), (2, 5, '2024-01-01 00:00:52+00', 205), (3, 5, '2024-01-01 00:00:53+00', 305)$$,
    'B29: the value of every trial of the experiment at a number of batches, in order of time');
SELECT results_eq($$SELECT DISTINCT total_batches FROM metrics_trials_snapshot(1, 'validation', 'loss', 5, 10) ORDER BY 1$$, ARRAY[0, 4, 5, 10, 15],
    'B29: b=5, m=10 is the window [0,15]');
SELECT results_eq($$SELECT DISTINCT total_batches FROM metrics_trials_snapshot(1, 'validation', 'loss', 5, 1) ORDER BY 1$$, ARRAY[4, 5],
    'B29: b=5, m=1 is [4,6]');
SELECT results_eq($$SELECT DISTINCT total_batches FROM metrics_trials_snapshot(1, 'validation', 'loss', 6, 100) ORDER BY 1$$, ARRAY[0, 4, 5, 10, 15, 16, 100, 105, 106],
    'B29: a margin of 100 is allowed');
SELECT helper.refuses($$SELECT * FROM metrics_trials_snapshot(1, 'validation', 'loss', 5, 101)$$, '22023', 'margin must be <= 100', 'B29: one of 101 is not');
SELECT helper.refuses($$SELECT * FROM metrics_trials_snapshot(1, 'validation', 'loss', 5, -1)$$, '22023', '', 'nor is a negative one');
SELECT is_empty($$SELECT * FROM metrics_trials_snapshot(1, 'validation', 'loss', 2147483647, 100)$$, 'B29: the window does not overflow');
SELECT is_empty($$SELECT * FROM metrics_trials_snapshot(1, 'validation', 'loss', 50, 10)$$, 'a window of nothing');
SELECT results_eq($$SELECT trial_id FROM metrics_trials_snapshot(1, 'validation', 'loss', 5, since => '2024-01-01 00:00:52+00')$$, ARRAY[3],
    'B29: since is exclusive, for a cursor');
SELECT results_eq($$SELECT trial_id, value FROM metrics_trials_snapshot(1, 'training', 'loss', 5)$$, $$VALUES (1, -2::float8)$$, 'another group');
SELECT is_empty($$SELECT * FROM metrics_trials_snapshot(1, 'validation', 'accuracy', 5)$$, 'another name');
SELECT is_empty($$SELECT * FROM metrics_trials_snapshot(404, 'validation', 'loss', 5)$$, 'another experiment');
SELECT metrics_report(9, 'inference', '{"v": null, "n": "NaN", "i": "-Infinity"}', 5) \gset
SELECT is_empty($$SELECT * FROM metrics_trials_snapshot(2, 'inference', 'v', 5)$$, 'B29: null is no value');
SELECT results_eq($$SELECT value FROM metrics_trials_snapshot(2, 'inference', 'n', 5)$$, ARRAY['NaN'::float8], 'NaN is');
SELECT results_eq($$SELECT value FROM metrics_trials_snapshot(2, 'inference', 'i', 5)$$, ARRAY['-Infinity'::float8], '-Infinity is');
SELECT metrics_register_trial(2, 1) \gset
SELECT metrics_report(2, 'training', '{}', 3, 1) \gset
SELECT results_eq($$SELECT trial_id FROM metrics_trials_snapshot(1, 'validation', 'loss', 5)$$, ARRAY[1, 3], 'B29: archived rows are excluded, unlike upstream''s');

-- B31
SELECT metrics_register_trial(t, 0, 10) FROM generate_series(21, 23) t \g /dev/null
SELECT metrics_report(21, 'training', '{"loss": 1, "name": "x", "same": 1}', 1) \gset
SELECT metrics_report(22, 'training', '{"loss": 2, "same": true, "acc": {}}', 1) \gset
SELECT metrics_report(22, 'validation', '{"loss": 2}', 1) \gset
SELECT metrics_report(23, 'inference', '{"when": "2023-04-19T18:37:29Z", "list": [], "no": false, "nil": null}', 1) \gset
SELECT results_eq($$SELECT group_name, name, type FROM metrics_names(10) ORDER BY group_name COLLATE "C", name COLLATE "C"$$,
    $$VALUES ('inference', 'list', 'array'), ('inference', 'nil', 'null'), ('inference', 'no', 'boolean'), ('inference', 'when', 'date'),
             ('training', 'acc', 'object'), ('training', 'loss', 'number'), ('training', 'name', 'string'), ('training', 'same', NULL),
             ('validation', 'loss', 'number')$$,
    'B31: every group and name of the experiment once, with its type; NULL where trials differ');
SELECT metrics_report(21, 'cpu', '{"node-1": {"cpu_util_simple": 50}}') \gset
SELECT metrics_report(22, 'cpu', '{"node-2": {"cpu_util_simple": 60}}') \gset
SELECT metrics_report(22, 'gpu', '{"node-2": {"GPU-1": {"gpu_util": 60, "gpu_free_memory": 1}}}') \gset
SELECT metrics_report(22, 'disk', '{"node-2": {"disk_iops": 1, "/": {"disk_util": 60}}}') \gset
SELECT metrics_report(23, 'network', '{"test_metric": 0.13}') \gset
SELECT results_eq($$SELECT group_name, name FROM metrics_names(10) WHERE group_name NOT IN ('training', 'validation', 'inference') ORDER BY group_name COLLATE "C", name COLLATE "C"$$,
    $$VALUES ('cpu', 'cpu_util_simple'), ('disk', 'disk_iops'), ('disk', 'disk_util'), ('gpu', 'gpu_free_memory'), ('gpu', 'gpu_util'), ('network', 'test_metric')$$,
    'B31: profiling names are listed, unlike upstream''s, each once');
SELECT is((SELECT count(*)::int FROM metrics_names(10) WHERE group_name IN ('training', 'validation', 'inference')), 9, 'beside the others');
SELECT is_empty($$SELECT * FROM metrics_names(404)$$, 'an unknown experiment has no names');
SELECT metrics_register_trial(22, 1) \gset
SELECT metrics_report(22, 'training', '{"fresh": 1}', 1, 1) \gset
SELECT is((SELECT string_agg(name, ',' ORDER BY name COLLATE "C") FROM metrics_names(10) WHERE group_name = 'training'), 'fresh,loss,name,same',
    'B31: names of archived rows alone are gone');
SELECT is(type, 'number', 'and with them their type') FROM metrics_names(10) WHERE group_name = 'training' AND name = 'same';

-- A trial of no experiment belongs to none.
SELECT metrics_register_trial(30) \gset
SELECT metrics_report(30, 'training', '{"stray": 1}', 1) \gset
SELECT is((SELECT count(*)::int FROM generate_series(0, 10) e, metrics_names(e) WHERE name = 'stray'), 0, 'a trial of no experiment belongs to none');

-- Registration.
SELECT is((SELECT ROW(t.*)::text FROM trials t WHERE id = 30), '(30,,0,1,"{""avg_metrics"": {""stray"": {""max"": 1, ""min"": 1, ""sum"": 1, ""last"": 1, ""mean"": 1, ""type"": ""number"", ""count"": 1}}}",'
    || (SELECT to_json(now()::text)::text) || ',,,,t,,)', 'a trial registered by its id alone');
SELECT metrics_register_trial(31, 4, 11, 'loss', false) \gset
SELECT is((SELECT ROW(id, experiment_id, run_id, searcher_metric, smaller_is_better)::text FROM trials WHERE id = 31), '(31,11,4,loss,f)', 'and with all');
SELECT metrics_register_trial(31, 4) \gset
SELECT is((SELECT ROW(id, experiment_id, run_id, searcher_metric, smaller_is_better)::text FROM trials WHERE id = 31), '(31,11,4,loss,f)',
    'registered again it keeps what is not given, the direction of its searcher metric included');
SELECT metrics_register_trial(31, 5, 12, 'acc') \gset
SELECT is((SELECT ROW(id, experiment_id, run_id, searcher_metric, smaller_is_better)::text FROM trials WHERE id = 31), '(31,12,5,acc,t)', 'and takes what is');
SELECT is((SELECT count(*)::int FROM trials WHERE id = 31), 1, 'as one trial');
SELECT lives_ok($$SELECT metrics_register_trial(NULL::integer + 0) WHERE false$$, 'nothing is registered by no call');
SELECT lives_ok($$SELECT metrics_register_trial(2147483647, 2147483647)$$, 'the greatest ids');
SELECT lives_ok($$SELECT metrics_report(2147483647, 'training', '{}', 1, 2147483647)$$, 'report as others do');
SELECT helper.refuses(format('SELECT * FROM metrics_trials_snapshot(%s)', a), '22004', '', format('NULL: %s', a))
FROM (VALUES ($$NULL, 'training', 'loss', 1$$), ($$1, NULL, 'loss', 1$$), ($$1, 'training', NULL, 1$$), ($$1, 'training', 'loss', NULL$$)) v(a);

SELECT * FROM finish();
ROLLBACK;
