"""The agent of a world: it makes the workflow's calls, and stops where an answer is not clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from amends.bootstrap import Engine
from amends.core.errors import AmendsError
from amends.core.status import ActionStatus
from amends.runtime.results import CallResult
from amends.runtime.runs import Run
from amends.testing.injection.workflow import Workflow
from amends.testing.scenarios.deciding import ScriptError, decide
from amends.testing.scenarios.script_model import Approve, Step
from amends.testing.scenarios.values import fill

_CLEAR = frozenset({ActionStatus.SUCCEEDED, ActionStatus.QUEUED})


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the agent stopped before its last call, and why."""

    step: str
    why: str
    asks: bool = False  # a person's yes is awaited


class Watcher(Protocol):
    """Is told where the agent is."""

    def before(self, step: str) -> None:
        """The call of this step comes next."""
        ...

    def after(self, step: str) -> bool:
        """It came back; True ends the agent here."""
        ...


class Agent:
    """Plays one workflow in one run."""

    def __init__(self, engine: Engine, workflow: Workflow, world: str, watcher: Watcher) -> None:
        self._engine = engine
        self._workflow = workflow
        self._watcher = watcher
        self.ids: dict[str, str] = {}  # step -> action id
        self._known: dict[str, Any] = {
            "world": world,
            "values": fill(workflow.values, {"world": world}),
            "recorded": workflow.recorded,
        }
        self.ended_early = False

    def play(self, key: str, *, finish: bool, wait_seconds: float) -> Stop | None:
        """Make the calls of a new run with this key; `finish`: end it well where the workflow says so. Otherwise the
        run is left as it is, for recovery.
        """
        about = self._workflow
        run = self._engine.run(
            workflow=about.workflow, run_key=key, agent=about.agent, initiator=about.initiator, owner=about.owner
        )
        stop = self._calls(run)
        if stop is None and not self.ended_early and finish and about.finishes:
            run.finish(wait_seconds=wait_seconds)
        else:
            run.detach()
        return stop

    def _calls(self, run: Run) -> Stop | None:
        for place, entry in enumerate(self._workflow.script):
            if not isinstance(entry, Step):
                continue
            self._watcher.before(entry.called)
            stop = self._call(run, entry, place)
            self.ended_early = self._watcher.after(entry.called)
            if stop is not None or self.ended_early:
                return stop
        return None

    def _call(self, run: Run, entry: Step, place: int) -> Stop | None:
        try:
            result = self._sent(run, entry)
            for answer in self._workflow.script[place + 1 :]:
                if result.status is not ActionStatus.AWAITING_APPROVAL or not isinstance(answer, Approve):
                    break
                decide(self._engine, answer)
                result = self._sent(run, entry)
        except (AmendsError, ScriptError) as error:
            hint = getattr(error, "hint", "")
            return Stop(entry.called, f"{getattr(error, 'message', error)}{f' ({hint})' if hint else ''}")
        self.ids[entry.called] = result.action_id
        self._known[entry.called] = {**result.as_dict(), "effect": dict(result.effect)}
        if result.status in _CLEAR and not result.conflict:
            return None
        why = (result.error.message if result.error else "") or result.reason or result.message
        return Stop(entry.called, f"`{result.status}`: {why}", asks=result.status is ActionStatus.AWAITING_APPROVAL)

    def _sent(self, run: Run, entry: Step) -> CallResult:
        on = None if entry.depends_on is None else [self.ids[name] for name in entry.depends_on]
        args = fill(entry.args, self._known)
        label = str(fill(entry.label, self._known))
        return run.call(entry.call, args, label=label, depends_on=on, required=entry.required)
