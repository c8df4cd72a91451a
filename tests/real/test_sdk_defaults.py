"""An answer is lost on its way: what a vendor's own client makes of that by its defaults, and what Amends makes of it.

Requests are counted on the line, effects at the system itself. Each test prints its table and asserts it.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from amends.testing.conformance import Args, Exchange, Fault, HttpLine, Subject
from amends.testing.conformance.bench import Bench
from amends.testing.loopback.git_http import GitHttp
from amends.testing.scenarios.model import SystemSpec
from amends.testing.scenarios.places import GitRemote, git

Adapters: TypeAlias = Callable[[str], Mapping[str, Mapping[str, object]]]
ONCE, ALWAYS, ERROR = Fault("lost"), Fault("lost", lasting=True), Fault("status", status=500)
HAPPENS = {ONCE: "an answer is lost", ALWAYS: "every answer is lost", ERROR: "done, and answered 500"}
HEAD = ("who calls", "what happens", "what they are told", "sent", "made")


@dataclass(frozen=True)
class Row:
    """What became of one call: requests that came along the line, effects that the system has."""

    client: str
    happens: str
    told: str
    sent: int
    made: int


def table(rows: list[Row]) -> str:
    """The rows side by side."""
    lines = [HEAD, *(tuple(map(str, astuple(row))) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


@dataclass
class Comparison:
    """One system behind a line that goes wrong. Each call is about something new there, which `fresh` makes and
    `made` counts at the system itself.
    """

    folder: Path
    upstream: str
    writes: Callable[[Exchange], bool]
    made: Callable[[str], int]
    fresh: Callable[[], str]
    rows: list[Row] = field(default_factory=list)

    def theirs(self, client: str, fault: Fault, call: Callable[[str, str], str], *, times: int = 1) -> None:
        """Another's client makes the call `times` times: `call(url, what)` answers what the caller is told."""
        what, told = self.fresh(), ""
        with self._line(fault) as line:
            for _ in range(times):
                told = call(line.address, what)
        sent = sum(seen.writes for seen in line.exchanges())
        self.rows.append(Row(client, HAPPENS[fault], told, sent, self.made(what)))

    def ours(
        self, fault: Fault, capability: str, adapters: Adapters, args: Callable[[str], Args], token: str, times: int = 1
    ) -> None:
        """The agent makes the call through Amends `times` times, in one run."""
        what = self.fresh()
        subject = Subject[None](
            capability=capability, args=lambda _, __: args(what), effects=lambda _, __: self.made(what)
        )
        client = "Amends" if times == 1 else "Amends, called again"
        with self._line(fault) as line:
            bench = Bench(subject, None, line, adapters, self.folder / what, {"SDK_TOKEN": token}, "")
            bench.do()
            for _ in range(times - 1):
                assert bench.again().repeated
            self.rows.append(Row(client, HAPPENS[fault], bench.action().outcome, len(bench.writes()), self.made(what)))
            assert bench.close() == []

    @contextmanager
    def _line(self, fault: Fault) -> Iterator[HttpLine]:
        with HttpLine(self.upstream, writes=self.writes) as line:
            line.arm(fault)
            yield line
            assert line.unfired() == ()


@pytest.fixture
def compare(tmp_path, capsys):
    """`compare(upstream, writes, made, fresh)`: a comparison whose table is printed at the end of the test."""
    opened = []

    def make(upstream, writes, made, fresh=fresh_word):
        opened.append(Comparison(tmp_path, upstream, writes, made, fresh))
        return opened[-1]

    yield make
    with capsys.disabled():
        print("", *(table(one.rows) for one in opened), sep="\n")


def fresh_word():
    return f"sdk-{uuid.uuid4().hex[:12]}"


def posts(path):
    """Whether a request is a POST to this path."""
    return lambda seen: seen.method == "POST" and seen.target.endswith(path)


def test_slacks_sdk_posts_twice_and_amends_once(compare, sdks, slack_emulator, monkeypatch):
    """`slack_sdk` sends again when its connection breaks; without its retries, its caller does not know."""
    token = slack_emulator.token
    monkeypatch.setenv("SDK_TOKEN", token)

    def fresh_channel():
        return slack_emulator.ask("conversations.create", name=fresh_word())["channel"]["id"]

    def said(channel):
        return {"channel": channel, "text": "late by a day"}

    def post(url, channel, *, retries):
        return sdks.call("slack", f"{url}/api/", token, retries=retries, **said(channel)).words

    rows = compare(
        slack_emulator.url, posts("chat.postMessage"), lambda there: len(slack_emulator.messages(there)), fresh_channel
    )
    rows.theirs("slack_sdk, defaults", ONCE, partial(post, retries=True))
    rows.theirs("slack_sdk, retry_handlers=[]", ONCE, partial(post, retries=False))
    rows.ours(
        ONCE,
        "slack.post",
        lambda url: {"slack": {"base_url": f"{url}/api", "token": "env:SDK_TOKEN"}},
        said,
        token,
    )
    assert rows.rows == [
        Row("slack_sdk, defaults", HAPPENS[ONCE], "made", 2, 2),
        Row("slack_sdk, retry_handlers=[]", HAPPENS[ONCE], "RemoteDisconnected", 1, 1),
        Row("Amends", HAPPENS[ONCE], "succeeded", 1, 1),
    ]


