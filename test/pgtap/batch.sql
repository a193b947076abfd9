-- Many reports in one call: all or nothing, and each as by itself.
BEGIN;
\ir include/store.sql
SELECT plan(66);

SELECT metrics_register_trial(1, 0, NULL, 'loss') \gset
SELECT metrics_register_trial(2) \gset

CREATE TEMP TABLE ids AS SELECT metrics_report_batch('[
    {"trial_id": 1, "metric_group": "training", "metrics": {"a": 1}, "steps_completed": 1, "report_time": "2024-01-01T00:00:00.000001-05:00"},
    {"trial_id": 1, "metric_group": "cpu", "metrics": {"u": 1}, "report_time": "2024-02-29T13:04:49.388948-05:00", "steps_completed": 7},
    {"trial_id": 2, "metric_group": "validation", "metrics": {"loss": 1}, "steps_completed": 1, "trial_run_id": 0},
    {"trial_id": 1, "metric_group": "training", "metrics": {"b": 2}, "steps_completed": 1, "batch_metrics": [{"x": 1}]},
    {"trial_id": 1, "metric_group": "inference", "metrics": {}, "steps_completed": 3, "report_time": null, "batch_metrics": null},
    {"trial_id": 1, "metric_group": "validation", "metrics": {"loss": 4}, "steps_completed": 2}
]') AS ids;
SELECT is(cardinality(ids), 6, 'an id a report') FROM ids;
SELECT results_eq($$SELECT n, m.trial_id, m.metric_group, m.total_batches, m.end_time, m.metrics
                    FROM ids, unnest(ids) WITH ORDINALITY u(id, n) JOIN metrics m USING (id) ORDER BY n$$,
    $$VALUES (1::bigint, 1, 'training', 1, '2024-01-01 05:00:00.000001+00'::timestamptz, '{"avg_metrics": {"a": 1, "b": 2}, "batch_metrics": [{"x": 1}]}'::jsonb),
             (2, 1, 'cpu', NULL, '2024-02-29 18:04:49.388948+00', '{"u": 1}'),
             (3, 2, 'validation', 1, now(), '{"validation_metrics": {"loss": 1}}'),
             (4, 1, 'training', 1, '2024-01-01 05:00:00.000001+00', '{"avg_metrics": {"a": 1, "b": 2}, "batch_metrics": [{"x": 1}]}'),
             (5, 1, 'inference', 3, now(), '{"avg_metrics": {}, "batch_metrics": null}'),
             (6, 1, 'validation', 2, now(), '{"validation_metrics": {"loss": 4}}')$$,
    'in the order of the array; a merge has the id of its row');
SELECT is(helper.trial_difference(t), NULL, format('and trial %s holds', t)) FROM unnest(ARRAY[1, 2]) t;
SELECT is(metrics_report_batch('[]'), '{}', 'a batch of nothing');
SELECT is(metrics_report_batch(NULL), NULL, 'no batch');

-- The same reports one by one make the same store.
SELECT metrics_register_trial(t, 0, NULL, 'loss') FROM unnest(ARRAY[10, 20]) t \g /dev/null
CREATE TEMP TABLE report AS
SELECT n, jsonb_build_object('metric_group', (ARRAY['training', 'validation', 'inference', 'cpu', 'training'])[1 + n % 5],
    'metrics', jsonb_build_object('loss', n * 0.37, 'k' || n % 3, CASE WHEN n % 11 = 0 THEN '"NaN"'::jsonb ELSE to_jsonb(n % 13) END),
    'steps_completed', n, 'report_time', format('2024-01-01T00:00:%s+00:00', lpad((n * 7 % 60)::text, 2, '0'))) AS report
FROM generate_series(1, 300) n;
SELECT cardinality(metrics_report_batch(jsonb_agg('{"trial_id": 10}' || report ORDER BY n))) FROM report \gset
SELECT metrics_report(20, report ->> 'metric_group', report -> 'metrics', (report ->> 'steps_completed')::integer,
                      report_time => (report ->> 'report_time')::timestamptz) FROM report ORDER BY n \g /dev/null
SELECT set_eq($$SELECT metric_group, total_batches, end_time, metrics, trial_run_id, archived, partition_type FROM metrics WHERE trial_id = 10$$,
    $$SELECT metric_group, total_batches, end_time, metrics, trial_run_id, archived, partition_type FROM metrics WHERE trial_id = 20$$,
    'a batch and its reports one by one make the same rows');
SELECT is((SELECT to_jsonb(t) - '{id,latest_validation_id,best_validation_id}'::text[] FROM trials t WHERE id = 10),
          (SELECT to_jsonb(t) - '{id,latest_validation_id,best_validation_id}'::text[] FROM trials t WHERE id = 20), 'and the same trial');
SELECT helper.holds(10, 'which holds');

-- A rollback within a batch.
SELECT metrics_register_trial(30) \gset
SELECT metrics_report_batch('[{"trial_id": 30, "metric_group": "training", "metrics": {"a": 1}, "steps_completed": 1},
                              {"trial_id": 30, "metric_group": "training", "metrics": {"a": 2}, "steps_completed": 2}]') \gset
SELECT metrics_register_trial(30, 1) \gset
SELECT metrics_report_batch('[{"trial_id": 30, "metric_group": "inference", "metrics": {"a": 3}, "steps_completed": 1, "trial_run_id": 1},
                              {"trial_id": 30, "metric_group": "training", "metrics": {"a": 4}, "steps_completed": 1, "trial_run_id": 1},
                              {"trial_id": 30, "metric_group": "training", "metrics": {"a": 5}, "steps_completed": 2, "trial_run_id": 1}]') \gset
