# Exact percentiles equal core's, whatever the values and whichever way the
# executor goes: over 2,000 cases in memory, 54 spilled ones; and inputs that have
# brought down others end in time.  Values come from a hash of case and position,
# so all runs see the same.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $cases = 2150;
my $spilled_cases = 54;

my $node = PostgreSQL::Test::Cluster->new('percentile_property');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
jit = off
fsync = off
autovacuum = off
max_parallel_workers_per_gather = 0
work_mem = '64MB'
CONF
$node->start;

sub sql { return $node->safe_psql('postgres', join(";\n", @_)); }

# A row a value.  u is uniform in [0, 1), k counts from 0 to n - 1.
sql(<<'SQL');
CREATE EXTENSION metrics_ext;

CREATE FUNCTION uniform(bigint, bigint) RETURNS float8 LANGUAGE sql IMMUTABLE AS
'SELECT (hashint8extended($1, $2) & 9007199254740991)::float8 / 9007199254740992';

CREATE FUNCTION value_of(kind int, k bigint, n bigint, u float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
SELECT CASE kind
    WHEN 0 THEN u                                                       -- uniform
    WHEN 1 THEN floor(u * 7) - 3                                        -- duplicates
    WHEN 2 THEN CASE WHEN u < 0.3 THEN 'NaN' ELSE u - 0.5 END
    WHEN 3 THEN CASE WHEN u < 0.2 THEN '-Infinity' WHEN u > 0.8 THEN 'Infinity'
                     WHEN u > 0.7 THEN 'NaN' ELSE u - 0.5 END
    WHEN 4 THEN CASE WHEN u < 0.4 THEN '-0' WHEN u < 0.8 THEN 0 ELSE u - 0.9 END
    WHEN 5 THEN (floor(u * 2000) - 1000) * '4.9406564584124654e-324'::float8  -- subnormal
    WHEN 6 THEN k                                                       -- sorted
    WHEN 7 THEN n - k                                                   -- reversed
    WHEN 8 THEN least(k, n - k)                                         -- organ pipe
    WHEN 9 THEN 42.5                                                    -- all equal
    WHEN 10 THEN sign(u - 0.5) * power(10, floor(u * 1e6)::bigint % 600 - 300 + u)
    WHEN 11 THEN 1 + u / 1000                                           -- within one bucket of a sketch
    WHEN 12 THEN CASE WHEN k >= n / 2 THEN 2 * (k - n / 2) + 2          -- median-of-3 killer
                      WHEN k % 2 = 0 THEN k + 1 ELSE n / 2 + k END
    WHEN 13 THEN 'NaN'
    ELSE CASE WHEN k < n - 1 THEN 1e308 ELSE u END
END
$$;

-- The same value: to the bit if finite and not zero, else by equality.
CREATE FUNCTION same(a float8[], b float8[]) RETURNS bool LANGUAGE sql IMMUTABLE AS $$
SELECT a IS NOT DISTINCT FROM b AND coalesce(bool_and(
           x IS NULL OR x IN (0, 'NaN', 'Infinity', '-Infinity') OR float8send(x) = float8send(y)), true)
  FROM unnest(a, b) t(x, y)
$$;

CREATE TABLE parameters (c int PRIMARY KEY, kind int, n bigint, fractions float8[], spilled bool);
CREATE TABLE cases (c int, k bigint, v float8);
CREATE TABLE weighted (c int, v float8, w bigint);
CREATE TABLE expected (c int PRIMARY KEY, cont float8[], disc float8[]);
SQL

# Half of the cases have at most 40 values.
sql(<<SQL);
INSERT INTO parameters
SELECT c, c % 15,
       CASE WHEN c % 15 = c THEN 0 WHEN c % 2 = 0 THEN floor(uniform(c, 1) * 40)
            ELSE floor(power(uniform(c, 1), 3) * 5000) END,
       ARRAY[0, 0.5, 0.95, 0.99, 1, NULL] ||
       ARRAY(SELECT uniform(c, 10 + i) FROM generate_series(1, c % 5) i), false
  FROM generate_series(1, $cases) c;
INSERT INTO parameters
SELECT $cases + i, (i * 11) % 15, 20000 + floor(power(uniform(i, 2), 4) * 180000),
       ARRAY[0, 0.5, 0.95, 0.99, 1, uniform(i, 3)], true
  FROM generate_series(1, $spilled_cases) i;
INSERT INTO cases
SELECT c, k, value_of(kind, k, n, uniform(c * 1000000::bigint + k, 4))
  FROM parameters, generate_series(0, n - 1) k;
-- Equal values in up to three rows, some with weight 0.
INSERT INTO weighted
SELECT c, v, count(*) FROM cases GROUP BY c, v, k % 3
UNION ALL SELECT c, v, 0 FROM cases WHERE k % 10 = 0;
CREATE INDEX ON cases (c);
CREATE INDEX ON weighted (c);
ANALYZE;
INSERT INTO expected
SELECT c, percentile_cont(fractions) WITHIN GROUP (ORDER BY v), percentile_disc(fractions) WITHIN GROUP (ORDER BY v)
  FROM cases JOIN parameters USING (c) GROUP BY c, fractions;
SQL

# All answers of a query (c, cont, disc) against what is expected.
sub answers_are_cores
{
	my ($description, $query, $condition, @settings) = @_;
	my $wrong = sql(@settings, <<SQL);
SELECT count(*) FILTER (WHERE a.c IS NULL) || ' missing, ' ||
       count(*) FILTER (WHERE NOT same(a.cont, e.cont)) || ' cont, ' ||
       count(*) FILTER (WHERE NOT same(a.disc, e.disc)) || ' disc: ' ||
       coalesce(string_agg(e.c::text, ' ') FILTER (WHERE NOT (same(a.cont, e.cont) AND same(a.disc, e.disc))), 'none')
  FROM expected e JOIN parameters p USING (c) LEFT JOIN ($query) a USING (c)
 WHERE $condition
SQL
	is($wrong, '0 missing, 0 cont, 0 disc: none', $description);
}

my $answers = 'metrics_percentiles(v, fractions) AS cont, metrics_percentiles_disc(v, fractions) AS disc';
my $grouped = "SELECT c, $answers FROM cases JOIN parameters USING (c) GROUP BY c";
my $of_weights = $grouped =~ s/disc\(v/disc_weighted(v, w/r =~ s/percentiles\(v/percentiles_weighted(v, w/r
  =~ s/FROM cases/FROM weighted/r;
my $parallel = q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2};

is(sql('SELECT count(*) >= 2050 FROM expected'), 't', 'there are cases');
is(sql('SELECT max(n) > 4900 AND min(n) = 0 FROM parameters WHERE NOT spilled'), 't', 'of all sizes');
answers_are_cores('hashed groups', $grouped, 'NOT spilled', 'SET enable_sort = off');
answers_are_cores('sorted groups', $grouped, 'true', 'SET enable_hashagg = off');
answers_are_cores('weights', $of_weights, 'true');

# Fractions as constants, in parallel.
my $fixed = 'SELECT c, metrics_percentiles(v, ARRAY[0, 0.5, 0.95, 0.99, 1]) AS cont,
metrics_percentiles_disc(v, ARRAY[0, 0.5, 0.95, 0.99, 1]) AS disc FROM cases GROUP BY c';
like(sql($parallel, "EXPLAIN $fixed"), qr/Finalize.*Partial/s, 'a parallel plan');
is(sql($parallel, <<SQL), '0', 'parallel');
SELECT count(*) FROM expected e JOIN ($fixed) a USING (c)
 WHERE NOT (same(a.cont, e.cont[1:5]) AND same(a.disc, e.disc[1:5]))
SQL
my $fixed_weights = $fixed =~ s/disc\(v/disc_weighted(v, w/r =~ s/percentiles\(v/percentiles_weighted(v, w/r
  =~ s/FROM cases/FROM weighted/r;
is(sql($parallel, <<SQL), '0', 'parallel with weights');
SELECT count(*) FROM expected e JOIN ($fixed_weights) a USING (c)
 WHERE NOT (same(a.cont, e.cont[1:5]) AND same(a.disc, e.disc[1:5]))
SQL

# Spilled: each by itself at two sizes of memory, and as groups of one query.
for my $work_mem ('64kB', '700kB')
{
	my @script = ("SET work_mem = '$work_mem'", 'SET hash_mem_multiplier = 1',
		'CREATE TABLE answers (c int, cont float8[], disc float8[], temp_bytes bigint)');
	for my $c ($cases + 1 .. $cases + $spilled_cases)
	{
		push @script, 'SELECT pg_stat_force_next_flush()',
		  "INSERT INTO answers SELECT $c, $answers, pg_stat_get_db_temp_bytes(d.oid)
			FROM cases, pg_database d, parameters p
			WHERE cases.c = $c AND p.c = $c AND d.datname = current_database() GROUP BY d.oid",
		  'SELECT pg_stat_force_next_flush()',
		  "UPDATE answers SET temp_bytes = pg_stat_get_db_temp_bytes(d.oid) - temp_bytes
			FROM pg_database d WHERE c = $c AND d.datname = current_database()";
	}
	sql(@script);
	my $must = $work_mem eq '64kB' ? 'true' : 'n * 8 > 700 * 1024';
	is(sql("SELECT count(*) FROM answers JOIN parameters USING (c) WHERE $must AND NOT temp_bytes >= n * 7"),
		'0', "$work_mem: values have spilled");
	answers_are_cores("$work_mem: spilled", 'SELECT * FROM answers', 'spilled');
	sql('DROP TABLE answers');
}
answers_are_cores('spilled groups', $grouped, 'true',
	q{SET work_mem = '1MB'}, 'SET hash_mem_multiplier = 1', 'SET enable_sort = off', 'SET enable_mergejoin = off');
answers_are_cores('spilled weights', $of_weights, 'true',
	q{SET work_mem = '64kB'}, 'SET enable_sort = off', 'SET enable_mergejoin = off');
is(sql($parallel, q{SET work_mem = '64kB'}, <<SQL), '0', 'spilled in workers and leader');
SELECT count(*) FROM expected e JOIN ($fixed) a USING (c)
 WHERE NOT (same(a.cont, e.cont[1:5]) AND same(a.disc, e.disc[1:5]))
SQL

# A file that may not grow, and a cursor that fails in a subtransaction: no file
# is left and no second error comes.
my ($status, $out, $err) = $node->psql('postgres', <<'SQL', on_error_stop => 0);
SET work_mem = '64kB';
SET temp_file_limit = '1MB';
SELECT metrics_percentiles(v) FROM cases;
BEGIN;
DECLARE c CURSOR FOR SELECT metrics_percentiles(v) FROM cases;
SAVEPOINT s;
FETCH c;
ROLLBACK TO s;
CLOSE c;
COMMIT;
RESET temp_file_limit;
BEGIN;
DECLARE c CURSOR FOR SELECT i, metrics_percentile(v, .5) FROM cases, generate_series(1, 2) i GROUP BY i;
FETCH c;
ROLLBACK;
SELECT count(*) FROM pg_ls_tmpdir();
SQL
my @errors = $err =~ /ERROR:  (.*)/g;
is("@errors", join(' ', ('temporary file size exceeds temp_file_limit (1024kB)') x 2), 'errors are reported once');
like($out, qr/^0$/m, 'no temporary file is left');
unlike($err, qr/WARNING/, 'nor closed at the end of a transaction only');

# The file lies in temp_tablespaces, until the query ends.
is(sql('SET allow_in_place_tablespaces = on', q{CREATE TABLESPACE spilled LOCATION ''}, q{SET work_mem = '64kB'},
	'SET temp_tablespaces = spilled', 'BEGIN', <<'SQL'), "1|0\n0|0", 'temp_tablespaces');
DECLARE c CURSOR FOR SELECT metrics_percentile(v, .5) FROM cases;
CREATE VIEW files AS SELECT count(*) FILTER (WHERE spcname = 'spilled') AS there, count(*) FILTER (WHERE spcname <> 'spilled') AS elsewhere
    FROM pg_tablespace t, pg_ls_tmpdir(t.oid) WHERE spcname <> 'pg_global';
MOVE 1 c;
SELECT * FROM files;
CLOSE c;
SELECT * FROM files;
COMMIT
SQL

# What hangs others.
sub in_time
{
	my ($limit, $query, $want, $description) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "SET statement_timeout = '$limit'; $query");
	is($out . $err, $want, $description);
}
in_time('5s', "SELECT metrics_percentiles('NaN'::float8) FROM generate_series(1, 1000000)", '(NaN,NaN,NaN)', 'a million NaN');
in_time('5s', 'SELECT metrics_percentiles(1) FROM generate_series(1, 1000000)', '(1,1,1)', 'a million equal values');
in_time('20s', 'SELECT metrics_percentile(value_of(12, k, 1000000, 0), 0.5) FROM generate_series(0, 999999) k',
	'500000.5', 'a median-of-3 killer');
in_time('20s', q{SELECT array_length(metrics_percentiles(uniform(i, 5),
	ARRAY(SELECT k / 100000.0::float8 FROM generate_series(0, 100000) k)), 1) FROM generate_series(1, 300000) i},
	'100001', 'a hundred thousand fractions');

in_time('20s', q{SET work_mem = '64MB'; SELECT max(so_far), max(recent) FROM (SELECT metrics_increase(at, n) OVER (ORDER BY at) AS so_far,
	metrics_increase(at, n) OVER (ORDER BY at ROWS 100000 PRECEDING) AS recent
	FROM (SELECT timestamptz '2026-01-01' + n * interval '1 s' AS at, n FROM generate_series(1, 300000) n) s) w},
	'299999|100000', 'frames of a counter that grow and move');

# A cancel is heard while values come and while they spill.
in_time('1s', 'SELECT metrics_percentile(i, .5) FROM generate_series(1, 2000000000) i',
	"psql:<stdin>:1: ERROR:  canceling statement due to statement timeout", 'a cancel is heard');

$node->stop;
done_testing();
