# What others notice of a partition that appears: nothing where no row moves, and
# where rows move, a wait that is limited until all have left the table.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $others = $ENV{METRICS_TEST_FULL} ? 1_000_000 : 100_000;

my $node = PostgreSQL::Test::Cluster->new('partition_locks');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
metrics_ext.worker = off
log_lock_waits = on
deadlock_timeout = 1s
max_worker_processes = 8
max_prepared_transactions = 2
autovacuum = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
SELECT metrics_register_trial(1);
CREATE TABLE plain (id integer, key text) PARTITION BY LIST (key);
CREATE TABLE plain_a PARTITION OF plain FOR VALUES IN ('a');
CREATE TABLE m (id integer, key text, PRIMARY KEY (key, id)) PARTITION BY LIST (key);
CREATE TABLE m_default PARTITION OF m DEFAULT;
CREATE TABLE m_there PARTITION OF m FOR VALUES IN ('there');
INSERT INTO m SELECT i, 'old' FROM generate_series(1, 1000) i;
SELECT metrics_manage_partitions(t) FROM unnest(ARRAY['plain', 'm']::regclass[]) t;
SQL

sub session { return $node->background_psql('postgres', on_error_die => 0, on_error_stop => 0) }

sub is_sql
{
	my ($sql, $want, $description) = @_;
	is($node->safe_psql('postgres', $sql), $want, $description);
}

sub run_sql
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 1);
	return ($status, "$out$err");
}

sub succeeds
{
	my ($sql, $pattern, $description) = @_;
	my ($status, $out) = run_sql($sql);
	ok($status == 0 && $out =~ $pattern, $description) or diag($out);
}

sub fails
{
	my ($sql, $pattern, $description) = @_;
	my ($status, $out) = run_sql($sql);
	ok($status != 0 && $out =~ $pattern, $description) or diag($out);
}

