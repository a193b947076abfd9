# A table that cannot be maintained stops no other, and what is wrong with it is
# written down; and the extension can be dropped at any time.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../upgrade/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;
use Worker;

my $node = start_server('failures', conf => q{
	shared_preload_libraries = 'metrics_ext'
	allow_system_table_mods = on
	metrics_ext.naptime = 1s
	metrics_ext.lock_timeout = 1h});
create_routed_store($node, 'one');

#
# Bad tables among good ones.  The store is at both ends of their order.
#
set_and_reload($node, 'metrics_ext.worker' => 'off');
$node->safe_psql('one', q{CREATE ROLE ghost});
my @tables = qw(a_good b_dropped c_ghost d_broken e_scalar f_good);
for my $table (@tables)
{
	$node->safe_psql('one', qq{
		CREATE TABLE $table (k text NOT NULL, v integer) PARTITION BY LIST (k);
		CREATE TABLE ${table}_default PARTITION OF $table DEFAULT;
		SELECT metrics_manage_partitions('$table');
		INSERT INTO $table SELECT 'k' || n % 2, n FROM generate_series(1, 10) n;
	});
}
$node->safe_psql('one', q{
	ALTER TABLE c_ghost OWNER TO ghost;
	ALTER TABLE c_ghost_default OWNER TO ghost;
	DELETE FROM pg_authid WHERE rolname = 'ghost';
	CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE 'public.d_broken%') THEN
			RAISE 'not here' USING ERRCODE = 'ZZ123';
		END IF;
	END $$;
	CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION refuse();
	DROP TABLE b_dropped;
	DROP TABLE e_scalar;
	CREATE TABLE e_scalar (k text);
	UPDATE metrics.metrics_managed_table SET parent = 'e_scalar'
	WHERE parent::oid NOT IN (SELECT oid FROM pg_class) AND parent::oid > (SELECT oid FROM pg_class WHERE relname = 'd_broken');
});
report($node, 'one', 'k1');
my $offset = -s $node->logfile;
set_and_reload($node, 'metrics_ext.worker' => 'on');
arrives($node, 'one', 'the store gets its partitions', 'k1');
for my $table ('a_good', 'f_good')
{
	ok($node->poll_query_until('one', "SELECT count(*) = 0 FROM ${table}_default"), "$table, too");
	is($node->safe_psql('one', "SELECT count(*), count(DISTINCT tableoid), sum(v) FROM $table"), '10|2|55', 'with every row');
}
my $failed = q{FROM metrics_worker_status WHERE failures > 0 AND attempts > 0 AND next_attempt > now() - interval '1 hour'};
ok($node->poll_query_until('one', "SELECT count(*) = 4 $failed"), 'the others are written down');
is($node->safe_psql('one', "SELECT parent::text ~ '^[0-9]+\$', partition_key, sqlstate, message ~ 'drop|exist|not found|OID' $failed AND parent::oid NOT IN (SELECT oid FROM pg_class)"),
	't||42P01|t', 'one that was dropped');
like($node->safe_psql('one', "SELECT message $failed AND parent = 'c_ghost'::regclass"), qr/role|owner/, 'one whose owner was dropped');
is($node->safe_psql('one', "SELECT partition_key ~ '^k[01]\$', sqlstate, message ~ 'not here' $failed AND parent = 'd_broken'::regclass"), 't|ZZ123|t', 'one that refuses its partitions');
is($node->safe_psql('one', "SELECT partition_key, sqlstate $failed AND parent = 'e_scalar'::regclass"), '|42809', 'one that is partitioned no more');
is($node->safe_psql('one', 'SELECT count(*), sum(v) FROM d_broken'), '10|55', 'no row is lost of it');

ok($node->poll_query_until('one', "SELECT min(attempts) >= 2 $failed"), 'it is tried again');
is($node->safe_psql('one', 'SELECT count(*) FROM metrics.metrics_failure WHERE attempts > 6'), 0, 'less and less often');
like(logged($node, qr/d_broken.*not here/, $offset), qr/WARNING/, 'the log says why');
report($node, 'one', 'k2');
arrives($node, 'one', 'the store is not kept waiting by them', 'k2');
$node->safe_psql('one', 'DROP EVENT TRIGGER refuse');
ok($node->poll_query_until('one', 'SELECT count(*) = 0 FROM d_broken_default'), 'repaired, a table catches up');
ok($node->poll_query_until('one', "SELECT count(*) = 0 FROM metrics.metrics_failure WHERE parent = 'd_broken'::regclass"), 'and its failure is gone');
is(logged($node, qr/\b(ERROR|FATAL|PANIC):/, $offset), '', 'the worker has not failed itself');

#
# A store that is locked keeps nobody waiting, and is not forgotten.
#
create_routed_store($node, 'locked');
my $holder = hold($node, 'locked', 'metrics_partition');
report($node, 'locked', 'k1');
my $worker = worker_of($node, 'locked');
release($holder);
arrives($node, 'locked', 'a worker that had to wait goes on', 'k1');
gone($node, 'locked');
$holder = open_session($node, 'locked');
$holder->query(q{BEGIN; SELECT metrics_report(1, 'k2', '{}'); LOCK TABLE metrics.metrics IN SHARE UPDATE EXCLUSIVE MODE});
my $reporter = open_session($node, 'locked');
$holder->query('COMMIT; BEGIN; LOCK TABLE metrics.metrics, metrics.trials IN ACCESS EXCLUSIVE MODE');
ok(process_of($node, 'metrics_ext worker'), 'a worker waits for a store that is locked as a whole, without a lock');
is($node->safe_psql('locked', q{SELECT count(*) FROM pg_locks WHERE NOT granted}), 0, 'and keeps nobody waiting');
$holder->query('COMMIT');
arrives($node, 'locked', 'then it goes on', 'k2');
$_->quit for $holder, $reporter;

#
# DROP EXTENSION while the worker is at work, and a store that is gone.
#
$offset = -s $node->logfile;
create_routed_store($node, 'extension');
$holder = hold($node, 'extension', 'metrics_partition');
$node->safe_psql('extension', q{SELECT metrics_report(1, 'k1', '{}'), metrics_report(1, 'k2', '{}')});
worker_of($node, 'extension');
my $dropper = open_session($node, 'extension');
start_query($dropper, 'DROP EXTENSION metrics_ext CASCADE');
is_waiting($node, $dropper, 'DROP EXTENSION waits for what the worker is doing');
release($holder);
finish_query($dropper);
is($dropper->query(q{SELECT count(*) FROM pg_extension WHERE extname = 'metrics_ext'}), 0, 'not for what it would do next');
ok(gone($node, 'extension'), 'the worker leaves');
is($dropper->query(q{SELECT count(*) FROM (SELECT id FROM metrics.metrics UNION ALL SELECT id FROM metrics.metrics_pending) m}), 2, 'every row is still there');
$dropper->quit;
$node->safe_psql('extension', 'CREATE EXTENSION metrics_ext; SELECT metrics_create_store()');
report($node, 'extension', 'k3');
arrives($node, 'extension', 'created again, the extension goes on', 'k1', 'k2', 'k3');
$node->safe_psql('extension', 'DROP SCHEMA metrics CASCADE');
ok(gone($node, 'extension'), 'without its store, nobody stays');
is(logged($node, qr/\b(ERROR|FATAL|PANIC):/, $offset), '', 'nothing has failed');

$node->stop;
done_testing();
