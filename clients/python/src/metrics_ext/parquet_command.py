"""metrics-parquet: the runs of a database as Parquet files, and back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f"metrics-parquet: {error}; pip install 'metrics-ext[parquet]'")

from .database import Database
from .models import OperatorMetrics, as_utc
from .record import START_RUN, operator_record, record
from .writer import OPERATOR_SCHEMA, RUN_SCHEMA, STAGE_SCHEMA, MetricsWriter, write

Row = dict[str, Any]

CHUNK = 10_000  # rows exported at a time
BATCH = 1_000  # rows reported in one call


class CommandError(Exception):
    """Something the user can mend."""


def export_runs(database: Database, folder: Path, run_ids: Sequence[str] = ()) -> tuple[int, int]:
    """Write the files of runs, of all if none are named; how many runs and operator rows."""
    connection = database.connection
    with connection.transaction():
        # What is reported meanwhile is in all files or in none.
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        runs = dict(
            connection.execute(
                "SELECT run_id, (SELECT count(*) FROM metrics_bi.operators o"
                " WHERE o.run_id = r.run_id) FROM metrics_bi.runs r"
                " WHERE run_id = ANY (%(ids)s) OR %(ids)s = '{}' ORDER BY start_time",
                {"ids": list(run_ids)},
            ).fetchall()
        )
        if missing := set(run_ids) - runs.keys():
            raise CommandError(f"the database has no run {', '.join(sorted(missing))}")
        writer = MetricsWriter(folder)
        with tqdm(total=sum(runs.values()), unit=" rows", disable=None) as bar:
            for run_id in runs:
                for view, path, schema in (
                    ("operators", writer.operators_file(run_id), OPERATOR_SCHEMA),
                    ("stages", writer.stages_file(run_id), STAGE_SCHEMA),
                    ("runs", writer.run_file(run_id), RUN_SCHEMA),
                ):
                    count = write(path, schema, _view(connection, view, schema, run_id))
                    bar.update(count if view == "operators" else 0)
    return len(runs), sum(runs.values())


def _view(
    connection: psycopg.Connection, view: str, schema: pa.Schema, run_id: str
) -> Iterator[list[Row]]:
    query = SQL("SELECT {} FROM metrics_bi.{} WHERE run_id = %s ORDER BY {}").format(
        SQL(", ").join(map(Identifier, schema.names)),
        Identifier(view),
        Identifier("run_id" if view == "runs" else "timestamp"),
    )
    with connection.cursor("metrics_parquet", row_factory=dict_row) as cursor:
        cursor.execute(query, [run_id])
        while rows := cursor.fetchmany(CHUNK):
            yield rows


def import_runs(database: Database, folder: Path, run_ids: Sequence[str] = ()) -> tuple[int, int]:
    """Report the runs of a folder, all if none are named; how many runs and new operator rows.

    Each run is one transaction.
    """
    operators = _files_of_runs(folder / "operators", OPERATOR_SCHEMA)
    stages = _files_of_runs(folder / "stages", STAGE_SCHEMA)
    runs = _files_of_runs(folder / "runs", RUN_SCHEMA)
    found = runs.keys() | stages.keys() | operators.keys()
    if missing := set(run_ids) - found:
        raise CommandError(f"{folder} has no run {', '.join(sorted(missing))}")
    chosen = sorted(set(run_ids) or found)
    count = 0
    for run_id in tqdm(chosen, unit=" runs", disable=None):
        with database.connection.transaction():
            count += _import_run(
                database,
                run_id,
                _rows(runs.get(run_id, []), RUN_SCHEMA, run_id),
                _rows(stages.get(run_id, []), STAGE_SCHEMA, run_id),
                partial(_rows, operators.get(run_id, []), OPERATOR_SCHEMA, run_id),
            )
    return len(chosen), count


def _import_run(
    database: Database,
    run_id: str,
    runs: Iterator[Row],
    stages: Iterable[Row],
    operators: Callable[[], Iterator[Row]],
) -> int:
    """Report what the database has not of a run; how many rows of operators."""

    def call(function: str, at: datetime | None, **arguments: Any) -> None:
        arguments = {"run_id": run_id, **arguments, "at": at and as_utc(at).isoformat()}
        database.send([record(function, arguments)])

    known = database.connection.execute(
        "SELECT end_time FROM metrics_bi.runs WHERE run_id = %s", [run_id]
    ).fetchone()
    # The database refuses what is after a run's end, even if it is there.
    end = known[0] if known else None
    stages = sorted(stages, key=lambda row: row["timestamp"])
    run = next(runs, None)
    if run is None:
        times = [row["timestamp"] for row in (*stages, *operators())]
        run = {"start_time": min(times), "end_time": max(times), "config": None}
    if not known:
        call(START_RUN, run["start_time"], config=_document(run["config"]))
    for stage in stages:
        if end is None or as_utc(stage["timestamp"]) < end:
            call("metrics_start_stage", stage["timestamp"], stage_name=stage["stage_name"])
    count = 0
    rows = (row for row in operators() if end is None or as_utc(row["timestamp"]) < end)
    while batch := [operator_record(_metrics(row)) for row in islice(rows, BATCH)]:
        count += database.send(batch)
    if not known and run["end_time"]:
        call("metrics_finish_run", run["end_time"])
    return count


def _metrics(row: Row) -> OperatorMetrics:
    """A row as it was written by whomever: all its columns are optional."""
    given = {name: value for name, value in row.items() if value is not None}
    document = _document(given.pop("custom_metrics", None))
    return OperatorMetrics(**{**dict.fromkeys(_NUMBERS, 0), **given, "custom_metrics": document})


# What a row has to have, and what of it is 0 if it is missing.
_REQUIRED = {"stage_name", "operator_name", "worker_id", "timestamp", "start_time"}
_NUMBERS = [field.name for field in OPERATOR_SCHEMA if field.type in (pa.int64(), pa.float64())]


def _document(text: str | None) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError as error:
        raise CommandError(f"no JSON: {text!r:.80}") from error


def _files_of_runs(folder: Path, schema: pa.Schema) -> dict[str, list[Path]]:
    """The files of a folder by the runs that are in them.

    Which run a row is of is said in it: the file's name does not matter.
    """
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        try:
            with pq.ParquetFile(path) as file:
                if missing := set(schema.names) - set(file.schema_arrow.names):
                    raise CommandError(f"{path} has no column {', '.join(sorted(missing))}")
                run_ids = file.read(columns=["run_id"]).column("run_id").unique().to_pylist()
        except pa.ArrowException as error:
            raise CommandError(f"{path}: {error}") from error
        if None in run_ids:
            raise CommandError(f"{path} has rows without run_id")
        for run_id in run_ids:
            files.setdefault(run_id, []).append(path)
    return files


def _rows(paths: Iterable[Path], schema: pa.Schema, run_id: str) -> Iterator[Row]:
    """The rows of a run, in the types of a schema."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=schema.names):
                table = pa.Table.from_batches([batch]).select(schema.names)
                try:
                    table = table.filter(pc.equal(table["run_id"], run_id)).cast(schema)
                except pa.ArrowException as error:
                    raise CommandError(f"{path}: {error}") from error
                for name in _REQUIRED & set(schema.names):
                    if table[name].null_count:
                        raise CommandError(f"{path} has rows of run {run_id} without {name}")
                yield from table.to_pylist()


def main() -> None:
    parser = argparse.ArgumentParser(prog="metrics-parquet", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (
        ("export", "write runs of the database to a folder"),
        ("import", "report runs of a folder to the database; what it has already stays as it is"),
    ):
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument("folder", type=Path, help="with runs/, stages/ and operators/")
        command.add_argument("run_id", nargs="*", help="all runs if none is named")
        command.add_argument(
            "-d", "--database", default="", help="libpq's connection string, default: from PG*"
        )
    arguments = parser.parse_args()
    action = export_runs if arguments.command == "export" else import_runs
    try:
        database = Database(arguments.database)
        try:
            runs, rows = action(database, arguments.folder, arguments.run_id)
        finally:
            database.close()
    except (CommandError, OSError, psycopg.Error) as error:
        sys.exit(f"metrics-parquet: {error}")
    done = "exported" if arguments.command == "export" else "new in the database"
    print(f"{runs} runs, {rows} rows of operators {done}")
