-- Performance data: alerts, T30 to T33. Two sessions at once are in test/isolation/specs/perf_alerts.spec.
BEGIN;
\ir include/store.sql
SELECT plan(54);

SELECT metrics_add_repository('autoland') \gset
SELECT metrics_add_push('autoland', 'r' || i, date_trunc('second', now()) - interval '10 days' + i * interval '1 hour') FROM generate_series(1, 60) i ORDER BY i \g /dev/null
CREATE FUNCTION helper.push(number integer) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT id FROM performance_push WHERE repository = 'autoland' AND revision = 'r' || number
$$;
CREATE SEQUENCE helper.job;
-- Measure a suite at pushes from the first on, one value a push; what else is said of it; returns its series.
CREATE FUNCTION helper.measure(name text, vals float8[], suite jsonb DEFAULT '{}', first integer DEFAULT 1, framework text DEFAULT 'talos', tier integer DEFAULT 1, repository text DEFAULT 'autoland')
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metrics_report_perf(repository, (SELECT id FROM performance_push p WHERE p.repository = measure.repository AND revision = 'r' || first + i - 1), nextval('helper.job'),
        jsonb_build_object('framework', jsonb_build_object('name', framework), 'suites',
            jsonb_build_array(jsonb_build_object('name', name, 'value', vals[i], 'subtests', '[]'::jsonb) || suite)), tier => measure.tier)
    FROM generate_subscripts(vals, 1) i ORDER BY i;
    RETURN (SELECT max(s.id) FROM performance_signature s WHERE s.suite = name AND test = '' AND s.repository = measure.repository);
END $$;
CREATE FUNCTION helper.times(n integer, v float8) RETURNS float8[] LANGUAGE sql IMMUTABLE AS 'SELECT array_fill(v, ARRAY[n])';
-- A step from 1 to another level at push 16.
CREATE FUNCTION helper.step(level float8, base float8 DEFAULT 1) RETURNS float8[] LANGUAGE sql IMMUTABLE AS 'SELECT helper.times(15, base) || helper.times(15, level)';
-- The alerts of a series, and how many are made.
CREATE FUNCTION helper.alerts(name text, vals float8[], suite jsonb DEFAULT '{}', framework text DEFAULT 'talos') RETURNS integer LANGUAGE sql AS $$
    SELECT metrics_perf_alert('autoland', helper.measure(name, vals, suite, framework => framework))
$$;

-- One step.
SELECT helper.measure('step', helper.step(1.5)) AS step \gset
SELECT is(metrics_perf_alert('autoland', :step), 1, 'a step is an alert');
SELECT results_eq($$SELECT a.signature_id, a.is_regression, a.status, a.amount_pct, a.amount_abs, a.prev_value, a.new_value, a.t_value, a.starred, a.manually_created FROM performance_alert a$$,
    format($$VALUES (%s, true, 'untriaged', 50::float8, 0.5::float8, 1::float8, 1.5::float8, 1000::float8, false, false)$$, :step), 'with what it amounts to; an infinite t is 1000');
SELECT results_eq($$SELECT s.repository, s.framework_id, s.push_id, s.prev_push_id, s.sheriffed, s.manually_created, s.status FROM performance_alert_summary s$$,
    $$VALUES ('autoland', 1, helper.push(16), helper.push(15), true, false, 'untriaged')$$, 'and where it came');
SELECT is(metrics_perf_alert('autoland', :step), 0, 'T30: once more makes none');
DELETE FROM performance_alert;
SELECT is(metrics_perf_alert('autoland', :step), 1, 'without the alert it is new');
SELECT is((SELECT count(*)::int FROM performance_alert_summary), 1, 'and finds its summary');
SELECT is(metrics_perf_alert('nowhere', :step), 0, 'another repository has no such series');

-- T30: too few measurements, until the last one comes.
SELECT helper.measure('few', helper.times(15, 1) || helper.times(11, 2)) AS few \gset
SELECT is(metrics_perf_alert('autoland', :few), 0, 'T30: 11 after the step are too few');
SELECT helper.measure('few', '{2}', first => 27) \gset
SELECT is(metrics_perf_alert('autoland', :few), 1, 'T30: 12 are enough');
SELECT is(metrics_perf_alert('autoland', :few), 0, 'T30: for one alert');
SELECT helper.measure('few', helper.times(15, 2) || helper.times(13, 4), first => 28) \gset
SELECT is(metrics_perf_alert('autoland', :few), 1, 'a second step is another alert');
SELECT is((SELECT array_agg((prev_value, new_value)::text ORDER BY a.id) FROM performance_alert a WHERE signature_id = :few), '{"(1,2)","(2,4)"}', 'of the measurements after the first');

