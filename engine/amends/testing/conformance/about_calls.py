"""The matrix, first part: what can go wrong with the call itself (rules 1 to 7)."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from amends.core.errors import InvalidInput
from amends.core.status import ActionStatus, Outcome
from amends.testing.conformance.bench import Bench
from amends.testing.conformance.gap import killed_in_the_gap
from amends.testing.conformance.line import CUTS, Cut, Fault
from amends.testing.conformance.performing import LONG_SECONDS
from amends.testing.conformance.subject import ENDINGS, Ending

_S = ActionStatus
_DOUBTFUL = frozenset({_S.UNKNOWN, _S.NEEDS_HUMAN})
_NONE = frozenset({_S.FAILED, _S.DENIED, _S.WITHDRAWN})

UNICODE = "naïve Ωμέγα 漢字 😀 e\u0301 \u202bעברית\u202c"
_LARGE = "Amends. " * 1_000


class AboutCalls:
    """One request, and everything between it and its answer."""

    def test_the_plain_call_has_one_effect_made_by_one_request(self, bench: Bench[Any]) -> None:
        """Nothing goes wrong: one effect, one request that changes something, and its action is `succeeded`."""
        action = bench.do()
        assert (action.status, bench.effects()) == (_S.SUCCEEDED, 1)
        assert len(bench.writes()) == len(bench.watched.calls) == 1

    def test_arguments_that_are_not_its_own_are_refused_and_nothing_is_sent(self, bench: Bench[Any]) -> None:
        """An argument that the capability does not know ends the call before anything leaves."""
        action = bench.do(no_such_argument=1)
        assert action.status in _NONE
        assert bench.effects() == 0
        assert bench.writes() == []

    @pytest.mark.parametrize("how", ["connection", "name", "tls"])
    def test_a_call_that_provably_did_not_leave_is_failed(self, bench: Bench[Any], how: str) -> None:
        """Refused connection, unknown name, broken TLS handshake: `failed`, never `unknown`, and nothing is there."""
        if how == "connection":
            bench.arm(Fault("unsent"))
        else:
            bench.only_for("://" in bench.line.address, "the system has no network address")
            bench.only_for(how == "name" or bench.line.address.startswith("http:"), "it speaks no TLS over HTTP")
            bench.address(_nowhere(bench.line.address, how))
        action = bench.do()
        assert action.outcome is not Outcome.UNKNOWN
        _not_done(bench, action.status)

    @pytest.mark.parametrize("how", CUTS)
    def test_a_lost_answer_is_found_and_never_sent_again(self, bench: Bench[Any], how: Cut) -> None:
        """The system acts and the line breaks (orderly end, reset, cut body, silence): the effect is found by a probe;
        no second request leaves, from us or from a library below us.
        """
        if how == "silence":
            bench.time_out_after(bench.subject.takes_seconds)
        bench.arm(Fault("lost", how=how))
        _found(bench)
        _taken_back(bench)

    def test_a_call_that_got_lost_on_its_way_is_no_effect(self, bench: Bench[Any]) -> None:
        """The line breaks before the system hears of the call: it looks like a lost answer, and nothing is there."""
        bench.arm(Fault("dropped"))
        action = bench.do()
        _not_done(bench, action.status)

    @pytest.mark.parametrize("status", [500, 502, 503, 504])
    def test_a_gateways_error_after_the_effect_is_not_a_failure(self, bench: Bench[Any], status: int) -> None:
        """A 5xx from somebody on the way proves nothing: the effect is found, and sent once (field case A-01)."""
        bench.arm(Fault("status", status=status))
        _found(bench)
        _taken_back(bench)

    @pytest.mark.parametrize("what", ["html", "empty"])
    def test_a_200_that_is_no_answer_is_not_a_success_by_itself(self, bench: Bench[Any], what: str) -> None:
        """A page or nothing where the answer should be: what happened is found by looking (field case C-01)."""
        bench.arm(Fault("html") if what == "html" else Fault("empty"))
        _found(bench)
        _taken_back(bench)

    def test_a_200_that_did_nothing_is_not_recorded_as_an_effect(self, bench: Bench[Any]) -> None:
        """Somebody on the way answers with an earlier success, and the system never hears of the call: an answer is
        proof only for what it names.
        """
        bench.do("before")
        bench.arm(Fault("replayed"))
        action = bench.do()
        _not_done(bench, action.status)
        assert bench.effects("before") == 1

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_an_accepted_call_is_unknown_until_its_operation_ends(self, bench: Bench[Any], ending: Ending) -> None:
        """202 is no success: the operation is asked until it is done, has failed, or is gone."""
        arrange = bench.needs(bench.subject.later.get(ending), "the system never answers 202")
        arrange(bench.system, bench.args())
        action = bench.do()
        match ending:
            case "done":
                assert (action.status, bench.effects()) == (_S.SUCCEEDED, 1)
            case "failed":
                assert action.status in _NONE
            case "gone":
                assert action.status is not _S.SUCCEEDED or bench.effects() == 1

    def test_a_call_that_lands_late_is_found(self, bench: Bench[Any]) -> None:
        """The line breaks first and the system acts after our first look: one `absent` proves nothing (rule 4)."""
        bench.arm(Fault("late"))
        _found(bench)
        _taken_back(bench)

    def test_two_effects_of_one_call_are_both_accounted_for(self, bench: Bench[Any]) -> None:
        """The system acts two times on one call: the twin is seen and taken back too, or a person is told (rule 7)."""
        bench.arm(Fault("twice"))
        action = bench.do()
        made = bench.effects()
        state = bench.recover()
        left = bench.effects()
        if bench.undoable:
            assert left == 0 or not state.run.terminal, f"{left} of {made} effects are left, and nobody is told"
        else:
            twins = [a for a in state.actions.values() if a.kind == "duplicate"]
            assert made <= 1 or twins or action.status in _DOUBTFUL, "the twin was not seen"

    def test_the_same_intent_again_is_answered_and_not_sent(self, bench: Bench[Any]) -> None:
        """An agent that repeats its call gets the recorded effect; nothing is sent (rule 5)."""
        action = bench.do()
        sent = len(bench.writes())
        bench.only_for(not bench.contract.irreversible, "its run is over once it was released")
        again = bench.again()
        assert (again.action_id, again.repeated) == (action.action_id, True)
        assert len(bench.writes()) == sent
        assert bench.effects() == 1

    def test_the_same_slot_with_other_arguments_is_a_conflict(self, bench: Bench[Any]) -> None:
        """A model that words its call anew does not get a second effect: it is told what is recorded (rule 5)."""
        other = bench.needs(bench.subject.other, "every argument names the effect: other arguments are another intent")
        action = bench.do()
        bench.only_for(not bench.contract.irreversible, "its run is over once it was released")
        sent = len(bench.writes())
        again = bench.again(args=other(bench.performed["one"].args))
        assert (again.action_id, again.conflict) == (action.action_id, True)
        assert len(bench.writes()) == sent

    @pytest.mark.parametrize("at", ["before_call", "after_call"])
    def test_a_process_killed_in_the_gap_leaves_nothing_behind(self, bench: Bench[Any], at: str) -> None:
        """SIGKILL between the durable intent and the recorded outcome, before or after the system acted: another
        process recovers from the ledger alone.
        """
        args = bench.args()
        killed_in_the_gap(bench.project, bench.subject.capability, args, at, bench.environment)
        made = bench.subject.effects(bench.system, args)
        assert made == (1 if at == "after_call" else 0)
        [row] = bench.engine.runs()
        state = bench.engine.recover(row.run_id, wait_seconds=LONG_SECONDS)[0]
        left = bench.subject.effects(bench.system, args)
        if bench.undoable and bench.findable:
            assert (state.run.status, left) == ("recovered", 0)
        elif not bench.contract.irreversible:
            assert left <= made
        else:
            assert left <= 1
            assert state.run.terminal or state.run.status == "needs_human"

    def test_a_look_that_lags_does_not_end_in_a_second_effect(self, bench: Bench[Any]) -> None:
        """The answer is lost, and for a while the system's own reads do not show the effect."""
        bench.arm(Fault("stale", reads=2))
        bench.arm(Fault("lost"))
        _found(bench)
        _taken_back(bench)

    def test_a_look_reads_every_page(self, bench: Bench[Any]) -> None:
        """The answer is lost, and the effect stands on a later page than the first, whichever end a list begins at."""
        crowd = bench.needs(bench.subject.crowd, "the probe asks for one thing by its name")
        bench.arm(Fault("lost"))
        crowd(bench.system, bench.args())
        bench.watched.after_do = lambda: crowd(bench.system, bench.args())
        _found(bench)
        _taken_back(bench)

    @pytest.mark.parametrize("seconds", [-2.0, 2.0])
    def test_clocks_that_differ_do_not_hide_an_effect(self, bench: Bench[Any], seconds: float) -> None:
        """Our clock is two seconds off the system's: the lost effect is found all the same."""
        bench.clock.skew(seconds)
        bench.arm(Fault("lost"))
        _found(bench)
        _taken_back(bench)

    @pytest.mark.parametrize("what", ["unicode", "large"])
    def test_any_text_is_sent_as_it_is_and_found_again(self, bench: Bench[Any], what: str) -> None:
        """Letters of all scripts, and a long text: sent and found, or refused with nothing sent."""
        field = bench.subject.text
        bench.only_for(field, "it takes no free text")
        bench.arm(Fault("lost"))
        action = bench.do(**{field: UNICODE if what == "unicode" else _LARGE})
        if action.status in _NONE:
            assert bench.effects() == 0
            bench.only_for(bench.writes(), "the text is refused before anything is sent")
        assert bench.effects() == 1
        _taken_back(bench)

    def test_a_secret_in_the_arguments_is_refused_and_written_nowhere(self, bench: Bench[Any]) -> None:
        """An argument in which a credential stands cannot be recorded as sent: it is refused, and no file of the
        engine has it (rule 10).
        """
        field = bench.subject.text
        bench.only_for(field, "it takes no free text")
        secret = bench.secret
        bench.do("before")  # the adapter has used its credential: from here on the engine knows it
        sent = len(bench.writes())
        with pytest.raises(InvalidInput) as refusal:
            bench.do(**{field: f"use {secret} for it"})
        assert secret not in str(refusal.value)
        assert len(bench.writes()) == sent
        assert bench.canaries() == []


