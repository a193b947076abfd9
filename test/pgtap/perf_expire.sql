-- Performance data: retention, T35. Steps that are committed are in test/t/302_perf_concurrency.pl.
BEGIN;
\ir include/store.sql
SELECT plan(17);

SELECT metrics_add_repository('year', keep => '365 days'), metrics_add_repository('month', keep => '30 days'), metrics_add_repository('ever'), metrics_add_repository('empty', keep => '1 day') \gset
-- A push each day, the first exactly as old as it may be; two jobs each, one with replicates.
SELECT metrics_add_push(r, 'r' || d, now() - d * interval '1 day') FROM unnest(ARRAY['year', 'month', 'ever']) r, unnest(ARRAY[400, 366, 365, 364, 100, 31, 30, 29, 1]) d \g /dev/null
SELECT metrics_report_perf(p.repository, p.id, 10 * p.id + job, '{"framework": {"name": "talos"}, "suites": [{"name": "s", "value": 1, "replicates": [1, 2], "subtests": [{"name": "t", "value": 2}]}]}')
FROM performance_push p, generate_series(1, 2) job \g /dev/null
INSERT INTO performance_alert_summary (repository, framework_id, push_id, prev_push_id) SELECT 'year', 1, a.id, b.id FROM performance_push a, performance_push b
WHERE a.repository = 'year' AND b.repository = 'year' AND a.revision = 'r366' AND b.revision = 'r400';
INSERT INTO performance_alert (summary_id, signature_id, is_regression, amount_pct, amount_abs, prev_value, new_value)
SELECT m.id, s.id, true, 100, 1, 1, 2 FROM performance_alert_summary m, performance_signature s WHERE s.repository = 'year' AND test = '';
-- A run that measured an old push and a new one.
SELECT created FROM performance_push p, metrics_report_perf('month', p.id, 7, format('{"framework": {"name": "talos"}, "pushTimestamp": %s, "suites": [{"name": "s", "value": 1, "subtests": []}]}',
    extract(epoch FROM push_time)::bigint)::jsonb) WHERE p.repository = 'month' AND revision = 'r100' \gset
SELECT created FROM performance_push p, metrics_report_perf('month', p.id, 7, format('{"framework": {"name": "talos"}, "pushTimestamp": %s, "suites": [{"name": "s", "value": 1, "subtests": []}]}',
    extract(epoch FROM now())::bigint)::jsonb) WHERE p.repository = 'month' AND revision = 'r100' \gset

CREATE VIEW helper.stored AS SELECT d.repository, p.revision, count(*) AS points, count(replicates) AS replicates FROM performance_datum d JOIN performance_push p ON p.id = d.push_id GROUP BY 1, 2;
SELECT is((SELECT sum(points)::int FROM helper.stored), 110, 'measurements');
SAVEPOINT all_there;
CALL metrics_expire_perf('year');
SELECT results_eq($$SELECT revision, points, replicates FROM helper.stored WHERE repository = 'year' ORDER BY substr(revision, 2)::integer DESC$$,
    $$SELECT 'r' || d, 4::bigint, 2::bigint FROM unnest(ARRAY[364, 100, 31, 30, 29, 1]) d$$, 'T35: what is as old as it may be goes, with its replicates');
SELECT is((SELECT sum(points)::int FROM helper.stored WHERE repository <> 'year'), 74, 'T35: and only of that repository');
ROLLBACK TO all_there;
CALL metrics_expire_perf(max_runs => 3);
SELECT is((SELECT sum(points)::int FROM helper.stored WHERE repository = r), n, 'T35: all repositories: ' || r) FROM (VALUES ('year', 24), ('month', 10), ('ever', 36)) v(r, n);
SELECT is((SELECT count(*)::int FROM performance_run WHERE repository = r), n, 'T35: and their runs: ' || r) FROM (VALUES ('year', 12), ('month', 5), ('ever', 18)) v(r, n);
SELECT is((SELECT points FROM helper.stored WHERE repository = 'month' AND revision = 'r100'), 2::bigint, 'a run goes when all it measured is old enough');
SELECT results_eq($$SELECT count(*) FROM performance_signature$$, ARRAY[6::bigint], 'T35: series stay');
SELECT results_eq($$SELECT count(*) FROM performance_push$$, ARRAY[27::bigint], 'T35: pushes stay');
SELECT results_eq($$SELECT count(*) FROM performance_alert$$, ARRAY[1::bigint], 'T35: alerts stay');
CALL metrics_expire_perf();
SELECT is((SELECT sum(points)::int FROM helper.stored), 70, 'T35: once more removes nothing');
CALL metrics_expire_perf('nowhere');
SELECT is((SELECT sum(points)::int FROM helper.stored), 70, 'nor does a repository that is not there');
SELECT throws_ok('CALL metrics_expire_perf(max_runs => 0)', '22023', NULL, 'no run at a time');
CREATE ROLE metrics_test_stranger;
SELECT metrics_grant('metrics_test_stranger', 'writer') \gset
GRANT USAGE ON SCHEMA public TO metrics_test_stranger;
SET LOCAL ROLE metrics_test_stranger;
SAVEPOINT stranger;
DO $$BEGIN CALL metrics_expire_perf(); EXCEPTION WHEN insufficient_privilege THEN CREATE TEMP TABLE refused (); END$$;
RESET ROLE;
SELECT has_table('refused', 'a writer removes nothing');

SELECT * FROM finish();
ROLLBACK;
