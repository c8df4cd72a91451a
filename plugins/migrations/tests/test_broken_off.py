"""Migrations that stop in the middle: what is left is named, and never guessed away."""

import os
import signal
import subprocess
import sys

import pytest

from amends.spi import Refused
from amends.spi.process import TimeLimit
from amends_migrations.child import BrokeOff

ADD = 'op.add_column("billing", sa.Column("note", sa.String(20)))'
DROP = 'op.drop_column("billing", "note")'
ROWS = 'op.get_bind().exec_driver_sql("SELECT count(*) FROM billing").scalar()'


def test_runner_killed_in_the_middle_leaves_half_a_migration(staging):
    """SQLite keeps each statement: the column is there, the version is not. Diverged, with the parts named."""
    staging.write(
        "r2",
        "r1",
        f'{ADD}\nif op.get_bind().exec_driver_sql("SELECT count(*) FROM billing").scalar():\n'
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        'op.create_table("plan", sa.Column("id", sa.Integer))',
        f'op.drop_table("plan")\n{DROP}',
        extra="import os, signal\n",
    )
    action = staging.action()
    action.prepare()
    with pytest.raises(BrokeOff):
        action.send()
    seen = action.probe()
    assert (seen.seen, seen.parts, staging.version()) == ("diverged", ("column:billing.note",), ["r1"])
    assert "half applied" in seen.detail
    with pytest.raises(BrokeOff, match="not as it was"):
        action.send()
    with pytest.raises(Refused, match="not as it was"):
        action.capability.undo(action.call(rung="downgrade"))


def test_error_after_the_first_statement_is_unknown(staging):
    """A statement that fails on real rows after another succeeded: no refusal, because something is there."""
    staging.write(
        "r2",
        "r1",
        f'{ADD}\nop.execute("INSERT INTO billing (id) SELECT id FROM billing")',
        DROP,
    )
    action = staging.action()
    action.prepare()
    with pytest.raises(BrokeOff, match="UNIQUE"):
        action.send()
    assert action.probe().seen == "diverged"


def test_error_before_anything_changed_is_a_refusal(staging):
    """The runner looked again under the lock and found all as before: authoritative."""
    staging.write("r2", "r1", f'op.execute("INSERT INTO billing (id) SELECT id FROM billing")\n{ADD}', DROP)
    action = staging.action()
    action.prepare()
    with pytest.raises(Refused, match="left nothing behind"):
        action.send()
    assert action.probe().seen == "absent"


def test_time_limit_kills_the_runner_and_proves_nothing(staging):
    """A migration that hangs is ended with its process group; the database decides what is known."""
    staging.write(
        "r2",
        "r1",
        f'{ADD}\nif op.get_bind().exec_driver_sql("SELECT count(*) FROM billing").scalar():\n    time.sleep(60)',
        DROP,
        extra="import time\n",
    )
    action = staging.action()
    action.prepare()
    action.timeout_seconds = 5.0
    with pytest.raises(TimeLimit):
        action.send()
    assert action.probe().seen == "diverged"


def test_batch_table_left_behind_is_named(staging):
    """A batch operation killed after it made its new table: no column moved, and yet it is not as before."""
    staging.write(
        "r2",
        "r1",
        f'with op.batch_alter_table("billing", recreate="always") as batch:\n'
        f'    batch.add_column(sa.Column("note", sa.String(20)))\n'
        f"    if {ROWS}:\n"
        '        op.execute("CREATE TABLE _alembic_tmp_billing (id INTEGER)")\n'
        "        os.kill(os.getpid(), signal.SIGKILL)",
        'with op.batch_alter_table("billing", recreate="always") as batch:\n    batch.drop_column("note")',
        extra="import os, signal\n",
    )
    action = staging.action()
    action.prepare()
    with pytest.raises(BrokeOff):
        action.send()
    seen = action.probe()
    assert (seen.seen, seen.state["extent"], seen.parts) == ("diverged", "partial", ())
    assert seen.state["leftovers"] == ["table:_alembic_tmp_billing"]
    with pytest.raises(Refused, match="half-made by an earlier migration: table:_alembic_tmp_billing"):
        staging.action().prepare()
    staging.sql("DROP TABLE _alembic_tmp_billing")
    assert action.probe().seen == "absent"


def test_ended_without_an_error_and_not_as_rehearsed_is_unknown(staging):
    """A migration that does less on real rows than on the empty copy reports success; the schema does not."""
    staging.write("r2", "r1", f"if not {ROWS}:\n    {ADD}", f"if not {ROWS}:\n    {DROP}")
    action = staging.action()
    action.prepare()
    with pytest.raises(BrokeOff, match="ended without an error, but"):
        action.send()
    assert (action.probe().seen, action.probe().state["extent"]) == ("diverged", "none")


@pytest.mark.crash
def test_runner_ends_with_an_engine_that_dies_before_saying_go(staging):
    """The engine dies with the runner holding the lock and ready: nothing runs, and the lock is free again."""
    action = staging.action()
    action.prepare()
    fifo = staging.root / "fifo"
    os.mkfifo(fifo)
    code = (
        "import json,sys,time\nfrom amends_migrations import child\n"
        "def ask():\n open(sys.argv[2],'w').write('ready'); time.sleep(60)\n"
        "child.carry_out(json.loads(sys.argv[1]), timeout_seconds=60, still_wanted=ask)\n"
    )
    import json

    request = action.capability._request("move", action.question()) | {
        "steps": action.allocated["steps"],
        "from": "r1",
        "to": "r2",
        "before": action.before["items"],
        "after": action.allocated["items"],
        "rows": {},
        "marker": "amends action-1",
        "note": "",
        "limit_seconds": 60,
    }
    engine = subprocess.Popen([sys.executable, "-c", code, json.dumps(request), str(fifo)])
    try:
        assert fifo.read_text() == "ready"
    finally:
        engine.send_signal(signal.SIGKILL)
        engine.wait(10)
    action.send()
    assert (staging.version(), action.probe().seen) == (["r2"], "applied")


def test_database_that_cannot_be_read_is_inconclusive(staging):
    """A missing file proves nothing, and none is created by looking."""
    action = staging.action()
    action.run()
    staging.file.rename(staging.root / "moved.db")
    assert action.probe().seen == "inconclusive"
    assert not staging.file.exists()
