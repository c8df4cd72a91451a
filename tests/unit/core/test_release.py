"""Release: what the outbox lets go; when a committing run waits, turns back, commits or asks (rules 26 to 29)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core import outcomes
from amends.core.contract import Keying, ProbeRule
from amends.core.events import LateCheckDone
from amends.core.order import dependents
from amends.core.release import (
    absence_of_success_final_us,
    all_actions_succeeded,
    is_release,
    newest_of_slots,
    outcome_open,
    plan_release,
)
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.core.steps import Facts
from amends.testing.contracts import irreversible, reversible
from amends.testing.run_builder import RunBuilder

GOLDEN = Path(__file__).parents[2] / "golden" / "release_plans.txt"
S = ActionStatus
SECOND = 1_000_000
ON_APPROVAL = irreversible(mode="on_approval")
TOLD = outcomes.answered(reversible(), at_us=1, reference="r", effect={}, output={}, after={}, parts=())


def planned(run: RunBuilder, *, fresh=True, unusable=frozenset(), paused=False, check_due_us=None):
    usable = frozenset(run.state.actions) - unusable
    facts = Facts(run.now_us, SECOND, usable, paused=paused, check_due_us=check_due_us)
    return plan_release(run.state, facts, check_fresh=fresh)


def steps(run: RunBuilder, **facts):
    return [(step.verb, step.action_id, step.reason) for step in planned(run, **facts).steps]


def base(check: str = "") -> RunBuilder:
    """One compensatable action that succeeded."""
    return RunBuilder(check=check).planned("a").intent().succeeded()


def item(run: RunBuilder, name="x", contract=None, **changes) -> RunBuilder:
    return run.planned(name, contract or irreversible(), **({"depends_on": ()} | changes)).queued()


def committing(run: RunBuilder) -> RunBuilder:
    return run.moved(RunStatus.COMMITTING)


def past_the_pivot(check: str = "") -> RunBuilder:
    """The first of two independent items is out."""
    return item(item(base(check), "first").intent().succeeded())


# --- before anything is released --------------------------------------------------------------------------

PREREQUISITES = {
    "succeeded": (lambda run: run.intent().succeeded(), []),
    "failed": (lambda run: run.intent().refused(), [("turn_back", "", "a_step_did_not_succeed")]),
    "parked": (lambda run: run.intent().lost().parked(), [("turn_back", "", "a_step_did_not_succeed")]),
    "compensated": (
        lambda run: run.intent().succeeded().compensating().intent().lost().undone(),
        [("turn_back", "", "a_step_did_not_succeed")],
    ),
    "compensating": (
        lambda run: run.intent().succeeded().compensating(),
        [("turn_back", "", "a_step_did_not_succeed")],
    ),
    "denied": (lambda run: run.denied(), [("turn_back", "", "a_step_did_not_succeed")]),
    "accepted failure": (lambda run: run.intent().refused().parked().accepted(), []),
    "accepted doubt": (lambda run: run.intent().lost().parked().accepted(), []),
    "in flight": (lambda run: run.intent(), [("wait", "b", "call_in_flight")]),
    "in flight, lost": (lambda run: run.intent().later(31), [("reconcile", "b", "call_lost")]),
    "unknown": (lambda run: run.intent().lost(), [("reconcile", "b", "outcome_unknown")]),
    "unknown, looked": (lambda run: run.intent().lost().probed("inconclusive"), [("wait", "b", "next_probe")]),
    "unknown, diverged": (
        lambda run: run.intent().lost().probed("diverged"),
        [("escalate", "b", "state_is_neither_before_nor_after")],
    ),
    "unknown, heard of late": (lambda run: run.intent().lost().late(TOLD), [("reconcile", "b", "late_evidence")]),
    "failed by absence, heard of late": (
        lambda run: run.intent().lost().later(100).probed("absent").late(TOLD),
        [("reconcile", "b", "late_evidence")],
    ),
    "never sent": (lambda run: run, [("withdraw", "b", "gate_was_not_passed")]),
    "gate not passed": (lambda run: run.asked("forward"), [("withdraw", "b", "gate_was_not_passed")]),
}


@pytest.mark.parametrize("name", PREREQUISITES)
def test_every_compensatable_action_must_have_succeeded_first(name):
    """Trouble turns the run back before the pivot, doubt is reconciled first, and nothing is released meanwhile."""
    build, expected = PREREQUISITES[name]
    run = base().planned("b", depends_on=())
    build(run)
    run = committing(item(run))
    assert steps(run) == (expected or [("release", "x", "run_succeeded")])
    accepted_doubt = name == "accepted doubt"
    assert all_actions_succeeded(run.state) is (not expected) or accepted_doubt


def test_a_doubt_nobody_can_look_into_goes_to_a_person():
    """Blind, or the adapter is missing."""
    run = base().planned("b", reversible(probe=None, keying=Keying(kind="blind"))).intent().lost()
    (step,) = planned(committing(item(run))).steps
    assert (step.verb, step.action_id, step.reason) == ("escalate", "b", "no_proof_by_deadline")
    assert step.facts == {"probes": 0}, "a person is told how often somebody looked"
    run = committing(item(base().planned("b").intent().lost()))
    (step,) = planned(run, unusable={"b"}).steps
    assert (step.verb, step.action_id, step.reason) == ("escalate", "b", "adapter_unavailable")
    assert step.cause is ParkedCause.ADAPTER_UNAVAILABLE


def test_a_driver_proven_dead_brings_the_look_that_can_be_final_forward():
    """Nothing can land after its death plus the settle time: the last look need not wait for the deadline (rule 4)."""
    alive = committing(base().planned("b").intent().lost().later(16).probed("absent"))
    dead = committing(base().planned("b").intent().lost().claimed().later(9).probed("absent"))
    sent_us = dead.action("b").attempt_us
    assert planned(alive).due_us > alive.action("b").deadline_us
    assert sent_us + 10 * SECOND < planned(dead).due_us < sent_us + 11 * SECOND


@pytest.mark.parametrize("end", ["denied", "withdrawn"])
def test_what_is_not_required_may_be_missing(end):
    """Denied or withdrawn unsent is no trouble where the agent said it is not required (rule 27)."""
    run = base().planned("b", required=False)
    getattr(run, end)()
    assert steps(committing(item(run))) == [("release", "x", "run_succeeded")]


def test_a_slot_is_judged_by_its_last_generation():
    """A failed try that was tried anew is no trouble."""
    run = base().planned("b1", slot="b").intent().refused().planned("b2", slot="b", generation=2).intent().succeeded()
    assert [a.action_id for a in newest_of_slots(run.state)] == ["a", "b2"]
    assert steps(committing(item(run))) == [("release", "x", "run_succeeded")]


def test_no_twin_stands_in_for_another():
    """Each is an effect of its own, whatever slot it was registered in: none is forgotten at the release."""
    run = base()
    for name in ("t1", "t2"):
        run.planned(name, kind=ActionKind.DUPLICATE, of="a", slot="a~later", depends_on=()).settled(Outcome.SUCCEEDED)
    assert [a.action_id for a in newest_of_slots(run.state)] == ["a", "t1", "t2"]
    assert steps(committing(item(run))) == [
        ("compensate", "t1", "run_is_recovering"),
        ("compensate", "t2", "run_is_recovering"),
    ]


SETTLED_BY_RECOVERY = {
    "failed": lambda run: run.intent().refused(),
    "denied": lambda run: run.denied(),
    "withdrawn": lambda run: run.withdrawn(),
    "compensated": lambda run: run.intent().succeeded().compensating().intent().lost().undone(),
}


@pytest.mark.parametrize("end", SETTLED_BY_RECOVERY)
@pytest.mark.parametrize(
    ("when", "trouble"),
    [("before the checkpoint", True), ("after the checkpoint", False), ("after the run went on", True)],
)
def test_what_a_recovery_to_a_checkpoint_took_back_is_no_trouble_of_the_run(end, when, trouble):
    """The run went on without it; what failed before the checkpoint, or since, still turns it back (rule 24)."""
    run = base()

    def ends():
        SETTLED_BY_RECOVERY[end](run.planned("b", depends_on=()))

    if when == "before the checkpoint":
        ends()
    run.checkpoint("half")
    if when == "after the checkpoint":
        ends()
    run.moved(RunStatus.RECOVERING).targeted("half").moved(RunStatus.OPEN)
    if when == "after the run went on":
        ends()
    expected = ("turn_back", "", "a_step_did_not_succeed") if trouble else ("release", "x", "run_succeeded")
    assert steps(committing(item(run))) == [expected]
    assert all_actions_succeeded(run.state) is not trouble


def test_what_recovery_did_not_settle_is_still_trouble_after_a_checkpoint():
    """A person who has not decided yet is not overruled because the run went on (rule 24)."""
    run = base().checkpoint("half").planned("b", depends_on=()).intent().lost().parked()
    run.moved(RunStatus.RECOVERING).targeted("half").moved(RunStatus.OPEN)
    assert steps(committing(item(run))) == [("turn_back", "", "a_step_did_not_succeed")]


# --- a success that the provider may revoke -----------------------------------------------------------------

REVOCABLE = reversible(provisional_for_seconds=3600.0)  # looks at 0, 1 and 4 s; absence is final after ten
NO_ABSENCE = ProbeRule(strength="list", schedule_seconds=(0.0, 1.0))
LOOK = ("reconcile", "a", "success_is_provisional")
WAIT = ("wait", "a", "success_is_provisional")
GIVE_UP = ("escalate", "a", "a_provisional_success_cannot_be_confirmed")
GO = ("release", "x", "run_succeeded")

PROVISIONAL = {
    "nobody looked": (REVOCABLE, lambda run: run, LOOK),
    "window over": (REVOCABLE, lambda run: run.later(3600), GO),
    "a moment before": (REVOCABLE, lambda run: run.later(3599), LOOK),
    "stands": (REVOCABLE, lambda run: run.probed("applied", "still_there"), GO),
    "stands twice": (REVOCABLE, lambda run: run.probed("many", "still_there"), GO),
    "absent, too early": (REVOCABLE, lambda run: run.probed("absent", "still_there"), WAIT),
    "absent, final": (REVOCABLE, lambda run: run.probed("absent", "still_there").later(10), LOOK),
    "cannot tell": (REVOCABLE, lambda run: run.probed("inconclusive", "still_there"), WAIT),
    "cannot tell, later": (REVOCABLE, lambda run: run.probed("inconclusive", "still_there").later(1), LOOK),
    "cannot tell, ever": (
        REVOCABLE,
        lambda run: run.probed("inconclusive", "still_there").probed("diverged", "still_there").probed("diverged"),
        GIVE_UP,
    ),
    "absence proves nothing": (
        REVOCABLE.model_copy(update={"probe": NO_ABSENCE}),
        lambda run: run.probed("absent", "still_there").later(100),
        GIVE_UP,
    ),
    "accepted by a person": (REVOCABLE, lambda run: run.parked().accepted(), GO),
    "nobody can look": (REVOCABLE.model_copy(update={"probe": None}), lambda run: run, GO),
}


@pytest.mark.parametrize("name", PROVISIONAL)
def test_a_provisional_success_is_seen_to_stand_before_anything_rests_on_it(name):
    """Inside its window it is looked at again: seen, it stands; absence counts once final; doubt is a person's."""
    contract, build, expected = PROVISIONAL[name]
    run = committing(item(RunBuilder().planned("a", contract).intent().succeeded()))
    build(run.on("a"))
    assert steps(run) == [expected]