SELECT is((SELECT array_agg(total_batches ORDER BY total_batches) FROM raw_steps WHERE trial_id = 30 AND archived), '{1,2}', 'rollbacks in a batch archive');
SELECT helper.holds(30, 'and the trial holds');

-- All or nothing, and the error names its report.
CREATE FUNCTION helper.refuses_batch(second jsonb, state text, message_start text, description text, wants_hint boolean DEFAULT true) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    batch jsonb := jsonb_build_array('{"trial_id": 1, "metric_group": "training", "metrics": {"a": 1}, "steps_completed": 50}'::jsonb, second);
    statement text := format('SELECT metrics_report_batch(%L)', batch);
BEGIN
    RETURN NEXT helper.refuses(statement, state, message_start, description, wants_hint);
    RETURN NEXT alike(helper.error_context(statement), '%report 2 of the batch%', 'and its context names the report');
END $$;
SELECT helper.refuses_batch(report, state, message, description, state <> '22008') FROM (VALUES
    ('{"trial_id": 999, "metric_group": "training", "metrics": {}, "steps_completed": 1}'::jsonb, '23503', 'trial 999 does not exist', 'an unknown trial'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "trial_run_id": 3}', '22023', 'invalid run id, 3 (reported) != 0 (expected)', 'a wrong run'),
    ('{"trial_id": 1, "metric_group": "", "metrics": {}, "steps_completed": 1}', '22023', 'metric group cannot be empty', 'an empty group'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}}', '23502', 'steps_completed is required for metric group "training"', 'no steps'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {"a": 2}, "steps_completed": 1}', '23505', 'overwriting existing metric keys is not supported', 'a conflict'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {"a": 2}, "steps_completed": 50}', '23505', 'overwriting existing metric keys is not supported', 'a conflict within the batch'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {"epoch": "x"}, "steps_completed": 51}', '22023', $$cannot add metric with non numeric 'epoch' value got "x"$$, 'an epoch of text'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "colour": "red"}', '22023', '', 'an unknown key'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "report_time": "2024-01-01T00:00:00"}', '22007', '', 'a time without zone'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "report_time": "yesterday"}', '22007', '', 'a time in words'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "report_time": 1704067200}', '22023', '', 'a time as a number'),
    ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "report_time": "2024-02-30T00:00:00Z"}', '22008', '', 'a day that is none')
) v(report, state, message, description);

-- Elements of the wrong make.
CREATE FUNCTION helper.state_of(statement text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT ok(helper.state_of(format('SELECT metrics_report_batch(%L)', jsonb_build_array(report::jsonb))) ~ '^22', format('refused: %s', report))
FROM (VALUES ('1'), ('null'), ('[]'), ('{}'), ('{"trial_id": 1}'), ('{"metric_group": "cpu", "metrics": {}}'), ('{"trial_id": 1, "metrics": {}}'), ('{"trial_id": 1, "metric_group": "cpu"}'),
             ('{"trial_id": null, "metric_group": "cpu", "metrics": {}}'), ('{"trial_id": 1, "metric_group": null, "metrics": {}}'), ('{"trial_id": 1, "metric_group": "cpu", "metrics": null}'),
             ('{"trial_id": "1", "metric_group": "cpu", "metrics": {}}'), ('{"trial_id": 1.5, "metric_group": "cpu", "metrics": {}}'), ('{"trial_id": 3000000000, "metric_group": "cpu", "metrics": {}}'),
             ('{"trial_id": 1, "metric_group": 5, "metrics": {}}'), ('{"trial_id": 1, "metric_group": "cpu", "metrics": [1]}'),
             ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1.5}'), ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": "1"}'),
             ('{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 1, "batch_metrics": [1]}')) v(report);
SELECT helper.refuses(format('SELECT metrics_report_batch(%L)', b), '22023', '', format('a batch of %s is no array', b))
FROM unnest(ARRAY['{}', '1', '"a"', 'null']) b;
SELECT is(helper.trial_difference(t), NULL, format('after all of which trial %s holds', t)) FROM unnest(ARRAY[1, 2]) t;

-- Times in a batch, in the forms that isoformat() has.
CREATE FUNCTION helper.batch_time(report_time text) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    ids := metrics_report_batch(jsonb_build_array(jsonb_build_object('trial_id', 2, 'metric_group', 'cpu', 'metrics', '{}'::jsonb, 'report_time', report_time)));
    RETURN (SELECT end_time FROM metrics.metrics WHERE id = ids[1]);
END $$;
SELECT is(helper.batch_time(t), t::timestamptz, format('the time %s', t))
FROM (VALUES ('2024-02-29T13:04:49.388948-05:00'), ('2024-02-29T13:04:49-05:00'), ('2024-02-29T13:04:49Z'), ('2024-02-29T13:04:49.5+00:00'), ('0001-01-01T00:00:00+00:00')) v(t);
SET datestyle TO 'SQL, DMY';
SELECT is(helper.batch_time('2024-02-03T00:00:00Z'), make_timestamptz(2024, 2, 3, 0, 0, 0, 'UTC'), 'whatever the DateStyle');

SELECT * FROM finish();
ROLLBACK;
