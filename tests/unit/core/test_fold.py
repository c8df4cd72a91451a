"""What every event does in every state: it applies, or it raises and nothing has changed."""

from __future__ import annotations

from typing import get_args

import pytest

from amends.core import events as e
from amends.core import fold, outcomes
from amends.core.errors import CorruptLedger, IllegalTransition
from amends.core.evidence import Decision, Evidence, FailureNote, Observation
from amends.core.rows import BundleRow, CertificateRow, PauseRow, QuarantineRow
from amends.core.status import TRANSITIONS, ActionKind, ActionStatus, Move, Outcome, ParkedCause, RunStatus
from amends.testing.contracts import irreversible, reversible
from amends.testing.run_builder import RunBuilder

S = ActionStatus
HOLDER = e.Holder(owner_id="owner-2", host="host-1", pid=2, owner_file="owner-2.lock")
DECISION = Decision(decision_id="d", verdict="allow", action="x", policy_version="v", effective_digest="d")
SEEN = Observation(seen="applied")
KINDS = {body.model_fields["kind"].default: body for body in get_args(get_args(e.Body)[0])}


def evidence(strength="authoritative"):
    return Evidence(source="probe", strength=strength, at_us=1, code="test")


def recorded(outcome):
    return e.OutcomeRecorded(outcome=outcome, evidence=evidence())


ABOUT_AN_ACTION: dict[str, tuple[e.Body, Move | None]] = {
    "decision_recorded": (e.DecisionRecorded(phase="forward", decision=DECISION), None),
    "action_denied": (e.ActionDenied(code="no_permit", reason="no"), Move.DENY),
    "action_queued": (e.ActionQueued(mode="on_success"), Move.QUEUE),
    "intent_recorded": (e.IntentRecorded(attempt=1, idempotency_key="k", deadline_us=9), Move.SEND),
    "outcome_recorded": (recorded(Outcome.SUCCEEDED), Move.SUCCEED),
    "outcome_recorded failed": (recorded(Outcome.FAILED), Move.FAIL),
    "outcome_recorded unknown": (recorded(Outcome.UNKNOWN), Move.LOSE),
    "probe_sent": (e.ProbeSent(purpose="reconcile", number=1), None),
    "probe_answered": (e.ProbeAnswered(purpose="reconcile", observation=SEEN), None),
    "evidence.late": (e.LateEvidence(outcome=Outcome.SUCCEEDED, evidence=evidence()), None),
    "compensation_started": (e.CompensationStarted(undo="u", rung="cancel"), Move.COMPENSATE),
    "compensation_verified": (e.CompensationVerified(how="undone"), Move.VERIFY_UNDONE),
    "late_check_done": (e.LateCheckDone(seen="absent"), None),
    "effect_reappeared": (e.EffectReappeared(observation=SEEN), Move.REAPPEAR),
    "action_withdrawn": (e.ActionWithdrawn(reason="never_sent"), Move.WITHDRAW),
    "action_parked": (e.ActionParked(cause=ParkedCause.UNKNOWN), Move.PARK),
    "action_reopened": (e.ActionReopened(reason="compensate"), None),
    "action_accepted": (e.ActionAccepted(by="Maya Lind"), None),
    "recovery_decided": (e.RecoveryDecided(decision="wait", reason="x"), None),
    "approval_asked": (
        e.ApprovalAsked(approval_id="p", phase="release", tier=1, shown={}, digest="d", expires_us=9),
        Move.ASK,
    ),
}
ABOUT_ITEMS: dict[str, e.Body] = {
    "approval_given": e.ApprovalGiven(approval_id="approval-1", by="Maya Lind", tier=1, channel="cli", digest="d"),
    "approval_closed": e.ApprovalClosed(approval_id="approval-1", how="refused"),
    "escalation_notified": e.EscalationNotified(escalation_id="escalation-1", notifier="n", delivered=True),
    "escalation_acknowledged": e.EscalationAcknowledged(escalation_id="escalation-1", by="Maya Lind", channel="cli"),
    "escalation_resolved": e.EscalationResolved(
        escalation_id="escalation-1", choice="accept_as_is", by="Maya Lind", channel="cli"
    ),
}
ABOUT_THE_RUN: dict[str, e.Body] = {
    "run_claimed": e.RunClaimed(holder=HOLDER, lease_until_us=9, proof="released", dead_since_us=1),
    "lease_renewed": e.LeaseRenewed(lease_until_us=99),
    "lease_released": e.LeaseReleased(),
    "run_moved": e.RunMoved(to=RunStatus.RECOVERING, reason="test"),
    "checkpoint_reached": e.CheckpointReached(name="half"),
    "recovery_targeted": e.RecoveryTargeted(checkpoint="half"),
    "check_answered": e.CheckAnswered(check="ci", answer="passed"),
    "recovery_waiting": e.RecoveryWaiting(due_us=5),
}
OF_THE_SYSTEM: dict[str, e.Body] = {
    "pause_set": e.PauseSet(scope="all", reason="r", by="Maya Lind"),
    "pause_lifted": e.PauseLifted(scope="all", by="Maya Lind"),
    "bundle_recorded": e.BundleRecorded(policy_version="v", effective_digest="d", sources={"a.cedar": "x"}),
    "bundle_activated": e.BundleActivated(policy_version="v", effective_digest="d"),
    "bundle_rejected": e.BundleRejected(role="active", policy_version="", digest="d", reasons=("r",), kept="v"),
    "run_quarantined": e.RunQuarantined(quarantined_run="run-9", reason="unreadable"),
    "quarantine_notified": e.QuarantineNotified(
        quarantined_run="run-9", owner="Maya Lind", notifier="pager", delivered=True
    ),
    "run_quarantine_lifted": e.RunQuarantineLifted(quarantined_run="run-9", by="Maya Lind", channel="cli"),
    "drill_certified": e.DrillCertified(
        capability="a.b", contract_digest="c", subject_digest="s", engine_major=1, expires_us=5
    ),
    "report_delivered": e.ReportDelivered(reported_run="run-9", owner="Maya Lind", notifier="n", delivered=True),
}
STARTS = {"run_opened", "action_planned", "escalation_opened"}


