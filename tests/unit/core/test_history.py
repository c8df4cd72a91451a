"""Legal histories of any shape: replaying them gives the live state, and what is written reads back."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from amends.core import events as e
from amends.core import fold
from amends.core.errors import CorruptLedger, IllegalTransition
from amends.core.status import RUN_TRANSITIONS, ActionKind, ActionStatus, Outcome, ParkedCause, RunStatus
from amends.testing.contracts import irreversible, reversible
from amends.testing.run_builder import RunBuilder

S = ActionStatus

# What may be tried on any action; the table decides whether it is legal.
MOVES = {
    "queued": lambda run: run.queued(),
    "asked": lambda run: run.asked(),
    "denied": lambda run: run.denied(),
    "withdrawn": lambda run: run.withdrawn(),
    "intent": lambda run: run.intent(),
    "succeeded": lambda run: run.succeeded(),
    "not_sent": lambda run: run.not_sent(),
    "refused": lambda run: run.refused(),
    "lost": lambda run: run.lost(),
    "probed": lambda run: run.probed("applied"),
    "looked in vain": lambda run: run.probed("inconclusive"),
    "found absent": lambda run: run.later(60).probed("absent"),
    "person": lambda run: run.settled(Outcome.SUCCEEDED),
    "undone": lambda run: run.undone(late_check_seconds=5),
    "reappeared": lambda run: run.record(e.EffectReappeared(observation=run.action().observation)),
    "parked": lambda run: run.parked(ParkedCause.DIVERGED),
    "reopened": lambda run: run.reopened(),
    "accepted": lambda run: run.accepted(),
    "decided": lambda run: run.decided(),
    "approved": lambda run: run.approved(),
    "voided": lambda run: run.closed("voided"),
    "escalated": lambda run: run.escalated(),
}


class Histories(RuleBasedStateMachine):
    """Anything legal, in any order: plans, moves, take-overs, pauses between; illegal tries change nothing."""

    def __init__(self):
        super().__init__()
        self.run = RunBuilder()
        self.names: list[str] = []

    @initialize(check=st.sampled_from(["", "ci"]))
    def opened(self, check):
        self.run = RunBuilder(check=check)

    def open_run(self):
        return not self.run.state.run.terminal

    @precondition(lambda self: self.open_run() and len(self.names) < 5)
    @rule(data=st.data(), outbox=st.booleans(), claim=st.sampled_from(["", "effect:acme:x"]))
    def plan(self, data, outbox, claim):
        name = f"a{len(self.names)}"
        declared = data.draw(st.none() | st.lists(st.sampled_from(self.names), unique=True)) if self.names else None
        self.run.planned(
            name,
            irreversible() if outbox else reversible(),
            depends_on=None if declared is None else tuple(declared),
            claim=claim,
        )
        self.names.append(name)

    @precondition(lambda self: self.names)
    @rule(data=st.data(), move=st.sampled_from(sorted(MOVES)))
    def try_move(self, data, move):
        name = data.draw(st.sampled_from(list(self.run.state.actions)))
        run = self.run.on(name)
        before, count = run.state, len(run.events)
        try:
            MOVES[move](run)
        except (IllegalTransition, CorruptLedger):
            return
        except (AttributeError, KeyError, ValueError):
            # no approval to answer, or nothing observed yet: the helper had nothing to say
            assert (run.state, len(run.events)) == (before, count)

    @precondition(lambda self: any(a.status is S.SUCCEEDED and a.kind is ActionKind.DO for a in self.forward()))
    @rule(data=st.data())
    def compensate(self, data):
        ready = [a for a in self.forward() if a.status is S.SUCCEEDED and a.contract.compensation]
        if ready and self.open_run():
            self.run.on(data.draw(st.sampled_from([a.action_id for a in ready]))).compensating()

    def forward(self):
        return self.run.state.forward_actions()

    @rule(data=st.data())
    def move_run(self, data):
        choices = sorted(RUN_TRANSITIONS[self.run.state.run.status] - {RunStatus.ABANDONED})
        if choices:
            self.run.moved(data.draw(st.sampled_from(choices)))

    @rule(seconds=st.floats(0, 100))
    def later(self, seconds):
        self.run.later(seconds)

    @rule()
    def taken_over(self):
        self.run.claimed()

    @rule(name=st.sampled_from(["half", "late"]))
    def checkpoint(self, name):
        self.run.checkpoint(name).targeted(name)

    @invariant()
    def replay_is_the_live_state(self):
        assert fold.replay(self.run.events) == self.run.state

    @invariant()
    def the_head_is_dense(self):
        assert [event.run_seq for event in self.run.events] == list(range(1, self.run.state.run.head + 1))

    @invariant()
    def time_and_epoch_never_run_backwards(self):
        times = [(event.epoch, event.ts_us) for event in self.run.events]
        assert times == sorted(times)
        assert self.run.state.run.ledger_us == times[-1][1]

    @invariant()
    def a_claim_is_held_by_one(self):
        holders = [c.action_id for c in self.run.state.claims.values() if c.held and c.claim.startswith("effect:")]
        assert len(holders) <= 1

    def teardown(self):
        for event in self.run.events:
            assert e.decode(e.encode(event.body), "x") == event.body
        again = [
            type(event)(
                event.event_id,
                event.ts_us,
                event.run_id,
                event.run_seq,
                event.action_id,
                event.epoch,
                e.decode(e.encode(event.body), "x"),
            )
            for event in self.run.events
        ]
        assert fold.replay(again) == self.run.state


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=max(50, settings.default.max_examples // 4))  # each is a long history
