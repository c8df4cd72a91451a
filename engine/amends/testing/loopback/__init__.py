"""Loopback systems: small HTTP servers over real sockets that stand for the outside world in tests, scenarios, demo.

They speak the used subset of a partner's API, Unleash admin, Jira Cloud v3 and the Slack Web API, keep their state and
their own count of effects in SQLite, and misbehave when told. They know nothing of Amends.
"""

from __future__ import annotations

from amends.testing.loopback.faults import FaultKind
from amends.testing.loopback.handle import ControlError, LoopbackSystem

__all__ = ["ControlError", "FaultKind", "LoopbackSystem"]
