"""Real git: a bare remote, the agent's clone, another person's clone, and calls as the engine makes them."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from amends.spi import AdapterContext, Call, Done, Question
from amends_git import contracts
from amends_git.branches import CreateBranch, DeleteBranch, Tag
from amends_git.checkout import CheckOut
from amends_git.commit import CommitFiles
from amends_git.merge import MergeBranch
from amends_git.options import options_of
from amends_git.pushes import ForcePush, Push, Revert

ABSENT = ""


def git(folder, *args, check=True, stdin=None):
    """Run git as a person would; the text it printed."""
    done = subprocess.run(
        ["git", "-C", str(folder), *args], input=stdin, capture_output=True, text=True, check=check, timeout=30
    )
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def plain_git(monkeypatch):
    """No configuration of the machine takes part."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Maya")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "maya@example.test")


@dataclass
class Desk:
    """The remote `billing.git` and what surrounds it; capabilities made as the plugin makes them."""

    root: Path
    remote: Path
    checkout: Path
    other: Path
    settings: dict = field(default_factory=dict)
    actions: int = 0

    @staticmethod
    def git(folder, *args, check=True):
        """Git as a person runs it; what it printed."""
        return git(folder, *args, check=check)

    def context(self, **section):
        repository = {"remote": "billing.git", "checkout": "agent", **self.settings}
        return AdapterContext(
            name="git",
            instance="git",
            tenant="acme",
            environment="staging",
            options={"repositories": {"billing": repository}, **section},
            secret=lambda reference: f"value of {reference}",
            base_path=str(self.root),
        )

    def capability(self, name):
        options = options_of(self.context())
        made = {
            "create_branch": CreateBranch,
            "commit": CommitFiles,
            "push": Push,
            "force_push": ForcePush,
            "merge": MergeBranch,
            "checkout": CheckOut,
            "delete_branch": DeleteBranch,
            "tag": Tag,
            "revert": Revert,
        }[name]
        return made(getattr(contracts, name)(options), options)

    def remote_ref(self, ref):
        """The ref's value read straight from the bare repository; empty if there is none."""
        return git(self.remote, "rev-parse", "--verify", "--quiet", ref, check=False)

    def hook(self, name, script):
        """Install a hook at the remote."""
        path = self.remote / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def somebody_pushes(self, branch, name="other.txt", base="main"):
        """Another person commits on top of what the remote has and pushes; the new commit."""
        git(self.other, "fetch", "-q", "origin")
        start = f"origin/{branch}" if self.remote_ref(f"refs/heads/{branch}") else f"origin/{base}"
        git(self.other, "checkout", "-q", "-B", branch, start)
        (self.other / name).write_text("theirs\n")
        git(self.other, "add", "-A")
        git(self.other, "commit", "-q", "-m", "theirs")
        git(self.other, "push", "-q", "origin", branch)
        return git(self.other, "rev-parse", "HEAD")

    def agent_commits(self, name="field.txt", branch="feature/field"):
        """The agent commits in its clone without Amends; the new commit."""
        git(self.checkout, "checkout", "-q", "-B", branch, "main")
        (self.checkout / name).write_text("ours\n")
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "-m", "ours")
        git(self.checkout, "checkout", "-q", "--detach")
        return git(self.checkout, "rev-parse", "HEAD")

    def action(self, name, /, timeout_seconds=20.0, **args):
        """One action of one capability, as the engine carries it from prepare to verify."""
        self.actions += 1
        return Action(self.capability(name), {"repo": "billing", **args}, f"action-{self.actions}", timeout_seconds)


class Action:
    """What the engine records about one action, and the questions and calls it makes of that."""

    def __init__(self, capability, args, action_id, timeout_seconds):
        self.capability = capability
        self.args = args
        self.action_id = action_id
        self.timeout_seconds = timeout_seconds
        self.before = {}
        self.allocated = {}
        self.done = Done()
        self.wanted = True

    def _facts(self):
        return {
            "run_id": "run-1",
            "action_id": self.action_id,
            "marker": f"amends {self.action_id}",
            "idempotency_key": f"key-{self.action_id}",
            "args": self.args,
            "before": self.before,
            "allocated": self.allocated,
            "effect": self.done.effect,
            "after": self.done.after,
            "reference": self.done.reference,
            "attempt": 1,
            "sent_at_us": 1,
            "timeout_seconds": self.timeout_seconds,
            "secret": lambda reference: f"value of {reference}",
        }

    def question(self):
        return Question(**self._facts())

    def call(self, **extra):
        return Call(**self._facts(), deadline_us=2, still_wanted=lambda: self.wanted, **extra)

    def prepare(self):
        prepared = self.capability.prepare(self.question())
        self.before, self.allocated = dict(prepared.before), dict(prepared.allocated)
        return prepared

    def send(self):
        self.done = self.capability.do(self.call())
        return self.done

    def run(self):
        self.prepare()
        return self.send()

    def probe(self):
        return self.capability.probe(self.question())

    def rung(self):
        """The rung the planner would take after a probe, or None."""
        state = self.probe().state
        for rung in self.capability.contract.compensation:
            if all(state.get(name) in accepted for name, accepted in rung.when.items()):
                return rung.name
        return None

    def undo(self):
        return self.capability.undo(
            self.call(rung=self.rung(), undo_key="undo-key", undo_marker=f"amends undo-{self.action_id}")
        )

    def verify(self):
        return self.capability.verify_undone(self.question())


@pytest.fixture
def desk(tmp_path):
    """A remote with one commit on main, and two clones of it."""
    remote, checkout, other = tmp_path / "billing.git", tmp_path / "agent", tmp_path / "other"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git(tmp_path, "clone", "-q", str(remote), str(other))
    git(other, "checkout", "-q", "-b", "main")
    (other / "README.md").write_text("billing\n")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "start")
    git(other, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "-q", str(remote), str(checkout))
    return Desk(tmp_path, remote, checkout, other)
