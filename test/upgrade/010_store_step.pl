# The step 1.0 to 1.1 of a store: by catalog work alone, with every row kept;
# all or nothing; and whoever waits for it goes on.
#
# METRICS_UPGRADE_ROWS sets the number of rows.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;

my $rows = $ENV{METRICS_UPGRADE_ROWS} // 30_000;
my $update = q{ALTER EXTENSION metrics_ext UPDATE TO '1.1'};
my $node = start_server('step');

# Files and scan counters of the three partitions, and of the tables around.
my $scans = q{
	SELECT relname, pg_relation_filenode(relid), seq_scan, seq_tup_read, n_tup_ins, n_tup_upd, n_tup_del
	FROM pg_stat_user_tables WHERE schemaname = 'metrics' AND relname IN ('generic_metrics', 'raw_steps', 'raw_validations', 'trials')
	ORDER BY relname};

# Counters as of now: those of sessions that have ended, too.
sub scans
{
	my ($db) = @_;

	$node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'})
	  or die 'other sessions do not end';
	return $node->safe_psql($db, $scans);
}

#
# No row is read or written.
#
create_store($node, 'catalog', '1.0');
fill_store($node, 'catalog', $rows);
$node->safe_psql('catalog', 'VACUUM ANALYZE');
my $rows_before = rows_of($node, 'catalog');
my $scans_before = scans('catalog');
is(scalar(split /\n/, $rows_before), 3, 'rows in three partitions');

$node->safe_psql('catalog', "$update; SELECT pg_stat_force_next_flush();");
is(scans('catalog'), $scans_before, 'no partition has a new file, was scanned, or had a row written');
is(rows_of($node, 'catalog'), $rows_before, 'rows, ids, archived flags and documents are the same');
is($node->safe_psql('catalog', q{SELECT nextval('metrics.metrics_id_seq') > max(id) FROM metrics.metrics}),
	't', 'the next id is greater than the greatest');
is($node->safe_psql('catalog', q{SELECT to_regtype('metrics.metric_partition_type'), to_regtype('metrics._metric_partition_type')}),
	'|', 'the enum type is gone');
is($node->safe_psql('catalog', q{SELECT partition_type, pg_typeof(partition_type), count(*) FROM metrics.metrics GROUP BY 1, 2 ORDER BY 1}),
	join("\n", map { "$_->[0]|text|$_->[1]" } [ 'GENERIC', int(($rows + 1) / 4) ], [ 'TRAINING', $rows - int(($rows + 1) / 4) - int(($rows + 2) / 4) ],
		[ 'VALIDATION', int(($rows + 2) / 4) ]), 'the key reads as text');
is($node->safe_psql('catalog', q{SELECT extversion, version FROM pg_extension, metrics.metrics_layout WHERE extname = 'metrics_ext'}),
	'1.1|1.1', 'extension and store have the new version');

# The counters would have told: a CHECK that is validated moves them.
$scans_before = scans('catalog');
$node->safe_psql('catalog', q{
	ALTER TABLE metrics.raw_steps ADD CONSTRAINT validated CHECK (partition_type = 'TRAINING'), DROP CONSTRAINT partition_type_check;
	ALTER TABLE metrics.raw_steps RENAME CONSTRAINT validated TO partition_type_check;
	SELECT pg_stat_force_next_flush();
});
isnt(scans('catalog'), $scans_before, 'a CHECK that PostgreSQL validates is a scan');

# Once more is nothing.
my $catalog_before = catalog_rows($node, 'catalog');
$node->safe_psql('catalog', $update);
is($node->safe_psql('catalog', 'SELECT metrics_upgrade_store()'), '1.1', 'a second upgrade returns the layout');
is($node->safe_psql('catalog', q{SELECT count(*) FROM metrics_upgrade_plan() WHERE layout = '1.1'}), '0', 'an upgraded store has no plan for the layout that it has');
is($node->safe_psql('catalog', 'SELECT metrics_create_store()'), 'metrics.metrics', 'the store is there to be taken up');
same_lines(catalog_rows($node, 'catalog'), $catalog_before, 'and the catalog stays as it is');
is(rows_of($node, 'catalog'), $rows_before, 'the rows, too');

