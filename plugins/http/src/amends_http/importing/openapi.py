"""An OpenAPI 3 document as values: its operations with references resolved. Pure but for reading the one file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from amends.spi import ConfigError

Doc: TypeAlias = Mapping[str, Any]

MUTATING = ("post", "put", "patch", "delete")
_DEEPEST_REFERENCE = 32
_MOST_VALUES = 5_000_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `place` is `path`, `query`, `header` or `cookie`."""

    name: str
    place: str
    required: bool
    schema: Doc
    describe: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation with everything that a draft looks at. `body` is the schema of the request's body."""

    method: str
    path: str
    operation_id: str
    summary: str
    parameters: tuple[Parameter, ...]
    body: Doc
    encoding: str  # json | form | "" (no body)
    answers: Mapping[str, Doc]  # status -> schema of the JSON body, empty if the document does not say

    @property
    def name(self) -> str:
        """`POST /v1/things`."""
        return f"{self.method.upper()} {self.path}"


class Document:
    """A whole document."""

    def __init__(self, root: Doc, file: str) -> None:
        self._root = root
        self._file = file

    @property
    def title(self) -> str:
        """What the API calls itself."""
        return str(_doc(self._root.get("info")).get("title") or "partner")

    def operations(self) -> Iterator[Operation]:
        """Every operation, sorted by path and method: the order in the file does not matter."""
        paths = _doc(self._root.get("paths"))
        for path in sorted(paths):
            item = self._resolved(paths[path])
            for method in ("get", *MUTATING):
                if method in item:
                    yield self._operation(path, method, item)

    def properties(self, schema: Doc) -> tuple[dict[str, Doc], frozenset[str]]:
        """The properties of an object schema with `allOf` merged in, each resolved, and which are required."""
        found: dict[str, Doc] = {}
        required: set[str] = set()
        for part in (schema, *(self._resolved(one) for one in _list(schema.get("allOf")))):
            found |= {name: self._resolved(one) for name, one in _doc(part.get("properties")).items()}
            required |= {str(name) for name in _list(part.get("required"))}
        return found, frozenset(required)

    def _operation(self, path: str, method: str, item: Doc) -> Operation:
        said = self._resolved(item[method])
        given = [*_list(item.get("parameters")), *_list(said.get("parameters"))]
        parameters = {(one.place, one.name): one for one in map(self._parameter, given)}
        encoding, body = self._body(said)
        summary = str(said.get("summary") or said.get("description") or f"{method.upper()} {path}")
        responses = _doc(said.get("responses"))
        return Operation(
            method=method,
            path=path,
            operation_id=str(said.get("operationId") or ""),
            summary=" ".join(summary.split()).rstrip(".")[:120],
            parameters=tuple(parameters[key] for key in sorted(parameters)),
            body=body,
            encoding=encoding,
            answers={str(status): self._json_of(self._resolved(one)) for status, one in sorted(responses.items())},
        )

    def _parameter(self, given: Any) -> Parameter:
        said = self._resolved(given)
        schema = self._resolved(said.get("schema") or {})
        place = str(said.get("in") or "query")
        required = bool(said.get("required")) or place == "path"
        return Parameter(str(said.get("name")), place, required, schema, _words(said))

    def _body(self, said: Doc) -> tuple[str, Doc]:
        content = _doc(self._resolved(said.get("requestBody") or {}).get("content"))
        for kind, encoding in (("application/json", "json"), ("application/x-www-form-urlencoded", "form")):
            for name in sorted(content):
                if name.partition(";")[0].strip().lower() == kind:
                    return encoding, self._resolved(_doc(content[name]).get("schema") or {})
        return "", {}

    def _json_of(self, response: Doc) -> Doc:
        for name, said in sorted(_doc(response.get("content")).items()):
            if "json" in name:
                return self._resolved(_doc(said).get("schema") or {})
        return {}

    def _resolved(self, value: Any) -> Doc:
        """`value` with a reference at its top followed. Raises `ConfigError` for one that leads nowhere."""
        found = _doc(value)
        for _ in range(_DEEPEST_REFERENCE):
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            found = self._at(reference)
        raise ConfigError(f"`{self._file}`: a reference leads to itself", hint="correct the OpenAPI document")

    def _at(self, reference: str) -> Doc:
        where: Any = self._root
        if not reference.startswith("#/"):
            raise ConfigError(
                f"`{self._file}` refers to `{reference}`, which is another file",
                hint="bundle the document into one file",
            )
        for part in reference[2:].split("/"):
            where = _doc(where).get(part.replace("~1", "/").replace("~0", "~"))
        if where is None:
            raise ConfigError(
                f"`{self._file}` refers to `{reference}`, which is not there", hint="correct the OpenAPI document"
            )
        return _doc(where)


def read_document(path: Path) -> Document:
    """The document of a JSON file, or of a YAML file where PyYAML is installed. Raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` cannot be read: {error}", hint="name an OpenAPI 3 document") from None
    root = _parsed(text, path)
    if not isinstance(root, dict) or not str(_doc(root).get("openapi", "")).startswith("3."):
        raise ConfigError(f"`{path}` is no OpenAPI 3 document", hint="convert a Swagger 2 document to OpenAPI 3 first")
    return Document(_doc(root), path.name)


def _parsed(text: str, path: Path) -> object:
    if path.suffix.lower() not in {".yaml", ".yml"}:
        try:
            return cast("object", json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"`{path}` is not JSON: {error}", hint="a YAML document is named `.yaml`") from None
    try:
        import yaml  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415 - only YAML documents need it
    except ImportError:
        raise ConfigError(
            f"`{path}` is YAML, and PyYAML is not installed", hint="install `pyyaml`, or convert the document to JSON"
        ) from None
    try:
        root: object = yaml.safe_load(text)
        if _is_beyond(_MOST_VALUES, root):
            raise ValueError(f"it has more than {_MOST_VALUES:,} values, aliases written out")
        return cast("object", json.loads(json.dumps(root, default=str)))  # YAML has dates, and keys that are numbers
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"`{path}` is not YAML: {error}", hint="correct the OpenAPI document") from None


def _is_beyond(most: int, root: object) -> bool:
    """True for a document that is larger than this as soon as somebody writes it out, as a bomb of aliases is."""
    left, seen = [root], 0
    while left:
        value = left.pop()
        seen += 1
        if isinstance(value, dict):
            left += cast("dict[object, object]", value).values()
        elif isinstance(value, list):
            left += cast("list[object]", value)
        if seen + len(left) > most:
            return True
    return False


def _words(said: Doc) -> str:
    return " ".join(str(said.get("description") or "").split())[:200]


def _doc(value: Any) -> Doc:
    return cast("Doc", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []
