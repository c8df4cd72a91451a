"""What answers, exceptions, probes, call-backs and people prove, and what they do not (rules 3, 4 and 7)."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from amends.core import outcomes
from amends.core.contract import ProbeRule, Reference
from amends.core.evidence import Observation
from amends.core.status import ActionStatus, Outcome
from amends.testing.contracts import reversible
from amends.testing.run_builder import RunBuilder

GOLDEN = Path(__file__).parents[2] / "golden" / "outcomes.txt"
SECOND = 1_000_000
TIMEOUT_S = 30  # of the calls below: the deadline is so long after the intent
FINAL_AFTER_S = 10  # absence is final so long after the deadline
STRENGTHS = ("id", "list", "search")


def contract(strength="id", *, complete=True, final: float | None = FINAL_AFTER_S, **changes):
    probe = ProbeRule(strength=strength, complete=complete, absent_final_after_seconds=final)
    return reversible(probe=probe, **changes)


def answer(contract, *, reference="ref-1", parts=()):
    return outcomes.answered(
        contract, at_us=1, reference=reference, effect={"id": "x"}, output={"told": 1}, after={"on": True}, parts=parts
    )


def unknown(used=None) -> RunBuilder:
    return RunBuilder().planned("a", used or contract()).intent().later(1).lost()


def look(run: RunBuilder, seen="applied", *, looked_us=None, dead_since_us=None, **observation):
    return outcomes.observed(
        run.action("a"),
        Observation(seen=seen, **observation),
        looked_us=run.now_us if looked_us is None else looked_us,
        at_us=run.now_us,
        dead_since_us=dead_since_us,
    )


def of(body):
    return None if body is None else (body.outcome, body.evidence.strength, body.evidence.code)


# --- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "given", "code"),
    [
        ({}, {}, "answered"),
        ({"confirm": "probe"}, {}, "answer_is_no_proof"),
        ({"reference": Reference(field="id", pattern=r"[0-9]+")}, {"reference": "ref-1"}, "reference_invalid"),
        ({"reference": Reference(field="id", pattern=r"[0-9]+")}, {"reference": ""}, "reference_invalid"),
        ({"reference": Reference(field="id", pattern=r"[0-9]+")}, {"reference": "17\n"}, "reference_invalid"),
        ({"reference": Reference(field="id", pattern=r"[0-9]+")}, {"reference": "17"}, "answered"),
        ({"parts": ("row", "event")}, {"parts": ("row",)}, "parts_missing"),
        ({"parts": ("row", "event")}, {"parts": ("event", "row", "more")}, "answered"),
    ],
)
def test_an_answer_is_proof_only_where_the_contract_says_so(changes, given, code):
    """Response is proof, reference has the declared shape, every part is there: else a probe decides."""
    body = answer(contract(**changes), **given)
    proof = code == "answered"
    assert of(body) == (
        Outcome.SUCCEEDED if proof else Outcome.UNKNOWN,
        "authoritative" if proof else "weak",
        code,
    )
    assert (body.error is None) is proof
    assert body.effect == {"id": "x"}
    if code == "reference_invalid":
        assert body.reference == ""


@pytest.mark.parametrize(
    ("body", "outcome", "strength", "resendable"),
    [
        (outcomes.not_sent(at_us=1, code="refused", detail="d"), Outcome.FAILED, "proof", True),
        (
            outcomes.refused(at_us=1, code="x", detail="d", again=False, retry_after_seconds=None),
            Outcome.FAILED,
            "proof",
            False,
        ),
        (
            outcomes.refused(at_us=1, code="x", detail="d", again=True, retry_after_seconds=3),
            Outcome.FAILED,
            "proof",
            True,
        ),
        (outcomes.failed_before(at_us=1, code="prepare_failed", detail="d"), Outcome.FAILED, "proof", False),
        (outcomes.lost(at_us=1, code="timeout", detail="d"), Outcome.UNKNOWN, "weak", False),
        (outcomes.owner_lost(at_us=1, detail="d"), Outcome.UNKNOWN, "weak", False),
        (outcomes.accepted(at_us=1, operation="op-1", effect={}, reference="r"), Outcome.UNKNOWN, "weak", False),
    ],
    ids=["not sent", "refused", "refused, again", "failed before", "lost", "owner lost", "accepted"],
)
def test_each_way_a_call_ends_is_classified(body, outcome, strength, resendable):
    """Failed needs proof; whatever is not proven is unknown; re-sending needs a proof that nothing is stored."""
    assert (body.outcome, body.evidence.strength) == (outcome, strength)
    assert body.error is not None
    assert body.error.resendable is resendable


def test_what_is_recorded_of_each_way_is_what_was_agreed():
    """Codes, strengths and texts stand in ledgers and in queries: whoever changes one reads the difference."""
    holder = RunBuilder(run_id="run-0").planned("a").intent().succeeded(reference="ref-9", effect={"id": "y"})
    absent, parts = unknown().later(100), unknown(contract(parts=("row", "event"), partial_inverse=True))
    contradicted = unknown().later(100).probed("absent")
    heard = unknown().late(late(Outcome.SUCCEEDED))
    again = outcomes.refused(at_us=1, code="x", detail="d", again=True, retry_after_seconds=3)
    bodies = {
        "answered": answer(reversible(parts=("row",)), parts=("row",)),
        "answered in doubt": answer(reversible(confirm="probe")),
        "accepted": outcomes.accepted(at_us=1, operation="op-1", effect={"id": "x"}, reference="r"),
        "not sent": outcomes.not_sent(at_us=1, code="connection_refused", detail="d"),
        "refused": again,
        "failed before": outcomes.failed_before(at_us=1, code="prepare_failed", detail="d"),
        "lost": outcomes.lost(at_us=1, code="timeout", detail="d"),
        "owner lost": outcomes.owner_lost(at_us=1, detail="d"),
        "adopted": outcomes.adopted(holder.action("a").model_copy(update={"after_image": {"on": True}}), at_us=5),
        "seen": look(unknown(), "many", effect={"id": "x"}, state={"on": True}, reference="r"),
        "seen in parts": look(parts, parts=("row",)),
        "absent": look(absent, "absent", detail="not in the list"),
        "contradicted": look(contradicted),
        "heard of late": outcomes.folded_late(heard.action("a"), at_us=1),
        "a person": outcomes.said_by_person(happened=True, at_us=1, by="Maya Lind", evidence="saw it", reference="r"),
        "a person, shortly": outcomes.said_by_person(happened=False, at_us=1, by="Maya Lind", evidence="looked"),
        "to a stale owner": outcomes.late(answer(reversible())),
    }
    lines = [f"{name}: {body.model_dump_json(exclude={'kind'})}" for name, body in bodies.items()]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_an_accepted_call_keeps_its_operation():
    """202: the probe asks the operation until it is final."""
    body = outcomes.accepted(at_us=1, operation="op-1", effect={"id": "x"}, reference="r")
    assert body.effect == {"id": "x", "operation": "op-1"}


def test_an_adopted_effect_carries_what_the_holder_knows():
    """It says whose it is."""
    holder = RunBuilder(run_id="run-0").planned("a").intent().succeeded(reference="ref-9").action("a")
    body = outcomes.adopted(holder, at_us=5)
    assert (body.outcome, body.evidence.source, body.evidence.detail, body.reference) == (
        Outcome.SUCCEEDED,
        "adopted",
        "run-0",
        "ref-9",
    )


@pytest.mark.parametrize(("happened", "outcome"), [(True, Outcome.SUCCEEDED), (False, Outcome.FAILED)])
def test_a_persons_word_settles_with_their_name(happened, outcome):
    """Who said it, and on what evidence (rule 31)."""
    body = outcomes.said_by_person(happened=happened, at_us=1, by="Maya Lind", evidence="saw it", reference="r")
    assert (body.outcome, body.evidence.by, body.evidence.detail) == (outcome, "Maya Lind", "saw it")


# --- looking ----------------------------------------------------------------------------------------------

LOOKS = list(
    product(
        STRENGTHS,
        (True, False),
        (None, FINAL_AFTER_S),
        (False, True),
        ("early", "final"),
        ("applied", "many", "absent", "diverged", "inconclusive"),
    )
)


@pytest.mark.parametrize(("strength", "complete", "final", "dead", "when", "seen"), LOOKS)
def test_what_a_look_proves_about_an_unknown(strength, complete, final, dead, when, seen):
    """The whole table: presence proves success; absence proves failure only from an authoritative, complete read past
    `final_at`; everything else proves nothing."""
    run = unknown(contract(strength, complete=complete, final=final))
    dead_since_us = run.now_us if dead else None
    start_s = 0 if dead else TIMEOUT_S - 1
    run.later(start_s + FINAL_AFTER_S - (1 if when == "early" else 0))
    proven = look(run, seen, dead_since_us=dead_since_us)
    can_be_final = strength != "search" and complete and final is not None
    if seen in {"applied", "many"}:
        assert of(proven) == (Outcome.SUCCEEDED, "authoritative", "probe_applied")
    elif seen == "absent" and can_be_final and when == "final":
        assert of(proven) == (Outcome.FAILED, "authoritative", "probe_absent")
        assert proven.error.resendable
    else:
        assert proven is None


def test_an_owner_proven_dead_before_the_send_proves_nothing_about_it():
    """A former owner's death says nothing about a call its successor made."""
    run = unknown()
    attempt_us = run.action("a").attempt_us
    deadline_us = run.action("a").deadline_us
    final = outcomes.absence_final_at_us
    assert final(run.action("a"), attempt_us - 1) == deadline_us + FINAL_AFTER_S * SECOND
    assert final(run.action("a"), attempt_us + 1) == attempt_us + 1 + FINAL_AFTER_S * SECOND
    assert final(run.action("a"), deadline_us + SECOND) == deadline_us + FINAL_AFTER_S * SECOND


