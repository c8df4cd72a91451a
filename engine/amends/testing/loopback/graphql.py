"""As much of GraphQL as a client of a product's API sends: one operation, variables, aliases, inline fragments.

No schema: a document is projected onto what was selected; a field that it does not have is an error, as it would be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from amends.testing.loopback.wire import ApiError, Doc, as_doc, as_list

_TOKEN = re.compile(r'\s*(?:#[^\n]*|,)*\s*(\.\.\.|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|[_A-Za-z]\w*|[{}()\[\]:$!=])')
_CONSTANTS: Doc = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` where a value may stand."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """One selected field; `on` is the type of the inline fragment around it, if there is one."""

    name: str
    alias: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    selected: tuple[Field, ...] = ()
    on: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """A parsed document."""

    kind: Literal["query", "mutation"]
    fields: tuple[Field, ...]


def parse(text: str) -> Operation:
    """The one operation of a document. Raises `ApiError` (GRAPHQL_PARSE_FAILED) for what is none."""
    reader = _Reader(text)
    kind: Literal["query", "mutation"] = "query"
    if reader.peek() in {"query", "mutation"}:
        kind = cast("Literal['query', 'mutation']", reader.next())
        if reader.peek() not in {"(", "{"}:
            reader.next()
        if reader.peek() == "(":
            reader.skip_definitions()
    selected = reader.selection("")
    if reader.peek():
        raise _unparsed(f"Syntax Error: Unexpected {reader.peek()}")
    return Operation(kind, selected)


def is_mutation(payload: Any) -> bool:
    """True if a request body asks for a change; what cannot be read counts as one."""
    try:
        return parse(str(as_doc(payload).get("query", ""))).kind == "mutation"
    except ApiError:
        return True


def values(arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> Doc:
    """Arguments with the variables filled in; a variable that was not given is left out."""
    filled = {name: _filled(value, variables) for name, value in arguments.items()}
    return {name: value for name, value in filled.items() if value is not _MISSING}


def project(value: Any, selected: tuple[Field, ...]) -> Any:
    """`value` as selected. Raises `ApiError` (GRAPHQL_VALIDATION_FAILED) for a field that it does not have."""
    if isinstance(value, list):
        return [project(item, selected) for item in as_list(value)]
    if not selected or value is None:
        return value
    document = as_doc(value)
    return {
        wanted.alias: project(_field(document, wanted), wanted.selected)
        for wanted in selected
        if not wanted.on or _is_a(document, wanted.on)
    }


_MISSING = object()


def _is_a(document: Doc, kind: str) -> bool:
    return kind == document.get("__typename") or (kind == "ErrorResult" and "errorCode" in document)


def _field(document: Doc, wanted: Field) -> Any:
    if wanted.name not in document:
        kind = document.get("__typename", "this")
        raise ApiError(400, "GRAPHQL_VALIDATION_FAILED", f'Cannot query field "{wanted.name}" on type "{kind}".')
    return document[wanted.name]


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, Variable):
        return variables.get(value.name, _MISSING)
    if isinstance(value, dict):
        return values(as_doc(value), variables)
    if isinstance(value, list):
        return [_filled(item, variables) for item in as_list(value)]
    return value


class _Reader:
    """The tokens of a document, one after the other."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        end = 0
        while match := _TOKEN.match(text, end):
            self._tokens.append(match[1])
            end = match.end()
        if text[end:].strip(" \t\r\n,") or not self._tokens:
            raise _unparsed("Syntax Error: the document cannot be read")
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            raise _unparsed("Syntax Error: Unexpected <EOF>.")
        self._at += 1
        return token

    def expect(self, token: str) -> None:
        found = self.next()
        if found != token:
            raise _unparsed(f"Syntax Error: Expected {token}, found {found}.")

    def skip_definitions(self) -> None:
        """Variable definitions: types are not checked here."""
        while self.next() != ")":
            pass

    def selection(self, on: str) -> tuple[Field, ...]:
        self.expect("{")
        found: list[Field] = []
        while self.peek() != "}":
            if self.peek() == "...":
                self.next()
                self.expect("on")
                found += self.selection(self.next())
            else:
                found.append(self._field(on))
        self.next()
        return tuple(found)

    def _field(self, on: str) -> Field:
        name = alias = self.next()
        if self.peek() == ":":
            self.next()
            name = self.next()
        arguments = self._arguments() if self.peek() == "(" else {}
        selected = self.selection("") if self.peek() == "{" else ()
        return Field(name, alias, arguments, selected, on)

    def _arguments(self) -> Doc:
        self.expect("(")
        found = self._pairs(")")
        if not found:
            raise _unparsed("Syntax Error: Expected Name, found ).")
        return found

    def _pairs(self, end: str) -> Doc:
        found: Doc = {}
        while self.peek() != end:
            name = self.next()
            self.expect(":")
            found[name] = self._value()
        self.next()
        return found

    def _value(self) -> Any:
        word = self.next()
        if word == "$":
            return Variable(self.next())
        if word == "{":
            return self._pairs("}")
        if word == "[":
            items: list[Any] = []
            while self.peek() != "]":
                items.append(self._value())
            self.next()
            return items
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        return json.loads(word) if word[0] in '"-0123456789' else word


def _unparsed(message: str) -> ApiError:
    return ApiError(400, "GRAPHQL_PARSE_FAILED", message)
