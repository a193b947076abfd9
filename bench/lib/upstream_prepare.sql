-- What Determined's master sends for one training report at a new step: check
-- the run, archive what a rollback would, lock the summary, look for a row to
-- merge with, insert, and save the new summary.  The work between the
-- statements is left out: the summary that it computes is the same text each
-- time.
PREPARE check_run AS SELECT run_id FROM trials WHERE id = $1;
PREPARE archive AS UPDATE metrics SET archived = true WHERE trial_id = $1 AND archived = false AND trial_run_id < $2 AND ((partition_type <> $3 AND total_batches > $4) OR (partition_type = $3 AND total_batches >= $4));
PREPARE lock_summary AS SELECT summary_metrics FROM runs WHERE id = $1 FOR UPDATE;
PREPARE find AS SELECT coalesce((SELECT metrics FROM metrics WHERE total_batches = $1 AND trial_id = $2 AND partition_type = $3 AND metric_group = $4 AND archived = false), NULL) FOR UPDATE;
PREPARE add AS INSERT INTO metrics (trial_id, trial_run_id, end_time, metrics, total_batches, partition_type, metric_group) VALUES ($1, $2, now(), $3, $4, $5, $6) RETURNING id;
PREPARE summarise AS UPDATE runs SET total_batches = greatest(total_batches, $2), summary_metrics = $3, summary_metrics_timestamp = now(), latest_validation_id = coalesce($4, latest_validation_id) WHERE id = $1;
