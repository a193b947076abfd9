# Stores that are made, renamed, dropped and upgraded while other sessions look
# on; names that need quoting; and who may do what.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;

my $update = 'ALTER EXTENSION metrics_ext UPDATE';
my $node = start_server('stores');
$node->safe_psql('postgres', 'CREATE ROLE keeper; CREATE ROLE stranger;');

# A report of each kind, which give their ids, and what is then there.
my $reports = q{
	SELECT metrics_register_trial(1, 0, 7, 'loss');
	SELECT count(metrics_report(1, g, '{"a0": {"u": 1}, "loss": 1}', 1)) FROM unnest('{training,validation,inference,cpu}'::pg_catalog.text[]) g;
	SELECT count(*) FROM metrics_rows(1);
	SELECT count(*) FROM metrics_profiling_rows(1, 'cpu', metric_name => 'u');
	SELECT metrics_best_trial(7)};
my $reported = "\n4\n3\n1\n1";

#
# Snapshots that are older than the step.
#
create_store($node, 'snapshot', '1.0');
fill_store($node, 'snapshot', 100);
my $repeatable = open_session($node, 'snapshot');
my $repeatable_reader = open_session($node, 'snapshot');
my $committed = open_session($node, 'snapshot');
$_->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ'), $_->query_safe('SELECT 1') for $repeatable, $repeatable_reader;
$committed->query_safe('BEGIN');
$committed->query_safe('SELECT 1');
upgrade($node, 'snapshot');
start_query($repeatable, q{SELECT metrics_report(1, 'training', '{"loss": 1}', 500, 1)});
like((finish_query($repeatable))[1], qr/ERROR:  40001: .*concurrent upgrade.*HINT: .*retried/s, 'REPEATABLE READ, older than the step: metrics_report() has to be tried again');
start_query($repeatable_reader, 'SELECT count(*) FROM metrics_rows(1)');
like((finish_query($repeatable_reader))[1], qr/ERROR:  40001: /, 'and so has a reader');
$committed->query_safe(q{SELECT metrics_report(1, 'cpu', '{"loss": 1}', NULL, 1)});
$committed->query_safe('COMMIT');
is($committed->query('SELECT count(*) FROM metrics.system_metrics'), '1', 'READ COMMITTED goes on');
$_->query_safe('ROLLBACK') for $repeatable, $repeatable_reader;
$repeatable->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE');
$repeatable->query_safe(q{SELECT metrics_report(1, 'cpu', '{"loss": 1}', NULL, 1)});
$repeatable->query_safe('COMMIT');
is($committed->query('SELECT count(*) FROM metrics.system_metrics'), '2', 'tried again, it works');
$_->quit for $repeatable, $repeatable_reader, $committed;

#
# One store a database.
#
create_database($node, 'two');
my ($first, $second) = map { open_session($node, 'two') } 1 .. 2;
$first->query_safe('BEGIN');
is($first->query_safe('SELECT metrics_create_store()'), 'metrics.metrics', 'a store is made');
start_query($second, 'SELECT metrics_create_store()');
is_waiting($node, $second, 'a second session waits for it');
$first->query_safe('COMMIT');
is(join('', finish_query($second)), 'metrics.metrics', 'and takes it up');
refuses($node, 'two', q{SELECT metrics_create_store('other')}, '42710', 'has a metrics store in schema "metrics" already(?s:.*)HINT:', 'another store is refused');
is($node->safe_psql('two', q{SELECT to_regnamespace('other'), count(*) FROM metrics_store}), '|1', 'and leaves nothing');

$node->safe_psql('two', 'DROP SCHEMA metrics CASCADE');
$first->query_safe('BEGIN');
is($first->query_safe(q{SELECT metrics_create_store('first')}), 'first.metrics', 'a store that was dropped makes room for another');
start_query($second, q{SELECT metrics_create_store('second')});
is_waiting($node, $second, 'which a second session waits for');
$first->query_safe('ROLLBACK');
is(join('', finish_query($second)), 'second.metrics', 'and makes its own when it is rolled back');
is($node->safe_psql('two', $reports), $reported, 'that works');
$_->quit for $first, $second;

