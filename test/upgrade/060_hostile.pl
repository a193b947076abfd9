# Steps under hostile conditions: savepoints around them, operators of other
# users that would fit better than PostgreSQL's own, and partitions of the user's
# that cannot be taken along.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;

my $update = q{ALTER EXTENSION metrics_ext UPDATE TO '1.1'};
my $node = start_server('hostile', conf => 'statement_timeout = 60s');
my $trial = q{SELECT metrics_register_trial(1, 0, 1, 'loss')};
# A report of each kind that layout 1.0 has, at some steps.
sub reports { my ($steps) = @_; return qq{SELECT count(metrics_report(1, g, '{"loss": 1}', $steps)) FROM unnest('{training,validation,inference}'::text[]) g} }
my $rows = q{SELECT count(*) FROM metrics_rows(1)};
my $layout = q{SELECT version, (SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'metrics.metrics'::regclass AND attname = 'partition_type') FROM metrics.metrics_layout};
my $old = '1.0|metrics.metric_partition_type';
my $new = '1.1|text';
my $holds = q{SELECT bool_and(summary_metrics = metrics_recompute_summary(id)) FROM metrics.trials};

# A test: what a script says whose statements are sent one by one, and its errors
# with SQLSTATE, after another one has prepared the database.
$node->safe_psql('postgres', 'CREATE DATABASE script');
sub says
{
	my ($name, $prepare, $statements, $expected, $error) = @_;
	my ($stdout, $stderr);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$node->safe_psql('script', "DROP EXTENSION IF EXISTS metrics_ext CASCADE; DROP SCHEMA IF EXISTS metrics CASCADE; $prepare");
	IPC::Run::run([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('script') ],
		'<' => \join('', map { "$_;\n" } 'SET client_min_messages = error', @$statements), '>' => \$stdout, '2>' => \$stderr);
	# Without the results of void functions.
	is(join("\n", grep { /./ } split /\n/, $stdout), join("\n", @$expected), $name);
	like(join("\n", $stderr =~ /((?:ERROR:  |FATAL|server closed).*)/g), $error // qr/^$/, '... and its errors');
	return;
}

#
# Savepoints.
#
my $create_1_0 = q{CREATE EXTENSION metrics_ext VERSION '1.0'; SELECT metrics_create_store()};
my @create_1_0 = (q{CREATE EXTENSION metrics_ext VERSION '1.0'}, 'SELECT count(metrics_create_store())', $trial);
my $after_savepoint = qr/^ERROR:  55000: cannot change the key of "metrics" after a savepoint in the transaction that created it$/;

says('created and updated in one transaction', '', [ 'BEGIN', @create_1_0, reports(1), $update, reports(2), $layout, 'COMMIT', $layout, reports(3), $rows, $holds ],
	[ 1, 3, 3, $new, $new, 3, 9, 't' ]);
says('with a savepoint in between that is gone', '', [ 'BEGIN', @create_1_0, 'SAVEPOINT s', reports(1), 'ROLLBACK TO s', reports(2), 'RELEASE s', $update, reports(3), $layout, 'COMMIT', $layout, reports(4), $rows, $holds ],
	[ 1, 3, 3, 3, $new, $new, 3, 9, 't' ]);
says('an update after a savepoint', '', [ 'BEGIN', @create_1_0, reports(1), 'SAVEPOINT s', $update, 'ROLLBACK TO s', $layout, reports(2), 'COMMIT', $layout, reports(3), $rows, $holds, $update, $layout, reports(4), $rows, $holds ],
	[ 1, 3, $old, 3, $old, 3, 9, 't', $new, 3, 12, 't' ], $after_savepoint);
says('several of them, at several depths', '', [ 'BEGIN', @create_1_0, reports(1), 'SAVEPOINT s', 'SAVEPOINT t', $update, 'ROLLBACK TO t', reports(2), 'RELEASE t', $update, 'ROLLBACK TO s', reports(3), $layout, 'RELEASE s', $update, reports(4), $layout, 'COMMIT', reports(5), $rows, $holds ],
	[ 1, 3, 3, 3, $old, 3, $new, 3, 12, 't' ], qr/^(ERROR:  55000: cannot change the key of "metrics" after a savepoint in the transaction that created it\n?){2}$/);
says('created after a savepoint', '', [ 'BEGIN', 'SAVEPOINT s', @create_1_0, reports(1), $update, reports(2), $layout, 'ROLLBACK TO s', q{SELECT count(*) FROM pg_extension WHERE extname = 'metrics_ext'}, @create_1_0, $update, reports(1), $layout, 'COMMIT', $layout, reports(2), $rows, $holds ],
	[ 1, 3, 3, $new, 0, 1, 3, $new, $new, 3, 6, 't' ]);
says('a store that a savepoint took up', '', [ 'BEGIN', q{CREATE EXTENSION metrics_ext VERSION '1.0'}, 'SAVEPOINT s', 'SELECT count(metrics_create_store())', $trial, reports(1), 'RELEASE s', $update, reports(2), $layout, 'COMMIT', reports(3), $rows, $holds ],
	[ 1, 3, 3, $new, 3, 9, 't' ]);
says('a new store of 1.1 after a savepoint', '', [ 'BEGIN', q{CREATE EXTENSION metrics_ext VERSION '1.1'}, 'SAVEPOINT s', 'SELECT count(metrics_create_store())', $trial, reports(1), 'ROLLBACK TO s', 'SELECT count(metrics_create_store())', $trial, reports(1), $layout, 'SAVEPOINT t', reports(2), 'ROLLBACK TO t', reports(3), 'COMMIT', $layout, $rows, $holds ],
	[ 1, 3, 1, 3, $new, 3, 3, $new, 6, 't' ]);

# A store of an earlier transaction: anything goes.
my $prepare = "$create_1_0; $trial; " . reports(1);
says('an update that is rolled back to a savepoint', $prepare, [ 'BEGIN', 'SAVEPOINT s', $update, reports(2), $layout, 'ROLLBACK TO s', $layout, reports(3), $rows, 'COMMIT', $layout, reports(4), $rows, $holds ],
	[ 3, $new, $old, 3, 6, $old, 3, 9, 't' ]);
says('in a session that has reported before', $prepare, [ reports(2), $rows, 'BEGIN', reports(3), 'SAVEPOINT s', $update, reports(4), q{SELECT metrics_report(1, 'cpu', '{"u": 1}') > 0}, 'ROLLBACK TO s', reports(4), $layout, $rows, 'SAVEPOINT t', $update, 'RELEASE t', reports(5), $layout, 'COMMIT', $layout, reports(6), $rows, $holds ],
	[ 3, 6, 3, 3, 't', 3, $old, 12, 3, $new, $new, 3, 18, 't' ]);
says('rolled back to and then done', $prepare, [ 'BEGIN', 'SAVEPOINT s', $update, 'ROLLBACK TO s', reports(2), $update, reports(3), $layout, 'COMMIT', $layout, reports(4), $rows, $holds ],
	[ 3, 3, $new, $new, 3, 12, 't' ]);
says('rolled back altogether', $prepare, [ 'BEGIN', 'SAVEPOINT s', reports(2), $update, reports(3), 'RELEASE s', reports(4), 'ROLLBACK', $layout, reports(5), $rows, $holds, $update, $layout, reports(6), $rows, $holds ],
	[ 3, 3, 3, $old, 3, 6, 't', $new, 3, 9, 't' ]);
says('taken up and updated by metrics_create_store()', "$prepare; DROP EXTENSION metrics_ext CASCADE; CREATE EXTENSION metrics_ext VERSION '1.1'", [ 'BEGIN', 'SAVEPOINT s', 'SELECT count(metrics_create_store())', reports(2), $layout, 'ROLLBACK TO s', $layout, 'SELECT count(metrics_create_store())', reports(2), 'COMMIT', $layout, $rows, $holds ],
	[ 1, 3, $new, $old, 1, 3, $new, 6, 't' ]);

#
# Operators of other users.
#
$node->safe_psql('postgres', 'CREATE ROLE trapper');
# All names of operators that queries might use, for all pairs of types that a
# query might have on their sides, where PostgreSQL has no such operator itself.
my $traps = q{
	GRANT CREATE, USAGE ON SCHEMA public TO trapper;
	GRANT USAGE ON SCHEMA metrics TO trapper;
	GRANT USAGE ON TYPE metrics.metric_partition_type TO trapper;
	CREATE SCHEMA trap AUTHORIZATION trapper;
	SET ROLE trapper;
	CREATE TABLE trap.log (left_type regtype, right_type regtype);
	CREATE FUNCTION trap.note(l oid, r oid) RETURNS void LANGUAGE sql AS 'INSERT INTO trap.log VALUES ($1, $2)';
	SET search_path TO pg_catalog;
	DO $$
	DECLARE
		types regtype[] := ARRAY['bool', '"char"', 'name', 'int2', 'int4', 'int8', 'oid', 'regclass', 'text', 'varchar', 'jsonb', 'float8', 'timestamptz',
			'tid', 'text[]', 'int4[]', 'metrics.metric_partition_type', 'metrics.metric_partition_type[]'];
		names text[] := ARRAY['=', '<>', '<', '<=', '>', '>=', '||', '+', '-', '->', '->>', '#>>'];
		l regtype;
		r regtype;
		operator text;
		result text;
	BEGIN
		FOR l, r IN SELECT a, b FROM unnest(types) a, unnest(types) b LOOP
			FOREACH result IN ARRAY ARRAY['boolean', 'text'] LOOP
				EXECUTE format('CREATE FUNCTION trap.sprung_%s(l %s, r %s, OUT result %s) LANGUAGE plpgsql SECURITY DEFINER AS ' ||
					'''BEGIN PERFORM trap.note(%s, %s); END''', result, l, r, result, l::oid, r::oid);
			END LOOP;
			FOREACH operator IN ARRAY names LOOP
				CONTINUE WHEN EXISTS (SELECT FROM pg_operator WHERE oprname = operator AND oprleft = l AND oprright = r AND oprnamespace = 'pg_catalog'::regnamespace);
				EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.sprung_%s)',
					operator, l, r, CASE WHEN operator ~ '[=<>]' AND operator NOT IN ('->', '->>', '#>>') THEN 'boolean' ELSE 'text' END);
			END LOOP;
		END LOOP;
	END $$;
};
my @calls = (
	q{SELECT metrics_register_trial(1, 0, 1, 'loss')},
	q{SELECT count(metrics_report(1, g, '{"loss": 1, "epoch": 1}', 1)) FROM unnest('{training,validation,inference}'::text[]) g},
	q{SELECT count(metrics_report(1, g, '{"more": 1}', 1)) FROM unnest('{training,validation,inference}'::text[]) g},
	q{SELECT metrics_register_trial(1, 1)},
	q{SELECT metrics_register_trial(1, 1, 2, 'more', false)},
	q{SELECT count(metrics_report(1, g, '{"loss": 1}', 1, 1)) FROM unnest('{training,validation,inference}'::text[]) g},
	q{SELECT metrics_report_batch('[{"trial_id": 1, "metric_group": "training", "metrics": {"loss": 2}, "steps_completed": 2, "trial_run_id": 1}]')},
	q{SELECT metrics_recompute_summary(1)},
	q{SELECT metrics_populate(1, 10)},
	q{SELECT count(*) FROM metrics_rows(1) a, metrics_rows(1, 'training', 0, 1, 1) b},
	q{SELECT count(*) FROM metrics_timeseries(1, 'training', 'loss', 10, 0, 9, '2000-01-01', '2100-01-01')},
	q{SELECT count(*) FROM metrics_trials_snapshot(1, 'training', 'loss', 1, 1, '2000-01-01')},
	q{SELECT count(*) FROM metrics_names(1)},
	q{SELECT metrics_best_trial(1)},
	q{SELECT metrics_grant('pg_monitor', 'writer')},
	q{SELECT metrics_create_store()},
	q{SELECT metrics_upgrade_store()},
	q{SELECT count(*) FROM metrics_upgrade_plan()});
