"""From an operation to the draft of a contract. What the document does not say is a blank with what to write there.

A draft never guesses an inverse: its undo is blank, its readers are the strictest, and the loader refuses it until
every blank is written and its line deleted. Without that list registration still refuses what has no way back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amends_http.checking import RESERVED
from amends_http.importing.openapi import MUTATING, Doc, Document, Operation

_TYPES = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean", "array": "list"}
_CHANGES = {"post": "creates", "put": "sets", "patch": "sets", "delete": "removes"}
_SECRET = re.compile(r"password|secret|token|api_?key", re.IGNORECASE)
_IDEMPOTENCY = re.compile(r"idempoten", re.IGNORECASE)
_INVERSE = re.compile(r"/(cancel|void|refund|reverse|release|revoke|delete|close|archive|restore)$")
_PARAMETER = re.compile(r"\{([^{}]+)\}")
_MARKER: dict[str, Any] = {"amends_action": "{marker}"}


@dataclass(slots=True)
class Draft:
    """A drafted contract: the document of its file, and what the API's document does not say."""

    name: str
    operation: str
    document: dict[str, Any]
    warnings: list[str] = field(default_factory=list[str])


def drafts(document: Document) -> list[Draft]:
    """A draft of every operation that changes something, in a stable order and under names that do not clash."""
    operations = list(document.operations())
    made: dict[str, Draft] = {}
    for operation in operations:
        if operation.method in MUTATING:
            name = _free(_name(operation), made)
            made[name] = _Drafter(document, operation, operations).draft(name)
    return list(made.values())