WAYS = {
    S.PLANNED: lambda run: run,
    S.QUEUED: lambda run: run.queued(),
    S.AWAITING_APPROVAL: lambda run: run.asked(),
    S.DENIED: lambda run: run.denied(),
    S.WITHDRAWN: lambda run: run.withdrawn(),
    S.RUNNING: lambda run: run.intent(),
    S.UNKNOWN: lambda run: run.intent().lost(),
    S.FAILED: lambda run: run.intent().lost().settled(Outcome.FAILED, "probe_absent", "probe"),
    S.NEEDS_HUMAN: lambda run: run.intent().lost().parked(),
    S.SUCCEEDED: lambda run: run.intent().succeeded(),
    S.COMPENSATING: lambda run: run.intent().succeeded().compensating().on("a"),
    S.COMPENSATED: lambda run: run.intent().succeeded().compensating().intent().lost().undone(),
}


def in_status(status: ActionStatus) -> RunBuilder:
    """A run whose action `a` stands in `status`, by the shortest legal way."""
    return WAYS[status](RunBuilder().planned("a", irreversible() if status is S.QUEUED else reversible()))


def event_of(run: RunBuilder, body: e.Body, action: str = "", **changes) -> e.Event:
    fields = {
        "event_id": "next",
        "ts_us": run.now_us,
        "run_id": run.run_id,
        "run_seq": run.state.run.head + 1,
        "action_id": action,
        "epoch": 1,
        "body": body,
    }
    return e.Event(**(fields | changes))


def frozen_copy(state):
    return [
        state.run.model_dump_json(),
        *(
            row.model_dump_json()
            for rows in (state.actions, state.approvals, state.escalations, state.claims)
            for row in rows.values()
        ),
    ]


# --- totality ---------------------------------------------------------------------------------------------


def test_every_kind_of_event_is_in_these_tables():
    """A new body needs a fold case, and a line here that says what it is about."""
    named = {name.split()[0] for name in ABOUT_AN_ACTION} | set(ABOUT_ITEMS) | set(ABOUT_THE_RUN) | set(OF_THE_SYSTEM)
    assert named | STARTS == set(KINDS)


def test_the_helper_reaches_every_status():
    """The states tested below are the states there are."""
    assert {status: in_status(status).action("a").status for status in S} == {status: status for status in S}


def expected_move(status: ActionStatus, name: str) -> Move | None:
    """The move an event stands for in a status, where the event alone does not say it."""
    move = ABOUT_AN_ACTION[name][1]
    if name in {"action_reopened", "action_accepted"}:
        return Move.REOPEN_UNKNOWN  # the parked action of `in_status` is unknown
    if name == "outcome_recorded unknown" and status is S.FAILED:
        return Move.CONTRADICT
    return move


