"""What agents, users and consoles are told: never more than the evidence (rule 33). Total over every status."""

from __future__ import annotations

from enum import StrEnum

from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionStatus, Outcome, RunStatus

_S = ActionStatus


class PublicState(StrEnum):
    """The four things a person may be told, from best to worst in `_RANK`."""

    RECOVERED = "recovered"
    FAILED_BEFORE_EFFECT = "failed_before_effect"
    PROCESSING_SAFELY = "processing_safely"
    NEEDS_REVIEW = "needs_review"


_RANK = (
    PublicState.FAILED_BEFORE_EFFECT,
    PublicState.RECOVERED,
    PublicState.PROCESSING_SAFELY,
    PublicState.NEEDS_REVIEW,
)

OF_ACTION: dict[ActionStatus, PublicState] = {
    _S.PLANNED: PublicState.PROCESSING_SAFELY,
    _S.QUEUED: PublicState.PROCESSING_SAFELY,
    _S.AWAITING_APPROVAL: PublicState.PROCESSING_SAFELY,
    _S.RUNNING: PublicState.PROCESSING_SAFELY,
    _S.SUCCEEDED: PublicState.PROCESSING_SAFELY,
    _S.FAILED: PublicState.FAILED_BEFORE_EFFECT,
    _S.UNKNOWN: PublicState.PROCESSING_SAFELY,
    _S.COMPENSATING: PublicState.PROCESSING_SAFELY,
    _S.COMPENSATED: PublicState.RECOVERED,
    _S.NEEDS_HUMAN: PublicState.NEEDS_REVIEW,
    _S.DENIED: PublicState.FAILED_BEFORE_EFFECT,
    _S.WITHDRAWN: PublicState.FAILED_BEFORE_EFFECT,
}

OF_RUN: dict[RunStatus, PublicState] = {
    RunStatus.OPEN: PublicState.PROCESSING_SAFELY,
    RunStatus.RECOVERING: PublicState.PROCESSING_SAFELY,
    RunStatus.COMMITTING: PublicState.PROCESSING_SAFELY,
    RunStatus.COMMITTED: PublicState.RECOVERED,
    RunStatus.RECOVERED: PublicState.RECOVERED,
    RunStatus.NEEDS_HUMAN: PublicState.NEEDS_REVIEW,
    RunStatus.ABANDONED: PublicState.NEEDS_REVIEW,
}

_ACTION_MESSAGES: dict[ActionStatus, str] = {
    _S.PLANNED: "This step has not been sent. Nothing has changed yet; it is recorded and will be decided next.",
    _S.QUEUED: "This step waits in the outbox. It has not been sent; it is released only after the run succeeds.",
    _S.AWAITING_APPROVAL: (
        "This step waits for a person's approval. It has not been sent; asking again changes nothing."
    ),
    _S.RUNNING: "This step is in flight and its result is not known yet. It is not sent a second time; we wait for it.",
    _S.SUCCEEDED: "This step took effect, and that is confirmed. It will not be repeated; the run goes on.",
    _S.FAILED: "This step did not take effect, and that is proven. Nothing is left behind; the next step is yours.",
    _S.UNKNOWN: (
        "We could not confirm this step yet. It is being checked with the system itself; it is not repeated meanwhile."
    ),
    _S.COMPENSATING: "This step is being taken back. It counts as undone only after the system was read again.",
    _S.COMPENSATED: (
        "This step was taken back, and it was checked that its effect is gone. Nothing more will be sent for it."
    ),
    _S.NEEDS_HUMAN: "This step needs a person's decision. Nothing more is sent for it until somebody has decided.",
    _S.DENIED: "Policy did not allow this step. It was not sent, and nothing has changed.",
    _S.WITHDRAWN: "This step was withdrawn before it was sent. Nothing has changed.",
}

_RUN_MESSAGES: dict[PublicState, str] = {
    PublicState.PROCESSING_SAFELY: (
        "Not everything is confirmed yet. It is being reconciled from the record; no step will be repeated meanwhile."
    ),
    PublicState.RECOVERED: "Everything is settled and was checked with the systems themselves. It is safe to go on.",
    PublicState.NEEDS_REVIEW: (
        "Some of it could not be settled automatically. Nothing more will be sent for it; a person is reviewing it."
    ),
    PublicState.FAILED_BEFORE_EFFECT: "It failed before anything took effect. Nothing was left behind.",
}


def of_action(action: ActionRow) -> PublicState:
    """The public state of one action."""
    if action.outcome is Outcome.UNKNOWN and action.status is _S.NEEDS_HUMAN:
        return PublicState.NEEDS_REVIEW
    return OF_ACTION[action.status]


def of_run(state: RunState) -> PublicState:
    """The public state of a run: the worst of its own and its actions' states, once it is not simply going well."""
    own = OF_RUN[state.run.status]
    if state.run.status in {RunStatus.OPEN, RunStatus.RECOVERING, RunStatus.COMMITTING}:
        waits = any(a.status is _S.NEEDS_HUMAN for a in state.actions.values())
        return PublicState.NEEDS_REVIEW if waits else own
    if state.run.status is RunStatus.RECOVERED and not any(a.ever_sent for a in state.forward_actions()):
        return PublicState.FAILED_BEFORE_EFFECT
    return own


def message(action: ActionRow) -> str:
    """The sentence for an action: uncertainty, safety guarantee, next step; no payload."""
    return _ACTION_MESSAGES[action.status]


def run_message(public: PublicState) -> str:
    """The sentence for a run."""
    return _RUN_MESSAGES[public]


def worst(states: list[PublicState]) -> PublicState:
    """The worst of several states; with none, nothing had an effect."""
    return max(states, key=_RANK.index, default=PublicState.FAILED_BEFORE_EFFECT)
