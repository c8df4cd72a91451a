"""What the Jira adapter relies on in Data Center's REST v2, asked of any system that speaks it.

Run it on a loopback system and on the emulator: `problems(system, base_url, token, project)`. `base_url` is the site's,
without `/rest`. The project needs the issue type `Task`, a status `In Progress` that a new issue can go to without a
screen and come back from, a second way on from there, a transition of a new issue whose screen requires fields, the
link type `Blocks`, and the signed-in user. It leaves issues behind.
"""

from __future__ import annotations

import itertools
import time
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from amends.testing.differences import Difference, Said, Site
from amends.testing.differences import problems as compared

BUSY = "In Progress"
LOOPBACK: dict[str, Any] = {  # settings that give a loopback tracker such a project
    "transitions": [
        {"id": "11", "name": "Start", "from": ["To Do"], "to": BUSY},
        {"id": "21", "name": "Send to review", "from": [BUSY], "to": "In Review"},
        {"id": "41", "name": "Stop", "from": [BUSY, "Done"], "to": "To Do"},
        {
            "id": "61",
            "name": "Close",
            "from": ["To Do"],
            "to": "Done",
            "screen": {"worklog": {"required": True, "operations": ["add"]}},
        },
    ]
}
_numbers = itertools.count(1)


def problems(system: str, base_url: str, token: str, project: str = "BILL") -> list[str]:
    """What is not as this page says of `system` (`loopback` or `jira820`); empty if all is."""
    site = Site(f"{base_url.rstrip('/')}/rest/api/2", token)
    asked = [_named(behaviour, project) for behaviour in BEHAVIOURS]
    return compared(asked, DIFFERENCES, system=system, site=site)


def _named(behaviour: Any, project: str) -> Any:
    """A behaviour that knows its project, under its own name."""
    bound: Any = partial(behaviour, project=project)
    bound.__name__ = behaviour.__name__
    return bound


# --- how the adapter asks ---------------------------------------------------------------------------------------------


def read(site: Site, path: str, **query: Any) -> Any:
    said = site.call("GET", f"{path}?{urlencode(query)}" if query else path)
    assert said.status == 200, said
    return said.json


def fresh(word: str = "m") -> str:
    return f"{word}-{time.time_ns()}-{next(_numbers)}"


def created(site: Site, project: str, **fields: Any) -> str:
    """The key of a new issue."""
    said = asked_to_create(site, project, **fields)
    assert said.status == 201, said
    return str(said.json["key"])


def asked_to_create(site: Site, project: str, **fields: Any) -> Said:
    given = {"project": {"key": project}, "issuetype": {"name": "Task"}, "summary": fresh("issue"), **fields}
    return site.call("POST", "issue", {"fields": given})


def field(site: Site, key: str, name: str) -> Any:
    return read(site, f"issue/{key}", fields=name)["fields"][name]


def status(site: Site, key: str) -> str:
    return str(field(site, key, "status")["name"])


def edited(site: Site, key: str, **body: Any) -> None:
    said = site.call("PUT", f"issue/{key}", body)
    assert said.status == 204, said


def offered(site: Site, key: str) -> dict[str, str]:
    """Target status -> id of the transition that leads there now."""
    shown = read(site, f"issue/{key}/transitions", expand="transitions.fields")["transitions"]
    return {item["to"]["name"]: item["id"] for item in shown}


def moved(site: Site, key: str, to: str, **more: Any) -> None:
    said = site.call("POST", f"issue/{key}/transitions", {"transition": {"id": offered(site, key)[to]}, **more})
    assert said.status == 204, said


def histories(site: Site, key: str) -> list[Any]:
    """The changelog, oldest first."""
    shown = read(site, f"issue/{key}", fields="status", expand="changelog")["changelog"]
    assert shown["total"] == len(shown["histories"]), shown
    return sorted(shown["histories"], key=lambda entry: int(entry["id"]))


def commented(site: Site, key: str, text: str) -> str:
    said = site.call("POST", f"issue/{key}/comment", {"body": text})
    assert said.status == 201, said
    assert said.json["body"] == text, said
    return str(said.json["id"])


def comments(site: Site, key: str) -> list[Any]:
    shown = read(site, f"issue/{key}/comment", startAt=0, maxResults=100, orderBy="-created")
    assert shown["total"] == len(shown["comments"]), shown
    return list(shown["comments"])


