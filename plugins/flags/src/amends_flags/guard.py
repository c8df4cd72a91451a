"""What every flag capability asks of its place before anything is sent."""

from __future__ import annotations

from amends.spi import Call, NotSent, Observation, Question
from amends.spi.http import Unreadable
from amends_flags.images import Flag, Strategy, feature_of
from amends_flags.port import FlagPlace


def inconclusive(detail: str) -> Observation:
    """A probe that proves nothing, and why."""
    return Observation(seen="inconclusive", detail=detail)


def reading(place: FlagPlace, question: Question) -> Flag:
    """The flag as it stands, where it must be readable. Raises `NotSent`: nothing has been sent yet."""
    try:
        flag = place.flag(question)
    except Unreadable as lost:
        raise NotSent(f"the flag could not be read: {lost}", code=lost.code) from None
    if flag is None:
        raise NotSent(
            f"there is no flag `{feature_of(question)}` in the project `{place.options.project}`"
            f" with an environment `{place.options.flag_environment}`",
            code="no_such_flag",
        )
    return flag


def reading_before_undo(place: FlagPlace, call: Call) -> Flag:
    """The flag as it stands, if it has not changed since the probe before this undo. Raises `NotSent`."""
    flag = reading(place, call)
    observed = call.observed.state.get("revision") if call.observed else None
    if observed is not None and observed != flag.revision:
        raise NotSent("the flag was changed after it was looked at", code="foreign_edit")
    return flag


def cohorts_strategy(flag: Flag, question: Question) -> Strategy | None:
    """The cohort's one strategy; None if it has none. Raises `NotSent` if it has several."""
    found = flag.of_cohort(question.args.get("cohort"))
    if len(found) > 1:
        raise NotSent(
            f"the cohort `{question.args.get('cohort')}` has {len(found)} strategies; one must go first",
            code="many_strategies",
        )
    return found[0] if found else None
