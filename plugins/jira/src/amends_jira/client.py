"""One Jira site over HTTP: a mutating call is one request on a fresh connection; nothing here retries."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from amends.spi import Call, Json, JsonMap, NotSent, Observation, Question
from amends.spi.http import HttpRequest, HttpSender, Unreadable
from amends_jira import answers
from amends_jira.options import JiraOptions

PAGE = 100
MOST_PAGES = 50


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing showed. `complete` is False if a page was missing: absence then proves nothing."""

    items: tuple[JsonMap, ...]
    complete: bool
    detail: str = ""
    retry_after_seconds: float | None = None


class Jira:
    """Speaks REST v3 on Cloud, v2 on Data Center. The token is resolved for each request and never kept (rule 10)."""

    def __init__(self, options: JiraOptions, sender: HttpSender) -> None:
        self.options = options
        self._sender = sender

    def write(self, call: Call, method: str, path: str, json: Json = None) -> JsonMap:
        """Make the mutating request. Raises `NotSent`, `Refused` or `Ambiguous`; 204 gives an empty document."""
        request = HttpRequest(
            method, self.options.url(path), headers=self._headers(call), json=json, body="json_or_empty"
        )
        return answers.accepted(self._sender.send(call, request, own_statuses=answers.OWN_STATUSES))

    def read(self, question: Question, path: str, query: Mapping[str, str] | None = None) -> JsonMap | None:
        """Read a document; None on 404. Raises only `Unreadable`."""
        request = HttpRequest(
            "GET", self.options.url(path), query=tuple((query or {}).items()), headers=self._reading(question)
        )
        return self._document(question, request)

    def search(
        self,
        question: Question,
        jql: str,
        fields: Sequence[str],
        *,
        properties: Sequence[str] = (),
        size: int = PAGE,
    ) -> Iterator[list[JsonMap]]:
        """The pages of a search, each asked for when it is wanted. Raises `Unreadable`.

        A page is what an index says: an unknown clause may have been ignored, so the caller checks every hit itself.
        """
        if self.options.cloud:
            return self._pages_by_token(question, jql, fields, properties, size)
        query = {"jql": jql, "fields": ",".join(fields)}
        return self._pages(question, "search", "issues", 0, query, size)

    def _pages_by_token(
        self, question: Question, jql: str, fields: Sequence[str], properties: Sequence[str], size: int
    ) -> Iterator[list[JsonMap]]:
        body: JsonMap = {"jql": jql, "fields": list(fields), "maxResults": size}
        if properties:
            body["properties"] = list(properties)
        for _ in range(MOST_PAGES):
            url = self.options.url("search/jql")
            answer = self._document(question, HttpRequest("POST", url, headers=self._reading(question), json=body))
            issues = answer.get("issues") if answer is not None else None
            if answer is None or not isinstance(issues, list):
                raise Unreadable("search gave no listing", code="not_jira")
            yield [item for item in issues if isinstance(item, dict)]
            token = answer.get("nextPageToken")
            if not token:
                return
            body = {**body, "nextPageToken": token}
        raise Unreadable(f"search has more than {MOST_PAGES} pages", code="too_many")

    def must_read(self, question: Question, path: str, query: Mapping[str, str] | None = None) -> JsonMap:
        """`read`, where a 404 says nothing: gone and not visible look alike. Raises `Unreadable`."""
        found = self.read(question, path, query)
        if found is None:
            raise Unreadable(f"`{path}` is not there, or not visible to this account", code="http_404", status=404)
        return found

    def listing(
        self, question: Question, path: str, field: str, *, start: int = 0, query: Mapping[str, str] | None = None
    ) -> Listing:
        """Every page of a `startAt` listing from `start` on. Never raises: a missing page makes it incomplete."""
        items: list[JsonMap] = []
        try:
            for page in self._pages(question, path, field, start, query or {}, PAGE):
                items.extend(page)
        except Unreadable as unreadable:
            later = unreadable.retry_after_seconds
            return Listing(tuple(items), complete=False, detail=str(unreadable), retry_after_seconds=later)
        return Listing(tuple(items), complete=True)

    def _pages(
        self, question: Question, path: str, field: str, start: int, query: Mapping[str, str], size: int
    ) -> Iterator[list[JsonMap]]:
        at = start
        for _ in range(MOST_PAGES):
            asked = {**query, "startAt": str(at), "maxResults": str(size)}
            answer = self.must_read(question, path, asked)
            values, total = answer.get(field), answer.get("total")
            if not isinstance(values, list) or not isinstance(total, int):
                raise Unreadable(f"`{path}` gave no listing", code="not_jira")
            yield [item for item in values if isinstance(item, dict)]
            at += len(values)
            if at >= total:
                return
            if not values:
                raise Unreadable(f"`{path}` gave an empty page before its end", code="not_jira")
        raise Unreadable(f"`{path}` has more than {MOST_PAGES} pages", code="too_many")

    def whole(self, question: Question, path: str) -> list[JsonMap]:
        """A list that comes in one answer, without pages. Raises `Unreadable`."""
        request = HttpRequest("GET", self.options.url(path), headers=self._reading(question))
        answer = self._sender.read(question, request, own_statuses=())
        value = answer.value()
        if not isinstance(value, list):
            raise Unreadable(f"`{path}` gave no list", code="not_jira")
        return [item for item in value if isinstance(item, dict)]

    def _document(self, question: Question, request: HttpRequest) -> JsonMap | None:
        answer = self._sender.read(question, request, own_statuses={404})
        return answer.document() if answer.ok else None

    def _headers(self, question: Question) -> dict[str, str]:
        """Raises `NotSent`: without its token nothing leaves, and what is wrong with the secret stays untold."""
        try:
            return {"Authorization": self.options.authorization(question.secret)}
        except Exception as error:  # noqa: BLE001 - whatever a secret store raises, nothing was sent
            wrong = type(error).__name__
            raise NotSent(f"`{self.options.token}` cannot be had: {wrong}", code="no_token") from None

    def _reading(self, question: Question) -> dict[str, str]:
        """Raises `Unreadable`."""
        try:
            return self._headers(question)
        except NotSent as missing:
            raise Unreadable(str(missing), code=missing.code) from None


def unseen(unreadable: Unreadable) -> Observation:
    """What a probe says that could not read, and when Jira wants to be asked again."""
    later = unreadable.retry_after_seconds
    return Observation(seen="inconclusive", detail=str(unreadable), retry_after_seconds=later)


@contextmanager
def look_before_sending() -> Generator[None, None, None]:
    """Reads that come before the mutating request of a call: if one fails, nothing has been sent. Raises `NotSent`."""
    try:
        yield
    except Unreadable as unreadable:
        raise NotSent(
            f"nothing was sent, because the look before it failed: {unreadable}", code=unreadable.code
        ) from None
