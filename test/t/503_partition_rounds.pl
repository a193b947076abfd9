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
my $rounds = $full ? 1000 : 100;
my $many = $full ? 1000 : 200;

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
INSERT INTO metrics.metrics_failure (parent, partition_key, failed_at, next_attempt, sqlstate, message)
VALUES ('metrics.metrics', 'gone', now(), 'infinity', '55P03', '');
CREATE SEQUENCE ids;
CREATE TABLE round (n integer);
INSERT INTO round VALUES (10);
CREATE TABLE told (id bigint, key text, what text);
CREATE TABLE f (id bigint, key text, touched integer NOT NULL DEFAULT 0, PRIMARY KEY (key, id)) PARTITION BY LIST (key);
CREATE TABLE f_default PARTITION OF f DEFAULT;
CREATE TABLE child (id bigint, key text, FOREIGN KEY (key, id) REFERENCES f ON DELETE CASCADE);
CREATE INDEX ON child (key, id);
SELECT metrics_manage_partitions('f');
INSERT INTO metrics.metrics_failure (parent, partition_key, failed_at, next_attempt, sqlstate, message)
VALUES ('f', 'gone', now(), 'infinity', '55P03', '');
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
	[ 'pgbench', '-n', '-M', 'prepared', '-c', 6, '-T', 3600, '-f', "$node->{_basedir}/user.sql", $node->connstr('postgres') ],
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
is($node->safe_psql('postgres', "SELECT partitions_created FROM metrics.metrics_managed_table WHERE parent = 'f'::regclass"),
	$node->safe_psql('postgres', "SELECT count(DISTINCT partition_key) FROM metrics_partitions WHERE parent = 'f'::regclass"),
	'one partition a key, and all were counted');
is($node->safe_psql('postgres', 'SELECT count(*) FROM f_default'), 0, 'nothing is left in the default partition');
is($node->safe_psql('postgres', 'SELECT parent, partition_key, message FROM metrics.metrics_failure'), '', 'and nothing fails');

# Many keys in one round: memory and locks are given back after each. Event
# triggers see what is done, as done by the owner of the table.
$node->append_conf('postgresql.conf', <<'CONF');
max_locks_per_transaction = 10
max_connections = 10
max_worker_processes = 0
autovacuum_max_workers = 1
max_wal_senders = 0
CONF
$node->restart;
$node->safe_psql('postgres', <<"SQL");
CREATE ROLE keeper;
GRANT CREATE, USAGE ON SCHEMA public TO keeper;
CREATE TABLE many (id integer, key text, a text, b text, PRIMARY KEY (key, id), UNIQUE (key, a)) PARTITION BY LIST (key);
CREATE INDEX ON many (b);
CREATE TABLE many_default PARTITION OF many DEFAULT;
INSERT INTO many SELECT i, 'k' || i % $many, i, i FROM generate_series(1, @{[ 3 * $many ]}) i;
ALTER TABLE many OWNER TO keeper;
ALTER TABLE many_default OWNER TO keeper;
SELECT metrics_manage_partitions('many');
CREATE TABLE seen (tag text, who text);
GRANT INSERT ON seen TO PUBLIC;
CREATE FUNCTION see() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.seen VALUES (TG_TAG, current_user); END';
CREATE EVENT TRIGGER see ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE') EXECUTE FUNCTION see();
SQL
my ($memory, $err) = ('', '');
is($node->psql('postgres', <<'SQL', stdout => \$memory, stderr => \$err), 0, "$many keys in a round: no lock is wanting") or diag($err);
\set memory 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE NOT EXISTS (SELECT WHERE parent = \'CacheMemoryContext\' OR name = \'CacheMemoryContext\')'
CALL metrics_drain('many', 'k0');
:memory;
CALL metrics_maintain();
:memory;
SQL
unlike($err, qr/WARNING|ERROR/, 'nothing fails');
my ($before, $after) = $memory =~ /(\d+)\n(\d+)/;
cmp_ok($after - $before, '<', 2_000_000, "memory does not grow with them, from $before bytes to $after");
is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE tag = 'CREATE TABLE'), bool_and(who = 'keeper') FROM seen"), "$many|t", 'event triggers have seen them, made by the owner');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname LIKE 'many_k%' AND relkind = 'r' AND relowner <> 'keeper'::regrole"), 0, 'to whom they belong');

# A table that wants more locks than there are is a failure of its own.
$node->safe_psql('postgres', <<'SQL');
DROP EVENT TRIGGER see;
CREATE TABLE wide (id integer, key text) PARTITION BY LIST (key);
CREATE TABLE wide_default PARTITION OF wide DEFAULT PARTITION BY HASH (id);
SELECT format('CREATE TABLE wide_%s PARTITION OF wide_default FOR VALUES WITH (MODULUS 1500, REMAINDER %s)', i, i) FROM generate_series(0, 1499) i \gexec
INSERT INTO wide_default VALUES (1, 'a');
SELECT metrics_manage_partitions('wide');
INSERT INTO many VALUES (1, 'later');
SQL
$err = '';
is($node->psql('postgres', 'CALL metrics_maintain()', stderr => \$err), 0, 'a table that wants more locks than there are does not end the round') or diag($err);
is($node->safe_psql('postgres', 'SELECT parent, sqlstate FROM metrics.metrics_failure'), 'wide|53200', 'its failure is written down');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname LIKE 'many_later%' AND relkind = 'r'"), 1, 'the others go on');
$node->append_conf('postgresql.conf', 'max_locks_per_transaction = 1000');
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT tableoid), (SELECT count(*) FROM many_default) FROM many'), (3 * $many + 1) . '|' . ($many + 1) . '|0', 'all rows are in partitions of their own');

$node->stop;
done_testing();