my @calls_1_1 = (
	q{SELECT metrics_report(1, 'cpu', '{"a": {"u": 1}}', NULL, 1, '2024-01-01 00:00+00')},
	q{SELECT metrics_report(1, 'training', '{"loss": 1}', 5, 1, '2024-01-01 00:00+00')},
	q{SELECT count(*) FROM metrics_profiling_rows(1, 'cpu', 'u', 'a', NULL, '2000-01-01', '2100-01-01', '2000-01-01', 1, 5)},
	q{SELECT count(*) FROM metrics_profiling_series(1)},
	q{SELECT count(*) FROM metrics_names(1)},
	q{SELECT count(*) FROM metrics_timeseries(1, 'cpu', 'u')});
my $sprung = q{SELECT string_agg(DISTINCT format('%s %s', left_type, right_type), ', ') FROM trap.log};

# A test: none of these statements springs a trap, by the log of the trapper.
sub springs_nothing
{
	my ($db, $layout, @statements) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	for my $statement (@statements)
	{
		my ($rc, $stdout, $stderr) = $node->psql($db, $statement);
		my $log = $node->safe_psql($db, "$sprung; TRUNCATE trap.log");

		is($rc == 0 ? $log : "$log $stderr", '', "layout $layout springs no trap: $statement");
	}
	return;
}

