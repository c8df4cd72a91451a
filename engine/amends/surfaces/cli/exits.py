"""Exit codes, in one table. Scripts may rely on them; `docs/cli.md` lists them."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import TYPE_CHECKING

from amends.core import errors

if TYPE_CHECKING:
    from amends.core.rows import RunState


class Exit(IntEnum):
    """What a command's exit code says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    CONFLICT = 5
    NEEDS_HUMAN = 6
    UNKNOWN_OUTCOME = 7
    UNREACHABLE = 8


MEANING: dict[Exit, str] = {
    Exit.OK: "done, and all is well",
    Exit.FAILED: "it did not work, or something that was checked does not hold",
    Exit.USAGE: "the command, its arguments or the configuration are wrong; nothing was done",
    Exit.NOT_FOUND: "no run, action, item or capability bears this name",
    Exit.DENIED: "policy said no, or a pause is in force",
    Exit.CONFLICT: "somebody else holds or decided this",
    Exit.NEEDS_HUMAN: "a person has to decide: see `amends inbox list`",
    Exit.UNKNOWN_OUTCOME: "it is not known yet whether something happened; nothing is repeated meanwhile",
    Exit.UNREACHABLE: "the journal or the ledger cannot be read or written",
}

# The first class that fits decides, so the more special ones stand first.
BY_ERROR: tuple[tuple[type[errors.AmendsError], Exit], ...] = (
    (errors.UnknownName, Exit.NOT_FOUND),
    (errors.Conflict, Exit.CONFLICT),
    (errors.Fenced, Exit.CONFLICT),
    (errors.PolicyError, Exit.DENIED),
    (errors.SystemUnavailable, Exit.UNREACHABLE),
    (errors.CorruptLedger, Exit.UNREACHABLE),
    (errors.CallerError, Exit.USAGE),
    (errors.AmendsError, Exit.FAILED),
)


def of_error(error: errors.AmendsError) -> Exit:
    """The exit code of an error."""
    return next(code for kind, code in BY_ERROR if isinstance(error, kind))


def worst(codes: Collection[Exit]) -> Exit:
    """The exit code of runs that were recovered: a person who has to decide weighs most, then what is in doubt."""
    return next((code for code in (Exit.NEEDS_HUMAN, Exit.UNKNOWN_OUTCOME) if code in codes), Exit.OK)


def of_run_state(state: RunState) -> Exit:
    """The exit code of one run, as it came to rest."""
    from amends.core.public import PublicState, of_run

    if state.run.status == "abandoned":
        return Exit.OK
    if of_run(state) is PublicState.NEEDS_REVIEW:
        return Exit.NEEDS_HUMAN
    doubtful = any(a.status in {"running", "unknown"} or a.outcome == "unknown" for a in state.actions.values())
    return Exit.UNKNOWN_OUTCOME if doubtful else Exit.OK
