"""The faults, the worlds that try them, and those that are not tried, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from amends.core.contract import Contract
from amends.core.errors import InvalidInput
from amends.ports.services import Milestone
from amends.testing.injection.workflow import Workflow

FaultKind: TypeAlias = Literal["lost_answer", "late_answer", "undo_rejected", "bundle_changed", "crash"]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
CRASH_POINTS: dict[Milestone, str] = {"before_call": "before the send", "after_call": "after the call"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault at one step. `point` says where a crash falls."""

    kind: FaultKind
    step: str
    point: Milestone | None = None

    def __str__(self) -> str:
        where = f" ({CRASH_POINTS[self.point]})" if self.point else ""
        return f"{self.kind}@{self.step}{where}"


@dataclass(frozen=True, slots=True)
class NotTried:
    """A fault that no world tries, and why."""

    fault: Fault
    reason: str


def asked_for(texts: Sequence[str], workflow: Workflow) -> tuple[tuple[FaultKind, str], ...]:
    """What `--fault` names: kinds, and a step or every one (empty). Raises `InvalidInput` with what there is."""
    steps = [step.called for step in workflow.steps]
    known: dict[str, FaultKind] = {kind: kind for kind in KINDS}
    found: list[tuple[FaultKind, str]] = []
    for text in texts:
        name, at, step = text.partition("@")
        if name not in known:
            raise InvalidInput(f"there is no fault `{name}`", hint=f"the faults are {', '.join(KINDS)}")
        if at and step not in steps:
            raise InvalidInput(f"`--fault {text}`: no step is called `{step}`", hint=f"they are {', '.join(steps)}")
        found.append((known[name], step))
    return tuple(found)


def planned(
    workflow: Workflow, contracts: dict[str, Contract], asked: Sequence[tuple[FaultKind, str]], *, candidate: bool
) -> tuple[list[Fault], list[NotTried]]:
    """One world for each fault and step: all that apply (`asked` empty), or exactly what was asked for."""
    worlds: list[Fault] = []
    left_out: list[NotTried] = []
    for kind, only in asked or [(kind, "") for kind in KINDS]:
        for step in workflow.steps:
            if only not in {"", step.called}:
                continue
            reason = _why_not(kind, contracts[step.call], candidate=candidate)
            if reason:
                left_out.append(NotTried(Fault(kind, step.called), reason))
            elif kind == "crash":
                worlds += [Fault(kind, step.called, point) for point in CRASH_POINTS]
            else:
                worlds.append(Fault(kind, step.called))
    return list(dict.fromkeys(worlds)), list(dict.fromkeys(left_out))


def _why_not(kind: FaultKind, contract: Contract, *, candidate: bool) -> str:
    if not contract.consequential:
        return "it only reads"
    if contract.release is not None and contract.release.mode != "gate":
        return "it waits in the outbox: nothing is sent before the run has succeeded"
    if kind in {"lost_answer", "late_answer", "crash"}:
        return ""
    if contract.irreversible or all(rung.undo in {"escalate", "correct"} for rung in contract.compensation):
        return "it is never undone by itself"
    if kind == "bundle_changed" and not candidate:
        return "it needs the other bundle: --candidate-bundle DIR"
    return ""