def test_a_look_from_before_the_run_finished_proves_nothing_now():
    """What was seen in mid-run may have been revoked since."""
    run = RunBuilder().planned("a", REVOCABLE).intent().succeeded().probed("applied", "still_there").later(1)
    assert steps(committing(item(run))) == [LOOK]


def test_a_look_at_a_provisional_success_says_what_it_asks():
    """Its answer is read as "does it still stand", with a date if it is too early to ask."""
    run = committing(item(RunBuilder().planned("a", REVOCABLE).intent().succeeded())).on("a")
    assert planned(run).steps[0].purpose == "still_there"
    run.later(2).probed("absent", "still_there")
    assert planned(run).due_us == run.action().outcome_us + 10 * SECOND


@pytest.mark.parametrize(
    ("probe", "final_after_s"),
    [
        (ProbeRule(strength="id", absent_final_after_seconds=10.0), 10),
        (ProbeRule(strength="id", absent_final_after_seconds=0.0), 0),
        (ProbeRule(strength="search", absent_final_after_seconds=10.0), None),
        (ProbeRule(strength="list", complete=False, absent_final_after_seconds=10.0), None),
        (ProbeRule(strength="id"), None),
        (None, None),
    ],
    ids=["by id", "by id, at once", "by search", "not every page", "never final", "nobody can look"],
)
def test_a_success_is_seen_revoked_only_by_a_look_that_can_prove_absence(probe, final_after_s):
    """Authoritative, complete, and the provider's settle time after the success: else `absent` revokes nothing."""
    action = RunBuilder().planned("a", reversible(probe=probe)).intent().succeeded().action("a")
    expected = None if final_after_s is None else action.outcome_us + final_after_s * SECOND
    assert absence_of_success_final_us(action) == expected


