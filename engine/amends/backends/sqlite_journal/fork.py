"""What a forked child inherits of a journal, and must not touch (rule 9)."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Protocol


class Inheritable(Protocol):
    """Something that must let go in a forked child."""

    def forget(self) -> None:
        """Called in the child, before anything else runs there."""
        ...


_LIVING: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def guard(inheritable: Inheritable) -> None:
    """Have `forget` called in every child forked from now on."""
    _LIVING.add(inheritable)


def keep_for_ever(inherited: object) -> None:
    """Never destroy this object: a child that closed the parent's SQLite connection could checkpoint its log."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _in_child() -> None:
    for inheritable in list(_LIVING):
        inheritable.forget()


os.register_at_fork(after_in_child=_in_child)
