# The extension seen by clients: logins that have been granted what they need
# and nothing else, and the Python program of the source document.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('clients');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'America/Los_Angeles'");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
CREATE ROLE keeper LOGIN;
CREATE ROLE writer LOGIN;
CREATE ROLE reader LOGIN;
CREATE ROLE nobody LOGIN;
GRANT CREATE ON DATABASE postgres TO keeper;
SQL

sub as_role
{
	my ($role, $sql) = @_;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', $sql, extra_params => [ '-U', $role ],
		stdout => \$out, stderr => \$err);
	return ($status, $out, $err);
}

sub succeeds
{
	my ($role, $sql, $want, $description) = @_;
	my ($status, $out, $err) = as_role($role, $sql);
	is("$status $out$err", "0 $want", "$role: $description");
}

sub fails
{
	my ($role, $sql, $pattern, $description) = @_;
	my ($status, $out, $err) = as_role($role, $sql);
	ok($status != 0 && $err =~ $pattern, "$role: $description") or diag("$out$err");
}

# Roles.
succeeds('keeper', "SELECT metrics_create_store()", 'metrics.metrics', 'makes the store');
succeeds('keeper', "SELECT metrics_grant('writer', 'writer'), metrics_grant('reader', 'reader')", '|', 'grants');
fails('writer', "SELECT metrics_grant('nobody', 'reader')", qr/permission denied|must be owner/, 'may not grant');
succeeds('writer', "SELECT metrics_register_trial(363, 1, 7, 'loss')", '', 'registers a trial');
succeeds('writer', qq{SELECT count(metrics_report(363, g, '{"loss": 1}', 10, 1))
	FROM unnest(ARRAY['training', 'validation', 'inference', 'gpu']) g}, '4', 'reports to all four partitions');
succeeds('writer', qq{SELECT count(metrics_report(363, 'training', '{"more": 2}', 10, 1))}, '1', 'merges');
succeeds('writer', qq{SELECT cardinality(metrics_report_batch('[{"trial_id": 363, "metric_group": "training", "metrics": {"loss": 2}, "steps_completed": 20, "trial_run_id": 1}]'))},
	'1', 'reports a batch');
succeeds('writer', qq{SELECT metrics_register_trial(363, 2); SELECT count(metrics_report(363, 'validation', '{"loss": 3}', 10, 2))}, "\n1", 'rolls back');
succeeds('reader', "SELECT group_name, total_batches, trial_run_id FROM metrics_rows(363)", "training|10|1\ninference|10|1\nvalidation|10|2", 'reads rows');
succeeds('reader', "SELECT count(*) FROM metrics_timeseries(363, 'training', 'loss')", '1', 'reads a series');
succeeds('reader', "SELECT count(*) FROM metrics_profiling_rows(363, 'gpu')", '1', 'reads profiling');
succeeds('reader', "SELECT count(*), metrics_best_trial(7) FROM metrics.metrics", '6|363', 'queries the store');
fails('reader', qq{SELECT metrics_report(363, 'training', '{"loss": 2}', 30, 2)}, qr/permission denied/, 'may not report');
fails('reader', qq{SELECT metrics_report(363, 'cpu', '{"loss": 2}', 30, 2)}, qr/permission denied/, 'nor profile');
fails('reader', "SELECT metrics_register_trial(1)", qr/permission denied/, 'nor register');
fails('reader', "SELECT metrics_recompute_summary(363)", qr/permission denied/, 'nor recompute');
fails('reader', "SELECT * FROM metrics.raw_steps", qr/permission denied/, 'nor query a partition');
fails('nobody', "SELECT * FROM metrics_rows(363)", qr/permission denied/, 'reads nothing');
fails('nobody', qq{SELECT metrics_report(363, 'training', '{"loss": 2}', 30, 2)}, qr/permission denied/, 'reports nothing');
fails('nobody', "SELECT metrics_create_store()", qr/permission denied|must be owner|already/, 'takes over no store');

