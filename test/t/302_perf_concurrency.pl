# Performance data under load, by a role that may write and nothing else: the
# same reports from several sessions, different ones of the same series, new
# series in any order; then the same answers after a crash, from a dump and from
# a standby. Real artifacts go in twice and from four sessions at once.
use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('perf');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "timezone = 'UTC'\ndeadlock_timeout = 100ms\nmax_connections = 20");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE keeper LOGIN;
CREATE ROLE writer LOGIN;
CREATE EXTENSION metrics_ext;
GRANT CREATE ON DATABASE postgres TO keeper;
GRANT CREATE ON SCHEMA public TO keeper;
SET ROLE keeper;
SELECT metrics_create_store();
SELECT metrics_add_repository('autoland'), metrics_add_repository('try', is_try => true);
SELECT metrics_grant('writer', 'writer');
SELECT metrics_add_push(r, 'r' || i, '2026-01-01 00:00+00'::timestamptz + i * interval '1 hour') FROM generate_series(1, 20) i, unnest('{autoland,try}'::text[]) r;

-- The artifact of a job: it has from one to six suites, in any order, and a
-- value that follows from the job, so that whoever reports it reports the same.
CREATE FUNCTION artifact(job integer) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('framework', '{"name": "talos"}'::jsonb, 'suites', jsonb_agg(jsonb_build_object('name', 'suite' || s, 'value', job,
        'extraOptions', CASE WHEN s % 2 = 0 THEN '["e10s"]'::jsonb ELSE '[]' END, 'unit', CASE WHEN job % 3 = 0 THEN 'ms' ELSE 's' END,
        'subtests', (SELECT jsonb_agg(jsonb_build_object('name', 't' || t, 'value', job + t, 'replicates', jsonb_build_array(job, t)) ORDER BY random()) FROM generate_series(1, 3) t))
        ORDER BY random()))
    FROM generate_series(1, 1 + job % 6) s
$$;
CREATE TABLE told (repository text, job integer, created integer, existing integer, skipped integer);
GRANT INSERT ON told TO writer;
CREATE FUNCTION report(repository text, job integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO told SELECT repository, job, created, existing, skipped
    FROM metrics.performance_push p, metrics_report_perf(repository, p.id, job, artifact(job), 'p' || job % 3, ARRAY['o' || job % 2], 'm' || job)
    WHERE p.repository = report.repository AND revision = 'r' || 1 + job % 20
$$;
SQL

# Everything that was reported, without the ids that follow from the order of arrival.
my $stored = q{
	SELECT d.repository, r.job_id, p.revision, d.push_timestamp, s.suite, s.test, s.extra_options, f.name, o.options, d.value, d.replicates, r.machine
	FROM metrics.performance_datum d JOIN metrics.performance_run r ON r.id = d.run_id JOIN metrics.performance_push p ON p.id = d.push_id
	JOIN metrics.performance_signature s ON s.id = d.signature_id JOIN metrics.performance_platform f ON f.id = s.platform_id
	JOIN metrics.performance_option_collection o ON o.id = s.option_collection_id};

# Many sessions: of 300 jobs each is reported about six times.
$node->pgbench('--no-vacuum --client=8 --jobs=2 --transactions=450 --random-seed=1192976 --username=writer', 0,
	[qr{processed: 3600/3600}], [qr{^(?!.*(ERROR|FATAL))}s], 'T5: 3,600 reports of 300 jobs of two repositories from 8 sessions, no error',
	{ '302_reports' => q{
		\set job random(1, 300)
		\if :job % 2 = 0
			SELECT report('autoland', :job);
		\else
			SELECT report('try', :job);
		\endif
	} });
unlike(slurp_file($node->logfile), qr/deadlock detected/, 'no deadlock');
is($node->safe_psql('postgres', 'SELECT count(*) > 1000, bool_and(created + existing = 4 * (1 + job % 6)), bool_and(skipped = 0) FROM told'), 't|t|t', 'each session was told of every measurement');
is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT FROM told GROUP BY repository, job HAVING sum(created) <> 4 * (1 + job % 6)) j'), '0', 'T5: and of each job one has created them all');
$node->safe_psql('postgres', "CREATE VIEW stored AS $stored");
is($node->safe_psql('postgres', q{
		WITH expected AS (
			SELECT j.repository, j.job::bigint, 'r' || 1 + j.job % 20, '2026-01-01 00:00+00'::timestamptz + (1 + j.job % 20) * interval '1 hour',
			       'suite' || s, CASE WHEN t = 0 THEN '' ELSE 't' || t END, CASE WHEN s % 2 = 0 THEN '{e10s}' ELSE '{}' END::text[],
			       'p' || j.job % 3, ARRAY['o' || j.job % 2], (j.job + t)::float8, CASE WHEN t > 0 THEN ARRAY[j.job, t]::float8[] END, 'm' || j.job
			FROM (SELECT DISTINCT repository, job FROM told) j, generate_series(1, 1 + j.job % 6) s, generate_series(0, 3) t)
		SELECT (SELECT count(*) FROM expected) > 3000, count(*) FROM
		((TABLE expected EXCEPT ALL SELECT * FROM stored) UNION ALL (SELECT * FROM stored EXCEPT ALL TABLE expected)) d}),
	't|0', 'T5: what is stored is what was reported, once');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT (repository, platform_id, option_collection_id, suite, test)) FROM metrics.performance_signature'),
	'84|84', 'one row a series');
