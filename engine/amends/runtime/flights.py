"""Flights: calls on adapters, made on threads of their own and shielded from whoever waits (rules 3 and 9).

A caller may give up waiting; the thread goes on, and what it learns is recorded all the same.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import fields
from typing import TypeVar

from amends.core import outcomes
from amends.core.canonical import canonical_bytes, normalise_map
from amends.core.errors import AmendsError, InvalidInput
from amends.core.events import OutcomeRecorded
from amends.core.evidence import Observation
from amends.core.reading import LONGEST_SECONDS
from amends.core.redaction import MASK, redact_text
from amends.core.rows import ActionRow
from amends.core.status import ActionKind
from amends.ports.services import Secrets
from amends.runtime.kit import Kit, Offer
from amends.runtime.places import NoPlace, Places, Seat
from amends.spi.capability import Accepted, Call, Done, NotSent, Question, Receipt, Refused

T = TypeVar("T")
_READ_CHARACTERS = 20_000
_SAID_CHARACTERS = 500
SPARE_SECONDS = 1.0  # beyond the time limit an adapter is given, before nobody waits for a read of it
CALL_SPARE_SECONDS = 5.0  # the same for a call that changes something


class Flights:
    """Starts calls; at most `max_parallel_calls` at once that are within their time limits."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._places = Places(kit.clock, kit.settings.max_parallel_calls)

    def launch(
        self,
        work: Callable[[], T],
        name: str,
        seat: Seat,
        known: Future[T] | None = None,
        *,
        instead: Callable[[str], T] | None = None,
    ) -> Future[T]:
        """Run `work` on a thread of its own. The future's result or exception is `work`'s (`known`: this future, which
        somebody may be waiting for already). Where there is no place, `work` is not run: the future has the result of
        `instead`, which is told why, or the exception `NoPlace`.
        """
        future: Future[T] = known or Future()

        def seated() -> T:
            try:
                with self._places.held(seat):
                    return work()
            except NoPlace as full:
                if instead is None:
                    raise
                return instead(str(full))

        def body() -> None:
            try:
                result = seated()
            except BaseException as error:  # noqa: BLE001 - SystemExit of an adapter must not lose the outcome
                future.set_exception(error)
            else:
                future.set_result(result)

        self._kit.threads.call(body, name)
        return future

    def observe(self, ask: Callable[[Question], Observation], question: Question, adapter: str) -> Observation:
        """One read, bounded in time; whatever goes wrong is `inconclusive`, and so is what a masked reference stands
        for: an adapter that asks by it would be told of something else (rule 10).
        """
        if MASK in question.reference:
            return Observation(seen="inconclusive", detail="the effect's reference held a secret and was not kept")
        seat = Seat(adapter, question.action_id, question.timeout_seconds + SPARE_SECONDS)

        def look() -> Observation:
            try:
                seen = ask(question)
                canonical_bytes(seen.model_dump(mode="json"))
            except Exception as error:  # noqa: BLE001 - a failed read is an answer: we cannot tell
                return Observation(seen="inconclusive", detail=describe(error, self._kit.secrets))
            return seen

        try:
            return landed(self.launch(look, f"probe-{question.action_id[-6:]}", seat), seat)
        except NoPlace as full:
            return Observation(seen="inconclusive", detail=str(full))
        except TimeoutError:
            return Observation(seen="inconclusive", detail="no answer in time")
        except Exception as error:  # noqa: BLE001 - it ended otherwise, as by `sys.exit`
            return Observation(seen="inconclusive", detail=describe(error, self._kit.secrets))


def question_of(kit: Kit, action: ActionRow, offer: Offer) -> Question:
    """What an adapter is told when it reads about an action.

    Copies: an adapter that writes into what it is given changes neither the record nor what is sent next.
    """
    return Question(
        run_id=action.run_id,
        action_id=action.action_id,
        marker=action.of if action.kind is ActionKind.DUPLICATE else action.action_id,
        idempotency_key=action.idempotency_key,
        args=deepcopy(action.args),
        before=deepcopy(action.before_image),
        allocated=deepcopy(action.allocated),
        effect=deepcopy(action.effect),
        after=deepcopy(action.after_image),
        reference=action.reference,
        attempt=action.attempt,
        sent_at_us=action.sent_us,
        timeout_seconds=offer.contract.limits.timeout_seconds,
        secret=kit.secrets.resolve,
    )


