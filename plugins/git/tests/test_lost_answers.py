"""Pushes whose answer never came, came wrong, or came late: only the remote's own ref decides."""

import base64
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from amends.spi import Refused
from amends.spi.process import TimeLimit
from amends_git.command import GitFailed

KILL_CLIENT = """
p=$PPID
while [ "$p" -gt 1 ]; do
  if tr '\\0' ' ' < /proc/$p/cmdline | grep -q -- '--force-with-lease'; then kill -9 "$p"; break; fi
  p=$(awk '{print $4}' /proc/$p/stat)
done
"""


def prepared_branch(bench, **extra):
    action = bench.action("create_branch", branch="feature/field", **extra)
    action.prepare()
    return action


def test_client_killed_in_post_receive_has_pushed(bench):
    """The client died by SIGKILL with the ref already moved: the remote says so, and the call succeeded."""
    action = prepared_branch(bench)
    bench.hook("post-receive", KILL_CLIENT)
    assert action.send().reference == bench.remote_ref("refs/heads/feature/field")


def test_client_killed_in_pre_receive_is_unknown(bench):
    """The client died with the ref unmoved: without the server's word, that is no refusal."""
    action = prepared_branch(bench)
    bench.hook("pre-receive", KILL_CLIENT + "exit 1")
    with pytest.raises(GitFailed):
        action.send()
    assert action.probe().seen == "absent"


def test_server_that_goes_on_without_its_client_has_moved_the_ref(bench):
    """The client died before the ref moved, the server finished all the same: the ref decides."""
    action = prepared_branch(bench)
    bench.hook("pre-receive", KILL_CLIENT)
    action.send()
    assert action.probe().seen == "applied"


def test_slow_hook_after_the_ref_moved_is_a_success(bench):
    """The time limit kills the client's group; the ref stands where it should, so the effect exists."""
    action = prepared_branch(bench, timeout_seconds=3)
    bench.hook("post-receive", "sleep 60")
    assert action.send().effect["changed"] is True
    assert action.probe().seen == "applied"


def test_slow_hook_before_the_ref_moves_is_unknown(bench):
    """A time limit with an unmoved ref proves nothing; it is neither a refusal nor "not sent"."""
    action = prepared_branch(bench, timeout_seconds=3)
    bench.hook("pre-receive", "sleep 60")
    with pytest.raises(TimeLimit):
        action.send()
    assert action.probe().seen == "absent"


@pytest.mark.crash
def test_engine_killed_during_the_push_is_found_out_by_another_process(bench):
    """SIGKILL of the process that pushes, hook still running: the intent's facts alone settle the outcome."""
    action = prepared_branch(bench)
    bench.hook("post-receive", f"echo $$ > {bench.root}/fifo; exec sleep 60")
    os.mkfifo(bench.root / "fifo")
    code = (
        "import os,sys; sys.path[:0]=eval(sys.argv[1]); "
        "from amends_git.options import Repository; from amends_git.workspace import workspace\n"
        "with workspace(Repository(remote=sys.argv[2], checkout=sys.argv[3]), timeout_seconds=60, secret=None) as w:\n"
        " w.bring(sys.argv[4], history=False)\n"
        " w.move('refs/heads/feature/field', new=sys.argv[4], old='', still_wanted=lambda: True)\n"
    )
    args = [repr(sys.path), str(bench.remote), str(bench.checkout), action.allocated["commit"]]
    engine = subprocess.Popen([sys.executable, "-c", code, *args])
    try:
        hook = int((bench.root / "fifo").read_text())
    finally:
        engine.send_signal(signal.SIGKILL)
        engine.wait(10)
    assert action.probe().seen == "applied"
    os.kill(hook, signal.SIGKILL)
    (bench.remote / "hooks/post-receive").unlink()
    action.undo()
    assert action.verify().seen == "absent"


class _Backend(BaseHTTPRequestHandler):
    """git http-backend over a socket; it can drop the answer to a push after carrying it out, or refuse a token."""

    protocol_version = "HTTP/1.0"
    root, seen, drop, wanted = "", [], 0, None

    def _serve(self):
        cls = type(self)
        path, _, query = self.path.partition("?")
        cls.seen.append((self.command, path, self.headers.get("Authorization", "")))
        if cls.wanted is not None and self.headers.get("Authorization") != cls.wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": cls.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "agent", "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        answer = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True).stdout
        if path.endswith("git-receive-pack") and self.command == "POST" and cls.drop:
            cls.drop -= 1
            return
        head, _, content = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _serve  # noqa: N815 - names the library calls

    def log_message(self, *args):
        pass


@contextmanager
def served(bench, *, drop=0, wanted=None):
    handler = type("Backend", (_Backend,), {"root": str(bench.root), "seen": [], "drop": drop, "wanted": wanted})
    subprocess.run(["git", "-C", bench.remote, "config", "http.receivepack", "true"], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    bench.settings = {"remote": f"http://127.0.0.1:{server.server_port}/billing.git", "token": "env:GIT_TOKEN"}
    try:
        yield handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_answer_dropped_over_http_after_the_push_landed(bench):
    """The transport lost the answer (and may have sent again and been rejected): the ref is ours, so it succeeded."""
    with served(bench, drop=1) as backend:
        action = prepared_branch(bench)
        action.send()
        assert [path for method, path, _ in backend.seen if path.endswith("receive-pack") and method == "POST"]
        assert action.probe().seen == "applied"
    assert bench.remote_ref("refs/heads/feature/field") == action.allocated["commit"]


def test_token_travels_in_a_header_only(bench):
    """The token reaches the remote as a header; neither arguments, address nor recorded facts hold it."""
    wanted = "Basic " + base64.b64encode(b"x-access-token:value of env:GIT_TOKEN").decode()
    with served(bench, wanted=wanted):
        action = prepared_branch(bench)
        done = action.send()
    texts = repr((action.before, action.allocated, done))
    assert "value of" not in texts


def test_rejection_over_http_with_an_unmoved_ref_is_a_refusal(bench):
    """A hook's no over http is a no: the ref stands where it stood."""
    with served(bench):
        action = prepared_branch(bench)
        bench.hook("update", "echo closed >&2; exit 1")
        with pytest.raises(Refused, match="closed"):
            action.send()


def test_two_pushers_under_one_lease_have_one_winner(bench):
    """Both hold the same before-image; the server compares under a lock, and the loser's call is refused."""
    bench.hook("pre-receive", "sleep 0.5")
    actions = [bench.action("tag", name="v1", commit=bench.remote_ref("main"), message=f"by {n}") for n in "ab"]
    for action in actions:
        action.prepare()
    answers = []

    def push(action):
        try:
            answers.append(("done", action.send()))
        except Refused as error:
            answers.append(("refused", error))

    threads = [threading.Thread(target=push, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer for answer, _ in answers) == ["done", "refused"]
    assert sorted(action.probe().seen for action in actions) == ["applied", "diverged"]
