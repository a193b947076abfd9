"""Measures the exact percentiles against the database of the environment, and
prints one table of ratios.  Called by bench/percentiles with a number of rows."""

import re

from ratios import compare, compare_parallel, grouped, line, measure, psql, run, ungrouped

WINDOW_ROWS = 200000

FRACTIONS = "'{0.5,0.95,0.99}'::float8[]"
CORE = f"percentile_cont({FRACTIONS}) WITHIN GROUP (ORDER BY v)"


def peak_growth(query):
    """Megabytes by which a query raises the peak memory of a backend that has the
    table's buffers mapped already."""
    peak = "SELECT 'peak ' || substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\\s+(\\d+)');"
    out, _ = psql(["SET max_parallel_workers_per_gather = 0;", "SET work_mem = '4MB';",
                   grouped("avg(v)") + ";", peak, query + ";", peak])
    before, after = (int(kilobytes) for kilobytes in re.findall(r"peak (\d+)", out))
    return (after - before) / 1024


def frame(aggregate, rows):
    start = "UNBOUNDED" if rows is None else rows - 1
    return f"SELECT count(p) FROM (SELECT {aggregate} OVER (ORDER BY i ROWS {start} PRECEDING) AS p FROM series) s"


def speed():
    plenty = ["work_mem = '1GB'"]
    average, exact, one, core, digest = measure(plenty, [
        ungrouped("avg(v)"), ungrouped("metrics_percentiles(v)"), ungrouped("metrics_percentile(v, 0.5)"),
        ungrouped(CORE), ungrouped(f"tdigest_percentile(v, 100, {FRACTIONS})")])
    compare("p50, p95, p99 / avg()", exact, average, "<= 1.05")
    compare("median / avg()", one, average, "")
    compare("percentile_cont / p50, p95, p99", core, exact, ">= 3.4")
    compare("tdigest(100) / p50, p95, p99", digest, exact, ">= 2.4")
    average, exact = measure(plenty, [grouped("avg(v)"), grouped("metrics_percentiles(v)")])
    compare("1,000 groups: p50, p95, p99 / avg()", exact, average, "<= 1.2")
    compare_parallel(plenty, ungrouped("metrics_percentiles(v)"))


def little_memory():
    little = ["work_mem = '4MB'"]
    exact, core = measure(little, [ungrouped("metrics_percentiles(v)"), ungrouped(CORE)])
    compare("work_mem 4 MB: percentile_cont / p50, p95, p99", core, exact, ">= 2")
    exact, core = measure(little, [grouped("metrics_percentiles(v)"), grouped(CORE)], 3)
    compare("work_mem 4 MB, 1,000 groups: the same", core, exact, ">= 2")
    line("work_mem 4 MB: growth of the peak memory, MB", peak_growth(ungrouped("metrics_percentiles(v)")), None, "<= 16")
    line("work_mem 4 MB, 1,000 groups: the same", peak_growth(grouped("metrics_percentiles(v)")), None, "<= 16")


def windows():
    median = "metrics_percentile(v, 0.5)"
    lateral = ("SELECT count(p) FROM series s, LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS p"
               " FROM series t WHERE t.i BETWEEN s.i - 999 AND s.i) l")
    small, large, growing = measure(["work_mem = '64MB'"], [frame(median, 1000), frame(median, 100000), frame(median, None)])
    core = measure(["work_mem = '64MB'"], [lateral], 1)[0]
    compare("moving median of 1,000: LATERAL percentile_cont / ours", core, small, ">= 20")
    compare("moving median: window of 100,000 / of 1,000", large, small, "<= 3")
    line(f"growing frame over {WINDOW_ROWS} rows, s", growing[0] / 1000, growing[1] / 1000, "<= 5")


run([f"CREATE UNLOGGED TABLE series AS SELECT i, random() AS v FROM generate_series(1, {WINDOW_ROWS}) i;",
     "CREATE INDEX ON series (i);", "VACUUM (FREEZE, ANALYZE) series;"],
    speed, little_memory, windows)
