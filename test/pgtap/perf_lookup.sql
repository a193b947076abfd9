-- Performance data: what comes out, T15 to T20, T34.
BEGIN;
\ir include/store.sql
SELECT plan(79);

-- Two series on 40 pushes six hours apart; three jobs for each push, of which
-- the third arrives when all others are there; a third series on some pushes.
SELECT metrics_add_repository(r) FROM unnest(ARRAY['autoland', 'beta']) r \g /dev/null
SELECT metrics_add_push(r, 'r' || i, '2026-01-01 00:00+00'::timestamptz + i * interval '6 hours') FROM unnest(ARRAY['autoland', 'beta']) WITH ORDINALITY o(r, n), generate_series(1, 40) i
ORDER BY n, i \g /dev/null
CREATE FUNCTION helper.push(number integer, repository text DEFAULT 'autoland') RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT id FROM performance_push p WHERE p.repository = push.repository AND revision = 'r' || number
$$;
CREATE FUNCTION helper.at(number integer) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT '2026-01-01 00:00+00'::timestamptz + number * interval '6 hours'
$$;
SELECT metrics_report_perf(repository, helper.push(i, repository), 1000 * job + i,
    jsonb_build_object('framework', jsonb_build_object('name', 'talos'), 'suites', jsonb_build_array(jsonb_build_object('name', 'ts', 'value', i + job * 0.001,
        'subtests', jsonb_build_array(jsonb_build_object('name', 'x', 'value', 100 + (-1) ^ i * i - job, 'replicates', jsonb_build_array(i, 3, 2 * job)))))
        || CASE WHEN i % 10 = 0 THEN jsonb_build_array('{"name": "rare", "value": 7, "subtests": []}'::jsonb) ELSE '[]' END),
    'linux64', '{opt}', 'machine' || job, helper.at(i) + interval '1 hour')
FROM (VALUES (1, 'autoland', 1), (2, 'beta', 1), (3, 'autoland', 2), (4, 'autoland', 3)) v(n, repository, job), generate_series(1, 40) i ORDER BY n, i \g /dev/null
SELECT id AS ts FROM metrics_perf_signatures('autoland') WHERE suite = 'ts' AND test = '' \gset
SELECT id AS x FROM metrics_perf_signatures('autoland') WHERE suite = 'ts' AND test = 'x' \gset
SELECT id AS rare FROM metrics_perf_signatures('autoland') WHERE suite = 'rare' \gset
SELECT is((SELECT count(*)::int FROM performance_datum), 336, 'measurements');

-- T15: by job.
SELECT results_eq($$SELECT signature_id, push_id, push_timestamp, revision, job_id, value, machine, submit_time, multi_commit, replicate FROM metrics_perf_data('autoland', job_ids => '{2010}')$$,
    format($$VALUES (%s, helper.push(10), helper.at(10), 'r10', 2010::bigint, 10.002::float8, 'machine2', helper.at(10) + interval '1 hour', false, NULL::integer),
                    (%s, helper.push(10), helper.at(10), 'r10', 2010, 108, 'machine2', helper.at(10) + interval '1 hour', false, NULL),
                    (%s, helper.push(10), helper.at(10), 'r10', 2010, 7, 'machine2', helper.at(10) + interval '1 hour', false, NULL)$$, :ts, :x, :rare), 'T15: a job''s measurements of all its series');
SELECT is_empty($$SELECT * FROM metrics_perf_data('autoland', job_ids => '{9999}')$$, 'T15: an unknown job has none');
SELECT is_empty($$SELECT * FROM metrics_perf_data('beta', job_ids => '{2010}')$$, 'T15: nor has one of another repository');
SELECT is((SELECT count(*)::int FROM metrics_perf_data(r, job_ids => '{1010}')), 3, 'T15: the same job id in ' || r) FROM unnest(ARRAY['autoland', 'beta']) r;
SELECT is_empty($$SELECT * FROM metrics_perf_data('nowhere', job_ids => '{2010}')$$, 'T15: nor has an unknown repository');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', job_ids => '{2010,1001,9999}')), 5, 'T15: several jobs');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', job_ids => '{}')), 0, 'T15: no job');
SAVEPOINT expire;
UPDATE performance_run SET job_id = NULL WHERE repository = 'autoland' AND submit_time < helper.at(20);
SELECT is_empty($$SELECT * FROM metrics_perf_data('autoland', job_ids => '{2010}')$$, 'T15: when the job has expired, it has none');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', push_ids => ARRAY[helper.push(10)])), 9, 'T15: its measurements are there by push, retriggers included');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', ARRAY[:x])), 120, 'T15: and by series');
SELECT is((SELECT machine FROM metrics_perf_data('autoland', ARRAY[:x]) WHERE revision = 'r10' AND value = 108), 'machine2', 'T15: with their machine');
ROLLBACK TO expire;

