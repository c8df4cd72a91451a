"""The control API: how a test, a scenario or the demo arms faults, reads what happened and acts as somebody else.

It lives under `/__control__/` on the system's own port and, so that it stays reachable while the system refuses
connections, on a second port. Control calls are neither logged nor counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from amends.testing.loopback import faults
from amends.testing.loopback.effects import Origin, count_effects, list_effects, list_events
from amends.testing.loopback.exchange import Exchange
from amends.testing.loopback.faults import BadFault, Fault
from amends.testing.loopback.objects import Objects
from amends.testing.loopback.requests import list_requests
from amends.testing.loopback.store import TABLES, write_setting
from amends.testing.loopback.system import open_unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response

PREFIX = "/__control__"


class Control:
    """Answers control requests for one exchange. `pause_listening(seconds)` is the listener's own misbehaviour."""

    def __init__(
        self, exchange: Exchange, addresses: Callable[[], Doc], pause_listening: Callable[[float], None]
    ) -> None:
        self._exchange = exchange
        self._addresses = addresses
        self._store = exchange.store
        self._pause_listening = pause_listening
        self._calls: dict[tuple[str, str], Callable[[Request], Any]] = {
            ("GET", ""): lambda _: self._about(),
            ("POST", "faults"): lambda request: {"id": self._arm(faults.parse_fault(request.body))},
            ("GET", "faults"): lambda _: self._read(faults.list_faults),
            ("DELETE", "faults"): lambda _: self._read(faults.clear_faults),
            ("GET", "effects"): self._effects,
            ("GET", "effects/events"): lambda _: self._read(list_events),
            ("GET", "effects/counts"): lambda request: self._read(
                lambda rows: count_effects(rows, request.query.get("actor"))
            ),
            ("GET", "requests"): lambda request: self._read(
                lambda rows: list_requests(rows, request.query.get("method"), request.query.get("path"))
            ),
            ("GET", "objects"): lambda request: self._read(
                lambda rows: Objects(rows).truth(request.query.get("collection", ""))
            ),
            ("PUT", "settings"): self._configure,
            ("POST", "actions"): self._act,
            ("POST", "foreign"): self._foreign,
            ("POST", "reset"): self._reset,
        }

    def handle(self, request: Request) -> Response:
        """Answer one control request with `{"result": …}` or `{"error": …}`."""
        call = self._calls.get((request.method, request.path.removeprefix(PREFIX).strip("/")))
        if call is None:
            known = ", ".join(f"{method} {path}" for method, path in self._calls)
            return Response(404, {"error": f"no control call `{request.method} {request.path}`; there are {known}"})
        try:
            return Response(200, {"result": call(request)})
        except BadFault as error:
            return Response(400, {"error": str(error)})
        except ApiError as error:
            return Response(error.status, {"error": error.message})

    def _about(self) -> Doc:
        about = {"system": self._exchange.system.name, "pid": os.getpid(), "endpoints": self._exchange.endpoints()}
        return {**about, **self._addresses()}

    def _read(self, query: Callable[[Any], Any]) -> Any:
        with self._store.transaction() as rows:
            return query(rows)

    def _arm(self, fault: Fault) -> int:
        with self._store.transaction() as rows:
            number = faults.arm(rows, fault)
            if fault.options.get("how") == "stop_listening":
                faults.mark_fired(rows, number)
        if fault.options.get("how") == "stop_listening":
            self._pause_listening(fault.options["seconds"])
        return number

    def _effects(self, request: Request) -> Any:
        wanted = request.query
        return self._read(lambda rows: list_effects(rows, wanted.get("kind"), wanted.get("state"), wanted.get("actor")))

    def _configure(self, request: Request) -> None:
        known = {"clock_skew_s", "marker_keys", *self._exchange.system.settings}
        unknown = sorted(set(request.body) - known)
        if unknown:
            raise ApiError(400, "unknown_setting", f"no setting `{unknown[0]}`; there are {', '.join(sorted(known))}")
        with self._store.transaction() as rows:
            for name, value in request.body.items():
                write_setting(rows, name, value)

    def _act(self, request: Request) -> Any:
        """`{"action": name, "actor": who, …parameters}` runs one of the system's own actions."""
        parameters = dict(request.body)
        actions = self._exchange.system.actions()
        action = actions.get(str(parameters.pop("action", "")))
        if action is None:
            raise ApiError(404, "unknown_action", f"there is no such action; there are {', '.join(sorted(actions))}")
        origin = Origin(actor=str(parameters.pop("actor", "control")))
        try:
            with self._store.transaction() as rows:
                unit = open_unit(self._exchange.system, rows, origin)
                result = action(unit, parameters)
        except KeyError as error:
            raise ApiError(400, "missing_parameter", f"this action needs the parameter {error}") from error
        for hook in unit.after_commit:
            hook()
        return result

    def _foreign(self, request: Request) -> Doc:
        """`{"actor", "account", "method", "path", "query", "body"}` runs an API request as somebody else."""
        asked = request.body
        response = self._exchange.act(
            Request(
                method=str(asked["method"]),
                path=str(asked["path"]),
                query=asked.get("query") or {},
                payload=asked.get("body"),
            ),
            actor=str(asked.get("actor", "foreign")),
            account=str(asked.get("account", "")),
        )
        return {"status": response.status, "body": response.body}

    def _reset(self, request: Request) -> None:
        """Forget everything but the settings; `{"settings": true}` forgets those too."""
        keep = () if request.body.get("settings") else ("settings",)
        self._store.clear([table for table in TABLES if table not in keep])
