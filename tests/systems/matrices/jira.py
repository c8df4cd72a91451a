"""The fault matrix of the Jira capabilities, over any site that speaks Cloud's REST v3 or Data Center's REST v2.

A subclass says how its site is started, as a `Site`. Effects are counted, and other people act, by the site's own REST
API without the adapter. The project needs the issue type `Task`, a status `In Progress` that a new issue can go to
and come back from without a screen, another one that it can go on to, and the link type `Blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from unicodedata import normalize
from urllib.parse import urlencode

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Denial, Exchange, Subject
from systems.matrices.people import MAYA, SECRETS
from systems.web import want

BUSY = "In Progress"
CORRECTION = "[Automated correction"  # how the engine's notes begin
NO = Denial(body={"errorMessages": ["You do not have permission to edit issues in this project."], "errors": {}})
TOKEN = "of-the-kit-a8d1"
UNMARKED = "a link between issues takes no text: it is told by its type and both ends, which did not stand before"
CROWD = 105  # more than a page of the adapter's


@dataclass(frozen=True, kw_only=True)
class Site:
    """A running site. `token` is that of somebody else who uses it; `told` is the table of the adapter through which
    Maya hears that an issue was deleted again.
    """

    url: str
    api: Literal["cloud", "data_center"]
    token: str
    told: Mapping[str, Json]
    project: str = "BILL"
    maya: str = "acc-maya"
    noor: str = "acc-noor"

    def say(self, method: str, path: str, body: object = None) -> Any:
        """Somebody else asks: `path` goes on after `/rest/api/N/`. Raises `Unexpected` where the site says no."""
        address = f"{self.url}/rest/api/{3 if self.cloud else 2}/{path}"
        return want(method, address, body, headers={"authorization": f"Bearer {self.token}"})

    @property
    def cloud(self) -> bool:
        return self.api == "cloud"

    def text(self, words: str) -> object:
        """Words as this product takes them."""
        paragraph = {"type": "paragraph", "content": [{"type": "text", "text": words}]}
        return {"type": "doc", "version": 1, "content": [paragraph]} if self.cloud else words

    def issue(self, **fields: object) -> str:
        """The key of a new issue of somebody's."""
        given = {"project": {"key": self.project}, "issuetype": {"name": "Task"}, "summary": "theirs", **fields}
        return str(self.say("POST", "issue", {"fields": given})["key"])

    def fields(self, args: Args) -> Any:
        """The fields of the issue that a call is about."""
        return self.say("GET", f"issue/{args['key']}")["fields"]

    def edit(self, args: Args, body: object) -> None:
        """Somebody changes the issue."""
        self.say("PUT", f"issue/{args['key']}", body)

    def labelled(self, label: Json) -> list[str]:
        """The keys of the issues with this label."""
        jql = f'project = "{self.project}" AND labels = "{label}"'
        if self.cloud:
            found = self.say("POST", "search/jql", {"jql": jql, "fields": ["labels"]})
        else:
            found = self.say("GET", f"search?{urlencode({'jql': jql, 'fields': 'labels'})}")
        return [item["key"] for item in found["issues"] if label in item["fields"]["labels"]]


# --- transitions ------------------------------------------------------------------------------------------------------


def _status(site: Site, args: Args) -> str:
    return str(site.fields(args)["status"]["name"])


def _move(site: Site, args: Args, to: Callable[[str], bool]) -> None:
    """Somebody moves the issue to the first such status that asks for nothing."""
    shown = site.say("GET", f"issue/{args['key']}/transitions?expand=transitions.fields")["transitions"]
    free = (item for item in shown if not any(one.get("required") for one in item["fields"].values()))
    number = next(item["id"] for item in free if to(item["to"]["name"]))
    site.say("POST", f"issue/{args['key']}/transitions", {"transition": {"id": number}})


def _new(site: Site) -> str:
    """The status of a new issue."""
    return _status(site, {"key": site.issue()})


def _move_back(site: Site, args: Args) -> None:
    before = _new(site)
    _move(site, args, lambda status: status == before)


def _move_on(site: Site, args: Args) -> None:
    before = _new(site)
    _move(site, args, lambda status: status not in (before, BUSY))


TRANSITION = Subject[Site](
    capability="jira.transition",
    args=lambda site, _: {"key": site.issue(), "to": BUSY},
    effects=lambda site, args: int(_status(site, args) == BUSY),
    other=lambda args: {**args, "transition": "by another way"},
    taken_away=_move_back,
    edited=_move_on,
    kept=lambda site, args: _status(site, args) not in (_new(site), BUSY),
    denial=NO,
)

