"""What every flag capability checks around its one request: Unleash has no compare-and-set, so we look ourselves."""

from __future__ import annotations

from amends.spi import Call, Json, NotSent, Observation, Question
from amends.spi.http import Unreadable
from amends_flags.images import Flag
from amends_flags.unleash import Unleash


def feature_of(question: Question) -> str:
    """The flag's name."""
    return str(question.args.get("feature", ""))


def inconclusive(detail: str) -> Observation:
    """A probe that proves nothing, and why."""
    return Observation(seen="inconclusive", detail=detail)


def reading(unleash: Unleash, question: Question) -> Flag:
    """The flag as it stands, where it must be readable. Raises `NotSent`: nothing has been sent yet."""
    try:
        flag = unleash.flag(question, feature_of(question))
    except Unreadable as lost:
        raise NotSent(f"the flag could not be read: {lost}", code=lost.code) from None
    if flag is None:
        raise NotSent(
            f"there is no flag `{feature_of(question)}` in the project `{unleash.options.project}`"
            f" with an environment `{unleash.options.flag_environment}`",
            code="no_such_flag",
        )
    return flag


def unchanged_since(unleash: Unleash, call: Call, newest_event: Json) -> None:
    """Raise `NotSent` if somebody changed the flag after the before-image was taken: the image would be a lie."""
    try:
        newest = unleash.newest_event(call, feature_of(call))
    except Unreadable as lost:
        raise NotSent(f"the flag's history could not be read: {lost}", code=lost.code) from None
    if newest != newest_event:
        raise NotSent("the flag was changed after its before-image was taken", code="changed_since_prepared")
