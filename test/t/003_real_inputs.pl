# Real inputs: the logs of two training runs and the readings of five servers
# go in through metrics_report_batch(), read back equal, and their percentiles
# are those of the files.
use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $data = $ENV{METRICS_SHARED_DATA};
plan skip_all => 'METRICS_SHARED_DATA names no folder of real inputs' unless $data && -d "$data/training";
$data = File::Spec->rel2abs($data);

my $node = PostgreSQL::Test::Cluster->new('real_inputs');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'UTC'");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
CREATE TABLE log (trial integer, n bigint, metric_group text, step integer, record jsonb);
CREATE TABLE reading (trial integer, at timestamptz, value float8);
SQL

# Training logs: an evaluation record is a validation, the record that closes a
# run a group of its own. Numbers go from the file to the server as text.
my $trial = 0;
for my $file (sort glob "$data/training/*.json")
{
	$trial++;
	my $state = slurp_file($file);
	my ($name) = $file =~ m{([^/]+)$};
	$node->safe_psql('postgres', <<"SQL");
SELECT metrics_register_trial($trial, 0, 1, 'eval_loss');
INSERT INTO log
SELECT $trial, n,
       CASE WHEN record ? 'train_runtime' THEN 'summary' WHEN record ? 'loss' THEN 'training' ELSE 'validation' END,
       (record ->> 'step')::integer, record - 'step'
FROM jsonb_array_elements((\$state\$$state\$state\$::jsonb) -> 'log_history') WITH ORDINALITY e(record, n);
SQL
	my $records = $node->safe_psql('postgres', "SELECT count(*) FROM log WHERE trial = $trial");
	cmp_ok($records, '>', 200, "$name has $records records");
	is($node->safe_psql('postgres', "
			SELECT cardinality(metrics_report_batch(jsonb_agg(jsonb_build_object('trial_id', trial, 'metric_group', metric_group,
				'steps_completed', step, 'metrics', record) ORDER BY n))) FROM log WHERE trial = $trial"),
		$records, 'which one batch takes');
	# Records of the same step, six of an evaluation, are one row.
	is($node->safe_psql('postgres', "
			WITH merged AS (
				SELECT metric_group, step, jsonb_object_agg(key, value) AS metrics
				FROM log, jsonb_each(record) WHERE trial = $trial GROUP BY 1, 2
			), stored AS (
				SELECT group_name, total_batches, metrics -> (CASE group_name WHEN 'validation' THEN 'validation_metrics' ELSE 'avg_metrics' END) AS metrics
				FROM metrics_rows($trial)
			)
			(SELECT * FROM merged EXCEPT ALL SELECT * FROM stored) UNION ALL (SELECT * FROM stored EXCEPT ALL SELECT * FROM merged)"),
		'', 'and which read back equal');
	is($node->safe_psql('postgres', "
			SELECT g.key, e.key FROM metrics.trials t, jsonb_each(summary_metrics) g, jsonb_each(g.value) e,
			LATERAL (SELECT count(*) AS count, min(v) AS min, max(v) AS max, sum(v) AS sum FROM (
				SELECT DISTINCT ON (step) (record ->> e.key)::numeric AS v FROM log
				WHERE trial = t.id AND record ? e.key
				  AND metric_group = CASE g.key WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN 'validation' ELSE g.key END) d) w
			WHERE t.id = $trial AND ((e.value ->> 'count')::bigint, (e.value ->> 'min')::numeric, (e.value ->> 'max')::numeric, (e.value ->> 'sum')::numeric)
				IS DISTINCT FROM (w.count, w.min, w.max, w.sum)"),
		'', 'with the summary of the file');
	is($node->safe_psql('postgres', "SELECT summary_metrics = metrics_recompute_summary(id) FROM metrics.trials WHERE id = $trial"), 't',
		'which is also the recompute');
	is($node->safe_psql('postgres', "
			SELECT (SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY (value #>> '{}')::float8)
			        FROM metrics_timeseries($trial, 'training', 'loss', 100000))
			     = (SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY (record ->> 'loss')::float8)
			        FROM log WHERE trial = $trial AND metric_group = 'training')"),
		't', 'p50, p95 and p99 of the loss are those of the file');
	is($node->safe_psql('postgres', "
			SELECT count(*) FROM metrics_timeseries($trial, 'training', 'loss', 100000) t
			JOIN log ON trial = $trial AND metric_group = 'training' AND step = total_batches AND (record ->> 'epoch')::float8 = epoch"),
		$node->safe_psql('postgres', "SELECT count(*) FROM log WHERE trial = $trial AND metric_group = 'training'"),
		'each point with its epoch');
}
is($trial, 2, 'two training logs');

# Readings of servers: profiling, a thousand reports a batch, read in pages.
my %group = (
	ec2_cpu_utilization_5f5533 => 'cpu',
	rds_cpu_utilization_cc0c53 => 'cpu',
	ec2_disk_write_bytes_c0d644 => 'disk',
	ec2_network_in_257a54 => 'network',
	ec2_request_latency_system_failure => 'memory');
$node->safe_psql('postgres', <<'SQL');
-- All readings of a series, page by page.
CREATE FUNCTION pages(trial integer, metric_group text, name text, OUT end_time timestamptz, OUT value float8) RETURNS SETOF record
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    after_time timestamptz;
    after_id bigint;
    got boolean;
BEGIN
    LOOP
        got := false;
        FOR r IN SELECT * FROM metrics_profiling_rows(trial, metric_group, name, 'server', after_time => after_time, after_id => after_id, max_rows => 500) LOOP
            end_time := r.end_time;
            value := r.value;
            RETURN NEXT;
            after_time := r.end_time;
            after_id := r.id;
            got := true;
        END LOOP;
        EXIT WHEN NOT got;
    END LOOP;
END $$;
SQL
for my $file (sort glob "$data/system/*.csv")
{
	my ($name) = $file =~ m{([^/]+)\.csv$};
	my $group = $group{$name} or next;
	$trial++;
	my @lines = split /\n/, slurp_file($file);
	shift @lines;
	my $copy = join '', map { s/^([^,]+),/$trial,$1+00,/r . "\n" } @lines;
	$node->safe_psql('postgres', "SELECT metrics_register_trial($trial, 0, 2); COPY reading FROM STDIN (FORMAT csv);\n$copy\\.\n");
	is($node->safe_psql('postgres', <<"SQL"), scalar @lines, "$name: @{[scalar @lines]} readings go in");
SELECT sum(cardinality(metrics_report_batch(reports))) FROM (
    SELECT jsonb_agg(jsonb_build_object('trial_id', trial, 'metric_group', '$group', 'report_time', to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                     'metrics', jsonb_build_object('server', jsonb_build_object('$name', value))) ORDER BY n) AS reports
    FROM (SELECT *, row_number() OVER (ORDER BY at, value) AS n FROM reading WHERE trial = $trial) r GROUP BY n / 1000) b
SQL
	is($node->safe_psql('postgres', "
			CREATE TEMP TABLE stored AS SELECT end_time AS at, value FROM pages($trial, '$group', '$name');
			(SELECT at, value FROM reading WHERE trial = $trial EXCEPT ALL SELECT * FROM stored)
			UNION ALL (SELECT * FROM stored EXCEPT ALL SELECT at, value FROM reading WHERE trial = $trial)"),
		'', 'and read back equal');
	is($node->safe_psql('postgres', "
			SELECT (SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY value) FROM pages($trial, '$group', '$name'))
			     = (SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY value) FROM reading WHERE trial = $trial)"),
		't', 'p50, p95 and p99 are those of the file');
}
is($trial, 7, 'five servers');
is($node->safe_psql('postgres', "SELECT count(*) FROM metrics.metrics WHERE partition_type = 'PROFILING'"),
	$node->safe_psql('postgres', 'SELECT count(*) FROM reading'), 'a row a reading');
is($node->safe_psql('postgres', 'SELECT count(*) FROM metrics_names(2)'), '5', 'five names of readings');

$node->stop;
done_testing();
