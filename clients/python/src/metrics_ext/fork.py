"""What has locks, threads or connections puts itself in order in a forked child."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    def after_fork(self) -> None: ...


_objects: weakref.WeakSet[Forkable] = weakref.WeakSet()


def register(each: Forkable) -> None:
    _objects.add(each)


def _after_fork() -> None:
    for each in list(_objects):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)
