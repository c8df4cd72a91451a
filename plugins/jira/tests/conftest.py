"""A loopback Jira over real sockets, in both products' forms, and calls as the engine would make them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from amends.spi import Call, Capability, Observation
from amends.spi.http import HttpSender
from amends.testing.loopback.handle import LoopbackSystem
from amends_jira.assign import Assign
from amends_jira.client import Jira
from amends_jira.comment import Comment, IssueCorrection
from amends_jira.create import Create
from amends_jira.labels import Labels
from amends_jira.link import Link
from amends_jira.options import JiraOptions
from amends_jira.remote_link import RemoteLink
from amends_jira.transition import Transition

KEY = "BILL-7"
KINDS: dict[str, type[Any]] = {
    "transition": Transition,
    "comment": Comment,
    "create": Create,
    "assign": Assign,
    "labels": Labels,
    "link": Link,
    "remote_link": RemoteLink,
    "correction": IssueCorrection,
}
PEOPLE = {
    "acc-agent": {"displayName": "Agent"},
    "acc-maya": {"displayName": "Maya"},
    "acc-noor": {"displayName": "Noor"},
}


class Site:
    """The system, the capabilities against it, and what its own side counted."""

    def __init__(self, system: LoopbackSystem, api: str = "cloud") -> None:
        self.system = system
        self.api = "/rest/api/3" if api == "cloud" else "/rest/api/2"
        given = {"base_url": system.url, "api": api, "create_told": "maya"}
        self.options = JiraOptions.model_validate({**given, "email": "agent@example.test" if api == "cloud" else ""})

    def capability(self, kind: str, **options: Any) -> Capability:
        return KINDS[kind](Jira(self.options.model_copy(update=options), HttpSender()))

    def call(self, args: dict[str, Any], *, marker: str = "act-1", **facts: Any) -> Call:
        """A call that is still wanted, written just now."""
        now_us = int(time.time() * 1_000_000)
        call = Call(
            run_id="run-1",
            action_id=marker,
            marker=marker,
            idempotency_key=f"key-{marker}",
            args=args,
            before={},
            allocated={},
            effect={},
            after={},
            reference="",
            attempt=1,
            sent_at_us=now_us,
            timeout_seconds=5.0,
            secret=lambda reference: {"env:JIRA_API_TOKEN": "jira-token"}[reference],
            deadline_us=now_us + 5_000_000,
            still_wanted=lambda: True,
        )
        return replace(call, **facts)

    def prepared(self, capability: Capability, call: Call) -> Call:
        """The call with what `prepare` read."""
        found = capability.prepare(call)
        return replace(call, before=found.before, allocated=found.allocated)

    def ready(self, kind: str, args: dict[str, Any], **facts: Any) -> tuple[Capability, Call]:
        """A capability and a prepared call of it."""
        capability = self.capability(kind)
        return capability, self.prepared(capability, self.call(args, **facts))

    def done(self, capability: Capability, call: Call) -> Call:
        """Make the call and return it with what was recorded of it."""
        receipt = capability.do(call)
        return replace(call, effect=receipt.effect, reference=receipt.reference)

    def undo(self, capability: Capability, call: Call, rung: str = "") -> Observation:
        """Undo, then read again."""
        capability.undo(replace(call, rung=rung, undo_key="key-undo", undo_marker=f"undo-{call.marker}"))
        return capability.verify_undone(call)

    def writes(self) -> list[str]:
        """Every request that could change something, as `METHOD path`, without the search."""
        logged = [row for row in self.system.requests() if row["method"] != "GET"]
        found = [f"{row['method']} {row['path'].removeprefix(self.api)}" for row in logged]
        return [line for line in found if line != "POST /search/jql"]

    def fields(self, key: str = KEY) -> dict[str, Any]:
        return next(issue["fields"] for issue in self.system.objects("issues") if issue["key"] == key)

    def foreign(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Somebody else uses Jira."""
        return self.system.foreign(method, f"{self.api}/{path}", body, account="acc-noor")

    def text(self, words: str) -> Any:
        """Text in this product's form."""
        paragraph = {"type": "paragraph", "content": [{"type": "text", "text": words}]}
        return {"type": "doc", "version": 1, "content": [paragraph]} if self.api.endswith("3") else words

    def foreign_move(self, transition_id: str) -> None:
        answer = self.foreign("POST", f"issue/{KEY}/transitions", {"transition": {"id": transition_id}})
        assert answer["status"] == 204


@pytest.fixture(scope="module")
def tracker():
    with LoopbackSystem.start("jira") as system:
        yield system


@pytest.fixture
def site(tracker: LoopbackSystem):
    yield from _site(tracker, "cloud")


@pytest.fixture(params=["cloud", "data_center"])
def each(tracker: LoopbackSystem, request: pytest.FixtureRequest):
    """One site of each product."""
    yield from _site(tracker, request.param)


def _site(system: LoopbackSystem, api: str) -> Iterator[Site]:
    """A tracker that has forgotten everything but one issue."""
    system.reset(settings=True)
    system.configure(users=PEOPLE)
    system.control("seed_issue", key=KEY, summary="billing field", status="In Progress", assignee="acc-noor")
    yield Site(system, api)
    assert system.unfired() == [], "a fault was armed in vain: the test has tested nothing"