def test_absence_that_is_final_at_once_is_final_at_the_deadline():
    """A provider that settles nothing late: not a second more."""
    action = unknown(contract(final=0.0)).action("a")
    assert outcomes.absence_final_at_us(action, None) == action.deadline_us


def test_absence_proves_nothing_if_it_was_asked_for_before_it_was_final():
    """Rule 4: however late the answer is recorded."""
    run = unknown().later(100)
    final_us = outcomes.absence_final_at_us(run.action("a"), None)
    assert look(run, "absent", looked_us=final_us - 1) is None
    assert of(look(run, "absent", looked_us=final_us)) == (Outcome.FAILED, "authoritative", "probe_absent")


def test_absence_is_never_final_without_a_probe_or_a_send():
    """No way to look, no deadline: no proof."""
    blind = RunBuilder().planned("a", reversible(probe=None)).intent().lost()
    assert outcomes.absence_final_at_us(blind.action("a"), None) is None
    assert outcomes.absence_final_at_us(RunBuilder().planned("a").action("a"), None) is None


@pytest.mark.parametrize("seen", ["applied", "many", "absent", "diverged", "inconclusive"])
@pytest.mark.parametrize("end", ["not_sent", "refused"])
def test_a_proven_failure_absorbs_every_look(end, seen):
    """Nothing left, or the provider said no: a look cannot say otherwise (rule 4)."""
    run = RunBuilder().planned("a", contract()).intent()
    getattr(run, end)()
    assert look(run.later(1_000), seen) is None


