"""Schema moves on a real database: what is done, found again, taken back, and refused."""

import re
import threading

import pytest

from amends.spi import NotSent, Refused
from amends_migrations.child import BrokeOff


def test_upgrade_is_done_found_and_taken_back(staging):
    """Revision and schema move together; the undo restores the fingerprint, and a separate read says so."""
    action = staging.action()
    prepared = action.prepare()
    assert action.probe().seen == "absent"
    assert prepared.content_digest == prepared.subject_digest != ""
    done = action.send()
    assert (done.reference, staging.version(), staging.columns()) == ("r2", ["r2"], ["id", "amount", "note"])
    assert action.probe().seen == "applied"
    assert action.rung() == "downgrade"
    action.undo()
    seen = action.verify()
    assert (seen.seen, seen.state["fingerprint_restored"]) == ("absent", True)
    assert (staging.version(), staging.columns()) == (["r1"], ["id", "amount"])


def test_undo_runs_the_recorded_file_when_the_checkout_lost_it(staging):
    """A checkout of an older revision took the file away between up and undo: the recorded text does it (M-08)."""
    action = staging.action("head")
    action.run()
    (staging.versions / "r2.py").unlink()
    action.undo()
    assert (action.verify().seen, staging.columns()) == ("absent", ["id", "amount"])


def test_file_that_changes_after_the_intent_does_not_change_what_runs(staging):
    """What was shown and authorized is what runs."""
    action = staging.action()
    action.prepare()
    staging.write("r2", "r1", 'op.drop_table("billing")', "pass")
    action.send()
    assert staging.columns() == ["id", "amount", "note"]


@pytest.mark.parametrize(
    ("back", "said"),
    [
        (None, "has no `downgrade`"),
        ("pass", "does nothing"),
        ('"""Nothing to do."""\nreturn', "does nothing"),
        ("raise NotImplementedError", "does nothing"),
        ('op.drop_index("ix_note", "billing")', "does not restore: column:billing.note"),
        ('op.drop_table("elsewhere")', "its inverse fails"),
    ],
)
def test_upgrade_without_a_way_back_is_refused(staging, back, said):
    """Missing, empty, partial and broken downs are found before anything is sent."""
    up = 'op.add_column("billing", sa.Column("note", sa.String(20)))\nop.create_index("ix_note", "billing", ["note"])'
    staging.write("r2", "r1", up, back)
    with pytest.raises(Refused, match=re.escape(said)) as refused:
        staging.action().prepare()
    assert refused.value.code == "no_inverse"
    assert staging.version() == ["r1"]


def test_upgrade_that_destroys_data_is_refused(staging):
    """No down brings rows back: an upgrade that drops them is not for this road."""
    staging.write(
        "r2", "r1", 'op.drop_column("billing", "amount")', 'op.add_column("billing", sa.Column("amount", sa.Integer))'
    )
    with pytest.raises(Refused, match="2 rows of"):
        staging.action().prepare()


def test_down_that_would_lose_data_goes_to_a_person(staging):
    """Somebody filled the new column: the ladder offers a person, and an undo sent all the same is refused."""
    action = staging.action()
    action.run()
    staging.sql("UPDATE billing SET note = 'call back' WHERE id = 1")
    seen = action.probe()
    assert (seen.seen, seen.state["at_risk"]) == ("applied", ["column:billing.note"])
    assert action.rung() == "person"
    with pytest.raises(Refused, match="1 rows of") as refused:
        action.capability.undo(action.call(rung="downgrade"))
    assert refused.value.code == "data_loss"
    assert staging.sql("SELECT note FROM billing WHERE id = 1") == [("call back",)]


def test_values_the_migration_brought_itself_are_nobodys_data(staging):
    """A default and a back-fill do not stand in the way of the down; one row more than those does."""
    staging.write(
        "r2",
        "r1",
        'op.add_column("billing", sa.Column("state", sa.String(9), server_default="open"))\n'
        'op.add_column("billing", sa.Column("cents", sa.Integer))\n'
        'op.execute("UPDATE billing SET cents = amount * 100")',
        'op.drop_column("billing", "cents")\nop.drop_column("billing", "state")',
    )
    action = staging.action()
    action.run()
    assert action.rung() == "downgrade"
    staging.sql("INSERT INTO billing (id, amount, cents) VALUES (3, 1, 100)")
    assert action.rung() == "person"
    staging.sql("DELETE FROM billing WHERE id = 3")
    action.undo()
    assert action.verify().seen == "absent"


