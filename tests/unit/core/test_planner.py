"""The planner, case by case: which step follows from which state, with which reason (rules 14 to 24)."""

from __future__ import annotations

from pathlib import Path

import pytest

from amends.core import events as e
from amends.core import outcomes
from amends.core.contract import Alternative, Keying, ProbeRule, Retry
from amends.core.correction import compose
from amends.core.evidence import Evidence, FailureNote, Observation
from amends.core.planner import plan
from amends.core.settling import next_rung
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.core.steps import Facts
from amends.testing.contracts import corrector, irreversible, reversible, visible
from amends.testing.run_builder import RunBuilder

GOLDEN = Path(__file__).parents[2] / "golden" / "recovery_plans.txt"
S = ActionStatus
SECOND = 1_000_000
PARTLY = reversible(compensation=(Alternative(name="cancel", safe_when=(Outcome.SUCCEEDED, Outcome.FAILED)),))
HARMLESS = reversible(
    probe=ProbeRule(strength="search", schedule_seconds=(0.0, 2.0), deadline_seconds=5.0),
    compensation=(
        Alternative(name="cancel", safe_when=(Outcome.SUCCEEDED, Outcome.UNKNOWN), harmless_when_absent=True),
    ),
)
LADDER = reversible(
    compensation=(
        Alternative(name="void", when={"state": ("open",)}, retry=Retry(attempts=2, backoff_seconds=2.0)),
        Alternative(name="refund", when={"state": ("settled", "settling")}),
        Alternative(name="person", undo="escalate", expires_after_seconds=100.0),
    )
)


def with_rung(contract, **changes):
    """The contract with its one rung changed."""
    (rung,) = contract.compensation
    return contract.model_copy(update={"compensation": (rung.model_copy(update=changes),)})


def expiring(contract):
    """The contract with an undo that may be used for five seconds."""
    return with_rung(contract, expires_after_seconds=5.0)


def planned(run: RunBuilder, *, unusable=frozenset()):
    usable = frozenset(run.state.actions) - unusable
    return plan(run.state, Facts(run.now_us, SECOND, usable))


def steps(run: RunBuilder, **facts):
    return [(step.verb, step.action_id, step.reason) for step in planned(run, **facts).steps]


def recovering(run: RunBuilder) -> RunBuilder:
    return run.moved(RunStatus.RECOVERING)


def one(contract=None) -> RunBuilder:
    return RunBuilder().planned("a", contract)


def still_applied(run: RunBuilder) -> RunBuilder:
    """A look after the settle time found the effect of the undo's forward action again."""
    evidence = Evidence(source="probe", strength="authoritative", at_us=run.now_us, code="still_applied")
    note = FailureNote(code="still_applied", resendable=True)
    return run.record(e.OutcomeRecorded(outcome=Outcome.FAILED, evidence=evidence, error=note))


# --- one action, one step ---------------------------------------------------------------------------------

