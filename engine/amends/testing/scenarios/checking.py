"""Does the end state hold? Every check answers with what is wrong; what nobody expected is wrong too."""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from amends.bootstrap import Engine
from amends.core import fold, public
from amends.core.events import Event, decode
from amends.core.evidence import Decision
from amends.core.rows import ActionRow, RunState
from amends.core.status import ActionStatus
from amends.ports.journal import EventRecord
from amends.testing.scenarios.document import corrections_of, decisions_of
from amends.testing.scenarios.model import ExpectedAction, ExpectedRequests, Scenario
from amends.testing.scenarios.script_model import Arm
from amends.testing.scenarios.values import fill
from amends.testing.scenarios.world import World

_S = ActionStatus
_Log = list[dict[str, Any]]

# What a person is told must say this, and may never invite to send again. Written apart from the sentences themselves.
_MUST_SAY: dict[ActionStatus, str] = {
    _S.PLANNED: "has not been sent",
    _S.QUEUED: "has not been sent",
    _S.AWAITING_APPROVAL: "waits for a person",
    _S.RUNNING: "not known yet",
    _S.SUCCEEDED: "took effect",
    _S.FAILED: "did not take effect",
    _S.UNKNOWN: "could not confirm",
    _S.COMPENSATING: "being taken back",
    _S.COMPENSATED: "was taken back",
    _S.NEEDS_HUMAN: "person's decision",
    _S.DENIED: "was not sent",
    _S.WITHDRAWN: "withdrawn before it was sent",
}
_NEVER_SAY = ("try again", "retry", "send it again", "resend")


def check(scenario: Scenario, world: World, engine: Engine, runs: dict[str, str], run_id: str) -> list[str]:
    """Everything that does not hold, one sentence each; empty: the scenario is ok."""
    state = engine.state(run_id)
    expect = scenario.expect
    return [
        *_run(scenario, state),
        *_actions(_Told(scenario, world.stage.known, decisions_of(engine, run_id)), state),
        *_registered_first(engine, world, runs.values()),
        *_corrections(scenario, state, world.stage.known),
        *_escalations(scenario, state),
        *_approvals(scenario, state),
        *_residue(scenario, world),
        *_counts(scenario, world),
        *_unchanged(world),
        *(problem for wanted in expect.requests for problem in _requests(wanted, world)),
        *_looked_after_undo(state, world),
        *_faults(scenario, world),
        *_other_runs(scenario, engine, runs),
        *_report(scenario, engine, run_id),
    ]


# --- the run and its actions --------------------------------------------------------------------------------


def _run(scenario: Scenario, state: RunState) -> Iterator[str]:
    if state.run.status is not scenario.expect.run_status:
        yield f"the run is `{state.run.status}`, not `{scenario.expect.run_status}` ({state.run.reason})"
    told = public.of_run(state)
    if told is not scenario.expect.public_state:
        yield f"people are told `{told}`, not `{scenario.expect.public_state}`"


@dataclass(frozen=True, slots=True)
class _Told:
    """What actions are compared with."""

    scenario: Scenario
    known: dict[str, Any]
    decisions: dict[str, Decision]


def _actions(told: _Told, state: RunState) -> Iterator[str]:
    """Every action is expected, every expected one is there: matched one to one."""
    left = list(state.actions.values())
    for wanted in told.scenario.expect.actions:
        found = next((a for a in left if not list(_wrong(wanted, a, told))), None)
        near = found or next((a for a in left if _is_meant(wanted, a, told.known)), None)
        if near is None:
            yield f"no action {wanted.kind} `{wanted.capability}` {wanted.step or wanted.of} was recorded"
            continue
        left.remove(near)
        if found is None:
            name = f"{near.kind} `{near.capability}`"
            yield from (f"{name}: {problem}" for problem in _wrong(wanted, near, told))
    for action in left:
        state_of = f"{action.status}, {action.outcome}, {action.resource}"
        yield f"nobody expects {action.kind} `{action.capability}` ({state_of})"


def _is_meant(wanted: ExpectedAction, action: ActionRow, known: dict[str, Any]) -> bool:
    about = {wanted.step: action.action_id, wanted.of: action.of}
    about.pop("", None)
    ids = all(known.get(step, {}).get("action_id") == action_id for step, action_id in about.items())
    rung = not wanted.rung or wanted.rung == action.rung
    return ids and rung and wanted.capability == action.capability and wanted.kind is action.kind


