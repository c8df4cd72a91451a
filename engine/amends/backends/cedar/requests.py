"""Requests that people write, for `amends policy eval`: from a file or from words, guarded field by field.

A request of the runtime is built from typed facts (`question.from_request`); what people write is JSON, so everything
that Cedar or JSON would quietly read otherwise is refused here by name: reserved keys, nulls, floats, numbers beyond
64 bits, times without a zone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from amends.backends.cedar import windows
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.question import GROUPS, Question, RequestRejected, from_record
from amends.backends.cedar.schema import CORE, Vocabulary, entity_type
from amends.backends.cedar.testfile import flat, merged, standard_fixtures
from amends.backends.cedar.windows import EPOCH
from amends.core.canonical import Json, JsonMap
from amends.core.contract import InputType
from amends.core.errors import InvalidInput, UnknownName
from amends.core.evidence import as_map
from amends.core.reading import json_of

_EMPTY: Mapping[InputType, Json] = {"String": "", "Long": 0, "Bool": False, "Set<String>": []}
RESERVED = frozenset({"__extn", "__entity", "__expr"})
_LONG_LIMIT = 2**63
_TIMES = re.compile(r"time\.now|approval\.(at|expires_at)|forward\.decided_at")
_MAX_DEPTH = 20


def from_text(text: str) -> JsonMap:
    """The request in a JSON text: a recorded decision's `context`, a request of `cedar run-tests`, or `{"fixture": …,
    "overrides": …}` as in a policy test. Raises `InvalidInput`.
    """
    try:
        request = json_of(text)
    except ValueError as problem:
        raise InvalidInput(f"the request is not JSON: {problem}", hint="see `amends policy eval --help`") from None
    if not isinstance(request, dict):
        raise InvalidInput("the request is no JSON object", hint="see `amends policy eval --help`")
    if "fixture" in request:
        fixtures = standard_fixtures()
        name = str(request["fixture"])
        if name not in fixtures:
            raise UnknownName(f"there is no fixture `{name}`", hint=f"there are: {', '.join(fixtures)}")
        request = merged(fixtures[name], as_map(request.get("overrides")))
    try:
        return flat(request)
    except RequestRejected as problem:
        raise InvalidInput(str(problem), hint='write Type::"id", or {"type": …, "id": …}') from None


def about(vocabulary: Vocabulary, action: str) -> JsonMap:
    """An unremarkable request for a policy action (`partner.reserve.undo`), its input empty or zero. Raises
    `UnknownName`.
    """
    found = [declared for declared in vocabulary.actions.values() if declared.name == action]
    if not found:
        known = ", ".join(sorted(declared.name for declared in vocabulary.actions.values()))
        raise UnknownName(f"no policy action `{action}`", hint=f"there are: {known or 'none'}")
    declared = found[0]
    record = standard_fixtures()[declared.phase]
    return {
        **record,
        "action": {"type": f"{declared.namespace}::Action", "id": declared.name},
        "resource": {**as_map(record["resource"]), "type": f"{declared.namespace}::{min(declared.resources)}"},
        "input": {name: _EMPTY[type_] for name, type_ in sorted(declared.required.items())},
    }


def with_resource(record: Mapping[str, Json], resource: str) -> JsonMap:
    """`record` about `kind:id`, such as `reservation:res-1`. Raises `InvalidInput`."""
    kind, colon, id_ = resource.partition(":")
    if not colon or not kind:
        raise InvalidInput(f"`{resource}` is no resource", hint="write it as kind:id, such as reservation:res-1")
    namespace = str(as_map(record.get("action")).get("type", "")).rpartition("::")[0]
    return merged(record, {"resource": {"type": f"{namespace}::{entity_type(kind)}", "id": id_}})


def with_principal(record: Mapping[str, Json], principal: str) -> JsonMap:
    """`record` asked by `Type:id`, such as `Human:maya`. Raises `InvalidInput`."""
    kind, colon, id_ = principal.partition(":")
    if not colon or kind not in {"Agent", "Service", "Human"}:
        raise InvalidInput(f"`{principal}` is no principal", hint="write Agent:id, Service:id or Human:id")
    return merged(record, {"principal": {"type": f"{CORE}::{kind}", "id": id_}})


def with_settings(record: Mapping[str, Json], settings: Iterable[str]) -> JsonMap:
    """`record` with `path=value` settings, such as `time.age=3h` or `input.quantity=3`: a value is JSON, or else text;
    `null` takes a key out. Raises `InvalidInput`.
    """
    found: JsonMap = dict(record)
    for setting in settings:
        path, equals, text = setting.partition("=")
        names = path.removeprefix("context.").split(".")
        if not equals or not all(names):
            raise InvalidInput(f"`{setting}` sets nothing", hint="write path=value, such as time.age=3h")
        change: Json = _value(text)
        for name in reversed(names):
            change = {name: change}
        found = merged(found, as_map(change))
    return found


def with_open_windows(record: Mapping[str, Json], snapshot: Snapshot) -> JsonMap:
    """`record` with the windows open that the snapshot's calendar opens at its `time.now`."""
    now = as_map(record.get("time")).get("now")
    try:
        at = datetime.fromisoformat(str(now))
    except ValueError:
        return dict(record)  # `question` says what is wrong with it
    if at.tzinfo is None:
        return dict(record)
    names: list[Json] = list(windows.open_names(snapshot.windows, (at - EPOCH) // timedelta(microseconds=1)))
    return merged(record, {"time": {"windows": names}})


def question(record: Mapping[str, Json]) -> Question:
    """The question that `record` asks. Raises `InvalidInput` naming a field that Cedar could not read, or would read
    otherwise than it stands.
    """
    for name in GROUPS:
        if name in record:
            _guard(record[name], name, 0)
    try:
        return from_record(record)
    except RequestRejected as problem:
        raise InvalidInput(str(problem), hint="see `amends policy eval --help`") from None


def stock(asked: Question) -> JsonMap:
    """`asked` as any Cedar tool takes it: `principal`, `action`, `resource`, `context` and `entities`."""
    uids: JsonMap = {name: f"{uid['type']}::{json.dumps(uid['id'])}" for name, uid in asked.uids.items()}
    entities: list[Json] = [dict(entity) for entity in asked.entities]
    return {**uids, "context": dict(asked.context), "entities": entities}


def _value(text: str) -> Json:
    try:
        return json_of(text)
    except ValueError:
        return text


def _guard(value: Json, where: str, depth: int) -> None:
    problem = ""
    if isinstance(value, dict):
        reserved = sorted(RESERVED & value.keys())
        problem = f"holds the reserved key `{reserved[0]}`" if reserved else ""
    elif value is None:
        problem = "is null; leave the key out instead"
    elif isinstance(value, float):
        problem = "is a fraction; Cedar has whole numbers only: use the smaller unit"
    elif isinstance(value, int) and not -_LONG_LIMIT <= value < _LONG_LIMIT:
        problem = "does not fit a Long (64 bits)"
    elif isinstance(value, str) and _TIMES.fullmatch(where):
        problem = _time_problem(value)
    if depth > _MAX_DEPTH:
        problem = f"nests deeper than {_MAX_DEPTH}"
    if problem:
        raise InvalidInput(f"`{where}` {problem}", hint="correct the request; nothing was evaluated", path=where)
    if isinstance(value, dict):
        for name, inner in value.items():
            _guard(inner, f"{where}.{name}", depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _guard(inner, where, depth + 1)


def _time_problem(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return "is no time; write it as 2026-03-02T10:00:00.000Z"
    return "" if at.tzinfo is not None else "has no time zone; write it as 2026-03-02T10:00:00.000Z"
