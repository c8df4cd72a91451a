"""The matrix, third part: what the contract promises, held against what the adapter does."""

from __future__ import annotations

from typing import Any

from amends.core.audit import audit_line
from amends.core.registration import refusals
from amends.core.status import ActionStatus
from amends.testing.conformance.bench import Bench


class AboutContracts:
    """The contract table, before-images, markers and limits."""

    def test_the_contract_is_complete(self, bench: Bench[Any]) -> None:
        """It may be registered, and no cell of its audit row is blank."""
        contract = bench.contract
        assert refusals(contract) == ()
        names = contract.action_names()
        permits = {name: bench.engine.permits(contract.namespace, name) for name in names}
        proof = "the drill is another test" if contract.needs_drill else ""
        blanks = audit_line(contract, permits, proof).blanks
        assert blanks == (), f"blank in the audit: {', '.join(blanks)}"

    def test_the_call_is_bounded_in_time(self, bench: Bench[Any]) -> None:
        """The engine gives every call a limit and a deadline, and the adapter gets both."""
        bench.do()
        for call in bench.watched.calls:
            assert 0 < call.timeout_seconds <= 600
            assert call.deadline_us > 0

    def test_what_is_restored_was_read_before(self, bench: Bench[Any]) -> None:
        """A contract that restores a before-image has one in the intent."""
        bench.only_for(bench.contract.restores_before_image, "it restores nothing: it takes away what it made")
        bench.do()
        assert bench.watched.calls[0].before

    def test_the_request_names_our_action(self, bench: Bench[Any]) -> None:
        """Marker or idempotency key stands in the one request, so that its effect can be told from anybody else's."""
        bench.only_for(bench.line.address, "the system has no wire on which a request could be seen")
        bench.do()
        [call] = bench.watched.calls
        [write] = bench.writes()
        assert write.carries(call.marker) or write.carries(call.idempotency_key)
        if bench.contract.keying.kind == "keyed":
            assert write.carries(call.idempotency_key), "the contract says keyed, and the request carries no key"

    def test_the_answer_reaches_the_agent_and_no_secret_reaches_a_file(self, bench: Bench[Any]) -> None:
        """The agent is told what is recorded; credentials stand in no file of the engine (rule 10)."""
        action = bench.do()
        assert action.status is ActionStatus.SUCCEEDED
        assert bench.canaries() == []