# --- comments ---------------------------------------------------------------------------------------------------------


def _said(body: Any) -> str:
    """The words of a comment."""
    if isinstance(body, str):
        return body
    words = ("".join(one["text"] for one in line["content"]) for line in body["content"])
    return "\n".join(words)


def _comments(site: Site, args: Args) -> list[Any]:
    """The comments with the text of a call."""
    found = site.say("GET", f"issue/{args['key']}/comment?startAt=0&maxResults=1000")["comments"]
    wanted = normalize("NFC", str(args["text"])).strip()  # the form in which arguments are recorded and sent
    return [item for item in found if wanted in _said(item["body"])]


def _comment_crowd(site: Site, args: Args) -> None:
    for number in range(CROWD):
        site.say("POST", f"issue/{args['key']}/comment", {"body": site.text(f"other {number}")})


def _delete_comments(site: Site, args: Args) -> None:
    for item in _comments(site, args):
        site.say("DELETE", f"issue/{args['key']}/comment/{item['id']}")


def _edit_comment(site: Site, args: Args) -> None:
    [item] = _comments(site, args)
    first, _, rest = _said(item["body"]).rpartition("\n")
    body = site.text(f"{first}\ntheirs: {rest}" if first else f"theirs: {rest}")
    site.say("PUT", f"issue/{args['key']}/comment/{item['id']}", {"body": body})


COMMENT = Subject[Site](
    capability="jira.comment",
    args=lambda site, word: {"key": site.issue(), "text": f"billing is live {word}"},
    effects=lambda site, args: len(_comments(site, args)),
    other=lambda args: {**args, "text": "in other words"},
    text="text",
    taken_away=_delete_comments,
    edited=_edit_comment,
    kept=lambda site, args: any("theirs: " in _said(item["body"]) for item in _comments(site, args)),
    crowd=_comment_crowd,
    denial=NO,
)

# --- new issues -------------------------------------------------------------------------------------------------------


def _new_issue(site: Site, word: str) -> Args:
    """Counted by a label of its own."""
    return {"project": site.project, "issuetype": "Task", "summary": f"new {word}", "fields": {"labels": [word]}}


def _issues(site: Site, args: Args) -> list[str]:
    given: Any = args["fields"]
    return site.labelled(given["labels"][0])


def _delete_issues(site: Site, args: Args) -> None:
    for key in _issues(site, args):
        site.say("DELETE", f"issue/{key}")


def _work_on(site: Site, args: Args) -> None:
    [key] = _issues(site, args)
    site.say("POST", f"issue/{key}/comment", {"body": site.text("I work on it")})


def _issue_crowd(site: Site, args: Args) -> None:
    del args
    for _ in range(CROWD):
        site.issue()


CREATE = Subject[Site](
    capability="jira.create",
    args=_new_issue,
    effects=lambda site, args: len(_issues(site, args)),
    other=lambda args: {**args, "summary": "in other words"},
    text="description",
    taken_away=_delete_issues,
    edited=_work_on,
    kept=lambda site, args: len(_issues(site, args)) == 1,
    crowd=_issue_crowd,
    denial=NO,
)

# --- states -----------------------------------------------------------------------------------------------------------


def _assignee(site: Site, args: Args) -> Json:
    named: Any = site.fields(args)["assignee"] or {}
    found: Json = named.get("accountId" if site.cloud else "name")
    return found


def _assigned(who: Callable[[Site], str | None]) -> Callable[[Site, Args], None]:
    """Somebody assigns it."""

    def assign(site: Site, args: Args) -> None:
        name = who(site)
        person = {"accountId" if site.cloud else "name": name} if name else None
        site.edit(args, {"fields": {"assignee": person}})

    return assign


ASSIGN = Subject[Site](
    capability="jira.assign",
    args=lambda site, _: {"key": site.issue(), "account_id": site.maya},
    effects=lambda site, args: int(_assignee(site, args) == site.maya),
    taken_away=_assigned(lambda _: None),
    edited=_assigned(lambda site: site.noor),
    kept=lambda site, args: _assignee(site, args) == site.noor,
    denial=NO,
)


def _relabelled(*steps: object) -> Callable[[Site, Args], None]:
    """Somebody changes labels."""
    return lambda site, args: site.edit(args, {"update": {"labels": list(steps)}})