@pytest.mark.parametrize("name", ABOUT_AN_ACTION)
@pytest.mark.parametrize("status", S, ids=lambda s: s.value)
def test_every_event_in_every_status_moves_by_the_table_or_raises(status, name):
    """Every pair: the table's status, the same status for plain facts, or IllegalTransition; the input is untouched."""
    run = in_status(status)
    before = run.state
    copy = frozen_copy(before)
    body, _ = ABOUT_AN_ACTION[name]
    move = expected_move(status, name)
    parked_unknown = status is S.NEEDS_HUMAN and name == "outcome_recorded unknown"
    if move is None or parked_unknown:
        after = fold.apply(before, event_of(run, body, "a"))
        assert after.actions["a"].status is status
    elif (status, move) in TRANSITIONS:
        after = fold.apply(before, event_of(run, body, "a"))
        assert after.actions["a"].status is TRANSITIONS[status, move]
    else:
        with pytest.raises(IllegalTransition):
            fold.apply(before, event_of(run, body, "a"))
        after = before
    assert frozen_copy(before) == copy
    if after is not before:
        assert after.run.head == before.run.head + 1
        assert list(after.actions) == list(before.actions)


@pytest.mark.parametrize("name", ABOUT_THE_RUN)
def test_facts_about_the_run_are_about_no_action(name):
    """They apply to the run, and raise where an action is named."""
    run = in_status(S.RUNNING)
    after = fold.apply(run.state, event_of(run, ABOUT_THE_RUN[name]))
    assert after.actions == run.state.actions
    with pytest.raises(CorruptLedger, match="cannot be about an action"):
        fold.apply(run.state, event_of(run, ABOUT_THE_RUN[name], "a"))


@pytest.mark.parametrize("name", sorted(set(ABOUT_AN_ACTION) - {"decision_recorded", "recovery_decided"}))
def test_facts_about_an_action_need_one(name):
    """An event that names no action, or one never planned, is never passed over in silence."""
    run = in_status(S.RUNNING)
    for action in ("", "nobody"):
        with pytest.raises(CorruptLedger):
            fold.apply(run.state, event_of(run, ABOUT_AN_ACTION[name][0], action))


@pytest.mark.parametrize("name", ["decision_recorded", "recovery_decided"])
def test_decisions_may_be_about_the_run_as_a_whole(name):
    """They are recorded and move nothing."""
    run = in_status(S.RUNNING)
    after = fold.apply(run.state, event_of(run, ABOUT_AN_ACTION[name][0]))
    assert after.actions == run.state.actions
    assert after.run.head == run.state.run.head + 1


@pytest.mark.parametrize("name", OF_THE_SYSTEM)
def test_system_facts_are_no_facts_of_a_run(name):
    """They stand in the system stream."""
    run = in_status(S.RUNNING)
    for action in ("", "a"):
        with pytest.raises(CorruptLedger):
            fold.apply(run.state, event_of(run, OF_THE_SYSTEM[name], action))


@pytest.mark.parametrize("name", ABOUT_ITEMS)
def test_facts_about_items_need_the_item(name):
    """An approval or escalation that was never opened is corruption, not a KeyError."""
    run = in_status(S.RUNNING)
    with pytest.raises(CorruptLedger, match="never"):
        fold.apply(run.state, event_of(run, ABOUT_ITEMS[name], "a"))


# --- the stream -------------------------------------------------------------------------------------------


def test_a_stream_begins_once_with_its_opening():
    """Nothing comes before `run_opened`, and nothing opens a run twice or in the middle."""
    run = RunBuilder()
    opening = run.events[0]
    assert fold.replay([]) is None
    assert fold.replay([opening]) == run.state
    cases = [
        (None, event_of(run, e.LeaseReleased(), run_seq=1)),
        (run.state, event_of(run, opening.body)),
        (None, event_of(run, opening.body, run_seq=2)),
        (None, event_of(run, opening.body, "a", run_seq=1)),
    ]
    for state, event in cases:
        with pytest.raises(CorruptLedger):
            fold.apply(state, event)


