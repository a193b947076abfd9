# What the upgrade tests share: servers, stores of a version, sessions that
# wait, and descriptions of data and catalog that can be compared.
package Store;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  start_server create_database create_store upgrade newest fill_store
  rows_of catalog_rows catalog_of dump_schema dump_database restore
  same_lines changed_lines fails refuses
  open_session start_query finish_query is_waiting
);

our @PARTITIONS = qw(generic_metrics raw_steps raw_validations);

# A server with nothing in it that acts by itself.
sub start_server
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => $options{streaming} // 0);
	$node->append_conf('postgresql.conf', join("\n",
		'autovacuum = off', 'timezone = UTC', "lc_messages = 'C'", 'client_min_messages = warning',
		$options{conf} // '', ''));
	$node->start;
	return $node;
}

# A database with a version of the extension, the newest by default.
sub create_database
{
	my ($node, $db, $version) = @_;

	$node->safe_psql('postgres', qq{CREATE DATABASE "$db"});
	$node->safe_psql($db, 'CREATE EXTENSION metrics_ext'
		. ($version ? " VERSION '$version'" : ''));
	return;
}

# A database with a version of the extension and its store.
sub create_store
{
	my ($node, $db, $version) = @_;

	create_database($node, $db, $version);
	$node->safe_psql($db, 'SELECT metrics_create_store()');
	return;
}

sub upgrade
{
	my ($node, $db) = @_;

	$node->safe_psql($db, 'ALTER EXTENSION metrics_ext UPDATE');
	return;
}

# The version that this build makes and updates to.
sub newest
{
	my ($node) = @_;

	return $node->safe_psql('postgres', q{SELECT default_version FROM pg_available_extensions WHERE name = 'metrics_ext'});
}

# Rows in all three partitions of a 1.0 store, a tenth of them archived, with
# documents of several shapes: half in raw_steps, a quarter in each other.
sub fill_store
{
	my ($node, $db, $rows) = @_;

	$node->safe_psql($db, qq{
		INSERT INTO metrics.trials (id, run_id, experiment_id)
			SELECT t, 1, t % 3 FROM generate_series(1, 10) t;
		INSERT INTO metrics.metrics
			(trial_id, end_time, metrics, total_batches, trial_run_id, archived, metric_group, partition_type)
		SELECT n % 10 + 1, timestamptz '2024-02-29 13:04:49.388948-05' + n * interval '1 s',
			CASE n % 4 WHEN 2 THEN jsonb_build_object('validation_metrics', jsonb_build_object('loss', 1.0 / (n + 1)))
			ELSE jsonb_build_object('avg_metrics', jsonb_build_object('loss', n, 'note', CASE WHEN n % 7 = 0 THEN 'NaN' END),
				'batch_metrics', CASE WHEN n % 100 = 0 THEN jsonb_build_array(jsonb_build_object('loss', n)) END)
			END,
			n, n % 2, n % 10 = 0,
			CASE n % 4 WHEN 2 THEN 'validation' WHEN 3 THEN 'inference' ELSE 'training' END,
			(CASE n % 4 WHEN 2 THEN 'VALIDATION' WHEN 3 THEN 'GENERIC' ELSE 'TRAINING' END)::metrics.metric_partition_type
		FROM generate_series(1, $rows) n;
	});
	return;
}

# All rows of the store's parent, condensed: a line a partition with their
# number and hashes that change with any value.
sub rows_of
{
	my ($node, $db, $schema) = @_;
	$schema //= 'metrics';

	return $node->safe_psql($db, qq{
		SELECT c.relname, count(*), min(id), max(id), sum(hash), bit_xor(hash)
		FROM (SELECT tableoid, id, hashtextextended(ROW(id, trial_id, end_time, metrics, total_batches,
				trial_run_id, archived, metric_group, partition_type::text)::text, 0)::numeric::bigint AS hash
			FROM $schema.metrics) m
		JOIN pg_class c ON c.oid = m.tableoid
		GROUP BY c.relname ORDER BY c.relname
	});
}

# Every row of the catalogs that DDL writes to, to prove that nothing changed.
sub catalog_rows
{
	my ($node, $db) = @_;
	my @catalogs = qw(pg_attrdef pg_attribute pg_class pg_constraint pg_default_acl pg_depend
	  pg_description pg_enum pg_event_trigger pg_extension pg_index pg_inherits pg_init_privs pg_namespace
	  pg_partitioned_table pg_policy pg_proc pg_publication pg_publication_rel pg_rewrite
	  pg_sequence pg_shdepend pg_statistic_ext pg_trigger pg_type);

	return $node->safe_psql($db,
		join(' UNION ALL ', map { "SELECT '$_ ' || c::text FROM $_ c" } @catalogs)
		  . ' ORDER BY 1');
}

# What the extension and the schema of its store consist of, a line for each
# property, without OIDs and without the positions that dropped columns leave.
sub catalog_of
{
	my ($node, $db, $schema) = @_;
	$schema //= 'metrics';

	return $node->safe_psql($db, slurp_query($schema));
}

sub slurp_query
{
	my ($schema) = @_;

	return qq{
	WITH store AS (
		SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN (\$s\$$schema\$s\$, 'metrics_bi')
	), member AS (
		SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'metrics_ext'
	), relation AS (
		SELECT * FROM store
		UNION SELECT c.* FROM pg_class c JOIN member m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
	), acl AS (
		SELECT 'relation' AS kind, oid, 0 AS sub, relacl AS acl FROM relation
		UNION ALL SELECT 'column', attrelid, attnum, attacl FROM pg_attribute WHERE attrelid IN (SELECT oid FROM relation)
		UNION ALL SELECT 'function', oid, 0, proacl FROM pg_proc
		UNION ALL SELECT 'schema', oid, 0, nspacl FROM pg_namespace
	), grants AS (
		SELECT kind, oid, sub, string_agg(item::text, ' ' ORDER BY item::text) AS grants
		FROM acl, unnest(acl) item GROUP BY kind, oid, sub
	), line AS (
		SELECT concat_ws(' | ', 'extension', extversion, nspname, pg_get_userbyid(extowner),
			(SELECT string_agg(t::regclass::text, ' ') FROM unnest(extconfig) t), extcondition::text,
			obj_description(e.oid, 'pg_extension')) AS line
		FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'metrics_ext'
	UNION ALL
		SELECT concat_ws(' | ', 'member', pg_describe_object(classid, objid, 0)) FROM member
	UNION ALL
		SELECT concat_ws(' | ', 'function', p.oid::regprocedure, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
			l.lanname, prosrc, probin, provolatile, proparallel, proisstrict, proleakproof, prosecdef, proretset,
			procost, prorows, proconfig::text, pg_get_userbyid(proowner), g.grants, obj_description(p.oid, 'pg_proc'))
		FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
		JOIN pg_language l ON l.oid = p.prolang
		LEFT JOIN grants g ON g.kind = 'function' AND g.oid = p.oid
	UNION ALL
		SELECT concat_ws(' | ', 'schema', nspname, pg_get_userbyid(nspowner), g.grants, obj_description(n.oid, 'pg_namespace'))
		FROM pg_namespace n LEFT JOIN grants g ON g.kind = 'schema' AND g.oid = n.oid WHERE nspname IN (\$s\$$schema\$s\$, 'metrics_bi')
	UNION ALL
		SELECT concat_ws(' | ', 'relation', r.oid::regclass, relkind, relpersistence, pg_get_userbyid(relowner), relreplident,
			relrowsecurity, relforcerowsecurity, relispartition, reltablespace, reloptions::text,
			pg_get_expr(relpartbound, r.oid), pg_get_partkeydef(r.oid), pg_get_partition_constraintdef(r.oid), g.grants, obj_description(r.oid, 'pg_class'))
		FROM relation r LEFT JOIN grants g ON g.kind = 'relation' AND g.oid = r.oid
	UNION ALL
		SELECT concat_ws(' | ', 'inherits', inhrelid::regclass, inhparent::regclass, inhseqno)
		FROM pg_inherits WHERE inhparent IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'column', attrelid::regclass, rank() OVER (PARTITION BY attrelid ORDER BY attnum), attname,
			format_type(atttypid, atttypmod), attcollation::regcollation, attnotnull, attidentity, attgenerated, attstorage,
			attcompression, attislocal, attinhcount, attstattarget,
			(SELECT string_agg(o, ' ') FROM unnest(attoptions) o WHERE o !~ '^pg_attver='), pg_get_expr(d.adbin, d.adrelid),
			g.grants, col_description(attrelid, attnum))
		FROM pg_attribute a JOIN relation r ON r.oid = attrelid
		LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
		LEFT JOIN grants g ON g.kind = 'column' AND g.oid = attrelid AND g.sub = attnum
		WHERE attnum > 0 AND NOT attisdropped
	UNION ALL
		SELECT concat_ws(' | ', 'constraint', conrelid::regclass, conname, contype, pg_get_constraintdef(c.oid), convalidated,
			condeferrable, condeferred, conislocal, coninhcount, connoinherit,
			(SELECT p.conname FROM pg_constraint p WHERE p.oid = c.conparentid), obj_description(c.oid, 'pg_constraint'))
		FROM pg_constraint c WHERE conrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'index', pg_get_indexdef(indexrelid), indisunique, indisprimary, indisvalid, indisready,
			indisreplident, indisclustered, inhparent::regclass, obj_description(indexrelid, 'pg_class'))
		FROM pg_index LEFT JOIN pg_inherits ON inhrelid = indexrelid WHERE indrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'trigger', pg_get_triggerdef(oid), tgenabled, obj_description(oid, 'pg_trigger'))
		FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'foreign key trigger', tgrelid::regclass, conname, tgfoid::regproc, tgtype, tgenabled)
		FROM pg_trigger t JOIN pg_constraint c ON c.oid = tgconstraint
		WHERE tgisinternal AND tgrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'policy', polrelid::regclass, polname, polcmd, polpermissive,
			pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
		FROM pg_policy WHERE polrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'statistics', pg_get_statisticsobjdef(oid), stxstattarget, obj_description(oid, 'pg_statistic_ext'))
		FROM pg_statistic_ext WHERE stxrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'rule', pg_get_ruledef(oid), ev_enabled) FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'sequence', seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
		FROM pg_sequence WHERE seqrelid IN (SELECT oid FROM relation)
	UNION ALL
		SELECT concat_ws(' | ', 'type', t.oid::regtype, typtype, (SELECT string_agg(enumlabel, ' ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid))
		FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE n.nspname = \$s\$$schema\$s\$
	UNION ALL
		SELECT concat_ws(' | ', 'initial grants', pg_describe_object(classoid, objoid, objsubid), initprivs::text)
		FROM pg_init_privs WHERE privtype = 'e' AND classoid = 'pg_class'::regclass AND objoid IN (SELECT oid FROM relation)
	)
	SELECT replace(line, E'\\n', ' ') FROM line ORDER BY line COLLATE "C"
	};
}

