"""The audit of a capability: every question answered from its contract, or a blank that can be seen."""

from __future__ import annotations

import pytest

from amends.core.audit import audit_line
from amends.core.contract import Alternative, Effect, Keying, ProbeRule
from amends.core.status import Outcome
from amends.testing.contracts import corrector, irreversible, reversible

READ = reversible(
    effect=Effect(kind="item", system="partner", resource="item:{name}", changes="none"), compensation=(), probe=None
)
LADDER = reversible(
    compensation=(
        Alternative(name="void", when={"state": ("open", "held")}, safe_when=(Outcome.SUCCEEDED, Outcome.UNKNOWN)),
        Alternative(name="person", undo="escalate"),
    )
)


def line(contract, permits=None, proof=""):
    allowed = {contract.capability: ["p1"], f"{contract.capability}.correct": ["p2"]}
    return audit_line(contract, allowed if permits is None else permits, proof)


def test_a_complete_contract_has_no_blank():
    """All twelve answers, as a person reads them."""
    assert line(reversible()).as_dict() == {
        "capability": "partner.reserve",
        "effect": "creates reservation",
        "lives": "partner: reservation:{name}",
        "readers": "machine: the partner's API",
        "undo": "cancel",
        "undo_cost": "none",
        "verify": "read by id; absence final after 10 s",
        "keying": "keyed by Idempotency-Key for 86400 s",
        "permitted_outcomes": "cancel: succeeded",
        "authorized_by": "call: p1; correct: p2",
        "queue": "recovery",
        "proof": "not needed",
        "blanks": [],
    }


@pytest.mark.parametrize(
    ("contract", "column", "words"),
    [
        (READ, "effect", "nothing: it only reads"),
        (READ, "undo", "not needed"),
        (READ.model_copy(update={"undo_cost": ""}), "undo_cost", "none"),
        (READ, "verify", "not needed"),
        (READ, "keying", "not needed"),
        (READ, "permitted_outcomes", "not needed"),
        (LADDER, "undo", "void when state in ['open', 'held'] → person"),
        (LADDER, "permitted_outcomes", "void: succeeded, unknown; person: succeeded"),
        (irreversible(), "undo", "none: it leaves through the outbox (on_success)"),
        (irreversible(mode="gate"), "undo", "none: it leaves through the gate, approved by a person"),
        (irreversible(undo_cost=""), "undo_cost", "cannot be undone"),
        (irreversible(), "permitted_outcomes", "none: never undone"),
        (irreversible(probe=None), "verify", "a person looks"),
        (corrector(), "undo", "none: a correction stays"),
        (corrector(), "permitted_outcomes", "not needed"),
        (reversible(keying=Keying(kind="probeable")), "keying", "found again by its probe"),
        (reversible(keying=Keying(kind="blind")), "keying", "blind: an unknown outcome goes to a person"),
        (reversible(keying=Keying(kind="keyed")), "keying", "keyed by the request for 86400 s"),
        (
            reversible(probe=ProbeRule(strength="search", complete=False)),
            "verify",
            "read search, not every page; absence proves nothing",
        ),
    ],
)
def test_each_answer_in_words(contract, column, words):
    """One column, one kind of contract."""
    assert getattr(line(contract), column) == words


@pytest.mark.parametrize(
    ("contract", "permits", "blank"),
    [
        (reversible(undo_cost=""), None, "undo_cost"),
        (reversible(probe=None), None, "verify"),
        (reversible(), {}, "authorized_by"),
        (reversible(), {"partner.reserve": []}, "authorized_by"),
        (corrector(), {"jira.correct": ["p1"]}, "authorized_by"),
        (reversible(needs_drill=True), None, "proof"),
    ],
)
def test_what_nobody_answered_is_blank(contract, permits, blank):
    """Exactly that column; `--ready` fails on it."""
    assert line(contract, permits).blanks == (blank,)


def test_a_certificate_is_the_proof():
    """In its own words, needed or not."""
    assert line(reversible(needs_drill=True), proof="drilled on Monday").proof == "drilled on Monday"
    assert line(reversible(), proof="drilled on Monday").proof == "drilled on Monday"
