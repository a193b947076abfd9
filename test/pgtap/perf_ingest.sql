-- Performance data: what goes in, T1 to T14. Concurrency (T5) is in test/t/302_perf.pl.
BEGIN;
\ir include/store.sql
SELECT plan(148);

-- Everything an artifact may change, to compare before and after.
CREATE FUNCTION helper.perf_state() RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'datum', (SELECT jsonb_agg(to_jsonb(d) ORDER BY signature_id, push_timestamp, run_id) FROM performance_datum d),
        'signature', (SELECT jsonb_agg(to_jsonb(s) ORDER BY id) FROM performance_signature s),
        'activity', (SELECT jsonb_agg(to_jsonb(a) ORDER BY signature_id) FROM performance_activity a),
        'run', (SELECT jsonb_agg(to_jsonb(r) ORDER BY id) FROM performance_run r),
        'platform', (SELECT jsonb_agg(to_jsonb(p) ORDER BY id) FROM performance_platform p))
$$;
-- A test: an artifact is refused with this message, and nothing is stored.
CREATE FUNCTION helper.refuses_artifact(artifact jsonb, message_part text, description text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := helper.perf_state();
    got text := 'no error';
    hint text := '';
BEGIN
    BEGIN
        PERFORM metrics_report_perf('autoland', (SELECT min(id) FROM performance_push WHERE repository = 'autoland'), 99, artifact);
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS got = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        got := SQLSTATE || ': ' || got;
    END;
    RETURN ok(strpos(got, message_part) > 0 AND hint <> '' AND helper.perf_state() IS NOT DISTINCT FROM before, description)
        || CASE WHEN strpos(got, message_part) > 0 THEN '' ELSE E'\n' || diag(got) END;
END $$;
-- An artifact of one suite, with one subtest unless it says otherwise.
CREATE FUNCTION helper.artifact(suite jsonb DEFAULT '{}', subtest jsonb DEFAULT '{}', top jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"framework": {"name": "talos"}}' || top || jsonb_build_object('suites', jsonb_build_array(
        '{"name": "suite"}' || jsonb_build_object('subtests', jsonb_build_array('{"name": "test", "value": 1}' || subtest)) || suite))
$$;
CREATE FUNCTION helper.report(job bigint, artifact jsonb, push bigint DEFAULT NULL, repository text DEFAULT 'autoland') RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s %s', created, existing, skipped)
    FROM metrics_report_perf(repository, COALESCE(push, (SELECT min(id) FROM performance_push p WHERE p.repository = report.repository)), job, artifact, 'linux64', '{opt}')
$$;

-- What measurements refer to.
SELECT results_eq('SELECT id, name, enabled FROM performance_framework', $$VALUES (1, 'talos', true)$$, 'talos is there from the start');
SELECT is(metrics_add_framework('browsertime'), 2, 'a framework');
SELECT is(metrics_add_framework('browsertime'), 2, 'added twice is the same');
SELECT is(metrics_add_repository('autoland')::text LIKE 'performance\_datum\_autoland\_%', true, 'a repository is a partition');
SELECT is(metrics_add_repository('autoland'), metrics_add_repository('autoland'), 'added twice it is the same');
SELECT is((SELECT count(DISTINCT metrics_add_repository(name))::int FROM (VALUES ('mozilla-central'), ('Mozilla-Central'), ('mozilla_central'), ('it''s'), ('a\b'), ('"'),
    ('ö'), ('ü'), (repeat('x', 50)), (repeat('x', 49) || 'y'), ('FOR VALUES IN (''autoland'')')) v(name)), 11, 'each name has its own');
SELECT is((SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'performance_datum'::regclass), 12, 'and only one');
SELECT is((SELECT array_agg(DISTINCT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', '') ORDER BY regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', ''))
           FROM pg_index WHERE indrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'performance_datum'::regclass)),
    '{btree (run_id),"btree (signature_id, push_timestamp, run_id)"}', 'with two indexes, none of which has the repository');
