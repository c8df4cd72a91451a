"""`flags.set`: turn a flag on or off in one environment.

Switching on is not undone by switching off: where no enabled strategy stood, Unleash adds one that lets everybody in.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt
from amends.spi.http import Ambiguous, Unreadable
from amends_flags.contracts import set_contract
from amends_flags.guard import inconclusive, reading, reading_before_undo
from amends_flags.images import Difference, Flag, Switched, compare, feature_of, listed, mapped, ordered, summary
from amends_flags.port import FlagPlace

FEATURE = r"^[A-Za-z0-9][A-Za-z0-9_.~-]{0,99}$"


class SetArguments(BaseModel):
    """Arguments of `flags.set`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)
    enabled: bool


class SetFlag(Capability):
    """One switch. What the place says about it afterwards is the proof, not the answer."""

    arguments = SetArguments

    def __init__(self, place: FlagPlace) -> None:
        self.contract = set_contract(place.options)
        self._place = place

    def prepare(self, question: Question) -> Prepared:
        before = reading(self._place, question).image()
        return Prepared(before=before, allocated={"summary": summary(before)})

    def do(self, call: Call) -> Receipt:
        wanted = call.args.get("enabled") is True
        self._place.switch(call, on=wanted, revision=call.before.get("revision"))
        after = _expected(call, self._confirmed(call, wanted=wanted))
        effect: dict[str, Json] = {
            "feature": feature_of(call),
            "environment": self._place.options.flag_environment,
            "enabled": wanted,
            "added_strategies": len(listed(after.get("strategies"))) - len(listed(call.before.get("strategies"))),
        }
        return Done(effect=effect, output=effect, after=after, parts=self.contract.parts)

    def probe(self, question: Question) -> Observation:
        try:
            flag = self._place.flag(question)
            if flag is None:
                return Observation(seen="diverged", detail="the flag is gone or archived")
            if not question.before:
                return inconclusive("no before-image was recorded")
            after = question.after or _expected(question, self._place.switched(question))
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        return _observed(flag, compare(flag, question.before, after), self._place.options.flag_environment)

    def undo(self, call: Call) -> Receipt:
        flag = reading_before_undo(self._place, call)
        difference = compare(flag, call.before, call.after or _expected(call, self._switched_or_not_sent(call)))
        if difference.diverged:
            raise NotSent("the flag's strategies are neither as before nor as after us", code="foreign_edit")
        if call.rung == "remove_added_strategy" and len(difference.added) == 1:
            self._place.remove_strategy(call, difference.added[0].id, flag.revision)
        elif call.rung == "switch_back" and difference.switched:
            self._place.switch(call, on=call.before.get("enabled") is True, revision=flag.revision)
        else:
            raise NotSent(f"there is nothing that the rung `{call.rung}` could take back", code="nothing_to_undo")
        return Done(effect={"feature": feature_of(call), "rung": call.rung})

    def _confirmed(self, call: Call, *, wanted: bool) -> Switched:
        """What came of the switch, read back. Raises `Ambiguous` where it cannot be seen: a 200 alone is no proof."""
        try:
            switched = self._place.switched(call)
        except Unreadable as lost:
            raise Ambiguous(f"the answer said done, and it could not be read back: {lost}", code=lost.code) from None
        if not switched.happened and call.before.get("enabled") is not wanted:
            raise Ambiguous("the answer said done, and the flag does not show it", code="not_seen")
        return switched

    def _switched_or_not_sent(self, call: Call) -> Switched:
        try:
            return self._place.switched(call)
        except Unreadable as lost:
            raise NotSent(f"the flag could not be read: {lost}", code=lost.code) from None


def _expected(question: Question, switched: Switched) -> dict[str, Json]:
    """What the flag looks like if our call and nothing else happened since the before-image."""
    former = [mapped(content) for content in listed(question.before.get("strategies"))]
    return {
        "enabled": question.args.get("enabled") is True,
        "strategies": ordered([*former, *switched.added]),
    }


def _observed(flag: Flag, difference: Difference, environment: str) -> Observation:
    # The state holds the whole image: where the answer was lost it is recorded as the after-image.
    state: dict[str, Json] = {
        **flag.image(),
        "environment": environment,
        "switched": difference.switched,
        "added_strategies": len(difference.added),
    }
    if difference.diverged:
        return Observation(seen="diverged", state=state, detail="somebody changed the flag's strategies after us")
    if not difference.parts:
        return Observation(seen="absent", state=state)
    effect: dict[str, Json] = {"enabled": flag.enabled, "added_strategies": len(difference.added)}
    return Observation(seen="applied", state=state, effect=effect, parts=difference.parts)