# What the tables say is true: no row of another key gets in.
refuses($node, 'catalog', q{INSERT INTO metrics.raw_steps (trial_id, total_batches, partition_type) VALUES (1, -1, 'VALIDATION')},
	'23514', 'violates', 'a row of another key is refused by a partition');
refuses($node, 'catalog', q{INSERT INTO metrics.metrics (trial_id, total_batches, partition_type) VALUES (1, -1, 'training')},
	'23514', 'no partition of relation "metrics" found', 'and by the parent');
$node->safe_psql('catalog', 'VACUUM FULL metrics.raw_steps; REINDEX TABLE metrics.raw_steps;');
is(rows_of($node, 'catalog'), $rows_before, 'a rewrite by VACUUM FULL afterwards keeps the rows');

# ALTER EXTENSION mutes what its script says, so to hear it the same step is
# taken by a store that a newer extension takes up.
create_store($node, 'heard', '1.0');
fill_store($node, 'heard', 1000);
my ($stdout, $stderr);
$node->psql('heard', q{
	DROP EXTENSION metrics_ext CASCADE;
	CREATE EXTENSION metrics_ext;
	SET client_min_messages = debug1;
	SELECT metrics_create_store();
}, stdout => \$stdout, stderr => \$stderr, on_error_die => 1);
for my $partition (@Store::PARTITIONS, 'system_metrics')
{
	like($stderr, qr/DEBUG:  partition constraint for table "$partition" is implied by existing constraints/,
		"the partition constraint of $partition is implied");
}
unlike($stderr, qr/verifying table|rewriting table|validating foreign key/, 'nothing is verified, rewritten or validated');

#
# Whoever waits goes on.
#
create_store($node, 'waiters', '1.0');
fill_store($node, 'waiters', 100);

my %statements = (
	'INSERT into metrics' => q{
		INSERT INTO metrics.metrics (trial_id, total_batches, metrics, metric_group, partition_type)
		VALUES (1, 1001, '{"by": "insert"}', 'training', 'TRAINING')},
	'INSERT into raw_steps' => q{
		INSERT INTO metrics.raw_steps (trial_id, total_batches, metrics) VALUES (1, 1002, '{"by": "partition"}')},
	'prepared INSERT' => q{EXECUTE writing(1003)},
	'SELECT' => q{SELECT 'read', count(*), bool_and(partition_type = 'TRAINING') FROM metrics.metrics WHERE partition_type = 'TRAINING' AND total_batches <= 100},
	'prepared SELECT' => q{EXECUTE reading(100)},
	'metrics_report()' => q{SELECT 'reported', metrics_report(1, 'training', '{"by": 1}', 1004, 1) > 0},
	'first metrics_report()' => q{SELECT 'reported', metrics_report(1, 'inference', '{"by": 2}', 1005, 1) > 0});
my %sessions = map { $_ => open_session($node, 'waiters') } keys %statements;

# Plans that are ready before the step, and used often enough to be generic.
$sessions{'prepared INSERT'}->query_safe(q{
	PREPARE writing(int) AS INSERT INTO metrics.metrics (trial_id, total_batches, metrics, metric_group, partition_type)
	VALUES (1, $1, '{"by": "prepared"}', 'training', 'TRAINING')});
$sessions{'prepared SELECT'}->query_safe(q{
	PREPARE reading(int) AS SELECT 'read', count(*), count(DISTINCT partition_type) FROM metrics.metrics WHERE partition_type = 'TRAINING' AND total_batches <= $1});
for my $i (1 .. 6)
{
	$sessions{'prepared INSERT'}->query_safe("EXECUTE writing(1010 + $i)");
	$sessions{'prepared SELECT'}->query_safe('EXECUTE reading(100)');
	$sessions{'metrics_report()'}->query_safe(
		qq{SELECT metrics_report(1, 'training', '{"by": 1}', 1020 + $i, 1)});
}

