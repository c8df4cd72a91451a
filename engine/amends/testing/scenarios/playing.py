"""Playing a script in this process: the agent's calls through the public API, people's decisions, trouble, recovery."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from amends.backends.clock import SystemClock
from amends.bootstrap import Engine
from amends.core.canonical import Json
from amends.core.errors import AmendsError
from amends.core.rows import RunState
from amends.ports.services import Milestone
from amends.runtime.results import CallResult
from amends.runtime.runs import Run
from amends.testing.scenarios import script_model as s
from amends.testing.scenarios.deciding import ScriptError, decide
from amends.testing.scenarios.values import fill
from amends.testing.scenarios.world import Stage, arm, happen

Tell = Callable[[dict[str, Any]], None]
_POLL_SECONDS = 0.05


class AgentStopped(RuntimeError):
    """What the scripted agent raises."""


class KillSwitch:
    """Progress that asks to be killed at a milestone, and waits for it."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.at: Milestone | None = None

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Ask for SIGKILL where it was told to, and go no further."""
        if milestone == self.at:
            self.die()

    def die(self) -> None:
        """Ask for SIGKILL and wait: it comes from outside."""
        self._tell({"kill": True})
        threading.Event().wait()


class Player:
    """Plays entries one after the other. `tell` hears results, run ids, and the wish to be killed."""

    def __init__(self, stage: Stage, tell: Tell) -> None:
        self._stage = stage
        self._tell = tell
        self._switch = KillSwitch(tell)
        self._clock = SystemClock()
        self._engine: Engine | None = None
        self._run: Run | None = None

    def play(self, entries: Sequence[s.Entry]) -> None:
        """Raises `ScriptError` where an entry did not go as it says, `AmendsError` for what nobody expected."""
        try:
            for place, entry in enumerate(entries):
                try:
                    self._play(entry)
                except ScriptError as error:
                    raise ScriptError(f"entry {place} ({s.verb_of(entry)}): {error}") from error
        finally:
            self._close()

    def _play(self, entry: s.Entry) -> None:  # noqa: C901, PLR0912 - one arm per verb
        match entry:
            case s.Open():
                self._open(entry.open)
            case s.Call():
                self._call(entry)
            case s.Gate():
                self._gate(entry)
            case s.Command():
                self._command(entry)
            case s.Drill():
                self._drill(entry)
            case s.Checkpoint():
                self._session().checkpoint(entry.checkpoint)
            case s.Withdraw():
                self._session().withdraw(self._result(entry.withdraw))
            case s.Finish() | s.Fail() | s.Raise() | s.Detach() | s.Kill():
                self._end(entry)
            case s.Recover():
                self._recover(entry.recover)
            case s.Approve() | s.Reject() | s.Resolve():
                self._decide(entry)
            case s.Happen():
                happen(self._stage, entry.happen)
            case s.Arm():
                arm(self._stage, entry.arm)
            case s.Disarm():
                self._stage.system(entry.disarm).clear_faults()
            case s.UsePolicy():
                self._stage.known["policy"] = entry.use_policy
                self._stage.render()
            case s.ReloadPolicy():
                self._reload_policy(entry.reload_policy)
            case s.Wait():
                self._wait(entry)

    # --- sessions -----------------------------------------------------------------------------------------

    def _open(self, who: s.RunIdentity) -> None:
        self._engine = Engine.open(Path(self._stage.project), progress=self._switch, mirror=False)
        if self._engine.plugins.problems:
            raise ScriptError("; ".join(f"{problem}; {problem.remedy}" for problem in self._engine.plugins.problems))
        run = self._expecting(
            who.raises,
            lambda engine: engine.run(
                workflow=who.workflow,
                run_key=who.key,
                agent=who.agent,
                initiator=who.initiator,
                owner=who.owner,
                intent_ref=who.intent_ref,
                check=who.check,
                resume=who.resume,
                resume_grace_seconds=who.resume_grace_seconds,
            ),
        )
        if run is None:
            self._close()
            return
        self._run = run
        self._tell({"run": who.called, "run_id": run.run_id})

    def _session(self) -> Run:
        if self._run is None:
            raise ScriptError("no session is open")
        return self._run

    def _end(self, entry: s.Finish | s.Fail | s.Raise | s.Detach | s.Kill) -> None:
        run = self._session()
        match entry:
            case s.Finish():
                if entry.finish.kill_when:
                    self._die_when(Path(self._stage.project) / entry.finish.kill_when)
                outcome = run.finish(wait_seconds=entry.finish.wait_seconds)
                if entry.finish.kill_when:
                    raise ScriptError(f"the run is `{outcome.status}`, and `{entry.finish.kill_when}` was never there")
                _expect("the run", "status", outcome.status, entry.finish.status)
            case s.Fail():
                run.fail(entry.fail)
            case s.Raise():
                try:
                    with run:
                        raise AgentStopped(entry.raise_)
                except AgentStopped:
                    pass
            case s.Detach():
                run.detach()
            case _:
                self._switch.die()
        self._close()

    def _die_when(self, file: Path) -> None:
        """Ask for SIGKILL from beside, as soon as the file is there."""

        def watch() -> None:
            while not file.exists():
                self._clock.sleep(_POLL_SECONDS)
            self._switch.die()

        threading.Thread(target=watch, name="scenario-watch", daemon=True).start()

    def _close(self) -> None:
        self._run = None
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    # --- calls --------------------------------------------------------------------------------------------

    def _call(self, entry: s.Call) -> None:
        self._switch.at = entry.kill_at
        run, args = self._session(), fill(entry.args, self._stage.known)
        on = self._ids(entry.depends_on)
        result = self._expecting(
            entry.raises,
            lambda _: run.call(entry.call, args, label=entry.label, depends_on=on, required=entry.required),
        )
        if entry.kill_at:
            raise ScriptError(f"`{entry.call}` came back and never reached `{entry.kill_at}`")
        if result is not None:
            self._remember(entry.called, result)
            _expect(entry.call, "status", result.status, entry.status, result)
            _expect(entry.call, "outcome", result.outcome, entry.outcome, result)
            _expect(entry.call, "repeated", result.repeated, entry.repeated, result)
            _expect(entry.call, "conflict", result.conflict, entry.conflict, result)

    def _gate(self, entry: s.Gate) -> None:
        run, args = self._session(), fill(entry.args, self._stage.known)
        on = self._ids(entry.depends_on)
        result = self._expecting(
            entry.raises,
            lambda _: run.gate(entry.gate, args, label=entry.label, depends_on=on, wait_seconds=entry.wait_seconds),
        )
        if result is not None:
            self._remember(entry.step or entry.gate, result)
            _expect(entry.gate, "status", result.status, entry.status, result)
            _expect(entry.gate, "outcome", result.outcome, entry.outcome, result)

    def _command(self, entry: s.Command) -> None:
        argv = [str(part) for part in fill(list(entry.command), self._stage.known)]
        folder = Path(self._stage.project) / str(fill(entry.folder, self._stage.known))
        if entry.kill_while:
            subprocess.Popen(
                argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            self._switch.die()
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        if entry.step:
            told: dict[str, Json] = {
                "exit": done.returncode,
                "stdout": done.stdout[-2000:],
                "stderr": done.stderr[-2000:],
            }
            self._know(entry.step, told)
        if entry.exit is not None and done.returncode != entry.exit:
            raise ScriptError(f"`{' '.join(argv)}` exited with {done.returncode}: {(done.stdout + done.stderr)[-500:]}")

    def _drill(self, entry: s.Drill) -> None:
        if self._engine is not None:
            self._engine.drill(entry.drill, fill(entry.args, self._stage.known))
            return
        with _opened(Engine.open(Path(self._stage.project), mirror=False)) as engine:
            engine.drill(entry.drill, fill(entry.args, self._stage.known))

    def _remember(self, step: str, result: CallResult) -> None:
        self._know(step, {**result.as_dict(), "effect": dict(result.effect)})

    def _know(self, step: str, value: dict[str, Json]) -> None:
        self._stage.known[step] = value
        self._tell({"step": step, "result": value})

    def _ids(self, steps: tuple[str, ...] | None) -> list[str] | None:
        return None if steps is None else [self._result(step).action_id for step in steps]

    def _result(self, step: str) -> CallResult:
        action_id = self._stage.known.get(step, {}).get("action_id", "")
        action = self._session().state.actions.get(action_id)
        if action is None:
            raise ScriptError(f"no step `{step}` was called in this run before")
        return CallResult(action.action_id, action.slot, action.status, action.outcome, "")

    def _expecting(self, error: str, do: Callable[[Engine], Any]) -> Any:
        """What `do` answers; None if it raised the error it must raise."""
        if self._engine is None:
            raise ScriptError("no engine is open")
        try:
            answer = do(self._engine)
        except AmendsError as raised:
            if type(raised).__name__ != error:
                raise ScriptError(f"raised {type(raised).__name__}: {raised}") from raised
            return None
        if error:
            raise ScriptError(f"must raise {error}, but answered {answer}")
        return answer

    def _reload_policy(self, how: s.Reloading) -> None:
        target = Path(self._stage.project) / str(self._stage.known["policy"])
        shutil.rmtree(target)
        shutil.copytree(Path(self._stage.template).parent / how.bundle, target)
        if self._engine is not None:
            _expect("the bundle", "outcome", self._engine.reload_policies().outcome, how.outcome)
        elif how.outcome is not None:
            raise ScriptError("no session is open whose engine could look at the bundle")

    # --- recovery -----------------------------------------------------------------------------------------

    def _recover(self, how: s.Recovery) -> None:
        try:
            self._recovered(how)
        except AmendsError as raised:
            if not how.raises or type(raised).__name__ != how.raises:
                raise
        else:
            if how.raises:
                raise ScriptError(f"must raise {how.raises}, but recovery ran")

    def _recovered(self, how: s.Recovery) -> None:
        self._switch.at = how.kill_at
        run_id = self._run_id(how.run) if how.run else None
        with _opened(Engine.open(Path(self._stage.project), progress=self._switch, mirror=False)) as engine:
            states = engine.recover(run_id, to=how.to, by=how.by, wait_seconds=how.wait_seconds)
            if how.kill_at:
                raise ScriptError(f"recovery ended and never reached `{how.kill_at}`")
            if how.status is not None:
                state = engine.state(run_id or self._last_run())
                found = [(run.run.run_key, run.run.status.value) for run in states]
                if state.run.status is not how.status:
                    raise ScriptError(
                        f"the run is `{state.run.status}`, not `{how.status}`; recovered: {found}; {_told(state)}"
                    )

    def _run_id(self, name: str) -> str:
        runs = self._stage.known.get("runs", {})
        if name not in runs:
            raise ScriptError(f"no run is called `{name}`; there are {', '.join(runs) or 'none'}")
        return str(runs[name]["id"])

    def _last_run(self) -> str:
        runs = self._stage.known.get("runs", {})
        return str(list(runs.values())[-1]["id"])

    # --- people -------------------------------------------------------------------------------------------

    def _decide(self, entry: s.Approve | s.Reject | s.Resolve) -> None:
        if self._engine is not None:
            decide(self._engine, entry)
            return
        with _opened(Engine.desk(Path(self._stage.project))) as desk:
            decide(desk, entry)

    def _wait(self, entry: s.Wait) -> None:
        until = self._clock.monotonic() + entry.seconds
        while self._clock.monotonic() < until:
            rows = self._engine.approvals() if self._engine is not None else ()
            if not any(row.expires_us > self._clock.now_us() for row in rows):
                return
            self._clock.sleep(_POLL_SECONDS)
        raise ScriptError(f"no question had expired after {entry.seconds} s")


class _opened:  # noqa: N801 - reads as a verb at the `with`
    """An engine that is closed at the end of a block."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Engine:
        return self._engine

    def __exit__(self, *_: object) -> None:
        self._engine.close()


def _expect(what: str, field: str, found: object, wanted: object, result: CallResult | None = None) -> None:
    if wanted is not None and found != wanted:
        why = f" ({result.reason or (result.error and result.error.message) or result.message})" if result else ""
        raise ScriptError(f"`{what}`: {field} is `{found}`, not `{wanted}`{why}")


def _told(state: RunState) -> str:
    lines = [
        f"{a.kind}:{a.capability} {a.status}/{a.outcome} {a.last_decided} {a.parked_detail}".strip()
        for a in state.actions.values()
    ]
    return "; ".join(lines)
