-- Rows that waited for their partition enter metrics as the owner of the store
-- would insert them: triggers fire, row security and constraints judge them, and
-- one that fails holds up no other.
BEGIN;
\ir include/store.sql
SET client_min_messages TO error;
SELECT plan(39);
SELECT metrics_register_trial(t) FROM generate_series(1, 3) t \g /dev/null
SELECT metrics_route_group('node_%') \gset

-- Report rows a = from .. upto of a key.
CREATE FUNCTION report(key text, first integer, last integer) RETURNS bigint
LANGUAGE sql AS $$
    SELECT count(metrics_report(1 + n % 3, key, jsonb_build_object('a', n), report_time => '2024-01-01 00:00+00'::timestamptz + n * interval '1 second'))
    FROM generate_series(first, last) n
$$;
CREATE FUNCTION values_of(grp text) RETURNS text
LANGUAGE sql AS $$
    SELECT string_agg(metrics ->> 'a', ',' ORDER BY id) FROM metrics WHERE metric_group = grp
$$;

-- All of it arrives, as it was.
SELECT report('node_1', 1, 2500) \gset
CREATE TEMP TABLE waiting AS
SELECT id, trial_id, end_time, metrics, total_batches, trial_run_id, archived, metric_group, partition_type FROM metrics_pending;
SELECT is((SELECT count(*)::int FROM waiting), 2500, '2,500 rows wait');
CALL metrics_maintain();
SELECT is((SELECT count(*)::int FROM metrics_pending), 0, 'then they do not');
SELECT set_eq('SELECT id, trial_id, end_time, metrics, total_batches, trial_run_id, archived, metric_group, partition_type FROM metrics', 'TABLE waiting',
    'and are in metrics, ids and all');
SELECT is((SELECT count(DISTINCT tableoid)::int FROM metrics), 1, 'in one partition');
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(1, 'node_1', max_rows => NULL)), 833, 'where readers find them');
SELECT report('node_1', 2501, 2501) \gset
SELECT is((SELECT count(*)::int FROM metrics), 2501, 'the next report goes there directly');
DELETE FROM metrics;

-- Triggers fire once, in the order of the reports, and may change or suppress.
CREATE TABLE fired (n serial, at text, a text, as_role name);
CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql SET search_path = metrics AS $$
BEGIN
    INSERT INTO fired (at, a, as_role) VALUES (TG_WHEN || ' ' || TG_LEVEL, NEW.metrics ->> 'a', current_user);
    IF TG_WHEN = 'BEFORE' AND NEW.metrics ->> 'a' = '2' THEN
        RETURN NULL;
    ELSIF TG_WHEN = 'BEFORE' AND NEW.metrics ->> 'a' = '3' THEN
        NEW.metrics := '{"a": "three"}';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER before BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION fires();
CREATE TRIGGER after AFTER INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION fires();
CREATE TRIGGER statement AFTER INSERT ON metrics EXECUTE FUNCTION fires();
SELECT report('node_2', 1, 4) \gset
SELECT is((SELECT count(*)::int FROM fired), 0, 'no trigger fires at the report');
CALL metrics_maintain();
SELECT is(values_of('node_2'), '1,three,4', 'a trigger changes a row and suppresses another');
SELECT results_eq($$SELECT a FROM fired WHERE at = 'BEFORE ROW' ORDER BY n$$, ARRAY['1', '2', '3', '4'], 'it fires for each, in order');
SELECT results_eq($$SELECT a FROM fired WHERE at = 'AFTER ROW' ORDER BY n$$, ARRAY['1', 'three', '4'], 'for those that are stored, after');
SELECT is((SELECT count(*)::int FROM fired WHERE at = 'AFTER STATEMENT'), 1, 'once a statement');
SELECT is((SELECT count(*)::int FROM metrics_pending), 0, 'the suppressed row is gone, as it would be without waiting');
DROP TRIGGER before ON metrics;
DROP TRIGGER after ON metrics;
DROP TRIGGER statement ON metrics;

