"""The `command` check: a program answers, and whatever it does otherwise is `unknown`."""

import sys

import pytest

from amends.backends.command_check import command_check


@pytest.mark.parametrize(("code", "answer"), [(0, "passed"), (1, "not_passed"), (2, "unknown"), (77, "unknown")])
def test_exit_status_is_the_answer(tmp_path, code, answer):
    """0 passed, 1 not passed, and no other number is taken for either."""
    check = command_check(
        "ci", [sys.executable, "-c", f"print('done'); raise SystemExit({code})"], folder=tmp_path, timeout_seconds=20
    )
    assert check.ask("run-1") == (answer, f"exit {code}: done")


def test_a_program_killed_by_a_signal_is_unknown(tmp_path):
    """A crash of the check says nothing about the run."""
    check = command_check("ci", [sys.executable, "-c", "import os; os.abort()"], folder=tmp_path, timeout_seconds=20)
    assert check.ask("run-1")[0] == "unknown"


def test_the_program_learns_which_run_it_is_asked_about(tmp_path):
    """`AMENDS_RUN_ID` names the run; the folder is the configured one."""
    code = "import os; print(os.environ['AMENDS_RUN_ID'], os.getcwd())"
    check = command_check("ci", [sys.executable, "-c", code], folder=tmp_path, timeout_seconds=20)
    assert check.ask("run-7") == ("passed", f"exit 0: run-7 {tmp_path.resolve()}")


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    """At the time limit the whole group is killed, and the answer is `unknown`."""
    check = command_check("ci", ["sh", "-c", "sleep 600 & echo $! > child; wait"], folder=tmp_path, timeout_seconds=0.5)
    answer, detail = check.ask("run-1")
    assert answer == "unknown"
    assert "longer than 0.5 s" in detail


def test_a_program_that_is_not_there_is_unknown(tmp_path):
    """A check that cannot start never fails a run by itself."""
    answer, detail = command_check("ci", ["no-such-program-here"], folder=tmp_path, timeout_seconds=1).ask("run-1")
    assert (answer, "cannot start" in detail) == ("unknown", True)
