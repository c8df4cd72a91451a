"""Amends: a policy-as-code recovery engine for AI-agent runs.

    from amends import Engine

    with Engine.open() as engine, engine.run(workflow="billing", run_key="order-17", agent="coder") as run:
        result = run.call("git.create_branch", {"repo": "billing", "branch": "feature/field"})

Names are imported when first used: a plugin that imports `amends.spi` loads neither DuckDB nor Cedar.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.core.errors import (
        AmendsError,
        CallerError,
        ConfigError,
        Conflict,
        Denied,
        InternalError,
        InvalidInput,
        JournalBusy,
        JournalUnavailable,
        PolicyError,
        SystemRefused,
        SystemUnavailable,
        Unidentified,
        UnknownName,
    )
    from amends.core.rows import RunState
    from amends.core.status import ActionStatus, Outcome, RunStatus
    from amends.runtime.opening import RunOutcome
    from amends.runtime.planning import PlannedStep, Step
    from amends.runtime.results import CallResult
    from amends.runtime.runs import Run

__version__ = "0.1.0"

_ERRORS = (
    "AmendsError",
    "CallerError",
    "ConfigError",
    "Conflict",
    "Denied",
    "InternalError",
    "InvalidInput",
    "JournalBusy",
    "JournalUnavailable",
    "PolicyError",
    "SystemRefused",
    "SystemUnavailable",
    "Unidentified",
    "UnknownName",
)
_HOMES = {
    "Engine": "amends.bootstrap",
    "CallResult": "amends.runtime.results",
    "PlannedStep": "amends.runtime.planning",
    "Run": "amends.runtime.runs",
    "RunOutcome": "amends.runtime.opening",
    "RunState": "amends.core.rows",
    "Step": "amends.runtime.planning",
    "ActionStatus": "amends.core.status",
    "Outcome": "amends.core.status",
    "RunStatus": "amends.core.status",
    **dict.fromkeys(_ERRORS, "amends.core.errors"),
}

__all__ = [
    "ActionStatus",
    "AmendsError",
    "CallResult",
    "CallerError",
    "ConfigError",
    "Conflict",
    "Denied",
    "Engine",
    "InternalError",
    "InvalidInput",
    "JournalBusy",
    "JournalUnavailable",
    "Outcome",
    "PlannedStep",
    "PolicyError",
    "Run",
    "RunOutcome",
    "RunState",
    "RunStatus",
    "Step",
    "SystemRefused",
    "SystemUnavailable",
    "Unidentified",
    "UnknownName",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module `amends` has no attribute `{name}`")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
