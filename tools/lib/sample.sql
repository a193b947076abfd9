-- Sample data: two pipelines of five stages, each run four times a day for two
-- weeks up to :until, and six trials of an hour.  No randomness: the same :until gives the
-- same rows.

\if :{?until}
\else
SELECT date_trunc('hour', now()) AS until \gset
\endif

-- A number from 0 to 1 that looks like chance.
CREATE FUNCTION pg_temp.noise(VARIADIC text[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
	SELECT (hashtextextended(array_to_string($1, '/'), 0) & 65535) / 65535.0
$$;

-- What each operator lets pass and how many seconds it takes for a record.
CREATE TEMP TABLE plan AS
SELECT * FROM (VALUES
	(1, 'load',   1, 'Reader',         1.000, 0.0009),
	(1, 'load',   2, 'Decoder',        0.994, 0.0016),
	(2, 'filter', 1, 'Language',       0.860, 0.0005),
	(2, 'filter', 2, 'Quality',        0.780, 0.0021),
	(3, 'dedup',  1, 'Fingerprint',    1.000, 0.0012),
	(3, 'dedup',  2, 'NearDuplicates', 0.910, 0.0030),
	(4, 'embed',  1, 'Tokenizer',      1.000, 0.0011),
	(4, 'embed',  2, 'Embedder',       0.999, 0.0075),
	(5, 'write',  1, 'Writer',         1.000, 0.0007)
) AS plan(stage, stage_name, step, operator_name, passes, seconds);

-- Embedding was slow for two days, and the filters let less pass than before for three.
CREATE TEMP TABLE runs AS
SELECT pipeline || to_char(start_time AT TIME ZONE 'UTC', '_YYYYMMDD_HH24MI') AS run_id, pipeline, start_time,
	number = 23 AND pipeline = 'images' AS fails,
	round((160000 + 48000 * sin(number * 0.9) + 32000 * pg_temp.noise(pipeline, number::text))
		* CASE pipeline WHEN 'texts' THEN 1.6 ELSE 1 END)::bigint AS records,
	CASE WHEN number BETWEEN 32 AND 39 THEN 1.8 ELSE 1 END AS embed_slowness,
	CASE WHEN number BETWEEN 14 AND 25 THEN 0.85 ELSE 1 END AS filter_passes
FROM generate_series(0, 55) number,
	LATERAL (VALUES ('images', interval '0'), ('texts', interval '90 min')) AS p(pipeline, shift),
	LATERAL (SELECT :'until'::timestamptz - interval '14 days' + number * interval '6 hours' + shift) AS t(start_time);

CREATE TEMP TABLE kept AS
SELECT run_id, stage, step, passes * CASE stage_name WHEN 'filter' THEN filter_passes ELSE 1 END
	* CASE WHEN passes < 0.99 THEN 1 - 0.08 * pg_temp.noise(run_id, operator_name) ELSE 1 END AS passes
FROM runs CROSS JOIN plan;

-- What goes into an operator is what all operators before it let pass.
CREATE TEMP TABLE work AS
SELECT r.run_id, stage, stage_name, step, operator_name, worker, input, k.passes,
	p.seconds * (0.85 + 0.3 * pg_temp.noise(r.run_id, operator_name, worker::text))
		* CASE stage_name WHEN 'embed' THEN embed_slowness ELSE 1 END
		* CASE pipeline WHEN 'images' THEN 1.3 ELSE 1 END AS seconds,
	r.start_time + stage * interval '9 min' + step * interval '3 min' + worker * interval '1 s' AS at
FROM runs r JOIN kept k USING (run_id) JOIN plan p USING (stage, step) CROSS JOIN generate_series(0, 3) worker,
	LATERAL (SELECT round(r.records / 4 * coalesce(exp(sum(ln(b.passes))), 1))::bigint AS input
		FROM kept b WHERE b.run_id = r.run_id AND (b.stage, b.step) < (k.stage, k.step)) passed
WHERE NOT fails OR stage < 4;

SELECT metrics_start_run(run_id, jsonb_build_object('pipeline', pipeline, 'workers', 4), at => start_time)
FROM runs ORDER BY start_time;

SELECT metrics_start_stage(run_id, stage_name, at => min(at))
FROM work GROUP BY run_id, stage, stage_name ORDER BY run_id, stage;

-- Latencies have a long tail.
SELECT metrics_report_operators(jsonb_agg(jsonb_build_object(
	'run_id', run_id, 'stage_name', stage_name, 'operator_name', operator_name,
	'worker_id', 'worker_' || worker, 'at', at,
	'input_records', input, 'output_records', round(input * passes),
	'total_time', seconds * input,
	'error_count', floor(6 * pg_temp.noise(run_id, operator_name, worker::text, 'errors') ^ 8),
	'latencies', (SELECT jsonb_agg(seconds * (0.6 + 0.7 * x + 0.03 / (1.01 - x)))
		FROM generate_series(1, 100) i, LATERAL (SELECT pg_temp.noise(run_id, operator_name, worker::text, i::text) AS x) n),
	'custom_metrics', jsonb_build_object('memory_mb', round((200 + 400 * pg_temp.noise(operator_name, run_id))::numeric)))
	ORDER BY at))
FROM work GROUP BY run_id;

SELECT metrics_finish_stage(run_id, stage_name, at => max(at) + interval '2 min')
FROM work JOIN runs USING (run_id) WHERE NOT fails OR stage < 3 GROUP BY run_id, stage_name;

SELECT metrics_finish_run(run_id, at => max(at) + (2 + 3 * pg_temp.noise(run_id)) * interval '1 min')
FROM work JOIN runs USING (run_id) WHERE NOT fails GROUP BY run_id;
SELECT metrics_fail_run(run_id, at => start_time + interval '36 min') FROM runs WHERE fails;

-- Trials of six learning rates: too low a rate learns slowly, too high a rate
-- never settles, and a long training begins to learn the noise.
CREATE TEMP TABLE steps AS
SELECT trial, step, :'until'::timestamptz + (step - 600) * interval '6 s' AS at,
	0.25 + 0.02 * trial + floor_loss + (2.3 - floor_loss) * exp(-speed * step / 600.0)
		* (1 + 0.1 * (pg_temp.noise(trial::text, step::text) - 0.5)) + 0.03 * pg_temp.noise(step::text, trial::text) AS loss,
	rate, overfit * greatest(step - 300, 0) / 600.0 AS overfitted
FROM (VALUES (1, 0.0001, 1.5, 0.05, 0), (2, 0.0003, 3, 0.02, 0.02), (3, 0.001, 5, 0, 0.1),
		(4, 0.003, 7, 0.04, 0.35), (5, 0.01, 9, 0.3, 0.2), (6, 0.03, 4, 0.75, 0)) AS t(trial, rate, speed, floor_loss, overfit),
	generate_series(1, 600) step;

SELECT metrics_register_trial(trial, experiment_id => 1, searcher_metric => 'validation_loss')
FROM generate_series(1, 6) trial;

SELECT metrics_report_batch(jsonb_agg(jsonb_build_object('trial_id', trial, 'metric_group', metric_group,
	'metrics', metrics, 'steps_completed', step, 'report_time', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ORDER BY step))
FROM steps,
	LATERAL (SELECT sin(step / 25.0 + trial) AS wave, pg_temp.noise(trial::text, step::text, 'load') AS load) w,
	LATERAL (VALUES
		('training', 2, jsonb_build_object('loss', loss, 'lr', rate * (1 - step / 700.0), 'epoch', step / 100)),
		('validation', 20, jsonb_build_object('validation_loss', 1.06 * loss + overfitted, 'accuracy', exp(-(loss + overfitted) / 2.5))),
		('gpu', 10, jsonb_build_object('agent-1', jsonb_build_object(
			'GPU-0', jsonb_build_object('gpu_util', 93 - 3 * trial + 4 * wave + 3 * load, 'gpu_free_memory', 4e9 - 1e8 * trial),
			'GPU-1', jsonb_build_object('gpu_util', 84 - 2 * trial + 5 * wave + 3 * load, 'gpu_free_memory', 5e9 - 1e8 * trial)))),
		('cpu', 10, jsonb_build_object('agent-1', jsonb_build_object('cpu_util_simple', 40 + 5 * trial - 8 * wave + 6 * load))),
		('memory', 10, jsonb_build_object('agent-1', jsonb_build_object('memory_free', 24 - 6 * step / 600.0 - load))),
		('network', 10, jsonb_build_object('agent-1', jsonb_build_object('net_throughput_recv', 9e6 + 2e6 * wave + 1e6 * load)))
	) AS g(metric_group, every, metrics)
WHERE step % every = 0
GROUP BY trial;
