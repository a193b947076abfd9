# What a sketch promises, over many cases: Rule S (reference, cases.md), and the
# same answers whatever the order, the plan and the grouping of merges.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('sketch_property');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
jit = off
max_worker_processes = 4
CONF
$node->start;

# A case is a multiset of values of one kind.  The seed makes them the same in
# every run of a major version.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT setseed(0.25);
CREATE TABLE cases AS
SELECT id, id % 16 AS kind,
	CASE WHEN id % 64 = 18 THEN 5000 - id	-- 10^-300 to 10^300 at 0.1 %: too many buckets
		WHEN id % 14 = 0 THEN id * 7919 % 5001 WHEN id % 14 < 3 THEN id * 17 % 1300
		WHEN id % 14 < 6 THEN id % 150 WHEN id % 14 < 10 THEN id % 40 ELSE id % 12 END AS n,
	(ARRAY[0.01, 0.001, 0.02, 0.1])[1 + id / 16 % 4]::float8 AS error
FROM generate_series(1, 2150) id;

CREATE FUNCTION make_value(kind int, id int, i int, n int) RETURNS float8 LANGUAGE SQL AS $$
SELECT CASE kind
	WHEN 0 THEN random() * 100
	WHEN 1 THEN 10 ^ (random() * 5)
	WHEN 2 THEN CASE WHEN random() < 0.5 THEN -1 ELSE 1 END * 10 ^ (random() * 600 - 300)
	WHEN 3 THEN floor(random() * 10)
	WHEN 4 THEN i
	WHEN 5 THEN n - i
	WHEN 6 THEN least(i, n - i)
	WHEN 7 THEN 0.1 * id
	WHEN 8 THEN (ARRAY['NaN', 'Infinity', '-Infinity', '-0', '0', '1', '-1', '1e308', '-1e308', '4.9e-324'])[1 + floor(random() * 10)::int]::float8
	WHEN 9 THEN '4.9406564584124654e-324'::float8 * floor(random() * 5000)
	WHEN 10 THEN '2.2250738585072014e-308'::float8 * (random() * 4 + 1e-10)
	WHEN 11 THEN random() - 0.5
	WHEN 12 THEN CASE WHEN random() < 0.3 THEN 'NaN' ELSE random() END
	WHEN 13 THEN 2.0::float8 ^ floor(random() * 2000 - 1000)
	WHEN 14 THEN (random() - 0.5) * 10 ^ (random() * 20)
	ELSE 1e300 * random() END
$$;
CREATE TABLE items AS
SELECT id, error, i, make_value(kind, id, i, n) AS v, floor(random() * 5)::int AS part
FROM cases, generate_series(1, n) i;
CREATE TABLE fractions AS
SELECT q FROM unnest('{0, 1e-9, 0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3333, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999, 1}'::float8[]) q;

-- |r - x| <= a |x|, scaled so that neither side leaves the range of float8
CREATE FUNCTION is_near(r float8, x float8, a float8) RETURNS boolean LANGUAGE SQL IMMUTABLE AS $$
SELECT CASE
	WHEN r = x THEN true
	WHEN sign(r) <> sign(x) OR r IN ('NaN', 'Infinity', '-Infinity') OR x IN ('NaN', 'Infinity', '-Infinity') THEN false
	WHEN abs(x) < 1e-290 THEN abs(r) < 1e-280 AND abs(r * 1e300 - x * 1e300) <= a * abs(x * 1e300) * (1 + 1e-9)
	ELSE abs(r - x) <= a * abs(x) * (1 + 1e-9) END
$$;
CREATE FUNCTION obeys_rule_s(r float8, q float8, x float8[], a float8) RETURNS boolean LANGUAGE SQL IMMUTABLE AS $$
SELECT bool_or(is_near(r, x[1 + k::int], a)) AND r >= x[1] AND r <= x[cardinality(x)]
FROM unnest(ARRAY[floor(q * (cardinality(x) - 1)), ceil(q * (cardinality(x) - 1)),
	greatest(ceil(q * cardinality(x)) - 1, 0), least(floor(q * cardinality(x)), cardinality(x) - 1)]) k
