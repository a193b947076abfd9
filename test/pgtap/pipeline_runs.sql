-- The life of runs and their stages: D1, D2, D18 to D22 of the reference.
BEGIN;
\ir include/store.sql
SELECT plan(66);

-- D1.
SELECT matches(metrics_start_run(), '^run_\d{8}_\d{6}_[0-9a-f]{8}$', 'D1: a run without an id gets one');
SELECT isnt(metrics_start_run(), metrics_start_run(), 'D1: two get different ones');
SELECT is(metrics_start_run(id), id, 'D1: a given id is kept: ' || id) FROM unnest(ARRAY['nightly', 'run_run_1', ' Ünïcode "1" ', '../x']) id;
SELECT throws_ok($$SELECT metrics_start_run('nightly')$$, '23505', NULL, 'D1: an id is there once');
SELECT throws_ok($$SELECT metrics_start_run('')$$, '23514', NULL, 'D1: and not empty');
SELECT set_config('timezone', 'Pacific/Kiritimati', true) \g /dev/null
SELECT is(abs(extract(epoch FROM to_timestamp(substring(metrics_start_run() FROM '\d{8}_\d{6}') || '+00', 'YYYYMMDD_HH24MISSTZH') - clock_timestamp())) < 60, true, 'D1: its time is UTC');
RESET timezone;
SELECT helper.refuses($$SELECT metrics_start_run('c', '[1]')$$, '22023', 'config must be a JSON object', 'config is an object');
SELECT helper.refuses($$SELECT metrics_start_run('c', at => 'infinity')$$, '22008', '"at" must be finite', 'times are finite');

-- D2.
SELECT metrics_finish_run('nightly') \g /dev/null
SELECT is(ROW(num_stages, total_input_records, total_output_records, overall_pass_rate, avg_throughput, total_errors, status, config)::text,
    '(0,0,0,0,0,0,completed,{})', 'D2: a run without stages') FROM runs WHERE run_id = 'nightly';
SELECT ok(duration >= 0 AND end_time >= start_time, 'D2: has a duration') FROM runs WHERE run_id = 'nightly';
SELECT is(ROW(end_time, duration, avg_throughput, status)::text, '(,,0,running)', 'a running run has none yet') FROM runs WHERE run_id = 'run_run_1';

-- D18.
SELECT metrics_start_run('failing', '{"a": 1}', '2026-01-24 00:00+00') \g /dev/null
SELECT metrics_report_operator('failing', 's', 'o', 'w', 10, 5, 1, at => '2026-01-24 00:00:01+00') \g /dev/null
SELECT metrics_fail_run('failing', '2026-01-24 00:00:10+00') \g /dev/null
SELECT is(ROW(status, end_time AT TIME ZONE 'UTC', duration, total_input_records, config)::text, '(failed,"2026-01-24 00:00:10",10,10,"{""a"": 1}")', 'D18: a run that failed keeps its rows')
FROM runs WHERE run_id = 'failing';
SELECT is(status, 'failed', 'D18: and a stage that was not finished has failed') FROM stages WHERE run_id = 'failing';
SAVEPOINT before;
SELECT metrics_start_run('undone') \g /dev/null
SELECT metrics_report_operator('undone', 's', 'o', 'w', 10, 5, 1) \g /dev/null
ROLLBACK TO before;
SELECT is_empty($$SELECT 1 FROM runs WHERE run_id = 'undone' UNION ALL SELECT 1 FROM operators WHERE run_id = 'undone'$$, 'D18: a transaction that is rolled back leaves no trace');

-- D19.
SELECT helper.refuses($$SELECT metrics_report_operator('nightly', 's', 'o', 'w', 1, 1, 1)$$, '55000', 'run "nightly" is completed', 'D19: nothing is recorded after the end');
SELECT helper.refuses($$SELECT metrics_report_operator('failing', 's', 'o', 'w', 1, 1, 1)$$, '55000', 'run "failing" is failed', 'D19: of a failed run, neither');
SELECT helper.refuses(format('SELECT metrics_report_operators(%L)', '[{"run_id": "nightly", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 1, "output_records": 1, "total_time": 1}]'),
    '55000', 'run "nightly" is completed', 'D19: in a batch');
