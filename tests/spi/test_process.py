"""Children of adapters: what ends, what is killed, what is said about it."""

import os
import sys
import time

import pytest

from amends.spi.process import TimeLimit, end_group, run, start

ENV = {"PATH": os.environ["PATH"]}


def test_output_and_code_of_a_child_that_ends():
    """A child that ends by itself hands back its code and both outputs, whatever the code is."""
    ended = run(["sh", "-c", "cat; echo oops >&2; exit 3"], env=ENV, timeout_seconds=10, stdin=b"in")
    assert (ended.returncode, ended.out, ended.err) == (3, "in", "oops\n")


def test_background_children_die_with_the_time_limit(tmp_path):
    """A child that hands its work to the background is killed with it: the effect does not appear later."""
    late = tmp_path / "late"
    script = f"(while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; touch {late}) & wait"
    with pytest.raises(TimeLimit) as limit:
        run(["sh", "-c", script], env=ENV, timeout_seconds=0.3)
    assert limit.value.group_gone
    (tmp_path / "go").touch()
    time.sleep(0.1)
    assert not late.exists()


def test_output_held_by_a_background_child_is_not_an_end(tmp_path):
    """A shell that exits while its background child holds the pipe is still running (E-06)."""
    with pytest.raises(TimeLimit):
        run(["sh", "-c", "sleep 60 & exit 0"], env=ENV, timeout_seconds=0.3)


@pytest.mark.parametrize(("keeps_owner", "seen"), [(True, ["open", "shut"]), (False, ["shut", "shut"])])
def test_only_descriptors_marked_inheritable_pass(keeps_owner, seen):
    """The owner lock reaches a child that may change something, other descriptors reach none."""
    kept, closed = os.pipe()
    os.set_inheritable(kept, True)
    code = (
        "import os,sys\nfor n in sys.argv[1:]:\n try: os.fstat(int(n)); print('open')\n except OSError: print('shut')"
    )
    try:
        argv = [sys.executable, "-c", code, str(kept), str(closed)]
        ended = run(argv, env=ENV, timeout_seconds=20, keeps_owner=keeps_owner)
    finally:
        os.close(kept)
        os.close(closed)
    assert ended.out.split() == seen


def test_ending_a_group_twice_is_harmless():
    """A group that is gone stays gone."""
    child = start(["sleep", "60"], env=ENV)
    assert end_group(child)
    assert end_group(child)
