# A store outlives everything but its owner's wish: dump and restore, DROP
# EXTENSION, and a standby that takes over.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;

my $node = start_server('dumped', streaming => 1);
$node->safe_psql('postgres', 'CREATE ROLE keeper; CREATE ROLE reader; CREATE ROLE writer;');

# A store of keeper with rows of every kind, and his own route, index, trigger,
# policy and grants.
sub create_used_store
{
	my ($db, $version) = @_;

	create_database($node, $db, $version);
	$node->safe_psql($db, qq{
		GRANT CREATE ON DATABASE "$db" TO keeper;
		SET ROLE keeper;
		SELECT metrics_create_store();
		SELECT metrics_grant('reader', 'reader'), metrics_grant('writer', 'writer');
		SELECT metrics_register_trial(t, 1, 7, 'loss') FROM generate_series(1, 3) t;
		SELECT metrics_report(t, g, jsonb_build_object('loss', 1.0 / s, 'epoch', s, 'note', 'NaN'), s, 1)
		FROM generate_series(1, 3) t, generate_series(1, 20) s, unnest('{training,validation,inference}'::text[]) g;
		SELECT metrics_register_trial(2, 2);
		SELECT metrics_report(2, 'training', '{"loss": 1}', 10, 2);
		INSERT INTO metrics.metrics_route VALUES ('network', 'GENERIC'), ('mine', 'TRAINING')
			ON CONFLICT (metric_group) DO UPDATE SET partition_key = excluded.partition_key;
		CREATE SCHEMA keeper;
		CREATE TABLE keeper.log (id bigint, metric_group text);
		CREATE FUNCTION keeper.log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS
			'BEGIN INSERT INTO keeper.log VALUES (NEW.id, NEW.metric_group); RETURN NULL; END';
		CREATE TRIGGER log AFTER INSERT ON metrics.metrics FOR EACH ROW EXECUTE FUNCTION keeper.log();
		CREATE INDEX by_time ON metrics.metrics (end_time);
		ALTER TABLE metrics.metrics ENABLE ROW LEVEL SECURITY;
		CREATE POLICY all_but_3 ON metrics.metrics TO reader USING (trial_id <> 3);
		CREATE POLICY writing ON metrics.metrics TO writer USING (true);
		GRANT SELECT (trial_id, metrics) ON metrics.metrics TO PUBLIC;
	});
	$node->safe_psql($db, q{
		SELECT metrics_report(1, g, jsonb_build_object('a0', jsonb_build_object('u', n)), NULL, 1, timestamptz '2024-02-29 10:00:00.388948-08' + n * interval '1 s')
		FROM generate_series(1, 20) n, unnest('{cpu,disk}'::text[]) g;
		SELECT metrics_start_run('Läuft', '{"a": 1}');
		SELECT metrics_report_operator('Läuft', 's', 'o', 'w' || n, n, n, 1, latencies => ARRAY[n, 0.5], custom_metrics => '{"a": 1}', at => '2026-01-24 00:00+00')
		FROM generate_series(1, 20) n}) unless $version;
	return;
}

# All that was measured or configured, in full.
sub contents
{
	my ($db) = @_;

	return $node->safe_psql($db, join '', map { "SELECT '$_', t::text FROM metrics.$_ t ORDER BY 2;" }
		qw(metrics trials metrics_trial_state metrics_route metrics_partition_kind metrics_layout),
		split /\n/, $node->safe_psql($db, "SELECT relname FROM pg_class WHERE relnamespace = 'metrics'::regnamespace AND relkind = 'r' AND relname ~ '^pipeline_' ORDER BY 1"))
	  . $node->safe_psql($db, 'SELECT last_value, is_called FROM metrics.metrics_id_seq');
}

