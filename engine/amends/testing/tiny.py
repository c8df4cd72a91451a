"""The smallest capability there is: for tests of what surrounds one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from amends.core.contract import Contract
from amends.core.evidence import Observation
from amends.spi.capability import Call, Capability, Done, Question, Receipt


class TinyArguments(BaseModel):
    """One name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str


class TinyCapability(Capability):
    """Keeps the names it was sent in `effects`; an undo takes one out, a probe looks."""

    arguments = TinyArguments

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.effects: set[str] = set()

    def do(self, call: Call) -> Receipt:
        name = str(call.args["name"])
        self.effects.add(name)
        return Done(effect={"name": name}, reference=name)

    def probe(self, question: Question) -> Observation:
        name = str(question.args["name"])
        return Observation(seen="applied" if name in self.effects else "absent")

    def undo(self, call: Call) -> Receipt:
        self.effects.discard(str(call.args["name"]))
        return Done()
