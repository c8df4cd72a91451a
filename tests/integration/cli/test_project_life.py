"""`amends init`, `amends doctor` and the example agent, as a newcomer meets them, in real processes."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def shell(tmp_path):
    """Run a program in an empty folder; its standard output."""
    folder = tmp_path / "shop"
    folder.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AMENDS_", "GIT_", "COV"))
    } | {"HOME": str(tmp_path), "NO_COLOR": "1"}

    def running(*arguments, code=0):
        program = (
            [sys.executable, *arguments]
            if str(arguments[0]).endswith(".py")
            else [sys.executable, "-m", "amends", *arguments]
        )
        ended = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout

    running.folder = folder
    return running


def branches(folder):
    command = ["git", "-C", folder / "example" / "origin.git", "branch", "--format=%(refname:short)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_new_project_is_green_and_its_agent_is_recovered(shell):
    """init, doctor, an agent that ends well, one that fails: the second one's branch is gone."""
    shell("init", "--owner", "maya")
    answer = json.loads(shell("doctor", "--json"))
    assert answer["ok"]
    assert [f for f in answer["findings"] if f["level"] == "problem"] == []
    assert "is committed" in shell("agent.py", "hello")
    assert "stopped: the agent lost its way" in shell("agent.py", "oops", "--fail")
    assert branches(shell.folder) == ["feature/hello", "main"]
    shown = json.loads(shell("runs", "show", "oops", "--json"))
    assert [line["capability"] for line in shown["taken_back"]] == ["git.create_branch"]
    shell("audit", "--ready")
    shell("policy", "test")
    shell("ledger", "verify")


def test_init_overwrites_nothing(shell):
    """A second init is a conflict; files that were there stay as they are, and .gitignore grows."""
    (shell.folder / "agent.py").write_text("mine\n", encoding="utf-8")
    (shell.folder / ".gitignore").write_text("build/\n", encoding="utf-8")
    written = json.loads(shell("init", "--json"))["written"]
    assert "agent.py" not in written
    assert (shell.folder / "agent.py").read_text(encoding="utf-8") == "mine\n"
    assert (shell.folder / ".gitignore").read_text(encoding="utf-8").splitlines()[0] == "build/"
    assert ".amends/" in (shell.folder / ".gitignore").read_text(encoding="utf-8")
    assert "exists already" in json.loads(shell("init", "--json", code=5))["error"]["message"]


def test_names_of_people_and_folders_are_quoted(shell):
    """A person with a space and a tenant with quotes still make a file that parses."""
    shell("init", "--owner", "Maya Lin", "--tenant", 'the "shop"', "--environment", "qa")
    assert json.loads(shell("doctor", "--json"))["ok"]
    assert "Maya Lin" in json.loads(shell("inventory", "--json"))["people"][0]


def test_an_agents_environment_that_reaches_too_far_is_a_problem(shell):
    """`doctor --as-agent` fails where secrets resolve or the journal can be written."""
    shell("init")
    shell("runs", "list")
    (shell.folder / "token").write_text("s3cr3t\n", encoding="utf-8")
    settings = shell.folder / "amends.toml"
    settings.write_text(
        settings.read_text(encoding="utf-8") + '\n[notifiers.pager]\nkind = "webhook"\nurl = "file:token"\n',
        encoding="utf-8",
    )
    found = json.loads(shell("doctor", "--as-agent", "--json", code=1))["findings"]
    problems = [f["message"] for f in found if f["level"] == "problem"]
    assert any("file:token" in message for message in problems)
    assert any("can write" in message for message in problems)


def test_doctor_goes_on_after_each_problem(shell):
    """A missing secret, a secret in the file, a missing program, a loose folder: all in one answer, with remedies."""
    shell("init")
    shell("runs", "list")
    (shell.folder / ".amends").chmod(0o755)
    settings = shell.folder / "amends.toml"
    extra = """
[adapters.slack]
token = "xoxb-1234567890-abcdefgh"
[adapters.ghost]
password = "env:NOT_SET_ANYWHERE"
[checks.ci]
command = ["no-such-program"]
"""
    settings.write_text(settings.read_text(encoding="utf-8") + extra, encoding="utf-8")
    found = json.loads(shell("doctor", "--json", code=1))["findings"]
    told = {f["message"]: f["remedy"] for f in found if f["level"] != "ok"}
    for part in ("NOT_SET_ANYWHERE", "secret written into", "no-such-program", "other accounts", "`ghost`"):
        assert any(part in message and remedy for message, remedy in told.items()), part
    assert any(f["subject"] == "policies" for f in found)
    assert not any("xoxb-1234567890" in message for message in told)


def test_what_is_written_is_for_the_engines_account(shell):
    """The storage folder is private from the start."""
    shell("init")
    shell("runs", "list")
    assert stat.S_IMODE((shell.folder / ".amends").stat().st_mode) == 0o700
    assert not Path(shell.folder / ".amends" / "ledger.duckdb").exists()
