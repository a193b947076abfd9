-- Figures of operators, stages and runs: D3 to D15 of the reference.
BEGIN;
\ir include/store.sql
SELECT plan(69);

-- Rows without a time of their own come a minute apart, for their order.
CREATE FUNCTION helper.operator(run text, stage text, operator text, worker text, input bigint, output bigint, seconds float8,
    errors bigint DEFAULT 0, at timestamptz DEFAULT NULL, latencies float8[] DEFAULT NULL, weights bigint[] DEFAULT NULL) RETURNS boolean
LANGUAGE sql AS $$
    SELECT metrics_report_operator(run, stage, operator, worker, input, output, seconds, errors, latencies, weights,
        at => coalesce(at, timestamptz '2026-01-24 00:00+00' + (SELECT count(*) FROM metrics.pipeline_operators) * interval '1 minute'))
$$;
CREATE FUNCTION helper.stage(run text, stage text, OUT num_workers bigint, OUT input_records bigint, OUT output_records bigint, OUT pass_rate float8,
    OUT total_time float8, OUT avg_throughput float8, OUT min_throughput float8, OUT max_throughput float8, OUT error_count bigint)
LANGUAGE sql AS $$
    SELECT num_workers, input_records, output_records, pass_rate, total_time, avg_throughput, min_throughput, max_throughput, error_count
    FROM metrics_bi.stages WHERE run_id = run AND stage_name = stage
$$;
SELECT metrics_start_run(r) FROM unnest(ARRAY['r', 'vector', 'order', 'empty', 'percentiles']) r \g /dev/null

-- Operators.
SELECT helper.operator('r', 's', 'nothing', 'w', 0, 0, 0) \g /dev/null
SELECT is(ROW(pass_rate, avg_latency, throughput, min_latency, p50_latency, p99_latency, max_latency)::text, '(0,0,0,0,0,0,0)', 'D3: no records and no time: all figures are 0')
FROM operators WHERE operator_name = 'nothing';
SELECT helper.operator('r', 's', 'some', 'w', 1000, 998, 0.5) \g /dev/null
SELECT is(ROW(pass_rate, throughput, avg_latency, avg_latency_ms)::text, '(99.8,2000,0.0005,0.5)', 'D4: rates of an operator')
FROM operators WHERE operator_name = 'some';
SELECT helper.operator('r', 's', 'quick', 'w', 10, 10, 0) \g /dev/null
SELECT is(ROW(throughput, avg_latency)::text, '(0,0)', 'D5: records in no time: throughput and latency are 0') FROM operators WHERE operator_name = 'quick';
SELECT helper.operator('r', 's', 'generator', 'w', 10, 25, 1) \g /dev/null
SELECT is(pass_rate, 250::float8, 'D6: a generator passes more than 100 %') FROM operators WHERE operator_name = 'generator';

-- D5: what no row may hold. The same as a batch, and as an INSERT.
CREATE TEMP TABLE bad (argument text, value text, state text);
INSERT INTO bad VALUES
    ('input_records', '-1', '22003'), ('output_records', '-1', '22003'), ('error_count', '-1', '22003'), ('input_records', '9007199254740992', '22003'),
    ('total_time', '-0.5', '22003'), ('total_time', '2e15', '22003'), ('run_id', '""', '22023'), ('stage_name', '""', '22023'), ('operator_name', '""', '22023'), ('worker_id', '""', '22023'),
    ('operator_name', to_json(repeat('x', 501))::text, '54000'), ('custom_metrics', '[1]', '22023'), ('custom_metrics', '7', '22023'),
    ('latencies', '[-1]', '22003'), ('latencies', '[1, 3e15]', '22003');