@pytest.mark.parametrize(
    "later",
    ["CREATE VIEW notes AS SELECT note FROM billing", "CREATE VIEW notes AS SELECT id, note AS n FROM billing"],
)
def test_later_view_blocks_the_down_and_is_named(staging, later):
    """An object that came later is reported, never dropped along (M-11)."""
    action = staging.action()
    action.run()
    staging.sql(later)
    assert (action.probe().seen, action.rung()) == ("applied", "downgrade")
    with pytest.raises(Refused, match="notes") as refused:
        action.undo()
    assert refused.value.code == "blocked"
    assert staging.columns() == ["id", "amount", "note"]


def test_view_on_a_table_that_would_go_is_named(staging):
    """SQLite lets a table go and leaves its view dangling; that counts as blocked too, and so does a foreign key."""
    staging.write("r2", "r1", 'op.create_table("plan", sa.Column("id", sa.Integer))', 'op.drop_table("plan")')
    action = staging.action()
    action.run()
    staging.sql("CREATE VIEW plans AS SELECT id FROM plan")
    with pytest.raises(Refused, match="view `plans`"):
        action.undo()
    staging.sql("DROP VIEW plans", "CREATE TABLE line (id INTEGER, plan_id INTEGER REFERENCES plan (id))")
    with pytest.raises(Refused, match="table `line`"):
        action.undo()
    staging.sql("DROP TABLE line")
    action.undo()
    assert action.verify().seen == "absent"


def test_somebody_elses_table_makes_nothing_doubtful(staging):
    """On a shared database others work too: the action is judged by what it touches."""
    action = staging.action()
    action.run()
    staging.sql("CREATE TABLE theirs (id INTEGER)")
    assert action.probe().seen == "applied"
    action.undo()
    seen = action.verify()
    assert (seen.seen, seen.state["fingerprint_restored"]) == ("absent", False)
    assert staging.columns("theirs") == ["id"]


def test_later_revision_on_top_is_diverged(staging):
    """Another migration rests on ours: a person decides, nothing is taken from under it."""
    action = staging.action()
    action.run()
    staging.sql("UPDATE alembic_version SET version_num = 'r9'")
    assert action.probe().seen == "diverged"
    with pytest.raises(Refused, match="not as it was"):
        action.capability.undo(action.call(rung="downgrade"))


def test_undone_by_somebody_already(staging):
    """The effect is gone: compensated by looking; an undo sent all the same changes nothing."""
    action = staging.action()
    action.run()
    staging.sql(
        "DROP INDEX ix_note", "ALTER TABLE billing DROP COLUMN note", "UPDATE alembic_version SET version_num='r1'"
    )
    assert action.probe().seen == "absent"
    with pytest.raises(Refused) as refused:
        action.capability.undo(action.call(rung="downgrade"))
    assert refused.value.code == "moved"


def test_database_that_is_there_already_is_not_touched(staging):
    """Before equals after: success without a send, and nothing to undo."""
    first = staging.action()
    drilled = first.prepare().subject_digest
    first.send()
    second = staging.action()
    assert second.prepare().subject_digest == drilled
    done = second.send()
    assert done.effect["changed"] is False
    assert (second.probe().seen, second.verify().seen) == ("applied", "absent")
    second.capability.undo(second.call(rung="downgrade"))
    assert staging.version() == ["r2"]


def test_two_upgrades_at_once_have_one_winner(staging):
    """Both hold the same before-image; the lock lets one through, and the other looks again and is refused."""
    actions = [staging.action(), staging.action()]
    for action in actions:
        action.prepare()
    answers = []

    def run(action):
        try:
            action.send()
            answers.append("done")
        except Refused as error:
            answers.append(error.code)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["done", "moved"]
    assert staging.version() == ["r2"]


def test_own_earlier_attempt_is_not_taken_for_somebody_elses(staging):
    """The same action sent once more finds the database moved, perhaps by itself: no refusal, so a look decides."""
    action = staging.action()
    action.run()
    with pytest.raises(BrokeOff, match="an earlier attempt of this action may have moved it"):
        action.send()
    assert action.probe().seen == "applied"