def found(site: Site, jql: str, **query: Any) -> list[str]:
    said = read(site, "search", jql=jql, fields="labels", startAt=0, maxResults=50, **query)
    return [item["key"] for item in said["issues"]]


def linked(site: Site, key: str, target: str) -> list[Any]:
    links = field(site, key, "issuelinks")
    return [item for item in links if item.get("outwardIssue", {}).get("key") == target]


def link(site: Site, key: str, target: str) -> Said:
    ends = {"inwardIssue": {"key": key}, "outwardIssue": {"key": target}}
    return site.call("POST", "issueLink", {"type": {"name": "Blocks"}, **ends})


def remote(site: Site, key: str, global_id: str) -> list[Any]:
    return [item for item in read(site, f"issue/{key}/remotelink") if item.get("globalId") == global_id]


def linked_remotely(site: Site, key: str, global_id: str, url: str) -> int:
    body = {"globalId": global_id, "object": {"url": url, "title": "page"}}
    said = site.call("POST", f"issue/{key}/remotelink", body)
    assert said.status in {200, 201}, said
    return int(said.json["id"])


def refused(said: Said, code: int, *fields: str) -> None:
    """Refused in Jira's own form, by the names of fields."""
    assert said.status == code, said
    assert set(said.json) >= {"errorMessages", "errors"}, said
    assert set(said.json["errors"]) == set(fields), said


# --- behaviours -------------------------------------------------------------------------------------------------------


def a_token_is_needed(site: Site, project: str) -> None:
    """401 without one."""
    del project
    assert Site(site.base_url, "nobody").call("GET", "myself").status == 401


def myself_names_the_user(site: Site, project: str) -> None:
    """Data Center names people by `name`; the changelog's authors are compared with it."""
    del project
    said = read(site, "myself")
    assert said["name"], said
    assert "accountId" not in said, said


def a_new_issue_has_a_key_of_its_project(site: Site, project: str) -> None:
    """The answer to a create names the key, and the key can be read at once."""
    key = created(site, project)
    assert key.startswith(f"{project}-"), key
    assert read(site, f"issue/{key}", fields="status")["key"] == key


def the_same_create_twice_is_two_issues(site: Site, project: str) -> None:
    """Nothing keeps a second send from making a second issue."""
    summary = fresh("twice")
    assert created(site, project, summary=summary) != created(site, project, summary=summary)


def a_create_without_its_project_names_the_field(site: Site, project: str) -> None:
    """The refusal's code is the field."""
    del project
    refused(asked_to_create(site, "NOSUCH"), 400, "project")


def a_create_without_a_summary_names_the_field(site: Site, project: str) -> None:
    """The refusal's code is the field."""
    refused(asked_to_create(site, project, summary=""), 400, "summary")


def text_is_kept_as_it_was_sent(site: Site, project: str) -> None:
    """Wiki text, Unicode and all: a comment's first line is a marker."""
    text = "amends:1\n\\[~maya] grüßt 🚀\n\n\\{code}"
    key = created(site, project, description=text)
    assert field(site, key, "description") == text


def an_issue_that_is_not_there_is_404(site: Site, project: str) -> None:
    """In Jira's own form."""
    refused(site.call("GET", f"issue/{project}-999999"), 404)


def a_label_finds_its_issue(site: Site, project: str) -> None:
    """How a created issue is found again: by project and label, newest or not."""
    word = fresh("amends")
    key = created(site, project, labels=[word, "other"])
    assert found(site, f'project = "{project}" AND labels = "{word}"') == [key]


def a_search_is_paged_by_its_start(site: Site, project: str) -> None:
    """`total` says how many there are, `startAt` which come."""
    word = fresh("amends")
    keys = {created(site, project, labels=[word]) for _ in range(3)}
    query = {"jql": f'labels = "{word}"', "fields": "labels", "maxResults": 2}
    pages = [read(site, "search", startAt=start, **query) for start in (0, 2)]
    assert [page["total"] for page in pages] == [3, 3], pages
    assert {item["key"] for page in pages for item in page["issues"]} == keys, pages


def a_search_by_status_and_type_finds_only_such(site: Site, project: str) -> None:
    """How the way back looks for an issue that stands in a status."""
    key = created(site, project)
    moved(site, key, BUSY)
    jql = f'project = "{project}" AND issuetype = "Task" AND status = "{BUSY}"'
    issues = read(site, "search", jql=jql, fields="status,issuetype", maxResults=100)["issues"]
    shown = {(item["fields"]["status"]["name"], item["fields"]["issuetype"]["name"]) for item in issues}
    assert shown == {(BUSY, "Task")}, shown


