-- Reading profiling metrics: series, readings by agent, device and time, and
-- by an index (B30).
BEGIN;
\ir include/store.sql
SELECT plan(64);

-- B30: upstream's test, two agents with two GPUs of two names each, and one
-- cpu name.
SELECT metrics_register_trial(1) \gset
SELECT metrics_report(1, 'gpu', jsonb_build_object(a, jsonb_build_object(
           'GPU-1', jsonb_build_object('gpu_util', n, 'gpu_free_memory', n * 10),
           'GPU-2', jsonb_build_object('gpu_util', n + 1, 'gpu_free_memory', n * 10 + 1))),
           report_time => '2024-01-01 00:00+00'::timestamptz + n * interval '10 seconds'),
       metrics_report(1, 'cpu', jsonb_build_object(a, jsonb_build_object('cpu_util_simple', n + 0.5)),
           report_time => '2024-01-01 00:00+00'::timestamptz + n * interval '10 seconds')
FROM generate_series(1, 4) n, unnest(ARRAY['agent-1', 'agent-2']) a ORDER BY n, a \g /dev/null
SELECT set_eq($$SELECT group_name, agent, device, name FROM metrics_profiling_series(1)$$,
    $$SELECT 'gpu', a, d, n FROM unnest(ARRAY['agent-1', 'agent-2']) a, unnest(ARRAY['GPU-1', 'GPU-2']) d, unnest(ARRAY['gpu_util', 'gpu_free_memory']) n
      UNION ALL SELECT 'cpu', a, NULL, 'cpu_util_simple' FROM unnest(ARRAY['agent-1', 'agent-2']) a$$, 'B30: the series by name');
SELECT is((SELECT count(*)::int FROM metrics_profiling_series(1)), 10, 'B30: ten of them');
SELECT is((SELECT array_agg(DISTINCT latest) FROM metrics_profiling_series(1)), ARRAY['2024-01-01 00:00:40+00'::timestamptz], 'with the time of the latest reading');
SELECT is_empty($$SELECT * FROM metrics_profiling_series(404)$$, 'an unknown trial has none');

SELECT results_eq($$SELECT end_time, value FROM metrics_profiling_rows(1, 'cpu', 'cpu_util_simple', 'agent-1')$$,
    $$SELECT '2024-01-01 00:00+00'::timestamptz + n * interval '10 seconds', n + 0.5::float8 FROM generate_series(1, 4) n$$, 'readings of one series in order of time');
SELECT set_eq($$SELECT agent, device, name, value FROM metrics_profiling_rows(1, 'gpu', 'gpu_util', 'agent-2', since => '2024-01-01 00:00:40+00')$$,
    $$VALUES ('agent-2', 'GPU-1', 'gpu_util', 4::float8), ('agent-2', 'GPU-2', 'gpu_util', 5)$$, 'B30: gpu_util without a uuid has a value a GPU');
SELECT set_eq($$SELECT device, value FROM metrics_profiling_rows(1, 'gpu', 'gpu_util', 'agent-2', 'GPU-2')$$,
    $$VALUES ('GPU-2', 2::float8), ('GPU-2', 3), ('GPU-2', 4), ('GPU-2', 5)$$, 'with one it has that GPU''s');
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(1, 'gpu')), 32, 'without a name it has them all');
SELECT is((SELECT array_agg(end_time) = array_agg(end_time ORDER BY end_time, id) FROM metrics_profiling_rows(1, 'gpu')), true, 'in order of time and id');
SELECT is((SELECT count(DISTINCT id)::int FROM metrics_profiling_rows(1, 'gpu')), 8, 'under the ids of their rows');
SELECT results_eq($$SELECT DISTINCT end_time FROM metrics_profiling_rows(1, 'gpu', since => '2024-01-01 00:00:20+00', until => '2024-01-01 00:00:40+00') ORDER BY 1$$,
    ARRAY['2024-01-01 00:00:20+00', '2024-01-01 00:00:30+00']::timestamptz[], 'since is inclusive, until exclusive');
SELECT is_empty(format('SELECT * FROM metrics_profiling_rows(%s)', a), format('nothing of %s', a))
FROM (VALUES ($$1, 'gpu', 'cpu_util_simple'$$), ($$1, 'gpu', agent_id => 'agent-3'$$), ($$1, 'gpu', gpu_uuid => 'GPU-9'$$), ($$1, 'disk'$$), ($$404, 'gpu'$$)) v(a);
SELECT helper.refuses($$SELECT * FROM metrics_profiling_rows(1, 'GPU')$$, '22023', 'metric group "GPU" is identified by steps, not by time', 'a group of another kind');

-- Shapes: flat, disk with paths, names and ids that are hostile.
SELECT metrics_register_trial(2) \gset
SELECT metrics_report(2, 'cpu', '{"test_metric": 0.13}', report_time => '2024-01-01 00:00+00') \gset
SELECT results_eq($$SELECT end_time, agent, device, name, value FROM metrics_profiling_rows(2, 'cpu')$$,
    $$VALUES ('2024-01-01 00:00+00'::timestamptz, NULL, NULL, 'test_metric', 0.13::float8)$$, 'a flat report, as the source document''s, has no agent');
