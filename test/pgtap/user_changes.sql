-- The store is the user's: triggers, columns, names and owners of the user's
-- own, changed under a session that goes on reporting.
BEGIN;
\ir include/store.sql
SELECT plan(47);

SELECT metrics_register_trial(1, 0, 1, 'loss') \gset
SELECT metrics_report(1, g, '{"loss": 1}', 1) FROM unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g \g /dev/null

-- Triggers that change what is stored: the summary is that of what is stored.
CREATE FUNCTION helper.doubles() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    path text[] := CASE WHEN NEW.metric_group = 'validation' THEN '{validation_metrics,loss}' ELSE '{avg_metrics,loss}' END;
BEGIN
    IF NEW.metrics #> path IS NOT NULL AND NOT NEW.metrics ? 'doubled' THEN
        NEW.metrics := jsonb_set(NEW.metrics, path, to_jsonb(2 * (NEW.metrics #>> path)::numeric)) || '{"doubled": true}';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER doubles BEFORE INSERT OR UPDATE ON metrics FOR EACH ROW EXECUTE FUNCTION helper.doubles();
SELECT is((helper.report(1, 'training', '{"loss": 4}', 2)).metrics -> 'avg_metrics', '{"loss": 8}', 'a trigger changes what is stored');
SELECT helper.holds(1, 'and the summary follows');
SELECT is((helper.report(1, 'validation', '{"loss": 0.25}', 2)).metrics -> 'validation_metrics', '{"loss": 0.5}', 'of a validation too');
SELECT helper.holds(1, 'and so do the latest and the best validation');
SELECT is((helper.report(1, 'inference', '{"more": 3}', 1)).metrics -> 'avg_metrics', '{"loss": 2, "more": 3}', 'a trigger changes what a merge stores');
SELECT helper.holds(1, 'and the summary follows');
DROP TRIGGER doubles ON metrics;
SELECT metrics_recompute_summary(1) \gset

-- Triggers that move a report elsewhere in time, run or trial are followed too.
CREATE FUNCTION helper.backdates() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.end_time := '2001-01-01 00:00+00';
    RETURN NEW;
END $$;
CREATE TRIGGER backdates BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION helper.backdates();
SELECT metrics_report(1, 'training', '{"loss": 7}', 3), metrics_report(1, 'validation', '{"loss": 7}', 3) \g /dev/null
SELECT helper.holds(1, 'a trigger that sets the time decides which row is the last');
DROP TRIGGER backdates ON metrics;
SELECT metrics_recompute_summary(1) \gset

-- Triggers that suppress: the report returns NULL and changes nothing.
CREATE FUNCTION helper.suppresses() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TEMP TABLE before AS SELECT helper.state() AS state;
CREATE TRIGGER suppresses BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION helper.suppresses();
SELECT is(metrics_report(1, g, '{"loss": 9}', 9), NULL, 'a suppressed report returns NULL: ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference', 'fresh', 'cpu']) g;
SELECT is(metrics_report_batch('[{"trial_id": 1, "metric_group": "training", "metrics": {"loss": 9}, "steps_completed": 9},
                                 {"trial_id": 1, "metric_group": "cpu", "metrics": {"loss": 9}}]'), '{NULL,NULL}', 'in a batch too');
SELECT is(helper.state(), (SELECT state FROM before), 'and nothing is changed');
DROP TRIGGER suppresses ON metrics;
CREATE TRIGGER suppresses BEFORE UPDATE ON metrics FOR EACH ROW EXECUTE FUNCTION helper.suppresses();
SELECT is(metrics_report(1, g, '{"other": 9}', 1), NULL, 'a suppressed merge returns NULL: ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference']) g;
SELECT is(helper.state(), (SELECT state FROM before), 'and nothing is changed');
-- A row that a trigger does not let be archived stays, and stays in the summary.
SELECT metrics_register_trial(1, 1) \gset
SELECT metrics_report(1, 'training', '{"loss": 5}', 2, 1) \gset
SELECT is((SELECT count(*)::int FROM metrics WHERE archived), 0, 'a trigger can keep rows from being archived');
SELECT helper.holds(1, 'and the trial holds');
DROP TRIGGER suppresses ON metrics;
DELETE FROM metrics WHERE trial_run_id = 1;
SELECT metrics_recompute_summary(1) \gset
-- A suppressed report has archived nothing either.
CREATE TRIGGER suppresses BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION helper.suppresses();
TRUNCATE before;
INSERT INTO before SELECT helper.state();
SELECT is(metrics_report(1, 'training', '{"loss": 9}', 1, 1), NULL, 'a suppressed report of a later run returns NULL');
SELECT is(helper.state(), (SELECT state FROM before), 'and has archived nothing');
DROP TRIGGER suppresses ON metrics;

-- A trigger that itself reports to the same trial: no update is lost.
SELECT metrics_register_trial(2, 0, 1, 'loss') \gset
CREATE FUNCTION helper.derives() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.metric_group = 'training' THEN
        PERFORM metrics_report(NEW.trial_id, 'derived', jsonb_build_object('half', (NEW.metrics #>> '{avg_metrics,loss}')::numeric / 2), NEW.total_batches);
        PERFORM metrics_report(NEW.trial_id, 'validation', NEW.metrics -> 'avg_metrics', NEW.total_batches + 100);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER derives AFTER INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION helper.derives();
SELECT lives_ok(format($$SELECT metrics_report(2, 'training', '{"loss": %s}', %s)$$, 10 - n, n), 'a report whose trigger reports') FROM generate_series(1, 3) n;
SELECT is((SELECT count(*)::int FROM metrics WHERE trial_id = 2), 9, 'stores all of them');
SELECT helper.holds(2, 'and the trial holds');
SELECT lives_ok($$SELECT metrics_report_batch('[{"trial_id": 2, "metric_group": "training", "metrics": {"loss": 3}, "steps_completed": 11},
    {"trial_id": 2, "metric_group": "training", "metrics": {"loss": 2}, "steps_completed": 12}]')$$, 'a batch whose trigger reports');
SELECT helper.holds(2, 'holds as well');
DROP TRIGGER derives ON metrics;
SELECT metrics_recompute_summary(2) \gset

-- Columns, names, owners.
ALTER TABLE metrics ADD COLUMN note text DEFAULT 'none';
ALTER TABLE trials ADD COLUMN note text;
SELECT is((helper.report(2, 'training', '{"loss": 1}', 20)).note, 'none', 'a column of the user''s own has its default');
SELECT is((helper.report(2, 'training', '{"b": 1}', 20)).metrics -> 'avg_metrics', '{"b": 1, "loss": 1}', 'and merges go on');
SELECT lives_ok('SELECT * FROM metrics_rows(2), metrics_timeseries(2, $$training$$, $$loss$$), metrics_profiling_rows(1, $$cpu$$)', 'as do readers');
CREATE INDEX ON metrics (end_time);
SELECT lives_ok($$SELECT metrics_report(2, 'training', '{"loss": 1}', 21)$$, 'an index of the user''s own');
ALTER SCHEMA metrics RENAME TO moved;
SELECT lives_ok(format($$SELECT metrics_report(2, %L, '{"loss": 1}', 22)$$, g), 'the schema has another name: a report of group ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g;
SELECT is((SELECT array_agg(group_name ORDER BY id) FROM metrics_rows(2, NULL, 21) WHERE total_batches = 22), '{training,validation,inference}', 'and what reads it');
ALTER SCHEMA moved RENAME TO metrics;
SELECT helper.holds(2, 'and the trial holds');
DISCARD PLANS;
SELECT lives_ok($$SELECT metrics_report(2, 'training', '{"loss": 1}', 23)$$, 'plans are made again when they are discarded');

-- Readers write nothing: they work where nothing can be written.
SELECT is(helper.read_only('SELECT * FROM ' || r), 'ok', 'in a read-only transaction: ' || r)
FROM unnest(ARRAY[$$metrics_rows(2)$$, $$metrics_timeseries(2, 'training', 'loss')$$, $$metrics_trials_snapshot(1, 'training', 'loss', 1)$$, $$metrics_names(1)$$,
                  $$metrics_best_trial(1)$$, $$metrics_profiling_rows(1, 'cpu')$$, $$metrics_profiling_series(1)$$]) r;

SELECT * FROM finish();
ROLLBACK;