class _Drafter:
    """Drafts one operation; the others are looked at for how the effect is read again."""

    def __init__(self, document: Document, operation: Operation, others: list[Operation]) -> None:
        self._document = document
        self._operation = operation
        self._reads = {other.path: other for other in others if other.method == "get"}
        self._others = others
        self._blanks: dict[str, str] = {}
        self._warnings: list[str] = []
        self._names: dict[str, str] = {}

    def draft(self, name: str) -> Draft:
        operation = self._operation
        properties, required = self._document.properties(operation.body)
        arguments = self._arguments(properties, required)
        path_names = [self._names[one.name] for one in operation.parameters if one.place == "path"]
        kind = _kind(operation.path)
        resource = f"{kind}:{'/'.join(f'{{{one}}}' for one in path_names) or name}"
        key = self._key_header()
        document: dict[str, Any] = {
            "name": name,
            "summary": operation.summary,
            "reversibility": "compensatable",
            "undo_cost": "",
            "effect": {
                "kind": kind,
                "system": _word(self._document.title),
                "resource": resource,
                "changes": _CHANGES[operation.method],
            },
            "readers": {"audience": "customer", "where": "not said"},
            "identity": {"fields": path_names},
            "keying": {"kind": "keyed", "parameter": key, "ttl_seconds": 86400} if key else {"kind": "blind"},
        }
        self._people(path_names)
        request = self._request(properties, key)
        found = self._found(properties)
        self._headers(key)
        rest = {"arguments": arguments, "request": request, **found}
        self._undo()
        return Draft(name, operation.name, document | rest | {"blanks": self._blanks}, self._warnings)

    def _arguments(self, properties: Mapping[str, Doc], required: frozenset[str]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for one in self._operation.parameters:
            if one.place in {"path", "query"}:
                arguments[self._named(one.name)] = _argument(one.name, one.schema, one.describe, needed=one.required)
        for name, schema in properties.items():
            if not schema.get("readOnly") and not (name == "metadata" and _carries(schema)):
                describe = " ".join(str(schema.get("description") or "").split())[:200]
                arguments[self._named(name)] = _argument(name, schema, describe, needed=name in required)
        return arguments

    def _named(self, name: str) -> str:
        """The argument for a name on the wire: a word of its own that no template word hides."""
        if name not in self._names:
            word = re.sub(r"\W+", "_", name).strip("_") or "value"
            word = f"_{word}" if word[0].isdigit() else word
            word = f"{word}_value" if word in RESERVED else word
            while word in self._names.values():
                word += "_"
            self._names[name] = word
        return self._names[name]

    def _request(self, properties: Mapping[str, Doc], key: str) -> dict[str, Any]:
        operation = self._operation
        request: dict[str, Any] = {"method": operation.method.upper()}
        request["path"] = _PARAMETER.sub(lambda match: f"{{{self._named(match[1])}}}", operation.path)
        if operation.encoding == "form":
            request["encoding"] = "form"
        if key:
            request["headers"] = {key: "{key}"}
        query = {one.name: f"{{{self._named(one.name)}}}" for one in operation.parameters if one.place == "query"}
        if query:
            request["query"] = query
        if properties:
            request["body"] = self._body(properties)
        statuses = [int(status) for status in operation.answers if status.startswith("2") and status.isdecimal()]
        if not any(operation.answers[status] for status in map(str, statuses)):
            request["answers"] = "any"
        request["success"] = self._success(statuses)
        self._errors()
        return request

    def _body(self, properties: Mapping[str, Doc]) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if _carries(properties.get("metadata", {})):
            body["metadata"] = dict(_MARKER)
        else:
            self._blanks["request.body"] = (
                "a field that can carry `{marker}`, first; without one nothing is found again"
            )
        for name, schema in properties.items():
            if name not in body and not schema.get("readOnly"):
                body[name] = f"{{{self._named(name)}}}"
        return body

    def _success(self, statuses: list[int]) -> dict[str, Any]:
        answers = [self._operation.answers[str(status)] for status in statuses]
        echoed = [self._document.properties(answer)[0].get("metadata", {}) for answer in answers]
        if 202 in statuses:  # noqa: PLR2004 - accepted
            self._blanks["request.operation"] = (
                "the 202's operation: where it is read, and which status is done or failed"
            )
        success: dict[str, Any] = {"statuses": statuses} if statuses else {}
        if echoed and all(_carries(one) for one in echoed):
            success["where"] = {"metadata.amends_action": ["{marker}"]}
        else:
            text = 'what in the answer proves that it is of this call, or `confirm = "probe"` at the top'
            self._blanks["request.success.where"] = text
        return success

    def _errors(self) -> None:
        errors = [status for status in self._operation.answers if not status.startswith("2")]
        if not any(self._operation.answers[status] for status in errors):
            self._warnings.append("it does not say how errors read: the shared status table decides alone")
        if "409" not in errors:
            self._warnings.append("it does not say when a conflict (409) is a refusal: each one is ambiguous")

    def _headers(self, key: str) -> None:
        for one in self._operation.parameters:
            if one.place == "header" and one.required and one.name != key:
                self._warnings.append(f"it needs the header `{one.name}`: add it under `request.headers`")

    def _key_header(self) -> str:
        names = [p.name for p in self._operation.parameters if p.place == "header" and _IDEMPOTENCY.search(p.name)]
        if not names:
            self._warnings.append(
                "it names no idempotency header: a lost answer is decided by a person unless a look can"
            )
            self._blanks["keying"] = (
                "`keyed` with its header, `probeable` if a look finds the effect, else leave `blind`"
            )
        return names[0] if names else ""

    def _found(self, properties: Mapping[str, Doc]) -> dict[str, Any]:
        """How the effect is read again, as far as the document says."""
        operation = self._operation
        if operation.path in self._reads and _PARAMETER.search(operation.path.rpartition("/")[2]):
            by_id = {"path": _PARAMETER.sub(lambda match: f"{{{self._named(match[1])}}}", operation.path)}
            self._blanks["find"] = "which states mean that it is there (`present`) and which that it is gone (`gone`)"
            if operation.method in {"put", "patch"}:
                self._blanks["image"] = "the fields that are set, for the before-image and the way back"
            return {"probe": {"strength": "id"}, "find": {"by_id": by_id}}
        item = next((path for path in sorted(self._reads) if _is_item_of(path, operation.path)), "")
        listed = operation.method == "post" and operation.path in self._reads
        self._blanks["find"] = (
            "how the effect is found by our marker, to the last page, and its states `present` and `gone`"
        )
        if not item:
            self._blanks["probe"] = "how strong that look is (`list`, `search`), and when absence is final"
            return {}
        found: dict[str, Any] = {"reference": {"field": "id"}, "probe": {"strength": "id"}}
        prefix = _PARAMETER.sub(lambda match: f"{{{self._named(match[1])}}}", operation.path)
        find: dict[str, Any] = {"by_id": {"path": f"{prefix}/{{reference}}"}}
        if listed and _carries(properties.get("metadata", {})):
            find["by_list"] = {"path": prefix, "items": self._items(), "match": {"metadata.amends_action": "{marker}"}}
            self._blanks["find.by_list"] = "the filter by our marker, and how the next page is asked for"
            found["probe"] = {"strength": "list"}
        return found | {"find": find}

    def _items(self) -> str:
        """Where the list stands in a page."""
        answer = self._reads[self._operation.path].answers.get("200", {})
        properties, _ = self._document.properties(answer)
        return next((name for name in sorted(properties) if properties[name].get("type") == "array"), "")

    def _people(self, path_names: list[str]) -> None:
        self._blanks["readers"] = "who can see the effect (machine, team, customer, partner), and where they read it"
        if not path_names:
            self._blanks["identity"] = "which arguments make two calls the same intent"

    def _undo(self) -> None:
        near = self._operation.path.rstrip("/")
        candidates = [
            other.name
            for other in self._others
            if other.path.startswith(near)
            and other.path != near
            and (other.method == "delete" or (other.method != "get" and _INVERSE.search(other.path)))
        ]
        if self._operation.method in {"put", "patch"}:
            candidates.append(self._operation.name)
        hint = f"; candidates: {', '.join(candidates)}" if candidates else "; the document shows no candidate"
        self._blanks["undo_cost"] = "what taking it back costs, in words"
        self._blanks["compensation"] = f"the rungs that take it back, or `irreversible` with a `release`{hint}"


def _argument(name: str, schema: Doc, describe: str, *, needed: bool) -> dict[str, Any]:
    choices = [one for one in schema.get("enum", ()) if isinstance(one, str)]
    kind = "secret" if _SECRET.search(name) else _TYPES.get(str(schema.get("type")), "object")
    kind = "text" if choices else kind
    argument: dict[str, Any] = {"type": kind}
    if not needed:
        argument["required"] = False
    if choices:
        argument["choices"] = choices
    for bound in ("minimum", "maximum"):
        if kind in {"integer", "number"} and isinstance(schema.get(bound), int):
            argument[bound] = schema[bound]
    if describe:
        argument["describe"] = describe
    return argument


def _carries(schema: Doc) -> bool:
    """True if a `metadata` can hold a field of ours: an object that names no fields of its own."""
    return bool(schema) and schema.get("type", "object") == "object" and not schema.get("properties")


def _is_item_of(path: str, collection: str) -> bool:
    prefix = collection.rstrip("/") + "/"
    return path.startswith(prefix) and bool(_PARAMETER.fullmatch(path.removeprefix(prefix)))


def _name(operation: Operation) -> str:
    words = operation.operation_id or f"{operation.method} {_PARAMETER.sub('', operation.path)}"
    return _word(words)


def _word(text: str) -> str:
    """`PostCharges` and `post /v1/charges` as lower-case words joined by `_`."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    word = re.sub(r"[^a-z0-9]+", "_", split.lower()).strip("_")
    return word if word and word[0].isalpha() else f"op_{word}".rstrip("_")


def _kind(path: str) -> str:
    words = [part for part in path.split("/") if part and not _PARAMETER.fullmatch(part)]
    last = _word(words[-1]) if words else "thing"
    return last[:-1] if last.endswith("s") and not last.endswith("ss") else last


def _free(name: str, taken: Mapping[str, Draft]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
