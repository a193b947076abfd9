# A commit that leaves something to do starts a worker, and one is enough: no
# preloading, no launcher.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../upgrade/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;
use Worker;

my $node = start_server('requests', conf => q{
	log_min_messages = debug1
	max_prepared_transactions = 2
	metrics_ext.lock_timeout = 1h});
create_routed_store($node, 'one');

#
# One key, one worker.
#
my $starts = starts($node, 'one');
my $offset = -s $node->logfile;
report($node, 'one', 'k1');
arrives($node, 'one', 'a row arrives in a partition of its own', 'k1');
is($node->safe_psql('one', q{SELECT m.tableoid = p.partition, p.created_by FROM metrics_partitions p, metrics.metrics m
	WHERE p.partition_key = 'k1' AND m.partition_type = 'k1'}), 't|metrics_ext', 'which the worker has made');
ok(gone($node, 'one'), 'then the worker leaves by itself');
is(starts($node, 'one') - $starts, 1, 'it was one');
like(logged($node, qr/metrics_ext:/, $offset), qr/LOG:  metrics_ext: created partition metrics\.metrics_k1_\w+ for key "k1"\n.*LOG:  metrics_ext: moved 1 pending rows of key "k1" to metrics\.metrics_k1_/, 'it says what it did');

$starts = starts($node, 'one');
$offset = -s $node->logfile;
$node->safe_psql('one', q{
	BEGIN; SELECT metrics_report(1, 'k2', '{"a": 1}'); ROLLBACK;
	SELECT metrics_report(1, 'training', '{"a": 1}', 1);
	SELECT metrics_report(1, 'k1', '{"a": 1}');
	DELETE FROM metrics.metrics WHERE partition_type = 'k1'; });
report($node, 'one', 'k1');
report($node, 'one', 'k3');
arrives($node, 'one', 'the next key', 'k1', 'k3');
ok(gone($node, 'one'), 'and the worker leaves');
is(starts($node, 'one') - $starts, 1, 'nobody is started for what was rolled back, or has its partition');
is(logged($node, qr/metrics_ext: (?!(created|moved).*"k3")/, $offset), '', 'nor is anything logged of it');

#
# Prepared transactions, and subtransactions.
#
my $session = open_session($node, 'one');
$session->query(q{BEGIN; SELECT metrics_report(1, 'k4', '{"a": 1}'); PREPARE TRANSACTION 'k4'});
$session->query(q{COMMIT PREPARED 'k4'});
arrives($node, 'one', 'a report that was prepared and committed by the same session', 'k4');
$session->query(q{BEGIN; SAVEPOINT s; SELECT metrics_report(1, 'k5', '{"a": 1}'); ROLLBACK TO s; SELECT metrics_report(1, 'k6', '{"a": 1}'); COMMIT});
arrives($node, 'one', 'a report after a subtransaction that was rolled back', 'k6');
is($session->query(q{SELECT count(*) FROM metrics_partitions WHERE partition_key IN ('k2', 'k5')}), 0, 'no partition for what was rolled back');
$session->quit;

#
# Many keys at once.
#
$node->pgbench('--no-vacuum --client=8 --jobs=2 --transactions=50 -D n=0', 0,
	[qr{processed: 400/400}], [qr{^}], 'eight sessions report fifty new keys each, the same ones',
	{
		'401_keys' => q{
			\set n :n + 1
			SELECT metrics_report(1, 'k_' || :n, jsonb_build_object('client', :client_id::int))
		}
	}, '-d', 'one');
ok($node->poll_query_until('one', q{SELECT count(*) = 0 FROM metrics.metrics_pending}), 'no row is left pending');
is($node->safe_psql('one', q{
	SELECT count(*), count(DISTINCT partition_type), count(DISTINCT (partition_type, metrics)), count(DISTINCT id), count(DISTINCT tableoid)
	FROM metrics.metrics WHERE partition_type LIKE 'k\_%'}), '400|50|400|400|50', 'none is lost or doubled, in one partition a key');

#
# Who works is to be seen, one at a time.
#
my $holder = hold($node, 'one');
report($node, 'one', 'k7');
my $pid = worker_of($node, 'one');
report($node, 'one', 'k8', 'k9');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'metrics_ext worker'}), 1, 'one worker at a time');
release($holder);
arrives($node, 'one', 'which sees to all of it', 'k7', 'k8', 'k9');

$node->safe_psql('one', q{CREATE ROLE reader; SELECT metrics_grant('reader', 'reader'); CREATE ROLE stranger});
ok(gone($node, 'one'), 'it leaves');
my $status = q{SELECT parent, pid, activity, partitions_created, rows_moved BETWEEN 57 AND 407, last_change BETWEEN now() - interval '1 hour' AND now(), pending_rows, failures
	FROM metrics_worker_status};
