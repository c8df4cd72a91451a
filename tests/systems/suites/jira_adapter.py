"""The life of every effect of the Jira adapter on Data Center, on any system that speaks its REST v2.

Each function makes an effect through the adapter, finds it again without its answer, takes it back and looks. The
project is the one that `jira.py` needs. `problems(system, base_url, token, project)` is empty if all lives go as they
should.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from amends.spi import Call, Capability, Json, Observation, Refused
from amends.spi.http import HttpSender
from amends.testing.differences import Difference, Site
from amends.testing.differences import problems as compared
from amends_jira.assign import Assign
from amends_jira.client import Jira
from amends_jira.comment import Comment, IssueCorrection
from amends_jira.create import Create
from amends_jira.labels import Labels
from amends_jira.link import Link
from amends_jira.options import JiraOptions
from amends_jira.remote_link import RemoteLink
from amends_jira.transition import Transition

BUSY = "In Progress"
_numbers = itertools.count(1)


def problems(system: str, base_url: str, token: str, project: str = "BILL") -> list[str]:
    """What is not as this page says of `system` (`loopback` or `jira820`); empty if all is."""
    asked = [_named(life, project) for life in LIVES]
    return compared(asked, DIFFERENCES, system=system, site=Site(base_url, token))


def _named(life: Any, project: str) -> Any:
    """A life that knows its project, under its own name."""
    bound: Any = partial(_live, life, project)
    bound.__name__ = life.__name__
    return bound


def _live(life: Any, project: str, site: Site) -> None:
    life(Tracker(site, project))


@dataclass(frozen=True, slots=True)
class Tracker:
    """The system, and the project to work in."""

    site: Site
    project: str

    def jira(self) -> Jira:
        options = {"base_url": self.site.base_url, "api": "data_center", "create_told": "maya"}
        return Jira(JiraOptions.model_validate(options), HttpSender())

    def say(self, method: str, path: str, body: Any = None) -> Any:
        """Somebody uses Jira without the adapter."""
        said = self.site.call(method, f"rest/api/2/{path}", body)
        assert said.status in {200, 201, 204}, said
        return said.json if said.content else {}

    def me(self) -> str:
        return str(self.say("GET", "myself")["name"])

    def fields(self, key: str) -> Any:
        return self.say("GET", f"issue/{key}")["fields"]

    def issue(self, **fields: Any) -> str:
        """The key of a new issue of somebody's."""
        given = {"project": {"key": self.project}, "issuetype": {"name": "Task"}, "summary": "life", **fields}
        return str(self.say("POST", "issue", {"fields": given})["key"])


class Action:
    """One action as the engine carries it: prepare, do, probe, undo by a rung, verify."""

    def __init__(self, tracker: Tracker, kind: Any, args: Mapping[str, Json]) -> None:
        self.capability: Capability = kind(tracker.jira())
        now_us = time.time_ns() // 1000
        marker = f"life-{now_us}-{next(_numbers)}"
        self.call = Call(
            run_id="run-1", action_id=marker, marker=marker, idempotency_key=f"key-{marker}", args=args, before={},
            allocated={}, effect={}, after={}, reference="", attempt=1, sent_at_us=now_us, timeout_seconds=10.0,
            secret=lambda _: tracker.site.token, deadline_us=now_us + 10_000_000, still_wanted=lambda: True,
        )  # fmt: skip
        prepared = self.capability.prepare(self.call)
        self.call = replace(self.call, before=prepared.before, allocated=prepared.allocated)
        self.unanswered = self.call

    def done(self) -> Action:
        receipt = self.capability.do(self.call)
        self.call = replace(self.call, effect=receipt.effect, reference=receipt.reference)
        return self

    def confirmed(self) -> Action:
        """Done, and found: with its answer and without it alike."""
        self.done()
        seen, without = self.probe(), self.capability.probe(self.unanswered)
        assert seen.seen == "applied", seen
        assert (without.seen, without.reference) == ("applied", seen.reference), without
        self.call = replace(self.call, reference=seen.reference, after=seen.state)
        return self

    def probe(self) -> Observation:
        return self.capability.probe(self.call)

    def undone(self) -> Observation:
        """By the rung that the contract's ladder gives for what is seen now."""
        seen = self.probe()
        ladder = self.capability.contract.compensation
        fits = (rung for rung in ladder if all(seen.state.get(name) in value for name, value in rung.when.items()))
        undo = replace(self.call, rung=next(fits).name, undo_key="u", undo_marker=f"undo-{self.call.marker}")
        self.capability.undo(replace(undo, observed=seen))
        return self.capability.verify_undone(self.call)


