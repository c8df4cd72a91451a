"""The built-in `command` check: a program of the project says whether the run succeeded (rule 26).

Exit status 0 is `passed`, 1 is `not_passed`; anything else, a time-out or a program that cannot start is `unknown`.
The argv comes from configuration only: no agent can change what is asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from amends.spi import Check, CheckAnswer
from amends.spi.process import Ended, TimeLimit, run

RUN_VARIABLE = "AMENDS_RUN_ID"
_ANSWERS: dict[int, CheckAnswer] = {0: "passed", 1: "not_passed"}


def command_check(
    name: str,
    argv: Sequence[str],
    *,
    folder: Path,
    timeout_seconds: float,
    environment: Mapping[str, str] | None = None,
) -> Check:
    """A check that runs `argv` in `folder`, in a process group of its own that a time-out kills whole. The program
    finds the run's id in the environment variable `AMENDS_RUN_ID`. `ask` never raises.
    """
    command = _Command(tuple(argv), folder, timeout_seconds, environment)
    return Check(name=name, ask=command.ask)


class _Command:
    def __init__(
        self, argv: tuple[str, ...], folder: Path, timeout_seconds: float, environment: Mapping[str, str] | None
    ) -> None:
        self._argv = argv
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._environment = environment

    def ask(self, run_id: str) -> tuple[CheckAnswer, str]:
        environment = {**(os.environ if self._environment is None else self._environment), RUN_VARIABLE: run_id}
        try:
            ended = run(
                self._argv,
                env=environment,
                timeout_seconds=self._timeout_seconds,
                cwd=str(self._folder),
                keeps_owner=False,  # it only answers: recovery of a dead engine does not wait for its tests
            )
        except TimeLimit:
            return "unknown", f"`{self._argv[0]}` ran longer than {self._timeout_seconds:g} s and was ended"
        except OSError as error:
            return "unknown", f"`{self._argv[0]}` cannot start: {error.strerror}"
        return _ANSWERS.get(ended.returncode, "unknown"), _detail(ended)


def _detail(ended: Ended) -> str:
    """The exit status and the last line the program said."""
    said = [line.strip() for line in (*ended.out.splitlines(), *ended.err.splitlines()) if line.strip()]
    words = f": {said[-1]}" if said else ""
    return f"exit {ended.returncode}{words}"
