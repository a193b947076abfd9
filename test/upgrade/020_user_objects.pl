# The step 1.0 to 1.1 of a store whose owner is no superuser and has put his
# own objects on it: those stay, to the letter; those that use the key of the
# partitioned table stop the step, by name.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;

my $update = q{ALTER EXTENSION metrics_ext UPDATE TO '1.1'};
my $node = start_server('objects', conf => 'wal_level = logical');
$node->safe_psql('postgres', 'CREATE ROLE keeper LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE guest LOGIN; CREATE ROLE writer LOGIN;');

# A 1.0 store of keeper, under an extension of the superuser.
sub create_keepers_store
{
	my ($db) = @_;

	create_database($node, $db, '1.0');
	$node->safe_psql($db, qq{
		GRANT CREATE ON DATABASE "$db" TO keeper;
		SET ROLE keeper;
		SELECT metrics_create_store();
		CREATE SCHEMA keeper;
	});
	fill_store($node, $db, 100);
	return;
}

#
# What stays.
#
create_keepers_store('kept');
$node->safe_psql('kept', q{
	SET SESSION AUTHORIZATION keeper;

	SELECT metrics_grant('writer', 'writer');
	ALTER DEFAULT PRIVILEGES IN SCHEMA metrics GRANT SELECT ON TABLES TO guest;
	GRANT USAGE ON SCHEMA metrics, keeper TO reader, guest;

	-- Columns, checks and foreign keys.
	CREATE TABLE keeper.host (name text PRIMARY KEY);
	INSERT INTO keeper.host VALUES ('here');
	ALTER TABLE metrics.metrics
		ADD COLUMN host text NOT NULL DEFAULT 'here',
		ADD COLUMN price numeric(8, 2) DEFAULT 1.5,
		ADD COLUMN "odd ""name""" text COLLATE "C",
		ADD COLUMN doubled integer GENERATED ALWAYS AS (trial_id * 2) STORED,
		ADD CONSTRAINT batches_check CHECK (total_batches >= 0),
		ADD CONSTRAINT "odd ""check""" CHECK ("odd ""name""" <> 'it''s'),
		ADD CONSTRAINT host_fkey FOREIGN KEY (host) REFERENCES keeper.host (name);
	ALTER TABLE metrics.raw_steps
		ADD CONSTRAINT steps_check CHECK (trial_id > 0) NOT VALID,
		ADD CONSTRAINT steps_host_fkey FOREIGN KEY (host) REFERENCES keeper.host (name) DEFERRABLE;
	CREATE TABLE keeper.checkpoint (
		trial_id integer, total_batches integer, trial_run_id integer,
		FOREIGN KEY (trial_id, total_batches, trial_run_id) REFERENCES metrics.raw_steps (trial_id, total_batches, trial_run_id) ON DELETE CASCADE);
	INSERT INTO keeper.checkpoint SELECT trial_id, total_batches, trial_run_id FROM metrics.raw_steps;
	ALTER TABLE metrics.raw_steps RENAME CONSTRAINT custom_type_check TO group_check;

	-- Indexes, clustering, replica identity.
	CREATE INDEX by_end_time ON metrics.metrics (end_time DESC) INCLUDE (trial_id);
	CREATE UNIQUE INDEX by_id ON metrics.generic_metrics (id);
	CREATE INDEX by_loss ON metrics.raw_steps ((metrics -> 'avg_metrics' ->> 'loss')) WHERE NOT archived;
	ALTER TABLE metrics.raw_steps CLUSTER ON steps_archived;
	ALTER TABLE metrics.metrics REPLICA IDENTITY FULL;
	ALTER TABLE metrics.raw_steps REPLICA IDENTITY USING INDEX steps_trial_id_total_batches_run_id_unique;
	ALTER TABLE metrics.raw_validations REPLICA IDENTITY NOTHING;
	ALTER TABLE metrics.generic_metrics REPLICA IDENTITY USING INDEX by_id;

	-- Triggers and rules.
	CREATE TABLE keeper.log (said text, trial_id integer);
	CREATE FUNCTION keeper.log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
	BEGIN
		INSERT INTO keeper.log VALUES (TG_NAME || ' on ' || TG_TABLE_NAME, NEW.trial_id);
		RETURN NEW;
	END $$;
	CREATE TRIGGER each_row AFTER INSERT ON metrics.metrics FOR EACH ROW EXECUTE FUNCTION keeper.log();
	ALTER TABLE metrics.raw_validations DISABLE TRIGGER each_row;
	ALTER TABLE metrics.generic_metrics ENABLE ALWAYS TRIGGER each_row;
	CREATE TRIGGER some_rows AFTER UPDATE OF metrics, archived ON metrics.metrics FOR EACH ROW
		WHEN (NEW.archived) EXECUTE FUNCTION keeper.log();
	ALTER TABLE ONLY metrics.metrics DISABLE TRIGGER some_rows;
	CREATE FUNCTION keeper.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
	CREATE TRIGGER each_statement AFTER INSERT ON metrics.metrics EXECUTE FUNCTION keeper.nothing();
	CREATE TRIGGER step BEFORE INSERT ON metrics.raw_steps FOR EACH ROW EXECUTE FUNCTION keeper.log();
	CREATE RULE notify AS ON INSERT TO metrics.metrics DO ALSO NOTIFY reported;

	-- Row security.
	ALTER TABLE metrics.metrics ENABLE ROW LEVEL SECURITY;
	CREATE POLICY reader_policy ON metrics.metrics FOR SELECT TO reader USING (trial_id < 4);
	CREATE POLICY writer_policy ON metrics.metrics TO writer USING (true) WITH CHECK (trial_id < 100);
	ALTER TABLE metrics.raw_steps ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY steps_policy ON metrics.raw_steps AS RESTRICTIVE USING (NOT archived OR trial_id > 0);
	CREATE POLICY steps_permit ON metrics.raw_steps USING (true);

	-- Publications and statistics.
	CREATE PUBLICATION rows FOR TABLE metrics.metrics WHERE (trial_id > 2) WITH (publish = 'insert', publish_via_partition_root);
	CREATE PUBLICATION columns FOR TABLE metrics.raw_validations (id, trial_id, metrics) WITH (publish = 'insert');
	CREATE STATISTICS keeper.of_parent (ndistinct) ON trial_id, total_batches FROM metrics.metrics;
	CREATE STATISTICS keeper.of_steps ON trial_id, trial_run_id, (metrics -> 'avg_metrics') FROM metrics.raw_steps;

	-- Grants on tables and columns, passed on by who may.
	GRANT SELECT ON metrics.raw_validations TO reader;
	GRANT SELECT (trial_id, partition_type) ON metrics.metrics TO reader WITH GRANT OPTION;
	GRANT UPDATE (partition_type) ON metrics.metrics TO PUBLIC;
	GRANT SELECT (trial_id, partition_type), INSERT (partition_type) ON metrics.raw_steps TO reader WITH GRANT OPTION;
	GRANT REFERENCES (partition_type) ON metrics.generic_metrics TO reader;
	GRANT UPDATE (metrics) ON metrics.raw_validations TO reader;

	-- Comments, statistics targets, options, storage.
	COMMENT ON TABLE metrics.metrics IS 'all of it';
	COMMENT ON COLUMN metrics.metrics.partition_type IS 'key of the parent';
	COMMENT ON COLUMN metrics.raw_steps.partition_type IS 'key of the steps';
	COMMENT ON COLUMN metrics.raw_validations.partition_type IS 'key of the validations';
	COMMENT ON COLUMN metrics.metrics.total_batches IS 'batches';
	COMMENT ON COLUMN metrics.metrics.price IS 'what it cost';
	COMMENT ON CONSTRAINT batches_check ON metrics.metrics IS 'a check';
	COMMENT ON INDEX metrics.by_end_time IS 'an index';
	COMMENT ON TRIGGER each_row ON metrics.metrics IS 'a trigger';
	COMMENT ON POLICY reader_policy ON metrics.metrics IS 'a policy';
	COMMENT ON SCHEMA metrics IS 'a schema';
	ALTER TABLE ONLY metrics.metrics ALTER COLUMN partition_type SET STATISTICS 77, ALTER COLUMN trial_id SET STATISTICS 78;
	ALTER TABLE metrics.raw_steps ALTER COLUMN partition_type SET STATISTICS 0, ALTER COLUMN partition_type SET (n_distinct = 1),
		ALTER COLUMN trial_id SET (n_distinct = -0.5), ALTER COLUMN metrics SET STORAGE EXTERNAL, ALTER COLUMN metrics SET COMPRESSION pglz;
	ALTER TABLE ONLY metrics.metrics ALTER COLUMN partition_type SET (n_distinct_inherited = 4);
	ALTER TABLE metrics.raw_steps SET (fillfactor = 80, autovacuum_enabled = false, toast.autovacuum_enabled = false);

	-- Views and functions that do not use the key.
	CREATE VIEW keeper.losses WITH (security_invoker) AS
		SELECT trial_id, total_batches, metrics -> 'avg_metrics' -> 'loss' AS loss, host FROM metrics.metrics WHERE NOT archived;
	CREATE VIEW keeper.steps AS SELECT id, trial_id, total_batches FROM metrics.raw_steps WHERE trial_id > 2 WITH CHECK OPTION;
	CREATE MATERIALIZED VIEW keeper.counts AS SELECT trial_id, count(*) FROM metrics.metrics GROUP BY trial_id;
	CREATE FUNCTION keeper.count(trial integer) RETURNS bigint STABLE
		BEGIN ATOMIC SELECT count(*) FROM metrics.metrics m WHERE m.trial_id = trial; END;

	-- A partition and a route of his own.
	INSERT INTO metrics.metrics_partition_kind VALUES ('TEST', 'batch');
	INSERT INTO metrics.metrics_route VALUES ('gpu', 'GENERIC');

	SET SESSION AUTHORIZATION reader;
	GRANT SELECT (partition_type) ON metrics.metrics TO guest;
	GRANT SELECT (partition_type), INSERT (partition_type) ON metrics.raw_steps TO guest WITH GRANT OPTION;
	SET SESSION AUTHORIZATION guest;
	GRANT SELECT (partition_type) ON metrics.raw_steps TO writer;
});
$node->safe_psql('kept', q{ALTER TYPE metrics.metric_partition_type ADD VALUE 'Mine, "too"'});
$node->safe_psql('kept', q{
	SET SESSION AUTHORIZATION keeper;
	CREATE TABLE metrics.mine PARTITION OF metrics.metrics (CONSTRAINT mine_check CHECK (trial_id < 1000)) FOR VALUES IN ('Mine, "too"');
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type, "odd ""name""") VALUES (1, 1, 'mine', 'Mine, "too"', 'odd');
});

