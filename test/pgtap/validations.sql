-- The latest and the best validation of a trial, the best trial of an
-- experiment: B25 and B26.
BEGIN;
\ir include/store.sql
SELECT plan(55);

-- Which batches the latest and the best validation are at, and its value.
CREATE FUNCTION helper.validations(trial integer, OUT latest integer, OUT best integer, OUT value float8, OUT signed float8)
LANGUAGE sql STABLE AS $$
    SELECT (SELECT total_batches FROM metrics.raw_validations v WHERE v.id = t.latest_validation_id),
           (SELECT total_batches FROM metrics.raw_validations v WHERE v.id = t.best_validation_id),
           t.searcher_metric_value, t.searcher_metric_value_signed
    FROM metrics.trials t WHERE t.id = trial
$$;
CREATE FUNCTION helper.validate(trial integer, steps integer, metrics jsonb, want text, description text, run integer DEFAULT 0,
                                report_time timestamptz DEFAULT NULL)
RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metrics_report(trial, 'validation', metrics, steps, run, report_time);
    RETURN NEXT is(helper.validations(trial)::text, want, description);
    RETURN NEXT helper.holds(trial, 'and the trial holds');
END $$;

-- B25
SELECT metrics_register_trial(1, 0, 5, 'loss') \gset
SELECT metrics_report(1, 'training', '{"loss": 0}', 1) \gset
SELECT is(helper.validations(1)::text, '(,,,)', 'B25: training alone has no latest validation');
SELECT metrics_report(1, 'inference', '{"loss": 0}', 1) \gset
SELECT is(helper.validations(1)::text, '(,,,)', 'B25: nor has any other group');
SELECT helper.validate(1, 1, '{"accuracy": 1}', '(,,,)', 'B25, B26: without the searcher metric a validation is neither latest nor best');
SELECT helper.validate(1, 2, '{"loss": null}', '(,,,)', 'B25, B26: nor with null for it');
SELECT helper.validate(1, 3, '{"loss": 3}', '(3,3,3,3)', 'B25: with it it is both');
SELECT helper.validate(1, 4, '{"accuracy": 2}', '(3,3,3,3)', 'B25: a later one without it changes neither');
SELECT helper.validate(1, 5, '{"loss": "NaN"}', '(5,3,3,3)', 'B26: NaN is the latest, not the best');
SELECT helper.validate(1, 6, '{"loss": "-Infinity"}', '(6,6,-Infinity,-Infinity)', 'B26: -Infinity is the best');
SELECT helper.validate(1, 7, '{}', '(6,6,-Infinity,-Infinity)', 'B26: absent is not');
SELECT helper.validate(1, 8, '{"loss": 1}', '(8,6,-Infinity,-Infinity)', 'B26: nor is a later number');
SELECT helper.validate(1, 9, '{"loss": 1}', '(8,6,-Infinity,-Infinity)', 'the latest is that of the greatest end_time', 0, '2020-01-01 00:00:00+00');

-- B26, larger is better
SELECT metrics_register_trial(2, 0, 5, 'acc', false) \gset
SELECT helper.validate(2, 1, '{"acc": "NaN"}', '(1,1,NaN,NaN)', 'B26: NaN is the best while it is the only one');
SELECT helper.validate(2, 2, '{"acc": "-Infinity"}', '(2,2,-Infinity,Infinity)', 'B26: and loses to -Infinity where larger is better');
SELECT helper.validate(2, 3, '{"acc": 0.5}', '(3,3,0.5,-0.5)', 'B26: which loses to a number');
SELECT helper.validate(2, 4, '{"acc": 0.4}', '(4,3,0.5,-0.5)', 'B26: a smaller number loses');
SELECT helper.validate(2, 5, '{"acc": 0.5}', '(5,3,0.5,-0.5)', 'B26: of equals the first stays');
SELECT helper.validate(2, 6, '{"acc": "Infinity"}', '(6,6,Infinity,-Infinity)', 'B26: Infinity wins');

-- Without a searcher metric
SELECT metrics_register_trial(3) \gset
SELECT helper.validate(3, 1, '{"loss": 1, "": 1, "null": 1}', '(,,,)', 'a trial without a searcher metric has neither');