create_store($node, 'trapped', '1.0');
$node->safe_psql('trapped', $traps);
cmp_ok($node->safe_psql('trapped', q{SELECT count(*) FROM pg_operator WHERE oprnamespace = 'public'::regnamespace}), '>', 2000, 'there are traps');
$node->safe_psql('trapped', q{SELECT count(*) FROM pg_class WHERE oid = 'pg_class'::regclass});
is($node->safe_psql('trapped', "$sprung; TRUNCATE trap.log"), 'oid regclass', 'which spring');
is($node->safe_psql('trapped', "SELECT 'GENERIC'::metrics.metric_partition_type = 'GENERIC'; $sprung; TRUNCATE trap.log"),
	"\nmetrics.metric_partition_type metrics.metric_partition_type", 'also on the key');
springs_nothing('trapped', '1.0', @calls);
# Those on the key stand in the way of the step, as all that uses its type does.
$node->safe_psql('trapped', q{DO $$
	DECLARE
		f regprocedure;
	BEGIN
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'trap'::regnamespace AND proargtypes::oid[] && ARRAY['metrics.metric_partition_type', 'metrics.metric_partition_type[]']::regtype[]::oid[] LOOP
			EXECUTE format('DROP FUNCTION %s CASCADE', f);
		END LOOP;
	END $$});
