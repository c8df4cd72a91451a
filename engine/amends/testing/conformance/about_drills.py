"""The matrix, fourth part: the undo is proven before it is needed, and what did not hold proves nothing."""

from __future__ import annotations

from typing import Any

import pytest

from amends.core.errors import AmendsError, CallerError
from amends.core.status import RunStatus
from amends.runtime.asking import Policy
from amends.runtime.drilling import brings_copy
from amends.runtime.flights import Flights
from amends.testing.conformance.bench import Bench
from amends.testing.conformance.line import Fault


class AboutDrills:
    """Do, verify, undo, verify on the system as its own sandbox."""

    def test_a_drill_leaves_nothing_but_a_certificate_of_this_very_call(self, bench: Bench[Any]) -> None:
        """The system is as it was; the certificate has a date, and policies see it at a call with other arguments."""
        bench.only_for(_drillable(bench), "it has no undo to drill")
        before = bench.clock.now_us()
        certificate = bench.drill()
        assert bench.subject.effects(bench.system, bench.args()) == 0, f"it left an effect: {certificate.detail}"
        assert certificate.expires_us > before
        action, policy = bench.do("two"), Policy(bench.engine.kit, Flights(bench.engine.kit))
        now = bench.clock.now_us()
        assert policy.drilled(action.contract, action.subject_digest, now), "no policy would see the certificate"
        later = bench.clock.now_us() + certificate.expires_us - before
        assert not policy.drilled(action.contract, action.subject_digest, later), "it is believed for ever"

    def test_what_cannot_be_taken_back_is_not_drilled(self, bench: Bench[Any]) -> None:
        """It says so, and sends nothing."""
        bench.only_for(not _drillable(bench), "it has an undo to drill")
        with pytest.raises(CallerError, match="no undo to drill"):
            bench.drill()
        assert bench.writes() == []
        assert _certificates(bench) == 0

    def test_a_drill_whose_undo_is_refused_certifies_nothing(self, bench: Bench[Any]) -> None:
        """The system says no to the undo: the error names the step and what is left, which waits for a person."""
        bench.only_for(_on_the_sandbox(bench), "it is not drilled on a sandbox")
        denial = bench.subject.denial
        denied = Fault("denied", status=denial.status, body=denial.body, lasting=True)
        with pytest.raises(AmendsError, match=r"did not hold: `undo`") as refused:
            bench.drill(after_do=lambda: bench.arm(denied))
        assert refused.value.data["run_status"] == RunStatus.NEEDS_HUMAN.value
        assert refused.value.data["left"], "it does not say what is left"
        assert bench.subject.effects(bench.system, bench.args()) == 1
        assert _certificates(bench) == 0

    def test_a_drill_whose_answers_are_lost_is_looked_at(self, bench: Bench[Any]) -> None:
        """The undo's answer is lost: a look finds it gone, and that is what the certificate rests on."""
        bench.only_for(_on_the_sandbox(bench), "it is not drilled on a sandbox")
        bench.drill(after_do=lambda: bench.arm(Fault("lost")))
        assert bench.subject.effects(bench.system, bench.args()) == 0
        assert _certificates(bench) == 1


def _drillable(bench: Bench[Any]) -> bool:
    return brings_copy(bench.watched) or (bench.undoable and not bench.contract.corrects)


def _on_the_sandbox(bench: Bench[Any]) -> bool:
    return _drillable(bench) and not brings_copy(bench.watched)


def _certificates(bench: Bench[Any]) -> int:
    return len(list(bench.engine.kit.journal.rows("certificate")))