-- Rollbacks: both are looked for again, whichever group reports.
SELECT metrics_register_trial(4, 0, 6, 'loss') \gset
SELECT metrics_report(4, 'validation', jsonb_build_object('loss', l), b, report_time => '2024-01-01 00:00:00+00'::timestamptz + b * interval '1 second')
FROM (VALUES (1, 5), (2, 3), (3, 4), (4, 1), (5, 2)) v(b, l) \g /dev/null
SELECT is(helper.validations(4)::text, '(5,4,1,1)', 'five validations');
SELECT metrics_register_trial(4, 1) \gset
SELECT metrics_report(4, 'training', '{"loss": 9}', 3, 1) \gset
SELECT is(helper.validations(4)::text, '(3,2,3,3)', 'B25: a rollback by a training report looks for both among what is left');
SELECT helper.holds(4, 'and the trial holds');
SELECT helper.validate(4, 2, '{"loss": 8}', '(2,1,5,5)', 'B25: so does one by a validation that archives the best', 1);
SELECT metrics_register_trial(4, 2) \gset
SELECT metrics_report(4, 'inference', '{"loss": 9}', 0, 2) \gset
SELECT is(helper.validations(4)::text, '(,,,)', 'B25: when none is left there is none');
SELECT helper.holds(4, 'and the trial holds');

-- Another searcher metric, or direction, is another question.
SELECT metrics_register_trial(5, 0, 7, 'loss') \gset
SELECT metrics_report(5, 'validation', m::jsonb, b) FROM (VALUES (1, '{"loss": 1, "acc": 7}'), (2, '{"loss": 2, "acc": 9}'), (3, '{"loss": 3}')) v(b, m) \g /dev/null
SELECT is(helper.validations(5)::text, '(3,1,1,1)', 'by loss');
SELECT metrics_register_trial(5, 0, NULL, 'loss', false) \gset
SELECT helper.holds(5, 'registered again, as larger is better, the trial holds');
SELECT is(helper.validations(5)::text, '(3,3,3,-3)', 'and its best is another');
SELECT metrics_register_trial(5) \gset
SELECT is(helper.validations(5)::text, '(3,3,3,-3)', 'registered by its id alone it keeps its direction');
SELECT metrics_register_trial(5, 0, NULL, 'acc', false) \gset
SELECT helper.holds(5, 'registered again, by another metric, the trial holds');
SELECT is(helper.validations(5)::text, '(2,2,9,-9)', 'and both are others');
SELECT is((SELECT ROW(experiment_id, searcher_metric, smaller_is_better, run_id)::text FROM trials WHERE id = 5), '(7,acc,f,0)',
    'NULL keeps what is registered');

-- B26: the best trial of an experiment.
SELECT is(metrics_best_trial(5), 1, 'B26: the best trial has the smallest signed value');
SELECT metrics_register_trial(6, 0, 5, 'loss') \gset
SELECT metrics_report(6, 'validation', '{"loss": "-Infinity"}', 1) \gset
SELECT is(metrics_best_trial(5), 1, 'B26: of equals the lower id');
SELECT metrics_register_trial(1, 1) \gset
SELECT metrics_report(1, 'training', '{}', 3, 1) \gset
SELECT is(metrics_best_trial(5), 2, 'B26: it follows a rollback');
SELECT metrics_register_trial(11, 0, 8, 'loss') \gset
SELECT metrics_register_trial(12, 0, 8, 'loss') \gset
SELECT is(metrics_best_trial(8), NULL, 'trials without a value are not the best');
SELECT metrics_report(11, 'validation', '{"loss": "NaN"}', 1) \gset
SELECT is(metrics_best_trial(8), 11, 'NaN is, while it is the only one');
SELECT metrics_report(12, 'validation', '{"loss": "Infinity"}', 1) \gset
SELECT is(metrics_best_trial(8), 12, 'and is last of all values');
SELECT is(metrics_best_trial(404), NULL, 'an unknown experiment has none');

SELECT * FROM finish();
ROLLBACK;
