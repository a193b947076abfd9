# What the README says: its queries are the source document's to the letter,
# its Python program runs and does what it says, and its reference is whole.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $readme = slurp_file('README.md');
my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'America/Los_Angeles'");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
CREATE ROLE writer LOGIN;
SELECT metrics_grant('writer', 'writer');
SELECT metrics_register_trial(363, 1);
SQL

# The queries, as they stand in the test that runs them.
my @queries = slurp_file('test/sql/source_document.sql') =~ /^\\o \|[^\n]*\n--[^\n]*\n(.*?)\n\\o$/msg;
is(scalar @queries, 5, 'five verification queries');
ok(index($readme, $_) >= 0, 'B1 to B5: to the letter: ' . (/(table_name.*|WHERE.*)$/m)[0]) for @queries;
ok(index($readme, "select * from metrics where partition_type='PROFILING';") >= 0, 'B6: and the query of the profiling row');

# Every function and setting.
for my $name (split /\n/, $node->safe_psql('postgres', <<'SQL'))
SELECT proname FROM pg_proc WHERE oid IN (SELECT objid FROM pg_depend WHERE classid = 'pg_proc'::regclass AND deptype = 'e'
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'metrics_ext'))
    -- what types and aggregates call is not called by name
    AND proname !~ '_(in|out|recv|send|add|add_time|trans|remove|combine|serialize|deserialize|final|final_time)$'
UNION SELECT name FROM pg_settings WHERE name LIKE 'metrics\_ext.%'
ORDER BY 1
SQL
{
	ok($readme =~ /^\|.*`[^`\n]*\b\Q$name\E[`(]/m, "the reference has $name");
}

# The Python program, as the role that the README would have run it.
SKIP:
{
	my ($python) = grep { system("$_ -c 'import psycopg' >/dev/null 2>&1") == 0 } ('python3', '/usr/bin/python3');
	if (!$python)
	{
		ok(0, 'psycopg 3 is there') if $ENV{CI};
		skip 'no python3 with psycopg 3', 1;
	}
	my ($program) = $readme =~ /^```python\n(.*?)^```$/ms;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/readme.py';
	append_to_file($file, $program);
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'writer');
	my ($before, $err) = ($node->safe_psql('postgres', 'SELECT clock_timestamp()'), '');
	ok(IPC::Run::run([ $python, $file ], '2>', \$err), 'B6: the Python program runs') or diag($err);
	is($node->safe_psql('postgres', "SET search_path = metrics, metrics_bi, public;
			SELECT trial_id, end_time BETWEEN '$before' AND clock_timestamp(), metrics, total_batches IS NULL, trial_run_id, archived, metric_group, partition_type
			FROM (select * from metrics where partition_type='PROFILING') m"),
		'363|t|{"test_metric": 0.13}|t|1|f|cpu|PROFILING', 'B6: and its row is there, at its time');
}

$node->stop;
done_testing();
