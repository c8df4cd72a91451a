"""The stage of a kill loop: two loopback systems, a project, the killer, and the zygote that all children come from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from amends.testing.crash.killer import Child, Killer, KillPlan, end
from amends.testing.crash.project import ENVIRONMENT, write_project
from amends.testing.crash.worker import Errand
from amends.testing.loopback import LoopbackSystem


class Stage:
    """Everything of a kill loop in one folder; a context manager that ends what it started."""

    def __init__(self, folder: Path, *, lease_seconds: float = 30.0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ends = ExitStack()
        self.partner = self._ends.enter_context(LoopbackSystem.spawn("partner", state=folder / "partner.sqlite"))
        self.slack = self._ends.enter_context(LoopbackSystem.spawn("slack", state=folder / "slack.sqlite"))
        self.slack.control("seed_user", id="U0MAYA", name="maya")
        self.project = write_project(
            folder / "project", partner=self.partner.url, slack=self.slack.url, lease_seconds=lease_seconds
        )
        self._folder = folder
        self._forking = threading.Lock()
        self.killer = self._ends.enter_context(Killer())
        self.log = folder / "children.log"
        self._zygote = self._zygote_in(self.log)

    def _zygote_in(self, log: Path) -> subprocess.Popen[str]:
        with log.open("w", encoding="utf-8") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "amends.testing.crash.zygote"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **ENVIRONMENT},
            )

    def another_project(self, name: str, *, lease_seconds: float) -> Path:
        """A project of its own, with its own journal, on the same systems."""
        where = self._folder / name
        return write_project(where, partner=self.partner.url, slack=self.slack.url, lease_seconds=lease_seconds)

    def agent(
        self,
        errands: Sequence[Errand],
        plan: KillPlan | None = None,
        project: Path | None = None,
        *,
        wide: bool = False,
        may_be_refused: bool = False,
    ) -> Child:
        """A run loop over these errands, killed or frozen where the plan says. Who sleeps may be refused afterwards."""
        sleeper = may_be_refused or (plan is not None and plan.freeze)
        return self._start("agent", plan, project, errands=list(errands), may_be_refused=sleeper, wide=wide)

    def rescuer(self, plan: KillPlan | None = None, project: Path | None = None) -> Child:
        """A process that recovers what it finds until it is told to stop."""
        return self._start("rescuer", plan, project)

    def approver(self, plan: KillPlan | None = None, project: Path | None = None) -> Child:
        """A person who approves what is asked until it is told to stop."""
        return self._start("approver", plan, project)

    def rescue_once(self, wait_seconds: float) -> Child:
        """A process that sweeps once over everything."""
        return self._start("rescue_once", None, None, wait_seconds=wait_seconds)

    def naive(self, errands: Sequence[Errand], plan: KillPlan | None = None) -> Child:
        """The control: the same orders without a ledger."""
        return self._start("naive", plan, None, base_url=self.partner.url, errands=list(errands))

    def _start(self, role: str, plan: KillPlan | None, project: Path | None, **more: Any) -> Child:
        if self._zygote.stdin is None or self._zygote.stdout is None:
            raise RuntimeError("the zygote has no pipes")
        with self._forking:
            child = self.killer.expect(f"{role}-{len(self.killer.children) + 1}", plan)
            errand: dict[str, Any] = {"role": role, "name": child.name, "port": self.killer.port, **more}
            errand["project"] = str(project or self.project)
            errand["announced"] = plan.announced if plan is not None else ""
            self._zygote.stdin.write(json.dumps(errand) + "\n")
            self._zygote.stdin.flush()
            self._zygote.stdout.readline()
        return self.killer.met(child)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        list(end(self.killer.children.values(), 30))  # who hangs is the campaign's or the case's to tell
        self._zygote.communicate(timeout=30)
        self._ends.close()
