# metrics_partition_by_time() on a million rows: the same rows, under the same
# name; killed in the middle it leaves the plain table whole, and called again it
# finishes. Writers that wait go on. An owner who is no superuser may do it.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('ranges');
$node->init;
$node->append_conf('postgresql.conf', "timezone = UTC\nautovacuum = off\nrestart_after_crash = on\nmax_wal_size = 4GB\nfsync = off");
$node->start;
if ($node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_partman'}) eq '0')
{
	ok(0, 'pg_partman is there') if $ENV{CI};
	plan skip_all => 'no pg_partman';
}
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE keeper;
CREATE ROLE writer;
GRANT CREATE ON DATABASE postgres TO keeper;
CREATE EXTENSION metrics_ext;
CREATE SCHEMA partman AUTHORIZATION keeper;
CREATE EXTENSION pg_partman SCHEMA partman;
GRANT ALL ON ALL TABLES IN SCHEMA partman TO keeper;
SET ROLE keeper;
SELECT metrics_create_store();
SELECT metrics_grant('writer', 'writer');
SELECT metrics_register_trial(1);
SELECT metrics_start_run('run_' || n, at => now() - interval '50 days') FROM generate_series(1, 10) n;
SELECT metrics_start_stage('run_' || n, 's') FROM generate_series(1, 10) n;
INSERT INTO metrics.metrics (trial_id, end_time, metrics, metric_group, partition_type)
SELECT 1, now() - n * interval '4 s', '{"u": 1}'::jsonb, 'cpu', 'PROFILING' FROM generate_series(1, 1000000) n;
INSERT INTO metrics.pipeline_operators (run_id, stage_name, operator_name, worker_id, at, input_records, output_records, total_time, latency_sketch)
SELECT 'run_' || n % 10 + 1, 's', 'o' || n % 7, 'w' || n % 40, now() - n * interval '4 s', n, n, 1, sketch
FROM generate_series(1, 1000000) n, (SELECT metrics_sketch(0.5::float8)::bytea AS sketch) s;
SQL

# Number and sum of hashes of the rows, kind, grants, and place in the tree.
sub described
{
	my ($table) = @_;
	return $node->safe_psql('postgres', qq{
		SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM metrics.$table t;
		SELECT relacl, relowner::regrole, (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = c.oid), pg_get_expr(relpartbound, c.oid)
		FROM pg_class c WHERE oid = 'metrics.$table'::regclass});
}
sub kind_of { return $node->safe_psql('postgres', "SELECT relkind FROM pg_class WHERE oid = 'metrics.$_[0]'::regclass"); }

my %report = (
	system_metrics => q{SELECT metrics_report(1, 'cpu', '{"u": 1}') > 0},
	pipeline_operators => q{SELECT metrics_report_operator('run_1', 's', 'o', 'w', 1, 1, 1)});
for my $table ('system_metrics', 'pipeline_operators')
{
	my $before = described($table);
	my $change = "SET ROLE keeper; SELECT metrics_partition_by_time('metrics.$table', '1 day', '90 days')";

	# Killed while rows move.
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $session->query('SELECT pg_backend_pid()');
	$session->query_until(qr/^sent$/m, "\\echo sent\n$change;\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE pid = $backend AND mode = 'AccessExclusiveLock' AND relation = 'metrics.$table'::regclass AND granted"),
		"$table: rows are moving");
	is(kill('KILL', $backend), 1, "$table: when the backend is killed");
	eval { $session->quit };
	ok($node->poll_query_until('postgres', 'SELECT true'), "$table: the server recovers");
	is(kind_of($table), 'r', "$table: the table is a plain one");
	is(described($table), $before, "$table: with every row");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname LIKE 'metrics\\_plain%' OR relname LIKE '$table\\_p2%'"), '0', "$table: and nothing else is there");

	# Again; a writer that comes meanwhile waits, and goes on.
	$session = $node->background_psql('postgres', on_error_stop => 0);
	$backend = $session->query('SELECT pg_backend_pid()');
	$session->query_until(qr/^sent$/m, "\\echo sent\n$change;\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE pid = $backend AND mode = 'AccessExclusiveLock' AND relation = 'metrics.$table'::regclass AND granted");
	is($node->safe_psql('postgres', "SET ROLE writer; $report{$table}"), 't', "$table: a writer waits and goes on");
	like($session->query('SELECT 1'), qr/1/, "$table: it finishes");
	$session->quit;
	is(kind_of($table), 'p', "$table: and is partitioned");
	is($node->safe_psql('postgres', "SELECT count(*) FROM metrics.$table"), '1000001', "$table: with the row that came");
	$node->safe_psql('postgres', $table eq 'system_metrics' ? 'DELETE FROM metrics.system_metrics WHERE id = (SELECT max(id) FROM metrics.system_metrics)'
		: "DELETE FROM metrics.pipeline_operators WHERE operator_name = 'o'");
	is(described($table), $before, "$table: name, place, grants and rows are the same");
	is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT relowner::regrole::text, ' ') FROM pg_class c JOIN pg_inherits ON inhrelid = c.oid WHERE inhparent = 'metrics.$table'::regclass"),
		'keeper', "$table: ranges are the owner's");
	is($node->safe_psql('postgres', "SELECT count(*) FROM metrics.$table\_default WHERE " . ($table eq 'system_metrics' ? 'end_time' : 'at') . ' IS NOT NULL'), '0', "$table: each row is in a range");
	is($node->safe_psql('postgres', $change), '', "$table: once more is nothing");
}

# A dump with ranges restores like any other.
my $file = $node->basedir . '/ranges.sql';
$node->command_ok([ 'pg_dump', '-f', $file, '-d', $node->connstr('postgres') ], 'a dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored TEMPLATE template0');
my $errors;
IPC::Run::run([ 'psql', '-X', '-q', '-f', $file, '-d', $node->connstr('restored') ], '>' => \my $output, '2>' => \$errors);
is($errors, '', 'restores without a word');
is($node->safe_psql('restored', q{SELECT count(*) FROM metrics.system_metrics; SELECT count(*), sum(latency_count) FROM metrics_bi.operators; SELECT count(*) FROM partman.part_config}),
	"1000000\n1000000|1000000\n2", 'with every row');

$node->stop;
done_testing();
