"""A recorded run as a workflow: its calls as they were made, tracked outputs taken from the new run's steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from amends.core.canonical import Json
from amends.core.errors import InvalidInput
from amends.core.order import inputs_from
from amends.core.redaction import MASK
from amends.core.rows import ActionRow, ApprovalRow, RunState
from amends.core.status import ActionKind
from amends.testing.injection.workflow import Entry, Workflow
from amends.testing.scenarios.script_model import Approve, Item, Step
from amends.testing.scenarios.values import look_up, placeholders

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")


def workflow_of(state: RunState) -> Workflow:
    """The calls of a recorded run, in their order; of a slot that was called again, the last.

    A text that was an output of an earlier step becomes that step's placeholder. Raises `InvalidInput` for a run that
    called nothing, and for one whose arguments were redacted: every one of them is named.
    """
    calls = _calls(state)
    if not calls:
        raise InvalidInput(f"run `{state.run.run_id}` called nothing", hint="name a run with actions")
    _refuse_redacted(state, calls)
    names = _names(calls)
    recorded: dict[str, Json] = {}
    script: list[Entry] = []
    for action in calls:
        producers = [one for one in calls if one.action_id in inputs_from(state, action.args) and one.seq < action.seq]
        script.append(
            Step.model_validate(
                {
                    "call": action.capability,
                    "as": names[action.action_id],
                    "args": {key: _replayed(v, producers, names, recorded) for key, v in action.args.items()},
                    "label": _replayed(action.label, (), names, recorded),
                    "depends_on": _dependencies(action, names),
                    "required": action.required,
                }
            )
        )
        script += [Approve(approve=Item(by=by, capability=action.capability)) for by in _approvers(state, action)]
    run = state.run
    return Workflow(
        workflow=run.workflow,
        agent=run.agent,
        initiator=run.initiator,
        owner=run.owner,
        recorded=recorded,
        script=tuple(script),
    )


def _calls(state: RunState) -> list[ActionRow]:
    """The last generation of every slot that the agent called, where the slot's first call stood."""
    slots: dict[str, ActionRow] = {}
    for action in sorted(state.actions.values(), key=lambda one: one.seq):
        if action.kind is ActionKind.DO:
            slots[action.slot] = action
    return list(slots.values())


def _names(calls: Sequence[ActionRow]) -> dict[str, str]:
    """A name for each call that stands in a placeholder: its capability, numbered if it has several."""
    names: dict[str, str] = {}
    for action in calls:
        base = _NOT_A_NAME.sub("_", action.capability.split(".", 1)[1])
        taken = sum(name == base or re.fullmatch(rf"{base}_\d+", name) is not None for name in names.values())
        names[action.action_id] = f"{base}_{taken + 1}" if taken else base
    return names


def _refuse_redacted(state: RunState, calls: Sequence[ActionRow]) -> None:
    found = [f"`{action.capability}`: `{key}`" for action in calls for key in _masked(action.args)]
    if found:
        raise InvalidInput(
            f"run `{state.run.run_id}` cannot be replayed: {'; '.join(found)} was redacted, and its value is nowhere",
            hint="write the calls into a workflow file, with a secret reference (`env:NAME`) there; nothing was sent",
            redacted=found,
        )


def _masked(value: Json, key: str = "") -> Iterator[str]:
    if isinstance(value, str) and MASK in value:
        yield key
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _masked(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _masked(inner, f"{key}[{place}]")


def _dependencies(action: ActionRow, names: Mapping[str, str]) -> tuple[str, ...] | None:
    if action.depends_on is None:
        return None
    return tuple(names[one] for one in action.depends_on if one in names)


def _approvers(state: RunState, action: ActionRow) -> tuple[str, ...]:
    """Who said yes to this call while the run was open."""
    asked: list[ApprovalRow] = [row for row in state.approvals.values() if row.action_id == action.action_id]
    released = [row for row in asked if row.phase == "forward" or action.release_mode == "gate"]
    return released[-1].approvers if released else ()


def _replayed(value: Json, producers: Sequence[ActionRow], names: Mapping[str, str], recorded: dict[str, Json]) -> Any:
    """An argument as it is given to the new run."""
    if isinstance(value, Mapping):
        return {name: _replayed(inner, producers, names, recorded) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replayed(inner, producers, names, recorded) for inner in value]
    source = _source(value, producers, names)
    if source:
        return f"${{{source}}}"
    if any(placeholders(value)):  # a text of the run, not a placeholder of ours
        recorded[f"text_{len(recorded) + 1}"] = value
        return f"${{recorded.text_{len(recorded)}}}"
    return value


def _source(value: Json, producers: Sequence[ActionRow], names: Mapping[str, str]) -> str:
    """Where the new run has what was this value in the old one; empty if it was nobody's output."""
    for action in reversed(producers):
        if value in _leaves(action.args):
            continue
        known: dict[str, Any] = {"reference": action.reference, "effect": action.effect, "output": action.output}
        for path in _paths(known):
            if look_up(path, known) == value and isinstance(value, str | int) and not isinstance(value, bool):
                candidate = f"{names[action.action_id]}.{path}"
                if list(placeholders(f"${{{candidate}}}")) == [candidate]:
                    return candidate
    return ""


def _paths(known: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The dotted path of every single value."""
    for name, value in known.items():
        if "." in name:
            continue
        path = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from _paths(cast("Mapping[str, Any]", value), f"{path}.")
        elif value not in ("", None):
            yield path


def _leaves(value: Json) -> list[Json]:
    if isinstance(value, Mapping):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [value]