my $before = dump_schema($node, 'kept');
my $rows_before = rows_of($node, 'kept');
is($node->safe_psql('kept', 'SELECT string_agg(relation, $$ $$ ORDER BY step) FROM metrics_upgrade_plan() WHERE lock_mode IS NOT NULL AND layout = $$1.1$$'),
	'trials metrics raw_steps raw_validations generic_metrics mine', 'the plan locks trials, parent and partitions in this order, the user\'s own too');
is($node->safe_psql('kept', 'SELECT count(*) FROM metrics_upgrade_plan() WHERE estimate IS NULL'), '0', 'nothing is in the way');
is($node->safe_psql('kept', q{SELECT sum(estimate) BETWEEN '1 ms' AND '1 s', count(*) FILTER (WHERE lock_mode IS NULL) > 1, min(layout) FROM metrics_upgrade_plan()}),
	't|t|1.1', 'there are steps and an estimate');
same_lines(dump_schema($node, 'kept'), $before, 'the plan changes nothing');
my ($stdout, $stderr);
$node->psql('kept', "$update; SELECT FROM metrics.metrics, metrics.raw_steps LIMIT 0", stdout => \$stdout, stderr => \$stderr);
is($stderr, '', 'the step gives no error and no warning');

my $after = dump_schema($node, 'kept');
is(rows_of($node, 'kept'), $rows_before, 'the rows are kept');
# In any order, and lines that come several times once.
my %changed = map { $_ => 1 } changed_lines($before, $after);
chomp(my @expected = <DATA>);
same_lines(join("\n", sort keys %changed), join("\n", sort @expected),
	'pg_dump -s differs in the lines that the change is about');

