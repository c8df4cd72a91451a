"""A copy of the core and its tests for mutmut to work in: it wants sources under `src/` and nothing else importable."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_TESTS = ("unit/core", "golden")
_PROJECT = """\
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
filterwarnings = ["error"]
timeout = 60

[tool.mutmut]
source_paths = ["src"]
only_mutate = [{modules}]
pytest_add_cli_args = ["-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = ["tests/unit/core"]
use_git_change_detection = false
use_setproctitle = false
"""
# A mutant is dead at the first example that fails: nobody reads the smallest one.
_CONFTEST = """\
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutation",
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mutation")
"""


@dataclass(frozen=True)
class Mutant:
    """One change and what became of it; `change` is the diff of its function, reduced to the lines that differ."""

    name: str
    status: str
    change: str

    @property
    def module(self) -> str:
        """The module's name inside `amends.core`."""
        return self.name.removeprefix("amends.core.").partition(".")[0]

    @property
    def tried(self) -> bool:
        """False if the time was over before."""
        return self.status not in {"not checked", "check was interrupted by user"}

    @property
    def survived(self) -> bool:
        """True if the tests passed with it, or none of them runs it."""
        return self.status in {"survived", "no tests"}

    @property
    def written(self) -> list[str]:
        """The changed lines as the mutant has them; as the original has them, where it only drops something."""
        lines = self.change.splitlines()
        new = [line[1:].strip() for line in lines if line.startswith("+")]
        return new or [line[1:].strip() for line in lines if line.startswith("-")]


class Workspace:
    """The copy in `.mutation/work` of a checkout, for some modules of `amends.core`."""

    def __init__(self, root: Path, modules: tuple[str, ...]) -> None:
        self._root = root
        self._modules = modules
        self._folder = root / ".mutation" / "work"

    def build(self) -> None:
        """Copy anew: what an earlier run left would be taken for this one's answers."""
        shutil.rmtree(self._folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(self._root / "engine/amends", self._folder / "src/amends", ignore=ignored)
        for name in _TESTS:
            shutil.copytree(self._root / "tests" / name, self._folder / "tests" / name, ignore=ignored)
        modules = ", ".join(f'"src/amends/core/{name}.py"' for name in self._modules)
        (self._folder / "pyproject.toml").write_text(_PROJECT.format(modules=modules), encoding="utf-8")
        (self._folder / "tests/conftest.py").write_text(_CONFTEST, encoding="utf-8")

    def run(self, seconds: float) -> int:
        """Try the mutants, for `seconds` at most; mutmut's exit code, 0 unless the tests fail without any mutant."""
        working = subprocess.Popen([*self._mutmut, "run"], cwd=self._folder, env=self._environment, stdout=sys.stderr)
        try:
            return working.wait(seconds)
        except subprocess.TimeoutExpired:
            working.send_signal(signal.SIGINT)  # it ends its children and keeps what it knows
            return working.wait()

    def mutants(self) -> list[Mutant]:
        """Every mutant, the changes of those that survived included."""
        found: list[Mutant] = []
        for line in self._said("results", "--all", "true").splitlines():
            name, _, status = line.strip().partition(": ")
            mutant = Mutant(name, status, "")
            found.append(Mutant(name, status, self._change(name)) if mutant.survived else mutant)
        return found

    def _change(self, name: str) -> str:
        lines = self._said("show", name).splitlines()
        return "\n".join(line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---")) and line)

    def _said(self, *command: str) -> str:
        whole = [*self._mutmut, *command]
        return subprocess.run(
            whole, cwd=self._folder, env=self._environment, check=True, text=True, stdout=subprocess.PIPE
        ).stdout

    @cached_property
    def _environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    @cached_property
    def _mutmut(self) -> list[str]:
        return [str(Path(sys.executable).with_name("mutmut"))]
