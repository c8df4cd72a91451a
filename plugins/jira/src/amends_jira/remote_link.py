"""`jira.remote_link`: a link from an issue to something elsewhere; its global id is our marker."""

from __future__ import annotations

from amends.spi import Call, Capability, Done, JsonMap, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Unreadable
from amends_jira import contracts, marker
from amends_jira.arguments import RemoteLinkArgs
from amends_jira.client import Jira, look_before_sending, unseen
from amends_jira.values import map_of, project_of, text_of


class RemoteLink(Capability):
    """Links an issue to a page elsewhere. The global id is made from the action's id: a second send would update the
    same link, and it is found again in the issue's one list of remote links.
    """

    arguments = RemoteLinkArgs

    def __init__(self, jira: Jira) -> None:
        self.contract = contracts.remote_link(jira.options)
        self._jira = jira

    def prepare(self, question: Question) -> Prepared:
        key = text_of(question.args.get("key"))
        self._jira.must_read(question, f"issue/{key}", {"fields": "status"})
        return Prepared(allocated={"global_id": marker.global_id(question.marker)}, input={"project": project_of(key)})

    def do(self, call: Call) -> Receipt:
        args = RemoteLinkArgs.model_validate(dict(call.args))
        named = _global_id(call)
        body: JsonMap = {"globalId": named, "object": {"url": args.url, "title": args.title}}
        if args.relationship:
            body["relationship"] = args.relationship
        self._jira.write(call, "POST", f"issue/{args.key}/remotelink", body)
        effect: JsonMap = {"key": args.key, "url": args.url, "global_id": named}
        return Done(effect=effect, reference=f"{args.key}/{named}", output=effect, after={"remote_link": "ours"})

    def probe(self, question: Question) -> Observation:
        """The remote link with our global id; where it points elsewhere by now, somebody has changed it."""
        key, named = text_of(question.args.get("key")), _global_id(question)
        try:
            found = self._links(question)
        except Unreadable as unreadable:
            return unseen(unreadable)
        if not found:
            return Observation(seen="absent", state={"remote_link": "gone"})
        url = text_of(map_of(found[0].get("object")).get("url"))
        ours = url == question.args.get("url")
        return Observation(
            seen="applied" if ours else "diverged",
            state={"remote_link": "ours" if ours else "changed"},
            effect={"key": key, "url": url, "global_id": named},
            reference=f"{key}/{named}",
            detail="" if ours else "it points elsewhere now",
        )

    def undo(self, call: Call) -> Receipt:
        """Delete the link with our global id, by the id that it has now, unless somebody has changed it since."""
        with look_before_sending():
            found = self._links(call)
        if not found:
            return Done(reference=call.reference, after={"remote_link": "gone"})
        if text_of(map_of(found[0].get("object")).get("url")) != call.args.get("url"):
            raise Refused("the remote link points elsewhere now", code="diverged")
        number = found[0].get("id")
        try:
            self._jira.write(call, "DELETE", f"issue/{text_of(call.args.get('key'))}/remotelink/{number}")
        except Refused as refused:
            if refused.code != "not_found":
                raise
        return Done(reference=call.reference, after={"remote_link": "gone"})

    def _links(self, question: Question) -> list[JsonMap]:
        """The whole list, looked through on our side: a filter that a server ignores would show any link."""
        key, named = text_of(question.args.get("key")), _global_id(question)
        found = self._jira.whole(question, f"issue/{key}/remotelink")
        return [link for link in found if text_of(link.get("globalId")) == named]


def _global_id(question: Question) -> str:
    return text_of(question.allocated.get("global_id")) or marker.global_id(question.marker)
