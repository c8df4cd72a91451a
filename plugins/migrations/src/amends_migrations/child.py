"""The engine's side of the runner: one child per request, its answer, its time limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, Any, cast

from amends.spi import NotSent, Refused
from amends.spi.process import Budget, TimeLimit, end_group, start

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
_LIBPQ = "PG"  # PGHOST, PGPASSFILE, ...: the runner must reach the very database that is probed
_NOT_STARTED = frozenset({"locked", "not_wanted"})
_CHUNK = 65_536
_EXCERPT = 600


class BrokeOff(Exception):
    """The runner died or the migration raised in the middle: only the database knows what is there."""


def ask(request: Mapping[str, Any], *, timeout_seconds: float) -> dict[str, Any]:
    """One request that changes nothing. Raises `Refused` for what the runner found unfit, `BrokeOff`, `TimeLimit`."""
    return _converse(request, Budget(timeout_seconds), still_wanted=lambda: True)


def carry_out(
    request: Mapping[str, Any], *, timeout_seconds: float, still_wanted: Callable[[], bool]
) -> dict[str, Any]:
    """One move. `still_wanted` is asked when the runner holds the lock and has looked, immediately before it starts.

    Raises `NotSent` if it never started, `Refused` if the database is as it was, anything else for "unknown".
    """
    return _converse(request, Budget(timeout_seconds), still_wanted=still_wanted)


def _converse(request: Mapping[str, Any], budget: Budget, still_wanted: Callable[[], bool]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as said:
        try:
            child = start(
                [sys.executable, "-P", "-m", "amends_migrations"],
                env=_environment(),
                stderr=said,
            )
        except OSError as error:
            raise NotSent(f"the migration runner cannot be started: {error}", code="no_runner") from error
        started = False
        try:
            _tell(child, json.dumps(request))
            answer = _hear(child, budget)
            if answer is not None and answer.get("ready"):
                started = still_wanted()
                _tell(child, "go" if started else "stop")
                answer = _hear(child, budget)
        except TimeoutError:
            gone = end_group(child)
            if not started:
                raise NotSent("the migration runner was not ready in time", code="not_ready") from None
            raise TimeLimit("the migration ran longer than its time limit", group_gone=gone) from None
        finally:
            end_group(child)
        return _understood(answer, child.returncode, said, started=started)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_LIBPQ)}
    return kept | {"LC_ALL": "C.UTF-8"}


def _understood(answer: dict[str, Any] | None, code: int, said: IO[bytes], *, started: bool) -> dict[str, Any]:
    match answer:
        case {"ok": result}:
            return cast("dict[str, Any]", result)
        case {"unfit": str(word), "detail": str(detail)} if word in _NOT_STARTED:
            raise NotSent(detail, code=word)
        case {"unfit": str(word), "detail": str(detail)}:
            raise Refused(detail, code=word)
        case {"failed": str(detail)} if started:
            raise BrokeOff(detail)
        case _:
            pass
    detail = str(answer["failed"]) if answer and "failed" in answer else f"exit code {code}: {_tail(said)}"
    if started:
        raise BrokeOff(f"the migration runner died: {detail}")
    raise NotSent(f"the migration runner failed before it began: {detail}", code="runner_failed")


def _tell(child: subprocess.Popen[bytes], line: str) -> None:
    stdin = cast("IO[bytes]", child.stdin)
    with contextlib.suppress(BrokenPipeError):  # it died: the missing answer says so
        stdin.write(line.encode() + b"\n")
        stdin.flush()


def _hear(child: subprocess.Popen[bytes], budget: Budget) -> dict[str, Any] | None:
    """The next line of the child; None if it ended without one. Raises `TimeoutError`."""
    handle, line = cast("IO[bytes]", child.stdout).fileno(), b""
    while not line.endswith(b"\n"):
        if not select.select([handle], [], [], budget.remaining())[0]:
            raise TimeoutError
        piece = os.read(handle, _CHUNK)
        if not piece:
            return None
        line += piece
    answer: dict[str, Any] = json.loads(line)
    return answer


def _tail(said: IO[bytes]) -> str:
    said.seek(0)
    return " ".join(said.read().decode("utf-8", "replace").split())[-_EXCERPT:]
