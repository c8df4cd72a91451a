"""Sealing, backup, restore and export from the command line, over a real project."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from amends import Conflict, Engine
from amends.ports.chain import ends_of
from amends.ports.lines import from_line


@pytest.fixture
def sealed(amends, quick, committed):
    """The committed run, sealed."""
    told = amends("ledger", "seal", "--keep-days", "0", "--json").json
    return told["sealed"][0] if told["sealed"] else pytest.fail(str(told))


@pytest.fixture
def quick(monkeypatch):
    """The shop's calls have no horizon beyond their deadline, which is not over yet: take it as over."""
    monkeypatch.setattr("amends.core.retention._horizons", lambda action: iter(()))


@pytest.fixture
def folder(project):
    return project.parent / ".amends"


def test_nothing_young_is_sealed(amends, committed):
    """Ninety days, unless amends.toml says otherwise."""
    assert amends("ledger", "seal").out == "0 runs (0 events) sealed in 0 files\n"


def test_a_call_in_its_horizon_is_not_sealed_either(amends, committed):
    """Even if nothing is kept longer than it must be: something could still land."""
    assert amends("ledger", "seal", "--keep-days", "0", "--json").json == {"sealed": [], "left": {}}


def test_a_sealed_run_is_out_of_the_list_and_still_shown(amends, engine, sealed, committed, folder):
    """By its key and by its id; its key is taken for ever; everything verifies."""
    assert (folder / "sealed" / sealed["file"]).is_file()
    assert amends("runs", "list", "--json").json["runs"] == []
    shown = amends("runs", "show", "order/good", "--json").json
    assert (shown["run_id"], shown["sealed"]) == (committed, sealed["file"])
    assert amends("runs", "show", committed, "--json").json == shown
    assert shown["exists"][0]["capability"] == "shop.reserve"
    with pytest.raises(Conflict, match="never changes again"):
        engine.run(workflow="order", run_key="good", agent="coder")
    assert amends("ledger", "verify", "--json").json["problems"] == []
    assert amends("sql", "SELECT count(*) FROM actions", "--json").json["rows"] == [{"count_star()": 1}]


def test_a_damaged_sealed_file_fails_the_verification(amends, sealed, folder):
    """Every byte is read, and the file is named."""
    path = folder / "sealed" / sealed["file"]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    (problem,) = amends("ledger", "verify", "--json", code=1).json["problems"]
    assert sealed["file"] in problem
    assert "differs from its hash" in problem


def test_an_export_is_lines_whose_chains_hold(amends, sealed, committed, waiting):
    """All of it, or one run; sealed or not."""
    lines = amends("ledger", "export").out.splitlines()
    stored = list(ends_of(map(from_line, lines), {}))
    assert {committed, waiting, "system"} <= {one.event.run_id for one in stored}
    assert [one.seq for one in stored] == list(range(1, len(stored) + 1))
    for name in (committed, "order/good", waiting, "system"):
        found = [json.loads(line)["run_seq"] for line in amends("ledger", "export", name).out.splitlines()]
        assert found == list(range(1, len(found) + 1))
    assert amends("ledger", "export", "nothing", code=3)


def test_an_export_overwrites_no_file(amends, committed, tmp_path):
    """A new one is written whole."""
    path = tmp_path / "out.jsonl"
    told = amends("ledger", "export", "--output", path, "--json").json
    assert told == {"file": str(path), "events": len(path.read_text().splitlines())}
    assert "exists already" in amends("ledger", "export", "--output", path, code=2).err


def test_a_backup_comes_back_whole(amends, engine, project, folder, sealed, waiting, tmp_path):
    """Journal, sealed files and key; the ledger is made anew, row by row the same; runs go on."""
    before = amends("sql", "SELECT seq, hash FROM events ORDER BY seq", "--json").json["rows"]
    generation = engine.kit.journal.info().generation
    amends("ledger", "backup", tmp_path / "copy")
    engine.close()
    folder.rename(tmp_path / "lost")
    told = amends("ledger", "restore", tmp_path / "copy", "--json").json
    assert (told["folder"], told["events"]) == (str(folder), len(before))
    assert amends("ledger", "verify", "--json").json["problems"] == []
    assert amends("sql", "SELECT seq, hash FROM events ORDER BY seq", "--json").json["rows"] == before
    assert amends("runs", "show", "order/good", "--json").json["sealed"] == sealed["file"]
    assert (folder / "digest.key").read_bytes() == (tmp_path / "lost" / "digest.key").read_bytes()
    with Engine.open(project) as again:
        assert again.kit.journal.info().generation != generation
        (asked,) = again.approvals()
        again.approve(asked.approval_id, by="maya")
        assert again.recover(waiting)[0].run.status == "committed"


def test_a_living_journal_is_never_overwritten(amends, committed, folder, tmp_path):
    """Whatever is in the folder: it must be moved away first."""
    amends("ledger", "backup", tmp_path / "copy")
    before = sorted(path.name for path in folder.iterdir())
    assert "is not empty" in amends("ledger", "restore", tmp_path / "copy", code=5).err
    assert sorted(path.name for path in folder.iterdir()) == before


def tampered_event(copy):
    with closing(sqlite3.connect(copy / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE events SET tenant = 'mallory' WHERE seq = (SELECT max(seq) FROM events)")


def tampered_row(copy):
    with closing(sqlite3.connect(copy / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE rows SET body = replace(body, 'lamp', 'sofa') WHERE kind = 'action'")


def without_sealed_file(copy):
    shutil.rmtree(copy / "sealed")


def without_key(copy):
    (copy / "digest.key").unlink()


def no_journal(copy):
    (copy / "journal.sqlite").write_bytes(b"this is no database" * 99)


def newer(copy):
    with closing(sqlite3.connect(copy / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")


@pytest.mark.parametrize(
    ("damage", "said", "code"),
    [
        (tampered_event, "differs from its digest", 8),
        (tampered_row, "not what its events say", 8),
        (without_sealed_file, "is missing", 8),
        (without_key, "is no backup", 2),
        (no_journal, "journal.sqlite", 8),
        (newer, "ledger format `99`", 2),
    ],
)
def test_a_backup_that_is_not_sound_is_not_taken(damage, said, code, amends, engine, sealed, waiting, folder, tmp_path):
    """It is verified first, all of it; nothing appears in the folder, and nothing is left beside it."""
    amends("ledger", "backup", tmp_path / "copy")
    engine.close()
    folder.rename(tmp_path / "lost")
    damage(tmp_path / "copy")
    assert said in amends("ledger", "restore", tmp_path / "copy", code=code).err
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".amends")] == []


def test_what_a_killed_restore_left_is_in_nobodys_way(amends, engine, committed, folder, tmp_path):
    """The next one starts over."""
    amends("ledger", "backup", tmp_path / "copy")
    engine.close()
    folder.rename(tmp_path / "lost")
    staging = folder.with_name(".amends.restoring")
    staging.mkdir()
    (staging / "journal.sqlite").write_text("half")
    folder.mkdir()
    amends("ledger", "restore", tmp_path / "copy")
    assert not staging.exists()
    assert amends("ledger", "verify", "--json").json["ok"]


def test_a_backup_of_a_damaged_archive_is_refused(amends, sealed, folder, tmp_path):
    """Better no backup than one that cannot be restored."""
    (folder / "sealed" / sealed["file"]).unlink()
    assert "is missing" in amends("ledger", "backup", tmp_path / "copy", code=8).err


def test_the_format_is_the_present_one(amends, committed):
    """Nothing to migrate yet."""
    assert "nothing to do" in amends("journal", "migrate").out