SELECT metrics_add_push('autoland', 'one', '2026-01-01 00:00+00', 'me') AS push1, metrics_add_push('autoland', 'two', '2026-01-02 00:00+00') AS push2 \gset
SELECT metrics_add_push('mozilla-central', 'one', '2026-01-01 12:00+00') AS central \gset
SELECT is(metrics_add_push('autoland', 'one', '2026-01-01 00:00+00'), :push1::bigint, 'a push added twice is the same');
SELECT isnt(:central::bigint, :push1::bigint, 'the same revision in another repository is another push');
SELECT helper.refuses($$SELECT metrics_add_push('autoland', 'one', '2026-01-01 00:01+00')$$, '23505', 'push "one" of repository "autoland" has another time', 'a push has one time');
SELECT helper.refuses($$SELECT metrics_add_push('nowhere', 'one', '2026-01-01 00:01+00')$$, '23503', 'unknown repository "nowhere"', 'an unknown repository');
SELECT helper.refuses($$SELECT metrics_add_push('autoland', '', '2026-01-01 00:01+00')$$, '22023', 'revision', 'no revision');
SELECT helper.refuses($$SELECT metrics_add_push('autoland', 'x', 'infinity')$$, '22008', 'push_time', 'no time');
SELECT helper.refuses($$SELECT metrics_add_repository('')$$, '22023', 'name', 'a repository without a name');
SELECT helper.refuses($$SELECT metrics_add_repository(repeat('x', 51))$$, '22023', 'name', 'a name that is too long');
SELECT helper.refuses($$SELECT metrics_report_perf('nowhere', 1, 1, helper.artifact())$$, '23503', 'unknown repository "nowhere"', 'a report for it');
SELECT helper.refuses(format($$SELECT metrics_report_perf('autoland', %s, 1, helper.artifact())$$, p), '23503', 'unknown push', 'a push that is not of the repository: ' || p)
FROM unnest(ARRAY[0, -1, :central]) p;

