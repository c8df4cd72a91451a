"""Making a call the way an agent and its people do, whichever way its contract says: at once, approved, or released."""

from __future__ import annotations

from contextlib import suppress

from amends.core.errors import CallerError
from amends.core.status import ActionStatus, RunStatus
from amends.runtime.engine import Engine
from amends.runtime.results import CallResult
from amends.runtime.runs import Run
from amends.testing.conformance.subject import Args

PERSON = "maya"
AGENT = "agent"
WORKFLOW = "conformance"
LONG_SECONDS = 40 * 86_400.0  # past every schedule, deadline and window; a leaping clock does not wait for them


def open_run(engine: Engine, key: str) -> Run:
    """A run of the matrix's agent."""
    return engine.run(workflow=WORKFLOW, run_key=key, agent=AGENT, initiator="noah")


def perform(engine: Engine, run: Run, capability: str, args: Args, *, wait_seconds: float = LONG_SECONDS) -> CallResult:
    """Drill where the contract asks for it, call, say yes where people are asked, and release what is queued. Answers
    the call's first result.
    """
    if engine.kit.catalog.get(capability).contract.needs_drill:
        with suppress(CallerError):  # what cannot be drilled is refused when it is called
            engine.drill(capability, args)
    result = run.call(capability, args)
    if result.status is ActionStatus.AWAITING_APPROVAL:
        approve(engine, run.run_id)
        result = run.call(capability, args)
    if result.status is ActionStatus.QUEUED:
        run.finish(wait_seconds=0)
        while approve(engine, run.run_id) or _unfinished(engine, run.run_id):
            engine.recover(run.run_id, wait_seconds=wait_seconds)
    return result


def _unfinished(engine: Engine, run_id: str) -> bool:
    """True while a released run has something due, such as a look at a lost answer."""
    run = engine.state(run_id).run
    return run.status is RunStatus.COMMITTING and run.due_us is not None


def approve(engine: Engine, run_id: str) -> int:
    """A person says yes to whatever a run asks; how many questions there were."""
    asked = [row for row in engine.approvals() if row.run_id == run_id]
    for row in asked:
        engine.approve(row.approval_id, by=PERSON)
    return len(asked)