def gone(seen: Observation) -> None:
    assert seen.seen == "absent", seen


def refused(action: Action, code: str) -> None:
    assert refusal_of(lambda: action.capability.undo(action.call)) == code


def refusal_of(attempt: Callable[[], object]) -> str:
    """The code of the refusal; empty if there was none."""
    try:
        attempt()
    except Refused as refusal:
        return refusal.code
    return ""


# --- lives ------------------------------------------------------------------------------------------------------------


def an_issue_is_found_by_its_label_and_deleted(tracker: Tracker) -> None:
    args = {"project": tracker.project, "issuetype": "Task", "summary": "Überweisung 🚀", "description": "[~maya] {x}"}
    issue = Action(tracker, Create, args).confirmed()
    gone(issue.undone())
    assert issue.probe().seen == "absent", issue.probe()


def an_issue_that_somebody_commented_is_left_alone(tracker: Tracker) -> None:
    args = {"project": tracker.project, "issuetype": "Task", "summary": "life"}
    issue = Action(tracker, Create, args).confirmed()
    tracker.say("POST", f"issue/{issue.call.reference}/comment", {"body": "I work on it"})
    refused(issue, "diverged")
    assert tracker.fields(issue.call.reference)["summary"] == "life"


def a_move_is_taken_back(tracker: Tracker) -> None:
    key = tracker.issue()
    before = tracker.fields(key)["status"]["name"]
    move = Action(tracker, Transition, {"key": key, "to": BUSY}).confirmed()
    gone(move.undone())
    assert tracker.fields(key)["status"]["name"] == before


def a_move_without_what_its_screen_requires_is_not_sent(tracker: Tracker) -> None:
    key = tracker.issue()
    before = tracker.fields(key)["status"]["name"]
    shown = tracker.say("GET", f"issue/{key}/transitions?expand=transitions.fields")["transitions"]
    asking = [item["to"]["name"] for item in shown if any(one.get("required") for one in item["fields"].values())]
    assert asking, shown
    args = {"key": key, "to": asking[0]}
    assert refusal_of(lambda: Action(tracker, Transition, args)) == "field_required"
    assert tracker.fields(key)["status"]["name"] == before


def a_move_that_somebody_followed_up_is_left_alone(tracker: Tracker) -> None:
    key = tracker.issue()
    before = tracker.fields(key)["status"]["name"]
    move = Action(tracker, Transition, {"key": key, "to": BUSY}).confirmed()
    shown = tracker.say("GET", f"issue/{key}/transitions?expand=transitions.fields")["transitions"]
    free = (item for item in shown if not any(one.get("required") for one in item["fields"].values()))
    other = next(item for item in free if item["to"]["name"] != before)
    tracker.say("POST", f"issue/{key}/transitions", {"transition": {"id": other["id"]}})
    assert move.probe().seen == "diverged", move.probe()
    refused(move, "diverged")
    assert tracker.fields(key)["status"]["name"] == other["to"]["name"]


def a_comment_is_found_by_its_first_line_and_deleted(tracker: Tracker) -> None:
    comment = Action(tracker, Comment, {"key": tracker.issue(), "text": "für [x]\n\n{panel} zweite Zeile"}).confirmed()
    gone(comment.undone())
    assert comment.probe().seen == "absent", comment.probe()


