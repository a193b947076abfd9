-- What bad input gets: an error with a SQLSTATE, the value and a hint, and
-- nothing stored, archived or summarised. B10 to B13.
BEGIN;
\ir include/store.sql
SELECT plan(183);

-- A trial in its second run, with rows of its first that a report of the
-- second would archive, if it got that far.
SELECT metrics_register_trial(1, 0, 7, 'loss') \gset
SELECT metrics_report(1, 'training', '{"a": 1}', 10) \gset
SELECT metrics_report(1, 'validation', '{"loss": 1}', 10) \gset
SELECT metrics_report(1, 'inference', '{"a": 1}', 10) \gset
SELECT metrics_register_trial(1, 1) \gset

-- Trials and runs.
SELECT helper.refuses(format($$SELECT metrics_report(999, %L, '{"a": 1}', 5)$$, g), '23503',
    'trial 999 does not exist', format('B10: an unknown trial, group %s', g))
FROM (VALUES ('training'), ('validation'), ('inference'), ('cpu')) v(g);
SELECT helper.refuses(format($$SELECT metrics_report(%s, 'training', '{"a": 1}', 5)$$, t), '23503',
    format('trial %s does not exist', t), format('trial id %s is no trial', t))
FROM (VALUES (0), (-1), (-2147483648), (2147483647)) v(t);
SELECT helper.refuses(format($$SELECT metrics_report(1, %L, '{"a": 1}', 5, %s)$$, g, r), '22023',
    format('invalid run id, %s (reported) != 1 (expected)', r), format('B10: run %s instead of 1, group %s', r, g))
FROM unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g, unnest(ARRAY[0, 2, -1]) r;

-- Groups.
SELECT helper.refuses($$SELECT metrics_report(1, '', '{"a": 1}', 5, 1)$$, '22023', 'metric group cannot be empty',
    'B12: the empty group');
SELECT helper.refuses(format($$SELECT metrics_report(1, %L, '{"a": 1}', 5, 1)$$, g), '22023', $$metric group cannot contain '.'$$,
    format('B12: group %s', g))
FROM (VALUES ('a.b'), ('.'), ('.a'), ('a.'), ('cpu.'), ('training.x')) v(g);
SELECT helper.refuses(format($$SELECT metrics_report(1, %L, '{"a": 1}', 5, 1)$$, g), '23514', '',
    format('B12: the forbidden group %s', g))
FROM (VALUES ('avg_metrics'), ('validation_metrics')) v(g);
SELECT throws_like(format($$SELECT metrics_report(1, %L, '{"a": 1}', 5, 1)$$, g), '%custom_type_check%',
    format('B12: %s is refused in the name of custom_type_check', g))
FROM (VALUES ('avg_metrics'), ('validation_metrics')) v(g);
SELECT lives_ok($$SELECT metrics_report(1, 'Avg_metrics', '{}', 50, 1)$$, 'a name of another case is not forbidden');

-- Steps.
SELECT helper.refuses(format($$SELECT metrics_report(1, %L, '{"a": 1}', NULL, 1)$$, g), '23502',
    format('steps_completed is required for metric group "%s"', g), format('B11: no steps, group %s', g))
FROM (VALUES ('training'), ('validation'), ('inference')) v(g);
SELECT helper.refuses(format($$SELECT metrics_report(1, %L, '{"a": 1}', %s, 1)$$, g, s), '22003', '',
    format('%s steps, group %s', s, g))
FROM unnest(ARRAY['training', 'validation', 'inference']) g, unnest(ARRAY[-1, -2147483648]) s;
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"a": 1}', 2147483647, 1)$$, 'the greatest number of steps');
SELECT is((SELECT total_batches FROM trials WHERE id = 1), 2147483647, 'is counted as such');

-- NULL where a value is due.
SELECT helper.refuses(format('SELECT metrics_report(%s)', a), '22004', '', format('NULL: metrics_report(%s)', a))
FROM (VALUES ($$NULL, 'training', '{}', 1, 1$$), ($$1, NULL, '{}', 1, 1$$), ($$1, 'training', NULL, 1, 1$$),
             ($$1, 'training', '{}', 1, NULL$$), ($$1, 'cpu', NULL, NULL, 1$$)) v(a);
SELECT helper.refuses($$SELECT metrics_register_trial(NULL)$$, '22004', '', 'NULL: metrics_register_trial()');

-- Documents.
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', g, m), '22023', '',
    format('metrics %s of group %s are no object', m, g))
FROM unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g,
     unnest(ARRAY['[]', '[{"a": 1}]', '1', '"a"', 'true', 'null']) m;
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1, batch_metrics => %L)', 'training', '{}', b), '22023', '',
    format('batch_metrics %s are no array of objects', b))
