"""The fault proxy's inside: an addon for mitmdump that commits upstream and then misbehaves towards the client.

Lines (a listening port before an upstream each) are opened and faults armed over a control port. Every fault counts how
often it fired, and every request says how often it was sent upstream: a test that armed a fault in vain must see it.
`systems.mitm` is the other end; the kinds and parameters are described there.
"""

import asyncio
import fnmatch
import json
import socket
import struct
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mitmproxy import ctx, http, tcp
from mitmproxy.net.http.http1 import assemble_request

READS = ("GET", "HEAD", "OPTIONS")
NOT_YET = ("drop_before_commit", "delay_before_commit", "land_late", "answer_without_commit")


@dataclass
class Fault:
    """One armed fault, as `systems.mitm.HttpLine.arm` was told."""

    id: int
    line: int
    kind: str
    method: str = "*"
    path: str = "*"
    contains: str = ""
    times: int | None = 1
    skip: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    seen: int = 0
    fired: int = 0
    landed: int = 0

    def is_due(self, line: int, method: str, path: str, content: bytes) -> bool:
        """Whether it may fire on this request or message; counts it as seen if it is about such a one."""
        wanted = self.method in ("*", "reads" if method in READS else "writes", method)
        if line != self.line or not wanted or not fnmatch.fnmatchcase(path, self.path):
            return False
        if self.contains.encode() not in content:
            return False
        self.seen += 1
        return self.seen > self.skip and (self.times is None or self.fired < self.times)


@dataclass
class Seen:
    """One request that came in on a line, how often it was sent upstream, and what upstream said."""

    line: int
    method: str
    path: str
    fault: str = ""
    sent: int = 0
    status: int = 0