-- T16: by push.
SELECT results_eq($$SELECT signature_id, job_id, value FROM metrics_perf_data('autoland', push_ids => ARRAY[helper.push(3)])$$,
    format($$VALUES (%1$s, 1003::bigint, 3.001::float8), (%1$s, 2003, 3.002), (%1$s, 3003, 3.003), (%2$s, 1003, 96), (%2$s, 2003, 95), (%2$s, 3003, 94)$$, :ts, :x), 'T16, T18: all series of a push, in order of arrival');
SELECT results_eq(format($$SELECT push_id, job_id FROM metrics_perf_data('autoland', '{%s}', ARRAY[helper.push(30), helper.push(2)])$$, :x),
    $$VALUES (helper.push(2), 1002::bigint), (helper.push(2), 2002), (helper.push(2), 3002), (helper.push(30), 1030), (helper.push(30), 2030), (helper.push(30), 3030)$$, 'T16: one series of two pushes');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', ARRAY[:x, :ts, 0], ARRAY[helper.push(2)])), 6, 'T16: two series of a push');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', NULL, ARRAY[helper.push(2)], ARRAY[2002, 3003])), 2, 'what is both of the push and of a job');
SELECT is_empty($$SELECT * FROM metrics_perf_data('beta', push_ids => ARRAY[helper.push(3)])$$, 'T16: a push of another repository');

-- T17: any interval.
SELECT is((SELECT count(DISTINCT push_timestamp)::int FROM metrics_perf_data('autoland', ARRAY[:x], since => a, until => b)), n, format('T17: from %s to %s', a, b)) FROM (VALUES
    (NULL::timestamptz, NULL::timestamptz, 40), (helper.at(10), NULL, 30), (NULL, helper.at(10), 9), (helper.at(10), helper.at(12), 1), (helper.at(10), helper.at(11), 0),
    (helper.at(10) - interval '1 us', helper.at(10) + interval '1 us', 1), (helper.at(10), helper.at(10), 0), (helper.at(12), helper.at(10), 0),
    (helper.at(10), helper.at(10) + interval '37 hours', 6), ('-infinity', 'infinity', 40)) v(a, b, n);
SELECT metrics_add_push('autoland', 'now', now() - interval '1 day') AS yesterday \gset
SELECT created FROM metrics_report_perf('autoland', :yesterday, 5, '{"framework": {"name": "talos"}, "suites": [{"name": "now", "value": 1, "subtests": []}]}', 'linux64', '{opt}') \gset
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', (SELECT array_agg(id) FROM metrics_perf_signatures('autoland') WHERE suite = 'now'), age => a)), n, format('T17: of the last %s', a))
FROM (VALUES (interval '1 day', 0), ('1 day 1 us', 1), ('1 year', 1), ('0', 0), ('-1 day', 0)) v(a, n);
SELECT helper.refuses($$SELECT * FROM metrics_perf_data('autoland', '{1}', age => '1 day', since => '2026-01-01 00:00+00')$$, '22023', 'age', 'T17: age and since');
SELECT helper.refuses($$SELECT * FROM metrics_perf_data('autoland', '{1}', age => '1 day', until => '2026-01-01 00:00+00')$$, '22023', 'age', 'T17: age and until');
SELECT helper.refuses($$SELECT * FROM metrics_perf_data('autoland')$$, '22023', 'signature_ids, push_ids or job_ids', 'T17: nothing chosen');
SELECT helper.refuses($$SELECT * FROM metrics_perf_data('autoland', since => '2026-01-01 00:00+00')$$, '22023', 'signature_ids, push_ids or job_ids', 'T17: but an interval');

-- T18: order.
SELECT is((SELECT array_agg(job_id) FROM metrics_perf_data('autoland', ARRAY[:x], since => helper.at(4), until => helper.at(7))), '{1005,2005,3005,1006,2006,3006}', 'T18: by time, then as they arrived, never by value');
SELECT results_eq(format($$SELECT * FROM metrics_perf_data('autoland', '{%s,%s}')$$, :x, :ts),
    format($$SELECT * FROM metrics_perf_data('autoland', '{%s,%s}') ORDER BY signature_id, push_timestamp, push_id, job_id$$, :ts, :x), 'T18: and by series');