LABELS = Subject[Site](
    capability="jira.labels",
    args=lambda site, _: {"key": site.issue(labels=["kept", "old"]), "add": ["urgent"], "remove": ["old"]},
    effects=lambda site, args: int("urgent" in site.fields(args)["labels"]),
    taken_away=_relabelled({"remove": "urgent"}, {"add": "old"}),
    edited=_relabelled({"add": "old"}),
    kept=lambda site, args: "old" in site.fields(args)["labels"],
    denial=NO,
)

# --- links ------------------------------------------------------------------------------------------------------------


def _links(site: Site, args: Args) -> list[Any]:
    found = site.fields(args)["issuelinks"]
    return [item for item in found if item.get("outwardIssue", {}).get("key") == args["target"]]


def _unlink(site: Site, args: Args) -> None:
    for item in _links(site, args):
        site.say("DELETE", f"issueLink/{item['id']}")


LINK = Subject[Site](
    capability="jira.link",
    args=lambda site, _: {"key": site.issue(), "type": "Blocks", "target": site.issue()},
    effects=lambda site, args: len(_links(site, args)),
    taken_away=_unlink,
    denial=NO,
    exempt={"test_the_request_names_our_action": UNMARKED},
)


def _remote(site: Site, args: Args) -> list[Any]:
    return list(site.say("GET", f"issue/{args['key']}/remotelink"))


def _unlink_remotely(site: Site, args: Args) -> None:
    for item in _remote(site, args):
        site.say("DELETE", f"issue/{args['key']}/remotelink/{item['id']}")


def _point_elsewhere(site: Site, args: Args) -> None:
    [item] = _remote(site, args)
    body = {"globalId": item["globalId"], "object": {**item["object"], "url": "https://wiki.test/theirs"}}
    site.say("POST", f"issue/{args['key']}/remotelink", body)


def _link_crowd(site: Site, args: Args) -> None:
    there = len(_remote(site, args))
    for number in range(there, there + CROWD):
        thing = {"url": f"https://wiki.test/{number}", "title": "another"}
        site.say("POST", f"issue/{args['key']}/remotelink", {"globalId": f"theirs-{number}", "object": thing})


REMOTE_LINK = Subject[Site](
    capability="jira.remote_link",
    args=lambda site, word: {"key": site.issue(), "url": f"https://wiki.test/{word}", "title": "Rollout"},
    effects=lambda site, args: len([item for item in _remote(site, args) if item["object"]["url"] == args["url"]]),
    other=lambda args: {**args, "title": "in other words"},
    text="title",
    taken_away=_unlink_remotely,
    edited=_point_elsewhere,
    kept=lambda site, args: [item["object"]["url"] for item in _remote(site, args)] == ["https://wiki.test/theirs"],
    crowd=_link_crowd,
    denial=NO,
)

# --- the matrices -----------------------------------------------------------------------------------------------------


class JiraMatrix(AdapterMatrix[Site]):
    """A site that only a team reads: everything can be taken back."""

    subjects: ClassVar[tuple[Subject[Any], ...]] = (TRANSITION, COMMENT, CREATE, ASSIGN, LABELS, LINK, REMOTE_LINK)
    options: ClassVar[Mapping[str, Json]] = {
        "customer_facing": False,
        "transition": "compensatable",
        "create_told": MAYA,
    }

    def upstream(self, system: Site) -> str:
        return system.url

    def adapters(self, system: Site, address: str) -> Mapping[str, Mapping[str, Json]]:
        given: dict[str, Json] = {"base_url": address, "api": system.api, "token": "env:JIRA_TOKEN", **self.options}
        return {"jira": given, "slack": system.told}

    def secrets(self, system: Site) -> Mapping[str, str]:
        del system
        return {"JIRA_TOKEN": TOKEN, **SECRETS}

    def writes(self, exchange: Exchange) -> bool:
        """Cloud searches by POST; a correction is a comment, and no request of the call that it is about."""
        searched = "/search" in exchange.target
        return super().writes(exchange) and not searched and not exchange.carries(CORRECTION)


class CustomerMatrix(JiraMatrix):
    """A site that customers read, as every site is by default: what they read waits for a person and stays."""

    subjects = tuple(
        replace(subject, taken_away=None, edited=None, kept=None) for subject in (TRANSITION, COMMENT, CREATE)
    )
    options: ClassVar[Mapping[str, Json]] = {}
