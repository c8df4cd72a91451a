"""The workflow that is put through faults: a small call list, in the words of a scenario's script."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from amends.core.errors import ConfigError, UnknownName
from amends.testing.scenarios.loading import explained, read_toml
from amends.testing.scenarios.script_model import Approve, Ending, Finish, Part, Step, Values, verb_of
from amends.testing.scenarios.values import look_up, placeholders

PAGE = "docs/inject.md"
VERBS = ("call", "approve", "finish")


def _verb(entry: Any) -> str | None:
    verb = verb_of(entry)
    return verb if verb in VERBS else None


Entry: TypeAlias = Annotated[
    Annotated[Step, Tag("call")] | Annotated[Approve, Tag("approve")] | Annotated[Finish, Tag("finish")],
    Discriminator(_verb, custom_error_type="verb", custom_error_message="one verb is needed"),
]


class Workflow(Part):
    """Who calls what, in order. `recorded` holds values of a recorded run that are taken as they are."""

    workflow: str = Field(min_length=1)
    agent: str = "agent"
    initiator: str = ""
    owner: str = ""
    values: Values = Field(default_factory=dict[str, Any])  # `${values.…}`
    recorded: Values = Field(default_factory=dict[str, Any])
    script: tuple[Entry, ...] = Field(min_length=1)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The calls, in order."""
        return tuple(entry for entry in self.script if isinstance(entry, Step))

    @property
    def finishes(self) -> bool:
        """Whether the agent ends its run well; otherwise everything is taken back."""
        return isinstance(self.script[-1], Finish)

    @model_validator(mode="after")
    def _holds_together(self) -> Workflow:
        if not self.steps:
            raise ValueError("the script calls nothing; add an entry with `call`")
        for name, times in Counter(step.called for step in self.steps).items():
            if times > 1:
                raise ValueError(f"{times} steps are called `{name}`; tell them apart with `as`")
        for path in placeholders(self.values):
            if path != "world":
                raise ValueError(f"`values`: nothing fills `${{{path}}}` there; only `${{world}}`")
        before: list[str] = []
        for place, entry in enumerate(self.script):
            if isinstance(entry, Step):
                self._refers_back(place, entry, before)
                before.append(entry.called)
            elif isinstance(entry, Approve):
                if place == 0 or isinstance(self.script[place - 1], Finish):
                    raise ValueError(f"script entry {place}: `approve` stands after the call that asks")
            elif place != len(self.script) - 1:
                raise ValueError(f"script entry {place}: nothing comes after `finish`")
            elif entry.finish != Ending():
                raise ValueError(f"script entry {place}: `finish` has no keys here; write `finish = {{}}`")
        return self

    def _refers_back(self, place: int, entry: Step, before: list[str]) -> None:
        for name in entry.depends_on or ():
            if name not in before:
                raise ValueError(f"script entry {place}: `depends_on` names `{name}`, and no earlier step is called so")
        for path in placeholders({"args": entry.args, "label": entry.label}):
            if not self._given(path) and not any(path.startswith(f"{name}.") for name in before):
                raise ValueError(
                    f"script entry {place}: nothing fills `${{{path}}}`; there are `${{world}}`, `${{values.…}}` and "
                    f"the earlier steps ({', '.join(before) or 'none'})"
                )

    def _given(self, path: str) -> bool:
        """Whether a placeholder is filled before the first call."""
        try:
            look_up(path, {"world": "", "values": self.values, "recorded": self.recorded})
        except UnknownName:
            return False
        return True


def load_workflow(path: Path) -> Workflow:
    """The workflow in `path`. Raises `ConfigError` that names file, key and remedy."""
    if not path.is_file():
        raise ConfigError(f"there is no workflow file `{path}`", hint=f"write one: {PAGE} shows how")
    data = read_toml(path)
    if "recorded" in data:
        raise ConfigError(f"`{path}`: `recorded`: there is no such key", hint="take it out; `values` holds your values")
    try:
        return Workflow.model_validate(data)
    except ValidationError as error:
        raise explained(error, path, page=PAGE, verbs=VERBS) from error
