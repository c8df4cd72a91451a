"""The way back through the workflow where no transition leads straight to the former status.

An issue shows only the transitions out of its own status. What leads on from there is seen at another issue of the same
project and type that stands in that status. Such a path is a guess until walked: each step of it is one undo attempt,
and before each the transitions are read again. Bounded by the steps allowed and by the statuses asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amends.spi import Json, JsonMap, Question, Refused
from amends_jira.client import Jira
from amends_jira.values import map_of, project_of, text_of
from amends_jira.workflow import Way, same, ways

MOST_STATUSES = 8  # asked about in one search
_PEERS = 5


@dataclass(frozen=True, slots=True)
class _Path:
    """Ways that lead from here to a status: the first of them, and how many."""

    first: Way
    end: str
    steps: int


def first_step(
    jira: Jira, question: Question, issuetype: str, before: str, known: Mapping[str, Json], *, most_steps: int
) -> Way:
    """The first step of the shortest way to the status `before` whose screens ask for nothing but `known` fields.

    Raises `Refused` if there is none within the limits, `Unreadable` if the search cannot be made.
    """
    here = ways_of(jira, question, text_of(question.args.get("key")))
    paths = [_Path(way, way.to, 1) for way in here if _is_open(way, known)]
    reached = {path.end.casefold() for path in paths}
    direct = [path.first for path in paths if same(path.end, before)]
    if direct:
        return direct[0]
    asked = 0
    for path in paths:  # grows while it is walked: breadth first, so that the first to arrive is the shortest
        if path.steps >= most_steps or asked >= MOST_STATUSES:
            break
        asked += 1
        for way in _ways_from(jira, question, issuetype, path.end):
            if not _is_open(way, known) or way.to.casefold() in reached:
                continue
            if same(way.to, before):
                return path.first
            reached.add(way.to.casefold())
            paths.append(_Path(path.first, way.to, path.steps + 1))
    raise Refused(_no_way(here, before, known), code="no_reverse_transition")


def ways_of(jira: Jira, question: Question, key: str) -> tuple[Way, ...]:
    """The transitions available to the issue `key` at this moment, with their screens. Raises `Unreadable`."""
    return ways(jira.must_read(question, f"issue/{key}/transitions", {"expand": "transitions.fields"}))


def _ways_from(jira: Jira, question: Question, issuetype: str, status: str) -> tuple[Way, ...]:
    """What another issue in that status shows; nothing if none is found. Each hit is checked on our side."""
    key = text_of(question.args.get("key"))
    project = project_of(key)
    jql = f"project = {_quoted(project)} AND issuetype = {_quoted(issuetype)} AND status = {_quoted(status)}"
    page = next(jira.search(question, jql, ["status", "issuetype"], size=_PEERS), ())
    for hit in page:
        fields, other = map_of(hit.get("fields")), text_of(hit.get("key"))
        fits = project_of(other) == project and other != key
        if fits and _name(fields, "issuetype") == issuetype and same(_name(fields, "status"), status):
            return ways_of(jira, question, other)
    return ()


def _is_open(way: Way, known: Mapping[str, Json]) -> bool:
    return set(way.required) <= set(known)


def _no_way(here: tuple[Way, ...], before: str, known: Mapping[str, Json]) -> str:
    asking = [way for way in here if same(way.to, before)]
    if asking:
        wanted = ", ".join(sorted(set(asking[0].required) - set(known)))
        return f"the way back `{asking[0].name}` asks for `{wanted}`, which only a person can give"
    return f"the workflow shows no way back to `{before}`"


def _name(fields: JsonMap, field: str) -> str:
    return text_of(map_of(fields.get(field)).get("name"))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
