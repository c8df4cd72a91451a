"""The independent look: fresh adapters ask the sandbox itself, and what they see is held against the ledger."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from amends.bootstrap import Engine
from amends.core.evidence import Observation
from amends.core.rows import ActionRow, ApprovalRow, EscalationRow, RunState
from amends.core.status import ActionKind, ActionStatus
from amends.runtime.flights import SPARE_SECONDS, question_of
from amends.runtime.kit import Kit, Offer
from amends.spi import Question
from amends.testing.injection.boundary import Boundary

_S = ActionStatus
_GONE = frozenset({_S.FAILED, _S.DENIED, _S.WITHDRAWN, _S.COMPENSATED})
_THERE = frozenset({"applied", "many"})
Standing: TypeAlias = Literal["held", "waits", "left"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One effect: what the ledger says, what is there, whether the two agree, and who must act, how."""

    action: ActionRow
    standing: Standing
    seen: str
    detail: str = ""
    who: str = ""
    how: str = ""
    duplicates: int = 0

    @property
    def there(self) -> bool:
        """Whether the effect may be on the sandbox now."""
        return self.seen not in {"absent", "not sent"}


def look(engine: Engine, state: RunState, boundary: Boundary) -> list[Seen]:
    """Every effect of a run and every correction that waits. Ask an engine whose adapters have seen nothing yet."""
    found = [_look_at(engine.kit, state, action, boundary) for action in state.forward_actions()]
    notes = [a for a in state.actions.values() if a.kind is ActionKind.CORRECT and a.status is _S.NEEDS_HUMAN]
    return [*found, *(_waits(state, note, "not sent") for note in notes)]


def _look_at(kit: Kit, state: RunState, action: ActionRow, boundary: Boundary) -> Seen:
    if not action.ever_sent:
        settled = action.status in _GONE or action.status is _S.SUCCEEDED
        return Seen(action, "held", "not sent") if settled else _waits(state, action, "not sent")
    offer = kit.catalog.get(action.contract.capability)
    probed = _asked(kit, offer.capability.probe, question_of(kit, action, offer))
    twins = len(set(probed.twins) - {action.reference or probed.reference})
    if action.status in _GONE:
        return _gone(kit, offer, state, action, probed, boundary, twins)
    if action.status is not _S.SUCCEEDED:
        return _waits(state, action, probed.seen, twins)
    if probed.seen in _THERE or (probed.seen == "absent" and action.before_image == action.after_image != {}):
        return Seen(action, "held", probed.seen, duplicates=twins)
    return _contradicted(action, probed, twins, "the ledger says that it is there")


def _gone(
    kit: Kit,
    offer: Offer,
    state: RunState,
    action: ActionRow,
    probed: Observation,
    boundary: Boundary,
    twins: int,
) -> Seen:
    """A claim that nothing is left. Where something was taken back, the adapter's own way of telling counts too: a
    refunded charge is still a charge. But what looks as it did before the undo was not taken back. And what was there
    before the call is somebody else's.
    """
    claim = "the ledger says that nothing is left of it"
    if probed.seen == "absent":
        return Seen(action, "held", "absent", duplicates=twins)
    before_call, before_undo = (
        seen.get(action.action_id) for seen in (boundary.seen_before_call, boundary.seen_before_undo)
    )
    if action.status is _S.FAILED and before_call is not None and _same(before_call, probed):
        return Seen(action, "held", "absent", "what is there was there before the call", duplicates=twins)
    if action.status is not _S.COMPENSATED:
        return _contradicted(action, probed, twins, claim)
    verified = _asked(kit, offer.capability.verify_undone, question_of(kit, action, offer))
    if verified.seen != "absent":
        return _contradicted(action, verified, twins, claim)
    if state.undos_of(action.action_id) and before_undo is not None and _same(before_undo, probed):
        return _contradicted(action, probed, twins, f"{claim}; it is as it was before the undo")
    return Seen(action, "held", "absent", verified.detail, duplicates=twins)


def _asked(kit: Kit, ask: Callable[[Question], Observation], question: Question) -> Observation:
    """One read, bounded in time and outside the ledger; whatever goes wrong is `inconclusive`."""
    answer: Future[Observation] = Future()

    def work() -> None:
        try:
            answer.set_result(ask(question))
        except BaseException as error:  # noqa: BLE001 - a failed read is an answer: we cannot tell
            answer.set_exception(error)

    kit.threads.call(work, f"look-{question.action_id[-6:]}")
    try:
        return answer.result(timeout=question.timeout_seconds + SPARE_SECONDS)
    except TimeoutError:
        return Observation(seen="inconclusive", detail="no answer in time")
    except BaseException as error:  # noqa: BLE001 - same
        return Observation(seen="inconclusive", detail=f"{type(error).__name__}: {error}"[:500])


def _same(before: Observation, now: Observation) -> bool:
    return (before.seen, before.state, before.effect, before.reference) == (
        now.seen,
        now.state,
        now.effect,
        now.reference,
    )


def _contradicted(action: ActionRow, seen: Observation, twins: int, claim: str) -> Seen:
    if seen.seen == "inconclusive":
        detail = f"the look could not tell: {seen.detail}" if seen.detail else "the look could not tell"
        return Seen(action, "waits", seen.seen, detail, "you", "look at the sandbox yourself", twins)
    detail = f"{claim}, and the system shows `{seen.seen}`{f': {seen.detail}' if seen.detail else ''}"
    return Seen(action, "left", seen.seen, detail, "the adapter's author", "mend its probe, undo or verify", twins)


def _waits(state: RunState, action: ActionRow, seen: str, twins: int = 0) -> Seen:
    """Nothing is claimed: who has to act, and how."""
    asked = [row for row in state.approvals.values() if row.status == "pending" and _about(state, row, action)]
    if asked:
        people = f" ({', '.join(asked[-1].asked_of)})" if asked[-1].asked_of else ""
        how = f"approve the {asked[-1].phase}: {asked[-1].question or '; '.join(asked[-1].reasons)}"
        return Seen(action, "waits", seen, action.parked_detail, f"{asked[-1].who_may}{people}", how, twins)
    items = [row for row in state.escalations.values() if row.status != "resolved" and _about(state, row, action)]
    if items:
        item = items[-1]
        how = f"{item.cause}: {item.proposed}; choices: {', '.join(item.choices)}"
        return Seen(action, "waits", seen, item.in_doubt, f"{item.owner} (queue {item.queue})", how, twins)
    return Seen(action, "waits", seen, action.parked_detail, "recovery", goes_on(state), twins)


def goes_on(state: RunState) -> str:
    """When recovery looks again."""
    due = state.run.due_us
    when = f"at {datetime.fromtimestamp(due / 1_000_000, tz=UTC):%H:%M:%SZ}" if due else "after the others"
    return f"it goes on {when}; allow it more time with --wait-seconds"


def _about(state: RunState, row: ApprovalRow | EscalationRow, action: ActionRow) -> bool:
    """Whether a question or item is about an action or about an undo of it."""
    subject = state.actions.get(row.action_id)
    return subject is not None and action.action_id in {subject.action_id, subject.of}
