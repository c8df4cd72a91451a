"""At start-up: what must be denied is denied, by this build of the engine and under these policies.

Raw Cedar skips a `forbid` that fails to evaluate and allows. If an upgrade, a stack limit or a wrong wiring ever let
that through, the engine does not start.
"""

from __future__ import annotations

from dataclasses import replace

from amends.backends.cedar import tree
from amends.backends.cedar.answer import ENGINE_ERROR, POLICY_ERROR, REQUEST_REJECTED, answer
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.question import Question, from_record
from amends.backends.cedar.schema import CORE, PHASES, PRINCIPALS
from amends.core.canonical import JsonMap
from amends.core.contract import Phase
from amends.core.errors import ConfigError, InternalError
from amends.core.evidence import as_map

_RESOURCES = {"release": "OutboxItem", "correct": "Notice"}
_FAILING = """
@id("amends:selftest-permit") @reason("everything is permitted")
permit (principal, action == Amends::Action::"selftest.undo", resource);
@id("amends:selftest-failing-forbid") @reason("this condition overflows")
forbid (principal, action == Amends::Action::"selftest.undo", resource)
when { context.run.attempt * 9223372036854775807 > 0 };
"""


def run(snapshot: Snapshot) -> None:
    """Raise `InternalError` if a failing forbid does not deny, `ConfigError` if a phase cannot be asked or lets a
    foreign tenant through.
    """
    policies, _ = tree.parse(_FAILING, "selftest")
    failing = replace(snapshot, policies=tuple(policies), _slices={})
    if answer(failing, question("undo")).code != POLICY_ERROR:
        raise InternalError(
            "a policy that cannot be evaluated did not deny", hint="do not run: check the installed cedarpy version"
        )
    for phase in PHASES:
        own, foreign = answer(snapshot, question(phase)), answer(snapshot, question(phase, tenant="other"))
        if own.code in {REQUEST_REJECTED, POLICY_ERROR, ENGINE_ERROR}:
            raise ConfigError(
                f"no decision is possible in phase `{phase}`: {', '.join(own.reasons)}", hint="correct that policy"
            )
        if foreign.verdict != "deny":
            raise ConfigError(
                f"policies let a foreign tenant through in phase `{phase}`", hint="report this: the baseline forbids it"
            )


def question(phase: Phase, tenant: str = "own") -> Question:
    """The self-test question of `phase`, asked about a resource of `tenant` by a principal of tenant `own`."""
    return from_record(record(phase) | {"resource": _resource(phase, tenant)})


def record(phase: Phase) -> JsonMap:
    """An unremarkable request in `phase`, in its storable form: the fixture of policy tests, too."""
    outcome: JsonMap = {"type": f"{CORE}::Outcome", "id": "succeeded"}
    agent: JsonMap = {"type": f"{CORE}::Agent", "id": "agent-1"}
    found: JsonMap = {
        "principal": {"type": f"{CORE}::{PRINCIPALS[phase][0]}", "id": "asker", "tenant": "own", "roles": []},
        "action": {"type": f"{CORE}::Action", "id": f"selftest.{phase}"},
        "resource": _resource(phase, "own"),
        "run": {
            "run_id": "run-1",
            "workflow": "selftest",
            "agent": agent,
            "owner": {"type": f"{CORE}::Human", "id": "maya"},
            "initiator": {"type": f"{CORE}::Human", "id": "sam"},
            "attempt": 2,
            "policy_version": "1.0.0",
            "policy_changed": False,
            "success_verified": True,
            "requires_human": False,
        },
        "evidence": {"complete": True, "missing": []},
        "contract": {
            "writes": True,
            "proven": True,
            "drilled": True,
            "reversibility": {"type": f"{CORE}::Reversibility", "id": "compensatable"},
            "audience": {"type": f"{CORE}::Audience", "id": "machine"},
            "release_mode": {"type": f"{CORE}::ReleaseMode", "id": "none"},
            "safe": True,
            "in_time": True,
            "reference_owned": True,
        },
        "time": {"now": "2026-03-02T10:00:00.000Z", "age": "60000ms", "windows": []},
        "input": {},
    }
    if phase != "forward":
        found["forward"] = {"status": outcome, "principal": agent, "residue": False}
    if phase == "release":
        found["contract"] = {
            **as_map(found["contract"]),
            "reversibility": {"type": f"{CORE}::Reversibility", "id": "irreversible"},
            "release_mode": {"type": f"{CORE}::ReleaseMode", "id": "on_success"},
        }
    return found


def _resource(phase: Phase, tenant: str) -> JsonMap:
    type_ = f"{CORE}::{_RESOURCES.get(phase, 'Run')}"
    return {"type": type_, "id": "thing-1", "tenant": tenant, "environment": "production"}
