-- Triggers of the user's that do not let a trial or its state be saved: what a
-- report or a recompute does then ends, and what is stored afterwards can be
-- brought right again.
BEGIN;
\ir include/store.sql
SELECT plan(72);
SET LOCAL statement_timeout TO '10s';

CREATE FUNCTION helper.suppresses() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE FUNCTION helper.keeps_old() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN OLD; END$$;

-- A trial of two runs, whose next report would archive rows, and whose summary
-- is not that of its rows.
CREATE FUNCTION helper.prepare(trial integer) RETURNS void
LANGUAGE sql AS $$
    SELECT metrics_register_trial(trial, 0, 1, 'loss');
    SELECT metrics_report(trial, g, jsonb_build_object('loss', s), s) FROM unnest(ARRAY['training', 'validation', 'inference']) g, generate_series(1, 3) s;
    SELECT metrics_register_trial(trial, 1);
    INSERT INTO metrics.metrics (trial_id, total_batches, trial_run_id, metric_group, partition_type, metrics)
    VALUES (trial, 1, 1, 'by hand', 'GENERIC', '{"avg_metrics": {"loss": 1}}');
$$;
CREATE SEQUENCE helper.trial;

-- Run a statement under a trigger; then, without the trigger, the trial has to
-- come right.
CREATE FUNCTION helper.ends(relation text, function text, statement text, prepared boolean) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    trial integer := nextval('helper.trial');
BEGIN
    PERFORM helper.prepare(trial);
    IF NOT prepared THEN
        DELETE FROM metrics.metrics_trial_state WHERE trial_id = trial;
    END IF;
    EXECUTE format('CREATE TRIGGER suppresses BEFORE UPDATE ON metrics.%I FOR EACH ROW EXECUTE FUNCTION %s()', relation, function);
    RETURN NEXT lives_ok(format(statement, trial), format('%s on %s%s: %s', function, relation, CASE WHEN NOT prepared THEN ' without a state' ELSE '' END, regexp_replace(statement, '\s+', ' ', 'g')));
    EXECUTE format('DROP TRIGGER suppresses ON metrics.%I', relation);
    PERFORM metrics_recompute_summary(trial);
    RETURN NEXT helper.holds(trial, 'and a recompute makes up for it');
END $$;
SELECT helper.ends(r, f, s, true)
FROM unnest(ARRAY['trials', 'metrics_trial_state']) r,
     unnest(ARRAY['helper.suppresses', 'helper.keeps_old', 'suppress_redundant_updates_trigger']) f,
     unnest(ARRAY['SELECT metrics_recompute_summary(%s)',
                  $s$SELECT metrics_report(%s, 'validation', '{"loss": 9}', 2, 1)$s$,
                  $s$SELECT metrics_report_batch(jsonb_agg(jsonb_build_object('trial_id', %s, 'metric_group', 'training', 'metrics', '{"loss": 9}'::jsonb,
                                                                               'steps_completed', s, 'trial_run_id', 1))) FROM generate_series(2, 5) s$s$,
                  $s$SELECT metrics_register_trial(%s, 1, 1, 'other', false)$s$]) s;
SELECT helper.ends('trials', f, s, false)
FROM unnest(ARRAY['helper.suppresses', 'helper.keeps_old', 'suppress_redundant_updates_trigger']) f,
     unnest(ARRAY['SELECT metrics_recompute_summary(%s)', $s$SELECT metrics_report(%s, 'validation', '{"loss": 9}', 2, 1)$s$]) s;

-- Twice the same changes nothing, which suppress_redundant_updates_trigger()
-- then suppresses.
SELECT helper.prepare(1000) \gset
CREATE TRIGGER suppresses BEFORE UPDATE ON trials FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER suppresses BEFORE UPDATE ON metrics_trial_state FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT is(helper.summary_difference(metrics_recompute_summary(1000), helper.expected_summary(1000)), NULL, 'a recompute of what is right already, ' || n) FROM generate_series(1, 3) n;
SELECT lives_ok($$SELECT metrics_report(1000, 'training', '{"loss": 3}', 3, 1)$$, 'the same report, ' || n) FROM generate_series(1, 3) n;
SELECT helper.holds(1000, 'and the trial holds');
DROP TRIGGER suppresses ON trials;
DROP TRIGGER suppresses ON metrics_trial_state;

-- No row can be inserted either.
SELECT metrics_register_trial(1001, 0, 1, 'loss') \gset
CREATE TRIGGER suppresses BEFORE INSERT ON metrics_trial_state FOR EACH ROW EXECUTE FUNCTION helper.suppresses();
SELECT lives_ok($$SELECT metrics_report(1001, 'training', '{"loss": 1}', 1)$$, 'a state that cannot be inserted');
SELECT lives_ok($$SELECT metrics_report(1001, 'training', '{"loss": 2}', 2)$$, 'nor for the next report');
SELECT helper.holds(1001, 'whose trial holds');
CREATE TRIGGER suppresses BEFORE INSERT ON trials FOR EACH ROW EXECUTE FUNCTION helper.suppresses();
SELECT lives_ok($$SELECT metrics_register_trial(1002)$$, 'a trial that cannot be inserted');
SELECT throws_ok($$SELECT metrics_report(1002, 'training', '{"loss": 2}', 2)$$, '23503', NULL, 'is not there');

SELECT * FROM finish();
ROLLBACK;
