-- Reports of the same group at the same batches: B15 and B16.
BEGIN;
\ir include/store.sql
SELECT plan(48);

SELECT metrics_register_trial(1, 0, NULL, 'loss') \gset

-- B15: disjoint keys make one row.
SELECT metrics_report(1, 'training', '{"a": 1}', 1, report_time => '2024-01-01 00:00:00+00') AS first \gset
SELECT is(metrics_report(1, 'training', '{"b": 2}', 1, report_time => '2024-01-02 00:00:00+00'), :first::bigint, 'B15: the second report gets the first''s id');
SELECT is(metrics_report(1, 'training', '{"c": 2}', 1), :first::bigint, 'B15: and so does the third');
SELECT results_eq($$SELECT id, end_time, metrics FROM raw_steps$$,
    format($$VALUES (%s::bigint, timestamptz '2024-01-01 00:00:00+00',
                     jsonb '{"avg_metrics": {"a": 1, "b": 2, "c": 2}, "batch_metrics": null}')$$, :first),
    'B15: one row, with the union of the keys and the time of the first report');
SELECT helper.holds(1, 'B15: the summary counts it once, and last knows all three');
SELECT is(helper.entry(1, 'avg_metrics', 'a') -> 'last', '1', '2.8: a key sent earlier at the same batch keeps its last');

-- Equal values may be sent again.
SELECT is(metrics_report(1, 'training', '{"a": 1, "d": 4}', 1), :first::bigint, 'B15: an equal value is ignored, a new key beside it kept');
SELECT is(helper.entry(1, 'avg_metrics', 'a'), '{"type": "number", "count": 1, "min": 1, "max": 1, "sum": 1, "mean": 1, "last": 1}',
    '2.8: an identical key sent again counts once');
SELECT is(metrics_report(1, 'training', '{"a": 1.0}', 1), :first::bigint, '1.0 is the same number as 1');
SELECT is(metrics_report(1, 'training', '{}', 1), :first::bigint, 'an empty report merges into anything');
SELECT helper.holds(1, 'and the summary holds');

-- epoch, as in upstream's test.
SELECT metrics_report(1, 'training', '{"a": 1, "epoch": 10}', 2) AS epoch \gset
SELECT is(metrics_report(1, 'training', '{"b": 2, "epoch": 10}', 2), :epoch::bigint, 'B15: the same epoch with every part');
SELECT helper.refuses($$SELECT metrics_report(1, 'training', '{"c": 2, "epoch": 11}', 2)$$, '23505',
    'overwriting existing metric keys is not supported, conflicting key: "epoch"', 'B15: another epoch is a conflict');
SELECT is((SELECT metrics -> 'avg_metrics' FROM raw_steps WHERE id = :epoch), '{"a": 1, "b": 2, "epoch": 10}',
    'B15: and leaves the row as it was, the new key included');

-- Conflicts, compared deeply, whatever the type.
SELECT metrics_report(1, 'inference', '{"list": [1, 2], "object": {"k": {"d": [1, {"e": null}]}}, "text": "1", "yes": true,
                                        "nothing": null, "nan": "NaN", "n": 0.1, "": 7, "quote\"d": 1}', 3) AS deep \gset
SELECT helper.refuses(format($$SELECT metrics_report(1, 'inference', %L, 3)$$, d), '23505',
    format('overwriting existing metric keys is not supported, conflicting key: "%s"', k), format('B15: %s is a conflict', d))
FROM (VALUES ('list', '{"list": [1, 2, 3]}'), ('list', '{"list": [2, 1]}'), ('list', '{"list": []}'), ('list', '{"list": null}'),
             ('object', '{"object": {"k": {"d": [1, {"e": 0}]}}}'), ('object', '{"object": {}}'), ('text', '{"text": 1}'),
             ('yes', '{"yes": "true"}'), ('yes', '{"yes": false}'), ('nothing', '{"nothing": 0}'), ('nan', '{"nan": "Infinity"}'),
             ('n', '{"n": 0.10000000000000001}'), ('', '{"": 8}'), ('n', '{"fresh": 1, "n": 0, "text": "1"}')) v(k, d);
SELECT is(metrics_report(1, 'inference', '{"list": [1, 2], "object": {"k": {"d": [1.0, {"e": null}]}}, "text": "1", "yes": true,
                                          "nothing": null, "nan": "NaN", "n": 0.10, "": 7, "new": 1}', 3), :deep::bigint,
    'B15: all of them equal is none');
SELECT helper.holds(1, 'and the summary holds');