-- T19: no retriggers, replicates.
SELECT results_eq(format($$SELECT signature_id, job_id FROM metrics_perf_data('autoland', push_ids => ARRAY[helper.push(10)], no_retriggers => true)$$),
    format($$VALUES (%s, 1010::bigint), (%s, 1010), (%s, 1010)$$, :ts, :x, :rare), 'T19: the first run of a push');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', ARRAY[:x], no_retriggers => true)), 40, 'T19: of each push');
SELECT results_eq($$SELECT signature_id, replicate, value FROM metrics_perf_data('autoland', job_ids => '{2003}', replicates => true)$$,
    format($$VALUES (%1$s, NULL::integer, 3.002::float8), (%2$s, 1, 3), (%2$s, 2, 3), (%2$s, 3, 4)$$, :ts, :x), 'T19: each replicate in order, and the value where there is none');
SELECT is((SELECT count(*)::int FROM metrics_perf_data('autoland', ARRAY[:x], no_retriggers => true, replicates => true)), 120, 'T19: both');

-- T20: series.
SELECT results_eq($$SELECT suite, test, framework, platform, options, parent_id, has_subtests, last_updated FROM metrics_perf_signatures('autoland', subtests => false) WHERE suite <> 'now'$$,
    $$VALUES ('ts', '', 'talos', 'linux64', '{opt}'::text[], NULL::integer, true, helper.at(40)), ('rare', '', 'talos', 'linux64', '{opt}', NULL, true, helper.at(40))$$, 'T20: series without a parent');
SELECT is((SELECT array_agg(id) FROM metrics_perf_signatures('autoland', subtests => true)), ARRAY[:x], 'T20: with one');
SELECT is((SELECT array_agg(id) FROM metrics_perf_signatures('autoland', parent_id => :ts)), ARRAY[:x], 'T20: of a parent');
SELECT is((SELECT count(*)::int FROM metrics_perf_signatures('autoland', a, b, since => c, until => d)), n, format('T20: %s, %s, %s, %s', a, b, c, d)) FROM (VALUES
    (NULL, NULL, NULL::timestamptz, NULL::timestamptz, 4), ('talos', 'linux64', NULL, NULL, 4), ('other', NULL, NULL, NULL, 0), (NULL, 'win7', NULL, NULL, 0), (NULL, NULL, helper.at(40), NULL, 4),
    (NULL, NULL, helper.at(40) + interval '1 us', NULL, 1), (NULL, NULL, NULL, helper.at(40), 3), (NULL, NULL, NULL, helper.at(40) - interval '1 us', 0), (NULL, NULL, helper.at(40), helper.at(40), 3)) v(a, b, c, d, n);
SELECT is_empty($$SELECT * FROM metrics_perf_signatures('nowhere')$$, 'T20: of no repository');
DELETE FROM performance_datum WHERE signature_id = :rare;
SELECT is((SELECT count(*)::int FROM metrics_perf_signatures('autoland') WHERE suite = 'rare'), 1, 'T20: a series without measurements is listed');
SAVEPOINT hidden;
ALTER TABLE performance_datum RENAME TO performance_hidden;
SELECT lives_ok($$SELECT * FROM metrics_perf_signatures('autoland')$$, 'T20: no measurement is looked at');
ROLLBACK TO hidden;

-- Comparison of pushes: pairs, sides, other repositories.
SELECT results_eq($$SELECT suite, test, base_count, new_count, base_mean, new_mean, delta FROM metrics_perf_compare('autoland', ARRAY[helper.push(2)], ARRAY[helper.push(4)])$$,
    $$VALUES ('ts', '', 3, 3, (2.001::float8 + 2.002 + 2.003) / 3, (4.001::float8 + 4.002 + 4.003) / 3, (4.001::float8 + 4.002 + 4.003) / 3 - (2.001::float8 + 2.002 + 2.003) / 3), ('ts', 'x', 3, 3, 100, 102, 2)$$, 'T34: two pushes');
SELECT results_eq($$SELECT test, base_count, new_count, t FROM metrics_perf_compare('autoland', ARRAY[helper.push(2)], ARRAY[helper.push(4), helper.push(6)], replicates => true)$$,
    $$SELECT v.test, m.base_count, m.new_count, m.t FROM (VALUES ('', '{2.001,2.002,2.003}'::float8[], '{4.001,4.002,4.003,6.001,6.002,6.003}'::float8[]),
        ('x', '{2,3,2,2,3,4,2,3,6}', '{4,3,2,4,3,4,4,3,6,6,3,2,6,3,4,6,3,6}')) v(test, b, n), metrics_compare(b, n) m$$, 'T34: several, with replicates');