def an_unknown_clause_is_refused(site: Site, project: str) -> None:
    """Never a match for everything; the adapter looks at every hit again all the same."""
    said = site.call("GET", f"search?{urlencode({'jql': f'project = {project} AND nosuchfield = x'})}")
    assert said.status == 400, said.status


def only_transitions_of_this_moment_are_taken(site: Site, project: str) -> None:
    """The list is the permission: the way that was just taken is no longer offered."""
    key = created(site, project)
    number = offered(site, key)[BUSY]
    before = status(site, key)
    moved(site, key, BUSY)
    assert BUSY not in offered(site, key)
    refused(site.call("POST", f"issue/{key}/transitions", {"transition": {"id": number}}), 400)
    assert status(site, key) == BUSY
    moved(site, key, before)
    assert status(site, key) == before


def a_screen_field_that_is_required_must_be_given(site: Site, project: str) -> None:
    """Screens are shown with their fields; without a required one nothing moves."""
    key = created(site, project)
    for item in _screened(site, key):
        said = site.call("POST", f"issue/{key}/transitions", {"transition": {"id": item["id"]}})
        assert said.status == 400, said
        assert status(site, key) != item["to"]["name"]


def a_screen_says_what_may_be_done_with_a_field(site: Site, project: str) -> None:
    """`operations`: what can only be added to goes under `update`."""
    key = created(site, project)
    fields = [field for item in _screened(site, key) for field in item["fields"].values()]
    assert all(item["operations"] for item in fields), fields


def _screened(site: Site, key: str) -> list[Any]:
    """Transitions with a required field."""
    shown = read(site, f"issue/{key}/transitions", expand="transitions.fields")["transitions"]
    screened = [item for item in shown if any(one.get("required") for one in item["fields"].values())]
    assert screened, "the project has no transition whose screen requires a field"
    return screened


def a_transition_is_in_the_changelog(site: Site, project: str) -> None:
    """From, to and author, under a number that rises."""
    key = created(site, project)
    before = status(site, key)
    moved(site, key, BUSY)
    moved(site, key, before)
    first, second = histories(site, key)[-2:]
    assert first["author"]["name"] == read(site, "myself")["name"], first
    ends = [(item["fromString"], item["toString"]) for entry in (first, second) for item in entry["items"]]
    assert (before, BUSY) in ends, ends
    assert (BUSY, before) in ends, ends


def a_change_keeps_its_metadata(site: Site, project: str) -> None:
    """How the changelog tells our change from another of the same account."""
    key = created(site, project)
    metadata = {"type": "amends:action", "extraData": {"amends_action": "m-1"}}
    moved(site, key, BUSY, historyMetadata=metadata)
    assert histories(site, key)[-1].get("historyMetadata", {}).get("extraData") == metadata["extraData"]


def an_edit_is_in_the_changelog(site: Site, project: str) -> None:
    """Whose hand assigned an issue."""
    key = created(site, project)
    edited(site, key, fields={"assignee": {"name": read(site, "myself")["name"]}})
    fields = [item["field"] for entry in histories(site, key) for item in entry["items"]]
    assert "assignee" in fields, fields


def an_edit_assigns_and_unassigns(site: Site, project: str) -> None:
    """By name; null is nobody."""
    key = created(site, project)
    name = read(site, "myself")["name"]
    edited(site, key, fields={"assignee": {"name": name}})
    assert field(site, key, "assignee")["name"] == name
    edited(site, key, fields={"assignee": None})
    assert field(site, key, "assignee") is None


def nobody_unknown_is_assigned(site: Site, project: str) -> None:
    """400 with the field's name."""
    key = created(site, project)
    refused(site.call("PUT", f"issue/{key}", {"fields": {"assignee": {"name": fresh("nobody")}}}), 400, "assignee")


def labels_are_added_and_removed_one_by_one(site: Site, project: str) -> None:
    """What others have set stays."""
    key = created(site, project, labels=["theirs"])
    edited(site, key, update={"labels": [{"add": "ours"}]})
    assert set(field(site, key, "labels")) == {"theirs", "ours"}
    edited(site, key, update={"labels": [{"remove": "ours"}]})
    assert field(site, key, "labels") == ["theirs"]


