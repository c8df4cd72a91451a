"""The model of `scenario.toml`: systems, script, faults and the end state that must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from amends.core.public import PublicState
from amends.core.status import ActionKind, ActionStatus, Outcome, RunStatus
from amends.testing.scenarios.script_model import (
    ENDS,
    Call,
    Command,
    Entry,
    FaultSpec,
    Finish,
    Gate,
    Kill,
    Open,
    Part,
    Recover,
    SystemAct,
    Values,
)

SystemKind = Literal["partner", "unleash", "jira", "slack", "portal", "git", "sqlite"]


class SystemSpec(Part):
    """A system that is started for the scenario. `${<name>.url}` and the like name it elsewhere."""

    kind: SystemKind
    settings: Values = Field(default_factory=dict[str, Any])  # of a loopback system
    seed: tuple[SystemAct, ...] = ()  # `system` may be left empty: this one
    files: str = ""  # git: a folder of the scenario that becomes the first commit of `branch`
    branch: str = "main"
    worktree: str = ""  # git: a folder of the scenario that the agent has written into its clone, not committed yet
    sql: str = ""  # sqlite: a file of the scenario that makes the first schema and rows


class ExpectedDecision(Part):
    """The policy decision an action must have."""

    outcome: Literal["allow", "deny", "needs_approval"] = "allow"
    policy: str = ""  # the bundle's label; empty: that of `expect.policy`
    policy_ids: tuple[str, ...] = ()  # must be among the determining ones
    none: bool = False  # no decision at all: it never came to that


class ExpectedAction(Part):
    """One action of the run, exactly as it must be recorded. Actions that are not expected are wrong."""

    capability: str
    kind: ActionKind = ActionKind.DO
    step: str = ""  # only the action of this step of the script
    of: str = ""  # undo, duplicate: the step it belongs to
    rung: str = ""
    status: ActionStatus
    outcome: Outcome
    attempts: int = Field(ge=0)
    evidence: tuple[str, ...] = ()  # `source:code` or `source`; each must be there
    decision: ExpectedDecision = ExpectedDecision()
    says: str = ""  # must stand in the message


class ExpectedEffect(Part):
    """What is left at a system. Effects that are not expected are wrong."""

    system: str
    kind: str
    resource: str = ""
    count: int = Field(default=1, ge=1)


class ExpectedCount(Part):
    """How many effects of a kind a system ever had, whatever became of them, by its own account."""

    system: str
    kind: str
    present: int = Field(default=0, ge=0)
    removed: int = Field(default=0, ge=0)


class ExpectedRequests(Part):
    """Requests in a system's own log. `order`: patterns `METHOD /path` that must appear in this order, others may stand
    between; `count`: how often `match` appears in all.
    """

    system: str
    order: tuple[str, ...] = ()
    match: str = ""
    count: int | None = Field(default=None, ge=0)


class ExpectedCorrection(Part):
    """A correction that people got."""

    place: str
    contains: tuple[str, ...] = ()


class ExpectedEscalation(Part):
    """A work item for a person."""

    cause: str
    capability: str = ""
    status: Literal["open", "acknowledged", "resolved"] = "open"
    contains: tuple[str, ...] = ()  # in what is known, in doubt or proposed
    evidence: tuple[str, ...] = ()  # fields that must be filled


class ExpectedApproval(Part):
    """A question that people were asked."""

    capability: str
    phase: str
    status: str
    tier: int = 1


class ExpectedRun(Part):
    """Another run of the scenario."""

    run: str
    status: RunStatus


class Expectation(Part):
    """The end state."""

    run: str = ""  # the run the document is about; empty: the one opened last
    run_status: RunStatus
    public_state: PublicState
    policy: str  # label of the bundle that decides, unless an action says otherwise
    actions: tuple[ExpectedAction, ...]
    residual: tuple[ExpectedEffect, ...] = ()
    unchanged: tuple[str, ...] = ()  # `system:collection` of a loopback system: equal to what it was before the script
    counts: tuple[ExpectedCount, ...] = ()
    requests: tuple[ExpectedRequests, ...] = ()
    corrections: tuple[ExpectedCorrection, ...] = ()
    escalations: tuple[ExpectedEscalation, ...] = ()
    approvals: tuple[ExpectedApproval, ...] = ()
    runs: tuple[ExpectedRun, ...] = ()
    reports_in: tuple[str, ...] = ()  # texts that the run's report must hold


class Scenario(Part):
    """One runnable scenario: a file with one variant applied."""

    id: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str = Field(min_length=1)
    summary: str = ""
    variant: str = ""
    config: str = "amends.toml"  # the project's configuration, with placeholders
    policy: str = ""  # the folder of the site's bundle at the start: `${policy}`
    values: Values = Field(default_factory=dict[str, Any])  # `${values.…}`
    secrets: dict[str, str] = Field(default_factory=dict[str, str])  # `file:secrets/<name>`
    systems: dict[str, SystemSpec] = Field(default_factory=dict[str, SystemSpec])
    faults: tuple[FaultSpec, ...] = ()  # armed before the script begins
    script: tuple[Entry, ...] = Field(min_length=1)
    expect: Expectation
    folder: Path
    below: Path | None = None  # the folder of the scenario that this one extends

    @property
    def name(self) -> str:
        """The name in reports: `order-exception/base`."""
        return f"{self.id}/{self.variant}" if self.variant else self.id

    @model_validator(mode="after")
    def _holds_together(self) -> Scenario:
        self._sessions()
        expect = self.expect
        used = [f.system for f in self.faults] + [e.system for e in expect.counts] + [e.system for e in expect.requests]
        used += [e.system for e in expect.residual] + [e.split(":")[0] for e in expect.unchanged]
        for name in used:
            if name not in self.systems:
                raise ValueError(f"there is no system `{name}`; the systems are {', '.join(self.systems) or 'none'}")
        return self

    def _sessions(self) -> None:
        """Sessions open and end in turn, steps have names of their own, and only a session calls."""
        inside, apart, names = False, False, set[str]()
        for place, entry in enumerate(self.script):
            if isinstance(entry, Open):
                if inside:
                    raise ValueError(
                        f"script entry {place}: the session before has not ended; add `finish` or another end"
                    )
                inside, apart = not entry.open.raises, entry.open.process == "apart"
            elif _is_killed(entry) and not apart:
                raise ValueError(f'script entry {place}: only a process of its own is killed; say `process = "apart"`')
            if isinstance(entry, ENDS):
                if not inside:
                    raise ValueError(f"script entry {place}: there is no session to end; `open` one first")
                inside = False
            elif isinstance(entry, Call | Gate | Command) and not inside:
                raise ValueError(f"script entry {place}: only an agent's session calls; `open` one first")
            names.add(getattr(entry, "step", ""))
        if inside:
            raise ValueError("the last session does not end; add `finish`, `fail`, `raise`, `detach` or `kill`")
        for wanted in {e.step for e in self.expect.actions} | {e.of for e in self.expect.actions}:
            if wanted and wanted not in names:
                raise ValueError(f"no step is called `{wanted}`; steps are named with `as`")


def _is_killed(entry: Entry) -> bool:
    if isinstance(entry, Recover):
        return entry.recover.kill_at is not None and entry.recover.process == "here"
    if isinstance(entry, Finish):
        return bool(entry.finish.kill_when)
    return isinstance(entry, Kill) or bool(getattr(entry, "kill_at", None) or getattr(entry, "kill_while", False))