# Two upgrades at once.
create_store($node, 'race', '1.0');
fill_store($node, 'race', 100);
my ($winner, $loser) = map { open_session($node, 'race') } 1 .. 2;
$winner->query_safe('BEGIN');
$winner->query_safe($update);
start_query($loser, $update);
is_waiting($node, $loser, 'a second ALTER EXTENSION waits for the first');
$winner->query_safe('COMMIT');
my ($output, $errors) = finish_query($loser);
unlike($errors, qr/XX000|deadlock/, 'and ends without an internal error');
is($node->safe_psql('race', 'SELECT count(*), count(DISTINCT partition_type) FROM metrics.metrics'), '100|3', 'the rows are there');
$_->quit for $winner, $loser;

# The same, in a database where only the store is old.
create_store($node, 'race_store', '1.0');
$node->safe_psql('race_store', 'DROP EXTENSION metrics_ext; CREATE EXTENSION metrics_ext; ');
$node->safe_psql('race_store', q{INSERT INTO metrics_store VALUES ('metrics.metrics')});
($winner, $loser) = map { open_session($node, 'race_store') } 1 .. 2;
$winner->query_safe('BEGIN');
is($winner->query_safe('SELECT metrics_upgrade_store()'), newest($node), 'metrics_upgrade_store()');
start_query($loser, 'SELECT metrics_upgrade_store()');
is_waiting($node, $loser, 'called twice at once waits');
$winner->query_safe('COMMIT');
is(join('', finish_query($loser)), newest($node), 'and both say so');
$_->quit for $winner, $loser;

#
# Sessions with plans of a store that changes under them.
#
create_store($node, 'warm');
my $warm = open_session($node, 'warm');
my $using = 'metrics.metrics';
sub warm_report
{
	my ($steps, $name) = @_;
	my $id = $warm->query_safe(qq{SELECT metrics_report(1, 'training', '{"loss": 1}', $steps)});

	$warm->query_safe(q{SELECT metrics_report(1, 'cpu', '{"loss": 1}')});
	is($warm->query_safe("SELECT count(*) FROM $using WHERE id = $id") . $warm->query_safe("SELECT count(*) FROM metrics_rows(1) WHERE id = $id"), '11', $name);
	return;
}
$warm->query_safe('SELECT metrics_register_trial(1)');
warm_report($_, "a warm session, report $_") for 1 .. 6;
$node->safe_psql('warm', 'ALTER SCHEMA metrics RENAME TO moved');
$using = 'moved.metrics';
warm_report(7, 'after ALTER SCHEMA RENAME');
is($node->safe_psql('warm', q{SELECT store, count(*) FROM metrics_store, metrics_rows(1) GROUP BY 1}), 'moved.metrics|7', 'and for a new session');
refuses($node, 'warm', 'SELECT metrics_create_store()', '42710', 'in schema "moved"', 'it is still the only store');
is($node->safe_psql('warm', q{SELECT metrics_create_store('moved')}), 'moved.metrics', 'and is taken up under its new name');
$node->safe_psql('warm', 'CREATE SCHEMA metrics; ALTER SCHEMA metrics RENAME TO decoy; ALTER SCHEMA moved RENAME TO metrics');
$using = 'metrics.metrics';
warm_report(8, 'after it is renamed back');
$node->safe_psql('warm', 'ALTER SCHEMA metrics RENAME TO other; ALTER SCHEMA decoy RENAME TO metrics');
$using = 'other.metrics';
warm_report(9, 'and when another schema has its old name');
is($node->safe_psql('warm', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'metrics'::regnamespace}), '0', 'where nothing was made');
$node->safe_psql('warm', 'DROP SCHEMA other CASCADE; SELECT metrics_create_store(); SELECT metrics_register_trial(1)');
$using = 'metrics.metrics';
warm_report(10, 'after the store was dropped and made anew');
$node->safe_psql('warm', 'DROP EXTENSION metrics_ext CASCADE; CREATE EXTENSION metrics_ext; SELECT metrics_create_store()');
warm_report(11, 'after the extension was dropped and made anew');
$node->safe_psql('warm', 'DROP SCHEMA metrics CASCADE');
start_query($warm, q{SELECT metrics_report(1, 'training', '{"loss": 1}', 12)});
like((finish_query($warm))[1], qr/ERROR:  55000: .*has no metrics store.*HINT:/s, 'after the store was dropped');
$warm->quit;

