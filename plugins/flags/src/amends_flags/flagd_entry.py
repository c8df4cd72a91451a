"""One flag's own document in a flagd file: what it says of the flag, and the marks that runs leave in it. Pure.

`metadata.amends` names the newest change of a run, `metadata.amends_created` the run that made the flag, and
`metadata.amends_archived` that it is archived.
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Call, Json, Question
from amends.spi.http import Unreadable
from amends_flags.flagd_file import fingerprint
from amends_flags.flagd_rules import branches, labelled, unlabelled
from amends_flags.images import Flag, Strategy, mapped
from amends_flags.options import FlagdOptions

_CHANGED, _CREATED, _ARCHIVED = "amends", "amends_created", "amends_archived"
_STATES = {"ENABLED": True, "DISABLED": False}


def entry_of(document: Mapping[str, Json], feature: str) -> dict[str, Json] | None:
    """The flag's entry; None if there is none. Raises `Unreadable` if flagd could not evaluate it."""
    found = mapped(document["flags"]).get(feature)
    if found is None:
        return None
    if not isinstance(found, dict) or found.get("state") not in _STATES:
        raise Unreadable(f"the flag `{feature}` has no `state` that flagd knows", code="undecodable")
    return found


def flag_in(entry: Mapping[str, Json], environment: str) -> Flag:
    """The flag as every place shows one."""
    enabled = is_on(entry)
    on_in = (environment,) if enabled else ()
    return Flag(enabled, tuple(_strategies(entry)), fingerprint(dict(entry)), on_in, entry)


def created(question: Question, options: FlagdOptions) -> dict[str, Json]:
    """A flag as we create it."""
    metadata: dict[str, Json] = {_CREATED: question.marker, "type": question.args.get("type", "release")}
    if question.args.get("description"):
        metadata["description"] = question.args["description"]
    return {
        "state": "DISABLED",
        "variants": {options.on_variant: True, options.off_variant: False},
        "defaultVariant": options.off_variant,
        "metadata": metadata,
    }


# --- on and off, and the marks ---------------------------------------------------------------------------------------


def is_on(entry: Mapping[str, Json]) -> bool:
    """Whether flagd evaluates the flag."""
    return _STATES[str(entry.get("state"))]


def turn(entry: dict[str, Json], *, on: bool) -> bool:
    """Turn the flag on or off; True if that changes anything."""
    changes = is_on(entry) is not on
    entry["state"] = "ENABLED" if on else "DISABLED"
    return changes


def creator(entry: Mapping[str, Json]) -> Json:
    """The action that made the flag; None if it was no run."""
    return mapped(entry.get("metadata")).get(_CREATED)


def changer(entry: Mapping[str, Json]) -> Json:
    """The action of the newest change that a run made and did not take back."""
    return mapped(entry.get("metadata")).get(_CHANGED)


def is_archived(entry: Mapping[str, Json]) -> bool:
    """Whether the flag is marked as archived."""
    return mapped(entry.get("metadata")).get(_ARCHIVED) is True


def mark_archived(entry: dict[str, Json], *, archived: bool) -> bool:
    """Set the mark or take it away; True if that changes anything."""
    changes = is_archived(entry) is not archived
    metadata = mapped(entry.get("metadata"))
    if archived:
        metadata[_ARCHIVED] = True
    else:
        metadata.pop(_ARCHIVED, None)
    _keep(entry, metadata)
    return changes


def stamp(call: Call, entry: dict[str, Json]) -> None:
    """Name the run's action in the flag, or, where its change is taken back, what was named before it."""
    metadata = mapped(entry.get("metadata"))
    former = mapped(mapped(call.before.get("snapshot")).get("metadata")).get(_CHANGED)
    if not call.rung:
        metadata[_CHANGED] = call.marker
    elif metadata.get(_CHANGED) == call.marker:
        metadata[_CHANGED] = former
    if metadata.get(_CHANGED) is None:
        metadata.pop(_CHANGED, None)
    _keep(entry, metadata)


def _keep(entry: dict[str, Json], metadata: dict[str, Json]) -> None:
    """Metadata, or none at all."""
    entry["metadata"] = metadata
    if not metadata:
        del entry["metadata"]


# --- strategies ------------------------------------------------------------------------------------------------------


def strategy_id(title: str, place: int, earlier: int) -> str:
    """A branch of ours is known by its cohort, which a later value keeps; another's by where it stands."""
    cohort = title.partition(" ")[2]
    if not cohort:
        return f"rule-{place}"
    return f"cohort-{fingerprint(cohort)[:12]}" + (f"-{earlier + 1}" if earlier else "")


def branch_of(entry: Mapping[str, Json], strategy: str) -> int | None:
    """Which branch a strategy is; None if it is gone."""
    return next((at for at, found in enumerate(_strategies(entry)) if found.id == strategy), None)


def branch_condition(content: Mapping[str, Json]) -> Json:
    """The condition of a strategy's branch, with its title as the label."""
    return labelled(str(content.get("title") or ""), content.get("when"))


def _strategies(entry: Mapping[str, Json]) -> list[Strategy]:
    found: list[Strategy] = []
    titles: list[str] = []
    for place, (when, then) in enumerate(branches(entry.get("targeting"))):
        title, bare = unlabelled(when)
        identity = strategy_id(title, place, titles.count(title))
        titles.append(title)
        found.append(Strategy(identity, {"title": title, "when": bare, "variants": [then]}))
    return found
