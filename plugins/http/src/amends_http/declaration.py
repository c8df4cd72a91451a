"""One operation of a partner's API, declared in a TOML file: the contract, its arguments, and what is sent and read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Literal

from pydantic import Field

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    ProbeRule,
    Readers,
    Reference,
    Release,
    Signal,
)
from amends_http.rules import ArgumentRule, ArgumentType, FindRule, ImageRule, OwnerRule, RequestRule, Rule, RungRule


class Declaration(Rule):
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
    blanks: dict[str, str] = Field(default_factory=dict[str, str])  # a draft: key -> what a person has to write there

    @property
    def subject(self) -> str:
        """What a drill is about: everything the file says of what is sent and read, and the code that sends it."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return f"amends-http {version('amends-http')}, sha256:{hashlib.sha256(content.encode()).hexdigest()}"

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


def _expand(text: Any, known: Mapping[str, str]) -> Any:
    """`text` with the names that are fixed at load filled in; `{order}` and the like stay for the engine."""
    if isinstance(text, str):
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", value)
    return text
