-- Stores under other names, one after the other in one session; stores of
-- owners that are no superusers.
BEGIN;
SET client_min_messages TO warning;
CREATE SCHEMA "The home";
CREATE EXTENSION metrics_ext SCHEMA "The home";
SET search_path TO public, "The home";
SELECT plan(20);

SELECT is(metrics_create_store('My "own" störe')::text, '"My ""own"" störe".metrics', 'a store in a schema that needs quoting');
SELECT lives_ok($$SELECT metrics_register_trial(1, 0, 3, 'loss')$$, 'registers');
SELECT lives_ok(format($$SELECT metrics_report(1, %L, '{"loss": 1}', 1)$$, g), 'and takes a report of group ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g;
SELECT is((SELECT count(*)::int FROM "My ""own"" störe".metrics), 4, 'which are there');
SELECT is((SELECT count(*)::int FROM metrics_rows(1)), 3, 'and are read');
SELECT is(metrics_best_trial(3), 1, 'by every reader');
SELECT hasnt_schema('metrics', 'and nothing stands in metrics');
SELECT has_view('metrics_bi', 'runs', 'its views stand in metrics_bi all the same');

DROP EXTENSION metrics_ext CASCADE;
DROP SCHEMA "My ""own"" störe" CASCADE;
CREATE EXTENSION metrics_ext SCHEMA public;
SELECT is(metrics_create_store()::text, 'metrics.metrics', 'another store in the same session');
SELECT metrics_register_trial(1) \gset
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"loss": 1}', 1)$$, 'takes its own reports');
SELECT is((SELECT count(*)::int FROM metrics.metrics), 1, 'and has them');
DROP EXTENSION metrics_ext CASCADE;
DROP SCHEMA metrics, metrics_bi CASCADE;

-- Views of somebody else's are not replaced.
CREATE EXTENSION metrics_ext SCHEMA public;
CREATE SCHEMA metrics_bi;
CREATE TABLE metrics_bi.runs ();
SELECT throws_like('SELECT metrics_create_store()', 'cannot upgrade the metrics store because its views cannot be made', 'a table in the place of a view is not replaced');
DROP SCHEMA metrics_bi CASCADE;

-- Anyone who may create a schema may have the store.
CREATE ROLE store_keeper;
SELECT format('GRANT CREATE ON DATABASE %I TO store_keeper', current_database()) AS grant_create \gset
:grant_create;
SET ROLE store_keeper;
SELECT is(metrics_create_store()::text, 'metrics.metrics', 'a store of a role that is no superuser');
SELECT metrics_register_trial(1) \gset
SELECT lives_ok($$SELECT metrics_report(1, 'cpu', '{"loss": 1}')$$, 'who reports to it');
RESET ROLE;
SELECT is((SELECT array_agg(DISTINCT pg_get_userbyid(relowner)) FROM pg_class
           WHERE relnamespace = 'metrics'::regnamespace), '{store_keeper}', 'and owns all of it');
SELECT is(pg_get_userbyid(nspowner), 'store_keeper', 'schema included')
FROM pg_namespace WHERE nspname = 'metrics';
SELECT is((SELECT array_agg(DISTINCT pg_get_userbyid(relowner)) FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace), '{store_keeper}', 'and the views');

SELECT * FROM finish();
ROLLBACK;
