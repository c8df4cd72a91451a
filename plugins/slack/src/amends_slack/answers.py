"""What a Slack answer means: done, refused with nothing changed, or unknown. Pure; decides on structured fields only.

Slack says most things with HTTP 200 and `ok`. An error code this table does not know is *not* a refusal: the message
may be there, and the probe must say (rule 3).
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, JsonMap, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import codes
from amends_slack.marker import marker_of


def accepted(method: str, answer: Json, retry_after_seconds: float | None = None) -> JsonMap:
    """What Slack said to a mutating call that is done: `ok: true`, or the word that it was done already.

    Raises `Refused` on a proven refusal, `Ambiguous` otherwise (`codes` holds the tables).
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise Ambiguous("the answer is not a Slack answer", code="not_slack")
    code = error_code(answer)
    if answer["ok"] or code in codes.ALREADY.get(method, ()):
        return answer
    if code in codes.LATER:
        raise Refused(f"slack answered `{code}`", code=code, again=True, retry_after_seconds=retry_after_seconds)
    if code in codes.REFUSED and code not in codes.IN_DOUBT_FOR.get(method, ()):
        raise Refused(f"slack answered `{code}`", code=code)
    known = "Slack says that it may have been done" if code in codes.IN_DOUBT else "which proves nothing"
    raise Ambiguous(f"slack answered `{code or 'ok: false'}`: {known}", code=code or "not_ok")


def readable(answer: Json) -> JsonMap:
    """The fields of an answer to a read. Raises `Unreadable` with Slack's code unless it says `ok: true`."""
    if not isinstance(answer, dict):
        raise Unreadable("the answer is not a Slack answer", code="not_slack")
    if answer.get("ok") is not True:
        code = error_code(answer)
        raise Unreadable(f"slack answered `{code or 'ok: false'}`", code=code or "not_ok")
    return answer


def posted(answer: Mapping[str, Json], marker: str, channel: str) -> JsonMap:
    """The message that the answer shows, in `channel` and with its ts. Raises `Ambiguous` if it is not the one that
    bears `marker`: an answer to something else, or one that a gateway repeats, is no proof.
    """
    message = answer.get("message")
    if not isinstance(message, dict) or marker_of(message) != marker:
        raise Ambiguous("slack said ok but shows no message with our mark", code="not_ours")
    ts, where = answer.get("ts"), answer.get("channel")
    if not isinstance(ts, str) or not ts:
        raise Ambiguous("slack said ok but gave no ts", code="no_ts")
    if where != channel:
        raise Ambiguous(f"slack said ok for channel `{where}`, not `{channel}`", code="other_channel")
    return {**message, "ts": ts}


def about(answer: Mapping[str, Json], channel: str, ts: str) -> None:
    """Raises `Ambiguous` if an `ok: true` is about another message than the one that was named."""
    if answer.get("ok") is True and (answer.get("channel"), answer.get("ts")) != (channel, ts):
        raise Ambiguous("slack said ok about another message", code="other_message")


def error_code(answer: Mapping[str, Json]) -> str:
    """Slack's error word; empty if there is none."""
    code = answer.get("error")
    return code if isinstance(code, str) else ""


def required_text(value: Json, otherwise: str) -> str:
    """`value` if it is text that is not empty. Raises `Unreadable` saying `otherwise`."""
    if not isinstance(value, str) or not value:
        raise Unreadable(otherwise, code="not_slack")
    return value