$$;
-- all that must not depend on order and merges: counts, level, buckets, extremes
CREATE FUNCTION content(metrics_sketch) RETURNS text LANGUAGE SQL IMMUTABLE AS $$
SELECT regexp_replace($1::text, '"sum": .*, "squares": .*, "negative"', '"negative"')
$$;
ANALYZE;
SQL

sub answer
{
	return $node->safe_psql('postgres', shift);
}

# One backend, in order of i.
answer(<<'SQL');
SET max_parallel_workers_per_gather = 0;
CREATE TABLE sketches AS
SELECT id, error, metrics_sketch(v, error) AS sketch, array_agg(v ORDER BY v) AS x
FROM items GROUP BY id, error;
ALTER TABLE sketches ADD content text;
UPDATE sketches SET content = content(sketch);
CREATE TABLE levels AS
SELECT id, error, sketch, (json -> 'level')::int AS level, json FROM sketches, LATERAL (SELECT sketch::text::jsonb AS json) s;
SQL

is(answer('SELECT count(*) >= 2000, count(*) = count(sketch) FROM sketches'), 't|t', 'there are enough cases');
is(answer(<<'SQL'), '', 'Rule S');
SELECT s.id, q, metrics_percentile(sketch, q)
FROM sketches s, fractions
WHERE NOT obeys_rule_s(metrics_percentile(sketch, q), q, x, metrics_relative_error(sketch))
ORDER BY 1, 2 LIMIT 10
SQL
is(answer(<<'SQL'), '', 'percentiles rise with the fraction');
SELECT id FROM (SELECT id, metrics_percentile(sketch, q) < lag(metrics_percentile(sketch, q)) OVER (PARTITION BY id ORDER BY q) AS falls
	FROM sketches, fractions) s WHERE falls ORDER BY 1 LIMIT 10
SQL
is(answer(<<'SQL'), '', 'count, min and max are exact');
SELECT id FROM sketches
WHERE metrics_count(sketch) <> cardinality(x) OR metrics_min(sketch) <> x[1] OR metrics_max(sketch) <> x[cardinality(x)]
ORDER BY 1 LIMIT 10
SQL
is(answer(<<'SQL'), '', 'the error is the declared one up to 2048 buckets, then the least level that suffices');
SELECT id, error, metrics_relative_error(sketch) FROM (
	SELECT id, error, sketch, level,
		greatest(jsonb_array_length(json -> 'positive'), jsonb_array_length(json -> 'negative')) AS buckets
	FROM levels) s
WHERE buckets > 2048 OR (level = 0) <> (metrics_relative_error(sketch) = error)
	OR metrics_relative_error(sketch) > tanh(2 ^ level * atanh(error)) * (1 + 1e-12)
ORDER BY 1 LIMIT 10
SQL
cmp_ok(answer("SELECT count(*) FROM levels WHERE level > 0"), '>', 10, 'some cases collapse');
is(answer(<<'SQL'), '', 'rank: the values up to that of its bucket');
SELECT id, y FROM (
	SELECT s.id, y, metrics_rank(sketch, y) AS rank, x, metrics_relative_error(sketch) AS a
	FROM sketches s CROSS JOIN LATERAL (SELECT DISTINCT x[1 + (cardinality(x) - 1) * k / 7] AS y FROM generate_series(0, 7) k) y) s
WHERE rank < (SELECT count(*) FROM unnest(x) v WHERE v <= y)::float8 / cardinality(x)
	OR rank > (SELECT count(*) FROM unnest(x) v WHERE v <= y
		OR is_near(v, y, 2 * a / (1 - a)))::float8 / cardinality(x)
ORDER BY 1 LIMIT 10
SQL

