"""Told misbehaviour: what a loopback system does wrong, when, and how often it really did.

A fault is armed as data (so it works across processes), matches requests by method, path and fields, lets `skip` of
them pass and then fires `times` times. Faults act in different phases of one request, so several may fire on it; of
those in the same phase only the one armed first does. Who arms a fault must see that it fired: `fired` counts.
"""

from __future__ import annotations

import fnmatch
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from amends.testing.loopback.store import Rows
from amends.testing.loopback.wire import Doc, Request, lookup

FaultKind: TypeAlias = Literal[
    "drop_after_commit",
    "error_after_commit",
    "delay_before_commit",
    "delay_after_commit",
    "refuse",
    "refuse_connection",
    "answer_without_commit",
    "html_answer",
    "empty_answer",
    "land_late",
    "make_two",
    "lag_reads",
    "lie_reads",
    "already_gone",
]
Phase: TypeAlias = Literal["connect", "reads", "before", "instead", "how", "after", "answer"]
Cut: TypeAlias = Literal["fin", "rst", "cut_body", "never_answer"]

_FAILURE: Doc = {"form": "native", "body": None, "headers": {}, "code": "", "message": ""}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a fault kind means: its phase, its options with defaults, and the requests and times it takes by default."""

    phase: Phase
    options: Doc = field(default_factory=dict[str, Any])
    method: str = "writes"
    times: int | None = 1
    choices: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])


_CUTS = get_args(Cut)
KINDS: dict[str, Kind] = {
    "drop_after_commit": Kind("answer", {"how": "fin", "hold_s": 60.0}, choices={"how": _CUTS}),
    "error_after_commit": Kind(
        "answer", {"status": 500, **_FAILURE}, choices={"form": ("native", "json", "html", "empty")}
    ),
    "html_answer": Kind("answer", {"status": 200, "body": None}),
    "empty_answer": Kind("answer", {"status": 200}),
    "delay_before_commit": Kind("before", {"seconds": 1.0}),
    "delay_after_commit": Kind("after", {"seconds": 1.0}),
    "refuse": Kind(
        "instead",
        {"status": None, "stored": False, **_FAILURE},
        choices={"form": ("native", "json", "html", "empty")},
    ),
    "land_late": Kind(
        "instead", {"seconds": 1.0, "how": "fin", "hold_s": 60.0}, choices={"how": ("fin", "rst", "never_answer")}
    ),
    "refuse_connection": Kind(
        "connect", {"how": "close", "seconds": 1.0}, method="*", choices={"how": ("close", "rst", "stop_listening")}
    ),
    "answer_without_commit": Kind("how", {"status": None, "body": None}),
    "make_two": Kind("how"),
    "already_gone": Kind("how"),
    "lag_reads": Kind("reads", {"seconds": 1.0, "by_id": False}, method="reads", times=None),
    "lie_reads": Kind("reads", {"says": "absent"}, method="reads", choices={"says": ("absent", "present", "stale")}),
}
_PHASES: tuple[Phase, ...] = ("reads", "before", "instead", "how", "after", "answer")
_MOOT_AFTER_INSTEAD: frozenset[Phase] = frozenset({"how", "after", "answer"})


class BadFault(ValueError):
    """A fault that was described wrongly: the text names the field and what it may be."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One armed fault.

    `method` is an HTTP method, `*`, `reads` or `writes`; `path` a shell pattern (`*` also spans slashes); `where` maps
    dotted field paths of body or query to required values; `contains` must occur in the raw body.
    """

    kind: str
    method: str = "*"
    path: str = "*"
    where: Doc = field(default_factory=dict[str, Any])
    contains: str = ""
    times: int | None = 1
    skip: int = 0
    options: Doc = field(default_factory=dict[str, Any])

    def matches(self, request: Request, *, reads: bool) -> bool:
        """Whether this fault is about such a request at all."""
        method = self.method in ("*", "reads" if reads else "writes", request.method)
        fields = request.fields
        return (
            method
            and fnmatch.fnmatchcase(request.path, self.path)
            and all(lookup(fields, dotted) == value for dotted, value in self.where.items())
            and self.contains.encode() in request.raw
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults that fire on one request, by phase."""

    by_phase: dict[Phase, Fault] = field(default_factory=dict[Phase, Fault])

    def at(self, phase: Phase) -> Fault | None:
        """The fault that fires in this phase, or None."""
        return self.by_phase.get(phase)

    @property
    def names(self) -> str:
        """The kinds that fire, for the request log."""
        return ",".join(fault.kind for fault in self.by_phase.values())


