"""The used part of GitHub's REST API: pull requests of a branch, and comments. Nothing here retries."""

from __future__ import annotations

from amends.spi import Call, Json, JsonMap, Question, Refused
from amends.spi.http import HttpAnswer, HttpRequest, HttpSender, Unreadable
from amends_git.options import GitOptions, PullRequests

_PAGE = 100
_MOST_PAGES = 20


class GitHub:
    """Speaks for the repositories of one section. The token is resolved for each request and never kept."""

    def __init__(self, options: GitOptions, sender: HttpSender) -> None:
        self.options = options
        self._sender = sender

    def project(self, repo: str) -> PullRequests:
        """Where `repo` has its pull requests. Raises `Refused` (nothing sent) if it is not configured."""
        found = self.options.repository(repo).pull_requests
        if found is None:
            raise Refused(f"repository `{repo}` has no `pull_requests` section", code="not_configured")
        return found

    def write(
        self, call: Call, repo: str, method: str, path: str, payload: JsonMap, *, own_statuses: tuple[int, ...] = ()
    ) -> HttpAnswer:
        """Make the one mutating request: a readable success, or one of `own_statuses`, which the caller judges. Raises
        `NotSent`, `Refused` or `Ambiguous`.
        """
        return self._sender.send(call, self._request(call, repo, method, path, json=payload), own_statuses)

    def one(self, question: Question, repo: str, path: str) -> JsonMap:
        """Read one object. Raises only `Unreadable`: a 404 may be a missing right, so it proves nothing."""
        return self._sender.read(question, self._request(question, repo, "GET", path), own_statuses=()).document()

    def pull(self, question: Question, repo: str, number: int) -> JsonMap:
        """Read one pull request. Raises `Unreadable`, also if the answer is about something else."""
        found = self.one(question, repo, f"pulls/{number}")
        if number_of(found) != str(number) or found.get("state") not in {"open", "closed"}:
            raise Unreadable(f"the answer does not show pull request #{number}", code="not_ours")
        return found

    def every(self, question: Question, repo: str, path: str, query: dict[str, str]) -> list[JsonMap]:
        """Read all pages of a list. Raises only `Unreadable`, also if it has no end."""
        found: list[JsonMap] = []
        for page in range(1, _MOST_PAGES + 1):
            paged = tuple((query | {"per_page": str(_PAGE), "page": str(page)}).items())
            request = self._request(question, repo, "GET", path, query=paged)
            items = _items(self._sender.read(question, request, own_statuses=()))
            found += items
            if len(items) < _PAGE:
                return found
        raise Unreadable(f"`{path}` has more than {_MOST_PAGES} pages", code="too_many_pages")

    def _request(
        self,
        question: Question,
        repo: str,
        method: str,
        path: str,
        *,
        query: tuple[tuple[str, str], ...] = (),
        json: Json = None,
    ) -> HttpRequest:
        project = self.project(repo)
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if project.token:
            headers["Authorization"] = f"Bearer {question.secret(project.token)}"
        url = f"{project.api.rstrip('/')}/repos/{project.project}/{path}"
        return HttpRequest(method, url, query=query, headers=headers, json=json)


def number_of(item: JsonMap) -> str:
    """The number of a pull request or the id of a comment, as text; empty if there is none."""
    value = item.get("number", item.get("id"))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def part(item: JsonMap, name: str, field: str) -> str:
    """A text inside an object of the item, such as `head.sha`; empty if it is not there."""
    inner = item.get(name)
    value = inner.get(field) if isinstance(inner, dict) else None
    return value if isinstance(value, str) else ""


def bears(item: JsonMap, marker: str) -> bool:
    """True if the item's body begins with our marker."""
    return str(item.get("body") or "").startswith(heading(marker))


def heading(marker: str) -> str:
    """The first line of every body: the marker, unseen by readers."""
    return f"<!-- {marker} -->"


def _items(answer: HttpAnswer) -> list[JsonMap]:
    value = answer.value()
    if not isinstance(value, list):
        raise Unreadable(f"{answer.request.name} gave no list", code="undecodable")
    return [dict(item) for item in value if isinstance(item, dict)]
