-- The functions that make, drop and list partitions: who may call them, what they
-- refuse, and that they can be called again.
BEGIN;
\ir include/store.sql
SELECT plan(157);

-- A store of a role that is no superuser, a table of another, as which it may act, and one as which it may not.
CREATE ROLE metrics_test_keeper;
CREATE ROLE metrics_test_owner;
CREATE ROLE metrics_test_member;
CREATE ROLE metrics_test_reader;
CREATE ROLE metrics_test_other;
CREATE ROLE metrics_test_stranger;
GRANT metrics_test_owner TO metrics_test_keeper, metrics_test_member;
SELECT helper.run(format('GRANT CREATE ON DATABASE %I TO metrics_test_keeper', current_database()));
DROP SCHEMA metrics, metrics_bi CASCADE;
SET LOCAL ROLE metrics_test_keeper;
SELECT metrics_create_store() \g /dev/null
SELECT metrics_grant('metrics_test_reader', 'reader') \g /dev/null
RESET ROLE;
CREATE SCHEMA tables;
GRANT ALL ON SCHEMA tables TO metrics_test_owner, metrics_test_other;
GRANT USAGE ON SCHEMA helper TO PUBLIC;
SET LOCAL search_path TO tables, public;
SET LOCAL ROLE metrics_test_owner;
CREATE TABLE t (k text NOT NULL, n integer, PRIMARY KEY (k, n)) PARTITION BY LIST (k);
CREATE TABLE rest PARTITION OF t DEFAULT;
SET LOCAL ROLE metrics_test_other;
CREATE TABLE others (k text) PARTITION BY LIST (k);
RESET ROLE;
CREATE TABLE superusers (k text) PARTITION BY LIST (k);

-- Who may do what.
CREATE TEMP TABLE call (n serial, call text, superuser text DEFAULT 'ok', keeper text, owner text, member text, other text);
INSERT INTO call (call, keeper, owner, member, other) VALUES
    ('SELECT metrics_add_partition(''first'')', 'ok', '42501', '42501', '42501'),
    ('SELECT metrics_add_partition(''metrics.metrics''::regclass, ''second'')', 'ok', '42501', '42501', '42501'),
    ('SELECT metrics_manage_partitions(''tables.t'')', 'ok', 'ok', 'ok', '42501'),
    ('SELECT metrics_add_partition(''tables.t''::regclass, ''a'')', 'ok', 'ok', 'ok', '42501'),
    ('CALL metrics_drain(''tables.t'', ''b'')', 'ok', 'ok', 'ok', '42501'),
    ('CALL metrics_maintain()', 'ok', '42501', '42501', '42501'),
    ('SELECT metrics_drop_partition(''tables.t''::regclass, ''a'', true)', 'ok', '42704', '42704', '42501'),
    ('SELECT metrics_drop_partition(''second'', true)', 'ok', '42501', '42501', '42501'),
    ('SELECT metrics_drop_partition(''metrics.metrics''::regclass, ''first'', false)', 'ok', '42501', '42501', '42501'),
    ('SELECT metrics_unmanage_partitions(''tables.t'')', 'ok', 'ok', 'ok', '42501');
