"""One request from arrival to verdict: authenticate, apply told faults, handle in a transaction, decide what leaves.

Nothing here knows about sockets. The result is a `Delivery`, which says what to put on the wire or how to cut it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from amends.testing.loopback import faults
from amends.testing.loopback.effects import Origin
from amends.testing.loopback.faults import Cut, Fault, Plan
from amends.testing.loopback.objects import TRUTH, View
from amends.testing.loopback.requests import close_request, open_request
from amends.testing.loopback.store import Store
from amends.testing.loopback.system import Route, Router, System, Unit, open_unit
from amends.testing.loopback.wire import GATEWAY_PAGE, HTML_TYPE, ApiError, Request, Response


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the socket is told to do: send the response, or cut the line (the response then is what was lost)."""

    response: Response
    cut: Cut | None = None
    hold_s: float = 0.0


class _TakeBackError(Exception):
    """Rolls a handler's transaction back although it succeeded, and carries its answer out."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class Exchange:
    """Handles requests for one system. Thread-safe: handlers run one at a time, delays run outside the lock."""

    def __init__(self, system: System, store: Store) -> None:
        self.system = system
        self.store = store
        self.stopping = threading.Event()
        self._router = Router(system.routes())
        self._claims: set[str | None] = set()
        self._claims_lock = threading.Lock()

    def handle(self, request: Request) -> Delivery:
        """Log, misbehave as told, handle, and log the end before anything is sent."""
        found = self._router.find(request)
        route, request = found if found is not None else (None, request)
        reads = route.reads if route is not None else request.method == "GET"
        with self.store.transaction() as rows:
            seq = open_request(rows, request)
            plan = faults.draw(rows, request, reads=reads)
        delivery, handled = self._carry_out(request, route, plan, seq)
        with self.store.transaction() as rows:
            answered = delivery.response.status if delivery.cut in (None, "cut_body") else None
            close_request(rows, seq, handled=handled, answered=answered, fault=plan.names)
        return delivery

    def endpoints(self) -> list[str]:
        """Every endpoint as `METHOD /template`."""
        return self._router.templates()

    def act(self, request: Request, actor: str, account: str) -> Response:
        """Run a request as another actor: no credential, no faults, no log. This is how tests seed and edit."""
        found = self._router.find(request)
        if found is None:
            return self.system.render_error(ApiError(404, "not_found", f"no such endpoint {request.path}"))
        route, request = found
        return self._commit(request, route, Plan(), Origin(actor=actor, account=account))

    def _carry_out(self, request: Request, route: Route | None, plan: Plan, seq: int) -> tuple[Delivery, int | None]:
        try:
            account, key = self._admit(request)
            origin = Origin(account=account, request_seq=seq)
            if route is None:
                raise ApiError(404, "not_found", f"no such endpoint {request.method} {request.path}")
            with self._claim(key):
                self._wait(plan.at("before"))
                instead = plan.at("instead")
                if instead is not None:
                    return self._instead(instead, request, route, origin), None
                response = self._commit(request, route, plan, origin)
        except ApiError as error:
            response = self.system.render_error(error)
        self._wait(plan.at("after"))
        return self._answer(plan.at("answer"), response), response.status

    def _admit(self, request: Request) -> tuple[str, str | None]:
        """Authenticate, and name what the request holds while it is handled."""
        if request.malformed:
            raise ApiError(400, "malformed_body", "the body is not valid JSON")
        with self.store.transaction() as rows:
            unit = open_unit(self.system, rows, Origin())
            account = self.system.authenticate(unit, request)
            return account, self.system.claim_key(unit, request)

    @contextmanager
    def _claim(self, key: str | None) -> Generator[None]:
        with self._claims_lock:
            if key is not None and key in self._claims:
                raise ApiError(409, "idempotency_key_in_use", "a request with this key is being handled")
            self._claims.add(key)
        try:
            yield
        finally:
            with self._claims_lock:
                self._claims.discard(key)

    def _instead(self, fault: Fault, request: Request, route: Route, origin: Origin) -> Delivery:
        if fault.kind == "land_late":
            self._later(fault.options["seconds"], lambda: self._commit(request, route, Plan(), origin))
            return Delivery(Response(504), cut=fault.options["how"], hold_s=fault.options["hold_s"])
        response = self._told_failure(fault)
        if fault.options["stored"]:
            with self.store.transaction() as rows:
                self.system.remember(open_unit(self.system, rows, origin), request, response, forced=True)
        return Delivery(response)

    def _commit(self, request: Request, route: Route, plan: Plan, origin: Origin) -> Response:
        """Handle in one transaction. A refusal rolls everything back and is rendered; so does a told lie."""
        how = plan.at("how")
        try:
            with self.store.transaction() as rows:
                view = _view(plan.at("reads"))
                unit = open_unit(self.system, rows, origin, view, request.headers.get("host", ""))
                self.system.tick(unit)
                response = self._once(unit, request, route, how)
                if how is not None and how.kind == "answer_without_commit":
                    raise _TakeBackError(_overridden(response, how))
        except _TakeBackError as lie:
            return lie.response
        for hook in unit.after_commit:
            hook()
        return response

    def _once(self, unit: Unit, request: Request, route: Route, how: Fault | None) -> Response:
        stored = self.system.replay(unit, request)
        if stored is not None:
            return stored
        if how is not None and how.kind == "already_gone":
            foreign = open_unit(self.system, unit.rows, replace(unit.origin, actor="foreign"))
            self._attempt(replace(foreign, after_commit=unit.after_commit), request, route)
        response = self._attempt(unit, request, route)
        if how is not None and how.kind == "make_two":
            self._attempt(unit, request, route)
        self.system.remember(unit, request, response)
        return response

    def _attempt(self, unit: Unit, request: Request, route: Route) -> Response:
        """Run the handler; a refusal takes back what it did and becomes its rendered answer."""
        try:
            with unit.rows.savepoint():
                return route.handler(unit, request)
        except ApiError as error:
            return self.system.render_error(error)

    def _answer(self, fault: Fault | None, response: Response) -> Delivery:
        if fault is None:
            return Delivery(response)
        if fault.kind == "drop_after_commit":
            return Delivery(response, cut=fault.options["how"], hold_s=fault.options["hold_s"])
        if fault.kind == "html_answer":
            page = fault.options["body"] or GATEWAY_PAGE
            return Delivery(Response(fault.options["status"], page, content_type=HTML_TYPE))
        if fault.kind == "empty_answer":
            return Delivery(Response(fault.options["status"]))
        return Delivery(self._told_failure(fault))

    def _told_failure(self, fault: Fault) -> Response:
        """The answer that a `refuse` or `error_after_commit` describes."""
        options = fault.options
        if options["form"] == "native" and options["body"] is None:
            status = options["status"] or 0
            code = options["code"] or _CODES.get(
                status, "internal_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "refused"
            )
            error = ApiError(status or 409, code, options["message"], headers=options["headers"])
            response = self.system.render_error(error)
            return replace(response, status=options["status"]) if options["status"] else response
        status = options["status"] or 409
        if options["form"] == "empty":
            return Response(status, headers=options["headers"])
        if options["form"] == "html":
            return Response(status, options["body"] or GATEWAY_PAGE, options["headers"], HTML_TYPE)
        return Response(status, options["body"] if options["body"] is not None else {}, options["headers"])

    def _wait(self, fault: Fault | None) -> None:
        if fault is not None:
            self.stopping.wait(fault.options["seconds"])

    def _later(self, seconds: float, work: Callable[[], Any]) -> None:
        def land() -> None:
            if not self.stopping.wait(seconds):
                with suppress(ApiError):
                    work()

        threading.Thread(target=land, name="late landing", daemon=True).start()


_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    422: "unprocessable",
    429: "rate_limited",
}


def _view(fault: Fault | None) -> View:
    if fault is None:
        return TRUTH
    if fault.kind == "lag_reads":
        return View(lag_s=fault.options["seconds"], lag_by_id=fault.options["by_id"])
    return View(says=fault.options["says"])


def _overridden(response: Response, fault: Fault) -> Response:
    status = fault.options["status"]
    body = fault.options["body"]
    if status is not None:
        return Response(status, body)
    return response if body is None else replace(response, body=body)
