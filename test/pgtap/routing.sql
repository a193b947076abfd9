-- Where reports go and what their rows look like: B6 to B9, B14, and routes
-- of the user's own.
BEGIN;
\ir include/store.sql
SELECT plan(42);

SELECT metrics_register_trial(363, 1) \gset
SELECT metrics_register_trial(1) \gset

-- B6, B7: the time of a report.
SET TimeZone TO 'America/Los_Angeles';
SELECT metrics_report(363, 'cpu', '{"test_metric": 0.13}', trial_run_id => 1,
    report_time => '2024-02-29T13:04:49.388948-05:00') AS profiled \gset
SELECT results_eq($$SELECT m.*::text FROM metrics m WHERE partition_type = 'PROFILING'$$,
    ARRAY[format('(363,"2024-02-29 10:04:49.388948-08","{""test_metric"": 0.13}",,1,f,%s,cpu,PROFILING)', :profiled)],
    'B6: the profiling row of the source document');
SELECT results_eq($$SELECT * FROM metrics WHERE partition_type = 'PROFILING'$$,
    format($$VALUES (363, timestamptz '2024-02-29 10:04:49.388948-08', jsonb '{"test_metric": 0.13}', NULL::int, 1, false,
                     %s::bigint, 'cpu', 'PROFILING')$$, :profiled), 'B6: column by column');
SET TimeZone TO 'UTC';
SELECT is((SELECT end_time::text FROM metrics WHERE id = :profiled), '2024-02-29 18:04:49.388948+00',
    'B6: the same instant under another time zone, microseconds kept');
SELECT is(metrics_report(363, 'cpu', '{}', trial_run_id => 1) > :profiled, true,
    'the id returned is the row''s, and grows');
SELECT is((SELECT end_time FROM metrics ORDER BY id DESC LIMIT 1), now(),
    'B7: a profiling report without a time has that of its transaction');
SELECT metrics_report(1, 'training', '{}', 1) AS trained \gset
SELECT is((SELECT end_time FROM metrics WHERE id = :trained), now(),
    'B7: and so has a training report');
SELECT is((helper.report(1, g, '{}', s, 0, t::timestamptz)).end_time,
    t::timestamptz, format('B7: %s at %s, as given', g, t))
FROM (VALUES ('training', 2, '0044-03-15 12:00:00.000001+00 BC'), ('training', 3, '9999-12-31 23:59:59.999999+00'),
             ('cpu', NULL, '0044-03-15 12:00:00.000001+00 BC'), ('cpu', NULL, '9999-12-31 23:59:59.999999+00'),
             ('validation', 3, '1969-12-31 23:59:59.999999+00')) v(g, s, t);

-- B8: routing is exact and case sensitive.
SELECT is(format('%s %s %s', helper.table_of(r.id), r.partition_type, r.metric_group),
          format('%s %s %s', t, p, g), format('B8: %L goes to %s', left(g, 40), t))
FROM (VALUES ('training', 'raw_steps', 'TRAINING'), ('validation', 'raw_validations', 'VALIDATION'),
             ('cpu', 'system_metrics', 'PROFILING'), ('gpu', 'system_metrics', 'PROFILING'),
             ('memory', 'system_metrics', 'PROFILING'), ('disk', 'system_metrics', 'PROFILING'),
             ('network', 'system_metrics', 'PROFILING'), ('inference', 'generic_metrics', 'GENERIC'),
             ('Training', 'generic_metrics', 'GENERIC'), ('system', 'generic_metrics', 'GENERIC'),
             ('CPU', 'generic_metrics', 'GENERIC'), (' cpu', 'generic_metrics', 'GENERIC'),
             (E'it''s "a\\group" ü💡%_', 'generic_metrics', 'GENERIC'), (repeat('g', 500), 'generic_metrics', 'GENERIC')) v(g, t, p),
     LATERAL helper.report(1, g, '{"a": 1}', 100) r;

-- B9: profiling reports touch nothing but their partition.
SELECT metrics_register_trial(2, 0, NULL, 'loss') \gset
SELECT metrics_report(2, 'validation', '{"loss": 1}', 5) \gset
SELECT to_jsonb(t) AS trial_before FROM trials t WHERE id = 2 \gset
SELECT metrics_report(2, 'gpu', '{"loss": 0.5}', steps_completed => 7, report_time => '2024-01-01 00:00:00+00') AS first \gset
SELECT metrics_report(2, 'gpu', '{"loss": 0.5}', steps_completed => 7, report_time => '2024-01-01 00:00:00+00') AS second \gset
SELECT is((SELECT array_agg(total_batches ORDER BY id) FROM metrics WHERE id IN (:first, :second)),
    ARRAY[NULL, NULL]::int[], 'B9: steps sent with a profiling report are dropped, and two identical reports are two rows');
