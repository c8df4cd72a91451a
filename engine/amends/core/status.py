"""The state machine of an action: every status, every move, in one table.

House rules. Whatever changes an action's status is a row of `TRANSITIONS`; a move that is not in the table
raises `IllegalTransition` and changes nothing. The machine does not know who drives it: agent, recovery and
people all come through `transition`. *Status* is where the action stands in its life; *outcome* is what is known
about its effect. They are two values because they move apart: an action may be `compensating` with outcome
`succeeded`, or `needs_human` with outcome `unknown`.

    planned ─► queued ─► awaiting_approval ─► running ─► succeeded ─► compensating ─► compensated
                                                 ├─► failed   ▲  ▲          │
                                                 └─► unknown ─┘  └──────────┤ (reappeared)
    any doubtful status ─► needs_human ─► (a person or new evidence) ─► back
"""

from __future__ import annotations

from enum import StrEnum

from amends.core.errors import IllegalTransition


class ActionStatus(StrEnum):
    """Where an action stands."""

    PLANNED = "planned"
    QUEUED = "queued"
    AWAITING_APPROVAL = "awaiting_approval"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    NEEDS_HUMAN = "needs_human"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"


class Outcome(StrEnum):
    """What is known of the effect: `succeeded` and `failed` only on authoritative evidence."""

    NONE = "none"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class ActionKind(StrEnum):
    """Why an action exists: the agent's call, its inverse, a note to people, or a twin the provider made."""

    DO = "do"
    UNDO = "undo"
    CORRECT = "correct"
    DUPLICATE = "duplicate"


class RunStatus(StrEnum):
    """Where a run stands."""

    OPEN = "open"
    RECOVERING = "recovering"
    COMMITTING = "committing"
    COMMITTED = "committed"
    RECOVERED = "recovered"
    NEEDS_HUMAN = "needs_human"
    ABANDONED = "abandoned"


class ParkedCause(StrEnum):
    """Why an action waits for a person (rule 22)."""

    UNKNOWN = "unknown"
    DENIED = "denied"
    DIVERGED = "diverged"
    UNDO_FAILED = "undo_failed"
    UNREGISTERED = "unregistered"
    ADAPTER_UNAVAILABLE = "adapter_unavailable"
    POLICY_CHANGED = "policy_changed"
    NOT_DELIVERED = "not_delivered"  # a release past the pivot, or a correction, that the other side refused


class Move(StrEnum):
    """A named cause of a status change."""

    QUEUE = "queue"
    ASK = "ask"  # a person must approve first
    DENY = "deny"
    WITHDRAW = "withdraw"
    SEND = "send"  # the durable intent is written; the call may start
    SUCCEED = "succeed"
    FAIL = "fail"
    LOSE = "lose"  # the answer is missing or ambiguous
    CONTRADICT = "contradict"  # evidence against a `failed` that rested on absence (rule 4)
    COMPENSATE = "compensate"
    VERIFY_UNDONE = "verify_undone"
    REAPPEAR = "reappear"  # a verified undo was overtaken by a late landing (rule 18)
    PARK = "park"
    REOPEN_QUEUED = "reopen_queued"
    REOPEN_SUCCEEDED = "reopen_succeeded"
    REOPEN_UNKNOWN = "reopen_unknown"
    REOPEN_FAILED = "reopen_failed"


_A, _M = ActionStatus, Move

