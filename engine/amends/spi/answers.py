"""HTTP values every adapter shares: a request, an answer, and what a status proves (no I/O, no library).

One table says what an answer to a mutating call means. Only what *proves* that nothing changed becomes `Refused`;
everything else that is not a success is `Ambiguous`, which the engine reads as unknown and probes (rule 3).

    2xx                                       success, if its body reads as declared
    401 403 404 405 410 413 415 422, other 4xx  refused; 423 425 429 and an empty 408 may be sent again later
    409                                       the adapter's word: pass it in `own_statuses`, else ambiguous
    408 with a body, 3xx, 5xx                 ambiguous: somebody downstream may have acted
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from amends.core.canonical import Json
from amends.core.reading import json_of
from amends.core.redaction import hide
from amends.spi.capability import Refused

Body: TypeAlias = Literal["json", "json_or_empty", "any"]

_AGAIN = frozenset({408, 423, 425, 429})
_SECRET_NAME = re.compile(r"auth|token|secret|cookie|password|signature|api[-_]?key", re.IGNORECASE)
_HIDDEN = "***"
_SHORTEST_SECRET = 4
_LONGEST_WAIT_SECONDS = 7 * 86_400.0
_LONGEST_WAIT_DIGITS = 12
_READ_BYTES = 64 * 1024


class Ambiguous(Exception):
    """The request was written and its outcome is not known. Unknown to the engine: let it pass, never translate it.

    `code` is a short word (`timeout`, `closed`, `reset`, `cut_body`, `http_503`, `undecodable` …); texts are redacted.
    """

    def __init__(self, detail: str, *, code: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status


class Unreadable(Exception):
    """A read gave no usable answer: a probe turns it into `inconclusive`. `code` as in `Ambiguous` and `NotSent`;
    `retry_after_seconds` is what the provider asked for, for the `Observation`.
    """

    def __init__(
        self, detail: str, *, code: str, status: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `url` holds neither userinfo nor query; at most one of `json`, `form` and `content` is given.

    `label` replaces the URL in texts when its path is secret; `secrets` are further values to hide in texts. What may
    hold a secret is left out of `repr`, which ends up in tracebacks.
    """

    method: str  # `GET`, `POST` …
    url: str = field(repr=False)  # scheme, host and path
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # parameters, encoded for you
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)  # credentials go here
    json: Json = field(default=None, repr=False)  # a JSON body
    form: Mapping[str, str] | None = field(default=None, repr=False)  # a form's body
    content: bytes | None = field(default=None, repr=False)  # sent as it is: the bytes of a file
    body: Body = "json"  # what a success has to answer with
    label: str = ""  # stands in texts for an address that is secret
    secrets: tuple[str, ...] = field(default=(), repr=False)  # further values that no text may show

    @property
    def name(self) -> str:
        """Method and address for texts: never userinfo, query or a labelled path."""
        if self.label:
            return f"{self.method} {self.label}"
        parts = split_url(self.url)
        return f"{self.method} {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def hidden(self) -> tuple[str, ...]:
        """Every value of this request that no text may show."""
        named = [*self.headers.items(), *self.query, *(self.form or {}).items()]
        values = [*self.secrets, *(value for name, value in named if _SECRET_NAME.search(name))]
        userinfo = split_url(self.url).netloc.rpartition("@")[0]
        if userinfo:
            values += [userinfo, *userinfo.split(":")]
        return tuple(sorted({piece for value in values for piece in _pieces(value)}, key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One complete answer. Header names are lower case."""

    status: int  # of HTTP
    headers: Mapping[str, str]  # by lower-case name
    content: bytes  # the whole body
    request: HttpRequest  # what it answers

    @property
    def ok(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of success

    def value(self) -> Json:
        """The JSON body; None if there is none. Raises `ValueError` if it is not JSON, nests too deeply or names a key
        twice: what two readers would read differently proves nothing.
        """
        return json_of(self.content) if self.content.strip() else None

    def document(self) -> dict[str, Json]:
        """The JSON body if it is an object, else an empty one. Never raises: for error bodies."""
        try:
            value = self.value()
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def excerpt(self, limit: int = 200) -> str:
        """The beginning of the body on one line, with every secret of the request hidden."""
        text = scrub(self.content[:_READ_BYTES].decode("utf-8", "replace"), self.request.hidden())
        return " ".join(text.split())[:limit]

    def retry_after_seconds(self) -> float | None:
        """`Retry-After` in seconds, at most a week; a date counts from the answer's own `Date`. None if absent or
        unreadable.
        """
        text = self.headers.get("retry-after", "").strip()
        if re.fullmatch(r"[0-9]+", text):
            return min(float(text[:_LONGEST_WAIT_DIGITS]), _LONGEST_WAIT_SECONDS)
        try:
            until = parsedate_to_datetime(text)
            waits = (until - parsedate_to_datetime(self.headers.get("date", ""))).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
        return min(max(0.0, waits), _LONGEST_WAIT_SECONDS)


def judge(answer: HttpAnswer, own_statuses: Collection[int] = frozenset({409})) -> HttpAnswer:
    """The answer to a mutating call, if it is a success or a status the adapter judges itself.

    Raises `Refused` where the status proves that nothing changed, `Ambiguous` where it does not.
    """
    if answer.status in own_statuses:
        return answer
    if answer.ok:
        return _readable(answer)
    detail = f"{answer.request.name} answered {answer.status}: {answer.excerpt()}"
    code = f"http_{answer.status}"
    client_error = 400 <= answer.status < 500  # noqa: PLR2004 - the class of refusals
    late = answer.status == 408 and bool(answer.content)  # noqa: PLR2004 - a gateway speaking for somebody behind it
    if not client_error or late or answer.status == 409:  # noqa: PLR2004 - conflict: may be with our own first try
        raise Ambiguous(detail, code=code, status=answer.status)
    raise Refused(detail, code=code, again=answer.status in _AGAIN, retry_after_seconds=answer.retry_after_seconds())


def judge_read(answer: HttpAnswer, own_statuses: Collection[int] = frozenset({404, 410})) -> HttpAnswer:
    """The answer to a read, if it is a readable success or a status the adapter judges itself; else `Unreadable`."""
    if answer.status in own_statuses:
        return answer
    if not answer.ok:
        detail = f"{answer.request.name} answered {answer.status}: {answer.excerpt()}"
        later = answer.retry_after_seconds()
        raise Unreadable(detail, code=f"http_{answer.status}", status=answer.status, retry_after_seconds=later)
    try:
        return _readable(answer)
    except Ambiguous as lost:
        raise Unreadable(str(lost), code=lost.code, status=answer.status) from None


def split_url(url: str) -> SplitResult:
    """The parts of `url`; all empty if it is none, which then fails where it is written."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def scrub(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret of at least four characters replaced, in whatever form it stands there. Cut a text
    after it is scrubbed: what a cut leaves of a secret is not always known for one.
    """
    return hide(text, secrets, mask=_HIDDEN, shortest=_SHORTEST_SECRET)


def _readable(answer: HttpAnswer) -> HttpAnswer:
    """A success whose body reads as declared. A 200 that is a gateway's page proves nothing (field case C-01)."""
    wanted = answer.request.body
    empty = not answer.content.strip()
    if wanted == "any" or (empty and wanted == "json_or_empty"):
        return answer
    try:
        value = answer.value()
    except ValueError:
        value = None
    if empty or value is None:
        code = "empty_body" if empty else "undecodable"
        detail = f"{answer.request.name} answered {answer.status} without readable JSON: {answer.excerpt(80)}"
        raise Ambiguous(detail, code=code, status=answer.status)
    return answer


def _pieces(value: str) -> Iterable[str]:
    """A secret as it may be echoed: whole, without its scheme, and the password inside Basic."""
    yield value
    scheme, _, rest = value.partition(" ")
    if rest:
        yield rest
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(rest, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield pair
        yield pair.partition(":")[2]