# --- the success check ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "fresh", "expected", "finish"),
    [
        (None, False, ("check", "", "success_must_be_verified_at_release"), None),
        ("passed", False, ("check", "", "success_must_be_verified_at_release"), None),
        ("passed", True, ("release", "x", "run_succeeded"), None),
        ("not_passed", True, ("turn_back", "", "success_check_not_passed"), None),
        ("unknown", True, ("wait", "", "success_check_unknown"), RunStatus.NEEDS_HUMAN),
    ],
)
def test_the_check_is_asked_at_release_and_only_passed_releases(answer, fresh, expected, finish):
    """`unknown` never releases; it is a person's if nothing else is due."""
    run = item(base("ci"))
    if answer:
        run.checked(answer)
    committing(run)
    assert steps(run, fresh=fresh) == [expected]
    assert planned(run, fresh=fresh).finish is finish


def test_a_run_that_releases_nothing_must_have_succeeded_too():
    """The check is asked although the outbox is empty: a run whose tests fail is taken back, not committed."""
    assert steps(committing(base("ci")), fresh=False) == [("check", "", "success_must_be_verified_at_release")]


def test_without_a_check_nobody_is_asked():
    """A run that names no success condition releases on the success of its actions."""
    assert steps(committing(item(base())), fresh=False) == [("release", "x", "run_succeeded")]


