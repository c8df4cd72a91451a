"""mitmproxy as a fault proxy: a line stands before a system, passes everything on, and does one wrong thing when armed.

    line = mitm.line(unleash.url)
    line.arm("drop_after_commit", method="POST", path="/api/admin/*")
    ...  # a client of line.url: the request is committed upstream, its answer never comes
    assert line.fired() == 1
    assert line.sent(method="POST") == 1

Kinds are named as those of `amends.testing.loopback.faults`; effects are counted at the system, not here.
"""

from __future__ import annotations

import fnmatch
import socket
import time
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from systems.catalog import BLOCKS, HERE, HOME
from systems.leases import Lease
from systems.server import Server, require
from systems.system import System
from systems.web import want

_BLOCK = BLOCKS["mitmproxy"]
_OPEN_SECONDS = 10.0

HttpFault: TypeAlias = Literal[
    "drop_before_commit",  # nothing is sent upstream; how: fin, rst
    "drop_after_commit",  # upstream answered; the client is cut off; how: fin, rst, cut_body
    "delay_before_commit",  # seconds; if the client leaves meanwhile, upstream never gets it
    "delay_after_commit",  # upstream answered; the answer waits; seconds
    "error_after_commit",  # upstream answered; the client is told status and body
    "truncate_answer",  # half of the answer, as if it were whole
    "html_answer",  # upstream answered; the client is told 200 with a page
    "empty_answer",  # upstream answered; the client is told 200 with nothing
    "answer_without_commit",  # nothing is sent upstream; the client is told status and body
    "make_two",  # upstream gets it a second time before the client is answered
    "land_late",  # the client is cut off now; upstream gets it after seconds; how: fin, rst
]
TcpFault: TypeAlias = Literal["drop_before_commit", "drop_after_commit"]

_OPTIONS: dict[str, dict[str, Any]] = {
    "drop_before_commit": {"how": "fin"},
    "drop_after_commit": {"how": "fin"},
    "delay_before_commit": {"seconds": 1.0},
    "delay_after_commit": {"seconds": 1.0},
    "error_after_commit": {"status": 503, "body": ""},
    "truncate_answer": {},
    "html_answer": {},
    "empty_answer": {},
    "answer_without_commit": {"status": 200, "body": "{}"},
    "make_two": {},
    "land_late": {"seconds": 1.0, "how": "fin"},
}


@dataclass(frozen=True, slots=True)
class _Line:
    """A port before a system. Faults act on the first request that they match, the one armed first."""

    port: int
    control_url: str

    def faults(self) -> list[dict[str, Any]]:
        """Every fault ever armed here, with `seen`, `fired` and `landed` (second or late requests that got through)."""
        return list(want("GET", f"{self.control_url}/faults?line={self.port}"))

    def fired(self, fault: int | None = None) -> int:
        """How often one armed fault fired, or all of them together."""
        return sum(row["fired"] for row in self.faults() if fault in (None, row["id"]))

    def unfired(self) -> list[dict[str, Any]]:
        """Armed faults that never fired: a test that armed one in vain has tested nothing."""
        return [row for row in self.faults() if not row["fired"]]

    def clear_faults(self) -> None:
        """Disarm all faults."""
        want("DELETE", f"{self.control_url}/faults?line={self.port}")

    def requests(self, method: str = "*", path: str = "*") -> list[dict[str, Any]]:
        """What came in, in order: `method`, `path`, `fault`, how often it was `sent` upstream, upstream's `status`."""
        rows = want("GET", f"{self.control_url}/requests?line={self.port}")
        return [row for row in rows if method in ("*", row["method"]) and fnmatch.fnmatchcase(row["path"], path)]

    def sent(self, method: str = "*", path: str = "*") -> int:
        """How many requests reached upstream."""
        return sum(row["sent"] for row in self.requests(method, path))

    def _arm(self, kind: str, **told: Any) -> int:
        return int(want("POST", f"{self.control_url}/faults", {"line": self.port, "kind": kind, **told})["id"])


