"""A run whose rows were damaged in the file itself: where an operator sees it, and how it goes on (rule 16)."""

import sqlite3
from contextlib import closing

import pytest

NOTIFIER = """
[notifiers.pager]
kind = "command"
command = ["sh", "-c", "cat >> notices; echo >> notices"]
"""


@pytest.fixture
def quarantined(amends, engine, project):
    """The id of a dead run that reserved a lamp, quarantined by a sweep, and what puts its row right."""
    run = engine.run(workflow="order", run_key="dead", agent="coder")
    assert run.call("shop.reserve", {"name": "lamp"}).ok
    run.detach()
    project.write_text(project.read_text(encoding="utf-8") + NOTIFIER, encoding="utf-8")

    def write(body):
        with closing(sqlite3.connect(project.parent / ".amends" / "journal.sqlite")) as connection, connection:
            there = connection.execute(
                "SELECT body FROM rows WHERE kind = 'action' AND run_id = ?", (run.run_id,)
            ).fetchone()[0]
            connection.execute(
                "UPDATE rows SET body = ? WHERE kind = 'action' AND run_id = ?", (body or there[:-9], run.run_id)
            )
        return there

    whole = write("")
    amends("recover")
    return run.run_id, lambda: write(whole)


def test_an_operator_sees_it_is_paged_and_lets_it_go_on(amends, quarantined, project):
    """Inbox, runs, doctor and one page name it; lifting is refused until it reads back; then recovery goes on."""
    run_id, put_right = quarantined
    amends("recover")
    (held,) = amends("quarantine", "list", "--json").json["quarantines"]
    assert (held["run_id"], held["status"]) == (run_id, "told")
    assert amends("inbox", "list", "--json").json["quarantines"] == [held]
    for listed in (amends("quarantine", "list"), amends("inbox", "list")):
        assert run_id in listed.out
    assert "1 in quarantine" in amends("runs", "list").err
    assert "is quarantined" in amends("doctor", code=1).out
    notices = (project.parent / "notices").read_text(encoding="utf-8").splitlines()
    assert [run_id in notice for notice in notices if '"kind": "escalation"' in notice] == [True]
    refused = amends("quarantine", "lift", run_id, "--by", "maya", "--json", code=8).json["error"]
    assert refused["code"] == "corrupt_ledger"
    put_right()
    assert amends("recover", run_id, "--json", code=5).json["error"]["code"] == "conflict"
    assert amends("quarantine", "lift", run_id[-8:], "--by", "nobody", code=3).out == ""
    amends("quarantine", "lift", run_id[-8:], "--by", "maya", "--comment", "restored")
    assert "no run is in quarantine" in amends("quarantine", "list").err
    amends("recover")
    assert list((project.parent / "shop").iterdir()) == []
    amends("ledger", "verify")