-- Bad rows stay alone, whatever their number and place.
CREATE FUNCTION rejects() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.metrics ->> 'a')::integer = ANY (TG_ARGV[0]::integer[]) THEN
        RAISE EXCEPTION USING ERRCODE = 'ZZ001', MESSAGE = format('no %s', NEW.metrics ->> 'a'), DETAIL = 'secret';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION pending_of(key text) RETURNS text
LANGUAGE sql AS $$
    SELECT string_agg(format('%s %s %s', attempts, sqlstate, message), ', ' ORDER BY id) FROM metrics_pending WHERE partition_type = key
$$;
CREATE TRIGGER rejects BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION rejects('{1,2,500,1000,1001,1500}');
SELECT report('node_3', 1, 1500) \gset
CALL metrics_maintain();
SELECT is((SELECT count(*)::int FROM metrics WHERE metric_group = 'node_3'), 1494, 'all but six enter');
SELECT is(pending_of('node_3'), '1 ZZ001 no 1, 1 ZZ001 no 2, 1 ZZ001 no 500, 1 ZZ001 no 1000, 1 ZZ001 no 1001, 1 ZZ001 no 1500', 'each of the six with its error');
SELECT is((SELECT count(*)::int FROM metrics_pending WHERE next_attempt BETWEEN now() AND clock_timestamp() + interval '1 s'), 6, 'to be tried again soon');
SELECT results_eq('SELECT partition_key, rows, failing, attempts, sqlstate, message FROM metrics_pending_keys',
    $$SELECT 'node_3', 6::bigint, 6::bigint, 1, 'ZZ001', message FROM metrics_pending ORDER BY next_attempt DESC LIMIT 1$$, 'the view shows the last');
SELECT report('node_3', 1501, 1501) \gset
SELECT is(values_of('node_3') LIKE '%,1501', true, 'reports that come later pass them');
-- The back-off doubles, up to an hour.
UPDATE metrics_pending SET attempts = CASE metrics ->> 'a' WHEN '1' THEN 3 WHEN '2' THEN 2000000000 ELSE attempts END;
SELECT clock_timestamp() AS before \gset
CALL metrics_maintain();
SELECT is((SELECT array_agg(attempts ORDER BY id) FROM metrics_pending), '{4,2000000001,2,2,2,2}', 'what is called by hand tries again at once, and each attempt is counted');
SELECT is((SELECT string_agg(CASE WHEN next_attempt BETWEEN :'before'::timestamptz + w * 0.5 AND clock_timestamp() + w THEN 'good' ELSE (next_attempt - :'before')::text END, ',' ORDER BY id)
           FROM metrics_pending, LATERAL (SELECT CASE metrics ->> 'a' WHEN '1' THEN interval '8 s' WHEN '2' THEN interval '1 hour' ELSE interval '2 s' END) l(w)),
    'good,good,good,good,good,good', 'by itself it waits longer each time');
-- Once mended, they enter.
DROP TRIGGER rejects ON metrics;
CALL metrics_maintain();
SELECT is((SELECT count(*)::int FROM metrics_pending), 0, 'without the fault they enter');
SELECT is((SELECT count(*)::int FROM metrics WHERE metric_group = 'node_3'), 1501, 'all of them');

-- A trigger that keeps rows from leaving metrics_pending doubles none.
CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keeps BEFORE DELETE ON metrics_pending FOR EACH ROW EXECUTE FUNCTION keeps();
SELECT report('node_11', 1, 2) \gset
CALL metrics_maintain();
SELECT is((SELECT count(*)::int FROM metrics WHERE metric_group = 'node_11'), 0, 'rows that may not leave metrics_pending do not enter metrics');
SELECT is(pending_of('node_11'), '1 09000 a trigger keeps rows in "metrics.metrics_pending", 1 09000 a trigger keeps rows in "metrics.metrics_pending"', 'and say why');
DROP TRIGGER keeps ON metrics_pending;
DELETE FROM metrics_pending;

