# Changes of series: what Perfherder's rules, written once more in Python, find
# in random series and in real ones, to the last digit.
use strict;
use warnings;
use File::Spec;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($python) = grep { system("$_ -c '' >/dev/null 2>&1") == 0 } ('python3', '/usr/bin/python3');
plan skip_all => 'no python3' unless $python;

my $node = PostgreSQL::Test::Cluster->new('change_detection');
$node->init;
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
-- Measurements in order of arrival.
CREATE TABLE measurement (series text, n serial, at bigint, push bigint, value float8);
CREATE TABLE expected (series text, n serial, at bigint, push bigint, t float8, prev_value float8, new_value float8, is_change boolean);
CREATE FUNCTION found(name text, windows integer[], threshold float8)
RETURNS TABLE (n bigint, at bigint, push bigint, t float8, prev_value float8, new_value float8, is_change boolean) LANGUAGE sql AS $$
    SELECT s.n, extract(epoch FROM s.push_timestamp)::bigint, s.push_id, s.t, CASE WHEN s.n > 1 THEN s.prev_value END,
           CASE WHEN s.n > 1 THEN s.new_value END, s.is_change
    FROM (SELECT array_agg(to_timestamp(m.at) ORDER BY m.n) AS times, array_agg(m.push ORDER BY m.n) AS pushes, array_agg(m.value ORDER BY m.n) AS vals
          FROM measurement m WHERE series = name) a,
    metrics_change_scores(times, pushes, vals, windows[1], windows[2], windows[3], threshold)
        WITH ORDINALITY s(push_timestamp, push_id, t, prev_value, new_value, is_change, n)
$$;
SQL

# Compare what both find in a series with what Python finds; returns the number of changes.
sub compare
{
	my ($series, $windows, $threshold) = @_;
	my $rows = $node->safe_psql('postgres', "SELECT at, push, value FROM measurement WHERE series = '$series' ORDER BY n");
	my ($output, $errors) = ('', '');
	my $program = <<'PYTHON';
import sys
sys.path.insert(0, "bench/lib")
from change_detection import scores
*windows, threshold = sys.argv[2:]
rows = [(int(at), int(push), float(value)) for at, push, value in (line.split("|") for line in sys.stdin if line.strip())]
for row in scores(rows, *map(int, windows), float(threshold)):
    print(sys.argv[1], *("\\N" if field is None else repr(field) for field in row), sep="\t")
PYTHON
	IPC::Run::run([ $python, '-c', $program, $series, @$windows, $threshold ], '<', \$rows, '>', \$output, '2>', \$errors)
	  or die $errors;
	$node->safe_psql('postgres', "TRUNCATE expected RESTART IDENTITY; COPY expected (series, at, push, t, prev_value, new_value, is_change) FROM STDIN;\n$output\\.\n");
	my $arguments = "'$series', '{" . join(',', @$windows) . "}', $threshold";
	is($node->safe_psql('postgres', qq{
			SELECT e.*, f.* FROM expected e FULL JOIN found($arguments) f USING (n)
			WHERE (e.at, e.push, e.t, e.prev_value, e.new_value, e.is_change) IS DISTINCT FROM (f.at, f.push, f.t, f.prev_value, f.new_value, f.is_change)
			LIMIT 3}), '', "$series, windows @$windows, threshold $threshold: the same");
	cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM expected'), '>', 0, 'as of some pushes');
	return $node->safe_psql('postgres', 'SELECT count(*) FROM expected WHERE is_change');
}

# Random ones: pushes of one to six measurements, some at one time, some that
# come back later; levels that jump; noise, or none.
my $changes = 0;
for my $seed (1 .. 12)
{
	$node->safe_psql('postgres', qq{
		SELECT setseed($seed / 100.0);
		WITH draw AS MATERIALIZED (SELECT i, random() AS a, random() AS b, random() AS c, random() AS d FROM generate_series(1, 400) i),
		level AS (SELECT *, sum(CASE WHEN a > 0.98 THEN b * 20 - 10 ELSE 0 END) OVER (ORDER BY i) AS level FROM draw)
		INSERT INTO measurement (series, at, push, value)
		SELECT 'random $seed', i / (1 + $seed % 3), (CASE WHEN c > 0.95 THEN i / 2 ELSE i END) / (1 + $seed % 4),
		       100 + level + CASE WHEN $seed % 5 = 0 THEN 0 ELSE d * (1 + $seed % 3) END
		FROM level, generate_series(0, (b * 100)::integer % (1 + $seed % 6)) ORDER BY i});
	$changes += compare("random $seed", @$_) for [ [ 12, 24, 12 ], 7 ], [ [ 5, 10, 5 ], 2 ], [ [ 12, 6, 3 ], 3 ], [ [ 1, 1, 1 ], 0 ];
}
cmp_ok($changes, '>', 100, 'changes were among them');

# Real series of Talos.
SKIP:
{
	my $data = $ENV{METRICS_SHARED_DATA};
	skip 'METRICS_SHARED_DATA names no folder of real inputs', 1 unless $data && -d "$data/perf";
	$data = File::Spec->rel2abs("$data/perf");
	my %found = (
		runs1 => '1365019665|16.266460381383897|304.2895833333333|324.4974166666666',
		runs3 => "1335293827|Infinity|344|359\n1338839958|Infinity|359|364",
		tp5rss => "1372846906|7.491909273878159|216713375|220672166.66666666\n1373413365|9.820180724309537|223040750|257243666.66666666\n"
		  . '1373424974|10.765250712397807|257631083.33333334|224019166.66666666');
	for my $name (sort keys %found)
	{
		my $runs = decode_json(slurp_file("$data/$name.json"))->{test_runs};
		$node->safe_psql('postgres', 'COPY measurement (series, at, push, value) FROM STDIN;' . "\n"
			. join('', map { "$name\t$_->[2]\t$_->[1][0]\t$_->[3]\n" } @$runs) . "\\.\n");
		compare($name, [ 12, 24, 12 ], 7);
		is($node->safe_psql('postgres', "SELECT at, t, prev_value, new_value FROM found('$name', '{12,24,12}', 7) WHERE is_change"),
			$found{$name}, "$name: its changes");
	}
}

$node->stop;
done_testing();
