"""What is wrong with policies, as values: file, line, policy id, remedy. `refuse` turns them into one `ConfigError`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from amends.core.errors import AmendsError, ConfigError

SHOWN = 5  # errors in one message; all are in its data


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """One line of `amends policy check`. `line` counts from 1; 0 means the whole file."""

    level: Literal["error", "warning"]
    code: str
    file: str
    line: int
    policy_id: str
    message: str
    hint: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        policy = f" policy `{self.policy_id}`:" if self.policy_id else ""
        return f"{where}:{policy} {self.message}"


def error(code: str, message: str, hint: str, *, file: str = "", line: int = 0, policy_id: str = "") -> PolicyFinding:
    """A finding that keeps the bundle from being used."""
    return PolicyFinding("error", code, file, line, policy_id, message, hint)


def warning(code: str, message: str, hint: str, *, file: str = "", line: int = 0, policy_id: str = "") -> PolicyFinding:
    """A finding that only `amends policy check` speaks of."""
    return PolicyFinding("warning", code, file, line, policy_id, message, hint)


def has_errors(findings: Iterable[PolicyFinding]) -> bool:
    """True if one of them keeps the bundle from being used."""
    return any(finding.level == "error" for finding in findings)


def findings_of(problem: AmendsError) -> list[PolicyFinding]:
    """The findings that `refuse` put into an error; of any other error, itself."""
    listed = problem.data.get("findings")
    if isinstance(listed, list):
        return [PolicyFinding(level="error", **one) for one in cast("list[dict[str, Any]]", listed)]
    return [error(problem.code, problem.message, problem.hint, file=str(problem.data.get("file", "")))]


def refuse(findings: Sequence[PolicyFinding]) -> None:
    """Raise one `ConfigError` that names every error among `findings`; return if there is none."""
    errors = [finding for finding in findings if finding.level == "error"]
    if not errors:
        return
    rest = len(errors) - SHOWN
    raise ConfigError(
        "; ".join(str(finding) for finding in errors[:SHOWN]) + (f"; and {rest} more" if rest > 0 else ""),
        hint=errors[0].hint,
        findings=[
            {
                "code": f.code,
                "file": f.file,
                "line": f.line,
                "policy_id": f.policy_id,
                "message": f.message,
                "hint": f.hint,
            }
            for f in errors
        ],
    )