SELECT results_eq($$SELECT suite, test, base_count, new_count FROM metrics_perf_compare('autoland', ARRAY[helper.push(2)], ARRAY[helper.push(2, 'beta')], 'beta')$$,
    $$VALUES ('ts', '', 3, 1), ('ts', 'x', 3, 1)$$, 'T34: with another repository');
SELECT results_eq($$SELECT suite, test FROM metrics_perf_compare('autoland', ARRAY[helper.push(2)], ARRAY[helper.push(4)], subtests => false)$$, $$VALUES ('ts', '')$$, 'without subtests');
SELECT is((SELECT count(*)::int FROM metrics_perf_compare('autoland', ARRAY[helper.push(2)], ARRAY[helper.push(4)], framework => f)), n, 'of framework ' || f) FROM (VALUES ('talos', 2), ('other', 0)) v(f, n);
SELECT results_eq($$SELECT suite, base_signature_id IS NULL, base_count, new_count, t FROM metrics_perf_compare('autoland', '{0}', ARRAY[helper.push(4)])$$,
    $$VALUES ('ts', true, 0, 3, 0::float8), ('ts', true, 0, 3, 0)$$, 'a series that only one side has');
SELECT is_empty($$SELECT * FROM metrics_perf_compare('autoland', '{}', '{0}')$$, 'neither side');
SELECT metrics_add_push('autoland', 'old', '2020-01-01 00:00+00') AS old \gset
SELECT created FROM metrics_report_perf('autoland', :old, 6, '{"framework": {"name": "talos"}, "suites": [{"name": "ts", "value": 1, "subtests": []}]}', 'linux64', '{opt}') \gset
SELECT results_eq(format($$SELECT suite, base_count, new_count FROM metrics_perf_compare('autoland', '{%s}', ARRAY[helper.push(4)], subtests => false)$$, :old), $$VALUES ('ts', 1, 3)$$, 'T34: pushes six years apart');
-- A series that got a parent meanwhile is the same still.
SELECT metrics_add_push('autoland', 'p1', '2026-03-01 00:00+00') AS p1, metrics_add_push('autoland', 'p2', '2026-03-02 00:00+00') AS p2 \gset
SELECT created FROM metrics_report_perf('autoland', :p1, 7, '{"framework": {"name": "talos"}, "suites": [{"name": "p", "subtests": [{"name": "t", "value": 1}]}]}') \gset
SELECT created FROM metrics_report_perf('autoland', :p2, 8, '{"framework": {"name": "talos"}, "suites": [{"name": "p", "value": 3, "subtests": [{"name": "t", "value": 2}]}]}') \gset
SELECT results_eq(format($$SELECT test, base_mean, new_mean FROM metrics_perf_compare('autoland', '{%s}', '{%s}')$$, :p1, :p2), $$VALUES ('', NULL::float8, 3::float8), ('t', 1, 2)$$, 'whatever its parent');

-- Changes of a stored series, with its own windows.
SELECT metrics_add_push('beta', 'c' || i, '2026-02-01 00:00+00'::timestamptz + i * interval '1 hour') FROM generate_series(1, 40) i ORDER BY i \g /dev/null
SELECT metrics_report_perf('beta', id, 9000 + id, jsonb_build_object('framework', '{"name": "talos"}'::jsonb, 'suites', jsonb_build_array(
    jsonb_build_object('name', 'changes', 'value', CASE WHEN n < 30 THEN 1 ELSE 2 END, 'subtests', '[]'::jsonb, 'foreWindow', 12))))
FROM (SELECT id, row_number() OVER (ORDER BY push_time) AS n FROM performance_push WHERE revision LIKE 'c%') p ORDER BY n \g /dev/null
SELECT is((SELECT count(*)::int FROM metrics_perf_changes('beta', s.id)), 0, '11 measurements after a step are too few') FROM metrics_perf_signatures('beta') s WHERE suite = 'changes';
UPDATE performance_signature SET fore_window = 11 WHERE suite = 'changes';
SELECT results_eq($$SELECT c.* FROM metrics_perf_signatures('beta') s, metrics_perf_changes('beta', s.id) c WHERE suite = 'changes'$$,
    $$SELECT a.* FROM (SELECT array_agg(push_timestamp ORDER BY push_timestamp) AS times, array_agg(push_id ORDER BY push_timestamp) AS ids, array_agg(value ORDER BY push_timestamp) AS vals
      FROM metrics_perf_signatures('beta') s, metrics_perf_data('beta', ARRAY[s.id]) WHERE suite = 'changes') d, metrics_detect_changes(times, ids, vals, fore_window => 11) a$$, 'unless the series has a shorter window');
