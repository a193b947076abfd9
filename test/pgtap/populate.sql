-- Sample data.
BEGIN;
\ir include/store.sql
SELECT plan(18);

SELECT metrics_register_trial(41) \gset
SELECT metrics_populate(3, 40) AS first \gset
SELECT cmp_ok(:first, '>', 41, 'metrics_populate() returns its first trial, a new one');
SELECT is((SELECT array_agg(id ORDER BY id) FROM trials WHERE id <> 41), ARRAY[:first, :first + 1, :first + 2], 'one after the other');
SELECT is((SELECT array_agg(n) FROM (SELECT count(*)::int AS n FROM raw_steps WHERE metric_group = 'training' GROUP BY trial_id) c), '{40,40,40}', 'with as many training steps each');
SELECT is((SELECT count(DISTINCT trial_id)::int FROM raw_validations), 3, 'with validations');
SELECT is((SELECT count(DISTINCT trial_id)::int FROM system_metrics), 3, 'and profiling');
SELECT is((SELECT count(*)::int FROM metrics WHERE trial_id = 41), 0, 'the trials that were there are left alone');
SELECT is(string_agg(helper.trial_difference(id), E'\n'), NULL, 'their summaries, latest and best validations are what their rows say') FROM trials;
SELECT is((SELECT count(*)::int FROM trials WHERE id >= :first AND (latest_validation_id IS NULL OR best_validation_id IS NULL)), 0, 'which they have');
SELECT is((SELECT count(DISTINCT (group_name, agent, name)) > 0 FROM metrics_profiling_series(:first)), true, 'the profiling is of the real shapes');
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(:first, 'cpu', max_rows => 1000) WHERE value IS NULL OR agent IS NULL), 0, 'with an agent and a value');
SELECT lives_ok(format($$SELECT metrics_report(%s, 'training', '{"loss": 1}', 1000)$$, :first), 'reports go on');
SELECT helper.holds(:first, 'and hold');
SELECT is(metrics_populate(1, 1), :first + 3, 'and so does the next sample');
SELECT cmp_ok((SELECT count(*)::int FROM raw_steps WHERE trial_id = :first + 3), '=', 1, 'of one step');
SELECT helper.refuses(format('SELECT metrics_populate(%s)', a), '22023', '', format('metrics_populate(%s)', a))
FROM (VALUES ('-1, 1'), ('1, -1')) v(a);
SELECT helper.refuses('SELECT metrics_populate(NULL, 1)', '22004', 'trials must not be NULL', 'no number of trials');
SELECT is((SELECT count(*) = count(DISTINCT id) FROM metrics), true, 'every row has an id of its own');

SELECT * FROM finish();
ROLLBACK;