CASES = {
    "planned": (one, [("skip", "a", "never_sent")]),
    "queued": (lambda: one(irreversible()).queued(), [("skip", "a", "never_sent")]),
    "awaiting approval": (lambda: one(irreversible()).asked(), [("skip", "a", "never_sent")]),
    "asked about again after a send": (
        lambda: one(irreversible()).intent().lost().later(100).probed("absent").asked(),
        [("skip", "a", "nothing_landed")],
    ),
    "asked about again, and parts may be left": (
        lambda: one(with_rung(reversible(), safe_when=tuple(Outcome))).intent().refused(again=True).asked(),
        [("escalate", "a", "a_failed_send_may_have_left_parts")],
    ),
    "denied": (lambda: one().denied(), []),
    "withdrawn": (lambda: one().withdrawn(), []),
    "in flight": (lambda: one().intent(), [("wait", "a", "call_in_flight")]),
    "in flight past its deadline": (lambda: one().intent().later(31), [("reconcile", "a", "call_lost")]),
    "in flight of a dead driver": (lambda: one().intent().claimed(), [("reconcile", "a", "call_lost")]),
    "unknown": (lambda: one().intent().lost(), [("reconcile", "a", "outcome_unknown")]),
    "unknown, looked": (lambda: one().intent().lost().probed("inconclusive"), [("wait", "a", "next_probe")]),
    "unknown, diverged": (
        lambda: one().intent().lost().probed("diverged"),
        [("escalate", "a", "state_is_neither_before_nor_after")],
    ),
    "unknown, schedule over": (
        lambda: one(reversible(probe=ProbeRule(strength="search"))).intent().lost().later(301).probed("absent"),
        [("escalate", "a", "no_proof_by_deadline")],
    ),
    "unknown, blind": (
        lambda: one(reversible(probe=None, keying=Keying(kind="blind"))).intent().lost(),
        [("escalate", "a", "no_way_to_look")],
    ),
    "unknown, harmless": (
        lambda: one(HARMLESS).intent().lost().later(6).probed("inconclusive"),
        [("compensate", "a", "unknown_but_harmless")],
    ),
    "unknown, harmless, nothing told about parts": (
        lambda: (
            one(HARMLESS.model_copy(update={"parts": ("row", "event")})).intent().lost().later(6).probed("inconclusive")
        ),
        [("compensate", "a", "unknown_but_harmless")],
    ),
    "unknown, harmless, some parts seen twice": (
        lambda: (
            one(HARMLESS.model_copy(update={"parts": ("row", "event")}))
            .intent()
            .lost()
            .later(6)
            .probed("many", parts=("row",))
        ),
        [("escalate", "a", "only_some_parts_exist")],
    ),
    "unknown, harmless, window over": (
        lambda: one(expiring(HARMLESS)).intent().lost().later(6).probed("inconclusive"),
        [("escalate", "a", "no_proof_by_deadline")],
    ),
    "unknown, the undo not harmless": (
        lambda: one(with_rung(HARMLESS, harmless_when_absent=False)).intent().lost().later(6).probed("inconclusive"),
        [("escalate", "a", "no_proof_by_deadline")],
    ),
    "unknown, the undo harmless but not meant": (
        lambda: (
            one(with_rung(HARMLESS, safe_when=(Outcome.SUCCEEDED,))).intent().lost().later(6).probed("inconclusive")
        ),
        [("escalate", "a", "no_proof_by_deadline")],
    ),
    "unknown, accepted": (lambda: one().intent().lost().parked().accepted(), []),
    "failed by proof": (lambda: one().intent().refused(), []),
    "failed, residue possible": (lambda: one(PARTLY).intent().refused(), [("reconcile", "a", "may_have_residue")]),
    "failed, residue found": (
        lambda: one(PARTLY).intent().refused().later(1).probed("applied", "residue"),
        [("compensate", "a", "a_failed_call_left_parts")],
    ),
    "failed, some parts left": (
        lambda: (
            one(PARTLY.model_copy(update={"parts": ("row", "event")}))
            .intent()
            .refused()
            .later(1)
            .probed("applied", "residue", parts=("row",))
        ),
        [("escalate", "a", "only_some_parts_exist")],
    ),
    "failed, some parts left, partial inverse": (
        lambda: (
            one(PARTLY.model_copy(update={"parts": ("row", "event"), "partial_inverse": True}))
            .intent()
            .refused()
            .later(1)
            .probed("applied", "residue", parts=("row",))
        ),
        [("compensate", "a", "a_failed_call_left_parts")],
    ),
    "unknown, harmless, some parts seen": (
        lambda: (
            one(HARMLESS.model_copy(update={"parts": ("row", "event")}))
            .intent()
            .lost()
            .later(6)
            .probed("applied", parts=("row",))
        ),
        [("escalate", "a", "only_some_parts_exist")],
    ),
    "failed, all parts left": (
        lambda: (
            one(PARTLY.model_copy(update={"parts": ("row", "event")}))
            .intent()
            .refused()
            .later(1)
            .probed("applied", "residue", parts=("row", "event"))
        ),
        [("compensate", "a", "a_failed_call_left_parts")],
    ),
    "failed, residue found twice": (
        lambda: one(PARTLY).intent().refused().later(1).probed("many", "residue"),
        [("compensate", "a", "a_failed_call_left_parts")],
    ),
    "failed by a person's word after a look that diverged": (
        lambda: one(PARTLY).intent().lost().probed("diverged").later(1).settled(Outcome.FAILED),
        [("reconcile", "a", "may_have_residue")],
    ),
    "failed, nothing left": (lambda: one(PARTLY).intent().refused().later(1).probed("absent", "residue"), []),
    "failed, residue diverged": (
        lambda: one(PARTLY).intent().refused().later(1).probed("diverged", "residue"),
        [("escalate", "a", "state_is_neither_before_nor_after")],
    ),
    "failed, residue unclear": (
        lambda: one(PARTLY).intent().refused().later(1).probed("inconclusive", "residue"),
        [("wait", "a", "next_look")],
    ),
    "failed, residue accepted": (lambda: one(PARTLY).intent().refused().parked().accepted(), []),
    "failed before it was sent": (
        lambda: one(PARTLY).record(outcomes.failed_before(at_us=1, code="prepare_failed", detail="")),
        [],
    ),
    "succeeded": (lambda: one().intent().succeeded(), [("compensate", "a", "run_is_recovering")]),
    "succeeded, counted after success": (
        lambda: one().intent().succeeded().probed("applied", "confirm"),
        [("compensate", "a", "run_is_recovering")],
    ),
    "succeeded, counted twice after success": (
        lambda: one().intent().succeeded().probed("many", "confirm"),
        [("compensate", "a", "run_is_recovering")],
    ),
    "succeeded, looked in vain": (
        lambda: one().intent().succeeded().probed("inconclusive", "before_undo"),
        [("wait", "a", "next_look")],
    ),
    "succeeded, looked in vain, again": (
        lambda: one().intent().succeeded().probed("inconclusive", "before_undo").later(1),
        [("compensate", "a", "run_is_recovering")],
    ),
    "succeeded, cannot be read": (
        lambda: (
            one()
            .intent()
            .succeeded()
            .probed("inconclusive", "before_undo")
            .probed("inconclusive", "before_undo")
            .probed("inconclusive", "before_undo")
        ),
        [("escalate", "a", "the_system_cannot_be_read")],
    ),
    "succeeded, no inverse": (
        lambda: one(reversible(compensation=())).intent().succeeded(),
        [("escalate", "a", "no_registered_compensation")],
    ),
    "succeeded, window over": (
        lambda: (
            one(reversible(compensation=(Alternative(name="c", expires_after_seconds=5),)))
            .intent()
            .succeeded()
            .later(6)
        ),
        [("escalate", "a", "compensation_window_expired")],
    ),
    "succeeded, accepted": (lambda: one().intent().succeeded().parked().accepted(), []),
    "succeeded, irreversible": (lambda: one(irreversible(mode="gate")).intent().succeeded(), []),
    "adopted": (lambda: one().adopted(), []),
    "parked": (lambda: one().intent().lost().parked(), []),
    "compensated": (lambda: one().intent().succeeded().compensating().intent().lost().undone(), []),
    "compensated, second look later": (
        lambda: one().intent().succeeded().compensating().intent().lost().undone(late_check_seconds=9),
        [("wait", "a", "late_landing_possible")],
    ),
    "compensated, second look due": (
        lambda: one().intent().succeeded().compensating().intent().lost().undone(late_check_seconds=9).later(9),
        [("reconcile", "a", "late_landing_possible")],
    ),
    "a twin": (
        lambda: (
            one()
            .intent()
            .succeeded()
            .parked()
            .accepted()
            .planned("t", kind=ActionKind.DUPLICATE, of="a")
            .settled(Outcome.SUCCEEDED)
        ),
        [("compensate", "t", "run_is_recovering")],
    ),
    "a twin of an irreversible call": (
        lambda: (
            one(irreversible(mode="gate"))
            .intent()
            .succeeded()
            .planned("t", irreversible(mode="gate"), kind=ActionKind.DUPLICATE, of="a")
            .settled(Outcome.SUCCEEDED)
        ),
        [("escalate", "t", "no_registered_compensation")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_action_gives_one_step(name):
    """State in, step and reason out."""
    build, expected = CASES[name]
    run = recovering(build())
    assert steps(run) == expected
    if not expected:
        parked = any(a.status is S.NEEDS_HUMAN for a in run.state.actions.values())
        assert planned(run).finish is (RunStatus.NEEDS_HUMAN if parked else RunStatus.RECOVERED)


NEEDS_AN_ADAPTER = [
    "unknown",
    "failed, residue possible",
    "succeeded",
    "compensated, second look due",
]


@pytest.mark.parametrize("name", NEEDS_AN_ADAPTER)
def test_a_missing_adapter_is_a_persons_case(name):
    """The stored contract decides; nobody to carry it out: needs_human(adapter_unavailable), which the table allows."""
    run = recovering(CASES[name][0]())
    (step,) = planned(run, unusable={"a"}).steps
    assert (step.verb, step.reason, step.cause) == (
        "escalate",
        "adapter_unavailable",
        ParkedCause.ADAPTER_UNAVAILABLE,
    )
    assert run.on("a").parked(step.cause).action("a").status is S.NEEDS_HUMAN


def test_an_undo_without_its_adapter_is_a_persons_case():
    """Unsent, in flight, failed or in doubt: what cannot be carried out or looked at is not waited for (rule 21)."""
    for build, _ in UNDOS.values():
        (step,) = planned(build(), unusable={"a"}).steps
        assert (step.verb, step.action_id, step.cause) == ("escalate", "a", ParkedCause.ADAPTER_UNAVAILABLE)


@pytest.mark.parametrize(("dead", "due_s"), [(False, 15), (True, 10.001)])
def test_a_driver_proven_dead_brings_the_look_that_can_be_final_forward(dead, due_s):
    """Nothing can land after its death plus the settle time: neither its call nor its undo (rule 4)."""
    call = recovering(one().intent().lost())
    undo = undoing().intent().lost()
    for run, purpose in [(call, "reconcile"), (undo, "verify_undone")]:
        lost_us = run.now_us
        if dead:
            run.claimed()
        run.later(9).probed("inconclusive", purpose)
        assert planned(run).due_us - lost_us == due_s * SECOND


def test_a_wait_says_until_when_and_the_plan_when_to_come_back():
    """The earliest of all waits."""
    run = recovering(one().intent().lost().probed("inconclusive").planned("b").intent())
    made = planned(run)
    assert {step.action_id: step.due_us - run.now_us for step in made.steps} == {"a": 1 * SECOND, "b": 31 * SECOND}
    assert (made.work, made.finish, made.due_us) == ((), None, run.now_us + 1 * SECOND)


# --- late evidence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ends",
    [
        lambda run: run.lost(),
        lambda run: run.lost().parked(),
        lambda run: run.lost().later(100).probed("absent"),
        lambda run: run.lost().later(100).probed("absent").asked(),
        lambda run: run.lost().later(100).probed("absent").asked().withdrawn(),
    ],
    ids=["unknown", "parked", "failed by absence", "asked about again", "withdrawn after it was asked about again"],
)
def test_late_evidence_is_folded_before_anything_else(ends):
    """It reopens a parked unknown and contradicts a failure by absence, before anything rests on either."""
    told = outcomes.answered(reversible(), at_us=1, reference="r", effect={}, output={}, after={}, parts=())
    run = recovering(ends(one().intent()).late(told))
    assert steps(run) == [("reconcile", "a", "late_evidence")]
    run.record(outcomes.folded_late(run.action("a"), at_us=1))
    assert steps(run) != [("reconcile", "a", "late_evidence")]


def test_late_evidence_that_proves_nothing_does_not_hold_up_the_looks():
    """Otherwise the plan would never get past it."""
    run = recovering(one().intent().lost().late(outcomes.lost(at_us=1, code="timeout", detail="")))
    assert steps(run) == [("reconcile", "a", "outcome_unknown")]


# --- order ------------------------------------------------------------------------------------------------


def test_dependents_first_and_siblings_at_once():
    """b and c were in flight together on top of a: both before a, in either order (rule 20)."""
    run = one().intent().succeeded().planned("b").intent().planned("c").intent().on("b").succeeded().on("c").succeeded()
    assert steps(recovering(run)) == [
        ("compensate", "c", "run_is_recovering"),
        ("compensate", "b", "run_is_recovering"),
        ("wait", "a", "dependents_first"),
    ]


def test_a_parked_dependent_blocks_only_what_it_may_depend_on():
    """b is a person's; a waits without a date, c goes on; then the run asks for the person."""
    run = one().intent().succeeded().planned("b", depends_on=("a",)).intent().lost().parked()
    run.planned("c", depends_on=()).intent().succeeded()
    assert steps(recovering(run)) == [("compensate", "c", "run_is_recovering"), ("wait", "a", "dependents_first")]
    run.on("c").compensating().intent().lost().undone()
    made = planned(run)
    assert (made.finish, made.due_us) == (RunStatus.NEEDS_HUMAN, None)
    assert made.steps[0].facts == {"on": ["b"]}


def test_what_a_residue_rests_on_escalates_and_the_rest_is_undone():
    """A paid call in mid-run stays: what it may depend on is a person's to decide (rule 29)."""
    run = one().intent().succeeded()
    run.planned("paid", irreversible(mode="gate"), depends_on=("a",)).intent().succeeded()
    run.planned("c", depends_on=()).intent().succeeded()
    assert steps(recovering(run)) == [
        ("compensate", "c", "run_is_recovering"),
        ("escalate", "a", "an_irreversible_effect_rests_on_it"),
    ]
    assert planned(run).steps[1].facts == {"residue": ["paid"]}, "a person is told what rests on it"
    for contract, build in [(HARMLESS, CASES["unknown, harmless"][0]), (PARTLY, CASES["failed, residue found"][0])]:
        run = build().planned("paid", irreversible(mode="gate"), depends_on=("a",)).intent().succeeded()
        assert run.action("a").contract == contract
        assert steps(recovering(run)) == [("escalate", "a", "an_irreversible_effect_rests_on_it")]


def test_nothing_is_undone_past_the_pivot():
    """A release that may have happened: from then on only a person takes back (DESIGN: pivot)."""
    run = one().intent().succeeded().planned("out", irreversible(), depends_on=()).queued().intent().lost()
    run.moved(RunStatus.COMMITTING, RunStatus.RECOVERING)
    assert steps(run) == [
        ("reconcile", "out", "outcome_unknown"),
        ("escalate", "a", "the_run_is_past_its_pivot"),
    ]
    run.on("out").later(100).probed("absent")
    assert steps(run) == [("compensate", "a", "run_is_recovering")]


# --- checkpoints ------------------------------------------------------------------------------------------


def test_a_checkpoint_limits_what_is_taken_back():
    """What came before it stays, and the run opens again (rule 24)."""
    run = one().intent().succeeded().planned("r", PARTLY, depends_on=()).intent().refused()
    run.planned("q", irreversible(), depends_on=()).queued().checkpoint("half")
    run.planned("b", depends_on=()).intent().succeeded()
    recovering(run)
    assert {action for _, action, _ in steps(run)} == {"a", "r", "q", "b"}
    run.targeted("half")
    assert steps(run) == [("compensate", "b", "run_is_recovering")]
    run.on("b").compensating().intent().lost().undone()
    assert planned(run).finish is RunStatus.OPEN


def test_a_doubt_before_the_checkpoint_is_reconciled_and_never_undone_blindly():
    """The open run needs to know; it does not want it gone."""
    run = one(HARMLESS).intent().lost().checkpoint("half").targeted("half").later(6).probed("inconclusive")
    assert steps(recovering(run)) == [("escalate", "a", "no_proof_by_deadline")]


# --- undo actions -----------------------------------------------------------------------------------------


def undoing(contract=None, rung="") -> RunBuilder:
    return recovering(one(contract).intent().succeeded()).compensating(rung)


SETTLING = reversible(compensation=(Alternative(name="cancel", retry=Retry(settle_seconds=3.0)),))
UNDOS = {
    "unsent": (undoing, ("compensate", "undo_ready")),
    "in flight": (lambda: undoing().intent(), ("wait", "undo_call_in_flight")),
    "in flight, lost": (lambda: undoing().intent().later(31), ("reconcile", "undo_call_lost")),
    "unknown": (lambda: undoing().intent().lost(), ("reconcile", "undo_unverified")),
    "answered with an OK": (lambda: undoing().intent().succeeded(), ("reconcile", "undo_unverified")),
    "looked at, unclear": (
        lambda: undoing().intent().lost().probed("inconclusive", "verify_undone"),
        ("wait", "undo_settling"),
    ),
    "looked at until the end": (
        lambda: (
            undoing(reversible(probe=ProbeRule(strength="search")))
            .intent()
            .lost()
            .later(301)
            .probed("inconclusive", "verify_undone")
        ),
        ("escalate", "undo_cannot_be_verified"),
    ),
    "settling": (
        lambda: undoing(SETTLING).intent().succeeded().probed("applied", "verify_undone"),
        ("wait", "undo_settling"),
    ),
    "not sent": (lambda: undoing().intent().not_sent(), ("wait", "undo_retry")),
    "not sent, again": (lambda: undoing().intent().not_sent().later(2), ("compensate", "undo_retry")),
    "still applied": (lambda: still_applied(undoing().intent().lost()).later(2), ("compensate", "undo_retry")),
    "refused, no other rung": (lambda: undoing().intent().refused(), ("escalate", "undo_exhausted")),
    "refused, other rungs": (lambda: undoing(LADDER, "void").intent().refused(), ("compensate", "next_alternative")),
    "attempts used up": (
        lambda: undoing(LADDER, "void").intent().not_sent().later(2).intent().not_sent().later(9),
        ("compensate", "next_alternative"),
    ),
    "awaits approval": (lambda: undoing().asked("undo"), ("wait", "undo_awaits_approval")),
    "approved": (lambda: undoing().asked("undo").approved(), ("compensate", "undo_ready")),
    "voided": (lambda: undoing().asked("undo").closed("voided"), ("compensate", "undo_ready")),
    "refused by a person": (lambda: undoing().asked("undo").closed("refused"), ("escalate", "undo_approval_refused")),
    "nobody answered": (lambda: undoing().asked("undo").later(601), ("escalate", "undo_approval_expired")),
    "approval at its last moment": (lambda: undoing().asked("undo").later(600), ("escalate", "undo_approval_expired")),
    "failed by a person's word": (
        lambda: undoing().intent().lost().settled(Outcome.FAILED),
        ("escalate", "undo_exhausted"),
    ),
    "settled, looked at that moment": (
        lambda: undoing(SETTLING).intent().succeeded().later(3).probed("inconclusive", "verify_undone"),
        ("wait", "undo_settling"),
    ),
    "denied": (lambda: undoing().denied(), ("escalate", "undo_is_denied")),
    "missing": (
        lambda: recovering(one().intent().succeeded()).record(e.CompensationStarted(undo="gone", rung="cancel"), "a"),
        ("escalate", "undo_is_missing"),
    ),
}


@pytest.mark.parametrize("name", UNDOS)
def test_an_undo_gives_one_step_for_its_forward_action(name):
    """Own attempts, own unknown, own approval; what is exhausted is a person's (rule 19)."""
    build, expected = UNDOS[name]
    (step,) = planned(build()).steps
    assert step.action_id == "a"
    assert (step.verb, step.reason) == expected


def test_an_undo_waits_for_its_settle_time_once():
    """An OK that settles later is not called a lie before; then a look decides."""
    run = undoing(SETTLING).intent().succeeded().probed("applied", "verify_undone")
    (step,) = planned(run).steps
    assert step.due_us - run.now_us == 1 * SECOND  # the next look of the schedule comes before the settle time
    run.later(1).probed("applied", "verify_undone")
    (step,) = planned(run).steps
    assert step.due_us - run.now_us == 2 * SECOND
    run.later(2)
    assert steps(run) == [("reconcile", "a", "undo_unverified")]


def test_a_retry_after_is_honoured():
    """The provider's own word on when to come back is longer than ours."""
    run = undoing().intent().refused(again=True, retry_after_seconds=60)
    (step,) = planned(run).steps
    assert (step.reason, step.due_us - run.now_us) == ("undo_retry", 60 * SECOND)


def test_rungs_follow_the_probed_state_the_outcome_and_the_clock():
    """The first that fits and was not tried; none where nothing fits."""
    action = one(LADDER).intent().succeeded().action("a")
    now = action.sent_us

    def name_of(rung):
        return rung and rung.name

    assert name_of(next_rung(action, {"state": "open"}, now)) == "void"
    assert name_of(next_rung(action, {"state": "settling"}, now)) == "refund"
    assert name_of(next_rung(action, {}, now)) == "person"
    assert name_of(next_rung(action, {}, now + 101 * SECOND)) is None
    tried = action.model_copy(update={"tried_rungs": ("void",)})
    assert name_of(next_rung(tried, {"state": "open"}, now)) == "person"
    failed = action.model_copy(update={"outcome": Outcome.FAILED})
    assert name_of(next_rung(failed, {"state": "open"}, now)) is None


def test_an_effect_that_came_back_is_taken_back_again():
    """The second look found it: the ladder begins anew (rule 18)."""
    run = undoing().intent().lost().undone(late_check_seconds=5).later(5)
    run.record(e.EffectReappeared(observation=Observation(seen="applied")))
    assert steps(run) == [("compensate", "a", "run_is_recovering")]


def test_an_unclear_second_look_is_repeated_on_schedule():
    """Then the runtime ends it; the plan never loops on it."""
    run = undoing().intent().lost().undone(late_check_seconds=5).later(5).probed("inconclusive", "late_check")
    assert steps(run) == [("wait", "a", "late_landing_possible")]
    assert steps(run.later(1)) == [("reconcile", "a", "late_landing_possible")]


# --- corrections ------------------------------------------------------------------------------------------

PLACE = "jira:a"


def noted() -> RunBuilder:
    """One visible effect was reverted and its correction is registered."""
    run = recovering(one(visible()).intent().succeeded()).compensating().intent().lost().undone()
    note = compose(run.state, PLACE)
    return run.planned("n", corrector(), kind=ActionKind.CORRECT, place=PLACE, revision=1, label=note.says)


POSTINGS = {
    "planned": (noted, [("correct", "n", "post")]),
    "in flight": (lambda: noted().intent(), [("wait", "n", "call_in_flight")]),
    "lost in flight": (lambda: noted().intent().claimed(), [("reconcile", "n", "call_lost")]),
    "unknown": (lambda: noted().intent().lost(), [("reconcile", "n", "outcome_unknown")]),
    "unknown, heard of late": (
        lambda: (
            noted()
            .intent()
            .lost()
            .late(outcomes.answered(corrector(), at_us=1, reference="r", effect={}, output={}, after={}, parts=()))
        ),
        [("reconcile", "n", "late_evidence")],
    ),
    "not sent": (lambda: noted().intent().not_sent(), [("wait", "n", "post_again")]),
    "not sent, again": (lambda: noted().intent().not_sent().later(1), [("correct", "n", "post_again")]),
    "refused": (lambda: noted().intent().refused(), [("escalate", "n", "correction_undeliverable")]),
    "posted": (lambda: noted().intent().succeeded(), []),
    "awaits approval": (lambda: noted().asked("correct"), [("wait", "n", "awaits_approval")]),
    "approved": (lambda: noted().asked("correct").approved(), [("correct", "n", "post")]),
    "refused by a person": (
        lambda: noted().asked("correct").closed("refused"),
        [("escalate", "n", "approval_refused")],
    ),
    "parked": (lambda: noted().parked(ParkedCause.ADAPTER_UNAVAILABLE), []),
    "reopened": (lambda: noted().parked().reopened(), [("correct", "n", "post")]),
    "accepted unposted": (lambda: noted().parked().accepted(), []),
    "accepted unknown": (lambda: noted().intent().lost().parked().accepted(), []),
    "accepted failed": (lambda: noted().intent().refused().parked().accepted(), []),
    "denied": (lambda: noted().denied(), []),
}
BLOCK_RECOVERED = {"parked", "denied"}


@pytest.mark.parametrize("name", POSTINGS)
def test_a_correction_is_posted_or_blocks_recovered(name):
    """Unknown is looked for, undeliverable is a person's, and no run is `recovered` before people know (rule 32)."""
    build, expected = POSTINGS[name]
    run = build()
    assert steps(run) == expected
    if not expected:
        ends = RunStatus.NEEDS_HUMAN if name in BLOCK_RECOVERED else RunStatus.RECOVERED
        assert planned(run).finish is ends


def test_people_are_told_when_their_place_is_quiet():
    """One step per place, none before."""
    run = recovering(one(visible()).intent().succeeded())
    assert [verb for verb, *_ in steps(run)] == ["compensate"]
    run.compensating().intent().lost().undone()
    (step,) = planned(run).steps
    assert (step.verb, step.reason, step.place, step.facts) == ("correct", "people_saw_it", PLACE, {"place": PLACE})
    assert step.action_id == "", "nothing is registered yet"


def test_an_empty_run_is_recovered():
    """Nothing happened, nothing to do."""
    made = planned(recovering(RunBuilder()))
    assert (made.steps, made.finish, made.due_us) == ((), RunStatus.RECOVERED, None)


@pytest.mark.parametrize(("resolved", "finish"), [(False, RunStatus.NEEDS_HUMAN), (True, RunStatus.RECOVERED)])
def test_an_open_work_item_keeps_a_settled_run_from_being_recovered(resolved, finish):
    """Nothing is due any more, but a person has not read what stands in the item (rule 23)."""
    run = one().denied("a proposed inverse")
    opened = e.EscalationOpened(
        escalation_id="item",
        cause="unregistered_inverse",
        queue="recovery",
        owner="maya",
        deadline_us=run.now_us + SECOND,
        known="nothing was sent",
        in_doubt="why it was proposed",
        proposed="look",
        choices=("acknowledge",),
    )
    run.record(opened)
    if resolved:
        run.record(e.EscalationResolved(escalation_id="item", choice="acknowledge", by="maya", channel="test"))
    assert planned(recovering(run)).finish is finish


# --- whole plans ------------------------------------------------------------------------------------------


def test_the_plans_are_what_was_agreed():
    """A change of any field of any step of the cases above is seen by a person who reads the difference."""
    tables = {name: (lambda build=build: recovering(build())) for name, (build, _) in CASES.items()}
    tables |= {f"undo: {name}": build for name, (build, _) in UNDOS.items()}
    tables |= {f"correction: {name}": build for name, (build, _) in POSTINGS.items()}
    lines: list[str] = []
    for name, build in tables.items():
        run = build()
        lines += [name, *(f"  {line}" for line in in_words(planned(run), run.now_us))]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def in_words(made, now_us: int) -> list[str]:
    """Every field of a plan; times in seconds from now."""

    def seconds(due_us):
        return "no date" if due_us is None else f"in {(due_us - now_us) / SECOND:g} s"

    return [
        *(
            f"{step.verb} {step.action_id or 'run'}: {step.reason}, {seconds(step.due_us)}, {step.facts},"
            f" {step.purpose}, {step.cause.value}, place {step.place!r}"
            for step in made.steps
        ),
        f"finish {made.finish}, {seconds(made.due_us)}",
    ]
