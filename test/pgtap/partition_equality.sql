-- A partition that we make is what CREATE TABLE … PARTITION OF makes, and beyond
-- that equal to its parent, or in the store to the template of its kind.
SET client_min_messages TO warning;
SET allow_in_place_tablespaces TO on;
DROP TABLESPACE IF EXISTS metrics_test_space;
CREATE TABLESPACE metrics_test_space LOCATION '';
BEGIN;
\ir include/store.sql
SELECT plan(59);

CREATE ROLE metrics_test_owner;
CREATE ROLE "Metrics test ""role""";
CREATE ROLE metrics_test_other;
GRANT CREATE ON TABLESPACE metrics_test_space TO metrics_test_owner;
CREATE SCHEMA "Odd ""schema"".";
GRANT ALL ON SCHEMA "Odd ""schema""." TO metrics_test_owner, metrics_test_other;

-- Each row of the catalogs that belongs to a table, as a line: all columns but
-- OIDs, places and what says nothing of the definition. What has a name of its
-- own by the table's is told apart by its definition.
CREATE FUNCTION helper.row_of(catalog_row anyelement, VARIADIC without text[]) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT string_agg(key || '=' || value, ' ' ORDER BY key)
    FROM jsonb_each_text(jsonb_strip_nulls(to_jsonb(catalog_row) - 'oid' - without))
$$;

-- Privileges whoever granted them, those of the owner written out.
CREATE FUNCTION helper.grants(acl aclitem[], kind "char", owner oid) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT string_agg(format('%s:%s%s', CASE WHEN grantee = 0 THEN 'public' ELSE grantee::regrole::text END, privilege_type,
                             CASE WHEN is_grantable THEN '*' END), ' ' ORDER BY grantee::regrole::text, privilege_type)
    FROM aclexplode(coalesce(acl, acldefault(kind, owner)))
$$;

CREATE FUNCTION helper.indexes(t regclass)
RETURNS TABLE (indexrelid oid, name name, definition text)
LANGUAGE sql STABLE AS $$
    SELECT i.indexrelid, c.relname, regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING ', '')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = t
$$;

