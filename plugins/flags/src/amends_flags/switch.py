"""`flags.set`: turn a flag on or off in one environment.

Switching on is not undone by switching off: where no enabled strategy stood, Unleash adds one that lets everybody in.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt
from amends.spi.http import Unreadable
from amends_flags.contracts import set_contract
from amends_flags.guard import feature_of, inconclusive, reading, unchanged_since
from amends_flags.images import Difference, Flag, compare, content_of, has_enabled, listed, ordered, summary
from amends_flags.unleash import Unleash

FEATURE = r"^[A-Za-z0-9][A-Za-z0-9_.~-]{0,99}$"


class SetArguments(BaseModel):
    """Arguments of `flags.set`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)
    enabled: bool


class SetFlag(Capability):
    """One POST to `on` or `off`."""

    arguments = SetArguments

    def __init__(self, unleash: Unleash) -> None:
        self.contract = set_contract(unleash.options)
        self._unleash = unleash

    def prepare(self, question: Question) -> Prepared:
        before = reading(self._unleash, question).image()
        return Prepared(before=before, allocated={"summary": summary(before)})

    def do(self, call: Call) -> Receipt:
        unchanged_since(self._unleash, call, call.before.get("newest_event"))
        wanted = call.args.get("enabled") is True
        self._unleash.send(call, lambda: self._unleash.switch(feature_of(call), on=wanted))
        after = self._after(call)
        effect: dict[str, Json] = {
            "feature": feature_of(call),
            "environment": self._unleash.options.flag_environment,
            "enabled": wanted,
            "added_strategies": len(listed(after.get("strategies"))) - len(listed(call.before.get("strategies"))),
        }
        return Done(effect=effect, output=effect, after=after, parts=self.contract.parts)

    def probe(self, question: Question) -> Observation:
        try:
            flag = self._unleash.flag(question, feature_of(question))
            if flag is None:
                return Observation(seen="diverged", detail="the flag is gone or archived")
            if not question.before:
                return inconclusive("no before-image was recorded")
            after = question.after or self._expected(question)
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        return _observed(flag, compare(flag, question.before, after), self._unleash.options.flag_environment)

    def undo(self, call: Call) -> Receipt:
        flag = reading(self._unleash, call)
        observed = call.observed.state.get("newest_event") if call.observed else None
        if observed is not None and observed != flag.newest_event:
            raise NotSent("the flag was changed after it was looked at", code="foreign_edit")
        after = call.after or self._expected(call)
        difference = compare(flag, call.before, after)
        if difference.diverged:
            raise NotSent("the flag's strategies are neither as before nor as after us", code="foreign_edit")
        feature = feature_of(call)
        if call.rung == "remove_added_strategy" and len(difference.added) == 1:
            strategy = difference.added[0].id
            self._unleash.send(call, lambda: self._unleash.delete_strategy(feature, strategy), frozenset({404}))
        elif call.rung == "switch_back":
            on = call.before.get("enabled") is True
            self._unleash.send(call, lambda: self._unleash.switch(feature, on=on))
        else:
            raise NotSent(f"there is nothing that the rung `{call.rung}` could take back", code="nothing_to_undo")
        return Done(effect={"feature": feature, "rung": call.rung})

    def _after(self, call: Call) -> dict[str, Json]:
        """The after-image from the event log. A read that fails takes nothing back from a success."""
        try:
            return self._expected(call)
        except Unreadable:
            return {}

    def _expected(self, question: Question) -> dict[str, Json]:
        """What the flag looks like if our call and nothing else happened since the before-image.

        The strategy that switching on adds is read from the event that stands with our switch: a project may have a
        default of its own. Somebody else's strategy is never among it.
        """
        wanted = question.args.get("enabled") is True
        former = listed(question.before.get("strategies"))
        contents = [content for content in former if isinstance(content, dict)]
        since = question.before.get("newest_event")
        if wanted and not has_enabled(former):
            events = list(self._unleash.events(question, feature_of(question), since if isinstance(since, int) else 0))
            contents += [added for added in [_added_by_switch(events)] if added]
        return {"enabled": wanted, "strategies": ordered(contents)}


def _added_by_switch(newest_first: list[dict[str, Json]]) -> dict[str, Json]:
    """The content that came with the first switching-on: the last strategy added before it by the same actor."""
    oldest_first = newest_first[::-1]
    for place, event in enumerate(oldest_first):
        if event.get("type") != "feature-environment-enabled":
            continue
        neighbours = [*oldest_first[place + 1 : place + 2], *oldest_first[max(place - 1, 0) : place]][::-1]
        for neighbour in neighbours:
            same = neighbour.get("createdBy") == event.get("createdBy")
            data = neighbour.get("data")
            if neighbour.get("type") == "feature-strategy-add" and same and isinstance(data, dict):
                return content_of(data)
        return {}
    return {}


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
    effect: Mapping[str, Json] = {"enabled": flag.enabled, "added_strategies": len(difference.added)}
    return Observation(seen="applied", state=state, effect=dict(effect), parts=difference.parts)
