"""Fakes of the small ports, for tests that need no clock, host or person."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from amends.core.errors import ConfigError
from amends.core.events import Holder
from amends.core.evidence import Decision, Verdict
from amends.ports.authorizer import AuthorizationRequest, PolicyBundle
from amends.ports.services import Delivery, Milestone, Notice

START_US = 1_700_000_000_000_000


class SimClock:
    """A clock that moves only when told. `sleep` advances it; setting the wall time leaves `monotonic` alone."""

    def __init__(self, now_us: int = START_US) -> None:
        self._lock = threading.Lock()
        self._now_us = now_us
        self._monotonic = 0.0

    def now_us(self) -> int:
        with self._lock:
            return self._now_us

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._now_us += round(seconds * 1_000_000)
            self._monotonic += seconds

    def jump_to(self, now_us: int) -> None:
        """Set the wall time, backwards too."""
        with self._lock:
            self._now_us = now_us


class SequentialIds:
    """UUIDv7-shaped ids that count up. `node` (0 to 4095) keeps two of them apart."""

    def __init__(self, node: int = 0) -> None:
        self._lock = threading.Lock()
        self._node = node
        self._count = 0

    def new(self) -> str:
        with self._lock:
            self._count += 1
            count = self._count
        return f"{count >> 16:08x}-{count & 0xFFFF:04x}-7000-8{self._node:03x}-{count:012x}"


class FakeOwners:
    """Owners whose death a test decides: add an `owner_id` to `dead`."""

    def __init__(self, owner_id: str = "owner-1", *, host: str = "host-1", pid: int = 1) -> None:
        self.dead: set[str] = set()
        self.orphans: set[str] = set()
        self._me = Holder(owner_id=owner_id, host=host, pid=pid, owner_file=f"{owner_id}.lock")

    def me(self) -> Holder:
        return self._me

    def proven_dead(self, holder: Holder) -> bool:
        return holder.host == self._me.host and holder.owner_id in self.dead

    def orphaned(self, holder: Holder) -> bool:
        return holder.host == self._me.host and holder.owner_id in self.orphans


class StaticSecrets:
    """Secrets from a mapping of reference to value."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})
        self._revealed: set[str] = set()

    def resolve(self, reference: str) -> str:
        if reference not in self._values:
            raise ConfigError(f"secret `{reference}` is not set", hint="give it to StaticSecrets", reference=reference)
        self._revealed.add(self._values[reference])
        return self._values[reference]

    def revealed(self) -> frozenset[str]:
        return frozenset(self._revealed)


class RecordingNotifier:
    """Keeps what it was asked to deliver; set `failure` to make delivery fail with these words."""

    def __init__(self, name: str = "recording") -> None:
        self.notices: list[Notice] = []
        self.failure = ""
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def deliver(self, notice: Notice) -> Delivery:
        self.notices.append(notice)
        return Delivery(delivered=not self.failure, detail=self.failure)


class RecordingProgress:
    """Keeps the milestones reached, in order."""

    def __init__(self) -> None:
        self.milestones: list[tuple[Milestone, str, str]] = []

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        self.milestones.append((milestone, run_id, action_id))


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a `FakeAuthorizer` answers. A `needs_approval` becomes allow once an approval of its tier is shown."""

    verdict: Verdict
    tier: int = 0
    code: str = ""
    reasons: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


ALLOW = Ruling("allow")
DENY = Ruling("deny", code="no_permit", reasons=("no policy permits it",))


def needs_approval(tier: int = 1, *roles: str) -> Ruling:
    """A ruling that asks people of `tier`."""
    return Ruling("needs_approval", tier, "approval_required", ("a person must approve",), roles)


@dataclass
class FakeAuthorizer:
    """Answers by policy action name: the first matching pattern (`git.push`, `*.undo`) rules, else allow.

    Change `rules` and `version` to play a changed bundle; `requests` keeps every question.
    """

    rules: Mapping[str, Ruling] = field(default_factory=dict[str, Ruling])
    version: str = "fake@sha256:1"
    requests: list[AuthorizationRequest] = field(default_factory=list[AuthorizationRequest])

    def decide(self, request: AuthorizationRequest) -> Decision:
        self.requests.append(request)
        pattern, ruling = next(
            ((name, rule) for name, rule in self.rules.items() if fnmatchcase(request.action, name)), ("default", ALLOW)
        )
        approval = request.approval
        if ruling.verdict == "needs_approval" and approval is not None and approval.tier >= ruling.tier:
            ruling = ALLOW
        return Decision(
            decision_id=request.decision_id,
            verdict=ruling.verdict,
            action=request.action,
            tier=ruling.tier,
            policy_ids=(f"fake.{pattern}",),
            policy_version=self.version,
            effective_digest=f"effective-{self.version}",
            code=ruling.code,
            reasons=ruling.reasons,
            roles=ruling.roles,
            principal=f'{request.principal.type}::"{request.principal.id}"',
            resource=f'{request.resource_type}::"{request.resource_id}"',
        )

    def bundle(self) -> PolicyBundle:
        return PolicyBundle(
            self.version, f"effective-{self.version}", {"fake.cedar": f"// rules: {', '.join(self.rules) or 'none'}"}
        )