CREATE FUNCTION helper.all_calls(role name, column_name text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    c call;
BEGIN
    FOR c IN SELECT * FROM call ORDER BY n LOOP
        -- What has to be there before.
        IF c.call ~ '''a'', true' AND column_name IN ('owner', 'member') THEN
            c.call := replace(c.call, '''a''', '''not there''');
        END IF;
        RETURN NEXT is(helper.as_role(role, c.call), to_jsonb(c) ->> column_name, format('%s: %s', column_name, c.call));
    END LOOP;
END $$;
CREATE ROLE metrics_test_superuser SUPERUSER;
SELECT helper.all_calls('metrics_test_superuser', 'superuser');
SELECT helper.all_calls('metrics_test_keeper', 'keeper');
SELECT helper.all_calls('metrics_test_owner', 'owner');
SELECT helper.all_calls('metrics_test_member', 'member');
SELECT helper.all_calls('metrics_test_other', 'other');

SELECT is(helper.as_role('metrics_test_other', 'SELECT metrics_manage_partitions(''tables.others'')'), '42501', 'a table whose owner the store''s may not act as');
SELECT throws_ok('SELECT metrics_manage_partitions(''tables.others'')', '42501', 'role "metrics_test_keeper" owns the metrics store and may not act as the owner of tables.others', 'not even for a superuser');
SELECT throws_ok('SELECT metrics_manage_partitions(''tables.superusers'')', '42501', NULL, 'nor a table of a superuser');
GRANT metrics_test_other TO metrics_test_keeper;
SELECT is(helper.as_role('metrics_test_other', 'SELECT metrics_manage_partitions(''tables.others'')'), 'ok', 'it may once it can');
SELECT metrics_add_partition('others'::regclass, 'x') AS x \gset
SELECT is((SELECT relowner::regrole::text FROM pg_class WHERE oid = :'x'::regclass), 'metrics_test_other', 'the owner of the table owns its partitions, whoever makes them');
SELECT results_eq('SELECT created_by, created = now() FROM metrics_partitions WHERE partition_key = ''x''', 'SELECT current_user::text COLLATE "default", true', 'and who made them is written down');
SELECT metrics_unmanage_partitions('others') \g /dev/null

-- The view, for those who may read the store.
SELECT is(helper.as_role(role, 'SELECT * FROM metrics_partitions'), want, format('%s: %s', role, want))
FROM (VALUES ('metrics_test_keeper', 'ok'), ('metrics_test_reader', 'ok'), ('metrics_test_stranger', '42501')) v(role, want);
SELECT is(helper.as_role('metrics_test_stranger', format('SELECT metrics_partition_key(%s)', 't'::regclass::oid)), 'ok', 'anybody may ask for the key of a partition');

-- What they refuse.
CREATE TABLE by_range (k text) PARTITION BY RANGE (k);
CREATE TABLE by_hash (k text) PARTITION BY HASH (k);
CREATE TABLE by_expression (k text) PARTITION BY LIST (lower(k));
CREATE TABLE plain (k text);
CREATE INDEX plain_k ON plain (k);
CREATE VIEW seen AS SELECT 1 AS one;
CREATE TEMP TABLE passing (k text) PARTITION BY LIST (k);
CREATE FOREIGN DATA WRAPPER helper_wrapper;
CREATE SERVER helper_server FOREIGN DATA WRAPPER helper_wrapper;
CREATE TABLE with_foreign (k text) PARTITION BY LIST (k);
CREATE FOREIGN TABLE foreign_rest PARTITION OF with_foreign DEFAULT SERVER helper_server;
CREATE TABLE with_foreign_leaf (k text, n integer) PARTITION BY LIST (k);
CREATE TABLE leaves PARTITION OF with_foreign_leaf DEFAULT PARTITION BY LIST (n);
CREATE FOREIGN TABLE foreign_leaf PARTITION OF leaves DEFAULT SERVER helper_server;
SELECT helper.run(format('ALTER TABLE %s OWNER TO metrics_test_owner', t)) FROM unnest('{by_range,by_hash,by_expression,plain,seen,passing,with_foreign,with_foreign_leaf}'::text[]) t;
SELECT helper.refuses(format('SELECT metrics_manage_partitions(%L)', t), '42809', message, 'not to be managed: ' || t, hint)
FROM (VALUES ('by_range', '"by_range" is not partitioned by LIST', true), ('by_hash', '"by_hash" is not', true), ('by_expression', '"by_expression" is not', true), ('plain', '"plain" is not', true),
             ('seen', '"seen" is not', true), ('plain_k', '"plain_k" is an index', false), ('pg_class', '"pg_class" is not', true), ('rest', '"rest" is not', true), ('passing', 'pg_temp', true),
             ('with_foreign', 'rows cannot be moved out of tables.foreign_rest', true), ('with_foreign_leaf', 'rows cannot be moved out of tables.foreign_leaf', true)) v(t, message, hint);
