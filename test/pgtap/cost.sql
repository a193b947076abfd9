-- What a report and a page cost does not grow with what is stored: counted in
-- rows that are read, not in time.
BEGIN;
\ir include/store.sql
SELECT plan(26);

-- Rows that a statement reads from the store's tables. The counters of a
-- transaction are exact.
CREATE FUNCTION helper.rows_read(OUT scanned bigint, OUT fetched bigint)
LANGUAGE sql VOLATILE AS $$
    SELECT sum(seq_tup_read)::bigint, sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint
    FROM pg_stat_xact_user_tables
    WHERE schemaname = 'metrics' AND relname IN ('raw_steps', 'raw_validations', 'generic_metrics', 'system_metrics', 'trials')
$$;
CREATE FUNCTION helper.cost(statement text, times integer DEFAULT 1) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    before bigint := (SELECT fetched FROM helper.rows_read());
BEGIN
    FOR i IN 1 .. times LOOP
        EXECUTE statement;
    END LOOP;
    RETURN (SELECT fetched FROM helper.rows_read()) - before;
END $$;
CREATE FUNCTION helper.cheap(statement text, most integer, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    cost bigint;
BEGIN
    -- The first call of a session plans, and may look at more.
    cost := helper.cost(statement);
    RETURN cmp_ok(cost, '<=', most::bigint, format('%s (read %s, at most %s)', description, cost, most));
END $$;

-- Two thousand rows of each of two trials in each partition.
SELECT metrics_register_trial(t, 0, 1, 'loss') FROM generate_series(1, 2) t \g /dev/null
INSERT INTO metrics (trial_id, total_batches, end_time, metric_group, partition_type, metrics)
SELECT t, CASE WHEN p <> 'PROFILING' THEN n END, '2024-01-01 00:00+00'::timestamptz + n * interval '1 second', g, p,
       CASE k WHEN '' THEN m ELSE jsonb_build_object(k, m) END
FROM generate_series(1, 2) t, generate_series(1, 2000) n,
     (VALUES ('training', 'TRAINING', 'avg_metrics'), ('validation', 'VALIDATION', 'validation_metrics'),
             ('inference', 'GENERIC', 'avg_metrics'), ('cpu', 'PROFILING', '')) v(g, p, k),
     LATERAL (SELECT jsonb_build_object('loss', n, 'acc', n % 7)) d(m);
SELECT metrics_recompute_summary(t) FROM generate_series(1, 2) t \g /dev/null
ANALYZE;
SELECT is((SELECT count(*)::int FROM metrics WHERE trial_id = 1), 8000, 'eight thousand rows of a trial');

SELECT helper.cheap(format($$SELECT metrics_report(1, %L, '{"loss": 1, "acc": 2}', 2001)$$, g), 20, 'a report of group ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference', 'new', 'cpu']) g;
SELECT helper.cheap(format($$SELECT metrics_report(1, %L, '{"more": 1}', 1000)$$, g), 20, 'a merge into the middle of group ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference']) g;
SELECT helper.cheap(format($$SELECT metrics_report(1, %L, '{"more": 1}', 2001)$$, g), 20, 'a merge into the newest row of group ' || g)
FROM unnest(ARRAY['training', 'validation', 'inference']) g;
SELECT helper.cheap($$SELECT metrics_report(1, 'training', '{"loss": 1}', 2002, report_time => '2023-01-01 00:00+00')$$, 20, 'a report of the past');
SELECT helper.cheap($$SELECT metrics_report(1, 'training', '{"loss": "text"}', 2003)$$, 20, 'a report that changes a type');
SELECT helper.cheap($$SELECT metrics_report_batch((SELECT jsonb_agg(jsonb_build_object('trial_id', 1, 'metric_group', 'training', 'metrics', '{"loss": 1}'::jsonb, 'steps_completed', n))
                      FROM generate_series(3001, 3100) n))$$, 1000, 'a batch of a hundred reports');
SELECT metrics_register_trial(2, 1) \gset
SELECT helper.cheap($$SELECT metrics_report(2, 'training', '{"loss": 1}', 2500, 1)$$, 20, 'the first report of a later run that archives nothing');
SELECT helper.holds(1, 'and the trial holds');

SELECT helper.cheap($$SELECT * FROM metrics_rows(1, 'training', 1500, 10)$$, 30, 'a page of a group');
SELECT helper.cheap($$SELECT * FROM metrics_rows(1, 'inference', 1500, 10)$$, 30, 'a page of a generic group');
SELECT helper.cheap($$SELECT * FROM metrics_rows(1, NULL, 1500, 10)$$, 100, 'a page of all groups');
SELECT helper.cheap($$SELECT * FROM metrics_profiling_rows(1, 'cpu', max_rows => 10)$$, 30, 'the first page of profiling');
SELECT helper.cheap($$SELECT * FROM metrics_profiling_rows(1, 'cpu', after_time => '2024-01-01 00:25+00', after_id => 1, max_rows => 10)$$, 30, 'a late page of profiling');
SELECT helper.cheap($$SELECT * FROM metrics_profiling_rows(1, 'cpu', since => '2024-01-01 00:25+00', until => '2024-01-01 00:25:05+00')$$, 30, 'five seconds of profiling');
SELECT helper.cheap($$SELECT * FROM metrics_timeseries(1, 'training', 'acc', 20, 1500, 1520)$$, 60, 'a series of twenty batches');
SELECT helper.cheap($$SELECT * FROM metrics_trials_snapshot(1, 'validation', 'loss', 1500, 5)$$, 60, 'a snapshot');
SELECT helper.cheap($$SELECT metrics_best_trial(1)$$, 20, 'the best trial');

SELECT * FROM finish();
ROLLBACK;
