"""Real journals in real folders, and other processes that use them."""

import subprocess
import sys
from dataclasses import replace

import pytest

from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.events import CheckpointReached, encode
from amends.ports.journal import Commit, EventRecord, RowKey, RowWrite, seal

CLOCK = SystemClock()
IDS = UuidV7(CLOCK)
EMPTY = dict.fromkeys(EventRecord.__slots__, "")

# What every child process starts with: `journal(folder)`, `commit(stream, after)` as below.
PRELUDE = """
import os, signal, sys, time
from pathlib import Path
from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.sqlite_journal import SqliteJournal
from amends.core.errors import *
from amends.core.events import CheckpointReached, encode
from amends.ports.journal import *
clock = SystemClock()
ids = UuidV7(clock)
body = CheckpointReached(name="here")
def event(stream, place, size=0):
    given = dict(event_id=ids.new(), run_id=stream, kind=body.kind, payload=encode(body), ts_us=clock.now_us(),
                 run_seq=place, generation=1, attempt=0, epoch=1, slot="s" * size)
    return seal(EventRecord(**{**dict.fromkeys(EventRecord.__slots__, ""), **given}))
def commit(stream, after=0, size=0, **parts):
    row = RowWrite(RowKey("run", stream), stream, "open", "{}", 1)
    return Commit(stream, after, [event(stream, after + 1, size)], [row], **parts)
def journal(folder=sys.argv[1], wait=5.0):
    return SqliteJournal.open(Path(folder), clock=clock, ids=ids, busy_timeout_seconds=wait)
"""


def event(stream, place, **columns):
    body = CheckpointReached(name="here")
    numbers = {"ts_us": CLOCK.now_us(), "run_seq": place, "generation": 1, "attempt": 0, "epoch": 1}
    given = {"event_id": IDS.new(), "run_id": stream, "kind": body.kind, "payload": encode(body)}
    return seal(replace(EventRecord(**{**EMPTY, **numbers, **given}), **columns))


@pytest.fixture
def commit():
    def build(stream="run-1", after=0, **parts):
        row = RowWrite(RowKey("run", stream), stream, "open", "{}", 1)
        return Commit(stream, after, [event(stream, after + 1)], [row], **parts)

    return build


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def opened(folder):
    """Open a journal in `folder`; all are closed at the end."""
    journals = []

    def open_one(**settings):
        journals.append(SqliteJournal.open(folder, clock=CLOCK, ids=IDS, **settings))
        return journals[-1]

    yield open_one
    for journal in journals:
        journal.close()


@pytest.fixture
def child(folder):
    """Start a Python process with the prelude and `code`; it ends with the test."""
    processes = []

    def start(code, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(folder), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
