-- What a batch does to trials: it reads and saves each of them once, however
-- many reports of it there are, and comes to what the rows say whatever is in
-- between.
BEGIN;
\ir include/store.sql
SELECT plan(58);

-- Versions of rows that a statement makes of trials and their states, and rows
-- that it reads of them. The counters of a transaction are exact.
CREATE FUNCTION helper.trial_writes(OUT updated bigint, OUT fetched bigint)
LANGUAGE sql VOLATILE AS $$
    SELECT sum(n_tup_upd + n_tup_ins)::bigint, sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint
    FROM pg_stat_xact_user_tables WHERE schemaname = 'metrics' AND relname IN ('trials', 'metrics_trial_state')
$$;
CREATE FUNCTION helper.reports(first_trial integer, trials integer, reports integer, run integer, first_step integer) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_agg(jsonb_build_object('trial_id', first_trial + n % trials, 'trial_run_id', run, 'steps_completed', first_step + n / trials,
        'metric_group', (ARRAY['training', 'validation', 'inference'])[1 + n % 3], 'metrics', jsonb_build_object('loss', n % 17, 'm' || n % 5, n)) ORDER BY n)
    FROM generate_series(0, reports - 1) n
$$;
CREATE FUNCTION helper.saves(reports jsonb, OUT updated bigint, OUT fetched bigint)
LANGUAGE plpgsql AS $$
DECLARE
    before record := helper.trial_writes();
    after record;
BEGIN
    PERFORM metrics_report_batch(reports);
    after := helper.trial_writes();
    updated := after.updated - before.updated;
    fetched := after.fetched - before.fetched;
END $$;

SELECT metrics_register_trial(t, 0, 1, 'loss') FROM generate_series(1, 20) t \g /dev/null
SELECT metrics_report(t, 'training', '{"loss": 1}', 0) FROM generate_series(1, 20) t \g /dev/null
SELECT is((SELECT updated FROM helper.saves(helper.reports(1, 1, n, 0, n))), 2::bigint,
    format('a batch of %s reports of a trial saves it and its state once', n)) FROM unnest(ARRAY[1, 10, 1000]) n;
SELECT is((SELECT updated FROM helper.saves(helper.reports(2, 19, 190, 0, 1))), 38::bigint, 'and one of nineteen trials each of them');
SELECT metrics_report_batch(helper.reports(1, 1, 10, 0, 3000)) \gset
SELECT is((SELECT updated FROM helper.saves(helper.reports(1, 1, 10, 0, 3000))), 0::bigint, 'a batch of what was reported before saves nothing');
SELECT is((SELECT updated FROM helper.saves(
    '[{"trial_id": 1, "metric_group": "cpu", "metrics": {"u": 1}}, {"trial_id": 2, "metric_group": "gpu", "metrics": {"u": 1}, "steps_completed": 1}]')), 0::bigint,
    'nor does one of profiling');

-- Pages that a batch reads grow with the reports, not with their square: what a
-- thousand read is about ten times what a hundred read.
CREATE TEMP TABLE cost AS SELECT n, (helper.saves(helper.reports(1, 1, n, 0, n * 100))).fetched AS fetched FROM unnest(ARRAY[100, 1000]) n;
SELECT cmp_ok((SELECT fetched FROM cost WHERE n = 1000), '<=', 12 * (SELECT fetched FROM cost WHERE n = 100) + 100, 'rows of trials that a thousand reports read');
SELECT is(helper.trial_difference(t), NULL, format('and trial %s holds', t)) FROM generate_series(1, 20) t WHERE t IN (1, 2, 11, 20);

-- A later run: roll-backs, merges and validations of several trials, mixed.
SELECT metrics_register_trial(t, 1) FROM generate_series(2, 6) t \g /dev/null
SELECT lives_ok($$SELECT metrics_report_batch(helper.reports(2, 5, 60, 1, 4) || helper.reports(2, 5, 30, 1, 2)
    || (SELECT jsonb_agg(jsonb_build_object('trial_id', 2 + n % 5, 'trial_run_id', 1, 'steps_completed', 4 + n / 5,
            'metric_group', (ARRAY['training', 'validation', 'inference'])[1 + n % 3], 'metrics', jsonb_build_object('merged', -n)) ORDER BY n DESC) FROM generate_series(0, 59) n))$$,
    'a batch of roll-backs and merges');
SELECT cmp_ok((SELECT count(*) FROM metrics WHERE archived), '>', 0::bigint, 'archives');
SELECT is(helper.trial_difference(t), NULL, format('and trial %s holds', t)) FROM generate_series(2, 6) t;
-- A report of a trial by itself afterwards goes on from there.
SELECT metrics_report(2, 'validation', '{"loss": -5}', 50, 1) \gset
SELECT helper.holds(2, 'and so does the next report');

