"""What the children do: an agent's run loop, a rescuer's sweep, and the naive control.

    python -m amends.testing.crash.worker PROJECT N [--port PORT]

runs N short agent runs in PROJECT, announcing its milestones to a killer on PORT, if one is given.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from amends import bootstrap
from amends.core.canonical import Json
from amends.core.errors import AmendsError, Conflict, JournalBusy
from amends.core.status import ActionStatus
from amends.ports.services import Milestone
from amends.testing.crash.line import Line
from amends.testing.crash.ports import opened
from amends.testing.crash.project import ENVIRONMENT, PARTNER_TOKEN

Ending: TypeAlias = Literal["commit", "fail", "leave", "release", "ask"]
# `leave`: open; `release`: with an outbox; `ask`: with one whose item a person must approve
Errand: TypeAlias = tuple[str, int, Ending]  # order, which attempt at it, how the agent ends the run
BOX, FEE = "-box", "-fee"  # what marks the orders of what is sent without a key
_SWEEP_SECONDS = 0.4


def calls_of(order: str, *, wide: bool = False) -> tuple[tuple[str, dict[str, Json]], ...]:
    """The calls of one run: stock, money, carrier, and a submission that people see. `wide`: also a box and a fee,
    under orders of their own, where nobody absorbs a repeat: the one can be found again, the other cannot.
    """
    address: dict[str, Json] = {"line1": f"{order} Quay"}
    more: tuple[tuple[str, dict[str, Json]], ...] = (
        ("partner.reserve_packaging", {"order": f"{order}{BOX}"}),
        ("partner.book_fee", {"order": f"{order}{FEE}"}),
    )
    return (
        *(more if wide else ()),
        ("partner.reserve_inventory", {"order": order, "sku": "SKU-1", "quantity": 2}),
        ("partner.queue_adjustment", {"order": order, "amount_minor": -500, "currency": "EUR"}),
        ("partner.set_carrier_instructions", {"order": order, "address": address, "notes": "ring twice"}),
        ("partner.submit_for_approval", {"order": order, "kind": "express"}),
    )


def agent(
    project: Path,
    errands: Iterable[Errand],
    line: Line,
    *,
    may_be_refused: bool = False,
    announced: str = "",
    wide: bool = False,
) -> None:
    """One run per errand. A conflict (an earlier run still holds the order) is reported, and the loop goes on. So does
    it where one who slept `may_be_refused`, as the run is another's by now. `announced`: a point of the kit's own.
    """
    engine = opened(project, line, announced)
    try:
        for order, attempt, ending in errands:
            line.say("run", name=f"{order}#{attempt}")
            try:
                line.say("ran", order=order, attempt=attempt, **_run(engine, order, attempt, ending, wide=wide))
            except AmendsError as error:
                if not may_be_refused:
                    raise
                line.say("refused", order=order, error=type(error).__name__, message=error.message)
    finally:
        engine.close()


def _run(engine: bootstrap.Engine, order: str, attempt: int, ending: Ending, *, wide: bool = False) -> dict[str, Json]:
    run = engine.run(workflow="orders", run_key=f"{order}#{attempt}", agent="bot")
    try:
        done = [run.call(name, args).status is ActionStatus.SUCCEEDED for name, args in calls_of(order, wide=wide)]
        if ending == "release":
            run.call("partner.announce", {"order": order, "message": "it is on its way"})
        if ending == "ask":
            run.call("partner.announce_if_approved", {"order": order, "message": "it is on its way"})
    except Conflict as conflict:
        run.fail(f"the order is taken: {conflict.message}", wait_seconds=10)
        return {"run_id": run.run_id, "status": "conflict"}
    if ending == "leave":
        return {"run_id": run.run_id, "status": "left"}
    if ending == "fail" or not all(done):
        outcome = run.fail("the order was cancelled", wait_seconds=10)
    else:
        outcome = run.finish(wait_seconds=10)
    return {"run_id": run.run_id, "status": outcome.status.value}


def rescuer(project: Path, line: Line, *, announced: str = "") -> None:
    """Sweep until told to end: take over what the dead left, and drive it to rest. A journal whose lock somebody holds
    is waited for.
    """
    engine: bootstrap.Engine | None = None
    try:
        while line.say("idle") not in {"q", ""}:
            try:
                engine = engine or opened(project, line, announced, at="after_undo")
                states = engine.recover(wait_seconds=_SWEEP_SECONDS)
            except JournalBusy:
                line.say("busy")
                continue
            line.say("swept", runs=[state.run.run_id for state in states])
    finally:
        if engine is not None:
            engine.close()


def approver(project: Path, line: Line, *, announced: str = "") -> None:
    """A person who says yes to everything, until told to end."""
    engine = opened(project, line, announced)
    try:
        while line.say("idle") not in {"q", ""}:
            for question in engine.approvals():
                try:
                    engine.approve(question.approval_id, by="maya")
                except Conflict as conflict:
                    line.say("refused", message=conflict.message)
            time.sleep(0.05)
    finally:
        engine.close()


def rescue_once(project: Path, line: Line, wait_seconds: float) -> None:
    """One sweep over everything, waiting for due work; says how many take-overs were its own."""
    engine = bootstrap.Engine.open(project, progress=line, mirror=False)
    try:
        line.say("ready")
        states = engine.recover(wait_seconds=wait_seconds)
        me = engine.kit.owners.me().owner_id
        line.say("swept", runs=[state.run.run_id for state in states], owner_id=me)
    finally:
        engine.close()


# --- the naive control --------------------------------------------------------------------------------------


def naive(base_url: str, errands: Iterable[Errand], line: Line) -> None:
    """The same orders by direct calls, with try/except as recovery and nothing written down."""
    for order, attempt, ending in errands:
        line.say("run", name=f"{order}#{attempt}")
        partner = _Partner(base_url, line)
        partner.place(order)
        if ending == "fail":
            partner.take_back(order)
        line.say("ran", order=order, attempt=attempt, status=ending)


class _Partner:
    """A client as one writes it on the first day: no key, no probe, references kept in memory."""

    def __init__(self, base_url: str, line: Line) -> None:
        self._base_url = base_url
        self._line = line
        self._undo: list[tuple[str, str]] = []

    def place(self, order: str) -> None:
        calls = {name.removeprefix("partner."): args for name, args in calls_of(order)}
        stock = self._call("POST", "/v1/reservations", calls["reserve_inventory"])
        money = self._call("POST", "/v1/adjustments", calls["queue_adjustment"])
        carrier = f"/v1/orders/{order}/carrier-instructions"
        self._call("PUT", carrier, calls["set_carrier_instructions"])
        shown = self._call("POST", "/v1/submissions", calls["submit_for_approval"])
        self._undo = [
            ("POST", f"/v1/reservations/{stock['id']}/release"),
            ("POST", f"/v1/adjustments/{money['id']}/void"),
            ("DELETE", carrier),
            ("POST", f"/v1/submissions/{shown['id']}/cancel"),
        ]

    def take_back(self, order: str) -> None:
        self._at("after_freeze", order)
        for method, path in reversed(self._undo):
            self._at("before_undo", order)
            self._send(method, path, {})
            self._at("after_undo", order)

    def _call(self, method: str, path: str, body: dict[str, Json]) -> dict[str, Any]:
        self._at("after_intent", path)
        self._at("before_call", path)
        answer = self._send(method, path, body)
        self._at("after_call", path)
        self._at("after_outcome", path)
        return answer

    def _send(self, method: str, path: str, body: dict[str, Json]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {PARTNER_TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310 - a loopback address
            self._base_url + path, json.dumps(body).encode(), headers, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - a loopback address
            text = answer.read()
        return dict(json.loads(text)) if text else {}

    def _at(self, milestone: Milestone, what: str) -> None:
        self._line.reached(milestone, what, "")


class _Alone:
    """Nobody listens: everybody may go on."""

    def reached(self, milestone: Milestone, run_id: str, action_id: str) -> None:
        """Go on."""


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m amends.testing.crash.worker PROJECT N [--port PORT] [--ending …]`."""
    parser = argparse.ArgumentParser(prog="amends.testing.crash.worker", description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("runs", type=int)
    parser.add_argument("--port", type=int, default=0, help="where a killer listens")
    parser.add_argument("--ending", choices=["commit", "fail", "leave"], default="fail")
    options = parser.parse_args(argv)
    os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
    errands: list[Errand] = [(f"W{os.getpid()}-{n}", 1, options.ending) for n in range(options.runs)]
    if options.port:
        agent(options.project, errands, Line(options.port, f"worker-{os.getpid()}"))
        return 0
    engine = bootstrap.Engine.open(options.project, progress=_Alone(), mirror=False)
    try:
        for order, attempt, ending in errands:
            sys.stdout.write(json.dumps(_run(engine, order, attempt, ending)) + "\n")
    finally:
        engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
