"""The views show the state that the fold computes from the same events."""

import pytest

from amends.core import events as e
from amends.core.evidence import Evidence, Observation
from amends.core.status import ActionKind, Outcome, ParkedCause, RunStatus
from amends.testing.contracts import irreversible, reversible
from amends.testing.ledger_builder import store
from amends.testing.run_builder import RunBuilder


def moment(us):
    """Microseconds as a query answers them."""
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).replace(tzinfo=None).isoformat(sep=" ")


@pytest.fixture
def run(clock):
    """A run with an undone call, an escalated one, an outbox item with its approval, and a correction."""
    run = RunBuilder(clock, run_id="r1", check="ci")
    run.planned("a", label="first", depends_on=()).decided().intent().later(2).lost().later(7).probed(
        "applied", reference="ref-9"
    )
    run.planned("b", depends_on=("a",)).decided().intent().later(1).refused()
    run.planned("c", irreversible(mode="on_approval")).decided().queued().later(3).asked().later(5).approved()
    run.planned("d", irreversible()).decided().queued().later(1).withdrawn()
    run.moved(RunStatus.RECOVERING).on("a")
    run.record(e.RecoveryDecided(decision="compensate", reason="the run died", facts={"outcome": "succeeded"}))
    run.compensating().decided("undo", version="site@sha256:2").intent().later(1).not_sent().intent().later(1)
    run.succeeded().probed("absent", "verify_undone").undone(late_check_seconds=30)
    run.on("b").record(e.ActionParked(cause=ParkedCause.DIVERGED)).escalated("diverged")
    run.planned(
        "note", reversible("slack.post"), kind=ActionKind.CORRECT, place="slack:C1/2", revision=1, covers=("a",)
    )
    run.decided("correct").intent().later(1).succeeded()
    run.moved(RunStatus.NEEDS_HUMAN)
    return run


@pytest.fixture
def asked(ledger, events, run):
    store(events, run)
    ledger.refresh()
    return ledger


def rows(ledger, sql):
    table = ledger.query(sql)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_runs_equal_the_fold(asked, run):
    """Status, reason, owner, times and counts."""
    (row,) = rows(asked, "FROM runs")
    folded = run.state.run
    assert (
        row
        | {
            "run_id": "r1",
            "run_key": folded.run_key,
            "owner": folded.owner,
            "success_check": "ci",
            "status": "needs_human",
            "reason": "test",
            "epoch": folded.epoch,
            "actions": len(run.state.actions),
            "events": len(run.events),
            "entered_needs_human": True,
            "opened": moment(folded.opened_us),
            "moved": moment(folded.moved_us),
            "updated": moment(folded.updated_us),
        }
        == row
    )


def test_actions_equal_the_fold(asked, run):
    """Every action with the state the journal's rows hold."""
    found = {row["action_id"]: row for row in rows(asked, "FROM actions")}
    assert found.keys() == run.state.actions.keys()
    for action in run.state.actions.values():
        row = found[action.action_id]
        assert (
            row
            | {
                "run_seq": action.seq,
                "action_kind": action.kind.value,
                "of_action": action.of,
                "rung": action.rung,
                "capability": action.capability,
                "system": action.contract.effect.system,
                "provider": action.instance,
                "adapter": action.adapter,
                "environment": action.environment,
                "label": action.label,
                "attempts": action.attempt,
                "status": action.status.value,
                "outcome": action.outcome.value,
                "resource": action.resource,
                "request_digest": action.args_digest,
                "provider_reference": action.reference,
                "effect_kind": action.contract.effect.kind,
                "reversibility": action.contract.reversibility,
                "compensation": [rung.name for rung in action.contract.compensation],
                "parked_cause": action.parked_cause.value if action.parked_cause else "",
                "required": action.required,
                "depends_on": None if action.depends_on is None else list(action.depends_on),
                "created": moment(action.created_us),
                "sent": None if action.sent_us is None else moment(action.sent_us),
            }
            == row
        )
        assert row["updated"] >= moment(action.updated_us)  # people's answers about it count too


