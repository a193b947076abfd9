# The launcher looks into each database from time to time; whatever happens to
# it or to its workers, it goes on; and it is in nobody's way.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../upgrade/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;
use Worker;

my $node = start_server('launcher', conf => q{
	shared_preload_libraries = 'metrics_ext'
	log_min_messages = debug1
	restart_after_crash = on
	metrics_ext.naptime = 1h
	metrics_ext.lock_timeout = 1h});
my $launcher = process_of($node, 'metrics_ext launcher');
is($node->safe_psql('postgres', "SELECT datname IS NULL FROM pg_stat_activity WHERE pid = $launcher"), 't', 'the launcher is in no database');
create_routed_store($node, 'one');

# A row that nobody asks a worker for.
sub leave_pending
{
	my ($db, $key) = @_;

	$node->safe_psql($db, qq{INSERT INTO metrics.metrics_pending (trial_id, metric_group, partition_type) VALUES (1, '$key', '$key')});
	return;
}

#
# Time.
#
report($node, 'one', 'k1');
arrives($node, 'one', 'with a naptime of an hour, a report waits for nobody', 'k1');
ok(gone($node, 'one'), 'the worker leaves');
leave_pending('one', 'k2');
set_and_reload($node, 'metrics_ext.naptime' => '1s');
arrives($node, 'one', 'a reload changes the naptime of a launcher that sleeps; it finds what was left', 'k2');
ok(visited($node, 'one', 2), 'it comes again and again');

# Nothing is left behind by visits to databases that have nothing to do.
create_database($node, 'without_store');
$node->safe_psql('postgres', 'CREATE DATABASE without_extension');
ok(visited($node, 'without_extension', 1), 'it comes to databases that have not our extension');
my $offset = -s $node->logfile;
my $before = $node->safe_psql('one', 'SELECT pg_current_snapshot()');
ok(visited($node, $_, 2), "it comes to database $_") for qw(one without_store without_extension);
is($node->safe_psql('one', 'SELECT pg_current_snapshot()'), $before, 'visits take no transaction id');
is(logged($node, qr/(LOG|WARNING|ERROR|FATAL):  (?!statement)/, $offset), '', 'and are not in the log');
ok(gone($node, $_), "nobody stays in $_") for qw(one without_store without_extension);
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $launcher), 1, 'the launcher is the one of the beginning');

set_and_reload($node, 'metrics_ext.worker' => 'off');
report($node, 'one', 'k3');
gone($node, $_) for qw(one without_store without_extension);
is(left_alone($node, 'one', 'k3'), 1, 'nobody comes when the worker is off');
set_and_reload($node, 'metrics_ext.worker' => 'on');
arrives($node, 'one', 'on again, the launcher sees to what was left', 'k3');

#
# The launcher ends.
#
$node->safe_psql('postgres', "SELECT pg_terminate_backend($launcher)");
my $next = process_of($node, 'metrics_ext launcher', $launcher);
leave_pending('one', 'k4');
arrives($node, 'one', 'terminated, the launcher comes back', 'k4');
is(logged($node, qr/FATAL/, $offset), '', 'and makes no noise about it');

#
# The worker ends, at work.
#
my $holder = hold($node, 'one');
report($node, 'one', 'k5');
my $worker = worker_of($node, 'one');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
isnt(worker_of($node, 'one'), $worker, 'the next worker comes by itself') if process_of($node, 'metrics_ext worker', $worker);
release($holder);
arrives($node, 'one', 'terminated at work, the worker is followed by another', 'k5');

# "tuple concurrently updated" is what others said here.
$holder = hold($node, 'one');
report($node, 'one', 'k6');
$worker = worker_of($node, 'one');
$node->safe_psql('one', q{
	ALTER DATABASE one SET metrics_ext.drain_rows = 10;
	ALTER ROLE CURRENT_USER SET metrics_ext.drain_rows = 10;
	ALTER DATABASE one RESET ALL;
	ALTER ROLE CURRENT_USER RESET ALL;
	LOAD 'metrics_ext';
	ALTER SYSTEM SET metrics_ext.drain_rows = 10;
	ALTER SYSTEM SET log_parameter_max_length = 100});