# The same content by every way.
my %way = (
	'ascending' => 'SELECT id, metrics_sketch(v, error ORDER BY v) AS sketch FROM items GROUP BY id',
	'descending' => 'SELECT id, metrics_sketch(v, error ORDER BY v DESC) AS sketch FROM items GROUP BY id',
	'shuffled' => 'SELECT id, metrics_sketch(v, error ORDER BY hashint4(i)) AS sketch FROM items GROUP BY id',
	'merged parts' => 'SELECT id, metrics_sketch_merge(sketch) AS sketch
		FROM (SELECT id, part, metrics_sketch(v, error) AS sketch FROM items GROUP BY id, part) s GROUP BY id',
	'parts merged in another grouping' => 'SELECT id, metrics_sketch_merge(sketch ORDER BY many DESC) AS sketch
		FROM (SELECT id, part < 2 AS many, metrics_sketch_merge(sketch ORDER BY part DESC) AS sketch
			FROM (SELECT id, part, metrics_sketch(v, error) AS sketch FROM items GROUP BY id, part) s GROUP BY id, many) s GROUP BY id',
	'many small parts' => 'SELECT id, metrics_sketch_merge(sketch) AS sketch
		FROM (SELECT id, i % 100, metrics_sketch(v, error) AS sketch FROM items GROUP BY id, i % 100) s GROUP BY id',
	'operator +' => 'SELECT id, coalesce(a + b, a, b) AS sketch
		FROM (SELECT id, metrics_sketch(v, error) FILTER (WHERE part < 2) AS a, metrics_sketch(v, error) FILTER (WHERE part >= 2) AS b
			FROM items GROUP BY id) s',
	'weighted' => 'SELECT id, metrics_sketch_weighted(v, weight, error) AS sketch
		FROM (SELECT id, error, v, count(*) AS weight FROM items GROUP BY id, error, v) s GROUP BY id',
	'text' => 'SELECT id, sketch::text::metrics_sketch AS sketch FROM sketches',
	'bytea' => 'SELECT id, sketch::bytea::metrics_sketch AS sketch FROM sketches',
);
sub same_by
{
	my ($way, $settings, $query) = @_;
	is(answer("$settings; SELECT s.id FROM sketches s LEFT JOIN ($query) w USING (id)
		WHERE s.content IS DISTINCT FROM content(w.sketch) ORDER BY 1 LIMIT 10"), '', "same content: $way");
}
foreach my $way (sort keys %way)
{
	same_by($way, 'SET max_parallel_workers_per_gather = 0', $way{$way});
}

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET enable_sort = off; SET max_parallel_workers_per_gather = 3';
my $grouped = 'SELECT id, metrics_sketch(v, error) AS sketch FROM items GROUP BY id';
like(answer("$parallel; EXPLAIN (COSTS OFF) $grouped"), qr/Partial HashAggregate/, 'the plan is parallel');
same_by('parallel', $parallel, $grouped);
is(answer("SELECT count(*) FROM sketches WHERE sketch::text::metrics_sketch::bytea <> sketch::bytea"), '0',
	'text is lossless to the byte');

# Sums differ in their last bits at most.
is(answer(<<'SQL'), '', 'mean and standard deviation');
SELECT id, metrics_mean(sketch), mean, metrics_stddev(sketch), stddev FROM (
	SELECT id, sketch, (SELECT avg(v) FROM unnest(x) v) AS mean, (SELECT stddev(v::numeric)::float8 FROM unnest(x) v) AS stddev,
		(SELECT max(abs(v)) FROM unnest(x) v) AS magnitude
	FROM sketches WHERE id % 16 IN (0, 1, 3, 4, 5, 6, 7, 11)) s
WHERE abs(metrics_mean(sketch) - mean) > 1e-12 * magnitude OR abs(metrics_stddev(sketch) - stddev) > 1e-9 * magnitude
	OR (metrics_stddev(sketch) IS NULL) <> (stddev IS NULL)
ORDER BY 1 LIMIT 10
SQL

$node->stop;
done_testing();
