#!/usr/bin/env python3
"""Performance data: change detection in the server and in Python; storage and
ingestion against Perfherder's tables and statements.  See bench/perf."""

import random
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from change_detection import scores

HERE = os.path.dirname(os.path.abspath(__file__))
POINTS, ROWS = int(sys.argv[1]), int(sys.argv[2])
RUNS = 5
SUBTESTS = 50                   # of the suite that a job measures
SUITES = 40                     # jobs of a push
met = []


def compare(what, ratio, bound, at_most=False):
    met.append(ratio <= bound if at_most else ratio >= bound)
    print(f"{what}: {ratio:.3g}, {'at most' if at_most else 'at least'} {bound:g}: {'OK' if met[-1] else 'NOT MET'}", flush=True)


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


def detection():
    """What both find in one series, and how long it takes them."""
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
    got, in_c = in_server()
    # Python does not say what comes after the first push.
    same = [row[:4] + row[5:] for row in got] == [row[:4] + row[5:] for row in expected] \
        and [row[4] for row in got[1:]] == [row[4] for row in expected[1:]]
    met.append(same)
    print(f"{POINTS} measurements of {len(got)} pushes, {sum(row[5] for row in got)} changes: {in_c:.2f} ms in the server, "
          f"{statistics.median(taken):.1f} ms in Python, {'the same' if same else 'NOT THE SAME'} output")
    compare("change detection in Python / metrics_change_scores()", statistics.median(taken) / in_c, 50)


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def storage():
    """Bytes of a measurement, with indexes and what it refers to, after the same
    measurements in the same order: 2,000 series, a point of each at every push."""
    psql(f"\\set pushes {ROWS // (SUBTESTS * SUITES)}\n" + read("perf_fill.sql"))
    ours, upstream = map(float, psql(
        "SELECT sum(pg_total_relation_size(oid)) FILTER (WHERE relname LIKE 'performance%'),"
        " sum(pg_total_relation_size(oid)) FILTER (WHERE relname = 'upstream_datum') FROM pg_class"
        " WHERE relkind = 'r' AND relname ~ '^performance_(datum_|run|push|activity)|^upstream_datum$'").strip().split("|"))
    count = ROWS // (SUBTESTS * SUITES) * SUBTESTS * SUITES
    print(f"{count} measurements: {ours / count:.0f} bytes each, upstream {upstream / count:.0f}")
    compare("bytes of a measurement / of upstream's with nine indexes", ours / upstream, 0.65, at_most=True)


def artifact():
    return json.dumps({"framework": {"name": "talos"}, "suites": [{"name": "ingest", "value": 1, "unit": "ms", "subtests": [
        {"name": f"t{n}", "value": n, "unit": "ms", "replicates": list(range(25))} for n in range(SUBTESTS)]}]})


def transaction(script, count):
    """Median milliseconds of a transaction of pgbench over one connection."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/script", "w", encoding="utf-8") as file:
            file.write(script)
        result = subprocess.run(["pgbench", "-n", "-c", "1", "-t", str(count), "-M", "prepared", "-f", f"{folder}/script", "-l",
                                 f"--log-prefix={folder}/log"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode:
            sys.exit(result.stderr)
        (log,) = [name for name in os.listdir(folder) if name.startswith("log")]
        with open(f"{folder}/{log}", encoding="utf-8") as file:
            return statistics.median([int(line.split()[2]) / 1000 for line in file][5:])


def ingestion():
    """Reports of 51 measurements, 50 of them with 25 replicates, into the tables
    as storage() left them, against the statements that Perfherder sends for
    each measurement, in one transaction.  What Python does to send them, and
    its query for the job and push, is not in upstream's time."""
    job = "\\set job random(1, 1000000000)\n\\set push 1 + :job % 20\n"
    report = job + f"SELECT * FROM metrics_report_perf('bench', :push, :job, '{artifact()}', 'linux64', '{{opt}}');\n"
    upstream = job + "BEGIN;\n" + "".join(f"\\set n {n}\n" + read("perf_upstream.sql") for n in range(SUBTESTS + 1)) + "COMMIT;\n"
    taken = {"report": [], "upstream": []}
    for _ in range(RUNS):
        taken["report"].append(transaction(report, 60))
        taken["upstream"].append(transaction(upstream, 30))
    ours, theirs = (statistics.median(taken[way]) for way in ("report", "upstream"))
    print(f"an artifact of {SUBTESTS + 1} measurements: {ours:.1f} ms, upstream {theirs:.1f} ms")
    compare("throughput of ingestion / upstream's statements", theirs / ours, 1.5)


psql("CREATE EXTENSION metrics_ext")
detection()
storage()
ingestion()
sys.exit(not all(met))