def _wrong(wanted: ExpectedAction, action: ActionRow, told: _Told) -> Iterator[str]:
    if not _is_meant(wanted, action, told.known):
        yield "is another action"
        return
    if action.status is not wanted.status:
        yield f"is `{action.status}`, not `{wanted.status}` {action.parked_detail}".rstrip()
    if action.outcome is not wanted.outcome:
        yield f"outcome is `{action.outcome}`, not `{wanted.outcome}`"
    if action.attempt != wanted.attempts:
        yield f"was sent {action.attempt} times, not {wanted.attempts}"
    kinds = {name for item in action.evidence for name in (item.source, f"{item.source}:{item.code}")}
    for kind in wanted.evidence:
        if kind not in kinds:
            yield f"has no evidence `{kind}`, only {sorted(kinds)}"
    yield from _decided_wrong(wanted, told.decisions.get(action.action_id), told.scenario.expect.policy)
    said = public.message(action)
    if _MUST_SAY[action.status] not in said or wanted.says not in said:
        yield f"people are told `{said}`"
    if any(words in said.lower() for words in _NEVER_SAY):
        yield f"the message invites to send again: `{said}`"


def _decided_wrong(wanted: ExpectedAction, decision: Decision | None, policy: str) -> Iterator[str]:
    if wanted.decision.none or decision is None:
        if (decision is None) != wanted.decision.none:
            wants = "no decision" if wanted.decision.none else "a decision"
            yield f"decision is `{decision and decision.verdict}`, but {wants} is expected"
        return
    if decision.verdict != wanted.decision.outcome:
        yield f"decision is `{decision.verdict}`, not `{wanted.decision.outcome}` ({decision.code})"
    label = wanted.decision.policy or policy
    if not decision.policy_version.startswith(f"{label}@sha256:"):
        yield f"decided under `{decision.policy_version}`, not `{label}`"
    for name in wanted.decision.policy_ids:
        if name not in decision.policy_ids:
            yield f"decided by {list(decision.policy_ids)}, not `{name}`"


def _registered_first(engine: Engine, world: World, run_ids: Iterable[str]) -> Iterator[str]:
    """Nothing was sent that was not durable before: in the ledger's order, and by each system's own clock."""
    logs = [(name, row, _text(row)) for name, system in world.loopbacks.items() for row in system.requests()]
    for run_id in run_ids:
        stored = engine.kit.journal.events(run_id)
        events = [s.event for s in stored]
        intents: dict[str, int] = {}
        for event in events:
            if event.kind == "intent_recorded":
                intents.setdefault(event.action_id, event.ts_us)
        state = engine.state(run_id)
        for action in state.actions.values():
            if action.sent_seq is not None and not action.seq < action.sent_seq:
                yield f"`{action.capability}` was sent at {action.sent_seq} and registered at {action.seq}"
            marks = [mark for mark in (action.action_id, action.idempotency_key) if mark]
            for name, row, text in logs:
                written = row["method"] != "GET" and any(mark in text for mark in marks)
                if written and (action.action_id not in intents or row["ts"] * 1_000_000 < intents[action.action_id]):
                    yield f"{row['method']} {row['path']} reached `{name}` before its intent was recorded"
        if fold.replay([_event(record) for record in events]) != state:
            yield f"the rows of run `{run_id}` are not the fold of its events"


def _event(record: EventRecord) -> Event:
    body = decode(record.payload, "")
    return Event(record.event_id, record.ts_us, record.run_id, record.run_seq, record.action_id, record.epoch, body)


def _text(row: dict[str, Any]) -> str:
    return json.dumps([row["path"], row["headers"], row["idempotency_key"], row["body"]])


# --- people -------------------------------------------------------------------------------------------------


def _corrections(scenario: Scenario, state: RunState, known: dict[str, Any]) -> Iterator[str]:
    left = corrections_of(state)
    for wanted in scenario.expect.corrections:
        place, words = fill(wanted.place, known), fill(list(wanted.contains), known)
        found = next((c for c in left if c["place"] == place and all(word in c["text"] for word in words)), None)
        if found is None:
            yield f"no correction at `{place}` says {words}; there are {left}"
        else:
            left.remove(found)
    for extra in left:
        yield f"nobody expects a correction at `{extra['place']}`: {extra['text']}"


def _escalations(scenario: Scenario, state: RunState) -> Iterator[str]:
    left = list(state.escalations.values())
    for wanted in scenario.expect.escalations:
        for item in left:
            capability = state.actions[item.action_id].capability
            words = f"{item.known} {item.in_doubt} {item.proposed}"
            if (
                item.cause == wanted.cause
                and item.status == wanted.status
                and wanted.capability in {"", capability}
                and all(word in words for word in wanted.contains)
                and all(item.evidence.get(name) for name in wanted.evidence)
            ):
                left.remove(item)
                break
        else:
            found = [(i.cause, i.status, i.in_doubt, dict(i.evidence)) for i in left]
            yield f"no escalation `{wanted.cause}` ({wanted.status}) fits; there are {found}"
    for item in left:
        yield f"nobody expects the escalation `{item.cause}` ({item.status}): {item.in_doubt}"


def _approvals(scenario: Scenario, state: RunState) -> Iterator[str]:
    found = Counter(
        (state.actions[a.action_id].capability, a.phase, a.status, a.tier) for a in state.approvals.values()
    )
    wanted = Counter((a.capability, a.phase, a.status, a.tier) for a in scenario.expect.approvals)
    if found != wanted:
        yield f"people were asked {sorted(found)}, not {sorted(wanted)}"


