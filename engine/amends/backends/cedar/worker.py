"""One thread with a known stack, on which policies are evaluated.

On a small stack Cedar skips a `forbid` with "recursion limit reached" and allows (measured at 128 KiB, the default of
some libcs). Whoever calls may have any stack, so the work is handed to a thread that was created with enough. Only a
process's first thread is known to have enough by itself, where the system says so: there the hand-over, which costs a
quarter of a decision, is left out.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

STACK_BYTES = 16 * 1024 * 1024  # reserved, not used: pages are touched only when recursion needs them

ENOUGH_BYTES = 4 * 1024 * 1024  # evaluation takes some 100 KiB

_T = TypeVar("_T")
_creation = threading.Lock()


def enough_here() -> bool:
    """True on the first thread of a process (Linux numbers it like the process) whose stack may grow far enough."""
    if threading.get_native_id() != os.getpid():
        return False
    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return limit == resource.RLIM_INFINITY or limit >= ENOUGH_BYTES


class Worker:
    """Runs functions on a thread with enough stack. A forked child gets a thread of its own."""

    def __init__(self) -> None:
        self._pid = 0
        self._pool = self._start()

    def run(self, work: Callable[[], _T]) -> _T:
        """The result of `work`, or whatever it raises."""
        if enough_here():
            return work()
        if self._pid != os.getpid():
            self._pool = self._start()
        return self._pool.submit(work).result()

    def _start(self) -> ThreadPoolExecutor:
        with _creation:  # `stack_size` is a setting of the whole process: set, start, set back
            pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="amends-policy")
            before = threading.stack_size(STACK_BYTES)
            try:
                pool.submit(os.getpid).result()
            finally:
                threading.stack_size(before)
        self._pid = os.getpid()
        return pool