CREATE FUNCTION helper.describe(t regclass)
RETURNS TABLE (what text, line text)
LANGUAGE sql STABLE AS $$
    WITH c AS (SELECT * FROM pg_class WHERE oid = t),
    i AS (SELECT * FROM helper.indexes(t)),
    a AS (SELECT a.*, row_number() OVER (ORDER BY attnum) AS place FROM pg_attribute a WHERE attrelid = t AND attnum > 0 AND NOT attisdropped)
    SELECT 'table', helper.row_of(c, 'relname', 'reltype', 'relfilenode', 'relpages', 'reltuples', 'relallvisible', 'reltoastrelid', 'relacl',
                                  'relpartbound', 'relfrozenxid', 'relminmxid', 'relnatts', 'relkind', 'relam', 'relispartition', 'relhassubclass', 'reloftype')
    FROM c
    UNION ALL SELECT 'toast', array_to_string(o.reloptions, ' ') FROM c JOIN pg_class o ON o.oid = c.reltoastrelid
    UNION ALL SELECT 'grants', helper.grants(relacl, 'r', relowner) FROM c
    UNION ALL SELECT 'comment', obj_description(t, 'pg_class')
    UNION ALL SELECT 'inherited column', concat(place, ' ', helper.row_of(a, 'attrelid', 'attnum', 'attname', 'place'))
    FROM (SELECT place, attislocal, attinhcount FROM a) a
    UNION ALL SELECT 'column', concat(place, ' ', attname, ' ', helper.row_of(a, 'attrelid', 'attnum', 'place', 'attislocal', 'attinhcount', 'attacl', 'attcacheoff', 'attidentity', 'attndims', 'attoptions', 'atthasmissing', 'attmissingval'),
        ' options ', (SELECT string_agg(o, ' ') FROM unnest(attoptions) o WHERE o !~ '^pg_attver='),
        ' default ', (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = t AND adnum = attnum),
        ' grants ', (SELECT helper.grants(attacl, 'c', 0) WHERE attacl IS NOT NULL), ' comment ', col_description(t, attnum))
    FROM a
    UNION ALL SELECT 'inherited constraint', concat(conname, ' ', conislocal, coninhcount, convalidated, CASE contype WHEN 'c' THEN connoinherit END, ' of ', (SELECT conname FROM pg_constraint p WHERE p.oid = o.conparentid))
    FROM pg_constraint o WHERE conrelid = t AND contype IN ('c', 'f')
    UNION ALL SELECT 'constraint', concat(CASE WHEN contype IN ('c', 'f') THEN conname END, ' ', pg_get_constraintdef(oid), ' ', condeferrable, condeferred,
        ' comment ', obj_description(oid, 'pg_constraint'))
    -- Those that a foreign key to a partitioned table has for its partitions follow from it.
    FROM pg_constraint o WHERE conrelid = t AND contype <> 't' AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = o.conparentid AND p.conrelid = t)
    UNION ALL SELECT 'referenced', concat(o.conrelid::regclass, ' ', pg_get_constraintdef(p.oid), ' ', p.conname)
    FROM pg_constraint o JOIN pg_constraint p ON p.oid = o.conparentid WHERE o.confrelid = t AND o.contype = 'f'
    UNION ALL SELECT 'inherited index', concat(definition, ' of ', inhparent::regclass)
    FROM i LEFT JOIN pg_inherits ON inhrelid = indexrelid
    UNION ALL SELECT 'index', concat(definition, ' ', helper.row_of(x, 'indexrelid', 'indrelid', 'indkey', 'indexprs', 'indpred', 'indcheckxmin', 'indisvalid'), ' ', array_to_string(o.reloptions, ' '),
        ' in ', (SELECT spcname FROM pg_tablespace s WHERE s.oid = o.reltablespace), ' persistence ', o.relpersistence, ' owner ', o.relowner::regrole,
        ' targets ', (SELECT string_agg(a.attnum || ':' || attstattarget, ',') FROM pg_attribute a WHERE attrelid = indexrelid AND attstattarget > 0),
        ' comment ', obj_description(indexrelid, 'pg_class'))
    FROM i JOIN pg_index x USING (indexrelid) JOIN pg_class o ON o.oid = indexrelid
    UNION ALL SELECT 'policy', concat(helper.row_of(p, 'polrelid', 'polqual', 'polwithcheck'), ' using ', replace(pg_get_expr(polqual, polrelid), relname || '.', '….'),
        ' check ', replace(pg_get_expr(polwithcheck, polrelid), relname || '.', '….'), ' comment ', obj_description(p.oid, 'pg_policy'))
    FROM c JOIN pg_policy p ON polrelid = t
    UNION ALL SELECT 'statistics', concat(regexp_replace(pg_get_statisticsobjdef(s.oid), ' ([^ ]+)( \([a-z, ]+\))? ON (.*) FROM .*', '\2\3'), stxstattarget, ' owner ', stxowner::regrole,
        ' comment ', obj_description(s.oid, 'pg_statistic_ext'))
    FROM pg_statistic_ext s WHERE stxrelid = t
    UNION ALL SELECT 'trigger', concat(helper.row_of(g, 'tgrelid', 'tgparentid', 'tgname', 'tgconstraint', 'tgconstrindid', 'tgconstrrelid', 'tgqual'),
        CASE WHEN NOT tgisinternal THEN replace(regexp_replace(pg_get_triggerdef(g.oid), ' ON .*? (FROM|NOT|DEFERRABLE|FOR) ', ' \1 '), quote_ident(relname), '…') || tgname END,
        -- Core calls those of the foreign keys by what they are for.
        ' of ', (SELECT CASE WHEN NOT p.tgisinternal THEN p.tgname END FROM pg_trigger p WHERE p.oid = tgparentid), ' ', (SELECT replace(pg_get_constraintdef(k.oid), quote_ident(relname), '…') FROM pg_constraint k WHERE k.oid = tgconstraint))
    FROM c JOIN pg_trigger g ON tgrelid = t
