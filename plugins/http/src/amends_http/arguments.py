"""The strict model of an operation's arguments, built from its declaration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from amends.spi import Json
from amends_http.declaration import Declaration
from amends_http.rules import ArgumentRule

_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
_SECRET = r"^(env|file):.+$"  # noqa: S105 - a pattern of references


def arguments_model(declaration: Declaration) -> type[BaseModel]:
    """A frozen model that refuses unknown fields and coerces nothing: `"5"` is no integer."""
    fields: dict[str, Any] = {name: _field(rule) for name, rule in declaration.rules().items()}
    title = "".join(word.title() for word in declaration.name.split("_")) + "Arguments"
    config = ConfigDict(extra="forbid", frozen=True, strict=True)
    return create_model(title, __config__=config, **fields)


def _field(rule: ArgumentRule) -> tuple[Any, Any]:
    kind = _type(rule)
    if rule.required and rule.default is None:
        return Annotated[kind, Field(description=rule.describe)], ...
    if rule.default is None:
        return Annotated[kind | None, Field(description=rule.describe)], None
    return Annotated[kind, Field(description=rule.describe)], rule.default


def _type(rule: ArgumentRule) -> Any:
    if rule.choices:
        return Literal[rule.choices]
    if rule.type in {"integer", "number"}:
        number = int if rule.type == "integer" else float
        return Annotated[number, Field(ge=rule.minimum, le=rule.maximum)]
    plain: dict[str, Any] = {
        "text": Annotated[str, Field(pattern=rule.pattern or None)],
        "decimal": Annotated[str, Field(pattern=_DECIMAL)],
        "secret": Annotated[str, Field(pattern=_SECRET)],
        "boolean": bool,
        "list": list[Json],
        "object": dict[str, Json],
    }
    return plain[rule.type]
