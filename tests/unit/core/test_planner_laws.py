"""Laws of recovery planning, on small runs that die at any point and systems that answer anything (rules 17 to 25)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from amends.core import events as e
from amends.core import fold, outcomes, schedule
from amends.core.contract import Alternative, Contract, Keying, ProbeRule, Retry
from amends.core.correction import compose
from amends.core.evidence import Evidence, FailureNote, Observation
from amends.core.order import dependents
from amends.core.planner import plan
from amends.core.rows import ActionRow
from amends.core.settling import in_scope, next_rung, settled
from amends.core.status import ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.core.steps import Facts, Plan, Step
from amends.testing.contracts import corrector, irreversible, reversible, visible
from amends.testing.run_builder import RunBuilder

S = ActionStatus
SKEW_US = 1_000_000
VERBS = {"wait", "reconcile", "compensate", "correct", "escalate", "skip"}
BOUND = 300  # steps and waits a run of four actions may take
SEEN = ("applied", "absent", "diverged", "inconclusive", "many")
UNSENT = {S.PLANNED, S.QUEUED, S.AWAITING_APPROVAL}
TELLING = {"applied", "many"}
NEVER_FINAL = ProbeRule(strength="search", schedule_seconds=(0.0, 2.0), deadline_seconds=5.0)
PARTS = ("row", "event")
PARTLY = {"safe_when": (Outcome.SUCCEEDED, Outcome.FAILED)}
HARMLESS = {"safe_when": (Outcome.SUCCEEDED, Outcome.UNKNOWN), "harmless_when_absent": True}

CONTRACTS: dict[str, Contract] = {
    "plain": reversible(),
    "seen by the team": visible(place="jira:{name}"),
    "seen in one place": visible(place="slack:C1/1"),
    "never final": reversible(probe=NEVER_FINAL),
    "harmless": reversible(probe=NEVER_FINAL, compensation=(Alternative(name="cancel", **HARMLESS),)),
    "harmless for a while": reversible(
        probe=NEVER_FINAL, compensation=(Alternative(name="cancel", expires_after_seconds=8.0, **HARMLESS),)
    ),
    "harmless, not meant": reversible(
        probe=NEVER_FINAL, compensation=(Alternative(name="cancel", harmless_when_absent=True),)
    ),
    "meant, not harmless": reversible(
        probe=NEVER_FINAL, compensation=(Alternative(name="cancel", safe_when=HARMLESS["safe_when"]),)
    ),
    "partial residue": reversible(compensation=(Alternative(name="cancel", **PARTLY),)),
    "parts": reversible(parts=PARTS, compensation=(Alternative(name="cancel", **PARTLY),)),
    "parts, harmless": reversible(
        parts=PARTS, probe=NEVER_FINAL, compensation=(Alternative(name="cancel", **HARMLESS),)
    ),
    "parts, taken back singly": reversible(
        parts=PARTS, partial_inverse=True, compensation=(Alternative(name="cancel", **PARTLY),)
    ),
    "ladder": reversible(
        compensation=(
            Alternative(name="void", retry=Retry(attempts=2, settle_seconds=3.0), expires_after_seconds=40.0),
            Alternative(name="refund", retry=Retry(attempts=2)),
            Alternative(name="person", undo="escalate"),
        )
    ),
    "expiring": reversible(compensation=(Alternative(name="cancel", expires_after_seconds=5.0),)),
    "blind": reversible(probe=None, keying=Keying(kind="blind")),
    "outbox": irreversible(),
    "gate": irreversible(mode="gate"),
    "no inverse": reversible(compensation=()),
}
DOUBTFUL = tuple(name for name in CONTRACTS if name.startswith(("harmless", "meant", "part", "blind")))
ENDS = ("planned", "running", "succeeded", "counted", "lost", "heard", "not_sent", "refused", "queued", "parked")
REASONS = {
    "wait": {
        "call_in_flight",
        "dependents_first",
        "late_landing_possible",
        "next_look",
        "next_probe",
        "post_again",
        "awaits_approval",
        "undo_awaits_approval",
        "undo_call_in_flight",
        "undo_retry",
        "undo_settling",
    },
    "reconcile": {
        "call_lost",
        "late_evidence",
        "late_landing_possible",
        "may_have_residue",
        "outcome_unknown",
        "undo_call_lost",
        "undo_unverified",
    },
    "compensate": {
        "a_failed_call_left_parts",
        "next_alternative",
        "run_is_recovering",
        "undo_ready",
        "undo_retry",
        "unknown_but_harmless",
    },
    "correct": {"people_saw_it", "post", "post_again"},
    "skip": {"never_sent", "nothing_landed"},
}
CAUSES = {  # why a person is asked, and how the action is parked
    "adapter_unavailable": ParkedCause.ADAPTER_UNAVAILABLE,
    "an_irreversible_effect_rests_on_it": ParkedCause.UNREGISTERED,
    "compensation_window_expired": ParkedCause.UNDO_FAILED,
    "correction_undeliverable": ParkedCause.NOT_DELIVERED,
    "no_proof_by_deadline": ParkedCause.UNKNOWN,
    "no_way_to_look": ParkedCause.UNKNOWN,
    "no_registered_compensation": ParkedCause.UNREGISTERED,
    "only_some_parts_exist": ParkedCause.UNREGISTERED,
    "state_is_neither_before_nor_after": ParkedCause.DIVERGED,
    "the_run_is_past_its_pivot": ParkedCause.UNREGISTERED,
    "the_system_cannot_be_read": ParkedCause.UNKNOWN,
    "approval_expired": ParkedCause.DENIED,
    "approval_refused": ParkedCause.DENIED,
    "undo_approval_expired": ParkedCause.DENIED,
    "undo_approval_refused": ParkedCause.DENIED,
    "undo_cannot_be_verified": ParkedCause.UNDO_FAILED,
    "undo_exhausted": ParkedCause.UNDO_FAILED,
}


@dataclass
class World:
    """A run under recovery and a system that answers whatever is drawn."""

    data: st.DataObject
    run: RunBuilder = field(default_factory=RunBuilder)
    surprises: int = 2  # how often an effect may land after it was seen gone

    def draw(self, *choices: str) -> str:
        return self.data.draw(st.sampled_from(choices))

    def facts(self, *, unusable: frozenset[str] = frozenset()) -> Facts:
        usable = frozenset(self.run.state.actions) - unusable
        return Facts(self.run.now_us, SKEW_US, usable)

    # --- a run that dies ----------------------------------------------------------------------------------

    def live(self, contracts: Iterable[str] = CONTRACTS, ends: tuple[str, ...] = ENDS, most: int = 4) -> None:
        """Some actions, each with an end of its own; then the agent is gone."""
        for n in range(self.data.draw(st.integers(1, most))):
            name = f"a{n}"
            contract = CONTRACTS[self.draw(*contracts)]
            earlier = sorted(a.action_id for a in self.run.state.forward_actions())
            declared = self.data.draw(st.none() | st.lists(st.sampled_from(earlier), unique=True)) if earlier else None
            self.run.planned(name, contract, depends_on=None if declared is None else tuple(declared))
            self.end(contract, self.draw(*ends))
            if self.data.draw(st.booleans()):
                self.run.later(self.data.draw(st.floats(0, 20)))
            item = self.draw("none", "none", "none", "open", "resolved")
            if item != "none":
                self.run.escalated()
            if item == "resolved":
                (*_, newest) = self.run.state.escalations
                self.run.record(
                    e.EscalationResolved(escalation_id=newest, choice="accept_as_is", by="maya", channel="cli")
                )
            if n == 1 and self.draw("no", "no", "checkpoint") == "checkpoint":
                self.run.checkpoint("half")
        if self.draw("dead", "silent") == "dead":
            self.run.claimed()
        self.run.moved(RunStatus.RECOVERING)
        if self.run.state.run.checkpoints and self.data.draw(st.booleans()):
            self.run.targeted("half")

    def end(self, contract: Contract, end: str) -> None:
        run = self.run
        if contract.irreversible and contract.release.mode != "gate":
            run.queued()
            if end not in {"succeeded", "lost", "heard", "running"} or self.draw("stay", "leave") == "stay":
                return
        elif end == "queued":
            run.asked("forward")
            return
        if end == "planned":
            return
        run.intent()
        match end:
            case "succeeded":
                run.succeeded()
            case "counted":
                run.succeeded().probed(self.draw(*SEEN), "confirm", parts=contract.parts)
            case "lost" | "queued":
                run.lost()
            case "heard":
                told = outcomes.answered(
                    contract, at_us=run.now_us, reference="ref", effect={}, output={}, after={}, parts=contract.parts
                )
                run.lost().late(told)
            case "not_sent":
                run.not_sent()
            case "refused":
                run.refused()
            case "parked":
                run.succeeded().parked(ParkedCause.DIVERGED)
            case _:
                pass

    # --- carrying out a step ------------------------------------------------------------------------------

    def take(self, step: Step) -> None:
        match step.verb:
            case "skip":
                self.run.on(step.action_id).withdrawn(step.reason)
            case "escalate":
                self.run.on(step.action_id).parked(step.cause)
            case "reconcile":
                self.reconcile(step)
            case "compensate":
                self.compensate(self.run.action(step.action_id))
            case _:
                self.correct(step)

    def reconcile(self, step: Step) -> None:
        action = self.run.action(step.action_id)
        undo = self.run.state.undo_of(action)
        flying = undo if undo is not None and undo.status is S.RUNNING else action
        self.run.on(flying.action_id)
        if flying.status is S.RUNNING:
            self.run.record(outcomes.owner_lost(at_us=self.run.now_us, detail=""))
        elif step.reason == "late_evidence":
            self.run.record(outcomes.folded_late(action, at_us=self.run.now_us))
        elif step.purpose == "verify_undone":
            self.verify(action, undo)
        elif step.purpose == "late_check":
            self.late_check(action)
        else:
            self.run.probed(self.draw(*SEEN), step.purpose, parts=self.some_of(action.contract.parts))

    def some_of(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(part for part in parts if self.draw("there", "there", "missing") == "there")

    def look(self, action: ActionRow, purpose: e.ProbePurpose, *choices: str) -> str:
        seen = self.draw(*(choices or SEEN))
        self.run.on(action.action_id).record(e.ProbeSent(purpose=purpose, number=action.probes + 1))
        self.run.record(e.ProbeAnswered(purpose=purpose, observation=Observation(seen=seen)))
        return seen

    def verify(self, action: ActionRow, undo: ActionRow) -> None:
        seen = self.look(action, "verify_undone")
        run = self.run.on(undo.action_id).record(e.ProbeSent(purpose="verify_undone", number=undo.probes + 1))
        if seen == "absent":
            run.undone(late_check_seconds=20 if self.draw("once", "twice") == "twice" else None)
        elif seen == "diverged":
            run.on(action.action_id).parked(ParkedCause.DIVERGED)
        elif seen in {"applied", "many"} and run.now_us >= schedule.settle_over_at_us(action, undo):
            evidence = Evidence(source="probe", strength="authoritative", at_us=run.now_us, code="still_applied")
            note = FailureNote(code="still_applied", resendable=True)
            if undo.status is S.UNKNOWN:
                run.record(e.OutcomeRecorded(outcome=Outcome.FAILED, evidence=evidence, error=note))

    def late_check(self, action: ActionRow) -> None:
        seen = self.look(
            action, "late_check", *(("absent", "applied", "inconclusive") if self.surprises else ("absent",))
        )
        if seen == "inconclusive":
            if schedule.next_look_us(self.run.action(action.action_id)) is None:
                self.run.parked(ParkedCause.UNDO_FAILED)
            return
        if seen == "applied":
            self.surprises -= 1
            self.run.record(e.EffectReappeared(observation=Observation(seen="applied")))
        else:
            self.run.record(e.LateCheckDone(seen="absent"))

    def compensate(self, action: ActionRow) -> None:
        seen = self.look(action, "before_undo")
        action, run = self.run.action(action.action_id), self.run.on(action.action_id)
        if seen == "inconclusive" and action.outcome is not Outcome.UNKNOWN:
            return
        if seen == "absent":
            run.undone("already_gone")
        elif seen == "diverged":
            run.parked(ParkedCause.DIVERGED)
        else:
            self.undo(action)

    def undo(self, action: ActionRow) -> None:
        run = self.run
        undo = run.state.undo_of(action)
        resend = undo is not None and (
            undo.status in UNSENT
            or (undo.error is not None and undo.error.resendable and self.attempts_left(action, undo))
        )
        if resend and undo is not None:
            run.on(undo.action_id)
        else:
            rung = next_rung(action, {}, run.now_us)
            if rung is None or rung.undo == "escalate":
                run.parked(ParkedCause.UNDO_FAILED)
                return
            run.compensating(rung.name)
        undo = run.action()
        if undo.status in UNSENT and not self.permitted("undo"):
            return
        run.intent(approval_id=self.used(undo.approval_id))
        run.record(e.CompensationStarted(undo=undo.action_id, rung=undo.rung), action.action_id)
        getattr(run, self.draw("succeeded", "lost", "not_sent", "refused", "lost"))()

    def permitted(self, phase: Literal["undo", "correct"]) -> bool:
        """Policy is asked at the send; it may want a person, who says yes, no, or nothing in time."""
        run = self.run
        if self.used(run.action().approval_id):
            return True
        answer = self.draw("allowed", "allowed", "allowed", "yes", "refused", "voided", "silent")
        if answer == "allowed":
            return True
        run.asked(phase, ttl_seconds=7.0)
        if answer == "yes":
            run.approved()
        elif answer != "silent":
            run.closed(answer)
        return False

    def used(self, approval_id: str) -> str:
        """The approval, if it is a yes."""
        approval = self.run.state.approvals.get(approval_id)
        return approval_id if approval is not None and approval.status in {"approved", "consumed"} else ""

    def attempts_left(self, action: ActionRow, undo: ActionRow) -> bool:
        return undo.attempt < action.contract.undo_alternative(undo.rung).retry.attempts

    def correct(self, step: Step) -> None:
        run = self.run
        if step.action_id:
            run.on(step.action_id)
        else:
            note = compose(run.state, step.place)
            run.planned(
                f"note-{len(run.events)}",
                corrector(),
                kind=ActionKind.CORRECT,
                place=step.place,
                revision=note.revision,
                covers=note.covers,
                label=note.says,
            )
        note = run.action()
        if note.status in UNSENT and not self.permitted("correct"):
            return
        run.intent(approval_id=self.used(note.approval_id))
        getattr(run, self.draw("succeeded", "lost", "not_sent", "refused"))()


# --- laws -------------------------------------------------------------------------------------------------


def check_plan(world: World, made: Plan) -> None:
    """What holds for every plan of every state."""
    state, now_us = world.run.state, world.run.now_us
    for step in made.steps:
        assert step.verb in VERBS, "recovery knows no forward verb"
        assert step.reason in (CAUSES if step.verb == "escalate" else REASONS[step.verb])
        assert (step.due_us is None) or step.verb == "wait"
        assert step.due_us is None or step.due_us > now_us, "at its moment a wait is over"
        if step.action_id:
            check_step(world, step, state.actions[step.action_id])
        else:
            assert (step.verb, bool(step.place)) == ("correct", True)
    assert made.due_us == min((s.due_us for s in made.steps if s.due_us is not None), default=None)
    assert made.finish is None or not made.work
    assert made.work or made.finish is not None or made.due_us is not None, "no dead end"
    named = [step.action_id for step in made.steps if step.action_id]
    assert len(named) == len(set(named)), "one step for one action"
    for action in state.forward_actions():
        open_ = not settled(state, action) and action.status is not S.NEEDS_HUMAN
        if open_ and (action.ever_sent or in_scope(state, action)):
            assert action.action_id in named, "nothing that is not settled is forgotten"
        if outcomes.folded_late(action, at_us=now_us) is not None and action.status is not S.NEEDS_HUMAN:
            told = [step for step in made.steps if step.action_id == action.action_id]
            assert [step.reason for step in told] == ["late_evidence"], "what is known is heard first"


def check_step(world: World, step: Step, action: ActionRow) -> None:
    """What each verb rests on, told from what is recorded."""
    state = world.run.state
    match step.verb:
        case "compensate" if action.status is S.COMPENSATING:
            check_undo(world, action, state.undo_of(action))
        case "compensate":
            check_compensate(world, action)
        case "skip":
            assert action.status in UNSENT, "only what was never sent is skipped"
        case "reconcile":
            check_look(world, step, action)
        case "wait" if step.due_us is None:
            waits_for = {d.slot for d in dependents(state, action.action_id) if not settled(state, d)}
            assert set(step.facts["on"]) == waits_for != set()
        case "wait" if step.reason == "next_look":
            assert action.observation.seen not in TELLING, "what was seen is acted on"
        case "correct":
            note_may_go(world, action)
        case "escalate":
            assert step.cause is CAUSES[step.reason]
            check_escalation(world, step, action)
        case _:
            pass


def check_look(world: World, step: Step, action: ActionRow) -> None:
    """Each look has its question and its moment, and one that could not tell is not repeated at once."""
    state, now_us, look = world.run.state, world.run.now_us, action.observation
    match step.reason:
        case "call_lost" | "undo_call_lost":
            flying = state.undo_of(action) or action
            over = flying.sent_epoch < state.run.epoch or now_us >= flying.deadline_us + SKEW_US
            assert over, "a call in flight is left alone until its driver is gone or its time is over"
        case "late_landing_possible":
            assert step.purpose == "late_check"
            assert now_us >= action.late_check_due_us, "the second look has its moment"
            assert not unclear(action, now_us)
        case "undo_unverified":
            assert step.purpose == "verify_undone"
        case "outcome_unknown":
            assert step.purpose == "reconcile"
            assert not unclear(action, now_us)
        case "may_have_residue":
            assert step.purpose == "residue"
            assert not unclear(action, now_us)
            looked = action.probed_us is not None and action.probed_us >= action.outcome_us
            assert not looked or look.seen == "inconclusive", "a look that could tell counts"
        case _:
            pass


def unclear(action: ActionRow, now_us: int) -> bool:
    """True if a look of this moment could not tell: it is not repeated at once."""
    seen = action.observation is not None and action.observation.seen == "inconclusive"
    return bool(action.probes) and seen and action.probed_us == now_us


def check_compensate(world: World, action: ActionRow) -> None:
    """The conditions of a first undo (rules 17, 18, 20, 24 and 29)."""
    state, now_us = world.run.state, world.run.now_us
    assert action.forward
    assert not state.pivot_passed, "nothing past a pivot is undone"
    assert not action.gated_residue, "an irreversible effect is never undone"
    assert action.outcome is not Outcome.NONE
    assert in_scope(state, action), "what came before the checkpoint stays"
    below = dependents(state, action.action_id)
    assert all(settled(state, d) for d in below), "reverse topological order"
    assert not any(d.gated_residue and not d.accepted_by for d in below), "residue rests on it"
    alive = [r for r in action.contract.compensation if not expired(action, r, now_us)]
    assert alive, "no undo after its window"
    look = action.observation
    if action.outcome is Outcome.UNKNOWN:
        blind = [r for r in alive if r.harmless_when_absent and Outcome.UNKNOWN in r.safe_when]
        assert blind, "what may not be there is undone only where that does no harm"
    if action.outcome is Outcome.FAILED:
        assert action.probed_us >= action.outcome_us
        assert look.seen in TELLING, "residue is seen before it is taken back"
    if action.outcome is not Outcome.SUCCEEDED and look.seen in TELLING and not action.contract.partial_inverse:
        assert set(action.contract.parts) <= {*look.parts, *action.parts}, "some parts need an undo for parts"


def check_undo(world: World, action: ActionRow, undo: ActionRow) -> None:
    """The conditions of a further undo (rule 19)."""
    now_us = world.run.now_us
    assert undo.status in {*UNSENT, S.FAILED}, "no second undo while the first may still land"
    if undo.status in UNSENT:
        may_go(world, undo)
        return
    retry = action.contract.undo_alternative(undo.rung).retry
    if undo.error.resendable and undo.attempt < retry.attempts:
        backoff_seconds = retry.backoff_seconds * retry.backoff_factor ** (undo.attempt - 1)
        assert now_us >= undo.outcome_us + schedule.microseconds(backoff_seconds)
    else:
        assert untried(action, now_us), "each alternative is tried once"


def check_escalation(world: World, step: Step, action: ActionRow) -> None:
    """A person is asked only for the reason that is given."""
    state, now_us, look = world.run.state, world.run.now_us, action.observation
    undo = state.undo_of(action)
    assert step.reason != "adapter_unavailable", "every adapter is here"
    match step.reason:
        case "state_is_neither_before_nor_after":
            assert look.seen == "diverged"
            assert action.probed_us >= (action.outcome_us or 0)
        case "the_system_cannot_be_read":
            assert look is None or look.seen not in TELLING
            assert action.contract.probe is None or action.probes >= len(action.contract.probe.schedule_seconds)
        case "no_way_to_look":
            assert action.contract.probe is None
        case "only_some_parts_exist":
            assert look.seen in TELLING
            assert set(action.contract.parts) - {*look.parts, *(action.parts if not look.parts else ())}
        case "no_proof_by_deadline":
            deadline_us = schedule.microseconds(action.contract.probe.deadline_seconds)
            assert action.probed_us >= action.unknown_since_us + deadline_us, "looked until the end"
            blind = [
                r for r in action.contract.compensation if r.harmless_when_absent and not expired(action, r, now_us)
            ]
            assert not [r for r in blind if Outcome.UNKNOWN in r.safe_when] or not in_scope(state, action)
        case "the_run_is_past_its_pivot":
            assert state.pivot_passed
        case "an_irreversible_effect_rests_on_it":
            residue = [d.slot for d in dependents(state, action.action_id) if d.gated_residue and not d.accepted_by]
            assert step.facts == {"residue": residue} != {"residue": []}
        case "compensation_window_expired":
            assert all(expired(action, rung, now_us) for rung in action.contract.compensation)
        case "no_registered_compensation":
            assert not action.contract.compensation
        case "undo_exhausted":
            assert not untried(action, now_us)
            assert not undo.error.resendable or not world.attempts_left(action, undo)
        case "undo_cannot_be_verified":
            assert undo.probed_us >= schedule.settle_over_at_us(action, undo)
        case _:
            pass


def may_go(world: World, unsent: ActionRow) -> None:
    """Nobody who was asked has yet to answer, or said no (rule 30)."""
    approval = world.run.state.approvals.get(unsent.approval_id)
    assert approval is None or approval.status in {"approved", "voided"}


def note_may_go(world: World, note: ActionRow) -> None:
    """A correction is posted once: again only after a proof that it did not arrive."""
    if note.status in UNSENT:
        may_go(world, note)
    else:
        assert note.status is S.FAILED
        assert note.error.resendable
        assert world.run.now_us >= schedule.resend_us(note)


def expired(action: ActionRow, rung: Alternative, now_us: int) -> bool:
    after = rung.expires_after_seconds
    return after is not None and now_us > (action.sent_us or action.created_us) + schedule.microseconds(after)


def untried(action: ActionRow, now_us: int) -> list[str]:
    alive = [rung for rung in action.contract.compensation if not expired(action, rung, now_us)]
    return [rung.name for rung in alive if rung.name not in action.tried_rungs]


def check_end(world: World, finish: RunStatus) -> None:
    """What a recovered run looks like."""
    state = world.run.state
    unheard = [item for item in state.escalations.values() if item.status != "resolved"]
    if finish is RunStatus.NEEDS_HUMAN:
        parked = any(a.status is S.NEEDS_HUMAN for a in state.actions.values())
        assert parked or unheard, "somebody is asked about something"
        return
    assert finish is (RunStatus.OPEN if state.run.recover_to else RunStatus.RECOVERED)
    for action in state.forward_actions():
        if in_scope(state, action):
            assert settled(state, action)
            assert action.status in {S.FAILED, S.DENIED, S.WITHDRAWN, S.COMPENSATED} or action.gated_residue
    for note in state.actions.values():
        assert note.kind is not ActionKind.CORRECT or note.status is S.SUCCEEDED, "every correction is posted"
    if finish is RunStatus.RECOVERED:
        assert not unheard, "every person who was asked has answered (rule 23)"
        world.run.moved(finish)
        again = plan(world.run.state, world.facts())
        assert (again.steps, again.finish) == ((), RunStatus.RECOVERED), "recovering a recovered run does nothing"


@settings(max_examples=max(200, settings.default.max_examples))
@given(st.data())
def test_every_run_settles_or_asks_a_person(data):
    """Whatever the systems answer: each plan obeys the laws, and within a bound the run recovers or escalates."""
    world = World(data)
    world.live()
    settle(world)


@given(st.data())
def test_a_doubt_is_taken_back_only_where_that_does_no_harm(data):
    """Lost calls, failures that left parts, counts after success: the laws, where it is not known what exists."""
    world = World(data)
    world.live(DOUBTFUL, ("lost", "refused", "counted"), 2)
    settle(world)


def settle(world: World) -> None:
    """Plan and carry out until the run is done; every plan obeys the laws."""
    for _ in range(BOUND):
        made = plan(world.run.state, world.facts())
        check_plan(world, made)
        if made.finish is not None:
            assert made == plan(fold.replay(world.run.events), world.facts()), "planning is deterministic"
            check_end(world, made.finish)
            return
        if made.work:
            before = world.run.state.run.head
            world.take(world.data.draw(st.sampled_from(made.work)))
            assert world.run.state.run.head > before
        else:
            world.run.later((made.due_us - world.run.now_us) / 1_000_000)
    raise AssertionError(f"still going after {BOUND} steps: {made.steps}")


@settings(max_examples=100)
@given(st.data())
def test_without_adapters_nothing_is_sent_and_a_person_is_asked(data):
    """Whoever is missing, from the start or from some moment on: no look, no undo; what is open escalates (rule 21)."""
    world = World(data)
    world.live()
    with_adapters = data.draw(st.integers(0, 12))
    for n in range(BOUND):
        missing = frozenset() if n < with_adapters else frozenset(world.run.state.actions)
        made = plan(world.run.state, world.facts(unusable=missing))
        assert not [s for s in made.steps if s.verb == "compensate" and s.action_id in missing]
        looks = [s for s in made.steps if s.verb == "reconcile" and s.action_id in missing]
        assert {s.reason for s in looks} <= {"call_lost", "late_evidence"}
        calls = {a.action_id for a in world.run.state.forward_actions()}
        waits = [s for s in made.steps if s.verb == "wait" and s.action_id in missing & calls]
        assert {s.reason for s in waits} <= {"call_in_flight", "dependents_first"}
        asked = [s for s in made.steps if s.verb == "escalate" and s.action_id in missing]
        assert all(s.cause is CAUSES[s.reason] for s in asked)
        if made.finish is not None:
            return
        if made.work:
            world.take(made.work[0])
        else:
            world.run.later((made.due_us - world.run.now_us) / 1_000_000)
    raise AssertionError("still going")
