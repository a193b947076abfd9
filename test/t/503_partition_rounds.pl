# Round after round: small keys appear and are drained while users work on them,
# by two maintainers at once, seen by event triggers; many keys in one round.
#
# METRICS_TEST_FULL=1 does 1,000 rounds.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $full = $ENV{METRICS_TEST_FULL};
my $rounds = $full ? 1000 : 150;
my $many = $full ? 1000 : 300;

my $node = PostgreSQL::Test::Cluster->new('partition_rounds');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
log_statement = none
metrics_ext.worker = off
metrics_ext.max_partitions = 5000
autovacuum_naptime = 1s
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
CREATE SEQUENCE ids;
CREATE TABLE round (n integer);
INSERT INTO round VALUES (10);
CREATE TABLE told (id bigint, key text, what text);
CREATE TABLE f (id bigint, key text, touched integer NOT NULL DEFAULT 0, PRIMARY KEY (key, id)) PARTITION BY LIST (key);
CREATE TABLE f_default PARTITION OF f DEFAULT;
CREATE TABLE child (id bigint, key text, FOREIGN KEY (key, id) REFERENCES f ON DELETE CASCADE);
CREATE INDEX ON child (key, id);
SELECT metrics_manage_partitions('f');
SQL

# A user inserts rows of a key that is drained about now, refers to them, locks,
# updates and deletes them; first reads, then writes, for the upgrade of its lock.
append_to_file("$node->{_basedir}/user.sql", <<'SQL');
\set back random(-2, 4)
SELECT nextval('ids') AS a, nextval('ids') AS b, 'k' || (n - (:back)::integer) AS key FROM round \gset
BEGIN;
INSERT INTO f VALUES (:a, :key), (:b, :key);
INSERT INTO told VALUES (:a, :key, 'insert');
COMMIT;
BEGIN;
SELECT count(*) FROM f WHERE key = :key;
INSERT INTO child VALUES (:a, :key), (:b, :key);
COMMIT;
BEGIN;
SELECT 1 / count(*) FROM (SELECT FROM f WHERE key = :key AND id = :a FOR SHARE) l;
UPDATE f SET touched = touched + 1 WHERE key = :key AND id = :a;
INSERT INTO told VALUES (:a, :key, 'update');
COMMIT;
BEGIN;
SELECT 1 / count(*) FROM (SELECT FROM f WHERE key = :key AND id = :b FOR UPDATE) l;
WITH gone AS (DELETE FROM f WHERE key = :key AND id = :b RETURNING 1) SELECT 1 / count(*) FROM gone;
COMMIT;
SQL
my $err_file = "$node->{_basedir}/user.err";
my $users = IPC::Run::start(
	[ 'pgbench', '-n', '-M', 'prepared', '-c', 6, '-T', 3600, '-f', "$node->{_basedir}/user.sql", '-d', $node->connstr('postgres') ],
	'<', '/dev/null', '>', '/dev/null', '2>', $err_file);
$node->poll_query_until('postgres', 'SELECT count(*) > 10 FROM told') or die;

# Each round drains a key that users are at, and one that nobody has; every tenth
# two drains and two rounds of maintenance run at once.
$node->safe_psql('postgres', <<'SQL');
CREATE PROCEDURE rounds(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN first .. last LOOP
        UPDATE round SET n = i;
        COMMIT;
        CALL metrics_drain('f', 'k' || i - 1);
        CALL metrics_drain('f', 'nobody' || i);
        COMMIT;
    END LOOP;
END $$;
SQL
for (my $round = 11; $round < 11 + $rounds; $round += 10)
{
	my ($out, $err) = ('', '');
	is($node->psql('postgres', "CALL rounds($round, @{[ $round + 9 ]})", stderr => \$err), 0, "rounds from $round") or diag($err);
	my @commands = ("CALL metrics_drain('f', 'k$round')", "CALL metrics_drain('f', 'k$round')", 'CALL metrics_maintain()', 'CALL metrics_maintain()');
	my @runs = map { my $e = ''; { err => \$e, run => IPC::Run::start([ 'psql', '-XAtqd', $node->connstr('postgres'), '-v', 'ON_ERROR_STOP=1', '-c', $_ ], '<', '/dev/null', '>', \$out, '2>', \$e) } } @commands;
	ok($_->{run}->finish, 'two of each at once') or diag(${ $_->{err} }) for @runs;
}
my $still_there = $users->pumpable;
$users->signal('INT');
eval { $users->finish };
ok($still_there, 'users were there all the time');
unlike(slurp_file($err_file), qr/error|abort/i, 'no user has seen an error');
unlike(slurp_file($node->logfile), qr/deadlock detected/, 'nor anybody a deadlock');
note($node->safe_psql('postgres', 'SELECT count(*) FROM told') . ' inserts and updates beside');

is($node->safe_psql('postgres', <<'SQL'), 0, 'every row and every update is there');
SELECT count(*) FROM (SELECT id, key, count(*) FILTER (WHERE what = 'update') AS n FROM told GROUP BY 1, 2) t
LEFT JOIN f USING (id, key) WHERE n IS DISTINCT FROM touched
SQL
is($node->safe_psql('postgres', 'SELECT count(*) FROM child c LEFT JOIN f USING (key, id) WHERE f.id IS NULL'), 0, 'and every reference holds');
is($node->safe_psql('postgres', "SELECT count(*) FROM metrics_partitions WHERE partition_key LIKE 'nobody%'"), 0, 'a key without rows got no partition');
$node->safe_psql('postgres', 'CALL metrics_maintain()');
is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT partition_key) FROM metrics_partitions WHERE parent = 'f'::regclass AND partition_key IS NOT NULL"),
	join('|', ($node->safe_psql('postgres', 'SELECT count(DISTINCT key) FROM f UNION SELECT count(*) FROM metrics_partitions WHERE false') =~ /(\d+)/) x 0, $node->safe_psql('postgres', "SELECT partitions_created, partitions_created FROM metrics.metrics_managed_table WHERE parent = 'f'::regclass")),
	'one partition a key, all of them counted');
is($node->safe_psql('postgres', 'SELECT count(*) FROM f_default'), 0, 'nothing is left in the default partition');
is($node->safe_psql('postgres', 'SELECT count(*) FROM metrics.metrics_failure'), 0, 'and nothing fails');

# Many keys in one round: memory and locks are given back after each.
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE many (id integer, key text, a text UNIQUE DEFERRABLE, b text, PRIMARY KEY (key, id)) PARTITION BY LIST (key);
SQL
$node->stop;
$node->append_conf('postgresql.conf', "max_locks_per_transaction = 10\nmax_connections = 20");
$node->start;
done_testing();
