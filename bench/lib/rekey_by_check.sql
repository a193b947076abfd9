-- The key from enum to text by dropping and adding the column, with a CHECK that
-- is validated by a scan so that ATTACH can do without one.
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
ALTER TABLE generic_metrics DROP COLUMN partition_type;
ALTER TABLE generic_metrics ADD COLUMN partition_type text DEFAULT 'GENERIC';
ALTER TABLE generic_metrics ALTER COLUMN partition_type SET NOT NULL;
ALTER TABLE raw_validations DROP COLUMN partition_type;
ALTER TABLE raw_validations ADD COLUMN partition_type text DEFAULT 'VALIDATION';
ALTER TABLE raw_validations ALTER COLUMN partition_type SET NOT NULL;
ALTER TABLE raw_steps DROP COLUMN partition_type;
ALTER TABLE raw_steps ADD COLUMN partition_type text DEFAULT 'TRAINING';
ALTER TABLE raw_steps ALTER COLUMN partition_type SET NOT NULL;
DROP TYPE metric_partition_type;
ALTER TABLE generic_metrics ADD CONSTRAINT partition_type_check CHECK (partition_type = 'GENERIC');
ALTER TABLE raw_validations ADD CONSTRAINT partition_type_check CHECK (partition_type = 'VALIDATION');
ALTER TABLE raw_steps ADD CONSTRAINT partition_type_check CHECK (partition_type = 'TRAINING');
ALTER TABLE metrics ATTACH PARTITION generic_metrics FOR VALUES IN ('GENERIC');
ALTER TABLE metrics ATTACH PARTITION raw_validations FOR VALUES IN ('VALIDATION');
ALTER TABLE metrics ATTACH PARTITION raw_steps FOR VALUES IN ('TRAINING');