# A 1.0 store that is renamed, and then upgraded.
create_store($node, 'renamed', '1.0');
fill_store($node, 'renamed', 100);
$warm = open_session($node, 'renamed');
$warm->query_safe(q{SELECT metrics_report(1, 'training', '{"loss": 1}', 200, 1)});
my $rows = rows_of($node, 'renamed');
$node->safe_psql('renamed', 'ALTER SCHEMA metrics RENAME TO "re$named"');
upgrade($node, 'renamed');
is(rows_of($node, 'renamed', '"re$named"'), $rows, 'a store that was renamed is upgraded');
$warm->query_safe(q{SELECT metrics_report(1, 'cpu', '{"loss": 1}', NULL, 1)});
is($warm->query('SELECT count(*) FROM "re$named".system_metrics'), '1', 'and used by a session from before');
$warm->quit;

#
# Names that need quoting, and the extension in a schema of its own.
#
my $hostile = q{we"ird $1 %s @keys@ schema};
(my $quoted = $hostile) =~ s/"/""/g;
my $home = q{"Exten %s @keys@ sion"};    # of an extension, where ", $, ' and \ are refused
for my $version ('1.0', newest($node))
{
	my $db = "hostile_$version";
	$node->safe_psql('postgres', qq{CREATE DATABASE "$db"});
	$node->safe_psql($db, qq{
		CREATE SCHEMA $home; CREATE EXTENSION metrics_ext SCHEMA $home VERSION '$version'; SET search_path = $home;
		SELECT metrics_create_store(\$n\$$hostile\$n\$);});
	if ($version eq '1.0')
	{
		fill_store_in($db);
		$rows = rows_of($node, $db, qq{"$quoted"});
		upgrade($node, $db);
		is(rows_of($node, $db, qq{"$quoted"}), $rows, 'a store in a schema with a hostile name is upgraded');
		$node->safe_psql($db, qq{DELETE FROM "$quoted".metrics; DELETE FROM "$quoted".trials});
	}
	is($node->safe_psql($db, qq{SET search_path = $home; $reports}), $reported, "$version: a hostile name, reports and readers");
	is($node->safe_psql($db, qq{
		CREATE ROLE "$quoted"; SET search_path = $home;
		SELECT metrics_grant(\$n\$$hostile\$n\$, 'writer');
		GRANT USAGE ON SCHEMA $home TO "$quoted";
		SET ROLE "$quoted";
		SELECT metrics_report(1, 'training', '{"loss": 2}', 2) > 0;
		RESET ROLE; DROP OWNED BY "$quoted"; DROP ROLE "$quoted"}), "\nt", "$version: a role with a hostile name");
	is(restore($node, dump_database($node, $db), "${db}_restored"), '', "$version: dumps and restores");
	is($node->safe_psql("${db}_restored", qq{SET search_path = $home; SELECT store, (SELECT count(*) FROM metrics_rows(1)) FROM metrics_store}),
		qq{"$quoted".metrics|4}, "$version: with its rows");
}

# The rows of fill_store(), in the schema with the hostile name.
sub fill_store_in
{
	my ($db) = @_;

	$node->safe_psql($db, qq{ALTER SCHEMA "$quoted" RENAME TO metrics});
	fill_store($node, $db, 100);
	$node->safe_psql($db, qq{ALTER SCHEMA metrics RENAME TO "$quoted"});
	return;
}

# Without a search_path, and with one that has traps on it.
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', 'CREATE SCHEMA ext; CREATE EXTENSION metrics_ext SCHEMA ext');
is($node->safe_psql('elsewhere', q{SET search_path = ''; SELECT ext.metrics_create_store(); SELECT ext.metrics_register_trial(1); SELECT ext.metrics_report(1, 'cpu', '{"u": 1}') > 0; SELECT count(*) FROM ext.metrics_profiling_rows(1, 'cpu')}),
	"metrics.metrics\n\nt\n1", 'an extension in its own schema, without a search_path');
is($node->safe_psql('elsewhere', q{SELECT string_agg(DISTINCT n.nspname, ' ') FROM pg_depend d JOIN pg_proc p ON p.oid = objid JOIN pg_namespace n ON n.oid = pronamespace
	WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass AND classid = 'pg_proc'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'metrics_ext')}),
	'ext', 'has all its functions there');