# --- the systems' side --------------------------------------------------------------------------------------


def _residue(scenario: Scenario, world: World) -> Iterator[str]:
    left = world.residue()
    for wanted in scenario.expect.residual:
        fitting = [
            row
            for row in left
            if row["system"] == wanted.system
            and row["kind"] == wanted.kind
            and fnmatch.fnmatchcase(row["resource"], wanted.resource or "*")
        ]
        if len(fitting) != wanted.count:
            yield f"`{wanted.system}` holds {len(fitting)} {wanted.kind} {wanted.resource}, not {wanted.count}"
        left = [row for row in left if row not in fitting]
    for row in left:
        yield f"`{row['system']}` still holds {row['kind']} {row['resource']} ({row['reference']})"


def _unchanged(world: World) -> Iterator[str]:
    for name, (then, now) in world.changed().items():
        yield f"`{name}` is not what it was: {json.dumps(now)[:500]}, and was {json.dumps(then)[:500]}"


def _counts(scenario: Scenario, world: World) -> Iterator[str]:
    for wanted in scenario.expect.counts:
        found = world.loopbacks[wanted.system].counts().get(wanted.kind, {})
        have = (found.get("present", 0), found.get("removed", 0))
        if have != (wanted.present, wanted.removed):
            should = (wanted.present, wanted.removed)
            yield f"`{wanted.system}` counts {wanted.kind} present, removed = {have}, not {should}"


def _requests(wanted: ExpectedRequests, world: World) -> Iterator[str]:
    log = [f"{row['method']} {row['path']}" for row in world.loopbacks[wanted.system].requests()]
    if wanted.count is not None:
        found = sum(fnmatch.fnmatchcase(line, wanted.match) for line in log)
        if found != wanted.count:
            yield f"`{wanted.system}` saw `{wanted.match}` {found} times, not {wanted.count}"
    place = 0
    for pattern in wanted.order:
        later = next((n for n in range(place, len(log)) if fnmatch.fnmatchcase(log[n], pattern)), None)
        if later is None:
            yield f"`{wanted.system}` saw no `{pattern}` after entry {place} of {log}"
            return
        place = later + 1


def _looked_after_undo(state: RunState, world: World) -> Iterator[str]:
    """After each request that took something away, the system was read before anything else was changed there."""
    for name, system in world.loopbacks.items():
        log = system.requests()
        took = {e["request_seq"] for e in system.effect_events() if e["event"] == "removed" and e["actor"] == "agent"}
        for row in log:
            if row["seq"] in took and not _read_next(row, log):
                yield f"`{name}` was not read after {row['method']} {row['path']}"
    for action in state.actions.values():
        verified = action.observation is not None and action.observation.seen == "absent"
        if action.status is _S.COMPENSATED and not verified and action.compensated_how != "person":
            yield f"`{action.capability}` counts as compensated without a look"


def _read_next(row: dict[str, Any], log: _Log) -> bool:
    for later in log:
        if later["seq"] > row["seq"]:
            return bool(later["method"] == "GET" or _reads(later["path"]))
    return False


def _reads(path: str) -> bool:
    """Reads that are not GET: all of Slack's, and Jira's search."""
    slack = {
        "conversations.history",
        "conversations.replies",
        "chat.scheduledMessages.list",
        "files.info",
        "files.list",
    }
    return path.rsplit("/", 1)[-1] in {*slack, "jql"}


def _faults(scenario: Scenario, world: World) -> Iterator[str]:
    specs = [*scenario.faults, *(e.arm for e in scenario.script if isinstance(e, Arm))]
    for name, system in world.loopbacks.items():
        armed = system.faults()
        wanted = [spec for spec in specs if spec.system == name]
        if len(armed) != len(wanted):
            yield f"`{name}` was told {len(armed)} faults, not {len(wanted)}"
            continue
        for spec, row in zip(wanted, armed, strict=True):
            if not row["fired"]:
                yield f"the fault `{spec.kind}` of `{name}` never fired"
            elif spec.fires is not None and row["fired"] != spec.fires:
                yield f"the fault `{spec.kind}` of `{name}` fired {row['fired']} times, not {spec.fires}"


# --- around -------------------------------------------------------------------------------------------------


def _other_runs(scenario: Scenario, engine: Engine, runs: dict[str, str]) -> Iterator[str]:
    for wanted in scenario.expect.runs:
        if wanted.run not in runs:
            yield f"the run `{wanted.run}` was never opened"
            continue
        status = engine.state(runs[wanted.run]).run.status
        if status is not wanted.status:
            yield f"the run `{wanted.run}` is `{status}`, not `{wanted.status}`"


def _report(scenario: Scenario, engine: Engine, run_id: str) -> Iterator[str]:
    text = json.dumps(engine.run_report(run_id), ensure_ascii=False)
    for words in scenario.expect.reports_in:
        if words not in text:
            yield f"the run's report does not say `{words}`"
