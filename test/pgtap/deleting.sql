-- Deleting a trial, or all trials of an experiment, takes its rows along: B32.
BEGIN;
\ir include/store.sql
SELECT plan(13);

SELECT metrics_register_trial(t, 0, 1 + t / 3, 'loss') FROM generate_series(1, 4) t \g /dev/null
SELECT metrics_report(t, g, '{"loss": 1}', 1)
FROM generate_series(1, 4) t, unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g \g /dev/null
SELECT is((SELECT count(*)::int FROM metrics), 16, 'four trials with a row in each partition');

SELECT lives_ok('DELETE FROM trials WHERE id = 1', 'B32: a trial can be deleted');
SELECT is((SELECT array_agg(tableoid::regclass::text || ' ' || trial_id ORDER BY 1) FROM metrics WHERE trial_id = 1), NULL,
    'B32: and its rows are gone from all four partitions');
SELECT is((SELECT count(*)::int FROM metrics), 12, 'B32: those of the others are there');
SELECT helper.refuses($$SELECT metrics_report(1, 'training', '{}', 1)$$, '23503', 'trial 1 does not exist',
    'in the same session the trial is known no longer');
SELECT lives_ok('DELETE FROM trials WHERE experiment_id = 2', 'B32: an experiment can be deleted');
SELECT is((SELECT array_agg(DISTINCT trial_id) FROM metrics), '{2}', 'B32: with the rows of its trials');

SELECT lives_ok('DELETE FROM raw_validations WHERE trial_id = 2', 'B32: a validation can be deleted');
SELECT is((SELECT latest_validation_id FROM trials WHERE id = 2), NULL, 'B32: and latest_validation_id becomes NULL');
SELECT is((SELECT count(*)::int FROM trials WHERE id = 2), 1, 'B32: the trial itself stays');

-- A trial may come back under the same id, with nothing left of the old one.
SELECT metrics_register_trial(1, 0, NULL, 'loss') \gset
SELECT is((SELECT ROW(total_batches, summary_metrics)::text FROM trials WHERE id = 1), '(0,{})', 'a trial that comes back starts anew');
SELECT metrics_report(1, 'training', '{"a": 1}', 1) \gset
SELECT is(helper.entry(1, 'avg_metrics', 'loss'), NULL, 'and summarises what it reports now');
SELECT helper.holds(1, 'and holds');

SELECT * FROM finish();
ROLLBACK;
