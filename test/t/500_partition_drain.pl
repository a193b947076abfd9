# A default partition of 20 keys is drained while others read, insert, update,
# lock and delete its rows through the parent: no count is ever wrong, no update
# is lost, nobody gets an error. Then the draining backend is killed again and
# again, and the rows are the same.
#
# METRICS_TEST_FULL=1 does it with a million rows and 20 kills.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep time);

my $full = $ENV{METRICS_TEST_FULL};
my $rows = $full ? 1_000_000 : 100_000;
my $keys = 20;
my $kills = $full ? 20 : 4;

my $node = PostgreSQL::Test::Cluster->new('partition_drain');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
log_statement = none
log_min_messages = error
metrics_ext.worker = off
metrics_ext.drain_rows = 10000000
restart_after_crash = on
max_wal_size = 4GB
CONF
$node->start;
$node->safe_psql('postgres', <<"SQL");
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
CREATE SEQUENCE reads;
CREATE SEQUENCE extra START @{[ $rows + 1 ]};
CREATE TABLE told (id bigint, what text);

-- A table whose rows 1 to $rows are the same number of each key, all in the
-- default partition.
CREATE FUNCTION fill() RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
    DROP TABLE IF EXISTS facts;
    CREATE TABLE facts (id bigint, key text, touched integer NOT NULL DEFAULT 0, body text, PRIMARY KEY (key, id)) PARTITION BY LIST (key);
    CREATE TABLE facts_default PARTITION OF facts DEFAULT;
    INSERT INTO facts SELECT i, 'key' || i % $keys, 0, md5(i::text) FROM generate_series(1, $rows) i;
    PERFORM metrics_manage_partitions('facts');
END \$\$;

-- Count the rows of a key; an error if it is not what it always is.
CREATE FUNCTION read(k integer) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
    n bigint;
    key_of_k text := 'key' || k;
BEGIN
    SELECT count(*) INTO n FROM facts WHERE key = key_of_k AND id <= $rows;
    IF n <> @{[ $rows / $keys ]} THEN
        RAISE EXCEPTION 'counted % rows of key %', n, key_of_k;
    END IF;
    PERFORM nextval('reads');
END \$\$;
SELECT fill();
VACUUM ANALYZE facts;
SQL

