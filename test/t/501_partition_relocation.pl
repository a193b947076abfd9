# Rows that leave a default partition stay the same rows: nothing fires, nothing
# acts, nothing is computed, and what references them goes on doing so.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('partition_relocation');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', 'metrics_ext.worker = off');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
CREATE EXTENSION btree_gist;
SQL

sub drains
{
	my ($table, $key, $rows, $description) = @_;
	my $err = '';
	is($node->psql('postgres', "CALL metrics_drain('$table', \$key\$$key\$key\$)", stderr => \$err), 0, "$description: drained") or diag($err);
	like($err, qr/moved $rows rows/, "$description: $rows rows moved");
}

sub is_sql
{
	my ($sql, $want, $description) = @_;
	is($node->safe_psql('postgres', $sql), $want, $description);
}

sub fails
{
	my ($sql, $pattern, $description) = @_;
	my $err = '';
	my $status = $node->psql('postgres', $sql, stderr => \$err, on_error_stop => 1);
	ok($status != 0 && $err =~ $pattern, $description) or diag($err);
}

# Triggers of all kinds, columns of all kinds, a policy that hides all rows, a
# default partition with its columns in another order, dropped ones between, and
# a column that its rows do not have yet; values in TOAST, compressed in two ways.
my $has_lz4 = $node->psql('postgres', 'CREATE TEMPORARY TABLE t (c text COMPRESSION lz4)') == 0;
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE fired (what text);
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
    INSERT INTO fired VALUES (concat_ws(' ', TG_NAME, TG_OP, TG_TABLE_NAME));
    RETURN coalesce(NEW, OLD);
END \$\$;
CREATE TABLE f (
    id bigint GENERATED ALWAYS AS IDENTITY, gone integer, key text, v integer,
    twice integer GENERATED ALWAYS AS (v * 2) STORED, counter integer NOT NULL DEFAULT nextval('metrics.metrics_id_seq'),
    plain text, packed text, at timestamptz DEFAULT clock_timestamp(), random float8 DEFAULT random(),
    CHECK (v > 0), PRIMARY KEY (key, id)) PARTITION BY LIST (key);
ALTER TABLE f DROP gone, ALTER plain SET STORAGE EXTERNAL;
CREATE TABLE f_default (
    random float8, packed text @{[ $has_lz4 ? 'COMPRESSION lz4' : '' ]}, dropped text, plain text, key text NOT NULL, at timestamptz, counter integer NOT NULL,
    v integer, twice integer GENERATED ALWAYS AS (v * 2) STORED, id bigint NOT NULL, CONSTRAINT f_v_check CHECK (v > 0));
ALTER TABLE f_default DROP dropped;
ALTER TABLE f ATTACH PARTITION f_default DEFAULT;
INSERT INTO f (key, v, plain, packed)
SELECT 'k' || i % 3, i, repeat(md5(i::text), 200 * (i % 4)), repeat(md5(i::text), 4000 * (i % 2)) FROM generate_series(1, 300) i;
ALTER TABLE f ADD later text DEFAULT 'came later', ADD empty text;
UPDATE f SET empty = 'not empty' WHERE id % 50 = 0;

CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON f FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER b AFTER INSERT OR UPDATE OR DELETE ON f FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER c BEFORE INSERT OR UPDATE OR DELETE ON f EXECUTE FUNCTION fire();
CREATE TRIGGER d AFTER INSERT OR UPDATE OR DELETE ON f EXECUTE FUNCTION fire();
CREATE TRIGGER e BEFORE INSERT OR UPDATE OR DELETE ON f_default FOR EACH ROW EXECUTE FUNCTION fire();
CREATE TRIGGER f AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON f_default EXECUTE FUNCTION fire();
CREATE CONSTRAINT TRIGGER g AFTER INSERT OR UPDATE OR DELETE ON f DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fire();
ALTER TABLE f ENABLE ALWAYS TRIGGER a;
ALTER TABLE f ENABLE ALWAYS TRIGGER d;
ALTER TABLE f_default ENABLE ALWAYS TRIGGER e;
CREATE ROLE keeper LOGIN;
GRANT CREATE ON SCHEMA public TO keeper;
ALTER TABLE f ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE f_default ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY none ON f USING (false) WITH CHECK (false);
ALTER TABLE f OWNER TO keeper;
ALTER TABLE f_default OWNER TO keeper;
CREATE TABLE f_before AS SELECT * FROM f;
SELECT metrics_manage_partitions('f');
SQL
my $sequence = $node->safe_psql('postgres', 'SELECT last_value FROM metrics.metrics_id_seq');
drains('f', "k$_", 100, "all kinds of columns and triggers, k$_") for 0 .. 1;
is_sql('SELECT count(*) FROM (TABLE f EXCEPT TABLE f_before) d', 0, 'no value has changed');
is_sql('SELECT count(*), count(DISTINCT tableoid) FROM f', '300|3', 'no row is lost');
is_sql('SELECT * FROM fired', '', 'no trigger fired');
is_sql('SELECT last_value FROM metrics.metrics_id_seq', $sequence, 'no default was computed');
is_sql("SELECT count(*) FROM f WHERE later = 'came later' AND empty IS NULL AND key = 'k1'", 98, 'what the rows did not have is there');
is_sql("INSERT INTO f (key, v) VALUES ('k1', 5) RETURNING twice, id", '10|301', 'new rows have all of it');
is_sql('SELECT count(DISTINCT what) FROM fired', '5', 'the triggers of new rows fire');
is_sql(q{SELECT count(*) FROM f WHERE key = 'k1' AND length(packed) > 100000 AND pg_column_size(packed) < 20000}, 50, 'values are as compressed as they were');

# Foreign keys to the table, of every action, deferred, of partitioned tables,
# and of the table itself; foreign keys of the table.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE kind (id integer PRIMARY KEY);
INSERT INTO kind VALUES (1);
CREATE TABLE p (id integer, key text DEFAULT 'k0', kind integer NOT NULL DEFAULT 1 REFERENCES kind ON DELETE CASCADE, parent_id integer, parent_key text, PRIMARY KEY (id, key),
    FOREIGN KEY (parent_id, parent_key) REFERENCES p ON DELETE CASCADE) PARTITION BY LIST (key);
CREATE TABLE p_default PARTITION OF p DEFAULT;
INSERT INTO p (id, key) SELECT i, 'k' || i % 3 FROM generate_series(0, 29) i;
UPDATE p SET parent_id = (id + 1) % 30, parent_key = 'k' || (id + 1) % 3;
DO $$
DECLARE
    action text;
    n integer := 0;
BEGIN
    FOREACH action IN ARRAY ARRAY['ON DELETE CASCADE ON UPDATE CASCADE', 'ON DELETE SET NULL', 'ON DELETE SET DEFAULT', 'ON DELETE RESTRICT', '',
        'DEFERRABLE INITIALLY DEFERRED', 'ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED', 'ON DELETE SET NULL (n)'] LOOP
        n := n + 1;
        EXECUTE format('CREATE TABLE r%s (n integer DEFAULT 0, key text DEFAULT ''k0'', FOREIGN KEY (n, key) REFERENCES p %s)', n, action);
        EXECUTE format('INSERT INTO r%s SELECT id, key FROM p', n);
    END LOOP;
    CREATE TABLE r9 (n integer, key text, FOREIGN KEY (n, key) REFERENCES p ON DELETE CASCADE) PARTITION BY HASH (n);
    CREATE TABLE r9a PARTITION OF r9 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE r9b PARTITION OF r9 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
    INSERT INTO r9 SELECT id, key FROM p;
