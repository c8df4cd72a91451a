"""One operation of a partner's API, declared in a TOML file: the contract, its arguments, and what is sent and read.

Everything is checked when the adapter is loaded; an error names file, key and remedy.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amends.spi import (
    Alternative,
    ConfigError,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Json,
    Keying,
    Limits,
    ProbeRule,
    Readers,
    Reference,
    Release,
    Signal,
)
from amends_http.settings import sentence
from amends_http.template import roots

ArgumentType: TypeAlias = Literal["text", "integer", "number", "decimal", "boolean", "list", "object", "secret"]
States: TypeAlias = dict[str, tuple[Json, ...]]

RESERVED = frozenset(
    {"marker", "key", "reference", "effect", "before", "after", "observed", "values", "undo_marker", "undo_key"}
)
_VALUE = re.compile(r"\{values\.([A-Za-z0-9_]+)\}")
_UNDO_ONLY = frozenset({"observed", "undo_marker", "undo_key"})


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ArgumentRule(_Rule):
    """One argument of the operation. A `secret` is given as a reference and resolved when it is sent."""

    type: ArgumentType = "text"
    required: bool = True
    default: Json = None
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    describe: str = ""


class SuccessRule(_Rule):
    """Which 2xx answers are a success: any, or those with these statuses and these values in the body."""

    statuses: tuple[int, ...] = ()
    where: States = Field(default_factory=dict[str, tuple[Json, ...]])


class RefusalRule(_Rule):
    """What an answer with this status (and error code) means: `done` says that the wanted state already holds."""

    status: int
    code: str = ""
    means: Literal["refused", "again", "ambiguous", "done"]


class OperationRule(_Rule):
    """A 202: where its operation is read (a path in the body or `header:location`) and how that reads."""

    url: str = "header:location"
    status: str = "status"
    done: tuple[Json, ...]
    failed: tuple[Json, ...]
    reference: str


class RequestRule(_Rule):
    """The one mutating request of a call."""

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: str = Field(pattern=r"^/")
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    query: dict[str, str] = Field(default_factory=dict[str, str])
    body: dict[str, Json] | None = None
    answers: Literal["json", "json_or_empty", "any"] = "json"
    success: SuccessRule = SuccessRule()
    refusals: tuple[RefusalRule, ...] = ()
    operation: OperationRule | None = None


class ReadRule(_Rule):
    """A read by path. `absent` are the statuses that say there is none."""

    path: str = Field(pattern=r"^/")
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    query: dict[str, str] = Field(default_factory=dict[str, str])
    absent: tuple[int, ...] = (404, 410)


class CursorRule(_Rule):
    """How the next page is asked for: `parameter` takes `item` of the last item, or `page` of the page itself."""

    parameter: str
    item: str = ""
    page: str = ""


class ListRule(_Rule):
    """A read of a list. `match` is checked on our side too: a server may ignore a filter it does not know."""

    path: str = Field(pattern=r"^/")
    query: dict[str, str] = Field(default_factory=dict[str, str])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    items: str = "data"
    match: dict[str, Json]
    more: str = ""
    cursor: CursorRule | None = None
    pages: int = Field(default=50, ge=1, le=1000)


class FindRule(_Rule):
    """How the effect is found again, and which of its states mean that it is there."""

    by_id: ReadRule | None = None
    by_list: ListRule | None = None
    present: States = Field(default_factory=dict[str, tuple[Json, ...]])
    gone: States = Field(default_factory=dict[str, tuple[Json, ...]])
    state: dict[str, str] = Field(default_factory=dict[str, str])


class ImageRule(_Rule):
    """For an operation that sets a state: the fields of `find.by_id` that make the before- and after-image."""

    fields: tuple[str, ...] = Field(min_length=1)


class OwnerRule(_Rule):
    """Whose the thing must be: a field of every document of ours, and the value it must have."""

    field: str
    equals: str


class RungRule(Alternative):
    """One rung of the compensation ladder, with the request that climbs it where `undo` is `own`."""

    request: RequestRule | None = None
    default_permit: bool = True  # the recovery Service may do it by the adapter's default policy


class Declaration(_Rule):
    """One file. Fields that a contract has too mean the same there."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    summary: str
    undo_cost: str = ""
    reversibility: Literal["reversible", "compensatable", "irreversible"]
    confirm: Literal["response", "probe"] = "response"
    provisional_for_seconds: float | None = None
    partial_inverse: bool = False
    error_code: str = "error.code"
    effect: Effect
    readers: Readers
    identity: Identity = Identity()
    keying: Keying = Keying(kind="blind")
    probe: ProbeRule | None = None
    reference: Reference | None = None
    owner: OwnerRule | None = None
    signal: Signal | None = None
    release: Release | None = None
    limits: Limits = Limits()
    escalation: EscalationRule = EscalationRule()
    input: dict[str, Literal["String", "Long", "Bool", "Set<String>"]] = Field(default_factory=dict)
    values: dict[str, str] = Field(default_factory=dict[str, str])
    arguments: dict[str, ArgumentRule | ArgumentType] = Field(default_factory=dict)
    request: RequestRule
    output: dict[str, str] = Field(default_factory=dict[str, str])
    find: FindRule = FindRule()
    image: ImageRule | None = None
    compensation: tuple[RungRule, ...] = ()

    def rules(self) -> dict[str, ArgumentRule]:
        """The arguments, each in its long form."""
        return {
            name: rule if isinstance(rule, ArgumentRule) else ArgumentRule(type=rule)
            for name, rule in self.arguments.items()
        }

    def secrets(self) -> tuple[str, ...]:
        """The arguments that are secret references."""
        return tuple(name for name, rule in self.rules().items() if rule.type == "secret")

    def rung(self, name: str) -> RungRule | None:
        """The rung called `name`."""
        return next((rung for rung in self.compensation if rung.name == name), None)

    def contract(self, adapter: str, values: Mapping[str, str]) -> Contract:
        """The contract this file declares, for the adapter instance `adapter`."""
        known = {"adapter": adapter, **{f"values.{name}": value for name, value in values.items()}}
        rungs = tuple(
            Alternative.model_validate(
                rung.model_dump(exclude={"request", "default_permit"}) | {"authority": _expand(rung.authority, known)}
            )
            for rung in self.compensation
        )
        signal = self.signal and self.signal.model_copy(
            update={name: _expand(text, known) for name, text in self.signal.model_dump().items()}
        )
        return Contract(
            capability=f"{adapter}.{self.name}",
            summary=self.summary,
            effect=self.effect,
            readers=self.readers,
            undo_cost=self.undo_cost,
            reversibility=self.reversibility,
            identity=self.identity,
            keying=self.keying,
            confirm=self.confirm,
            probe=self.probe,
            reference=self.reference,
            restores_before_image=self.image is not None,
            compensation=rungs,
            partial_inverse=self.partial_inverse,
            signal=signal,
            release=self.release,
            limits=self.limits,
            provisional_for_seconds=self.provisional_for_seconds,
            escalation=self.escalation,
            input=dict(self.input),
            secret_arguments=self.secrets(),
        )