# What an open transaction holds of a table, from another session.
sub locks
{
	my ($table) = @_;
	return $node->safe_psql('postgres', "SELECT string_agg(DISTINCT mode, ' ' ORDER BY mode) FROM pg_locks WHERE relation = '$table'::regclass AND granted
		AND pid IN (SELECT pid FROM pg_stat_activity WHERE application_name = 'adder')");
}

# Without rows to move: a reader and writers in open transactions are no obstacle,
# unless they have the default partition, too. The store's partitions reference
# trials, so a transaction that has reported is waited for there.
for my $case (
	[ 'metrics.metrics', "metrics_add_partition('k')", 'SELECT count(*) FROM metrics.metrics', 'SELECT count(*) FROM metrics.metrics' ],
	[ 'plain', "metrics_add_partition('plain'::regclass, 'k')", 'SELECT count(*) FROM plain', "INSERT INTO plain VALUES (1, 'a')" ],
	[ 'm', "metrics_add_partition('m'::regclass, 'k')", "SELECT count(*) FROM m WHERE key = 'there'", "INSERT INTO m SELECT count(*), 'there' FROM m WHERE key = 'there'" ])
{
	my ($table, $add, $read, $write) = @$case;
	my $reader = session();
	$reader->query_safe("BEGIN; LOCK ONLY $table IN ACCESS SHARE MODE; $read; $write");
	my $adder = session();
	is($adder->query("SET application_name = 'adder'; BEGIN; SELECT $add IS NOT NULL"), 't', "$table: a partition appears beside a reader and a writer");
	is(locks($table), 'AccessShareLock ShareUpdateExclusiveLock', "$table: under a lock that they do not mind");
	$reader->query_safe("$read; COMMIT");
	succeeds("SET statement_timeout = '60s'; $read; BEGIN; $write; ROLLBACK", qr/^/, "$table: others read and write");
	$adder->query_safe('COMMIT');
	succeeds("SET statement_timeout = '60s'; $read; BEGIN; $write; ROLLBACK", qr/^/, "$table: and so they do afterwards");
	is_sql("SELECT count(*) FROM metrics_partitions WHERE parent = '$table'::regclass AND partition_key = 'k'", 1, "$table: the partition is there");
	$_->quit for $reader, $adder;
}

# A foreign key to the table itself is waited for, not deadlocked with.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE tree (id integer, key text, up integer, up_key text, PRIMARY KEY (key, id), FOREIGN KEY (up_key, up) REFERENCES tree) PARTITION BY LIST (key);
CREATE TABLE tree_default PARTITION OF tree DEFAULT;
INSERT INTO tree VALUES (1, 'a', 1, 'a');
SELECT metrics_manage_partitions('tree');
SQL
{
	my $reader = session();
	$reader->query_safe('BEGIN; LOCK ONLY tree IN ACCESS SHARE MODE');
	succeeds("SELECT metrics_add_partition('tree'::regclass, 'b')", qr/tree_b/, 'a table that references itself: beside a reader');
	$reader->query_safe("INSERT INTO tree VALUES (2, 'a', 1, 'a')");
	fails("SELECT metrics_add_partition('tree'::regclass, 'c')", qr/lock timeout/, 'not beside a writer');
	$reader->query_safe("INSERT INTO tree VALUES (3, 'a', 2, 'a'); COMMIT");
	$reader->quit;
	succeeds("CALL metrics_drain('tree', 'a')", qr/moved 3 rows/, 'its rows move');
}

# With rows to move: a reader that does not end is waited for, while others wait
# for lock_timeout at most and get on.
{
	my $reader = session();
	$reader->query_safe('BEGIN; SELECT count(*) FROM m');
	my $drain = session();
	$drain->query_until(qr/started/, "\\echo started\nSET application_name = 'drain';\nCALL metrics_drain('m', 'old');\n\\echo drained\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'drain' AND wait_event_type = 'Lock'") or die;
	my ($inserts, $longest, $start) = (0, 0, time);
	while (time - $start < 5)
	{
		my $before = time;
		$node->safe_psql('postgres', "INSERT INTO m VALUES (@{[ 2000 + $inserts++ ]}, 'old'); SELECT count(*) FROM m");
		my $took = time - $before;
		$longest = $took if $took > $longest;
	}
	note(sprintf('%d inserts in 5 s, the longest %.3f s', $inserts, $longest));
	cmp_ok($inserts, '>', 20, 'F04: others insert and read on, though a drain and a reader wait for each other');
	is_sql("SELECT count(*) FROM metrics_partitions WHERE parent = 'm'::regclass AND partition_key = 'old'", 0, 'F04: meanwhile the partition is not there');
	$reader->query_safe('COMMIT');
	$reader->quit;
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM metrics_partitions WHERE parent = 'm'::regclass AND partition_key = 'old'")
	  or die 'the drain did not end';
	pass('F04: it appears when the reader ends');
	is_sql("SELECT count(*) FROM m WHERE key = 'old'", 1000 + $inserts, 'F04: with all rows');
	$drain->quit;
	unlike(slurp_file($node->logfile), qr/still waiting for/, 'nobody waited for longer than deadlock_timeout');
}

# A round writes the lock that it did not get down, and goes on with the next table.
{
	$node->safe_psql('postgres', "INSERT INTO m VALUES (1, 'busy'); INSERT INTO tree VALUES (1, 'busy')");
	my $reader = session();
	$reader->query_safe('BEGIN; SELECT count(*) FROM m');
	my ($status, $out) = run_sql('CALL metrics_maintain()');
	ok($status == 0 && $out =~ /key "busy": canceling statement due to lock timeout/, 'a round does not wait') or diag($out);
	is_sql("SELECT parent, partition_key, sqlstate FROM metrics.metrics_failure", 'm|busy|55P03', 'but writes down what it could not do');
	is_sql("SELECT count(*) FROM metrics_partitions WHERE parent = 'tree'::regclass AND partition_key = 'busy'", 1, 'and goes on');
	$reader->query_safe('COMMIT');
	$reader->quit;
	succeeds('CALL metrics_maintain()', qr/^$/, 'the next one does');
	is_sql('SELECT count(*) FROM metrics.metrics_failure', 0, 'and nothing fails any more');
}

# Beside many rows of other keys and no index: an index is built concurrently, and
# the default partition is not read under the lock.
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE big (id integer, key text, body text) PARTITION BY LIST (key);
CREATE TABLE big_default PARTITION OF big DEFAULT;
INSERT INTO big SELECT i, 'other', repeat('x', 20) FROM generate_series(1, $others) i;
INSERT INTO big SELECT i, 'k' || i % 10 FROM generate_series(1, 100) i;
SELECT metrics_manage_partitions('big');
SQL
fails("BEGIN; CALL metrics_drain('big', 'k1')", qr/has no index that leads with "key"/, 'in a transaction, where none can be built, a big default partition without an index is not read');
fails("SELECT metrics_add_partition('big'::regclass, 'k1')", qr/has no index.*CREATE INDEX CONCURRENTLY ON public.big_default \(key\)/s, 'nor by a function');

# All slots for workers are taken; the transactions of others hold the index up.
$node->safe_psql('postgres', "ALTER SYSTEM SET max_worker_processes = 0");
$node->restart;
fails("CALL metrics_drain('big', 'k1')", qr/all slots are taken/, 'without a slot for a worker a drain says so');
succeeds("CALL metrics_maintain()", qr/has no index/, 'and a round that it wants an index');
$node->safe_psql('postgres', "ALTER SYSTEM RESET max_worker_processes");
$node->restart;
{
	my $old = session();
	$old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM plain");
	my $drain = session();
	$drain->query_until(qr/started/, "\\echo started\nSET application_name = 'drain';\nCALL metrics_drain('big', 'k1');\n\\echo ended\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'metrics_ext index worker' AND wait_event_type = 'Lock'") or die;
	succeeds("SET statement_timeout = '60s'; INSERT INTO big VALUES (0, 'k1'); SELECT count(*) FROM big WHERE key = 'k1'", qr/^11$/, 'an index waits for an old transaction, others do not');
	# The drain is cancelled; the worker is, too, and leaves an invalid index.
	is_sql("SELECT bool_and(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = 'drain'", 't', 'a drain is cancelled');
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'drain' AND state = 'active'") or die;
	is_sql("SELECT bool_and(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'metrics_ext index worker'", 't', 'and the worker');
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'metrics_ext index worker'") or die;
	is_sql("SELECT indisvalid FROM pg_index WHERE indrelid = 'big_default'::regclass", 'f', 'which leaves an index that is not valid');
	$old->query_safe('COMMIT');
	$_->quit for $old, $drain;
}
my $scans = "SELECT pg_stat_force_next_flush(); SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'big_default'";
succeeds("SET client_min_messages = debug1; CALL metrics_drain('big', 'k1')",
	qr/updated partition constraint for default partition "big_default" is implied by existing constraints.*moved 11 rows/s,
	'F02: the next drain builds it anew; ATTACH does not read the default partition');
is_sql("SELECT count(*), bool_and(indisvalid) FROM pg_index WHERE indrelid = 'big_default'::regclass", '1|t', 'there is one index now, and it is valid');
my $before = $node->safe_psql('postgres', $scans);
succeeds("CALL metrics_drain('big', 'k2')", qr/moved 10 rows/, 'one more key');
succeeds("SET metrics_ext.drain_rows = 50; CALL metrics_maintain()", qr/more than 50 rows of key "other".*CALL metrics_drain/s, 'a round leaves a key with too many rows');
is_sql("SELECT partition_key, sqlstate FROM metrics.metrics_failure WHERE parent = 'big'::regclass", 'other|54000', 'and writes that down');
is_sql("SELECT count(*) FROM metrics_partitions WHERE parent = 'big'::regclass AND partition_key IS NOT NULL", 10, 'all others have their partitions');
is($node->safe_psql('postgres', $scans), $before, 'F02: and nothing has scanned the default partition');
succeeds("SELECT metrics_add_partition('big'::regclass, 'new')", qr/big_new/, 'a key without rows');
is($node->safe_psql('postgres', $scans), $before, 'F02: neither was it for that');

# Two at once want the same index: one of them builds it.
$node->safe_psql('postgres', "DROP INDEX big_default_metrics_ext_key; INSERT INTO big VALUES (1, 'two'), (1, 'three')");
{
	my @drains = map { session() } 1 .. 2;
	$drains[0]->query_until(qr/started/, "\\echo started\nCALL metrics_drain('big', 'two');\n");
	$drains[1]->query_until(qr/started/, "\\echo started\nCALL metrics_drain('big', 'three');\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM metrics_partitions WHERE partition_key IN ('two', 'three')") or die;
	$_->quit for @drains;
	unlike(slurp_file($node->logfile), qr/deadlock detected/, 'two drains that want the same index do not deadlock');
	is_sql("SELECT count(*) FROM pg_index WHERE indrelid = 'big_default'::regclass", 1, 'and one is built');
}

# A drain is cancelled while it moves rows, and by statement_timeout while it waits.
for my $case ([ 'moves rows', "wait_event_type IS DISTINCT FROM 'Extension'", '' ], [ 'waits', "wait_event_type = 'Extension'", "BEGIN; SELECT count(*) FROM plain; SELECT 1 FROM big LIMIT 1" ])
{
	my ($what, $state, $block) = @$case;
	my $blocker = session();
	$blocker->query_safe($block) if $block;
	my $drain = session();
	$drain->query_until(qr/started/, "\\echo started\nSET application_name = 'cancelled';\nCALL metrics_drain('big', 'other');\n");
	$node->poll_query_until('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled' AND query LIKE 'CALL%' AND state = 'active' AND $state") or die;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'cancelled' AND state = 'active'") or die;
	$blocker->quit;
	$drain->quit;
	is_sql("SELECT count(*) FROM metrics_partitions WHERE parent = 'big'::regclass AND partition_key = 'other'", 0, "a drain that $what can be cancelled");
}
{
	my $blocker = session();
	$blocker->query_safe('BEGIN; SELECT 1 FROM big LIMIT 1');
	fails("SET statement_timeout = '700ms'; CALL metrics_drain('big', 'other')", qr/statement timeout/, 'statement_timeout ends it, too');
	fails("BEGIN; CALL metrics_drain('big', 'other')", qr/lock timeout/, 'in a transaction it does not try again');
	$blocker->quit;
}
is_sql('SELECT count(*) FROM big', $others + 103, 'no row is lost');

# Where procedures commit.
$node->safe_psql('postgres', <<'SQL');
INSERT INTO m SELECT i, 'p' || i % 5 FROM generate_series(1, 50) i;
CREATE PROCEDURE nightly() LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    CALL metrics_drain('m', 'p0');
    COMMIT;
    FOR r IN SELECT 'p' || i AS key FROM generate_series(1, 2) i LOOP
        CALL metrics_drain('m', r.key);
        COMMIT;
    END LOOP;
    BEGIN
        CALL metrics_drain('m', 'p3');
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    CALL metrics_maintain();
END $$;
SQL
succeeds('CALL nightly()', qr/p0.*p1.*p2.*p3/s, 'plpgsql procedures may call the procedures, in loops and blocks with exceptions');
is_sql("SELECT count(*) FROM metrics_partitions WHERE parent = 'm'::regclass AND partition_key LIKE 'p_'", 5, 'all keys have partitions');
$node->safe_psql('postgres', "INSERT INTO m SELECT i, 'q' || i % 5 FROM generate_series(1, 50) i");
succeeds("BEGIN; CALL metrics_drain('m', 'q1'); CALL metrics_maintain(); ROLLBACK; SELECT count(*) FROM metrics_partitions WHERE partition_key LIKE 'q_'", qr/^0/, 'all of it can be rolled back in a transaction');
fails("DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT key FROM m LOOP CALL metrics_drain('m', 'q1'); END LOOP; END \$\$", qr/being used by active queries/, 'not while the caller reads the table');
$node->safe_psql('postgres', "BEGIN; INSERT INTO m VALUES (100, 'q1'); PREPARE TRANSACTION 'p'");
fails("BEGIN; CALL metrics_drain('m', 'q1')", qr/lock timeout/, 'a prepared transaction is waited for');
$node->safe_psql('postgres', "COMMIT PREPARED 'p'; CALL metrics_maintain()");
is_sql("SELECT count(*) FROM m WHERE key = 'q1' AND tableoid <> 'm_default'::regclass", 11, 'and its row moves, too');

# The limit: a snapshot from before the drain, used after it. What names the key
# finds none of the moved rows, what does not finds all.
$node->safe_psql('postgres', "INSERT INTO m SELECT i, 'r' || i % 3 FROM generate_series(1, 30) i");
my $by_key = "SELECT count(*) FROM m WHERE key = 'r0'";
my $all = "SELECT count(*) FROM m WHERE key LIKE 'r%'";
{
	my $old = session();
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM plain');
	$node->safe_psql('postgres', "CALL metrics_drain('m', 'r0')");
	is($old->query("$by_key; $all"), "0\n30", 'a REPEATABLE READ snapshot from before a drain: rows are found unless the key is named');
	like($old->query("WITH u AS (UPDATE m SET id = id WHERE key = 'r0' RETURNING 1) SELECT count(*) FROM u"), qr/^0$/, 'nor are they updated by key');
	$old->query('ROLLBACK');
	$old->quit;
}
is_sql("$by_key; $all", "10\n30", 'a new one finds all');

# READ COMMITTED takes its snapshot after it has waited; not where SQL runs inside SQL.
$node->safe_psql('postgres', "CREATE FUNCTION stable_count(k text) RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) FROM m WHERE key = k); END'");
my %inside = (
	'a SELECT' => [ '', $by_key ],
	'a prepared statement' => [ "PREPARE p AS $by_key; EXECUTE p;", 'EXECUTE p' ],
	'COPY of a query' => [ '', "COPY ($by_key) TO STDOUT" ],
	'a STABLE function' => [ '', "SELECT stable_count('r0')" ]);
my $key = 1;
for my $what (sort keys %inside)
{
	my ($prepare, $query) = @{ $inside{$what} };
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS waited; CREATE TABLE waited (n text); INSERT INTO m SELECT i, 'w$key' FROM generate_series(1, 10) i");
	s/r0/w$key/g for $prepare, $query;
	my $waiter = session();
	$waiter->query_safe("SET application_name = 'waiter'; $prepare");
	my $drain = session();
	$drain->query_safe("SET client_min_messages = warning; BEGIN; CALL metrics_drain('m', 'w$key')");
	$waiter->query_until(qr/started/, "\\echo started\n\\o $node->{_basedir}/waited\n$query;\n\\o\n\\echo ended\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event_type = 'Lock'") or die;
	$drain->query_safe('COMMIT');
	$_->quit for $drain, $waiter;
	my $count = slurp_file("$node->{_basedir}/waited") =~ s/\s//gr;
	is($count, $what eq 'a SELECT' ? 10 : 0, "$what that waited for a drain counts $count");
	$key++;
}

$node->stop;
done_testing();
