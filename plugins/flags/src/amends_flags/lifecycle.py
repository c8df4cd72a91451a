"""`flags.create` and `flags.archive`: a flag's beginning and end."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_flags.contracts import archive_contract, create_contract
from amends_flags.guard import inconclusive, reading
from amends_flags.images import feature_of
from amends_flags.port import FlagPlace
from amends_flags.switch import FEATURE


class CreateArguments(BaseModel):
    """Arguments of `flags.create`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)
    description: str = Field(default="", max_length=1000)
    type: str = Field(default="release", pattern=r"^[a-z-]{1,40}$")


class ArchiveArguments(BaseModel):
    """Arguments of `flags.archive`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)


class CreateFlag(Capability):
    """One creation. The name is unique, and the flag bears our marker: the two tell ours from another's."""

    arguments = CreateArguments

    def __init__(self, place: FlagPlace) -> None:
        self.contract = create_contract(place.options)
        self._place = place

    def do(self, call: Call) -> Receipt:
        feature = feature_of(call)
        if not self._place.create(call):
            self._taken(call)
        effect: dict[str, Json] = {"feature": feature, "project": self._place.options.project}
        return Done(effect=effect, reference=feature, output=effect)

    def probe(self, question: Question) -> Observation:
        try:
            origin = self._place.origin(question)
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        if origin is None:
            return Observation(seen="absent")
        state: dict[str, Json] = {"edited": origin.edited, "in_use": origin.in_use}
        if not origin.ours:
            return Observation(seen="absent", state=state, detail="the flag of this name is somebody else's")
        return Observation(seen="applied", state=state, reference=feature_of(question))

    def undo(self, call: Call) -> Receipt:
        seen = self.probe(call)
        if seen.seen != "applied" or seen.state.get("in_use") or seen.state.get("edited"):
            raise NotSent(f"the flag is {seen.seen} or in use: it is not taken away", code="foreign_edit")
        self._place.discard(call)
        return Done(effect={"feature": feature_of(call), "rung": call.rung}, reference=feature_of(call))

    def _taken(self, call: Call) -> None:
        """The name is taken: by our own first try, or by somebody else. Raises `Refused` or `Ambiguous`."""
        seen = self.probe(call)
        if seen.seen == "inconclusive":
            raise Ambiguous(f"the name is taken, and whose it is could not be read: {seen.detail}", code="name_exists")
        if seen.seen != "applied":
            raise Refused(f"a flag `{feature_of(call)}` exists already, perhaps archived", code="name_exists")


class ArchiveFlag(Capability):
    """One archiving, of a flag that is off everywhere: Unleash brings a revived one back off in every environment."""

    arguments = ArchiveArguments

    def __init__(self, place: FlagPlace) -> None:
        self.contract = archive_contract(place.options)
        self._place = place

    def prepare(self, question: Question) -> Prepared:
        flag = reading(self._place, question)
        if flag.on_in:
            raise NotSent(f"the flag is on in {', '.join(flag.on_in)}; switch it off first", code="still_on")
        return Prepared(before={**flag.image(), "archived": False})

    def do(self, call: Call) -> Receipt:
        """The answer says nothing of the flag: what is read back is the proof."""
        feature = feature_of(call)
        self._place.archive(call, call.before.get("revision"))
        seen = self.probe(call)
        if seen.seen != "applied":
            raise Ambiguous(f"the answer said done, and the flag does not show it: {seen.detail}", code="not_seen")
        effect: dict[str, Json] = {"feature": feature, "archived": True}
        return Done(effect=effect, reference=feature, output=effect, after={"archived": True})

    def probe(self, question: Question) -> Observation:
        feature = feature_of(question)
        try:
            ending, changed_by = self._place.ending(question)
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        state: dict[str, Json] = {"archived": ending == "archived", "changed_by": changed_by}
        if ending == "live":
            return Observation(seen="absent", state=state, reference=feature)
        if ending == "archived":
            return Observation(seen="applied", state=state, reference=feature)
        if ending == "deleted":
            return Observation(seen="diverged", state=state, detail="the flag was deleted for good")
        return inconclusive("the flag is not shown and nothing says why")

    def undo(self, call: Call) -> Receipt:
        """Only of what is archived now: Unleash also answers 200 for a flag that somebody has revived and uses."""
        seen = self.probe(call)
        if seen.seen != "applied":
            raise NotSent(f"the flag's archiving is {seen.seen}: nothing is revived", code="foreign_edit")
        self._place.revive(call)
        return Done(effect={"feature": feature_of(call), "rung": call.rung}, reference=feature_of(call))
