"""Where policies are evaluated: only where the stack is known to be large enough."""

import resource
import threading

import pytest

from amends.backends.cedar import worker
from amends.backends.cedar.worker import ENOUGH_BYTES, STACK_BYTES, Worker, enough_here


def on_a_thread(work, stack_bytes=0):
    found = []
    before = threading.stack_size(stack_bytes)
    try:
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0]


def test_thread_of_a_caller_never_evaluates_itself():
    """Nobody knows the stack of a thread that somebody else made."""
    assert on_a_thread(enough_here) is False
    assert on_a_thread(enough_here, STACK_BYTES) is False
    here, there = on_a_thread(lambda: (threading.get_ident(), Worker().run(threading.get_ident)))
    assert here != there


@pytest.mark.parametrize(
    ("limit", "enough"),
    [(resource.RLIM_INFINITY, True), (ENOUGH_BYTES, True), (ENOUGH_BYTES - 1, False), (64 * 1024, False)],
)
def test_first_thread_evaluates_itself_if_its_stack_may_grow(monkeypatch, limit, enough):
    """The system's limit decides; below it the work is handed over."""
    monkeypatch.setattr(worker.threading, "get_native_id", lambda: 4711)
    monkeypatch.setattr(worker.os, "getpid", lambda: 4711)
    monkeypatch.setattr(worker.resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    assert enough_here() is enough


def test_result_and_error_come_back_from_either_place(monkeypatch):
    """Whoever calls sees no difference."""
    for here in (True, False):
        monkeypatch.setattr(worker, "enough_here", lambda here=here: here)
        assert Worker().run(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            Worker().run(lambda: 1 // 0)
