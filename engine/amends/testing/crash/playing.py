"""One case of the crash matrix, over real processes: stop one, let others recover, wake it, count at the systems."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from amends import bootstrap
from amends.core.status import TERMINAL_RUNS, RunStatus
from amends.testing.crash.audit import contradictions, states, unfolded
from amends.testing.crash.cases import UNREACHED, Case, Counts
from amends.testing.crash.killer import Child, KillPlan, Tally, end
from amends.testing.crash.stage import Stage

_PATIENCE_SECONDS = 60.0
_LATE_SECONDS = 8.0
_LEASE_SECONDS = {"kill": 30.0, "freeze": 2.0}  # of the dead there is proof; the frozen are waited for
_RENEWED_SECONDS = 2.0
_SILENT_SECONDS = 1.0

World: TypeAlias = tuple[list[tuple[Any, ...]], list[str]]
Late: TypeAlias = Literal["taken back", "waits for a person", "second note", "stays"]


@dataclass
class Played:
    """What came of a case. `differences` is empty if all is as it must be."""

    case: Case
    seen: Counts = field(default_factory=Counts)
    hit: bool = False
    late: Late | None = None  # what came of what an honest case sent when it woke up; None: nothing took effect
    differences: list[str] = field(default_factory=list[str])


def play(stage: Stage, case: Case) -> Played:
    """Stop a process where the case says, recover, and compare the systems with what is expected."""
    lease_seconds = _RENEWED_SECONDS if case.family == "renewal" else _LEASE_SECONDS[case.how]
    project = stage.another_project(case.name, lease_seconds=lease_seconds)
    desk = bootstrap.Engine.desk(project)
    playing = _Playing(stage, case, project, desk, Played(case))
    try:
        playing.run()
    finally:
        playing.end()
        desk.close()
    return playing.played


@dataclass
class _Playing:
    stage: Stage
    case: Case
    project: Path
    desk: bootstrap.Engine
    played: Played
    children: list[Child] = field(default_factory=list[Child])

    def run(self) -> None:
        victim = self._victim()
        if victim is None:
            self._differs(f"nobody reached {self.case.point} for the {self.case.nth}. time")
            return
        self.played.hit = True
        self._others()
        if self.case.locked and self.case.how == "freeze":
            self._nobody_writes()
            victim.stop.set()
            victim.thaw.set()
        self._settled("after the take-over")
        if self.case.how == "freeze":
            self._wake(victim)
        self._judge(victim)

    def end(self) -> None:
        for child in end(self.children, _PATIENCE_SECONDS):
            self._differs(f"{child.name} hangs")

    # --- who is stopped, and who recovers -----------------------------------------------------------------

    def _victim(self) -> Child | None:
        plan = KillPlan("any", self.case.point, self.case.nth, freeze=self.case.how == "freeze", clear=self._clear)
        if self.case.family == "approval":
            asker = self._agent("ask", None)
            asker.ended.wait(_PATIENCE_SECONDS)
            return self._first_hit([self._approver(plan)])
        if self.case.mode != "recovery":
            ending = "leave" if self.case.mode == "forward" else "release"
            return self._first_hit([self._agent(ending, plan)])
        dead = self._agent("leave", KillPlan("any", "after_call", 4))  # the last outcome is unknown to everybody
        if not dead.hit.wait(_PATIENCE_SECONDS):
            return None
        plan = replace(plan, among=Tally())
        aimed = [self._rescuer(plan) for _ in range(self.case.recoverers)]
        if self.case.locked:  # they checkpoint when they end
            self._settled("before the end")
            for child in aimed:
                child.stop.set()
        return self._first_hit(aimed)

    def _clear(self) -> bool:
        return self.case.locked or self._unlocked()

    def _unlocked(self) -> bool:
        """True if nobody holds the journal's lock: a process frozen with it stops its host's writing, and nothing is
        sent by anybody until it is woken or killed.
        """
        with (self.project / ".amends" / "journal.lock").open("a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def _first_hit(self, aimed: Sequence[Child]) -> Child | None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            hit = [child for child in aimed if child.hit.is_set()]
            if hit:
                return hit[0]
            if all(child.ended.is_set() for child in aimed):
                break
            time.sleep(0.02)
        return None

    def _others(self) -> None:
        """As many as the case says, and in recovery one in the place of the one that was stopped."""
        for _ in range(1 if self.case.mode == "recovery" else self.case.recoverers):
            self._rescuer(None)
        if self.case.family == "approval":
            self._approver(None)

    def _agent(self, ending: Any, plan: KillPlan | None) -> Child:
        self.children.append(self.stage.agent([(self.case.name, 1, ending)], plan, self.project))
        return self.children[-1]

    def _approver(self, plan: KillPlan | None) -> Child:
        self.children.append(self.stage.approver(plan, self.project))
        return self.children[-1]

    def _rescuer(self, plan: KillPlan | None) -> Child:
        self.children.append(self.stage.rescuer(plan, self.project))
        return self.children[-1]

    # --- afterwards ---------------------------------------------------------------------------------------

    def _settled(self, when: str) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            runs = self.desk.runs(limit=100)
            live = [run for run in runs if run.status not in TERMINAL_RUNS]
            if runs and not live:
                return
            if time.monotonic() > until:
                self._differs(f"{when} not settled: {[run.status.value for run in live]}")
                return
            time.sleep(0.05)

    def _nobody_writes(self) -> None:
        """While somebody stands with the journal's lock, nothing is recorded, so nothing is sent."""
        before = self.desk.kit.journal.info().max_seq, self._world()
        time.sleep(_SILENT_SECONDS)
        if (self.desk.kit.journal.info().max_seq, self._world()) != before:
            self._differs("something was written or sent although the journal's lock was held")

    def _wake(self, victim: Child) -> None:
        """Let a frozen process go on to its end: nothing changes by it, or it was frozen behind its last check."""
        before = self._world()
        victim.stop.set()
        victim.thaw.set()
        if not victim.ended.wait(_PATIENCE_SECONDS):
            self._differs("the woken process hangs")
        after = self._world()
        if before != after and not self.case.honest:
            self._differs(f"the woken process changed {before} into {after}")
        if before != after and self.case.honest:
            self.played.late = self._late(noted=_counts(after).notes > _counts(before).notes)

    def _late(self, *, noted: bool) -> Late:
        """What the ledger makes of an effect that came after the end: no system may show more than this one."""
        if noted:
            return "second note"
        until = time.monotonic() + _LATE_SECONDS
        while time.monotonic() < until:
            if _counts(self._world()).left == self.case.expected.left:
                return "taken back"
            if any(run.status is RunStatus.NEEDS_HUMAN for run in self.desk.runs(limit=100)):
                return "waits for a person"
            time.sleep(0.1)
        return "stays"

    def _judge(self, victim: Child) -> None:
        stopped = victim.death or victim.frozen
        if stopped is None or stopped.milestone != self.case.point:
            self._differs(f"stopped at {stopped}")
        self.played.seen = _counts(self._world())
        if self.played.late is None:
            if self.played.seen != self.case.expected:
                self._differs(f"expected {self.case.expected}, seen {self.played.seen}")
            for found in contradictions(self.desk, self.stage.partner, self.stage.slack):
                if not (self.case.honest and "/follow-up/" in found and found.endswith("is needs_human")):
                    self._differs(found)  # else a person is asked whether what it sent has landed
        for found in unfolded(self.desk):
            self._differs(found)
        for problem in self.desk.kit.journal.verify():
            self._differs(str(problem))
        if self.case.family in {"mirror", "seal"}:
            for problem in self.desk.verify():
                self._differs(problem)
        heard = victim.heard
        if self.case.mode == "release" and "after_plan" in heard:
            heard = heard[heard.index("after_plan") :]
        for point in set(heard) & set(UNREACHED[self.case.mode]):
            self._differs(f"announced {point}, which it is said not to have")

    def _world(self) -> World:
        """The partner's effects of the order with all that happened to them, and the notes about its runs."""
        events = self.stage.partner.effect_events()
        mine = [e for e in self.stage.partner.effects() if e["resource"] == f"order:{self.case.name}"]
        effects = [
            (e["kind"], e["reference"], e["state"], *(x["event"] for x in events if x["effect_seq"] == e["seq"]))
            for e in mine
        ]
        ids = {action_id for state in states(self.desk) for action_id in state.actions}
        return effects, [e["marker"] for e in self.stage.slack.effects() if e["marker"] in ids]

    def _differs(self, how: str) -> None:
        self.played.differences.append(f"{self.case.name}: {how}")


def _counts(world: World) -> Counts:
    effects, notes = world
    return Counts(len(effects), sum(effect[2] == "present" for effect in effects), len(notes))
