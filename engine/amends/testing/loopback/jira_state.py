"""What the tracker keeps and how it shows it: users, issues with a changelog, comments, properties on both.

One tracker, two products' APIs over it: a `Form` says how each of them names people and writes text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from amends.testing.loopback.system import Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, as_doc, as_list, iso

ISSUES = "issues"
COMMENTS = "comments"
HISTORY = "changelog"
ISSUE_PROPERTIES = "issue_properties"
COMMENT_PROPERTIES = "comment_properties"
ISSUE_LINKS = "issue_links"
REMOTE_LINKS = "remote_links"
MARKER_LABEL = "amends-"

NO_ISSUE = "Issue does not exist or you do not have permission to see it."


@dataclass(frozen=True, slots=True)
class Form:
    """How one product's API looks: where it lives, what names a person, whether text is a document or plain."""

    api: str
    person: Literal["accountId", "name"]
    documents: bool

    def is_text(self, value: Any) -> bool:
        """Whether a value is what this API takes for text."""
        return is_document(value) if self.documents else isinstance(value, str)

    def account_of(self, value: Any) -> str | None:
        """The account that a given user reference names; None for nobody."""
        named = as_doc(value).get(self.person)
        return None if named is None else str(named)


CLOUD = Form("/rest/api/3", "accountId", documents=True)
DATA_CENTER = Form("/rest/api/2", "name", documents=False)


def user_view(unit: Unit, account: str | None, form: Form = CLOUD) -> Doc | None:
    """A user as the API shows it, or None for nobody."""
    if account is None:
        return None
    known = as_doc(unit.setting("users").get(account))
    named: Doc = {"accountId": account, "accountType": "atlassian"}
    if form is DATA_CENTER:
        named = {"name": account, "key": account}
    shown: Doc = {"displayName": known.get("displayName", account), "emailAddress": known.get("emailAddress", "")}
    return {**named, "active": True, **shown}


def actor_of(unit: Unit) -> str:
    """The acting account: the credential's, or the other actor's name."""
    return unit.origin.account or unit.origin.actor


def author(unit: Unit, form: Form = CLOUD) -> Doc:
    """The acting user, as the API shows it."""
    return user_view(unit, actor_of(unit), form) or {}


def check_account(unit: Unit, account: str | None) -> None:
    """Raises:
    ApiError: nobody has this account.
    """
    if account is not None and account not in unit.setting("users"):
        raise ApiError(400, "bad_request", errors={"assignee": f"User '{account}' does not exist."})


def label_marker(labels: list[str]) -> str:
    """The client's marker, where a label carries it."""
    return next((label.removeprefix(MARKER_LABEL) for label in labels if label.startswith(MARKER_LABEL)), "")


def find_issue(unit: Unit, request: Request) -> Doc:
    """The issue that the path names by key or id, as this request is shown it."""
    named = request.params["issue"]
    issue = unit.objects.get(ISSUES, named) if request.method == "GET" else unit.objects.peek(ISSUES, named)
    if issue is None and named.isdigit():
        issue = next((item for item in unit.objects.all(ISSUES) if item["id"] == named), None)
    if issue is None:
        raise ApiError(404, "not_found", NO_ISSUE)
    return issue


def parent_issue(unit: Unit, request: Request) -> Doc:
    """The issue that the path names, as it truly is: for reads of what hangs on it."""
    issue = unit.objects.peek(ISSUES, request.params["issue"])
    if issue is None:
        raise ApiError(404, "not_found", NO_ISSUE)
    return issue


def status_view(unit: Unit, name: str) -> Doc:
    """A status as the API shows it."""
    names = list(unit.setting("statuses"))
    category = unit.setting("statuses")[name]
    return {"id": str(10000 + names.index(name)), "name": name, "statusCategory": {"key": category}}


def issue_view(unit: Unit, issue: Doc, wanted: str | None = None, form: Form = CLOUD) -> Doc:
    """An issue as the API shows it, with all fields or those named in a comma list."""
    fields = as_doc(issue["fields"])
    shown: Doc = {
        **fields,
        "status": status_view(unit, fields["status"]),
        "assignee": user_view(unit, fields["assignee"], form),
        "creator": user_view(unit, fields["creator"], form),
        "issuelinks": links_of(unit, issue["key"]),
        "subtasks": [],
    }
    if wanted is not None and "*all" not in wanted:
        names = wanted.split(",")
        shown = {name: value for name, value in shown.items() if name in names}
    return {
        "id": issue["id"],
        "key": issue["key"],
        "self": f"{unit.base}{form.api}/issue/{issue['id']}",
        "fields": shown,
    }


