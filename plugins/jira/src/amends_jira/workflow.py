"""What an issue's status and changelog say about a transition of ours. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from amends.spi import Json, JsonMap, Observation, Refused
from amends_jira import marker
from amends_jira.values import map_of, maps_of, text_of


@dataclass(frozen=True, slots=True)
class Way:
    """A transition that is allowed at this moment."""

    id: str
    name: str
    to: str
    required: tuple[str, ...]  # screen fields that must be given


def ways(answer: Mapping[str, Json]) -> tuple[Way, ...]:
    """The available transitions of a `transitions` answer."""
    return tuple(
        Way(
            id=text_of(item.get("id")),
            name=text_of(item.get("name")),
            to=text_of(map_of(item.get("to")).get("name")),
            required=tuple(
                name
                for name, field in map_of(item.get("fields")).items()
                if map_of(field).get("required") is True and map_of(field).get("hasDefaultValue") is not True
            ),
        )
        for item in maps_of(answer.get("transitions"))
        if item.get("isAvailable") is not False
    )


def choose(available: Sequence[Way], to: str, name: str, given: Iterable[str]) -> Way:
    """The one way to the status `to`. Raises `Refused` if there is none, several, or a required field is missing."""
    leading = [way for way in available if same(way.to, to) and (not name or same(way.name, name))]
    if not leading:
        offered = ", ".join(sorted({f"{way.name} -> {way.to}" for way in available})) or "none"
        raise Refused(f"no transition to `{to}` is available now; available: {offered}", code="no_transition")
    if len(leading) > 1:
        names = ", ".join(sorted(way.name for way in leading))
        raise Refused(f"several transitions lead to `{to}`: {names}; name one in `transition`", code="which_transition")
    missing = sorted(set(leading[0].required) - set(given))
    if missing:
        raise Refused(f"the transition's screen requires `{', '.join(missing)}`", code="field_required")
    return leading[0]


def same(one: str, other: str) -> bool:
    """Whether two names of a status or transition mean the same: Jira does not look at case."""
    return one.strip().casefold() == other.strip().casefold()


def judge(
    entries: Sequence[JsonMap], *, status: str, before: str, to: str, our_marker: str, our_account: str
) -> Observation:
    """What the status now, and the changelog since `prepare`, say about our transition from `before` to `to`.

    `applied`: the status is ours. `absent`: it is the before-image. `diverged`: neither, or somebody else's move, or
    our move came and somebody else took it back. `state.moved` says whose move stands: ours, others, none.
    """
    moves = [entry for entry in entries if _moves_status(entry)]
    landed = any(marker.of_history(entry)[0] == our_marker for entry in moves)
    undone = {marker.of_history(entry)[1] for entry in moves}
    standing = [entry for entry in moves if not _cancelled(entry, undone)]
    mover = _mover(standing[-1], our_marker, our_account) if standing else "none"
    state: JsonMap = {"status": status, "moved": mover}
    if same(status, to):
        if mover == "others":
            return Observation(seen="diverged", state=state, detail="somebody else moved it there")
        return Observation(seen="applied", state={**state, "moved": "ours"}, effect={"status": status})
    if same(status, before):
        if landed and our_marker not in undone:
            return Observation(seen="diverged", state=state, detail="our move landed and somebody moved it back")
        return Observation(seen="absent", state=state)
    return Observation(seen="diverged", state=state, detail=f"the status is `{status}`, neither ours nor the former")


def _cancelled(entry: JsonMap, undone: set[str]) -> bool:
    """True for an undo of an action, and for the move it undid: together they changed nothing."""
    said, undoes = marker.of_history(entry)
    return bool(undoes) or (bool(said) and said in undone)


def _mover(entry: JsonMap, our_marker: str, our_account: str) -> str:
    said = marker.of_history(entry)[0]
    if said:
        return "ours" if said == our_marker else "others"
    author = text_of(map_of(entry.get("author")).get("accountId"))
    return "others" if our_account and author and author != our_account else "unmarked"


def _moves_status(entry: JsonMap) -> bool:
    return any(text_of(item.get("field")) == "status" for item in maps_of(entry.get("items")))
