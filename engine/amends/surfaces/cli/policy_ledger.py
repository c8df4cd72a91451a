"""What the ledger knows of policies: every bundle's sources, every decision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from amends.core.errors import InvalidInput, UnknownName
from amends.core.events import decode
from amends.core.evidence import Decision

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.ports.authorizer import PolicyBundle

PAGE = 2_000  # decisions read at once
_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KnownBundle:
    """A bundle the ledger keeps, and when it was first in force."""

    version: str
    effective_digest: str
    first_us: int
    texts: Mapping[str, str]

    def fits(self, name: str) -> bool:
        """True if `name` is this bundle's label, its version or digest, or the start of one."""
        label, _, digest = self.version.partition("@")
        starts = (self.version, digest, self.effective_digest, digest.partition(":")[2], self.effective_digest[7:])
        return name == label or any(text and text.startswith(name) for text in starts)

    def sources(self) -> PolicyBundle:
        """As the authorizer's port knows it."""
        from amends.ports.authorizer import PolicyBundle

        return PolicyBundle(self.version, self.effective_digest, self.texts)


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision, and where and when it was recorded."""

    decision: Decision
    phase: str
    run_id: str
    action_id: str
    at_us: int


def known_bundles(engine: Engine) -> list[KnownBundle]:
    """Every bundle the ledger keeps, oldest first."""
    table = engine.sql("SELECT ts_us, payload FROM events WHERE kind = 'bundle_recorded' ORDER BY seq")
    found: list[KnownBundle] = []
    for at_us, payload in table.rows:
        body = _body(payload)
        texts = cast("dict[str, str]", body["sources"])
        found.append(KnownBundle(str(body["policy_version"]), str(body["effective_digest"]), cast("int", at_us), texts))
    return found


def bundle_of(engine: Engine, decision: Decision) -> KnownBundle:
    """The bundle a decision was made under. Raises `UnknownName`."""
    for bundle in known_bundles(engine):
        if bundle.effective_digest == decision.effective_digest:
            return bundle
    raise UnknownName(
        f"the ledger does not keep the sources of `{decision.policy_version}`", hint="run `amends ledger verify`"
    )


def count_decisions(engine: Engine, since_us: int = 0) -> int:
    """How many decisions there are since `since_us`."""
    table = engine.sql("SELECT count(*) FROM events WHERE kind = 'decision_recorded' AND ts_us >= ?", (since_us,))
    return cast("int", table.rows[0][0])


def decisions(engine: Engine, since_us: int = 0) -> Iterator[list[RecordedDecision]]:
    """Every decision since `since_us`, oldest first, page by page."""
    seq = -1
    while True:
        table = engine.ledger.query(
            "SELECT seq, ts_us, run_id, action_id, payload FROM events "
            "WHERE kind = 'decision_recorded' AND ts_us >= ? AND seq > ? ORDER BY seq LIMIT ?",
            (since_us, seq, PAGE),
            max_rows=PAGE,
        )
        if not table.rows:
            return
        seq = cast("int", table.rows[-1][0])
        yield [_recorded(*row[1:]) for row in table.rows]


def decision_named(engine: Engine, name: str) -> RecordedDecision:
    """The decision with this id, or the start or end of it; or the latest one of the action with it. Raises
    `UnknownName`, or `InvalidInput` if several fit.
    """
    for column in ("decision_id", "action_id"):
        table = engine.sql(
            f"SELECT {column}, ts_us, run_id, action_id, payload FROM events WHERE kind = 'decision_recorded' "  # noqa: S608 - one of two names
            f"AND (starts_with({column}, ?) OR ends_with({column}, ?)) ORDER BY seq DESC LIMIT 1000",
            (name, name),
        )
        ids = sorted({str(row[0]) for row in table.rows})
        if len(ids) > 1 and name not in ids:
            hint = f"give the whole id: {', '.join(ids[:5])}"
            raise InvalidInput(f"`{name}` fits {len(ids)} {column.removesuffix('_id')}s", hint=hint)
        rows = [row for row in table.rows if name not in ids or row[0] == name]
        if name and rows:
            return _recorded(*rows[0][1:])
    raise UnknownName(
        f"no decision `{name}`", hint='amends sql "SELECT ts, decision_id, policy_action, verdict FROM decisions"'
    )


def since_us(text: str, now_us: int) -> int:
    """`7d`, `12h`, or a date or time (UTC if it names no zone) as microseconds. Raises `InvalidInput`."""
    if not text:
        return 0
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now_us - timedelta(**{_UNITS[ago[2]]: int(ago[1])}) // timedelta(microseconds=1)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"`{text}` is no time", hint="write 7d, 12h, 2026-03-02 or 2026-03-02T10:00Z") from None
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _body(payload: object) -> dict[str, object]:
    """The body of an event that the ledger holds as text. Raises `CorruptLedger` for what is none."""
    body = decode(str(payload), "of the ledger")
    return body.model_dump(mode="json")


def _recorded(at_us: object, run_id: object, action_id: object, payload: object) -> RecordedDecision:
    body = _body(payload)
    decision = Decision.model_validate(body["decision"])
    return RecordedDecision(decision, str(body["phase"]), str(run_id), str(action_id), cast("int", at_us))
