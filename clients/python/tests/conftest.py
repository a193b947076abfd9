"""What the tests share: the server that PGHOST and PGDATA name, and databases in it.

tools/check python starts a server for them.  Tests that need none run without.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from metrics_ext import MetricsCollector, Reporter


class Server:
    """A server of the tests' own, which they may kill."""

    def __init__(self) -> None:
        self.data = Path(os.environ["PGDATA"])

    def kill(self) -> None:
        self._pg_ctl("-m", "immediate", "stop")

    def start(self) -> None:
        # As it was started the last time.
        options = shlex.split((self.data / "postmaster.opts").read_text())[1:]
        self._pg_ctl("-l", str(self.data.parent / "server.log"), "-o", shlex.join(options), "start")

    def _pg_ctl(self, *arguments: str) -> None:
        subprocess.run(
            ["pg_ctl", "-s", "-w", "-D", str(self.data), *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
        )


class TestDatabase:
    __test__ = False

    def __init__(self, name: str) -> None:
        self.conninfo = f"dbname={name}"

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def query(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            return connection.execute(statement, arguments).fetchall()

    def value(self, statement: str, *arguments: Any) -> Any:
        [(value,)] = self.query(statement, *arguments)
        return value

    def count(self) -> int:
        return self.value("SELECT count(*) FROM metrics_bi.operators")


@pytest.fixture(scope="session")
def server() -> Server:
    if "PGDATA" not in os.environ or "PGHOST" not in os.environ:
        pytest.fail("needs a server: run tools/check python", pytrace=False)
    return Server()


@pytest.fixture(scope="session")
def template(server: Server) -> Iterator[str]:
    """A database with a store.  The extension is not in the search path."""
    name = f"template_{uuid.uuid4().hex[:8]}"
    postgres = TestDatabase("postgres")
    postgres.execute(f"CREATE DATABASE {name}")
    TestDatabase(name).execute(
        "CREATE SCHEMA extensions",
        "CREATE EXTENSION metrics_ext SCHEMA extensions",
        "SELECT extensions.metrics_create_store()",
    )
    yield name
    postgres.execute(f"DROP DATABASE {name}")


@pytest.fixture
def database(template: str) -> Iterator[TestDatabase]:
    name = f"test_{uuid.uuid4().hex[:8]}"
    postgres = TestDatabase("postgres")
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield TestDatabase(name)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def reporter(database: TestDatabase, spool: Path) -> Iterator[Reporter]:
    with Reporter(database.conninfo, spool=spool, interval=0.05) as reporter:
        yield reporter


def run_operators(collector: MetricsCollector, count: int, worker_id: str = "worker_0") -> None:
    """So many blocks of one operator."""
    for _ in range(count):
        with collector.track_operator("Filter", "stage_0", worker_id) as operator:
            operator.input_records = 100
            operator.output_records = 90


def waiting(spool: Path) -> list[bytes]:
    """The records in a spool, in order."""
    return [
        line for path in sorted(spool.glob("*.spool")) for line in path.read_bytes().splitlines()
    ]
