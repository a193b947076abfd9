-- metrics_route_group(): which group goes to which key, by name or by pattern.
BEGIN;
\ir include/store.sql
SELECT plan(94);

SELECT metrics_register_trial(1) \gset

-- Where a report of a group goes: the key and whether the row waits for it.
CREATE FUNCTION helper.goes(grp text, steps integer DEFAULT 1) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    reported bigint := metrics_report(1, grp, '{"a": 1}', steps);
BEGIN
    RETURN (SELECT partition_type FROM metrics.metrics WHERE id = reported
            UNION ALL SELECT 'waits: ' || partition_type FROM metrics.metrics_pending WHERE id = reported);
END $$;

-- A group by its name.
SELECT is(metrics_route_group('nvme', 'PROFILING'), 'PROFILING', 'a group to a key that is there');
SELECT is(helper.goes('nvme'), 'PROFILING', 'goes to its partition');
SELECT is(metrics_route_group('power'), 'power', 'a group without a key is its own');
SELECT is(helper.goes('power'), 'waits: power', 'and waits for its partition');
SELECT is(metrics_route_group('cooling', 'power'), 'power', 'two groups may share a key');
SELECT is(helper.goes('cooling'), 'waits: power', 'and wait for it');
SELECT set_eq($$SELECT metric_group || '>' || partition_key FROM metrics_route WHERE metric_group ~ '^(nvme|power|cooling)$'$$,
    ARRAY['nvme>PROFILING', 'power>power', 'cooling>power'], 'they are rows of metrics_route');
SELECT is((SELECT kind FROM metrics_partition_kind WHERE partition_key = 'power'), 'time', 'the key is one of kind time');
SELECT is(metrics_route_group('nvme', 'power'), 'power', 'a route can be changed');
SELECT is(helper.goes('nvme'), 'waits: power', 'at once');
SELECT is(metrics_route_group('nvme', 'power'), 'power', 'or given again');
SELECT is((SELECT count(*)::int FROM metrics_route WHERE metric_group = 'nvme'), 1, 'and is one route');

-- By a pattern.
SELECT is(helper.goes('node_1'), 'GENERIC', 'a group without a route goes to GENERIC');
SELECT is(metrics_route_group('node_%'), NULL, 'a pattern without a key returns none');
SELECT is(helper.goes('node_1', 2), 'waits: node_1', 'each group is a key of its own');
SELECT is(helper.goes('node_2'), 'waits: node_2', 'the next too');
SELECT is(helper.goes('node', 3), 'GENERIC', 'what is not like the pattern is not');
SELECT is((SELECT count(*)::int FROM metrics_partition_kind WHERE partition_key LIKE 'node%'), 0, 'derived keys need no row');
SELECT is(metrics_route_group('node_1%', 'PROFILING'), 'PROFILING', 'a longer pattern, with a key');
SELECT is(helper.goes('node_17'), 'PROFILING', 'counts for what is like it');
SELECT is(helper.goes('node_2'), 'waits: node_2', 'and only for that');
SELECT is(metrics_route_group('node\_17', 'GENERIC', 'batch'), 'GENERIC', 'without a wildcard it is a group');
SELECT is((SELECT partition_key FROM metrics_route WHERE metric_group = 'node_17'), 'GENERIC', 'the escape is gone');
SELECT is(helper.goes('node_17', 4), 'GENERIC', 'whose route counts before any pattern');
SELECT is(metrics_route_group(p, 'power'), 'power', 'three patterns of one length: ' || p) FROM unnest(ARRAY['d_k', 'di_', '_ik']) p;
SELECT is(metrics_route_group(p, k), k, 'the first by bytes counts: ' || p) FROM (VALUES ('%is', 'PROFILING'), ('d%s', 'power')) v(p, k);
SELECT is(helper.goes('dis'), 'PROFILING', 'whichever was given first');
SELECT is(helper.goes('training', 5), 'TRAINING', 'training has a route');
SELECT metrics_route_group('%') \gset
SELECT is(helper.goes(g, 6), k, 'a pattern that all are like, and ' || g)
FROM (VALUES ('training', 'TRAINING'), ('validation', 'VALIDATION'), ('gpu', 'PROFILING'), ('other', 'waits: other')) v(g, k);
INSERT INTO metrics_partition_kind VALUES ('counted', 'batch');
SELECT helper.refuses($$SELECT metrics_report(1, 'counted', '{}')$$, '23502', 'steps_completed is required', 'a derived key that has a kind is of that kind');