@pytest.mark.parametrize("changes", [{"run_seq": 1}, {"run_seq": 9}, {"run_id": "run-2"}], ids=str)
def test_a_gap_a_repetition_and_a_stranger_are_corruption(changes):
    """`run_seq` is dense and a stream holds one run."""
    run = in_status(S.RUNNING)
    with pytest.raises(CorruptLedger):
        fold.apply(run.state, event_of(run, e.LeaseReleased(), **changes))


def test_an_action_is_planned_once_and_has_a_name():
    """A second plan would erase what is known."""
    run = in_status(S.RUNNING)
    plan = run.events[1].body
    for action in ("a", ""):
        with pytest.raises(CorruptLedger, match="plans an action"):
            fold.apply(run.state, event_of(run, plan, action))


def test_ledger_time_is_the_latest_and_the_epoch_the_highest_seen():
    """A late fact from an older clock or epoch moves neither back."""
    run = RunBuilder().planned("a").intent().claimed()
    event = event_of(run, ABOUT_AN_ACTION["evidence.late"][0], "a", ts_us=1, epoch=1)
    after = fold.apply(run.state, event)
    assert after.run.ledger_us == run.state.run.ledger_us
    assert after.run.epoch == 2


@pytest.mark.parametrize("end", [RunStatus.RECOVERED, RunStatus.ABANDONED])
def test_a_terminal_run_never_changes(end):
    """Later facts are kept as evidence, and no action moves or begins any more (rule 25)."""
    run = RunBuilder().planned("a").intent().lost().moved(RunStatus.RECOVERING, end)
    for body, action in [(recorded(Outcome.SUCCEEDED), "a"), (run.events[1].body, "b")]:
        with pytest.raises(IllegalTransition):
            fold.apply(run.state, event_of(run, body, action))
    after = fold.apply(run.state, event_of(run, ABOUT_AN_ACTION["evidence.late"][0], "a"))
    assert after.actions["a"].late
    with pytest.raises(IllegalTransition):
        run.moved(RunStatus.RECOVERING)


# --- the run row ------------------------------------------------------------------------------------------


def test_the_run_row_says_who_drives_and_where_it_stands():
    """Every fact about the run has its field."""
    run = RunBuilder(check="ci").checkpoint("half").targeted("half").checked("passed")
    run.record(e.RecoveryWaiting(due_us=5), "")
    row = run.state.run
    assert (row.checkpoints, row.recover_to, row.check_answer, row.due_us) == ({"half": 2}, "half", "passed", 5)
    run.claimed(dead_since_us=77)
    row = run.state.run
    assert (row.epoch, row.holder_id, row.dead_since_us) == (2, "owner-2", 77)
    assert run.record(e.LeaseRenewed(lease_until_us=99), "").state.run.lease_until_us == 99
    row = run.record(e.LeaseReleased(), "").state.run
    assert (row.holder_id, row.lease_until_us) == ("", run.now_us)
    row = run.moved(RunStatus.RECOVERING).state.run
    assert (row.status, row.due_us, row.recover_to, row.terminal) == (RunStatus.RECOVERING, None, "half", False)
    row = run.moved(RunStatus.OPEN).state.run
    assert row.recover_to == ""


def test_the_run_remembers_its_direction():
    """A person's decision sends a waiting run on in the direction it came from."""
    run = RunBuilder().moved(RunStatus.COMMITTING, RunStatus.NEEDS_HUMAN)
    assert run.state.run.forward
    assert not run.moved(RunStatus.RECOVERING, RunStatus.NEEDS_HUMAN).state.run.forward


def test_opening_claims_the_run_key():
    """Tenant, workflow and run key are one run."""
    claims = RunBuilder().state.claims
    assert [(claim.action_id, claim.held) for claim in claims.values()] == [("", True)]


# --- one action's life ------------------------------------------------------------------------------------


def test_the_first_intent_fixes_when_it_was_sent_and_what_was_known():
    """A re-send counts an attempt and leaves the first send's place; siblings in flight are not known."""
    run = RunBuilder().planned("a").intent().succeeded().planned("b").intent().planned("c").intent()
    first = run.action("c")
    assert first.after == ("a",)
    run.not_sent().later(5).intent()
    again = run.action("c")
    assert (again.attempt, again.sent_seq, again.sent_us) == (2, first.sent_seq, first.sent_us)
    assert again.attempt_us > first.attempt_us
    assert again.outcome is Outcome.NONE
    assert again.error is None