TRANSITIONS: dict[tuple[ActionStatus, Move], ActionStatus] = {
    (_A.PLANNED, _M.QUEUE): _A.QUEUED,
    (_A.PLANNED, _M.ASK): _A.AWAITING_APPROVAL,
    (_A.PLANNED, _M.DENY): _A.DENIED,
    (_A.PLANNED, _M.WITHDRAW): _A.WITHDRAWN,
    (_A.PLANNED, _M.SEND): _A.RUNNING,
    (_A.PLANNED, _M.FAIL): _A.FAILED,  # resolve or prepare failed: nothing was sent (rule 2)
    (_A.PLANNED, _M.SUCCEED): _A.SUCCEEDED,  # adopted from a committed run, or a twin found by a probe
    (_A.PLANNED, _M.LOSE): _A.UNKNOWN,  # what may have landed after the end of its run (rule 25)
    (_A.PLANNED, _M.PARK): _A.NEEDS_HUMAN,  # a correction that no adapter can post
    (_A.QUEUED, _M.ASK): _A.AWAITING_APPROVAL,
    (_A.QUEUED, _M.DENY): _A.DENIED,
    (_A.QUEUED, _M.WITHDRAW): _A.WITHDRAWN,
    (_A.QUEUED, _M.SEND): _A.RUNNING,
    (_A.QUEUED, _M.PARK): _A.NEEDS_HUMAN,
    (_A.AWAITING_APPROVAL, _M.ASK): _A.AWAITING_APPROVAL,  # a voided approval is asked for again
    (_A.AWAITING_APPROVAL, _M.DENY): _A.DENIED,
    (_A.AWAITING_APPROVAL, _M.WITHDRAW): _A.WITHDRAWN,
    (_A.AWAITING_APPROVAL, _M.SEND): _A.RUNNING,
    (_A.AWAITING_APPROVAL, _M.PARK): _A.NEEDS_HUMAN,
    (_A.AWAITING_APPROVAL, _M.CONTRADICT): _A.UNKNOWN,  # asked about again after a send that seemed to come to nothing
    (_A.DENIED, _M.CONTRADICT): _A.UNKNOWN,  # same
    (_A.WITHDRAWN, _M.CONTRADICT): _A.UNKNOWN,  # same
    (_A.RUNNING, _M.SUCCEED): _A.SUCCEEDED,
    (_A.RUNNING, _M.FAIL): _A.FAILED,
    (_A.RUNNING, _M.LOSE): _A.UNKNOWN,
    (_A.UNKNOWN, _M.SUCCEED): _A.SUCCEEDED,
    (_A.UNKNOWN, _M.FAIL): _A.FAILED,
    (_A.UNKNOWN, _M.LOSE): _A.UNKNOWN,  # looked, and still cannot tell
    (_A.UNKNOWN, _M.COMPENSATE): _A.COMPENSATING,  # only where `safe_when` names `unknown` (rule 17)
    (_A.UNKNOWN, _M.VERIFY_UNDONE): _A.COMPENSATED,
    (_A.UNKNOWN, _M.PARK): _A.NEEDS_HUMAN,
    (_A.FAILED, _M.SEND): _A.RUNNING,  # the same generation again, only after a proof that nothing landed (rule 5)
    (_A.FAILED, _M.ASK): _A.AWAITING_APPROVAL,
    (_A.FAILED, _M.CONTRADICT): _A.UNKNOWN,
    (_A.FAILED, _M.COMPENSATE): _A.COMPENSATING,  # partial residue (rule 17)
    (_A.FAILED, _M.VERIFY_UNDONE): _A.COMPENSATED,  # residue that was gone before we acted
    (_A.FAILED, _M.PARK): _A.NEEDS_HUMAN,
    (_A.SUCCEEDED, _M.COMPENSATE): _A.COMPENSATING,
    (_A.SUCCEEDED, _M.VERIFY_UNDONE): _A.COMPENSATED,  # already gone before we acted (rule 18)
    (_A.SUCCEEDED, _M.PARK): _A.NEEDS_HUMAN,
    (_A.COMPENSATING, _M.COMPENSATE): _A.COMPENSATING,  # the next rung, or the same undo again
    (_A.COMPENSATING, _M.VERIFY_UNDONE): _A.COMPENSATED,
    (_A.COMPENSATING, _M.PARK): _A.NEEDS_HUMAN,
    (_A.COMPENSATED, _M.REAPPEAR): _A.SUCCEEDED,
    (_A.COMPENSATED, _M.PARK): _A.NEEDS_HUMAN,  # the second look cannot be taken any more (rule 18)
    (_A.NEEDS_HUMAN, _M.SUCCEED): _A.SUCCEEDED,
    (_A.NEEDS_HUMAN, _M.FAIL): _A.FAILED,
    (_A.NEEDS_HUMAN, _M.VERIFY_UNDONE): _A.COMPENSATED,
    (_A.NEEDS_HUMAN, _M.WITHDRAW): _A.WITHDRAWN,
    (_A.NEEDS_HUMAN, _M.REOPEN_QUEUED): _A.QUEUED,
    (_A.NEEDS_HUMAN, _M.REOPEN_SUCCEEDED): _A.SUCCEEDED,
    (_A.NEEDS_HUMAN, _M.REOPEN_UNKNOWN): _A.UNKNOWN,
    (_A.NEEDS_HUMAN, _M.REOPEN_FAILED): _A.FAILED,
}

RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.OPEN: frozenset({RunStatus.RECOVERING, RunStatus.COMMITTING}),
    RunStatus.RECOVERING: frozenset({RunStatus.RECOVERED, RunStatus.NEEDS_HUMAN, RunStatus.OPEN, RunStatus.ABANDONED}),
    RunStatus.COMMITTING: frozenset({RunStatus.COMMITTED, RunStatus.RECOVERING, RunStatus.NEEDS_HUMAN}),
    RunStatus.NEEDS_HUMAN: frozenset({RunStatus.RECOVERING, RunStatus.COMMITTING, RunStatus.ABANDONED}),
    RunStatus.COMMITTED: frozenset(),
    RunStatus.RECOVERED: frozenset(),
    RunStatus.ABANDONED: frozenset(),
}

TERMINAL_RUNS = frozenset({RunStatus.COMMITTED, RunStatus.RECOVERED, RunStatus.ABANDONED})

NEVER_SENT = frozenset({_A.PLANNED, _A.QUEUED, _A.AWAITING_APPROVAL, _A.DENIED, _A.WITHDRAWN})


def transition(status: ActionStatus, move: Move) -> ActionStatus:
    """The status after `move`. Raises `IllegalTransition` and changes nothing if the table has no such row."""
    try:
        return TRANSITIONS[(status, move)]
    except KeyError:
        raise IllegalTransition(
            f"an action in `{status}` cannot `{move}`",
            hint="this is a defect of Amends: report it with the run's event list",
            status=status.value,
            move=move.value,
        ) from None


def run_transition(status: RunStatus, to: RunStatus) -> RunStatus:
    """The run status after a move to `to`. Raises `IllegalTransition` if `status` does not lead there."""
    if to not in RUN_TRANSITIONS[status]:
        raise IllegalTransition(
            f"a run in `{status}` cannot become `{to}`",
            hint="this is a defect of Amends: report it with the run's event list",
            status=status.value,
            to=to.value,
        )
    return to
