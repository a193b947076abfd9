# What the tests of the background worker share: a store whose reports need
# partitions, a way to stop the worker in the middle, and looking at what it does.
package Worker;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use lib "$FindBin::RealBin/../upgrade/lib";
use PostgreSQL::Test::Utils;
use Store;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(
  create_routed_store report arrives left_alone
  hold release worker_of process_of gone logged
  set_and_reload starts visited
);

# A database with a store in which each group k… is a partition key of its own.
sub create_routed_store
{
	my ($node, $db) = @_;

	create_store($node, $db);
	$node->safe_psql($db, q{
		SELECT metrics_register_trial(1);
		SELECT metrics_route_group('k%')});
	gone($node, $db);
	return;
}

# Report a row for each of the keys, in a session and a transaction each.
sub report
{
	my ($node, $db, @keys) = @_;

	$node->safe_psql($db, qq{SELECT metrics_report(1, '$_', '{"a": 1}')}) for @keys;
	return;
}

# A test: keys have one row each in metrics, sooner or later, and none pending.
sub arrives
{
	my ($node, $db, $name, @keys) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $list = join ', ', map { "'$_'" } @keys;

	ok($node->poll_query_until($db, qq{
		SELECT (SELECT array_agg(partition_type ORDER BY partition_type) FROM metrics.metrics WHERE partition_type IN ($list))
			= (SELECT array_agg(k ORDER BY k) FROM unnest(ARRAY[$list]::text[]) k)
			AND NOT EXISTS (SELECT FROM metrics.metrics_pending WHERE partition_type IN ($list))}), $name);
	return;
}

# How many rows wait for the partition of a key.
sub left_alone
{
	my ($node, $db, $key) = @_;

	return $node->safe_psql($db, "SELECT count(*) FROM metrics.metrics_pending WHERE partition_type = '$key'");
}

# Stop the worker of a database at a table of the store: it has to wait for a
# lock of the session that this returns.  For servers with a long lock_timeout.
sub hold
{
	my ($node, $db, $table) = @_;
	my $session = open_session($node, $db);

	$table //= 'metrics_managed_table';
	$session->query("BEGIN; LOCK TABLE metrics.$table IN ACCESS EXCLUSIVE MODE");
	return $session;
}

sub release
{
	my ($session) = @_;

	$session->query('ROLLBACK');
	$session->quit;
	return;
}

# The worker that has to wait in a database.
sub worker_of
{
	my ($node, $db) = @_;
	my $worker = qq{FROM pg_stat_activity WHERE backend_type = 'metrics_ext worker' AND datname = '$db' AND wait_event_type = 'Lock'};

	$node->poll_query_until('postgres', "SELECT count(*) = 1 $worker") or die 'no worker waits';
	return $node->safe_psql('postgres', "SELECT pid $worker");
}

# The process of a type, when it is there; another one than the one given.
sub process_of
{
	my ($node, $type, $other) = @_;
	my $process = "FROM pg_stat_activity WHERE backend_type = '$type' AND pid <> " . ($other // 0);

	$node->poll_query_until('postgres', "SELECT count(*) = 1 $process") or die "no $type";
	return $node->safe_psql('postgres', "SELECT pid $process");
}

# Wait until no worker is in a database; true if it came to that.
sub gone
{
	my ($node, $db) = @_;

	return $node->poll_query_until('postgres', qq{
		SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'metrics_ext worker' AND datname = '$db'});
}

# The lines that were logged since the log was so long, and match.
sub logged
{
	my ($node, $pattern, $offset) = @_;

	return join "\n", grep { /$pattern/ } split /\n/, slurp_file($node->logfile, $offset);
}

sub set_and_reload
{
	my ($node, %settings) = @_;

	$node->safe_psql('postgres', "LOAD 'metrics_ext'; ALTER SYSTEM SET $_ = '$settings{$_}'") for sort keys %settings;
	$node->reload;
	return;
}

# How many workers were asked for in a database so far.  For servers that log
# what happens at level debug1.
sub starts
{
	my ($node, $db) = @_;
	my $oid = $node->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = '$db'");

	return scalar(() = slurp_file($node->logfile) =~ /DEBUG:  registering background worker "metrics_ext worker of database $oid"/g);
}

# Wait until the launcher has had workers look into a database so many times.
sub visited
{
	my ($node, $db, $times) = @_;
	my $wanted = starts($node, $db) + $times + 1;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if starts($node, $db) >= $wanted;
		usleep(100_000);
	}
	return 0;
}

1;