refuses($node, 'elsewhere', 'ALTER EXTENSION metrics_ext SET SCHEMA public', '0A000', 'does not support SET SCHEMA', 'and cannot be moved');

$node->safe_psql('postgres', 'CREATE DATABASE traps');
$node->safe_psql('traps', q{
	CREATE EXTENSION metrics_ext VERSION '1.0';
	GRANT CREATE ON DATABASE traps TO keeper;
	CREATE SCHEMA trap;
	CREATE FUNCTION trap.boom() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
	CREATE FUNCTION trap.eq(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT trap.boom()';
	CREATE FUNCTION trap.eq(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT trap.boom()';
	CREATE FUNCTION trap.eq(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT trap.boom()';
	CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.eq);
	CREATE OPERATOR trap.= (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.eq);
	CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = trap.eq);
	CREATE FUNCTION trap.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT trap.boom()::text $$;
	CREATE FUNCTION trap.nextval(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT trap.boom()::int::bigint $$;
	CREATE TABLE trap.trials (id int); CREATE TABLE trap.metrics (id int); CREATE TABLE trap.pg_class (oid oid);
	CREATE DOMAIN trap.text AS pg_catalog.text CHECK (trap.boom()); CREATE DOMAIN trap.jsonb AS pg_catalog.jsonb CHECK (trap.boom());
	GRANT USAGE ON SCHEMA trap TO keeper;
});
my $trapped = 'SET search_path = trap, public, pg_catalog;';
is($node->safe_psql('traps', "$trapped SET ROLE keeper; SELECT metrics_create_store()"), 'metrics.metrics', 'a store made with traps on the search_path');
fill_store($node, 'traps', 100);
$rows = rows_of($node, 'traps');
$node->safe_psql('traps', "$trapped $update");
is(rows_of($node, 'traps'), $rows, 'is upgraded');
is($node->safe_psql('traps', "$trapped SELECT count(*) OPERATOR(pg_catalog.>=) 0 FROM metrics_upgrade_plan(); SELECT metrics_upgrade_store()"), "t\n" . newest($node), 'and asked');
is($node->safe_psql('traps', q{SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'metrics.metrics'::regclass AND attname = 'partition_type'}), 'text', 'and its key is a true text');
is($node->safe_psql('traps', qq{SET search_path = trap, public; DELETE FROM metrics.metrics; DELETE FROM metrics.trials; $reports}), $reported, 'and works');

#
# Who may do what.
#
create_database($node, 'rights', '1.0');
refuses($node, 'rights', 'SET ROLE stranger; SELECT metrics_create_store()', '42501', 'permission denied for database', 'a role without CREATE on the database makes no store');
is($node->safe_psql('rights', q{SELECT to_regnamespace('metrics'), count(*) FROM metrics_store}), '|0', 'and leaves nothing');
$node->safe_psql('rights', 'GRANT CREATE ON DATABASE rights TO keeper, stranger; SET ROLE keeper; SELECT metrics_create_store()');
fill_store($node, 'rights', 100);
my $before = catalog_rows($node, 'rights');
refuses($node, 'rights', 'SET ROLE stranger; SELECT metrics_create_store()', '42501', 'must be owner', 'a store is taken up by its owner only');
refuses($node, 'rights', 'SET ROLE stranger; SELECT metrics_upgrade_store()', '42501', 'must be owner', 'and upgraded');
refuses($node, 'rights', q{SET ROLE stranger; SELECT metrics_grant('stranger', 'writer')}, '42501', 'must be owner|permission denied', 'and granted');
refuses($node, 'rights', "SET ROLE stranger; $update", '42501', 'must be owner', 'the extension is upgraded by its owner only');
refuses($node, 'rights', "SET ROLE keeper; $update", '42501', 'must be owner', 'who is not the owner of the store');
refuses($node, 'rights', q{SET ROLE keeper; INSERT INTO metrics_store VALUES ('pg_class')}, '42501', 'permission denied', 'nobody writes to the registry');
refuses($node, 'rights', q{SET ROLE stranger; SELECT metrics_report(1, 'training', '{}', 1, 1)}, '42501', 'permission denied', 'and a stranger reports nothing');
refuses($node, 'rights', q{SET ROLE stranger; SELECT * FROM metrics_rows(1)}, '42501', 'permission denied', 'reads nothing');
refuses($node, 'rights', q{SELECT metrics_grant('nobody', 'reader')}, '42704', 'role "nobody" does not exist', 'a role has to exist');
refuses($node, 'rights', q{SELECT metrics_grant('stranger', 'admin')}, '22023', 'unknown access "admin"(?s:.*)HINT:', 'access is reader or writer');
same_lines(catalog_rows($node, 'rights'), $before, 'all of which changed nothing');

# The owner's code runs with the owner's rights in a superuser's ALTER EXTENSION.
$node->safe_psql('rights', q{
	SET ROLE keeper;
	CREATE SCHEMA keeper;
	CREATE TABLE keeper.ran (as_user text);
	CREATE FUNCTION keeper.trap() RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO keeper.ran VALUES (current_user);
		RETURN 'GENERIC';
	END $$;
	ALTER TABLE metrics.metrics ALTER COLUMN partition_type SET DEFAULT keeper.trap()::metrics.metric_partition_type,
		ALTER COLUMN metric_group SET DEFAULT keeper.trap(),
		ADD CONSTRAINT trap CHECK (keeper.trap() IS NOT NULL) NOT VALID;
});
upgrade($node, 'rights');
is($node->safe_psql('rights', q{SELECT count(*) FROM keeper.ran WHERE as_user <> 'keeper'}), '0', 'code of the store\'s owner runs with its owner\'s rights');
refuses($node, 'rights', q{DO $$ BEGIN PERFORM 1 FROM metrics_store WHERE store IS NULL; IF NOT FOUND THEN RAISE 'none' USING ERRCODE = 'MX003'; END IF; END $$}, 'MX003', 'none', 'the registry is never without a value');
is($node->safe_psql('rights', q{SELECT string_agg(DISTINCT pg_get_userbyid(relowner), ' ') FROM pg_class WHERE relnamespace = 'metrics'::regnamespace}), 'keeper', 'and all tables are the owner\'s');

# A plan and a step with parallel query forced on every statement.
create_store($node, 'parallel', '1.0');
fill_store($node, 'parallel', 100);
$rows = rows_of($node, 'parallel');
my $force = $node->safe_psql('parallel', q{SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
$node->safe_psql('parallel', "SET $force = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SELECT * FROM metrics_upgrade_plan(); $update");
is(rows_of($node, 'parallel'), $rows, 'the step with parallel query forced');

$node->stop;
done_testing();
