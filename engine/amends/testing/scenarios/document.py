"""What a scenario answers: one document per run, made from the ledger and from the systems' own accounts."""

from __future__ import annotations

from typing import Any

from amends.bootstrap import Engine
from amends.core import public
from amends.core.events import DecisionRecorded, decode
from amends.core.evidence import Decision
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionKind, Outcome

Document = dict[str, Any]


def document(name: str, engine: Engine, run_id: str, residual: list[dict[str, Any]], *, ok: bool) -> Document:
    """The document of a run. `residual` is counted at the systems' side."""
    state, decisions = engine.state(run_id), decisions_of(engine, run_id)
    return {
        "scenario": name,
        "run_id": state.run.run_id,
        "run_status": state.run.status.value,
        "public_state": public.of_run(state).value,
        "actions": [action_of(a, decisions.get(a.action_id)) for a in state.actions.values()],
        "residual_effects": residual,
        "corrections": corrections_of(state),
        "escalations": [
            {
                "cause": item.cause,
                "status": item.status,
                "capability": state.actions[item.action_id].capability,
                "queue": item.queue,
                "owner": item.owner,
                "known": item.known,
                "in_doubt": item.in_doubt,
                "proposed": item.proposed,
                "choices": list(item.choices),
                "evidence": dict(item.evidence),
            }
            for item in state.escalations.values()
        ],
        "ok": ok,
    }


def decisions_of(engine: Engine, run_id: str) -> dict[str, Decision]:
    """The last decision about each action's own effect (looks are decided too, but change nothing)."""
    found: dict[str, Decision] = {}
    for stored in engine.kit.journal.events(run_id):
        body = decode(stored.event.payload, "") if stored.event.kind == "decision_recorded" else None
        if isinstance(body, DecisionRecorded) and body.phase != "probe":
            found[stored.event.action_id] = body.decision
    return found


def action_of(action: ActionRow, decided: Decision | None) -> dict[str, Any]:
    """One action as the document tells it."""
    return {
        "seq": action.seq,
        "kind": action.kind.value,
        "capability": action.capability,
        "slot": action.slot,
        "status": action.status.value,
        "outcome": action.outcome.value,
        "attempts": action.attempt,
        "registered_seq": action.seq,
        "sent_seq": action.sent_seq,
        "provider_reference": action.reference,
        "evidence": [
            {"source": item.source, "code": item.code, "strength": item.strength, "detail": item.detail}
            for item in action.evidence
        ],
        "decision": None
        if decided is None
        else {
            "outcome": decided.verdict,
            "policy_version": decided.policy_version,
            "policy_ids": list(decided.policy_ids),
        },
        "user_message": public.message(action),
    }


def corrections_of(state: RunState) -> list[dict[str, str]]:
    """Corrections that people got: posted, on evidence."""
    return [
        {"place": action.place, "text": str(action.args.get("text", ""))}
        for action in state.actions.values()
        if action.kind is ActionKind.CORRECT and action.outcome is Outcome.SUCCEEDED
    ]