# pg_dump -s without comments, without commas at the ends of lines, which come
# and go with the next line, and without what differs between runs.
sub dump_schema
{
	my ($node, $db, @arguments) = @_;
	my ($stdout, $stderr);

	IPC::Run::run([ 'pg_dump', '--schema-only', @arguments, '-d', $node->connstr($db) ],
		'>' => \$stdout, '2>' => \$stderr) or die "pg_dump: $stderr";
	$stdout =~ s/^(--|\\(un)?restrict ).*\n|^\n|,$//mg;
	return $stdout;
}

# pg_dump to a file; its name.
sub dump_database
{
	my ($node, $db, @arguments) = @_;
	my $file = $node->basedir . "/$db.sql";

	IPC::Run::run([ 'pg_dump', '-f', $file, @arguments, '-d', $node->connstr($db) ])
	  or die "pg_dump of $db failed";
	return $file;
}

# A new database from a dump, by psql with nothing before or after; what psql
# said on stderr, which should be nothing.
sub restore
{
	my ($node, $file, $db) = @_;
	my ($stdout, $stderr);

	$node->safe_psql('postgres', qq{CREATE DATABASE "$db" TEMPLATE template0});
	IPC::Run::run([ 'psql', '-X', '-q', '-f', $file, '-d', $node->connstr($db) ],
		'>' => \$stdout, '2>' => \$stderr);
	return $stderr;
}

