"""The matrix, second part: what can go wrong with taking it back (rules 17 to 20)."""

from __future__ import annotations

from typing import Any

import pytest

from amends.core.status import ActionStatus
from amends.testing.conformance.bench import Bench
from amends.testing.conformance.line import CUTS, Cut, Fault

_S = ActionStatus


class AboutUndos:
    """A compensation, and the separate look that proves it."""

    def test_what_was_done_is_taken_back_and_looked_at(self, bench: Bench[Any]) -> None:
        """The plain way: one request takes the effect back, and `compensated` rests on a read made after it."""
        _done(bench)
        state = bench.recover()
        assert (bench.action().status, state.run.status, bench.effects()) == (_S.COMPENSATED, "recovered", 0)
        seen = bench.line.exchanges()
        last_write = max(place for place, exchange in enumerate(seen) if exchange.writes)
        assert len(bench.writes()) == 2, "one request does it, and one takes it back"
        assert last_write < len(seen) - 1, "nobody looked at the system after the undo"

    def test_an_effect_that_is_gone_already_is_compensated_without_an_undo(self, bench: Bench[Any]) -> None:
        """Somebody else took it away: the look before the undo sees it, and nothing is sent."""
        taken_away = bench.needs(bench.subject.taken_away, "nobody else can take it away")
        _done(bench)
        taken_away(bench.system, bench.performed["one"].args)
        bench.recover()
        assert bench.action().status in {_S.COMPENSATED, _S.NEEDS_HUMAN}
        assert len(bench.writes()) == 1

    def test_an_undo_of_what_is_gone_already_is_not_an_error(self, bench: Bench[Any]) -> None:
        """The request to take it back arrives two times; the answer is that of the second."""
        _done(bench)
        bench.arm(Fault("twice"))
        bench.recover()
        assert (bench.action().status, bench.effects()) == (_S.COMPENSATED, 0)

    def test_an_undo_that_says_ok_and_did_nothing_is_not_believed(self, bench: Bench[Any]) -> None:
        """Somebody on the way answers with the success of another undo: the effect is still there, and the ledger says
        nothing else until a later undo has really taken it back.
        """
        _done(bench, "before")
        bench.recover("before")
        _done(bench)
        bench.arm(Fault("replayed"))
        bench.recover()
        gone = bench.effects() == 0
        assert (bench.action().status is _S.COMPENSATED) is gone

    @pytest.mark.parametrize("how", CUTS)
    def test_an_undo_whose_answer_is_lost_is_looked_at(self, bench: Bench[Any], how: Cut) -> None:
        """The system takes it back and the line breaks: a look finds it gone; no second undo leaves."""
        if how == "silence":
            bench.time_out_after(bench.subject.takes_seconds)
        _done(bench)
        bench.arm(Fault("lost", how=how))
        bench.recover()
        assert (bench.action().status, bench.effects()) == (_S.COMPENSATED, 0)
        assert len(bench.writes()) == 2, f"{len(bench.writes()) - 1} requests to take it back"

    def test_a_look_that_lags_behind_the_undo_is_waited_for(self, bench: Bench[Any]) -> None:
        """For a while the system still shows what was taken back: nobody says `compensated` before it stops, and what
        was sent once too often does no harm.
        """
        _done(bench)
        bench.arm(Fault("stale", reads=1))
        bench.recover()
        assert (bench.action().status, bench.effects()) == (_S.COMPENSATED, 0)

    def test_what_somebody_else_changed_is_not_overwritten(self, bench: Bench[Any]) -> None:
        """A foreign change after ours stays: the run goes to a person, who decides (rule 18)."""
        edited = bench.needs(bench.subject.edited, "nobody else can change it: it is there or it is not")
        kept = bench.needs(bench.subject.kept, "nobody says how a foreign change is told")
        _done(bench)
        args = bench.performed["one"].args
        edited(bench.system, args)
        state = bench.recover()
        assert kept(bench.system, args), "a foreign change was overwritten"
        assert bench.action().status in {_S.NEEDS_HUMAN, _S.COMPENSATED, _S.COMPENSATING}
        assert state.run.status in {"needs_human", "recovered", "recovering"}

    def test_an_undo_that_is_denied_goes_to_a_person(self, bench: Bench[Any]) -> None:
        """The system refuses to take it back: the effect is there, the ledger says so, and somebody is told."""
        _done(bench)
        denial = bench.subject.denial
        bench.arm(Fault("denied", status=denial.status, body=denial.body, lasting=True))
        state = bench.recover()
        assert bench.effects() == 1
        assert bench.action().status is not _S.COMPENSATED
        assert state.run.status == "needs_human"
        assert [item for item in bench.engine.escalations() if item.run_id == state.run.run_id]


def _done(bench: Bench[Any], word: str = "one") -> None:
    """One effect that recovery can take back."""
    bench.only_for(bench.undoable, "the contract says that recovery cannot take it back by itself")
    action = bench.do(word)
    assert (action.status, bench.effects(word)) == (_S.SUCCEEDED, 1)
