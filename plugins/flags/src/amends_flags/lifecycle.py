"""`flags.create` and `flags.archive`: a flag's beginning and end."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_flags.contracts import archive_contract, create_contract
from amends_flags.guard import feature_of, inconclusive, unchanged_since
from amends_flags.images import listed
from amends_flags.switch import FEATURE
from amends_flags.unleash import Unleash

_CONFLICT = 409


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
    """One POST. The name is unique, and the description begins with our marker: the two tell ours from another's."""

    arguments = CreateArguments

    def __init__(self, unleash: Unleash) -> None:
        self.contract = create_contract(unleash.options)
        self._unleash = unleash

    def do(self, call: Call) -> Receipt:
        feature = feature_of(call)
        content: Json = {
            "description": f"{_mark(call)} {call.args.get('description', '')}".rstrip(),
            "name": feature,
            "type": call.args.get("type", "release"),
        }
        answer = self._unleash.send(call, lambda: self._unleash.create(content), frozenset({_CONFLICT}))
        if answer.status == _CONFLICT:
            self._taken(call)
        effect: dict[str, Json] = {"feature": feature, "project": self._unleash.options.project}
        return Done(effect=effect, reference=feature, output=effect)

    def probe(self, question: Question) -> Observation:
        try:
            document = self._unleash.feature(question, feature_of(question))
            if document is None:
                return Observation(seen="absent")
            ours, edited = self._ours(question, document)
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        state: dict[str, Json] = {"edited": edited, "in_use": _in_use(document)}
        if not ours:
            return Observation(seen="absent", state=state, detail="the flag of this name is somebody else's")
        return Observation(seen="applied", state=state, reference=feature_of(question))

    def undo(self, call: Call) -> Receipt:
        seen = self.probe(call)
        if seen.seen != "applied" or seen.state.get("in_use") or seen.state.get("edited"):
            raise NotSent(f"the flag is {seen.seen} or in use: nothing is archived", code="foreign_edit")
        feature = feature_of(call)
        self._unleash.send(call, lambda: self._unleash.archive(feature), frozenset({404}))
        return Done(effect={"feature": feature, "rung": call.rung}, reference=feature)

    def _taken(self, call: Call) -> None:
        """The name is taken: by our own first try, or by somebody else. Raises `Refused` or `Ambiguous`."""
        seen = self.probe(call)
        if seen.seen == "inconclusive":
            raise Ambiguous(f"the name is taken, and whose it is could not be read: {seen.detail}", code="name_exists")
        if seen.seen != "applied":
            raise Refused(f"a flag `{feature_of(call)}` exists already, perhaps archived", code="name_exists")

    def _ours(self, question: Question, document: dict[str, Json]) -> tuple[bool, bool]:
        """Is it ours, and has its description been edited since: then the event of its creation still tells."""
        if _mark(question) in str(document.get("description") or ""):
            return True, False
        events = self._unleash.events(question, feature_of(question))
        created = [event.get("data") for event in events if event.get("type") == "feature-created"]
        return any(_mark(question) in str(data) for data in created), True


class ArchiveFlag(Capability):
    """One DELETE, of a flag that is off everywhere: reviving one brings every environment back off."""

    arguments = ArchiveArguments

    def __init__(self, unleash: Unleash) -> None:
        self.contract = archive_contract(unleash.options)
        self._unleash = unleash

    def prepare(self, question: Question) -> Prepared:
        feature = feature_of(question)
        try:
            document = self._unleash.feature(question, feature)
            newest = self._unleash.newest_event(question, feature)
        except Unreadable as lost:
            raise NotSent(f"the flag could not be read: {lost}", code=lost.code) from None
        if document is None:
            raise NotSent(f"there is no flag `{feature}` in `{self._unleash.options.project}`", code="no_such_flag")
        on = [str(item.get("name")) for item in _environments(document) if item.get("enabled")]
        if on:
            raise NotSent(f"the flag is on in {', '.join(on)}; switch it off first", code="still_on")
        return Prepared(before={"archived": False, "newest_event": newest})

    def do(self, call: Call) -> Receipt:
        unchanged_since(self._unleash, call, call.before.get("newest_event"))
        feature = feature_of(call)
        self._unleash.send(call, lambda: self._unleash.archive(feature))
        effect: dict[str, Json] = {"feature": feature, "archived": True}
        return Done(effect=effect, reference=feature, output=effect, after={"archived": True})

    def probe(self, question: Question) -> Observation:
        """A flag that is not shown is archived or deleted: its newest event says which."""
        feature = feature_of(question)
        try:
            document = self._unleash.feature(question, feature)
            if document is not None:
                return Observation(seen="absent", state={"archived": False}, reference=feature)
            events = self._unleash.events(question, feature)
            ends = (event for event in events if str(event.get("type")) in {"feature-archived", "feature-deleted"})
            newest: dict[str, Json] = next(ends, dict[str, Json]())
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        state: dict[str, Json] = {
            "archived": newest.get("type") == "feature-archived",
            "changed_by": newest.get("createdBy"),
        }
        if state["archived"]:
            return Observation(seen="applied", state=state, reference=feature)
        if newest:
            return Observation(seen="diverged", state=state, detail="the flag was deleted for good")
        return inconclusive("the flag is not shown and no event says why")

    def undo(self, call: Call) -> Receipt:
        feature = feature_of(call)
        self._unleash.send(call, lambda: self._unleash.revive(feature), frozenset({404}))
        return Done(effect={"feature": feature, "rung": call.rung}, reference=feature)


def _mark(question: Question) -> str:
    return f"[amends:{question.marker}]"


def _environments(document: dict[str, Json]) -> list[dict[str, Json]]:
    return [item for item in listed(document.get("environments")) if isinstance(item, dict)]


def _in_use(document: dict[str, Json]) -> bool:
    return any(item.get("enabled") or listed(item.get("strategies")) for item in _environments(document))