# A reader of one partition holds up the step while it has the other locks.
my $reader = open_session($node, 'waiters');
$reader->query_safe('BEGIN');
$reader->query_safe('SELECT count(*) FROM metrics.raw_validations');
my $upgrade = open_session($node, 'waiters');
start_query($upgrade, $update);
is_waiting($node, $upgrade, 'the step waits for a reader of raw_validations');
for my $name (sort keys %statements)
{
	start_query($sessions{$name}, $statements{$name});
	is_waiting($node, $sessions{$name}, "$name waits for the step");
}
$reader->query_safe('COMMIT');
is(join('', finish_query($upgrade)), '', 'the step is done');
my %expected = (
	'INSERT into metrics' => '', 'INSERT into raw_steps' => '', 'prepared INSERT' => '',
	'SELECT' => 'read|50|t', 'prepared SELECT' => 'read|50|1',
	'metrics_report()' => 'reported|t', 'first metrics_report()' => 'reported|t');
for my $name (sort keys %statements)
{
	my ($output, $errors) = finish_query($sessions{$name});
	is($errors, '', "$name goes on");
	is($output, $expected{$name}, "$name gives what it should");
}
is($node->safe_psql('waiters', q{
	SELECT total_batches, tableoid::regclass, metric_group, partition_type, metrics -> 'by', metrics -> 'avg_metrics' -> 'by'
	FROM metrics.metrics WHERE total_batches BETWEEN 1001 AND 1005 ORDER BY total_batches}),
	join("\n", '1001|metrics.raw_steps|training|TRAINING|"insert"|',
		'1002|metrics.raw_steps|training|TRAINING|"partition"|',
		'1003|metrics.raw_steps|training|TRAINING|"prepared"|',
		'1004|metrics.raw_steps|training|TRAINING||1',
		'1005|metrics.generic_metrics|inference|GENERIC||2'),
	'and their rows are right');

# Sessions from before do what is new.
my ($profiling) = $sessions{'metrics_report()'}->query_safe(
	q{SELECT metrics_report(1, 'cpu', '{"a0": {"cpu_util": 1}}', NULL, 1, '2024-02-29T13:04:49.388948-05:00')});
is($node->safe_psql('waiters', "SELECT tableoid::regclass, metric_group, total_batches IS NULL FROM metrics.metrics WHERE id = $profiling"),
	'metrics.system_metrics|cpu|t', 'a session from before reports profiling metrics');
$_->quit for values %sessions, $reader, $upgrade;

# A statement that was prepared with the enum as a parameter's type has to be
# prepared again.
create_store($node, 'typed', '1.0');
fill_store($node, 'typed', 10);
my $typed = open_session($node, 'typed');
$typed->query_safe('PREPARE typed AS INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type) VALUES (1, $1, $2, $3)');
$typed->query_safe(q{EXECUTE typed(100, 'training', 'TRAINING')});
upgrade($node, 'typed');
start_query($typed, q{EXECUTE typed(101, 'training', 'TRAINING')});
like((finish_query($typed))[1], qr/ERROR: /, 'a parameter of the enum type is an error');
$typed->query_safe('DEALLOCATE typed');
$typed->query_safe('PREPARE typed AS INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type) VALUES (1, $1, $2, $3)');
$typed->query_safe(q{EXECUTE typed(101, 'training', 'TRAINING')});
is($typed->query('SELECT count(*) FROM metrics.metrics WHERE total_batches IN (100, 101)'), '2', 'until it is prepared again');
$typed->quit;

#
# All or nothing.
#
create_store($node, 'whole', '1.0');
fill_store($node, 'whole', 100);
$rows_before = rows_of($node, 'whole');

