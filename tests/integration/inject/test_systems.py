"""`amends inject` over systems that behave as users' own: a git remote and an issue tracker, with names that stay."""

import os
import subprocess

import pytest

from amends.testing.loopback import LoopbackSystem

SETTINGS = """
[adapters.git]
timeout_seconds = 3
probe_deadline_seconds = 20
absent_final_after_seconds = 0.5

[adapters.git.repositories.billing]
remote = "nowhere.git"
checkout = "nowhere"

[adapters.git.sandbox.repositories.billing]
remote = "staging.git"
checkout = "clone"

[adapters.jira]
base_url = "http://127.0.0.1:9"
token = "env:JIRA_TOKEN"
email = "agent@example.test"
timeout_seconds = 2
probe_deadline_seconds = 20
absent_final_after_seconds = 0.5

[adapters.jira.sandbox]
base_url = "{jira}"
"""
FLOW = """
workflow = "billing-field"
agent = "coder"

[[script]]
call = "git.create_branch"
as = "branch"
args = { repo = "billing", branch = "feature/cost-centre" }

[[script]]
call = "jira.labels"
as = "label"
args = { key = "BILL-12", add = ["${branch.effect.commit}"] }
depends_on = ["branch"]
"""


def git(folder, *args):
    done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def jira():
    """The tracker's test site, with the one issue that every world changes."""
    with LoopbackSystem.start("jira") as system:
        system.control("seed_issue", key="BILL-12", summary="Cost centre", status="In Progress")
        yield system


@pytest.fixture
def places(project, jira, monkeypatch):
    """A bare staging remote and a clone of it, and the settings that name them."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Maya")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "maya@example.test")
    monkeypatch.setenv("JIRA_TOKEN", "jira-token")
    git(project, "init", "--quiet", "--bare", "--initial-branch", "main", "staging.git")
    git(project, "clone", "--quiet", "staging.git", "clone")
    (project / "clone/readme").write_text("billing\n")
    git(project / "clone", "add", "readme")
    git(project / "clone", "commit", "--quiet", "-m", "start")
    git(project / "clone", "push", "--quiet", "origin", "HEAD:main")
    with (project / "amends.toml").open("a") as settings:
        settings.write(SETTINGS.format(jira=jira.url))
    return project


@pytest.mark.crash
def test_worlds_with_fixed_names_run_one_after_another(inject, places, jira):
    """Each takes back its branch and its label before the next begins, and leaves the sandbox as it was."""
    told = inject(FLOW, "--json", "--fault", "crash@branch")
    assert {world["verdict"] for world in told.json["worlds"]} == {"held"}
    assert len(told.json["worlds"]) == 3
    assert git(places / "staging.git", "branch", "--format", "%(refname:short)") == "main"
    (issue,) = jira.objects("issues")
    assert issue["fields"]["labels"] == []
