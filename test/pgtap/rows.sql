-- Reading the rows of a trial: B27, and keyset paging.
BEGIN;
\ir include/store.sql
SELECT plan(31);

SELECT metrics_register_trial(1) \gset
SELECT metrics_report(1, g, jsonb_build_object('v', b), b)
FROM unnest(ARRAY['training', 'validation', 'inference']) g, unnest(ARRAY[10, 20, 30]) b ORDER BY b DESC, g \g /dev/null
SELECT metrics_report(1, 'cpu', '{"v": 1}') \gset
SELECT metrics_register_trial(2) \gset
SELECT metrics_report(2, 'training', '{"v": 99}', 15) \gset

SELECT results_eq($$SELECT id, trial_run_id, group_name, total_batches, metrics FROM metrics_rows(1, 'training')$$,
    $$SELECT id, trial_run_id, metric_group, total_batches, metrics FROM raw_steps WHERE trial_id = 1 ORDER BY total_batches$$,
    'B27: the rows of a group in order of batches, as they are stored');
SELECT is((SELECT bool_and(date_trunc('milliseconds', r.end_time) = date_trunc('milliseconds', s.end_time))
           FROM metrics_rows(1, 'training') r JOIN raw_steps s USING (id)), true, 'B27: with their time');
SELECT results_eq($$SELECT total_batches FROM metrics_rows(1, 'validation', 10)$$, ARRAY[20, 30], 'B27: after is exclusive');
SELECT is_empty($$SELECT total_batches FROM metrics_rows(1, 'validation', 30)$$, 'B27: after the last there is none');
SELECT results_eq($$SELECT total_batches FROM metrics_rows(1, 'validation', -1, 2)$$, ARRAY[10, 20], 'B27: with a limit');
SELECT is((SELECT count(*)::int FROM metrics_rows(1, 'validation', max_rows => 1)), 1, 'B27: of one');
SELECT results_eq($$SELECT group_name FROM metrics_rows(1, NULL, 20) ORDER BY group_name$$, ARRAY['inference', 'training', 'validation'],
    'B27: no group is all groups: training, validation, inference, 3 rows');
SELECT results_eq($$SELECT total_batches, id FROM metrics_rows(1)$$,
    $$SELECT total_batches, id FROM metrics WHERE trial_id = 1 AND NOT archived AND total_batches IS NOT NULL ORDER BY 1, 2$$,
    'B27: in order of batches and id over the groups');
SELECT is_empty($$SELECT * FROM metrics_rows(1, 'nothing')$$, 'a group without rows has none');
SELECT is_empty($$SELECT * FROM metrics_rows(1, 'Training')$$, 'groups are case sensitive');
SELECT is_empty($$SELECT * FROM metrics_rows(404)$$, 'an unknown trial has none');
SELECT results_eq($$SELECT group_name FROM metrics_rows(1) WHERE group_name = 'cpu'$$, '{}'::text[],
    'B27: profiling rows have a reader of their own');

-- The generic partition is read by group.
SELECT metrics_report(1, 'other', '{"w": 1}', 20) \gset
SELECT results_eq($$SELECT group_name, total_batches FROM metrics_rows(1, 'inference')$$,
    $$VALUES ('inference', 10), ('inference', 20), ('inference', 30)$$, 'one generic group does not show another');

-- Batches 0.
SELECT metrics_report(1, 'other', '{"w": 0}', 0) \gset
SELECT results_eq($$SELECT total_batches FROM metrics_rows(1, 'other')$$, ARRAY[0, 20], 'from the start means batches 0 too');
SELECT results_eq($$SELECT total_batches FROM metrics_rows(1, 'other', 0)$$, ARRAY[20], 'after 0 does not');

-- Pages: whatever their size they are all rows, once, in order.
CREATE FUNCTION helper.pages(trial integer, metric_group text, size integer, OUT pages integer, OUT ids bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    after_batches integer := -1;
    after_id bigint;
    n integer;
BEGIN
    pages := 0;
    ids := '{}';
    LOOP
        n := 0;
        FOR r IN SELECT * FROM metrics_rows(trial, metric_group, after_batches, size, after_id) LOOP
            n := n + 1;
            ids := ids || r.id;
            after_batches := r.total_batches;
            after_id := r.id;
        END LOOP;
        EXIT WHEN n = 0;
        IF n > size THEN
            RAISE 'a page of % rows', n;
        END IF;
        pages := pages + 1;
    END LOOP;
END $$;
SELECT is(helper.pages(1, NULL, size), ROW((11 + size - 1) / size, (SELECT array_agg(id ORDER BY total_batches, id) FROM metrics
                                            WHERE trial_id = 1 AND NOT archived AND total_batches IS NOT NULL)),
    format('pages of %s: every row once, though several share their batches', size))
FROM unnest(ARRAY[1, 2, 3, 4, 10, 11, 12]) size;
SELECT is(helper.pages(1, 'inference', 2), ROW(2, (SELECT array_agg(id ORDER BY total_batches, id) FROM metrics WHERE metric_group = 'inference')),
    'pages of one group');
SELECT is((SELECT min(id) FROM metrics_rows(1, NULL, 20, 1, (SELECT min(id) FROM metrics WHERE total_batches = 20 AND trial_id = 1))),
    (SELECT id FROM metrics WHERE total_batches = 20 AND trial_id = 1 ORDER BY id OFFSET 1 LIMIT 1), 'with after_id the page goes on within the batches');

-- Archived rows are hidden.
SELECT metrics_register_trial(1, 1) \gset
SELECT metrics_report(1, 'training', '{"v": 21}', 20, 1) \gset
SELECT results_eq($$SELECT trial_run_id, total_batches FROM metrics_rows(1, 'training')$$, $$VALUES (0, 10), (1, 20)$$,
    'B27: archived rows are hidden');
SELECT is((SELECT count(*) FROM metrics_rows(1)), (SELECT count(*) FROM metrics WHERE trial_id = 1 AND NOT archived AND partition_type <> 'PROFILING'),
    'B27: of every group');

-- A report is seen by the statement after it, and a reader is not led astray.
SELECT metrics_report(1, 'training', '{"v": 22}', 22, 1) \gset
SELECT results_eq($$SELECT total_batches FROM metrics_rows(1, 'training', 20)$$, ARRAY[22], 'a new report is read');
SET search_path TO '';
SELECT total_batches FROM public.metrics_rows(1, 'training', 20) \gset
SET search_path TO metrics, public;
SELECT is(:total_batches, 22, 'with any search_path');

-- Bad input.
SELECT helper.refuses('SELECT * FROM metrics_rows(1, max_rows => -1)', '22023', '', 'a page of -1 rows');
SELECT is_empty('SELECT * FROM metrics_rows(1, max_rows => 0)', 'a page of none');
SELECT helper.refuses('SELECT * FROM metrics_rows(NULL)', '22004', '', 'a NULL trial');

SELECT * FROM finish();
ROLLBACK;