class HttpLine(_Line):
    """A line before an HTTP system, at `url`."""

    @property
    def url(self) -> str:
        """Where clients go instead of the system's own address."""
        return f"http://127.0.0.1:{self.port}"

    def arm(
        self,
        kind: HttpFault,
        *,
        method: str = "writes",
        path: str = "*",
        contains: str = "",
        times: int | None = 1,
        skip: int = 0,
        **options: Any,
    ) -> int:
        """Arm a fault and answer its number; raises ValueError for an option that the kind does not have.

        `method` is one, `writes`, `reads` or `*`; `path` a shell pattern; `contains` must occur in the body; the first
        `skip` matches pass, then `times` (None: all) meet the fault.
        """
        unknown = set(options) - set(_OPTIONS[kind])
        if unknown:
            raise ValueError(
                f"{kind} has no {', '.join(sorted(unknown))}; it has {', '.join(_OPTIONS[kind]) or 'none'}"
            )
        told = {"method": method, "path": path, "contains": contains, "times": times, "skip": skip}
        return self._arm(kind, options={**_OPTIONS[kind], **options}, **told)

    def wait_until_landed(self, fault: int, seconds: float = 10.0) -> None:
        """Wait until upstream has answered what `land_late` kept back; raises TimeoutError."""
        until = time.monotonic() + seconds
        while not any(row["landed"] for row in self.faults() if row["id"] == fault):
            if time.monotonic() > until:
                raise TimeoutError(f"fault {fault} has not landed after {seconds:g} s")
            time.sleep(0.02)


class TcpLine(_Line):
    """A line before a system that speaks something else, at `host` and `port`; its messages are matched by content."""

    @property
    def host(self) -> str:
        """The address."""
        return "127.0.0.1"

    def arm(self, kind: TcpFault, *, contains: str = "COMMIT", times: int | None = 1, skip: int = 0) -> int:
        """Cut the client off (RST) at a message that contains this text: before upstream gets it, or at its answer."""
        return self._arm(kind, contains=contains, times=times, skip=skip)


class Mitm(System):
    """A running proxy; it needs no system to start and takes lines at any time."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._leases: list[Lease] = []

    @classmethod
    def start(cls) -> Self:
        """Start it; raises NotInstalled, StartFailed."""
        require(_BLOCK)
        lease = Lease.take()
        port = lease.port
        settings = {
            "amends_control": port,
            "confdir": HOME / "mitmproxy",
            "connection_strategy": "lazy",
            "http2": "false",
        }
        server = Server.start(
            "mitmproxy",
            [
                *(_BLOCK.folder / "bin" / "mitmdump", "--quiet", "-s", HERE / "mitm_addon.py"),
                *("--mode", f"reverse:http://127.0.0.1:9@127.0.0.1:{port}"),
                *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")),
            ],
            lease=lease,
            ready=lambda _: want("GET", f"http://127.0.0.1:{port}/"),
        )
        return cls(server)

    def line(self, upstream: str) -> HttpLine:
        """Open a line before an HTTP system: `upstream` is its address, without a path."""
        parts = urlsplit(upstream)
        return HttpLine(*self._open(f"http://{parts.hostname}:{parts.port}"))

    def tcp_line(self, host: str, port: int) -> TcpLine:
        """Open a line before any TCP system."""
        return TcpLine(*self._open(f"tcp://{host}:{port}"))

    def stop(self) -> None:
        """End it and with it every line."""
        super().stop()
        for lease in self._leases:
            lease.release()

    def _open(self, upstream: str) -> tuple[int, str]:
        lease = Lease.take()
        self._leases.append(lease)
        want("POST", f"{self.url}/lines", {"port": lease.port, "upstream": upstream})
        until = time.monotonic() + _OPEN_SECONDS
        while not _listens(lease.port):
            if time.monotonic() > until:
                raise TimeoutError(f"the proxy does not listen on {lease.port}:\n{self.server.tail()}")
            time.sleep(0.02)
        return lease.port, self.url


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