def a_comment_is_listed_until_it_is_deleted(site: Site, project: str) -> None:
    """Its text is answered as sent; a second delete finds nothing."""
    key = created(site, project)
    number = commented(site, key, f"amends:{fresh()}\nhello")
    assert [item["id"] for item in comments(site, key)] == [number]
    assert site.call("DELETE", f"issue/{key}/comment/{number}").status == 204
    assert comments(site, key) == []
    refused(site.call("DELETE", f"issue/{key}/comment/{number}"), 404)


def comments_are_paged(site: Site, project: str) -> None:
    """`total` over all pages."""
    key = created(site, project)
    numbers = {commented(site, key, f"part {number}") for number in range(3)}
    pages = [read(site, f"issue/{key}/comment", startAt=start, maxResults=2) for start in (0, 2)]
    assert [page["total"] for page in pages] == [3, 3], pages
    assert {item["id"] for page in pages for item in page["comments"]} == numbers, pages


def a_comment_says_when_it_was_made(site: Site, project: str) -> None:
    """Readably, with an offset."""
    key = created(site, project)
    commented(site, key, "hello")
    text = comments(site, key)[0]["created"]
    assert datetime.fromisoformat(text.replace("+0000", "+00:00")).tzinfo is not None, text


def a_link_stands_at_both_issues_until_it_is_deleted(site: Site, project: str) -> None:
    """The inward issue shows the outward one, and the other way round, under one id."""
    key, target = created(site, project), created(site, project)
    assert link(site, key, target).status == 201
    (made,) = linked(site, key, target)
    assert made["type"]["name"] == "Blocks", made
    other = field(site, target, "issuelinks")
    assert [(item["id"], item["inwardIssue"]["key"]) for item in other] == [(made["id"], key)], other
    assert site.call("DELETE", f"issueLink/{made['id']}").status == 204
    assert linked(site, key, target) == []


def the_same_link_twice_is_one_link(site: Site, project: str) -> None:
    """The second is accepted and changes nothing."""
    key, target = created(site, project), created(site, project)
    assert [link(site, key, target).status for _ in range(2)] == [201, 201]
    assert len(linked(site, key, target)) == 1


def a_link_that_is_gone_cannot_be_deleted(site: Site, project: str) -> None:
    """404: done already."""
    del project
    assert site.call("DELETE", "issueLink/987654321").status == 404


def an_issue_is_not_linked_to_what_is_not_there(site: Site, project: str) -> None:
    """404, and nothing stands."""
    key = created(site, project)
    assert link(site, key, f"{project}-999999").status == 404
    assert field(site, key, "issuelinks") == []


def a_link_is_in_the_changelog(site: Site, project: str) -> None:
    """Whose hand made it: a link carries no marker."""
    key, target = created(site, project), created(site, project)
    link(site, key, target)
    items = [item for entry in histories(site, key) for item in entry["items"]]
    assert ("Link", target) in [(item["field"], item["to"]) for item in items], items


def a_global_id_names_one_remote_link(site: Site, project: str) -> None:
    """A second send updates the first."""
    key, word = created(site, project), f"amends:{fresh()}"
    numbers = {linked_remotely(site, key, word, f"https://wiki.test/{path}") for path in ("a", "b")}
    (made,) = remote(site, key, word)
    assert {made["id"]} == numbers, made
    assert made["object"]["url"] == "https://wiki.test/b", made


def a_remote_link_is_deleted_by_its_id(site: Site, project: str) -> None:
    """And is gone from the list."""
    key, word = created(site, project), f"amends:{fresh()}"
    number = linked_remotely(site, key, word, "https://wiki.test/a")
    assert site.call("DELETE", f"issue/{key}/remotelink/{number}").status == 204
    assert remote(site, key, word) == []


def a_remote_link_keeps_its_id(site: Site, project: str) -> None:
    """Also when an earlier one is deleted."""
    key, words = created(site, project), [f"amends:{fresh()}" for _ in range(2)]
    first, second = (linked_remotely(site, key, word, "https://wiki.test/a") for word in words)
    site.call("DELETE", f"issue/{key}/remotelink/{first}")
    assert [item["id"] for item in remote(site, key, words[1])] == [second]


def a_property_is_kept(site: Site, project: str) -> None:
    """Where there are properties, they are invisible to readers."""
    key = created(site, project)
    path = f"issue/{key}/properties/amends.action"
    assert site.call("PUT", path, {"amends_action": "m-1"}).status == 201
    assert read(site, path)["value"] == {"amends_action": "m-1"}


