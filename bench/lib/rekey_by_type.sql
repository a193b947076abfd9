-- The key from enum to text by changing the type of the column.
SET LOCAL search_path = metrics;
ALTER TABLE metrics DETACH PARTITION generic_metrics;
ALTER TABLE metrics DETACH PARTITION raw_validations;
ALTER TABLE metrics DETACH PARTITION raw_steps;
DROP TABLE metrics;
CREATE TABLE metrics (
	trial_id integer NOT NULL, end_time timestamptz, metrics jsonb, total_batches integer,
	trial_run_id integer NOT NULL DEFAULT 0, archived boolean NOT NULL DEFAULT false,
	id bigint NOT NULL DEFAULT nextval('metrics_id_seq'), metric_group text,
	partition_type text NOT NULL DEFAULT 'GENERIC') PARTITION BY LIST (partition_type);
ALTER TABLE generic_metrics ALTER COLUMN partition_type DROP DEFAULT, ALTER COLUMN partition_type TYPE text;
ALTER TABLE generic_metrics ALTER COLUMN partition_type SET DEFAULT 'GENERIC';
ALTER TABLE raw_validations ALTER COLUMN partition_type DROP DEFAULT, ALTER COLUMN partition_type TYPE text;
ALTER TABLE raw_validations ALTER COLUMN partition_type SET DEFAULT 'VALIDATION';
ALTER TABLE raw_steps ALTER COLUMN partition_type DROP DEFAULT, ALTER COLUMN partition_type TYPE text;
ALTER TABLE raw_steps ALTER COLUMN partition_type SET DEFAULT 'TRAINING';
DROP TYPE metric_partition_type;
ALTER TABLE metrics ATTACH PARTITION generic_metrics FOR VALUES IN ('GENERIC');
ALTER TABLE metrics ATTACH PARTITION raw_validations FOR VALUES IN ('VALIDATION');
ALTER TABLE metrics ATTACH PARTITION raw_steps FOR VALUES IN ('TRAINING');
