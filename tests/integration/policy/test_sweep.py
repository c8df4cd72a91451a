"""A generated sweep over what decides: phases, outcomes, evidence, tenants, approvals, policy versions.

Each case is asked as it is, with the approval it asks for, with the strongest approval there is, unsliced, and of plain
cedarpy over the whole bundle. What must hold, holds for all of them.
"""

from dataclasses import replace
from itertools import product

import cedarpy
import pytest

from amends.backends.cedar import native, rederive
from amends.backends.cedar.answer import answer
from amends.core.status import Outcome
from amends.ports.authorizer import ApprovalFacts, Principal

HOUR_US = 3_600_000_000
SITE = """
@id("site:other-version") @reason("what another bundle allowed is taken back by finance only")
forbid (principal, action in Amends::Action::"phase.undo", resource)
when { context.run.policy_changed }
unless { context has approval && context.approval.roles.contains(Amends::Role::"finance") };

@id("site:doubt") @reason("in doubt two people look")
forbid (principal, action == Partner::Action::"partner.reserve.undo", resource)
when { context.forward.status == Amends::Outcome::"unknown" }
unless { context has approval && context.approval.count >= 2 && context.approval.tier >= 2 };

@id("site:messages") @reason("what leaves under another bundle needs tier 3")
forbid (principal, action == Partner::Action::"partner.notify.release", resource)
when { context.run.policy_changed }
unless { context has approval && context.approval.tier >= 3 };
"""
FAILS = """
@id("site:fails") @reason("overflows at the attempt that this is about")
forbid (principal, action, resource)
when { context.run.attempt * 2 < 0 };
"""
VERDICT = ("verdict", "tier", "approvers", "roles", "roles_together", "policy_ids", "code", "reasons")

PHASES = (
    ("reserve", "forward"),
    ("reserve", "probe"),
    ("reserve", "undo"),
    ("notify", "forward"),
    ("notify", "release"),
    ("correct", "correct"),
)
STATUSES = ("none", "succeeded", "failed", "unknown")
EVIDENCE = ({"complete": True, "missing": []}, {"complete": False, "missing": ["reference"]})
TENANTS = ("acme", "other")
APPROVALS = (
    None,
    (("maya",), (), 1),
    (("maya",), ("finance",), 2),
    (("maya", "li"), ("finance", "operations"), 3),
    (("maya", "sam"), ("finance",), 3),  # sam is the initiator
)
VERSIONS = ("", "same", "0.9.0@sha256:00")


@pytest.fixture(scope="module")
def kept():
    """What the module's tests share."""
    return {}


@pytest.fixture
def parties(contracts):
    """The adapter's contracts; a reservation may be taken back in doubt, too."""
    reserve = contracts["reserve"]
    safe = reserve.compensation[0].model_copy(
        update={"safe_when": (Outcome.SUCCEEDED, Outcome.UNKNOWN), "harmless_when_absent": True}
    )
    in_doubt = reserve.model_copy(update={"compensation": (safe, *reserve.compensation[1:])})
    return {**contracts, "reserve": in_doubt}


@pytest.fixture
def authorizer(kept, load, site, parties):
    """One for the module: it is immutable."""
    if "authorizer" not in kept:
        kept["authorizer"] = load(site_bundle=site(SITE), contracts=parties.values())
    return kept["authorizer"]


def cases(ask, parties, version):
    """Every combination that makes sense, as requests."""
    for (name, phase), status, evidence, tenant, approval, before in product(
        PHASES, STATUSES, EVIDENCE, TENANTS, APPROVALS, VERSIONS
    ):
        if phase == "forward" and (status != "none" or not evidence["complete"]):
            continue  # before a call there is neither
        if phase != "undo" and not evidence["complete"]:
            continue
        contract = parties[name]
        given = {"quantity": 3, "urgent": False, "item": "bolt", "tags": []} if name == "reserve" else {}
        request = ask(contract, phase, tenant=tenant, evidence=evidence, age_us=2 * HOUR_US, input=given)
        if request.forward is not None:
            request = replace(request, forward={**request.forward, "status": status})
        if before:
            run = {**request.run, "forward_policy_version": version if before == "same" else before}
            request = replace(request, run=run)
        if approval is not None:
            request = replace(request, approval=facts(request, *approval))
        yield request


def facts(request, approvers, roles, tier):
    return ApprovalFacts(approvers, roles, tier, request.now_us, request.now_us + HOUR_US)


def asked_for(request, decision):
    """The approval that a decision asks for, on top of the one that was held."""
    held = request.approval
    people = tuple(held.approvers) if held else ()
    people += tuple(f"approver-{number}" for number in range(decision.approvers - len(people)))
    roles = tuple({*(held.roles if held else ()), *(decision.roles if decision.roles_together else decision.roles[:1])})
    return facts(request, people, roles, decision.tier)


def strongest(request):
    return facts(request, ("a", "b"), ("finance", "operations"), 3)


def by_initiator(request):
    return request.approval is not None and "sam" in request.approval.approvers


@pytest.fixture
def sweep(kept, authorizer, ask, parties):
    """Every case with its decision."""
    if "sweep" not in kept:
        version = authorizer.bundle().version
        kept["sweep"] = [(one, authorizer.decide(one)) for one in cases(ask, parties, version)]
    return kept["sweep"]


