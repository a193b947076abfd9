-- What metrics_grant() gives, and to whom. Logins of their own are in
-- test/t/001_clients.pl.
BEGIN;
\ir include/store.sql
SELECT plan(43);

CREATE ROLE metrics_test_reader;
CREATE ROLE metrics_test_writer;
CREATE ROLE metrics_test_nobody;
GRANT USAGE ON SCHEMA helper TO PUBLIC;
SELECT metrics_register_trial(1, 0, 1, 'loss') \gset
SELECT metrics_report(1, g, '{"loss": 1}', 1) FROM unnest(ARRAY['training', 'validation', 'cpu']) g \g /dev/null
SELECT lives_ok($$SELECT metrics_grant('metrics_test_reader', 'reader')$$, 'grant a reader');
SELECT lives_ok($$SELECT metrics_grant('metrics_test_writer', 'writer')$$, 'grant a writer');
SELECT lives_ok($$SELECT metrics_grant('metrics_test_writer', 'writer')$$, 'twice');
SELECT throws_ok(format('SELECT metrics_grant(%L, %L)', 'metrics_test_nobody', a), '22023', NULL, format('no access of the name %L', a))
FROM unnest(ARRAY['', 'Reader', 'owner', 'reader ']) a;
SELECT throws_ok($$SELECT metrics_grant('metrics_test_missing', 'reader')$$, '42704', NULL, 'no grant to a role that does not exist');

-- Grants stand on the parent, and never on a partition.
SELECT is((SELECT count(*)::int FROM unnest(ARRAY['raw_steps', 'raw_validations', 'generic_metrics', 'system_metrics']) t,
           unnest(ARRAY['metrics_test_reader', 'metrics_test_writer']) r, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p
           WHERE has_table_privilege(r, 'metrics.' || t, p)), 0, 'no privilege on a partition');
SELECT is(has_table_privilege('metrics_test_reader', 'metrics.metrics', 'SELECT'), true, 'a reader reads the parent');
SELECT is((SELECT count(*)::int FROM pg_class c, unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p
           WHERE relnamespace = 'metrics'::regnamespace AND relkind IN ('r', 'p') AND has_table_privilege('metrics_test_reader', c.oid, p)), 0, 'and writes nothing');
SELECT is((SELECT count(*)::int FROM pg_class c WHERE relnamespace = 'metrics'::regnamespace AND relkind IN ('r', 'p')
           AND has_table_privilege('metrics_test_writer', c.oid, 'TRUNCATE')), 0, 'a writer truncates nothing');
SELECT is((SELECT count(*)::int FROM pg_class c, pg_namespace n WHERE c.relnamespace = n.oid AND n.nspname = 'metrics' AND c.relkind IN ('r', 'p')
           AND has_table_privilege('metrics_test_nobody', c.oid, 'SELECT')), 0, 'nobody else reads');

CREATE TEMP TABLE call (n serial, writes boolean, call text);
INSERT INTO call (writes, call) VALUES
    (true, $$metrics_register_trial(7, 0, 1, 'loss')$$), (true, $$metrics_register_trial(7, 1)$$),
    (true, $$metrics_report(1, 'training', '{"loss": 2}', 2)$$), (true, $$metrics_report(1, 'training', '{"more": 2}', 2)$$),
    (true, $$metrics_report(1, 'validation', '{"loss": 2}', 2)$$), (true, $$metrics_report(1, 'inference', '{"loss": 2}', 2)$$),
    (true, $$metrics_report(1, 'cpu', '{"loss": 2}')$$), (true, $$metrics_recompute_summary(1)$$),
    (true, $$metrics_report_batch('[{"trial_id": 1, "metric_group": "training", "metrics": {"loss": 3}, "steps_completed": 3}]')$$),
    (false, $$metrics_rows(1)$$), (false, $$metrics_timeseries(1, 'training', 'loss')$$), (false, $$metrics_trials_snapshot(1, 'training', 'loss', 1)$$),
    (false, $$metrics_names(1)$$), (false, $$metrics_best_trial(1)$$), (false, $$metrics_profiling_rows(1, 'cpu')$$), (false, $$metrics_profiling_series(1)$$);
SELECT is(helper.as_role('metrics_test_nobody', 'SELECT * FROM ' || call), '42501', 'nobody: ' || call) FROM call ORDER BY n;
SELECT is(string_agg(call || ': ' || got, E'\n'), NULL, 'a reader may call every reader, and no writer')
FROM call, LATERAL helper.as_role('metrics_test_reader', 'SELECT * FROM ' || call) got WHERE got <> CASE WHEN writes THEN '42501' ELSE 'ok' END;
SELECT is(string_agg(call || ': ' || got, E'\n' ORDER BY n), NULL, 'a writer may call them all')
FROM (SELECT * FROM call ORDER BY n) call, LATERAL helper.as_role('metrics_test_writer', 'SELECT * FROM ' || call) got WHERE got <> 'ok';
SELECT is((SELECT count(*)::int FROM metrics), 8, 'and has written');
SELECT is(helper.trial_difference(t), NULL, format('and trial %s holds', t)) FROM unnest(ARRAY[1, 7]) t;
SELECT metrics_register_trial(1, 1) \gset
SELECT is(helper.as_role('metrics_test_writer', $$SELECT metrics_report(1, 'training', '{"loss": 9}', 1, 1)$$), 'ok', 'a writer''s report rolls back');
SELECT helper.holds(1, 'and the trial holds');
SELECT is(helper.as_role('metrics_test_reader', 'SELECT * FROM metrics.metrics'), 'ok', 'a reader may query the parent');
SELECT is(helper.as_role('metrics_test_reader', 'SELECT * FROM metrics.trials'), 'ok', 'and the trials');
SELECT is(helper.as_role('metrics_test_reader', 'SELECT * FROM metrics.raw_steps'), '42501', 'not a partition');
SELECT is(helper.as_role(r, $$SELECT metrics_grant('metrics_test_nobody', 'reader')$$), '42501', r || ' grants nothing')
FROM unnest(ARRAY['metrics_test_reader', 'metrics_test_writer', 'metrics_test_nobody']) r;
SELECT isnt(helper.as_role('metrics_test_writer', $$SELECT metrics_create_store('another')$$), 'ok', 'a writer makes no store');

SELECT * FROM finish();
ROLLBACK;