-- What LIKE says, in the characters of the database.
SELECT is(metrics_unroute_group('%'), true, 'a route ends');
SELECT is(metrics_unroute_group('%'), false, 'once');
SELECT is(helper.goes('other', 7), 'GENERIC', 'and the group goes elsewhere');
SELECT is(metrics_unroute_group('node\_17'), true, 'that of a group too');
SELECT is(helper.goes('node_17'), 'PROFILING', 'then its pattern counts');
SELECT is(metrics_unroute_group('node_17'), false, 'a pattern is not the group of that name');
SELECT metrics_route_group('x_z') \gset
SELECT is(helper.goes(g, 8), w, format('x_z and %s', g))
FROM (VALUES ('xyz', 'waits: xyz'), ('xüz', 'waits: xüz'), ('x💡z', 'waits: x💡z'), ('xz', 'GENERIC'), ('xyyz', 'GENERIC'), ('Xyz', 'GENERIC')) v(g, w);
SELECT metrics_route_group('100\%%', 'PROFILING'), metrics_route_group('c:\\%', 'PROFILING') \g /dev/null
SELECT is(helper.goes(g, 9), w, format('an escape, and %s', g))
FROM (VALUES ('100%', 'PROFILING'), ('100%s', 'PROFILING'), ('1000', 'GENERIC'), ('c:\', 'PROFILING'), ('c:\x', 'PROFILING'), ('c:x', 'GENERIC')) v(g, w);

-- Hostile names are only data.
CREATE TEMP TABLE hostile (name text);
INSERT INTO hostile VALUES (''''), ('"'), ('it''s "x"'), (E'a\nb'), ('back\slash'), ('A'), ('a'), ('a '), (' a'), ('%I'), ('ü💡'), ('@store@'), ('@keys@'), ('$1'),
    ('x''); drop table metrics; --'), (repeat('k', 200)), (repeat('k', 63) || repeat('l', 137)), (repeat('💡', 50)), ('NULL'), ('-');
SELECT metrics_unroute_group('node_%'), metrics_unroute_group('node_1%') \g /dev/null
SELECT metrics_route_group(replace(replace(replace(name, '\', '\\'), '%', '\%'), '_', '\_')) FROM hostile \g /dev/null
SELECT is(string_agg(name, ', '), NULL, 'a group of a hostile name is a key')
FROM (SELECT * FROM hostile OFFSET 0) h WHERE helper.goes(name) IS DISTINCT FROM 'waits: ' || name;
SELECT is((SELECT count(*)::int FROM metrics_pending_keys JOIN hostile ON name = partition_key AND rows = 1), (SELECT count(*)::int FROM hostile),
    'and each of them is another');
SELECT is(metrics_route_group('empty', ''), '', 'the empty text is a key');
SELECT is(helper.goes('empty'), 'waits: ', 'too');
DELETE FROM metrics_route WHERE metric_group IN (SELECT name FROM hostile);
SELECT metrics_route_group('%') \gset
SELECT is(string_agg(name, ', '), NULL, 'derived from a pattern it is the same')
FROM (SELECT * FROM hostile OFFSET 0) h WHERE helper.goes(name) IS DISTINCT FROM 'waits: ' || name;
SELECT metrics_unroute_group('%') \gset

-- A key of kind batch has its partition at once.
SELECT is(metrics_route_group('eval_%', 'EVAL', 'batch'), 'EVAL', 'groups to a new key of kind batch');
SELECT is(helper.goes('eval_a', 10), 'EVAL', 'find its partition');
SELECT is((helper.report(1, 'eval_a', '{"b": 2}', 10)).metrics -> 'avg_metrics', '{"a": 1, "b": 2}', 'are merged');
SELECT helper.holds(1, 'and summarised');
SELECT is(metrics_route_group('eval_%', 'EVAL', 'batch'), 'EVAL', 'the route can be given again');
SELECT is(metrics_route_group('counts', kind => 'batch'), 'counts', 'a group that is a key of kind batch');
SELECT is(helper.goes('counts', 11), 'counts', 'has a partition as well');

-- Bad input.
SELECT helper.refuses(format('SELECT metrics_route_group(%s)', a), s, m, format('refused: %s', left(a, 60)))
FROM (VALUES
    ('NULL', '22004', 'pattern must not be NULL'), ($$'a', kind => NULL$$, '22004', 'kind must not be NULL'),
    ($$''$$, '22023', 'pattern of metric groups cannot be empty'), ($$'a.b'$$, '22023', 'pattern "a.b" contains'), ($$'a\.%'$$, '22023', 'pattern "a\.%" contains'),
    ($$'a\'$$, '22025', 'pattern "a\" ends with'), ($$'a%\'$$, '22025', 'pattern "a%\" ends with'), ($$'a\\\'$$, '22025', 'pattern "a\\\" ends with'),
    ($$repeat('x', 1001)$$, '54000', 'pattern of 1001 bytes'), ($$repeat('ü', 501)$$, '54000', 'pattern of 1002 bytes'),
    ($$'a', repeat('x', 1001)$$, '54000', 'partition key of 1001 bytes'),
    ($$'a', 'b', ''$$, '22023', 'unknown kind ""'), ($$'a', 'b', 'Time'$$, '22023', 'unknown kind "Time"'),
    ($$'a%', kind => 'batch'$$, '22023', 'the groups that are like pattern "a%"'),
    ($$'a', 'GENERIC'$$, '22023', 'partition key "GENERIC" is of kind "batch", not "time"'),
    ($$'a%', 'PROFILING', 'batch'$$, '22023', 'partition key "PROFILING" is of kind "time", not "batch"'),
    ($$'GENERIC'$$, '22023', 'partition key "GENERIC" is of kind "batch", not "time"')) v(a, s, m);
SELECT helper.refuses(format('SELECT metrics_unroute_group(%s)', a), s, '', format('refused: unroute %s', a))
FROM (VALUES ('NULL', '22004'), ($$''$$, '22023'), ($$'a\'$$, '22025')) v(a, s);
SELECT lives_ok($$SELECT metrics_route_group(repeat('x', 1000), repeat('y', 1000))$$, '1,000 bytes are not too long');
SELECT is((SELECT count(*)::int FROM metrics_partition_kind WHERE partition_key = 'b'), 0, 'what is refused leaves no key');
SELECT is(helper.read_only($$SELECT metrics_route_group('a')$$), '25006', 'not in a read-only transaction');
SELECT is(helper.read_only($$SELECT metrics_unroute_group('a')$$), '25006', 'nor the end of a route');

-- For the owner of the store, as whom it acts.
CREATE ROLE metrics_test_owner;
CREATE ROLE metrics_test_member IN ROLE metrics_test_owner;
CREATE ROLE metrics_test_writer;
SELECT metrics_grant('metrics_test_writer', 'writer') \gset
GRANT ALL ON metrics_route, metrics_route_pattern, metrics_partition_kind TO metrics_test_writer;
SELECT throws_ok(format($$SET LOCAL ROLE metrics_test_writer; SELECT metrics_%sroute_group('a')$$, u), '42501', NULL, 'others may not' || u) FROM unnest(ARRAY['', 'un']) u;
GRANT CREATE ON SCHEMA metrics TO metrics_test_owner;
SELECT helper.run(format('ALTER TABLE %s OWNER TO metrics_test_owner', oid::regclass))
FROM pg_class WHERE relnamespace = 'metrics'::regnamespace AND relkind IN ('r', 'p') \g /dev/null
ALTER SEQUENCE metrics_id_seq OWNER TO metrics_test_owner;
ALTER SCHEMA metrics OWNER TO metrics_test_owner;
SELECT lives_ok($$SET LOCAL ROLE metrics_test_member; SELECT metrics_route_group('members', 'MEMBERS', 'batch')$$, 'a member of the owner may');
RESET ROLE;
SELECT is((SELECT array_agg(DISTINCT relowner::regrole::text) FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = 'metrics'::regclass),
    '{metrics_test_owner}', 'and the partition is the owner''s');

SELECT * FROM finish();
ROLLBACK;
