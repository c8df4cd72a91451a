"""Stages for kill loops, and the desk from which they are looked at afterwards."""

import time

import pytest

from amends import bootstrap
from amends.core.status import TERMINAL_RUNS
from amends.testing.crash import Stage
from amends.testing.crash.project import ENVIRONMENT


@pytest.fixture
def stage(tmp_path):
    """Loopback systems, project, killer and zygote; what the children complained of is shown if the test fails."""
    with Stage(tmp_path / "stage") as made:
        yield made
        complaints = made.log.read_text()
        if complaints:
            print(complaints[-4000:])


@pytest.fixture
def open_desk(stage, monkeypatch):
    """Opens engines for looking, which send nothing; all are closed at the end."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    desks = []

    def build():
        desks.append(bootstrap.Engine.desk(stage.project))
        return desks[-1]

    yield build
    for desk in desks:
        desk.close()


@pytest.fixture
def unsettled_after():
    """Waits for every run to reach a terminal status; answers those that did not in time."""

    def wait(desk, seconds):
        until = time.monotonic() + seconds
        while True:
            live = [run for run in desk.runs(limit=100_000) if run.status not in TERMINAL_RUNS]
            if not live or time.monotonic() > until:
                return live
            time.sleep(0.1)

    return wait
