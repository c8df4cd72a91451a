"""Around the journal: sealed files and the ledger file destroyed, a disk full at any write, a foreign writer."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from amends import Engine
from amends.core.errors import AmendsError, SystemUnavailable

FULL_AT_ANY_WRITE = """
import os, resource, sys
from amends import Engine
from amends.core.errors import AmendsError
shop = os.path.join(os.path.dirname(sys.argv[1]), "shop")
log = os.path.join(os.path.dirname(sys.argv[1]), ".amends", "journal.sqlite-wal")
def space(bytes): resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, resource.RLIM_INFINITY))
engine = Engine.open(sys.argv[1], mirror=False)
refused = sent = 0
runs = [engine.run(workflow="order", run_key=f"full-{step}", agent="coder") for step in range(20)]
for step, run in enumerate(runs):
    before = len(os.listdir(shop))
    space(os.stat(log).st_size + step * 4096)
    try:
        run.call("shop.reserve", {"name": f"full-{step}"})
    except AmendsError as error:
        assert error.hint, error
        refused += 1
    space(resource.RLIM_INFINITY)
    landed = len(os.listdir(shop)) - before
    intents = [stored for stored in engine.kit.journal.events(run.run_id) if stored.event.status == "running"]
    assert landed <= len(intents), (step, landed)
    sent += landed
    again = run.call("shop.reserve", {"name": f"full-{step}"})
    assert again.status.value in {"succeeded", "unknown"}, (step, again)
    assert len(os.listdir(shop)) - before == 1, step
print(refused > 0, sent > 0, engine.verify())
engine.close()
"""


@pytest.fixture
def sealed(project, amends, storage, monkeypatch):
    """The file into which the two committed runs went."""
    monkeypatch.setattr("amends.core.retention._horizons", lambda action: iter(()))
    assert amends("ledger", "seal", "--keep-days", "0").code == 0
    (file,) = (storage / "sealed").glob("*.parquet")
    return file


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(file):
    file.write_bytes(b"")


def flipped(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 8
    file.write_bytes(content)


def replaced(file):
    file.write_bytes(b"PAR1" + bytes(file.stat().st_size - 8) + b"PAR1")


def removed(file):
    file.unlink()


@pytest.mark.parametrize("damage", [cut, flipped, replaced, removed])
def test_a_sealed_file_that_is_not_what_was_sealed(damage, sealed, safe, refused_backup, amends, tmp_path):
    """Verify and rebuild name it each time, no backup is made of it, and the one from before has it."""
    damage(sealed)
    for command in ("verify", "rebuild", "verify"):
        told = amends("ledger", command, "--json")
        assert any(sealed.name in problem for problem in told.problems)
        assert told.code == (1 if command == "verify" else 0)
    assert amends("ledger", "backup", tmp_path / "none").code == 8
    refused_backup()
    safe()


@pytest.mark.parametrize("damage", [cut, emptied, flipped, removed])
def test_the_ledger_file_is_disposable(damage, project, amends, storage):
    """Destroyed or half-written it is made anew: every event, the journal's own hashes, and nothing left to report."""
    asked = ("sql", "SELECT seq, hash FROM events ORDER BY seq", "--json")
    before = amends(*asked).out
    damage((storage / "ledger.duckdb").resolve())
    amends("ledger", "verify")  # whether it is seen now depends on what was hit; it is never believed
    told = amends("ledger", "rebuild", "--json")
    assert (told.code, told.problems) == (0, [])
    assert amends(*asked).out == before
    assert amends("ledger", "verify").code == 0


def test_a_disk_full_at_any_write_sends_nothing_unrecorded(project):
    """The space ends one page later each time, through every write of a call: an effect is there only if its intent
    is; with space again the same call is made or known, once.
    """
    ended = subprocess.run(
        [sys.executable, "-c", FULL_AT_ANY_WRITE, str(project)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ended.stdout == "True True ()\n", ended.stderr[-2000:]


def test_a_program_that_writes_in_between_is_refused(project, journal_file, effects, amends):
    """It moves a head of a run that is open: the next call is not sent, and verify names the run."""
    with Engine.open(project, mirror=False) as engine:
        run = engine.run(workflow="order", run_key="open", agent="coder")
        run.call("shop.reserve", {"name": "first"})
        before = effects()
        with closing(sqlite3.connect(journal_file, isolation_level=None)) as theirs:
            theirs.execute("UPDATE streams SET head = head + 1 WHERE stream = ?", (run.run_id,))
        with pytest.raises(AmendsError) as refused:
            run.call("shop.reserve", {"name": "second"})
        assert refused.value.hint
        assert effects() == before
    told = amends("ledger", "verify", "--json")
    assert told.code == 1
    assert any(run.run_id in problem for problem in told.problems)


def test_a_file_replaced_in_use_sends_nothing(project, journal_file, effects, tmp_path, amends):
    """Somebody puts an older copy under a working engine, with other content: no call is made over it."""
    assert amends("ledger", "backup", tmp_path / "copy").code == 0
    with Engine.open(project, mirror=False) as engine:
        run = engine.run(workflow="order", run_key="open", agent="coder")
        before = effects()
        (tmp_path / "copy" / "journal.sqlite").replace(journal_file)
        with pytest.raises(SystemUnavailable, match="replaced"):
            run.call("shop.reserve", {"name": "second"})
        assert effects() == before
    assert json.loads(amends("ledger", "verify", "--json").out)
