"""`make demo`: what a stranger sees in the first minute, and what its exit code stands for."""

import os
import subprocess
import sys

import pytest

from amends.testing.demo import telling

pytestmark = [pytest.mark.timeout(240), pytest.mark.crash]


def test_the_demo_holds_at_the_systems_side_and_tells_it():
    """Exit 0: all is back with Amends, and the control left residue. Every part of the story is printed, uncoloured."""
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}}
    done = subprocess.run(
        [sys.executable, "-m", "amends.testing.demo"],
        env={**environment, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for words in (
        "SIGKILL, while CI runs",
        "takes the run over: owner dead",
        "Which effects exist?",
        "Which might?",
        "What can be undone?",
        "Who decides?",
        "At the systems, by their own account",
        "Questions: jonas, not this bot.",
        "FROM compensation_success",
        "FROM compensation_rate",
        "FROM unknown_rate",
        "git revert",
        "notice in the client portal",
        "Everything holds.",
    ):
        assert words in done.stdout, words
    assert "\x1b[" not in done.stdout


def test_every_effect_of_the_story_has_words_for_its_readers():
    """What is counted in the last table covers every system of the scenario but none twice."""
    systems = [system for system, _ in telling.EFFECTS]
    assert sorted(systems) == sorted(set(systems))
    assert set(systems) == {"repo", "staging", "unleash", "jira", "portal", "slack", "partner"}