# What makes the step fail, what takes that away, and the error.
my @obstacles = (
	[ 'an event trigger that raises when system_metrics is attached', q{
		CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass('metrics.system_metrics')) THEN
				RAISE EXCEPTION 'not today' USING ERRCODE = 'MX001';
			END IF;
		END $$;
		CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION public.refuse();
	}, 'DROP EVENT TRIGGER refuse', 'MX001', 'not today' ],
	[ 'an event trigger that raises when the enum is dropped', q{
		CREATE FUNCTION public.refuse_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_type = 'type' AND object_name = 'metric_partition_type') THEN
				RAISE EXCEPTION 'keep it' USING ERRCODE = 'MX002';
			END IF;
		END $$;
		CREATE EVENT TRIGGER refuse ON sql_drop EXECUTE FUNCTION public.refuse_drop();
	}, 'DROP EVENT TRIGGER refuse', 'MX002', 'keep it' ],
	[ 'a table named system_metrics', 'CREATE TABLE metrics.system_metrics (mine int)',
		'DROP TABLE metrics.system_metrics', '2BP01', 'name of a partition to be created' ],
	[ 'a partition for two keys', q{
		ALTER TABLE metrics.metrics DETACH PARTITION metrics.generic_metrics;
		ALTER TYPE metrics.metric_partition_type ADD VALUE 'OTHER';
		ALTER TABLE metrics.metrics ATTACH PARTITION metrics.generic_metrics FOR VALUES IN ('GENERIC', 'OTHER');
	}, q{
		ALTER TABLE metrics.metrics DETACH PARTITION metrics.generic_metrics;
		ALTER TABLE metrics.metrics ATTACH PARTITION metrics.generic_metrics FOR VALUES IN ('GENERIC');
	}, '2BP01', 'depend on the key' ],
	[ 'a DEFAULT partition', 'CREATE TABLE metrics.other PARTITION OF metrics.metrics DEFAULT',
		'DROP TABLE metrics.other', '2BP01', 'depend on the key' ]);
for my $obstacle (@obstacles)
{
	my ($name, $create, $drop, $sqlstate, $message) = @$obstacle;

	$node->safe_psql('whole', $create);
	$catalog_before = catalog_rows($node, 'whole');
	refuses($node, 'whole', $update, $sqlstate, $message, "$name stops the step");
	same_lines(catalog_rows($node, 'whole'), $catalog_before, "$name: the catalog is as before");
	is(rows_of($node, 'whole'), $rows_before, "$name: the rows are as before");
	$node->safe_psql('whole', $drop);
}

# Locks that do not come, and an end from outside.
my $holder = open_session($node, 'whole');
$holder->query_safe('BEGIN');
$holder->query_safe('SELECT count(*) FROM metrics.raw_validations');
$catalog_before = catalog_rows($node, 'whole');
refuses($node, 'whole', "SET lock_timeout = '10ms'; $update", '55P03', 'lock timeout', 'lock_timeout ends the wait for a lock');
same_lines(catalog_rows($node, 'whole'), $catalog_before, 'lock_timeout: the catalog is as before');
my $cancelled = open_session($node, 'whole');
start_query($cancelled, $update);
is_waiting($node, $cancelled, 'the step waits');
$node->safe_psql('whole', "SELECT pg_cancel_backend($cancelled->{backend})");
like((finish_query($cancelled))[1], qr/57014/, 'and is cancelled');
same_lines(catalog_rows($node, 'whole'), $catalog_before, 'a cancelled step: the catalog is as before');
$_->quit for $holder, $cancelled;

# In a transaction that is rolled back, and one with a deferred check pending.
my $undone = open_session($node, 'whole');
$undone->query_safe('BEGIN');
$undone->query_safe($update);
is($undone->query(q{SELECT count(*) FROM metrics.metrics WHERE partition_type = 'TRAINING'}), '50', 'a step in a transaction');
$undone->query_safe('ROLLBACK');
is($undone->query(q{SELECT count(*) FROM metrics.metrics WHERE partition_type = 'TRAINING'::metrics.metric_partition_type}), '50',
	'that is rolled back: the session sees the enum again');
$undone->query_safe(q{INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type) VALUES (1, 5000, 'training', 'TRAINING')});
$undone->query_safe('DELETE FROM metrics.metrics WHERE total_batches = 5000');
$undone->quit;
same_lines(catalog_rows($node, 'whole'), $catalog_before, 'and the catalog is as before');

$node->safe_psql('whole', q{
	ALTER TABLE metrics.raw_steps ADD CONSTRAINT mine FOREIGN KEY (trial_id) REFERENCES metrics.trials (id) DEFERRABLE INITIALLY DEFERRED});
refuses($node, 'whole', qq{
	BEGIN;
	INSERT INTO metrics.raw_steps (trial_id, total_batches) VALUES (1, 5000);
	$update;
}, '55006', 'pending trigger events', 'rows with a deferred check pending are a clear error');
$node->safe_psql('whole', qq{
	BEGIN;
	SET CONSTRAINTS ALL IMMEDIATE;
	INSERT INTO metrics.raw_steps (trial_id, total_batches) VALUES (1, 5000);
	$update;
	COMMIT;
	DELETE FROM metrics.metrics WHERE total_batches = 5000;
});
is(rows_of($node, 'whole'), $rows_before, 'and after all of this the step works');