def test_a_check_that_did_not_pass_is_asked_again_at_its_moment():
    """A waiting run comes back by itself; the runtime says when."""
    run = committing(item(base("ci").checked("unknown")))
    made = planned(run, check_due_us=run.now_us + 5 * SECOND)
    assert [(step.verb, step.due_us) for step in made.steps] == [("wait", run.now_us + 5 * SECOND)]
    assert (made.finish, made.due_us) == (None, run.now_us + 5 * SECOND)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("succeeded", []),
        ("refused", [("escalate", "x", "release_refused")]),
        ("not_sent", [("check", "", "success_must_be_verified_at_release")]),
    ],
)
def test_past_the_pivot_the_check_is_asked_again_only_for_what_may_still_be_sent(end, expected):
    """A send to be repeated rests on it as the first did; what is out, or refused for good, rests on nothing more."""
    run = committing(past_the_pivot("ci")).intent()
    getattr(run, end)()
    assert steps(run.later(9), fresh=False) == expected


def test_past_the_pivot_a_failed_check_stops_and_never_turns_back():
    """The rest waits for a person."""
    run = committing(past_the_pivot("ci").checked("not_passed"))
    assert steps(run) == [("wait", "", "success_check_not_passed")]
    assert planned(run).finish is RunStatus.NEEDS_HUMAN


@pytest.mark.parametrize("fresh", [False, True])
def test_a_release_in_doubt_is_looked_into_whatever_the_check_says(fresh):
    """Unknown first reconciles; the check of the rest does not hide it."""
    run = item(item(base("ci"), "first").intent().lost()).checked("not_passed")
    assert steps(committing(run), fresh=fresh)[0] == ("reconcile", "first", "outcome_unknown")


# --- order ------------------------------------------------------------------------------------------------


def test_one_send_at_a_time_in_the_order_declared():
    """Then look again: the next plan rests on what became of it."""
    run = committing(item(item(base(), "x"), "y"))
    assert steps(run) == [("release", "x", "run_succeeded")]
    run.on("x").intent()
    assert steps(run) == [("wait", "x", "call_in_flight"), ("release", "y", "run_succeeded")]
    run.succeeded()
    assert steps(run) == [("release", "y", "run_succeeded")]
    assert planned(run.on("y").intent().succeeded()).finish is RunStatus.COMMITTED


def test_a_pause_holds_every_release_back_and_nothing_else():
    """No send, a date to look again, and doubts are still looked into (rule 15)."""
    run = committing(item(item(base(), "x"), "y"))
    assert steps(run, paused=True) == [("wait", "x", "paused"), ("wait", "y", "paused")]
    assert planned(run, paused=True).due_us > run.now_us
    assert steps(run.on("x").intent().lost(), paused=True) == [("reconcile", "x", "outcome_unknown")]


