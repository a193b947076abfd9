"""What the measurements of percentiles and of sketches have in common: a table of
doubles in the database of the environment, and one table of ratios.

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

SESSION = ["jit = off", "max_parallel_workers_per_gather = 0", "log_executor_stats = on", "client_min_messages = log"]
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


def line(what, value, cpu, bound):
    """One line of the table; the bound is "<= x" or ">= x" for the value."""
    global failed
    sign, limit = bound.split() if bound else ("", 0)
    good = not sign or (value <= float(limit) if sign == "<=" else value >= float(limit))
    failed += not good
    print(f"{what:<58} {value:8.2f} {cpu if cpu is None else format(cpu, '.2f')!s:>8} {bound:>8} {'' if good else 'MISSED'}",
          flush=True)


def compare(what, first, second, bound):
    """First divided by second."""
    line(what, first[0] / second[0], first[1] / second[1], bound)


def compare_parallel(settings, query):
    """Both in turn, each in a session of its own."""
    serial, parallel = [], []
    for _ in range(RUNS):
        serial += measure(settings, [query], 1)
        parallel += measure(settings + PARALLEL, [query], 1)
    line("serial / two workers", statistics.median(s[0] for s in serial) / statistics.median(p[0] for p in parallel), None, ">= 1")


def grouped(aggregate):
    return f"SELECT count(p) FROM (SELECT g, {aggregate} AS p FROM doubles GROUP BY g) s"


def ungrouped(aggregate):
    return f"SELECT {aggregate} FROM doubles"


def run(prepare, *suites):
    """Make the doubles, in 1,000 groups, and what prepare says; print the table."""
    psql(["CREATE EXTENSION metrics_ext;", "CREATE EXTENSION tdigest;", "SELECT setseed(0.5);",
          "CREATE UNLOGGED TABLE doubles AS SELECT power(10, 5 * random() - 2) AS v, floor(random() * 1000)::int AS g"
          f" FROM generate_series(1, {ROWS});", "VACUUM (FREEZE, ANALYZE) doubles;"] + prepare +
         # a scan of a large table reads past shared_buffers, if it is not there already
         ["CREATE EXTENSION pg_prewarm;", "SELECT pg_prewarm('doubles');"])
    print(f"{ROWS} rows{'':<48} {'ratio':>9} {'of CPU':>8} {'bound':>8}")
    for suite in suites:
        suite()
    sys.exit(failed > 0)