SELECT isnt(:first, :second, 'B9: under ids of their own');
SELECT is((SELECT to_jsonb(t) FROM trials t WHERE id = 2), :'trial_before'::jsonb,
    'B9: the trial, its summary and its validations are as before');

-- B14: the stored document.
SELECT is((helper.report(1, g, '{"a": 1, "n": {"b": [1, null]}}', 200, 0, NULL, b::jsonb)).metrics,
    want::jsonb, format('B14: document of a %s report %s batch metrics', g, CASE WHEN b IS NULL THEN 'without' ELSE 'with' END))
FROM (VALUES
    ('training', NULL, '{"avg_metrics": {"a": 1, "n": {"b": [1, null]}}, "batch_metrics": null}'),
    ('inference', '[{"x": 1}, {"x": "NaN"}]', '{"avg_metrics": {"a": 1, "n": {"b": [1, null]}}, "batch_metrics": [{"x": 1}, {"x": "NaN"}]}'),
    ('validation', '[{"x": 1}]', '{"validation_metrics": {"a": 1, "n": {"b": [1, null]}}}'),
    ('cpu', '[{"x": 1}]', '{"a": 1, "n": {"b": [1, null]}}')) v(g, b, want);
SELECT is((helper.report(1, 'training', '{"a": 1}', 201, 0, NULL, '[]')).metrics,
    '{"avg_metrics": {"a": 1}, "batch_metrics": []}', 'B14: an empty list of batch metrics is kept as such');

-- A user's own routes.
INSERT INTO metrics_route VALUES ('nvme', 'PROFILING');
SELECT is(format('%s %s %s %s', helper.table_of(r.id), r.partition_type, r.total_batches, r.metrics),
    'system_metrics PROFILING  {"t": 40}', 'a route of the user''s to PROFILING')
FROM helper.report(1, 'nvme', '{"t": 40}', 7) r;
SELECT is((SELECT summary_metrics ? 'nvme' FROM trials WHERE id = 1), false, 'whose group is not summarised');
DELETE FROM metrics_route WHERE metric_group = 'nvme';
SELECT is(format('%s %s %s', helper.table_of(r.id), r.partition_type, r.total_batches),
    'generic_metrics GENERIC 7', 'and what its group is without it, in the same session')
FROM helper.report(1, 'nvme', '{"t": 40}', 7) r;
SAVEPOINT route;
INSERT INTO metrics_route VALUES ('fan', 'PROFILING');
SELECT metrics_report(1, 'fan', '{"rpm": 900}') \gset
ROLLBACK TO route;
SELECT helper.refuses($$SELECT metrics_report(1, 'fan', '{"rpm": 900}')$$, '23502',
    'steps_completed is required for metric group "fan"', 'a route that was rolled back is none');
SELECT helper.refuses($$INSERT INTO metrics_route VALUES ('fan', 'NOWHERE')$$, '23503', '',
    'a route needs a partition key that has a kind', false);
UPDATE metrics_route SET partition_key = 'GENERIC' WHERE metric_group = 'network';
SELECT is(helper.table_of((helper.report(1, 'network', '{"a": 1}', 300)).id), 'generic_metrics', 'a route of the five can be changed');

-- Names in the caller's session do not lead a report astray.
SET LOCAL client_min_messages TO error;
CREATE TEMP TABLE trials (id int, run_id int);
CREATE TEMP TABLE metrics (trial_id int);
CREATE TEMP TABLE metrics_route (metric_group text, partition_key text);
INSERT INTO metrics_route VALUES ('training', 'GENERIC');
SELECT lives_ok($$SELECT metrics_report(1, 'training', '{"a": 1}', 400)$$,
    'temporary tables of the same names are in nobody''s way');
SET LOCAL search_path TO '';
SELECT public.metrics_report(1, 'training', '{"a": 2}', 401) \gset
SET LOCAL search_path TO metrics, public, pg_temp;
SELECT is((SELECT array_agg(total_batches ORDER BY total_batches) FROM metrics.raw_steps WHERE total_batches >= 400),
    '{400,401}', 'nor is an empty search_path: both rows are in the store');
SELECT helper.holds(1, 'and the summary holds');

SELECT * FROM finish();
ROLLBACK;
