-- A later run of a trial archives what earlier runs reported past its point:
-- B17 and B18.
BEGIN;
\ir include/store.sql
SELECT plan(52);

-- B17: upstream's whole sequence.
SELECT metrics_register_trial(17) \gset
CREATE FUNCTION helper.step(metric_group text, steps integer, run integer, want_archived integer, want_batches integer)
RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    before integer := (SELECT count(*) FROM metrics.metrics WHERE trial_id = 17 AND archived);
BEGIN
    PERFORM metrics_register_trial(17, run);
    PERFORM metrics_report(17, metric_group, jsonb_build_object('a', steps), steps, run);
    RETURN NEXT is((SELECT ROW(count(*) - before, (SELECT total_batches FROM metrics.trials WHERE id = 17))::text
                    FROM metrics.metrics WHERE trial_id = 17 AND archived),
                   format('(%s,%s)', want_archived, want_batches),
                   format('B17: %s@%s of run %s archives %s, leaves %s batches', metric_group, steps, run, want_archived, want_batches));
    RETURN NEXT helper.holds(17, 'B17: and the trial holds');
END $$;
SELECT helper.step('training', 10, 0, 0, 10);
SELECT helper.step('validation', 10, 0, 0, 10);
SELECT helper.step('training', 20, 0, 0, 20);
SELECT helper.step('validation', 20, 0, 0, 20);
SELECT helper.step('validation', 30, 0, 0, 30);
SELECT helper.step('training', 25, 0, 0, 30);
SELECT helper.step('validation', 25, 1, 1, 25);
SELECT helper.step('validation', 30, 1, 0, 30);
SELECT helper.step('training', 30, 1, 0, 30);
SELECT helper.step('training', 27, 2, 2, 27);
SELECT helper.step('validation', 27, 3, 0, 27);
SELECT helper.step('generic-golabi', 27, 3, 0, 27);
SELECT helper.step('generic-golabi', 29, 3, 0, 29);
SELECT helper.step('inference', 28, 3, 0, 29);
SELECT helper.step('inference', 28, 4, 2, 28);
SELECT results_eq($$SELECT tableoid::regclass::text, count(*) FILTER (WHERE archived), count(*) FILTER (WHERE NOT archived)
                    FROM metrics WHERE trial_id = 17 GROUP BY 1 ORDER BY 1$$,
    $$VALUES ('generic_metrics', 2::bigint, 2::bigint), ('raw_steps', 1, 4), ('raw_validations', 2, 4)$$,
    'B17: what is archived and what is live in the end');
SELECT results_eq($$SELECT total_batches FROM metrics_rows(17, 'generic-golabi', 0)$$, ARRAY[27],
    'B17: of generic-golabi one row is left to read');

-- B18: the boundary.
SELECT metrics_register_trial(18) \gset
SELECT metrics_report(18, g, '{"a": 1}', s) FROM unnest(ARRAY['training', 'validation', 'inference', 'other']) g, unnest(ARRAY[19, 20, 21]) s \g /dev/null
SELECT metrics_report(18, g, '{"a": 1}') FROM unnest(ARRAY['cpu', 'gpu']) g \g /dev/null
SELECT metrics_register_trial(18, 1) \gset
CREATE FUNCTION helper.archived(trial integer) RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT array_agg(format('%s@%s', metric_group, total_batches) ORDER BY metric_group COLLATE "C", total_batches)
    FROM metrics.metrics WHERE trial_id = trial AND archived
$$;
SELECT is(helper.archived(18), NULL, 'B18: to register a run archives nothing');
SELECT metrics_report(18, 'gpu', '{"a": 1}', trial_run_id => 1) \gset
SELECT is(helper.archived(18), NULL, 'B18: nor does a profiling report of it');
SELECT metrics_report(18, 'training', '{"a": 2}', 20, 1) \gset
SELECT is(helper.archived(18), '{inference@21,other@21,training@20,training@21,validation@21}',
    'B18: training@20 archives what is past 20, and of its own partition what is at 20');
