--
-- The verification queries of the source document (Determined PR #8884), to
-- the letter, on a fresh store. None of them has an ORDER BY, so their output
-- goes through sort and is compared as a set of lines.
--
SET client_min_messages TO warning;
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
SET search_path = metrics, metrics_bi, public;
SET datestyle TO ISO;
\pset format unaligned
\o |LC_ALL=C sort
-- B1: total_batches of the parent is nullable and has no default
SELECT
  column_name,
  data_type,
  is_nullable,
  column_default
FROM
  information_schema.columns
WHERE
  table_name = 'metrics' and column_name='total_batches';
\o
\o |LC_ALL=C sort
-- B2: total_batches of the three older partitions is not
SELECT
  column_name,
  data_type,
  is_nullable,
  column_default
FROM
  information_schema.columns
WHERE
  table_name IN ('raw_steps', 'raw_validations', 'generic_metrics') AND column_name = 'total_batches';
\o
\o |LC_ALL=C sort
-- B3: partition_type is text, with its defaults
select
  table_name,
  column_name,
  data_type,
  is_nullable,
  column_default
FROM
  information_schema.columns
WHERE
  table_name IN ('metrics', 'raw_steps', 'raw_validations', 'generic_metrics') AND column_name = 'partition_type';
\o
\o |LC_ALL=C sort
-- B4: the four partitions
SELECT
  child.relname AS child_partition
FROM pg_inherits
  JOIN pg_class parent ON pg_inherits.inhparent = parent.oid
  JOIN pg_class child ON pg_inherits.inhrelid   = child.oid
WHERE parent.relname='metrics';
\o
\o |LC_ALL=C sort
-- B5: the profiling partition
select
  table_name,
  column_name,
  data_type,
  is_nullable,
  column_default
FROM
  information_schema.columns
WHERE
  table_name = 'system_metrics' AND column_name IN ('total_batches', 'partition_type');
\o
-- B6: the profiling report of the document's client, seen from the server's
-- time zone, under the id the document shows
\pset format aligned
SET TimeZone = 'America/Los_Angeles';
SELECT metrics_register_trial(363, 1);
SELECT setval('metrics_id_seq', 8443);
SELECT metrics_report(363, 'cpu', '{"test_metric": 0.13}', trial_run_id => 1,
                      report_time => '2024-02-29T13:04:49.388948-05:00');
select * from metrics where partition_type='PROFILING';
SELECT total_batches IS NULL AS no_batches FROM metrics WHERE partition_type = 'PROFILING';
show timezone;
-- The time zone decides how the instant is shown, and nothing else.
SET TimeZone = 'UTC';
select * from metrics where partition_type='PROFILING';
RESET TimeZone;
-- B36: the query looks at the profiling partition alone
EXPLAIN (COSTS OFF) select * from metrics where partition_type='PROFILING';
DROP EXTENSION metrics_ext CASCADE;
DROP SCHEMA metrics CASCADE;