def test_trouble_stops_dependents_and_independent_items_go_on():
    """Parked: what depends on it waits, the others are released (rule 28)."""
    run = past_the_pivot()
    item(run, "y", depends_on=("x",))
    item(run, "z")
    committing(run).on("x").intent().lost().parked()
    assert steps(run) == [
        ("wait", "y", "what_it_depends_on_is_not_through"),
        ("release", "z", "run_succeeded"),
    ]
    run.on("z").intent().succeeded()
    made = planned(run)
    assert (steps(run), made.finish) == (
        [("wait", "y", "what_it_depends_on_is_not_through")],
        RunStatus.NEEDS_HUMAN,
    )
    assert steps(run.on("x").accepted()) == [("release", "y", "run_succeeded")]


def test_a_withdrawn_item_takes_its_dependents_with_it():
    """So does one that failed for good and was accepted as it is; approvals do not help."""
    for way in ("withdrawn", "accepted failure"):
        run = past_the_pivot()
        item(run, "y", depends_on=("x",))
        item(run, "z", ON_APPROVAL, depends_on=("y",)).asked().approved()
        committing(run).on("x")
        if way == "withdrawn":
            run.withdrawn()
        else:
            run.intent().refused().parked(ParkedCause.UNDO_FAILED).accepted()
        assert steps(run) == [
            ("withdraw", "y", "what_it_depends_on_was_withdrawn"),
            ("withdraw", "z", "what_it_depends_on_was_withdrawn"),
        ]
        assert planned(run.on("y").withdrawn().on("z").withdrawn()).finish is RunStatus.COMMITTED


# --- approvals --------------------------------------------------------------------------------------------

APPROVALS = {
    "nobody asked": (lambda run: run, ("ask", "a_person_approves_this_item")),
    "pending": (lambda run: run.asked(), ("wait", "awaits_approval")),
    "pending, expired": (lambda run: run.asked().later(601), ("escalate", "approval_expired")),
    "approved": (lambda run: run.asked().approved(), ("release", "approved")),
    "approved, expired": (lambda run: run.asked().approved().later(601), ("ask", "the_approval_has_expired")),
    "voided": (lambda run: run.asked().approved().closed("voided"), ("ask", "what_was_approved_has_changed")),
    "expired": (lambda run: run.asked().closed("expired"), ("escalate", "approval_expired")),
    "refused": (lambda run: run.asked().closed("refused"), ("withdraw", "refused")),
    "refused, roll back": (
        lambda run: run.asked().closed("refused", roll_back=True),
        ("turn_back", "a_person_said_roll_back"),
    ),
    "parked and reopened": (
        lambda run: run.asked().later(601).parked(ParkedCause.DENIED).reopened(),
        ("ask", "a_person_approves_this_item"),
    ),
    "parked and accepted": (
        lambda run: run.parked(ParkedCause.POLICY_CHANGED).accepted(),
        ("withdraw", "a_person_accepted_that_it_is_not_sent"),
    ),
    "approved, parked and reopened": (
        lambda run: run.asked().approved().parked(ParkedCause.POLICY_CHANGED).reopened(),
        ("release", "run_succeeded"),
    ),
    "approved, parked and reopened too late": (
        lambda run: run.asked().approved().parked(ParkedCause.POLICY_CHANGED).later(601).reopened(),
        ("ask", "a_person_approves_this_item"),
    ),
    "not sent": (
        lambda run: run.asked().approved().intent(approval_id="approval-1").not_sent(),
        ("wait", "send_again_later"),
    ),
    "not sent, again": (
        lambda run: run.asked().approved().intent(approval_id="approval-1").not_sent().later(1),
        ("release", "nothing_landed_send_again"),
    ),
    "not sent, approval expired": (
        lambda run: run.asked().approved().intent(approval_id="approval-1").not_sent().later(601),
        ("ask", "the_approval_has_expired"),
    ),
}


@pytest.mark.parametrize("name", APPROVALS)
def test_an_item_on_approval_is_sent_on_a_yes_in_force_and_on_nothing_else(name):
    """The approval of that very item, unexpired, reused for its re-sends only (rules 27 and 30)."""
    build, (verb, reason) = APPROVALS[name]
    run = committing(item(base(), contract=ON_APPROVAL))
    build(run)
    assert steps(run) == [(verb, "x", reason)]


def test_a_wait_for_people_ends_with_the_approval():
    """Waiting at an item has a date: its expiry."""
    run = committing(item(base(), contract=ON_APPROVAL)).asked()
    assert planned(run).due_us == run.state.approvals["approval-1"].expires_us


