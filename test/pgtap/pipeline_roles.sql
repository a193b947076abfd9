-- Who may do what with pipelines and views: D27 of the reference, and row
-- security through the views.
BEGIN;
\ir include/store.sql
SELECT * FROM no_plan();

CREATE ROLE metrics_test_bi;
CREATE ROLE metrics_test_reader;
CREATE ROLE metrics_test_writer;
CREATE FUNCTION helper.count_as(role name, relation text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE 'SELECT count(*) FROM ' || relation INTO n;
    RESET ROLE;
    RETURN n;
END $$;
SELECT metrics_register_trial(1) \g /dev/null
SELECT metrics_report(1, g, '{"u": 1}', 1) FROM unnest(ARRAY['training', 'cpu']) g \g /dev/null
SELECT metrics_start_run(r) FROM unnest(ARRAY['alpha-1', 'alpha-2', 'beta-1']) r \g /dev/null
SELECT metrics_report_operator(r, 's', 'o', 'w', 1, 1, 1, latencies => '{1}', custom_metrics => '{"a": 1}') FROM unnest(ARRAY['alpha-1', 'alpha-2', 'beta-1']) r \g /dev/null
SELECT metrics_grant('metrics_test_bi', 'bi'), metrics_grant('metrics_test_reader', 'reader'), metrics_grant('metrics_test_writer', 'writer') \g /dev/null
SELECT lives_ok($$SELECT metrics_grant('metrics_test_bi', 'bi')$$, 'granted twice');

-- Views, and nothing else.
CREATE TEMP TABLE view AS SELECT 'metrics_bi.' || relname AS name FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace;
SELECT is_empty($$SELECT name, r FROM unnest(ARRAY['metrics_test_bi', 'metrics_test_reader', 'metrics_test_writer']) r, view
    WHERE helper.as_role(r, 'SELECT * FROM ' || name) <> 'ok'$$, 'D27: every view is read by all of them');
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class c WHERE relnamespace = 'metrics'::regnamespace AND relkind IN ('r', 'p', 'S')
    AND helper.as_role('metrics_test_bi', 'SELECT * FROM ' || format('metrics.%I', relname)) <> '42501'$$, 'D27: no table, partition or sequence is read by a BI role');
SELECT is_empty($$SELECT name FROM view WHERE helper.as_role('metrics_test_bi', 'DELETE FROM ' || name) <> '42501' AND helper.as_role('metrics_test_bi', 'DELETE FROM ' || name) <> '55000'$$, 'D27: nor deleted from');
CREATE TEMP TABLE call (n serial, access text, call text);
INSERT INTO call (access, call) VALUES
    ('writer', $$metrics_start_run()$$), ('writer', $$metrics_start_stage('alpha-1', 't')$$), ('writer', $$metrics_finish_stage('alpha-1', 's')$$),
    ('writer', $$metrics_report_operator('alpha-1', 'new', 'o', 'w', 1, 1, 1, latencies => '{1}')$$),
    ('writer', $$metrics_report_operators('[{"run_id": "alpha-1", "stage_name": "s", "operator_name": "o", "worker_id": "v", "input_records": 1, "output_records": 1, "total_time": 1}]')$$),
    ('writer', $$metrics_finish_run('alpha-2')$$), ('writer', $$metrics_fail_run('beta-1')$$), ('writer', $$metrics_report(1, 'cpu', '{"u": 1}')$$),
    ('reader', $$metrics_list_runs()$$), ('reader', $$metrics_operator_percentiles('1 day')$$), ('reader', $$metrics_rows(1)$$),
    ('owner', $$metrics_drop_runs('2000-01-01')$$), ('owner', $$metrics_partition_by_time('metrics.pipeline_operators', '1 day')$$), ('owner', $$metrics_grant('metrics_test_bi', 'writer')$$),
    ('bi', $$metrics_ratio(1, 2)$$), ('bi', $$metrics_latency(NULL, 0.5)$$), ('bi', $$metrics_is_latency_sketch('\x00')$$);
