-- Keys of partitions: each is only data, and two are one if the key's collation
-- says so.
BEGIN;
\ir include/store.sql
SELECT plan(151);

CREATE COLLATION helper.no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN helper.key_domain AS text;

CREATE TEMP TABLE key (n serial, key text);
INSERT INTO key (key) VALUES
    ('A'), ('a'), ('a '), (' a'), (''), (' '), (repeat('x', 200)), (repeat('x', 199) || 'y'), (repeat('ü', 100)), (repeat('ü', 99) || 'u'),
    ('größe'), ('ключ'), ('鍵'), ('😀'), ('e' || U&'\0301'), (U&'\00e9'), ('''"'), ('"'), (''''''), (E'new\nline'), (E'\n'), (E'tab\t'), (E'\r'), (E'\x01'), ('\'), ('\\'), ('\n'), (E'\\\''),
    ('%I'), ('%s %L %1$s %%'), ('$1'), ('$$'), ('x''); drop table metrics; --'), ('x"); drop table metrics; --'), ('--'), ('/*'), (';'), ('NULL'), ('null'), ('DEFAULT'),
    ('eightfolddemo-hiring-test.com'), ('eightfolddemo-hiringtest.com'), ('a.b'), ('a_b'), ('a-b'), ('select'), ('1'), ('01'), ('{}'), ('(a)'), (repeat('k', 1000));

-- Everything there is outside of a schema.
CREATE FUNCTION helper.others(schema name) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT md5(string_agg(format('%s %s %s', oid::regclass, relkind, relnatts), ',' ORDER BY oid)) FROM pg_class
    WHERE relnamespace NOT IN (schema::regnamespace, 'pg_toast'::regnamespace) AND NOT pg_is_other_temp_schema(relnamespace) AND relnamespace <> pg_my_temp_schema()
$$;

-- Rows of all keys get into a table by way of its default, and each key gets its partition.
CREATE TEMP TABLE kind (n serial, type text, part_collation text DEFAULT '', equal text DEFAULT 'k');
INSERT INTO kind (type, part_collation, equal) VALUES
    ('text', '', 'key'), ('varchar', '', 'key'), ('varchar(300)', '', 'left(key, 300)'), ('name', '', 'key::name'), ('text COLLATE "C"', '', 'key'),
    ('text COLLATE helper.no_case', '', 'key COLLATE helper.no_case'), ('text COLLATE "C"', 'COLLATE helper.no_case', 'key COLLATE helper.no_case'),
    ('text COLLATE helper.no_case', 'COLLATE "C"', 'key COLLATE "C"'), ('text COLLATE "de-x-icu"', '', 'key'), ('text', 'text_pattern_ops', 'key');
CREATE FUNCTION helper.keys_of(kind kind, with_default boolean) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    description text := format('%s %s %s', kind.type, kind.part_collation, CASE WHEN with_default THEN 'with default' ELSE 'without' END);
    others text;
    moved integer;
    wanted integer;
BEGIN
    DROP SCHEMA IF EXISTS keys CASCADE;
    CREATE SCHEMA keys;
    EXECUTE format('CREATE TABLE keys.t (n integer, k %s) PARTITION BY LIST (k %s)', kind.type, kind.part_collation);
    IF with_default THEN
        CREATE TABLE keys.rest PARTITION OF keys.t DEFAULT;
        INSERT INTO keys.t SELECT n, key FROM key WHERE kind.type <> 'varchar(300)' OR length(key) <= 300;
    END IF;
    PERFORM metrics_manage_partitions('keys.t');
    others := helper.others('keys');
    EXECUTE format('SELECT count(DISTINCT %s) FROM key WHERE %L <> ''varchar(300)'' OR length(key) <= 300', kind.equal, kind.type) INTO wanted;
    FOR round IN 1 .. 2 LOOP
        PERFORM metrics_add_partition('keys.t'::regclass, key) FROM key WHERE kind.type <> 'varchar(300)' OR length(key) <= 300;
        RETURN NEXT is((SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'keys.t'::regclass) - with_default::int, wanted, description || ': one partition a key');
    END LOOP;
    IF with_default THEN
        RETURN NEXT is((SELECT count(*)::int FROM keys.rest), 0, description || ': nothing is left in the default');
    ELSE
        INSERT INTO keys.t SELECT n, key FROM key WHERE kind.type <> 'varchar(300)' OR length(key) <= 300;
    END IF;
    RETURN NEXT is((SELECT string_agg(format('%s in %s', k, p), ', ') COLLATE "C" FROM (SELECT k::text COLLATE "C" AS k, metrics_partition_key(tableoid) AS p FROM keys.t) t
                    WHERE k <> p AND NOT (kind.equal ~ 'no_case' AND k = p COLLATE helper.no_case)), NULL, description || ': the bound is the key');
    RETURN NEXT is((SELECT count(DISTINCT n)::int FROM keys.t), (SELECT count(*)::int FROM key WHERE kind.type <> 'varchar(300)' OR length(key) <= 300), description || ': no row is lost');
    RETURN NEXT is(helper.others('keys'), others, description || ': nothing else is touched');
    -- The view has each.
    RETURN NEXT is((SELECT count(*)::int FROM metrics_partitions WHERE parent = 'keys.t'::regclass AND partition_key IS NOT NULL), wanted, description || ': each is in the view');
END $$;
SELECT helper.keys_of(kind, d) FROM kind, unnest('{t,f}'::boolean[]) d WHERE d OR type ~ '^text' AND n < 8 ORDER BY n, d;

-- What the column makes of a key is the key.
CREATE TABLE short (k varchar(3)) PARTITION BY LIST (k);
CREATE TABLE short_rest PARTITION OF short DEFAULT;
INSERT INTO short VALUES ('abc');
SELECT metrics_manage_partitions('short') \g /dev/null
SELECT metrics_add_partition('short'::regclass, 'abc   ') AS abc \gset
SELECT is(metrics_partition_key(:'abc'), 'abc', 'spaces beyond the length of a varchar(n) are no part of the key');
SELECT is(metrics_add_partition('short'::regclass, 'abc'), :'abc'::regclass, 'so it is the same');
SELECT helper.refuses($$SELECT metrics_add_partition('short'::regclass, 'abcd')$$, '22001', '', 'others are', false);
SELECT is((SELECT tableoid::regclass FROM short), :'abc'::regclass, 'and its rows are in the partition');
CREATE TABLE names (k name) PARTITION BY LIST (k);
SELECT metrics_manage_partitions('names') \g /dev/null
SELECT metrics_add_partition('names'::regclass, repeat('n', 64)) AS n \gset
SELECT is(metrics_add_partition('names'::regclass, repeat('n', 63) || 'other'), :'n'::regclass, 'keys of type name are their first 63 bytes');
SELECT is(metrics_partition_key(:'n'), repeat('n', 63), 'which is the bound');

-- Names: readable, no longer than 63 bytes, whole characters, and free.
CREATE TABLE events (k text) PARTITION BY LIST (k);
SELECT metrics_manage_partitions('events') \g /dev/null
SELECT matches(trim('"' FROM metrics_add_partition('events'::regclass, key)::text), '^' || want || '[0-9a-f]{8}$', format('the name for key %L', key))
FROM (VALUES ('GPU 0: util %', 'events_gpu_0_util_'), ('größe', 'events_größe_'), ('', 'events_'), ('%', 'events_'), ('"', 'events_'), (repeat('ü', 100), 'events_' || repeat('ü', 23) || '_'), (repeat('x', 100), 'events_' || repeat('x', 47) || '_')) v(key, want);
SELECT is((SELECT max(length(relname::text::bytea)) FROM pg_class c JOIN pg_inherits ON inhrelid = c.oid WHERE inhparent = 'events'::regclass), 63, 'none is longer than a name may be');

-- Whatever has the name already is left alone: the next name is taken.
SELECT metrics_add_partition('events'::regclass, 'taken') AS taken \gset
SELECT metrics_drop_partition('events'::regclass, 'taken', false) \g /dev/null
CREATE FUNCTION helper.taken_by(definition text, kind text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    partition regclass;
BEGIN
    EXECUTE definition;
    partition := metrics_add_partition('events'::regclass, 'taken');
    RETURN NEXT is(metrics_partition_key(partition), 'taken', kind || ' has the name: there is a partition');
    RETURN NEXT matches(partition::text, '^events_taken_[0-9a-f]{8}$', kind || ' has the name: it has another');
    RETURN NEXT isnt(partition::text, substring(definition FROM 'events_taken_[0-9a-f]{8}'), kind || ' has the name: and not that one');
    RETURN NEXT is(metrics_add_partition('events'::regclass, 'taken'), partition, kind || ' has the name: which stays');
    RAISE SQLSTATE 'ZZZZZ';
EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN NULL;
END $$;
SELECT helper.taken_by(format(definition, :'taken'), kind)
FROM (VALUES ('CREATE TABLE %I (k text)', 'a table'), ('CREATE TABLE %I (k text CHECK (k = ''taken''))', 'a table that could be the partition'), ('CREATE VIEW %I AS SELECT 1', 'a view'),
             ('CREATE SEQUENCE %I', 'a sequence'), ('CREATE TYPE %I AS ENUM ()', 'a type'), ('CREATE DOMAIN %I AS text', 'a domain'), ('CREATE TYPE %I', 'a shell type'),
             ('CREATE TABLE indexed (n integer); CREATE INDEX %I ON indexed (n)', 'an index'), ('CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE %I (k text) SERVER s', 'a foreign table')) v(definition, kind);

-- Keys that are no text are refused when the table comes to be managed.
CREATE TEMP TABLE other_type AS SELECT row_number() OVER () AS n, type FROM unnest('{integer,helper.key_domain,char(3),bytea,uuid,timestamptz,numeric}'::text[]) type;
SELECT helper.run(format('CREATE TABLE of_type_%s (k %s) PARTITION BY LIST (k)', n, type)) FROM other_type;
SELECT helper.refuses(format('SELECT metrics_manage_partitions(''of_type_%s'')', n), '42809', format('the partition key "k" of metrics.of_type_%s is of type', n), 'a key of type ' || type) FROM other_type;

SELECT * FROM finish();
ROLLBACK;