SELECT helper.refuses($$SELECT metrics_start_stage('nightly', 's')$$, '55000', 'run "nightly" is completed', 'D19: nor a stage');
SELECT is(metrics_report_operator('failing', 's', 'late', 'w', 10, 5, 1, at => '2026-01-24 00:00:09+00'), true, 'D19: what was measured before the end may arrive after it');
SELECT is(total_output_records, 5::bigint, 'D19: and counts') FROM runs WHERE run_id = 'failing';
SELECT end_time AS ended FROM runs WHERE run_id = 'nightly' \gset
SELECT lives_ok($$SELECT metrics_finish_run('nightly')$$, 'D19: a run may be finished twice');
SELECT is(end_time, :'ended'::timestamptz, 'D19: and ended the first time') FROM runs WHERE run_id = 'nightly';
SELECT lives_ok($$SELECT metrics_fail_run('failing')$$, 'D19: and fail twice');
SELECT helper.refuses($$SELECT metrics_fail_run('nightly')$$, '55000', 'run "nightly" is completed, it cannot become failed', 'D19: but not both');
SELECT helper.refuses($$SELECT metrics_finish_run('failing')$$, '55000', 'run "failing" is failed, it cannot become completed', 'D19: neither way');
SELECT results_eq('SELECT s::text FROM stages s', 'SELECT s::text FROM stages s', 'D19: figures are views: looking twice gives the same');

