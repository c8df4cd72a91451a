"""The error tree. A family says who must act; every error carries a code, data and a remedy.

AmendsError
├── CallerError          you: fix the call, the arguments or the configuration
│   ├── InvalidInput         does not validate, serialise or read back
│   ├── UnknownName          no such capability, run, action, item …
│   ├── Unidentified         a consequential call without identity or label (rule 5)
│   ├── Conflict             another holder, other arguments, or somebody decided first
│   └── ConfigError          amends.toml, a contract or a plugin is wrong
├── PolicyError          the policy's owner: a decision says no
│   └── Denied
├── SystemUnavailable    their system, for now: try again later
│   ├── JournalBusy
│   └── JournalUnavailable
├── SystemRefused        their system, for good
└── InternalError        us: a named invariant does not hold
    ├── IllegalTransition
    ├── CorruptLedger
    └── Fenced               a stale epoch tried to write (rule 13)
"""

from __future__ import annotations

from typing import ClassVar


class AmendsError(Exception):
    """Base of all errors. `message` is one lower-case sentence; `hint` names the remedy; `data` is JSON-able."""

    code: ClassVar[str] = "error"
    who_acts: ClassVar[str] = "us"

    def __init__(self, message: str, *, hint: str = "", **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def as_dict(self) -> dict[str, object]:
        """The one JSON shape of an error on every surface."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "who_acts": self.who_acts,
            "data": self.data,
        }


class CallerError(AmendsError):
    """The caller must change something; nothing was sent."""

    code = "caller_error"
    who_acts = "caller"


class InvalidInput(CallerError):
    """Arguments, a contract or a file do not validate, serialise or read back."""

    code = "invalid_input"


class UnknownName(CallerError):
    """No capability, run, action or item bears this name."""

    code = "unknown_name"


class Unidentified(CallerError):
    """A consequential call has neither identity fields nor a label (rule 5)."""

    code = "unidentified"


class Conflict(CallerError):
    """Somebody else holds or decided this; `data` says who and until when."""

    code = "conflict"


class ConfigError(CallerError):
    """Configuration is wrong; the message names file, key and remedy."""

    code = "config_error"


class PolicyError(AmendsError):
    """A policy decision stands in the way; the policy's owner acts."""

    code = "policy_error"
    who_acts = "policy"


class Denied(PolicyError):
    """Policy denied the action; nothing was sent."""

    code = "denied"


class SystemUnavailable(AmendsError):
    """A system outside cannot answer for now; the same call may work later."""

    code = "system_unavailable"
    who_acts = "system_for_now"


class JournalBusy(SystemUnavailable):
    """Another process holds the write lock too long; `data` names its pid. Nothing was sent."""

    code = "journal_busy"


class JournalUnavailable(SystemUnavailable):
    """The journal does not acknowledge (disk full, read-only, gone). Nothing was sent."""

    code = "journal_unavailable"


class SystemRefused(AmendsError):
    """A system outside said no for good."""

    code = "system_refused"
    who_acts = "system_for_good"


class InternalError(AmendsError):
    """A named invariant of Amends does not hold; the run stops and escalates."""

    code = "internal_error"
    who_acts = "us"


class IllegalTransition(InternalError):
    """The transition table has no such move; state is unchanged."""

    code = "illegal_transition"


class CorruptLedger(InternalError):
    """A stored row cannot be read back or its hash chain is broken; its run is quarantined (rule 16)."""

    code = "corrupt_ledger"


class Fenced(InternalError):
    """A writer with a stale epoch was refused; only late evidence may be appended (rule 13)."""

    code = "fenced"
