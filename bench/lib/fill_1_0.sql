-- :rows rows in a store of version 1.0: three in four are training, the rest
-- validation and generic metrics.
INSERT INTO metrics.trials (id) SELECT t FROM generate_series(1, 100) t;
INSERT INTO metrics.metrics (trial_id, end_time, metrics, total_batches, metric_group, partition_type)
SELECT n % 100 + 1, timestamptz '2024-02-29 13:04:49.388948-05' + n * interval '1 s',
	jsonb_build_object('avg_metrics', jsonb_build_object('loss', 1.0 / (n + 1), 'accuracy', n % 1000 / 1000.0,
		'learning_rate', 0.00025, 'epoch', n / 1000), 'batch_metrics', NULL),
	n,
	CASE n / 100 % 8 WHEN 0 THEN 'validation' WHEN 1 THEN 'inference' ELSE 'training' END,
	(CASE n / 100 % 8 WHEN 0 THEN 'VALIDATION' WHEN 1 THEN 'GENERIC' ELSE 'TRAINING' END)::metrics.metric_partition_type
FROM generate_series(1, :rows) n;