def parse_fault(spec: Doc) -> Fault:
    """Check a fault's description and fill in what it leaves out.

    Raises:
        BadFault: unknown kind, field, option or choice.
    """
    kind = KINDS.get(str(spec.get("kind")))
    if kind is None:
        raise BadFault(f"unknown fault `{spec.get('kind')}`; there are {', '.join(sorted(KINDS))}")
    known = {"kind", "method", "path", "where", "contains", "times", "skip"}
    options = {**kind.options, **{name: value for name, value in spec.items() if name not in known}}
    unknown = set(options) - set(kind.options)
    if unknown:
        raise BadFault(f"fault `{spec['kind']}` has no `{min(unknown)}`; it has {sorted(kind.options)}")
    for name, allowed in kind.choices.items():
        if options[name] not in allowed:
            raise BadFault(f"`{name}` of `{spec['kind']}` is `{options[name]}`; it may be {', '.join(allowed)}")
    return Fault(
        kind=spec["kind"],
        method=spec.get("method") or kind.method,
        path=spec.get("path", "*"),
        where=spec.get("where") or {},
        contains=spec.get("contains", ""),
        times=spec.get("times", kind.times),
        skip=spec.get("skip", 0),
        options=options,
    )


def arm(rows: Rows, fault: Fault) -> int:
    """Arm a fault and return its number."""
    return rows.run("INSERT INTO faults (spec) VALUES (?)", (json.dumps(asdict(fault)),))


def draw(rows: Rows, request: Request, *, reads: bool) -> Plan:
    """Decide which faults fire on this request and count them; call once per request, inside a transaction."""
    ready: list[tuple[int, Fault]] = []
    for row in _armed(rows):
        fault = Fault(**json.loads(row["spec"]))
        phase = KINDS[fault.kind].phase
        if phase == "connect" or not fault.matches(request, reads=reads):
            continue
        rows.run("UPDATE faults SET seen = seen + 1 WHERE id = ?", (row["id"],))
        if row["seen"] >= fault.skip and (fault.times is None or row["fired"] < fault.times):
            ready.append((row["id"], fault))
    chosen: dict[Phase, Fault] = {}
    for phase in _PHASES:
        if "instead" in chosen and phase in _MOOT_AFTER_INSTEAD:
            break
        first = next(((number, fault) for number, fault in ready if KINDS[fault.kind].phase == phase), None)
        if first is not None:
            chosen[phase] = first[1]
            _count(rows, first[0])
    return Plan(chosen)


def draw_connection(rows: Rows) -> Fault | None:
    """The fault that fires on a connection just accepted, before a byte of it is read."""
    for row in _armed(rows):
        fault = Fault(**json.loads(row["spec"]))
        if KINDS[fault.kind].phase != "connect" or fault.options["how"] == "stop_listening":
            continue
        rows.run("UPDATE faults SET seen = seen + 1 WHERE id = ?", (row["id"],))
        if row["seen"] >= fault.skip and (fault.times is None or row["fired"] < fault.times):
            _count(rows, row["id"])
            return fault
    return None


def mark_fired(rows: Rows, number: int) -> None:
    """Count a fault that acts on the listener rather than on a request."""
    _count(rows, number)


def list_faults(rows: Rows) -> list[Doc]:
    """Every fault ever armed, with how many requests it matched (`seen`) and how often it fired."""
    return [
        {
            **json.loads(row["spec"]),
            "id": row["id"],
            "seen": row["seen"],
            "fired": row["fired"],
            "cleared": bool(row["cleared"]),
        }
        for row in rows.all("SELECT * FROM faults ORDER BY id")
    ]


def clear_faults(rows: Rows) -> None:
    """Disarm all faults; their counts stay readable."""
    rows.run("UPDATE faults SET cleared = 1")


def _armed(rows: Rows) -> list[Doc]:
    return rows.all("SELECT * FROM faults WHERE NOT cleared ORDER BY id")


def _count(rows: Rows, number: int) -> None:
    rows.run("UPDATE faults SET fired = fired + 1 WHERE id = ?", (number,))
