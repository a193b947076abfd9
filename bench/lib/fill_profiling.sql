-- :rows profiling rows in order of time; 11 in 20 are of group cpu of trial 1,
-- the rest of the other trials and groups in turn.
INSERT INTO metrics.trials (id) SELECT t FROM generate_series(1, 20) t;
INSERT INTO metrics.metrics (trial_id, end_time, metrics, metric_group, partition_type)
SELECT CASE WHEN n % 20 < 11 THEN 1 ELSE n % 20 END, timestamptz '2024-02-29 13:04:49.388948-05' + n * interval '0.1 s',
	jsonb_build_object('agent-0', jsonb_build_object('cpu_util_simple', n % 1000 / 10.0)),
	CASE WHEN n % 20 < 11 THEN 'cpu' ELSE ('{cpu,gpu,memory,disk,network}'::text[])[n / 20 % 5 + 1] END, 'PROFILING'
FROM generate_series(1, :rows) n;