SELECT helper.refuses(statement, '42P01', 'relation with OID 1 does not exist', 'no relation: ' || statement)
FROM unnest(ARRAY['SELECT metrics_manage_partitions(1)', 'SELECT metrics_add_partition(1::regclass, ''a'')', 'CALL metrics_drain(1, ''a'')', 'SELECT metrics_drop_partition(1::regclass, ''a'', true)']) statement;
SELECT is(metrics_unmanage_partitions(1), false, 'what does not exist is not managed');
SELECT is(metrics_partition_key(1), NULL, 'and has no key');
SELECT helper.refuses(statement, '55000', 'the partitions of tables.t are not managed', 'not managed: ' || statement)
FROM unnest(ARRAY['SELECT metrics_add_partition(''t''::regclass, ''a'')', 'CALL metrics_drain(''t'', ''a'')', 'SELECT metrics_drop_partition(''t''::regclass, ''a'', true)']) statement;
SELECT metrics_manage_partitions('t') \g /dev/null
CREATE TABLE several PARTITION OF t FOR VALUES IN ('one', 'two');
SELECT helper.refuses(statement, state, message, format('%s: %s', message, statement), hint)
FROM (VALUES
    ('SELECT metrics_add_partition(''t'', ''a'')', '22023', 'unknown kind "a"', true),
    ('SELECT metrics_add_partition(''a'', ''Time'')', '22023', 'unknown kind "Time"', true),
    ('SELECT metrics_add_partition(''PROFILING'', ''batch'')', '22023', 'partition key "PROFILING" is of kind "time"', true),
    ('SELECT metrics_add_partition(''TRAINING'')', '22023', 'partition key "TRAINING" is of kind "batch"', true),
    ('SELECT metrics_add_partition(repeat(''k'', 1001))', '54000', 'partition key of 1001 bytes is too long', true),
    ('SELECT metrics_add_partition(''t''::regclass, repeat(''ü'', 501))', '54000', 'partition key of 1002 bytes is too long', true),
    ('SELECT metrics_drop_partition(''GENERIC'')', '22023', 'partition key "GENERIC" belongs to every metrics store', true),
    ('SELECT metrics_drop_partition(''TRAINING'', true)', '22023', 'partition key "TRAINING" belongs', true),
    ('SELECT metrics_drop_partition(''VALIDATION'', false)', '22023', 'partition key "VALIDATION" belongs', true),
    ('SELECT metrics_drop_partition(''metrics.metrics''::regclass, ''PROFILING'', false)', '22023', 'partition key "PROFILING" belongs', true),
    ('SELECT metrics_drop_partition(''unknown'')', '42704', 'metrics.metrics has no partition for key "unknown"', true),
    ('SELECT metrics_drop_partition(''t''::regclass, ''unknown'')', '42704', 'tables.t has no partition for key "unknown"', true),
    ('SELECT metrics_drop_partition(''t''::regclass, ''one'')', '42809', 'tables.several is the partition of other keys, too', true),
    ('SELECT metrics_unmanage_partitions(''metrics.metrics'')', '22023', 'metrics.metrics is the metrics store''s own table', true)) v(statement, state, message, hint);
SELECT throws_ok('SELECT metrics_drop_partition(''t'', ''a'')', '42725', NULL, 'nobody knows whether this is a key or a table');

SET LOCAL ROLE metrics_test_superuser;
SELECT metrics_add_partition('t'::regclass, 'b') \g /dev/null
RESET ROLE;

