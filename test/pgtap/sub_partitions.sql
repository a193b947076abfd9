-- Partitions below the partition of a key, and below the default.
BEGIN;
\ir include/store.sql
SELECT plan(27);

CREATE TABLE t (k text NOT NULL, id integer NOT NULL, at date NOT NULL, note text, PRIMARY KEY (k, id, at)) PARTITION BY LIST (k);
SELECT metrics_manage_partitions('t') \g /dev/null

-- A key by hash, one by month with a place for what has no month.
CREATE TABLE hashed PARTITION OF t FOR VALUES IN ('hashed') PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE monthly PARTITION OF t FOR VALUES IN ('monthly') PARTITION BY RANGE (at);
CREATE TABLE monthly_1 PARTITION OF monthly FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE monthly_rest PARTITION OF monthly DEFAULT;

-- The default by month, and one of its leaves by hash; columns stand elsewhere, dropped ones between.
CREATE TABLE rest (note text, gone integer, at date NOT NULL, k text NOT NULL, id integer NOT NULL) PARTITION BY RANGE (at);
ALTER TABLE rest DROP COLUMN gone;
CREATE TABLE rest_1 PARTITION OF rest FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE rest_2 (id integer NOT NULL, gone text, k text NOT NULL, note text, at date NOT NULL) PARTITION BY HASH (id);
ALTER TABLE rest_2 DROP COLUMN gone;
ALTER TABLE rest ATTACH PARTITION rest_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE rest_2_0 PARTITION OF rest_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE rest_2_1 PARTITION OF rest_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE rest_rest PARTITION OF rest DEFAULT;
ALTER TABLE t ATTACH PARTITION rest DEFAULT;

INSERT INTO t SELECT k, id, date '2024-01-15' + 20 * (id % 4), k || id FROM unnest('{hashed,monthly,a,b,c}'::text[]) k, generate_series(1, 12) id;
CREATE TEMP TABLE before AS SELECT * FROM t;
CREATE FUNCTION helper.whole(description text) RETURNS text
LANGUAGE sql AS $$
    SELECT bag_eq('SELECT * FROM metrics.t', 'SELECT * FROM before', description || ': every row is there once')
$$;
SELECT is((SELECT count(DISTINCT tableoid)::int FROM t), 8, 'rows lie in all of them');
CREATE TEMP TABLE hashed_before AS SELECT tableoid AS leaf, id FROM hashed;

SELECT metrics_add_partition('t'::regclass, 'a') AS a \gset
SELECT is((SELECT count(*)::int FROM :a), 12, 'a partition has the rows of all leaves of the default');
SELECT is((SELECT count(*)::int FROM rest WHERE k = 'a'), 0, 'where there are none left');
SELECT helper.whole('one key');
SELECT is(metrics_add_partition('t'::regclass, 'hashed'), 'hashed'::regclass, 'a partition with partitions is taken as it is');
SELECT is(metrics_add_partition('t'::regclass, 'monthly'), 'monthly'::regclass, 'whatever they are');
CALL metrics_maintain();
SELECT is_empty('SELECT * FROM rest', 'a round drains all leaves');
SELECT is_empty('SELECT * FROM metrics_failure', 'without a failure');
SELECT helper.whole('all keys');
SELECT bag_eq('SELECT tableoid AS leaf, id FROM hashed', 'SELECT * FROM hashed_before', 'what has partitions below its key stays where it is');
SELECT is((SELECT count(*)::int FROM monthly_rest), 9, 'a row without a month waits below its key');
SELECT is(metrics_partition_key(m), NULL, format('%s is no partition of a key', m)) FROM unnest('{monthly_1,monthly_rest,hashed_0,rest_1}'::regclass[]) m;
SELECT is(metrics_partition_key('hashed'), 'hashed', 'but what is above it');
SELECT is((SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text ~ '^(rest|hashed|monthly|t_)' LIMIT 1), NULL, 'no check is left behind');

-- The view sums up what lies below.
ANALYZE hashed;
SELECT results_eq('SELECT rows_estimate, size = pg_total_relation_size(''hashed_0'') + pg_total_relation_size(''hashed_1'') FROM metrics_partitions WHERE partition = ''hashed''::regclass',
    'VALUES (12::bigint, true)', 'the view counts what lies below a partition');

-- A new leaf of the default, and one below a key.
CREATE TABLE rest_3 PARTITION OF rest FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
INSERT INTO t VALUES ('d', 1, '2025-01-05', 'new leaf');
SELECT lives_ok('CALL metrics_drain(''t'', ''d'')', 'a leaf that came later is drained');
SELECT is((SELECT metrics_partition_key(tableoid) FROM t WHERE k = 'd'), 'd', 'to the partition of its key');
SELECT throws_ok('CREATE TABLE monthly_2 PARTITION OF monthly FOR VALUES FROM (''2024-02-01'') TO (''2024-03-01'')', '23514', NULL, 'core goes on guarding what lies below a key');
DELETE FROM monthly_rest WHERE at < '2024-03-01' AND at >= '2024-02-01';
SELECT lives_ok('CREATE TABLE monthly_2 PARTITION OF monthly FOR VALUES FROM (''2024-02-01'') TO (''2024-03-01'')', 'and takes new ones');
SELECT is(metrics_drop_partition('t'::regclass, 'monthly', true), 'monthly'::regclass, 'a partition with partitions is detached');
SELECT is((SELECT count(*)::int FROM pg_partition_tree('monthly')), 4, 'with them');
SELECT is(metrics_drop_partition('t'::regclass, 'hashed', false), NULL, 'or dropped');
SELECT is(to_regclass('hashed_0'), NULL, 'with them');
SELECT isnt(metrics_add_partition('t'::regclass, 'monthly'), 'monthly'::regclass, 'and the key comes again, without');

SELECT * FROM finish();
ROLLBACK;
