"""Systems without a server: a bare git remote with the agent's clone, and a staging database in a file.

Each answers what differs from its first state: the residue of a run at this system, by its own account.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amends.core.errors import ConfigError
from amends.testing.loopback.database import create_database, describe_database
from amends.testing.scenarios.model import SystemSpec

Residue = dict[str, Any]
_WHO = {
    "GIT_AUTHOR_NAME": "Scenario",
    "GIT_AUTHOR_EMAIL": "scenario@example.invalid",
    "GIT_COMMITTER_NAME": "Scenario",
    "GIT_COMMITTER_EMAIL": "scenario@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass
class GitRemote:
    """A bare remote (`path`) with one first commit, and a clone of it for the agent (`clone`)."""

    name: str
    path: Path
    clone: Path
    first: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def create(cls, name: str, spec: SystemSpec, source: Path, folder: Path) -> GitRemote:
        """Make remote and clone; the clone's branch is up to date."""
        remote, clone = folder / f"{name}.git", folder / name
        git(folder, "init", "-q", "--bare", "-b", spec.branch, str(remote))
        git(folder, "clone", "-q", str(remote), str(clone))
        git(clone, "checkout", "-q", "-B", spec.branch)
        if spec.files:
            if not (source / spec.files).is_dir():
                raise ConfigError(f"system `{name}`: there is no folder `{spec.files}`", hint="correct `files`")
            shutil.copytree(source / spec.files, clone, dirs_exist_ok=True, ignore=_made_by_running)
        git(clone, "add", "-A")
        git(clone, "commit", "-q", "--allow-empty", "-m", "first state")
        git(clone, "push", "-q", "origin", spec.branch)
        if spec.worktree:
            shutil.copytree(source / spec.worktree, clone, dirs_exist_ok=True, ignore=_made_by_running)
        return cls(name, remote, clone, refs(remote))

    def values(self) -> dict[str, Any]:
        """What `${<name>.…}` may name: path, url, clone, head."""
        head = next(iter(self.first.values()), "")
        return {"path": str(self.path), "url": str(self.path), "clone": str(self.clone), "head": head}

    def residue(self) -> list[Residue]:
        """Refs of the remote that are new, gone or elsewhere."""
        now = refs(self.path)
        return [
            {"system": self.name, "kind": "ref", "resource": ref, "reference": now.get(ref, "gone"), "state": "present"}
            for ref in sorted({*now, *self.first})
            if now.get(ref) != self.first.get(ref)
        ]


@dataclass
class StagingDatabase:
    """A SQLite file, shared by everybody on staging."""

    name: str
    path: Path
    first: frozenset[str] = frozenset()

    @classmethod
    def create(cls, name: str, spec: SystemSpec, source: Path, folder: Path) -> StagingDatabase:
        """Make the database from the scenario's SQL."""
        path = folder / f"{name}.sqlite"
        create_database(path, (source / spec.sql).read_text(encoding="utf-8") if spec.sql else "")
        return cls(name, path, describe_database(path))

    def values(self) -> dict[str, Any]:
        """What `${<name>.…}` may name: path and url."""
        return {"path": str(self.path), "url": f"sqlite:///{self.path}"}

    def residue(self) -> list[Residue]:
        """Parts of the schema that are new or gone."""
        now = describe_database(self.path)
        return [
            {
                "system": self.name,
                "kind": "schema",
                "resource": line,
                "reference": "added" if line in now else "gone",
                "state": "present",
            }
            for line in sorted(now ^ self.first)
        ]


def git(folder: Path, *arguments: str) -> str:
    """Run git as nobody in particular, without this machine's configuration; its output."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **_WHO}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigError(f"git {arguments[0]} failed: {done.stderr.strip()[:300]}", hint="is git installed?")
    return done.stdout


def refs(remote: Path) -> dict[str, str]:
    """Every ref of a remote and its commit."""
    lines = git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    pairs = (line.partition(" ") for line in lines)
    return {name: commit for name, _, commit in pairs}


def _made_by_running(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__" or name.endswith(".pyc")}