def test_a_failure_by_absence_is_contradicted_by_presence_only():
    """It goes back to unknown, and is not called a success at once."""
    run = unknown().later(100).probed("absent")
    assert run.action("a").status is ActionStatus.FAILED
    assert of(look(run, "applied")) == (Outcome.UNKNOWN, "authoritative", "contradicted")
    for seen in ("absent", "diverged", "inconclusive"):
        assert look(run, seen) is None


@pytest.mark.parametrize("partial", [False, True])
def test_some_parts_are_a_success_only_with_a_partial_inverse(partial):
    """Otherwise it stays unknown (rule 7)."""
    run = unknown(contract(parts=("row", "event"), partial_inverse=partial))
    proven = look(run, parts=("row",))
    if partial:
        assert of(proven) == (Outcome.SUCCEEDED, "authoritative", "probe_applied")
        assert proven.evidence.detail == "only parts ['row']"
        assert proven.parts == ("row",)
    else:
        assert proven is None
    assert look(run, parts=("row", "event")).evidence.detail == ""


def test_a_reference_that_is_not_the_providers_proves_nothing():
    """Untrusted input, from a probe as from an answer."""
    run = unknown(contract(reference=Reference(field="id", pattern=r"[0-9]+")))
    assert look(run, reference="../other") is None
    assert look(run) is None
    assert look(run, reference="17").reference == "17"