-- The same again changes nothing.
SELECT lives_ok('SELECT metrics_manage_partitions(''t'')', 'a table may be managed twice');
SELECT is((SELECT count(*)::int FROM metrics.metrics_managed_table WHERE parent = 't'::regclass), 1, 'and is so once');
INSERT INTO t SELECT k, n FROM unnest('{a,b,two,other}'::text[]) k, generate_series(1, 3) n;
CREATE TEMP TABLE before AS SELECT * FROM t;
SELECT metrics_add_partition('t'::regclass, 'a') AS a \gset
SELECT is(metrics_add_partition('t'::regclass, 'a'), :'a'::regclass, 'a partition that is there is returned');
SELECT is(metrics_add_partition('t'::regclass, 'two'), 'several'::regclass, 'one of several keys, too');
CREATE TABLE by_hand (n integer, k text NOT NULL, PRIMARY KEY (k, n));
ALTER TABLE by_hand OWNER TO metrics_test_owner;
ALTER TABLE t ATTACH PARTITION by_hand FOR VALUES IN ('by hand');
SELECT is(metrics_add_partition('t'::regclass, 'by hand'), 'by_hand'::regclass, 'and one that was attached by hand');
SELECT lives_ok('CALL metrics_drain(''t'', ''by hand'')', 'of which nothing is to be drained');
SELECT results_eq('SELECT partition_key, partition::text, kind, created IS NOT NULL, created_by FROM metrics_partitions WHERE parent = ''t''::regclass ORDER BY partition::text',
    format('SELECT * FROM (VALUES (''by hand'', ''by_hand'', NULL, false, NULL), (NULL, ''rest'', NULL, false, NULL), (NULL, ''several'', NULL, false, NULL), (''a'', %L, NULL, true, ''metrics_test_owner''), (''b'', %L, NULL, true, ''metrics_test_superuser'')) v(k, p, kind, c, b) ORDER BY p', :'a',
        (SELECT partition FROM metrics_partitions WHERE parent = 't'::regclass AND partition_key = 'b')), 'the view tells what was made, and by whom');
SELECT is(metrics_partition_key('rest'), NULL, 'a default partition has no key');
SELECT is(metrics_partition_key('several'), NULL, 'one of several keys has no key');
SELECT is(metrics_partition_key('t'), NULL, 'what is no partition has no key');
SELECT is(metrics_partition_key(NULL), NULL, 'and NULL has none');
CREATE TABLE of_null PARTITION OF t FOR VALUES IN (NULL);
SELECT is(metrics_partition_key('of_null'), NULL, 'nor has one of NULL');
CREATE TABLE of_range PARTITION OF by_range FOR VALUES FROM ('a') TO ('b');
SELECT is(metrics_partition_key('of_range'), NULL, 'nor one of a range');

-- Dropped, kept or not, and made again.
SELECT is(metrics_drop_partition('t'::regclass, 'a'), :'a'::regclass, 'a partition is detached and returned');
SELECT results_eq('SELECT * FROM ' || :'a' || ' ORDER BY n', 'SELECT * FROM before WHERE k = ''a'' ORDER BY n', 'with its rows');
SELECT is((SELECT count(*)::int FROM metrics_partitions WHERE partition = :'a'::regclass), 0, 'the view has it no longer');
SELECT metrics_add_partition('t'::regclass, 'a') AS a2 \gset
SELECT isnt(:'a2', :'a'::text, 'the key comes again, to another table');
INSERT INTO t VALUES ('a', 9);
SELECT is(metrics_drop_partition('t'::regclass, 'a', false), NULL, 'dropped with its rows');
SELECT is(to_regclass(:'a2'), NULL, 'it is gone');
SELECT is(metrics_add_partition('t'::regclass, 'a')::text, :'a2', 'and comes again');
SELECT is((SELECT count(*)::int FROM t WHERE k = 'a'), 0, 'empty');
CREATE VIEW of_a AS SELECT * FROM :a2;
SELECT throws_ok('SELECT metrics_drop_partition(''t''::regclass, ''a'', false)', '2BP01', NULL, 'what others depend on is not dropped');
SELECT is(metrics_partition_key(:'a2'), 'a', 'and stays attached');
DROP VIEW of_a;