def _found(bench: Bench[Any]) -> None:
    """The answer is of no use, and the effect is there: once, and the ledger knows it or says that it does not."""
    action = bench.do()
    assert bench.effects() == 1
    assert len(bench.writes()) == 1, f"sent {len(bench.writes())} times"
    wanted = {_S.SUCCEEDED} if bench.findable else {_S.SUCCEEDED, *_DOUBTFUL}
    assert action.status in wanted, f"the effect is there, and its action is `{action.status}`: {action.parked_detail}"


def _not_done(bench: Bench[Any], status: ActionStatus) -> None:
    """The request had no effect, and is not recorded as one; what was released is sent again, as it is safe to."""
    if bench.contract.irreversible and status is _S.SUCCEEDED:
        assert bench.effects() == 1
    else:
        assert status is not _S.SUCCEEDED
        assert bench.effects() == 0


def _taken_back(bench: Bench[Any]) -> None:
    """What was found is taken back: the system shows nothing of it any more."""
    if bench.undoable and bench.action().status is _S.SUCCEEDED:
        state = bench.recover()
        assert (bench.action().status, bench.effects()) == (_S.COMPENSATED, 0)
        assert state.run.status == "recovered"


def _nowhere(address: str, how: str) -> str:
    """An address that cannot be reached: a name that nobody has, or a door that speaks no TLS."""
    if how == "name":
        return f"{address.partition('://')[0]}://nobody.invalid:{address.rpartition(':')[2]}"
    with socket.create_server(("127.0.0.1", 0)) as unused:
        del unused
    return address.replace("http://", "https://", 1)