# They do not only stand there.
$node->safe_psql('kept', q{
	TRUNCATE keeper.log;
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type)
	VALUES (1, 1001, 'training', 'TRAINING'), (2, 1002, 'validation', 'VALIDATION'), (3, 1003, 'inference', 'GENERIC'),
		(4, NULL, 'cpu', 'PROFILING'), (5, 1005, 'mine', 'Mine, "too"');
	SET session_replication_role = replica;
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type)
	VALUES (6, 1006, 'training', 'TRAINING'), (7, 1007, 'inference', 'GENERIC');
});
is($node->safe_psql('kept', 'SELECT * FROM keeper.log ORDER BY trial_id, said'),
	join("\n", 'each_row on raw_steps|1', 'step on raw_steps|1', 'each_row on generic_metrics|3', 'each_row on system_metrics|4',
		'each_row on mine|5', 'each_row on generic_metrics|7'),
	'triggers fire where they are enabled, in the new partition, too');
$node->safe_psql('kept', 'DELETE FROM metrics.metrics WHERE total_batches > 1000 OR total_batches IS NULL');
is($node->safe_psql('kept', 'SET ROLE reader; SELECT max(trial_id), count(DISTINCT partition_type) FROM metrics.metrics'),
	'3|4', 'the policy is in force, the column grant, too');
