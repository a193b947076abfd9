-- Views of performance data for BI tools.
BEGIN;
\ir include/store.sql
SELECT plan(10);
SET search_path TO metrics_bi, metrics, public;

SELECT metrics_add_repository(r) FROM unnest(ARRAY['autoland', 'try']) r \g /dev/null
SELECT metrics_add_push(r, 'rev' || n, timestamptz '2026-01-05 10:00+00' + n * interval '1 hour') FROM unnest(ARRAY['autoland', 'try']) r, generate_series(1, 40) n \g /dev/null
-- A series of 40 pushes whose level rises at the 21st, and its subtest.
SELECT metrics_report_perf(p.repository, p.id, job => p.id, artifact => jsonb_build_object('framework', '{"name": "talos"}'::jsonb, 'suites', jsonb_build_array(jsonb_build_object(
        'name', 'tp5o', 'unit', 'ms', 'value', 100 + p.id % 2 + CASE WHEN substr(p.revision, 4)::int > 20 THEN 50 ELSE 0 END,
        'subtests', '[{"name": "sohu.com", "value": 7}]'::jsonb))), platform => 'linux', options => '{opt}', machine => 'm1')
FROM performance_push p WHERE repository = 'autoland' ORDER BY p.push_time \g /dev/null

SELECT results_eq('SELECT repository, framework, suite, test, platform, build_options, measurement_unit, last_updated FROM perf_series ORDER BY test',
    $$VALUES ('autoland', 'talos', 'tp5o', '', 'linux', 'opt', 'ms', timestamptz '2026-01-07 02:00+00'), ('autoland', 'talos', 'tp5o', 'sohu.com', 'linux', 'opt', NULL, '2026-01-07 02:00+00')$$, 'series');
SELECT is((SELECT parent_id FROM perf_series WHERE test <> ''), (SELECT signature_id FROM perf_series WHERE test = ''), 'and which belong together');
SELECT results_eq($$SELECT count(*), count(DISTINCT push_id), min(value), max(value), min(machine) FROM perf_points WHERE repository = 'autoland' AND test = ''$$,
    $$VALUES (40::bigint, 40::bigint, 100::float8, 151::float8, 'm1')$$, 'points, a row each');
SELECT is_empty($$SELECT * FROM perf_points WHERE repository = 'try'$$, 'of the repository asked for');
SELECT is_empty('SELECT * FROM perf_alerts', 'no alert before they are generated');
CALL metrics_generate_alerts('autoland', max_age => '100 years');
SELECT results_eq('SELECT repository, suite, test, revision, prev_revision, is_regression, round(amount_pct), status FROM perf_alerts',
    $$VALUES ('autoland', 'tp5o', '', 'rev21', 'rev20', true, 50::float8, 'untriaged')$$, 'the change is an alert');
SELECT is((SELECT count(*)::int FROM perf_compare WHERE repository = 'autoland' AND test = ''), 39, 'each push beside the one before');
SELECT results_eq($$SELECT prev_mean < 102, new_mean >= 150 FROM perf_compare c JOIN performance_push p ON p.id = push_id WHERE c.repository = 'autoland' AND test = '' AND p.revision = 'rev21'$$,
    'VALUES (true, true)', 'and what the rise looks like there');

CREATE ROLE metrics_test_bi;
SELECT metrics_grant('metrics_test_bi', 'bi') \g /dev/null
SELECT is(helper.as_role('metrics_test_bi', 'SELECT count(*) FROM metrics_bi.' || v), 'ok', 'a BI tool reads ' || v) FROM unnest(ARRAY['perf_points', 'perf_compare']) v;

SELECT * FROM finish();
ROLLBACK;