@pytest.mark.parametrize(
    ("answered", "before", "after"),
    [(False, "awaits_approval", "approval_expired"), (True, "approved", "the_approval_has_expired")],
)
def test_an_approval_ends_at_its_moment_and_not_after_it(answered, before, after):
    """In force is what has not reached its expiry: at that very moment nobody may say yes or send on it (rule 30)."""
    run = committing(item(base(), contract=ON_APPROVAL)).asked(ttl_seconds=10)
    if answered:
        run.approved()
    assert planned(run.later(9)).steps[0].reason == before
    assert run.now_us + SECOND == run.state.approvals["approval-1"].expires_us
    assert planned(run.later(1)).steps[0].reason == after


def test_roll_back_is_offered_only_before_the_pivot():
    """Past it a no withdraws the item and nothing else."""
    run = past_the_pivot()
    item(run, "y", ON_APPROVAL)
    committing(run).on("y").asked().closed("refused", roll_back=True).on("x").intent().succeeded()
    assert steps(run) == [("withdraw", "y", "refused")]


def test_an_item_on_success_that_policy_wants_approved_waits_for_its_approval():
    """Policy may ask for people where the contract does not."""
    run = committing(item(base())).asked()
    assert steps(run) == [("wait", "x", "awaits_approval")]
    assert steps(run.approved()) == [("release", "x", "approved")]


# --- failures, doubts, twins ------------------------------------------------------------------------------


def test_a_first_release_that_is_proven_failed_is_no_pivot():
    """committing to recovering stays legal (rule 28); the same failure later is a person's."""
    run = committing(item(base()).intent().refused())
    assert not run.state.pivot_passed
    assert steps(run) == [("turn_back", "x", "first_release_failed")]
    run = committing(past_the_pivot().intent().refused())
    (step,) = planned(run).steps
    assert (step.verb, step.action_id, step.reason) == ("escalate", "x", "release_refused")
    assert (step.cause, step.facts) == (ParkedCause.NOT_DELIVERED, {"code": "invalid"})
    assert planned(run.parked(ParkedCause.UNDO_FAILED)).finish is RunStatus.NEEDS_HUMAN


def test_a_person_who_says_that_nothing_arrived_gives_no_code():
    """What the provider said is told where the provider said something."""
    run = committing(past_the_pivot().intent().lost().settled(Outcome.FAILED))
    assert [(step.reason, step.facts) for step in planned(run).steps] == [("release_refused", {"code": ""})]


def test_nothing_is_sent_beside_a_run_that_turns_back():
    """The first item failed: its siblings stay in the outbox, or the run could not go back any more (rule 28)."""
    run = committing(item(item(base()).intent().refused(), "y"))
    assert steps(run) == [("turn_back", "x", "first_release_failed")]


def test_what_rests_on_trouble_that_is_not_decided_waits_for_it():
    """Refused and not yet a person's word: only what was given up takes its dependents with it, and a doubt that a
    person accepted is given up by nobody."""
    run = item(past_the_pivot(), "y", depends_on=("x",))
    committing(run).on("x").intent().refused()
    assert steps(run) == [
        ("escalate", "x", "release_refused"),
        ("wait", "y", "what_it_depends_on_is_not_through"),
    ]
    run = base().planned("doubt", depends_on=()).intent().lost().parked().accepted()
    item(item(item(run, "first").intent().succeeded(), "x"), "y", depends_on=("x", "doubt"))
    committing(run).on("x").intent().lost().parked()
    assert steps(run) == [("wait", "y", "what_it_depends_on_is_not_through")]


@pytest.mark.parametrize("outcome", ["running", "lost", "succeeded"])
def test_the_pivot_is_a_release_that_may_have_happened(outcome):
    """Running, unknown or succeeded; a gate in mid-run is none (rule 29)."""
    ways = {"running": lambda run: run, "lost": lambda run: run.lost(), "succeeded": lambda run: run.succeeded()}
    assert ways[outcome](item(base()).intent()).state.pivot_passed
    gate = base().planned("g", irreversible(mode="gate")).asked("forward").approved().intent()
    assert not ways[outcome](gate).state.pivot_passed
    assert not is_release(gate.action("g"))


def test_a_lost_release_is_found_or_sent_again_under_the_same_key():
    """Applied: succeeded; finally absent: the same action again; unclear to the end: parked (rule 28)."""
    run = committing(item(base()).intent().lost())
    key = run.action("x").idempotency_key
    assert steps(run) == [("reconcile", "x", "outcome_unknown")]
    run.later(100).probed("absent").later(2)
    assert steps(run) == [("release", "x", "nothing_landed_send_again")]
    assert run.intent().action("x").idempotency_key == key
    run.lost().probed("applied")
    assert planned(run).finish is RunStatus.COMMITTED