is($node->safe_psql('kept', q{SET ROLE guest; SELECT count(DISTINCT partition_type) FROM metrics.raw_steps}), '1',
	'a grant that was passed on is in force');
$node->safe_psql('kept', q{
	SET SESSION AUTHORIZATION keeper;
	REVOKE SELECT (partition_type) ON metrics.raw_steps FROM reader CASCADE;
});
is($node->safe_psql('kept', q{SELECT has_column_privilege('writer', 'metrics.raw_steps', 'partition_type', 'SELECT'), has_column_privilege('guest', 'metrics.raw_steps', 'partition_type', 'INSERT')}),
	'f|t', 'and is revoked with what it came from');
$node->safe_psql('kept', q{
	SET SESSION AUTHORIZATION keeper;
	GRANT SELECT (partition_type) ON metrics.raw_steps TO reader WITH GRANT OPTION;
	SET SESSION AUTHORIZATION reader;
	GRANT SELECT (partition_type) ON metrics.raw_steps TO guest WITH GRANT OPTION;
	SET SESSION AUTHORIZATION guest;
	GRANT SELECT (partition_type) ON metrics.raw_steps TO writer;
});
is($node->safe_psql('kept', q{SELECT keeper.count(1), (SELECT count(*) FROM keeper.losses), (SELECT count(*) FROM keeper.steps)}),
	'11|91|40', 'functions and views give what they gave');
$node->safe_psql('kept', 'DROP ROLE IF EXISTS nobody; REASSIGN OWNED BY guest TO keeper');

# A writer of 1.0 writes what is new in 1.1.
is($node->safe_psql('kept', q{
	SET SESSION AUTHORIZATION writer;
	SELECT metrics_report(1, g, '{"a": {"u": 1}}', s, 1) > 0 FROM (VALUES ('training', 2001), ('validation', 2002), ('inference', 2003), ('cpu', NULL)) v(g, s);
}), "t\nt\nt\nt", 'a writer of 1.0 reports to the upgraded store');
is($node->safe_psql('kept', q{SELECT count(*) FROM metrics.system_metrics}), '1', 'and profiling metrics to the new partition');
is($node->safe_psql('kept', q{SELECT metrics_report(1, 'gpu', '{"a": 1}', 2004, 1) > 0; SELECT tableoid::regclass FROM metrics.metrics WHERE metric_group = 'gpu'}),
	"t\nmetrics.generic_metrics", 'a route of the owner wins over the new one');

