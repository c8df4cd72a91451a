"""The story Amends comes from, on systems that nobody here wrote, counted by asking each system itself.

An agent makes a branch, a commit, a push, a column, a strategy and a charge, queues a ticket's move and a message, and
is killed while its CI runs. Another process recovers. The ledger is never asked what there is.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from amends import _resources
from amends.testing import naive
from amends.testing.loopback.git_http import GitHttp
from amends.testing.scenarios.loading import load_scenario
from amends.testing.scenarios.running import Play, acts
from amends.testing.scenarios.world import World

pytestmark = [pytest.mark.timeout(300), pytest.mark.crash]

HERE = Path(__file__).parent
BRANCH = "refs/heads/feature/billing-field"
FEATURES = "projects/default/features"
COLUMNS = """SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2"""


@dataclass(frozen=True)
class Counted:
    """What the systems say, each asked directly."""

    refs: dict[str, str]  # name -> commit, as `git ls-remote` tells over http
    columns: list[Any]  # information_schema
    revisions: list[Any]
    rows: list[Any]
    strategies: list[dict[str, Any]]  # without ids
    switched_on: bool
    ticket: str
    moves: int
    comments: int
    channel: tuple[str, ...]  # the texts in the team's channel
    notes: tuple[str, ...]  # the texts that Maya got
    charges: tuple[tuple[str, int, int], ...]  # status, amount, amount given back or let go
    refunds: int


# What the agent makes before CI: the fields of `Counted` that are not as before then.
EFFECTS = {"refs", "columns", "revisions", "strategies", "charges"}


def left_behind(before: Counted, now: Counted) -> set[str]:
    """The names of what is not as it was."""
    return {field.name for field in fields(Counted) if getattr(before, field.name) != getattr(now, field.name)} - {
        "moves"  # told by `ticket`
    }


@dataclass(frozen=True)
class Systems:
    """The systems with what the story needs in them, all under fresh names."""

    postgresql: Any
    unleash: Any
    slack: Any
    jira: Any
    stripe: Any
    remote: str
    values: dict[str, Any]

    @classmethod
    def prepared(cls, postgresql, unleash, slack, jira, stripe, remote, sql):
        """Seed each system as its users left it."""
        name = uuid.uuid4().hex[:8]
        flag = f"billing-panel-{name}"
        beta, qa = (_segment(unleash, f"{cohort} {name}", cohort) for cohort in ("beta", "qa"))
        _wanted(unleash.admin("POST", FEATURES, {"name": flag, "type": "release"}), 201)
        place = f"{FEATURES}/{flag}/environments/{unleash.environment}"
        shown = {"name": "flexibleRollout", "title": "beta testers", "segments": [beta]}
        shown["parameters"] = {"rollout": "100", "stickiness": "default", "groupId": flag}
        _wanted(unleash.admin("POST", f"{place}/strategies", shown), 200)
        _wanted(unleash.admin("POST", f"{place}/on"), 200)
        database = postgresql.database("billing")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(sql)
        issue = {"project": {"key": jira.project}, "summary": "Cost centre", "issuetype": {"name": "Task"}}
        values = {
            "remote": remote,
            "database": database,
            "unleash": unleash.url,
            "flag": flag,
            "qa": qa,
            "stripe": stripe.url,
            "order": f"BILL-12-{name}",
            "jira": jira.url,
            "ticket": _wanted(jira.ask("POST", "issue", {"fields": issue}), 201)["key"],
            "slack": slack.api_url.rstrip("/"),
            "channel": slack.ask("conversations.create", name=f"team-{name}")["channel"]["id"],
            "maya": slack.ask("users.lookupByEmail", email="maya@example.test")["user"]["id"],
        }
        return cls(postgresql, unleash, slack, jira, stripe, remote, values)

    def secrets(self):
        """What the project's secret files hold."""
        return {
            "unleash": self.unleash.admin_token,
            "stripe": self.stripe.key,
            "jira": self.jira.token,
            "slack": self.slack.token,
        }

    def counted(self) -> Counted:
        """Ask every system."""
        told, sql = self.values, lambda statement: self.postgresql.execute(statement, self.values["database"])
        lines = subprocess.run(["git", "ls-remote", self.remote], check=True, capture_output=True, text=True).stdout
        issue = _wanted(self.jira.ask("GET", f"issue/{told['ticket']}?expand=changelog"), 200)
        flag = _wanted(self.unleash.admin("GET", f"{FEATURES}/{told['flag']}"), 200)
        [shown] = [item for item in flag["environments"] if item["name"] == self.unleash.environment]
        charges = [item for item in self.stripe.listed("charges") if item["metadata"].get("order") == told["order"]]
        direct = self.slack.ask("conversations.open", users=told["maya"])["channel"]["id"]
        return Counted(
            refs={ref: commit for commit, ref in (line.split("\t") for line in lines.splitlines())},
            columns=sql(COLUMNS),
            revisions=sql("SELECT version_num FROM alembic_version"),
            rows=sql("SELECT number, total_cents FROM invoices"),
            strategies=[{k: v for k, v in item.items() if k != "id"} for item in shown["strategies"]],
            switched_on=shown["enabled"],
            ticket=issue["fields"]["status"]["name"],
            moves=len(issue["changelog"]["histories"]),
            comments=len(_wanted(self.jira.ask("GET", f"issue/{told['ticket']}/comment"), 200)["comments"]),
            channel=tuple(message["text"] for message in self.slack.messages(told["channel"])),
            notes=tuple(message["text"] for message in self.slack.messages(direct)),
            charges=tuple((item["status"], item["amount"], item["amount_refunded"]) for item in charges),
            refunds=sum(len(self.stripe.listed(f"refunds?charge={item['id']}")) for item in charges),
        )