-- All or nothing, however late the error.
SELECT helper.refuses(format('SELECT metrics_report_batch(%L)', helper.reports(3, 3, 60, 1, 900) || bad), state, '', 'a batch that fails at its end: ' || (bad ->> 'steps_completed'))
FROM (VALUES ('{"trial_id": 404, "metric_group": "training", "metrics": {}, "steps_completed": 991}'::jsonb, '23503'),
             ('{"trial_id": 3, "metric_group": "training", "metrics": {}, "steps_completed": 992, "trial_run_id": 0}', '22023'),
             ('{"trial_id": 4, "metric_group": "validation", "metrics": {"loss": "x"}, "steps_completed": 993, "trial_run_id": 1}', '22P02'),
             ('{"trial_id": 5, "metric_group": "training", "metrics": {"m": 1e400}, "steps_completed": 994, "trial_run_id": 1}', '22003')) v(bad, state);
SELECT metrics_report(t, 'training', '{"loss": 3}', 60, 1) FROM generate_series(3, 5) t \g /dev/null
SELECT is(helper.trial_difference(t), NULL, format('after which trial %s goes on', t)) FROM generate_series(3, 5) t;

-- Triggers that report to the same trial, or change it, in the middle.
SELECT metrics_register_trial(t, 0, 2, 'loss') FROM generate_series(30, 33) t \g /dev/null
CREATE FUNCTION helper.interferes() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.metric_group = 'derived' THEN
        RETURN NULL;
    END IF;
    CASE TG_ARGV[0]
    WHEN 'report' THEN
        PERFORM metrics_report(NEW.trial_id, 'derived', '{"loss": 1}', NEW.total_batches, NEW.trial_run_id);
    WHEN 'batch' THEN
        PERFORM metrics_report_batch(jsonb_build_array(jsonb_build_object('trial_id', 30 + (NEW.trial_id - 29) % 4, 'metric_group', 'derived', 'metrics', '{"loss": 1}'::jsonb,
            'steps_completed', 100000 + NEW.id, 'trial_run_id', NEW.trial_run_id)));
    WHEN 'recompute' THEN
        PERFORM metrics_recompute_summary(NEW.trial_id);
    WHEN 'register' THEN
        PERFORM metrics_register_trial(NEW.trial_id, NEW.trial_run_id, NULL, CASE WHEN NEW.total_batches % 2 = 0 THEN 'loss' ELSE 'm1' END, NEW.total_batches % 2 = 0);
    WHEN 'delete' THEN
        DELETE FROM metrics.metrics WHERE trial_id = NEW.trial_id AND total_batches < NEW.total_batches - 3;
        PERFORM metrics_recompute_summary(NEW.trial_id);
    WHEN 'touch' THEN
        UPDATE metrics.trials SET experiment_id = experiment_id WHERE id = NEW.trial_id;
    WHEN 'touch state' THEN
        UPDATE metrics.metrics_trial_state SET run_id = run_id WHERE trial_id = NEW.trial_id;
    WHEN 'delete state' THEN
        DELETE FROM metrics.metrics_trial_state WHERE trial_id = NEW.trial_id;
    END CASE;
    RETURN NULL;
END $$;
CREATE FUNCTION helper.interfered(how text, first_step integer) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER interferes AFTER INSERT ON metrics.metrics FOR EACH ROW EXECUTE FUNCTION helper.interferes(%L)', how);
    RETURN NEXT lives_ok(format('SELECT metrics_report_batch(helper.reports(30, 4, 48, 0, %s))', first_step), 'a batch amid which a trigger does: ' || how);
    RETURN NEXT is((SELECT string_agg(t || ': ' || helper.trial_difference(t), E'\n') FROM generate_series(30, 33) t), NULL, 'and its trials hold');
    RETURN NEXT lives_ok(format($s$SELECT metrics_report(30, g, jsonb_build_object('loss', n, 'n' || n, n), %s + n) FROM unnest(ARRAY['training', 'validation', 'inference']) g, generate_series(1, 3) n$s$, first_step + 50),
        'reports by themselves');
    RETURN NEXT is(helper.trial_difference(30), NULL, 'and the trial holds');
    DROP TRIGGER interferes ON metrics.metrics;
    PERFORM metrics_recompute_summary(t) FROM generate_series(30, 33) t;
END $$;
SELECT helper.interfered(how, 100 * n::integer) FROM unnest(ARRAY['report', 'batch', 'recompute', 'register', 'delete', 'touch', 'touch state', 'delete state']) WITH ORDINALITY v(how, n);

SELECT * FROM finish();
ROLLBACK;