$$;

-- How two tables differ in some respects, their keys aside.
CREATE FUNCTION helper.difference(have regclass, want regclass, VARIADIC aspects text[]) RETURNS text
LANGUAGE sql STABLE AS $$
    WITH line AS (
        SELECT t = have AS had, what, replace(line, coalesce(quote_literal(metrics_partition_key(t)), '$'), 'its key') AS line
        FROM unnest(ARRAY[have, want]) t, helper.describe(t) WHERE what = ANY (aspects))
    SELECT string_agg(format('%s, %s only: %s', what, CASE WHEN n > 0 THEN 'have' ELSE 'want' END, line), E'\n' ORDER BY what, line)
    FROM (SELECT what, line, sum(CASE WHEN had THEN 1 ELSE -1 END) AS n FROM line GROUP BY what, line) l WHERE n <> 0
$$;

-- The partition that we make of a table, and tests that it is equal to its parent
-- and to the one that core makes.
CREATE FUNCTION helper.partition_equals(parent regclass, description text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    ours regclass;
    core regclass;
BEGIN
    EXECUTE format('SET LOCAL ROLE %s', (SELECT relowner::regrole FROM pg_class WHERE oid = parent));
    EXECUTE format('CREATE TABLE %s.core_partition PARTITION OF %s FOR VALUES IN (''core'')',
                   (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = parent), parent);
    RESET ROLE;
    core := (SELECT inhrelid FROM pg_inherits WHERE inhparent = parent AND metrics_partition_key(inhrelid) = 'core');
    PERFORM metrics_manage_partitions(parent);
    ours := metrics_add_partition(parent, 'ours');
    RETURN NEXT is(metrics_partition_key(ours), 'ours', description || ': there it is');
    RETURN NEXT is(helper.difference(ours, core, 'inherited column', 'inherited constraint', 'inherited index', 'referenced', 'trigger'), NULL, description || ': equals what core makes');
    EXECUTE format('ALTER TABLE %s RENAME TO core_%s', core, core::oid);
    RETURN NEXT is(helper.difference(ours, parent, 'table', 'grants', 'comment', 'column', 'constraint', 'index', 'policy', 'statistics'), NULL, description || ': equals its parent');
END $$;

-- A parent with all that one can have.
CREATE DOMAIN public.percent AS numeric CHECK (VALUE BETWEEN 0 AND 100);
CREATE TYPE public."Level" AS ENUM ('low', 'high''er');
CREATE TYPE public.pair AS (a integer, b text);
CREATE COLLATION public.reverse (provider = icu, locale = 'de-u-co-phonebk');
CREATE FUNCTION public.double(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(NEW, OLD); END';
CREATE TABLE public.referenced (id integer PRIMARY KEY, b integer UNIQUE, UNIQUE (id, b));
CREATE TABLE public.partitioned_ref (id integer PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE public.partitioned_ref_1 PARTITION OF public.partitioned_ref FOR VALUES FROM (0) TO (10);
CREATE TABLE public.partitioned_ref_2 PARTITION OF public.partitioned_ref FOR VALUES FROM (10) TO (20);
GRANT REFERENCES, SELECT ON public.referenced, public.partitioned_ref TO metrics_test_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE metrics_test_owner GRANT SELECT, TRIGGER ON TABLES TO "Metrics test ""role""";
ALTER DEFAULT PRIVILEGES FOR ROLE metrics_test_owner GRANT INSERT ON TABLES TO PUBLIC;
SET LOCAL ROLE metrics_test_owner;
SET LOCAL default_toast_compression = 'pglz';
CREATE TABLE "Odd ""schema"".".everything (
    dropped_first text,
    id bigint GENERATED BY DEFAULT AS IDENTITY (START 5),
    k text NOT NULL DEFAULT 'K''s "default" %s' || 'x',
    dropped integer DEFAULT 7,
    n integer DEFAULT public.double(3) CONSTRAINT positive CHECK (n > 0),
    twice integer GENERATED ALWAYS AS (public.double(n)) STORED,
    p public.percent, l public."Level" DEFAULT 'high''er', ls public."Level"[], pair public.pair DEFAULT (1, 'x'),
    v varchar(17) COLLATE "C" NOT NULL DEFAULT 'v', num numeric(12, 3), c text COLLATE public.reverse,
    external text, squeezed text COMPRESSION lz4, "Quoted ""column""" text DEFAULT $d$it's$d$,
    at timestamptz(3) DEFAULT now(), r integer, self_k text, self_id bigint, pr integer, span int4range,
    PRIMARY KEY (id, k) INCLUDE (n),
    CONSTRAINT later UNIQUE (k, num) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT no_nulls UNIQUE NULLS NOT DISTINCT (k, r),
    CONSTRAINT "Odd ""check""" CHECK ("Quoted ""column""" <> '') NOT VALID,
    CONSTRAINT to_referenced FOREIGN KEY (r) REFERENCES public.referenced ON UPDATE CASCADE ON DELETE SET NULL DEFERRABLE,
    CONSTRAINT to_other FOREIGN KEY (n) REFERENCES public.referenced (b) MATCH FULL ON DELETE SET DEFAULT,
    CONSTRAINT to_self FOREIGN KEY (self_id, self_k) REFERENCES "Odd ""schema"".".everything (id, k) ON DELETE CASCADE,
    CONSTRAINT to_partitioned FOREIGN KEY (pr) REFERENCES public.partitioned_ref ON DELETE RESTRICT
) PARTITION BY LIST (k);
ALTER TABLE "Odd ""schema"".".everything DROP COLUMN dropped, DROP COLUMN dropped_first;
ALTER TABLE "Odd ""schema"".".everything ADD COLUMN added text NOT NULL DEFAULT 'added';
ALTER TABLE "Odd ""schema"".".everything
    ALTER COLUMN n SET STATISTICS 77, ALTER COLUMN "Quoted ""column""" SET STATISTICS 0, ALTER COLUMN r SET (n_distinct = -0.5, n_distinct_inherited = 100),
    ALTER COLUMN c SET STORAGE MAIN, ALTER COLUMN external SET STORAGE EXTERNAL;
CREATE INDEX partial ON "Odd ""schema"".".everything (n DESC NULLS LAST, lower(v)) INCLUDE (num) WITH (fillfactor = 71) WHERE l = 'low';
CREATE INDEX expression ON "Odd ""schema"".".everything ((public.double(n) + 1), (pair IS NULL));
CREATE INDEX opclass ON "Odd ""schema"".".everything (v text_pattern_ops, c COLLATE "C") TABLESPACE metrics_test_space;
CREATE INDEX gin ON "Odd ""schema"".".everything USING gin (ls) WITH (fastupdate = off);
CREATE INDEX brin ON "Odd ""schema"".".everything USING brin (at timestamptz_minmax_multi_ops (values_per_range = 16)) WITH (pages_per_range = 7);
CREATE INDEX gist ON "Odd ""schema"".".everything USING gist (span);
CREATE INDEX incomplete ON ONLY "Odd ""schema"".".everything (added);
CREATE INDEX twin_1 ON "Odd ""schema"".".everything (num);
CREATE INDEX twin_2 ON "Odd ""schema"".".everything (num);
CREATE UNIQUE INDEX identity_index ON "Odd ""schema"".".everything (v, k);
ALTER INDEX "Odd ""schema"".".expression ALTER COLUMN 1 SET STATISTICS 99;
CREATE STATISTICS "Odd ""schema"".".some_statistics (dependencies, mcv) ON n, v FROM "Odd ""schema"".".everything;
CREATE STATISTICS "Odd ""schema"".".expressions ON (n + 1), lower(v) FROM "Odd ""schema"".".everything;
ALTER STATISTICS "Odd ""schema"".".expressions SET STATISTICS 55;
COMMENT ON TABLE "Odd ""schema"".".everything IS 'the table''s %s comment';
COMMENT ON COLUMN "Odd ""schema"".".everything."Quoted ""column""" IS 'a column';
COMMENT ON CONSTRAINT positive ON "Odd ""schema"".".everything IS 'a check';
COMMENT ON CONSTRAINT later ON "Odd ""schema"".".everything IS 'a unique constraint';
COMMENT ON CONSTRAINT everything_pkey ON "Odd ""schema"".".everything IS 'a primary key';
COMMENT ON CONSTRAINT to_self ON "Odd ""schema"".".everything IS 'a foreign key';
COMMENT ON INDEX "Odd ""schema"".".partial IS 'an index';
COMMENT ON INDEX "Odd ""schema"".".everything_pkey IS 'the index of a primary key';
COMMENT ON STATISTICS "Odd ""schema"".".some_statistics IS 'statistics';
CREATE TRIGGER after_row AFTER INSERT OR UPDATE OF n ON "Odd ""schema"".".everything FOR EACH ROW WHEN (NEW.n > 1 AND NEW.added <> '') EXECUTE FUNCTION public.note('argument''s');
CREATE TRIGGER before_row BEFORE DELETE ON "Odd ""schema"".".everything FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER off AFTER UPDATE ON "Odd ""schema"".".everything FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER always AFTER UPDATE ON "Odd ""schema"".".everything FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER on_replica AFTER UPDATE ON "Odd ""schema"".".everything FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER statement AFTER UPDATE ON "Odd ""schema"".".everything EXECUTE FUNCTION public.note();
CREATE CONSTRAINT TRIGGER at_the_end AFTER INSERT ON "Odd ""schema"".".everything DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.note();
ALTER TABLE "Odd ""schema"".".everything DISABLE TRIGGER off, ENABLE ALWAYS TRIGGER always, ENABLE REPLICA TRIGGER on_replica;
CREATE POLICY "p ""1""" ON "Odd ""schema"".".everything USING (v = current_user OR EXISTS (SELECT FROM public.referenced r WHERE r.id = everything.r AND k <> 'everything'));
CREATE POLICY p2 ON "Odd ""schema"".".everything AS RESTRICTIVE FOR INSERT TO "Metrics test ""role""", metrics_test_other WITH CHECK (n > 1 AND added <> '');
CREATE POLICY p3 ON "Odd ""schema"".".everything FOR UPDATE USING (n > 2) WITH CHECK (n IN (SELECT e.n FROM "Odd ""schema"".".everything e WHERE e.k = everything.k));
CREATE POLICY p4 ON "Odd ""schema"".".everything FOR DELETE TO PUBLIC USING (true);
COMMENT ON POLICY "p ""1""" ON "Odd ""schema"".".everything IS 'a policy';
ALTER TABLE "Odd ""schema"".".everything ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
REVOKE SELECT, INSERT ON "Odd ""schema"".".everything FROM "Metrics test ""role""", PUBLIC;
GRANT SELECT, DELETE ON "Odd ""schema"".".everything TO metrics_test_other WITH GRANT OPTION;
GRANT UPDATE ON "Odd ""schema"".".everything TO PUBLIC;
GRANT UPDATE (n, "Quoted ""column"""), REFERENCES (v) ON "Odd ""schema"".".everything TO "Metrics test ""role""";
REVOKE TRUNCATE ON "Odd ""schema"".".everything FROM metrics_test_owner;
ALTER TABLE "Odd ""schema"".".everything REPLICA IDENTITY USING INDEX "identity_index";
ALTER TABLE "Odd ""schema"".".everything SET TABLESPACE metrics_test_space;
RESET ROLE;
SET LOCAL ROLE metrics_test_other;
GRANT SELECT ON "Odd ""schema"".".everything TO PUBLIC;
RESET ROLE;
SET LOCAL default_toast_compression = 'pglz';

-- Foreign keys to it, of every action.
CREATE TABLE public.pointer (k text, id bigint, n integer,
    CONSTRAINT restricts FOREIGN KEY (id, k) REFERENCES "Odd ""schema"".".everything ON DELETE RESTRICT,
    CONSTRAINT cascades FOREIGN KEY (id, k) REFERENCES "Odd ""schema"".".everything ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED);

-- Its default has the columns in another order, and rows that move.
SELECT helper.run(format('CREATE TABLE "Odd ""schema"".".other_order (dropped point, %s); ALTER TABLE "Odd ""schema"".".other_order DROP COLUMN dropped',
    string_agg(concat_ws(' ', quote_ident(attname), format_type(atttypid, atttypmod),
        CASE WHEN attcollation NOT IN (0, 100) THEN 'COLLATE ' || attcollation::regcollation END,
        CASE WHEN attgenerated = 's' THEN 'GENERATED ALWAYS AS (public.double(n)) STORED' END, CASE WHEN attnotnull THEN 'NOT NULL' END), ', ' ORDER BY attname DESC)))
FROM pg_attribute WHERE attrelid = '"Odd ""schema"".".everything'::regclass AND attnum > 0 AND NOT attisdropped;
ALTER TABLE "Odd ""schema"".".other_order OWNER TO metrics_test_owner;
ALTER TABLE "Odd ""schema"".".other_order ADD CONSTRAINT positive CHECK (n > 0), ADD CONSTRAINT "Odd ""check""" CHECK ("Quoted ""column""" <> ''),
    ALTER squeezed SET COMPRESSION lz4, ALTER n SET DEFAULT 0;
ALTER TABLE "Odd ""schema"".".everything ATTACH PARTITION "Odd ""schema"".".other_order DEFAULT;
INSERT INTO public.referenced VALUES (1, 6), (2, 8), (3, 10), (4, 12);
INSERT INTO public.partitioned_ref VALUES (1), (11);
INSERT INTO "Odd ""schema"".".everything (k, n, ls, c, squeezed, external, num, r, self_k, self_id, pr, span, v)
VALUES ('ours', 6, '{low,"high''er"}', 'ä', repeat('z', 9000), repeat('z', 9000), 1.5, 1, 'ours', 5, 11, '[1,3)', 'a'),
       ('ours', 8, NULL, '', 'z', NULL, NULL, 2, 'ours', 5, 1, 'empty', 'b'), ('theirs', 6, '{}', 'o', '', '', 7, NULL, 'theirs', 7, NULL, NULL, 'c');
INSERT INTO public.pointer VALUES ('ours', 5, 1);
SET CONSTRAINTS ALL IMMEDIATE;
CREATE TEMP TABLE before AS SELECT * FROM "Odd ""schema"".".everything;
SELECT * FROM helper.partition_equals('"Odd ""schema"".".everything', 'everything');
SELECT bag_eq('SELECT to_jsonb(e) FROM "Odd ""schema"".".everything e', 'SELECT to_jsonb(b) FROM before b', 'the rows are what they were');
SELECT results_eq($$SELECT k, count(*), bool_and((tableoid = '"Odd ""schema"".".other_order'::regclass) = (k <> 'ours')) FROM "Odd ""schema"".".everything GROUP BY k ORDER BY k$$,
    $$VALUES ('ours', 2::bigint, true), ('theirs', 1, true)$$, 'those of the key have left the default');
SELECT lives_ok('DELETE FROM public.referenced WHERE id = 2', 'a foreign key out acts on a row that moved');
SELECT results_eq('SELECT id, r, n FROM "Odd ""schema"".".everything ORDER BY id', 'VALUES (5::bigint, 1, 6), (6, NULL, 6), (7, NULL, 6)', 'as it should');
SELECT throws_ok('DELETE FROM "Odd ""schema"".".everything WHERE id = 5', '23503', NULL, 'a foreign key in protects it');
SELECT throws_ok($$INSERT INTO "Odd ""schema"".".everything (k, pr, r) VALUES ('ours', 5, 3)$$, '23503', NULL, 'and so does one to a partitioned table');
SELECT lives_ok(format($$INSERT INTO "Odd ""schema"".".everything (k, v, pr, r) VALUES ('ours', 'v%1$s', %1$s, %2$s)$$, pr, r), 'which any of its partitions satisfies')
FROM (VALUES (1, 3), (11, 4)) v(pr, r);

-- Each kind of replica identity.
CREATE TABLE public.identity_default (k text, id integer, PRIMARY KEY (k, id)) PARTITION BY LIST (k);
CREATE TABLE public.identity_full (LIKE public.identity_default INCLUDING ALL) PARTITION BY LIST (k);
ALTER TABLE public.identity_full REPLICA IDENTITY FULL;
CREATE TABLE public.identity_nothing (LIKE public.identity_default INCLUDING ALL) PARTITION BY LIST (k);
ALTER TABLE public.identity_nothing REPLICA IDENTITY NOTHING;
SELECT helper.partition_equals(('public.identity_' || i)::regclass, 'replica identity ' || i) FROM unnest('{default,full,nothing}'::text[]) i;

-- Unlogged, with a foreign key that only unlogged tables can have.
CREATE UNLOGGED TABLE public.unlogged_referenced (id integer PRIMARY KEY);
CREATE UNLOGGED TABLE public.unlogged_parent (k text, r integer REFERENCES public.unlogged_referenced) PARTITION BY LIST (k);
SELECT metrics_manage_partitions('public.unlogged_parent') \g /dev/null
SELECT metrics_add_partition('public.unlogged_parent'::regclass, 'ours') AS unlogged \gset
SELECT is(helper.difference(:'unlogged', 'public.unlogged_parent', 'table', 'column', 'constraint'), NULL, 'an unlogged table has unlogged partitions');

-- Names of 63 bytes, of several bytes a character, with all that may stand in one.
CREATE TEMP TABLE long AS SELECT t AS start, rpad(t, 63, 'x') AS name FROM unnest(ARRAY['a', '"', '''', '%I %s \n', 'Ab.c']) t;
SELECT helper.run(format('CREATE TABLE public.%I (%I text NOT NULL, %3$I integer CONSTRAINT %4$I CHECK (%3$I > 0), CONSTRAINT %5$I PRIMARY KEY (%2$I, %3$I)) PARTITION BY LIST (%2$I)',
    name, rpad('k' || start, 63, 'x'), rpad('i' || start, 63, 'x'), rpad('c' || start, 63, 'x'), rpad('p' || start, 63, 'x'))) FROM long;
INSERT INTO long VALUES ('ö', repeat('ö', 31));
SELECT helper.run(format('CREATE TABLE public.%1$I (%1$I text, %2$I integer, UNIQUE (%1$I, %2$I)) PARTITION BY LIST (%1$I)', repeat('ö', 31), repeat('ü', 31)));
SELECT helper.partition_equals(format('public.%I', name)::regclass, 'long name ' || start) FROM long;

-- A table that is a partition itself, one of a type, and others.
CREATE TABLE public.above (k text, id integer, n integer) PARTITION BY RANGE (id);
CREATE TABLE public.below (n integer, id integer, k text) PARTITION BY LIST (k);
ALTER TABLE public.above ATTACH PARTITION public.below FOR VALUES FROM (0) TO (10);
CREATE INDEX ON public.above (k, n);
SELECT helper.partition_equals('public.below', 'a partition');
SELECT throws_ok(format('INSERT INTO %s VALUES (1, 77, ''ours'')', (SELECT partition FROM metrics_partitions WHERE parent = 'public.below'::regclass AND partition_key = 'ours')),
    '23514', NULL, 'a partition of it has its bounds, too');
CREATE TYPE public.typed_row AS (k text, n integer);
CREATE TABLE public.typed OF public.typed_row (k NOT NULL, n DEFAULT 5) PARTITION BY LIST (k);
SELECT helper.partition_equals('public.typed', 'a typed table');
CREATE TABLE public.of_column (k text, r integer, n integer, CONSTRAINT f FOREIGN KEY (r, n) REFERENCES public.referenced (id, b) ON DELETE SET NULL (n)) PARTITION BY LIST (k);
SELECT helper.partition_equals('public.of_column', 'ON DELETE SET NULL of a column');

CREATE TABLE public.bounded (k text) PARTITION BY LIST (k);
REVOKE TRUNCATE, DELETE ON public.bounded FROM CURRENT_USER;
SELECT helper.partition_equals('public.bounded', 'a table whose owner may not do all');

-- In the store, a partition is like the one that stands for its kind, whatever its owner has made of that.
ALTER TABLE metrics ADD COLUMN host text NOT NULL DEFAULT 'here' CONSTRAINT has_host CHECK (host <> ''), ADD COLUMN gone integer;
ALTER TABLE metrics DROP COLUMN gone;
CREATE INDEX ON metrics (host);
CREATE POLICY everybody ON metrics USING (host <> 'secret');
ALTER TABLE metrics ENABLE ROW LEVEL SECURITY;
CREATE TRIGGER note AFTER INSERT ON metrics FOR EACH ROW EXECUTE FUNCTION public.note();
GRANT SELECT ON metrics TO metrics_test_other;
SELECT helper.run(format($$
    ALTER TABLE %1$s ADD CONSTRAINT known CHECK (metric_group <> 'unknown'), ADD CONSTRAINT other CHECK (partition_type <> 'other'), ALTER COLUMN host SET DEFAULT 'there',
        ALTER COLUMN metrics SET STORAGE EXTERNAL, ALTER COLUMN trial_id SET STATISTICS 7, SET (fillfactor = 61, toast.autovacuum_enabled = off), SET TABLESPACE metrics_test_space;
    CREATE INDEX ON %1$s USING brin (end_time) WITH (pages_per_range = 5);
    CREATE UNIQUE INDEX %2$I ON %1$s (id, trial_id);
    ALTER TABLE %1$s REPLICA IDENTITY USING INDEX %2$I, CLUSTER ON %2$I;
    CREATE STATISTICS %2$s_st ON trial_id, metric_group FROM %1$s;
    CREATE POLICY own ON %1$s USING (EXISTS (SELECT FROM metrics.trials t WHERE t.id = %1$s.trial_id));
    ALTER TABLE %1$s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    GRANT SELECT ON %1$s TO "Metrics test ""role""" WITH GRANT OPTION;
    GRANT UPDATE (archived) ON %1$s TO PUBLIC;
    COMMENT ON TABLE %1$s IS 'what is like it';
    COMMENT ON CONSTRAINT known ON %1$s IS 'a check of its own'$$, t, 'unique_' || t))
FROM unnest('{system_metrics,generic_metrics}'::text[]) t;
CREATE TEMP TABLE kind AS SELECT * FROM (VALUES ('time', 'system_metrics'::regclass), ('batch', 'generic_metrics')) k(kind, template);
SELECT metrics_add_partition(E'key of \'' || kind, kind) FROM kind \g /dev/null
CREATE TEMP TABLE made AS SELECT kind, template, partition FROM kind JOIN metrics_partitions USING (kind) WHERE partition_key = 'key of ''' || kind;
SELECT is(count(*)::int, 2, 'there they are') FROM made;
SELECT is(helper.difference(partition, template, 'table', 'toast', 'grants', 'comment', 'inherited column', 'column', 'inherited constraint', 'constraint', 'index', 'inherited index', 'policy', 'statistics', 'trigger'),
    NULL, format('a partition of kind %s equals %s', kind, template)) FROM made;
SELECT is(has_table_privilege('metrics_test_other', partition, 'SELECT'), false, 'and has no grants but those of ' || template) FROM made;

-- The template's own check is known by what it says, not by its name.
ALTER TABLE system_metrics RENAME CONSTRAINT partition_type_check TO renamed;
ALTER TABLE generic_metrics DROP CONSTRAINT partition_type_check;
INSERT INTO trials (id) VALUES (1);
SELECT metrics_add_partition('second ' || kind, kind) FROM kind \g /dev/null
SELECT lives_ok(format('INSERT INTO metrics (trial_id, partition_type, total_batches, metric_group) VALUES (1, %L, 1, ''g'')', 'second ' || kind), 'rows of its key go into a partition of kind ' || kind) FROM kind;

SELECT * FROM finish();
ROLLBACK;
DROP TABLESPACE metrics_test_space;
