"""The tracker: workflow, changelog, comments and properties, a search that lags, a webhook to the portal."""

from __future__ import annotations

import time

import pytest

API = "/rest/api/3"
FIELDS = {"project": {"key": "BILL"}, "issuetype": {"name": "Task"}, "summary": "Add billing field"}


def adf(text):
    return {
        "type": "doc",
        "version": 1,
        "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}],
    }


@pytest.fixture
def issue(jira):
    jira.system.control("seed_issue", key="BILL-12", summary="Add billing field", status="In Progress")
    return f"{API}/issue/BILL-12"


def test_an_issue_is_created_with_a_marker_and_found_by_key(jira):
    """The key counts on after the seeded ones; properties are not in the fields."""
    jira.system.control("seed_issue", key="BILL-12", summary="older")
    created = jira(
        "POST",
        f"{API}/issue",
        {"fields": FIELDS, "properties": [{"key": "amends", "value": {"marker": "m-1"}}]},
    )
    assert (created.status, created.json["key"]) == (201, "BILL-13")
    found = jira("GET", f"{API}/issue/BILL-13?properties=*all&fields=summary,status").json
    assert found["properties"] == {"amends": {"marker": "m-1"}}
    assert found["fields"]["status"]["name"] == "To Do"
    assert jira.system.effects("issue")[0]["marker"] == "m-1"


@pytest.mark.parametrize("missing", ["project", "issuetype", "summary"])
def test_a_required_field_is_named(jira, missing):
    """400 with `errors` by field."""
    answer = jira("POST", f"{API}/issue", {"fields": {**FIELDS, missing: None}})
    assert (answer.status, list(answer.json["errors"])) == (400, [missing])


def test_only_transitions_of_this_moment_are_allowed(jira, issue):
    """The list is the permission; any other id is a 400."""
    offered = {item["id"]: item["to"]["name"] for item in jira("GET", f"{issue}/transitions").json["transitions"]}
    assert offered == {"21": "In Review", "41": "To Do"}
    refused = jira("POST", f"{issue}/transitions", {"transition": {"id": "31"}})
    assert (refused.status, "not valid" in refused.json["errorMessages"][0]) == (400, True)
    assert jira("POST", f"{issue}/transitions", {"transition": {"id": "21"}}).status == 204
    assert jira.system.effects("issue_status")[0]["detail"] == {"before": "In Progress", "after": "In Review"}


def test_going_back_takes_the_effect_away_and_leaves_two_history_entries(jira, issue):
    """A reverse transition restores the state, not the past."""
    for step in ("21", "51"):
        jira("POST", f"{issue}/transitions", {"transition": {"id": step}, "historyMetadata": {"marker": step}})
    assert jira.system.count("issue_status") == 0
    history = jira("GET", f"{issue}/changelog?maxResults=1&startAt=1").json
    (entry,) = history["values"]
    assert (history["total"], history["isLast"]) == (2, True)
    assert (entry["items"][0]["fromString"], entry["items"][0]["toString"]) == ("In Review", "In Progress")
    assert (entry["author"]["accountId"], entry["historyMetadata"]) == ("acc-agent", {"marker": "51"})
    expanded = jira("GET", f"{issue}?expand=changelog").json["changelog"]["histories"]
    assert [item["items"][0]["toString"] for item in expanded] == ["In Progress", "In Review"]


def test_a_transition_may_require_a_field(jira, issue):
    """A screen field that is missing is named."""
    steps = [{"id": "31", "name": "Done", "from": ["In Progress"], "to": "Done", "required": ["resolution"]}]
    jira.system.configure(transitions=steps)
    refused = jira("POST", f"{issue}/transitions", {"transition": {"id": "31"}})
    assert refused.json["errors"] == {"resolution": "resolution is required."}
    body = {"transition": {"id": "31"}, "fields": {"resolution": {"name": "Done"}}}
    assert jira("POST", f"{issue}/transitions", body).status == 204


def test_a_status_transition_fires_a_webhook_at_the_portal(jira, issue, portal):
    """Whoever has the answer knows that the portal's readers can see it."""
    jira.system.configure(webhook_url=f"{portal.system.url}/hooks/jira")
    jira("POST", f"{issue}/transitions", {"transition": {"id": "21"}})
    (notice,) = portal("GET", "/notices?about=BILL-12").json["notices"]
    assert notice["payload"]["changelog"]["items"][0]["toString"] == "In Review"
    assert notice["delivery"]
    jira("PUT", issue, {"fields": {"summary": "no webhook for this"}})
    assert portal.system.count("notice") == 1


def test_a_webhook_receiver_that_is_down_does_not_stop_the_transition(jira, issue):
    """The tracker goes on."""
    jira.system.configure(webhook_url="http://127.0.0.1:9/hooks/jira")
    assert jira("POST", f"{issue}/transitions", {"transition": {"id": "21"}}).status == 204


def test_a_transition_that_did_nothing_fires_nothing(jira, issue, portal):
    """The lie has no side effect either."""
    jira.system.configure(webhook_url=f"{portal.system.url}/hooks/jira")
    jira.system.arm("answer_without_commit", path="*/transitions")
    assert jira("POST", f"{issue}/transitions", {"transition": {"id": "21"}}).status == 204
    assert jira("GET", issue).json["fields"]["status"]["name"] == "In Progress"
    assert portal.system.counts() == {}


