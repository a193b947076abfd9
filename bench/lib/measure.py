"""Runs the suites named as arguments against the server that PGHOST names, and
prints one table of ratios.  Called by bench/run."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCALE = float(os.environ.get("METRICS_BENCH_SCALE", "1"))
DATABASE = "bench"

# What a training and a profiling report carry, and what a client of Determined's
# master sends for the same: the document wrapped, and the new summary, which it
# has computed itself.
TRAINING = '{"loss": 0.34567, "accuracy": 0.87654, "learning_rate": 0.00025, "epoch": 3}'
PROFILING = '{"agent-0": {"cpu_util_simple": 37.42, "load_1m": 3.14, "temperature": 61.5}}'
TRAINING_BODY = '{"avg_metrics": %s, "batch_metrics": null}' % TRAINING
SUMMARY = '{"avg_metrics": {%s}}' % ", ".join(
    '"%s": {"max": 0.87654, "min": 0.12345, "sum": 345.67, "last": 0.34567, "mean": 0.34567,'
    ' "type": "number", "count": 1000}' % name
    for name in ("loss", "accuracy", "learning_rate", "epoch"))

REPORT = "PREPARE report AS SELECT metrics_report($1, $2, $3, $4);"

rows = []


def say(text):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def compare(what, ratio, bound, at_most):
    """One line of the table: a ratio, and what it must not exceed or fall below."""
    rows.append((what, ratio, bound, at_most, ratio <= bound if at_most else ratio >= bound))
    say(f"{what}: {ratio:.4g}")


def psql(sql, database=DATABASE):
    return subprocess.run(
        ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database],
        input=sql, text=True, check=True, stdout=subprocess.PIPE).stdout


def new_database(name=DATABASE):
    psql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", "postgres")
    psql(f"CREATE DATABASE {name}", "postgres")


def new_store(version="1.1"):
    new_database()
    psql(f"CREATE EXTENSION metrics_ext VERSION '{version}'; SELECT metrics_create_store()")


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def undone(sql):
    """Milliseconds that SQL takes in a transaction that is rolled back, after
    what the one before left behind has been written and vacuumed."""
    psql("VACUUM")
    psql("CHECKPOINT")
    output = psql("BEGIN;\nSET LOCAL client_min_messages = error;\n\\o /dev/null\n\\timing on\n"
                  f"{sql}\n\\timing off\n\\o\nROLLBACK;\n")
    return sum(float(line.split()[1]) for line in output.splitlines() if line.startswith("Time:"))


def transaction(script, transactions, prepare="", database=DATABASE, **variables):
    """Median milliseconds of a transaction: a pgbench script over one connection,
    whose statements EXECUTE what was prepared before.  The first transaction is
    not counted.  The tables are vacuumed before, as autovacuum would have done
    by then."""
    psql("VACUUM ANALYZE", database)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.sql")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"\\if :unprepared\n{prepare}\n\\set unprepared false\n\\endif\n{script}")
        command = ["pgbench", "-n", "-c", "1", "-t", str(transactions + 1), "-f", path,
                   "-l", f"--log-prefix={folder}/log", "-D", "unprepared=true"]
        for name, value in variables.items():
            command += ["-D", f"{name}={value}"]
        result = subprocess.run(command + [database], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        if result.returncode:
            sys.exit(result.stderr)
        (log,) = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("log")]
        with open(log, encoding="utf-8") as file:
            times = [int(line.split()[2]) for line in file]
    return statistics.median(times[1:]) / 1000


def in_turns(runs, **ways):
    """The median of each way, a function of the number of the run, over runs in
    which they take turns."""
    times = {name: [] for name in ways}
    for run in range(runs):
        for name, way in ways.items():
            times[name].append(way(run))
    return {name: statistics.median(values) for name, values in times.items()}


def repeated(statement, times, prologue="BEGIN;", epilogue="COMMIT;"):
    return "\n".join([prologue] + [statement] * times + [epilogue]) + "\n"


def step():
    """The store step, timed around its call.  The other ways do the same to the
    same rows: drop the key and add it as text with a CHECK that is validated, as
    Determined's last migration does (less its search for the greatest id), and
    ALTER COLUMN TYPE, as its first did."""
    taken = {}
    for millions in (0.3, 1, 3):
        new_store("1.0")
        psql(f"SET session_replication_role = replica;\n\\set rows {int(millions * 1e6 * SCALE)}\n"
             + read("fill_1_0.sql"))
        # The step without ALTER EXTENSION around it: an old store under a new extension.
        psql("VACUUM ANALYZE; CHECKPOINT; DROP EXTENSION metrics_ext; CREATE EXTENSION metrics_ext;")
        psql("INSERT INTO metrics_store VALUES ('metrics.metrics')")
        ways = {"step": lambda run: undone("SELECT metrics_upgrade_store();")}
        if millions == 3:
            ways["dropped"] = lambda run: undone(read("rekey_by_check.sql"))
            ways["rewritten"] = lambda run: undone(read("rekey_by_type.sql"))
        taken[millions] = in_turns(5, **ways)
        say(f"{millions} million rows: " + ", ".join(
            f"{name} {ms:.1f} ms" for name, ms in taken[millions].items()))
    three = taken[3]
    compare("store step, 3 million rows / 0.3 million rows", three["step"] / taken[0.3]["step"], 2, True)
    compare("drop and add with validated CHECK / store step, 3 million rows", three["dropped"] / three["step"], 20, False)
    compare("type rewrite / store step, 3 million rows", three["rewritten"] / three["step"], 500, False)


def profiling():
    """Profiling reports against a plain INSERT of the same row into the same
    partition, 1,000 a transaction."""
    new_store()
    psql("SELECT metrics_register_trial(1)")
    report = ("PREPARE report AS SELECT metrics_report($1, $2, $3, NULL, $4, $5);",
              repeated(f"EXECUTE report(1, 'cpu', '{PROFILING}', 0, '2024-02-29T13:04:49.388948-05:00');", 1000))
    insert = ("PREPARE plain AS INSERT INTO metrics.system_metrics (trial_id, metric_group, metrics, trial_run_id, end_time)"
              " VALUES ($1, $2, $3, $4, $5);",
              repeated(f"EXECUTE plain(1, 'cpu', '{PROFILING}', 0, '2024-02-29T13:04:49.388948-05:00');", 1000))
    taken = in_turns(
        5,
        report=lambda run: transaction(report[1], 30, report[0]),
        insert=lambda run: transaction(insert[1], 30, insert[0]))
    say(f"1,000 reports {taken['report']:.1f} ms, 1,000 plain INSERTs {taken['insert']:.1f} ms")
    compare("throughput of profiling reports / plain INSERT", taken["insert"] / taken["report"], 0.7, False)


def training():
    """Training reports against the statements that Determined's master sends for
    one: see upstream_report.sql.  Once all of one trial, whose row the
    transaction changes a thousand times, and once of a hundred in turn.  A trial
    starts with 100 reports.  Included is all that the database does and the way
    to it and back, six times a report for upstream; not included is what the
    master computes.  Left to itself, PostgreSQL plans the statement that archives
    anew each time, which is half of upstream's time: with plan_cache_mode =
    force_generic_plan upstream takes half as long."""
    # Both among 10,000 trials, so that neither plans for small tables.
    older = ("INSERT INTO metrics (trial_id, end_time, metrics, total_batches, metric_group, partition_type)"
             f" SELECT t, now(), '{TRAINING_BODY}', s, g, upper(g)"
             " FROM generate_series(1, 105) t, generate_series(1, 100) s, unnest('{training,validation}'::text[]) g"
             " WHERE g = 'training' OR s % 10 = 0;\n")
    new_store()
    psql("SELECT count(metrics_register_trial(t)) FROM generate_series(1, 10000) t;\n"
         f"SET search_path = metrics, public;\n{older}SELECT count(metrics_recompute_summary(id)) FROM trials WHERE id <= 105")
    new_database("upstream")
    psql(read("upstream_schema.sql") + older + f"UPDATE runs SET summary_metrics = '{SUMMARY}' WHERE id <= 105", "upstream")
    for trials, turn in (("one trial", "\\set trial 101 + :run\n"), ("100 trials in turn", "\\set trial 1 + :step % 100\n")):
        report = repeated(f"\\set step :step + 1\n{turn}EXECUTE report(:trial, 'training', '{TRAINING}', :step);", 1000)
        upstream = repeated(f"\\set step :step + 1\n{turn}" + read("upstream_report.sql"), 1000)
        taken = in_turns(
            5,
            report=lambda run: transaction(report, 8, REPORT, trial=0, run=run, step=(run + 1) * 100000),
            upstream=lambda run: transaction(
                upstream, 8, read("upstream_prepare.sql"), "upstream", trial=0, run=run, step=(run + 1) * 100000,
                body=f"'{TRAINING_BODY}'", summary=f"'{SUMMARY}'"))
        say(f"1,000 reports {taken['report']:.1f} ms, upstream {taken['upstream']:.1f} ms")
        compare(f"throughput of training reports of {trials} / upstream's statements",
                taken["upstream"] / taken["report"], 3, False)


def growth():
    """100 reports in a transaction that is rolled back, so that the trial keeps
    its size: 100 reports, and 100,000."""
    new_store()
    great = int(100000 * SCALE)
    for trial, reports in ((1, 100), (2, great)):
        psql(f"SELECT metrics_register_trial({trial});\n"
             "INSERT INTO metrics.metrics (trial_id, end_time, metrics, total_batches, metric_group, partition_type)"
             f" SELECT {trial}, now(), '{TRAINING_BODY}', s, 'training', 'TRAINING' FROM generate_series(1, {reports}) s;\n"
             f"SELECT metrics_recompute_summary({trial})")

    def hundred(trial, first, doc):
        return transaction("".join(
            ["BEGIN;\n"] + [f"EXECUTE report({trial}, 'training', '{doc}', {first + n});\n" for n in range(100)]
            + ["ROLLBACK;\n"]), 50, REPORT)

    merged = '{"merged": 1}'
    taken = in_turns(
        5,
        small=lambda run: hundred(1, 101, TRAINING),
        great=lambda run: hundred(2, great + 1, TRAINING),
        small_merge=lambda run: hundred(1, 1, merged),
        great_merge=lambda run: hundred(2, great - 99, merged),
        old_merge=lambda run: hundred(2, 1, merged))
    say(", ".join(f"{name} {ms * 10:.1f} us" for name, ms in taken.items()))
    compare("report 100,001 of a trial / report 101", taken["great"] / taken["small"], 1.5, True)
    compare("merge into one of the last of 100,000 rows / of 100", taken["great_merge"] / taken["small_merge"], 1.5, True)
    compare("merge into one of the first of 100,000 rows / of 100", taken["old_merge"] / taken["small_merge"], 1.5, True)


def pages():
    """Pages of 100 reports out of two million profiling rows, half of them of
    one series.  The copy without the index runs the same query."""
    new_store()
    psql(f"SET session_replication_role = replica;\n\\set rows {int(2e6 * SCALE)}\n" + read("fill_profiling.sql"))
    psql("VACUUM ANALYZE")
    psql("DROP DATABASE IF EXISTS bare WITH (FORCE)", "postgres")
    psql(f"CREATE DATABASE bare TEMPLATE {DATABASE}", "postgres")
    psql("DROP INDEX metrics.system_metrics_trial_id_metric_group_end_time_id", "bare")
    prepare = "PREPARE page AS SELECT * FROM metrics_profiling_rows($1, 'cpu', after_time => $2, after_id => $3);"
    after = psql("SELECT quote_literal(end_time), id FROM metrics.system_metrics WHERE trial_id = 1 AND metric_group = 'cpu'"
                 f" ORDER BY end_time, id OFFSET {int(100 * 9999 * SCALE) - 1} LIMIT 1").strip().replace("|", ", ")
    taken = in_turns(
        5,
        bare=lambda run: transaction("EXECUTE page(15, NULL, NULL);", 3, prepare, "bare"),
        indexed=lambda run: transaction("EXECUTE page(15, NULL, NULL);", 500, prepare),
        first=lambda run: transaction("EXECUTE page(1, NULL, NULL);", 500, prepare),
        late=lambda run: transaction(f"EXECUTE page(1, {after});", 500, prepare))
    say(", ".join(f"{name} {ms:.2f} ms" for name, ms in taken.items()))
    compare("a page without the index / with it", taken["bare"] / taken["indexed"], 50, False)
    compare("page 10,000 / page 1", taken["late"] / taken["first"], 1.5, True)
    psql("DROP DATABASE bare WITH (FORCE)", "postgres")


def main():
    for suite in sys.argv[1:]:
        say(suite)
        globals()[suite]()
    width = max(len(row[0]) for row in rows)
    print(f"\n{'':{width}}     ratio       bound")
    for what, ratio, bound, at_most, met in rows:
        print(f"{what:{width}}  {ratio:8.2f}  {'at most' if at_most else 'at least'} {bound:>4g}  {'OK' if met else 'NOT MET'}")
    sys.exit(not all(row[4] for row in rows))


main()