def test_late_evidence_is_heard_before_a_second_send():
    """It landed after all: nothing is sent again; an item parked in doubt is settled by it."""
    run = committing(item(base()).intent().lost().later(100).probed("absent")).later(2).late(TOLD)
    assert steps(run) == [("reconcile", "x", "late_evidence")]
    run = committing(item(base()).intent().lost().parked().late(TOLD))
    assert steps(run) == [("reconcile", "x", "late_evidence")]


def test_trouble_of_a_compensatable_action_past_the_pivot_compensates_nothing():
    """From there the run only goes forward."""
    run = committing(past_the_pivot()).on("a").parked(ParkedCause.DIVERGED)
    assert steps(run) == [("release", "x", "run_succeeded")]


def twin(run: RunBuilder) -> RunBuilder:
    return run.planned("t", kind=ActionKind.DUPLICATE, of="a", slot="a~2", depends_on=()).settled(Outcome.SUCCEEDED)


def test_a_twin_is_undone_by_the_ordinary_path_before_anything_is_released():
    """Until it is verified gone the outbox waits, and the run does not commit (rule 7)."""
    run = committing(twin(item(base())))
    assert steps(run) == [("compensate", "t", "run_is_recovering")]
    run.on("t").compensating().intent().lost()
    assert steps(run) == [("reconcile", "t", "undo_unverified")]
    run.undone(late_check_seconds=5)
    assert steps(run) == [("wait", "t", "late_landing_possible")]
    run.record(LateCheckDone(seen="absent"))
    assert steps(run) == [("release", "x", "run_succeeded")]


def test_a_twin_past_the_pivot_or_without_inverse_is_a_persons():
    """And the items that do not rest on it go on."""
    (step,) = planned(committing(twin(past_the_pivot()))).steps
    assert (step.verb, step.action_id, step.reason) == ("escalate", "t", "the_provider_made_two")
    assert step.cause is ParkedCause.UNREGISTERED
    run = item(base().planned("t", irreversible(), kind=ActionKind.DUPLICATE, of="a").settled(Outcome.SUCCEEDED))
    assert steps(committing(run)) == [("escalate", "t", "no_registered_compensation")]
    run.on("t").parked(ParkedCause.UNREGISTERED)
    assert steps(run) == [("release", "x", "run_succeeded")]
    assert planned(run.on("x").intent().succeeded()).finish is RunStatus.NEEDS_HUMAN


def test_committed_only_when_every_item_is_settled():
    """Nothing queued, nothing open, nobody asked."""
    assert planned(committing(base())).finish is RunStatus.COMMITTED
    assert planned(committing(item(base()))).finish is None
    assert planned(committing(item(base()).withdrawn())).finish is RunStatus.COMMITTED


def test_outcome_open_is_said_of_calls_whose_effect_is_not_known():
    """Running, unknown, or parked as unknown."""
    assert not outcome_open(base().action("a"))
    for run in (
        RunBuilder().planned("a").intent(),
        RunBuilder().planned("a").intent().lost(),
        RunBuilder().planned("a").intent().lost().parked(),
    ):
        assert outcome_open(run.action("a"))


# --- whole plans ------------------------------------------------------------------------------------------


def test_the_plans_are_what_was_agreed():
    """A change of any field of any step of the cases above is seen by a person who reads the difference."""
    lines: list[str] = []
    for name, (build, _) in PREREQUISITES.items():
        run = base().planned("b", depends_on=())
        build(run)
        lines += [f"prerequisite: {name}", *in_words(committing(item(run)))]
    for name, (contract, build, _) in PROVISIONAL.items():
        run = committing(item(RunBuilder().planned("a", contract).intent().succeeded()))
        build(run.on("a"))
        lines += [f"provisional: {name}", *in_words(run)]
    for name, (build, _) in APPROVALS.items():
        run = committing(item(base(), contract=ON_APPROVAL))
        build(run)
        lines += [f"approval: {name}", *in_words(run)]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def in_words(run: RunBuilder) -> list[str]:
    """Every field of a plan; times in seconds from now."""

    def seconds(due_us):
        return "no date" if due_us is None else f"in {(due_us - run.now_us) / SECOND:g} s"

    made = planned(run)
    return [
        *(
            f"  {step.verb} {step.action_id or 'run'}: {step.reason}, {seconds(step.due_us)}, {step.facts},"
            f" {step.purpose}, {step.cause.value}, place {step.place!r}"
            for step in made.steps
        ),
        f"  finish {made.finish}, {seconds(made.due_us)}",
    ]


