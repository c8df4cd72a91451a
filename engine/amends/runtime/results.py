"""What a caller gets back: the recorded state of an action, in values that never overstate it (rule 33)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from amends.core import public
from amends.core.canonical import Json
from amends.core.evidence import FailureNote
from amends.core.rows import ActionRow
from amends.core.status import ActionStatus, Outcome


@dataclass(frozen=True, slots=True)
class CallResult:
    """The state of a call. `repeated` is True if this answers an earlier call of the same slot; `conflict` if that
    call had other arguments (nothing was executed for the new ones).
    """

    action_id: str
    slot: str
    status: ActionStatus
    outcome: Outcome
    message: str
    output: Mapping[str, Json] = field(default_factory=dict[str, Json])
    effect: Mapping[str, Json] = field(default_factory=dict[str, Json])
    reference: str = ""
    repeated: bool = False
    conflict: bool = False
    approval_id: str = ""
    reason: str = ""
    error: FailureNote | None = None

    @property
    def ok(self) -> bool:
        """True if the effect exists on authoritative evidence."""
        return self.status is ActionStatus.SUCCEEDED

    def as_dict(self) -> dict[str, Json]:
        """The one JSON shape of a result on every surface."""
        return {
            "action_id": self.action_id,
            "slot": self.slot,
            "status": self.status.value,
            "outcome": self.outcome.value,
            "message": self.message,
            "output": dict(self.output),
            "reference": self.reference,
            "repeated": self.repeated,
            "conflict": self.conflict,
            "approval_id": self.approval_id,
            "reason": self.reason,
            "error": self.error.model_dump(mode="json") if self.error else None,
        }


def result_of(action: ActionRow, *, repeated: bool = False, conflict: bool = False, reason: str = "") -> CallResult:
    """The result that tells an action's recorded state; `reason` if it says more than the record."""
    message = public.message(action)
    if conflict:
        message = f"An earlier call of this step had other arguments; the new ones were not executed. {message}"
    return CallResult(
        action_id=action.action_id,
        slot=action.slot,
        status=action.status,
        outcome=action.outcome,
        message=message,
        output=deepcopy(action.output),  # whoever gets it may write into it
        effect=deepcopy(action.effect),
        reference=action.reference,
        repeated=repeated,
        conflict=conflict,
        approval_id=action.approval_id if action.status is ActionStatus.AWAITING_APPROVAL else "",
        reason=reason or action.withdrawn_reason or action.parked_detail,
        error=action.error,
    )