SELECT is(helper.as_role('metrics_test_bi', 'SELECT * FROM ' || call), CASE access WHEN 'bi' THEN 'ok' ELSE '42501' END, 'D27: bi: ' || call) FROM call WHERE call !~ 'partition_by' ORDER BY n;
SELECT is(helper.as_role('metrics_test_bi', $$SELECT metrics_partition_by_time('metrics.pipeline_operators'::regclass::oid, '1 day')$$), '42501', 'D27: nor by OID');
SELECT is(string_agg(call, ', '), NULL, 'a reader reads') FROM call WHERE helper.as_role('metrics_test_reader', 'SELECT * FROM ' || call) <> CASE WHEN access IN ('bi', 'reader') THEN 'ok' ELSE '42501' END;
SELECT is(string_agg(call, ', '), NULL, 'a writer writes, too') FROM (SELECT * FROM call ORDER BY n) call WHERE helper.as_role('metrics_test_writer', 'SELECT * FROM ' || call) <> CASE WHEN access = 'owner' THEN '42501' ELSE 'ok' END;
SELECT throws_ok($$SELECT metrics_grant('metrics_test_bi', 'BI')$$, '22023', NULL, 'access is spelled in lower case');

-- Row security on the store's tables shows a tenant its own rows through the views.
SELECT is(helper.count_as('metrics_test_bi', 'metrics_bi.operators WHERE operator_name = ''o'' AND worker_id = ''w'''), 4, 'D27: without row security all rows');
ALTER TABLE metrics.pipeline_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE metrics.pipeline_stages ENABLE ROW LEVEL SECURITY;
ALTER TABLE metrics.pipeline_operators ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON metrics.pipeline_runs USING (split_part(run_id, '-', 1) = current_setting('app.tenant', true));
CREATE POLICY tenant ON metrics.pipeline_stages USING (split_part(run_id, '-', 1) = current_setting('app.tenant', true));
CREATE POLICY tenant ON metrics.pipeline_operators USING (split_part(run_id, '-', 1) = current_setting('app.tenant', true));
SELECT is(helper.count_as('metrics_test_bi', name), 0, 'D27: without a tenant none: ' || name) FROM view WHERE name !~ '(trial_metrics|profiling|partitions)$' AND name !~ 'perf_';
SET LOCAL app.tenant = 'beta';
SELECT is(helper.count_as('metrics_test_bi', 'metrics_bi.runs'), 1, 'D27: with a tenant its own');
SELECT is(helper.count_as('metrics_test_bi', 'metrics_bi.' || v || ' WHERE run_id = ''beta-1'''), helper.count_as('metrics_test_bi', 'metrics_bi.' || v), 'D27: and no other''s: ' || v)
FROM unnest(ARRAY['runs', 'stages', 'operators', 'operator_totals', 'custom_metrics']) v;

-- Views that went with the extension come again, as they were granted.
DROP EXTENSION metrics_ext CASCADE;
SELECT set_eq($$SELECT relname::text FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace$$, ARRAY['perf_alerts', 'perf_points', 'perf_series'],
    'without the extension there are no views but those that need none of its functions');
SELECT is((SELECT count(*)::int FROM metrics.pipeline_operators), 5, 'but all rows');
CREATE EXTENSION metrics_ext SCHEMA public;
SELECT metrics_create_store() \g /dev/null
SELECT set_eq($$SELECT 'metrics_bi.' || relname FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace$$, 'SELECT name FROM view', 'a store that is taken up has them again');
SELECT is(helper.count_as('metrics_test_bi', 'metrics_bi.runs'), 1, 'with the grants that they had, and row security');
SELECT throws_ok($$INSERT INTO metrics.pipeline_operators (run_id, stage_name, operator_name, worker_id, at, input_records, output_records, total_time, latency_sketch)
    VALUES ('alpha-1', 's', 'o', 'w', now(), 1, 1, 1, '\x00')$$, '23514', NULL, 'and the check on sketches');
-- Options that the owner has chosen stay.
ALTER VIEW metrics_bi.runs SET (security_barrier = true);
SELECT metrics_create_store() \g /dev/null
SELECT is(reloptions, '{security_invoker=true,security_barrier=true}', 'options of a view stay when it is made again') FROM pg_class WHERE oid = 'metrics_bi.runs'::regclass;

SELECT * FROM finish();
ROLLBACK;
