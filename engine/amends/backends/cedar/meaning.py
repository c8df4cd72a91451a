"""What sources mean, apart from how they are written: a semantic digest beside the digest of the sources.

Comments, layout, order of policies, order within a set and `@reason` change the sources' digest and not the meaning. A
policy's meaning is its tree under its id, with every annotation that is not mere text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import cast

from amends.backends.cedar import native
from amends.backends.cedar.bundle import MANIFEST, SCHEMA
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.tree import Policy
from amends.core.canonical import Json, JsonMap
from amends.core.reading import toml_of

TEXT_ANNOTATIONS = frozenset({"id", "reason", "owner"})  # words for people; the id names the meaning
SCHEMA_PART, WINDOWS_PART = "schema", "windows"


@dataclass(frozen=True, slots=True)
class Meaning:
    """Digests of what decides: of each policy by its id, of the schema, and of the calendar (windows and the like)."""

    policies: Mapping[str, str]
    parts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """`sha256:…`; equal for sources that answer every question alike, up to trees that are merely equivalent."""
        return _digest([sorted(self.policies.items()), sorted(self.parts.items())])


def meaning_of(snapshot: Snapshot) -> Meaning:
    """The meaning of everything that decides in `snapshot`."""
    return Meaning(
        policies={policy.id: policy_digest(policy) for policy in (*snapshot.policies, *snapshot.shadow)},
        parts={SCHEMA_PART: _schema(snapshot.sources), WINDOWS_PART: _calendar(snapshot.sources)},
    )


def policy_digest(policy: Policy) -> str:
    """The digest of one policy's meaning; where it stands and what its text annotations say do not count."""
    tree = policy.template
    annotations = {name: text for name, text in tree.annotations.items() if name not in TEXT_ANNOTATIONS}
    parts = (tree.effect, tree.principal, tree.action, tree.resource, tree.clauses)
    return _digest([annotations, [_plain(part) for part in parts]])


def _schema(sources: Mapping[str, str]) -> str:
    """Cedar prints a schema in one form, whatever form it was read from."""
    texts = [text for file, text in sorted(sources.items()) if file.endswith(SCHEMA)]
    return _digest(str(native.parse_schema("\n".join(texts))))


def _calendar(sources: Mapping[str, str]) -> str:
    """Every TOML file but the manifest, whose label says nothing; what it switches off is missing from the policies."""
    files: JsonMap = {
        file: _plain(toml_of(text))
        for file, text in sorted(sources.items())
        if file.endswith(".toml") and not file.endswith(MANIFEST)
    }
    return _digest(files)


def _plain(node: object) -> Json:
    """A tree as JSON. Recursion is bounded by the parser's limit of 100 levels."""
    if is_dataclass(node) and not isinstance(node, type):
        inner = {field.name: _plain(getattr(node, field.name)) for field in fields(node)}
        kind = type(node).__name__
        if kind in {"Set", "ActionIn"}:  # without order
            inner = {name: sorted(cast("list[Json]", value), key=_text) for name, value in inner.items()}
        return {"kind": kind, **inner}
    if isinstance(node, Mapping):
        return {str(name): _plain(value) for name, value in cast("Mapping[object, object]", node).items()}
    if isinstance(node, tuple | list):
        return [_plain(value) for value in cast("tuple[object, ...]", node)]
    if isinstance(node, bool | int | str) or node is None:
        return node
    return str(node)  # dates and times of TOML


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(value: object) -> str:
    return f"sha256:{hashlib.sha256(_text(value).encode()).hexdigest()}"