SELECT is((SELECT count(*)::int FROM metrics_perf_signatures('beta') s, metrics_perf_changes('beta', s.id) c WHERE suite = 'changes'), 1, 'which finds it');
SELECT is((SELECT count(*)::int FROM metrics_perf_changes('autoland', s.id)), 0, 'not in another repository') FROM metrics_perf_signatures('beta') s WHERE suite = 'changes';
SELECT is((SELECT count(*)::int FROM metrics_perf_changes('beta', s.id, '2026-02-02 04:00+00'::timestamptz)), 0, 'nor from a time on that leaves too little before it')
FROM metrics_perf_signatures('beta') s WHERE suite = 'changes';

-- A repository that is divided by time: look-ups by job and by push touch the slices of the job or push, and no other.
SELECT metrics_add_repository('sliced') AS sliced \gset
ALTER TABLE performance_datum DETACH PARTITION :sliced;
CREATE TABLE slices (LIKE performance_datum INCLUDING ALL, CHECK (repository = 'sliced'), UNIQUE (signature_id, push_timestamp, run_id)) PARTITION BY RANGE (push_timestamp);
CREATE INDEX ON slices (run_id);
SELECT format('CREATE TABLE slice%s PARTITION OF slices FOR VALUES FROM (%L) TO (%L)', i, '2025-01-01 00:00+00'::timestamptz + i * interval '30 days', '2025-01-01 00:00+00'::timestamptz + (i + 1) * interval '30 days')
FROM generate_series(0, 11) i \gexec
ALTER TABLE performance_datum ATTACH PARTITION slices FOR VALUES IN ('sliced');
SELECT metrics_add_push('sliced', 'r' || i, '2025-01-01 12:00+00'::timestamptz + i * interval '1 day') FROM generate_series(0, 359) i ORDER BY i \g /dev/null
SELECT count(metrics_report_perf('sliced', id, id, '{"framework": {"name": "talos"}, "suites": [{"name": "sliced", "value": 1, "subtests": [{"name": "t", "value": 2}]}]}'))
FROM performance_push WHERE repository = 'sliced' \gset
SELECT is((SELECT count(*)::int FROM slices) || ' ' || (SELECT count(DISTINCT tableoid)::int FROM slices), '720 12', 'a year in twelve slices');
CREATE FUNCTION helper.touched(statement text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    touched text[];
BEGIN
    CREATE TEMP TABLE before ON COMMIT DROP AS SELECT relid, seq_scan + idx_scan AS scans FROM pg_stat_xact_user_tables WHERE relname LIKE 'slice%';
    EXECUTE statement;
    SELECT array_agg(relname::text ORDER BY relname) INTO touched FROM pg_stat_xact_user_tables s JOIN before b USING (relid) WHERE s.seq_scan + s.idx_scan > b.scans;
    DROP TABLE before;
    RETURN touched;
END $$;
SELECT is(helper.touched(format('SELECT * FROM metrics_perf_data(''sliced'', %s => ARRAY[%s])', name, id)), '{slice3}', 'one slice for ' || name)
FROM performance_push, unnest(ARRAY['job_ids', 'push_ids']) name WHERE repository = 'sliced' AND revision = 'r100';
SELECT is(helper.touched(format('SELECT * FROM metrics_perf_data(''sliced'', ARRAY(SELECT id FROM metrics.performance_signature WHERE suite = ''sliced''), ARRAY[%s])', id)), '{slice3}', 'and for series of a push')
FROM performance_push WHERE repository = 'sliced' AND revision = 'r100';
SELECT metrics_report_perf('sliced', id, id, '{"framework": {"name": "talos"}, "pushTimestamp": 1739000000, "suites": [{"name": "sliced", "value": 1, "subtests": []}]}') FROM performance_push WHERE revision = 'r100' AND repository = 'sliced' \gset
SELECT is(helper.touched(format('SELECT * FROM metrics_perf_data(''sliced'', job_ids => ARRAY[%s])', id)), '{slice1,slice2,slice3}', 'of a job that measured several pushes, those between them')
FROM performance_push WHERE repository = 'sliced' AND revision = 'r100';
SELECT is(helper.touched(format('SELECT * FROM metrics_perf_data(''sliced'', ARRAY[%s], since => ''2025-05-01 00:00+00'', until => ''2025-05-20 00:00+00'')', id)), '{slice4}', 'those of an interval')
FROM performance_signature WHERE suite = 'sliced' AND test = 't';

SELECT * FROM finish();
ROLLBACK;