is($node->safe_psql('postgres', q{SELECT count(*) FROM metrics.performance_activity a
		WHERE last_updated IS DISTINCT FROM (SELECT max(push_timestamp) FROM metrics.performance_datum d WHERE d.signature_id = a.signature_id)}), '0', 'T11: each reaches as far as its measurements');
is($node->safe_psql('postgres', q{SELECT count(*) FROM metrics.performance_run r
		WHERE (first_timestamp, last_timestamp) IS DISTINCT FROM (SELECT (min(push_timestamp), max(push_timestamp)) FROM metrics.performance_datum d WHERE d.run_id = r.id)}), '0', 'and each run knows its times');

# A transaction that is taken back leaves nothing.
my $before = $node->safe_psql('postgres', 'SELECT count(*), md5(string_agg(s::text, chr(10) ORDER BY s::text)) FROM stored s');
$node->safe_psql('postgres', q{BEGIN; SAVEPOINT s; SELECT report('autoland', 1001), report('autoland', 2); ROLLBACK TO s; COMMIT});
is($node->safe_psql('postgres', 'SELECT count(*), md5(string_agg(s::text, chr(10) ORDER BY s::text)) FROM stored s'), $before, 'T36: a subtransaction that is rolled back');

# Real artifacts.
SKIP:
{
	my $data = $ENV{METRICS_SHARED_DATA};
	skip 'METRICS_SHARED_DATA names no folder of real inputs', 1 unless $data && -d "$data/perf";
	$data = File::Spec->rel2abs("$data/perf");
	$node->safe_psql('postgres', 'CREATE TABLE real (name text, artifact jsonb); GRANT SELECT ON real TO writer');
	my @names = map { m{([^/]+)\.json$} } sort glob "$data/artifact_*.json";
	is(scalar @names, 2, 'two real artifacts');
	for my $name (@names)
	{
		my $artifact = slurp_file("$data/$name.json");
		$node->safe_psql('postgres', "INSERT INTO real VALUES ('$name', \$artifact\$$artifact\$artifact\$)");
		my $report = "SELECT created, existing FROM real, metrics_report_perf('autoland', (SELECT min(id) FROM metrics.performance_push WHERE repository = 'autoland'), :job, artifact, 'win7', '{opt}') WHERE name = '$name'";
		my $count = $node->safe_psql('postgres', "SELECT sum(1 + jsonb_array_length(s -> 'subtests')) FROM real, jsonb_array_elements(artifact -> 'suites') s WHERE name = '$name'");
		is($node->safe_psql('postgres', $report =~ s/:job/7001/r), "$count|0", "$name goes in");
		is($node->safe_psql('postgres', $report =~ s/:job/7001/r), "0|$count", 'and a second time it is there');
		$node->pgbench('--no-vacuum --client=4 --jobs=2 --transactions=1 --username=writer', 0, [qr{processed: 4/4}], [qr{^}],
			'and from four sessions at once', { "302_$name" => ($report =~ s/:job/7002/r) . ";" });
		is($node->safe_psql('postgres', qq{
				WITH expected AS (
					SELECT job, s ->> 'name', t ->> 'name', (t ->> 'value')::float8, (SELECT array_agg(r::float8 ORDER BY n) FROM jsonb_array_elements_text(t -> 'replicates') WITH ORDINALITY e(r, n))
					FROM real, jsonb_array_elements(artifact -> 'suites') s, jsonb_array_elements(s -> 'subtests' || jsonb_build_array(jsonb_build_object('name', '', 'value', s -> 'value'))) t, unnest('{7001,7002}'::bigint[]) job
					WHERE name = '$name'
				), got AS (
					SELECT job_id, suite, test, value, replicates FROM stored WHERE job_id IN (7001, 7002) AND suite IN (SELECT s ->> 'name' FROM real, jsonb_array_elements(artifact -> 'suites') s WHERE name = '$name'))
				SELECT (SELECT count(*) FROM got), count(*) FROM ((TABLE expected EXCEPT ALL TABLE got) UNION ALL (TABLE got EXCEPT ALL TABLE expected)) d}),
			2 * $count . '|0', 'all of it once for each job, replicates and all');
	}
	is($node->safe_psql('postgres', q{SELECT count(*), sum(cardinality(replicates)) FROM stored WHERE job_id = 7001}), '116|2750', '52 and 64 measurements, 110 of them with 25 replicates');
}