def test_what_a_call_returned_is_kept_when_a_later_fact_says_less():
    """A probe without details never erases the reference."""
    run = RunBuilder().planned("a").intent().lost()
    run.record(
        e.OutcomeRecorded(
            outcome=Outcome.UNKNOWN,
            evidence=evidence("weak"),
            reference="ref-1",
            effect={"id": "x"},
            error=FailureNote(code="accepted"),
        )
    )
    row = run.settled(Outcome.SUCCEEDED).action("a")
    assert (row.reference, row.effect, row.error) == ("ref-1", {"id": "x"}, None)
    assert [item.code for item in row.evidence] == ["read_timeout", "test", "person"]


def test_unknown_since_and_the_looks_belong_to_one_question():
    """Being lost again keeps the clock of the question; an answer ends it."""
    run = RunBuilder().planned("a").intent().lost()
    since = run.now_us
    run.later(1).probed("inconclusive").later(1).lost()
    row = run.action("a")
    assert (row.unknown_since_us, row.probes) == (since, 1)
    row = run.settled(Outcome.FAILED, "probe_absent", "probe").action("a")
    assert (row.unknown_since_us, row.probes) == (None, 0)
    assert run.lost().action("a").unknown_since_us == run.now_us


def test_a_proven_failure_absorbs_contradiction_and_absence_does_not():
    """Rule 4, in the one place that moves statuses."""
    with pytest.raises(IllegalTransition, match="proven"):
        RunBuilder().planned("a").intent().refused().lost()
    run = RunBuilder().planned("a").intent().lost().settled(Outcome.FAILED, "probe_absent", "probe")
    assert run.lost().action("a").status is S.UNKNOWN


def test_late_evidence_moves_nothing_and_waits():
    """It is there when the owner looks, also if the owner first records that the answer was lost (rule 13)."""
    run = RunBuilder().planned("a").intent()
    told = outcomes.answered(
        reversible(), at_us=1, reference="ref-1", effect={"id": "x"}, output={}, after={}, parts=()
    )
    row = run.late(told).action("a")
    assert (row.status, row.outcome, row.late_outcome) == (S.RUNNING, Outcome.NONE, Outcome.SUCCEEDED)
    row = run.lost().action("a")
    assert (len(row.late), row.late_outcome, row.late_reference) == (1, Outcome.SUCCEEDED, "ref-1")
    row = run.settled(Outcome.SUCCEEDED).action("a")
    assert (row.late, row.late_outcome) == ((), Outcome.NONE)


def test_weak_late_evidence_never_hides_strong():
    """Two call-backs: what proves something stays in sight."""
    run = RunBuilder().planned("a").intent().lost()
    told = outcomes.answered(reversible(), at_us=1, reference="ref-1", effect={}, output={}, after={}, parts=())
    doubt = outcomes.lost(at_us=2, code="timeout", detail="")
    row = run.late(doubt).late(told).late(doubt).action("a")
    assert (len(row.late), row.late_outcome, row.late_reference) == (3, Outcome.SUCCEEDED, "ref-1")


def test_the_undo_lives_exactly_while_the_action_is_compensating():
    """Started, verified, reappeared, parked: the link follows (rule 19)."""
    run = RunBuilder().planned("a").intent().succeeded().compensating().intent().lost()
    forward = run.action("a")
    assert run.state.undo_of(forward).of == "a"
    assert forward.tried_rungs == ("cancel",)
    run.undone(late_check_seconds=20)
    forward = run.action("a")
    assert run.state.undo_of(forward) is None
    assert (forward.compensated_how, forward.late_check_due_us) == ("undone", run.now_us + 20_000_000)
    run.record(e.EffectReappeared(observation=SEEN))
    forward = run.action("a")
    assert (forward.status, forward.tried_rungs, forward.late_check_due_us) == (S.SUCCEEDED, (), None)
    run.compensating().on("a").parked(ParkedCause.UNDO_FAILED)
    assert run.state.undo_of(run.action("a")) is None
    assert len(run.state.undos_of("a")) == 2
    run.reopened()
    assert run.action("a").tried_rungs == ()


def test_the_same_rung_again_is_one_tried_rung():
    """Starting a rung again does not use up another one."""
    run = RunBuilder().planned("a").intent().succeeded().compensating().on("a")
    undo = run.action("a").undo
    run.record(e.CompensationStarted(undo=undo, rung="cancel"))
    assert run.action("a").tried_rungs == ("cancel",)


