-- Views as BI tools see and query them: D16, D23 to D27 of the reference, and
-- the queries of the source document.
BEGIN;
\ir include/store.sql
SELECT * FROM no_plan();

SELECT metrics_start_run(format('run_%s', n), '{"batch_size": 100}', timestamptz '2026-01-20 00:00+00' + n * interval '1 day') FROM generate_series(1, 3) n \g /dev/null
SELECT metrics_start_run('other', '{"batch_size": 200}', '2026-01-22 12:00+00') \g /dev/null
SELECT metrics_report_operator(r, s, o, 'worker_' || w, 1000 * w, 900 * w, w * f, w - 1, ARRAY[0.001, 0.002, 0.004, 0.009, 0.03] || ARRAY[w]::float8[],
    custom_metrics => '{"hits": 3, "kind": "x"}', at => start_time + w * interval '1 second')
FROM (VALUES ('embedding_stage', 'Embed', 3), ('embedding_stage', 'Filter', 1), ('load', 'Load', 2)) v(s, o, f), generate_series(1, 2) w, (SELECT run_id AS r, start_time FROM runs) r \g /dev/null
SELECT metrics_finish_run(run_id, start_time + CASE run_id WHEN 'run_2' THEN 10 ELSE 20 END * interval '1 second') FROM runs WHERE run_id <> 'run_3' \g /dev/null
SELECT metrics_register_trial(1, 0, 1, 'loss') \g /dev/null
SELECT metrics_report(1, 'training', '{"loss": 0.5, "note": "x", "bad": "NaN"}', 10, report_time => '2026-01-24 02:00+00'), metrics_report(1, 'validation', '{"loss": 0.6}', 10),
    metrics_report(1, 'gpu', '{"agent": {"GPU-0": {"util": 97.5, "bad": "Infinity"}}}', report_time => '2026-01-24 02:00+00') \g /dev/null

-- D23: what is in the schema, and of what types.
SELECT set_eq($$SELECT relname::text FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace$$,
    ARRAY['runs', 'stages', 'operators', 'operator_totals', 'operator_latency', 'stage_bottlenecks', 'run_comparison', 'custom_metrics', 'trial_metrics', 'profiling', 'partitions',
        'perf_series', 'perf_points', 'perf_alerts', 'perf_compare'], 'D23: the views');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace AND relkind <> 'v'$$, 'D23: and nothing else');
SELECT is_empty($$SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'metrics_bi'::regnamespace AND attnum > 0
    AND atttypid::regtype::text <> ALL (ARRAY['text', 'bigint', 'integer', 'double precision', 'timestamp with time zone', 'boolean'])$$, 'D23: of types that BI tools know');
SELECT is_empty($$SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'metrics_bi'::regnamespace AND attnum > 0
    AND col_description(attrelid, attnum) IS NULL$$, 'D23: each column has a comment');
SELECT is_empty($$SELECT relname FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace AND obj_description(oid) IS NULL$$, 'D23: and each view');
SELECT set_eq($$SELECT DISTINCT ON (relname) relname || '.' || attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = 'metrics_bi'::regnamespace AND atttypid = 'timestamptz'::regtype ORDER BY relname, attnum$$,
    ARRAY['custom_metrics.timestamp', 'operator_latency.start_time', 'operator_totals.start_time', 'operators.timestamp', 'partitions.created', 'profiling.end_time',
        'perf_series.last_updated', 'perf_points.push_timestamp', 'perf_alerts.push_timestamp', 'perf_compare.push_timestamp',
        'run_comparison.start_time', 'runs.start_time', 'stage_bottlenecks.start_time', 'stages.timestamp', 'trial_metrics.end_time'], 'D23: the main time comes first');
