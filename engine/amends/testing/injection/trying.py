"""All worlds of a workflow, one after the other: first without a fault, then one for each fault and step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from amends.core.contract import Contract
from amends.testing.injection.faults import Fault, FaultKind, NotTried, planned
from amends.testing.injection.looking import Seen
from amends.testing.injection.world import WORST_FIRST, Setting, Tried, Verdict, try_world
from amends.testing.scenarios.values import placeholders

Tell: TypeAlias = Callable[[int, int, Tried], None]
_FAILED: frozenset[Verdict] = frozenset({"left", "did_not_fire", "stopped", "blocked"})


@dataclass(frozen=True)
class Report:
    """What became of every world, and which faults no world tried."""

    workflow: str
    worlds: tuple[Tried, ...]
    not_tried: tuple[NotTried, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all worlds."""
        found = {tried.verdict for tried in self.worlds}
        return next(verdict for verdict in WORST_FIRST if verdict in found)

    @property
    def failed(self) -> bool:
        """Whether something was overstated, or a world did not try what it was for."""
        return self.verdict in _FAILED

    @property
    def left_behind(self) -> tuple[tuple[Tried, Seen], ...]:
        """What is still on the sandbox."""
        return tuple((tried, seen) for tried in self.worlds for seen in tried.left_behind)


def try_all(
    setting: Setting,
    contracts: dict[str, Contract],
    asked: Sequence[tuple[FaultKind, str]],
    word: str,
    tell: Tell,
) -> Report:
    """Try the workflow without a fault, and, if it gets through, in every world. `word` begins each world's name."""
    faults, left_out = planned(setting.workflow, contracts, asked, candidate=setting.candidate is not None)
    total = len(faults) + 1
    worlds = [try_world(setting, f"{word}00", None)]
    tell(1, total, worlds[0])
    if worlds[0].stopped_at:
        reason = f"without any fault the agent stops at `{worlds[0].stopped_at}`"
        return Report(
            setting.workflow.workflow, tuple(worlds), (*left_out, *(NotTried(fault, reason) for fault in faults))
        )
    for number, fault in enumerate(faults, 1):
        world = f"{word}{number:02d}"
        tried = _blocked(setting, contracts, world, fault, worlds) or _explained(
            try_world(setting, world, fault), worlds
        )
        worlds.append(tried)
        tell(number + 1, total, tried)
    return Report(setting.workflow.workflow, tuple(worlds), tuple(left_out))


def _blocked(
    setting: Setting, contracts: dict[str, Contract], world: str, fault: Fault, before: Sequence[Tried]
) -> Tried | None:
    """A world that is not played: an earlier one left set what this one would set again, so it would change nothing."""
    fixed = {
        step.called
        for step in setting.workflow.steps
        if contracts[step.call].effect.changes != "creates"
        and all(path.startswith(("values.", "recorded.")) for path in placeholders(step.args))
    }
    for tried in before:
        for left in tried.left_behind:
            if left.action.resource in {tried.resources.get(step) for step in fixed}:
                return Tried(world, fault, "blocked", detail=_in_the_way(tried, left))
    return None


def _explained(tried: Tried, before: Sequence[Tried]) -> Tried:
    """A world that did not come to its fault, where an earlier one left something of the same name, says so."""
    if tried.fault is None or tried.verdict not in {"did_not_fire", "stopped"}:
        return tried
    wanted = {tried.resources.get(step) for step in (tried.stopped_at, tried.fault.step)} - {None}
    for earlier in before:
        for left in earlier.left_behind:
            if left.action.resource in wanted:
                detail = "; ".join(part for part in (_in_the_way(earlier, left), tried.detail) if part)
                return replace(tried, verdict="blocked", detail=detail)
    return tried


def _in_the_way(earlier: Tried, left: Seen) -> str:
    return (
        f"`{left.action.resource}` is still there from the world `{earlier.fault or 'no fault'}`: "
        "put ${world} into its name, or take it away on the sandbox and try again"
    )
