"""Shadows: policies that are asked beside the active ones and decide nothing.

Two kinds: policies of the active sources with `@shadow`, asked together with the active ones; and a whole other bundle.
Each is asked the question that was decided. Its answer is noted only where it differs, and whatever goes wrong in a
shadow is a note, too: it never changes, delays by more than one more evaluation, or prevents the answer that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from amends.backends.cedar import windows
from amends.backends.cedar.answer import ENGINE_ERROR, Answer, answer, deny
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.question import Question, from_record
from amends.core.canonical import Json, JsonMap
from amends.core.evidence import ShadowAnswer, as_map

Of: TypeAlias = Literal["policies", "bundle"]


@dataclass(frozen=True, slots=True)
class Shadow:
    """What is asked beside: the active policies together with those in the shadow, or another bundle."""

    of: Of
    snapshot: Snapshot
    semantic_digest: str = ""


def of_annotations(snapshot: Snapshot) -> tuple[Shadow, ...]:
    """The shadow of a snapshot's own `@shadow` policies; none if it has none."""
    if not snapshot.shadow:
        return ()
    together = replace(snapshot, policies=(*snapshot.policies, *snapshot.shadow), shadow=(), _slices={})
    return (Shadow("policies", together),)


def notes(shadows: Sequence[Shadow], question: Question, found: Answer, now_us: int) -> tuple[ShadowAnswer, ...]:
    """What each shadow answers where that is not `found`. Never raises."""
    answered = [(shadow, _ask(shadow, question, now_us)) for shadow in shadows]
    return tuple(_note(shadow, other) for shadow, other in answered if _weight(other) != _weight(found))


def _ask(shadow: Shadow, question: Question, now_us: int) -> Answer:
    try:
        return answer(shadow.snapshot, _asked_of(shadow, question, now_us))
    except Exception as problem:  # noqa: BLE001 - a shadow must never prevent a decision
        return deny(ENGINE_ERROR, f"the shadow failed ({type(problem).__name__})")


def _asked_of(shadow: Shadow, question: Question, now_us: int) -> Question:
    """The same facts; another bundle has its own windows and its own version."""
    if shadow.of == "policies":
        return question
    snapshot, record = shadow.snapshot, question.record
    before = as_map(record.get("run")).get("forward_policy_version")
    changed = before not in {None, "", snapshot.version}
    open_now: list[Json] = list(windows.open_names(snapshot.windows, now_us))
    run: JsonMap = {**as_map(record.get("run")), "policy_version": snapshot.version, "policy_changed": changed}
    time: JsonMap = {**as_map(record.get("time")), "windows": open_now}
    return from_record({**record, "run": run, "time": time})


def _weight(found: Answer) -> tuple[object, ...]:
    return found.verdict, found.tier, found.approvers, found.roles, found.roles_together


def _note(shadow: Shadow, other: Answer) -> ShadowAnswer:
    return ShadowAnswer(
        of=shadow.of,
        verdict=other.verdict,
        tier=other.tier,
        policy_ids=other.policy_ids,
        policy_version=shadow.snapshot.version,
        effective_digest=shadow.snapshot.effective_digest,
        code=other.code,
        reasons=other.reasons,
    )