CREATE FUNCTION helper.view_columns(view text, n integer) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT string_agg(attname || ' ' || replace(replace(format_type(atttypid, -1), 'timestamp with time zone', 'timestamp'), 'double precision', 'double'), ', ' ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = ('metrics_bi.' || view)::regclass AND attnum BETWEEN 1 AND n
$$;
SELECT is(helper.view_columns('operators', 18), 'run_id text, stage_name text, operator_name text, worker_id text, timestamp timestamp, input_records bigint, output_records bigint, pass_rate double, total_time double, '
    'avg_latency double, min_latency double, max_latency double, p50_latency double, p95_latency double, p99_latency double, throughput double, error_count bigint, custom_metrics text', 'operators begins with the source''s columns');
SELECT is(helper.view_columns('stages', 12), 'run_id text, stage_name text, timestamp timestamp, num_workers bigint, input_records bigint, output_records bigint, pass_rate double, total_time double, '
    'avg_throughput double, min_throughput double, max_throughput double, error_count bigint', 'so does stages');
SELECT is(helper.view_columns('runs', 11), 'run_id text, start_time timestamp, end_time timestamp, duration double, num_stages bigint, total_input_records bigint, total_output_records bigint, '
    'overall_pass_rate double, avg_throughput double, total_errors bigint, config text', 'and runs');

-- The queries of the source document, to the letter.
SELECT results_eq($$
SELECT
    operator_name,
    AVG(throughput) as avg_throughput,
    AVG(p95_latency * 1000) as p95_latency_ms
FROM operators
GROUP BY operator_name
ORDER BY avg_throughput ASC
LIMIT 10
$$, $$VALUES ('Embed', 1000 / 3::float8, 1500::float8), ('Load', 500, 1500), ('Filter', 1000, 1500)$$, 'find slow operators');
SELECT results_eq($$
SELECT
    DATE_TRUNC('hour', timestamp) as hour,
    AVG(pass_rate) as avg_pass_rate
FROM stages
WHERE stage_name = 'embedding_stage'
GROUP BY hour
ORDER BY hour DESC
$$, $$VALUES (timestamptz '2026-01-23 00:00+00', 90::float8), ('2026-01-22 12:00+00', 90), ('2026-01-22 00:00+00', 90), ('2026-01-21 00:00+00', 90)$$, 'analyze pass rate trends');

-- D24: what a chart sends, of each view: time series, table, totals.
SELECT lives_ok(replace(replace(statement, '@view', view), '@time', "time"), format('D24: %s: %s', view, statement))
FROM (SELECT DISTINCT ON (relname) 'metrics_bi.' || relname AS view, attname::text AS "time" FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'metrics_bi'::regnamespace AND atttypid = 'timestamptz'::regtype ORDER BY relname, attnum) v,
    unnest(ARRAY[$$SELECT DATE_TRUNC('day', "@time") AS "@time", COUNT(*) AS count FROM @view WHERE "@time" >= TO_TIMESTAMP('2026-01-20 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND "@time" < TO_TIMESTAMP('2026-01-25 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', "@time") ORDER BY count DESC LIMIT 10000$$,
        $$SELECT DATE_TRUNC('hour', "@time") + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM "@time") / 5) AS t, COUNT(*) FROM @view GROUP BY 1 LIMIT 50000$$,
        $$SELECT * FROM @view ORDER BY "@time" DESC LIMIT 1000 OFFSET 0$$]) statement;
