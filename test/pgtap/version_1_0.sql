-- Version 1.0, the layout before the source document's change: its reports
-- have the final signature, and refuse what came later with a hint.
BEGIN;
SET client_min_messages TO warning;
CREATE EXTENSION metrics_ext VERSION '1.0';
SELECT plan(26);
SELECT metrics_create_store() \gset
SET search_path TO metrics, metrics_bi, public;

SELECT has_enum('metrics', 'metric_partition_type', 'the partition key is an enum');
SELECT enum_has_labels('metrics', 'metric_partition_type', '{VALIDATION,TRAINING,GENERIC}', 'of three labels');
SELECT is((SELECT array_agg(inhrelid::regclass::text ORDER BY inhrelid::regclass::text COLLATE "C") FROM pg_inherits WHERE inhparent = 'metrics'::regclass),
    '{generic_metrics,raw_steps,raw_validations}', 'there are three partitions');
SELECT col_not_null('metrics', 'metrics', 'total_batches', 'total_batches is NOT NULL on the parent');
SELECT col_default_is('metrics', 'metrics', 'total_batches', '0', 'with the default 0');
SELECT is((SELECT array_agg(version) FROM metrics_layout), '{1.0}', 'the store says so');
SELECT hasnt_function('public', 'metrics_profiling_rows', 'there is no reader of profiling');

CREATE FUNCTION refuses_later(statement text, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    state text := 'no error';
    hint text := '';
BEGIN
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
    END;
    RETURN is(state || ' ' || (hint ~* 'update'), '0A000 true', description);
END $$;
SELECT metrics_register_trial(1, 0, 1, 'loss') \gset
SELECT refuses_later(format($$SELECT metrics_report(1, %L, '{}')$$, g), format('group %s is refused, with a hint', g)) FROM unnest(ARRAY['cpu', 'gpu', 'memory', 'disk', 'network']) g;
SELECT refuses_later(format($$SELECT metrics_report(1, %L, '{}', 1, report_time => '2024-01-01 00:00+00')$$, g), format('and so is a report time, group %s', g))
FROM unnest(ARRAY['training', 'validation', 'inference']) g;
SELECT is((SELECT count(*)::int FROM metrics), 0, 'nothing is stored');

SELECT metrics_report(1, g, '{"loss": 1}', 1) FROM unnest(ARRAY['training', 'validation', 'inference']) g \g /dev/null
SELECT results_eq($$SELECT partition_type::text, metric_group, total_batches, metrics FROM metrics ORDER BY id$$,
    $$VALUES ('TRAINING', 'training', 1, '{"avg_metrics": {"loss": 1}, "batch_metrics": null}'::jsonb), ('VALIDATION', 'validation', 1, '{"validation_metrics": {"loss": 1}}'),
             ('GENERIC', 'inference', 1, '{"avg_metrics": {"loss": 1}, "batch_metrics": null}')$$, 'the other reports are stored');
SELECT metrics_report(1, 'training', '{"acc": 2}', 1) \gset
SELECT is((SELECT metrics -> 'avg_metrics' FROM raw_steps), '{"acc": 2, "loss": 1}', 'and merged');
SELECT is((SELECT summary_metrics -> 'avg_metrics' -> 'acc' ->> 'count' FROM trials), '1', 'and summarised');
SELECT metrics_register_trial(1, 1) \gset
SELECT metrics_report(1, 'validation', '{"loss": 1}', 1, 1) \gset
SELECT is((SELECT count(*)::int FROM metrics WHERE archived), 1, 'and rolled back');
SELECT is((SELECT count(*)::int FROM metrics_rows(1)), 3, 'and read');
SELECT is((SELECT count(*)::int FROM metrics_timeseries(1, 'training', 'loss')), 1, 'as a series');
SELECT lives_ok('SELECT metrics_populate(1, 5)', 'and there is sample data');

ALTER EXTENSION metrics_ext UPDATE;
SELECT is((SELECT array_agg(version) FROM metrics_layout), (SELECT ARRAY[default_version] FROM pg_available_extensions WHERE name = 'metrics_ext'), 'the update brings the store along');
SELECT lives_ok($$SELECT metrics_report(1, 'cpu', '{"u": 1}', trial_run_id => 1, report_time => '2024-01-01 00:00+00')$$, 'in this session too');
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"loss": 2}', 2, 1, '2024-01-01 00:00+00')$$, 'with report times');

SELECT * FROM finish();
ROLLBACK;
