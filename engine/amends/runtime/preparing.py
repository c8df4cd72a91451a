"""Preparing: the read-only look before a call, for the first time and again before it is sent (rules 2 and 27)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from amends.core.canonical import Json
from amends.core.rows import ActionRow, RunRow
from amends.runtime import drafting
from amends.runtime.drafting import Reading
from amends.runtime.flights import SPARE_SECONDS, Flights, landed
from amends.runtime.kit import Kit, Offer
from amends.runtime.places import Seat
from amends.spi.capability import Capability


@dataclass(frozen=True)
class Preparing:
    """Calls `prepare` of adapters, bounded in time. Whatever goes wrong, nothing was sent."""

    kit: Kit
    flights: Flights

    def reads(self, offer: Offer) -> bool:
        """True if the capability has something to read before its call."""
        return type(offer.capability).prepare is not Capability.prepare

    def read(self, offer: Offer, run: RunRow, action_id: str, args: dict[str, Json]) -> Reading:
        """What `prepare` saw. Raises whatever it raised, or `InvalidInput` if the ledger may not hold it (rule 10)."""
        asked_us = self.kit.ledger_now_us(run)
        question = drafting.question_before(
            self.kit, run.run_id, action_id, args, offer.contract.limits.timeout_seconds
        )
        seat = Seat(offer.context.name, action_id, question.timeout_seconds + SPARE_SECONDS)

        def look() -> Reading:
            prepared = offer.capability.prepare(question)
            drafting.refuse_unrecordable(self.kit, offer.contract.capability, prepared)
            return drafting.reading(prepared, asked_us)

        return landed(self.flights.launch(look, f"prepare-{action_id[-6:]}", seat), seat)

    def again(self, run: RunRow, action: ActionRow) -> Reading:
        """What is there now, for an action that waited or is sent again: its undo restores what stood before the send
        that counts. Identifiers of what was sent once are kept, for it may be found by them. Raises as `read`.
        """
        offer = self.kit.catalog.get(action.contract.capability)
        if not self.reads(offer):
            return Reading(action.before_image, action.allocated, content_digest=action.content_digest)
        read = self.read(offer, run, action.action_id, action.args)
        return replace(read, allocated=action.allocated) if action.ever_sent else read
