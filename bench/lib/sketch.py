"""Measures sketches against the database of the environment, and prints one table
of ratios.  Called by bench/sketch with a number of rows."""

from ratios import compare, compare_parallel, grouped, line, measure, psql, run, ungrouped

SKETCHES = 10000
MEMORY = ["work_mem = '256MB'"]


def speed():
    average, sketch, digest = measure(MEMORY, [ungrouped("avg(v)"), ungrouped("metrics_sketch(v)"), ungrouped("tdigest(v, 100)")])
    compare("sketch / avg()", sketch, average, "<= 0.95")
    compare("tdigest(100) / sketch", digest, sketch, "")
    average, sketch, digest = measure(MEMORY, [grouped("avg(v)"), grouped("metrics_sketch(v)"), grouped("tdigest(v, 100)")])
    compare("1,000 groups: sketch / avg()", sketch, average, "<= 1.15")
    compare("1,000 groups: tdigest(100) / sketch", digest, sketch, "")
    compare_parallel(MEMORY, ungrouped("metrics_sketch(v)"))


def merging():
    sketch, digest = measure(MEMORY, ["SELECT metrics_sketch_merge(sketch) FROM stored", "SELECT tdigest(digest) FROM stored"])
    compare(f"merging {SKETCHES} stored: tdigest(100) / sketch", digest, sketch, ">= 3")


def size():
    out, _ = psql(["SELECT length(metrics_sketch(10 ^ (3 * random()))::bytea) FROM generate_series(1, 100000);"])
    line("bytes of a stored sketch, 100,000 values, three decades", float(out), None, "<= 2048")


def growing_frame():
    query = ("SELECT count(p) FROM (SELECT metrics_percentile(metrics_sketch(v) OVER (ROWS UNBOUNDED PRECEDING), 0.95) AS p"
             " FROM (SELECT v FROM doubles LIMIT 200000) d) s")
    wall, cpu = measure(MEMORY, [query], 1)[0]
    line("growing frame over 200,000 rows, s", wall / 1000, cpu / 1000, "<= 5")


run(["CREATE UNLOGGED TABLE stored AS SELECT metrics_sketch(v) AS sketch, tdigest(v, 100) AS digest"
     f" FROM (SELECT row_number() OVER () % {SKETCHES} AS part, v FROM doubles) s GROUP BY part;",
     "VACUUM (FREEZE, ANALYZE) stored;"],
    speed, merging, size, growing_frame)