FROM unnest(ARRAY['{}', '{"a": 1}', '1', '"a"', 'null', '[1]', '[{}, 1]', '[{}, null]', '[[]]', '["a"]']) b;

-- B13: epoch and epochs, whatever the group.
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', g, format('{"%s": %s}', k, v)), '22023',
    format($$cannot add metric with non numeric '%s' value got %s$$, k, v::jsonb), format('B13: %s of %s in group %s', k, v, g))
FROM (VALUES ('training', 'epoch', '"NaN"'), ('training', 'epoch', '"Infinity"'), ('training', 'epoch', '"-Infinity"'),
             ('training', 'epoch', '"x"'), ('training', 'epoch', '"1"'), ('training', 'epoch', 'true'), ('training', 'epoch', 'false'),
             ('training', 'epoch', '[1]'), ('training', 'epoch', '{"a":1}'), ('training', 'epochs', '"x"'), ('training', 'epochs', '[]'),
             ('validation', 'epoch', '"x"'), ('inference', 'epochs', 'true'), ('cpu', 'epoch', '"NaN"'), ('gpu', 'epochs', '{}')) v(g, k, v);
SELECT helper.refuses($$SELECT metrics_report(1, 'training', '{"epochs": "y", "epoch": "x"}', 5, 1)$$, '22023',
    $$cannot add metric with non numeric 'epoch' value got "x"$$, 'B13: of two bad ones epoch is named');
SELECT lives_ok(format('SELECT metrics_report(1, %L, %L, 60 + %s, 1)', g, m, n), format('B13: %s in group %s is accepted', m, g))
FROM (VALUES (1, 'training', '{"epoch": 1}'), (2, 'training', '{"epoch": 1.5, "epochs": -3}'), (3, 'training', '{"epoch": null}'),
             (4, 'training', '{"epochs": null}'), (5, 'validation', '{"epoch": 1e3}'), (6, 'cpu', '{"epoch": 0}'),
             (7, 'training', '{"Epoch": "x", "epoch2": true, "nested": {"epoch": "x"}}')) v(n, g, m);

-- Numbers beyond float8.
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', g, format('{"fine": 1, "too big": %s}', v)), '22003', '',
    format('%s in group %s', v, g))
FROM unnest(ARRAY['training', 'validation', 'inference']) g, unnest(ARRAY['1e309', '-1.8e308', '1e-400']) v;
SELECT throws_like($$SELECT metrics_report(1, 'training', '{"fine": 1, "too big": 1e400}', 5, 1)$$, '%"too big"%',
    'a number beyond float8 is named by its key');
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"a": 1.7976931348623157e308, "b": -1.7976931348623157e308, "n": {"c": 1e400}}', 70, 1)$$,
    'the greatest of float8, and what is nested, are accepted');
SELECT lives_ok($$SELECT metrics_report(1, 'cpu', '{"a": 1e400}', NULL, 1)$$, 'profiling is not summarised, and takes any number');

-- Searcher metrics that are no number (upstream's 22P02).
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', 'validation', format('{"loss": %s}', v)), '22P02', '',
    format('B26: a searcher metric of %s', v))
FROM unnest(ARRAY['"abc"', '"1.5x"', '""', 'true', 'false', '{}', '[]', '[1]']) v;
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"loss": "abc"}', 71, 1)$$, 'outside validation it may be anything');

-- Time.
SELECT helper.refuses(format($$SELECT metrics_report(1, %L, '{}', 5, 1, report_time => %L)$$, g, t), '22008', '',
    format('report time %s, group %s', t, g))
FROM unnest(ARRAY['training', 'cpu']) g, unnest(ARRAY['infinity', '-infinity']) t;

-- Size.
SET metrics_ext.max_document_size TO '1kB';
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', g, jsonb_build_object('a', repeat('x', 1100))), '54000', '',
    format('a document over metrics_ext.max_document_size, group %s', g))
FROM unnest(ARRAY['training', 'cpu']) g;
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1, batch_metrics => %L)', 'training',
        jsonb_build_object('a', repeat('x', 600)), jsonb_build_array(jsonb_build_object('b', repeat('x', 600)))), '54000', '',
    'metrics and batch metrics count together');
SELECT helper.refuses(format('SELECT metrics_report_batch(%L)', jsonb_build_array(
        jsonb_build_object('trial_id', 1, 'metric_group', 'cpu', 'trial_run_id', 1, 'metrics', jsonb_build_object('a', repeat('x', 1100))))), '54000', '',
    'and in a batch a report counts');
