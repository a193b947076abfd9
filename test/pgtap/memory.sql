-- The memory that functions take does not grow with the rows that they read.
BEGIN;
\ir include/store.sql
SELECT plan(8);

-- The most memory that this backend has ever had, in MB.
CREATE FUNCTION helper.peak_memory() RETURNS numeric
LANGUAGE sql VOLATILE AS $$
    SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+) kB')::numeric / 1024
$$;
CREATE FUNCTION helper.stays_small(statement text, most numeric, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    before numeric;
BEGIN
    -- The pages that it reads are shared, and count as soon as they are touched.
    PERFORM count(*), max(pg_column_size(metrics)) FROM metrics.metrics;
    before := helper.peak_memory();
    EXECUTE statement;
    RETURN cmp_ok(helper.peak_memory() - before, '<', most, description);
END $$;

-- Without the queue of foreign key checks, whose memory would hide the rest.
SELECT metrics_register_trial(1, 0, 1, 'loss') \gset
SET LOCAL session_replication_role TO replica;
INSERT INTO metrics (trial_id, total_batches, end_time, metric_group, partition_type, metrics)
SELECT 1, n, '2024-01-01 00:00+00'::timestamptz + n * interval '1 second', g, p, CASE k WHEN '' THEN m ELSE jsonb_build_object(k, m) END
FROM (VALUES ('training', 'TRAINING', 'avg_metrics', 100000), ('validation', 'VALIDATION', 'validation_metrics', 50000), ('inference', 'GENERIC', 'avg_metrics', 50000)) v(g, p, k, rows),
     generate_series(1, rows) n, LATERAL (SELECT jsonb_build_object('loss', n * 0.1, 'acc', 1.0 / n, 'note', 'n' || n)) d(m);
SET LOCAL session_replication_role TO origin;
ANALYZE metrics;

SELECT helper.stays_small('SELECT metrics_recompute_summary(1)', 20, 'a recompute of 200,000 rows');
SELECT is((SELECT summary_metrics -> 'avg_metrics' -> 'loss' ->> 'count' FROM trials), '100000', 'which counts them');
SELECT helper.stays_small('SELECT metrics_recompute_summary(1) FROM generate_series(1, 2)', 20, 'and again and again');
SELECT helper.stays_small($$SELECT metrics_register_trial(1, 0, NULL, 'acc', false)$$, 20, 'as does another searcher metric');
DELETE FROM metrics_trial_state;
SELECT helper.stays_small($$SELECT metrics_report(1, 'training', '{"loss": 1}', 300000)$$, 20, 'and a report that finds no state');
SELECT is((SELECT summary_metrics -> 'avg_metrics' -> 'loss' ->> 'count' FROM trials), '100001', 'which is right then');
SELECT helper.stays_small($$SELECT metrics_report_batch((SELECT jsonb_agg(jsonb_build_object('trial_id', 1, 'metric_group', 'training', 'metrics', '{"loss": 1}'::jsonb,
    'steps_completed', n)) FROM generate_series(400001, 402000) n))$$, 20, 'and a batch of 2,000');
SELECT is((SELECT summary_metrics -> 'avg_metrics' -> 'loss' ->> 'count' FROM trials), '102001', 'which is right, too');

SELECT * FROM finish();
ROLLBACK;
