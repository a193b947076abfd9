# A table whose keys are partitions by hand of metrics_ext, one of them by time
# of pg_partman: each keeps to its own level.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('partition_partman');
$node->init;
$node->append_conf('postgresql.conf', "metrics_ext.worker = off\ntimezone = 'UTC'");
$node->start;
if ($node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_partman'") == 0)
{
	$node->stop;
	plan skip_all => 'pg_partman is not installed' unless $ENV{CI};
	die 'pg_partman is not installed';
}

sub is_sql
{
	my ($sql, $want, $description) = @_;
	is($node->safe_psql('postgres', $sql), $want, $description);
}

# Key "timed" has a partition a day, from 4 days ago to 2 days ahead, those older
# than 3 days to be dropped; its template has the parent's primary key.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
SELECT metrics_create_store();
CREATE TABLE facts (id integer, key text, at timestamptz NOT NULL, PRIMARY KEY (key, id, at)) PARTITION BY LIST (key);
CREATE TABLE facts_default PARTITION OF facts DEFAULT;
CREATE TABLE facts_timed PARTITION OF facts FOR VALUES IN ('timed') PARTITION BY RANGE (at);
SELECT partman.create_parent('public.facts_timed', 'at', 'native', 'daily', p_premake => 2,
    p_start_partition => (current_date - 4)::text);
UPDATE partman.part_config SET retention = '3 days', retention_keep_table = false WHERE parent_table = 'public.facts_timed';
INSERT INTO facts SELECT i, 'timed', current_date - 4 + i * interval '1 hour' FROM generate_series(0, 143) i;
INSERT INTO facts SELECT i, 'k' || i % 3, now() FROM generate_series(1, 30) i;
SELECT metrics_manage_partitions('facts');
SQL
my $days = "SELECT count(*) FROM pg_partition_tree('facts_timed') WHERE isleaf";
my $leaves = $node->safe_psql('postgres', $days);
my $timed = "SELECT count(*), min(at) >= current_date - 3 FROM facts WHERE key = 'timed'";

# A round of each, in turn and at once.
$node->safe_psql('postgres', "CALL metrics_drain('facts', 'k0')");
is_sql($timed, '144|f', 'a key is added beside days');
$node->safe_psql('postgres', "SELECT partman.run_maintenance('public.facts_timed')");
is_sql($timed, '120|t', 'retention drops a day');
is_sql("SELECT count(*) FROM facts WHERE key <> 'timed'", 30, 'and nothing else');
$node->safe_psql('postgres', "UPDATE partman.part_config SET premake = 5; SELECT partman.run_maintenance('public.facts_timed'); CALL metrics_maintain()");
is_sql("SELECT ($days) > $leaves", 't', 'days are added, keys too');
is_sql('SELECT count(*) FROM facts_default', 0, 'the default partition is drained');
is_sql("SELECT string_agg(partition_key, ' ' ORDER BY partition_key) FROM metrics_partitions WHERE parent = 'facts'::regclass", 'k0 k1 k2 timed', 'the partition of days is the one of its key');
is_sql("SELECT sum(rows_estimate) IS NOT NULL, bool_and(size > 0) FROM metrics_partitions WHERE parent = 'facts'::regclass", 't|t', 'and is listed with what is below it');

# Both at work at once, and users, too.
$node->safe_psql('postgres', "UPDATE partman.part_config SET retention = '2 days'");
my $user = PostgreSQL::Test::Utils::tempdir() . '/user.sql';
append_to_file($user, <<'SQL');
\set id random(1000, 1000000000)
INSERT INTO facts VALUES (:id, 'timed', now()), (:id, 'new' || :client_id, now()) ON CONFLICT DO NOTHING;
SELECT 1 / (count(*) > 0)::integer FROM facts WHERE key = 'new' || :client_id AND id = :id;
SQL
my @runs = map { my $err = ''; { err => \$err, run => IPC::Run::start($_, '<', '/dev/null', '>', '/dev/null', '2>', \$err) } } (
	[ 'pgbench', '-n', '-c', 4, '-t', 200, '-f', $user, $node->connstr('postgres') ],
	[ 'psql', '-Xqd', $node->connstr('postgres'), '-c', "SELECT partman.run_maintenance('public.facts_timed')" ],
	map { [ 'psql', '-Xqd', $node->connstr('postgres'), '-c', "CALL metrics_drain('facts', 'new$_')" ] } 0 .. 3);
for my $run (@runs)
{
	ok($run->{run}->finish && ${ $run->{err} } !~ /error|abort/i, 'users, days and keys at once') or diag(${ $run->{err} });
}
$node->safe_psql('postgres', 'CALL metrics_maintain()');
is_sql("SELECT count(*) FROM facts WHERE id >= 1000 AND key = 'timed'", $node->safe_psql('postgres', "SELECT count(*) FROM facts WHERE id >= 1000 AND key <> 'timed'"), 'all rows are there');
is_sql("SELECT min(at) >= current_date - 2 FROM facts WHERE key = 'timed'", 't', 'and retention has gone on');
is_sql('SELECT count(*) FROM facts_default', 0, 'nothing is left in the default partition');

# E12: a row without a day goes to the default partition below the key, and
# pg_partman moves it out of there.
$node->safe_psql('postgres', "INSERT INTO facts VALUES (7, 'timed', current_date + 20)");
is_sql("SELECT tableoid::regclass FROM facts WHERE id = 7 AND at > now()", 'facts_timed_default', 'E12: a row without a day is kept');
$node->safe_psql('postgres', 'CALL metrics_maintain()');
$node->safe_psql('postgres', "SELECT partman.partition_data_time('public.facts_timed')");
is_sql("SELECT tableoid::regclass::text ~ '_p\\d' FROM facts WHERE id = 7 AND at > now()", 't', 'E12: and gets its day from pg_partman');
is_sql('SELECT count(*) FROM metrics.metrics_failure', 0, 'nothing fails');

$node->stop;
done_testing();