is($node->safe_psql('one', $status), 'metrics.metrics|||57|t|t|0|0', 'the status shows what was done so far');
$holder = hold($node, 'one', 'metrics_partition');
report($node, 'one', 'k10');
$pid = worker_of($node, 'one');
is($node->safe_psql('one', $status), qq{metrics.metrics|$pid|metrics_ext: key "k10" of metrics.metrics|57|t|t|1|0}, 'who is at work, and at what');
is($node->safe_psql('one', "SET ROLE reader; $status"), "metrics.metrics|$pid||57|t|t|1|0", 'readers see that, but for what PostgreSQL hides');
release($holder);
arrives($node, 'one', 'the work goes on', 'k10');
refuses($node, 'one', 'SET ROLE stranger; SELECT * FROM metrics_worker_status', '42501', 'permission denied', 'strangers see nothing');
create_database($node, 'empty');
is($node->safe_psql('empty', 'SELECT count(*) FROM metrics_worker_status'), 0, 'no rows without a store');

#
# Two databases at once.
#
create_routed_store($node, 'two');
$holder = hold($node, 'one');
report($node, 'one', 'k11');
worker_of($node, 'one');
report($node, 'two', 'k11');
arrives($node, 'two', 'a database is not kept waiting by another', 'k11');
release($holder);
arrives($node, 'one', 'and that goes on, too', 'k11');

#
# Settings that would be in the way.
#
my %hostile = (
	statement_timeout => '1ms', lock_timeout => '1ms', idle_in_transaction_session_timeout => '1ms',
	idle_session_timeout => '1ms', default_transaction_read_only => 'on',
	default_transaction_isolation => 'serializable', default_transaction_deferrable => 'on',
	row_security => 'off', search_path => 'evil', session_replication_role => 'replica');
{
	local $ENV{PGOPTIONS} = '-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0'
	  . ' -c idle_session_timeout=0 -c default_transaction_read_only=off -c search_path=public';
	for my $where ('SYSTEM', 'DATABASE two', 'ROLE CURRENT_USER', 'ROLE CURRENT_USER IN DATABASE two')
	{
		$node->safe_psql('two', "ALTER $where SET $_ = '$hostile{$_}'") for sort keys %hostile;
		$node->reload;
		my ($key) = map { "k$_" } lc($where) =~ s/\W+/_/gr;
		$offset = -s $node->logfile;
		$holder = hold($node, 'two');
		report($node, 'two', $key);
		worker_of($node, 'two');
		$node->reload;
		release($holder);
		arrives($node, 'two', "timeouts and defaults of $where do not reach the worker", $key);
		is(logged($node, qr/canceling|terminating|WARNING|ERROR/, $offset), '', 'which has no errors');
		$node->safe_psql('two', "ALTER $where RESET ALL");
	}
	$node->reload;
}

#
# Off, and on again.
#
gone($node, 'one');
set_and_reload($node, 'metrics_ext.worker' => 'off');
$starts = starts($node, 'one');
report($node, 'one', 'k12');
is(left_alone($node, 'one', 'k12'), 1, 'nobody comes when the worker is off');
$node->safe_psql('one', 'CALL metrics_maintain()');
arrives($node, 'one', 'but it can be done by hand', 'k12');
report($node, 'one', 'k13');
set_and_reload($node, 'metrics_ext.worker' => 'on');
is(starts($node, 'one') - $starts, 0, 'nobody came');
report($node, 'one', 'k14');
arrives($node, 'one', 'on again, it sees to the rest', 'k13', 'k14');
$holder = hold($node, 'one');
report($node, 'one', 'k15');
worker_of($node, 'one');
set_and_reload($node, 'metrics_ext.worker' => 'off');
report($node, 'one', 'k16');
release($holder);
ok(gone($node, 'one'), 'a worker that works leaves when it is turned off');
set_and_reload($node, 'metrics_ext.worker' => 'on');
report($node, 'one', 'k17');
arrives($node, 'one', 'what it left is done later', 'k15', 'k16', 'k17');

is(logged($node, qr/\b(PANIC|FATAL|TRAP)\b/), '', 'no process has failed');
$node->stop;

#
# All slots taken, and freed.
#
my $full = start_server('full', conf => q{
	log_min_messages = debug1
	max_logical_replication_workers = 0
	max_worker_processes = 1
	metrics_ext.lock_timeout = 1h});
create_routed_store($full, 'one');
create_routed_store($full, 'two');
$holder = hold($full, 'one');
report($full, 'one', 'k1');
worker_of($full, 'one');
$offset = -s $full->logfile;
$session = open_session($full, 'two');
$session->query(qq{SELECT metrics_report(1, 'k$_', '{"a": 1}')}) for 1 .. 3;
is($session->query('SELECT count(*) FROM metrics.metrics_pending'), 3, 'reports are taken when all slots for workers are');
is(() = logged($full, qr/LOG:  could not start a background worker of metrics_ext: all slots are taken/, $offset) =~ /LOG/g, 1, 'the log says so once');
like(logged($full, qr/HINT/, $offset), qr/Increase max_worker_processes/, 'and what to do');
release($holder);
ok(gone($full, 'one'), 'the slot is freed');
$session->query('SELECT 1');
arrives($full, 'two', 'and the next commit of the session, whatever it is about, takes it', 'k1', 'k2', 'k3');
$session->quit;
$full->stop;

done_testing();