# Nothing of it belongs to the extension.
is($node->safe_psql('kept', q{
	SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
	WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
	  AND (pg_describe_object(classid, objid, objsubid) ~ '\m(metrics[.]|keeper[.])' OR classid = 'pg_namespace'::regclass
		OR (classid = 'pg_class'::regclass AND objid::regclass::text <> 'metrics_store'))}),
	'', 'no object of the store is a member of the extension');
is($node->safe_psql('kept', q{
	SELECT pg_describe_object(classoid, objoid, objsubid) FROM pg_init_privs
	WHERE privtype = 'e' AND classoid = 'pg_class'::regclass AND objoid::regclass::text <> 'metrics_store'}),
	'', 'or stands in pg_init_privs');
is($node->safe_psql('kept', q{SELECT string_agg(DISTINCT pg_get_userbyid(relowner), ' ') FROM pg_class WHERE relnamespace = 'metrics'::regnamespace}),
	'keeper', 'all of it belongs to its owner');

is(restore($node, dump_database($node, 'kept'), 'restored'), '', 'the dump restores');
same_lines(dump_schema($node, 'restored'), $after, 'and gives the same dump again');
is($node->safe_psql('restored', 'SELECT count(*), count(DISTINCT tableoid) FROM metrics.metrics'),
	$node->safe_psql('kept', 'SELECT count(*), count(DISTINCT tableoid) FROM metrics.metrics'), 'with the rows');
$rows_before = rows_of($node, 'kept');
my @schemas = qw(-n metrics -n keeper);
$before = dump_schema($node, 'kept', @schemas);
$node->safe_psql('kept', 'DROP EXTENSION metrics_ext CASCADE');
same_lines(dump_schema($node, 'kept', @schemas), $before, 'DROP EXTENSION CASCADE keeps all of it');
is(rows_of($node, 'kept'), $rows_before, 'and the rows');

# A partition that is itself partitioned.
create_keepers_store('deep');
$node->safe_psql('deep', q{ALTER TYPE metrics.metric_partition_type ADD VALUE 'DEEP'});
$node->safe_psql('deep', q{
	SET SESSION AUTHORIZATION keeper;
	CREATE TABLE metrics.deep PARTITION OF metrics.metrics FOR VALUES IN ('DEEP') PARTITION BY RANGE (trial_id);
	CREATE TABLE metrics.deep_low PARTITION OF metrics.deep FOR VALUES FROM (1) TO (5);
	CREATE TABLE metrics.deep_high PARTITION OF metrics.deep FOR VALUES FROM (5) TO (11);
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type) SELECT t, t, 'deep', 'DEEP' FROM generate_series(1, 10) t;
});
$rows_before = rows_of($node, 'deep');
upgrade($node, 'deep');
is(rows_of($node, 'deep'), $rows_before, 'a partition that is partitioned keeps its rows');
is($node->safe_psql('deep', q{
	INSERT INTO metrics.metrics (trial_id, total_batches, metric_group, partition_type) VALUES (5, 11, 'deep', 'DEEP');
	SELECT tableoid::regclass, count(*) FROM metrics.metrics WHERE partition_type = 'DEEP' GROUP BY tableoid ORDER BY tableoid::regclass::text}),
	"metrics.deep_high|7\nmetrics.deep_low|4", 'and takes more');
is($node->safe_psql('deep', q{SELECT conrelid::regclass FROM pg_constraint WHERE NOT convalidated}), '', 'and has no check that is not valid');

