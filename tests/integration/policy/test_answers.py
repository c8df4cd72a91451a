"""The three answers, over real Cedar."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amends.backends.cedar import rederive
from amends.backends.cedar.answer import answer
from amends.ports.authorizer import ApprovalFacts, Principal

HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def _shared():
    return {}


@pytest.fixture
def authorizer(_shared, load):
    """One loaded authorizer for the whole module: it is immutable."""
    return _shared.setdefault("authorizer", load())


def approval(request, *, approvers=("maya",), roles=(), tier=1):
    return ApprovalFacts(approvers, roles, tier, request.now_us, request.now_us + HOUR_US)


def granted(request, decision):
    """The approval that a needs_approval decision asks for."""
    people = tuple(f"approver-{number}" for number in range(decision.approvers))
    return approval(request, approvers=people, roles=decision.roles, tier=decision.tier)


def test_permitted_call_is_allowed_and_says_by_what(authorizer, ask):
    """An allow names its policy, the version and the whole question."""
    decision = authorizer.decide(ask())
    assert (decision.verdict, decision.policy_ids) == ("allow", ("partner:reserve",))
    assert decision.policy_version.startswith("baseline-1.0.0@sha256:")
    assert decision.context["input"] == {"item": "bolt", "quantity": 3, "tags": ["a"], "urgent": False}
    assert decision.context["time"]["now"] == "2026-03-02T10:00:00.000Z"
    assert (decision.principal, decision.resource) == ("Agent:bot", "reservation:thing-1")


def test_what_only_an_approval_permits_needs_that_approval(authorizer, ask):
    """The answer names tier, number of people, role and the reason of the policy that asks."""
    decision = authorizer.decide(ask(phase="undo", age_us=3 * HOUR_US))
    assert (decision.verdict, decision.tier, decision.approvers) == ("needs_approval", 2, 1)
    assert decision.roles == ("finance",)
    assert decision.reasons == ("an older reservation is taken back by finance only",)


def test_approval_with_the_role_is_allowed_and_without_it_is_asked_again(authorizer, ask):
    """An approval is evidence, evaluated like everything else."""
    request = ask(phase="undo", age_us=3 * HOUR_US)
    good = replace(request, approval=approval(request, roles=("finance",), tier=2))
    weak = replace(request, approval=approval(request, roles=("sales",), tier=1))
    assert authorizer.decide(good).verdict == "allow"
    assert authorizer.decide(weak).verdict == "needs_approval"


def test_two_people_are_asked_where_the_policy_counts_them(authorizer, ask):
    """A policy over `approval.count` is found to need two people, and one person's yes is not enough."""
    request = ask(phase="undo", action="partner.finance_review")
    decision = authorizer.decide(request)
    assert (decision.verdict, decision.approvers) == ("needs_approval", 2)
    one = replace(request, approval=approval(request))
    two = replace(request, approval=approval(request, approvers=("maya", "li")))
    assert authorizer.decide(one).verdict == "needs_approval"
    assert authorizer.decide(two).verdict == "allow"


def test_no_permit_is_denied_without_asking_anybody(authorizer, ask):
    """What no approval could change never reaches a person."""
    request = ask(phase="undo", contract_facts={"safe": False, "reference_owned": True}, age_us=3 * HOUR_US)
    decision = authorizer.decide(request)
    assert (decision.verdict, decision.code) == ("deny", "forbidden")
    assert decision.policy_ids == ("amends:undo-needs-safe-outcome",)


def test_initiator_cannot_approve(authorizer, ask):
    """The person on whose behalf the run was started approves nothing in it, not even beside others."""
    request = ask(phase="undo", age_us=3 * HOUR_US)
    decision = authorizer.decide(
        replace(request, approval=approval(request, approvers=("maya", "sam"), roles=("finance",), tier=3))
    )
    assert (decision.verdict, decision.policy_ids) == ("deny", ("amends:no-self-approval",))


def test_expired_approval_counts_as_none(authorizer, ask):
    """No timer ever approves: past its end an approval is not there, and people are asked again."""
    request = ask(phase="undo", age_us=3 * HOUR_US)
    late = ApprovalFacts(("maya",), ("finance",), 3, request.now_us - 2, request.now_us)
    decision = authorizer.decide(replace(request, approval=late))
    assert decision.verdict == "needs_approval"
    assert "approval" not in decision.context


def test_foreign_tenant_is_denied_in_every_phase(authorizer, ask, contracts):
    """Tenant isolation holds for calls, probes, undos, releases and corrections alike."""
    asked = [
        ask(tenant="other"),
        ask(phase="probe", tenant="other"),
        ask(phase="undo", tenant="other"),
        ask(contracts["notify"], "release", tenant="other"),
        ask(contracts["correct"], "correct", tenant="other"),
    ]
    for request in asked:
        decision = authorizer.decide(replace(request, approval=approval(request, tier=3)))
        assert (decision.verdict, decision.policy_ids) == ("deny", ("amends:tenant-isolation",))


def test_correction_is_posted_by_recovery_and_never_by_an_agent(authorizer, ask, contracts):
    """A corrector's action is in phase `correct`; its capability has no forward action at all."""
    request = ask(contracts["correct"], "correct")
    assert authorizer.decide(request).policy_ids == ("amends:correct-own-tenant",)
    agent = replace(request, principal=Principal("Agent", "bot", "acme"))
    assert authorizer.decide(agent).code == "request_rejected"
    assert authorizer.decide(ask(contracts["correct"], "forward")).code == "request_rejected"


