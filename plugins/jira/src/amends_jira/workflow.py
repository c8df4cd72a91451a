"""Transitions: which one leads there, what its screen asks for, and what status and changelog say of ours. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amends.spi import Json, JsonMap, Observation, Refused
from amends_jira.history import Hands
from amends_jira.values import map_of, maps_of, text_of


@dataclass(frozen=True, slots=True)
class Way:
    """A transition that is allowed at this moment, and the fields of its screen."""

    id: str
    name: str
    to: str
    screen: Mapping[str, Json]

    @property
    def required(self) -> tuple[str, ...]:
        """Screen fields that must be given."""
        return tuple(
            name
            for name, field in self.screen.items()
            if map_of(field).get("required") is True and map_of(field).get("hasDefaultValue") is not True
        )

    def added(self, given: Mapping[str, Json]) -> list[str]:
        """Those of the given fields that can only be added to, such as a worklog: they go under `update`."""
        return sorted(name for name in given if _operations(self.screen.get(name)) == ["add"])


def ways(answer: Mapping[str, Json]) -> tuple[Way, ...]:
    """The available transitions of a `transitions` answer."""
    return tuple(
        Way(
            id=text_of(item.get("id")),
            name=text_of(item.get("name")),
            to=text_of(map_of(item.get("to")).get("name")),
            screen=map_of(item.get("fields")),
        )
        for item in maps_of(answer.get("transitions"))
        if item.get("isAvailable") is not False
    )


def choose(available: Sequence[Way], to: str, name: str, given: Mapping[str, Json]) -> Way:
    """The one way to the status `to` whose screen takes what is given.

    Raises `Refused` if there is none or several, a required field is missing, one that is not on the screen is given,
    or a value is not among those allowed.
    """
    leading = [way for way in available if same(way.to, to) and (not name or same(way.name, name))]
    if not leading:
        offered = ", ".join(sorted({f"{way.name} -> {way.to}" for way in available})) or "none"
        raise Refused(f"no transition to `{to}` is available now; available: {offered}", code="no_transition")
    if len(leading) > 1:
        names = ", ".join(sorted(way.name for way in leading))
        raise Refused(f"several transitions lead to `{to}`: {names}; name one in `transition`", code="which_transition")
    way = leading[0]
    missing = sorted(set(way.required) - set(given))
    if missing:
        raise Refused(
            f"the screen of `{way.name}` requires `{', '.join(missing)}`; give them in `fields`", code="field_required"
        )
    strange = sorted(set(given) - set(way.screen))
    if strange:
        raise Refused(f"`{', '.join(strange)}` is not on the screen of `{way.name}`", code="field_unknown")
    for field, value in given.items():
        _check_allowed(way, field, value)
    return way


def same(one: str, other: str) -> bool:
    """Whether two names of a status or transition mean the same: Jira does not look at case."""
    return one.strip().casefold() == other.strip().casefold()


def judge(hands: Hands, *, status: str, before: str, to: str) -> Observation:
    """What the status now, and whose hand it is in, say about our transition from `before` to `to`.

    `applied`: the status is ours, or our undo is half-way back. `absent`: it is the before-image. `diverged`: neither,
    or somebody else's move, or our move came and somebody else took it back. `state.moved` says whose move stands.
    """
    state: JsonMap = {"status": status, "moved": hands.standing}
    if same(status, to):
        if hands.standing == "others":
            return Observation(seen="diverged", state=state, detail="somebody else moved it there")
        return Observation(seen="applied", state={**state, "moved": "ours"}, effect={"status": status})
    if same(status, before):
        if hands.taken_back:
            return Observation(seen="diverged", state=state, detail="our move landed and somebody moved it back")
        return Observation(seen="absent", state=state)
    if hands.undoing:
        detail = f"on its way back to `{before}`"
        return Observation(seen="applied", state={**state, "moved": "ours"}, effect={"status": status}, detail=detail)
    return Observation(seen="diverged", state=state, detail=f"the status is `{status}`, neither ours nor the former")


def _operations(field: Json) -> list[Json]:
    operations = map_of(field).get("operations")
    return operations if isinstance(operations, list) else []


def _check_allowed(way: Way, field: str, value: Json) -> None:
    allowed = maps_of(map_of(way.screen.get(field)).get("allowedValues"))
    if not allowed or not isinstance(value, dict):
        return
    if not any(value.items() <= item.items() for item in allowed):
        names = ", ".join(sorted(text_of(item.get("name")) or text_of(item.get("value")) for item in allowed))
        raise Refused(f"`{field}` cannot be that; the screen of `{way.name}` allows: {names}", code=f"field_{field}")