def a_comment_that_somebody_edited_is_left_alone(tracker: Tracker) -> None:
    key = tracker.issue()
    comment = Action(tracker, Comment, {"key": key, "text": "hello"}).confirmed()
    number = comment.call.reference.partition("/")[2]
    tracker.say("PUT", f"issue/{key}/comment/{number}", {"body": f"amends:{comment.call.marker}\nhello, and more"})
    assert comment.probe().state == {"comment": "edited"}, comment.probe()
    refused(comment, "diverged")


def a_correction_is_found_again(tracker: Tracker) -> None:
    key = tracker.issue()
    Action(tracker, IssueCorrection, {"place": f"jira:{key}", "text": "reverted; do nothing; ask Maya"}).confirmed()
    assert len(tracker.say("GET", f"issue/{key}/comment")["comments"]) == 1


def an_assignment_is_restored(tracker: Tracker) -> None:
    key = tracker.issue()
    assign = Action(tracker, Assign, {"key": key, "account_id": tracker.me()}).confirmed()
    assert tracker.fields(key)["assignee"]["name"] == tracker.me()
    gone(assign.undone())
    assert tracker.fields(key)["assignee"] is None


def labels_are_changed_and_put_back(tracker: Tracker) -> None:
    key = tracker.issue(labels=["kept", "old"])
    labels = Action(tracker, Labels, {"key": key, "add": ["urgent"], "remove": ["old"]}).confirmed()
    assert set(tracker.fields(key)["labels"]) == {"kept", "urgent"}
    gone(labels.undone())
    assert set(tracker.fields(key)["labels"]) == {"kept", "old"}


def labels_never_count_as_changed_when_they_are_not(tracker: Tracker) -> None:
    """Whatever the answer was: what the adapter says is what stands."""
    key = tracker.issue(labels=["kept"])
    labels = Action(tracker, Labels, {"key": key, "add": ["urgent"], "remove": []}).done()
    stands = "urgent" in tracker.fields(key)["labels"]
    assert labels.probe().seen == ("applied" if stands else "absent"), labels.probe()


def a_link_is_found_and_deleted(tracker: Tracker) -> None:
    key, target = tracker.issue(), tracker.issue()
    link = Action(tracker, Link, {"key": key, "type": "Blocks", "target": target}).confirmed()
    assert [item["outwardIssue"]["key"] for item in tracker.fields(key)["issuelinks"]] == [target]
    gone(link.undone())
    assert tracker.fields(key)["issuelinks"] == []


def a_remote_link_is_found_among_others_and_deleted(tracker: Tracker) -> None:
    """Its id may have changed by then: another one before it is gone."""
    key = tracker.issue()
    theirs = [{"globalId": f"t-{one}", "object": {"url": f"https://w.test/{one}", "title": "t"}} for one in "ab"]
    first = tracker.say("POST", f"issue/{key}/remotelink", theirs[0])["id"]
    link = Action(tracker, RemoteLink, {"key": key, "url": "https://w.test/ours", "title": "ours"}).confirmed()
    tracker.say("POST", f"issue/{key}/remotelink", theirs[1])
    tracker.say("DELETE", f"issue/{key}/remotelink/{first}")
    gone(link.undone())
    assert [item["globalId"] for item in tracker.say("GET", f"issue/{key}/remotelink")] == ["t-b"]


LIVES: tuple[Any, ...] = (
    an_issue_is_found_by_its_label_and_deleted,
    an_issue_that_somebody_commented_is_left_alone,
    a_move_is_taken_back,
    a_move_without_what_its_screen_requires_is_not_sent,
    a_move_that_somebody_followed_up_is_left_alone,
    a_comment_is_found_by_its_first_line_and_deleted,
    a_comment_that_somebody_edited_is_left_alone,
    a_correction_is_found_again,
    an_assignment_is_restored,
    labels_are_changed_and_put_back,
    labels_never_count_as_changed_when_they_are_not,
    a_link_is_found_and_deleted,
    a_remote_link_is_found_among_others_and_deleted,
)

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "jira820",
        "labels_are_changed_and_put_back",
        "it answers 204 to an `update` and does nothing, and the adapter says so: it never becomes a success",
    ),
)
