"""One world: the workflow on the sandbox with one fault, recovery, the independent look, and cleaning up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from amends.bootstrap import Engine
from amends.core.errors import AmendsError
from amends.core.events import DecisionRecorded, decode
from amends.core.rows import RunState
from amends.core.status import ActionKind, RunStatus
from amends.testing.conformance import Fault as LineFault
from amends.testing.injection.agent import Agent, Stop
from amends.testing.injection.boundary import Boundary
from amends.testing.injection.crash import Errand, killed
from amends.testing.injection.faults import Fault
from amends.testing.injection.looking import Seen, goes_on, look
from amends.testing.injection.sandbox import open_sandbox
from amends.testing.injection.workflow import Workflow

Verdict: TypeAlias = Literal["held", "waits", "left", "did_not_fire", "stopped", "blocked"]
WORST_FIRST: tuple[Verdict, ...] = ("left", "did_not_fire", "stopped", "blocked", "waits", "held")
CLEANER = "amends inject"
_ON_THE_LINE = {
    "lost_answer": LineFault("lost", how="silence"),
    "late_answer": LineFault("late", how="silence"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What all worlds share."""

    config: Path | None
    workflow: Workflow
    folder: Path  # for hand-overs to child processes
    candidate: Path | None
    wait_seconds: float


@dataclass(frozen=True)
class Tried:
    """What became of one world. `left_behind` is what is still on the sandbox after cleaning up."""

    world: str
    fault: Fault | None
    verdict: Verdict
    run_id: str = ""
    run_status: str = ""
    stopped_at: str = ""
    detail: str = ""  # why the agent stopped, if it did
    seen: tuple[Seen, ...] = ()
    left_behind: tuple[Seen, ...] = ()
    resources: dict[str, str] = field(default_factory=dict[str, str])  # step -> what it acted on

    @property
    def duplicates(self) -> int:
        """Effects that exist, or existed, beside the one that was meant."""
        made = sum(seen.action.kind is ActionKind.DUPLICATE for seen in self.seen)
        return made + sum(seen.duplicates for seen in self.seen if seen.action.kind is not ActionKind.DUPLICATE)


def try_world(setting: Setting, world: str, fault: Fault | None) -> Tried:
    """Play one world to its end. Raises `AmendsError` if the sandbox cannot be opened."""
    boundary = Boundary()
    if fault is not None and fault.kind == "crash":
        played = _crash(setting, world, fault)
    else:
        played = _played(setting, world, fault, boundary)
    return _judged(setting, world, fault, boundary, played)


@dataclass(frozen=True, slots=True)
class _Played:
    """What was seen of the agent's part, of the fault, and of recovery."""

    stop: Stop | None
    fired: bool
    trouble: str = ""  # why recovery could not run
    lost_call: str = ""  # the action whose answer was lost or late: it counts once its call was made

    @property
    def words(self) -> str:
        """Why the agent stopped, and recovery did not run, if so."""
        stopped = f"the agent stopped at `{self.stop.step}`: {self.stop.why}" if self.stop else ""
        return "; ".join(part for part in (stopped, self.trouble) if part)


def _crash(setting: Setting, world: str, fault: Fault) -> _Played:
    if fault.point is None:
        raise ValueError("a crash has a point")
    errand = Errand(
        config=str(setting.config or Path.cwd()),
        workflow=setting.workflow.model_dump(mode="json", by_alias=True, exclude_unset=True),
        world=world,
        key=world,
        step=fault.step,
        point=fault.point,
    )
    instead = killed(errand, setting.folder)
    with open_sandbox(setting.config) as engine:
        trouble = _recover(engine, setting, world)
    return _Played(Stop(fault.step, instead) if instead else None, not instead, trouble)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Lets the call of one step meet the fault."""

    fault: Fault | None
    boundary: Boundary

    def before(self, step: str) -> None:
        if self.fault is not None and step == self.fault.step and self.fault.kind in _ON_THE_LINE:
            self.boundary.line.arm(_ON_THE_LINE[self.fault.kind])

    def after(self, step: str) -> bool:
        """The agent gives up after this step for another bundle to be there when it is taken back."""
        self.boundary.line.disarm()  # what did not meet this call may not meet another
        return self.fault is not None and step == self.fault.step and self.fault.kind == "bundle_changed"


def _played(setting: Setting, world: str, fault: Fault | None, boundary: Boundary) -> _Played:
    """The agent's part and recovery, in this process."""
    kind = fault.kind if fault else ""
    with open_sandbox(setting.config, boundary=boundary) as engine:
        agent = Agent(engine, setting.workflow, world, _Meeting(fault, boundary))
        stop = agent.play(world, finish=kind in {"", *_ON_THE_LINE}, wait_seconds=setting.wait_seconds)
        first = engine.kit.authorizer.bundle().effective_digest
        if fault is not None and kind == "undo_rejected":
            boundary.rejects_undo_of = agent.ids.get(fault.step, "")
        if kind != "bundle_changed":
            trouble = _recover(engine, setting, world)
            lost = agent.ids.get(fault.step, "") if fault and kind in _ON_THE_LINE else ""
            return _Played(stop, fault is None or boundary.fired, trouble, lost)
    with open_sandbox(setting.config, boundary=boundary, bundle=setting.candidate) as engine:
        trouble = _recover(engine, setting, world)
        return _Played(stop, any(digest != first for digest in _deciding(engine, setting, world)), trouble)