#
# What stops the step.
#
create_keepers_store('refused');
my $key = 'on the key of "metrics"';
# What uses the key: how it is named, SQL that makes it, and SQL that takes it away.
my @blockers = (
	[ 'view keeper.v', 'CREATE VIEW keeper.v AS SELECT trial_id, partition_type FROM metrics.metrics', 'DROP VIEW keeper.v' ],
	[ 'view keeper.v', 'CREATE VIEW keeper.v AS SELECT trial_id FROM metrics.raw_steps WHERE partition_type IS NOT NULL', 'DROP VIEW keeper.v' ],
	[ 'view keeper.v', q{CREATE VIEW keeper.v AS SELECT 'TRAINING'::metrics.metric_partition_type AS a}, 'DROP VIEW keeper.v' ],
	[ 'materialized view keeper.mv', 'CREATE MATERIALIZED VIEW keeper.mv AS SELECT * FROM metrics.metrics', 'DROP MATERIALIZED VIEW keeper.mv' ],
	[ 'index i', 'CREATE INDEX i ON metrics.metrics (partition_type, trial_id)', 'DROP INDEX metrics.i' ],
	[ 'index i', 'CREATE INDEX i ON metrics.raw_steps (trial_id) INCLUDE (partition_type)', 'DROP INDEX metrics.i' ],
	[ 'index i', 'CREATE INDEX i ON metrics.generic_metrics ((partition_type IS NULL))', 'DROP INDEX metrics.i' ],
	[ 'index i', q{CREATE INDEX i ON metrics.raw_steps (trial_id) WHERE partition_type = 'TRAINING'}, 'DROP INDEX metrics.i' ],
	[ 'constraint u on table metrics', 'ALTER TABLE metrics.metrics ADD CONSTRAINT u UNIQUE (id, partition_type)', 'ALTER TABLE metrics.metrics DROP CONSTRAINT u' ],
	[ 'policy p on table metrics', q{CREATE POLICY p ON metrics.metrics USING (partition_type = 'TRAINING')}, 'DROP POLICY p ON metrics.metrics' ],
	[ 'policy p on table raw_steps', q{CREATE POLICY p ON metrics.raw_steps USING (true) WITH CHECK (partition_type > 'TRAINING')}, 'DROP POLICY p ON metrics.raw_steps' ],
	[ 'trigger t on table metrics', 'CREATE TRIGGER t AFTER UPDATE OF partition_type ON metrics.metrics FOR EACH ROW EXECUTE FUNCTION keeper.nothing()', 'DROP TRIGGER t ON metrics.metrics' ],
	[ 'trigger t on table raw_steps', q{CREATE TRIGGER t AFTER INSERT ON metrics.raw_steps FOR EACH ROW WHEN (NEW.partition_type = 'TRAINING') EXECUTE FUNCTION keeper.nothing()}, 'DROP TRIGGER t ON metrics.raw_steps' ],
	[ 'rule r on table metrics', q{CREATE RULE r AS ON DELETE TO metrics.metrics WHERE OLD.partition_type = 'GENERIC' DO INSTEAD NOTHING}, 'DROP RULE r ON metrics.metrics' ],
	[ 'statistics object keeper.s', 'CREATE STATISTICS keeper.s ON trial_id, partition_type FROM metrics.metrics', 'DROP STATISTICS keeper.s' ],
	[ 'statistics object keeper.s', 'CREATE STATISTICS keeper.s ON trial_id, (partition_type IS NULL) FROM metrics.raw_steps', 'DROP STATISTICS keeper.s' ],
	[ 'constraint c on table metrics', q{ALTER TABLE metrics.metrics ADD CONSTRAINT c CHECK (partition_type <> 'GENERIC' OR trial_id > 0)}, 'ALTER TABLE metrics.metrics DROP CONSTRAINT c' ],
	[ 'constraint c on table raw_steps', q{ALTER TABLE metrics.raw_steps ADD CONSTRAINT c CHECK (partition_type = 'TRAINING')}, 'ALTER TABLE metrics.raw_steps DROP CONSTRAINT c' ],
	[ 'column g of table metrics', q{ALTER TABLE metrics.metrics ADD COLUMN g boolean GENERATED ALWAYS AS (partition_type = 'GENERIC') STORED}, 'ALTER TABLE metrics.metrics DROP COLUMN g' ],
	[ 'publication of table metrics in publication pub', 'CREATE PUBLICATION pub FOR TABLE metrics.metrics (trial_id, partition_type) WITH (publish_via_partition_root)', 'DROP PUBLICATION pub' ],
	[ 'publication of table raw_steps in publication pub', 'CREATE PUBLICATION pub FOR TABLE metrics.raw_steps (partition_type)', 'DROP PUBLICATION pub' ],
	[ 'function keeper.f(metric_partition_type)', q{CREATE FUNCTION keeper.f(metrics.metric_partition_type) RETURNS int LANGUAGE sql AS 'SELECT 1'}, 'DROP FUNCTION keeper.f' ],
	[ 'function keeper.f()', q{CREATE FUNCTION keeper.f() RETURNS metrics.metric_partition_type[] LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'}, 'DROP FUNCTION keeper.f' ],
	[ 'function keeper.f()', q{CREATE FUNCTION keeper.f() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM metrics.metrics WHERE partition_type IS NOT NULL; END}, 'DROP FUNCTION keeper.f' ],
	[ 'column k of table keeper.t', 'CREATE TABLE keeper.t (k metrics.metric_partition_type)', 'DROP TABLE keeper.t' ],
	[ 'column k of table keeper.t', 'CREATE TABLE keeper.t (k metrics.metric_partition_type[])', 'DROP TABLE keeper.t' ],
	[ 'default value for column k of table keeper.t', q{CREATE TABLE keeper.t (k text DEFAULT 'GENERIC'::metrics.metric_partition_type)}, 'DROP TABLE keeper.t' ],
	[ 'type keeper.d', 'CREATE DOMAIN keeper.d AS metrics.metric_partition_type', 'DROP DOMAIN keeper.d' ],
	[ 'column k of composite type keeper.c', 'CREATE TYPE keeper.c AS (k metrics.metric_partition_type)', 'DROP TYPE keeper.c' ],
	[ 'type keeper.r', 'CREATE TYPE keeper.r AS RANGE (subtype = metrics.metric_partition_type)', 'DROP TYPE keeper.r' ],
	[ 'cast from metric_partition_type to integer', q{
		CREATE FUNCTION keeper.f(metrics.metric_partition_type) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
		CREATE CAST (metrics.metric_partition_type AS integer) WITH FUNCTION keeper.f}, 'DROP FUNCTION keeper.f CASCADE' ],
	[ 'constraint fk on table raw_steps', q{
		CREATE TABLE keeper.t (k metrics.metric_partition_type PRIMARY KEY);
		INSERT INTO keeper.t VALUES ('TRAINING');
		ALTER TABLE metrics.raw_steps ADD CONSTRAINT fk FOREIGN KEY (partition_type) REFERENCES keeper.t}, 'DROP TABLE keeper.t CASCADE' ],
	[ 'column row of table keeper.t', 'CREATE TABLE keeper.t (row metrics.raw_steps)', 'DROP TABLE keeper.t' ],
	[ 'column row of table keeper.t', 'CREATE TABLE keeper.t (row metrics.metrics[])', 'DROP TABLE keeper.t' ]);

$node->safe_psql('refused', q{
	SET ROLE keeper;
	CREATE FUNCTION keeper.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'});
$rows_before = rows_of($node, 'refused');
for my $blocker (@blockers)
{
	my ($object, $create, $drop) = @$blocker;
	# Only the superuser may make a cast that both sides of do not belong to.
	my $role = $create =~ /CREATE CAST/ ? '' : 'SET ROLE keeper;';

	$node->safe_psql('refused', "$role $create");
	$before = catalog_rows($node, 'refused');
	my $error = fails($node, 'refused', $update);
	my $plan = $node->safe_psql('refused', 'SELECT action FROM metrics_upgrade_plan() WHERE estimate IS NULL');
	# What stands in the store's own schema may be named without it.
	s/\bmetrics\.//g for $error, $plan;
	like($error, qr/ERROR:  2BP01: .*$key.*DETAIL:  (?:[^\n]*\n)*?[^\n]*\Q$object\E\n.*HINT:/s, "refused: $create");
	like($plan, qr/^refused: .*\Q$object\E$/m, 'the plan lists it');
	same_lines(catalog_rows($node, 'refused'), $before, 'nothing is changed');
	$node->safe_psql('refused', $drop);
}

# All that is in the way is named at once, and what is there to be dropped.
$node->safe_psql('refused', q{
	SET ROLE keeper;
	CREATE VIEW keeper.one AS SELECT partition_type FROM metrics.metrics;
	CREATE VIEW keeper.two AS SELECT partition_type FROM metrics.raw_validations;
	CREATE INDEX three ON metrics.raw_steps (partition_type);
});
like(fails($node, 'refused', $update), qr/keeper\.one.*keeper\.two/s, 'all that stand in the way are named: views');
like(fails($node, 'refused', $update), qr/index (metrics\.)?three/, 'and the index');
$node->safe_psql('refused', 'DROP VIEW keeper.one, keeper.two; DROP INDEX metrics.three');
is(rows_of($node, 'refused'), $rows_before, 'the rows are still the same');
upgrade($node, 'refused');
is(rows_of($node, 'refused'), $rows_before, 'and are kept by the step, which then works');

$node->stop;
done_testing();

__DATA__
-CREATE TYPE metrics.metric_partition_type AS ENUM (
-    'VALIDATION'
-    'TRAINING'
-    'GENERIC'
-    'Mine, "too"'
-);
-ALTER TYPE metrics.metric_partition_type OWNER TO keeper;
-    total_batches integer DEFAULT 0 NOT NULL
+    total_batches integer
-    partition_type metrics.metric_partition_type DEFAULT 'GENERIC'::metrics.metric_partition_type NOT NULL
-    partition_type metrics.metric_partition_type DEFAULT 'TRAINING'::metrics.metric_partition_type NOT NULL
-    partition_type metrics.metric_partition_type DEFAULT 'VALIDATION'::metrics.metric_partition_type NOT NULL
+    partition_type text DEFAULT 'GENERIC'::text NOT NULL
+    partition_type text DEFAULT 'TRAINING'::text NOT NULL
+    partition_type text DEFAULT 'VALIDATION'::text NOT NULL
+    partition_type text DEFAULT 'Mine, "too"'::text NOT NULL
+    CONSTRAINT partition_type_check CHECK ((partition_type = 'GENERIC'::text))
+    CONSTRAINT partition_type_check CHECK ((partition_type = 'TRAINING'::text))
+    CONSTRAINT partition_type_check CHECK ((partition_type = 'VALIDATION'::text))
+    CONSTRAINT partition_type_check CHECK ((partition_type = 'Mine, "too"'::text))
-COMMENT ON COLUMN metrics.metrics.partition_type IS 'key of the parent';
+COMMENT ON COLUMN metrics.metrics.partition_type IS 'key of the parent';
+CREATE TABLE metrics.system_metrics (
+    trial_id integer NOT NULL
+    end_time timestamp with time zone
+    metrics jsonb
+    trial_run_id integer DEFAULT 0 NOT NULL
+    archived boolean DEFAULT false NOT NULL
+    id bigint DEFAULT nextval('metrics.metrics_id_seq'::regclass) NOT NULL
+    partition_type text DEFAULT 'PROFILING'::text NOT NULL
+    metric_group text
+    host text DEFAULT 'here'::text NOT NULL
+    price numeric(8,2) DEFAULT 1.5
+    "odd ""name""" text COLLATE pg_catalog."C"
+    doubled integer GENERATED ALWAYS AS ((trial_id * 2)) STORED
+    CONSTRAINT batches_check CHECK ((total_batches >= 0))
+    CONSTRAINT "odd ""check""" CHECK (("odd ""name""" <> 'it''s'::text))
+    CONSTRAINT partition_type_check CHECK ((partition_type = 'PROFILING'::text))
+);
+ALTER TABLE metrics.system_metrics OWNER TO keeper;
+ALTER TABLE ONLY metrics.metrics ATTACH PARTITION metrics.system_metrics FOR VALUES IN ('PROFILING');
+ALTER TABLE ONLY metrics.system_metrics
+    ADD CONSTRAINT system_metrics_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES metrics.trials(id) ON DELETE CASCADE;
+CREATE INDEX system_metrics_trial_id_metric_group_end_time_id ON metrics.system_metrics USING btree (trial_id, metric_group, end_time, id);
+CREATE INDEX system_metrics_end_time_trial_id_idx ON metrics.system_metrics USING btree (end_time DESC) INCLUDE (trial_id);
+ALTER INDEX metrics.by_end_time ATTACH PARTITION metrics.system_metrics_end_time_trial_id_idx;
+GRANT SELECT ON TABLE metrics.system_metrics TO guest;
