"""Measures drains of a default partition against the database of the environment,
and prints one table of ratios.  Called by bench/partitions with a number of rows.

Keys leave one table in turns, one by metrics_drain(), one by hand.  By hand is
what people write, in one transaction: it fires triggers and foreign keys, reads
the default partition under its lock, and loses rows that reference the moved
ones, none of which is counted here."""

import re
import statistics
import subprocess
import sys

ROWS = int(sys.argv[1])
KEYS = 20

BY_HAND = """BEGIN; LOCK m IN ACCESS EXCLUSIVE MODE; CREATE TABLE m_{key} (LIKE m INCLUDING ALL);
WITH moved AS (DELETE FROM m_default WHERE key = '{key}' RETURNING *) INSERT INTO m_{key} SELECT * FROM moved;
ALTER TABLE m ATTACH PARTITION m_{key} FOR VALUES IN ('{key}'); COMMIT;"""

failed = 0


def psql(statements):
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"], input="\n".join(statements),
                          text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return done.stdout


def milliseconds(statement):
    """Wall-clock time of statements that are sent together."""
    return sum(float(t) for t in re.findall(r"^Time: ([\d.]+) ms", psql(["\\timing on", statement]), re.M))


def line(what, ratio, bound):
    global failed
    failed += ratio < bound
    print(f"{what:<64} {ratio:8.2f} {'>= ' + str(bound):>8} {'' if ratio >= bound else 'MISSED'}", flush=True)


psql(["CREATE EXTENSION metrics_ext; CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;",
      "SELECT metrics_create_store();",
      "CREATE TABLE m (id bigint, key text, at timestamptz NOT NULL, v float8, body text, PRIMARY KEY (key, id, at))"
      " PARTITION BY LIST (key);",
      "CREATE TABLE m_default PARTITION OF m DEFAULT;",
      f"INSERT INTO m SELECT i, 'k' || i % {KEYS}, current_date - (10 + i % {KEYS}) * interval '1 day', i, md5(i::text)"
      f" FROM generate_series(1, {ROWS}) i;",
      "SELECT metrics_manage_partitions('m');",
      "CREATE TABLE t (LIKE m, PRIMARY KEY (key, id, at)) PARTITION BY RANGE (at);",
      "SELECT partman.create_parent('public.t', 'at', 'native', 'daily', p_premake => 1);",
      "INSERT INTO t TABLE m;", "VACUUM ANALYZE;"])

drained, by_hand = [], []
for turn in range(0, KEYS, 2):
    drained.append(milliseconds(f"CALL metrics_drain('m', 'k{turn}');"))
    by_hand.append(milliseconds(BY_HAND.format(key=f"k{turn + 1}")))
partman = milliseconds("CALL partman.partition_data_proc('public.t', p_wait => 0);") / KEYS
if psql(["SELECT (SELECT count(*) FROM m_default), (SELECT count(*) FROM t_default), (SELECT count(*) FROM m)"]).strip() != f"0|0|{ROWS}":
    sys.exit("rows were not moved")

ours = statistics.median(drained)
print(f"{ROWS // KEYS} rows a key, {ours * 1000 * KEYS / ROWS:.2f} µs a row")
line("a key by DELETE … RETURNING, INSERT, ATTACH / metrics_drain()", statistics.median(by_hand) / ours, 0.8)
line("a day by pg_partman's partition_data_proc() / metrics_drain()", partman / ours, 1.2)
sys.exit(failed > 0)
