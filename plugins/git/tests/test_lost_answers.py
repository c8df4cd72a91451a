"""Pushes whose answer never came, came wrong, or came late: only the remote's own ref decides."""

import base64
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from amends.spi import Refused
from amends.spi.process import TimeLimit
from amends.testing.loopback.git_http import GitHttp
from amends_git import command
from amends_git.command import GitFailed

KILL_CLIENT = """
p=$PPID
while [ "$p" -gt 1 ]; do
  if tr '\\0' ' ' < /proc/$p/cmdline | grep -q -- '--force-with-lease'; then kill -9 "$p"; break; fi
  p=$(awk '{print $4}' /proc/$p/stat)
done
"""


def prepared_branch(desk, **extra):
    action = desk.action("create_branch", branch="feature/field", **extra)
    action.prepare()
    return action


def test_client_killed_in_post_receive_has_pushed(desk):
    """The client died by SIGKILL with the ref already moved: the remote says so, and the call succeeded."""
    action = prepared_branch(desk)
    desk.hook("post-receive", KILL_CLIENT)
    assert action.send().reference == desk.remote_ref("refs/heads/feature/field")


def test_client_killed_in_pre_receive_is_unknown(desk):
    """The client died with the ref unmoved: without the server's word, that is no refusal."""
    action = prepared_branch(desk)
    desk.hook("pre-receive", KILL_CLIENT + "exit 1")
    with pytest.raises(GitFailed):
        action.send()
    assert action.probe().seen == "absent"


def test_server_that_goes_on_without_its_client_has_moved_the_ref(desk):
    """The client died before the ref moved, the server finished all the same: the ref decides."""
    action = prepared_branch(desk)
    desk.hook("pre-receive", KILL_CLIENT)
    action.send()
    assert action.probe().seen == "applied"


def test_slow_hook_after_the_ref_moved_is_a_success(desk):
    """The time limit kills the client's group; the ref stands where it should, so the effect exists."""
    action = prepared_branch(desk, timeout_seconds=3)
    desk.hook("post-receive", "sleep 60")
    assert action.send().effect["changed"] is True
    assert action.probe().seen == "applied"


def test_slow_hook_before_the_ref_moves_is_unknown(desk):
    """A time limit with an unmoved ref proves nothing; it is neither a refusal nor "not sent"."""
    action = prepared_branch(desk, timeout_seconds=3)
    desk.hook("pre-receive", "sleep 60")
    with pytest.raises(TimeLimit):
        action.send()
    assert action.probe().seen == "absent"


@pytest.mark.crash
def test_engine_killed_during_the_push_is_found_out_by_another_process(desk):
    """SIGKILL of the process that pushes, hook still running: the intent's facts alone settle the outcome."""
    action = prepared_branch(desk)
    desk.hook("post-receive", f"echo $$ > {desk.root}/fifo; exec sleep 60")
    os.mkfifo(desk.root / "fifo")
    code = (
        "import os,sys; sys.path[:0]=eval(sys.argv[1]); "
        "from amends_git.options import Repository; from amends_git.workspace import workspace\n"
        "from amends_git.pushing import Move, push\n"
        "with workspace(Repository(remote=sys.argv[2], checkout=sys.argv[3]), timeout_seconds=60, secret=None) as w:\n"
        " w.bring(sys.argv[4], history=False)\n"
        " push(w, Move('refs/heads/feature/field', sys.argv[4], ''), still_wanted=lambda: True)\n"
    )
    args = [repr(sys.path), str(desk.remote), str(desk.checkout), action.allocated["commit"]]
    engine = subprocess.Popen([sys.executable, "-c", code, *args])
    try:
        hook = int((desk.root / "fifo").read_text())
    finally:
        engine.send_signal(signal.SIGKILL)
        engine.wait(10)
    assert action.probe().seen == "applied"
    os.kill(hook, signal.SIGKILL)
    (desk.remote / "hooks/post-receive").unlink()
    action.undo()
    assert action.verify().seen == "absent"


