"""`amends doctor` for git: the binary, the remotes, the checkouts. Read-only."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from amends.spi import DoctorFinding, NotSent
from amends.spi.process import TimeLimit, run
from amends_git.command import environment
from amends_git.options import GitOptions, Repository
from amends_git.workspace import Unreadable, workspace

_OLDEST = (2, 32)  # `apply --cached --3way`
_MERGES = (2, 38)  # `merge-tree --write-tree`
_TIMEOUT_SECONDS = 15.0


def examine(options: GitOptions, secret: Callable[[str], str]) -> list[DoctorFinding]:
    """Findings about git itself, then about each repository."""
    findings = [_version(next(iter(options.repositories.values())))]
    if findings[0].level != "problem":
        for name, repository in sorted(options.repositories.items()):
            findings.append(_remote(name, repository, secret))
            findings += _locks(name, repository)
    return findings


def _version(repository: Repository) -> DoctorFinding:
    try:
        said = run(["git", "version"], env=environment(repository, None), timeout_seconds=_TIMEOUT_SECONDS).out.strip()
    except (OSError, TimeLimit) as error:
        return DoctorFinding("problem", "git", f"git does not run: {error}", "install git and put it on PATH")
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        return DoctorFinding("problem", "git", f"`{said}` is too old", "install git 2.32 or later")
    if (int(found[1]), int(found[2])) < _MERGES:
        return DoctorFinding("warning", "git", f"`{said}` cannot do `git.merge`", "install git 2.38 or later")
    return DoctorFinding("ok", "git", said)


def _locks(name: str, repository: Repository) -> list[DoctorFinding]:
    """Lock files that are in the way of calls now; whether somebody holds them is told when a call meets them."""
    folder = Path(repository.checkout) / ".git"
    if not repository.checkout or not folder.is_dir():
        return []
    held = [
        path for path in (folder / "index.lock", folder / "HEAD.lock", folder / "packed-refs.lock") if path.exists()
    ]
    return [
        DoctorFinding("warning", f"git repository {name}", f"`{path}` is held", "if no git runs there, remove it")
        for path in held
    ]


def _remote(name: str, repository: Repository, secret: Callable[[str], str]) -> DoctorFinding:
    subject = f"git repository {name}"
    if repository.checkout and not Path(repository.checkout).is_dir():
        return DoctorFinding(
            "warning",
            subject,
            f"there is no checkout at `{repository.checkout}`",
            "correct `checkout`, or leave it out if this host only recovers",
        )
    ref = f"refs/heads/{repository.base}"
    try:
        with workspace(repository, timeout_seconds=_TIMEOUT_SECONDS, secret=secret) as work:
            value = work.remote_value(ref)
    except (Unreadable, NotSent) as error:
        return DoctorFinding("problem", subject, str(error), "check `remote`, `token` and the network")
    if not value:
        return DoctorFinding("warning", subject, f"the remote has no branch `{repository.base}`", "correct `base`")
    return DoctorFinding("ok", subject, f"{repository.base} is at {value}")