class Faults:
    """The addon."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.upstreams: dict[int, str] = {}
        self.flows: dict[str, tuple[Fault | None, Seen]] = {}
        self.cutting: dict[str, Fault] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def load(self, loader: Any) -> None:
        """Add the option that names the control port."""
        loader.add_option("amends_control", int, 0, "Port of the fault control.")

    # --- HTTP lines

    async def request(self, flow: http.HTTPFlow) -> None:
        """Answer the control port; decide which fault a request meets and do what comes before or instead of it."""
        line = _line(flow)
        if line == ctx.options.amends_control:
            flow.response = self._control(flow.request)
            return
        path = urlsplit(flow.request.path).path
        content = flow.request.raw_content or b""
        fault = self._fire(line, flow.request.method, path, content)
        kind = fault.kind if fault else ""
        entry = Seen(line, flow.request.method, path, fault=kind, sent=0 if kind in NOT_YET else 1)
        self.seen.append(entry)
        self.flows[flow.id] = (fault, entry)
        if fault is None:
            return
        if kind == "delay_before_commit":
            await asyncio.sleep(float(fault.options["seconds"]))  # cancelled if the client leaves
            entry.sent = 1
        elif kind == "answer_without_commit":
            status, body = int(fault.options["status"]), str(fault.options["body"])
            flow.response = http.Response.make(status, body, {"content-type": "application/json"})
        elif kind == "drop_before_commit":
            _cut(flow, fault.options["how"])
        elif kind == "land_late":
            raw = assemble_request(_closing(flow.request))
            self._later(self._land(fault, entry, raw))
            _cut(flow, fault.options["how"])

    async def response(self, flow: http.HTTPFlow) -> None:
        """Upstream has committed: withhold, spoil or delay its answer."""
        fault, entry = self.flows.pop(flow.id, (None, None))
        if entry is None or flow.response is None:
            return
        if entry.sent:
            entry.status = flow.response.status_code
        if fault is None:
            return
        options, response = fault.options, flow.response
        match fault.kind:
            case "drop_after_commit" if options["how"] == "cut_body":
                whole = response.raw_content or b""
                response.headers["connection"] = "close"
                response.raw_content = whole[: len(whole) // 2]
                response.headers["content-length"] = str(len(whole))
            case "drop_after_commit":
                _cut(flow, options["how"])
            case "delay_after_commit":
                await asyncio.sleep(float(options["seconds"]))
            case "error_after_commit":
                flow.response = http.Response.make(int(options["status"]), str(options["body"]))
            case "truncate_answer":
                whole = response.content or b""
                response.content = whole[: len(whole) // 2]
            case "html_answer":
                flow.response = http.Response.make(
                    200, "<html><body>It works!</body></html>", {"content-type": "text/html"}
                )
            case "empty_answer":
                flow.response = http.Response.make(200, b"")
            case "make_two":
                entry.sent += 1
                await self._send(assemble_request(_closing(flow.request)), entry.line)
                fault.landed += 1

    # --- TCP lines

    def tcp_message(self, flow: tcp.TCPFlow) -> None:
        """Cut the client off at the message that a fault names, or at upstream's answer to it."""
        message, line = flow.messages[-1], _line(flow)
        if not message.from_client:
            if flow.id in self.cutting:
                del self.cutting[flow.id]
                message.content = b""
                _abort(flow)
            return
        fault = self._fire(line, "TCP", "", message.content)
        if fault is None:
            return
        before = fault.kind == "drop_before_commit"
        self.seen.append(Seen(line, "TCP", "", fault=fault.kind, sent=0 if before else 1))
        if before:
            message.content = b""
            _abort(flow)
        else:
            self.cutting[flow.id] = fault

    def _fire(self, line: int, method: str, path: str, content: bytes) -> Fault | None:
        """The fault that this request or message meets: of those that are due, the one armed first."""
        due = [fault for fault in self.faults if fault.is_due(line, method, path, content)]
        if due:
            due[0].fired += 1
        return due[0] if due else None

    # --- control

    def _control(self, request: http.Request) -> http.Response:
        address = urlsplit(request.path)
        line = int(parse_qs(address.query).get("line", ["0"])[0])
        told = json.loads(request.content or b"{}")
        answer: object = None
        match request.method, address.path:
            case "POST", "/lines":
                self.upstreams[int(told["port"])] = str(told["upstream"])
                self._listen()
            case "DELETE", "/lines":
                self.upstreams.pop(line, None)
                self._listen()
            case "POST", "/faults":
                fault = Fault(len(self.faults) + 1, **told)
                self.faults.append(fault)
                answer = {"id": fault.id}
            case "GET", "/faults":
                answer = [asdict(fault) for fault in self.faults if fault.line == line]
            case "DELETE", "/faults":
                for fault in self.faults:
                    if fault.line == line:
                        fault.times = 0
            case "GET", "/requests":
                answer = [asdict(seen) for seen in self.seen if seen.line == line]
            case "GET", "/":
                answer = {"lines": self.upstreams}
            case _:
                return http.Response.make(404, b"null")
        return http.Response.make(200, json.dumps(answer), {"content-type": "application/json"})

    def _listen(self) -> None:
        control = f"reverse:http://127.0.0.1:9@127.0.0.1:{ctx.options.amends_control}"
        lines = [f"reverse:{upstream}@127.0.0.1:{port}" for port, upstream in self.upstreams.items()]
        ctx.options.update(mode=[control, *lines])

    # --- sending ourselves

    async def _land(self, fault: Fault, entry: Seen, raw: bytes) -> None:
        await asyncio.sleep(float(fault.options["seconds"]))
        entry.sent += 1
        entry.status = await self._send(raw, entry.line)
        fault.landed += 1

    async def _send(self, raw: bytes, line: int) -> int:
        upstream = urlsplit(self.upstreams[line])
        reader, writer = await asyncio.open_connection(upstream.hostname, upstream.port)
        writer.write(raw)
        answer = await reader.read()
        writer.close()
        return int(answer.split(b" ", 2)[1])

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


def _line(flow: http.HTTPFlow | tcp.TCPFlow) -> int:
    return int(flow.client_conn.sockname[1])


def _closing(request: http.Request) -> http.Request:
    copy = request.copy()
    copy.headers["connection"] = "close"
    return copy


def _cut(flow: http.HTTPFlow, how: str) -> None:
    if how == "rst":
        _abort(flow)
    flow.kill()


def _abort(flow: http.HTTPFlow | tcp.TCPFlow) -> None:
    """Reset the client's connection: what was not read yet is lost, and it knows at once."""
    for handler in ctx.master.addons.get("proxyserver").connections.values():
        if handler.client.id == flow.client_conn.id:
            transport = handler.transports[handler.client].writer.transport
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()


addons = [Faults()]