def test_a_late_check_that_is_done_is_not_due():
    """The second look is taken once."""
    run = RunBuilder().planned("a").intent().succeeded().compensating().intent().lost().undone(late_check_seconds=5)
    run.record(e.LateCheckDone(seen="absent"))
    assert run.action("a").late_check_due_us is None


@pytest.mark.parametrize(
    ("build", "back"),
    [
        (lambda run: run.planned("a", irreversible()).queued().parked(), S.QUEUED),
        (lambda run: run.planned("a").intent().succeeded().parked(), S.SUCCEEDED),
        (lambda run: run.planned("a").intent().lost().parked(), S.UNKNOWN),
        (lambda run: run.planned("a").intent().refused().parked(), S.FAILED),
    ],
    ids=["queued", "succeeded", "unknown", "failed"],
)
def test_reopening_and_accepting_go_where_the_outcome_says(build, back):
    """A person's decision never invents an outcome."""
    row = build(RunBuilder()).reopened().action("a")
    assert (row.status, row.parked_cause, row.accepted_by) == (back, None, "")
    row = build(RunBuilder()).accepted().action("a")
    assert (row.status, row.parked_cause, row.accepted_by) == (back, None, "Maya Lind")


def test_a_parked_doubt_stays_parked_until_somebody_knows():
    """Another inconclusive look does not reopen it; proof does (rule 22)."""
    run = RunBuilder().planned("a").intent().lost().parked().lost()
    assert (run.action("a").status, run.action("a").parked_cause) == (S.NEEDS_HUMAN, ParkedCause.UNKNOWN)
    assert run.settled(Outcome.SUCCEEDED).action("a").parked_cause is None


def test_decisions_remember_the_version_that_let_it_go_forward():
    """A later probe or undo decision does not overwrite the forward one."""
    run = RunBuilder().planned("a").decided(version="v1").decided("undo", version="v2")
    row = run.action("a")
    assert (row.forward_policy_version, row.decided.policy_version) == ("v1", "v2")
    run.record(e.RecoveryDecided(decision="wait", reason="next_probe"))
    assert run.action("a").last_decided == "wait:next_probe"


def test_a_permitted_look_is_no_decision_about_the_action_and_a_forbidden_one_is():
    """What policy said of the call stands; that nobody may look is what a person must read."""
    run = RunBuilder().planned("a").decided(version="v1").decided("probe", version="v2")
    assert run.action("a").decided.policy_version == "v1"
    run.decided("probe", "deny", version="v3")
    row = run.action("a")
    assert (row.decided.verdict, row.decided.policy_version, row.forward_policy_version) == ("deny", "v3", "v1")


# --- claims -----------------------------------------------------------------------------------------------

CLAIM = "effect:acme:slot"


@pytest.mark.parametrize("status", sorted(set(S) - {S.QUEUED}), ids=lambda s: s.value)
def test_a_claim_is_held_until_nothing_can_exist(status):
    """Released on failed, denied, withdrawn and compensated only (rule 6)."""
    source = in_status(status)
    plan = source.events[1].body.model_copy(update={"claim": CLAIM})
    run = RunBuilder().record(plan, "a")
    for event in source.events[2:]:
        run.record(event.body, event.action_id)
    assert run.action("a").status is status
    assert run.state.claims[CLAIM].held is (status not in {S.FAILED, S.DENIED, S.WITHDRAWN, S.COMPENSATED})


def test_a_later_generation_keeps_the_claim():
    """What becomes of the first one afterwards does not take the claim from the second, whatever their ids are."""
    run = RunBuilder().planned("z", claim=CLAIM).intent().lost().settled(Outcome.FAILED, "absent", "probe")
    run.planned("a", claim=CLAIM, generation=2).intent()
    run.on("z").lost().settled(Outcome.FAILED, "absent", "probe")
    claim = run.state.claims[CLAIM]
    assert (claim.action_id, claim.held) == ("a", True)


# --- people -----------------------------------------------------------------------------------------------


def waiting() -> RunBuilder:
    return RunBuilder().planned("a", irreversible(mode="on_approval")).queued().asked()


def approval(run: RunBuilder):
    return run.state.approvals[run.action("a").approval_id]


