"""A flocked owner file proves life and death, of a process and of all it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.owners import OwnerFiles
from amends.core.errors import CallerError, ConfigError
from amends.core.events import Holder

pytestmark = pytest.mark.crash

OTHER = """
import sys
from pathlib import Path
from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.owners import OwnerFiles
from amends.spi.process import start
clock = SystemClock()
owners = OwnerFiles(Path(sys.argv[1]), clock, UuidV7(clock))
child = start([sys.executable, "-c", "import time; time.sleep(600)"], env={}) if sys.argv[2] == "child" else None
print(owners.me().model_dump_json(), child.pid if child else 0, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def owners(tmp_path, clock):
    mine = OwnerFiles(tmp_path / "owners", clock, UuidV7(clock))
    yield mine
    mine.close()


@pytest.fixture
def other(owners, tmp_path):
    """Start another owner in the same folder; ends it at the end of the test."""
    started = []

    def start(kind="alone"):
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(tmp_path / "owners"), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        holder, child = process.stdout.readline().rsplit(" ", 1)
        return process, Holder.model_validate_json(holder), int(child)

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill(process):
    process.kill()
    process.wait()


def test_a_living_process_is_not_proven_dead(owners, other):
    """Alive, and even frozen: its lock is held, so there is no proof."""
    process, holder, _ = other()
    assert not owners.proven_dead(holder)
    process.send_signal(signal.SIGSTOP)
    assert not owners.proven_dead(holder)


def test_a_killed_process_is_proven_dead_to_all(owners, other, tmp_path, clock):
    """The kernel releases the lock with the process; every later starter can still prove it."""
    process, holder, _ = other()
    kill(process)
    assert owners.proven_dead(holder)
    later = OwnerFiles(tmp_path / "owners", clock, UuidV7(clock))
    assert later.proven_dead(holder)
    later.close()


def test_a_child_of_an_adapter_keeps_its_dead_parent_undead(owners, other):
    """While a child that the adapter started lives, it may still send: no proof until it is gone too."""
    process, holder, child = other("child")
    kill(process)
    assert not owners.proven_dead(holder)
    os.kill(child, signal.SIGKILL)
    while not owners.proven_dead(holder):  # pytest's time-out ends it
        time.sleep(0.005)


def test_an_owner_of_another_host_is_never_proven_dead(owners, other):
    """A local file says nothing about another machine."""
    process, holder, _ = other()
    kill(process)
    assert not owners.proven_dead(holder.model_copy(update={"host": "elsewhere"}))


def test_a_missing_owner_file_proves_nothing(owners, other):
    """Somebody's tidying hand is no proof of death: the lease decides."""
    process, holder, _ = other()
    Path(holder.owner_file).unlink()
    assert not owners.proven_dead(holder)
    kill(process)
    assert not owners.proven_dead(holder)


def test_nobody_proves_his_own_death(owners):
    """Asked about itself, a process answers that it lives."""
    assert not owners.proven_dead(owners.me())


def test_an_owner_that_closed_counts_as_dead(owners, tmp_path, clock):
    """After a clean end others may take over at once."""
    gone = OwnerFiles(tmp_path / "owners", clock, UuidV7(clock))
    holder = gone.me()
    assert not owners.proven_dead(holder)
    gone.close()
    gone.close()
    assert owners.proven_dead(holder)


def test_only_old_and_free_files_are_removed(owners, other, tmp_path, clock):
    """A young file is somebody's proof, and a held one somebody's life, however old."""
    dead, of_dead, _ = other()
    _, of_living, _ = other()
    kill(dead)
    young = [Path(of_dead.owner_file), Path(of_living.owner_file)]
    OwnerFiles(tmp_path / "owners", clock, UuidV7(clock)).close()
    assert all(path.exists() for path in young)
    for path in young:
        os.utime(path, (1_000_000, 1_000_000))
    OwnerFiles(tmp_path / "owners", clock, UuidV7(clock)).close()
    assert [path.exists() for path in young] == [False, True]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_may_not_use_the_engine(owners):
    """A child that inherited the object gets a clear error (rule 9)."""
    pid = os.fork()
    if pid == 0:
        try:
            owners.me()
        except CallerError as error:
            os._exit(0 if "forked child" in error.message else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_unusable_folder_is_named(tmp_path, clock):
    """A file where the folder should be: the error names it and the remedy."""
    (tmp_path / "owners").write_text("a file")
    with pytest.raises(ConfigError) as caught:
        OwnerFiles(tmp_path / "owners", clock, UuidV7(clock))
    assert "owners" in caught.value.message
    assert caught.value.hint


def test_a_driver_that_left_a_child_behind_is_orphaned_and_not_proven_dead(owners, other):
    """Rule 12: no proof while the child may still act, but nobody renews the lease any more."""
    process, holder, child = other("child")
    assert not owners.orphaned(holder)
    kill(process)
    assert not owners.proven_dead(holder)
    assert owners.orphaned(holder)
    os.killpg(child, signal.SIGKILL)
    while not owners.proven_dead(holder):
        time.sleep(0.01)
    assert not owners.orphaned(holder)