-- T31: thresholds.
SELECT is(helper.alerts('t' || n, vals, suite), expected, format('T31: %s, %s', n, suite)) FROM (VALUES
    ('exactly 2 %', helper.step(102, 100), '{}'::jsonb, 1), ('less than 2 %', helper.step(101.9, 100), '{}', 0), ('2 % less', helper.step(98, 100), '{}', 1),
    ('less than 10 %', helper.step(109, 100), '{"alertThreshold": 10}', 0), ('exactly 10 %', helper.step(110, 100), '{"alertThreshold": 10}', 1), ('none', helper.step(100.0625, 100), '{"alertThreshold": 0}', 1),
    ('0.25', helper.step(0.25, 0.5), '{"alertThreshold": 0.3, "alertChangeType": "absolute"}', 0), ('0.5', helper.step(1, 0.5), '{"alertThreshold": 0.3, "alertChangeType": "absolute"}', 1),
    ('of per cent', helper.step(0.25, 0.5), '{"alertThreshold": 0.3, "alertChangeType": "percentage"}', 1),
    -- T32: from 0, and negative.
    ('from 0', helper.step(1, 0), '{}', 0), ('from 0', helper.step(1, 0), '{"alertThreshold": 0.5, "alertChangeType": "absolute"}', 1), ('negative', helper.step(-90, -100), '{}', 1)) v(n, vals, suite, expected);
SELECT results_eq($$SELECT is_regression, amount_pct FROM performance_alert a JOIN performance_signature s ON s.id = signature_id WHERE suite = 'tnegative'$$, $$VALUES (true, 10::float8)$$, 'T32: per cent of the absolute');
SELECT results_eq($$SELECT amount_pct, amount_abs FROM performance_alert a JOIN performance_signature s ON s.id = signature_id WHERE suite = 'tfrom 0'$$, $$VALUES (0::float8, 1::float8)$$, 'T32: of 0 there is none');
-- Retriggers: T31.
SELECT helper.measure('retriggered', '{0.5}') FROM generate_series(1, 20) \g /dev/null
SELECT helper.measure('retriggered', '{0.5}', first => 2) FROM generate_series(1, 5) \g /dev/null
SELECT helper.measure('retriggered', '{1}', first => 2) FROM generate_series(1, 15) \g /dev/null
SELECT is(metrics_perf_alert('autoland', id), 1, 'T31: retriggers') FROM metrics_perf_signatures('autoland') WHERE suite = 'retriggered';
SELECT results_eq($$SELECT prev_value, new_value, round(t_value::numeric, 6) FROM performance_alert a JOIN performance_signature s ON s.id = signature_id WHERE suite = 'retriggered'$$,
    $$VALUES (0.5::float8, 0.875::float8, 7.549834)$$, 'T31: of two pushes');

-- Direction.
SELECT is(helper.alerts(d.name, helper.step(d.level), jsonb_build_object('lowerIsBetter', d.lower)), 1, d.name)
FROM (VALUES ('up, lower is better', 2, true), ('down, lower is better', 0.5, true), ('up, higher is better', 2, false), ('down, higher is better', 0.5, false)) d(name, level, lower);
SELECT results_eq($$SELECT suite FROM performance_alert a JOIN performance_signature s ON s.id = signature_id WHERE suite LIKE '%is better' AND is_regression ORDER BY suite$$,
    $$VALUES ('down, higher is better'), ('up, lower is better')$$, 'regressions are the changes for the worse');

-- T33: one push, one summary; it begins at the earliest push.
SELECT helper.measure('sparse', helper.times(12, 1) || helper.times(15, 2)) AS sparse \gset
SELECT is((SELECT count(*)::int FROM performance_alert_summary WHERE push_id = helper.push(13)), 0, 'no summary yet');
SELECT is(metrics_perf_alert('autoland', :sparse), 1, 'T33: a series that changes at push 13');
DELETE FROM performance_datum WHERE signature_id = :step AND push_id = helper.push(15);
DELETE FROM performance_alert WHERE signature_id = :step;
SELECT is(metrics_perf_alert('autoland', :step), 1, 'T33: one that was not measured at the push before');
SELECT results_eq($$SELECT push_id, prev_push_id FROM performance_alert_summary WHERE push_id = helper.push(16) AND framework_id = 1$$, $$VALUES (helper.push(16), helper.push(14))$$, 'T33: the summary begins earlier then');
SELECT is(helper.alerts('narrow', helper.step(3)), 1, 'T33: a series that was');
SELECT results_eq($$SELECT prev_push_id FROM performance_alert_summary WHERE push_id = helper.push(16) AND framework_id = 1$$, $$VALUES (helper.push(14))$$, 'T33: does not make it later');
UPDATE performance_alert_summary SET manually_created = true, prev_push_id = helper.push(15) WHERE push_id = helper.push(16) AND framework_id = 1;
DELETE FROM performance_alert WHERE signature_id = :step;
SELECT is(metrics_perf_alert('autoland', :step), 1, 'a summary that somebody made');
SELECT results_eq($$SELECT prev_push_id FROM performance_alert_summary WHERE push_id = helper.push(16) AND framework_id = 1$$, $$VALUES (helper.push(15))$$, 'is used and stays as it is');
SELECT metrics_add_framework('browsertime') \gset
SELECT is(helper.alerts('other framework', helper.step(3), framework => 'browsertime'), 1, 'another framework');
SELECT is((SELECT count(*)::int FROM performance_alert_summary WHERE push_id = helper.push(16)), 2, 'has a summary of its own');

