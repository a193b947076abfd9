"""Records on disk until the database has them.

A spool is a folder.  Each process appends to a file of its own there, which it holds locked; a file
that nobody holds is of a process that is gone, and any other may send it.  What was appended
survives the process, not the machine: it is in the kernel's hands, not forced to the disk.
While the disk takes no more, records wait in memory.
"""

from __future__ import annotations

import errno
import fcntl
import io
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from .models import utc_now

SUFFIX = ".spool"
MEMORY_LIMIT = 64 << 20

log = logging.getLogger(__name__)


class Segment:
    """Records, one a line, to be sent in order.  position is up to where they have been."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.position = 0

    def batches(self, lines: int, size: int) -> Iterator[list[bytes]]:
        """The unsent lines, so many and so many bytes of them at most at a time (one at least).

        Taking the next batch says that the one before has been sent.  A last line without an end
        was never wholly handed over.
        """
        with self._open() as file:
            file.seek(self.position)
            batch: list[bytes] = []
            taken = 0
            for line in file:
                if not line.endswith(b"\n"):
                    break
                if batch and (len(batch) == lines or taken + len(line) > size):
                    yield batch
                    self.position += taken
                    batch, taken = [], 0
                batch.append(line)
                taken += len(line)
            if batch:
                yield batch
                self.position += taken

    def _open(self) -> BinaryIO:
        raise NotImplementedError

    def remove(self) -> None:
        """They have all been sent."""

    def release(self) -> None:
        """Let go of them; they stay."""


class FileSegment(Segment):
    """In a file, held locked by its descriptor."""

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(path.name, os.fstat(descriptor).st_size)
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, folder: Path) -> FileSegment:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            path = folder / _new_name()
            with suppress(FileExistsError):
                descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
                if _lock(descriptor):
                    return cls(path, descriptor)

    @classmethod
    def adopt(cls, path: Path) -> FileSegment | None:
        """A file that is there, unless somebody holds it or has just sent it."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError:
            return None
        return cls(path, descriptor) if _lock(descriptor) else None

    def append(self, line: bytes) -> None:
        """All of the line or none of it."""
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += written

    def _open(self) -> BinaryIO:
        return open(self._descriptor, "rb", closefd=False)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        os.close(self._descriptor)


class MemorySegment(Segment):
    def __init__(self) -> None:
        super().__init__(_new_name(), 0)
        self._lines: list[bytes] = []

    def append(self, line: bytes) -> None:
        self._lines.append(line)
        self.size += len(line)

    def _open(self) -> BinaryIO:
        return io.BytesIO(b"".join(self._lines))


class Spool:
    """The folder, and what of it this process is responsible for."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self._limit = limit
        self._lock = threading.RLock()
        self._current: FileSegment | None = None
        self._memory: MemorySegment | None = None
        self._taken: list[Segment] = []
        self._room = limit  # less what has been taken
        self._has_room = True

    def append(self, line: bytes) -> bool:
        """Whether there was room for the line."""
        with self._lock:
            # What comes later stays behind what is in memory.
            if self._memory is None:
                try:
                    self._append_to_file(line)
                    self._has_room = True
                    return True
                except OSError as error:
                    if self._has_room:
                        log.warning("%s: %s; records wait in memory", self.folder, error)
                    self._has_room = False
                    self._memory = MemorySegment()
            if self._size(MemorySegment) + self._memory.size + len(line) > MEMORY_LIMIT:
                return False
            self._memory.append(line)
            return True

    def _append_to_file(self, line: bytes) -> None:
        if self._current is None:
            self._current = FileSegment.create(self.folder)
        if self._current.size + len(line) > self._room:
            raise OSError(errno.EDQUOT, f"more than {self._limit} bytes")
        self._current.append(line)

    def _size(self, kind: type[Segment]) -> int:
        """What has been taken and not yet sent."""
        return sum(segment.size for segment in self._taken if isinstance(segment, kind))

    def take(self) -> list[Segment]:
        """What is to be sent, in order: what nobody holds, and what was appended until now."""
        with self._lock:
            current = self._current
        fresh = None
        if current is not None and current.size:
            with suppress(OSError):
                fresh = FileSegment.create(self.folder)
        held = {segment.name for segment in (*self._taken, current, fresh) if segment is not None}
        taken: list[Segment] = [
            orphan
            for path in self.folder.glob("*" + SUFFIX)
            if path.name not in held and (orphan := FileSegment.adopt(path))
        ]
        with self._lock:
            if current is not None and current.size:
                taken.append(current)
                self._current = fresh
            if self._memory is not None:
                taken.append(self._memory)
                self._memory = None
            self._taken = sorted(self._taken + taken, key=lambda segment: segment.name)
            self._room = self._limit - self._size(FileSegment)
            return list(self._taken)

    def sent(self, segment: Segment) -> None:
        with self._lock:
            self._taken.remove(segment)
            self._room = self._limit - self._size(FileSegment)
        segment.remove()

    def reject(self, line: bytes, reason: str) -> None:
        """Keep a record that the database refuses, below the reason, for a person to look at."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self.folder / "rejected", "ab") as file:
            file.write(b"-- %s\n%s" % (reason.replace("\n", " ").encode(), line))

    def close(self) -> int:
        """Let go of the files, for others to send what is in them; how many records are lost."""
        lost = 0
        with self._lock:
            for segment in (*self._taken, self._memory):
                if isinstance(segment, MemorySegment):
                    for batch in segment.batches(1, 0):
                        try:
                            self._append_to_file(batch[0])
                        except OSError:
                            lost += 1
            for segment in (*self._taken, self._current):
                if segment is not None:
                    segment.release() if segment.size else segment.remove()
            self._current = self._memory = None
            self._taken = []
        return lost

    def after_fork(self) -> None:
        """In a child: the records are the parent's, the lock may be a lost thread's."""
        for segment in (*self._taken, self._current):
            if segment is not None:
                segment.release()
        self.__init__(self.folder, self._limit)  # type: ignore[misc]


def _new_name() -> str:
    """Sorts by age."""
    return f"{utc_now():%Y%m%dT%H%M%S.%f}-{os.getpid()}{SUFFIX}"


def _lock(descriptor: int) -> bool:
    """Lock a file, or close it: it may be held, or have been removed by who held it before."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:
            return True
    except BlockingIOError:
        pass
    os.close(descriptor)
    return False