def test_lock_that_is_held_means_not_sent(staging):
    """Somebody else migrates: nothing started here, a look in mid-migration proves nothing, the holder is named."""
    import fcntl

    staging.settings = {"lock_wait_seconds": 0.1}
    action = staging.action()
    action.prepare()
    with (staging.root / "staging.db.amends-lock").open("a+") as lock:
        lock.write("process 4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NotSent, match="process 4711"):
            action.send()
        seen = action.probe()
        assert (seen.seen, "process 4711" in seen.detail) == ("inconclusive", True)
    assert staging.version() == ["r1"]
    action.send()
    assert staging.version() == ["r2"]


def test_call_nobody_wants_any_more_is_not_sent(staging):
    """The last question comes when the lock is held and before the first statement."""
    action = staging.action()
    action.prepare()
    action.wanted = False
    with pytest.raises(NotSent):
        action.send()
    assert (staging.version(), staging.columns()) == (["r1"], ["id", "amount"])


def test_downgrade_and_its_undo(staging):
    """Going back on purpose is the same move in the other direction, refused where rows would go."""
    staging.action().run()
    action = staging.action("r1", up=False)
    action.run()
    assert (staging.version(), action.probe().seen, action.rung()) == (["r1"], "applied", "upgrade")
    action.undo()
    assert (staging.version(), action.verify().seen) == (["r2"], "absent")
    staging.sql("UPDATE billing SET note = 'x'")
    with pytest.raises(Refused, match="lose data"):
        staging.action("r1", up=False).prepare()


@pytest.mark.parametrize(("to", "code"), [("nowhere", "unknown_revision"), ("base", "no_path")])
def test_target_that_is_not_ahead_is_refused(staging, to, code):
    """A revision nobody has written, or one that lies behind, is no target of an upgrade."""
    with pytest.raises(Refused) as refused:
        staging.action(to).prepare()
    assert refused.value.code == code


def test_histories_that_are_not_one_line_are_refused(staging):
    """Two heads name nothing, a merge has no one way back, and a database at two revisions is at none."""
    staging.write("r3", "r1", 'op.create_table("x", sa.Column("id", sa.Integer))', 'op.drop_table("x")')
    with pytest.raises(Refused, match="2 heads: r2, r3") as refused:
        staging.action("head").prepare()
    assert refused.value.code == "many_heads"
    staging.write("r4", ("r2", "r3"), "pass", "pass")
    with pytest.raises(Refused, match="merges") as refused:
        staging.action("r4").prepare()
    assert refused.value.code == "not_linear"
    staging.sql("INSERT INTO alembic_version VALUES ('r3')")
    with pytest.raises(Refused, match="has 2 heads: r1, r3") as refused:
        staging.action("r2").prepare()
    assert refused.value.code == "many_heads"


def test_file_whose_predecessor_is_missing_is_refused(staging):
    """Files that do not hang together lead nowhere, and the missing revision is named."""
    (staging.versions / "r1.py").unlink()
    with pytest.raises(Refused, match="'r1', and no file") as refused:
        staging.action().prepare()
    assert refused.value.code == "no_path"


def test_migration_that_prints_logs_and_imports_is_served(staging):
    """Output of a migration does not disturb the answer, and its project's folder can be imported from."""
    (staging.root / "app").mkdir()
    (staging.root / "app" / "names.py").write_text("COLUMN = 'note'\n")
    staging.settings = {"python_path": ["app"]}
    staging.write(
        "r2",
        "r1",
        'print("x" * 200_000)\nop.add_column("billing", sa.Column(names.COLUMN, sa.String(20)))',
        'op.drop_column("billing", names.COLUMN)',
        extra="import names\n",
    )
    action = staging.action()
    action.run()
    assert staging.columns() == ["id", "amount", "note"]
    action.undo()
    assert action.verify().seen == "absent"


def test_secret_address_is_resolved_when_needed(staging):
    """The address behind a reference is used and not recorded."""
    staging.settings = {"url": "", "url_secret": "env:STAGING_URL"}
    action = staging.action()
    action.run()
    assert staging.version() == ["r2"]
    assert "sqlite:///" not in repr((action.before, action.allocated, action.done))