# The same answers after a crash, from a standby and from a dump.
my $answers = q{
	SELECT md5(string_agg(a::text, chr(10))) FROM (SELECT a FROM unnest('{autoland,try}'::text[]) r, metrics_perf_data(r, job_ids => ARRAY(SELECT generate_series(1, 300))) a) a;
	SELECT md5(string_agg(a::text, chr(10))) FROM (SELECT a FROM metrics_perf_data('autoland', push_ids => ARRAY(SELECT id FROM metrics.performance_push ORDER BY id)) a) a;
	SELECT md5(string_agg(a::text, chr(10))) FROM (SELECT a FROM metrics_perf_data('try', (SELECT array_agg(id) FROM metrics_perf_signatures('try')), since => '2026-01-01 03:00+00', until => '2026-01-01 17:00+00') a) a;
	SELECT count(*) FROM metrics_perf_data('autoland', push_ids => ARRAY(SELECT id FROM metrics.performance_push))};
my $want = $node->safe_psql('postgres', $answers);
like($want, qr/\n[1-9][0-9]+$/, 'there are answers');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $answers), $want, 'T36: after a crash');
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('perf_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $answers), $want, 'T36: from a standby');
like(($standby->psql('postgres', q{SELECT report('autoland', 1)}))[2], qr/cannot execute .* in a read-only transaction/, 'which takes no reports');
$standby->stop;
my $dump = PostgreSQL::Test::Utils::tempdir() . '/perf.sql';
$node->command_ok([ 'pg_dump', '-d', 'postgres', '-f', $dump, '-h', $node->host, '-p', $node->port ], 'dumped');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', 'restored', '-f', $dump, '-h', $node->host, '-p', $node->port ], 'and restored');
is($node->safe_psql('restored', $answers), $want, 'T36: from the dump');
$node->safe_psql('restored', q{SET ROLE writer; SELECT report('try', 999)});
is($node->safe_psql('restored', 'SELECT created FROM told WHERE job = 999'), '16', 'which takes reports');

# Retention commits its steps: what stops it half-way costs the open one.
my ($repository_runs, $stop_at) = split /\|/, $node->safe_psql('postgres', q{SELECT count(*), (array_agg(id ORDER BY id))[50] FROM metrics.performance_run WHERE repository = 'try'});
$node->safe_psql('postgres', qq{
	UPDATE metrics.performance_repository SET keep = '-100 years' WHERE name = 'try';
	CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = $stop_at THEN RAISE ''stopped''; END IF; RETURN OLD; END';
	CREATE TRIGGER stop BEFORE DELETE ON metrics.performance_run FOR EACH ROW EXECUTE FUNCTION stop()});
my $kept = $node->safe_psql('postgres', q{SELECT count(*) FROM stored WHERE repository = 'autoland'});
like(($node->psql('postgres', 'CALL metrics_expire_perf(max_runs => 7)'))[2], qr/ERROR:  stopped/, 'T35: stopped at the 50th run');
is($node->safe_psql('postgres', q{SELECT count(*) FROM metrics.performance_run WHERE repository = 'try'}), $repository_runs - 49, 'T35: seven steps of seven runs are done');
is($node->safe_psql('postgres', q{SELECT count(*) FROM metrics.performance_run r WHERE NOT EXISTS (SELECT FROM metrics.performance_datum WHERE run_id = r.id)}), '0', 'T35: and no run without its measurements');
$node->safe_psql('postgres', 'DROP TRIGGER stop ON metrics.performance_run; CALL metrics_expire_perf(max_runs => 7)');
is($node->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE repository = 'try'), count(*) FILTER (WHERE repository = 'autoland') FROM stored}), "0|$kept", 'T35: called again it removes the rest, and nothing else');

$node->stop;
done_testing();
