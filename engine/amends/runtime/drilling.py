"""Drills: do, verify, undo, verify where it harms nobody; a dated certificate that policies can ask for.

An adapter that can make a copy of its system drills on it by itself; every other call is drilled on the project's
sandbox. Which of the two is chosen in `Drills.drill`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from amends.core import events as e
from amends.core.errors import CallerError, ConfigError, SystemRefused
from amends.core.schedule import microseconds
from amends.runtime import drafting
from amends.runtime.asking import ENGINE_MAJOR
from amends.runtime.flights import describe, landed
from amends.runtime.kit import Kit, Offer
from amends.runtime.parts import Parts
from amends.runtime.places import Seat
from amends.runtime.rehearsing import Proof, Rehearsal, refuse_undrillable
from amends.runtime.resolving import Resolved, resolve
from amends.spi.capability import Capability, NotSent, Refused

_LONGEST_DRILL_SECONDS = 300.0
_SECONDS_PER_DAY = 86_400.0


SandboxOf = Callable[[str], AbstractContextManager[Parts]]
"""What the engine over an adapter's sandbox is made of, open. Raises `ConfigError` if the adapter has none."""


def no_sandbox(adapter: str) -> AbstractContextManager[Parts]:
    """For an engine that was wired without one. Raises `ConfigError`."""
    raise ConfigError(f"this engine has no sandbox for adapter `{adapter}`", hint="drill with the project's own engine")


@dataclass(frozen=True)
class Drills:
    """Runs drills and records what they prove."""

    parts: Parts
    sandbox_of: SandboxOf

    def drill(
        self, capability: str, args: Mapping[str, object], *, agent: str, by: str, wait_seconds: float
    ) -> e.DrillCertified:
        """Drill one capability and certify what was seen.

        The certificate is bound to the contract, the subject (such as a migration file; else the adapter's version) and
        the engine's major version. Raises `CallerError` for what cannot be drilled, `Denied` if policy says no on the
        sandbox, `SystemRefused` with the step that did not hold; no certificate then.
        """
        offer = self._kit.catalog.get(capability)
        resolved = resolve(offer, args, "drill", self._kit.digest_key, self._kit.secrets.revealed())
        if resolved.invalid:
            raise CallerError(resolved.invalid, hint="fix the arguments; nothing was drilled")
        if brings_copy(offer.capability):
            proof = self._on_its_copy(offer, resolved)
        else:
            proof = self._on_the_sandbox(offer, args, agent, by, wait_seconds)
        return self._certified(offer, proof)

    @property
    def _kit(self) -> Kit:
        return self.parts.kit

    def _on_the_sandbox(
        self, offer: Offer, args: Mapping[str, object], agent: str, by: str, wait_seconds: float
    ) -> Proof:
        contract = offer.contract
        refuse_undrillable(contract)
        with self.sandbox_of(offer.context.name) as sandbox:
            there = sandbox.kit.catalog.get(contract.capability)
            if there.contract.digest != contract.digest:
                raise ConfigError(
                    f"the contract of `{contract.capability}` is another one on the sandbox: no drill proves anything",
                    hint=f"let [adapters.{offer.context.name}.sandbox] change where calls go, not what they promise",
                )
            return Rehearsal(sandbox, contract.capability, agent, by, wait_seconds).hold(args)

    def _on_its_copy(self, offer: Offer, resolved: Resolved) -> Proof:
        capability = offer.contract.capability
        question = drafting.question_before(
            self._kit, "drill", self._kit.ids.new(), resolved.args, offer.contract.limits.timeout_seconds
        )
        seat = Seat(offer.context.name, question.action_id, _LONGEST_DRILL_SECONDS)
        flight = self.parts.flights.launch(lambda: offer.capability.drill(question), f"drill-{capability}", seat)
        try:
            subject_digest, detail = landed(flight, seat)
        except (NotSent, Refused, TimeoutError) as error:
            raise SystemRefused(
                f"the drill of `{capability}` did not hold: {describe(error, self._kit.secrets)}",
                hint="mend the inverse, then drill again; without a certificate the call stays irreversible",
            ) from error
        return Proof(subject_digest, detail)

    def _certified(self, offer: Offer, proof: Proof) -> e.DrillCertified:
        contract = offer.contract
        valid = microseconds(self._kit.settings.drill_valid_days * _SECONDS_PER_DAY)
        body = e.DrillCertified(
            capability=contract.capability,
            contract_digest=contract.digest,
            subject_digest=offer.drill_subject(proof.subject_digest),
            engine_major=ENGINE_MAJOR,
            expires_us=self._kit.clock.now_us() + valid,
            detail=proof.detail,
        )
        self.parts.book.record_system([body])
        return body


def brings_copy(capability: Capability) -> bool:
    """True if its adapter makes a copy of its system and drills on that."""
    return type(capability).drill is not Capability.drill