-- D20.
SELECT metrics_start_run('twice') \g /dev/null
SELECT is(metrics_report_operator('twice', 's', 'o', 'w', 10, 5, 1, 0, '{0.5}', at => '2026-01-24 00:00+00'), true, 'D20: a row');
SELECT is(metrics_report_operator('twice', 's', 'o', 'w', 10, 5, 1, 0, '{0.5}', at => '2026-01-24 00:00+00'), false, 'D20: sent again with its time is not doubled');
SELECT is(metrics_report_operators('[{"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 10, "output_records": 5, "total_time": 1, "at": "2026-01-24T00:00:00Z"},
    {"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "v", "input_records": 10, "output_records": 5, "total_time": 1, "at": "2026-01-24T02:00:00+02:00"},
    {"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "v", "input_records": 10, "output_records": 5, "total_time": 1, "at": "2026-01-24T00:00:00Z"}]'), 1::bigint, 'D20: nor in a batch, nor within one');
SELECT metrics_report_operator('twice', 's', 'o', 'w', 10, 5, 1), metrics_report_operator('twice', 's', 'o', 'w', 10, 5, 1) \g /dev/null
SELECT is(count(*)::int, 4, 'D20: without a time each call is a row, in one transaction, too') FROM operators WHERE run_id = 'twice';
SELECT is(metrics_report_operators('[{"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 10, "output_records": 5, "total_time": 1},
    {"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 10, "output_records": 5, "total_time": 1}]'), 2::bigint, 'D20: and in a batch');
SELECT is(metrics_report_operators('[]'), 0::bigint, 'an empty batch');
SELECT matches(helper.error_context($$SELECT metrics_report_operators('[{"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 1, "output_records": 1, "total_time": 1}, 7]')$$),
    '^report 2 of the batch', 'an error says which report it is');
SELECT helper.refuses(format('SELECT metrics_report_operators(%L)', b), s, '', 'a batch of ' || b)
FROM (VALUES ('{}', '22023'), ('7', '22023'), ('[[]]', '22023'), ('[{}]', '22004'), ('[{"run": 1}]', '22023')) v(b, s);
SELECT helper.refuses(format('SELECT metrics_report_operators(%L)',
    jsonb_build_array('{"run_id": "twice", "stage_name": "s", "operator_name": "o", "worker_id": "w", "input_records": 1, "output_records": 1, "total_time": 1}'::jsonb || extra)), s, '', 'a batch with ' || extra::text)
FROM (VALUES ('{"at": "2026-01-24"}'::jsonb, '22007'), ('{"input_records": 1.5}', '22003'), ('{"input_records": "1"}', '22023'), ('{"total_time": 1e400}', '22003'),
    ('{"latencies": 1}', '22023'), ('{"latencies": [1], "weights": [1, 2]}', '22023'), ('{"weights": [1]}', '22023'), ('{"latencies": [1], "weights": [-1]}', '22003'),
    ('{"latencies": ["1"]}', '22023'), ('{"sketch": "x"}', '22P02')) v(extra, s);
SELECT helper.refuses($$SELECT metrics_report_operator('twice', 's', 'o', 'w', 1, 1, 1, latencies => '{1}', sketch => (SELECT metrics_sketch(1::float8)))$$, '22023',
    'latencies and sketch exclude each other', 'latencies, or a sketch of them');
SELECT helper.refuses($$SELECT metrics_report_operator('twice', 's', 'o', 'w', 1, 1, 1, sketch => (SELECT metrics_sketch(1::float8, 0.02)))$$, '22023', 'sketch is not one of latencies', 'a sketch of another error');
SELECT is(metrics_report_operator('twice', 'sketch', 'o', 'w', 1, 1, 1, sketch => (SELECT metrics_sketch(v::float8) FROM generate_series(1, 9) v)), true, 'a sketch of latencies');

-- D21.
SELECT metrics_start_run('newest', at => clock_timestamp() + interval '1 day') \g /dev/null
SELECT is((SELECT array_agg(run_id ORDER BY n) FROM metrics_list_runs() WITH ORDINALITY l(run_id, n)), (SELECT array_agg(run_id ORDER BY start_time DESC, run_id DESC) FROM runs), 'D21: runs, the newest first');
SELECT is((SELECT run_id FROM metrics_list_runs() LIMIT 1), 'newest', 'D21: under their exact ids');
SELECT is_empty($$SELECT 1 FROM runs WHERE run_id = 'unknown' UNION ALL SELECT 1 FROM stages WHERE run_id = 'unknown' UNION ALL SELECT 1 FROM operators WHERE run_id = 'unknown'$$, 'D21: an unknown run has no rows');
SELECT helper.refuses(statement, '23503', 'run "unknown" ', 'an unknown run: ' || statement) FROM unnest(ARRAY[$$SELECT metrics_finish_run('unknown')$$,
    $$SELECT metrics_start_stage('unknown', 's')$$, $$SELECT metrics_finish_stage('unknown', 's')$$, $$SELECT metrics_report_operator('unknown', 's', 'o', 'w', 1, 1, 1)$$]) statement;

-- D22.
SELECT is((SELECT DISTINCT custom_metrics FROM operators WHERE run_id = 'twice'), '{}', 'D22: no metrics of its own');
SELECT metrics_report_operator('twice', 's', 'custom', 'w', 1, 1, 1, custom_metrics => '{"hits": 42, "rate": 0.5, "name": "x", "nested": {"a": 1}, "flag": true, "none": null, "nan": "NaN", "huge": 1e400}') \g /dev/null
SELECT results_eq($$SELECT metric_name::text, value FROM custom_metrics WHERE operator_name = 'custom' ORDER BY 1$$, $$VALUES ('hits', 42::float8), ('rate', 0.5)$$, 'D22: numbers in long form');
SELECT is((SELECT custom_metrics::jsonb ->> 'name' FROM operators WHERE operator_name = 'custom'), 'x', 'D22: the rest stays in the document');

-- Stages.
SELECT metrics_start_run('stages', at => '2026-01-24 00:00+00') \g /dev/null
SELECT metrics_report_operator('stages', 'early', 'o', 'w', 1, 1, 1, at => '2026-01-24 00:05+00') \g /dev/null
SELECT metrics_report_operator('stages', 'early', 'o', 'w', 1, 1, 1, at => '2026-01-24 00:03+00') \g /dev/null
SELECT is(timestamp, '2026-01-24 00:03+00'::timestamptz, 'a stage that was not started has the time of its earliest row') FROM stages WHERE run_id = 'stages';
SELECT metrics_start_stage('stages', 'early', '2026-01-24 00:04+00'), metrics_start_stage('stages', 'early', '2026-01-24 00:09+00') \g /dev/null
SELECT metrics_finish_stage('stages', 'early', '2026-01-24 00:06+00'), metrics_finish_stage('stages', 'early', '2026-01-24 00:05+00') \g /dev/null
SELECT is(ROW(timestamp AT TIME ZONE 'UTC', wall_time, status)::text, '("2026-01-24 00:04:00",120,completed)', 'it is started once and lasts to its last end') FROM stages WHERE run_id = 'stages';

SELECT * FROM finish();
ROLLBACK;
