"""The world of one scenario: its systems running, and a project's folder with everything configured."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from amends.core.errors import ConfigError
from amends.testing.loopback import LoopbackSystem
from amends.testing.scenarios.model import Scenario
from amends.testing.scenarios.places import GitRemote, Residue, StagingDatabase
from amends.testing.scenarios.script_model import FaultSpec, SystemAct
from amends.testing.scenarios.values import fill

CONFIG = "amends.toml"
_NOT_COPIED = shutil.ignore_patterns("scenario.toml", "__pycache__")
_Known = dict[str, Any]


@dataclass
class Stage:
    """What a process needs to play a part: addresses, the project's folder, and what is known so far. JSON-able."""

    project: str
    template: str
    systems: dict[str, str]  # name -> control address of a loopback system
    known: _Known = field(default_factory=dict[str, Any])

    def system(self, name: str) -> LoopbackSystem:
        """A handle on a running loopback system. Raises `ConfigError` if there is none of this name."""
        if name not in self.systems:
            raise ConfigError(f"`{name}` is no loopback system here", hint=f"there are {sorted(self.systems)}")
        return LoopbackSystem.attach(self.systems[name])

    def render(self) -> None:
        """Write amends.toml from its template and what is known now."""
        text = Path(self.template).read_text(encoding="utf-8")
        (Path(self.project) / CONFIG).write_text(fill(f"{text}\n", self.known), encoding="utf-8")


class World:
    """Starts everything, and answers for the systems afterwards. A context manager."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.project = folder / "project"
        self._folder = folder
        self._stack = ExitStack()
        self.loopbacks: dict[str, LoopbackSystem] = {}
        self.places: dict[str, GitRemote | StagingDatabase] = {}
        self.stage = Stage(str(self.project), "", {})
        self._first: dict[str, list[Any]] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        scenario, known = self.scenario, self.stage.known
        source = self._gathered()
        self.stage.template = str(source / scenario.config)
        shutil.copytree(source, self.project, ignore=_NOT_COPIED, dirs_exist_ok=True)
        known.update(folder=str(self.project), python=sys.executable, policy=scenario.policy, values=scenario.values)
        for name, secret in scenario.secrets.items():
            self._write_secret(name, secret)
        for name, spec in scenario.systems.items():
            if spec.kind == "git":
                self.places[name] = GitRemote.create(name, spec, source, self._folder)
            elif spec.kind == "sqlite":
                self.places[name] = StagingDatabase.create(name, spec, source, self._folder)
            else:
                self._start_loopback(name, spec.kind)
                continue
            known[name] = self.places[name].values()
        for name, spec in scenario.systems.items():
            if name in self.loopbacks:
                self.loopbacks[name].configure(**fill(spec.settings, known))
            for act in spec.seed:
                happen(self.stage, act.model_copy(update={"system": act.system or name}))
        if not (source / scenario.config).is_file():
            raise ConfigError(f"scenario `{scenario.id}` lacks `{scenario.config}`", hint="add it, or correct `config`")
        self.stage.render()
        self._first = {wanted: self._objects(wanted) for wanted in scenario.expect.unchanged}
        for fault in scenario.faults:
            arm(self.stage, fault)

    def _gathered(self) -> Path:
        """The scenario's files; those of the scenario that it extends lie beneath its own."""
        if self.scenario.below is None:
            return self.scenario.folder
        source = self._folder / "source"
        for folder in (self.scenario.below, self.scenario.folder):
            shutil.copytree(folder, source, ignore=_NOT_COPIED, dirs_exist_ok=True)
        return source

    def _objects(self, wanted: str) -> list[Any]:
        name, _, collection = wanted.partition(":")
        if name not in self.loopbacks:
            raise ConfigError(f"`unchanged`: `{name}` is no loopback system", hint=f"they are {sorted(self.loopbacks)}")
        return self.loopbacks[name].objects(collection)

    def changed(self) -> dict[str, tuple[list[Any], list[Any]]]:
        """The collections named by `unchanged` that are not what they were before the script: (then, now)."""
        now = {wanted: self._objects(wanted) for wanted in self._first}
        return {wanted: (then, now[wanted]) for wanted, then in self._first.items() if then != now[wanted]}

    def _start_loopback(self, name: str, kind: str) -> None:
        handle = self._stack.enter_context(LoopbackSystem.start(kind))
        self.loopbacks[name] = handle
        self.stage.systems[name] = handle.control_url
        self.stage.known[name] = {"url": handle.url}

    def _write_secret(self, name: str, secret: str) -> None:
        path = self.project / "secrets" / name
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secret, encoding="utf-8")

    def residue(self) -> list[Residue]:
        """What the agent's side left at the systems, as the systems themselves count it."""
        left: list[Residue] = []
        for name, system in self.loopbacks.items():
            left += [
                {key: row[key] for key in ("kind", "resource", "reference", "state")} | {"system": name}
                for row in system.present()
            ]
        for place in self.places.values():
            left += place.residue()
        return left


def arm(stage: Stage, fault: FaultSpec) -> None:
    """Arm a fault at its system. Raises `ConfigError` if the system does not know it."""
    try:
        stage.system(fault.system).arm(fault.kind, **fill(fault.options, stage.known))  # type: ignore[arg-type] # checked there
    except Exception as error:
        raise ConfigError(f"fault `{fault.kind}` of `{fault.system}`: {error}", hint="correct the fault") from error


def happen(stage: Stage, act: SystemAct) -> Mapping[str, Any] | None:
    """Something happens at a system that no agent did. Raises `ConfigError` if the system refuses it."""
    system = stage.system(act.system)
    if act.action:
        answer: Mapping[str, Any] | None = system.control(act.action, **fill(act.parameters, stage.known))
        return answer
    path, body = fill(act.path, stage.known), fill(act.body, stage.known)
    done = system.foreign(act.method, path, body, actor=act.actor, account=act.account)
    if done["status"] >= 400:  # noqa: PLR2004 - HTTP
        raise ConfigError(f"`{act.method} {path}` at `{act.system}` was refused: {done['body']}", hint="correct it")
    return done
