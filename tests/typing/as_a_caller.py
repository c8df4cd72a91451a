"""Type-checked only: the public API as an agent's author sees it. A line marked `type: ignore` must be an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

from amends import (
    ActionStatus,
    CallResult,
    Conflict,
    Engine,
    Outcome,
    PlannedStep,
    Run,
    RunOutcome,
    RunState,
    RunStatus,
    Step,
)
from amends.spi import Json


def agent(folder: Path) -> str:
    """A run from its opening to its report."""
    with Engine.open(folder) as engine:
        assert_type(engine, Engine)
        run = engine.run(workflow="orders", run_key="1", agent="bot", owner="maya", intent_ref="REQ-1", check="ci")
        assert_type(run, Run)
        with run as same:
            assert_type(same, Run)
            result = run.call("shop.reserve", {"name": "lamp"}, label="first", required=False)
            assert_type(result, CallResult)
            assert_type(result.ok, bool)
            assert_type(result.status, ActionStatus)
            assert_type(result.outcome, Outcome)
            assert_type(result.output, Mapping[str, Json])
            assert_type(run.gate("shop.buy", wait_seconds=60, depends_on=[result, "id"]), CallResult)
            assert_type(run.plan([Step("hold", "shop.reserve", needs=())]), tuple[PlannedStep, ...])
            assert_type(run.withdraw(result), CallResult)
            run.checkpoint("held")
        assert_type(run.outcome, RunOutcome | None)
        assert_type(run.state, RunState)
        assert_type(run.finish(wait_seconds=1.5), RunOutcome)
        return run.run_id


async def async_agent(run: Run) -> CallResult:
    """The same call, awaited."""
    return await run.acall("shop.reserve", {"name": "lamp"})


def person(engine: Engine, run_id: str) -> None:
    """Recovery and decisions."""
    assert_type(engine.recover(wait_seconds=1), list[RunState])
    for state in engine.recover(run_id, to="held", by="maya"):
        assert_type(state.run.status, RunStatus)
    for question in engine.approvals():
        engine.approve(question.approval_id, by="maya", digest=question.digest)
        engine.reject(question.approval_id, by="maya", roll_back=True)
    for item in engine.escalations():
        assert_type(engine.resolve(item.escalation_id, item.choices[0], by="maya", evidence="looked"), RunState)
    assert_type(engine.run_report(run_id), dict[str, Json])
    assert_type(engine.sql("SELECT 1", (1, "x", None)).columns, tuple[str, ...])
    try:
        engine.pause("all", reason="outage", by="maya")
    except Conflict as conflict:
        assert_type(conflict.hint, str)
        assert_type(conflict.as_dict(), dict[str, object])


def mistakes(engine: Engine, run: Run) -> None:
    """What the checkers must notice."""
    engine.run("orders", "1", "bot")  # type: ignore[call-arg]
    run.call("shop.reserve", {"name": "lamp"}, depends_on=[1])  # type: ignore[list-item]
    run.call("shop.reserve", name="lamp")  # type: ignore[call-arg]
    engine.approve("id")  # type: ignore[call-arg]
    engine.report("run", "action", True, source="hook")  # type: ignore[call-arg]
    run.plan([("hold", "shop.reserve")])  # type: ignore[list-item]