SELECT metrics_report(2, 'disk', '{"node": {"disk_iops": 7, "/": {"disk_util": 0.5}, "/data": {"disk_util": 0.75}}}') \gset
SELECT set_eq($$SELECT agent, device, name, value FROM metrics_profiling_rows(2, 'disk')$$,
    $$VALUES ('node', NULL, 'disk_iops', 7::float8), ('node', '/', 'disk_util', 0.5), ('node', '/data', 'disk_util', 0.75)$$, 'the paths of a disk are devices');
SELECT set_has($$SELECT group_name, agent, device, name FROM metrics_profiling_series(2)$$,
    $$VALUES ('disk', 'node', '/', 'disk_util'), ('disk', 'node', NULL, 'disk_iops'), ('cpu', NULL, NULL, 'test_metric')$$, 'and series of their own');
SELECT metrics_report(2, 'network', '{"it''s": {"a\"b''c": 1}, "x'' OR true --": {"a\"b''c": 2}, "{a,b}": {"a\"b''c": 3}}') \gset
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(2, 'network', $n$a"b'c$n$, $n$it's$n$)$$, ARRAY[1::float8], 'B30: an agent with a quote');
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(2, 'network', $n$a"b'c$n$, $n$x' OR true --$n$)$$, ARRAY[2::float8], 'B30: an agent that would be an injection');
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(2, 'network', $n$a"b'c$n$, $n${a,b}$n$)$$, ARRAY[3::float8], 'an agent that looks like an array');
SELECT metrics_report(2, 'memory', '{"node": {"memory_free": "NaN", "swap": "Infinity", "text": "x", "yes": true, "nil": null, "list": [1], "big": 1e400}}') \gset
SELECT set_eq($$SELECT name, value FROM metrics_profiling_rows(2, 'memory') WHERE name IN ('memory_free', 'swap')$$,
    $$VALUES ('memory_free', 'NaN'::float8), ('swap', 'Infinity')$$, 'the values that are no finite numbers are values');
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(2, 'memory') WHERE name IN ('text', 'nil', 'list') AND value IS NOT NULL), 0, 'what is no number has none');

-- Pages by (end_time, id): several reports have the same time.
SELECT metrics_register_trial(3) \gset
SELECT metrics_report(3, 'cpu', jsonb_build_object('node', jsonb_build_object('u', n, 'v', -n)),
           report_time => '2024-01-01 00:00+00'::timestamptz + ((n * 7) % 10) * interval '1 second') FROM generate_series(1, 60) n \g /dev/null
CREATE FUNCTION helper.pages(size integer, OUT pages integer, OUT ids bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    after_time timestamptz;
    after_id bigint;
    n integer;
BEGIN
    pages := 0;
    ids := '{}';
    LOOP
        n := 0;
        FOR r IN SELECT * FROM metrics_profiling_rows(3, 'cpu', 'u', after_time => after_time, after_id => after_id, max_rows => size) LOOP
            n := n + 1;
            ids := ids || r.id;
            after_time := r.end_time;
            after_id := r.id;
        END LOOP;
        EXIT WHEN n = 0;
        IF n > size THEN
            RAISE 'a page of % rows', n;
        END IF;
        pages := pages + 1;
    END LOOP;
END $$;
SELECT is(helper.pages(size), ROW((60 + size - 1) / size, (SELECT array_agg(id ORDER BY end_time, id) FROM system_metrics WHERE trial_id = 3)),
    format('pages of %s: every report once, though six share each time', size))
FROM unnest(ARRAY[1, 4, 7, 60, 61]) size;
SELECT metrics_register_trial(5) \gset
SELECT metrics_report(5, 'cpu', jsonb_build_object('node', jsonb_build_object(CASE n % 10 WHEN 0 THEN 'rare' ELSE 'common' END, n)),
           report_time => '2024-01-01 00:00+00'::timestamptz + n * interval '1 second') FROM generate_series(1, 60) n \g /dev/null
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(5, 'cpu', 'rare', max_rows => 4)$$, ARRAY[10, 20, 30, 40]::float8[],
    'a page has as many reports with the name as it may, whatever lies between');
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(5, 'cpu', 'rare', max_rows => 4, after_time => '2024-01-01 00:00:40+00',
                        after_id => (SELECT max(id) FROM system_metrics WHERE end_time = '2024-01-01 00:00:40+00' AND trial_id = 5))$$, ARRAY[50, 60]::float8[],
    'and so has the next');
SELECT is((SELECT ROW(count(*), count(DISTINCT id))::text FROM metrics_profiling_rows(3, 'cpu', max_rows => 5)), '(10,5)',
    'max_rows counts reports, not their values');

-- An index serves the readers and the plain query.
SELECT metrics_register_trial(4) \gset
INSERT INTO metrics (trial_id, end_time, metrics, metric_group, partition_type)
SELECT 4, '2024-01-01 00:00+00'::timestamptz + n * interval '1 second', '{"node": {"u": 1}}', 'cpu', 'PROFILING' FROM generate_series(1, 5000) n;
ANALYZE system_metrics;
CREATE FUNCTION helper.plan_of(query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
    lines text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        lines := lines || line || E'\n';
    END LOOP;
    RETURN lines;
END $$;
SELECT matches(helper.plan_of($$SELECT * FROM metrics WHERE partition_type = 'PROFILING' AND trial_id = 4 AND metric_group = 'cpu' ORDER BY end_time, id LIMIT 100$$),
    '^Limit\n  ->  Index Scan using \w+ on system_metrics', 'B30: a page of a trial and group is an index scan, without a sort');
-- What the readers themselves do is seen in the counters of the table, from a
-- session that cannot scan.
SELECT metrics_report(1, 'cpu', '{"node": {"u": 1}}') FROM generate_series(1, 3) \g /dev/null
SELECT is((SELECT count(*)::int FROM metrics_profiling_rows(4, 'cpu', max_rows => 7)), 7, 'a page of a large trial');

-- Archived rows are not shown, nor what only they have.
SELECT metrics_register_trial(6, 0, 66) \gset
SELECT metrics_report(6, g, jsonb_build_object('node', jsonb_build_object('kept', n, CASE WHEN n > 4 THEN 'gone' ELSE 'too' END, n)),
           report_time => '2024-01-01 00:00+00'::timestamptz + n * interval '1 second')
FROM unnest(ARRAY['cpu', 'memory']) g, generate_series(1, 8) n \g /dev/null
UPDATE metrics SET archived = true WHERE trial_id = 6 AND (metric_group = 'memory' OR end_time > '2024-01-01 00:00:04+00' OR end_time = '2024-01-01 00:00:02+00');
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(6, 'cpu', 'kept')$$, ARRAY[1, 3, 4]::float8[], 'archived readings are not shown');
SELECT results_eq($$SELECT value FROM metrics_profiling_rows(6, 'cpu', 'kept', max_rows => 2)$$, ARRAY[1, 3]::float8[], 'and do not count for a page');
SELECT is_empty($$SELECT * FROM metrics_profiling_rows(6, 'memory')$$, 'a group of which all is archived has no readings');
SELECT is_empty($$SELECT * FROM metrics_profiling_rows(6, 'cpu', 'gone')$$, 'nor has a name');
SELECT set_eq($$SELECT group_name, name, latest FROM metrics_profiling_series(6)$$,
    $$VALUES ('cpu', 'kept', '2024-01-01 00:00:04+00'::timestamptz), ('cpu', 'too', '2024-01-01 00:00:04+00')$$, 'and they are in no series, nor is their time');
SELECT set_eq($$SELECT group_name, name FROM metrics_names(66)$$, $$VALUES ('cpu', 'kept'), ('cpu', 'too')$$, 'and in no list of names');
UPDATE metrics SET archived = true WHERE trial_id = 6;
SELECT is_empty($$SELECT group_name, name FROM metrics_profiling_series(6) UNION ALL SELECT group_name, name FROM metrics_names(66)$$, 'when all is archived, there is nothing');

-- Groups that are identified by steps are read otherwise, routed or not, with
-- rows or without.
INSERT INTO metrics_route VALUES ('nvme', 'PROFILING'), ('steps', 'TRAINING') ON CONFLICT DO NOTHING;
SELECT helper.refuses(format('SELECT * FROM metrics_profiling_rows(%s, %L)', t, g), '22023',
    format('metric group "%s" is identified by steps, not by time', g), format('group %s of trial %s', g, t))
FROM unnest(ARRAY['training', 'validation', 'inference', 'steps', '', 'avg_metrics', 'CPU', 'cpu ']) g, unnest(ARRAY[6, 404]) t;
SELECT is_empty($$SELECT * FROM metrics_profiling_rows(6, 'nvme')$$, 'a route makes a group one of profiling');
DELETE FROM metrics_route WHERE metric_group = 'nvme';
SELECT helper.refuses($$SELECT * FROM metrics_profiling_rows(6, 'nvme')$$, '22023', '', 'and its end ends that');

-- Bad input.
SELECT helper.refuses($$SELECT * FROM metrics_profiling_rows(1, 'cpu', max_rows => -1)$$, '22023', '', 'a page of -1 rows');
SELECT is_empty($$SELECT * FROM metrics_profiling_rows(1, 'cpu', max_rows => 0)$$, 'a page of none');
SELECT helper.refuses(format('SELECT * FROM metrics_profiling_rows(%s)', a), '22004', '', format('NULL: %s', a))
FROM (VALUES ($$NULL, 'cpu'$$), ($$1, NULL$$)) v(a);

SELECT * FROM finish();
ROLLBACK;
