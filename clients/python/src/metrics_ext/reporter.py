"""Handing records over to the database without waiting for it.

report() appends a record to the spool and returns.  A thread sends what is in the spool, in order
and in batches; while the database is away it tries again and the spool grows.  A record may be
sent twice, when a connection or the process breaks between the database's commit and its answer:
the functions of metrics_ext keep one.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from . import fork
from .database import FUNCTIONS, Database
from .models import OperatorMetrics
from .record import OPERATOR, START_RUN, operator_record, record
from .spool import Spool

if TYPE_CHECKING:
    from .collector import OperatorContext

log = logging.getLogger(__name__)

# The classes of SQLSTATE that mean the record and not the circumstances: data exception,
# constraint violation, too large, the run is over, raised by a trigger.
_REFUSALS = ("22", "23", "54", "55000", "P0")
_UNKNOWN_RUN = "23503"
_RUN_EXISTS = "23505"

# For so many seconds a run may be unknown, since another process is about to start it.
PATIENCE = 60.0

_OPERATOR = OPERATOR.encode()
_START_RUN = START_RUN.encode()

_BATCH_LINES = 1000
_BATCH_SIZE = 1 << 20
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_IDLE_ROUNDS = 10

_reporters: weakref.WeakSet[Reporter] = weakref.WeakSet()


class Reporter:
    """Sends records to one database.

    conninfo is libpq's, spool the folder where records wait, interval the seconds between two
    batches, spool_limit the bytes that may wait.  The counters sent, refused and dropped say what
    became of records: dropped ones found neither disk nor memory, refused ones are in the spool's
    file "rejected", below the database's reason.
    """

    def __init__(
        self,
        conninfo: str = "",
        *,
        spool: str | os.PathLike[str] | None = None,
        interval: float = 1.0,
        spool_limit: int = 1 << 30,
    ) -> None:
        self.sent = self.refused = self.dropped = 0
        self._conninfo = conninfo
        self._interval = interval
        self._spool = Spool(Path(spool) if spool else default_spool(conninfo), spool_limit)
        self._prepare()
        self._start()
        _reporters.add(self)
        fork.register(self)

    @property
    def spool(self) -> Path:
        return self._spool.folder

    def report(self, function: str, arguments: Mapping[str, Any]) -> None:
        """Hand over a call of a function of metrics_ext.  Raises nothing, waits for nothing."""
        try:
            self._hand_over(record(function, arguments))
        except Exception as error:
            self._drop(f"it cannot be written as JSON: {error!r}")

    def report_operator(self, row: OperatorMetrics | OperatorContext) -> None:
        """The same for the row of an operator."""
        try:
            self._hand_over(operator_record(row))
        except Exception as error:
            self._drop(f"it cannot be written as JSON: {error!r}")

    def _hand_over(self, line: bytes) -> None:
        if not self._spool.append(line):
            self._drop("neither disk nor memory has room")
        if self._thread is None:
            self._start()

    def _drop(self, reason: str) -> None:
        if not self.dropped:
            log.error("a record is dropped: %s; more may be, and are only counted", reason)
        self.dropped += 1

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was handed over has been sent; False if it was not in time."""
        if self._thread is None or not self._thread.is_alive():
            return False
        with self._round_ended:
            wanted = self._rounds + 1  # begins after now
            self._wake.set()
            return self._round_ended.wait_for(lambda: self._good_round >= wanted, timeout)

    def close(self, timeout: float = 5.0) -> bool:
        """Send the rest, once and for timeout seconds at most; False if some stays in the spool.

        The next reporter with the same spool sends it.
        """
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)
        _reporters.discard(self)
        return self._good_round == self._rounds

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _prepare(self) -> None:
        self._database: Database | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._round_ended = threading.Condition()
        self._rounds = self._good_round = 0
        self._closing = False
        self._away = False
        self._idle = 0
        self._early_since: float | None = None

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="metrics_ext", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            # The interpreter is ending.  Another process will send what is in the spool.
            log.debug("no thread: %s", error)

    def after_fork(self) -> None:
        """In a child: the connection and the thread are the parent's."""
        _inherited.append(self._database)
        self._spool.after_fork()
        self._prepare()

    def _work(self) -> None:
        pause = self._interval
        closing = False
        while not closing:
            self._wake.wait(pause)
            self._wake.clear()
            closing = self._closing
            with self._round_ended:
                self._rounds += 1
            try:
                self._round()
                pause = self._interval
                good = True
            except Exception as error:
                pause = _FIRST_PAUSE if not self._away else min(2 * pause, _LONGEST_PAUSE)
                self._complain(error)
                good = False
            with self._round_ended:
                if good:
                    self._good_round = self._rounds
                self._round_ended.notify_all()
        self._disconnect()
        if lost := self._spool.close():
            self.dropped += lost
            log.error("%d records were only in memory and are lost", lost)

    def _complain(self, error: Exception) -> None:
        if not isinstance(error, (psycopg.Error, OSError)):
            log.exception("cannot send, records wait in %s", self.spool)
        elif not self._away:
            log.warning("cannot send, records wait in %s: %s", self.spool, error)
        self._away = True
        self._disconnect()

    def _round(self) -> None:
        """Send all that was handed over before now.  An idle connection is closed in the end."""
        if self._away:
            self._connected()  # before the spool begins a new file
        segments = self._spool.take()
        self._idle = 0 if segments else self._idle + 1
        if self._idle >= _IDLE_ROUNDS:
            self._disconnect()
        for segment in segments:
            for batch in segment.batches(_BATCH_LINES, _BATCH_SIZE):
                for function, lines in groupby(batch, key=lambda line: line.partition(b" ")[0]):
                    records = list(lines)
                    for some in [records] if function == _OPERATOR else zip(records):
                        self._send(function, some)
            self._spool.sent(segment)
        self._early_since = None
        if self._away:
            self._away = False
            log.info("the database is back, records are sent")

    def _send(self, function: bytes, records: Sequence[bytes]) -> None:
        """Send records; those that the database refuses are set aside."""
        if function not in FUNCTIONS:
            for line in records:
                self._refuse(line, "no such function")
            return
        try:
            self._connected().send(records)
            self.sent += len(records)
        except psycopg.Error as error:
            state = error.sqlstate or ""
            if not state.startswith(_REFUSALS):
                raise
            if len(records) > 1:
                middle = len(records) // 2
                self._send(function, records[:middle])
                self._send(function, records[middle:])
            elif state == _UNKNOWN_RUN and self._may_be_early():
                raise
            elif state == _RUN_EXISTS and function == _START_RUN:
                log.info("%s: it was started before", str(error).splitlines()[0])
            else:
                self._refuse(records[0], str(error))

    def _may_be_early(self) -> bool:
        """Whether records of unknown runs have not been in the way for long."""
        if self._early_since is None:
            self._early_since = time.monotonic()
        return time.monotonic() - self._early_since < PATIENCE

    def _refuse(self, line: bytes, reason: str) -> None:
        self.refused += 1
        log.error("a record is refused, see %s/rejected: %s", self.spool, reason)
        self._spool.reject(line, reason)

    def _connected(self) -> Database:
        if self._database is None:
            self._database = Database(self._conninfo)
        return self._database

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def default_spool(conninfo: str) -> Path:
    """A folder of the user's for each database: what waits there is sent to no other."""
    target = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val
    }
    target.update({key: str(value) for key, value in conninfo_to_dict(conninfo).items()})
    names = ("service", "host", "hostaddr", "port", "dbname", "user")
    identity = "\0".join(target.get(name, "") for name in names)
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "metrics_ext" / hashlib.sha256(identity.encode()).hexdigest()[:12]


# Connections of the process this one was forked from; closing them would end them there.
_inherited: list[Database | None] = []


@atexit.register
def _close_all() -> None:
    for reporter in list(_reporters):
        reporter.close()
