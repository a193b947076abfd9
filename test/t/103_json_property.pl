# Numbers, percentiles and summaries of random documents, against core.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('json_property');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
jit = off
fsync = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
CONF
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]) }

query(<<'SQL');
CREATE EXTENSION metrics_ext;

-- numeric::float8, NULL where that is out of range.
CREATE FUNCTION core_number(n numeric) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN n::float8;
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;

-- 64 digits that depend on a seed alone.
CREATE FUNCTION digits(seed text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT translate(md5(seed) || md5(seed || 'x'), 'abcdef', '132975')
$$;
SQL

# Every form of a numeric: 1 to 41 digits and powers of ten that take the point
# from far left to far right, so short and long forms, both signs, all lengths.
sub compare_numbers
{
	my ($numbers, $least, $description) = @_;
	my ($n, $different, $kept) = split /\|/, query(qq{
		SELECT count(DISTINCT n), count(*) FILTER (WHERE mine IS DISTINCT FROM core),
			count(*) FILTER (WHERE float8send(mine) IS DISTINCT FROM float8send(core) AND core <> 0)
		FROM (SELECT n, metrics_number(to_jsonb(n), '{}') AS mine, core_number(n) AS core
		      FROM ($numbers) numbers(n) OFFSET 0) compared});
	cmp_ok($n, '>=', $least, "$description: $n different values");
	is("$different $kept", '0 0', "$description: as core converts them");
}
compare_numbers(q{SELECT ((CASE WHEN g % 2 = 0 THEN '-' ELSE '' END) || substr(digits(g::text), 1, 1 + g % 41)
		|| 'e' || (g / 41 % 121 - 80))::numeric FROM generate_series(1, 120000) g}, 100000, 'digits and powers');
compare_numbers(q{SELECT to_jsonb((digits(g::text)::numeric / 1e64)::float8 * 10.0::float8 ^ (g % 40 - 20))::text::numeric
	FROM generate_series(1, 20000) g}, 19000, 'shortest text of doubles');
compare_numbers(q{SELECT (s * (2::numeric ^ p + d)) * 10::numeric ^ e FROM generate_series(50, 66) p, generate_series(-3, 5) d,
	unnest(ARRAY[1, -1]) s, generate_series(-30, 30, 3) e}, 4000, 'on and beside ties');
compare_numbers(q{SELECT s * ('1' || repeat('0', z) || '.' || repeat('0', f) || t)::numeric FROM unnest(ARRAY[1, -1]) s,
	generate_series(0, 330, 5) z, unnest(ARRAY[0, 1, 60, 63, 64, 65, 300]) f, unnest(ARRAY['', '0', '1', '5000', '50000']) t},
	2000, 'many zeros');
compare_numbers(q{SELECT s * (m || 'e' || e)::numeric FROM unnest(ARRAY[1, -1]) s, unnest(ARRAY['0', '1', '9.9999', '4.9', '2.4', '2.5',
	'1.7976931348623157', '1.7976931348623158', '1.7976931348623159', '2.2250738585072014']) m,
	generate_series(-420, 400, 7) e UNION ALL VALUES (5e-324), (2.4e-324), (1.7976931348623158e308), (1.7976931348623159e308),
	(2.2250738585072011e-308), (0.000), (round(0, 100)), (round(1.5, 100))}, 2000, 'ends of the range');

# Random documents: few names, so that they meet; hostile ones among them; more
# than 32 keys, so that jsonb stores offsets; batches of 1 to 60 documents.
query(<<'SQL');
CREATE FUNCTION random_document(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    names text[] := '{a,b,loss,x.y,"q\"t","",é,longer name,NaN,"a.b"}';
    document jsonb := '{}';
    value jsonb;
BEGIN
    IF random() < 0.03 THEN
        SELECT jsonb_object_agg('key' || g, g * random()) INTO document FROM generate_series(1, 30 + (random() * 50)::int) g;
    END IF;
    FOR i IN 1 .. (random() * 5)::int LOOP
        value := CASE (random() * 15)::int
            WHEN 0 THEN 'null' WHEN 1 THEN '"NaN"' WHEN 2 THEN '"Infinity"' WHEN 3 THEN '"-Infinity"'
            WHEN 4 THEN '"text"' WHEN 5 THEN 'true' WHEN 6 THEN '[1, {"a": 2}]' WHEN 7 THEN '{}'
            WHEN 8 THEN to_jsonb(random() - 0.5)
            WHEN 9 THEN to_jsonb((random() * 20)::int - 10)
            WHEN 10 THEN to_jsonb(round((random() * 10)::numeric, 3))
            WHEN 11 THEN to_jsonb((('1e' || (random() * 40 - 20)::int)::numeric * (random() - 0.5)::numeric))
            WHEN 12 THEN CASE WHEN random() < 0.1 THEN '1e400' ELSE '0' END::jsonb
            ELSE CASE WHEN depth < 10 THEN random_document(depth + 1) ELSE '1' END END;
        document := document || jsonb_build_object(names[1 + (random() * 9)::int], value);
    END LOOP;
    RETURN document;
END $$;
SELECT setseed(0.25);
CREATE TABLE documents AS
    SELECT batch, CASE WHEN random() < 0.02 THEN '[1]' WHEN random() < 0.02 THEN '5' WHEN random() > 0.01 THEN random_document(0) END AS metrics
    FROM generate_series(1, 400) batch, LATERAL generate_series(1, 1 + batch % 60) g;
ALTER TABLE documents SET (parallel_workers = 2);
ANALYZE documents;

-- What a summary has to be, written from its description.
CREATE VIEW expected AS
WITH RECURSIVE value AS (
    SELECT batch, 1 AS depth, ARRAY[key] AS path, value
    FROM documents, jsonb_each(CASE jsonb_typeof(metrics) WHEN 'object' THEN metrics END)
    UNION ALL
    SELECT batch, depth + 1, path || e.key, e.value
    FROM value v, jsonb_each(CASE WHEN jsonb_typeof(v.value) = 'object' AND depth < 8 THEN v.value END) e
), typed AS (
    SELECT batch, path, value, CASE WHEN value IN ('"NaN"', '"Infinity"', '"-Infinity"') THEN 'number' ELSE jsonb_typeof(value) END AS type,
           jsonb_typeof(value) = 'object' AND value <> '{}' AND depth < 8 AS opened,
           CASE WHEN value IN ('"NaN"', '"Infinity"', '"-Infinity"') THEN (value #>> '{}')::float8
                WHEN jsonb_typeof(value) = 'number' THEN core_number(value::numeric) END AS x
    FROM value
)
SELECT batch, (SELECT string_agg(CASE WHEN p = '' OR p ~ '[."]' THEN '"' || replace(p, '"', '""') || '"' ELSE p END, '.' ORDER BY i)
               FROM unnest(path) WITH ORDINALITY u(p, i)) AS name,
    CASE WHEN count(DISTINCT type) FILTER (WHERE type <> 'null') > 1 THEN 'mixed'
         ELSE coalesce(min(type) FILTER (WHERE type <> 'null'), 'null') END AS type,
    count(x) AS count, min(x) AS min, max(x) AS max, sum(x) AS sum, sum(abs(x)) AS magnitude,
    count(*) FILTER (WHERE x = 'NaN') AS nan, count(*) FILTER (WHERE x IS NULL AND type <> 'null') AS skipped,
    percentile_disc('{0.5,0.95,0.99}'::float8[]) WITHIN GROUP (ORDER BY x) AS p
FROM typed GROUP BY batch, path HAVING bool_or(NOT opened AND type <> 'null') OR bool_and(type = 'null');

CREATE FUNCTION close(have float8, want float8, tolerance float8) RETURNS boolean LANGUAGE sql AS $$
    SELECT have IS NOT DISTINCT FROM want OR abs(have - want) <= tolerance
$$;
CREATE FUNCTION summaries() RETURNS TABLE (batch int, name text, s jsonb) LANGUAGE sql AS $$
    SELECT batch, e.key, e.value FROM (SELECT batch, metrics_summary(metrics) AS all FROM documents GROUP BY batch) b, jsonb_each(b.all) e
$$;
-- Counts what differs from it.
CREATE FUNCTION wrong_summaries() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM expected e FULL JOIN summaries() h USING (batch, name)
    WHERE e.batch IS NULL OR h.s IS NULL OR s->>'type' <> e.type OR (s->>'count')::int <> e.count
       OR (s->>'min')::float8 IS DISTINCT FROM e.min OR (s->>'max')::float8 IS DISTINCT FROM e.max
       OR (s->>'nan')::int <> e.nan OR (s->>'skipped')::int <> e.skipped
       OR NOT close((s->>'sum')::float8, e.sum, 1e-12 * magnitude)
       OR NOT close((s->>'mean')::float8, e.sum / e.count, 1e-12 * magnitude / e.count)
       OR NOT close((s->>'p50')::float8, p[1], 0.01 * abs(p[1]) * (1 + 1e-9))
       OR NOT close((s->>'p95')::float8, p[2], 0.01 * abs(p[2]) * (1 + 1e-9))
       OR NOT close((s->>'p99')::float8, p[3], 0.01 * abs(p[3]) * (1 + 1e-9))
$$;
SQL

cmp_ok(query('SELECT count(*) FROM expected'), '>', 10000, 'there are summaries to compare');
is(query('SET max_parallel_workers_per_gather = 0; SELECT wrong_summaries()'), '0', 'each summary is what its documents say');
my $summaries = 'SELECT batch, metrics_summary(metrics) AS s FROM documents GROUP BY batch';
like(query("EXPLAIN (COSTS OFF) $summaries"), qr/Partial/, 'there is a parallel plan');
is(query(<<SQL), 't|0', 'it finds the same, but for the last bits of a sum');
CREATE TEMP TABLE found AS
    SELECT batch, key, value - 'sum' - 'mean' AS s FROM ($summaries) b, jsonb_each(b.s);
SET max_parallel_workers_per_gather = 0;
CREATE TEMP TABLE serial AS
    SELECT batch, key, value - 'sum' - 'mean' AS s FROM ($summaries) b, jsonb_each(b.s);
SELECT count(DISTINCT batch) > 390, count(*) FILTER (WHERE f.s IS DISTINCT FROM s.s)
FROM found f FULL JOIN serial s USING (batch, key);
SQL

# Percentiles and sketches of one key, with and without workers.
for my $workers (0, 2)
{
	is(query(<<SQL), '0', "percentiles of a key, $workers workers");
SET max_parallel_workers_per_gather = $workers;
SELECT count(*) FROM (
    SELECT path, fractions, metrics_percentiles(metrics, path::text[], fractions) AS mine,
           percentile_cont(fractions) WITHIN GROUP (ORDER BY metrics_number(metrics, path::text[])) AS core,
           metrics_percentile(metrics, path::text[], 0.5) AS mine_1,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY metrics_number(metrics, path::text[])) AS core_1
    FROM documents, (VALUES ('{a}'), ('{b}'), ('{x.y}'), ('{""}'), ('{b,loss}'), ('{none}'), ('{a,1}'), ('{}')) p(path),
         (VALUES ('{0,0.01,0.5,0.95,0.99,1}'::float8[])) f(fractions)
    GROUP BY path, fractions, batch) compared
WHERE mine IS DISTINCT FROM core OR mine_1 IS DISTINCT FROM core_1;
SQL
	is(query(<<SQL), '0', "sketches of a key, $workers workers");
SET max_parallel_workers_per_gather = $workers;
SELECT count(*) FROM (
    SELECT metrics_percentiles(metrics_sketch(metrics, '{a}'), '{0,0.5,0.9,1}') AS mine,
           metrics_percentiles(metrics_sketch(metrics_number(metrics, '{a}')), '{0,0.5,0.9,1}') AS core,
           metrics_percentiles(metrics_sketch(metrics, '{a}', 0.05), '{0,0.5,0.9,1}') AS mine_1,
           metrics_percentiles(metrics_sketch(metrics_number(metrics, '{a}'), 0.05), '{0,0.5,0.9,1}') AS core_1
    FROM documents GROUP BY batch) compared
WHERE mine IS DISTINCT FROM core OR mine_1 IS DISTINCT FROM core_1;
SQL
}

done_testing();
