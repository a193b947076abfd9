# Copies of a store: one that is being restored is left alone until somebody
# reports to it, and a standby until it is promoted.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../upgrade/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;
use Worker;

my $node = start_server('primary', streaming => 1, conf => q{
	shared_preload_libraries = 'metrics_ext'
	log_min_messages = debug1
	metrics_ext.naptime = 1s});

# A store with rows that wait.
create_routed_store($node, 'one');
report($node, 'one', 'k1');
arrives($node, 'one', 'a store at work', 'k1');
set_and_reload($node, 'metrics_ext.worker' => 'off');
report($node, 'one', 'k1', 'k2', 'k2', 'k3');

#
# A restore while the launcher runs.
#
my $dump = $node->basedir . '/one.dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('one') ], 'a dump of a store with pending rows');
my $plain = dump_database($node, 'one');
set_and_reload($node, 'metrics_ext.worker' => 'on');

is(restore($node, $plain, 'plain'), '', 'it restores without a word');
$node->safe_psql('postgres', 'CREATE DATABASE halfway TEMPLATE template0');
$node->command_ok([ 'pg_restore', '--section=pre-data', '--section=data', '-d', $node->connstr('halfway'), $dump ], 'a restore as far as the data');
for my $db ('plain', 'halfway')
{
	ok(visited($node, $db, 2), "$db: the launcher comes to it");
	is($node->safe_psql($db, 'SELECT partition_type, count(*) FROM metrics.metrics_pending GROUP BY 1 ORDER BY 1'), "k2|2\nk3|1", "$db: but leaves the rows where they are");
}
$node->command_ok([ 'pg_restore', '--section=post-data', '-d', $node->connstr('halfway'), $dump ], 'the rest of the restore');
for my $db ('plain', 'halfway')
{
	$node->safe_psql($db, q{SELECT metrics_report(1, 'training', '{"a": 1}', 1)});
	ok($node->poll_query_until($db, 'SELECT count(*) = 0 FROM metrics.metrics_pending'), "$db: the first report, of whatever it is, gets it going");
	is($node->safe_psql($db, q{SELECT partition_type, count(*) FROM metrics.metrics WHERE partition_type LIKE 'k%' GROUP BY 1 ORDER BY 1}), "k1|2\nk2|2\nk3|1", "$db: every row is there");
	is($node->safe_psql($db, q{SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = indrelid
		WHERE c.relnamespace = 'metrics'::regnamespace AND NOT (indisvalid AND indisready AND indislive)}), 0, "$db: every index is valid");
	is($node->safe_psql($db, q{SELECT count(*) FROM pg_constraint WHERE connamespace = 'metrics'::regnamespace AND NOT convalidated}), 0, "$db: every constraint, too");
}

# Who is slow to begin must not be kept waiting by who is slow to commit.
is(restore($node, $plain, 'contended'), '', 'another restore');
my $first = open_session($node, 'contended');
my $second = open_session($node, 'contended');
$second->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM metrics.metrics');
$first->query(q{BEGIN; SELECT metrics_report(1, 'cpu', '{"a": 1}')});
is($second->query(q{SET lock_timeout = '10s'; SELECT metrics_report(1, 'cpu', '{"a": 1}') > 0}), 't', 'two first reports at once do not wait for each other');
$first->query('COMMIT');
is($second->query(q{SELECT metrics_report(1, 'cpu', '{"a": 1}') > 0}), 't', 'nor does the mark of one fail the other, whose snapshot is older');
$second->query('COMMIT');
$_->quit for $first, $second;
ok($node->poll_query_until('contended', 'SELECT count(*) = 0 FROM metrics.metrics_pending'), 'and the store is at work');
is($node->safe_psql('contended', q{
	BEGIN; SELECT metrics_report(1, 'cpu', '{}') > 0; ROLLBACK;
	SELECT active_in LIKE '%/' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || 'metrics.metrics'::regclass::oid FROM metrics.metrics_layout}), "t\nt", 'it says where it is at work');

# A report that is rolled back has not been.
is(restore($node, $plain, 'undone'), '', 'another restore');
$first = open_session($node, 'undone');
$first->query(q{BEGIN; SELECT metrics_report(1, 'cpu', '{"a": 1}'); ROLLBACK});
ok(visited($node, 'undone', 2), 'the launcher comes to it');
is(left_alone($node, 'undone', 'k2'), 2, 'after a report that was rolled back it is still alone');
$first->query(q{SELECT metrics_report(1, 'cpu', '{"a": 1}')});
arrives($node, 'undone', 'the next report of the same session gets it going', 'k3');
$first->quit;

#
# A standby.
#
set_and_reload($node, 'metrics_ext.worker' => 'on');
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
set_and_reload($node, 'metrics_ext.worker' => 'off');
report($node, 'one', 'k5');
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('one', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'metrics_ext%'}), 0, 'no worker on a standby');
is($standby->safe_psql('one', 'SELECT parent, pid, rows_moved > 0 FROM metrics_worker_status'), 'metrics.metrics||t', 'the status is readable there');
refuses($standby, 'one', q{SELECT metrics_report(1, 'k6', '{}')}, '25006', 'read-only transaction', 'reports are not taken');
$node->stop;
$standby->promote;
arrives($standby, 'one', 'promoted, it sees to what was left', 'k5');
report($standby, 'one', 'k6');
arrives($standby, 'one', 'and to reports', 'k6');
is(logged($standby, qr/(WARNING|ERROR|FATAL):  (?!cannot execute|could not (connect|receive|send))/), '', 'nothing has failed');
$standby->stop;

done_testing();
