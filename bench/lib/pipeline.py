"""Measures operator rows of pipelines in the database that PGDATABASE names, and
prints one table of ratios.  Called by bench/pipeline."""

import json
import re
import statistics
import subprocess
import sys
import time

import psycopg

ROWS = int(sys.argv[1])
BATCH = 100
results = []


def psql(sql, *arguments):
    return subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *arguments], input=sql,
                          text=True, check=True, stdout=subprocess.PIPE).stdout


def compare(what, ratio, bound, at_most=False):
    results.append((what, ratio, bound, at_most, ratio <= bound if at_most else ratio >= bound))
    print(f"{what}: {ratio:.4g}", flush=True)


def in_turns(runs, **ways):
    times = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            times[name].append(way())
    return {name: statistics.median(values) for name, values in times.items()}


def writing():
    """The same 50,000 rows, with five latencies each, by the two ways into the same
    table.  COPY gets ready-made sketches and is one statement; the function gets
    JSON, 100 rows a call and transaction.  Each has a new table and a warm session."""
    n = 50000
    psql("SELECT metrics_start_run('write'); SELECT metrics_start_stage('write', 'stage_' || s) FROM generate_series(0, 4) s")
    sketch = psql("SELECT metrics_sketch_weighted(v, 20)::bytea FROM unnest('{0.011,0.012,0.014,0.02,0.05}'::float8[]) v").strip()
    rows = [dict(run_id="write", stage_name=f"stage_{i % 5}", operator_name=f"Operator{i % 20}", worker_id=f"worker_{i % 200}",
                 input_records=1000, output_records=900 + i % 100, total_time=1.25, error_count=0,
                 latencies=[0.011, 0.012, 0.014, 0.02, 0.05], weights=[20] * 5, custom_metrics={"cache_hits": i},
                 at=f"2026-01-24T{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}.{i:06}+00:00") for i in range(n)]
    batches = [json.dumps(rows[i:i + BATCH]) for i in range(0, n, BATCH)]
    lines = "".join("\t".join([*(str(row[key]) for key in list(row)[:8]), "\\" + sketch, json.dumps(row["custom_metrics"]), row["at"]]) + "\n"
                    for row in rows)

    def report(cursor):
        for batch in batches:
            cursor.execute("SELECT metrics_report_operators(%s::jsonb)", [batch])

    def copy(cursor):
        with cursor.copy("COPY metrics.pipeline_operators (run_id, stage_name, operator_name, worker_id, input_records, output_records,"
                         " total_time, error_count, latency_sketch, custom_metrics, at) FROM STDIN") as stream:
            stream.write(lines)

    with psycopg.connect(autocommit=True) as connection:
        def timed(way):
            cursor = connection.cursor()
            cursor.execute("TRUNCATE metrics.pipeline_operators")
            start = time.perf_counter()
            way(cursor)
            taken = time.perf_counter() - start
            assert cursor.execute("SELECT count(*) FROM metrics.pipeline_operators").fetchone()[0] == n
            return taken

        taken = in_turns(5, report=lambda: timed(report), copy=lambda: timed(copy))
    print(", ".join(f"{name} {n / t:,.0f} rows/s" for name, t in taken.items()))
    compare("throughput of metrics_report_operators(), 100 rows a call / COPY", taken["copy"] / taken["report"], 0.5)
    psql("DELETE FROM metrics.pipeline_runs")


def fill():
    """Runs over 90 days: 10,000, with five stages of as many rows."""
    psql(f"""
        INSERT INTO metrics.pipeline_runs (run_id, status, start_time, end_time)
        SELECT 'run_' || r, 'completed', t, t + interval '5 min' FROM generate_series(0, 9999) r, LATERAL (SELECT now() - interval '90 days' + r * interval '12 min 57 s') s(t);
        INSERT INTO metrics.pipeline_stages (run_id, stage_name, start_time)
        SELECT run_id, 'stage_' || s, start_time FROM metrics.pipeline_runs, generate_series(0, 4) s;
        ALTER TABLE metrics.pipeline_operators DISABLE TRIGGER ALL;
        INSERT INTO metrics.pipeline_operators (run_id, stage_name, operator_name, worker_id, at, input_records, output_records, total_time, latency_sketch)
        SELECT run_id, stage_name, 'Operator' || n % 4, 'worker_' || n / 4, start_time + n * interval '1 s', 1000, 900, 1 + n % 7, sketch
        FROM metrics.pipeline_stages, generate_series(1, {ROWS} / 50000) n,
            (SELECT metrics_sketch(v::float8 / 100)::bytea AS sketch FROM generate_series(1, 20) v) s ORDER BY start_time, n;
        ALTER TABLE metrics.pipeline_operators ENABLE TRIGGER ALL;
        VACUUM ANALYZE""")


DAY = ("SELECT DATE_TRUNC('hour', timestamp) AS hour, operator_name, AVG(throughput), MAX(p95_latency) FROM metrics_bi.operators"
       " WHERE stage_name = 'stage_3' AND timestamp >= DATE_TRUNC('day', now() - interval '40 days') AND timestamp < DATE_TRUNC('day', now() - interval '39 days')"
       " GROUP BY 1, 2")


def milliseconds(query):
    """The second time in a session, as in a BI tool's pool."""
    output = psql(f"{query};\n\\timing on\n{query};\n", "-o", "/dev/null")
    return float(output.split()[1])


def reading():
    plain = statistics.median(milliseconds(DAY) for _ in range(5))
    psql("SELECT metrics_partition_by_time('metrics.pipeline_operators', '1 day')")
    ranges = statistics.median(milliseconds(DAY) for _ in range(5))
    print(f"a day of 90 days: {plain:.1f} ms without ranges, {ranges:.1f} ms with")
    compare("a day out of 90, of one stage: without time ranges / with them", plain / ranges, 20)
    plan = psql(f"EXPLAIN {DAY}")
    scanned = re.findall(r"Scan (?:using \S+ )?on (\S+)", plan)
    compare("ranges that are read for it", len(scanned), 1, at_most=True)

    # Rows read for the stages of one run, in how many pages of table and index.
    plan = json.loads(psql("EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT * FROM metrics_bi.stages WHERE run_id = 'run_5000'"))

    def rows_read(node):
        read = sum(rows_read(child) for child in node.get("Plans", ()))
        if node.get("Relation Name", "").startswith("pipeline_operators"):
            read += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        return read

    # once for the figures, once for the number of workers
    compare("rows read for the stages of one run among 10,000 / its rows", rows_read(plan[0]["Plan"]) / (ROWS // 10000), 2.01, at_most=True)


psql("CREATE EXTENSION metrics_ext; SELECT metrics_create_store(); CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman")
writing()
fill()
reading()
width = max(len(result[0]) for result in results)
print(f"\n{'':{width}}     ratio       bound")
for what, ratio, bound, at_most, met in results:
    print(f"{what:{width}}  {ratio:8.2f}  {'at most' if at_most else 'at least'} {bound:>5g}  {'OK' if met else 'NOT MET'}")
sys.exit(not all(result[4] for result in results))
