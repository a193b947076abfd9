-- The tables of Determined's master that a training report touches, written
-- from their description, with what makes its statements cheaper or dearer:
-- keys, indexes, checks, foreign keys, the view trials over three tables, the
-- trigger on runs.  As there, system_metrics has no index.  It is empty here,
-- which favours upstream: the statement that archives scans it.
CREATE TABLE experiments (
	id integer PRIMARY KEY, config jsonb NOT NULL, best_trial_id integer);
CREATE TABLE runs (
	id integer PRIMARY KEY,
	experiment_id integer NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
	restart_id integer NOT NULL DEFAULT 0,
	total_batches integer NOT NULL DEFAULT 0,
	summary_metrics jsonb NOT NULL DEFAULT '{}',
	summary_metrics_timestamp timestamptz,
	latest_validation_id integer,
	best_validation_id integer,
	searcher_metric_value double precision,
	searcher_metric_value_signed double precision);
CREATE INDEX ix_trials_metric_value ON runs (searcher_metric_value_signed);
CREATE TABLE trials_v2 (
	run_id integer PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
	request_id text, seed integer NOT NULL DEFAULT 0);
CREATE TABLE runs_metadata (
	run_id integer PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, metadata jsonb);
CREATE VIEW trials AS
	SELECT r.id, r.experiment_id, r.restart_id AS run_id, r.total_batches, r.summary_metrics, r.latest_validation_id,
		r.best_validation_id, r.searcher_metric_value, t.request_id, t.seed, m.metadata
	FROM trials_v2 t JOIN runs r ON r.id = t.run_id LEFT JOIN runs_metadata m ON m.run_id = r.id;

CREATE SEQUENCE metrics_id_seq;
CREATE TABLE metrics (
	trial_id integer NOT NULL, end_time timestamptz, metrics jsonb, total_batches integer,
	trial_run_id integer NOT NULL DEFAULT 0, archived boolean NOT NULL DEFAULT false,
	id integer NOT NULL DEFAULT nextval('metrics_id_seq'), metric_group text,
	partition_type text NOT NULL DEFAULT 'GENERIC') PARTITION BY LIST (partition_type);
CREATE TABLE raw_steps PARTITION OF metrics (
	total_batches NOT NULL DEFAULT 0, metric_group NOT NULL DEFAULT 'training', partition_type DEFAULT 'TRAINING',
	CHECK (metric_group = 'training'), UNIQUE (trial_id, total_batches, trial_run_id),
	FOREIGN KEY (trial_id) REFERENCES runs (id) ON DELETE CASCADE) FOR VALUES IN ('TRAINING');
CREATE INDEX steps_archived ON raw_steps (archived);
CREATE TABLE raw_validations PARTITION OF metrics (
	total_batches NOT NULL DEFAULT 0, metric_group NOT NULL DEFAULT 'validation', partition_type DEFAULT 'VALIDATION',
	CHECK (metric_group = 'validation'), PRIMARY KEY (id), UNIQUE (trial_id, total_batches, trial_run_id),
	FOREIGN KEY (trial_id) REFERENCES runs (id) ON DELETE CASCADE) FOR VALUES IN ('VALIDATION');
CREATE INDEX ix_validations_trial_id ON raw_validations (trial_id);
CREATE INDEX validations_archived ON raw_validations (archived);
CREATE TABLE generic_metrics PARTITION OF metrics (
	total_batches NOT NULL DEFAULT 0, metric_group NOT NULL,
	CHECK (metric_group <> ALL ('{validation,training,avg_metrics,validation_metrics}')),
	UNIQUE (trial_id, total_batches, trial_run_id, metric_group),
	FOREIGN KEY (trial_id) REFERENCES runs (id) ON DELETE CASCADE) FOR VALUES IN ('GENERIC');
CREATE INDEX generic_metrics_archived ON generic_metrics (archived);
CREATE TABLE system_metrics PARTITION OF metrics (
	partition_type DEFAULT 'PROFILING',
	FOREIGN KEY (trial_id) REFERENCES runs (id) ON DELETE CASCADE) FOR VALUES IN ('PROFILING');
ALTER TABLE runs ADD FOREIGN KEY (latest_validation_id) REFERENCES raw_validations (id) ON DELETE SET NULL;

CREATE FUNCTION autoupdate_exp_best_trial_metrics() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE experiments SET best_trial_id = (
		SELECT id FROM runs WHERE experiment_id = NEW.experiment_id ORDER BY searcher_metric_value_signed LIMIT 1)
	WHERE id = NEW.experiment_id;
	RETURN NEW;
END $$;
CREATE TRIGGER autoupdate_exp_best_trial_metrics AFTER UPDATE OF best_validation_id ON runs
	FOR EACH ROW EXECUTE FUNCTION autoupdate_exp_best_trial_metrics();

INSERT INTO experiments (id, config) VALUES (1, '{"searcher": {"metric": "loss"}}');
INSERT INTO runs (id, experiment_id) SELECT t, 1 FROM generate_series(1, 101) t;
INSERT INTO trials_v2 (run_id) SELECT id FROM runs;
VACUUM ANALYZE;