def load_declarations(folder: Path) -> dict[str, Declaration]:
    """Every operation declared in `folder`, by file name. Raises `ConfigError` naming file, key and remedy."""
    found: dict[str, Declaration] = {}
    names: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        declaration = _read(path)
        problem = next(_problems(declaration), None)
        if problem is not None:
            raise ConfigError(f"contract file `{path.name}`, key `{problem[0]}`: {problem[1]}", hint=problem[2])
        if declaration.name in names:
            raise ConfigError(
                f"contract file `{path.name}`, key `name`: `{declaration.name}` is declared in"
                f" `{names[declaration.name]}` already",
                hint="rename one of the two operations",
            )
        names[declaration.name] = path.name
        found[path.name] = declaration
    if not found:
        raise ConfigError(f"no contract files in `{folder.name}`", hint="add one .toml file per operation")
    return found


def known_values(file: str, declaration: Declaration, given: Mapping[str, str]) -> dict[str, str]:
    """The file's default values with the adapter's own over them. Raises `ConfigError` for one that nobody gives."""
    values = {**declaration.values, **given}
    for name in sorted(set(_VALUE.findall(declaration.model_dump_json()))):
        if name not in values:
            raise ConfigError(
                f"contract file `{file}` uses `{{values.{name}}}`, which has no value",
                hint=f"set `{name}` in the adapter's `values`" + (", or its `account`" if name == "account" else ""),
            )
    return values


def _read(path: Path) -> Declaration:
    try:
        return Declaration.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"contract file `{path.name}` is not TOML: {error}", hint="correct the file") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"contract file `{path.name}`, key `{key}`: {sentence(first['msg'])}",
            hint="see `Write a contract` in the amends-http README",
            file=path.name,
            key=key,
        ) from None


def _problems(declaration: Declaration) -> Iterator[tuple[str, str, str]]:
    """(key, what is wrong, remedy) for what the types cannot say."""
    arguments = set(declaration.arguments)
    for name in sorted(arguments & RESERVED):
        yield f"arguments.{name}", f"`{name}` is a reserved word of templates", "rename the argument"
    forward = arguments | (RESERVED - _UNDO_ONLY)
    yield from _unknown("request", declaration.request, forward)
    secret = set(declaration.secrets())
    for part in ("path", "query"):
        for root in roots(getattr(declaration.request, part)):
            if root in secret:
                yield f"request.{part}", f"`{root}` is a secret", "send secrets in a header or in the body"
    for index, rung in enumerate(declaration.compensation):
        key = f"compensation.{index}"
        if rung.undo == "own" and rung.request is None:
            yield f"{key}.request", f"rung `{rung.name}` has no request", 'declare one, or `undo = "escalate"`'
        if rung.request is not None:
            yield from _unknown(f"{key}.request", rung.request, arguments | RESERVED)
    yield from _find_problems(declaration, forward)
    for name in declaration.input:
        if name not in arguments:
            yield f"input.{name}", f"there is no argument `{name}`", "declare it, or leave it out of the policy input"


def _find_problems(declaration: Declaration, known: set[str]) -> Iterator[tuple[str, str, str]]:
    find = declaration.find
    if declaration.probe is not None and find.by_id is None and find.by_list is None:
        yield "find", "the contract has a probe but nothing says what to read", "declare `find.by_id` or `find.by_list`"
    if declaration.image is not None and find.by_id is None:
        yield "find.by_id", "an image is read by path", "declare where the state is read"
    for name, rule in (("find.by_id", find.by_id), ("find.by_list", find.by_list)):
        if rule is not None:
            yield from _unknown(name, rule, known)
    if find.by_list is not None and find.by_list.more and find.by_list.cursor is None:
        yield "find.by_list.cursor", "`more` says there are pages but not how to ask for them", "declare the cursor"


def _unknown(key: str, rule: BaseModel, known: set[str]) -> Iterator[tuple[str, str, str]]:
    for part in ("path", "headers", "query", "body", "match"):
        for root in roots(getattr(rule, part, None)):
            if root not in known:
                yield (
                    f"{key}.{part}",
                    f"`{{{root}}}` is neither an argument nor a word of templates",
                    "correct the name",
                )


def _expand(text: Any, known: Mapping[str, str]) -> Any:
    """`text` with the names that are fixed at load filled in; `{order}` and the like stay for the engine."""
    if isinstance(text, str):
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", value)
    return text