def test_actions_show_their_last_error_and_undo(asked, run):
    """An error stays readable after a later success; the undo started last is named."""
    a, b = rows(asked, "FROM actions WHERE action_id IN ('a', 'b') ORDER BY action_id")
    (undo,) = run.state.undos_of("a")
    assert (a["last_error_code"], a["undo_action"]) == ("read_timeout", undo.action_id)
    assert (b["last_error_code"], b["last_error_message"]) == ("invalid", "the provider said no")
    assert a["policy_version"] == run.action("a").forward_policy_version


def test_attempts_show_each_send(asked, run):
    """With its own outcome and time, the undo's second send included."""
    (undo,) = run.state.undos_of("a")
    found = rows(asked, f"FROM attempts WHERE action_id IN ('a', '{undo.action_id}') ORDER BY seq")
    assert [(row["attempt"], row["outcome"], row["ever_unknown"], row["answer_seconds"]) for row in found] == [
        (1, "succeeded", True, 2.0),
        (1, "failed", False, 1.0),
        (2, "succeeded", False, 1.0),
    ]
    assert found[0]["idempotency_key"] == run.action("a").idempotency_key
    assert (found[0]["first_unknown"], found[0]["resolved"]) == tuple(
        moment(x.ts_us) for x in run.events if isinstance(x.body, e.OutcomeRecorded) and x.action_id == "a"
    )


def test_decisions_and_evidence_show_what_was_recorded(asked):
    """Phase, verdict and version; source, strength and what was seen."""
    assert [row["phase"] for row in rows(asked, "FROM decisions ORDER BY seq")] == [
        *["forward"] * 4,
        "undo",
        "correct",
    ]
    assert rows(asked, "SELECT DISTINCT policy_version FROM decisions WHERE phase = 'undo'") == [
        {"policy_version": "site@sha256:2"}
    ]
    found = rows(asked, "SELECT source, strength, says, seen, code FROM evidence WHERE action_id = 'a' ORDER BY seq")
    assert [tuple(row.values()) for row in found[:3]] == [
        ("response", "weak", "unknown", None, "read_timeout"),
        ("probe", None, None, "applied", None),
        ("probe", "authoritative", "succeeded", None, "probe_applied"),
    ]


def test_recovery_decisions_show_reason_and_facts(asked):
    """As they were when it was decided."""
    (row,) = rows(asked, "FROM recovery_decisions")
    assert (row["decision"], row["reason"], row["facts"]) == ("compensate", "the run died", '{"outcome":"succeeded"}')
    assert (row["status"], row["outcome"], row["due"]) == ("succeeded", "succeeded", None)


def test_compensations_show_sends_and_proof(asked, run):
    """One row for the forward action."""
    (row,) = rows(asked, "FROM compensations")
    assert (row["action_id"], row["status"], row["how"]) == ("a", "compensated", "undone")
    assert (row["rungs"], row["undo_actions"], row["undo_sends"]) == (["cancel"], 1, 2)
    assert row["verified"] == moment(run.action("a").compensated_us)


def test_a_reappeared_effect_is_not_shown_as_verified(ledger, events, clock):
    """`verified` speaks of now."""
    run = RunBuilder(clock).planned("a").intent().succeeded().moved(RunStatus.RECOVERING).undone("already_gone")
    run.record(e.EffectReappeared(observation=Observation(seen="applied")))
    store(events, run)
    (row,) = rows(ledger, "FROM compensations")
    assert (row["verified"], row["reappeared"], row["second_look"], row["rungs"]) == (None, 1, "applied", [])


def test_outbox_shows_what_waits_and_for_how_long(asked, clock, run):
    """Waiting items age by the engine's clock; departed ones have stopped."""
    waiting, gone = rows(asked, "FROM outbox ORDER BY action_id")
    queued_us = next(x.ts_us for x in run.events if isinstance(x.body, e.ActionQueued))
    assert (waiting["state"], waiting["release_mode"], waiting["departed"]) == ("waiting", "on_approval", None)
    assert waiting["waited_seconds"] == (clock.now_us() - queued_us) / 1e6
    assert (gone["state"], gone["waited_seconds"]) == ("withdrawn", 1.0)


