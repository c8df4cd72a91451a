"""Draft pull requests over a real socket: one request per call, found again by the marker, closed and corrected."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from amends.core.registration import check
from amends.spi import Refused
from amends.spi.http import Ambiguous
from amends_git import plugin


class Hub(BaseHTTPRequestHandler):
    """The used part of GitHub: pulls by head, one pull, comments. It can drop an answer after doing the work."""

    pulls, comments, log, drop = [], [], [], 0

    def _reply(self, status, value):
        cls = type(self)
        if cls.drop and self.command != "GET":
            cls.drop -= 1
            return
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _serve(self):
        cls = type(self)
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        cls.log.append((self.command, parts.path, self.headers.get("Authorization")))
        match (self.command, parts.path.removeprefix("/repos/acme/billing/").split("/")):
            case ("POST", ["pulls"]):
                made = {**body, "number": len(cls.pulls) + 1, "state": "open", "merged_at": None, "html_url": "u"}
                cls.pulls.append(made)
                self._reply(201, made)
            case ("GET", ["pulls"]):
                head = parse_qs(parts.query)["head"][0]
                self._reply(200, [item for item in cls.pulls if f"acme:{item['head']}" == head])
            case ("GET", ["pulls", number]):
                self._reply(200, cls.pulls[int(number) - 1])
            case ("PATCH", ["pulls", number]):
                cls.pulls[int(number) - 1].update(body)
                self._reply(200, cls.pulls[int(number) - 1])
            case ("POST", ["issues", _, "comments"]):
                cls.comments.append({**body, "id": 900 + len(cls.comments)})
                self._reply(201, cls.comments[-1])
            case ("GET", ["issues", _, "comments"]):
                self._reply(200, cls.comments)
            case _:
                self._reply(404, {"message": "Not Found"})

    do_GET = do_POST = do_PATCH = _serve  # noqa: N815 - names the library calls

    def log_message(self, *args):
        pass


class Shelf:
    def __init__(self):
        self.capabilities, self.contributions = {}, []

    def capability(self, capability):
        self.capabilities[capability.contract.capability] = capability

    def policies(self, contribution):
        self.contributions.append(contribution)


@pytest.fixture
def hub(bench):
    """The server; the bench's repository has its pull requests there."""
    handler = type("Server", (Hub,), {"pulls": [], "comments": [], "log": [], "drop": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    api = f"http://127.0.0.1:{server.server_port}"
    bench.settings = {"pull_requests": {"api": api, "project": "acme/billing", "token": "env:HUB_TOKEN"}}
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def registered(bench):
    shelf = Shelf()
    plugin.amends_register_capabilities(bench.context(), shelf)
    return shelf


def draft(bench):
    made = bench.action("push", branch="main", commit=bench.remote_ref("main"))
    made.capability = registered(bench).capabilities["git.draft_pr"]
    made.args = {"repo": "billing", "branch": "feature/field", "title": "Add the field", "body": "please look"}
    return made


def test_draft_is_opened_found_closed_and_seen_closed(bench, hub):
    """One mutating request each way, and a separate read after the undo."""
    made = draft(bench)
    made.run()
    assert hub.pulls[0]["draft"] is True
    assert hub.pulls[0]["body"] == f"<!-- amends {made.action_id} -->\nplease look"
    assert (made.probe().seen, made.rung()) == ("applied", "close")
    made.undo()
    assert (made.verify().seen, hub.pulls[0]["state"]) == ("absent", "closed")
    assert [method for method, _, _ in hub.log if method != "GET"] == ["POST", "PATCH"]
    assert {token for _, _, token in hub.log} == {"Bearer value of env:HUB_TOKEN"}


def test_lost_answer_is_found_by_the_marker(bench, hub):
    """The request was carried out and its answer lost: the list shows our marker, once."""
    made = draft(bench)
    made.prepare()
    hub.drop = 1
    with pytest.raises(Ambiguous):
        made.send()
    seen = made.probe()
    assert (seen.seen, seen.reference, len(hub.pulls)) == ("applied", "1", 1)


def test_other_peoples_pull_request_is_not_ours(bench, hub):
    """A pull request of the branch without our marker is neither adopted nor closed."""
    hub.pulls.append({"number": 1, "head": "feature/field", "state": "open", "body": "theirs", "merged_at": None})
    made = draft(bench)
    assert made.probe().seen == "absent"
    with pytest.raises(Refused, match="#1"):
        made.prepare()


def test_merged_pull_request_is_beyond_closing(bench, hub):
    """Somebody merged it: a person decides."""
    made = draft(bench)
    made.run()
    hub.pulls[0].update(state="closed", merged_at="2026-01-01T00:00:00Z")
    assert (made.probe().seen, made.rung()) == ("diverged", "person")


def test_correction_is_a_comment_in_that_pull_request(bench, hub):
    """The correction goes where the signal was, and is found again by its marker."""
    made = draft(bench)
    made.run()
    place = made.capability.place(made.question())
    assert place == "pr:billing/1"
    note = draft(bench)
    note.capability = registered(bench).capabilities["git.correction"]
    note.args = {"place": place, "text": "This was withdrawn."}
    note.prepare()
    assert note.probe().seen == "absent"
    note.send()
    assert (note.probe().seen, len(hub.comments)) == ("applied", 1)


def test_contracts_of_pull_requests_pass_registration(bench, hub):
    """They are offered only where a repository has pull requests, and are complete."""
    shelf = registered(bench)
    check(capability.contract for capability in shelf.capabilities.values())
    bench.settings = {}
    assert "git.draft_pr" not in registered(bench).capabilities