#
# Made, upgraded and used in one transaction, when the relation cache holds
# entries that were never committed.
#
my $use = q{
	INSERT INTO metrics.trials (id) VALUES (1);
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type)
		VALUES (1, 1, 'training', 'TRAINING'), (1, 2, 'validation', 'VALIDATION'), (1, 3, 'inference', 'GENERIC'), (1, NULL, 'cpu', 'PROFILING');
	SELECT tableoid::regclass, partition_type, total_batches FROM metrics.metrics WHERE partition_type = 'PROFILING';
	SELECT tableoid::regclass, partition_type, total_batches FROM metrics.metrics WHERE partition_type = 'TRAINING';
	SELECT tableoid::regclass, partition_type, total_batches FROM metrics.metrics WHERE partition_type IN ('GENERIC', 'VALIDATION') ORDER BY total_batches;
	UPDATE metrics.metrics SET partition_type = 'GENERIC', metric_group = 'moved', total_batches = 7 WHERE partition_type = 'PROFILING';
	SELECT tableoid::regclass, metric_group FROM metrics.metrics WHERE total_batches = 7;
	EXPLAIN (COSTS OFF) SELECT FROM metrics.metrics WHERE partition_type = 'PROFILING';
	SELECT pg_get_partkeydef('metrics.metrics'::regclass);
};
my $used = join "\n", 'metrics.system_metrics|PROFILING|', 'metrics.raw_steps|TRAINING|1',
  'metrics.raw_validations|VALIDATION|2', 'metrics.generic_metrics|GENERIC|3', 'metrics.generic_metrics|moved',
  'Seq Scan on system_metrics metrics', q{  Filter: (partition_type = 'PROFILING'::text)}, 'LIST (partition_type)';
my $again = q{
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type) VALUES (1, NULL, 'cpu', 'PROFILING');
	SELECT tableoid::regclass, count(*) FROM metrics.metrics GROUP BY tableoid ORDER BY tableoid::regclass::text;
	EXPLAIN (COSTS OFF) SELECT FROM metrics.metrics WHERE partition_type = 'TRAINING';
};
my $used_again = join "\n", 'metrics.generic_metrics|2', 'metrics.raw_steps|1', 'metrics.raw_validations|1', 'metrics.system_metrics|1',
  'Seq Scan on raw_steps metrics', q{  Filter: (partition_type = 'TRAINING'::text)};
my %creations = (
	fresh => 'CREATE EXTENSION metrics_ext; SELECT metrics_create_store();',
	savepoint => 'SAVEPOINT s; CREATE EXTENSION metrics_ext; SELECT metrics_create_store(); RELEASE s;',
	retried => q{SAVEPOINT s; CREATE EXTENSION metrics_ext; SELECT metrics_create_store(); ROLLBACK TO s;
		CREATE EXTENSION metrics_ext; SELECT metrics_create_store();},
	upgraded => qq{CREATE EXTENSION metrics_ext VERSION '1.0'; SELECT metrics_create_store();
		SELECT FROM metrics.metrics WHERE partition_type = 'TRAINING'; $update;});
for my $name (sort keys %creations)
{
	$node->safe_psql('postgres', "CREATE DATABASE one_$name");
	my $output = $node->safe_psql("one_$name", "BEGIN; $creations{$name} $use COMMIT;");
	$output =~ s/^(metrics\.metrics\n)+//;
	is($output, $used, "made ($name) and used in one transaction");
	is($node->safe_psql("one_$name", $again), $used_again, "and another session goes on ($name)");
}
my $session = open_session($node, 'one_fresh');
$session->query_safe('DROP EXTENSION metrics_ext CASCADE; DROP SCHEMA metrics CASCADE');
$session->query_safe("BEGIN; $creations{fresh}");
$session->query_safe($use);
$session->query_safe('COMMIT');
is($session->query_safe($again), $used_again, 'the session that made it goes on after COMMIT');
$session->quit;

$node->stop;
done_testing();
