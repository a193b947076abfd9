-- Operator rows and profiling in time ranges, and retention: D24 and D31 of the
-- reference. What interrupts the change is in test/t/202_partition_by_time.pl.
BEGIN;
\ir include/store.sql
SELECT plan(56);

CREATE ROLE metrics_test_reader;
CREATE ROLE metrics_test_bi;
SELECT metrics_grant('metrics_test_reader', 'reader'), metrics_grant('metrics_test_bi', 'bi') \g /dev/null
SELECT metrics_register_trial(1) \g /dev/null
INSERT INTO metrics (trial_id, end_time, metrics, metric_group, partition_type)
SELECT 1, now() - n * interval '1 hour', '{"u": 1}'::jsonb, 'cpu', 'PROFILING' FROM generate_series(1, 300) n UNION ALL SELECT 1, NULL, '{"u": 2}', 'cpu', 'PROFILING';
SELECT metrics_start_run(r, at => now() - age) FROM (VALUES ('old', interval '100 days'), ('straddling', '70 days'), ('running', '90 days'), ('new', '2 days')) v(r, age) \g /dev/null
SELECT metrics_report_operator(r, 's', 'o', 'w' || n % 4, 10, 5, 1, latencies => '{0.1}', at => now() - age + n * days / 40.0 * interval '1 day')
FROM (VALUES ('old', interval '100 days', 10), ('straddling', '70 days', 40), ('running', '90 days', 90), ('new', '2 days', 1)) v(r, age, days), generate_series(1, 40) n \g /dev/null
SELECT metrics_finish_run('old', now() - interval '85 days'), metrics_finish_run('straddling', now() - interval '20 days'), metrics_finish_run('new') \g /dev/null
COMMENT ON TABLE pipeline_operators IS 'mine';
CREATE INDEX mine ON system_metrics (end_time) WHERE NOT archived;
ALTER TABLE pipeline_operators ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON pipeline_operators USING (run_id <> 'hidden');
GRANT SELECT (run_id) ON pipeline_operators TO PUBLIC;

