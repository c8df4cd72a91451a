"""Lock files that somebody left in the checkout: named always, removed only where the owner is proven dead."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from amends.spi import Refused
from amends_git import locks


@pytest.fixture
def topic(desk):
    """A checkout that can be switched to `topic`; its index lock."""
    desk.git(desk.checkout, "branch", "topic")
    (desk.checkout / "README.md").write_text("half-written\n")
    return desk.checkout / ".git/index.lock"


def checkout(desk):
    action = desk.action("checkout", target="topic", put_aside=True)
    action.prepare()
    return action


def leave_lock_of_killed_git(desk):
    """A git killed by SIGKILL in its pre-commit hook leaves its index lock behind."""
    hook = desk.checkout / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")
    hook.chmod(0o755)
    desk.git(desk.checkout, "commit", "-q", "-am", "never", check=False)
    hook.unlink()


def test_lock_of_a_killed_git_is_named_and_stays(desk, topic):
    """Other hosts or containers may use the checkout, so nobody can tell whose it is: refused for now."""
    leave_lock_of_killed_git(desk)
    action = checkout(desk)
    with pytest.raises(Refused, match=r"index\.lock.*remove it") as refused:
        action.send()
    assert (refused.value.code, refused.value.again, topic.exists()) == ("locked", True, True)
    assert action.probe().seen == "absent"
    assert (desk.checkout / "README.md").read_text() == "half-written\n"


def test_lock_of_a_killed_git_is_removed_where_its_owner_is_proven_dead(desk, topic, monkeypatch):
    """Everybody who uses the checkout can be seen from here, and none of them can have made it."""
    leave_lock_of_killed_git(desk)
    monkeypatch.setattr(locks, "_suspect", watched := Watched(desk, locks._suspect))
    desk.settings = {"exclusive": True}
    action = checkout(desk)
    action.send()
    assert (action.probe().seen, topic.exists()) == ("applied", False)
    assert watched.asked


class Watched:
    """Asks about every process but those of tests that run beside this one."""

    def __init__(self, desk, suspect):
        self.desk, self.suspect, self.asked = desk, suspect, 0

    def __call__(self, process, made_after_boot, inside):
        self.asked += 1
        reason = self.suspect(process, made_after_boot, inside)
        return "" if reason.startswith("is a git") else reason


@pytest.mark.parametrize("how", ["works in the checkout", "holds a file of it", "is called git"])
def test_lock_with_a_possible_owner_alive_is_never_removed(desk, topic, how, tmp_path):
    """A process that was there before the lock and may have made it lives: the refusal names it."""
    sleeper = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    opened = (desk.checkout / "README.md").open("rb") if how == "holds a file of it" else None
    folder = desk.checkout if how == "works in the checkout" else desk.root
    if how == "is called git":
        (tmp_path / "git-slow").symlink_to("/bin/sh")
        sleeper = [str(tmp_path / "git-slow"), "-c", "echo; read line; :"]
    owner = subprocess.Popen(
        sleeper, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, pass_fds=[opened.fileno()] if opened else []
    )
    try:
        owner.stdout.readline()
        topic.touch()
        desk.settings = {"exclusive": True}
        action = checkout(desk)
        with pytest.raises(Refused, match=r"process \d+") as refused:
            action.send()
        assert refused.value.code == "locked"
        assert topic.exists()
    finally:
        owner.communicate(b"\n")
        if opened:
            opened.close()


def test_process_that_cannot_be_looked_into_counts_as_alive(desk, topic, monkeypatch):
    """What is hidden from us may own the lock."""
    topic.touch()
    desk.settings = {"exclusive": True}
    monkeypatch.setattr(locks, "_PROC", desk.root / "no-proc")
    with pytest.raises(Refused, match="cannot be listed"):
        checkout(desk).send()


HOLDER = """
import sys; sys.path[:0] = eval(sys.argv[1])
from pathlib import Path
from amends_git.locks import hold
with hold(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.crash
def test_our_own_lock_is_removed_once_its_process_is_dead(desk, topic):
    """Our locks say who holds them: alive, the call is refused; killed by SIGKILL, the lock is provably left behind."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, repr(sys.path), str(topic)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        action = checkout(desk)
        with pytest.raises(Refused, match=f"process {holder.pid} holds it"):
            action.send()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert topic.exists()
    action.send()
    assert action.probe().seen == "applied"


def test_lock_of_another_container_proves_nothing(desk, topic):
    """A process number means nothing outside its boot and container."""
    topic.write_text(f"amends-lock another-boot/1 {os.getpid()} 1\n")
    with pytest.raises(Refused, match="another host, boot or container"):
        checkout(desk).send()


def test_lock_that_was_replaced_after_it_was_judged_is_not_removed(tmp_path):
    """Two who judged one dead lock: the second one does not remove the third one's new lock."""
    path = tmp_path / "index.lock"
    path.touch()
    with path.open("rb") as judged:
        path.unlink()
        path.write_text("new")
        locks._remove(path, judged.fileno())
    assert path.read_text() == "new"


def test_lock_over_a_symbolic_link_is_not_followed(tmp_path):
    """A link in place of a lock is not ours to remove or to read through."""
    (tmp_path / "target").touch()
    (tmp_path / "index.lock").symlink_to(tmp_path / "target")
    with pytest.raises(Refused, match="cannot be read"):
        locks.clear([tmp_path / "index.lock"], inside=Path(tmp_path), exclusive=True)
