"""A whole engine on a loopback partner whose own log says what was sent, and other processes with the same project."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from amends import Engine
from amends.testing.crash.project import ENVIRONMENT, write_project
from amends.testing.crash.worker import calls_of
from amends.testing.loopback import LoopbackSystem

# What every child process starts with; `engine` is of the project in argv[1], unless it opens its own.
OPEN = "engine = Engine.open(sys.argv[1], mirror=False)\n"
PRELUDE = """
import os, signal, sys, threading, time
from amends import Engine
from amends.core.errors import *
from amends.testing.crash.worker import calls_of
def open_run(key, workflow="orders"):
    return engine.run(workflow=workflow, run_key=key, agent="bot")
def reserve(run, order="o1"):
    return run.call(*calls_of(order)[0])
"""


@pytest.fixture(autouse=True)
def tokens(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def reserve():
    """Makes the first call of an order."""
    return lambda run, order="o1": run.call(*calls_of(order)[0])


@pytest.fixture
def partner():
    with LoopbackSystem.start("partner") as system:
        yield system


@pytest.fixture
def sent(partner):
    """The requests that could change something, as the partner received them."""
    return lambda: [(r["method"], r["path"]) for r in partner.requests() if r["method"] != "GET"]


@pytest.fixture
def project(partner):
    """The project's folder, which another user reaches too: pytest's own folders are private to whoever runs it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield _made(Path(name) / "project", partner)


def _made(folder, partner):
    write_project(folder, partner=partner.url, slack="http://127.0.0.1:9")
    settings = folder / "amends.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text + "\n[storage]\nlock_wait_seconds = 0.4\nmirror = false\n", encoding="utf-8")
    return folder


@pytest.fixture
def open_engine(project):
    """Opens engines; all are closed at the end."""
    engines = []

    def build():
        engines.append(Engine.open(project, mirror=False))
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(open_engine):
    return open_engine()


@pytest.fixture
def child(project):
    """Start a Python process with the prelude and `code`; it ends with the test."""
    processes = []

    def start(code, *, opened=True):
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + (OPEN if opened else "") + code, str(project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ.copy(),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