def landed(flight: Future[T], seat: Seat) -> T:
    """What a call answered within its time. Raises what it raised, as an `Exception` whatever it was: an adapter that
    calls `sys.exit` ends no engine. Raises `TimeoutError` past its time; an interrupt of the waiting thread stays one.
    """
    error = flight.exception(timeout=seat.seconds)
    if error is None:
        return flight.result()
    if isinstance(error, Exception):
        raise error
    raise RuntimeError(f"`{type(error).__name__}`: {_words(error)}") from error


def classified(
    send: Callable[[Call], Receipt], call: Call, at_us: Callable[[], int], action: ActionRow, secrets: Secrets
) -> OutcomeRecorded:
    """Make the call and say what its answer proves: the one place where an exception becomes an outcome (rule 3).

    The last check is made here too, whether or not the adapter makes it. An answer that the ledger cannot hold is
    none: the call was made, so it is unknown.
    """
    try:
        if not call.still_wanted():
            return outcomes.not_sent(at_us=at_us(), code="not_wanted", detail="it was no longer wanted")
        receipt = send(call)
        if inspect.isawaitable(receipt):  # an adapter may write `async def do`
            receipt = asyncio.run(_awaited(receipt))
        return _received(receipt, action, at_us())
    except NotSent as error:
        return outcomes.not_sent(at_us=at_us(), code=error.code, detail=describe(error, secrets))
    except Refused as error:
        return outcomes.refused(
            at_us=at_us(),
            code=error.code,
            detail=describe(error, secrets),
            again=error.again,
            retry_after_seconds=_wait(error.retry_after_seconds),
        )
    except BaseException as error:  # noqa: BLE001 - unknown until proven otherwise, whatever it is called
        return outcomes.lost(at_us=at_us(), code=code_of(error), detail=describe(error, secrets))


def _wait(seconds: object) -> float | None:
    """What an adapter says of a wait, if it is a number of seconds; whatever else it says loses no outcome."""
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return None
    return min(float(seconds), LONGEST_SECONDS)


async def _awaited(receipt: Awaitable[Receipt]) -> Receipt:
    return await receipt


def _received(receipt: object, action: ActionRow, at_us: int) -> OutcomeRecorded:
    """Raises for what is no receipt, and `InvalidInput` for what cannot be recorded."""
    match receipt:
        case Done():
            body = outcomes.answered(
                action.contract,
                at_us=at_us,
                reference=receipt.reference,
                effect=normalise_map(receipt.effect),
                output=normalise_map(receipt.output or receipt.effect),
                after=normalise_map(receipt.after),
                parts=receipt.parts,
            )
        case Accepted():
            effect = normalise_map(receipt.effect)
            body = outcomes.accepted(
                at_us=at_us, operation=receipt.operation, effect=effect, reference=receipt.reference
            )
        case _:
            raise InvalidInput(f"the adapter answered `{type(receipt).__name__}`, no receipt", hint="return `Done`")
    canonical_bytes(body.model_dump(mode="json"))
    return body


def code_of(error: BaseException) -> str:
    """A short word for an exception: its own `code`, or its class in snake case."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and code:
        return code
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() and n else c.lower() for n, c in enumerate(name))


def describe(error: BaseException, secrets: Secrets) -> str:
    """The error in words, without secrets, bounded."""
    return shortened(_words(error), secrets)


def shortened(text: str, secrets: Secrets) -> str:
    """What somebody outside said, without secrets, bounded: masked first, so that no cut leaves a part of one."""
    readable = text[:_READ_CHARACTERS].encode("utf-8", "replace").decode()
    return redact_text(readable, secrets.revealed())[:_SAID_CHARACTERS]


def _words(error: BaseException) -> str:
    """What an error says; its class, if it says nothing or cannot be put into words."""
    try:
        text = error.message if isinstance(error, AmendsError) else str(error)
    except Exception:  # noqa: BLE001 - its own fault is not ours
        text = ""
    return text or type(error).__name__


def call_of(
    question: Question,
    *,
    deadline_us: int,
    still_wanted: Callable[[], bool],
    rung: str = "",
    undo_key: str = "",
    undo_marker: str = "",
    observed: Observation | None = None,
) -> Call:
    """A `Call` that knows what its `Question` knows."""
    known = {item.name: getattr(question, item.name) for item in fields(Question)}
    return Call(
        **known,
        deadline_us=deadline_us,
        still_wanted=still_wanted,
        rung=rung,
        undo_key=undo_key,
        undo_marker=undo_marker,
        observed=observed,
    )
