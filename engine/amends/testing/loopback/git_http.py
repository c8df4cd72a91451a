"""A real smart-HTTP git server on the loopback interface: `git http-backend` behind a socket, in this process.

It counts what reaches it at its own side and can drop the answer to a push that it has carried out. Connections stay
open between requests as on real servers: only then does a client's transport send a lost push again by itself.
"""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, cast

_POLL_SECONDS = 0.02
_BACKEND_SECONDS = 60.0
_PUSH = "/git-receive-pack"


class GitHttp:
    """Serves every bare repository below `root` as `<url>/<path>.git`; anybody may read and push.

    `wanted`: the whole `Authorization` header that is required, if any. Use as a context manager. Raises `OSError` if
    no port can be had.
    """

    def __init__(self, root: Path, *, wanted: str = "") -> None:
        self.root = root
        self.wanted = wanted
        self.receive_packs = 0  # pushes that reached the server, whatever became of them
        self.dropped = 0  # answers to pushes that were carried out and never answered
        self.requests: list[tuple[str, str]] = []  # method and path of everything that came, in order
        self._to_drop = 0
        self._lock = threading.Lock()
        self._server = _Listener(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="git http", daemon=True
        )

    @property
    def url(self) -> str:
        """Where the repositories are, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def drop_answers(self, times: int) -> None:
        """Carry out the next pushes and close the line instead of answering; `dropped` tells how often it did."""
        with self._lock:
            self._to_drop = times

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self, method: str, path: str) -> None:
        """Note a request that has arrived."""
        with self._lock:
            self.requests.append((method, path))
            self.receive_packs += method == "POST" and path.endswith(_PUSH)

    def drops(self, path: str) -> bool:
        """True if the answer to this carried-out request is to be lost."""
        with self._lock:
            if self._to_drop <= 0 or not path.endswith(_PUSH):
                return False
            self._to_drop -= 1
            self.dropped += 1
            return True


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: GitHttp) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Bridge)


class _Bridge(BaseHTTPRequestHandler):
    """One connection: each request becomes one run of `git http-backend`, told as CGI tells it."""

    protocol_version = "HTTP/1.1"
    timeout = 30.0
    disable_nagle_algorithm = True

    def serve(self) -> None:
        owner = cast("_Listener", self.server).owner
        path, _, query = self.path.partition("?")
        body = self._body()
        owner.count(self.command, path)
        if owner.wanted and self.headers.get("Authorization") != owner.wanted:
            self._answer(401, [("WWW-Authenticate", "Basic")], b"")
            return
        head, _, content = self._backend(owner.root, path, query, body).partition(b"\r\n\r\n")
        if self.command == "POST" and owner.drops(path):
            self.close_connection = True
            return
        fields = [cast("tuple[str, str]", tuple(line.split(": ", 1))) for line in head.decode().splitlines()]
        status = next((value for name, value in fields if name == "Status"), "200")
        self._answer(int(status.split()[0]), [field for field in fields if field[0] != "Status"], content)

    do_GET = do_POST = serve  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: what came is counted."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _backend(self, root: Path, path: str, query: str, body: bytes) -> bytes:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.receivepack",
            "GIT_CONFIG_VALUE_0": "true",
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(root),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_USER": "git",
        }
        argv = ["git", "http-backend"]
        done = subprocess.run(
            argv, input=body, env=environment, capture_output=True, check=False, timeout=_BACKEND_SECONDS
        )
        return done.stdout or b"Status: 500 Internal Server Error\r\n\r\n" + done.stderr

    def _answer(self, status: int, fields: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")  # a client that is not told may send its next request into the end
        self.end_headers()
        self.wfile.write(content)