def test_partner_message_waits_for_success_and_a_person(authorizer, ask, contracts):
    """What a partner reads is released after the success check and a person's yes."""
    request = ask(contracts["notify"], "release")
    asked = authorizer.decide(request)
    assert (asked.verdict, asked.policy_ids) == ("needs_approval", ("amends:release-needs-approval",))
    assert authorizer.decide(replace(request, approval=granted(request, asked))).verdict == "allow"
    unverified = replace(request, run={**request.run, "success_verified": False})
    assert authorizer.decide(unverified).policy_ids == ("amends:release-needs-approval", "amends:release-needs-success")
    assert authorizer.decide(unverified).verdict == "deny"


def test_engine_keeps_its_own_eye_on_what_it_is_told(authorizer, ask):
    """`safe` and `in_time` are checked against the stored contract as well: the stricter one counts."""
    unknown = ask(phase="undo", forward={"status": "unknown", "principal": "bot"})
    assert authorizer.decide(unknown).policy_ids == ("amends:undo-needs-safe-outcome",)
    late = ask(phase="undo", age_us=5 * HOUR_US)
    assert authorizer.decide(late).policy_ids == ("amends:undo-needs-time",)


def test_decision_can_be_derived_again_from_the_ledger_alone(authorizer, ask):
    """Recorded question + recorded sources give the same decision, without contracts or plugins."""
    for request in (ask(), ask(phase="undo", age_us=3 * HOUR_US), ask(tenant="other")):
        decision = authorizer.decide(request)
        assert rederive(decision, authorizer.bundle()) == decision


def sweep(ask, contracts):
    """Products of what decides: contract, phase, tenant, facts, age, approval."""
    cases = [
        ("reserve", "forward"),
        ("reserve", "undo"),
        ("reserve", "probe"),
        ("notify", "forward"),
        ("notify", "release"),
    ]
    for (name, phase), tenant, fact, age, quantity in product(
        cases, ("acme", "other"), ("good", "unsafe", "incomplete", "unverified"), (0.5, 3, 9), (3, 30)
    ):
        request = ask(contracts[name], phase, tenant=tenant, age_us=int(age * HOUR_US))
        if name == "reserve":
            request = replace(request, input={**request.input, "quantity": quantity})
        if fact == "unsafe":
            request = replace(request, contract_facts={**request.contract_facts, "safe": False})
        if fact == "incomplete":
            request = replace(request, evidence={"complete": False, "missing": ["reference"]})
        if fact == "unverified":
            request = replace(request, run={**request.run, "success_verified": False})
        yield request


def test_laws_of_the_three_answers(authorizer, ask, contracts):
    """Over 240 situations: an asked-for approval leads to allow; an approval never turns an allow into a deny; a deny
    stays a deny under every approval; slicing changes nothing."""
    verdicts = set()
    for request in sweep(ask, contracts):
        decision = authorizer.decide(request)
        verdicts.add(decision.verdict)
        if decision.verdict == "needs_approval":
            approved = replace(request, approval=granted(request, decision))
            assert authorizer.decide(approved).verdict == "allow"
        strongest = approval(request, approvers=("a", "b"), roles=("finance", "operations"), tier=3)
        with_approval = authorizer.decide(replace(request, approval=strongest)).verdict
        assert with_approval == ("deny" if decision.verdict == "deny" else "allow")
        question = authorizer._question(request, authorizer.active)
        whole = answer(authorizer._snapshot, question, sliced=False)
        assert (whole.verdict, whole.policy_ids, whole.tier) == (decision.verdict, decision.policy_ids, decision.tier)
    assert verdicts == {"allow", "deny", "needs_approval"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # both fixtures are immutable
@given(
    tier=st.integers(1, 5),
    approvers=st.sets(st.sampled_from(["maya", "li", "kim"]), min_size=1),
    roles=st.sets(st.sampled_from(["finance", "operations", "sales"])),
    quantity=st.integers(-(2**63), 2**63 - 1),
)
def test_no_approval_takes_away_what_was_allowed(tier, approvers, roles, quantity, cached):
    """Whatever people who are not the initiator approve, an allow stays an allow."""
    authorizer, ask = cached
    request = ask(input={"quantity": quantity, "urgent": True, "item": "x", "tags": []})
    with_approval = replace(
        request, approval=approval(request, approvers=tuple(approvers), roles=tuple(roles), tier=tier)
    )
    if authorizer.decide(request).allowed:
        assert authorizer.decide(with_approval).allowed


@pytest.fixture
def cached(authorizer, ask):
    """Both in one: Hypothesis draws the other arguments."""
    return authorizer, ask


def test_absent_release_mode_is_none(authorizer, ask):
    """A contract without a release has release mode `none`, however the engine says so."""
    request = ask()
    decision = authorizer.decide(replace(request, contract_facts={**request.contract_facts, "release_mode": ""}))
    assert decision.context["contract"]["release_mode"] == {"type": "Amends::ReleaseMode", "id": "none"}
    assert decision.allowed


def test_probe_needs_no_input_yet(authorizer, ask):
    """`prepare` is authorized as a probe before it has read what policies may see: it may lack them."""
    for given_input in ({}, {"quantity": 3}):
        assert authorizer.decide(ask(phase="probe", input=given_input)).allowed
    assert authorizer.decide(ask(input={})).code == "request_rejected"
