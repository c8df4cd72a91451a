"""The ledger's own integrity, and secrets."""

import os
import sys
from pathlib import Path

import pytest

from amends import Engine
from amends.testing.crash.project import ENVIRONMENT, write_project
from amends.testing.crash.worker import calls_of
from amends.testing.loopback import LoopbackSystem
from amends.testing.worlds import CANARY, keyed, ledger_faults, setting

ARGS = {"name": "o-1"}
WATCHED: list[list[str]] = []  # an audit hook stays for ever: it does nothing while nobody watches


def _watch(event, arguments):
    if WATCHED and event == "open" and isinstance(arguments[0], str | bytes):
        WATCHED[0].append(os.fsdecode(arguments[0]))


@pytest.fixture(scope="module")
def hook():
    sys.addaudithook(_watch)


@pytest.fixture
def opened(hook):
    """Every file that Python code of this process opens from now on. SQLite opens its own without asking Python."""
    WATCHED.append([])
    yield WATCHED[0]
    WATCHED.clear()


def test_l_01_nothing_but_sqlite_ever_opens_the_journal(opened, monkeypatch, tmp_path):
    """To open and close the file drops this process's locks on it: no call, recovery, query, check or backup does."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with LoopbackSystem.start("partner") as partner:
        write_project(tmp_path / "project", partner=partner.url, slack="http://127.0.0.1:9")
        with Engine.open(tmp_path / "project", mirror=False) as engine:
            run = engine.run(workflow="orders", run_key="1", agent="bot")
            assert run.call(*calls_of("o1")[0]).ok
            run.fail("stop", wait_seconds=5)
            assert engine.kit.journal.verify() == ()
            engine.kit.journal.backup(str(tmp_path / "copy.sqlite"))
            assert engine.sql("SELECT count(*) FROM runs").rows

    def journals():
        return [name for name in opened if Path(name).name.startswith("journal.sqlite") and not name.endswith(".lock")]

    assert journals() == []
    (tmp_path / "project" / ".amends" / "journal.sqlite").open("rb").close()
    assert len(journals()) == 1  # the check itself can fail


def test_l_05_a_tool_that_writes_its_credential_into_what_it_was_given_leaves_no_trace(build):
    """Arguments, before-image and effect reach an adapter as copies: what it puts there is recorded nowhere."""
    world = build(keyed(), setting())

    def spoil(question):
        for given in (question.args, question.before, question.allocated, question.effect, question.after):
            given["authorization"] = f"Bearer {CANARY}"

    for adapter in world.capabilities:
        for name in ("prepare", "do", "probe", "undo"):
            method = getattr(adapter, name)

            def spoiling(question, method=method):
                answer = method(question)
                spoil(question)
                return answer

            setattr(adapter, name, spoiling)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.call("flags.set", {"name": "f", "value": "on"})
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert ledger_faults(world.journal, canaries=(CANARY,)) == []
    rows = [row.body for kind in ("run", "action") for row in world.journal.rows(kind)]
    assert [body for body in rows if CANARY in body] == []