def test_jiras_library_makes_up_to_four_issues_and_amends_one(compare, sdks, jira820, monkeypatch):
    """`jira` sends again up to three times; Amends looks for the issue by its marker."""
    token = "a-token-of-the-sdk-test"  # jira820 takes any
    monkeypatch.setenv("SDK_TOKEN", token)

    def issues(summary):
        found = jira820.ask("GET", f"search?jql=project={jira820.project}&maxResults=5000").data
        assert len(found["issues"]) == found["total"]
        return sum(issue["fields"]["summary"] == summary for issue in found["issues"])

    def create(url, summary, *, retries):
        given = {"project": {"key": jira820.project}, "summary": summary, "issuetype": {"name": "Task"}}
        return sdks.call("jira", url, token, retries=retries, **given).words

    def ours(url):
        return {"jira": {"base_url": url, "api": "data_center", "token": "env:SDK_TOKEN", "create_told": "maya"}}

    def args(summary):
        return {"project": jira820.project, "issuetype": "Task", "summary": summary}

    rows = compare(jira820.url, posts("/issue"), issues)
    rows.theirs("jira, defaults", ONCE, partial(create, retries=True))
    rows.theirs("jira, defaults", ALWAYS, partial(create, retries=True))
    rows.theirs("jira, max_retries=0", ONCE, partial(create, retries=False))
    rows.ours(ONCE, "jira.create", ours, args, token)
    rows.ours(ALWAYS, "jira.create", ours, args, token, times=2)
    assert rows.rows == [
        Row("jira, defaults", HAPPENS[ONCE], "made", 2, 2),
        Row("jira, defaults", HAPPENS[ALWAYS], "ConnectionError", 4, 4),
        Row("jira, max_retries=0", HAPPENS[ONCE], "ConnectionError", 1, 1),
        Row("Amends", HAPPENS[ONCE], "succeeded", 1, 1),
        Row("Amends, called again", HAPPENS[ALWAYS], "succeeded", 1, 1),
    ]


def test_stripes_library_charges_again_when_called_again_and_amends_does_not(compare, sdks, stripe_mock, monkeypatch):
    """`StripeClient` sends once, under a key that it makes up for each call and forgets; Amends keeps its key."""
    monkeypatch.setenv("SDK_TOKEN", stripe_mock.key)

    def charges(order):
        return sum(charge["metadata"].get("order") == order for charge in stripe_mock.listed("charges"))

    def charge(url, order, *, retries=True):
        form = {"amount": 1000, "currency": "usd", "source": "tok_visa", "metadata": {"order": order}}
        return sdks.call("stripe", url, stripe_mock.key, retries=retries, **form).words

    def ours(url):
        return {"stripe": {"plugin": "http", "base_url": url, "contracts": "package:stripe", "token": "env:SDK_TOKEN"}}

    def args(order):
        return {"order": order, "amount": 1000, "currency": "usd", "source": "tok_visa"}

    rows = compare(stripe_mock.url, posts("/charges"), charges)
    rows.theirs("stripe, defaults", ONCE, charge)
    rows.theirs("stripe, defaults", ERROR, charge)
    rows.theirs("stripe, defaults, called again", ALWAYS, charge, times=2)
    rows.theirs("stripe, max_network_retries=0", ONCE, partial(charge, retries=False))
    rows.ours(ONCE, "stripe.charge", ours, args, stripe_mock.key)
    rows.ours(ERROR, "stripe.charge", ours, args, stripe_mock.key)
    rows.ours(ALWAYS, "stripe.charge", ours, args, stripe_mock.key, times=2)
    assert rows.rows == [
        Row("stripe, defaults", HAPPENS[ONCE], "APIConnectionError", 1, 1),
        Row("stripe, defaults", HAPPENS[ERROR], "APIError", 1, 1),
        Row("stripe, defaults, called again", HAPPENS[ALWAYS], "APIConnectionError", 2, 2),
        Row("stripe, max_network_retries=0", HAPPENS[ONCE], "APIConnectionError", 1, 1),
        Row("Amends", HAPPENS[ONCE], "succeeded", 1, 1),
        Row("Amends", HAPPENS[ERROR], "succeeded", 1, 1),
        Row("Amends, called again", HAPPENS[ALWAYS], "succeeded", 1, 1),
    ]


def test_git_pushes_twice_and_calls_a_push_that_landed_rejected(compare, tmp_path, monkeypatch):
    """libcurl sends a lost push again, and the second is refused because of the first; Amends asks the remote."""
    monkeypatch.setenv("SDK_TOKEN", "a-token-of-the-sdk-test")
    origin = GitRemote.create("origin", SystemSpec(kind="git"), tmp_path, tmp_path)

    def fresh_branch():
        branch = fresh_word()
        git(origin.clone, "checkout", "-q", "-b", branch, "main")
        git(origin.clone, "commit", "-q", "--allow-empty", "-m", "the fix")
        return branch

    def commits(branch):
        there = branch in git(origin.path, "branch", "--format=%(refname:short)").split()
        return len(git(origin.path, "rev-list", f"main..{branch}").split()) if there else 0

    def push(url, branch):
        command = ["git", "push", f"{url}/origin.git", branch]
        done = subprocess.run(command, cwd=origin.clone, capture_output=True, text=True, check=False)
        return "rejected" if "rejected" in done.stderr else f"exit {done.returncode}"

    def ours(url):
        repository = {"remote": f"{url}/origin.git", "checkout": str(origin.clone), "token": "env:SDK_TOKEN"}
        return {"git": {"repositories": {"billing": repository}}}

    def args(branch):
        return {"repo": "billing", "branch": branch, "commit": git(origin.clone, "rev-parse", branch).strip()}

    with GitHttp(tmp_path) as server:
        rows = compare(server.url, posts("git-receive-pack"), commits, fresh_branch)
        rows.theirs("git push", ONCE, push)
        rows.ours(ONCE, "git.push", ours, args, "a-token-of-the-sdk-test")
    assert rows.rows == [
        Row("git push", HAPPENS[ONCE], "rejected", 2, 1),
        Row("Amends", HAPPENS[ONCE], "succeeded", 1, 1),
    ]
