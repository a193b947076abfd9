# However a store and its extension came to the newest version, their catalog
# entries are the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Store;
use Test::More;

my $node = start_server('equal');

# What the extension and the store consist of, and the rows they came with.
sub everything
{
	my ($db) = @_;

	return catalog_of($node, $db) . "\n" . $node->safe_psql($db, q{
		SELECT 'store', store FROM metrics_store;
		SELECT 'layout', version FROM metrics.metrics_layout;
		SELECT 'kind', partition_key, kind FROM metrics.metrics_partition_kind ORDER BY 1, 2;
		SELECT 'route', metric_group, partition_key FROM metrics.metrics_route ORDER BY 1, 2;
	});
}

create_store($node, 'fresh');
my $fresh = everything('fresh');
cmp_ok(scalar(split /\n/, $fresh), '>', 150, 'the comparison looks at something');
like($fresh, qr/^$_ \| /m, "at every $_")
  for 'extension', 'member', 'function', 'schema', 'relation', 'inherits', 'column', 'constraint', 'index', 'foreign key trigger', 'sequence', 'type';

create_store($node, 'upgraded', '1.0');
unlike(everything('upgraded'), qr/^relation \| metrics.system_metrics/m, '1.0 is another layout');
isnt(everything('upgraded'), $fresh, 'and differs');
upgrade($node, 'upgraded');
same_lines(everything('upgraded'), $fresh, '1.0 upgraded');

create_store($node, 'used', '1.0');
fill_store($node, 'used', 1000);
upgrade($node, 'used');
same_lines(everything('used'), $fresh, '1.0 upgraded with rows');

create_database($node, 'later', '1.0');
upgrade($node, 'later');
$node->safe_psql('later', 'SELECT metrics_create_store()');
same_lines(everything('later'), $fresh, 'a store made after the upgrade of the extension');

create_store($node, 'dropped', '1.0');
$node->safe_psql('dropped', 'DROP EXTENSION metrics_ext CASCADE; CREATE EXTENSION metrics_ext; SELECT metrics_create_store()');
same_lines(everything('dropped'), $fresh, 'a 1.0 store taken up by a new extension');

create_store($node, 'old', '1.0');
fill_store($node, 'old', 100);
is(restore($node, dump_database($node, 'old'), 'brought'), '', 'the dump of a 1.0 store restores');
$node->safe_psql('brought', 'SELECT metrics_upgrade_store()');
same_lines(everything('brought'), $fresh, 'and brought along by metrics_upgrade_store() is the same');

for my $db (qw(fresh upgraded used))
{
	is(restore($node, dump_database($node, $db), "restored_$db"), '', "the dump of $db restores");
	same_lines(everything("restored_$db"), $fresh, "and is the same");
	same_lines(dump_schema($node, "restored_$db"), dump_schema($node, 'fresh'), "and so is its dump");
}

# The same for an owner who is no superuser, with grants that upgrades keep.
$node->safe_psql('postgres', 'CREATE ROLE keeper; CREATE ROLE reader; CREATE ROLE writer;');
my %grants = (keepers_fresh => undef, keepers_upgraded => '1.0');
for my $db (sort keys %grants)
{
	create_database($node, $db, $grants{$db});
	$node->safe_psql($db, "GRANT CREATE ON DATABASE $db TO keeper; SET ROLE keeper; SELECT metrics_create_store();
		SELECT metrics_grant('reader', 'reader'), metrics_grant('writer', 'writer')");
}
upgrade($node, 'keepers_upgraded');
same_lines(everything('keepers_upgraded'), everything('keepers_fresh'), 'an owner who is no superuser, with grants');

# What the comparison does not say.
is($node->safe_psql('fresh', q{
	SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'metrics_ext')
	  AND deptype = 'e' AND classid IN ('pg_proc'::regclass, 'pg_class'::regclass) AND obj_description(objid, classid::regclass::name) IS NULL}),
	'', 'every function and table of the extension has a comment');
is($node->safe_psql('fresh', q{
	SELECT DISTINCT p.oid::regprocedure FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
	WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'metrics_ext')
	  AND (p.prosecdef OR p.proargnames IS NULL AND p.pronargs > 0
			-- what types and aggregates call is not called by name
			AND p.proname !~ '_(in|out|recv|send|add|add_time|trans|remove|combine|serialize|deserialize|final|final_time)$')}),
	'', 'no function runs with the rights of its owner, and every argument has a name');
is($node->safe_psql('fresh', q{
	SELECT name, version, default_version FROM pg_available_extension_versions JOIN pg_available_extensions USING (name)
	WHERE name = 'metrics_ext' AND version <> default_version
	  AND NOT EXISTS (SELECT FROM pg_extension_update_paths('metrics_ext') WHERE source = version AND target = default_version AND path IS NOT NULL)}),
	'', 'from every version there is a way to the newest');

$node->stop;
done_testing();