# A store works: it takes reports of its writer and of its owner at the next
# step, continues the ids, fires the trigger, and shows the reader what the
# policy lets him see.
sub works
{
	my ($db, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $step = $node->safe_psql($db, 'SELECT max(total_batches) + 1 FROM metrics.metrics');
	my $max = $node->safe_psql($db, 'SELECT greatest((SELECT max(id) FROM metrics.metrics), (SELECT last_value FROM metrics.metrics_id_seq))');
	my @ids = split /\n/, $node->safe_psql($db, qq{
		SET ROLE writer;
		SELECT metrics_report(1, 'training', '{"loss": 0.001}', $step, 1);
		SELECT metrics_report(1, 'validation', jsonb_build_object('loss', 0.001 / $step), $step, 1);
		SELECT metrics_report(1, 'network', '{"sent": 3}', $step, 1);
		SELECT metrics_report(1, 'cpu', '{"a0": {"u": 21}}', NULL, 1, '2030-01-01 00:00:$step.25Z');
		RESET ROLE; SET ROLE keeper;
		SELECT metrics_report(3, 'inference', '{"loss": 0.001}', $step, 1);
	});
	is(join(' ', map { $_ - $max } @ids), '1 2 3 4 5', "$name: ids continue");
	is($node->safe_psql($db, "SELECT string_agg(c.relname, ' ' ORDER BY m.id) FROM metrics.metrics m JOIN pg_class c ON c.oid = m.tableoid WHERE m.id > $max"),
		'raw_steps raw_validations generic_metrics system_metrics generic_metrics', "$name: the routes, the owner's own included");
	is($node->safe_psql($db, "SELECT string_agg(metric_group, ' ' ORDER BY id) FROM keeper.log WHERE id > $max"),
		'training validation network cpu inference', "$name: the owner's trigger");
	is($node->safe_psql($db, qq{
		SELECT latest_validation_id = $ids[1], best_validation_id = $ids[1], total_batches, summary_metrics -> 'avg_metrics' -> 'loss' ->> 'count' FROM metrics.trials WHERE id = 1}),
		"t|t|$step|$step", "$name: summary, latest and best validation go on");
	is($node->safe_psql($db, qq{
		SET ROLE writer;
		SELECT metrics_start_run('$name');
		SELECT metrics_report_operator('$name', 's', 'o', 'w', 4, 3, 2, latencies => '{0.5}', at => '2026-01-24 00:00+00');
		SELECT metrics_report_operator('$name', 's', 'o', 'w', 4, 3, 2, latencies => '{0.5}', at => '2026-01-24 00:00+00');
		SET ROLE reader;
		SELECT overall_pass_rate, p95_latency FROM metrics_bi.runs JOIN metrics_bi.operator_totals USING (run_id) WHERE run_id = '$name'}),
		"$name\nt\nf\n75|0.5", "$name: reports of operators, and views");
	is($node->safe_psql($db, q{SELECT bool_and(summary_metrics = metrics_recompute_summary(id)) FROM metrics.trials WHERE summary_metrics <> '{}'}),
		't', "$name: summaries are what a recompute gives");
	is($node->safe_psql($db, qq{
		SET ROLE reader;
		SELECT count(*) FROM metrics_rows(1, 'training');
		SELECT count(*) FROM metrics_rows(3, 'training');
		SELECT value, end_time AT TIME ZONE 'UTC' FROM metrics_profiling_rows(1, 'cpu', since => '2030-01-01 00:00:$step Z');
		SELECT metrics_best_trial(7);
		SELECT count(*) FROM metrics_names(7) WHERE group_name <> 'disk';
	}), "$step\n0\n21|2030-01-01 00:00:$step.25\n1\n11", "$name: readers, under the owner's policy");
	is($node->safe_psql($db, q{SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'metrics.metrics'::regclass AND indisvalid}), 'metrics.by_time', "$name: the owner's index");
	return;
}

#
# Dump and restore.
#
create_used_store('new');
my $contents = contents('new');
my $schema = dump_schema($node, 'new');

is(restore($node, dump_database($node, 'new'), 'plain'), '', 'a plain dump restores without a word');
same_lines(contents('plain'), $contents, 'with every row and route');
same_lines(dump_schema($node, 'plain'), $schema, 'and every object');
is($node->safe_psql('plain', 'SELECT store FROM metrics_store'), 'metrics.metrics', 'and the store is registered');
works('plain', 'a plain dump restored');
works('new', 'the original');

is($node->safe_psql('plain', 'SELECT metrics_upgrade_store(), metrics_create_store()'), newest($node) . '|metrics.metrics', 'there is nothing to do after it');

my $directory = $node->basedir . '/directory';
$node->command_ok([ 'pg_dump', '-Fd', '-j2', '-f', $directory, '-d', $node->connstr('plain') ], 'a parallel dump');
$node->safe_psql('postgres', 'CREATE DATABASE parallel TEMPLATE template0');
$node->command_ok([ 'pg_restore', '-j2', '-d', $node->connstr('parallel'), $directory ], 'restores in parallel');
same_lines(contents('parallel'), contents('plain'), 'with every row and route');
works('parallel', 'a parallel dump restored');

$node->command_ok([ 'pg_restore', '--clean', '-j2', '-d', $node->connstr('parallel'), $directory ], 'and again over what is there');
same_lines(contents('parallel'), contents('plain'), 'with every row and route');

#
# A 1.0 store in a database where the extension is newer.
#
create_used_store('old', '1.0');
$contents = contents('old');
is(restore($node, dump_database($node, 'old'), 'aged'), '', 'the dump of a 1.0 store restores');
is($node->safe_psql('aged', q{SELECT extversion FROM pg_extension WHERE extname = 'metrics_ext'}), newest($node), 'under the newest version');
same_lines(contents('aged'), $contents, 'with every row and route');
is($node->safe_psql('aged', q{BEGIN; SELECT metrics_report(1, 'training', '{"loss": 1}', 31, 1) > 0, metrics_report(1, 'inference', '{"loss": 1}', 31, 1) > 0; ROLLBACK}),
	't|t', 'the 1.0 store takes the reports that it took');
refuses($node, 'aged', q{SELECT metrics_report(1, 'cpu', '{"u": 1}', NULL, 1)}, '0A000', '(?s:.*)HINT:.*metrics_upgrade_store', 'and refuses profiling metrics with a hint');
refuses($node, 'aged', q{SELECT metrics_report(1, 'training', '{"u": 1}', 40, 1, now())}, '0A000', '(?s:.*)HINT:.*metrics_upgrade_store', 'and a report time');
refuses($node, 'aged', "SELECT $_", '0A000', '(?s:.*)HINT:.*metrics_upgrade_store', "and $_")
  for 'metrics_start_run()', 'metrics_list_runs()', q{metrics_partition_by_time('metrics.raw_steps', '1 day')}, q{metrics_grant('reader', 'bi')};
is($node->safe_psql('aged', q{SELECT count(*) FROM metrics_rows(1)}), '60', 'readers read it');
is($node->safe_psql('aged', q{SELECT count(*) FROM metrics_profiling_rows(1, 'cpu')}), '0', 'profiling readers find nothing');
is($node->safe_psql('aged', q{SELECT count(*) FROM metrics_profiling_series(1)}), '0', 'and no series');
cmp_ok($node->safe_psql('aged', 'SELECT count(*) FROM metrics_upgrade_plan()'), '>', 5, 'there is a plan');
refuses($node, 'aged', 'SET ROLE writer; SELECT metrics_upgrade_store()', '42501', 'must be owner', 'a writer may not upgrade it');
my $rows = rows_of($node, 'aged');
refuses($node, 'aged', 'SET ROLE keeper; SELECT metrics_upgrade_store()', '2BP01', 'its views cannot be made(?s:.*)database aged, in which role keeper may not create schema metrics_bi(?s:.*)HINT:',
	'its owner has to be allowed to create the schema of the views');
$node->safe_psql('aged', 'GRANT CREATE ON DATABASE aged TO keeper');
is($node->safe_psql('aged', 'SET ROLE keeper; SELECT metrics_upgrade_store()'), newest($node), 'its owner may, who is no superuser');
is(rows_of($node, 'aged'), $rows, 'with every row');
is($node->safe_psql('aged', q{SELECT to_regtype('metrics.metric_partition_type'), (SELECT count(*) FROM metrics.metrics_route)}), '|8', 'to the new layout');
works('aged', 'a 1.0 store restored and upgraded');

#
# DROP EXTENSION, and back.
#
for my $case ([ 'new', undef ], [ 'old', '1.0' ])
{
	my ($db, $version) = @$case;
	my @mine = ('-n', 'metrics', '-n', 'keeper');
	$contents = contents($db);
	$schema = dump_schema($node, $db, @mine);
	$node->safe_psql($db, 'DROP EXTENSION metrics_ext CASCADE');
	same_lines(contents($db), $contents, "$db: DROP EXTENSION CASCADE keeps every row and route");
	# A check that calls a function of the extension goes with it, and comes again.
	(my $without_check = $schema) =~ s/^.*_latency_sketch_check .*\n//m;
	same_lines(dump_schema($node, $db, @mine), $without_check, "$db: and every object");
	is(restore($node, dump_database($node, $db), "${db}_alone"), '', "$db: a dump without the extension restores");
	same_lines(contents("${db}_alone"), $contents, "$db: with every row and route");
	$node->safe_psql("${db}_alone", qq{GRANT CREATE ON DATABASE "${db}_alone" TO keeper});
	for my $there ($db, "${db}_alone")
	{
		$node->safe_psql($there, 'CREATE EXTENSION metrics_ext' . ($version ? " VERSION '$version'" : ''));
		refuses($node, $there, q{SELECT metrics_report(1, 'training', '{}', 99, 1)}, '55000', 'has no metrics store', "$there: CREATE EXTENSION does not know the store");
		is($node->safe_psql($there, 'SET ROLE keeper; SELECT metrics_create_store()'), 'metrics.metrics', "$there: metrics_create_store() takes it up");
		same_lines(contents($there), $contents, "$there: with every row and route");
		same_lines(dump_schema($node, $there, @mine), $schema, "$there: and every object");
		upgrade($node, $there) if $version;
		works($there, $there);
	}
}

#
# A standby.
#
create_store($node, 'standby', '1.0');
$node->safe_psql('standby', q{
	SELECT metrics_register_trial(1, 0, 7, 'loss');
	SELECT metrics_report(1, g, '{"loss": 1}', 1) FROM unnest('{training,validation,inference}'::text[]) g});
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));

