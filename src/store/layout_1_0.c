/*
 * layout_1_0.c
 *	  The first layout of the store, before the change of the key.
 *
 * metrics_trial_state holds what the summary of a trial does not say and the
 * next report needs to know; see report/trial.h.
 */
#include "postgres.h"

#include "store/layout.h"

const LayoutStep layout_steps_1_0[] = {
	{
		.action = "create the tables",
		.relation = "metrics",
		.estimate = 50000,
		.sql = (const char *const []) {
		"CREATE TYPE metric_partition_type AS ENUM ('VALIDATION', 'TRAINING', 'GENERIC')",
		"CREATE SEQUENCE metrics_id_seq AS bigint",

		"CREATE TABLE metrics_layout ("
		" version text NOT NULL CONSTRAINT metrics_layout_pkey PRIMARY KEY)",
		"COMMENT ON TABLE metrics_layout IS 'layout version of this metrics store'",
		"INSERT INTO metrics_layout VALUES ('1.0')",

		"CREATE TABLE trials ("
		" id integer NOT NULL CONSTRAINT trials_pkey PRIMARY KEY,"
		" experiment_id integer,"
		" run_id integer NOT NULL DEFAULT 0,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" summary_metrics jsonb NOT NULL DEFAULT '{}',"
		" summary_metrics_timestamp timestamp with time zone,"
		" latest_validation_id bigint,"
		" best_validation_id bigint,"
		" searcher_metric text,"
		" smaller_is_better boolean NOT NULL DEFAULT true,"
		" searcher_metric_value double precision,"
		" searcher_metric_value_signed double precision"
		") WITH (fillfactor = 70)",
		"CREATE INDEX trials_experiment_id_metric_value ON trials (experiment_id, searcher_metric_value_signed)",
		"CREATE INDEX trials_latest_validation_id ON trials (latest_validation_id)",
		"COMMENT ON TABLE trials IS 'trials that report metrics'",
		"COMMENT ON COLUMN trials.run_id IS 'current run of the trial; reports of other runs are refused'",
		"COMMENT ON COLUMN trials.total_batches IS 'greatest number of batches among the unarchived rows'",
		"COMMENT ON COLUMN trials.summary_metrics IS 'type, count, sum, min, max, mean and last value of each metric by group, over the unarchived rows'",
		"COMMENT ON COLUMN trials.searcher_metric IS 'validation metric by which the best validation is chosen'",
		"COMMENT ON COLUMN trials.searcher_metric_value IS 'searcher metric of the best validation'",
		"COMMENT ON COLUMN trials.searcher_metric_value_signed IS 'the same, negated unless smaller is better'",

		"CREATE TABLE metrics_trial_state ("
		" trial_id integer NOT NULL CONSTRAINT metrics_trial_state_pkey PRIMARY KEY"
		" CONSTRAINT metrics_trial_state_trial_id_fkey REFERENCES trials (id) ON DELETE CASCADE,"
		" run_id integer NOT NULL,"
		" rolled_back_to integer NOT NULL,"
		" latest_validation_time timestamp with time zone,"
		" last_rows jsonb NOT NULL"
		") WITH (fillfactor = 70)",
		"COMMENT ON TABLE metrics_trial_state IS 'what metrics_report() keeps to write the next summary without reading rows; computed again where it is missing'",
		"COMMENT ON COLUMN metrics_trial_state.rolled_back_to IS 'no unarchived row of a run before run_id has more batches'",
		"COMMENT ON COLUMN metrics_trial_state.last_rows IS 'end_time (microseconds since 2000) and id of the last row of each group'",

		"CREATE TABLE metrics_partition_kind ("
		" partition_key text NOT NULL CONSTRAINT metrics_partition_kind_pkey PRIMARY KEY,"
		" kind text NOT NULL,"
		" CONSTRAINT metrics_partition_kind_kind_check CHECK (kind IN ('batch', 'time')))",
		"COMMENT ON TABLE metrics_partition_kind IS 'how the rows of a partition key are identified: by batches, or by time'",
		"INSERT INTO metrics_partition_kind VALUES ('TRAINING', 'batch'), ('VALIDATION', 'batch'), ('GENERIC', 'batch')",

		"CREATE TABLE metrics_route ("
		" metric_group text NOT NULL CONSTRAINT metrics_route_pkey PRIMARY KEY,"
		" partition_key text NOT NULL"
		" CONSTRAINT metrics_route_partition_key_fkey REFERENCES metrics_partition_kind (partition_key))",
		"COMMENT ON TABLE metrics_route IS 'partition key of a metric group; a group without a route goes to GENERIC'",
		"INSERT INTO metrics_route VALUES ('training', 'TRAINING'), ('validation', 'VALIDATION')",

		"CREATE TABLE metrics ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" metric_group text,"
		" partition_type metric_partition_type NOT NULL DEFAULT 'GENERIC'"
		") PARTITION BY LIST (partition_type)",
		"COMMENT ON TABLE metrics IS 'reported metrics of all trials'",

		"CREATE TABLE raw_steps ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" metric_group text NOT NULL DEFAULT 'training',"
		" partition_type metric_partition_type NOT NULL DEFAULT 'TRAINING',"
		" CONSTRAINT custom_type_check CHECK (metric_group = 'training'),"
		" CONSTRAINT steps_trial_id_total_batches_run_id_unique UNIQUE (trial_id, total_batches, trial_run_id),"
		" CONSTRAINT steps_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX steps_archived ON raw_steps (archived)",

		"CREATE TABLE raw_validations ("
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" metric_group text NOT NULL DEFAULT 'validation',"
		" partition_type metric_partition_type NOT NULL DEFAULT 'VALIDATION',"
		" CONSTRAINT custom_type_check CHECK (metric_group = 'validation'),"
		" CONSTRAINT validations_pkey PRIMARY KEY (id),"
		" CONSTRAINT validations_trial_id_total_batches_run_id_unique UNIQUE (trial_id, total_batches, trial_run_id),"
		" CONSTRAINT raw_validations_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX ix_validations_trial_id ON raw_validations (trial_id)",
		"CREATE INDEX validations_archived ON raw_validations (archived)",
		"ALTER TABLE trials ADD CONSTRAINT trials_latest_validation_id_fkey"
		" FOREIGN KEY (latest_validation_id) REFERENCES raw_validations (id) ON DELETE SET NULL",

		"CREATE TABLE generic_metrics ("
		" trial_id integer NOT NULL,"
		" end_time timestamp with time zone,"
		" metrics jsonb,"
		" total_batches integer NOT NULL DEFAULT 0,"
		" trial_run_id integer NOT NULL DEFAULT 0,"
		" archived boolean NOT NULL DEFAULT false,"
		" id bigint NOT NULL DEFAULT nextval('metrics_id_seq'),"
		" metric_group text NOT NULL,"
		" partition_type metric_partition_type NOT NULL DEFAULT 'GENERIC',"
		" CONSTRAINT custom_type_check CHECK (metric_group <> ALL ('{validation,training,avg_metrics,validation_metrics}')),"
		" CONSTRAINT generic_metrics_trial_id_total_batches_run_id_custom_type_uniqu"
		" UNIQUE (trial_id, total_batches, trial_run_id, metric_group),"
		" CONSTRAINT generic_metrics_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials (id) ON DELETE CASCADE)",
		"CREATE INDEX generic_metrics_archived ON generic_metrics (archived)",

		"ALTER TABLE metrics ATTACH PARTITION generic_metrics FOR VALUES IN ('GENERIC')",
		"ALTER TABLE metrics ATTACH PARTITION raw_validations FOR VALUES IN ('VALIDATION')",
		"ALTER TABLE metrics ATTACH PARTITION raw_steps FOR VALUES IN ('TRAINING')",
		NULL},
	},
	{0}
};