def test_the_sweep_is_large_and_has_every_answer(sweep):
    """More than 500 cases; each answer is there often, in each phase where it can be."""
    assert len(sweep) >= 500
    count = {v: sum(d.verdict == v for _, d in sweep) for v in ("allow", "deny", "needs_approval")}
    assert all(number >= 30 for number in count.values()), count
    assert {d.code for _, d in sweep} == {"", "forbidden", "approval_needed"}
    allowed = {(one.contract.capability, one.phase) for one, d in sweep if d.allowed}
    assert len(allowed) == len(PHASES)


def test_an_approved_question_is_allowed_exactly_where_one_was_asked(authorizer, sweep):
    """What people are asked for is enough; and where nobody is asked, nobody could have changed the answer."""
    for request, decision in sweep:
        if decision.verdict == "needs_approval":
            assert authorizer.decide(replace(request, approval=asked_for(request, decision))).allowed
        elif decision.verdict == "deny" and not by_initiator(request):
            assert authorizer.decide(replace(request, approval=strongest(request))).verdict == "deny"


def test_less_than_what_is_asked_for_is_not_enough(authorizer, sweep):
    """A lower tier, fewer people, or none of the roles: still not allowed."""
    weakened = 0
    for request, decision in sweep:
        if decision.verdict != "needs_approval" or request.approval is not None:
            continue
        full = asked_for(request, decision)
        weaker = []
        if decision.tier > 1:
            weaker.append(replace(full, tier=decision.tier - 1))
        if decision.approvers > 1:
            weaker.append(replace(full, approvers=full.approvers[:1]))
        if decision.roles:
            weaker.append(replace(full, roles=()))
        for approval in weaker:
            weakened += 1
            assert not authorizer.decide(replace(request, approval=approval)).allowed
    assert weakened >= 15


def test_an_approval_never_turns_an_allow_into_a_deny(authorizer, sweep):
    """Unless the initiator is among the approvers, whose word never counts."""
    for request, decision in sweep:
        if request.approval is None and decision.allowed:
            for approvers, roles, tier in filter(None, APPROVALS):
                if "sam" not in approvers:
                    with_approval = replace(request, approval=facts(request, approvers, roles, tier))
                    assert authorizer.decide(with_approval).allowed
        if by_initiator(request):
            assert decision.verdict == "deny"
            assert "amends:no-self-approval" in decision.policy_ids or "tenant" in str(decision.policy_ids)


def test_another_tenant_is_denied_in_every_case(sweep):
    """Whatever was approved, by whom, under which version."""
    foreign = [decision for request, decision in sweep if request.tenant == "other"]
    assert len(foreign) * 2 == len(sweep)
    assert {decision.verdict for decision in foreign} == {"deny"}


def test_incomplete_evidence_and_unsafe_outcomes_are_never_taken_back(sweep):
    """No approval makes a compensation blind."""
    for request, decision in sweep:
        if request.phase == "undo" and (
            not request.evidence["complete"] or request.forward["status"] in {"none", "failed"}
        ):
            assert decision.verdict == "deny"


def test_sliced_equals_unsliced(authorizer, sweep):
    """Every field of the answer."""
    snapshot = authorizer.active.snapshot
    for request, decision in sweep:
        question = authorizer._question(request, authorizer.active)
        whole = answer(snapshot, question, sliced=False)
        assert [getattr(whole, name) for name in VERDICT] == [getattr(decision, name) for name in VERDICT]


def test_plain_cedar_agrees(authorizer, sweep):
    """cedarpy over the unsliced bundle: allow exactly where allowed; an approval that is missing is its deny."""
    snapshot = authorizer.active.snapshot
    policies = snapshot.whole.handle
    for request, decision in sweep:
        question = authorizer._question(request, authorizer.active)
        entities = native.parse_entities(question.entities, snapshot.schema)
        said = cedarpy.is_authorized(
            {**question.uids, "context": dict(question.context)}, policies, entities, snapshot.schema
        )
        assert said.diagnostics.errors == []
        assert said.allowed is decision.allowed


def test_every_case_is_derived_again_from_the_ledger(authorizer, sweep):
    """Recorded question and recorded sources: the same decision. One in ten, for time."""
    recorded = authorizer.bundle()
    for _, decision in sweep[::40]:
        assert rederive(decision, recorded) == decision


def test_no_case_allows_on_an_evaluation_error(load, site, sweep, parties):
    """The same cases under one more forbid that fails to evaluate: none is allowed, and none asks a person."""
    failing = load(site_bundle=site(SITE + FAILS, label="1.0.1"), contracts=parties.values())
    for request, _ in sweep:
        decision = failing.decide(replace(request, run={**request.run, "attempt": 2**62}))
        assert (decision.verdict, decision.code) == ("deny", "policy_error")
        assert "site:fails" in decision.policy_ids
    unchanged = [(one, d) for one, d in sweep if not d.context["run"].get("forward_policy_version")]
    assert [failing.decide(one).verdict for one, _ in unchanged] == [d.verdict for _, d in unchanged]


def test_no_agent_asks_for_what_recovery_does(authorizer, sweep):
    """Undo, release, correct and probe accept the Service and people only."""
    for request, _ in sweep:
        if request.phase != "forward":
            decision = authorizer.decide(replace(request, principal=Principal("Agent", "bot", "acme")))
            assert (decision.verdict, decision.code) == ("deny", "request_rejected")