-- A fault in every row.
CREATE TRIGGER rejects BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION rejects('{1,2,3,4,5,6,7}');
SELECT report('node_4', 1, 7) \gset
CALL metrics_maintain();
SELECT is(pending_of('node_4'), (SELECT string_agg(format('1 ZZ001 no %s', n), ', ' ORDER BY n) FROM generate_series(1, 7) n), 'seven of seven rows stay');
DROP TRIGGER rejects ON metrics;
DELETE FROM metrics_pending;

-- Constraints that came after the report, those that wait for the commit, foreign keys.
CREATE FUNCTION rejects_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.metrics ->> 'a' = '2' THEN
        RAISE EXCEPTION 'late';
    END IF;
    RETURN NULL;
END $$;
SELECT report('node_5', 1, 3) \gset
ALTER TABLE metrics ADD CONSTRAINT not_one CHECK (metric_group <> 'node_5' OR metrics ->> 'a' <> '1');
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON metrics DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION rejects_late();
CALL metrics_maintain();
SELECT is(values_of('node_5'), '3', 'what breaks a constraint stays, also one that is checked at the commit');
SELECT matches(pending_of('node_5'), '^1 23514 new row for relation "[^"]*" violates check constraint "not_one", 1 P0001 late$', 'and says so');
DROP TRIGGER late ON metrics;
ALTER TABLE metrics DROP CONSTRAINT not_one;
DELETE FROM metrics_pending;

-- Row security that is forced on the owner; here he is no superuser.
CREATE ROLE metrics_test_mover;
ALTER SCHEMA metrics OWNER TO metrics_test_mover;
SELECT format('ALTER TABLE %s OWNER TO metrics_test_mover', oid::regclass) FROM pg_class WHERE relnamespace = 'metrics'::regnamespace AND relkind IN ('r', 'p') \gexec
SELECT report('node_6', 1, 3) \gset
ALTER TABLE metrics ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY others ON metrics USING (metrics ->> 'a' <> '2');
CALL metrics_maintain();
SELECT is(values_of('node_6'), '1,3', 'row security that is forced on the owner applies to him');
SELECT is(pending_of('node_6'), '1 42501 new row violates row-level security policy for table "metrics"', 'and the row stays');
ALTER TABLE metrics DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
DROP POLICY others ON metrics;
DELETE FROM metrics_pending;
CREATE TRIGGER fires BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION fires();
GRANT ALL ON fired, fired_n_seq TO metrics_test_mover;
DELETE FROM fired;
SELECT report('node_7', 1, 1) \gset
CALL metrics_maintain();
SELECT is((SELECT as_role FROM fired), 'metrics_test_mover', 'rows enter by the hand of the owner of the store');
DROP TRIGGER fires ON metrics;

-- Columns of the user's own: their defaults are those of the reporter, also where
-- row security has judged them.
SET a.setting = 'reporter''s';
ALTER TABLE metrics ADD COLUMN early integer;
ALTER TABLE metrics DROP COLUMN early;
ALTER TABLE metrics ADD COLUMN reporter name DEFAULT current_user,
    ADD COLUMN message text[] DEFAULT ARRAY['it''s', NULL, current_setting('a.setting')], ADD COLUMN size integer GENERATED ALWAYS AS (length(metrics::text)) STORED,
    ADD COLUMN "No Default" text, ADD COLUMN dropped text DEFAULT 'x', ADD COLUMN at timestamptz DEFAULT clock_timestamp();
