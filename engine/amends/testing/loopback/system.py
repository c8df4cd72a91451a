"""What a loopback system is made of: routes, handlers that run inside one transaction, and control actions.

A subclass names its product's endpoints and error shape; sockets, faults and logging are not its business.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias
from urllib.parse import unquote

from amends.testing.loopback.effects import Effects, Origin
from amends.testing.loopback.objects import TRUTH, Objects, View
from amends.testing.loopback.store import Rows, read_setting
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, now

MARKER_KEYS = ("amends_action", "action_id", "amends", "effect", "marker")


@dataclass(frozen=True, slots=True)
class Unit:
    """One handler's unit of work: everything it may touch. All of it is committed together, or nothing is."""

    rows: Rows
    objects: Objects
    effects: Effects
    origin: Origin
    defaults: Doc
    base: str = ""
    after_commit: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def setting(self, name: str) -> Any:
        """A setting of this system, as configured through the control API or by default."""
        return read_setting(self.rows, name, self.defaults[name])

    def now(self) -> float:
        """The time as this provider sees it (its clock may be skewed against ours)."""
        return now() + float(self.setting("clock_skew_s"))

    def new_id(self, prefix: str) -> str:
        """A reference that was never given out before."""
        return f"{prefix}{self.rows.next_number(prefix):06d}"


Handler: TypeAlias = Callable[[Unit, Request], Response]
Action: TypeAlias = Callable[[Unit, Doc], Any]


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint. `reads` says that it changes nothing, whatever its HTTP method; `accepts` tells apart what has one
    address, such as the queries and mutations of GraphQL.
    """

    method: str
    template: str
    handler: Handler
    reads: bool = False
    accepts: Callable[[Request], bool] = lambda _request: True


class System(ABC):
    """One emulated product."""

    name: str
    settings: ClassVar[Doc]

    @abstractmethod
    def routes(self) -> Sequence[Route]:
        """Every endpoint."""

    @abstractmethod
    def render_error(self, error: ApiError) -> Response:
        """The product's own error shape."""

    @abstractmethod
    def authenticate(self, unit: Unit, request: Request) -> str:
        """The account that the credential stands for. Raises ApiError when it is missing or wrong."""

    def actions(self) -> Mapping[str, Action]:
        """Control actions by name: how a test or another actor sets state that no client may set."""
        return {}

    def replay(self, unit: Unit, request: Request) -> Response | None:
        """A stored answer to this very request, or None to handle it."""
        return None

    def remember(self, unit: Unit, request: Request, response: Response, *, forced: bool = False) -> None:
        """Called in the transaction with the answer about to be given; `forced` stores even a told refusal."""
        return

    def claim_key(self, unit: Unit, request: Request) -> str | None:
        """What this request holds from arrival to commit; a concurrent one with the same key is refused."""
        return None

    def tick(self, unit: Unit) -> None:
        """Called before each request: whatever the product does by itself as time passes."""
        return


class Router:
    """Finds the route and its path parameters."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(_pattern(route.template), route) for route in routes]

    def find(self, request: Request) -> tuple[Route, Request] | None:
        """The first matching route, and the request with its parameters filled in."""
        for pattern, route in self._routes:
            match = pattern.fullmatch(request.path) if route.method == request.method else None
            if match is not None and route.accepts(request):
                params = {name: unquote(value) for name, value in match.groupdict().items()}
                return route, replace(request, params=params)
        return None

    def templates(self) -> list[str]:
        """Every endpoint as `METHOD /template`, for documentation and tests."""
        return [f"{route.method} {route.template}" for _, route in self._routes]


def open_unit(system: System, rows: Rows, origin: Origin, view: View = TRUTH, host: str = "") -> Unit:
    """A unit of work on an open transaction; `host` is where the client says it called, for absolute addresses."""
    defaults = {"clock_skew_s": 0.0, "marker_keys": list(MARKER_KEYS), **system.settings}
    base = f"http://{host}" if host else ""
    return Unit(rows, Objects(rows, view), Effects(rows, origin), origin, defaults, base)


def marker_of(unit: Unit, *sources: Any) -> str:
    """The client's marker: the first of the known marker keys that one of the documents carries."""
    for source in sources:
        if isinstance(source, str) and source:
            return source
        for key in unit.setting("marker_keys"):
            value = as_doc(source).get(key)
            if isinstance(value, str) and value:
                return value
    return ""


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    literal = [re.escape(part) if index % 2 == 0 else f"(?P<{part}>[^/]+)" for index, part in enumerate(parts)]
    return re.compile("".join(literal))