springs_nothing('trapped', '1.0', $update);
is($node->safe_psql('trapped', 'SELECT version FROM metrics.metrics_layout'), '1.1', 'the store is updated');
springs_nothing('trapped', '1.1', (map { s/metrics_register_trial\(1, /metrics_register_trial(9, /r =~ s/metrics_report\(1, /metrics_report(9, /r =~ s/"trial_id": 1/"trial_id": 9/r } @calls), @calls_1_1);

#
# Partitions and relations of the user's that stand in the way, and those that do not.
#
# How it is named, SQL that makes it, and SQL that takes it away.
my $label = 'ALTER TYPE metrics.metric_partition_type ADD VALUE IF NOT EXISTS';
my $like = 'LIKE metrics.metrics INCLUDING DEFAULTS';
my @blockers = (
	[ 'partition metrics.rest, which is not for one key', 'CREATE TABLE metrics.rest PARTITION OF metrics.metrics DEFAULT', 'DROP TABLE metrics.rest' ],
	[ 'partition metrics.two, which is not for one key', q{CREATE TABLE metrics.two PARTITION OF metrics.metrics FOR VALUES IN ('MINE', 'YOURS')}, 'DROP TABLE metrics.two' ],
	[ 'partition public."odd ""two""", which is not for one key', q{CREATE TABLE public."odd ""two""" PARTITION OF metrics.metrics FOR VALUES IN ('MINE', 'YOURS')}, 'DROP TABLE public."odd ""two"""' ],
	[ 'partition metrics.nothing, which is not for one key', q{CREATE TABLE metrics.nothing PARTITION OF metrics.metrics FOR VALUES IN (NULL)}, 'DROP TABLE metrics.nothing' ],
	[ 'relation metrics.system_metrics', 'CREATE TABLE metrics.system_metrics (a int)', 'DROP TABLE metrics.system_metrics' ],
	[ 'relation metrics.system_metrics', 'CREATE VIEW metrics.system_metrics AS SELECT 1', 'DROP VIEW metrics.system_metrics' ],
	[ 'relation metrics.system_metrics', 'CREATE SEQUENCE metrics.system_metrics', 'DROP SEQUENCE metrics.system_metrics' ],
	[ 'relation metrics.system_metrics', 'CREATE INDEX system_metrics ON metrics.raw_steps (end_time)', 'DROP INDEX metrics.system_metrics' ],
	[ 'column r of table public.keeps', 'CREATE TABLE public.keeps (r metrics.metrics)', 'DROP TABLE public.keeps' ],
	[ 'column r of table public.keeps', 'CREATE TABLE public.keeps (r metrics.generic_metrics[])', 'DROP TABLE public.keeps' ],
	[ 'column r of composite type public.keeps', 'CREATE TYPE public.keeps AS (r metrics.raw_validations)', 'DROP TYPE public.keeps' ],
	[ 'column r of materialized view public.keeps', 'CREATE MATERIALIZED VIEW public.keeps AS SELECT m AS r FROM metrics.raw_steps m', 'DROP MATERIALIZED VIEW public.keeps' ]);

create_store($node, 'blocked', '1.0');
fill_store($node, 'blocked', 100);
$node->safe_psql('blocked', "$label 'MINE'");
$node->safe_psql('blocked', "$label 'YOURS'");
my $rows_before = rows_of($node, 'blocked');
for my $blocker (@blockers)
{
	my ($object, $create, $drop) = @$blocker;

	$node->safe_psql('blocked', $create);
	my $before = catalog_rows($node, 'blocked');
	# Objects may be named with or without the schemas that are on the path.
	my $pattern = quotemeta($object) =~ s/metrics\\\./(?:metrics\\.)?/r =~ s/public\\\./(?:public\\.)?/r;
	like(fails($node, 'blocked', $update), qr/ERROR:  2BP01: .*DETAIL:  (?:[^\n]*\n)*?[^\n]*$pattern\n.*HINT:/s, "refused: $create");
	like($node->safe_psql('blocked', 'SELECT action FROM metrics_upgrade_plan() WHERE estimate IS NULL'), qr/^refused: .*$pattern$/m, 'the plan lists it');
	same_lines(catalog_rows($node, 'blocked'), $before, 'nothing is changed');
	$node->safe_psql('blocked', $drop);
}

# Of several that are in the way all are named, each once.
$node->safe_psql('blocked', join(';', map { $blockers[$_][1] } (0, 1, 4, 8)));
my $error = fails($node, 'blocked', $update);
like($error, qr/partition (metrics\.)?$_,/, "of several all are named: $_") for qw(rest two);
is($node->safe_psql('blocked', 'SELECT count(*), count(DISTINCT action) FROM metrics_upgrade_plan() WHERE estimate IS NULL'), '4|4', 'the plan lists each once');
$node->safe_psql('blocked', join(';', map { $blockers[$_][2] } (0, 1, 4, 8)));

# A partition for one key is taken along.
$node->safe_psql('blocked', q{
	CREATE TABLE public.mine PARTITION OF metrics.metrics FOR VALUES IN ('MINE');
	INSERT INTO metrics.metrics (trial_id, metric_group, partition_type) SELECT t, 'mine', 'MINE' FROM generate_series(1, 10) t;
	INSERT INTO metrics.metrics_partition_kind VALUES ('MINE', 'batch');
	INSERT INTO metrics.metrics_route VALUES ('mine', 'MINE');
});
$rows_before = rows_of($node, 'blocked');
is($node->safe_psql('blocked', q{SELECT lock_mode FROM metrics_upgrade_plan() WHERE action = 'lock' AND relation = 'mine'}), 'AccessExclusiveLock', 'a partition of the user\'s is among the locks');
is($node->safe_psql('blocked', q{SELECT count(*) FROM metrics_upgrade_plan() WHERE estimate IS NULL}), '0', 'and in nobody\'s way');
# The locks that the plan names are those that are taken.
my $locks = q{SELECT string_agg(DISTINCT relation || ' ' || lock_mode, ', ') FROM metrics_upgrade_plan() WHERE action = 'lock'};
my $plan = $node->safe_psql('blocked', $locks);
is($node->safe_psql('blocked', "BEGIN; $update; " . q{
	SELECT string_agg(DISTINCT c.relname || ' ' || mode, ', ') FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
	WHERE pid = pg_backend_pid() AND mode = (CASE c.relname WHEN 'trials' THEN 'ShareRowExclusiveLock' ELSE 'AccessExclusiveLock' END)
	  AND (c.relname = 'trials' OR c.oid = 'metrics.metrics'::regclass OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'metrics.metrics'::regclass))
	  AND c.relname <> 'system_metrics';
	ROLLBACK}), $plan, 'the update takes the locks that the plan names');
upgrade($node, 'blocked');
is(rows_of($node, 'blocked'), $rows_before, 'its rows are kept');
is($node->safe_psql('blocked', q{
	SELECT metrics_report(1, 'mine', '{"a": 1}', 9, 1) > 0;
	SELECT tableoid::regclass, partition_type FROM metrics.metrics WHERE metric_group = 'mine' AND total_batches = 9}), "t\nmine|MINE", 'and it takes more');

$node->stop;
done_testing();