ALTER TABLE metrics ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON metrics USING (reporter = current_user) WITH CHECK (reporter = current_user);
CREATE ROLE metrics_test_reporter;
SELECT metrics_grant('metrics_test_reporter', 'writer') \gset
SET LOCAL ROLE metrics_test_reporter;
SELECT metrics_report(1, 'node_8', '{"a": 1}') AS reported \gset
RESET ROLE;
SET a.setting = 'owner''s';
SELECT clock_timestamp() AS later \gset
ALTER TABLE metrics DROP COLUMN dropped;
ALTER TABLE metrics ADD COLUMN new text DEFAULT 'new';
SELECT metrics_report(1, 'node_8', '{"a": 2}') \gset
CALL metrics_maintain();
SELECT results_eq($$SELECT metrics ->> 'a', reporter = current_user, message, size, "No Default", new FROM metrics WHERE metric_group = 'node_8' ORDER BY id$$,
    $$VALUES ('1', false, '{it''s,NULL,reporter''s}'::text[], 8, NULL::text, 'new'), ('2', true, '{it''s,NULL,owner''s}', 8, NULL, 'new')$$, 'values are those of the report');
SELECT is((SELECT at < :'later' FROM metrics WHERE id = :reported), true, 'and of its time');
SET LOCAL ROLE metrics_test_reporter;
SELECT is((SELECT count(*)::int FROM metrics), 1, 'its reporter finds his row');
RESET ROLE;
ALTER TABLE metrics DISABLE ROW LEVEL SECURITY;

-- Hostile keys.
SELECT metrics_route_group('%') \gset
CREATE TEMP TABLE hostile (key text);
INSERT INTO hostile VALUES (''''), ('"'), ('it''s "x"'), (E'a\nb'), ('back\slash'), ('A'), ('a'), ('a '), ('%I'), ('ü💡'), ('@keys@'), ('$1'),
    ('x''); drop table metrics; --'), (repeat('k', 200)), (repeat('k', 63) || repeat('l', 137)), (repeat('💡', 50));
SELECT metrics_report(1, key, '{"a": 1}') FROM hostile \g /dev/null
CALL metrics_maintain();
SELECT set_eq($$SELECT metric_group, partition_type, count(*) FROM metrics WHERE metric_group NOT LIKE 'node%' GROUP BY 1, 2$$,
    'SELECT key AS g, key, 1::bigint FROM hostile', 'each hostile key has its row');
SELECT is((SELECT count(DISTINCT tableoid)::int FROM metrics WHERE metric_group NOT LIKE 'node%'), (SELECT count(*)::int FROM hostile), 'in a partition of its own');
SELECT is((SELECT count(*)::int FROM hostile, LATERAL metrics_profiling_rows(1, key)), (SELECT count(*)::int FROM hostile), 'where its reader finds it');

-- Rows of a deleted trial go, and the rest of the key moves.
SELECT metrics_unroute_group('%') \gset
SELECT report('node_9', 1, 6) \gset
DELETE FROM trials WHERE id = 2;
CALL metrics_maintain();
SELECT is(values_of('node_9'), '2,3,5,6', 'the rows of a trial that was deleted meanwhile are gone');

-- What only says that it was not the time for it is no fault of a row.
CREATE TABLE code (code text);
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql SET search_path = metrics AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = (SELECT code FROM code), MESSAGE = 'no';
END $$;
GRANT SELECT ON code TO PUBLIC;
CREATE TRIGGER fails BEFORE INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION fails();
SELECT report('node_10', 2, 2) \gset
SELECT helper.run(format('INSERT INTO code VALUES (%L); CALL metrics_maintain()', '40P01')) \g /dev/null
SELECT helper.run(format('UPDATE code SET code = %L; CALL metrics_maintain()', c)) FROM unnest(ARRAY['53100', '55P03', '58030']) c \g /dev/null
CREATE FUNCTION cancels(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN false;
EXCEPTION WHEN query_canceled THEN
    RETURN true;
END $$;
SELECT is(cancels('UPDATE code SET code = ''57014''; CALL metrics_maintain()'), true, 'cancelling ends all of it');
SELECT is(pending_of('node_10'), '0  ', 'deadlocks, a full disk, lack of a lock are not put down to the row');
UPDATE code SET code = '42P01';
CALL metrics_maintain();
SELECT is(pending_of('node_10'), '1 42P01 no', 'what its trigger finds is');
DROP TRIGGER fails ON metrics;

SELECT * FROM finish();
ROLLBACK;
