"""`amends drill` on a sandbox: by command, with a process that is killed, and what `audit` and `doctor` say of it."""

import os
import signal
import subprocess
import sys

import pytest

from amends.core.contract import Alternative, Limits
from amends.spi import Done, Retry
from amends.testing import tiny

SANDBOX = '\n[adapters.shop.sandbox]\nfolder = "playground"\nrefuse = []\n'
ARGS = ("--args", '{"name": "lamp"}')

KILLED = """
import os, signal, sys
from amends import Engine
from amends.core.contract import Alternative, Limits
from amends.spi import Retry
from amends.testing import tiny

reserve = tiny.reserve
rungs = (Alternative(name="cancel", retry=Retry(attempts=2, backoff_seconds=0.1)),)
quick = {"limits": Limits(timeout_seconds=0.2), "compensation": rungs}
tiny.reserve = lambda name: reserve(name).model_copy(update=quick)

def killed(self, call):
    os.kill(os.getpid(), signal.SIGKILL)

tiny.TinyCapability.undo = killed
with Engine.open(sys.argv[1]) as engine:
    engine.drill("shop.reserve", {"name": "lamp"})
"""


@pytest.fixture
def sandbox(project):
    """The project with a sandbox for its shop; the sandbox's folder."""
    with project.open("a", encoding="utf-8") as file:
        file.write(SANDBOX)
    return project.parent / "playground"


def effects(folder):
    """What is there, at the shop's own side."""
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def instant(monkeypatch):
    """A late landing is looked for at once, and an undo is tried two times: the calls of the shop take no time."""
    reserve = tiny.reserve
    quick = {
        "limits": Limits(timeout_seconds=0.2),
        "compensation": (Alternative(name="cancel", retry=Retry(attempts=2, backoff_seconds=0.1)),),
    }
    monkeypatch.setattr(tiny, "reserve", lambda name: reserve(name).model_copy(update=quick))


def test_a_drill_leaves_a_certificate_that_audit_shows_with_its_age(amends, project, sandbox, instant):
    """Nothing is left in either shop; the table and the document tell when, how old, and until when."""
    before = amends("audit", "shop.reserve", "--json").json["capabilities"][0]["drill"]
    assert (before["standing"], before["drilled"]) == ("never", None)
    told = amends("drill", "shop.reserve", *ARGS, "--json").json
    assert "undone by `cancel`" in told["detail"]
    assert told["subject_digest"].startswith("adapter:amends-shop ")
    assert effects(sandbox) == effects(project.parent / "shop") == []
    after = amends("audit", "shop.reserve", "--json").json["capabilities"][0]["drill"]
    assert (after["standing"], after["age_days"], after["subjects"]) == ("valid", 0.0, 1)
    assert after["drilled"] < after["expires"]
    assert "0 days ago; valid until" in amends("audit", "shop.reserve").out
    assert "nothing to drill: it cannot be taken back" in amends("audit", "shop.notify").out


def test_without_a_sandbox_the_remedy_names_the_table(amends, project):
    """The file, the table and what stands in it."""
    told = amends("drill", "shop.reserve", *ARGS, code=2)
    assert "[adapters.shop.sandbox]" in told.err


def test_what_cannot_be_taken_back_is_not_drilled(amends, sandbox):
    """It says so."""
    assert "no undo to drill" in amends("drill", "shop.notify", *ARGS, code=2).err


def test_a_drill_that_was_killed_is_recovered_by_the_next(amends, project, sandbox, instant):
    """Killed in its undo: the effect is there. The next drill takes it back first, and certifies."""
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(project)],
        check=False,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert len(effects(sandbox)) == 1
    amends("drill", "shop.reserve", *ARGS)
    assert effects(sandbox) == []
    told = amends("--sandbox", "runs", "list", "--json").json["runs"]
    assert [run["status"] for run in told] == ["recovered", "recovered"]
    assert amends("runs", "list", "--json").json["runs"] == []


def test_what_did_not_hold_waits_in_the_inbox_of_the_sandbox(amends, project, sandbox, instant, monkeypatch):
    """A failed drill is a person's, there and not in production; decided, drills go on."""
    honest = tiny.TinyCapability.undo
    monkeypatch.setattr(tiny.TinyCapability, "undo", lambda self, call: Done())
    assert "did not hold" in amends("drill", "shop.reserve", *ARGS, code=1).err
    monkeypatch.setattr(tiny.TinyCapability, "undo", honest)
    assert len(effects(sandbox)) == 1
    assert amends("inbox", "list", "--json").json["escalations"] == []
    [item] = amends("--sandbox", "inbox", "list", "--json").json["escalations"]
    assert "an earlier drill" in amends("drill", "shop.reserve", *ARGS, code=5).err
    amends("--sandbox", "inbox", "resolve", item["escalation_id"], "compensate", "--by", "maya")
    amends("drill", "shop.reserve", *ARGS)
    assert effects(sandbox) == []


def test_doctor_warns_of_a_sandbox_that_does_not_load_and_no_more(amends, project, sandbox):
    """The engine is as well as before: drills alone would fail."""
    assert any(f["subject"] == "sandbox" and f["level"] == "ok" for f in amends("doctor", "--json").json["findings"])
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace('folder = "playground"', 'folder = "playground"\ntoken = "env:NOBODY_SET_THIS"'))
    found = amends("doctor", "--json").json["findings"]
    assert [f["message"] for f in found if f["level"] == "warning" and f["subject"] == "sandbox"] == [
        "secret `env:NOBODY_SET_THIS` is not set (needed by [adapters.shop.sandbox])"
    ]


def test_a_drill_is_not_asked_of_the_sandbox_itself(amends, sandbox):
    """It goes there by itself."""
    amends("--sandbox", "drill", "shop.reserve", *ARGS, code=2)
    amends("--sandbox", "doctor", code=2)