# --- laws -------------------------------------------------------------------------------------------------

VERBS = {"release", "ask", "wait", "reconcile", "withdraw", "escalate", "turn_back", "check", "compensate"}
SEEN = ("applied", "absent", "diverged", "inconclusive")


def take(run: RunBuilder, step, draw) -> None:
    if step.action_id:
        run.on(step.action_id)
    action = run.state.actions.get(step.action_id)
    match step.verb:
        case "check":
            run.checked(draw("passed", "passed", "not_passed", "unknown"))
        case "ask":
            run.asked()
            match draw("yes", "no", "roll back", "later"):
                case "yes":
                    run.approved()
                case "no":
                    run.closed("refused")
                case "roll back":
                    run.closed("refused", roll_back=True)
                case _:
                    pass
        case "withdraw":
            run.withdrawn(step.reason)
        case "escalate":
            run.parked(step.cause)
        case "reconcile" if action.status is S.RUNNING:
            run.record(outcomes.owner_lost(at_us=run.now_us, detail=""))
        case "reconcile":
            run.probed(draw(*SEEN))
        case _:
            run.intent(approval_id=action.approval_id)
            getattr(run, draw("succeeded", "succeeded", "lost", "not_sent", "refused"))()


@given(st.data())
def test_every_committing_run_commits_turns_back_or_asks_a_person(data):
    """Whatever people, checks and systems answer: one send at a time, in order, approved, and no dead end."""

    def draw(*choices):
        return data.draw(st.sampled_from(choices))

    run = RunBuilder(check=draw("", "ci"))
    for n in range(data.draw(st.integers(0, 2))):
        run.planned(f"a{n}").intent()
        getattr(run, draw("succeeded", "succeeded", "lost"))()
    names: list[str] = []
    for n in range(data.draw(st.integers(1, 3))):
        item(run, f"x{n}", draw(irreversible(), ON_APPROVAL), depends_on=tuple(draw((), tuple(names))))
        names.append(f"x{n}")
    committing(run)
    fresh = False
    for _ in range(200):
        made = planned(run, fresh=fresh)
        assert {step.verb for step in made.steps} <= VERBS
        assert len([step for step in made.steps if step.verb in {"release", "turn_back"}]) <= 1
        for step in made.steps:
            if step.verb == "release":
                check_release(run, step.action_id, fresh=fresh)
            if step.verb == "turn_back":
                assert not run.state.pivot_passed
        if made.finish is not None or any(step.verb == "turn_back" for step in made.steps):
            check_finish(run, made.finish)
            return
        assert made.work or made.due_us is not None
        if made.work:
            step = made.work[0]
            take(run, step, draw)
            fresh = step.verb == "check" or (fresh and step.verb != "release")
        else:
            run.later((made.due_us - run.now_us) / 1_000_000 + 0.001)
    raise AssertionError("still going")


def check_release(run: RunBuilder, name: str, *, fresh: bool) -> None:
    """The conditions of a send out of the outbox."""
    action = run.action(name)
    assert action.status in {S.QUEUED, S.AWAITING_APPROVAL, S.FAILED}
    assert action.status is not S.FAILED or action.error.resendable
    assert all(a.status is S.SUCCEEDED for a in run.state.forward_actions() if not is_release(a))
    if run.state.run.check:
        assert fresh
        assert run.state.run.check_answer == "passed"
    if action.release_mode == "on_approval":
        approval = run.state.approvals[action.approval_id]
        assert approval.status in {"approved", "consumed"}
        assert run.now_us < approval.expires_us
    below = [a for a in run.state.forward_actions() if action in dependents(run.state, a.action_id)]
    assert all(a.status is S.SUCCEEDED for a in below)


def check_finish(run: RunBuilder, finish: RunStatus | None) -> None:
    """Committed: everything is out or withdrawn."""
    if finish is RunStatus.COMMITTED:
        ends = {S.SUCCEEDED, S.WITHDRAWN}
        assert {a.status for a in run.state.forward_actions()} <= ends
    if finish is RunStatus.NEEDS_HUMAN:
        parked = any(a.status is S.NEEDS_HUMAN for a in run.state.actions.values())
        assert parked or run.state.run.check_answer in {"unknown", "not_passed"}