my %readers = (
	metrics_rows => q{SELECT count(*) FROM metrics_rows(1)},
	metrics_timeseries => q{SELECT count(*) FROM metrics_timeseries(1, 'training', 'loss')},
	metrics_trials_snapshot => q{SELECT count(*) FROM metrics_trials_snapshot(7, 'training', 'loss', 1)},
	metrics_names => q{SELECT count(*) > 2 FROM metrics_names(7)},
	metrics_best_trial => q{SELECT metrics_best_trial(7)});
my %read = (metrics_rows => 3, metrics_timeseries => 1, metrics_trials_snapshot => 1, metrics_names => 't', metrics_best_trial => 1);
my $reader = open_session($standby, 'standby');
for my $function (sort keys %readers)
{
	is($reader->query($readers{$function}), $read{$function}, "a standby: $function()");
}
cmp_ok($reader->query('SELECT count(*) FROM metrics_upgrade_plan()'), '>', 5, 'a standby: metrics_upgrade_plan()');
my @writers = (
	q{metrics_report(1, 'training', '{"loss": 1}', 2)}, q{metrics_report_batch('[{"trial_id": 1, "metric_group": "training", "metrics": {}, "steps_completed": 3}]')},
	'metrics_register_trial(2)', 'metrics_recompute_summary(1)', 'metrics_populate(1, 1)',
	'metrics_create_store()', 'metrics_upgrade_store()', q{metrics_grant('reader', 'reader')});
for my $writer (@writers)
{
	refuses($standby, 'standby', "SELECT $writer", '25006', 'read-only transaction|during recovery', "a standby refuses $writer");
}
upgrade($node, 'standby');
$node->safe_psql('standby', q{SELECT metrics_report(1, 'cpu', '{"a0": {"u": 5}}')});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
for my $function (sort keys %readers)
{
	is($reader->query($readers{$function}), $read{$function}, "a standby whose primary was upgraded: $function(), with plans from before");
}
is($reader->query(q{SELECT value FROM metrics_profiling_rows(1, 'cpu')}), '5', 'a standby: metrics_profiling_rows()');
is($reader->query('SELECT name FROM metrics_profiling_series(1)'), 'u', 'a standby: metrics_profiling_series()');
refuses($standby, 'standby', q{SELECT metrics_report(1, 'cpu', '{"u": 1}')}, '25006', 'read-only transaction|during recovery', 'a standby refuses a profiling report');
$standby->promote;
is($reader->query(q{SELECT metrics_report(1, 'cpu', '{"a0": {"u": 6}}') > (SELECT max(id) FROM metrics.metrics)}), 't', 'a standby that was promoted takes reports, with new ids');
$reader->quit;

$standby->stop;
$node->stop;
done_testing();
