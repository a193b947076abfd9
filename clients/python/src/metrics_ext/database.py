"""The functions of metrics_ext, called with records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from .record import OPERATOR, START_RUN

# How each function is called with its arguments, the JSON document j.
_CALLS = {
    OPERATOR: "metrics_report_operators(j)",
    START_RUN: "metrics_start_run({run_id}, config => j->'config', {at})",
    "metrics_finish_run": "metrics_finish_run({run_id}, {at})",
    "metrics_fail_run": "metrics_fail_run({run_id}, {at})",
    "metrics_start_stage": "metrics_start_stage({run_id}, {stage_name}, {at})",
    "metrics_finish_stage": "metrics_finish_stage({run_id}, {stage_name}, {at})",
}
_ARGUMENTS = {
    "run_id": SQL("run_id => j->>'run_id'"),
    "stage_name": SQL("stage_name => j->>'stage_name'"),
    "at": SQL("at => (j->>'at')::timestamptz"),
}
FUNCTIONS = {function.encode() for function in _CALLS}


class Database:
    """A connection, and where the extension is: its schema need not be in the search path."""

    def __init__(self, conninfo: str) -> None:
        parameters: dict[str, Any] = {
            "connect_timeout": 10,
            "tcp_user_timeout": 30_000,
            "fallback_application_name": "metrics_ext",
            **conninfo_to_dict(conninfo),
        }
        # Nothing prepared, for the sake of connection poolers.
        self.connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
        try:
            self._schema = self._find_schema()
        except BaseException:
            self.close()
            raise

    def _find_schema(self) -> Identifier:
        row = self.connection.execute(
            "SELECT nspname FROM pg_namespace n JOIN pg_extension ON extnamespace = n.oid"
            " WHERE extname = 'metrics_ext'"
        ).fetchone()
        if row is None:
            raise psycopg.OperationalError("the database has no extension metrics_ext")
        schema = Identifier(row[0])
        store = SQL("SELECT FROM {}.metrics_store").format(schema)
        if self.connection.execute(store).fetchone() is None:
            raise psycopg.OperationalError("call metrics_create_store() in the database first")
        return schema

    def send(self, records: Sequence[bytes]) -> Any:
        """Call the function of a record; records of operators go together in one call."""
        prefix = records[0].partition(b" ")[0] + b" "
        function = prefix.decode().rstrip()
        argument = b"".join(records)[len(prefix) : -1]
        if function == OPERATOR:
            argument = b"[%s]" % argument.replace(b"\n" + prefix, b",")
        statement = SQL("SELECT {}.{} FROM (SELECT %s::jsonb AS j) AS record").format(
            self._schema, SQL(_CALLS[function]).format(**_ARGUMENTS)
        )
        row = self.connection.execute(statement, [argument.decode()]).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        self.connection.close()