def _segment(unleash, name, group):
    asked = {"name": name, "constraints": [{"contextName": "group", "operator": "IN", "values": [group]}]}
    return _wanted(unleash.admin("POST", "segments", asked), 201)["id"]


def _wanted(answer, status):
    assert answer.status == status, answer
    return answer.data


class Story:
    """The world of one form of the story, and its systems before anything happened."""

    def __init__(self, folder, systems, world, scenario):
        self.systems, self.world, self.scenario = systems, world, scenario
        self.play = Play(scenario, world, folder)
        self.before = systems.counted()

    def played(self):
        """Play the script: the agent in a process of its own, people beside it."""
        for apart, entries in acts(self.scenario.script):
            self.play.act(entries, apart=apart)

    def amends(self, *arguments, code=0):
        """The command line in the project, as another process; what it prints."""
        command = [sys.executable, "-m", "amends", *arguments]
        done = subprocess.run(command, cwd=self.world.project, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def told(self):
        """What people are told of the run."""
        return json.loads(self.amends("runs", "show", "BILL-12", "--json"))


@pytest.fixture
def story(tmp_path, postgresql, unleash, slack_emulator, jira820, stripe_mock):
    """`story(variant, **values)`: its world, ready to be played; taken down after the test."""
    opened = []

    def make(variant, *, green=False, **values):
        source = tmp_path / "source"
        for part in ("billing-field", *(["billing-field-green"] if green else [])):
            shutil.copytree(_resources.scenarios_path() / part, source, dirs_exist_ok=True)
        shutil.copytree(HERE / "billing-field", source, dirs_exist_ok=True)
        server = GitHttp(tmp_path)
        server.__enter__()
        opened.append(server)
        sql = (source / "staging.sql").read_text(encoding="utf-8")
        remote = f"{server.url}/repo.git"
        systems = Systems.prepared(postgresql, unleash, slack_emulator, jira820, stripe_mock, remote, sql)
        changes = {"folder": source, "values": {**systems.values, **values}, "secrets": systems.secrets()}
        scenario = load_scenario(HERE, "billing-field", variant).model_copy(update=changes)
        world = World(scenario, tmp_path)
        world.__enter__()
        opened.append(world)
        return Story(tmp_path, systems, world, scenario)

    yield make
    for one in reversed(opened):
        one.__exit__(None, None, None)


@pytest.mark.parametrize("capture", [True, False], ids=["refunded", "voided"])
def test_a_run_that_dies_in_ci_leaves_every_system_as_it_was_but_for_one_note(story, capture):
    """All that was made is taken back once, nothing that waited left, and only the cohort's owner hears of it."""
    staged = story("dies", capture=capture)
    staged.played()
    between = staged.systems.counted()
    assert left_behind(staged.before, between) == EFFECTS, "the agent had not done its work"
    staged.amends("recover", "--wait", "60")
    after = staged.systems.counted()
    [note] = after.notes[: len(after.notes) - len(staged.before.notes)]
    for words in ("opened to your cohort", "reverted", "What you need to do", "Questions: jonas, not this bot."):
        assert words in note
    assert (after.charges, after.refunds) == ((("succeeded", 15050, 15050),), 1)
    assert replace(after, notes=staged.before.notes, charges=(), refunds=0) == staged.before
    staged.amends("recover", "--wait", "0")
    assert staged.systems.counted() == after, "recovering a recovered run did something"
    assert staged.told()["public_state"] == "recovered"
    staged.amends("ledger", "verify")
    assert staged.play.verdict().problems == ()


def test_a_run_that_ends_well_leaves_each_thing_once_after_a_persons_yes(story):
    """Before the yes nothing that people read has left; after it the ticket has moved once and one message stands."""
    staged = story("ends-well", green=True, capture=True)
    entries = list(acts(staged.scenario.script))
    *work, (apart, answer) = entries
    for own_process, part in work:
        staged.play.act(part, apart=own_process)
    waiting = staged.systems.counted()
    assert (waiting.ticket, waiting.moves) == (staged.before.ticket, staged.before.moves)
    staged.play.act(answer, apart=apart)
    staged.amends("recover", "--wait", "60")
    after = staged.systems.counted()
    assert left_behind(staged.before, after) == EFFECTS | {"ticket", "channel"}
    assert sorted(after.refs) == sorted([*staged.before.refs, BRANCH])
    assert len(after.strategies) == len(staged.before.strategies) + 1
    assert (after.charges, after.refunds) == ((("succeeded", 15050, 0),), 0)
    assert (after.ticket, after.moves) == ("In Review", staged.before.moves + 1)
    [message] = after.channel
    assert "Invoices show the cost centre." in message
    staged.amends("recover", "--wait", "0")
    assert staged.systems.counted() == after
    assert staged.told()["public_state"] == "recovered"
    staged.amends("ledger", "verify")
    assert staged.play.verdict().problems == ()


def test_without_a_ledger_the_same_calls_and_the_same_kill_leave_everything_behind(story, tmp_path):
    """The naive control: what Amends took back above stays, and nobody is told."""
    staged = story("dies", capture=True)
    handed = tmp_path / "naive.json"
    handed.write_text(naive.handover(staged.world.stage, staged.scenario.script, check="ci", check_before="ticket"))
    command = [sys.executable, "-m", "amends.testing.naive", str(handed)]
    seen = staged.world.project / "ci.seen"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as agent:
        while not seen.exists() and agent.poll() is None:
            time.sleep(0.02)
        agent.kill()
        said = agent.communicate()[1]
    assert agent.returncode == -signal.SIGKILL, said
    after = staged.systems.counted()
    assert left_behind(staged.before, after) == EFFECTS
    assert (after.charges, after.refunds) == ((("succeeded", 15050, 0),), 0)
    assert after.notes == staged.before.notes
