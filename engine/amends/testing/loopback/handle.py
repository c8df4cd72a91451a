"""`LoopbackSystem`: one handle for a loopback system, whether it runs in a thread here or as a process of its own.

    with LoopbackSystem.start("partner") as partner:
        partner.arm("drop_after_commit", method="POST", path="/v1/reservations", how="rst")
        ...
        assert partner.fired() == 1
        assert partner.count("reservation") == 1

Every method speaks the control API over HTTP, so both modes behave the same, and another process can `attach`.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from amends.testing.loopback.catalog import build_system
from amends.testing.loopback.control import PREFIX
from amends.testing.loopback.faults import FaultKind
from amends.testing.loopback.server import LoopbackServer
from amends.testing.loopback.wire import Doc, as_doc

_START_WAIT_S = 10.0


class ControlError(Exception):
    """The control API refused a call; the text says why and what there is."""


class LoopbackSystem:
    """A running loopback system. Make one with `start`, `spawn` or `attach`; it is a context manager."""

    def __init__(self, name: str, url: str, control_url: str, pid: int, stop: Callable[[], None]) -> None:
        self.name = name
        self.url = url
        self.control_url = control_url
        self.pid = pid
        self._stop = stop

    @classmethod
    def start(
        cls, name: str, *, state: Path | None = None, port: int = 0, settings: Mapping[str, Any] | None = None
    ) -> LoopbackSystem:
        """Run the system in threads of this process; in memory, unless `state` names a file."""
        server = LoopbackServer(build_system(name), state, port)
        server.start()
        handle = cls(name, server.url, server.control_url, os.getpid(), server.stop)
        handle.configure(**(settings or {}))
        return handle

    @classmethod
    def spawn(
        cls, name: str, *, state: Path, port: int = 0, settings: Mapping[str, Any] | None = None
    ) -> LoopbackSystem:
        """Run the system as a process in its own session, so that killing the caller does not kill it."""
        process = subprocess.Popen(
            [sys.executable, "-m", "amends.testing.loopback", name, "--state", str(state), "--port", str(port)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

        def stop() -> None:
            process.terminate()
            process.wait(_START_WAIT_S)

        if process.stdout is None:
            raise ControlError("the loopback process has no output to read its address from")
        with process.stdout as output:
            line = output.readline()
        if not line:
            process.wait(_START_WAIT_S)
            raise ControlError(f"the loopback process for `{name}` ended with {process.returncode} before it listened")
        said = json.loads(line)
        handle = cls(name, said["url"], said["control_url"], said["pid"], stop)
        handle.configure(**(settings or {}))
        return handle

    @classmethod
    def attach(cls, url: str) -> LoopbackSystem:
        """A handle on a system that somebody else started, by either of its addresses; `stop` leaves it running."""
        about = cls("", url, url, 0, lambda: None).about()
        return cls(about["system"], about["url"], about["control_url"], about["pid"], lambda: None)

    def about(self) -> Doc:
        """The system's name, addresses, process id and endpoints."""
        return self._doc("GET", "")

    def arm(self, kind: FaultKind, **parameters: Any) -> int:
        """Arm a fault (parameters: `faults.Fault` and the kind's options) and return its number."""
        return int(self._call("POST", "faults", {"kind": kind, **parameters})["id"])

    def fired(self, fault: int | None = None) -> int:
        """How often one armed fault fired, or all of them together."""
        return sum(row["fired"] for row in self.faults() if fault in (None, row["id"]))

    def unfired(self) -> list[Doc]:
        """Armed faults that never fired: a test that armed one in vain has tested nothing."""
        return [row for row in self.faults() if not row["fired"]]

    def faults(self) -> list[Doc]:
        """Every fault ever armed, with `seen` and `fired`."""
        return self._list("faults")

    def clear_faults(self) -> None:
        """Disarm all faults."""
        self._call("DELETE", "faults")

    def effects(self, kind: str | None = None, *, state: str | None = None, actor: str | None = "agent") -> list[Doc]:
        """Effects in order of appearance, by default those that API clients caused; `actor=None` means anybody's."""
        return self._list("effects", kind=kind, state=state, actor=actor)

    def present(self, kind: str | None = None) -> list[Doc]:
        """What API clients caused and is still there."""
        return self.effects(kind, state="present")

    def count(self, kind: str, state: str = "present") -> int:
        """How many effects of a kind API clients left in this state."""
        return self.counts().get(kind, {}).get(state, 0)

    def counts(self, actor: str | None = "agent") -> dict[str, dict[str, int]]:
        """How many effects there are: kind -> state -> number."""
        return self._doc("GET", "effects/counts", query={"actor": actor})

    def effect_events(self) -> list[Doc]:
        """Every creation, change and removal in the order in which it happened."""
        return self._list("effects/events")

    def requests(self, method: str | None = None, path: str | None = None) -> list[Doc]:
        """The request log in order of arrival; `path` may be a pattern with `*`."""
        return self._list("requests", method=method, path=path)

    def objects(self, collection: str) -> list[Doc]:
        """A collection's documents as they truly are, whatever reads are told to say."""
        return self._list("objects", collection=collection)

    def configure(self, **settings: Any) -> None:
        """Change settings of the running system."""
        if settings:
            self._call("PUT", "settings", settings)

    def control(self, action: str, **parameters: Any) -> Any:
        """Run one of the system's own control actions (seed, settle, lock, …)."""
        return self._call("POST", "actions", {"action": action, **parameters})

    def foreign(
        self, method: str, path: str, body: Any = None, *, actor: str = "somebody-else", account: str = ""
    ) -> Doc:
        """Make an API request as another actor: no credential, no faults, no log. Returns `{status, body}`."""
        asked = {"method": method, "path": path, "body": body, "actor": actor, "account": account}
        return self._doc("POST", "foreign", asked)

    def reset(self, *, settings: bool = False) -> None:
        """Forget objects, effects, requests and faults; settings too when asked."""
        self._call("POST", "reset", {"settings": settings})

    def stop(self) -> None:
        """End the system (not one that was attached)."""
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _list(self, call: str, **query: str | None) -> list[Doc]:
        rows: list[Doc] = self._call("GET", call, query=query)
        return rows

    def _doc(self, method: str, call: str, body: Any = None, query: Mapping[str, str | None] | None = None) -> Doc:
        return as_doc(self._call(method, call, body, query))

    def _call(self, method: str, call: str, body: Any = None, query: Mapping[str, str | None] | None = None) -> Any:
        asked = urlencode({name: value for name, value in (query or {}).items() if value is not None})
        address = urlsplit(self.control_url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_START_WAIT_S)
        try:
            connection.request(
                method, f"{PREFIX}/{call}?{asked}", json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if "error" in answer:
            raise ControlError(answer["error"])
        return answer["result"]
