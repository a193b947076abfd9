-- NULL for an argument that has to have a value is an error with a hint,
-- whatever the function: one that only vanished would lose a report in silence.
BEGIN;
\ir include/store.sql
SELECT * FROM no_plan();

SELECT metrics_register_trial(1, 0, 1, 'loss') \gset
SELECT metrics_report(1, g, '{"loss": 1}', 1) FROM unnest(ARRAY['training', 'validation', 'inference', 'cpu']) g \g /dev/null
SELECT metrics_add_repository('autoland') \gset
SELECT metrics_add_push('autoland', 'r', '2024-01-01 00:00+00') \gset
SELECT metrics_start_run(r) FROM unnest(ARRAY['running', 'finished', 'failed']) r \g /dev/null
SELECT metrics_start_stage('running', 'stage') \g /dev/null
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE TABLE public.managed (k text) PARTITION BY LIST (k);
SELECT metrics_manage_partitions('public.managed'), metrics_add_partition('public.managed'::regclass, 'gone'), metrics_add_partition('gone') \g /dev/null

-- A good call of each function, by its types where there are several of the name, and which of its arguments may be NULL.
CREATE TEMP TABLE call (function text, arguments text[], optional text[]);
INSERT INTO call VALUES
    ('metrics_create_store', ARRAY['metrics'], '{}'),
    ('metrics_upgrade_store', '{}', '{}'),
    ('metrics_upgrade_plan', '{}', '{}'),
    ('metrics_grant', ARRAY['public', 'reader'], '{}'),
    ('metrics_populate', ARRAY['1', '1'], '{}'),
    ('metrics_register_trial', ARRAY['1', '0', '1', 'loss', 'true'], '{experiment_id,searcher_metric}'),
    ('metrics_report', ARRAY['1', 'cpu', '{"u": 1}', '1', '0', '2024-01-01 00:00+00', '[]'], '{steps_completed,report_time,batch_metrics}'),
    ('metrics_report_batch', ARRAY['[]'], '{}'),
    ('metrics_recompute_summary', ARRAY['1'], '{}'),
    ('metrics_rows', ARRAY['1', 'training', '-1', '10', '1'], '{metric_group,after_batches,max_rows,after_id}'),
    ('metrics_timeseries', ARRAY['1', 'training', 'loss', '10', '0', '9', '2024-01-01 00:00+00', '2024-01-01 00:00+00'], '{start_batches,end_batches,since,until}'),
    ('metrics_trials_snapshot', ARRAY['1', 'training', 'loss', '1', '0', '2024-01-01 00:00+00'], '{since}'),
    ('metrics_names', ARRAY['1'], '{}'),
    ('metrics_best_trial', ARRAY['1'], '{}'),
    ('metrics_profiling_rows', ARRAY['1', 'cpu', 'u', 'agent', 'GPU-0', '2024-01-01 00:00+00', '2024-01-01 00:00+00', '2024-01-01 00:00+00', '1', '10'],
        '{metric_name,agent_id,gpu_uuid,since,until,after_time,after_id,max_rows}'),
    ('metrics_profiling_series', ARRAY['1'], '{}'),
    ('metrics_add_partition(text,text)', ARRAY['key', 'time'], '{}'),
    ('metrics_add_partition(regclass,text)', ARRAY['public.managed', 'key'], '{}'),
    ('metrics_drop_partition(text,boolean)', ARRAY['gone', 'false'], '{}'),
    ('metrics_drop_partition(regclass,text,boolean)', ARRAY['public.managed', 'gone', 'false'], '{}'),
    ('metrics_manage_partitions', ARRAY['public.managed'], '{}'),
    ('metrics_unmanage_partitions', ARRAY['public.managed'], '{}'),
    ('metrics_drain', ARRAY['public.managed', 'key'], '{}'),
    ('metrics_maintain', '{}', '{}'),
    ('metrics_partitions', '{}', '{}'),
    ('metrics_worker_status', '{}', '{}'),
    ('metrics_route_group', ARRAY['node_%', 'NODES', 'time'], '{partition_key}'),
    ('metrics_unroute_group', ARRAY['node_%'], '{}'),
    ('metrics_pending_keys', '{}', '{}'),
    ('metrics_add_framework', ARRAY['vcs', 'true'], '{}'),
    ('metrics_add_repository', ARRAY['autoland', 'true', 'false', '1 year'], '{keep}'),
    ('metrics_add_push', ARRAY['autoland', 'r', '2024-01-01 00:00+00', 'me'], '{author}'),
    ('metrics_report_perf', ARRAY['autoland', '1', '1', '{"framework": {"name": "talos"}, "suites": []}', 'p', '{}', 'm', '2024-01-01 00:00+00', '1'], '{machine,submit_time}'),
    ('metrics_perf_data', ARRAY['autoland', '{1}', '{1}', '{1}', NULL, NULL, '1 day', 'true', 'true'], '{signature_ids,push_ids,job_ids,since,until,age}'),
    ('metrics_perf_signatures', ARRAY['autoland', 'talos', 'p', 'h', '1', 'true', '2024-01-01 00:00+00', '2024-01-01 00:00+00'],
        '{framework,platform,signature_hash,parent_id,subtests,since,until}'),
    ('metrics_perf_compare', ARRAY['autoland', '{1}', '{1}', 'autoland', 'talos', 'true', 'true', '10'], '{new_repository,framework}'),
    ('metrics_expire_perf', ARRAY[NULL, '10'], '{repository}'),
    ('metrics_generate_alerts', ARRAY['autoland', 'talos', '14 days'], '{framework}'),
    ('metrics_perf_alert', ARRAY['autoland', '1', '14 days'], '{}'),
    ('metrics_perf_changes', ARRAY['autoland', '1', '2024-01-01 00:00+00'], '{since}'),
    ('metrics_percentiles', ARRAY['training', 'loss', '1', '2024-01-01 00:00+00', '2024-01-01 00:00+00', '1 hour'], '{trial_id,since,until,bucket}'),
    ('metrics_start_run', ARRAY[NULL, '{}', '2024-01-01 00:00+00'], '{run_id,at}'),
    ('metrics_finish_run', ARRAY['finished', '2024-01-01 00:00+00'], '{at}'),
    ('metrics_fail_run', ARRAY['failed', '2024-01-01 00:00+00'], '{at}'),
    ('metrics_start_stage', ARRAY['running', 's', '2024-01-01 00:00+00'], '{at}'),
    ('metrics_finish_stage', ARRAY['running', 'stage', '2024-01-01 00:00+00'], '{at}'),
    ('metrics_report_operator', ARRAY['running', 's', 'o', 'w', '1', '1', '1', '0', '{1}', NULL, NULL, '{}', '2024-01-01 00:00+00'], '{latencies,weights,sketch}'),
    ('metrics_report_operators', ARRAY['[]'], '{}'),
    ('metrics_list_runs', '{}', '{}'),
    ('metrics_drop_runs', ARRAY['2000-01-01 00:00+00'], '{}'),
    ('metrics_partition_by_time', ARRAY['metrics.pipeline_operators', '1 day', '1 year'], '{retention}'),
    ('metrics_operator_percentiles', ARRAY['1 hour', 's', 'o', 'running', '2024-01-01 00:00+00', '2024-01-01 00:00+00'], '{stage_name,operator_name,run_id,since,until}');