def test_what_was_known_before_the_look_is_kept():
    """The probe's state is the after-image where the call left none, and its effect the output where none was told."""
    run = unknown()
    proven = look(run, effect={"id": "x"}, state={"on": True})
    assert (proven.output, proven.after_image) == ({"id": "x"}, {"on": True})
    told = RunBuilder().planned("a", contract(confirm="probe")).intent().succeeded(effect={"id": "y"})
    assert look(told, effect={"id": "x"}).output == {}


# --- late evidence ----------------------------------------------------------------------------------------


def late(outcome, **changes):
    body = answer(reversible()) if outcome is Outcome.SUCCEEDED else outcomes.not_sent(at_us=1, code="x", detail="d")
    return body.model_copy(update=changes)


def test_the_owner_folds_what_late_evidence_proves():
    """Success with its reference, or a proof that nothing was sent."""
    run = unknown().late(late(Outcome.SUCCEEDED))
    body = outcomes.folded_late(run.action("a"), at_us=run.now_us)
    assert (body.outcome, body.evidence.source, body.reference, body.effect) == (
        Outcome.SUCCEEDED,
        "late",
        "ref-1",
        {"id": "x"},
    )
    run = unknown().late(late(Outcome.FAILED))
    body = outcomes.folded_late(run.action("a"), at_us=run.now_us)
    assert (body.outcome, body.evidence.strength, body.reference) == (Outcome.FAILED, "proof", "")


def test_a_failure_heard_of_late_keeps_no_reference():
    """The provider named an operation when it took the call on; what failed is nothing to refer to."""
    run = RunBuilder().planned("a", contract()).intent()
    run.record(outcomes.accepted(at_us=1, operation="op-1", effect={}, reference="op-ref")).late(late(Outcome.FAILED))
    assert run.action("a").reference == "op-ref"
    assert outcomes.folded_late(run.action("a"), at_us=1).reference == ""


CONTRADICTED = look(unknown().later(100).probed("absent"))


@pytest.mark.parametrize(
    "run",
    [
        unknown(),
        unknown().late(outcomes.lost(at_us=1, code="timeout", detail="")),
        unknown().late(CONTRADICTED),
        unknown().late(late(Outcome.SUCCEEDED, evidence=CONTRADICTED.evidence.model_copy(update={"strength": "weak"}))),
        RunBuilder().planned("a").intent().late(late(Outcome.SUCCEEDED)),
        RunBuilder().planned("a").intent().refused().late(late(Outcome.SUCCEEDED)),
        RunBuilder().planned("a").intent().succeeded().late(late(Outcome.FAILED)),
        RunBuilder().planned("a").intent().lost().compensating().on("a").late(late(Outcome.SUCCEEDED)),
        unknown().later(100).probed("absent").late(late(Outcome.FAILED)),
        RunBuilder().planned("a").intent().succeeded().parked().late(late(Outcome.FAILED)),
        unknown(contract(reference=Reference(field="id", pattern=r"[0-9]+"))).late(late(Outcome.SUCCEEDED)),
    ],
    ids=[
        "none",
        "weak",
        "a doubt on authority",
        "a weak success",
        "in flight",
        "proven failed",
        "succeeded",
        "being taken back",
        "failed as well",
        "parked, known",
        "foreign reference",
    ],
)
def test_late_evidence_that_changes_nothing(run):
    """Nothing new, nothing trusted, or nothing it may overrule."""
    assert outcomes.folded_late(run.action("a"), at_us=1) is None


def test_late_success_contradicts_a_failure_by_absence():
    """Back to unknown: the system itself is asked again (rule 4)."""
    run = unknown().later(100).probed("absent").late(late(Outcome.SUCCEEDED))
    assert of(outcomes.folded_late(run.action("a"), at_us=1)) == (Outcome.UNKNOWN, "authoritative", "contradicted")


def test_late_evidence_reaches_a_parked_unknown():
    """Parked as unknown reopens on authoritative evidence (rule 22), and weak evidence after it hides nothing."""
    run = unknown().parked().late(late(Outcome.SUCCEEDED)).late(outcomes.lost(at_us=1, code="timeout", detail=""))
    body = outcomes.folded_late(run.action("a"), at_us=1)
    assert of(body) == (Outcome.SUCCEEDED, "authoritative", "answered")
    assert run.record(body).action("a").status is ActionStatus.SUCCEEDED