def a_deleted_issue_is_gone(site: Site, project: str) -> None:
    """404 for a read and for a second delete."""
    key = created(site, project)
    assert site.call("DELETE", f"issue/{key}").status == 204
    refused(site.call("GET", f"issue/{key}"), 404)
    refused(site.call("DELETE", f"issue/{key}"), 404)


def a_deleted_issues_key_is_not_given_out_again(site: Site, project: str) -> None:
    """A key names one issue for good."""
    key = created(site, project)
    site.call("DELETE", f"issue/{key}")
    assert created(site, project) != key


def the_project_says_that_it_is_visible(site: Site, project: str) -> None:
    """An issue that is not found in a project that is visible is gone, not hidden."""
    assert read(site, f"project/{project}")["key"] == project


BEHAVIOURS: tuple[Any, ...] = (
    a_token_is_needed,
    myself_names_the_user,
    a_new_issue_has_a_key_of_its_project,
    the_same_create_twice_is_two_issues,
    a_create_without_its_project_names_the_field,
    a_create_without_a_summary_names_the_field,
    text_is_kept_as_it_was_sent,
    an_issue_that_is_not_there_is_404,
    a_label_finds_its_issue,
    a_search_is_paged_by_its_start,
    a_search_by_status_and_type_finds_only_such,
    an_unknown_clause_is_refused,
    only_transitions_of_this_moment_are_taken,
    a_screen_field_that_is_required_must_be_given,
    a_screen_says_what_may_be_done_with_a_field,
    a_transition_is_in_the_changelog,
    a_change_keeps_its_metadata,
    an_edit_is_in_the_changelog,
    an_edit_assigns_and_unassigns,
    nobody_unknown_is_assigned,
    labels_are_added_and_removed_one_by_one,
    a_comment_is_listed_until_it_is_deleted,
    comments_are_paged,
    a_comment_says_when_it_was_made,
    a_link_stands_at_both_issues_until_it_is_deleted,
    the_same_link_twice_is_one_link,
    a_link_that_is_gone_cannot_be_deleted,
    an_issue_is_not_linked_to_what_is_not_there,
    a_link_is_in_the_changelog,
    a_global_id_names_one_remote_link,
    a_remote_link_is_deleted_by_its_id,
    a_remote_link_keeps_its_id,
    a_property_is_kept,
    a_deleted_issue_is_gone,
    a_deleted_issues_key_is_not_given_out_again,
    the_project_says_that_it_is_visible,
)
DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "jira820",
        "a_token_is_needed",
        "it has no accounts: everybody is `admin`, so whose change it was cannot be tested there",
    ),
    Difference(
        "jira820",
        "an_unknown_clause_is_refused",
        "it ignores such a clause and answers with every issue: why each hit is looked at again on our side",
    ),
    Difference(
        "jira820",
        "a_screen_field_that_is_required_must_be_given",
        "it shows the screen and moves without it: the adapter reads the screen and refuses by itself",
    ),
    Difference(
        "jira820",
        "a_change_keeps_its_metadata",
        "it drops `historyMetadata`: the author then says whose change it was, and a way back has one step or none",
    ),
    Difference(
        "jira820",
        "an_edit_is_in_the_changelog",
        "only transitions are: an assignment is judged by its value alone",
    ),
    Difference(
        "jira820",
        "nobody_unknown_is_assigned",
        "it assigns any name; the adapter asks nothing of it but to read the name back",
    ),
    Difference(
        "jira820",
        "labels_are_added_and_removed_one_by_one",
        "it answers 204 to an `update` and does nothing: the separate read finds nothing, so it never is a success",
    ),
    Difference(
        "jira820",
        "the_same_link_twice_is_one_link",
        "it keeps both: a second one is found as a twin",
    ),
    Difference(
        "jira820",
        "a_link_that_is_gone_cannot_be_deleted",
        "it answers 204 to any id: a delete counts only when the link is seen to be gone",
    ),
    Difference(
        "jira820",
        "a_link_is_in_the_changelog",
        "only transitions are: a link is told by not having stood before",
    ),
    Difference(
        "jira820",
        "a_remote_link_keeps_its_id",
        "its ids are places in a list: the adapter finds the link by global id and takes the id it has at that moment",
    ),
    Difference(
        "jira820",
        "a_property_is_kept",
        "it has no properties: on Data Center the adapter marks with labels and lines of text",
    ),
    Difference(
        "jira820",
        "a_deleted_issues_key_is_not_given_out_again",
        "it gives out the highest key again: a known key counts only if the issue bears our marker",
    ),
)
