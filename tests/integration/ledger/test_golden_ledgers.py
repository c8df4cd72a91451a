"""Ledgers of every format there ever was are read for ever: each event decodes, each run folds to where it stood."""

import json
from pathlib import Path
from typing import get_args

import pytest

from amends.backends.duckdb_ledger.mirror import COLUMNS
from amends.core import fold
from amends.core.events import LEDGER_FORMAT, SYSTEM_STREAM, Body, decode
from amends.ports.chain import ends_of
from amends.ports.lines import from_line, to_line
from amends.runtime.replaying import event_of

FOLDER = Path(__file__).parents[2] / "golden" / "ledgers"
LEDGERS = sorted(FOLDER.glob("format-*.jsonl"))


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def kinds_of(path):
    return {json.loads(line)["kind"] for line in lines_of(path)}


def test_every_format_has_a_golden_ledger():
    """One file a format, none missing."""
    assert [path.stem for path in LEDGERS] == [f"format-{n}" for n in range(1, LEDGER_FORMAT + 1)]


def test_every_kind_of_event_is_in_a_golden_ledger():
    """A new kind is written into the golden ledger of its format (`tests/golden/ledgers/make.py`)."""
    kinds = {body.model_fields["kind"].default for body in get_args(get_args(Body)[0])}
    assert kinds - set().union(*map(kinds_of, LEDGERS)) == set()


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_a_golden_ledger_is_what_was_written(path):
    """Digests and chains are computed today as they were then, and a line comes back as the same line."""
    lines = lines_of(path)
    stored = list(ends_of(map(from_line, lines), {}))
    assert [to_line(one) for one in stored] == lines


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_a_golden_ledger_folds_to_what_it_was(path):
    """Every run, action, approval and escalation stands where the engine that wrote it left it."""
    ends = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    runs = {}
    for stored in map(from_line, lines_of(path)):
        if stored.event.run_id == SYSTEM_STREAM:
            assert decode(stored.event.payload, "golden").kind == stored.event.kind
        else:
            runs.setdefault(stored.event.run_id, []).append(stored)
    assert {run_id: end_of(fold.replay(map(event_of, events))) for run_id, events in runs.items()} == ends


def end_of(state):
    run = state.run
    return {
        "run": [run.run_key, run.status, run.epoch, run.head],
        "actions": {
            a.action_id: [a.kind, a.capability, a.status, a.outcome, a.attempt, a.compensated_how]
            for a in state.actions.values()
        },
        "approvals": {a.approval_id: a.status for a in state.approvals.values()},
        "escalations": {i.escalation_id: [i.cause, i.status, i.choice] for i in state.escalations.values()},
    }


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_a_golden_ledger_is_mirrored_without_a_problem(path, events, ledger):
    """The columns beside the payload fit the views of today."""
    events.stored[:] = map(from_line, lines_of(path))
    assert ledger.refresh().problems == ()
    asked = f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY seq"
    assert [list(row) for row in ledger.query(asked).rows] == [
        list(json.loads(line).values()) for line in lines_of(path)
    ]
    runs = ledger.query("SELECT run_id, status FROM runs").rows
    ends = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert dict(runs) == {run_id: end["run"][1] for run_id, end in ends.items()}
