"""Laws of recovery planning, on small runs that die at any point and systems that answer anything (rules 17 to 25)."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from amends.core import events as e
from amends.core import fold, outcomes, schedule
from amends.core.contract import Alternative, Contract, ProbeRule, Retry
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
PARTLY = {"safe_when": (Outcome.SUCCEEDED, Outcome.FAILED)}
HARMLESS = {"safe_when": (Outcome.SUCCEEDED, Outcome.UNKNOWN), "harmless_when_absent": True}

CONTRACTS: dict[str, Contract] = {
    "plain": reversible(),
    "seen by the team": visible(place="jira:{name}"),
    "seen in one place": visible(place="slack:C1/1"),
    "never final": reversible(probe=ProbeRule(strength="search", schedule_seconds=(0.0, 2.0), deadline_seconds=5.0)),
    "harmless": reversible(
        probe=ProbeRule(strength="search", schedule_seconds=(0.0, 2.0), deadline_seconds=5.0),
        compensation=(Alternative(name="cancel", **HARMLESS),),
    ),
    "partial residue": reversible(compensation=(Alternative(name="cancel", **PARTLY),)),
    "ladder": reversible(
        compensation=(
            Alternative(name="void", retry=Retry(attempts=2, settle_seconds=3.0), expires_after_seconds=40.0),
            Alternative(name="refund", retry=Retry(attempts=2)),
            Alternative(name="person", undo="escalate"),
        )
    ),
    "expiring": reversible(compensation=(Alternative(name="cancel", expires_after_seconds=5.0),)),
    "outbox": irreversible(),
    "gate": irreversible(mode="gate"),
    "no inverse": reversible(compensation=()),
}
ENDS = ("planned", "running", "succeeded", "lost", "not_sent", "refused", "queued", "parked")


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
        return Facts(self.run.now_us, SKEW_US, usable, frozenset({"jira", "slack"}))

    # --- a run that dies ----------------------------------------------------------------------------------

    def live(self) -> None:
        """Up to four actions, each with an end of its own; then the agent is gone."""
        for n in range(self.data.draw(st.integers(1, 4))):
            name = f"a{n}"
            contract = CONTRACTS[self.draw(*CONTRACTS)]
            earlier = sorted(a.action_id for a in self.run.state.forward_actions())
            declared = self.data.draw(st.none() | st.lists(st.sampled_from(earlier), unique=True)) if earlier else None
            self.run.planned(name, contract, depends_on=None if declared is None else tuple(declared))
            self.end(contract, self.draw(*ENDS))
            if self.data.draw(st.booleans()):
                self.run.later(self.data.draw(st.floats(0, 20)))
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
            if end not in {"succeeded", "lost", "running"} or self.draw("stay", "leave") == "stay":
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
            case "lost" | "queued":
                run.lost()
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
            self.run.probed(self.draw(*SEEN), step.purpose, parts=action.contract.parts)

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
        seen = self.look(action, "late_check", *(("absent", "applied") if self.surprises else ("absent",)))
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
            undo.status is S.PLANNED
            or (undo.error is not None and undo.error.resendable and self.attempts_left(action, undo))
        )
        if resend and undo is not None:
            run.on(undo.action_id).intent()
            run.record(e.CompensationStarted(undo=undo.action_id, rung=undo.rung), action.action_id)
        else:
            rung = next_rung(action, {}, run.now_us)
            if rung is None or rung.undo == "escalate":
                run.parked(ParkedCause.UNDO_FAILED)
                return
            run.compensating(rung.name).intent()
        getattr(run, self.draw("lost", "not_sent", "refused", "lost"))()

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
        run.intent()
        getattr(run, self.draw("succeeded", "lost", "not_sent", "refused"))()


# --- laws -------------------------------------------------------------------------------------------------


def check_plan(world: World, made: Plan) -> None:
    """What holds for every plan of every state."""
    state, facts = world.run.state, world.facts()
    for step in made.steps:
        assert step.verb in VERBS, "recovery knows no forward verb"
        assert step.reason
        assert (step.due_us is None) or step.verb == "wait"
        assert step.due_us is None or step.due_us > facts.now_us, "a wait ends in the future"
        if step.verb == "compensate":
            action = state.actions[step.action_id]
            assert action.forward
            assert not state.pivot_passed, "nothing past a pivot is undone"
            assert not action.gated_residue, "an irreversible effect is never undone"
            assert action.outcome is not Outcome.NONE
            if action.status is not S.COMPENSATING:
                assert in_scope(state, action), "what came before the checkpoint stays"
                below = dependents(state, action.action_id)
                assert all(settled(state, d) for d in below), "reverse topological order"
                assert not any(d.gated_residue and not d.accepted_by for d in below), "residue rests on it"
    assert made.finish is None or not made.work
    assert made.work or made.finish is not None or made.due_us is not None, "no dead end"


def check_end(world: World, finish: RunStatus) -> None:
    """What a recovered run looks like."""
    state = world.run.state
    if finish is RunStatus.NEEDS_HUMAN:
        assert any(a.status is S.NEEDS_HUMAN for a in state.actions.values()), "somebody is asked about something"
        return
    assert finish is (RunStatus.OPEN if state.run.recover_to else RunStatus.RECOVERED)
    for action in state.forward_actions():
        if in_scope(state, action):
            assert settled(state, action)
            assert action.status in {S.FAILED, S.DENIED, S.WITHDRAWN, S.COMPENSATED} or action.gated_residue
    for note in state.actions.values():
        assert note.kind is not ActionKind.CORRECT or note.status is S.SUCCEEDED, "every correction is posted"
    if finish is RunStatus.RECOVERED:
        world.run.moved(finish)
        again = plan(world.run.state, world.facts())
        assert (again.steps, again.finish) == ((), RunStatus.RECOVERED), "recovering a recovered run does nothing"


@settings(max_examples=max(500, settings.default.max_examples))
@given(st.data())
def test_every_run_settles_or_asks_a_person(data):
    """Whatever the systems answer: each plan obeys the laws, and within a bound the run recovers or escalates."""
    world = World(data)
    world.live()
    for _ in range(BOUND):
        made = plan(world.run.state, world.facts())
        check_plan(world, made)
        if made.finish is not None:
            assert made == plan(fold.replay(world.run.events), world.facts()), "planning is deterministic"
            check_end(world, made.finish)
            return
        if made.work:
            before = world.run.state.run.head
            world.take(data.draw(st.sampled_from(made.work)))
            assert world.run.state.run.head > before
        else:
            world.run.later((made.due_us - world.run.now_us) / 1_000_000 + 0.001)
    raise AssertionError(f"still going after {BOUND} steps: {made.steps}")


@settings(max_examples=50)
@given(st.data())
def test_without_adapters_nothing_is_sent_and_a_person_is_asked(data):
    """Whoever is missing: no look, no undo; what is not settled escalates (rule 21)."""
    world = World(data)
    world.live()
    missing = frozenset(world.run.state.actions)
    for _ in range(BOUND):
        made = plan(world.run.state, world.facts(unusable=missing))
        assert not [s for s in made.steps if s.verb == "compensate"]
        looks = [s for s in made.steps if s.verb == "reconcile" and s.action_id in missing]
        assert {s.reason for s in looks} <= {"call_lost"}
        if made.finish is not None:
            return
        if made.work:
            world.take(made.work[0])
        else:
            world.run.later((made.due_us - world.run.now_us) / 1_000_000 + 0.001)
    raise AssertionError("still going")
