"""Measures the exact percentiles against the database of the environment, and
prints one table of ratios.  Called by bench/percentiles with a number of rows.

Time is wall-clock time, the median of RUNS interleaved runs in one session; the
ratio of processor times, from log_executor_stats, stands beside it, because on a
busy machine it says more.  Processor time is the backend's own, so there is none
for parallel plans."""

import re
import statistics
import subprocess
import sys

ROWS = int(sys.argv[1])
RUNS = 5
WINDOW_ROWS = 200000

SESSION = ["jit = off", "max_parallel_workers_per_gather = 0", "log_executor_stats = on", "client_min_messages = log"]
FRACTIONS = "'{0.5,0.95,0.99}'::float8[]"
CORE = f"percentile_cont({FRACTIONS}) WITHIN GROUP (ORDER BY v)"
PARALLEL = ["parallel_setup_cost = 0", "parallel_tuple_cost = 0", "max_parallel_workers_per_gather = 2"]

failed = 0


def psql(statements):
    """What a session prints, and what it reports."""
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"], input="".join(s + "\n" for s in statements),
                          text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return done.stdout, done.stderr


def measure(settings, queries, runs=RUNS):
    """Median wall and processor milliseconds of each query.  The first run is not
    counted."""
    script = [f"SET {s};" for s in SESSION + settings] + ["\\o /dev/null", "\\timing on"]
    script += [query + ";" for _ in range(runs + 1) for query in queries]
    out, err = psql(script)
    wall = [float(t) for t in re.findall(r"^Time: ([\d.]+) ms", out, re.M)]
    cpu = [1000 * (float(user) + float(system))
           for user, system in re.findall(r"!\s+([\d.]+) s user, ([\d.]+) s system, [\d.]+ s elapsed", err)]
    n = len(queries)
    return [(statistics.median(wall[i + n::n]), statistics.median(cpu[i + n::n])) for i in range(n)]


def line(what, wall, cpu, bound):
    """One line of the table; the bound is "<= x" or ">= x" for the wall ratio."""
    global failed
    sign, limit = bound.split() if bound else ("", 0)
    good = not sign or (wall <= float(limit) if sign == "<=" else wall >= float(limit))
    failed += not good
    print(f"{what:<58} {wall:8.2f} {cpu if cpu is None else format(cpu, '.2f')!s:>8} {bound:>8} {'' if good else 'MISSED'}",
          flush=True)


def compare(what, first, second, bound):
    """First divided by second."""
    line(what, first[0] / second[0], first[1] / second[1], bound)


def grouped(aggregate):
    return f"SELECT count(p) FROM (SELECT g, {aggregate} AS p FROM doubles GROUP BY g) s"


def ungrouped(aggregate):
    return f"SELECT {aggregate} FROM doubles"


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


def prepare():
    psql(["CREATE EXTENSION metrics_ext;", "CREATE EXTENSION tdigest;", "SELECT setseed(0.5);",
          "CREATE UNLOGGED TABLE doubles AS SELECT power(10, 5 * random() - 2) AS v, floor(random() * 1000)::int AS g"
          f" FROM generate_series(1, {ROWS});",
          f"CREATE UNLOGGED TABLE series AS SELECT i, random() AS v FROM generate_series(1, {WINDOW_ROWS}) i;",
          "CREATE INDEX ON series (i);", "VACUUM (FREEZE, ANALYZE) doubles;", "VACUUM (FREEZE, ANALYZE) series;"])


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
    serial = measure(plenty, [ungrouped("metrics_percentiles(v)")])[0]
    parallel = measure(plenty + PARALLEL, [ungrouped("metrics_percentiles(v)")])[0]
    line("serial / two workers", serial[0] / parallel[0], None, ">= 1")


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


prepare()
print(f"{ROWS} rows{'':<48} {'ratio':>9} {'of CPU':>8} {'bound':>8}")
speed()
little_memory()
windows()
sys.exit(failed > 0)