my %scripts = (
	# Counts of one key: its literal, its expression, within plpgsql. 1/0 is wrong.
	literal => qq{
		\\set k random(0, @{[ $keys - 1 ]})
		SELECT 1 / (count(*) = @{[ $rows / $keys ]})::integer, nextval('reads') FROM facts WHERE key = 'key:k' AND id <= $rows;
	},
	parameter => qq{
		\\set k random(0, @{[ $keys - 1 ]})
		SELECT 1 / (count(*) = @{[ $rows / $keys ]})::integer, nextval('reads') FROM facts WHERE key = 'key' || (:k)::integer AND id <= $rows;
	},
	plpgsql => qq{
		\\set k random(0, @{[ $keys - 1 ]})
		SELECT read(:k);
	},
	all => qq{
		SELECT 1 / (count(*) = $rows)::integer, nextval('reads') FROM facts WHERE id <= $rows;
	},
	# A row is locked, in each strength, and updated; what is committed is told.
	update => qq{
		\\set id random(1, $rows)
		\\set k :id % $keys
		BEGIN;
		SELECT 1 / count(*) FROM (SELECT FROM facts WHERE key = 'key' || (:k)::integer AND id = :id FOR KEY SHARE) f;
		UPDATE facts SET touched = touched + 1 WHERE key = 'key' || (:k)::integer AND id = :id;
		INSERT INTO told VALUES (:id, 'update');
		COMMIT;
	},
	lock => qq{
		\\set id random(1, $rows)
		\\set k :id % $keys
		BEGIN;
		SELECT count(*) FROM facts WHERE key = 'key' || (:k)::integer AND id = :id;
		SELECT 1 / count(*) FROM (SELECT FROM facts WHERE key = 'key' || (:k)::integer AND id = :id FOR SHARE) f;
		COMMIT;
		BEGIN;
		SELECT 1 / count(*) FROM (SELECT FROM facts WHERE key = 'key' || (:k)::integer AND id = :id FOR UPDATE) f;
		UPDATE facts SET touched = touched + 1 WHERE key = 'key' || (:k)::integer AND id = :id;
		INSERT INTO told VALUES (:id, 'update');
		COMMIT;
	},
	# Rows of old and new keys come, and every second one goes.
	insert => qq{
		\\set k random(0, @{[ $keys + 10 ]})
		SELECT nextval('extra') AS id, nextval('extra') AS other \\gset
		BEGIN;
		INSERT INTO facts VALUES (:id, 'key' || (:k)::integer), (:other, 'key' || (:k)::integer);
		INSERT INTO told VALUES (:id, 'insert');
		COMMIT;
		WITH gone AS (DELETE FROM facts WHERE key = 'key' || (:k)::integer AND id = :other RETURNING id) SELECT 1 / count(*) FROM gone;
	},
);
for my $name (keys %scripts)
{
	append_to_file("$node->{_basedir}/$name.sql", $scripts{$name} =~ s/^\t+//gmr);
}

my $loads = 0;

# Start a pgbench that goes on until it is stopped.
sub start_load
{
	my ($script, $clients, $mode) = @_;
	my $load = { name => "$script, -M $mode", err => "$node->{_basedir}/" . ++$loads . '.err' };
	$load->{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-M', $mode, '-c', $clients, '-T', 3600, '-f', "$node->{_basedir}/$script.sql", $node->connstr('postgres') ],
		'<', '/dev/null', '>', '/dev/null', '2>', $load->{err});
	return $load;
}

sub stop_load
{
	my ($load) = @_;
	my $runs = $load->{run}->pumpable;
	$load->{run}->signal('INT');
	eval { $load->{run}->finish };
	my $err = slurp_file($load->{err});
	ok($runs && $err !~ /error|fatal|abort/i, "no error: $load->{name}") or diag($err);
}

my $checksum = "SELECT count(*), sum(hashtextextended(concat(id, key, body), 0)) FROM facts WHERE id <= $rows";
my $before = $node->safe_psql('postgres', $checksum);

my @loads = (
	start_load('literal', 2, 'simple'),
	start_load('parameter', 2, 'prepared'),
	start_load('plpgsql', 2, 'simple'),
	start_load('all', 1, 'simple'),
	start_load('update', 2, 'simple'),
	start_load('update', 2, 'prepared'),
	start_load('lock', 2, 'simple'),
	start_load('insert', 2, 'simple'));
$node->poll_query_until('postgres', 'SELECT last_value > 100 FROM reads') or die 'no reads';
$node->poll_query_until('postgres', "SELECT count(DISTINCT what) = 2 FROM told") or die 'no updates';

my $start = time;
my $err = '';
for my $key (map { "key$_" } 0 .. $keys - 1)
{
	my ($reads) = $node->safe_psql('postgres', 'SELECT last_value FROM reads');
	$err = '';
	is($node->psql('postgres', "CALL metrics_drain('facts', '$key')", stderr => \$err), 0, "$key is drained") or diag($err);
	like($err, qr/moved \d+ rows/, 'its rows moved');
	$node->poll_query_until('postgres', "SELECT last_value > $reads + 10 FROM reads") or die 'no reads';
}
my $took = time - $start;
stop_load($_) for @loads;
note(sprintf('%d rows drained in %.1f s beside %s reads and %s updates', $rows, $took,
	$node->safe_psql('postgres', 'SELECT last_value FROM reads'),
	$node->safe_psql('postgres', "SELECT count(*) FROM told WHERE what = 'update'")));

is($node->safe_psql('postgres', $checksum), $before, 'the rows are the same');
is($node->safe_psql('postgres', "SELECT count(*) FROM facts_default WHERE id <= $rows"), '0', 'none is left in the default partition');
is($node->safe_psql('postgres', <<"SQL"), '0', 'every update was kept');
SELECT count(*) FROM (SELECT id, count(*) AS n FROM told WHERE what = 'update' GROUP BY id) t
FULL JOIN (SELECT id, touched FROM facts WHERE touched > 0) f USING (id) WHERE n IS DISTINCT FROM touched
SQL
is($node->safe_psql('postgres', <<"SQL"), '0', 'and every insert');
SELECT count(*) FROM (SELECT id FROM told WHERE what = 'insert') t LEFT JOIN facts f USING (id) WHERE f.id IS NULL
SQL
is($node->safe_psql('postgres', <<"SQL"), '0', 'each partition has the rows of its key');
SELECT count(*) FROM facts f JOIN metrics_partitions p ON p.partition = f.tableoid::regclass AND p.parent = 'facts'::regclass
WHERE p.partition_key <> f.key
SQL
unlike(slurp_file($node->logfile), qr/deadlock detected/, 'no deadlock');

# The draining backend is killed at random moments; the server, too.
$node->safe_psql('postgres', 'SELECT fill()');
srand($ENV{METRICS_TEST_SEED} // 1);
my $one_key = $took / $keys;
my $killed = 0;
for my $attempt (1 .. $kills + 1)
{
	my $key = 'key' . int(rand($keys));
	my $drain = IPC::Run::start([ 'psql', '-XAtq', $node->connstr('postgres') ],
		'<', \"SELECT pg_backend_pid();\nCALL metrics_drain('facts', '$key');\n", '>', \my $pid, '2>', \my $drain_err);
	$drain->pump until $pid =~ /\n/;
	usleep(rand($one_key) * 1e6);
	if ($attempt > $kills)
	{
		$node->stop('immediate');
		eval { $drain->finish };
		$node->start;
	}
	else
	{
		$killed += kill('KILL', $pid + 0);
		eval { $drain->finish };
		$node->poll_query_until('postgres', 'SELECT true') or die 'the server is not back';
	}
	is($node->safe_psql('postgres', $checksum), $before, "killed at $key: the rows are the same");
}
cmp_ok($killed, '>=', $kills / 2, "killed $killed backends at work");
$node->safe_psql('postgres', 'CALL metrics_maintain()');
is($node->safe_psql('postgres', $checksum), $before, 'and so they are at the end');
is($node->safe_psql('postgres', 'SELECT count(*) FROM facts_default'), '0', 'all of them in their partitions');
is($node->safe_psql('postgres', "SELECT count(*) FROM metrics_partitions WHERE parent = 'facts'::regclass AND partition_key IS NOT NULL"), $keys, 'one a key');

$node->stop;
done_testing();
