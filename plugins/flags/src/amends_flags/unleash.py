"""Flags in Unleash: the port over the admin API, with the product's traps (measured on 8.2.0).

On is not undone by off; adding twice makes two; a full update forgets what it leaves out, but keeps segments; archive
and revive lose every switch; variants live in strategies only; variants and segments come back in another order than
they were sent in; nothing honours If-Match.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from amends.spi import Call, DoctorFinding, Json, Question
from amends.spi.http import Ambiguous, HttpAnswer, HttpSender
from amends_flags.images import Ending, Flag, Origin, Strategy, Switched, covers, feature_of, listed, mapped, title_of
from amends_flags.options import UnleashOptions
from amends_flags.unleash_api import UnleashApi

_CONTENT = ("name", "title", "disabled", "sortOrder", "constraints", "variants", "parameters", "segments")
_EMPTY: Mapping[str, Json] = {"disabled": False, "constraints": [], "variants": [], "parameters": {}, "segments": []}
_GONE = (404,)
_CONFLICT = 409


class Unleash:
    """One project and environment of an Unleash server."""

    def __init__(self, options: UnleashOptions, secret: Callable[[str], str], sender: HttpSender) -> None:
        self.options = options
        self._api = UnleashApi(options, secret, sender)

    def flag(self, question: Question) -> Flag | None:
        document = self._api.document(question)
        environments = _environments(document or {})
        ours = [item for item in environments if item.get("name") == self.options.flag_environment]
        if not ours:
            return None
        strategies = tuple(
            Strategy(str(item.get("id", "")), _content_of(item))
            for item in listed(ours[0].get("strategies"))
            if isinstance(item, dict)
        )
        on_in = tuple(str(item.get("name")) for item in environments if item.get("enabled"))
        return Flag(ours[0].get("enabled") is True, strategies, self._api.newest_event(question), on_in)

    def switched(self, question: Question) -> Switched:
        """The event log tells. Where no enabled strategy stands, Unleash adds one: a project may have its own."""
        since = question.before.get("revision")
        events = list(self._api.events(question, since if isinstance(since, int) else 0))
        wanted = question.args.get("enabled") is True
        kind = f"feature-environment-{'enabled' if wanted else 'disabled'}"
        added = _added_by_switch(events) if wanted and not _has_enabled(question.before) else None
        return Switched(any(event.get("type") == kind for event in events), (added,) if added else ())

    def origin(self, question: Question) -> Origin | None:
        """The description begins with our marker; where it was edited, the event of its creation still tells."""
        document = self._api.document(question)
        if document is None:
            return None
        items = _environments(document)
        in_use = any(item.get("enabled") or listed(item.get("strategies")) for item in items)
        if _mark(question) in str(document.get("description") or ""):
            return Origin(ours=True, edited=False, in_use=in_use)
        events = self._api.events(question)
        created = [event.get("data") for event in events if event.get("type") == "feature-created"]
        return Origin(ours=any(_mark(question) in str(data) for data in created), edited=True, in_use=in_use)

    def ending(self, question: Question) -> tuple[Ending, str]:
        """A flag that is not shown is archived or deleted: its newest event of that kind says which."""
        if self._api.document(question) is not None:
            return "live", ""
        kinds: Mapping[str, Ending] = {"feature-archived": "archived", "feature-deleted": "deleted"}
        for event in self._api.events(question):
            kind = kinds.get(str(event.get("type")))
            if kind is not None:
                return kind, str(event.get("createdBy") or "")
        return "unexplained", ""

    def rule(self, question: Question) -> dict[str, Json]:
        rollout = str(question.args.get("rollout_percent", 100))
        return {
            "title": title_of(question),
            "name": "flexibleRollout",
            "parameters": {"rollout": rollout, "stickiness": "default", "groupId": feature_of(question)},
            "segments": _numbered(listed(question.args.get("segments"))),
            "constraints": listed(question.args.get("constraints", [])),
            "variants": [],
        }

    def variants(self, question: Question) -> list[Json]:
        """All but the last have a fixed weight: Unleash wants one that takes the rest."""
        given = [mapped(item) for item in listed(question.args.get("variants"))]
        return _by_name([_variant(item, last=place == len(given) - 1) for place, item in enumerate(given)])

    def switch(self, call: Call, *, on: bool, revision: Json) -> None:
        """The answer is an empty 200: whether it did anything, `switched` tells."""
        self._api.unchanged_since(call, revision)
        self._api.send(call, "POST", f"{self._api.environment(call)}/{'on' if on else 'off'}")

    def add_strategy(self, call: Call, content: Mapping[str, Json], revision: Json) -> str:
        self._api.unchanged_since(call, revision)
        path = f"{self._api.environment(call)}/strategies"
        answer = self._api.send(call, "POST", path, dict(content), body="json")
        return str(_naming(answer, {"title": content.get("title")}).get("id") or "")

    def replace_strategy(self, call: Call, strategy: str, content: Mapping[str, Json], revision: Json) -> None:
        self._api.unchanged_since(call, revision)
        answer = self._api.send(call, "PUT", self._api.strategy(call, strategy), dict(content), body="json")
        _naming(answer, {"id": strategy, "title": content.get("title")})

    def remove_strategy(self, call: Call, strategy: str, revision: Json) -> None:
        self._api.unchanged_since(call, revision)
        self._api.send(call, "DELETE", self._api.strategy(call, strategy), own=_GONE)

    def set_variants(self, call: Call, strategy: str, variants: list[Json], revision: Json) -> None:
        self._api.unchanged_since(call, revision)
        patch: list[Json] = [{"op": "replace", "path": "/variants", "value": variants}]
        answer = self._api.send(call, "PATCH", self._api.strategy(call, strategy), patch, body="json")
        _naming(answer, {"id": strategy, "variants": variants})

    def create(self, call: Call) -> bool:
        content: dict[str, Json] = {
            "description": f"{_mark(call)} {call.args.get('description', '')}".rstrip(),
            "name": feature_of(call),
            "type": call.args.get("type", "release"),
        }
        answer = self._api.send(call, "POST", f"{self._api.project}/features", content, body="json", own=(_CONFLICT,))
        if answer.status == _CONFLICT:
            return False
        _naming(answer, content)
        return True

    def discard(self, call: Call) -> None:
        self._api.send(call, "DELETE", self._api.feature(call), own=_GONE)

    def archive(self, call: Call, revision: Json) -> None:
        self._api.unchanged_since(call, revision)
        self._api.send(call, "DELETE", self._api.feature(call))

    def revive(self, call: Call) -> None:
        self._api.send(call, "POST", f"{self._api.project}/revive", {"features": [feature_of(call)]})

    def examine(self) -> list[DoctorFinding]:
        return [self._api.examine()]


def _naming(answer: HttpAnswer, asked: Mapping[str, Json]) -> dict[str, Json]:
    """The answer's document, if it names what was asked for. Else it may be a gateway's: raises `Ambiguous`."""
    document = answer.document()
    there: dict[str, Json] = {**document, "variants": _by_name(listed(document.get("variants")))}
    if not covers(there, dict(asked)):
        raise Ambiguous(f"{answer.request.name} answered with something else", code="another_answer")
    return document


def _content_of(document: Mapping[str, Json]) -> dict[str, Json]:
    """A strategy's content with the defaults that Unleash leaves out."""
    content = {name: _EMPTY.get(name) if document.get(name) is None else document[name] for name in _CONTENT}
    content["variants"] = _by_name(listed(content["variants"]))
    content["segments"] = _numbered(listed(content["segments"]))
    return content


