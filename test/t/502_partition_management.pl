# Managed tables as a database goes its way: the same key from many sessions, no
# scan under a lock, dump and restore, and a standby.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('management');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "metrics_ext.worker = off\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
CREATE ROLE owner;
CREATE SCHEMA "Odd ""schema""" AUTHORIZATION owner;
CREATE TABLE t (k text, n integer) PARTITION BY LIST (k);
CREATE TABLE rest PARTITION OF t DEFAULT;
CREATE TABLE "Odd ""schema"""."T" (k varchar(20) NOT NULL, n integer, PRIMARY KEY (k, n)) PARTITION BY LIST (k);
CREATE TABLE "Odd ""schema""".rest PARTITION OF "Odd ""schema"""."T" DEFAULT;
ALTER TABLE "Odd ""schema"""."T" OWNER TO owner;
ALTER TABLE "Odd ""schema""".rest OWNER TO owner;
CREATE TABLE passing (k text) PARTITION BY LIST (k);
CREATE TABLE collated (k text COLLATE "C") PARTITION BY LIST (k COLLATE "POSIX");
CREATE TABLE collated_rest PARTITION OF collated DEFAULT;
CREATE TABLE named (k name) PARTITION BY LIST (k);
CREATE TABLE named_rest PARTITION OF named DEFAULT;
SELECT metrics_manage_partitions(r) FROM unnest('{t,"\"Odd \"\"schema\"\"\".\"T\"",passing,collated,named}'::regclass[]) r;
SQL

# ATTACH believes what we know: the default is not scanned; the new partition is empty then.
for my $table ('t', '"Odd ""schema"""."T"', 'collated', 'named')
{
	for my $key (q{x'); --}, 'moves')
	{
		my $literal = "'" . ($key =~ s/'/''/gr) . "'";
		$node->safe_psql('postgres', "INSERT INTO $table VALUES ($literal)" =~ s/\)$/, 1)/r =~ s/(collated|named)(.*), 1\)/$1$2)/r) if $key eq 'moves';
		my ($rc, $out, $err) = $node->psql('postgres', "SET client_min_messages TO debug1; SELECT metrics_add_partition('" . ($table =~ s/'/''/gr) . "'::regclass, $literal)");
		is($rc, 0, "$table: $key: there is a partition");
		like($err, qr/updated partition constraint for default partition ".*" is implied by existing constraints/, "$table: $key: the default is not scanned");
	}
}
my ($rc, $out, $err) = $node->psql('postgres', q{SET client_min_messages TO debug1; SELECT metrics_add_partition('of the store')});
like($err, qr/partition constraint for table ".*" is implied by existing constraints/, 'a partition of the store is not scanned');

# The same keys from eight sessions at once.
my $script = PostgreSQL::Test::Utils::tempdir() . '/same_keys.sql';
append_to_file($script, <<'SQL');
SELECT count(metrics_add_partition('t'::regclass, 'key ' || k)) FROM generate_series(1, 5) k;
CALL metrics_drain('t', 'drained');
SELECT count(metrics_add_partition('key ' || k)) FROM generate_series(1, 5) k;
SQL
$node->safe_psql('postgres', q{INSERT INTO t SELECT 'key ' || n % 7, n FROM generate_series(1, 100) n; INSERT INTO t VALUES ('drained', 0)});
$node->append_conf('postgresql.conf', 'metrics_ext.lock_timeout = 30s');
$node->reload;
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-t', '3', '-f', $script, $node->connstr('postgres') ], 'eight sessions ask for the same keys');
is($node->safe_psql('postgres', q{SELECT parent, count(*), count(DISTINCT partition_key) FROM metrics_partitions WHERE partition_key ~ '^key [1-5]$' GROUP BY parent ORDER BY parent::text}),
	"metrics.metrics|5|5\nt|5|5", 'each has one partition');
is($node->safe_psql('postgres', q{SELECT count(*), count(DISTINCT n), count(*) FILTER (WHERE k ~ '[1-5]$') = count(*) FILTER (WHERE k = metrics_partition_key(tableoid) AND k ~ '[1-5]$') FROM t WHERE k ~ '^key'}),
	'100|100|t', 'with its rows, and no row is lost');

# A dump, also when a managed table has been dropped.
sub managed
{
	my ($db) = @_;

	return $node->safe_psql($db, q{
		SELECT parent, partition_key, partition, kind, created, created_by FROM metrics_partitions ORDER BY parent::text, partition_key;
		SELECT c.oid::regclass, partitions_created, rows_moved FROM metrics.metrics_managed_table JOIN pg_class c ON c.oid = parent ORDER BY parent::text});
}
$node->safe_psql('postgres', 'DROP TABLE passing');
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
for my $format (qw(plain custom))
{
	my $db = "restored_$format";
	$node->command_ok([ 'pg_dump', "-F$format", '-f', $dump, '-d', $node->connstr('postgres') ], "$format: it can be dumped");
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->command_ok($format eq 'plain' ? [ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr($db) ]
		: [ 'pg_restore', '-e', '-j', '2', '-d', $node->connstr($db), $dump ], "$format: and restored");
	is(managed($db), managed('postgres'), "$format: what is managed is the same");
	$node->safe_psql($db, q{INSERT INTO t VALUES ('after the restore', 1); CALL metrics_maintain(); SELECT metrics_add_partition('after the restore')});
	is($node->safe_psql($db, q{SELECT metrics_partition_key(tableoid) FROM t WHERE k = 'after the restore'}), 'after the restore', "$format: and goes on");
}

# What pg_upgrade refuses to take along.
is($node->safe_psql('postgres', q{
	SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
	WHERE relnamespace = 'metrics'::regnamespace AND atttypid IN ('regcollation'::regtype, 'regconfig'::regtype, 'regdictionary'::regtype, 'regnamespace'::regtype,
		'regoper'::regtype, 'regoperator'::regtype, 'regproc'::regtype, 'regprocedure'::regtype)}),
	'', 'no column is of a type that pg_upgrade refuses');

# A standby shows the same, and changes nothing.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', q{SELECT metrics_add_partition('t'::regclass, 'later')});
$node->wait_for_catchup($standby);
my $view = 'SELECT parent, partition_key, partition, kind, created, created_by FROM metrics_partitions ORDER BY parent::text, partition_key';
is($standby->safe_psql('postgres', $view), $node->safe_psql('postgres', $view), 'the view on a standby is the same');
like($standby->safe_psql('postgres', $view), qr/later/, 'with what came later');
for my $statement (q{SELECT metrics_add_partition('x')}, q{SELECT metrics_drop_partition('of the store')}, q{CALL metrics_maintain()}, q{CALL metrics_drain('t', 'x')}, q{SELECT metrics_unmanage_partitions('t')})
{
	($rc, $out, $err) = $standby->psql('postgres', $statement);
	like($err, qr/cannot execute metrics_\w+\(\) (during recovery|in a read-only transaction)/, "a standby refuses $statement");
}

done_testing();