SELECT helper.holds(18, 'B18: and the trial holds');
SELECT is((SELECT count(*)::int FROM system_metrics WHERE NOT archived), 3, 'B18: profiling rows are never archived');
SELECT metrics_report(18, 'inference', '{"a": 2}', 20, 1) \gset
SELECT is(helper.archived(18), '{inference@20,inference@21,other@20,other@21,training@20,training@21,validation@21}',
    '2.5b: a generic group archives other generic groups at its batches: by partition, not by group');
SELECT metrics_report(18, 'training', '{"a": 3}', 5, 1) \gset
SELECT is(helper.archived(18), '{inference@19,inference@20,inference@21,other@19,other@20,other@21,training@19,training@20,training@21,validation@19,validation@20,validation@21}',
    'B18: batches 5 of run 1 archive all of run 0 past it');
SELECT is((SELECT count(*)::int FROM metrics WHERE trial_id = 18 AND archived AND trial_run_id = 1), 0,
    'B18: and no row of the same run');
SELECT is((SELECT total_batches FROM trials WHERE id = 18), 20, 'B18: batches are the greatest that is left');
SELECT helper.holds(18, 'B18: and the trial holds');

-- An archived row still occupies its key, of its own run only.
SELECT is((SELECT count(*)::int FROM raw_steps WHERE trial_id = 18 AND total_batches = 20), 2,
    'the same batches of two runs lie side by side');
-- A run may be skipped; batches 0 are batches.
SELECT metrics_register_trial(18, 7) \gset
SELECT metrics_report(18, 'validation', '{"a": 1}', 0, 7) \gset
SELECT is((SELECT count(*)::int FROM metrics WHERE trial_id = 18 AND NOT archived AND partition_type <> 'PROFILING'), 1,
    'validation@0 of a later run archives everything before');
SELECT is((SELECT ROW(total_batches, summary_metrics)::text FROM trials WHERE id = 18),
    '(0,"{""validation_metrics"": {""a"": {""max"": 1, ""min"": 1, ""sum"": 1, ""last"": 1, ""mean"": 1, ""type"": ""number"", ""count"": 1}}}")',
    'groups whose rows are all archived are in the summary no longer');

-- A group of which one partition of the user's own is batch-kind, and other
-- trials, are left alone.
SELECT metrics_register_trial(19) \gset
SELECT metrics_report(19, 'training', '{"a": 1}', 100) \gset
SELECT metrics_register_trial(20) \gset
SELECT metrics_report(20, 'training', '{"a": 1}', 100) \gset
SELECT metrics_register_trial(20, 1) \gset
SELECT metrics_report(20, 'training', '{"a": 1}', 1, 1) \gset
SELECT is(helper.archived(19), NULL, 'other trials are left alone');

-- A report that fails after its rollback has archived nothing.
SELECT metrics_register_trial(21) \gset
SELECT metrics_report(21, 'training', '{"a": 1}', 10) \gset
SELECT metrics_report(21, 'validation', '{"a": 1}', 10) \gset
SELECT metrics_register_trial(21, 1) \gset
SELECT metrics_report(21, 'training', '{"a": 1}', 10, 1) \gset
SELECT metrics_report(21, 'inference', '{"a": 1}', 4, 1) \gset
SELECT metrics_register_trial(21, 2) \gset
SELECT helper.refuses($$SELECT metrics_report(21, 'avg_metrics', '{"a": 2}', 4, 2)$$, '23514', '', 'a failing report');
SELECT is(helper.archived(21), '{training@10,validation@10}', 'archives nothing');
SELECT helper.holds(21, 'and the trial holds');
-- Nor has one that is rolled back by the user.
SAVEPOINT regret;
SELECT metrics_report(21, 'training', '{"a": 2}', 1, 2) \gset
ROLLBACK TO regret;
SELECT is(helper.archived(21), '{training@10,validation@10}', 'nor does one that is rolled back');
SELECT metrics_report(21, 'training', '{"a": 5}', 11, 2) \gset
SELECT helper.holds(21, 'and the trial holds after the next');

SELECT is((SELECT count(*)::int FROM metrics WHERE trial_id = 21), 5, 'nothing is ever deleted');

SELECT * FROM finish();
ROLLBACK;
