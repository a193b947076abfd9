#!/usr/bin/env python3
"""Performance data: change detection in the server and in Python, of one series;
see bench/perf."""

import random
import statistics
import subprocess
import sys
import time

from change_detection import scores

POINTS = int(sys.argv[1])
RUNS = 5


def psql(sql):
    return subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"], input=sql, text=True, check=True,
                          stdout=subprocess.PIPE).stdout


def series():
    """(time, push, value), a step of 4 % every 500 pushes, noise of 2 %, a
    retrigger now and then."""
    draw = random.Random(1192976)
    level, push = 300.0, 0
    rows = []
    for _ in range(POINTS):
        if draw.random() < 0.9:
            push += 1
            if push % 500 == 0:
                level *= draw.choice((0.96, 1.04))
        rows.append((1400000000 + 600 * push, push, level * draw.gauss(1, 0.02)))
    return rows


def in_server():
    """What metrics_change_scores() finds, and its milliseconds."""
    output = psql("SELECT array_agg(at ORDER BY n) AS times, array_agg(push ORDER BY n) AS pushes,"
                  " array_agg(value ORDER BY n) AS vals FROM series \\gset\n"
                  "PREPARE scores AS SELECT count(*) FROM metrics_change_scores($1, $2, $3);\n"
                  "CREATE TEMP TABLE given AS SELECT :'times'::timestamptz[] AS times, :'pushes'::bigint[] AS pushes, :'vals'::float8[] AS vals;\n"
                  "SELECT extract(epoch FROM push_timestamp)::bigint, push_id, t, prev_value, new_value, is_change"
                  " FROM given, metrics_change_scores(times, pushes, vals);\n"
                  "\\timing on\n" + "SELECT count(*) FROM given, metrics_change_scores(times, pushes, vals);\n" * RUNS)
    rows = [line.split("|") for line in output.splitlines() if "|" in line]
    times = [float(line.split()[1]) for line in output.splitlines() if line.startswith("Time:")]
    return [(int(at), int(push), float(t), float(prev) if prev else None, float(new), change == "t")
            for at, push, t, prev, new, change in rows], statistics.median(times)


def main():
    rows = series()
    psql("CREATE TABLE series (n serial, at timestamptz, push bigint, value float8)")
    psql("COPY series (at, push, value) FROM STDIN;\n"
         + "".join(f"{time.strftime('%Y-%m-%d %H:%M:%S+00', time.gmtime(at))}\t{push}\t{value!r}\n" for at, push, value in rows)
         + "\\.\n")
    taken = []
    for _ in range(RUNS):
        start = time.perf_counter()
        expected = scores(rows)
        taken.append((time.perf_counter() - start) * 1000)
    in_python = statistics.median(taken)
    got, in_c = in_server()
    # Python does not say what comes after the first push.
    same = [row[:4] + row[5:] for row in got] == [row[:4] + row[5:] for row in expected] \
        and [row[4] for row in got[1:]] == [row[4] for row in expected[1:]]
    ratio = in_python / in_c
    print(f"{POINTS} measurements of {len(got)} pushes, {sum(row[5] for row in got)} changes: "
          f"{in_c:.2f} ms in the server, {in_python:.1f} ms in Python, {'the same' if same else 'NOT THE SAME'} output")
    print(f"change detection in Python / metrics_change_scores(): {ratio:.0f}, at least 50: {'OK' if ratio >= 50 else 'NOT MET'}")
    sys.exit(not (same and ratio >= 50))


main()
