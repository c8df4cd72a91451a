"""Five ways to break the engine that nobody would notice in a demo. Each is undone at the end of its block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from amends.core import outcomes, release
from amends.core.events import OutcomeRecorded
from amends.core.evidence import Evidence, FailureNote
from amends.core.status import Outcome, RunStatus
from amends.core.steps import Step
from amends.runtime import book, undoing
from amends.runtime.book import Book
from amends.runtime.intending import OPEN
from amends.runtime.sending import Sending
from amends.runtime.sessions import Session
from amends.testing.memory_journal import MemoryJournal
from amends.testing.simulation.cast import SwitchingPolicy


@contextmanager
def skip_the_freeze() -> Iterator[None]:
    """Forward intents and sends pass whatever the run's status is (rule 14)."""
    real_record, real_may_send = Book.record, Sending._may_send

    def record(self, run_id, decide, **how):
        if how.get("allowed") == OPEN:
            how["allowed"] = None
        return real_record(self, run_id, decide, **how)

    def may_send(self, session, action, allowed):
        return real_may_send(self, session, action, frozenset(RunStatus))

    with mock.patch.object(Book, "record", record), mock.patch.object(Sending, "_may_send", may_send):
        yield


@contextmanager
def a_time_out_is_a_failure() -> Iterator[None]:
    """An exception without an answer is taken for proof that nothing happened (rule 3)."""

    def lost(*, at_us, code, detail=""):
        return OutcomeRecorded(
            outcome=Outcome.FAILED,
            evidence=Evidence(source="response", strength="proof", at_us=at_us, code=code, detail=detail),
            error=FailureNote(code=code, message=detail),
        )

    with mock.patch.object(outcomes, "lost", lost):
        yield


@contextmanager
def compensated_without_a_look() -> Iterator[None]:
    """Whatever the look after an undo shows, it is taken for gone (rule 18)."""
    real = undoing.Undoing._after_look

    def after_look(self, state, forward, undo, look):
        seen = look.observation.model_copy(update={"seen": "absent"})
        return real(self, state, forward, undo, replace(look, observation=seen))

    with mock.patch.object(undoing.Undoing, "_after_look", after_look):
        yield


@contextmanager
def ignore_the_epoch() -> Iterator[None]:
    """A driver that was taken over goes on as if it had not been (rules 12 and 13)."""
    real_commit, real_refuse, real_may_send = MemoryJournal.commit, book._refuse_late_comers, Sending._may_send

    def commit(self, command):
        return real_commit(self, replace(command, epoch=None))

    def refuse(state, epoch, allowed):
        real_refuse(state, None, allowed)

    def may_send(self, session, action, allowed):
        run = self._book.state(session.run_id).run
        current = Session(session.run_id, run.epoch, 1 << 62)
        return real_may_send(self, current, action, allowed)

    with (
        mock.patch.object(MemoryJournal, "commit", commit),
        mock.patch.object(book, "_refuse_late_comers", refuse),
        mock.patch.object(Sending, "_may_send", may_send),
    ):
        yield


@contextmanager
def release_before_approval() -> Iterator[None]:
    """What waits for a person's yes leaves when the run has succeeded, past planner and policy (rule 27)."""
    real = SwitchingPolicy.decide

    def decide(self, request):
        decision = real(self, request)
        allowed = decision.model_copy(update={"verdict": "allow"})
        return allowed if request.action.endswith(".release") else decision

    def awaiting(state, item, facts, *, stopped):
        return Step("release", item.action_id, "approved")

    with (
        mock.patch.object(SwitchingPolicy, "decide", decide),
        mock.patch.object(release, "_approved", return_value=True),
        mock.patch.object(release, "_awaiting", awaiting),
    ):
        yield


MUTANTS = {
    "skip the freeze": skip_the_freeze,
    "a time-out is a failure": a_time_out_is_a_failure,
    "compensated without a look": compensated_without_a_look,
    "ignore the epoch": ignore_the_epoch,
    "release before approval": release_before_approval,
}