def _deciding(engine: Engine, setting: Setting, world: str) -> set[str]:
    """The policies by which anything was decided in this world."""
    state = engine.find(setting.workflow.workflow, world)
    events = engine.kit.journal.events(state.run.run_id) if state is not None else ()
    bodies = [decode(e.event.payload, "") for e in events if e.event.kind == "decision_recorded"]
    return {body.decision.effective_digest for body in bodies if isinstance(body, DecisionRecorded)}


def _recover(engine: Engine, setting: Setting, world: str) -> str:
    """Recover the world's run; why that could not be, if so."""
    state = engine.find(setting.workflow.workflow, world)
    if state is None or state.run.terminal or state.run.status is RunStatus.NEEDS_HUMAN:
        return ""
    try:
        engine.recover(state.run.run_id, wait_seconds=setting.wait_seconds)
    except AmendsError as error:
        return f"recovery could not run: {error.message}{f' ({error.hint})' if error.hint else ''}"
    return ""


def _judged(setting: Setting, world: str, fault: Fault | None, boundary: Boundary, played: _Played) -> Tried:
    """The look at the sandbox through fresh adapters, then cleaning up, then what is left."""
    boundary.line.disarm()
    with open_sandbox(setting.config) as engine:
        state = engine.find(setting.workflow.workflow, world)
        if state is None:
            return Tried(world, fault, "did_not_fire" if fault else "stopped", detail=played.words)
        with suppress(Exception):  # what a late call ran into is its own affair: the look tells what is there
            boundary.line.land()
        if played.lost_call and played.lost_call not in boundary.made:
            played = replace(played, fired=False)  # it never came to an answer that could be lost
        seen = look(engine, state, boundary)
        left = look(engine, _cleaned(engine, state, setting.wait_seconds), boundary) if _to_clean(seen) else seen
        return Tried(
            world=world,
            fault=fault,
            verdict=_verdict(state, seen, fault, played),
            run_id=state.run.run_id,
            run_status=state.run.status.value,
            stopped_at=played.stop.step if played.stop else "",
            detail="; ".join(part for part in (played.words, _unfinished(state)) if part),
            seen=tuple(seen),
            left_behind=tuple(one for one in left if one.there),
            resources=_resources(setting.workflow, state),
        )


def _verdict(state: RunState, seen: Sequence[Seen], fault: Fault | None, played: _Played) -> Verdict:
    standings = {one.standing for one in seen}
    if "left" in standings:
        return "left"
    if not played.fired:
        return "did_not_fire"
    if played.trouble or (fault is None and played.stop is not None and not played.stop.asks):
        return "stopped"
    if "waits" in standings or not state.run.terminal or (fault is None and played.stop is not None):
        return "waits"
    return "held"


def _unfinished(state: RunState) -> str:
    """What recovery had left to do when its time was over."""
    waits = state.run.status in {RunStatus.OPEN, RunStatus.RECOVERING, RunStatus.COMMITTING}
    return f"recovery was not done: {goes_on(state)}" if waits else ""


def _to_clean(seen: Sequence[Seen]) -> bool:
    return any(one.standing == "waits" for one in seen)


def _cleaned(engine: Engine, state: RunState, wait_seconds: float) -> RunState:
    """Recovery without the fault; what waits for a person is told to be compensated, where that is a choice."""
    run_id = state.run.run_id
    with suppress(AmendsError):
        engine.recover(run_id, wait_seconds=wait_seconds)
        chosen = False
        for item in engine.state(run_id).escalations.values():
            if item.status != "resolved" and "compensate" in item.choices:
                engine.resolve(
                    item.escalation_id, "compensate", by=CLEANER, channel="inject", comment="after an injected fault"
                )
                chosen = True
        if chosen:
            engine.recover(run_id, wait_seconds=wait_seconds)
    return engine.state(run_id)


def _resources(workflow: Workflow, state: RunState) -> dict[str, str]:
    """What each step acted on: the slots of the run in their order are the workflow's steps in theirs."""
    slots: dict[str, str] = {}
    for action in sorted(state.actions.values(), key=lambda one: one.seq):
        if action.kind is ActionKind.DO:
            slots.setdefault(action.slot, action.resource)
    return dict(zip((step.called for step in workflow.steps), slots.values(), strict=False))