-- In the store, kind and routes go with the key.
SELECT metrics_add_partition('steps', 'batch') AS steps \gset
SELECT is(metrics_add_partition('steps', 'batch'), :'steps'::regclass, 'a key of the store may be added twice');
INSERT INTO metrics.metrics_route VALUES ('group of steps', 'steps');
INSERT INTO metrics.metrics_route_pattern VALUES ('steps %', 'steps');
SELECT is((SELECT kind FROM metrics_partitions WHERE partition_key = 'steps'), 'batch', 'the view tells the kind');
SELECT is(metrics_drop_partition('steps', keep_table => true), :'steps'::regclass, 'a key of the store is dropped');
SELECT is_empty($$SELECT partition_key FROM metrics.metrics_route WHERE partition_key = 'steps' UNION ALL SELECT partition_key FROM metrics.metrics_route_pattern WHERE partition_key = 'steps'
                 UNION ALL SELECT partition_key FROM metrics.metrics_partition_kind WHERE partition_key = 'steps'$$, 'with its routes and its kind');
SELECT isnt(metrics_add_partition('steps', 'time'), :'steps'::regclass, 'and comes again, of another kind');
SELECT is((SELECT kind FROM metrics_partitions WHERE partition_key = 'steps'), 'time', 'as the view tells');

-- The number of partitions is limited.
SET LOCAL metrics_ext.max_partitions = 6;
SELECT is((SELECT count(*)::int FROM pg_inherits WHERE inhparent = 't'::regclass), 6, 'at the limit');
SELECT helper.refuses('SELECT metrics_add_partition(''t''::regclass, ''one more'')', '54000', 'tables.t has 6 partitions and gets no more', 'there are no more');
SELECT is(metrics_add_partition('t'::regclass, 'a')::text, :'a2', 'but those that there are');
SET LOCAL client_min_messages TO error;
CALL metrics_maintain();
SET LOCAL client_min_messages TO warning;
SELECT results_eq('SELECT partition_key, sqlstate, message FROM metrics.metrics_failure',
    $$VALUES (NULL::text, '54000', '1 key waits for a partition, because tables.t has 6 (The limit is metrics_ext.max_partitions: raise it, or drop partitions.)')$$, 'maintenance tells so');
SET LOCAL metrics_ext.max_partitions = 7;
CALL metrics_maintain();
SELECT is_empty('SELECT * FROM rest', 'raised, the rest moves');
SELECT is_empty('SELECT * FROM metrics.metrics_failure', 'and nothing fails any longer');
SELECT bag_eq('SELECT * FROM t WHERE k <> ''a''', 'SELECT * FROM before WHERE k <> ''a''', 'no row is lost');
RESET metrics_ext.max_partitions;

-- The table goes its way, and its partitions with it.
CREATE SCHEMA elsewhere;
GRANT ALL ON SCHEMA elsewhere TO metrics_test_owner, metrics_test_other;
ALTER TABLE t RENAME TO renamed;
ALTER TABLE renamed SET SCHEMA elsewhere;
ALTER TABLE elsewhere.renamed RENAME COLUMN k TO "the key";
ALTER TABLE elsewhere.renamed OWNER TO metrics_test_other;
SELECT throws_ok('SELECT metrics_add_partition(''elsewhere.renamed''::regclass, ''later'')', '42501', 'must be owner of table rest', 'its owner cannot take rows out of somebody else''s default partition');
ALTER TABLE rest OWNER TO metrics_test_other;
SELECT metrics_add_partition('elsewhere.renamed'::regclass, 'later') AS later \gset
SELECT results_eq(format('SELECT relnamespace::regnamespace::text, relowner::regrole::text FROM pg_class WHERE oid = %L::regclass', :'later'), $$VALUES ('elsewhere', 'metrics_test_other')$$, 'renamed, moved and given away, it is the same table');
SELECT is(helper.as_role('metrics_test_owner', 'SELECT metrics_add_partition(''elsewhere.renamed''::regclass, ''mine'')'), '42501', 'which is no longer its first owner''s');
ALTER TABLE elsewhere.renamed DETACH PARTITION rest;
SELECT lives_ok('SELECT metrics_add_partition(''elsewhere.renamed''::regclass, ''without default''); CALL metrics_drain(''elsewhere.renamed'', ''drained''); CALL metrics_maintain()', 'it does without a default partition');
CREATE TABLE elsewhere.new_rest PARTITION OF elsewhere.renamed DEFAULT;
ALTER TABLE elsewhere.new_rest OWNER TO metrics_test_other;
INSERT INTO elsewhere.renamed VALUES ('new', 1);
CALL metrics_maintain();
SELECT is((SELECT metrics_partition_key(tableoid) FROM elsewhere.renamed WHERE "the key" = 'new'), 'new', 'and with one that came later');
REVOKE metrics_test_other FROM metrics_test_keeper;
INSERT INTO elsewhere.renamed VALUES ('newer', 1);
SET LOCAL client_min_messages TO error;
CALL metrics_maintain();
SET LOCAL client_min_messages TO warning;
SELECT results_eq('SELECT parent, sqlstate FROM metrics.metrics_failure', $$VALUES ('elsewhere.renamed'::regclass, '42501')$$, 'maintenance stops where the owner of the store may no longer act as the table''s');
GRANT metrics_test_other TO metrics_test_keeper;
CALL metrics_maintain();
SELECT is((SELECT metrics_partition_key(tableoid) FROM elsewhere.renamed WHERE "the key" = 'newer'), 'newer', 'and goes on where he may');