END $$;
SELECT metrics_manage_partitions('p');
SQL
drains('p', 'k1', 10, 'foreign keys');
is_sql("SELECT count(*) FROM r$_ r JOIN p ON p.id = r.n AND p.key = r.key", 30, "references of r$_ hold") for 1 .. 9;
is_sql('SELECT count(*) FROM p a JOIN p b ON b.id = a.parent_id AND b.key = a.parent_key', 30, 'and those of the table itself');
fails("DELETE FROM p WHERE key = 'k1' AND id = 1", qr/violates foreign key constraint/, 'they are enforced on moved rows');
fails("BEGIN; INSERT INTO r6 VALUES (1000, 'k1'); COMMIT", qr/violates foreign key constraint/, 'and for new references');
fails("INSERT INTO p (id, key, kind) VALUES (100, 'k1', 2)", qr/violates foreign key constraint/, 'the table references what it did');
$node->safe_psql('postgres', "DELETE FROM r$_") for 4 .. 6;
$node->safe_psql('postgres', "UPDATE p SET parent_id = NULL; DELETE FROM p WHERE key = 'k1' AND id = 1");
is_sql("SELECT (SELECT count(*) FROM r1 WHERE n = 1), (SELECT count(*) FROM r2 WHERE n IS NULL), (SELECT count(*) FROM r3 WHERE n = 0),
	(SELECT count(*) FROM r7 WHERE n = 1), (SELECT count(*) FROM r8 WHERE n IS NULL AND key = 'k1'), (SELECT count(*) FROM r9 WHERE n = 1)", '0|1|2|0|1|0', 'their actions act when rows are deleted');

# In a transaction that has deferred checks pending.
$node->safe_psql('postgres', "BEGIN; INSERT INTO r6 VALUES (1000, 'k2'); CALL metrics_drain('p', 'k2'); INSERT INTO p (id, key) VALUES (1000, 'k2'); COMMIT");
is_sql("SELECT tableoid::regclass = 'p_default'::regclass FROM p WHERE id = 1000", 'f', 'a deferred check finds a row that comes after the drain');
fails("BEGIN; INSERT INTO p (id, key, kind) VALUES (7, 'k7', 1); SET CONSTRAINTS ALL DEFERRED; DELETE FROM p WHERE id = 3 AND key = 'k0'; INSERT INTO r6 VALUES (3, 'k0'); CALL metrics_drain('p', 'k0'); COMMIT",
	qr/violates foreign key constraint|pending trigger events/, 'and one that fails');

# A foreign key to the default partition itself holds the rows there.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE direct (id integer, key text, FOREIGN KEY (id, key) REFERENCES p_default);
INSERT INTO direct SELECT id, key FROM p WHERE key = 'k0';
SQL
fails("CALL metrics_drain('p', 'k0')", qr/"direct_id_key_fkey" of public.direct references it/, 'a reference to the default partition is an error');
is_sql("SELECT count(*) FROM p_default WHERE key = 'k0'", 10, 'that leaves the rows where they are');

# Constraints: deferrable, exclusion, one that is not valid yet, unique of several columns and of an expression.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE u (id integer, key text, during int4range, UNIQUE (key, id) DEFERRABLE INITIALLY DEFERRED) PARTITION BY LIST (key);
CREATE TABLE u_default PARTITION OF u DEFAULT;
ALTER TABLE u_default ADD CONSTRAINT apart EXCLUDE USING gist (key WITH =, during WITH &&);
INSERT INTO u SELECT i, 'k' || i % 2, int4range(i * 10, i * 10 + 5) FROM generate_series(1, 100) i;
ALTER TABLE u ADD CONSTRAINT small CHECK (id < 50) NOT VALID;
SELECT metrics_manage_partitions('u');
SQL
drains('u', 'k1', 50, 'deferrable, exclusion and invalid constraints');
is_sql('SELECT count(*) FROM u WHERE id >= 50', 51, 'rows that a constraint does not hold for are found');
is_sql("SELECT bool_and(NOT convalidated) FROM pg_constraint WHERE conname = 'small'", 't', 'since it is not valid in their partition either');
$node->safe_psql('postgres', "UPDATE u SET id = id - 2 WHERE key = 'k1' AND id < 50");
fails("INSERT INTO u VALUES (1, 'k1')", qr/duplicate key/, 'a deferrable constraint is checked in the new partition');
fails("BEGIN; INSERT INTO u VALUES (2, 'k0'); CALL metrics_drain('u', 'k0'); COMMIT", qr/duplicate key|pending trigger events/, 'what a deferred one will refuse is not moved');
is_sql("SELECT count(*) FROM u_default WHERE key = 'k0'", 50, 'and rows stay');

# NULL keys stay, and a round has nothing more to do.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE n (id integer, key text) PARTITION BY LIST (key);
CREATE TABLE n_default PARTITION OF n DEFAULT;
INSERT INTO n SELECT i, nullif('k' || i % 2, 'k0') FROM generate_series(1, 20) i;
SELECT metrics_manage_partitions('n');
SQL
my $err = '';
$node->psql('postgres', "SET client_min_messages = debug1; CALL metrics_maintain()", stderr => \$err);
like($err, qr/created partition public.n_k1\w+ for key "k1" and moved 10 rows/, 'E06: a round moves the key');
$err = '';
$node->psql('postgres', "SET client_min_messages = debug1; CALL metrics_maintain()", stderr => \$err);
unlike($err, qr/public\.n/, 'E06: the next one has nothing to do');
is_sql('SELECT count(*) FROM n_default WHERE key IS NULL', 10, 'E06: rows without a key stay');

# A default partition that is partitioned itself.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE s (id integer, key text, month date) PARTITION BY LIST (key);
CREATE TABLE s_default PARTITION OF s DEFAULT PARTITION BY RANGE (month);
CREATE TABLE s_default_1 PARTITION OF s_default FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE s_default_2 PARTITION OF s_default FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE s_default_d PARTITION OF s_default DEFAULT;
INSERT INTO s SELECT i, 'k' || i % 4, date '2026-01-15' + i % 3 * 31 FROM generate_series(1, 120) i;
SELECT metrics_manage_partitions('s');
SQL
drains('s', 'k1', 30, 'E12: a partitioned default partition');
is_sql('SELECT count(*), count(*) FILTER (WHERE tableoid <> ALL (SELECT relid FROM pg_partition_tree(\'s_default\'))) FROM s', '120|30', 'E12: from all its leaves');
is_sql("SELECT count(*) FROM pg_constraint WHERE conrelid::regclass::text LIKE 's\\_%' AND contype = 'c'", 0, 'no constraint is left behind');

# A subscriber that sees the table as one.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE l (id integer, key text, v text, PRIMARY KEY (key, id)) PARTITION BY LIST (key);
CREATE TABLE l_default PARTITION OF l DEFAULT;
CREATE TABLE l_bare (id integer, key text) PARTITION BY LIST (key);
CREATE TABLE l_bare_default PARTITION OF l_bare DEFAULT;
SELECT metrics_manage_partitions('l'), metrics_manage_partitions('l_bare');
CREATE PUBLICATION whole FOR TABLE l, l_bare WITH (publish_via_partition_root = true);
SQL
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->start;
$subscriber->safe_psql('postgres', "CREATE TABLE l (id integer, key text, v text, PRIMARY KEY (key, id)); CREATE TABLE l_bare (id integer, key text);
	CREATE SUBSCRIPTION whole CONNECTION '@{[ $node->connstr('postgres') =~ s{'}{''}gr ]}' PUBLICATION whole");
$subscriber->wait_for_subscription_sync($node, 'whole');
$node->safe_psql('postgres', "INSERT INTO l SELECT i, 'k' || i % 2, repeat(md5(i::text), 1000) FROM generate_series(1, 100) i; INSERT INTO l_bare VALUES (1, 'k1')");
drains('l', 'k1', 50, 'a published table');
$node->safe_psql('postgres', "UPDATE l SET v = 'new' WHERE id = 1");
$node->wait_for_catchup('whole');
my $rows = "SELECT count(*), sum(hashtextextended(l::text, 0)) FROM l";
is($subscriber->safe_psql('postgres', $rows), $node->safe_psql('postgres', $rows), 'the subscriber has the same rows');
fails("CALL metrics_drain('l_bare', 'k1')", qr/does not have a replica identity/, 'one whose deletions cannot be published is left alone');
$subscriber->stop;

$node->stop;
done_testing();
