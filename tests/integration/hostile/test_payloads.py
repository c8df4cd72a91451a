"""A journal that somebody writes into who knows how it is chained: sound hashes over events that mean nothing.

`tests/integration/attack` edits what is there; here whole events are forged, so that only their content is wrong.
"""

import json
import shutil
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amends import Engine, bootstrap
from amends.core.errors import AmendsError
from amends.ports.journal import Commit, Refused, RowKey, RowWrite, seal
from amends.surfaces.cli import app

DEEP = ("[" * 30_000, '{"a":' * 30_000, "[" * 500 + "]" * 500, '{"kind":"outcome_recorded","effect":' + '{"a":' * 2_000)
PAYLOADS = (
    "",
    "null",
    "{}",
    "[]",
    "7",
    "NaN",
    '"text"',
    "{",
    '{"kind":"nothing"}',
    '{"kind":7}',
    '{"kind":"run_moved"}',
    "\u0000",
    '{"kind":"run_moved","to":"committed","kind":"run_moved","to":"open"}',
    '{"kind":"run_moved","to":"committed"}',
    '{"kind":"intent_recorded","attempt":1e999}',
    '{"kind":"run_opened"}',
    '{"kind":"\\ud800"}',
    "9" * 6_000,
    *DEEP,
)
SOUND = '{"kind":"run_moved","to":"recovering","reason":"told to","by":""}'


@pytest.fixture(scope="module")
def original(shop_project):
    """A project whose engine was closed over two open runs with one effect each. Tests take copies."""
    with Engine.open(shop_project) as engine:
        for key in ("good", "bad"):
            engine.run(workflow="order", run_key=key, agent="coder").call("shop.reserve", {"name": f"lamp-{key}"})
    return shop_project


def forged(path, payload, body, kind="run_moved"):
    """One more event of run `bad`, chained as the journal's own, with `payload`; and its row, unless `body` is None."""
    with closing(bootstrap.journal_of(bootstrap.settings_of(path))) as journal:
        [run] = [row for row in journal.rows("run") if json.loads(row.body)["run_key"] == "bad"]
        last = journal.events(run.key.key)[-1].event
        event = replace(last, event_id=f"forged-{last.event_id}", run_seq=last.run_seq + 1, payload=payload, kind=kind)
        kept = json.loads(run.body) | {"head": last.run_seq + 1}
        written = RowWrite(
            key=RowKey("run", run.key.key),
            run_id=run.run_id,
            status=run.status,
            body=json.dumps(kept) if body is None else body,
            epoch=run.epoch,
            due_us=run.due_us,
            active=run.active,
        )
        answer = journal.commit(
            Commit(stream=run.key.key, expected_head=last.run_seq, events=[seal(event)], rows=[written])
        )
        assert not isinstance(answer, Refused)


def looked_at(path):
    """What the engine says and does over such a journal; nothing of it may raise but our own errors."""
    with Engine.open(path, mirror=False) as engine:
        recovered = engine.recover(wait_seconds=10)
        problems = engine.verify()
        events = engine.sql("SELECT count(*) FROM events").rows[0][0]
        try:
            exported = len(list(engine.export()))
        except AmendsError as error:
            exported = error.message
        return {state.run.run_key: state.run.status.value for state in recovered}, problems, events, exported


def test_any_payload_is_told_and_skipped_by_nobody(original, mutated, tmp_path_factory):
    """Verify reports it, the ledger holds it, the other run is recovered, and nothing ends."""
    base = tmp_path_factory.mktemp("copies")
    counts = {"told": 0, "taken": 0}
    number = iter(range(1_000_000))

    @settings(max_examples=max(12, settings.default.max_examples // 16), suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(PAYLOADS) | mutated(SOUND), st.none() | st.sampled_from(PAYLOADS))
    def fuzz(payload, body):
        copy = base / str(next(number))
        shutil.copytree(original.parent, copy, symlinks=True)
        try:
            forged(copy / original.name, payload, body)
        except AmendsError:
            shutil.rmtree(copy)
            return  # the journal does not take what it cannot digest
        recovered, problems, events, _ = looked_at(copy / original.name)
        assert recovered.get("good") == "recovered"
        assert not (copy / "shop" / "reservation-lamp-good").exists()
        assert events > 0
        counts["told" if problems else "taken"] += 1
        shutil.rmtree(copy)

    fuzz()
    assert counts["told"] > 2, counts


@pytest.mark.parametrize("where", ["payload", "row"])
@pytest.mark.parametrize("deep", DEEP, ids=range(len(DEEP)))
def test_what_nests_too_deeply_ends_no_reader(original, tmp_path, deep, where):
    """The plain reader runs out of stack on these, which no `except ValueError` catches."""
    with pytest.raises((RecursionError, ValueError)):
        json.loads(deep[:-1])
    shutil.copytree(original.parent, tmp_path / "copy", symlinks=True)
    path = tmp_path / "copy" / original.name
    forged(path, *((deep, None) if where == "payload" else (SOUND, deep)))
    recovered, problems, _, _ = looked_at(path)
    assert recovered.get("good") == "recovered"
    assert problems


@pytest.mark.parametrize("command", [("policy", "history"), ("policy", "list"), ("ledger", "verify"), ("runs", "list")])
def test_a_command_over_a_forged_event_ends_in_our_words(original, tmp_path, capsys, command):
    """A policy's event that is none was a traceback."""
    shutil.copytree(original.parent, tmp_path / "copy", symlinks=True)
    path = tmp_path / "copy" / original.name
    forged(path, DEEP[0], None, kind="bundle_recorded")
    app.run(["-c", str(path), *command])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert told.out + told.err
