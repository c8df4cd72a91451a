"""What a Jira answer means, decided on its status and its structured errors only, never on words in a text (case J-03).

400 404            refused; the code is the first field Jira names in `errors`, where it names one
401 403            refused
409                refused for now, if Jira itself says so: a conflicting update; the same request may be sent again
429                refused for now
anything else      as `amends.spi.http` judges it
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, JsonMap, Refused
from amends.spi.http import Ambiguous, HttpAnswer, scrub

_SHOWN = 300  # characters of what Jira says

# Statuses that this module judges from the body; all others have one meaning on every HTTP API.
OWN_STATUSES = frozenset({400, 404, 409})


def accepted(answer: HttpAnswer) -> JsonMap:
    """The document of a success. Raises `Refused` on a proven refusal, `Ambiguous` on a 409 that is not Jira's own."""
    if answer.ok:
        return answer.document()
    said = answer.document()
    own = "errorMessages" in said or "errors" in said
    told = scrub(reasons(said), answer.request.hidden())[:_SHOWN] or answer.excerpt()
    detail = f"{answer.request.name} answered {answer.status}: {told}"
    if answer.status == 409:  # noqa: PLR2004 - conflict
        if not own:
            raise Ambiguous(detail, code="http_409", status=409)
        raise Refused(detail, code="conflict", again=True, retry_after_seconds=answer.retry_after_seconds())
    raise Refused(detail, code=_code(answer.status, said))


def reasons(said: Mapping[str, Json]) -> str:
    """Jira's structured reasons on one line."""
    messages, errors = said.get("errorMessages"), said.get("errors")
    parts = [str(item) for item in messages] if isinstance(messages, list) else []
    parts += [f"{name}: {text}" for name, text in errors.items()] if isinstance(errors, dict) else []
    return "; ".join(parts)


def _code(status: int, said: Mapping[str, Json]) -> str:
    if status == 404:  # noqa: PLR2004 - not found
        return "not_found"
    errors = said.get("errors")
    named = next(iter(errors), "") if isinstance(errors, dict) else ""
    return f"field_{named}" if named else "bad_request"