-- T1: values are stored as they are.
SELECT is(helper.report(1, helper.artifact('{"subtests": [{"name": "a", "value": 0.30000000000000004}, {"name": "b", "value": 5e-324}, {"name": "c", "value": 1e12},
    {"name": "d", "value": -1e12}, {"name": "e", "value": 0}, {"name": "f", "value": 305.9854192559594}, {"name": "g", "value": 123456789.12345678}]}')), '7 0 0', 'T1: seven values');
SELECT results_eq($$SELECT test, value FROM performance_datum JOIN performance_signature s ON s.id = signature_id ORDER BY test$$,
    $$VALUES ('a', 0.1::float8 + 0.2::float8), ('b', 5e-324), ('c', 1e12), ('d', -1e12), ('e', 0), ('f', 305.9854192559594), ('g', 123456789.12345678)$$, 'T1: come back to the last bit');
INSERT INTO performance_datum (repository, signature_id, run_id, push_id, push_timestamp, value) SELECT repository, signature_id, run_id, push_id, push_timestamp + '1 s', '-0' FROM performance_datum WHERE value = 0;
SELECT is(float8send(value), '\x8000000000000000', 'T1: a negative zero, too') FROM performance_datum WHERE push_timestamp > '2026-01-01 00:00+00';
SELECT throws_ok(format('UPDATE performance_datum SET value = %L', v), '23514', NULL, 'T2: the table takes no ' || v) FROM unnest(ARRAY['NaN', 'Infinity', '-Infinity', '1000000000000.1']) v;
DELETE FROM performance_signature;
SELECT is((SELECT count(*)::int FROM performance_datum), 0, 'without the series there are no measurements');

-- T2: a bad artifact stores nothing; the error says where it is bad.
SELECT helper.refuses_artifact(helper.artifact('{}', jsonb_build_object('value', v)), '22023: invalid performance artifact: $.suites[0].subtests[0].value must be a number between -1000000000000 and 1000000000000, got ' || left(v::text, 20), 'T2: value ' || left(v::text, 20))
FROM unnest(ARRAY['"NaN"', '"Infinity"', '"1"', '1e13', '-1000000000000.1', '[]', '{}', 'true', '1e400']::jsonb[]) v;
SELECT helper.refuses_artifact(helper.artifact('{}', '{"value": null}'), '$.suites[0].subtests[0].value must be', 'T2: value null');
SELECT helper.refuses_artifact('{"framework": {"name": "talos"}, "suites": [{"name": "good", "value": 1, "subtests": [{"name": "t", "value": 1}]}, {"name": "bad", "value": "1", "subtests": []}]}',
    '$.suites[1].value', 'T2: one bad suite');
SELECT helper.refuses_artifact(helper.artifact(top => '{"framework": {"name": "unknown"}}', subtest => '{"value": "x"}'), '$.suites[0].subtests[0].value', 'T2: of a framework that would be skipped');
SELECT helper.refuses_artifact(helper.artifact(s, t, top), part, 'T2: ' || part) FROM (VALUES
    ('{}'::jsonb, '{}'::jsonb, '{"framework": null}'::jsonb, '$.framework must be an object, got nothing'), ('{}', '{}', '{"framework": {}}', '$.framework.name must be a string of 1 to 255 characters, got nothing'),
    ('{}', '{}', '{"framework": "talos"}', '$.framework must be an object, got "talos"'), ('{}', '{}', '{"application": {}}', '$.application.name'),
    ('{}', '{}', '{"application": {"name": "lynx"}}', '$.application.name must be one of "firefox", "chrome"'), ('{}', '{}', '{"application": {"name": "firefox", "version": 1}}', '$.application.version'),
    ('{}', '{}', format('{"application": {"name": "firefox", "version": "%s"}}', repeat('1', 41))::jsonb, '$.application.version'), ('{}', '{}', '{"os": {"platform_version": ""}}', '$.os.platform_version'),
    ('{}', '{}', '{"pushTimestamp": "now"}', '$.pushTimestamp'), ('{}', '{}', '{"pushTimestamp": -1}', '$.pushTimestamp'), ('{}', '{}', '{"pushTimestamp": 1e300}', '$.pushTimestamp'),
    ('{"subtests": null}', '{}', '{}', '$.suites[0].subtests must be an array, got nothing'), ('{"subtests": {}}', '{}', '{}', '$.suites[0].subtests must be an array, got {}'),
    ('{"subtests": [1]}', '{}', '{}', '$.suites[0].subtests[0] must be an object, got 1'), ('{"name": ""}', '{}', '{}', '$.suites[0].name'), ('{"name": null}', '{}', '{}', '$.suites[0].name'),
    ('{"value": 1e13}', '{}', '{}', '$.suites[0].value'), ('{"unit": ""}', '{}', '{}', '$.suites[0].unit'), ('{}', '{"unit": "123456789012345678901"}', '{}', '$.suites[0].subtests[0].unit'),
    ('{"replicates": [1, "2"]}', '{}', '{}', '$.suites[0].replicates[1] must be a number'), ('{}', '{"replicates": [1e13]}', '{}', '$.suites[0].subtests[0].replicates[0]'),
    ('{}', '{"replicates": 1}', '{}', '$.suites[0].subtests[0].replicates must be an array'), ('{"lowerIsBetter": "no"}', '{}', '{}', '$.suites[0].lowerIsBetter must be true or false, got "no"'),
    ('{"shouldAlert": 1}', '{}', '{}', '$.suites[0].shouldAlert'), ('{}', '{"monitor": []}', '{}', '$.suites[0].subtests[0].monitor'), ('{"alertThreshold": -0.1}', '{}', '{}', '$.suites[0].alertThreshold must be a number from 0 on'),
    ('{"alertChangeType": "relative"}', '{}', '{}', '$.suites[0].alertChangeType must be one of "absolute", "percentage"'), ('{"alertSeverity": "high"}', '{}', '{}', '$.suites[0].alertSeverity'),
    ('{"minBackWindow": 0}', '{}', '{}', '$.suites[0].minBackWindow must be a whole number between 1 and 255'), ('{"maxBackWindow": 256}', '{}', '{}', '$.suites[0].maxBackWindow'),
    ('{"foreWindow": 1.5}', '{}', '{}', '$.suites[0].foreWindow'), ('{"publicName": "1234567890123456789012345678901"}', '{}', '{}', '$.suites[0].publicName'),
    ('{"alertNotifyEmails": ["a@b", "a@b"]}', '{}', '{}', '$.suites[0].alertNotifyEmails'), ('{"tags": ["a b"]}', '{}', '{}', '$.suites[0].tags must be an array of at most 14 different strings of 1 to 24 letters'),
    ('{"tags": ["ä"]}', '{}', '{}', '$.suites[0].tags'), ('{"tags": "a"}', '{}', '{}', '$.suites[0].tags'), ('{"extraOptions": [1]}', '{}', '{}', '$.suites[0].extraOptions'),
    -- T14: limits.
    (jsonb_build_object('name', repeat('é', 81)), '{}', '{}', '$.suites[0].name must be a string of 1 to 80 characters'),
    ('{}', jsonb_build_object('name', repeat('x', 81)), '{}', '$.suites[0].subtests[0].name'),
    ((SELECT jsonb_build_object('tags', jsonb_agg('t' || i)) FROM generate_series(1, 15) i), '{}', '{}', '$.suites[0].tags'), ('{"tags": ["a", "b", "a"]}', '{}', '{}', '$.suites[0].tags'),
    ((SELECT jsonb_build_object('extraOptions', jsonb_agg('o' || i)) FROM generate_series(1, 9) i), '{}', '{}', '$.suites[0].extraOptions'), ('{"extraOptions": ["a", "a"]}', '{}', '{}', '$.suites[0].extraOptions'),
    (jsonb_build_object('extraOptions', jsonb_build_array(repeat('a', 46), repeat('b', 46))), '{}', '{}', '$.suites[0].extraOptions has 2 strings of more than 45 characters'),
    (jsonb_build_object('extraOptions', jsonb_build_array(repeat('a', 101))), '{}', '{}', '$.suites[0].extraOptions')) v(s, t, top, part);
SELECT helper.refuses_artifact(a, '22023: invalid performance artifact: ' || part, 'T2: ' || part)
FROM (VALUES ('[]'::jsonb, '$ must be an object'), ('1', '$ must be an object'), ('{"framework": {"name": "talos"}}', '$.suites must be an array'), ('{"framework": {"name": "talos"}, "suites": [[]]}', '$.suites[0] must be an object')) v(a, part);
-- T14: what just fits.
SELECT is(helper.report(2, helper.artifact(jsonb_build_object('name', repeat('é', 80), 'unit', repeat('u', 20), 'publicName', repeat('p', 30),
    'tags', (SELECT jsonb_agg(lpad(i::text, 24, 't')) FROM generate_series(1, 14) i),
    'extraOptions', (SELECT jsonb_agg(rpad(i::text, 45, 'o')) FROM generate_series(1, 7) i) || jsonb_build_array(repeat('l', 100)),
    'alertNotifyEmails', (SELECT jsonb_agg(rpad(i::text, 100, 'm')) FROM generate_series(1, 8) i), 'minBackWindow', 1, 'maxBackWindow', 255.0, 'foreWindow', 255, 'alertThreshold', 0,
    'subtests', (SELECT jsonb_agg(jsonb_build_object('name', rpad(i::text, 80, 'n'), 'value', i)) FROM generate_series(1, 50) i), 'value', 1))), '51 0 0', 'T14: what just fits, with 50 subtests');
SELECT lives_ok($$UPDATE performance_signature SET extra_properties = jsonb_build_object('k', repeat('é', 507) || 'a')$$, 'T14: 1,024 bytes of properties');
SELECT throws_ok($$UPDATE performance_signature SET extra_properties = jsonb_build_object('k', repeat('é', 508))$$, '23514', NULL, 'T14: one more is too much');

-- T3, T4, T6: the same again, retriggers, several pushes.
SELECT is(helper.report(3, helper.artifact('{"value": 5, "replicates": [4, 6, 5]}')), '2 0 0', 'T3: a report');
SELECT helper.perf_state() AS once \gset
SELECT is(helper.report(3, helper.artifact('{"value": 5, "replicates": [4, 6, 5]}')), '0 2 0', 'T4: again');
SELECT is(helper.perf_state(), :'once', 'T4: changes nothing, replicates included');
SELECT is(helper.report(3, helper.artifact('{"value": 7, "replicates": [1]}', '{"value": 8}')), '0 2 0', 'T3: another value of the same measurement');
SELECT is(helper.perf_state(), :'once', 'T3: the first stays');
SELECT is(helper.report(4, helper.artifact('{"value": 7}')), '2 0 0', 'T6: another job of the push is a retrigger');
SELECT is(helper.report(5, helper.artifact(top => '{"pushTimestamp": 1767225600.5}')), '1 0 0', 'T6: a time of the report''s own');
SELECT is(helper.report(5, helper.artifact(top => '{"pushTimestamp": 1767312000}')), '1 0 0', 'T6: and another');
SELECT is(helper.report(5, helper.artifact(top => '{"pushTimestamp": 1767312000}', subtest => '{"value": 4}')), '0 1 0', 'T6: which is there then');
SELECT results_eq($$SELECT push_timestamp, multi_commit, value FROM metrics_perf_data('autoland', job_ids => '{5}')$$,
    $$VALUES (timestamptz '2026-01-01 00:00:00.5+00', true, 1::float8), ('2026-01-02 00:00+00', true, 1)$$, 'T6: both of one job, and flagged');
SELECT is((SELECT bool_or(multi_commit) FROM metrics_perf_data('autoland', job_ids => '{3,4}')), false, 'T6: others are not');
SELECT results_eq($$SELECT first_timestamp, last_timestamp FROM performance_run WHERE job_id = 5$$, $$VALUES (timestamptz '2026-01-01 00:00:00.5+00', timestamptz '2026-01-02 00:00+00')$$,
    'and the run knows between which times');

-- T7: the hash.
SELECT is(metrics_perf_signature_hash(p || '{"option_collection_hash": "my_option_hash", "machine_platform": "my_platform"}'), hash, 'T7: ' || hash) FROM (VALUES
    ('{"suite": "youtube-watch", "test_options": ["e10s", "shell"]}'::jsonb, '78aaeaf7d3a0170f8a1fb0c4dc34ca276da47e1c'),
    ('{"suite": "youtube-watch", "test_options": ["e10s", "shell"], "test": "fcp", "parent_signature": "78aaeaf7d3a0170f8a1fb0c4dc34ca276da47e1c"}', '12660c632b5f121c2654bb505a0c71b6dcfcddec')) v(p, hash);
-- Computed by Python's json and hashlib.
SELECT is(metrics_perf_signature_hash(p), hash, 'T7: ' || p::text) FROM (VALUES
    ('{"suite": "söüte \ud83d\ude00", "test_options": ["é", "\ud83d\ude00", "\"\\", "\u007f\n", "z"]}'::jsonb, 'f61b1ceb8e88f002f9b2f14f6772490569b3de79'),
    ('{}', 'da39a3ee5e6b4b0d3255bfef95601890afd80709'), ('{"a": 1, "b": null, "c": {"x": [true, 1.5]}}', 'fa4bf22458444863db24cf91c74c7cabfbbe3b0b')) v(p, hash);
SELECT is((SELECT hash FROM performance_option_collection), encode(sha1, 'hex'), 'the hash of the build options') FROM decode('102210fe594ee9b33d82058545b1ed14f4c8206e', 'hex') sha1;
SELECT throws_ok($$SELECT metrics_perf_signature_hash('[]')$$, '22023', NULL, 'T7: of an object');
SELECT helper.report(6, helper.artifact('{"name": "options", "extraOptions": ["e10s", "shell"]}')) \gset
SELECT is(helper.report(6, helper.artifact('{"name": "options", "extraOptions": ["shell", "e10s"]}')), '0 1 0', 'T7: the order of extra options does not matter');
SELECT results_eq($$SELECT s.signature_hash FROM performance_signature s JOIN performance_platform p ON p.id = platform_id JOIN performance_option_collection o ON o.id = option_collection_id
                    WHERE suite = 'suite' AND test = '' AND p.name = 'linux64'$$,
    $$SELECT metrics_perf_signature_hash(jsonb_build_object('suite', 'suite', 'machine_platform', 'linux64', 'option_collection_hash', hash)) FROM performance_option_collection$$, 'T7: of a suite as reported');
SELECT results_eq($$SELECT s.signature_hash FROM performance_signature s WHERE suite = 'suite' AND test = 'test' AND parent_id IS NOT NULL$$,
    $$SELECT metrics_perf_signature_hash(jsonb_build_object('suite', 'suite', 'test', 'test', 'machine_platform', 'linux64', 'option_collection_hash', hash, 'parent_signature', p.signature_hash))
      FROM performance_option_collection, performance_signature p WHERE suite = 'suite' AND test = ''$$, 'T7: and of its subtest');

-- T8, T9, T10: what is one series, and what is not.
SELECT is(helper.report(7, helper.artifact('{"name": "a"}', '{"name": "b"}')) || helper.report(7, helper.artifact('{"name": "b"}', '{"name": "a"}')), '1 0 01 0 0', 'T8: suite a, test b, and the other way around');
SELECT results_eq($$SELECT count(DISTINCT signature_hash), count(DISTINCT id), count(*) FROM performance_signature WHERE suite IN ('a', 'b')$$, $$VALUES (1::bigint, 2::bigint, 2::bigint)$$,
    'T8: have one hash and are two series');
SELECT is(helper.report(8, helper.artifact('{"name": "nine"}', top => top)), '1 0 0', 'T9: ' || top::text) FROM unnest(ARRAY['{}', '{"framework": {"name": "browsertime"}}', '{"application": {"name": "chrome"}}']::jsonb[]) top;
SELECT is(helper.report(8, helper.artifact('{"name": "nine"}'), repository => 'mozilla-central'), '1 0 0', 'T9: another repository');
SELECT results_eq($$SELECT count(DISTINCT signature_hash), count(*) FROM performance_signature WHERE suite = 'nine'$$, $$VALUES (1::bigint, 4::bigint)$$, 'T9: one hash, four series');
SELECT is((SELECT count(*)::int FROM metrics_perf_signatures('autoland', signature_hash => (SELECT DISTINCT signature_hash FROM performance_signature WHERE suite = 'nine'))), 3, 'T9: a look-up by hash finds those of the repository');
SELECT helper.report(9, helper.artifact('{"name": "ten", "subtests": [{"name": "x", "value": 1, "unit": "ms"}, {"name": "y", "value": 1, "unit": "ms"}]}')) \gset
SELECT helper.report(10, helper.artifact('{"name": "ten", "subtests": [{"name": "x", "value": 1, "unit": "seconds", "lowerIsBetter": false, "alertThreshold": 3, "shouldAlert": true}, {"name": "y", "value": 1, "unit": "ms"}]}')) \gset
SELECT results_eq($$SELECT test, measurement_unit, lower_is_better, alert_threshold, should_alert FROM performance_signature WHERE suite = 'ten' ORDER BY test$$,
    $$VALUES ('x', 'seconds', false, 3::float8, true), ('y', 'ms', true, NULL, NULL)$$, 'T10: a series is described as it was last');
SELECT helper.report(11, helper.artifact('{"name": "ten", "extraOptions": ["new"], "subtests": [{"name": "x", "value": 1}]}')) \gset
SELECT results_eq($$SELECT extra_options, measurement_unit FROM performance_signature WHERE suite = 'ten' AND test = 'x' ORDER BY id$$, $$VALUES ('{}'::text[], 'seconds'), ('{new}', NULL)$$,
    'T10: with other extra options it is another one');

-- T11: last_updated.
SELECT helper.report(12, helper.artifact('{"name": "eleven"}'), :push2) \gset
SELECT helper.report(13, helper.artifact('{"name": "eleven"}'), :push1) \gset
SELECT is((SELECT last_updated FROM metrics_perf_signatures('autoland') WHERE suite = 'eleven'), '2026-01-02 00:00+00', 'T11: the greatest time, not the last');
SELECT helper.report(13, helper.artifact('{"name": "eleven"}', top => '{"pushTimestamp": 1798761600}')) \gset
SELECT is((SELECT last_updated FROM metrics_perf_signatures('autoland') WHERE suite = 'eleven'), '2027-01-01 00:00+00', 'T11: of pushes and measurements');

-- T12: frameworks that are not wanted.
SELECT metrics_add_framework('vcs', false) \gset
SELECT helper.perf_state() AS before \gset
SELECT results_eq(format($$SELECT * FROM metrics_report_perf('autoland', %s, 14, helper.artifact('{"value": 3}', top => '{"framework": {"name": "%s"}}'), 'new platform')$$, :push1, framework),
    format($$VALUES (0, 0, 2, %L)$$, reason), 'T12: ' || reason) FROM (VALUES ('vcs', 'framework "vcs" is not enabled'), ('job_resource_usage', 'unknown framework "job_resource_usage"')) v(framework, reason);
SELECT is(helper.perf_state(), :'before', 'T12: nothing is stored');

-- T13: suites and subtests.
SELECT is(helper.report(15, '{"framework": {"name": "talos"}, "suites": [{"name": "with", "value": 1, "subtests": [{"name": "t", "value": 2}]}, {"name": "without", "value": null, "subtests": [{"name": "t", "value": 2}]}]}'),
    '3 0 0', 'T13: a suite with a value, and one without');
SELECT results_eq($$SELECT s.suite, s.test, s.has_subtests, p.suite FROM performance_signature s LEFT JOIN performance_signature p ON p.id = s.parent_id WHERE s.suite LIKE 'with%' ORDER BY 1, 2$$,
    $$VALUES ('with', '', true, NULL), ('with', 't', false, 'with'), ('without', 't', false, NULL)$$, 'T13: only the one has a summary, which is the parent');
SELECT helper.report(16, '{"framework": {"name": "talos"}, "suites": [{"name": "without", "value": 5, "subtests": [{"name": "t", "value": 2}]}]}') \gset
SELECT results_eq($$SELECT count(*), count(DISTINCT signature_hash), count(parent_id) FROM performance_signature WHERE suite = 'without' AND test = 't'$$, $$VALUES (2::bigint, 2::bigint, 1::bigint)$$,
    'T13: a subtest with a parent and one without are two series');
SELECT is(helper.report(17, helper.artifact('{"name": "twice", "subtests": [{"name": "t", "value": 2}, {"name": "s", "value": 9}, {"name": "t", "value": 1}]}')), '2 1 0', 'T13: of subtests of one name');
SELECT is((SELECT array_agg(value ORDER BY test) FROM performance_datum JOIN performance_signature s ON s.id = signature_id WHERE suite = 'twice'), '{9,2}', 'T13: the first counts');
SELECT is(helper.report(18, '{"framework": {"name": "talos"}, "suites": [{"name": "double", "value": 1, "subtests": []}, {"name": "double", "value": 2, "subtests": []}]}'), '1 1 0', 'T13: of suites likewise');
SELECT is((SELECT array_agg(value) FROM performance_datum JOIN performance_signature s ON s.id = signature_id WHERE suite = 'double'), '{1}', 'T13: the first');
SELECT is(helper.report(19, '{"framework": {"name": "talos"}, "suites": []}'), '0 0 0', 'nothing in it is nothing');
SELECT is(helper.report(19, '{"framework": {"name": "talos"}, "suites": [{"name": "empty", "subtests": []}]}'), '0 0 0', 'nor is a suite of nothing');
SELECT is((SELECT count(*)::int FROM performance_run WHERE job_id = 19), 0, 'and no run');

-- What is known of the run.
SELECT created FROM metrics_report_perf('autoland', :push1, 20, helper.artifact(top => '{"application": {"name": "firefox", "version": "99"}, "os": {"name": "linux", "platform_version": "6"}}'), 'linux64', '{opt}', 'm1', '2026-01-01 01:00+00', 2) \gset
SELECT created FROM metrics_report_perf('autoland', :push1, 20, helper.artifact('{"name": "more"}'), 'linux64', '{opt}', 'm2') \gset
SELECT results_eq($$SELECT machine, submit_time, tier, application_version, os_name, platform_version FROM performance_run WHERE job_id = 20$$,
    $$VALUES ('m1', timestamptz '2026-01-01 01:00+00', 2, '99', 'linux', '6')$$, 'a run is what was said of it first');
SELECT throws_ok(format($$SELECT metrics_report_perf('autoland', %s, 20, helper.artifact(), options => '{opt,NULL}')$$, :push1), '22004', NULL, 'a build option that is NULL');
SELECT created FROM metrics_report_perf('autoland', :push1, 21, helper.artifact('{"name": "order"}'), 'linux64', '{opt,debug}') \gset
SELECT is((SELECT existing FROM metrics_report_perf('autoland', :push1, 21, helper.artifact('{"name": "order"}'), 'linux64', '{debug,opt}')), 1, 'the order of build options does not matter');
SELECT results_eq($$SELECT options, option_collection_hash FROM metrics_perf_signatures('autoland') WHERE suite = 'order'$$,
    $$VALUES ('{debug,opt}'::text[], '372be51af813745c34970a5973d5cfeddf3eac15')$$, 'and their hash is that of their sorted names');

SELECT is((SELECT existing FROM metrics_report_perf('autoland', :push1, 21, helper.artifact('{"name": "order"}'), 'linux64', '{debug,opt,debug}')), 1, 'nor does saying one twice');
SELECT throws_ok(format($$SELECT metrics_report_perf('autoland', %s, 23, helper.artifact(), repeat('p', 256))$$, :push1), '22023', NULL, 'a platform of 256 bytes');
SET LOCAL metrics_ext.max_document_size = '1kB';
SELECT throws_ok(format($$SELECT metrics_report_perf('autoland', %s, 23, helper.artifact(jsonb_build_object('unknown', repeat('x', 1000))))$$, :push1), '54000', NULL, 'an artifact that is too large');
SELECT is(helper.report(24, helper.artifact(jsonb_build_object('unknown', repeat('x', 500)))), '1 0 0', 'one that is not, with a key that means nothing');
RESET metrics_ext.max_document_size;

-- A trigger of the user's that keeps rows away is an error, not an endless loop.
CREATE FUNCTION helper.suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER suppress BEFORE INSERT ON performance_signature FOR EACH ROW EXECUTE FUNCTION helper.suppress();
SELECT throws_ok(format($$SELECT metrics_report_perf('autoland', %s, 23, helper.artifact('{"name": "suppressed"}'))$$, :push1), '55000', NULL, 'a trigger that keeps series away');

SELECT * FROM finish();
ROLLBACK;
