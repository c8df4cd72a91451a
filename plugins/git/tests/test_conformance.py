"""The fault matrix over one git capability of each kind; tests/real has all of them.

A ref that is made and one that is replaced; a commit beside the worktree, and the worktree itself; pull requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from systems.matrices.git import CHECKOUT, COMMIT, CREATE_BRANCH, FORCE_PUSH, LocalMatrix, RefMatrix, start_of
from systems.matrices.pull_requests import Hub, PullMatrix, loopback_hub


class TestRefs(RefMatrix):
    """Over smart HTTP."""

    subjects = (CREATE_BRANCH, FORCE_PUSH)


class TestCheckout(LocalMatrix):
    """A clone on this disk."""

    subjects = (COMMIT, CHECKOUT)


class TestPullRequests(PullMatrix):
    """The loopback GitHub."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[Hub]:
        with loopback_hub(start_of(folder)) as hub:
            yield hub