-- The calls, with NULL for one argument each, from the catalog; number 0 has none.
CREATE TEMP TABLE statement AS
SELECT function, number, proargnames[number] AS argument, proargnames[number] = ANY (optional) AS may_be_null,
       format(CASE prokind WHEN 'p' THEN 'CALL %s(%s)' ELSE 'SELECT count(*) FROM %s(%s)' END, proname, (
           SELECT string_agg(format('%I => %s::%s', proargnames[a], CASE WHEN a = number THEN 'NULL' ELSE quote_nullable(arguments[a]) END,
                                    format_type(proargtypes[a - 1], NULL)), ', ' ORDER BY a)
           FROM generate_series(1, pronargs) a)) AS statement
FROM call JOIN pg_proc ON function IN (proname, pg_proc.oid::regprocedure::text) AND provolatile <> 'i', generate_series(0, pronargs) number;

SELECT set_eq($$SELECT proname::text FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND classid = 'pg_proc'::regclass AND deptype = 'e'
                JOIN pg_extension e ON e.oid = refobjid WHERE extname = 'metrics_ext' AND provolatile <> 'i'$$,
    $$SELECT split_part(function, '(', 1) FROM call UNION VALUES ('metrics_partition_key')$$, 'all functions are in this test');
SELECT is((SELECT count(*)::int FROM pg_proc JOIN call ON function IN (proname, pg_proc.oid::regprocedure::text) WHERE proisstrict AND provolatile <> 'i'), 0, 'none is STRICT');
SELECT is(metrics_partition_key(NULL), NULL, 'metrics_partition_key() reads no table of the store');
SELECT lives_ok(statement, statement) FROM statement WHERE number = 0 OR may_be_null ORDER BY function, number;
SELECT helper.refuses(statement, '22004', argument || ' must not be NULL', format('NULL: %s of %s()', argument, function))
FROM statement WHERE NOT may_be_null AND number > 0 ORDER BY function, number;
SELECT helper.refuses('SELECT metrics_report(NULL, NULL, NULL, NULL, NULL)', '22004', '', 'all of them NULL');
SELECT helper.refuses(call, '22004', '', 'NULL: ' || call) FROM unnest(ARRAY['CALL metrics_generate_alerts(NULL)', $$CALL metrics_generate_alerts('autoland', max_age => NULL)$$, 'CALL metrics_expire_perf(NULL, NULL)']) call;
SELECT is_empty('SELECT * FROM metrics_profiling_values(NULL)', 'metrics_profiling_values() of NULL has no values');

-- The same in a batch, where it is null or missing.
SELECT helper.refuses(format('SELECT metrics_report_batch(%L)', jsonb_build_array(report || jsonb_build_object(key, NULL))), '22004', '',
    format('null: %s in a batch', key))
FROM (VALUES ('{"trial_id": 1, "metric_group": "training", "metrics": {"a": 1}, "steps_completed": 9, "trial_run_id": 0}'::jsonb)) v(report),
     unnest(ARRAY['trial_id', 'metric_group', 'metrics', 'trial_run_id']) key;
SELECT helper.refuses(format('SELECT metrics_report_batch(%L)', jsonb_build_array(report - key)), '22004', '', format('%s missing in a batch', key))
FROM (VALUES ('{"trial_id": 1, "metric_group": "training", "metrics": {"a": 1}, "steps_completed": 9}'::jsonb)) v(report),
     unnest(ARRAY['trial_id', 'metric_group', 'metrics']) key;

SELECT * FROM finish();
ROLLBACK;
