-- A plan that a session made while the tables were empty is kept when they are
-- not: it must not read them from end to end.
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store() \gset
SET search_path = metrics, public;
SELECT plan(2);

SELECT count(metrics_register_trial(t)) FROM generate_series(1, 200) t \gset
VACUUM ANALYZE metrics;
SELECT count(metrics_report(1 + s % 100, g, '{"a": 1}', s))
FROM generate_series(1, 1000) s, unnest(ARRAY['training', 'validation', 'inference']) g \gset
BEGIN;
SELECT count(metrics_report(1 + s % 100, g, '{"a": 1}', 1000 + s))
FROM generate_series(1, 100) s, unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g \gset
SELECT is((SELECT sum(seq_tup_read)::bigint FROM pg_stat_xact_user_tables
           WHERE schemaname = 'metrics' AND relname IN ('raw_steps', 'raw_validations', 'generic_metrics', 'system_metrics', 'trials', 'metrics_trial_state')),
    0::bigint, 'reports read no table from end to end');
SELECT count(metrics_report(100 + s, 'training', '{"a": 1}', 1)) FROM generate_series(1, 100) s \gset
SELECT is((SELECT sum(seq_tup_read)::bigint FROM pg_stat_xact_user_tables WHERE schemaname = 'metrics' AND relname = 'raw_steps'),
    0::bigint, 'nor do the first reports of trials');
COMMIT;

SELECT * FROM finish();