SELECT lives_ok(format('SELECT metrics_report(1, %L, %L, 72, 1)', 'training', jsonb_build_object('a', repeat('x', 900))),
    'a document below is accepted');
RESET metrics_ext.max_document_size;
SELECT is(current_setting('metrics_ext.max_document_size'), '96MB', 'the limit is 96 MB, upstream''s');
SELECT throws_ok($$SET metrics_ext.max_document_size TO 0$$, '22023', NULL, 'no limit of 0');
SELECT throws_ok($$SET metrics_ext.nonsense TO 1$$, '42602', NULL, 'no settings that do not exist');

-- Group names have a limit in bytes, which an index entry of the other columns
-- and the name always has room for.
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', g, '{"a": 1}'), '54000', 'metric group of ' || octet_length(g) || ' bytes is too long',
    format('a group of %s characters and %s bytes', length(g), octet_length(g)))
FROM (VALUES (repeat('g', 1001)), (repeat('é', 500) || 'g'), (repeat('🙂', 251)), (repeat('g', 1000000)), (repeat('.', 1001))) v(g);
SELECT helper.refuses(format('SELECT metrics_report_batch(%L)', jsonb_build_array(jsonb_build_object(
        'trial_id', 1, 'metric_group', repeat('é', 501), 'metrics', '{}'::jsonb, 'steps_completed', 5, 'trial_run_id', 1))), '54000',
    'metric group of 1002 bytes is too long', 'and in a batch');
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', left(long, 1001), '{"a": 1}'), '54000', '', 'a group that does not compress')
FROM (SELECT string_agg(md5(n::text), '') AS long FROM generate_series(1, 32) n) v;
INSERT INTO metrics_route VALUES (repeat('p', 1001), 'PROFILING');
SELECT helper.refuses(format('SELECT metrics_report(1, %L, %L, 5, 1)', repeat('p', 1001), '{"a": 1}'), '54000', '', 'a group that is routed to profiling');
CREATE FUNCTION helper.reads_group(metric_group text, description text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT lives_ok(format('SELECT metrics_report(1, %L, %L, %s, 1)', metric_group, '{"a": 1}', s), description) FROM generate_series(80, 81) s;
    RETURN NEXT is((SELECT array_agg(total_batches) FROM metrics_rows(1, metric_group)), '{80,81}', 'and reads again');
    RETURN NEXT is((SELECT count(*)::int FROM metrics_timeseries(1, metric_group, 'a')), 2, 'as a series');
    RETURN NEXT is(helper.entry(1, metric_group, 'a') ->> 'count', '2', 'and is in the summary');
END $$;
SELECT helper.reads_group(g, format('a group of %s characters and 1000 bytes', length(g)))
FROM (VALUES (repeat('g', 1000)), (repeat('é', 500)), (repeat('🙂', 250)), (repeat('語', 333) || 'g')) v(g);
SELECT helper.reads_group(left(long, 1000), 'a group of 1000 bytes that do not compress')
FROM (SELECT string_agg(md5(n::text), '') AS long FROM generate_series(1, 32) n) v;
SELECT set_eq($$SELECT octet_length(group_name) FROM metrics_names(7) WHERE octet_length(group_name) > 100$$, ARRAY[1000], 'and in the names');

-- Merge conflicts are in merge.sql.
SELECT is((SELECT count(*)::int FROM metrics WHERE archived), 0, 'nothing of all this archived a row');
SELECT helper.holds(1, 'and the trial holds');
SELECT metrics_report(1, 'training', '{"a": 1}', 5, 1) \gset
SELECT is((SELECT array_agg(metric_group ORDER BY id) FROM metrics WHERE archived), '{training,validation,inference}',
    'as an accepted report at the same batches does');
SELECT helper.holds(1, 'and the trial still holds');

-- Trials: ranges.
SELECT helper.refuses($$SELECT metrics_register_trial(1, 0)$$, '22023', '', 'a run id lower than the registered one');
SELECT helper.refuses($$SELECT metrics_register_trial(5, -1)$$, '22003', '', 'a negative run id');
SELECT is((SELECT count(*)::int FROM trials WHERE id = 5), 0, 'registers nothing');
SELECT is((SELECT run_id FROM trials WHERE id = 1), 1, 'the registered run is the same');

-- Read-only.
SELECT is(helper.read_only(format($$SELECT metrics_report(1, %L, '{"a": 1}', 6, 1)$$, g)), '25006', 'a read-only transaction reports nothing: ' || g)
FROM unnest(ARRAY['training', 'cpu']) g;

SELECT * FROM finish();
ROLLBACK;
