"""Somebody with a database shell: rows swapped, deleted, edited, forged. SQLite finds nothing wrong; `verify` does."""

import pytest

SWAPPED = (
    "UPDATE events SET payload = (SELECT other.payload FROM events AS other WHERE other.kind = events.kind"
    " AND other.run_id <> events.run_id AND other.payload <> events.payload LIMIT 1)"
    " WHERE seq = (SELECT min(seq) FROM events WHERE kind = 'run_opened')"
)
EDITS = {
    "an event edited, its hash left": "UPDATE events SET tenant = 'mallory' WHERE seq = 5",
    "a payload edited": "UPDATE events SET payload = replace(payload, 'lamp-1', 'sofa')",
    "two events swapped": SWAPPED,
    "an event deleted": "DELETE FROM events WHERE seq = 6",
    "the last event deleted": "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
    "a whole run deleted": "DELETE FROM events WHERE run_id = (SELECT min(run_id) FROM events)",
    "every event deleted": "DELETE FROM events",
    "a head turned back": "UPDATE streams SET head = head - 1 WHERE stream <> 'system'",
    "heads deleted": "DELETE FROM streams",
    "a total turned up": "UPDATE totals SET events = events + 1",
    "a total removed": "DELETE FROM totals",
    "a status edited": "UPDATE rows SET status = 'committed' WHERE kind = 'run'",
    "a due time edited": "UPDATE rows SET due_us = 9000000000000000 WHERE kind = 'run'",
    "an epoch edited": "UPDATE rows SET epoch = 9 WHERE kind = 'run'",
    "a row switched off": "UPDATE rows SET active = 0 WHERE kind = 'approval'",
    "a body edited": "UPDATE rows SET body = replace(body, 'lamp', 'sofa') WHERE kind = 'action'",
    "two bodies swapped": (
        "UPDATE rows SET body = (SELECT other.body FROM rows AS other WHERE other.kind = 'action'"
        " AND other.key <> rows.key LIMIT 1) WHERE kind = 'action'"
    ),
    "runs' rows deleted": "DELETE FROM rows WHERE kind = 'run'",
    "every row deleted": "DELETE FROM rows",
    "a row given to another run": "UPDATE rows SET run_id = 'nobody' WHERE kind = 'approval'",
    "a pause forged": "INSERT INTO rows VALUES ('pause', 'all', 'system', '', '{}', 0, NULL, 1, 1)",
    "an approval forged": "INSERT INTO rows VALUES ('approval', 'x', 'nobody', 'pending', '{}', 0, NULL, 1, 1)",
    "an index dropped": "DROP INDEX rows_status",
    "a trigger planted": "CREATE TRIGGER eat AFTER INSERT ON events BEGIN DELETE FROM events WHERE seq = new.seq; END",
    "another table made": "CREATE TABLE theirs (x)",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_edit_is_found(statement, amends, shell):
    """SQLite calls the file sound, so it is the control; `ledger verify` names what is wrong and fails."""
    assert shell(statement, "PRAGMA integrity_check") == [("ok",)]
    told = amends("ledger", "verify", "--json")
    assert told.code in {1, 8}
    assert told.problems


@pytest.mark.parametrize("name", ["an event edited, its hash left", "a whole run deleted", "a status edited"])
def test_after_an_edit_a_backup_brings_all_back(name, safe, refused_backup, amends, shell):
    """The damaged journal makes no backup that would be restored; the one from before comes back whole."""
    shell(EDITS[name])
    assert amends("ledger", "rebuild", "--json").code == 0
    assert amends("ledger", "verify").code == 1
    refused_backup()
    safe()


def test_a_rebuilt_ledger_reports_what_the_journal_lacks(amends, shell):
    """Made anew from a journal with an event missing, it says so each time, and holds every other event."""
    shell("DELETE FROM events WHERE seq = 6")
    for _ in range(2):
        told = amends("ledger", "rebuild", "--json")
        assert told.problems
    (count,) = shell("SELECT count(*) FROM events")[0]
    assert f'"events": {count}' in told.out
