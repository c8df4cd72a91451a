"""The used part of Unleash's admin API: reads as values, mutating requests ready to be sent once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal
from urllib.parse import quote

from amends.spi import Call, Json, NotSent, Question
from amends.spi.http import HttpAnswer, HttpRequest, HttpSender, Unreadable
from amends_flags.images import Flag, Strategy, content_of, listed
from amends_flags.options import FlagOptions

_PAGE = 50
_PAGES = 40


class Unleash:
    """One project and environment of one server. Every read raises `Unreadable` when it gives no usable answer."""

    def __init__(self, options: FlagOptions, secret: Callable[[str], str], sender: HttpSender) -> None:
        self.options = options
        self._secret = secret
        self._sender = sender

    def flag(self, question: Question, feature: str) -> Flag | None:
        """The flag in our environment with its newest event; None if there is no such flag (or it is archived)."""
        answer = self._get(question, self._environment(feature))
        if not answer.ok:
            return None
        document = answer.document()
        strategies = tuple(
            Strategy(str(item.get("id", "")), content_of(item))
            for item in listed(document.get("strategies"))
            if isinstance(item, dict)
        )
        return Flag(document.get("enabled") is True, strategies, self.newest_event(question, feature))

    def feature(self, question: Question, feature: str) -> dict[str, Json] | None:
        """The flag over all environments; None if there is none (or it is archived)."""
        answer = self._get(question, self._feature(feature))
        return answer.document() if answer.ok else None

    def newest_event(self, question: Question, feature: str) -> int:
        """The id of the newest event of the flag that concerns our environment or the flag as a whole; 0 if none."""
        numbers = (event.get("id") for event in self.events(question, feature))
        return next((number for number in numbers if isinstance(number, int)), 0)

    def events(self, question: Question, feature: str, after: int = 0) -> Iterator[dict[str, Json]]:
        """Events of the flag in our environment or of the flag as a whole, newest first, down to the id `after`."""
        for page in range(_PAGES):
            query = (("feature", f"IS:{feature}"), ("limit", str(_PAGE)), ("offset", str(page * _PAGE)))
            answer = self._get(question, "/api/admin/search/events", query, absent=())
            items = [item for item in listed(answer.document().get("events")) if isinstance(item, dict)]
            for item in items:
                number = item.get("id")
                if isinstance(number, int) and number <= after:
                    return
                if item.get("environment") in {None, "", self.options.flag_environment}:
                    yield item
            if len(items) < _PAGE:
                return
        raise Unreadable(f"the flag has more than {_PAGE * _PAGES} events since then", code="too_many_pages")

    def switch(self, feature: str, *, on: bool) -> HttpRequest:
        """Turn the flag on or off in our environment."""
        return self._mutating("POST", f"{self._environment(feature)}/{'on' if on else 'off'}")

    def add_strategy(self, feature: str, content: Json) -> HttpRequest:
        """Add a strategy. Sent twice it makes two."""
        return self._mutating("POST", f"{self._environment(feature)}/strategies", content, body="json")

    def replace_strategy(self, feature: str, strategy: str, content: Json) -> HttpRequest:
        """Replace a strategy's content as a whole."""
        return self._mutating("PUT", f"{self._environment(feature)}/strategies/{quote(strategy, safe='')}", content)

    def delete_strategy(self, feature: str, strategy: str) -> HttpRequest:
        """Delete a strategy. Deleting the last enabled one switches the environment off."""
        return self._mutating("DELETE", f"{self._environment(feature)}/strategies/{quote(strategy, safe='')}")

    def create(self, content: Json) -> HttpRequest:
        """Create a flag. Its name is unique, archived ones included."""
        return self._mutating("POST", f"/api/admin/projects/{self._project()}/features", content, body="json")

    def archive(self, feature: str) -> HttpRequest:
        """Archive a flag."""
        return self._mutating("DELETE", self._feature(feature))

    def revive(self, feature: str) -> HttpRequest:
        """Bring an archived flag back; every environment comes back off."""
        return self._mutating("POST", f"/api/admin/projects/{self._project()}/revive", {"features": [feature]})

    def send(self, call: Call, request: Callable[[], HttpRequest], own: frozenset[int] = frozenset()) -> HttpAnswer:
        """Send one mutating request. Raises `NotSent` if it cannot even be built, such as without its credential."""
        try:
            built = request()
        except Exception as error:  # noqa: BLE001 - nothing has been opened yet, so nothing was sent
            raise NotSent(f"nothing was sent: {type(error).__name__}", code="secret_unavailable") from None
        return self._sender.send(call, built, own)

    def _get(
        self,
        question: Question,
        path: str,
        query: tuple[tuple[str, str], ...] = (),
        absent: tuple[int, ...] = (404,),
    ) -> HttpAnswer:
        try:
            headers = {"Authorization": self._secret(self.options.token)}
        except Exception as error:  # noqa: BLE001 - a credential that does not resolve is no answer
            raise Unreadable(
                f"the credential does not resolve ({type(error).__name__})", code="secret_unavailable"
            ) from None
        answer = self._sender.read(question, HttpRequest("GET", self.options.base_url + path, query, headers), absent)
        if answer.ok and not answer.document():
            raise Unreadable(f"{answer.request.name} answered with no object", code="undecodable")
        return answer

    def _mutating(
        self, method: str, path: str, content: Json = None, body: Literal["json", "any"] = "any"
    ) -> HttpRequest:
        headers = {"Authorization": self._secret(self.options.token)}
        return HttpRequest(method, self.options.base_url + path, headers=headers, json=content, body=body)

    def _project(self) -> str:
        return quote(self.options.project, safe="")

    def _feature(self, feature: str) -> str:
        return f"/api/admin/projects/{self._project()}/features/{quote(feature, safe='')}"

    def _environment(self, feature: str) -> str:
        return f"{self._feature(feature)}/environments/{quote(self.options.flag_environment, safe='')}"
