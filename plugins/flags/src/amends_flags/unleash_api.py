"""The used part of Unleash's admin API: documents read and judged, mutating requests sent once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal
from urllib.parse import quote

from amends.spi import Call, DoctorFinding, Json, NotSent, Question
from amends.spi.http import Ambiguous, HttpAnswer, HttpRequest, HttpSender, Unreadable
from amends_flags.images import feature_of, listed
from amends_flags.options import UnleashOptions

_PAGE = 50
_PAGES = 40
_EXAMINE_SECONDS = 5.0
_NO_SUCH_PATH = "The path you were looking for"  # a wrong `base_url`, not a missing flag


class UnleashApi:
    """One project and environment of one server. Every read raises `Unreadable` when it gives no usable answer."""

    def __init__(self, options: UnleashOptions, secret: Callable[[str], str], sender: HttpSender) -> None:
        self.options = options
        self._secret = secret
        self._sender = sender

    # --- addresses --------------------------------------------------------------------------------------------

    @property
    def project(self) -> str:
        """The project's address."""
        return f"/api/admin/projects/{quote(self.options.project, safe='')}"

    def feature(self, question: Question) -> str:
        """The flag's address."""
        return f"{self.project}/features/{quote(feature_of(question), safe='')}"

    def environment(self, question: Question) -> str:
        """The flag's address in our environment."""
        return f"{self.feature(question)}/environments/{quote(self.options.flag_environment, safe='')}"

    def strategy(self, question: Question, strategy: str) -> str:
        """A strategy's address."""
        return f"{self.environment(question)}/strategies/{quote(strategy, safe='')}"

    # --- reads ------------------------------------------------------------------------------------------------

    def document(self, question: Question) -> dict[str, Json] | None:
        """The flag over all environments; None if there is none (or it is archived).

        The view of one environment is not used: it leaves segments out, and goes on to show archived flags as live.
        """
        answer = self._read(question, self.feature(question), absent=(404,))
        document = answer.document()
        if not answer.ok:
            if document.get("name") != "NotFoundError" or str(document.get("message")).startswith(_NO_SUCH_PATH):
                raise Unreadable(
                    f"{answer.request.name} answered 404, but not that there is no such flag", code="http_404"
                )
            return None
        if document.get("name") != feature_of(question):
            raise Unreadable(f"{answer.request.name} answered with something else", code="another_answer")
        return document

    def newest_event(self, question: Question) -> int:
        """The id of the newest event of the flag that concerns our environment or the flag as a whole; 0 if none."""
        numbers = (event.get("id") for event in self.events(question))
        return next((number for number in numbers if isinstance(number, int)), 0)

    def events(self, question: Question, after: int = 0) -> Iterator[dict[str, Json]]:
        """Events of the flag in our environment or of the flag as a whole, newest first, down to the id `after`."""
        for page in range(_PAGES):
            query = (
                ("feature", f"IS:{feature_of(question)}"),
                ("limit", str(_PAGE)),
                ("offset", str(page * _PAGE)),
            )
            answer = self._read(question, "/api/admin/search/events", query)
            found = answer.document().get("events")
            if not isinstance(found, list):
                raise Unreadable(f"{answer.request.name} answered without events", code="another_answer")
            items = [item for item in found if isinstance(item, dict)]
            for item in items:
                number = item.get("id")
                if isinstance(number, int) and number <= after:
                    return
                if item.get("environment") in {None, "", self.options.flag_environment}:
                    yield item
            if len(items) < _PAGE:
                return
        raise Unreadable(f"the flag has more than {_PAGE * _PAGES} events since then", code="too_many_pages")

    # --- writes -----------------------------------------------------------------------------------------------

    def send(
        self,
        call: Call,
        method: str,
        path: str,
        content: Json = None,
        *,
        body: Literal["json", "any"] = "any",
        own: tuple[int, ...] = (),
    ) -> HttpAnswer:
        """Send one mutating request. Raises `NotSent` if it cannot even be built, such as without its credential."""
        try:
            headers = {"Authorization": self._secret(self.options.token)}
        except Exception as error:  # noqa: BLE001 - nothing has been opened yet, so nothing was sent
            raise NotSent(f"nothing was sent: {type(error).__name__}", code="secret_unavailable") from None
        request = HttpRequest(method, self.options.base_url + path, headers=headers, json=content, body=body)
        return self._sender.send(call, request, own)

    def unchanged_since(self, call: Call, revision: Json) -> None:
        """Raise `NotSent` if somebody changed the flag meanwhile: Unleash ignores If-Match, so we look ourselves."""
        try:
            newest = self.newest_event(call)
        except Unreadable as lost:
            raise NotSent(f"the flag's history could not be read: {lost}", code=lost.code) from None
        if newest != revision:
            raise NotSent("the flag was changed after it was looked at", code="changed_since_prepared")

    # --- `amends doctor` --------------------------------------------------------------------------------------

    def examine(self) -> DoctorFinding:
        """Whether the project's flags can be read with this credential, and it has our environment."""
        subject = "adapters.flags"
        try:
            token = self._secret(self.options.token)
        except Exception:  # noqa: BLE001 - a reference that does not resolve is the finding
            remedy = f"set what `{self.options.token}` refers to"
            return DoctorFinding("problem", subject, f"the secret `{self.options.token}` does not resolve", remedy)
        request = HttpRequest(
            "GET", f"{self.options.base_url}{self.project}/overview", headers={"Authorization": token}
        )
        try:
            answer = self._sender.deliver(request, timeout_seconds=_EXAMINE_SECONDS)
        except (NotSent, Ambiguous) as trouble:
            return DoctorFinding("problem", subject, f"no answer: {trouble}", "check `base_url` and the network")
        if not answer.ok:
            remedy = "check `token` (an admin API token) and `project`"
            return DoctorFinding("problem", subject, f"{request.name} answered {answer.status}", remedy)
        if self.options.flag_environment not in _environment_names(answer.document()):
            said = f"the project `{self.options.project}` has no environment `{self.options.flag_environment}`"
            return DoctorFinding("problem", subject, said, "check `flag_environment`")
        return DoctorFinding(
            "ok",
            subject,
            f"the flags of `{self.options.project}` can be read; `{self.options.flag_environment}` is ours",
        )

    def _read(
        self, question: Question, path: str, query: tuple[tuple[str, str], ...] = (), absent: tuple[int, ...] = ()
    ) -> HttpAnswer:
        try:
            headers = {"Authorization": self._secret(self.options.token)}
        except Exception as error:  # noqa: BLE001 - a credential that does not resolve is no answer
            text = f"the credential does not resolve ({type(error).__name__})"
            raise Unreadable(text, code="secret_unavailable") from None
        return self._sender.read(question, HttpRequest("GET", self.options.base_url + path, query, headers), absent)


def _environment_names(project: dict[str, Json]) -> set[str]:
    items = [item for item in listed(project.get("environments")) if isinstance(item, dict)]
    return {str(item.get("environment")) for item in items}
