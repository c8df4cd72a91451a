"""What the SPI promises, read from its code: names, fields with types and meanings, signatures, hooks.

A field's meaning is the comment behind it, or the comment lines above it. `needed` says what a change of the surface
means for `SPI_VERSION`, so that a test can hold the one against the other.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any, Literal, TypeAlias, get_args, get_origin

from amends import spi
from amends.spi import hookspecs, http, process

Bump: TypeAlias = Literal["none", "minor", "major"]
_REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class SpiField:
    """A field of a value. `default` is source text, or `required`; `inherited`: another class of the SPI has it."""

    type: str
    default: str
    meaning: str = field(compare=False)
    inherited: bool = field(compare=False, default=False)


@dataclass(frozen=True, slots=True)
class SpiMethod:
    """A method `(parameters) -> result`, or a property `: type`."""

    signature: str
    meaning: str = field(compare=False)
    inherited: bool = field(compare=False, default=False)


@dataclass(frozen=True, slots=True)
class SpiName:
    """One name of the SPI. `signature` of a function, `is` of an alias or value; `meaning` is the docstring."""

    kind: str
    text: str
    meaning: str = field(compare=False)
    fields: Mapping[str, SpiField] = field(default_factory=dict[str, SpiField])
    methods: Mapping[str, SpiMethod] = field(default_factory=dict[str, SpiMethod])

    def promise(self) -> dict[str, Any]:
        """What a plugin may rely on, as JSON: everything but the words."""
        return {
            "kind": self.kind,
            "text": self.text,
            "fields": {name: [one.type, one.default] for name, one in self.fields.items()},
            "methods": {name: one.signature for name, one in self.methods.items()},
        }


def surface() -> dict[str, SpiName]:
    """Every name, by its full path, in the order of the code."""
    found = {f"amends.spi.{name}": _described(spi, name) for name in spi.__all__ if name != "SPI_VERSION"}
    hooks = [name for name in vars(hookspecs) if name.startswith("amends_register_")]
    found |= {f"amends.spi.hookspecs.{name}": _described(hookspecs, name) for name in hooks}
    found |= {f"amends.spi.http.{name}": _described(http, name) for name in http.__all__}
    own = [n for n, value in vars(process).items() if n[0] != "_" and _home(value) == process.__name__]
    return found | {f"amends.spi.process.{name}": _described(process, name) for name in own}


def promised(names: Mapping[str, SpiName]) -> dict[str, Any]:
    """The surface as JSON, without its words."""
    return {path: name.promise() for path, name in sorted(names.items())}


def needed(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Bump, list[str]]:
    """How far `SPI_VERSION` must move from `before` to `now` (both as `promised` gives them), and the changes in words.

    A plugin written for `before` must work under the same major. So what goes, or changes, is major; what is added and
    may be left out is minor.
    """
    changes = [*_changes("", before, now)]
    breaking = [text for bump, text in changes if bump == "major"]
    return ("major" if breaking else "minor" if changes else "none"), breaking or [text for _, text in changes]


def _changes(where: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[Bump, str]]:
    for name, was in before.items():
        path = f"{where}{name}"
        if name not in now:
            yield "major", f"`{path}` is gone"
        elif was == now[name]:
            continue
        elif not isinstance(was, str | list):
            yield from _changes(f"{path}.", was, now[name])
        else:
            yield ("minor" if _wider(was, now[name]) else "major"), f"`{path}` is `{now[name]}`, was `{was}`"
    for name, new in now.items():
        if name not in before:
            must = isinstance(new, list) and _REQUIRED in new
            yield ("major" if must else "minor"), f"`{where}{name}` is new{', and required' if must else ''}"


def _wider(was: Any, now: Any) -> bool:
    """True if a field, with the default it had, or a signature takes all that it took, and more."""
    if not isinstance(was, str):  # type and default of a field
        return was[1] == now[1] and _choices(was[0]) < _choices(now[0])
    if not was.startswith("("):
        return _choices(was) < _choices(now)
    (before, _, result), (after, _, other) = was.rpartition(")"), now.rpartition(")")
    added = after.removeprefix(before).split(", ")[1:]
    return result == other and after.startswith(before) and all("=" in one for one in added)


def _choices(text: str) -> frozenset[str]:
    return frozenset(text.split(" | "))


def _described(module: ModuleType, name: str) -> SpiName:
    value: Any = getattr(module, name)
    if inspect.isclass(value):
        return _of_class(value)
    if inspect.isfunction(value):
        return SpiName("hook" if name.startswith("amends_") else "function", _signature(value), _doc(value))
    return SpiName("value", _alias(value), "")


def _of_class(kind: type[Any]) -> SpiName:
    if issubclass(kind, Enum):
        return SpiName("enum", " | ".join(f'"{one.value}"' for one in kind), _doc(kind))
    if issubclass(kind, Exception):
        return SpiName("exception", _constructor(kind), _doc(kind), {}, _methods(kind))
    made_of = {**getattr(kind, "__dataclass_fields__", {}), **getattr(kind, "model_fields", {})}
    fields = {name: one for name, one in _annotated(kind).items() if not made_of or name in made_of}
    return SpiName("class", "" if made_of else _constructor(kind), _doc(kind), fields, _methods(kind))


def _methods(kind: type[Any]) -> dict[str, SpiMethod]:
    """Own and inherited methods and properties that are defined in Amends; an override keeps the words it has not."""
    found: dict[str, SpiMethod] = {}
    for one in reversed(kind.__mro__):
        ours = vars(one).items() if one.__module__.startswith("amends.") else ()
        for name, value in ours:
            function = value.fget if isinstance(value, property) else value
            if name[0] == "_" or not inspect.isfunction(function):
                continue
            signature = _signature(function)
            if isinstance(value, property):
                signature = f": {signature.removeprefix('() -> ')}"
            meaning = _doc(function) or (found[name].meaning if name in found else "")
            found[name] = SpiMethod(signature, meaning, one is not kind)
    return found


def _annotated(kind: type[Any]) -> dict[str, SpiField]:
    """Every field, its own last."""
    found: dict[str, SpiField] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("amends."):
            found.update(_read(one, inherited=one is not kind))
    return found


def _read(kind: type[Any], *, inherited: bool) -> dict[str, SpiField]:
    lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    [tree] = ast.parse("\n".join(lines)).body
    if not isinstance(tree, ast.ClassDef):
        return {}
    scope = vars(sys.modules[kind.__module__])
    found: dict[str, SpiField] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            found[node.target.id] = SpiField(
                _type(node.annotation, scope), _default(node.value), _meaning(lines, node), inherited
            )
    return found


def _meaning(lines: list[str], node: ast.stmt) -> str:
    last = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset :]
    if "#" in last:
        return last.partition("#")[2].strip()
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        above.insert(0, line.strip().removeprefix("#").strip())
    return " ".join(above)


def _default(value: ast.expr | None) -> str:
    """The default as its source has it; what `Field` and `field` say about it, without their bounds."""
    if value is None:
        return _REQUIRED
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in {"Field", "field"}):
        return ast.unparse(value)
    said = {one.arg: one.value for one in value.keywords}
    if "default" in said:
        return ast.unparse(said["default"])
    return f"{ast.unparse(said['default_factory'])}()" if "default_factory" in said else _REQUIRED


def _type(annotation: ast.expr, scope: Mapping[str, Any]) -> str:
    """The annotation, with aliases of literals spelt out."""
    if isinstance(annotation, ast.Name) and get_origin(scope.get(annotation.id)) is Literal:
        return _alias(scope[annotation.id])
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        inner = annotation.slice
        values = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        return " | ".join(ast.unparse(one).replace("'", '"') for one in values)
    return ast.unparse(annotation)


def _alias(value: Any) -> str:
    if get_origin(value) is Literal:
        return " | ".join(f'"{one}"' for one in get_args(value))
    parts = get_args(value)
    if parts and all(inspect.isclass(one) for one in parts):
        return " | ".join(one.__name__ for one in parts)
    return ""


def _signature(function: Any) -> str:
    """Parameters and result as the source has them, without `self`."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(tree, ast.FunctionDef):
        return ""
    tree.args.args = [one for one in tree.args.args if one.arg != "self"]
    result = f" -> {ast.unparse(tree.returns)}" if tree.returns and tree.name != "__init__" else ""
    return f"({ast.unparse(tree.args)}){result}"


def _constructor(kind: type[Any]) -> str:
    """How an object is made, where Amends says so."""
    made = next(one for one in kind.__mro__ if "__init__" in vars(one))
    ours = made.__module__.startswith("amends.") and not getattr(kind, "_is_protocol", False)
    return _signature(vars(made)["__init__"]) if ours else ""


def _doc(value: Any) -> str:
    return inspect.cleandoc(value.__doc__) if value.__doc__ else ""


def _home(value: Any) -> str:
    return str(getattr(value, "__module__", ""))