def test_an_approval_gathers_different_people():
    """One person's yes counts once, however often it is given; tier and roles add up."""
    run = waiting().approved("Maya Lind", tier=1)
    run.record(
        e.ApprovalGiven(
            approval_id="approval-1",
            by="Jo Day",
            roles=("finance",),
            tier=2,
            channel="cli",
            digest=approval(run).digest,
        )
    ).approved("Maya Lind")
    row = approval(run)
    assert (row.status, row.approvers, row.approver_roles, row.granted_tier) == (
        "approved",
        ("Maya Lind", "Jo Day"),
        ("finance",),
        2,
    )


def test_a_yes_to_something_else_is_refused():
    """The digest of what was shown binds the answer, never its position (rule 30)."""
    run = waiting()
    with pytest.raises(IllegalTransition, match="other content"):
        run.record(ABOUT_ITEMS["approval_given"])
    assert approval(run).status == "pending"


def test_an_intent_consumes_the_approval_and_a_re_send_may_use_it_again():
    """Single use: one generation, its re-sends included."""
    run = waiting().approved().intent(approval_id="approval-1")
    assert approval(run).status == "consumed"
    run.not_sent().intent(approval_id="approval-1")
    assert run.action("a").attempt == 2


@pytest.mark.parametrize("how", ["refused", "expired", "voided", "withdrawn"])
def test_a_closed_approval_takes_no_more_answers(how):
    """No yes, no second no and no intent after the decision; the loser learns what was decided."""
    run = waiting().closed(how)
    assert approval(run).status == how
    digest = approval(run).digest
    late_yes = e.ApprovalGiven(approval_id="approval-1", by="Jo Day", tier=1, channel="cli", digest=digest)
    for body in (late_yes, ABOUT_ITEMS["approval_closed"]):
        with pytest.raises(IllegalTransition, match=how):
            run.record(body)
    with pytest.raises(IllegalTransition):
        run.intent(approval_id="approval-1")


def test_a_pending_approval_lets_nothing_pass():
    """Only a yes is a yes; an approval that was never asked for is corruption."""
    with pytest.raises(IllegalTransition, match="pending"):
        waiting().intent(approval_id="approval-1")
    with pytest.raises(CorruptLedger, match="never asked"):
        waiting().intent(approval_id="approval-9")
    with pytest.raises(CorruptLedger, match="twice"):
        waiting().record(
            e.ApprovalAsked(approval_id="approval-1", phase="release", tier=1, shown={}, digest="d", expires_us=9)
        )


def test_a_voided_approval_is_asked_for_again():
    """The action then points at the new question."""
    run = waiting().approved().closed("voided").asked()
    assert approval(run).approval_id == "approval-2"
    assert approval(run).status == "pending"


def test_an_escalation_is_paged_acknowledged_and_resolved_once():
    """Deliveries add up, acknowledging after the decision reopens nothing."""
    run = RunBuilder().planned("a").intent().lost().parked().escalated()
    for delivered in (False, True, False):
        run.record(e.EscalationNotified(escalation_id="escalation-1", notifier="n", delivered=delivered))
    row = run.state.escalations["escalation-1"]
    assert (row.deliveries, row.delivered, row.status) == (3, True, "open")
    run.record(ABOUT_ITEMS["escalation_acknowledged"])
    assert run.state.escalations["escalation-1"].status == "acknowledged"
    run.record(ABOUT_ITEMS["escalation_resolved"])
    row = run.state.escalations["escalation-1"]
    assert (row.status, row.choice, row.by, row.resolved_us) == (
        "resolved",
        "accept_as_is",
        "Maya Lind",
        run.now_us,
    )
    for name in ("escalation_acknowledged", "escalation_resolved"):
        with pytest.raises(IllegalTransition, match="accept_as_is"):
            run.record(ABOUT_ITEMS[name])


def test_an_escalation_is_about_a_known_action_or_the_run_and_opened_once():
    """A work item nobody can look up is corruption."""
    run = RunBuilder().planned("a").intent().lost().parked().escalated()
    opened = run.events[-1].body
    with pytest.raises(CorruptLedger, match="twice"):
        run.record(opened)
    other = opened.model_copy(update={"escalation_id": "escalation-2"})
    with pytest.raises(CorruptLedger, match="never planned"):
        run.record(other, "nobody")
    assert run.record(other, "").state.escalations["escalation-2"].action_id == ""


# --- the system stream ------------------------------------------------------------------------------------


