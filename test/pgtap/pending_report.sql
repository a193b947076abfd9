-- Reports whose partition does not exist yet: what is kept, what is refused, and
-- by whom they may be seen.
BEGIN;
\ir include/store.sql
SELECT plan(88);

SELECT metrics_register_trial(t, 0, 1, 'loss') FROM generate_series(1, 3) t \g /dev/null
SELECT metrics_route_group('node_%') \gset
CREATE FUNCTION helper.waits(grp text, doc jsonb, at timestamptz DEFAULT NULL) RETURNS metrics.metrics_pending
LANGUAGE plpgsql AS $$
DECLARE
    reported bigint := metrics_report(1, grp, doc, report_time => at);
    kept metrics.metrics_pending;
BEGIN
    SELECT * INTO STRICT kept FROM metrics.metrics_pending p WHERE p.id = reported;
    RETURN kept;
END $$;
-- A report, as a direct INSERT says it: a statement is refused in the same words.
CREATE FUNCTION helper.error_of(statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    m text; d text;
BEGIN
    EXECUTE statement;
    RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL;
    RETURN format('%s %s %s', SQLSTATE, m, regexp_replace(d, '\(.*\)', '()'));
END $$;

-- The row.
SELECT metrics_report(1, 'cpu', '{"a": 1}') AS direct \gset
SELECT is(metrics_report(1, 'node_1', '{"a": 1}') - :direct, 1::bigint, 'a row that waits has an id of the same sequence');
SELECT is((helper.waits('node_1', '{"a": [1, "x", null]}', '2024-02-29 13:04:49.388948-05'))::text,
    format('(1,"2024-02-29 18:04:49.388948+00","{""a"": [1, ""x"", null]}",,0,f,%s,node_1,node_1,0,,,-infinity,)', :direct + 2), 'and is what its partition will have');
SELECT is((helper.waits('node_1', '{}')).end_time, now(), 'without a time it has that of its transaction');
SELECT is((SELECT count(*)::int FROM metrics), 1, 'metrics does not have it');
SELECT is_empty($$SELECT * FROM metrics_profiling_rows(1, 'node_1')$$, 'nor do readers');
SELECT is((SELECT to_jsonb(t) - 'id' FROM trials t WHERE id = 1), (SELECT to_jsonb(t) - 'id' FROM trials t WHERE id = 2), 'the trial is as it was');
SELECT metrics_report_batch('[{"trial_id": 1, "metric_group": "node_3", "metrics": {"a": 1}},
    {"trial_id": 1, "metric_group": "cpu", "metrics": {"a": 1}}, {"trial_id": 1, "metric_group": "training", "metrics": {"a": 1}, "steps_completed": 1},
    {"trial_id": 2, "metric_group": "node_4", "metrics": {"a": 1}}]') AS ids \gset
SELECT is((SELECT array_agg(p.partition_type ORDER BY n) FROM unnest(:'ids'::bigint[]) WITH ORDINALITY b(id, n) LEFT JOIN metrics_pending p USING (id)),
    '{node_3,NULL,NULL,node_4}', 'some reports of a batch wait');
SELECT helper.holds(1, 'and the others are written');
SAVEPOINT undone;
SELECT metrics_report(1, 'node_undone', '{}') \gset
ROLLBACK TO undone;
SELECT is((SELECT count(*)::int FROM metrics_pending WHERE partition_type = 'node_undone'), 0, 'what is rolled back does not wait');
SELECT is((helper.waits('node_5', jsonb_build_object('a', repeat('x', 3000000)))).metrics ->> 'a', repeat('x', 3000000), 'a large document waits');

-- The run is checked as always, and the arguments.
SELECT helper.refuses($$SELECT metrics_report(4, 'node_1', '{}')$$, '23503', 'trial 4 does not exist', 'unknown trial');
SELECT helper.refuses(format($$SELECT metrics_report(1, 'node_1', '{}', trial_run_id => %s)$$, r), '22023', format('invalid run id, %s (reported) != 0 (expected)', r),
    format('run %s', r)) FROM unnest(ARRAY[-1, 1, 2147483647]) r;
SELECT helper.refuses(format($$SELECT metrics_report(1, 'node_1', %L)$$, m), '22023', '', 'metrics ' || m) FROM unnest(ARRAY['[]', '1', '{"epoch": "x"}']) m;
SELECT metrics_register_trial(3, 1) \gset
SELECT helper.refuses($$SELECT metrics_report(3, 'node_1', '{}')$$, '22023', 'invalid run id, 0 (reported) != 1 (expected)', 'a run that is over');
SELECT is(helper.read_only($$SELECT metrics_report(1, 'node_1', '{}')$$), '25006', 'not in a read-only transaction');
DELETE FROM metrics_pending;
SELECT metrics_report(3, 'node_1', '{}', trial_run_id => 1) \gset
SELECT metrics_report(1, 'node_1', '{}') \gset
DELETE FROM trials WHERE id = 3;
SELECT is((SELECT array_agg(trial_id) FROM metrics_pending), '{1}', 'a trial takes its rows along');
DELETE FROM metrics_pending;

-- Constraints, as a row with a partition meets them: PROFILING has one.
ALTER TABLE metrics ADD CHECK (metrics ->> 'a' <> 'bad');
ALTER TABLE metrics ADD COLUMN size bigint GENERATED ALWAYS AS (length(metrics::text)) STORED;
ALTER TABLE metrics ADD COLUMN project text DEFAULT 'none' NOT NULL CONSTRAINT known CHECK (project IN ('none', 'other'));
ALTER TABLE metrics ADD CONSTRAINT small CHECK (size < 50);
SELECT is(helper.error_of(format('SELECT metrics_report(1, %L, %L)', 'node_1', d)),
          replace(helper.error_of(format('SELECT metrics_report(1, %L, %L)', 'cpu', d)), 'system_metrics', 'metrics'), format('a constraint: %s', left(d, 20)))
FROM unnest(ARRAY['{"a": "bad"}', '{"a": "good"}', jsonb_build_object('b', repeat('x', 50))::text]) d;
SELECT matches(helper.error_of(format('SELECT metrics_report(1, %L, %L)', 'node_1', d)), '^23514 new row for relation "metrics" violates check constraint "' || c, 'is refused: ' || c)
FROM (VALUES ('{"a": "bad"}', 'metrics_metrics_check'), (jsonb_build_object('b', repeat('x', 50))::text, 'small')) v(d, c);
DELETE FROM metrics WHERE total_batches IS NULL;
ALTER TABLE metrics ALTER COLUMN total_batches SET NOT NULL;
SELECT is(helper.error_of(format('SELECT metrics_report(1, %L, %L)', g, '{}')),
    format('23502 null value in column "total_batches" of relation "%s" violates not-null constraint Failing row contains ().', t), 'NOT NULL: ' || g)
FROM (VALUES ('node_1', 'metrics'), ('cpu', 'system_metrics')) v(g, t);
ALTER TABLE metrics ALTER COLUMN total_batches DROP NOT NULL;
-- What a trigger may change is only known when it has.
DELETE FROM metrics_pending;
CREATE FUNCTION helper.repairs() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.metrics := '{}'; RETURN NEW; END$$;
CREATE TRIGGER repairs BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION helper.repairs();
SELECT is(helper.error_of(format('SELECT metrics_report(1, %L, %L)', g, '{"a": "bad"}')), 'ok', 'a trigger repairs the row: ' || g) FROM unnest(ARRAY['cpu', 'node_1']) g;
SELECT is((SELECT metrics FROM metrics_pending), '{"a": "bad"}', 'when it enters metrics, not before');
DROP TRIGGER repairs ON metrics;
CREATE FUNCTION helper.counts() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'fired'; END$$;
CREATE TRIGGER counts BEFORE INSERT ON metrics EXECUTE FUNCTION helper.counts();
CREATE TRIGGER counts_rows AFTER INSERT ON metrics REFERENCING NEW TABLE AS inserted EXECUTE FUNCTION helper.counts();
SELECT lives_ok($$SELECT metrics_report(1, 'node_1', '{}')$$, 'triggers of the statement do not fire before, either');
DROP TRIGGER counts ON metrics;
DROP TRIGGER counts_rows ON metrics;
ALTER TABLE metrics DROP CONSTRAINT metrics_metrics_check, DROP CONSTRAINT small, DROP COLUMN size, DROP COLUMN project;

-- Privileges: those that the INSERT needs.
CREATE ROLE metrics_test_writer;
CREATE ROLE metrics_test_reader;
CREATE ROLE metrics_test_nobody;
GRANT USAGE ON SCHEMA helper TO PUBLIC;
GRANT SELECT ON TABLE metrics_store TO PUBLIC;
SELECT metrics_grant('metrics_test_writer', 'writer'), metrics_grant('metrics_test_reader', 'reader') \g /dev/null
CREATE FUNCTION helper.error_as(role name, statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    got text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    got := helper.error_of(statement);
    RESET ROLE;
    RETURN trim(got);
END $$;
-- The same for a group that waits and for one that does not.
CREATE FUNCTION helper.same(role name, want text, description text, doc jsonb DEFAULT '{}') RETURNS SETOF text
LANGUAGE sql AS $$
    SELECT is(replace(helper.error_as(role, format('SELECT metrics_report(1, %L, %L)', g, doc)), '"system_metrics"', '"metrics"'), want, format('%s: %s', description, g))
    FROM unnest(ARRAY['cpu', 'node_1']) g
$$;
SELECT helper.same('metrics_test_writer', 'ok', 'a writer reports');
SELECT is((SELECT proacl IS NULL AND NOT prosecdef FROM pg_proc WHERE proname = 'metrics_report'), true, 'as himself');
SELECT helper.same('metrics_test_reader', '42501 permission denied for table metrics', 'a reader does not');
SELECT helper.same('metrics_test_nobody', '42501 permission denied for schema metrics', 'nobody neither');
REVOKE SELECT ON metrics FROM metrics_test_writer;
SELECT helper.same('metrics_test_writer', '42501 permission denied for table metrics', 'without SELECT');
GRANT SELECT (id) ON metrics TO metrics_test_writer;
SELECT helper.same('metrics_test_writer', 'ok', 'SELECT of the id will do');
REVOKE INSERT ON metrics FROM metrics_test_writer;
GRANT INSERT (trial_id, trial_run_id, end_time, metrics, metric_group) ON metrics TO metrics_test_writer;
SELECT helper.same('metrics_test_writer', '42501 permission denied for table metrics', 'without INSERT of the key');
GRANT INSERT (partition_type) ON metrics TO metrics_test_writer;
SELECT helper.same('metrics_test_writer', 'ok', 'INSERT of the six columns will do');
REVOKE USAGE ON SEQUENCE metrics_id_seq FROM metrics_test_writer;
SELECT helper.same('metrics_test_writer', '42501 permission denied for sequence metrics_id_seq', 'without the sequence');
SELECT metrics_grant('metrics_test_writer', 'writer') \gset
REVOKE SELECT ON trials FROM metrics_test_writer;
SELECT helper.same('metrics_test_writer', '42501 permission denied for table trials', 'without trials');
SELECT metrics_grant('metrics_test_writer', 'writer') \gset
SELECT is(helper.error_as('metrics_test_writer', s), '42501 permission denied for table metrics_pending', 'nobody but the owner: ' || s)
FROM unnest(ARRAY['SELECT count(*) FROM metrics.metrics_pending', 'DELETE FROM metrics.metrics_pending', 'INSERT INTO metrics.metrics_pending DEFAULT VALUES']) s;

-- Row security, as the INSERT meets it. The last words leave out the policy.
ALTER TABLE metrics ENABLE ROW LEVEL SECURITY;
CREATE TABLE helper.allowed (role name, a text);
GRANT SELECT ON helper.allowed TO metrics_test_writer;
SELECT helper.same('metrics_test_writer', '42501 new row violates row-level security policy for table "metrics"', 'no policy lets in');
CREATE POLICY reads ON metrics FOR SELECT USING (true);
CREATE POLICY writes ON metrics FOR INSERT TO metrics_test_writer WITH CHECK (metrics ->> 'a' IN (SELECT a FROM helper.allowed w WHERE w.role = current_user));
INSERT INTO helper.allowed VALUES ('metrics_test_writer', 'mine'), ('metrics_test_reader', 'other');
SELECT helper.same('metrics_test_writer', 'ok', 'a policy does', '{"a": "mine"}');
SELECT helper.same('metrics_test_writer', '42501 new row violates row-level security policy for table "metrics"', 'but not another''s', '{"a": "other"}');
SELECT helper.same('metrics_test_writer', '42501 new row violates row-level security policy for table "metrics"', 'nor without', '{}');
CREATE POLICY also ON metrics AS PERMISSIVE USING (metrics ->> 'a' = 'also' AND metrics.metrics IS NOT NULL);
SELECT helper.same('metrics_test_writer', 'ok', 'of two policies one is enough', '{"a": "also"}');
CREATE POLICY never ON metrics AS RESTRICTIVE FOR INSERT WITH CHECK (NOT metrics ? 'secret');
SELECT helper.same('metrics_test_writer', '42501 new row violates row-level security policy "never" for table "metrics"', 'restrictive ones must all agree', '{"a": "mine", "secret": 1}');
ALTER POLICY reads ON metrics USING (NOT metrics ? 'hidden');
SELECT helper.same('metrics_test_writer', '42501 new row violates row-level security policy for table "metrics"', 'a row that its reporter could not see', '{"a": "mine", "hidden": 1}');
SELECT helper.same('metrics_test_nobody', '42501 permission denied for schema metrics', 'privileges come first');
-- A policy means what it meant to its author, whatever the reporter's search path.
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE FUNCTION evil.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION evil.no(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR evil.= (FUNCTION = evil.no, LEFTARG = text, RIGHTARG = text);
CREATE POLICY distinguishes ON metrics AS RESTRICTIVE FOR INSERT WITH CHECK ((metrics ->> 'who') IS DISTINCT FROM 'me');
SELECT is(helper.error_as('metrics_test_writer', format('SET LOCAL search_path TO evil, pg_catalog, metrics; SELECT public.metrics_report(1, %L, %L)', g, '{"a": "mine", "who": "me"}')),
    '42501 new row violates row-level security policy "distinguishes" for table "metrics"', 'an operator of the reporter''s: ' || g) FROM unnest(ARRAY['cpu', 'node_1']) g;
SELECT is(helper.error_of($$SELECT metrics_report(1, 'node_1', '{"a": "other"}')$$), 'ok', 'the owner passes by his policies');
ALTER TABLE metrics FORCE ROW LEVEL SECURITY;
SET LOCAL row_security TO off;
ALTER ROLE metrics_test_writer BYPASSRLS;
SELECT helper.same('metrics_test_writer', 'ok', 'so does who is allowed to', '{"a": "other"}');
ALTER ROLE metrics_test_writer NOBYPASSRLS;
SELECT helper.same('metrics_test_writer', '42501 query would be affected by row-level security policy for table "metrics"', 'row_security off is an error', '{"a": "mine"}');
SET LOCAL row_security TO on;
ALTER TABLE metrics DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
DROP POLICY distinguishes ON metrics;

-- Any number of keys: no lock, no plan and no partition each.
DELETE FROM metrics_pending;
SELECT count(*) AS locks_before FROM pg_locks WHERE pid = pg_backend_pid() \gset
SELECT metrics_report(1, 'node_0', '{}') FROM generate_series(1, 10) \g /dev/null
SELECT sum(used_bytes) AS memory_before FROM pg_backend_memory_contexts WHERE name ~ 'CachedPlan|TopMemoryContext' \gset
SELECT is((SELECT count(metrics_report(1, 'node_' || n, '{}')) FROM generate_series(1, 5000) n), 5000::bigint, '5,000 new keys in one statement');
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(1, 'node_1'), generate_series(1, 1)), 0, 'are read');
SELECT is((SELECT sum(n) FROM (SELECT (SELECT count(*) FROM metrics_profiling_rows(1, 'node_' || k)) AS n FROM generate_series(1, 300) k) r), 0::numeric, 'many of them');
SELECT cmp_ok((SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name ~ 'CachedPlan|TopMemoryContext'), '<', :memory_before + 500000::numeric, 'without a plan for each');
SELECT cmp_ok((SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()), '<', :locks_before + 20::bigint, 'nor a lock');
SELECT is((SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'metrics'::regclass), 4, 'and no partition is made by the reporter');
SELECT is((SELECT count(*)::int FROM metrics_pending_keys WHERE rows = CASE partition_key WHEN 'node_0' THEN 10 ELSE 1 END), 5001, 'a view names them');

-- The view says why, to who may know.
DELETE FROM metrics_pending;
SELECT is_empty('SELECT * FROM metrics_pending_keys', 'nothing waits');
SELECT metrics_report(1, 'node_' || k, '{}', report_time => '2024-01-01 00:00+00'::timestamptz + n * interval '1 hour') FROM unnest('{a,b,c}'::text[]) k, generate_series(1, 3) n \g /dev/null
UPDATE metrics_pending SET attempts = 2, sqlstate = 'P0001', message = 'bad 7', next_attempt = '2030-01-01 00:00+00'
WHERE partition_type = 'node_b' AND end_time = '2024-01-01 02:00+00';
SELECT results_eq('SELECT * FROM metrics_pending_keys', $$VALUES
    ('node_a', 3::bigint, 0::bigint, timestamptz '2024-01-01 01:00+00', NULL::int, NULL::timestamptz, NULL::text, NULL::text),
    ('node_b', 3, 1, '2024-01-01 01:00+00', 2, '2030-01-01 00:00+00', 'P0001', 'bad 7'),
    ('node_c', 3, 0, '2024-01-01 01:00+00', NULL, NULL, NULL, NULL)$$, 'rows of three keys, one has been refused');
INSERT INTO metrics_failure VALUES ('metrics', 'node_b', 1, now(), '2031-01-01 00:00+00', '42P07', 'of the key'),
    ('metrics', NULL, 5, now(), '2032-01-01 00:00+00', '54000', 'of the table');
SELECT results_eq('SELECT partition_key, attempts, next_attempt, sqlstate, message FROM metrics_pending_keys', $$VALUES
    ('node_a', 5, timestamptz '2032-01-01 00:00+00', '54000', 'of the table'), ('node_b', 1, '2031-01-01 00:00+00', '42P07', 'of the key'),
    ('node_c', 5, '2032-01-01 00:00+00', '54000', 'of the table')$$, 'what hinders the partition comes first, what hinders all of them last');
DELETE FROM metrics_failure;
SELECT is(helper.error_as('metrics_test_nobody', 'SELECT * FROM metrics_pending_keys'), '42501 permission denied for table metrics_failure', 'nobody is told');
CREATE TEMP TABLE seen (role name, message text);
GRANT INSERT ON seen TO PUBLIC;
SELECT helper.error_as('metrics_test_reader', $$INSERT INTO seen SELECT current_user, message FROM metrics_pending_keys WHERE partition_key = 'node_b'$$) \g /dev/null
ALTER TABLE metrics ENABLE ROW LEVEL SECURITY;
SELECT helper.error_as('metrics_test_reader', $$INSERT INTO seen SELECT current_user, message FROM metrics_pending_keys WHERE partition_key = 'node_b'$$) \g /dev/null
SELECT results_eq('SELECT * FROM seen ORDER BY message', $$VALUES (name 'metrics_test_reader', 'bad 7'), ('metrics_test_reader', NULL)$$,
    'a reader is; but not of what a row says, if he may not see all rows');
ALTER TABLE metrics DISABLE ROW LEVEL SECURITY;

SELECT * FROM finish();
ROLLBACK;