def test_comments_are_documents_with_hidden_markers(jira, issue):
    """Text is refused, a document is kept; properties show only when asked for."""
    assert jira("POST", f"{issue}/comment", {"body": "plain"}).status == 400
    body = {"body": adf("hello"), "properties": [{"key": "amends", "value": {"marker": "m-2"}}]}
    comment = jira("POST", f"{issue}/comment", body).json
    listed = jira("GET", f"{issue}/comment?expand=properties").json
    assert listed["total"] == 1
    assert listed["comments"][0]["properties"] == [{"key": "amends", "value": {"marker": "m-2"}}]
    assert "properties" not in jira("GET", f"{issue}/comment/{comment['id']}").json
    assert jira("GET", f"{API}/comment/{comment['id']}/properties/amends").json["value"] == {"marker": "m-2"}
    assert jira("DELETE", f"{issue}/comment/{comment['id']}").status == 204
    assert jira("DELETE", f"{issue}/comment/{comment['id']}").status == 404
    assert jira.system.present() == []


def test_properties_are_put_read_and_deleted(jira, issue):
    """201 when new, 200 when replaced, 404 when gone."""
    path = f"{issue}/properties/amends"
    assert [jira("PUT", path, {"marker": mark}).status for mark in ("a", "b")] == [201, 200]
    assert jira("GET", path).json == {"key": "amends", "value": {"marker": "b"}}
    assert jira("GET", f"{issue}/properties").json["keys"] == [{"key": "amends"}]
    assert [jira("DELETE", path).status, jira("GET", path).status] == [204, 404]
    assert jira.system.count("issue_property") == 0


def test_assignee_and_labels_change_and_can_be_put_back(jira, issue):
    """Each is an effect until it is as it was found."""
    jira("PUT", f"{issue}/assignee", {"accountId": "acc-agent"})
    jira("PUT", issue, {"update": {"labels": [{"add": "urgent"}]}})
    fields = jira("GET", issue).json["fields"]
    assert (fields["assignee"]["accountId"], fields["labels"]) == ("acc-agent", ["urgent"])
    assert [effect["kind"] for effect in jira.system.present()] == ["issue_assignee", "issue_labels"]
    jira("PUT", f"{issue}/assignee", {"accountId": None})
    jira("PUT", issue, {"update": {"labels": [{"remove": "urgent"}]}})
    assert jira.system.present() == []
    assert jira("PUT", f"{issue}/assignee", {"accountId": "nobody"}).status == 400


def test_search_is_eventually_consistent(jira):
    """A fresh issue is not found, is found when its id is named for reconciliation, and is found later."""
    jira.system.configure(search_lag_s=0.4)
    created = jira("POST", f"{API}/issue", {"fields": {**FIELDS, "labels": ["amends-1"]}}).json
    query = {"jql": 'project = BILL AND labels = "amends-1" ORDER BY created', "fields": ["labels"]}
    assert jira("POST", f"{API}/search/jql", query).json == {"issues": [], "isLast": True}
    named = jira("POST", f"{API}/search/jql", {**query, "reconcileIssues": [int(created["id"])]}).json
    assert [issue["key"] for issue in named["issues"]] == [created["key"]]
    assert jira("GET", f"{API}/issue/{created['key']}").status == 200
    time.sleep(0.5)
    assert len(jira("POST", f"{API}/search/jql", query).json["issues"]) == 1


def test_search_pages_and_shows_ids_by_default(jira):
    """`nextPageToken` until `isLast`."""
    for _ in range(3):
        jira("POST", f"{API}/issue", {"fields": FIELDS})
    query = {"jql": 'project = "BILL" and summary ~ "billing"', "maxResults": 2}
    first = jira("POST", f"{API}/search/jql", query).json
    assert ([list(issue) for issue in first["issues"]], first["isLast"]) == ([["id"], ["id"]], False)
    rest = jira("POST", f"{API}/search/jql", {**query, "nextPageToken": first["nextPageToken"]}).json
    assert (len(rest["issues"]), rest["isLast"]) == (1, True)


@pytest.mark.parametrize("jql", ["", "nonsense", "watcher = me", "issue.property[amends].marker = x"])
def test_search_refuses_what_it_does_not_know(jira, jql):
    """An unknown clause is an error, never a match for everything."""
    assert jira("POST", f"{API}/search/jql", {"jql": jql}).status == 400


def test_search_by_property_needs_an_index(jira):
    """With the property declared as indexed, its values can be searched."""
    jira.system.configure(indexed_properties=["amends"])
    properties = [{"key": "amends", "value": {"marker": "m-1"}}]
    key = jira("POST", f"{API}/issue", {"fields": FIELDS, "properties": properties}).json["key"]
    query = {"jql": 'issue.property[amends].marker = "m-1"', "fields": ["summary"]}
    assert [issue["key"] for issue in jira("POST", f"{API}/search/jql", query).json["issues"]] == [key]


def test_deleting_an_issue_takes_its_comments_along_where_it_is_allowed(jira):
    """403 without the permission, 204 with it, 404 afterwards."""
    key = jira("POST", f"{API}/issue", {"fields": FIELDS}).json["key"]
    jira("POST", f"{API}/issue/{key}/comment", {"body": adf("x")})
    jira.system.configure(may_delete_issues=False)
    assert jira("DELETE", f"{API}/issue/{key}").status == 403
    jira.system.configure(may_delete_issues=True)
    assert [jira("DELETE", f"{API}/issue/{key}").status for _ in range(2)] == [204, 404]
    assert jira.system.present() == []


def test_who_am_i_and_who_is_not(jira):
    """Basic credentials name an account; others are turned away."""
    assert jira("GET", f"{API}/myself").json["accountId"] == "acc-agent"
    for credential in ("Basic !!", "Basic bm9ib2R5Om5vdGhpbmc=", ""):
        answer = type(jira)(jira.system, credential)("GET", f"{API}/myself")
        assert (answer.status, list(answer.json)) == (401, ["errorMessages", "errors"])