CREATE FUNCTION helper.call(arguments jsonb) RETURNS text
LANGUAGE sql AS $$
    SELECT 'SELECT metrics_report_operator(' || string_agg(format('%I => %L', key,
        CASE jsonb_typeof(value) WHEN 'array' THEN CASE WHEN key = 'custom_metrics' THEN value::text ELSE translate(value::text, '[]', '{}') END ELSE value #>> '{}' END), ', ') || ')'
    FROM jsonb_each(arguments)
$$;
CREATE TEMP TABLE good AS SELECT '{"run_id": "r", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 1, "output_records": 1, "total_time": 1}'::jsonb AS report;
SELECT helper.refuses(helper.call(report || jsonb_build_object(argument, value::jsonb)), state, '', format('D5: %s %s is refused', argument, left(value, 20)))
FROM bad, good;
SELECT helper.refuses(format('SELECT metrics_report_operators(%L)', jsonb_build_array(report, report || jsonb_build_object(argument, value::jsonb))), state, '',
    format('D5: %s %s in a batch', argument, left(value, 20)))
FROM bad, good;
SELECT helper.refuses(format($$SELECT metrics_report_operator('r', 's', 'o', 'w', 1, 1, %L)$$, v), '22003', 'total_time must be', 'D5: total_time ' || v)
FROM unnest(ARRAY['NaN', 'Infinity', '-Infinity']) v;
SELECT helper.refuses(format($$SELECT metrics_report_operator('r', 's', 'o', 'w', 1, 1, 1, latencies => ARRAY[1, %L]::float8[])$$, v), '22003', 'latencies must be', 'D17: a latency of ' || v)
FROM unnest(ARRAY['NaN', 'Infinity', '-Infinity']) v;
SELECT throws_ok(format('INSERT INTO pipeline_operators (run_id, stage_name, operator_name, worker_id, at, input_records, output_records, total_time, latency_sketch)
    VALUES (''r'', ''s'', ''o'', ''w'', now(), %s)', v), '23514', NULL, 'D5: nor as an INSERT: ' || v)
FROM unnest(ARRAY['-1, 1, 1, NULL', '1, -1, 1, NULL', '1, 1, ''NaN'', NULL', '1, 1, ''Infinity'', NULL', '1, 1, 1, ''\x00''',
    '1, 1, 1, (SELECT metrics_sketch(v)::bytea FROM (VALUES (-1::float8)) t(v))', '1, 1, 1, (SELECT metrics_sketch(1::float8, 0.02)::bytea)']) v;

-- Stages.
SELECT helper.operator('vector', 'one', o, w, i, u, s, e, a) FROM (VALUES
    ('A', 'w0', 60, 50, 2.0, 0, timestamptz '2026-01-24 00:00+00'), ('A', 'w1', 40, 30, 1.0, 1, '2026-01-24 00:00+00'),
    ('B', 'w0', 50, 25, 4.0, 0, '2026-01-24 00:01+00'), ('B', 'w1', 30, 15, 0.0, 0, '2026-01-24 00:01+00')) v(o, w, i, u, s, e, a) \g /dev/null
SELECT is(s::text, '(2,100,40,40,4,27.5,12.5,40,1)', 'D7, D9: the 2×2 vector, idle operators left out of the throughput') FROM helper.stage('vector', 'one') s;
SELECT is(ROW(sum_input_records, sum_output_records, round(sum_pass_rate::numeric, 3), num_operators)::text, '(180,120,66.667,2)', 'D8: and its sums over operators')
FROM stages WHERE run_id = 'vector';
SELECT helper.operator('r', 'idle', o, 'w', 5, 5, 0) FROM unnest(ARRAY['a', 'b']) o \g /dev/null
SELECT is(ROW(avg_throughput, min_throughput, max_throughput)::text, '(0,0,0)', 'D9: none has any throughput') FROM helper.stage('r', 'idle');
SELECT helper.operator('order', 'times', 'A', 'w', 8, 2, 1, at => '2026-01-24 00:02+00') \g /dev/null
SELECT helper.operator('order', 'times', 'Z', 'w', 10, 8, 1, at => '2026-01-24 00:01+00') \g /dev/null
SELECT is(ROW(input_records, output_records)::text, '(10,2)', 'D10: operators are in order of their earliest rows, not of their names') FROM helper.stage('order', 'times');
SELECT helper.operator('order', 'ties', o, 'w', i, u, 1, at => '2026-01-24 00:00+00') FROM (VALUES (1, 'Z', 10, 8), (2, 'M', 8, 5), (3, 'A', 5, 2)) v(n, o, i, u) ORDER BY n \g /dev/null
SELECT is(ROW(input_records, output_records)::text, '(10,2)', 'D10: of the same time, in the order in which they came') FROM helper.stage('order', 'ties'), generate_series(1, 2);
SELECT metrics_report_operators('[{"run_id": "order", "stage_name": "batch", "operator_name": "Z", "worker_id": "w", "input_records": 10, "output_records": 8, "total_time": 1, "at": "2026-01-24T00:00:00Z"},
    {"run_id": "order", "stage_name": "batch", "operator_name": "A", "worker_id": "w", "input_records": 8, "output_records": 2, "total_time": 1, "at": "2026-01-24T00:00:00Z"}]') \g /dev/null
SELECT is(ROW(input_records, output_records)::text, '(10,2)', 'D10: in a batch, too') FROM helper.stage('order', 'batch');
SELECT is(num_workers, 1::bigint, 'D11: one worker with three operators is one') FROM helper.stage('order', 'ties');
SELECT metrics_start_stage('empty', 's') \g /dev/null
SELECT is(s::text, '(0,0,0,0,0,0,0,0,0)', 'D12: a stage without rows is all zeros') FROM helper.stage('empty', 's') s;
SELECT is(num_stages, 1::bigint, 'D12: and counts as a stage') FROM runs WHERE run_id = 'empty';
-- Reports of one operator and worker add up.
SELECT helper.operator('r', 'twice', 'o', 'w', 10, 5, 1), helper.operator('r', 'twice', 'o', 'w', 30, 15, 1) \g /dev/null
SELECT is(s::text, '(1,40,20,50,2,20,20,20,0)', 'D20: two reports of one operator and worker add up') FROM helper.stage('r', 'twice') s;

-- Runs.
SELECT metrics_start_run('run', at => '2026-01-24 00:00+00') \g /dev/null
SELECT metrics_start_stage('run', s) FROM (VALUES (1, 'stage_9'), (2, 'stage_10')) v(n, s) ORDER BY n \g /dev/null
SELECT helper.operator('run', 'stage_9', o, w, i, u, s, e, a) FROM (VALUES
    ('A', 'w0', 60, 50, 2.0, 0, timestamptz '2026-01-24 00:00+00'), ('A', 'w1', 40, 30, 1.0, 1, '2026-01-24 00:00+00'),
    ('B', 'w0', 50, 25, 4.0, 0, '2026-01-24 00:01+00'), ('B', 'w1', 30, 15, 0.0, 0, '2026-01-24 00:01+00')) v(o, w, i, u, s, e, a) \g /dev/null
SELECT helper.operator('run', 'stage_10', 'C', 'w0', 10, 5, 1, 2) \g /dev/null
SELECT metrics_finish_run('run', at => '2026-01-24 00:00:08+00') \g /dev/null
SELECT is(ROW(total_input_records, total_output_records, overall_pass_rate, total_errors, num_stages, duration, avg_throughput)::text, '(100,5,5,3,2,8,12.5)',
    'D13: a run goes from its first stage to its last, in order of execution') FROM runs WHERE run_id = 'run';
SELECT is(ROW(sum_input_records, sum_output_records, round(sum_pass_rate::numeric, 4))::text, '(190,125,65.7895)', 'D13: and its sums over operators') FROM runs WHERE run_id = 'run';

-- Percentiles.
SELECT helper.operator('percentiles', 's', 'hundred', 'w', 100, 100, 1, latencies => (SELECT array_agg(v::float8) FROM generate_series(1, 100) v)) \g /dev/null
SELECT is(ROW(abs(p50_latency / 51 - 1) <= 0.01, abs(p95_latency / 96 - 1) <= 0.01, abs(p99_latency / 100 - 1) <= 0.01, min_latency, max_latency)::text, '(t,t,t,1,100)',
    'D14: the value at int(n * q) of 1 to 100, within 1 %') FROM operators WHERE operator_name = 'hundred';
SELECT is(metrics_percentiles(v::float8)::text, '(50.5,95.05,99.01)', 'D14: exact percentiles, interpolated') FROM generate_series(1, 100) v;
SELECT is(metrics_percentiles_disc(v::float8)::text, '(50,95,99)', 'D14: and discrete') FROM generate_series(1, 100) v;
SELECT helper.operator('percentiles', 's', 'single', 'w', 1, 1, 1, latencies => '{0.25}') \g /dev/null
SELECT is(ROW(p50_latency, p95_latency, p99_latency)::text, '(0.25,0.25,0.25)', 'D14: of one value it is that') FROM operators WHERE operator_name = 'single';
SELECT helper.operator('percentiles', 's', 'none', 'w', 1, 1, 1, latencies => '{}') \g /dev/null
SELECT is(ROW(p50_latency, p95_latency, p99_latency, latency_count)::text, '(0,0,0,0)', 'D14: of no value it is 0') FROM operators WHERE operator_name = 'none';
SELECT is(metrics_percentiles(NULL::float8), NULL, 'D14: where the aggregate is NULL');
SELECT helper.operator('percentiles', 'w', 'pairs', 'w', 100, 100, 1.99, latencies => '{0.01, 1}', weights => '{99, 1}') \g /dev/null
SELECT helper.operator('percentiles', 'w', 'expanded', 'w', 100, 100, 1.99, latencies => array_fill(0.01::float8, '{99}') || 1.0::float8) \g /dev/null
SELECT is(ROW(abs(p50_latency / 0.01 - 1) <= 0.01, abs(p95_latency / 0.01 - 1) <= 0.01, p99_latency, avg_latency, min_latency, max_latency)::text, '(t,t,1,0.0199,0.01,1)',
    'D15: 99 records of 0.01 s and one of 1 s: ' || operator_name) FROM operators WHERE run_id = 'percentiles' AND stage_name = 'w';
SELECT is(count(DISTINCT (min_latency, p25_latency, p50_latency, p75_latency, p95_latency, p99_latency, max_latency, latency_count))::int, 1, 'D15: pairs and expanded rows give the same')
FROM operators WHERE run_id = 'percentiles' AND stage_name = 'w';

SELECT * FROM finish();
ROLLBACK;
