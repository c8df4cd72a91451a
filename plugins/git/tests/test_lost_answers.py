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
        "from amends_git.pushing import Move, push\n"
        "with workspace(Repository(remote=sys.argv[2], checkout=sys.argv[3]), timeout_seconds=60, secret=None) as w:\n"
        " w.bring(sys.argv[4], history=False)\n"
        " push(w, Move('refs/heads/feature/field', sys.argv[4], ''), still_wanted=lambda: True)\n"
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


@contextmanager
def served(bench, *, drop=0, wanted=""):
    """The bench's remote over smart HTTP, as the agent reaches it."""
    with GitHttp(bench.root, wanted=wanted) as server:
        server.drop_answers(drop)
        bench.settings = {"remote": f"{server.url}/billing.git", "token": "env:GIT_TOKEN"}
        yield server


def test_answer_dropped_over_http_after_the_push_landed(bench):
    """The transport lost the answer (and may have sent again and been rejected): the ref is ours, so it succeeded."""
    with served(bench, drop=1) as server:
        action = prepared_branch(bench)
        action.send()
        assert server.dropped == 1
        assert action.probe().seen == "applied"
    assert bench.remote_ref("refs/heads/feature/field") == action.allocated["commit"]


def test_push_that_the_transport_sent_twice_and_calls_rejected_has_succeeded(bench):
    """The answer was lost, libcurl sent again, the server rejected its own former push: the ref is ours, once."""
    with served(bench) as server:
        prepared_branch(bench).send()
        arrived = server.receive_packs
        server.drop_answers(1)
        action = bench.action("push", branch="feature/field", commit=bench.agent_commits())
        done = action.run()
        assert (server.dropped, server.receive_packs - arrived) == (1, 2)
        assert done.reference == bench.remote_ref("refs/heads/feature/field")
        assert (action.probe().seen, action.rung()) == ("applied", "restore")
        server.drop_answers(1)
        action.undo()
        assert server.dropped == 2
        assert action.verify().seen == "absent"


def test_large_push_over_http_arrives(bench):
    """More than one buffer goes out in chunks, and is one push."""
    with served(bench) as server:
        prepared_branch(bench).send()
        (bench.checkout / "data.bin").write_bytes(os.urandom(1_500_000))
        action = bench.action("push", branch="feature/field", commit=bench.agent_commits())
        action.run()
        assert action.probe().seen == "applied"
    assert server.receive_packs >= 2


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
