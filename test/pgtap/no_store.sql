-- Without a store, and with one too many.
BEGIN;
SET client_min_messages TO warning;
CREATE EXTENSION metrics_ext;
SELECT * FROM no_plan();

CREATE FUNCTION no_store(statement text) RETURNS text
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
    RETURN is(state || ' ' || (strpos(hint, 'metrics_create_store(') > 0), '55000 true', 'no store: ' || statement);
END $$;
SELECT no_store('SELECT * FROM ' || f) FROM unnest(ARRAY[
    $$metrics_register_trial(1)$$, $$metrics_report(1, 'training', '{}', 1)$$, $$metrics_report(1, 'cpu', '{}')$$,
    $$metrics_report_batch('[{"trial_id": 1, "metric_group": "cpu", "metrics": {}}]')$$, $$metrics_recompute_summary(1)$$, $$metrics_populate(1, 1)$$,
    $$metrics_grant(current_user, 'reader')$$, $$metrics_rows(1)$$, $$metrics_timeseries(1, 'training', 'a')$$,
    $$metrics_trials_snapshot(1, 'training', 'a', 1)$$, $$metrics_names(1)$$, $$metrics_best_trial(1)$$,
    $$metrics_profiling_rows(1, 'cpu')$$, $$metrics_profiling_series(1)$$, $$metrics_route_group('a')$$, $$metrics_unroute_group('a')$$,
    $$metrics_start_run()$$, $$metrics_finish_run('r')$$, $$metrics_fail_run('r')$$, $$metrics_start_stage('r', 's')$$, $$metrics_finish_stage('r', 's')$$,
    $$metrics_report_operator('r', 's', 'o', 'w', 1, 1, 1)$$, $$metrics_report_operators('[]')$$, $$metrics_list_runs()$$, $$metrics_drop_runs(now())$$,
    $$metrics_partition_by_time('pg_class', '1 day')$$, $$metrics_operator_percentiles('1 day')$$]) f;
SELECT is_empty('SELECT * FROM metrics_pending_keys', 'without a store nothing waits');
SELECT is(metrics_upgrade_store(), NULL, 'without a store there is nothing to upgrade');

SELECT is(metrics_create_store()::text, 'metrics.metrics', 'a store');
SELECT is(metrics_create_store()::text, 'metrics.metrics', 'metrics_create_store() again registers the same');
SELECT is((SELECT count(*)::int FROM metrics_store), 1, 'once');
SELECT throws_ok($$SELECT metrics_create_store('elsewhere')$$, '42710', NULL, 'a second store is refused');
SELECT hasnt_schema('elsewhere', 'and its schema is not made');
SELECT metrics_register_trial(1) \gset
SELECT metrics_report(1, 'training', '{"a": 1}', 1) AS before \gset
SELECT is(metrics_create_store()::text, 'metrics.metrics', 'metrics_create_store() on a store in use');
SELECT is((SELECT metrics FROM metrics.metrics WHERE id = :before), '{"avg_metrics": {"a": 1}, "batch_metrics": null}', 'keeps its rows');
SELECT cmp_ok(metrics_report(1, 'training', '{"a": 1}', 2), '>', :before::bigint, 'and its ids go on');

-- The extension goes, the store stays: all of it the user's.
DROP EXTENSION metrics_ext CASCADE;
SELECT is((SELECT count(*)::int FROM metrics.metrics), 2, 'DROP EXTENSION CASCADE keeps the rows');
CREATE EXTENSION metrics_ext;
SELECT no_store($$SELECT * FROM metrics_report(1, 'training', '{"b": 1}', 3)$$);
SELECT is(metrics_create_store()::text, 'metrics.metrics', 'metrics_create_store() takes the store up again');
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"a": 2}', 3)$$, 'and reports go on, in the same session');
SELECT is((SELECT summary_metrics #>> '{avg_metrics,a,count}' FROM metrics.trials WHERE id = 1), '3', 'from the summary they left');

SELECT * FROM finish();
ROLLBACK;