-- The row to merge with is that of the trial, the group and the batches.
SELECT metrics_register_trial(2) \gset
SELECT isnt(metrics_report(2, 'training', '{"a": 2}', 1), :first::bigint, 'another trial has a row of its own');
SELECT isnt(metrics_report(1, 'other', '{"list": 1}', 3), :deep::bigint, 'another group has a row of its own');
SELECT isnt(metrics_report(1, 'inference', '{"list": 1}', 4), :deep::bigint, 'other batches have a row of their own');
SELECT lives_ok($$SELECT metrics_report(1, 'cpu', '{"a": 1}'), metrics_report(1, 'cpu', '{"a": 2}')$$, 'profiling never merges');

-- Out of order: a merge into a row that is not the newest of its group.
SELECT metrics_register_trial(3, 0, NULL, 'loss') \gset
SELECT metrics_report(3, 'training', '{"a": 1}', 1, report_time => '2024-01-01 00:00:01+00') \gset
SELECT metrics_report(3, 'training', '{"a": 2, "b": 2}', 2, report_time => '2024-01-01 00:00:02+00') \gset
SELECT metrics_report(3, 'training', '{"b": 9, "c": 9}', 1, report_time => '2024-01-01 00:00:03+00') \gset
SELECT is(helper.entry(3, 'avg_metrics', 'b'), '{"type": "number", "count": 2, "min": 2, "max": 9, "sum": 11, "mean": 5.5, "last": 2}',
    'a merge into an older row does not change last');
SELECT is(helper.entry(3, 'avg_metrics', 'c') -> 'last', 'null', 'nor does it give one to a new name');
SELECT helper.holds(3, 'and the summary holds');

-- A merge may bring the searcher metric, or a better one never.
SELECT metrics_report(3, 'validation', '{"other": 1}', 1, report_time => '2024-01-01 00:00:01+00') AS partial \gset
SELECT is((SELECT latest_validation_id FROM trials WHERE id = 3), NULL, 'a validation without the searcher metric is not the latest');
SELECT metrics_report(3, 'validation', '{"loss": 4}', 1) \gset
SELECT is((SELECT ROW(latest_validation_id, best_validation_id, searcher_metric_value) FROM trials WHERE id = 3)::text,
    format('(%s,%s,4)', :partial, :partial), 'until a merge brings it');
SELECT helper.holds(3, 'and the trial holds');

-- What a user has archived by hand is merged into no more, and still occupies
-- its key.
SELECT metrics_register_trial(4) \gset
SELECT metrics_report(4, 'training', '{"a": 1}', 1), metrics_report(4, 'training', '{"a": 2}', 2) \g /dev/null
UPDATE metrics SET archived = true WHERE trial_id = 4 AND total_batches = 1;
SELECT metrics_recompute_summary(4) \gset
SELECT helper.refuses($$SELECT metrics_report(4, 'training', '{"b": 1}', 1)$$, '23505', 'duplicate key value violates unique constraint "steps_trial_id_total_batches_run_id_unique"',
    'B33: a row that was archived by hand is not merged into', false);
SELECT helper.holds(4, 'and the trial holds');

-- Types change in a merge as in a row of its own.
SELECT metrics_report(3, 'training', '{"t": 1}', 1) \gset
SELECT metrics_report(3, 'training', '{"t": "x"}', 2) \gset
SELECT is(helper.entry(3, 'avg_metrics', 't'), '{"type": "string", "last": "x"}', 'a merge can mix types');
SELECT helper.holds(3, 'and the summary holds');

-- B16: batch metrics.
SELECT metrics_report(3, 'training', '{"a": 3}', 3, batch_metrics => '[{"x": 1}]') AS batched \gset
SELECT helper.refuses($$SELECT metrics_report(3, 'training', '{"b": 3}', 3, batch_metrics => '[{"x": 1}]')$$, '23505',
    'overwriting batch metrics is not supported', 'B16: batch metrics on both sides');
SELECT helper.refuses($$SELECT metrics_report(3, 'training', '{"b": 3}', 3, batch_metrics => '[]')$$, '23505',
    'overwriting batch metrics is not supported', 'B16: also when the new ones are empty');
SELECT is((helper.report(3, 'training', '{"b": 3}', 3)).metrics, '{"avg_metrics": {"a": 3, "b": 3}, "batch_metrics": [{"x": 1}]}',
    'B16: those of the first report are kept');
SELECT metrics_report(3, 'training', '{"a": 4}', 4) \gset
SELECT is((helper.report(3, 'training', '{"b": 4}', 4, 0, NULL, '[{"y": 2}]')).metrics,
    '{"avg_metrics": {"a": 4, "b": 4}, "batch_metrics": [{"y": 2}]}', 'B16: and, unlike upstream, those of the second');
SELECT metrics_report(3, 'validation', '{"a": 4}', 4, batch_metrics => '[{"y": 2}]') \gset
SELECT is((helper.report(3, 'validation', '{"b": 4}', 4, 0, NULL, '[{"y": 3}]')).metrics,
    '{"validation_metrics": {"a": 4, "b": 4}}', 'B16: validations have none to be in conflict');

SELECT * FROM finish();
ROLLBACK;