def test_system_facts_set_their_rows():
    """Pauses, bundles, quarantines and certificates."""
    run = RunBuilder()
    held = QuarantineRow(run_id="run-9", reason="unreadable", since_us=run.now_us)
    rows = {name: fold.system_row(event_of(run, body), held) for name, body in OF_THE_SYSTEM.items()}
    assert rows["pause_set"] == PauseRow(scope="all", active=True, reason="r", by="Maya Lind")
    assert rows["pause_lifted"] == PauseRow(scope="all", active=False, by="Maya Lind")
    assert rows["bundle_recorded"] == BundleRow(effective_digest="d", policy_version="v")
    assert rows["run_quarantined"] == QuarantineRow(run_id="run-9", reason="unreadable", since_us=run.now_us)
    assert rows["quarantine_notified"] == held.model_copy(update={"status": "told"})
    assert rows["run_quarantine_lifted"] == held.model_copy(update={"status": "lifted", "by": "Maya Lind"})
    assert rows["drill_certified"] == CertificateRow(
        key="a.b|c|s|1",
        capability="a.b",
        contract_digest="c",
        subject_digest="s",
        certified_us=run.now_us,
        expires_us=5,
    )
    assert rows["report_delivered"] is None
    assert fold.system_row(run.events[0]) is None


def test_a_fact_about_a_quarantine_names_its_run_and_no_other_fact_does():
    """By it the row that is known so far is found."""
    named = {kind: fold.quarantined_run(body) for kind, body in OF_THE_SYSTEM.items()}
    about = {"run_quarantined", "quarantine_notified", "run_quarantine_lifted"}
    assert named == {kind: "run-9" if kind in about else "" for kind in OF_THE_SYSTEM}


def test_a_quarantine_is_lifted_once_and_a_late_notice_brings_none_back():
    """Rule 31: the second person learns who was first. A notice that left meanwhile changes nothing."""
    run = RunBuilder()
    told, lifted = OF_THE_SYSTEM["quarantine_notified"], OF_THE_SYSTEM["run_quarantine_lifted"]
    held = fold.system_row(event_of(run, OF_THE_SYSTEM["run_quarantined"]))
    failed = told.model_copy(update={"delivered": False})
    assert fold.system_row(event_of(run, failed), held) == held
    over = fold.system_row(event_of(run, lifted), held)
    assert not over.active
    assert fold.system_row(event_of(run, told), over) == over
    with pytest.raises(IllegalTransition, match="Maya Lind"):
        fold.system_row(event_of(run, lifted), over)
    assert fold.system_row(event_of(run, OF_THE_SYSTEM["run_quarantined"]), over) == held
    for body in (told, lifted):
        with pytest.raises(CorruptLedger, match="never set"):
            fold.system_row(event_of(run, body))


def test_a_certificate_is_about_exactly_what_was_drilled():
    """Another contract, subject or engine makes it void."""
    keys = {
        fold.certificate_key(*parts)
        for parts in [
            ("a.b", "c", "s", 1),
            ("a.c", "c", "s", 1),
            ("a.b", "d", "s", 1),
            ("a.b", "c", "t", 1),
            ("a.b", "c", "s", 2),
        ]
    }
    assert len(keys) == 5


def test_a_twin_is_found_without_a_send():
    """It exists: it counts as sent, and it is a forward action to settle (rule 7)."""
    run = RunBuilder().planned("t", kind=ActionKind.DUPLICATE, of="a").settled(Outcome.SUCCEEDED, "twin_found", "probe")
    row = run.action("t")
    assert (row.status, row.ever_sent, row.forward) == (S.SUCCEEDED, True, True)


# --- text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [body for body, _ in ABOUT_AN_ACTION.values()]
    + [*ABOUT_ITEMS.values(), *ABOUT_THE_RUN.values(), *OF_THE_SYSTEM.values()],
    ids=lambda body: body.kind,
)
def test_every_body_reads_back_from_its_text(body):
    """What is written is what was meant."""
    assert e.decode(e.encode(body), "1") == body


@pytest.mark.parametrize(
    "payload",
    ["", "null", "{}", '{"kind":"no_such_kind"}', '{"kind":"lease_renewed"}', '{"kind":"lease_released","more":1}'],
)
def test_a_payload_that_does_not_read_back_is_corruption(payload):
    """It names the event, and is never taken for a missing outcome (rule 16)."""
    with pytest.raises(CorruptLedger, match="event 17 cannot be read") as caught:
        e.decode(payload, "17")
    assert caught.value.data == {"where": "17"}
