# Many workers at once: 200 workers on 8 connections report operator rows, some
# of them twice because their connection broke before the answer; none is lost,
# none doubled. Workers that begin stages at the same time, in different orders,
# do not deadlock.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('pipelines');
$node->init;
$node->append_conf('postgresql.conf', "deadlock_timeout = 100ms\ntimezone = UTC");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
SELECT metrics_start_run('run');
CREATE SEQUENCE turns;
CREATE TABLE told (worker integer, batch integer, rows bigint);

-- The 125 rows that a worker reports in its n-th batch, always the same.
CREATE FUNCTION batch(worker integer, n integer) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_agg(jsonb_build_object('run_id', 'run', 'stage_name', 'stage_' || i % 5, 'operator_name', 'op_' || i % 25,
        'worker_id', 'worker_' || worker, 'input_records', i, 'output_records', i - 1, 'total_time', 0.5, 'latencies', jsonb_build_array(0.001 * i),
        'at', '2026-01-24T00:' || to_char(n, 'FM00') || ':00.' || to_char(i, 'FM000000') || 'Z') ORDER BY i)
    FROM generate_series(1, 125) i
$$;
SQL

# Each turn is a worker's batch; 200 workers take 4 turns, 1 % of which break.
# The backend ends itself inside the transaction: the client has no answer, and
# the rows were not committed; or after the commit, and they were.
my $script = $node->basedir . '/report.sql';
append_to_file($script, q{
	SELECT nextval('turns') - 1 AS turn \gset
	\set worker :turn % 200
	\set n :turn / 200
	INSERT INTO told VALUES (:worker, :n, metrics_report_operators(batch(:worker, :n)));
});
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '100', '-f', $script, '-p', $node->port, '-h', $node->host, 'postgres' ],
	'100,000 rows of 200 workers on 8 connections');
is($node->safe_psql('postgres', 'SELECT count(*), sum(rows) FROM told'), '800|100000', 'as the workers were told');
for my $turn (map { 100 * $_ + 7 } 0 .. 7)
{
	my ($worker, $n) = ($turn % 200, int($turn / 200));
	# Without an answer, the worker sends what it may have sent before, and what it has not.
	$node->psql('postgres', "BEGIN; SELECT metrics_report_operators(batch($worker, $n + 4)); SELECT pg_terminate_backend(pg_backend_pid())");
	$node->psql('postgres', "SELECT metrics_report_operators(batch($worker, $n + 4)); SELECT pg_terminate_backend(pg_backend_pid())") if $turn % 200 == 7;
	is($node->safe_psql('postgres', "SELECT metrics_report_operators(batch($worker, $n)), metrics_report_operators(batch($worker, $n + 4))"),
		'0|' . ($turn % 200 == 7 ? 0 : 125), "worker $worker retries after its connection broke");
}
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT (run_id, stage_name, operator_name, worker_id, at)), count(DISTINCT worker_id), sum(input_records) FROM metrics.pipeline_operators'),
	'101000|101000|200|' . 808 * 125 * 126 / 2, 'none is lost, none doubled');
is($node->safe_psql('postgres', "SELECT count(*), sum(num_workers), sum(sum_input_records) FROM metrics_bi.stages WHERE run_id = 'run'"),
	'5|1000|' . 808 * 125 * 126 / 2, 'and the views say so');

# D20: two sessions report operators of one stage at once, which neither has started.
my ($one, $two) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$_->query_safe('BEGIN') for $one, $two;
$one->query_safe(q{SELECT metrics_report_operator('run', 'new', 'o', 'w1', 1, 1, 1, at => '2026-01-24 00:00:01+00')});
$two->query_until(qr/^sent$/m, q{\echo sent
SELECT metrics_report_operator('run', 'new', 'o', 'w2', 2, 2, 1, at => '2026-01-24 00:00:00+00');
});
$one->query_safe('COMMIT');
like($two->query('COMMIT'), qr/^t?$/m, 'D20: the second waits for the first');
$_->quit for $one, $two;
is($node->safe_psql('postgres', q{SELECT num_workers, input_records, timestamp = '2026-01-24 00:00:00+00' FROM metrics_bi.stages WHERE stage_name = 'new'}),
	'2|3|t', 'D20: and both rows are there, the stage begins with the earlier');

# Batches that begin the same stages in opposite orders.
$node->safe_psql('postgres', q{SELECT metrics_start_run('order_' || n) FROM generate_series(1, 400) n; ALTER SEQUENCE turns RESTART});
my $orders = $node->basedir . '/orders.sql';
append_to_file($orders, q{
	SELECT (nextval('turns') - 1) / 8 + 1 AS run \gset
	SELECT metrics_report_operators((SELECT jsonb_agg(jsonb_build_object('run_id', 'order_' || :run, 'stage_name', 's' || i, 'operator_name', 'o',
		'worker_id', 'w' || :client_id, 'input_records', 1, 'output_records', 1, 'total_time', 1) ORDER BY i * (CASE :client_id % 2 WHEN 0 THEN 1 ELSE -1 END)) FROM generate_series(1, 5) i));
});
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '400', '-f', $orders, '-p', $node->port, '-h', $node->host, 'postgres' ],
	'batches that begin the same stages in opposite orders');
unlike(slurp_file($node->logfile), qr/deadlock detected/, 'do not deadlock');
is($node->safe_psql('postgres', q{SELECT count(*), count(DISTINCT (run_id, stage_name)) FROM metrics.pipeline_operators WHERE run_id LIKE 'order%'}), '16000|2000', 'and none of their rows is lost');

$node->stop;
done_testing();