-- Who alerts.
SELECT metrics_add_repository('quiet', alerts_enabled => false), metrics_add_repository('try', is_try => true) \gset
SELECT metrics_add_push(r, 'r' || i, date_trunc('second', now()) - interval '10 days' + i * interval '1 hour') FROM unnest(ARRAY['quiet', 'try']) r, generate_series(1, 30) i ORDER BY i \g /dev/null
CREATE TEMP TABLE who AS SELECT * FROM (VALUES
    ('autoland', 'suite', '{}'::jsonb, 1, true), ('autoland', 'suite', '{"shouldAlert": false}', 1, false), ('autoland', 'suite', '{"shouldAlert": true}', 1, true), ('autoland', 'suite', '{}', 3, false),
    ('autoland', 'suite', '{"shouldAlert": false, "monitor": true}', 1, true), ('autoland', 'suite', '{"monitor": true}', 3, true), ('quiet', 'suite', '{}', 1, false), ('quiet', 'suite', '{"monitor": true}', 1, true),
    ('try', 'suite', '{"shouldAlert": false, "monitor": true}', 1, false), ('autoland', 'subtest', '{}', 1, false), ('autoland', 'subtest', '{"shouldAlert": true}', 1, true), ('autoland', 'subtest', '{"shouldAlert": false}', 1, false),
    ('autoland', 'subtest alone', '{}', 1, true), ('autoland', 'subtest alone', '{"shouldAlert": false}', 1, false)) v(repository, kind, says, tier, alerts);
ALTER TABLE who ADD n serial;
SELECT helper.measure('who' || n, helper.step(2), CASE kind WHEN 'suite' THEN says ELSE jsonb_build_object('value', CASE kind WHEN 'subtest' THEN 1 END) END, tier => tier, repository => repository) FROM who WHERE kind = 'suite' ORDER BY n \g /dev/null
SELECT count(r) FROM who, generate_series(1, 30) i, LATERAL metrics_report_perf('autoland', helper.push(i), 100000 + 100 * n + i, jsonb_build_object('framework', '{"name": "talos"}'::jsonb, 'suites', jsonb_build_array(
    jsonb_build_object('name', 'who' || n, 'value', CASE kind WHEN 'subtest' THEN 1 END, 'subtests', jsonb_build_array('{"name": "t"}' || says || jsonb_build_object('value', CASE WHEN i > 15 THEN 2 ELSE 1 END)))))) r WHERE kind <> 'suite' \gset
SELECT is(string_agg(format('%s of %s, %s, tier %s: %s', kind, w.repository, says, tier, got), E'\n'), NULL, 'who alerts')
FROM who w JOIN performance_signature s ON s.suite = 'who' || n AND s.test = CASE kind WHEN 'suite' THEN '' ELSE 't' END, LATERAL metrics_perf_alert(w.repository, s.id) got WHERE got <> alerts::integer;
SELECT is((SELECT count(*)::int FROM performance_alert a JOIN performance_signature s ON s.id = signature_id WHERE suite LIKE 'who%'), (SELECT count(*) FILTER (WHERE alerts)::int FROM who), 'and nobody else');
SELECT is((SELECT array_agg(DISTINCT sheriffed) FROM performance_alert a JOIN performance_alert_summary m ON m.id = summary_id JOIN performance_signature s ON s.id = signature_id WHERE monitor), '{f}', 'what is monitored is not sheriffed');

-- Age, and the procedure over all series, here within a transaction.
SELECT helper.measure('aged', helper.step(2)) AS aged \gset
SELECT is(metrics_perf_alert('autoland', :aged, interval '9 days'), 0, 'measurements that are too old do not count');
DELETE FROM performance_alert;
CALL metrics_generate_alerts('autoland', max_age => '1 day');
SELECT is((SELECT count(*)::int FROM performance_alert), 0, 'nothing lately');
CALL metrics_generate_alerts('autoland', 'browsertime');
SELECT is((SELECT array_agg(s.suite) FROM performance_alert JOIN performance_signature s ON s.id = signature_id), '{other framework}', 'a framework''s');
CALL metrics_generate_alerts('autoland');
SELECT cmp_ok((SELECT count(*)::int FROM performance_alert), '>', 15, 'and all');
SELECT max(id) AS last FROM performance_alert \gset
CALL metrics_generate_alerts('autoland');
SELECT is((SELECT max(id) FROM performance_alert), :last::bigint, 'once more makes none');
SELECT is((SELECT count(*)::int FROM performance_alert a JOIN performance_alert_summary m ON m.id = summary_id JOIN performance_signature s ON s.id = signature_id WHERE s.repository <> m.repository OR s.framework_id <> m.framework_id), 0, 'alerts are of the repository and framework of their summary');

-- The save rule.
SELECT throws_ok($$UPDATE performance_alert SET status = 'downstream'$$, '23514', NULL, 'an alert that is another''s names its summary');
SELECT throws_ok($$UPDATE performance_alert SET related_summary_id = summary_id$$, '23514', NULL, 'and only such a one does');

SELECT * FROM finish();
ROLLBACK;