$node->reload;
is(worker_of($node, 'one'), $worker, 'changes of settings do not end it');
release($holder);
arrives($node, 'one', 'and it goes on', 'k6');

# kill -9 ends all processes; nothing is lost.
for my $type ('worker', 'launcher')
{
	my $key = $type eq 'worker' ? 'k7' : 'k8';
	$holder = hold($node, 'one');
	report($node, 'one', $key);
	$worker = worker_of($node, 'one');
	kill 'KILL', $type eq 'worker' ? $worker : process_of($node, 'metrics_ext launcher');
	$holder->{run}->finish;
	$node->poll_query_until('postgres', 'SELECT true');
	arrives($node, 'one', "kill -9 of the $type at work: the server recovers, and so does the work", $key);
}
is($node->safe_psql('one', q{SELECT count(*), count(DISTINCT partition_type) FROM metrics.metrics}), '8|8', 'no row is doubled');

#
# Who wants a database for himself gets it.
#
$offset = -s $node->logfile;
for my $turn (1 .. 5)
{
	create_routed_store($node, "busy$turn");
	$node->safe_psql("busy$turn", q{SELECT count(metrics_report(1, 'k' || n, '{}')) FROM generate_series(1, 100) n});
	$node->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE busy$turn");
	$node->safe_psql('postgres', 'DROP DATABASE copy');
	ok($node->poll_query_until("busy$turn", 'SELECT count(*) = 0 FROM metrics.metrics_pending'), 'CREATE DATABASE with a busy one as template; that goes on afterwards');
	report($node, "busy$turn", 'k_last');
	$node->safe_psql('postgres', "DROP DATABASE busy$turn");
	pass('DROP DATABASE of a busy one');
}
create_routed_store($node, 'long');
$node->safe_psql('long', q{SELECT count(metrics_report(1, 'k' || n, '{}')) FROM generate_series(1, 900) n});
$node->safe_psql('postgres', 'DROP DATABASE long');
pass('DROP DATABASE of one with more to do than DROP DATABASE waits for');
ok(visited($node, 'one', 1), 'the launcher goes on');
is(logged($node, qr/(WARNING|ERROR|FATAL):/, $offset), '', 'and nobody missed the databases that went');

# What was copied is another store, which nobody has reported to.
$node->safe_psql('one', q{INSERT INTO metrics.metrics_failure VALUES ('metrics.metrics', 'k9', 1, now(), now() + interval '1 day', 'XX000', 'for the test')});
leave_pending('one', 'k9');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE one');
$node->safe_psql('copy', 'DELETE FROM metrics.metrics_failure');
ok(visited($node, 'copy', 2), 'the launcher comes to the copy of a store');
is(left_alone($node, 'copy', 'k9'), 1, 'but leaves it alone');
$node->safe_psql('copy', q{SELECT metrics_report(1, 'training', '{}', 1)});
arrives($node, 'copy', 'until somebody reports to it', 'k9');

is(logged($node, qr/FATAL:  (?!terminating|the database system)/), '', 'no process has failed but at our hands');
$node->stop;

#
# All slots taken, and freed.
#
my $full = start_server('full', conf => q{
	shared_preload_libraries = 'metrics_ext'
	log_min_messages = debug1
	max_logical_replication_workers = 0
	max_worker_processes = 2
	metrics_ext.naptime = 1h
	metrics_ext.lock_timeout = 1h});
create_routed_store($full, 'one');
create_routed_store($full, 'two');
$holder = hold($full, 'one');
report($full, 'one', 'k1');
worker_of($full, 'one');
$offset = -s $full->logfile;
report($full, 'two', 'k1');
set_and_reload($full, 'metrics_ext.naptime' => '1s');
$full->wait_for_log(qr/The launcher tries again/, $offset);
report($full, 'two', 'k2');
release($holder);
arrives($full, $_, "the launcher serves database $_ when there is a slot", 'k1') for qw(one two);
is(left_alone($full, 'two', 'k2'), 0, 'all of it');
is(() = logged($full, qr/The launcher tries again/, $offset) =~ /tries/g, 1, 'it has said once that there was none');
$full->stop;

done_testing();