def links_of(unit: Unit, key: str) -> list[Doc]:
    """An issue's links, each with the issue at its other end."""
    found: list[Doc] = []
    for link in unit.objects.all(ISSUE_LINKS):
        if key in (link["inward"], link["outward"]):
            side, other = ("outwardIssue", "outward") if link["inward"] == key else ("inwardIssue", "inward")
            found.append({"id": link["id"], "type": {"name": link["type"]}, side: {"key": link[other]}})
    return found


def history_of(unit: Unit, key: str, form: Form = CLOUD) -> list[Doc]:
    """An issue's changelog, oldest first."""
    kept = [entry["entry"] for entry in unit.objects.all(HISTORY) if entry["issue"] == key]
    return [{**entry, "author": user_view(unit, entry["author"], form)} for entry in kept]


def record_change(unit: Unit, issue: Doc, items: list[Doc], metadata: Any = None) -> Doc:
    """Append one changelog entry and return it."""
    number = str(100_000 + unit.rows.next_number("changelog"))
    entry: Doc = {"id": number, "author": actor_of(unit), "created": iso(unit.now()), "items": items}
    if metadata and unit.setting("keeps_history_metadata"):
        entry["historyMetadata"] = metadata
    unit.objects.put(HISTORY, number, {"issue": issue["key"], "entry": entry})
    return entry


def change_item(field: str, before: Any, after: Any) -> Doc:
    """One changed field in a changelog entry."""
    return {
        "field": field,
        "fieldId": field,
        "fieldtype": "jira",
        "from": None if before is None else str(before),
        "fromString": None if before is None else str(before),
        "to": None if after is None else str(after),
        "toString": None if after is None else str(after),
    }


def save_fields(unit: Unit, issue: Doc, changes: Doc, metadata: Any = None) -> tuple[Doc, Doc | None]:
    """Write changed fields: the issue, its changelog and the effects. Returns the issue and the changelog entry."""
    before = as_doc(issue["fields"])
    changed = {name: value for name, value in changes.items() if before.get(name) != value}
    if not changed:
        return issue, None
    back = all(_back(unit, issue, name, value) for name, value in changed.items())
    after = {**issue, "fields": {**before, **changed, "updated": iso(unit.now())}}
    unit.objects.put(ISSUES, issue["key"], after, undo=back)
    items = [change_item(name, _plain(before.get(name)), _plain(value)) for name, value in changed.items()]
    entry = record_change(unit, issue, items, metadata)
    for name, value in changed.items():
        marker = marker_of(unit, metadata, as_doc(as_doc(metadata).get("extraData")))
        resource = f"issue:{issue['key']}"
        unit.effects.changed(f"issue_{name}", resource, before.get(name), value, marker=marker, reference=issue["key"])
    return after, entry


def put_property(unit: Unit, collection: str, owner: str, key: str, value: Any) -> bool:
    """Set a property of an issue or a comment; True when it is new."""
    place = f"{owner}:{key}"
    before = unit.objects.peek(collection, place)
    unit.objects.put(collection, place, {"owner": owner, "key": key, "value": value})
    old = None if before is None else before["value"]
    marker = marker_of(unit, value)
    unit.effects.changed(_kind(collection), place, old, value, marker=marker, reference=place)
    return before is None


def properties_of(unit: Unit, collection: str, owner: str) -> list[Doc]:
    """The properties of an issue or a comment as `{"key", "value"}`."""
    return [
        {"key": item["key"], "value": item["value"]} for item in unit.objects.all(collection) if item["owner"] == owner
    ]


def remove_property(unit: Unit, collection: str, owner: str, key: str) -> None:
    """Take a property away.

    Raises:
        ApiError: it is not there.
    """
    place = f"{owner}:{key}"
    before = unit.objects.peek(collection, place)
    if before is None:
        raise ApiError(404, "not_found", f"The property with key {key} does not exist.")
    unit.objects.remove(collection, place)
    unit.effects.changed(_kind(collection), place, before["value"], None, reference=place)


def is_document(value: Any) -> bool:
    """Whether a value is a rich-text document in the Atlassian Document Format."""
    doc = as_doc(value)
    return doc.get("type") == "doc" and doc.get("version") == 1 and isinstance(doc.get("content"), list)


def _back(unit: Unit, issue: Doc, name: str, value: Any) -> bool:
    present = unit.effects.find(f"issue_{name}", f"issue:{issue['key']}")
    return any(effect["detail"]["before"] == value for effect in present)


def _plain(value: Any) -> Any:
    return " ".join(map(str, as_list(value))) if isinstance(value, list) else value


def _kind(collection: str) -> str:
    return "issue_property" if collection == ISSUE_PROPERTIES else "comment_property"
