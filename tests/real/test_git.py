"""The git adapter on what nobody here wrote: git's own HTTP server, and an emulator of GitHub's API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from systems import GitHubEmulator
from systems.matrices.git import LocalMatrix, RefMatrix
from systems.matrices.pull_requests import Hub, MergeMatrix, PullMatrix
from systems.suites import github


def test_the_emulator_answers_as_the_suite_says(github_emulator: GitHubEmulator) -> None:
    """Every behaviour holds, or is listed with the reason why that is no harm."""
    project = github.make_project(github_emulator.url, github_emulator.token, "suite")
    assert github.problems("emulator", github_emulator.url, github_emulator.token, project) == []


class TestRefs(RefMatrix):
    """`git http-backend`, with everything that moves a ref of its repository."""


class TestCheckout(LocalMatrix):
    """A clone on this disk: commits, merges and the worktree."""


class TestPullRequests(PullMatrix):
    """An emulator of its own, so that a crowd is in nobody's way. It has no git server: merges are `TestMerges`."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Hub]:
        del folder
        with GitHubEmulator.start() as emulator:
            project = emulator.repository("billing")
            main = emulator.ask("GET", f"/repos/{project}/git/ref/heads/main").data["object"]["sha"]

            def branch(name: str) -> None:
                hub.ask("POST", "git/refs", {"ref": f"refs/heads/{name}", "sha": main})
                hub.ask("PUT", f"contents/{name}.txt", {"message": name, "content": "Yg==", "branch": name})

            hub = Hub(emulator.url, emulator.token, project, branch)
            yield hub


class TestMerges(MergeMatrix):
    """The loopback GitHub merges in the repository that `git http-backend` serves."""