-- Dropped, it is a failure until somebody says so.
SELECT 'elsewhere.renamed'::regclass::oid AS dropped \gset
DROP TABLE elsewhere.renamed;
SET LOCAL client_min_messages TO error;
CALL metrics_maintain();
SET LOCAL client_min_messages TO warning;
SELECT results_eq('SELECT parent::oid, sqlstate FROM metrics.metrics_failure', format('VALUES (%s::oid, ''42P01'')', :'dropped'), 'a table that was dropped is a failure');
SELECT is((SELECT count(*)::int FROM metrics_partitions WHERE parent = :dropped), 0, 'the view has nothing of it');
SELECT is(helper.as_role('metrics_test_owner', format('SELECT metrics_unmanage_partitions(%s)', :dropped)), '42501', 'not everybody may give it up');
SELECT is(metrics_unmanage_partitions(:dropped), true, 'the owner of the store may');
SELECT is(metrics_unmanage_partitions(:dropped), false, 'once');
SELECT is_empty('SELECT * FROM metrics.metrics_failure', 'then nothing fails');

-- What is managed outlives the extension.
SELECT metrics_manage_partitions('others') \g /dev/null
DROP EXTENSION metrics_ext CASCADE;
CREATE EXTENSION metrics_ext SCHEMA public;
SELECT is_empty('SELECT * FROM public.metrics_partitions', 'without a store the view is empty');
SELECT metrics_create_store() \g /dev/null
SELECT results_eq('SELECT partition_key, created_by FROM public.metrics_partitions WHERE parent = ''others''::regclass', 'SELECT ''x''::text, current_user::text COLLATE "default"', 'a new extension knows what the old one made');
SELECT is(metrics_add_partition('others'::regclass, 'x')::text, :'x', 'and goes on with it');

-- Where nothing can be written, the view can be read.
SELECT is(helper.read_only(statement), want, format('read only: %s: %s', want, statement))
FROM (VALUES ('SELECT * FROM metrics_partitions', 'ok'), ('SELECT metrics_partition_key(''others'')', 'ok'), ('SELECT metrics_add_partition(''x'')', '25006'),
             ('SELECT metrics_add_partition(''others''::regclass, ''x'')', '25006'), ('SELECT metrics_drop_partition(''x'', true)', '25006'), ('SELECT metrics_drop_partition(''others''::regclass, ''x'', true)', '25006'),
             ('SELECT metrics_manage_partitions(''others'')', '25006'), ('SELECT metrics_unmanage_partitions(''others'')', '25006'), ('CALL metrics_drain(''others'', ''x'')', '25006'), ('CALL metrics_maintain()', '25006')) v(statement, want);

SELECT * FROM finish();
ROLLBACK;