SELECT is((SELECT count(*)::int FROM pg_class WHERE relnamespace = 'metrics_bi'::regnamespace AND relname !~ '^perf_' AND
    (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM metrics_bi.%I', relname), true, true, '')))[1]::text = '0'), 0, 'D24: none of them is empty');
-- NaN reaches no chart.
SELECT is_empty($$SELECT * FROM trial_metrics WHERE metric_name IN ('bad', 'note')$$, 'trial metrics are finite numbers');
SELECT results_eq('SELECT metric_group, metric_name, total_batches, value FROM trial_metrics ORDER BY 1', $$VALUES ('training', 'loss', 10, 0.5::float8), ('validation', 'loss', 10, 0.6)$$, 'in long form');
SELECT results_eq('SELECT metric_group, agent, device, metric_name, value FROM profiling', $$VALUES ('gpu', 'agent', 'GPU-0', 'util', 97.5::float8)$$, 'so is profiling');

-- Totals over workers.
SELECT is(ROW(num_workers, input_records, output_records, total_time, sum_time, throughput, avg_throughput, error_count, latency_count)::text, '(2,3000,2700,6,9,500,333.3333333333333,1,12)', 'an operator over its workers')
FROM operator_totals WHERE run_id = 'run_1' AND operator_name = 'Embed';
SELECT results_eq($$SELECT quantile, in_box FROM operator_latency WHERE run_id = 'run_1' AND operator_name = 'Embed' ORDER BY fraction$$,
    $$VALUES ('min', true), ('p25', true), ('p50', true), ('p75', true), ('p95', false), ('p99', false), ('max', true)$$, 'D26: its latencies in long form');
-- numpy's midpoint quartiles of five values are the second and the fourth.
SELECT is((SELECT array_agg(latency ORDER BY latency) FROM operator_latency WHERE run_id = 'run_1' AND operator_name = 'Embed' AND in_box),
    (SELECT ARRAY[min_latency, p25_latency, p50_latency, p75_latency, max_latency] FROM operator_totals WHERE run_id = 'run_1' AND operator_name = 'Embed'), 'D26: five values make the box');
SELECT results_eq($$SELECT stage_name, is_bottleneck, round(time_share::numeric), slowest_operator FROM stage_bottlenecks WHERE run_id = 'run_1' ORDER BY ordinal$$,
    $$VALUES ('embedding_stage', true, 60::numeric, 'Embed'), ('load', false, 40, 'Load')$$, 'bottlenecks');
SELECT results_eq($$SELECT run_id, previous_run_id, duration_change, throughput_change FROM run_comparison ORDER BY start_time$$,
    $$VALUES ('run_1', NULL, NULL::float8, NULL::float8), ('run_2', 'run_1', -50, 100), ('other', NULL, NULL, NULL), ('run_3', 'run_2', NULL, -100)$$, 'runs beside the last of their config');
SELECT results_eq($$SELECT bucket, operator, n, abs(p95 / 2 - 1) <= 0.01 FROM metrics_operator_percentiles('1 day', 'load', until => '2026-01-23')$$,
    $$VALUES (timestamptz '2026-01-21 00:00+00', 'Load', 12::bigint, true), ('2026-01-22 00:00+00', 'Load', 24, true)$$, 'percentiles by day');

-- Percentiles over workers: eight of 10,000 records, each of another shape.
CREATE TEMP TABLE latency AS
SELECT w, CASE w % 4 WHEN 0 THEN 0.001 * exp(n / 2000.0) WHEN 1 THEN 0.01 + n / 1e6 WHEN 2 THEN 0.5 / (1 + n % 97) ELSE 0.02 * (1 + (n % 3) * (w + 1)) END::float8 AS v
FROM generate_series(1, 8) w, generate_series(1, 10000) n;
SELECT metrics_start_run('shapes') \g /dev/null
SELECT metrics_report_operator('shapes', 's', 'o', 'w' || w, 10000, 10000, sum(v), latencies => array_agg(v)) FROM latency GROUP BY w \g /dev/null
SELECT ok(abs(have / want - 1) <= 0.01, format('p%s over workers is that of all records within 1 %%: %s, %s', 100 * q, have, want))
FROM (SELECT unnest(ARRAY[p50_latency, p95_latency, p99_latency]) AS have, unnest(ARRAY[0.5, 0.95, 0.99]) AS q FROM operator_totals WHERE run_id = 'shapes') h,
    LATERAL (SELECT percentile_cont(q) WITHIN GROUP (ORDER BY v) AS want FROM latency) w;
SELECT ok(abs((SELECT avg(p95_latency) FROM operators WHERE run_id = 'shapes') / (SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY v) FROM latency) - 1) > 0.2,
    'which the mean of the workers'' p95 is not');

-- D16: parallel plans give the same.
CREATE TEMP TABLE serial AS SELECT (SELECT jsonb_agg(t ORDER BY run_id, stage_name, operator_name) FROM operator_totals t) AS totals,
    (SELECT metrics_percentile(metrics_sketch_merge(latency_sketch::metrics_sketch), 0.95) FROM pipeline_operators) AS p95;
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 4;
SELECT is((SELECT jsonb_agg(t ORDER BY run_id, stage_name, operator_name) FROM operator_totals t), (SELECT totals FROM serial), 'D16: views, planned in parallel');
SELECT is((SELECT metrics_percentile(metrics_sketch_merge(latency_sketch::metrics_sketch), 0.95) FROM pipeline_operators), (SELECT p95 FROM serial), 'D16: merging sketches in parallel');
-- D17
SELECT throws_ok(format('SELECT metrics_latency((SELECT metrics_sketch(1::float8)::bytea), %L)', q), '22003', NULL, 'D17: fraction ' || q) FROM unnest(ARRAY['-0.1', '1.1', 'NaN']) q;
SELECT is(ARRAY[metrics_latency(s, 0), metrics_latency(s, 1), metrics_latency(NULL, 0.5)], '{1,9,0}', 'D17: 0 is the least, 1 the greatest') FROM (SELECT metrics_sketch(v::float8)::bytea AS s FROM generate_series(1, 9) v) t;
SELECT is(ARRAY[metrics_ratio(1, 2), metrics_ratio(1, 0), metrics_ratio(1, -1), metrics_ratio(1e300, 1e-300), metrics_ratio('NaN', 1), metrics_ratio(1, NULL)], '{0.5,0,0,0,0,NULL}', 'a ratio is finite');

-- D25: instants do not depend on the zone, days do.
SELECT metrics_report_operator('shapes', 'zones', 'o', 'w', 1, 1, 1, at => '2026-01-24 02:00+00') \g /dev/null
SET LOCAL timezone = 'America/New_York';
SELECT is(date_trunc('day', timestamp)::date, date '2026-01-23', 'D25: a day in New York') FROM operators WHERE stage_name = 'zones';
SELECT is(extract(epoch FROM timestamp), extract(epoch FROM timestamptz '2026-01-24 02:00+00'), 'D25: of the same instant') FROM operators WHERE stage_name = 'zones';
SET LOCAL timezone = 'UTC';
SELECT is(date_trunc('day', timestamp)::date, date '2026-01-24', 'D25: a day in UTC') FROM operators WHERE stage_name = 'zones';

SELECT * FROM finish();
ROLLBACK;