def _by_name(variants: list[Json]) -> list[Json]:
    """Unleash keeps variants by name, in whatever order they come: their order says nothing."""
    return sorted(variants, key=lambda one: str(mapped(one).get("name")))


def _numbered(segments: list[Json]) -> list[Json]:
    """Unleash shows segments in no particular order; all of them must hold, and each once."""
    return [*sorted({number for number in segments if isinstance(number, int)})]


def _has_enabled(image: Mapping[str, Json]) -> bool:
    """True if a strategy of the image takes part in evaluation: then switching on adds nothing."""
    return any(not mapped(content).get("disabled") for content in listed(image.get("strategies")))


def _environments(document: Mapping[str, Json]) -> list[dict[str, Json]]:
    return [item for item in listed(document.get("environments")) if isinstance(item, dict)]


def _mark(question: Question) -> str:
    return f"[amends:{question.marker}]"


def _variant(given: Mapping[str, Json], *, last: bool) -> dict[str, Json]:
    weight = given.get("weight_percent")
    variant: dict[str, Json] = {
        "name": given.get("name"),
        "weight": (weight if isinstance(weight, int) else 0) * 10,
        "weightType": "variable" if last else "fix",
        "stickiness": "default",
    }
    value = given.get("value")
    if value is None:
        return variant
    if isinstance(value, str):
        variant["payload"] = {"type": "string", "value": value}
    else:
        number = isinstance(value, int) and not isinstance(value, bool)
        variant["payload"] = {"type": "number" if number else "json", "value": json.dumps(value)}
    return variant


def _added_by_switch(newest_first: Iterable[Mapping[str, Json]]) -> dict[str, Json] | None:
    """The content that came with the first switching-on: the last strategy added before it by the same actor."""
    oldest_first = list(newest_first)[::-1]
    for place, event in enumerate(oldest_first):
        if event.get("type") != "feature-environment-enabled":
            continue
        neighbours = [*oldest_first[place + 1 : place + 2], *oldest_first[max(place - 1, 0) : place]][::-1]
        for neighbour in neighbours:
            same = neighbour.get("createdBy") == event.get("createdBy")
            data = neighbour.get("data")
            if neighbour.get("type") == "feature-strategy-add" and same and isinstance(data, dict):
                return _content_of(data)
        return None
    return None
