-- B24: after any sequence of reports the stored row of a trial is what its
-- unarchived rows say, and a recompute changes nothing. The sequences are
-- random in form only: each is drawn from a generator of our own with a seed.
BEGIN;
\ir include/store.sql
SELECT plan(26);

-- A number from 0 below n.
CREATE FUNCTION helper.draw(n integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    state bigint := (current_setting('helper.dice')::bigint * 1103515245 + 12345) % 2147483648;
BEGIN
    PERFORM set_config('helper.dice', state::text, false);
    RETURN (state >> 7) % n;
END $$;

CREATE FUNCTION helper.pick(choices text[]) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT choices[1 + helper.draw(cardinality(choices))]
$$;

-- A value by the temper of its name: "steady" names are finite numbers, "odd"
-- ones have NaN and infinities among them, "any" ones all types.
CREATE FUNCTION helper.draw_value(temper text) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    IF temper = 'odd' AND helper.draw(8) = 0 THEN
        RETURN helper.pick('{"\"NaN\"","\"Infinity\"","\"-Infinity\""}');
    ELSIF temper = 'any' AND helper.draw(6) = 0 THEN
        RETURN helper.pick('{true,false,null,[],"[1, {\"k\": null}]","{}","{\"k\": 1}","\"text\"","\"\"","\"NaN\"","\"1.5\"","\"2023-04-19T18:37:29Z\""}');
    END IF;
    CASE helper.draw(6)
        WHEN 0 THEN RETURN to_jsonb(helper.draw(7) - 3);
        WHEN 1 THEN RETURN to_jsonb((helper.draw(2000001) - 1000000)::numeric / 1000);
        WHEN 2 THEN RETURN to_jsonb((helper.draw(1000000) + 1)::numeric * 1000000007);
        WHEN 3 THEN RETURN to_jsonb((helper.draw(1000) + 1)::numeric / 1000000007.0);
        WHEN 4 THEN RETURN to_jsonb(round(((helper.draw(1000000) + 1)::float8 / 7)::numeric, 11));
        ELSE RETURN helper.pick('{0,-0.0,1,1.0,1e3,-1e-3,0.1,9007199254740993}');
    END CASE;
END $$;

CREATE FUNCTION helper.draw_metrics() RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    document jsonb := '{}';
BEGIN
    FOR i IN 1 .. helper.draw(4) LOOP
        CASE helper.draw(5)
            WHEN 0 THEN document := document || jsonb_build_object('loss', helper.draw_value('steady'));
            WHEN 1 THEN document := document || jsonb_build_object('acc', helper.draw_value('odd'));
            WHEN 2 THEN document := document || jsonb_build_object('mixed', helper.draw_value('any'));
            WHEN 3 THEN document := document || jsonb_build_object('x' || helper.draw(6), helper.draw_value('odd'));
            ELSE document := document || jsonb_build_object('epoch', helper.draw(3));
        END CASE;
    END LOOP;
    RETURN document;
END $$;

-- One report, in the keys of a batch element.
CREATE FUNCTION helper.draw_report(trial integer, run integer, profiling boolean DEFAULT true) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    report jsonb := jsonb_build_object(
        'trial_id', trial, 'trial_run_id', run, 'metrics', helper.draw_metrics(),
        'metric_group', helper.pick('{training,training,validation,validation,inference,"g 2/ü",rare}'));
BEGIN
    IF helper.draw(12) = 0 THEN
        report := report || jsonb_build_object('metric_group', helper.pick('{cpu,gpu}'));
    END IF;
    report := report || jsonb_build_object('steps_completed', helper.draw(60));
    IF helper.draw(2) = 0 THEN
        report := report || jsonb_build_object('report_time',
            format('2024-01-01T00:00:%s+00:00', lpad(helper.draw(30)::text, 2, '0')));
    END IF;
    IF helper.draw(10) = 0 THEN
        report := report || '{"batch_metrics": [{"x": 1}]}';
    END IF;
    RETURN report;
END $$;

CREATE FUNCTION helper.send(report jsonb) RETURNS void
LANGUAGE sql VOLATILE AS $$
    SELECT metrics_report((report ->> 'trial_id')::integer, report ->> 'metric_group', report -> 'metrics',
        (report ->> 'steps_completed')::integer, (report ->> 'trial_run_id')::integer,
        (report ->> 'report_time')::timestamptz, report -> 'batch_metrics')
$$;

-- Play a number of moves on three trials; the answer is what first went
-- wrong, NULL if nothing did. The counts go to a table, for the test to see
-- that the play was one.
CREATE TEMP TABLE played (seed integer, what text);
CREATE FUNCTION helper.play(seed integer, moves integer) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    base integer := seed * 10;
    run integer[] := '{0,0,0}';
    t integer;
    move integer;
    difference text;
    reports jsonb;
    failed text;
BEGIN
    PERFORM set_config('helper.dice', seed::text, false);
    PERFORM metrics_register_trial(base + 1, 0, seed, 'loss');
    PERFORM metrics_register_trial(base + 2, 0, seed, 'acc', false);
    PERFORM metrics_register_trial(base + 3, 0, seed);
    FOR i IN 1 .. moves LOOP
        t := 1 + helper.draw(3);
        move := helper.draw(40);
        failed := NULL;
        BEGIN
            IF move = 0 THEN
                -- A later run, from anywhere.
                run[t] := run[t] + 1 + helper.draw(2);
                PERFORM metrics_register_trial(base + t, run[t]);
                INSERT INTO played VALUES (seed, 'run');
            ELSIF move <= 4 THEN
                -- Reports that the user takes back.
                BEGIN
                    FOR j IN 0 .. helper.draw(3) LOOP
                        PERFORM helper.send(helper.draw_report(base + t, run[t]));
                    END LOOP;
                    RAISE SQLSTATE 'ZZZZZ';
                EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN
                    INSERT INTO played VALUES (seed, 'taken back');
                END;
            ELSIF move <= 8 THEN
                SELECT jsonb_agg(helper.draw_report(base + t, run[t])) INTO reports
                FROM generate_series(0, helper.draw(5));
                PERFORM metrics_report_batch(reports);
                INSERT INTO played VALUES (seed, 'batch');
            ELSIF move = 9 THEN
                PERFORM metrics_recompute_summary(base + t);
            ELSE
                PERFORM helper.send(helper.draw_report(base + t, run[t]));
                INSERT INTO played VALUES (seed, 'report');
            END IF;
        EXCEPTION
            -- Conflicting merges, and searcher metrics that are no numbers.
            WHEN unique_violation OR invalid_text_representation THEN
                failed := SQLSTATE;
                INSERT INTO played VALUES (seed, 'failed ' || failed);
        END;
        IF i % 7 = 0 OR failed IS NOT NULL THEN
            difference := helper.trial_difference(base + t);
            IF difference IS NOT NULL THEN
                RETURN format(E'seed %s, move %s (%s), trial %s:\n%s', seed, i, move, base + t, difference);
            END IF;
        END IF;
    END LOOP;
    SELECT string_agg(d, E'\n') INTO difference
    FROM generate_series(1, 3) n, helper.trial_difference(base + n) d;
    RETURN difference;
END $$;

SELECT is(helper.play(seed, 250), NULL, 'B24: sequence ' || seed) FROM generate_series(1, 8) seed;

SELECT cmp_ok((SELECT count(*)::integer FROM played WHERE what = w), '>', least, format('the sequences have more than %s of: %s', least, w))
FROM (VALUES ('report', 1000), ('batch', 50), ('taken back', 100), ('run', 20), ('failed 23505', 30)) v(w, least);
SELECT cmp_ok((SELECT count(*)::integer FROM metrics WHERE archived), '>', 100, 'and archived rows');
SELECT cmp_ok((SELECT count(*)::integer FROM system_metrics), '>', 20, 'and profiling rows');
SELECT cmp_ok((SELECT count(*)::integer FROM trials t, jsonb_each(summary_metrics) g, jsonb_each(g.value) e
               WHERE e.value ->> 'sum' = 'NaN' OR e.value ->> 'max' = 'Infinity' OR e.value ->> 'min' = '-Infinity'),
    '>', 10, 'and summaries that are not finite');
SELECT cmp_ok((SELECT count(*)::integer FROM trials t, jsonb_each(summary_metrics) g, jsonb_each(g.value) e
               WHERE e.value ->> 'type' = 'string'), '>', 5, 'and mixed types');

-- A recompute finds nothing to change.
CREATE TEMP TABLE incremental AS SELECT id, to_jsonb(t) - 'summary_metrics_timestamp' AS row FROM trials t;
SELECT is((SELECT count(*)::int FROM trials WHERE summary_metrics IS DISTINCT FROM metrics_recompute_summary(id)), 0,
    'B24: metrics_recompute_summary() returns the stored summary, to the digit');
SELECT is_empty($$SELECT id FROM trials t JOIN incremental i USING (id) WHERE to_jsonb(t) - 'summary_metrics_timestamp' <> i.row$$,
    'B24: and leaves the trial as it is');
SELECT is(helper.play(9, 200), NULL, 'B24: a sequence after it');

-- Many reports in one statement, and each sees those before it.
SELECT metrics_register_trial(1, 0, NULL, 'loss') \gset
SELECT is((SELECT count(metrics_report(1, g, jsonb_build_object('loss', n, g, 1), n % 250)) FROM generate_series(0, 999) n,
           LATERAL (SELECT (ARRAY['training', 'validation', 'inference', 'other'])[1 + n / 250]) v(g)), 1000::bigint,
    'a thousand reports in one statement');
SELECT helper.holds(1, 'are summarised');
SELECT is((SELECT sum((e.value ->> 'count')::integer)::integer FROM trials, jsonb_each(summary_metrics) g, jsonb_each(g.value) e
           WHERE id = 1), 2000, 'each of them once');

-- Values far apart, in every order: sum and mean stay within 1e-12 of the sum
-- of the absolute values.
SELECT metrics_register_trial(2) \gset
SELECT helper.run(format('SELECT metrics_report(2, %L, %L, %s)', 'training', format('{"a": %s1e%s}', s, e), n))
FROM (SELECT row_number() OVER () AS n, s, e FROM unnest(ARRAY['', '-', '']) s, unnest(ARRAY[300, -300, 150, 0, -150, 16, 15, -16]) e) v \g /dev/null
SELECT helper.holds(2, 'values of 600 powers of ten');
SELECT is(helper.summary_difference(metrics_recompute_summary(2), helper.expected_summary(2)), NULL, 'and their recompute');
SELECT helper.holds(2, 'which is stored');

SELECT * FROM finish();
ROLLBACK;