@contextmanager
def served(desk, *, drop=0, wanted=""):
    """The desk's remote over smart HTTP, as the agent reaches it."""
    with GitHttp(desk.root, wanted=wanted) as server:
        server.drop_answers(drop)
        desk.settings = {"remote": f"{server.url}/billing.git", "token": "env:GIT_TOKEN"}
        yield server


def test_answer_dropped_over_http_after_the_push_landed(desk):
    """The transport lost the answer (and may have sent again and been rejected): the ref is ours, so it succeeded."""
    with served(desk, drop=1) as server:
        action = prepared_branch(desk)
        action.send()
        assert server.dropped == 1
        assert action.probe().seen == "applied"
    assert desk.remote_ref("refs/heads/feature/field") == action.allocated["commit"]


def test_lost_answer_is_one_request_where_plain_git_makes_two(desk):
    """The answer is lost after the ref moved. Plain git sends the push again and says it was rejected; ours is one
    request, and the ref decides.
    """
    with served(desk) as server:
        prepared_branch(desk).send()
        commit = desk.agent_commits()
        action = desk.action("push", branch="feature/field", commit=commit)
        action.prepare()
        arrived = server.receive_packs
        server.drop_answers(1)
        done = action.send()
        assert (server.dropped, server.receive_packs - arrived) == (1, 1)
        assert done.reference == desk.remote_ref("refs/heads/feature/field")
        server.drop_answers(1)
        action.undo()
        assert (server.dropped, server.receive_packs - arrived) == (2, 2)
        assert action.verify().seen == "absent"
        server.drop_answers(1)
        address = f"{server.url}/billing.git"
        lease = f"--force-with-lease=refs/heads/feature/field:{desk.remote_ref('refs/heads/feature/field')}"
        said = desk.git(
            desk.checkout, "push", "--porcelain", lease, address, f"{commit}:refs/heads/feature/field", check=False
        )
        assert (server.dropped, server.receive_packs - arrived) == (3, 4)
        assert "rejected" in said
        assert desk.remote_ref("refs/heads/feature/field") == commit


def test_rejection_of_a_push_that_the_transport_sent_twice_is_no_refusal(desk, monkeypatch):
    """A gateway that keeps connections open, and libcurl behind it: the second is rejected, and the push succeeded."""
    monkeypatch.setattr(command, "_headers", lambda *_: [])
    with served(desk) as server:
        prepared_branch(desk).send()
        action = desk.action("push", branch="feature/field", commit=desk.agent_commits())
        action.prepare()
        arrived = server.receive_packs
        server.drop_answers(1)
        assert action.send().reference == desk.remote_ref("refs/heads/feature/field")
        assert (server.dropped, server.receive_packs - arrived) == (1, 2)


def test_large_push_over_http_arrives(desk):
    """More than one buffer goes out in chunks, and is one push."""
    with served(desk) as server:
        prepared_branch(desk).send()
        (desk.checkout / "data.bin").write_bytes(os.urandom(1_500_000))
        action = desk.action("push", branch="feature/field", commit=desk.agent_commits())
        action.run()
        assert action.probe().seen == "applied"
    assert server.receive_packs >= 2


def test_token_travels_in_a_header_only(desk):
    """The token reaches the remote as a header; neither arguments, address nor recorded facts hold it."""
    wanted = "Basic " + base64.b64encode(b"x-access-token:value of env:GIT_TOKEN").decode()
    with served(desk, wanted=wanted):
        action = prepared_branch(desk)
        done = action.send()
    texts = repr((action.before, action.allocated, done))
    assert "value of" not in texts


def test_rejection_over_http_with_an_unmoved_ref_is_a_refusal(desk):
    """A hook's no over http is a no: the ref stands where it stood."""
    with served(desk):
        action = prepared_branch(desk)
        desk.hook("update", "echo closed >&2; exit 1")
        with pytest.raises(Refused, match="closed"):
            action.send()


def test_two_pushers_under_one_lease_have_one_winner(desk):
    """Both hold the same before-image; the server compares under a lock, and the loser's call is refused."""
    desk.hook("pre-receive", "sleep 0.5")
    actions = [desk.action("tag", name="v1", commit=desk.remote_ref("main"), message=f"by {n}") for n in "ab"]
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
