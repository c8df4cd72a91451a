"""All that a plugin may import: hooks, the capability model, contracts and observations.

A plugin registers capabilities through the hooks of `amends.spi.hookspecs`; the objects it registers behave.
`SPI_VERSION` follows SemVer of its own: a plugin states the range it supports.
"""

from amends.core.canonical import Json, JsonMap
from amends.core.contract import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    ProbeRule,
    Readers,
    Reference,
    Release,
    Retry,
    Signal,
)
from amends.core.errors import ConfigError
from amends.core.evidence import Observation
from amends.core.status import Outcome
from amends.ports.services import Delivery, Notice, Notifier
from amends.spi.capability import (
    Accepted,
    Call,
    Capability,
    CorrectionArgs,
    Corrector,
    Done,
    NotSent,
    Prepared,
    Question,
    Receipt,
    Refused,
)
from amends.spi.hookspecs import (
    SPI_VERSION,
    AdapterContext,
    Check,
    CheckAnswer,
    DoctorFinding,
    PolicyContribution,
    Registry,
    hookimpl,
)

__all__ = [
    "SPI_VERSION",
    "Accepted",
    "AdapterContext",
    "Alternative",
    "Call",
    "Capability",
    "Check",
    "CheckAnswer",
    "ConfigError",
    "Contract",
    "CorrectionArgs",
    "Corrector",
    "Delivery",
    "DoctorFinding",
    "Done",
    "Effect",
    "EscalationRule",
    "Identity",
    "Json",
    "JsonMap",
    "Keying",
    "Limits",
    "NotSent",
    "Notice",
    "Notifier",
    "Observation",
    "Outcome",
    "PolicyContribution",
    "Prepared",
    "ProbeRule",
    "Question",
    "Readers",
    "Receipt",
    "Reference",
    "Refused",
    "Registry",
    "Release",
    "Retry",
    "Signal",
    "hookimpl",
]
