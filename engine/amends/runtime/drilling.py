"""Drills: do, verify, undo, verify on a sandbox copy; a dated certificate that policies can ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amends.core import events as e
from amends.core.errors import CallerError, SystemRefused
from amends.core.schedule import microseconds
from amends.runtime import drafting
from amends.runtime.asking import ENGINE_MAJOR
from amends.runtime.book import Book
from amends.runtime.flights import Flights, describe
from amends.runtime.kit import Kit
from amends.runtime.resolving import resolve
from amends.spi.capability import Capability, NotSent, Refused

_LONGEST_DRILL_SECONDS = 300.0
_SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True)
class Drills:
    """Runs drills and records what they prove."""

    kit: Kit
    book: Book
    flights: Flights

    def drill(self, capability: str, args: Mapping[str, object]) -> e.DrillCertified:
        """Drill one capability on its adapter's sandbox and certify what was seen.

        The certificate is bound to the contract, the subject (such as a migration file) and the engine's major
        version. Raises `CallerError` if the capability has no drill, `SystemRefused` with what did not hold.
        """
        offer = self.kit.catalog.get(capability)
        if type(offer.capability).drill is Capability.drill:
            raise CallerError(f"`{capability}` has no drill", hint="its adapter does not offer a sandbox copy")
        resolved = resolve(offer, args, "drill", self.kit.digest_key, self.kit.secrets.revealed())
        if resolved.invalid:
            raise CallerError(resolved.invalid, hint="fix the arguments; nothing was drilled")
        question = drafting.question_before(
            self.kit, "drill", self.kit.ids.new(), resolved.args, resolved.contract.limits.timeout_seconds
        )
        flight = self.flights.launch(lambda: offer.capability.drill(question), f"drill-{capability}")
        try:
            subject_digest, detail = flight.result(timeout=_LONGEST_DRILL_SECONDS)
        except (NotSent, Refused, TimeoutError) as error:
            raise SystemRefused(
                f"the drill of `{capability}` did not hold: {describe(error)}",
                hint="mend the inverse, then drill again; without a certificate the call stays irreversible",
            ) from error
        valid = microseconds(self.kit.settings.drill_valid_days * _SECONDS_PER_DAY)
        body = e.DrillCertified(
            capability=capability,
            contract_digest=resolved.contract.digest,
            subject_digest=subject_digest,
            engine_major=ENGINE_MAJOR,
            expires_us=self.kit.clock.now_us() + valid,
            detail=detail,
        )
        self.book.record_system([body])
        return body