# A policy of the owner's binds writers and readers.
succeeds('keeper', "ALTER TABLE metrics.metrics ENABLE ROW LEVEL SECURITY;
	CREATE POLICY p ON metrics.metrics USING (trial_id <> 363)", '', 'sets a policy');
succeeds('reader', "SELECT count(*) FROM metrics_rows(363)", '0', 'reads what the policy lets through');
fails('writer', qq{SELECT metrics_report(363, 'cpu', '{"loss": 2}', NULL, 2)}, qr/row-level security/, 'reports what it lets through');
succeeds('keeper', "DROP POLICY p ON metrics.metrics; ALTER TABLE metrics.metrics DISABLE ROW LEVEL SECURITY", '', 'drops it');
is($node->safe_psql('postgres', "SELECT summary_metrics = metrics_recompute_summary(id) FROM metrics.trials"), 't', 'the summary holds');

# The Python program. The server's time zone is not the client's.
SKIP:
{
	my ($python) = grep { system("$_ -c 'import psycopg' >/dev/null 2>&1") == 0 } ('python3', '/usr/bin/python3');
	if (!$python)
	{
		ok(0, 'psycopg 3 is there') if $ENV{CI};
		skip 'no python3 with psycopg 3', 1;
	}
	my $program = PostgreSQL::Test::Utils::tempdir() . '/report.py';
	append_to_file($program, <<'PYTHON');
# The source document's client, with psycopg in place of its HTTP bindings.
import json
import math
import sys
import zoneinfo
from datetime import datetime

import psycopg
from psycopg.types.json import Jsonb


def main():
    # Trial ID from previous test trial.
    trial_id = 363

    metrics = {
        "test_metric": 0.13,
    }
    group = "cpu"

    # Pick a timezone that is NOT the same as the server's timezone
    # so we can verify the timestamp is converted to server's timezone.
    timezone = zoneinfo.ZoneInfo("America/New_York")
    now = datetime.now(tz=timezone).isoformat()
    with psycopg.connect(sys.argv[1]) as connection:
        row_id = connection.execute(
            "SELECT metrics_report(trial_id => %s, metric_group => %s, metrics => %s,"
            " trial_run_id => 2, report_time => %s)",
            (trial_id, group, Jsonb(metrics), now),
        ).fetchone()[0]
    print(row_id, now)

    # The same through a batch, and with numbers that JSON does not have.
    numbers = {"test_metric": math.nan, "other": math.inf, "third": 0.5}
    metrics = {name: value if math.isfinite(value) else json.dumps(value) for name, value in numbers.items()}
    with psycopg.connect(sys.argv[1]) as connection:
        reports = [dict(trial_id=trial_id, trial_run_id=2, metric_group="training", steps_completed=step,
                        metrics=metrics, report_time=now) for step in (100, 200)]
        ids = connection.execute("SELECT metrics_report_batch(%s)", (Jsonb(reports),)).fetchone()[0]
        try:
            with connection.transaction():
                connection.execute("SELECT metrics_report(%s, %s, %s, trial_run_id => 2)", (trial_id, "training", Jsonb({})))
        except psycopg.Error as error:
            print(*ids, error.sqlstate)


if __name__ == "__main__":
    main()
PYTHON
	my ($out, $err) = ('', '');
	my $connection = $node->connstr('postgres') . ' user=writer';
	IPC::Run::run([ $python, $program, $connection ], '>', \$out, '2>', \$err);
	like($out, qr/^\d+ \S+T\S+-0[45]:00\n\d+ \d+ 23502\n$/, 'B6: the program of the source document runs') or diag($err);
	my ($id, $now, $first, $second) = $out =~ /^(\d+) (\S+)\n(\d+) (\d+) 23502$/ or skip 'it did not', 1;
	is($node->safe_psql('postgres', "SET search_path = metrics, metrics_bi, public;
			SELECT trial_id, end_time = '$now', metrics, total_batches IS NULL, trial_run_id, archived, id, metric_group, partition_type
			FROM (select * from metrics where partition_type='PROFILING') m WHERE id = $id"),
		qq{363|t|{"test_metric": 0.13}|t|2|f|$id|cpu|PROFILING}, 'B6: its row is there, with its time to the microsecond');
	my $microseconds = $now =~ /(\.\d+)-/ ? $1 =~ s/0+$//r : '';
	like($node->safe_psql('postgres', "SELECT end_time FROM metrics.metrics WHERE id = $id"),
		qr/\Q$microseconds\E-0[78]$/, 'B6: shown in the time zone of the server');
	is($node->safe_psql('postgres', "SELECT metrics -> 'avg_metrics' FROM metrics.metrics WHERE id IN ($first, $second) ORDER BY id"),
		join("\n", ('{"other": "Infinity", "third": 0.5, "test_metric": "NaN"}') x 2), 'its batch too');
	is($node->safe_psql('postgres', "SELECT summary_metrics #>> '{avg_metrics,other,max}' FROM metrics.trials WHERE id = 363"), 'Infinity', 'summarised');
}

$node->stop;
done_testing();