# Lines that went ("-") and came ("+"), in the order of the texts.
sub changed_lines
{
	my ($before, $after) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $diff;

	append_to_file("$dir/before", "$before\n");
	append_to_file("$dir/after", "$after\n");
	IPC::Run::run([ 'diff', '-U0', "$dir/before", "$dir/after" ], '>' => \$diff);
	return grep { /^[-+]/ && !/^(---|\+\+\+) / && !/^[-+]\s*$/ } split /\n/, $diff;
}

# A test: two texts are the same; says in which lines they differ.
sub same_lines
{
	my ($got, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($got eq $expected, $name)
	  or diag(join("\n", changed_lines($expected, $got)));
	return;
}

# The error that a statement ends in, as psql shows it with SQLSTATE.
sub fails
{
	my ($node, $db, $sql, @arguments) = @_;
	my ($rc, $stdout, $stderr) = $node->psql($db, $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose', @arguments ]);

	return $rc == 0 ? 'no error' : $stderr;
}

# A test: a statement is refused with this SQLSTATE and a text that matches.
sub refuses
{
	my ($node, $db, $sql, $sqlstate, $pattern, $name, @arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	like(fails($node, $db, $sql, @arguments),
		qr/ERROR:  $sqlstate: (?s:.*)$pattern/, $name);
	return;
}

# A session of its own, as psql in the background, with the pid of its backend.
sub open_session
{
	my ($node, $db, @arguments) = @_;
	my $session = $node->background_psql($db, on_error_stop => 0,
		extra_params => [ '-v', 'VERBOSITY=verbose', @arguments ]);

	$session->{backend} = $session->query('SELECT pg_backend_pid()');
	return $session;
}

# Send a statement without waiting for its result.
sub start_query
{
	my ($session, $sql) = @_;

	$session->{stderr} = '';
	$session->query_until(qr/^sent$/m, "\\echo sent\n$sql;\n");
	return;
}

# Wait for what start_query() sent: its output and its errors.
sub finish_query
{
	my ($session) = @_;
	my $output = $session->query('');
	my $errors = $session->{stderr};

	$session->{stderr} = '';
	chomp $errors;
	return wantarray ? ($output, $errors) : $output;
}

# A test: a session waits for a lock.
sub is_waiting
{
	my ($node, $session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until('postgres',
		"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $session->{backend}"), $name);
	return;
}

1;