-- What a table is, but for its OID and how it is stored.
CREATE FUNCTION helper.described(relation text) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', 'table', relrowsecurity, relforcerowsecurity, pg_get_userbyid(relowner), obj_description(c.oid, 'pg_class'), relispartition, pg_get_expr(relpartbound, c.oid))
    FROM pg_class c WHERE c.oid = relation::regclass
    UNION ALL SELECT concat_ws(' ', 'grant', a.*) FROM pg_class c, aclexplode(relacl) a WHERE c.oid = relation::regclass
    UNION ALL SELECT concat_ws(' ', 'column', attname, format_type(atttypid, atttypmod), attnotnull, attacl, pg_get_expr(adbin, adrelid), col_description(attrelid, attnum))
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = relation::regclass AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT concat_ws(' ', 'constraint', conname, pg_get_constraintdef(oid), convalidated) FROM pg_constraint WHERE conrelid = relation::regclass AND contype <> 't'
    UNION ALL SELECT concat_ws(' ', 'index', replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON '), indisvalid) FROM pg_index WHERE indrelid = relation::regclass
    UNION ALL SELECT concat_ws(' ', 'policy', polname, pg_get_expr(polqual, polrelid)) FROM pg_policy WHERE polrelid = relation::regclass
    UNION ALL SELECT concat_ws(' ', 'parent', inhparent::regclass) FROM pg_inherits WHERE inhrelid = relation::regclass
$$;
CREATE FUNCTION helper.checksum(relation text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM %s t', relation) INTO result;
    RETURN result;
END $$;
CREATE TEMP TABLE before AS SELECT t, helper.checksum(t) AS rows, ARRAY(SELECT d FROM helper.described(t) d ORDER BY d) AS described FROM unnest(ARRAY['metrics.pipeline_operators', 'metrics.system_metrics']) t;
CREATE TEMP TABLE figures AS SELECT (SELECT jsonb_agg(r ORDER BY run_id) FROM runs r) AS runs, (SELECT jsonb_agg(t ORDER BY run_id) FROM operator_totals t) AS totals;

-- Refused, and the table stays as it is.
SELECT throws_like($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day')$$, 'extension "pg_partman" is not installed in this database', 'without pg_partman');
SELECT helper.refuses($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day')$$, '42704', 'extension "pg_partman"', 'nothing changes, and a hint says what to install');
SELECT ok(helper.error_context($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day')$$) <> 'no error', 'whenever it is called');
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
SELECT helper.refuses(format('SELECT metrics_partition_by_time(%L, %L)', t, w), s, '', format('%s by %s', t, w))
FROM (VALUES ('metrics.trials', '1 day', '42809'), ('metrics.metrics', '1 day', '42809'), ('metrics.raw_steps', '1 day', '42809'), ('pg_class', '1 day', '42809'),
    ('metrics.pipeline_operators', '0', '22023'), ('metrics.pipeline_operators', '-1 day', '22023'), ('metrics.pipeline_operators', '1 minute', '54000')) v(t, w, s);
SELECT helper.refuses($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day', '-1 day')$$, '22023', 'retention must be greater than zero', 'retention is positive');
CREATE VIEW helper.mine AS SELECT * FROM pipeline_operators;
SELECT helper.refuses($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day')$$, '2BP01', 'cannot partition metrics.pipeline_operators by time', 'a view of the user''s is in the way');
DROP VIEW helper.mine;
CREATE FUNCTION helper.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER mine AFTER INSERT ON pipeline_operators EXECUTE FUNCTION helper.nothing();
SELECT helper.refuses($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day')$$, '2BP01', 'cannot partition metrics.pipeline_operators by time', 'so is a trigger');
DROP TRIGGER mine ON pipeline_operators;
SELECT is(helper.checksum(t), rows, 'the rows are there: ' || t) FROM before;

-- Done.
SELECT lives_ok($$SELECT metrics_partition_by_time('metrics.pipeline_operators', '7 days')$$, 'operator rows by week');
SELECT lives_ok($$SELECT metrics_partition_by_time('metrics.system_metrics', '7 days', '1 year')$$, 'profiling by week');
SELECT is(relkind, 'p', t || ' is partitioned') FROM before JOIN pg_class c ON c.oid = t::regclass;
SELECT is(helper.checksum(t), rows, 'with every row: ' || t) FROM before;
SELECT is(ARRAY(SELECT d FROM helper.described(t) d ORDER BY d), described, 'with all it had: ' || t) FROM before;
SELECT is((SELECT jsonb_agg(r ORDER BY run_id) FROM runs r), runs, 'views show the same') FROM figures;
SELECT is((SELECT jsonb_agg(r ORDER BY run_id) FROM operator_totals r), totals, 'percentiles, too') FROM figures;
SELECT is((SELECT count(*)::int FROM pg_class WHERE relname LIKE 'metrics_plain%'), 0, 'nothing is left behind');
SELECT is((SELECT array_agg(inhrelid::regclass::text ORDER BY inhrelid::regclass::text COLLATE "C") FROM pg_inherits WHERE inhparent = 'metrics.metrics'::regclass), '{generic_metrics,raw_steps,raw_validations,system_metrics}', 'system_metrics is a partition of metrics');
SELECT is((SELECT retention FROM partman.part_config WHERE parent_table = 'metrics.system_metrics'), '1 year', 'pg_partman knows the retention');
SELECT lives_ok($$SELECT metrics_partition_by_time('metrics.system_metrics', '7 days')$$, 'called again');
SELECT is((SELECT retention FROM partman.part_config WHERE parent_table = 'metrics.system_metrics'), NULL, 'it sets the retention');
SELECT is(helper.checksum('metrics.system_metrics'), (SELECT rows FROM before WHERE t ~ 'system'), 'and moves no row');
SELECT lives_ok('SELECT partman.run_maintenance()', 'pg_partman maintains it');
SELECT is((SELECT count(*)::int FROM pg_class c WHERE relispartition AND relnamespace = 'metrics'::regnamespace AND relname LIKE 'pipeline_operators_p%' AND relacl IS NOT NULL), 0, 'no partition has grants of its own');
SELECT is(metrics_report_operator('running', 's', 'o', 'w', 1, 1, 1), true, 'reports go on');
SELECT is(metrics_report_operator('running', 's', 'o', 'w', 1, 1, 1, at => '2000-01-01 00:00+00'), true, 'of times without a range, too');
SELECT is(metrics_report_operator('running', 's', 'o', 'w', 1, 1, 1, at => '2000-01-01 00:00+00'), false, 'and a row sent again is not doubled');
SELECT cmp_ok(metrics_report(1, 'cpu', '{"u": 3}'), '>', 0::bigint, 'so do those of profilers');
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(1, 'cpu', max_rows => NULL)), 301, 'whose readers read them all, but those without a time');
SELECT throws_ok($$SET LOCAL ROLE metrics_test_reader; SELECT metrics_partition_by_time('metrics.system_metrics', '7 days')$$, '42501', NULL, 'only the owner may do this');
RESET ROLE;

-- D24: a day out of many is read alone.
CREATE FUNCTION helper.explained(query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    result text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        result := concat_ws(E'\n', result, line);
    END LOOP;
    RETURN result;
END $$;
CREATE TABLE helper.monthly (LIKE metrics.pipeline_operators INCLUDING ALL) PARTITION BY RANGE (at);
SELECT helper.run(format('CREATE TABLE helper.m%s PARTITION OF helper.monthly FOR VALUES FROM (%L) TO (%L)', n, '2026-0' || n || '-01 00:00+00', '2026-0' || n + 1 || '-01 00:00+00')) FROM generate_series(1, 3) n \g /dev/null
SELECT helper.run('CREATE VIEW helper.operators AS ' || replace(replace(pg_get_viewdef('metrics_bi.operators'), 'metrics.pipeline_operators', 'helper.monthly'), ' pipeline_operators', ' helper.monthly')) \g /dev/null
SELECT matches(helper.explained($$SELECT stage_name, avg(throughput) FROM helper.operators WHERE timestamp >= TO_TIMESTAMP('2026-02-05 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
    AND timestamp < TO_TIMESTAMP('2026-02-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY 1$$), 'Subplans Removed: 2', 'D24: two of three months are not read for a day');
SELECT matches(helper.explained($$SELECT * FROM operators WHERE timestamp >= TO_TIMESTAMP('2000-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND timestamp < TO_TIMESTAMP('2000-01-02 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')$$),
    'Subplans Removed: [12]\d', 'D24: nor are weeks');
SELECT matches(helper.explained($$SELECT * FROM profiling WHERE end_time >= TO_TIMESTAMP('2000-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND end_time < TO_TIMESTAMP('2000-01-02 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')$$),
    'Subplans Removed: \d', 'D24: of profiling, neither');
SELECT unalike(helper.explained('SELECT * FROM profiling'), '%raw_steps%', 'profiling reads no training metrics');
SELECT unalike(helper.explained('SELECT * FROM trial_metrics'), '%system_metrics%', 'trial_metrics no profiling');

-- D31: retention.
SELECT count(*) AS weeks FROM pg_inherits WHERE inhparent = 'metrics.pipeline_operators'::regclass \gset
SELECT cmp_ok(:weeks, '>=', 20, 'weeks, a few to come, and the rest');
SELECT is(metrics_drop_runs(now() - interval '120 days'), 0::bigint, 'D31: no run ended so long ago');
SELECT is(metrics_drop_runs(now() - interval '50 days'), 1::bigint, 'D31: one ended before the limit');
SELECT set_eq('SELECT run_id FROM runs', ARRAY['straddling', 'running', 'new'], 'D31: a running run stays, and one that straddles the limit');
SELECT set_eq('SELECT run_id, count(*)::int FROM pipeline_operators GROUP BY 1', $$VALUES ('straddling', 40), ('running', 42), ('new', 40)$$, 'D31: each with all its rows');
SELECT cmp_ok((SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'metrics.pipeline_operators'::regclass), '<', :weeks, 'D31: a week that held rows of the dropped run alone went as a whole');
SELECT is(metrics_fail_run('running', now() - interval '49 days')::text, '', 'D31: when it has failed');
SELECT is(metrics_drop_runs(now() - interval '10 days'), 2::bigint, 'D31: it is dropped like the others');
SELECT set_eq('SELECT run_id, count(*)::int FROM pipeline_operators GROUP BY 1', $$VALUES ('new', 40)$$, 'D31: with its rows');
SELECT metrics_partition_by_time('metrics.pipeline_operators', '7 days', '14 days') \g /dev/null
SELECT lives_ok('SELECT partman.run_maintenance()', 'D31: pg_partman drops ranges after their retention');
SELECT is((SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'metrics.pipeline_operators'::regclass AND substring(pg_get_expr((SELECT relpartbound FROM pg_class WHERE oid = inhrelid), inhrelid), 'TO \(''(.*)''\)')::timestamptz < now() - interval '14 days'), 0,
    'D31: none of them is left');
SELECT is((SELECT count(*)::int FROM pipeline_operators), 40, 'D31: the rows in newer ones are');

SELECT * FROM finish();
ROLLBACK;
