"""What the git plugin relies on in GitHub's REST API, asked of an emulator that nobody here wrote."""

from __future__ import annotations

from systems.suites import github


def test_the_emulator_answers_as_the_suite_says(github_emulator):
    """Every behaviour holds, or is listed with the reason why that is no harm."""
    project = github.make_project(github_emulator.url, github_emulator.token, "suite")
    assert github.problems("emulator", github_emulator.url, github_emulator.token, project) == []