def test_approvals_equal_the_fold(asked, run):
    """Status, tier, approvers and times."""
    (row,) = rows(asked, "FROM approvals")
    (folded,) = run.state.approvals.values()
    assert (row["status"], row["tier"], row["granted_tier"]) == (folded.status, folded.tier, folded.granted_tier)
    assert (row["approvers"], row["shown_digest"]) == (list(folded.approvers), folded.digest)
    assert (row["asked"], row["given"]) == (moment(folded.asked_us), moment(folded.granted_us))


@pytest.mark.parametrize("how", ["refused", "expired", "voided", "withdrawn", "consumed"])
def test_approvals_show_how_they_ended(how, ledger, events, clock):
    """As the fold does."""
    run = RunBuilder(clock).planned("a").decided().asked("forward")
    if how == "consumed":
        run.approved().intent(approval_id=run.action("a").approval_id)
    else:
        run.closed(how)
    store(events, run)
    (row,) = rows(ledger, "FROM approvals")
    (folded,) = run.state.approvals.values()
    assert row["status"] == folded.status == how


@pytest.mark.parametrize(
    "given",
    [
        [],
        [("maya", ())],
        [("maya", ("finance",))],
        [("maya", ("finance",)), ("noor", ())],
        [("maya", ("finance",)), ("noor", ("operations",))],
        [("maya", ()), ("noor", ())],
    ],
)
@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("roles", [(), ("finance", "operations")], ids=["any", "roles"])
def test_an_approval_is_given_when_the_fold_says_so(roles, together, people, given, ledger, events, clock):
    """With as many people, and as many roles between them, as were asked for."""
    run = RunBuilder(clock).planned("a").decided()
    asked = {"tier": 1, "roles": roles, "roles_together": together, "people": people, "shown": {}, "digest": "d"}
    run.record(e.ApprovalAsked(approval_id="q", phase="forward", expires_us=clock.now_us() + 10**9, **asked))
    for by, held in given:
        if run.state.approvals["q"].status == "pending":
            run.record(e.ApprovalGiven(approval_id="q", by=by, roles=held, tier=1, channel="cli", digest="d"))
    store(events, run)
    (row,) = rows(ledger, "FROM approvals")
    assert row["status"] == run.state.approvals["q"].status


def test_escalations_equal_the_fold(ledger, events, clock):
    """From opened over paged and seen to decided."""
    run = RunBuilder(clock).planned("a").intent().lost().escalated()
    name = next(iter(run.state.escalations))
    run.record(e.EscalationNotified(escalation_id=name, notifier="mail", delivered=False))
    run.later(5).record(e.EscalationNotified(escalation_id=name, notifier="mail", delivered=True))
    run.later(5).record(e.EscalationAcknowledged(escalation_id=name, by="maya", channel="cli"))
    run.later(5).record(e.EscalationResolved(escalation_id=name, choice="accept_as_is", by="maya", channel="cli"))
    store(events, run)
    (row,) = rows(ledger, "FROM escalations")
    folded = run.state.escalations[name]
    assert (row["status"], row["choice"], row["resolved_by"]) == (folded.status, folded.choice, folded.by)
    assert (row["deliveries"], row["delivered"]) == (folded.deliveries, folded.delivered)
    assert (row["deadline"], row["resolved"]) == (moment(folded.deadline_us), moment(folded.resolved_us))
    assert row["choices"] == list(folded.choices)


def test_corrections_show_what_was_posted_where(asked, run):
    """The note, its place and the actions it speaks of."""
    (row,) = rows(asked, "FROM corrections")
    assert (row["place"], row["revision"], row["covers"]) == ("slack:C1/2", 1, ["a"])
    assert (row["status"], row["provider_reference"]) == ("succeeded", "ref-note")
    assert row["posted"] == moment(run.action("note").outcome_us)


def test_late_evidence_moves_nothing(ledger, events, clock):
    """It is shown as evidence, not as an outcome (rule 13)."""
    run = RunBuilder(clock).planned("a").intent().lost()
    proof = Evidence(source="late", strength="authoritative", at_us=0, code="call_back")
    run.record(e.LateEvidence(outcome=Outcome.SUCCEEDED, evidence=proof))
    store(events, run)
    assert rows(ledger, "SELECT status, outcome FROM actions") == [{"status": "unknown", "outcome": "unknown"}]
    assert rows(ledger, "SELECT says FROM evidence WHERE source = 'late'") == [{"says": "succeeded"}]
