"""Asking with fewer hypothetical approvals gives the same answers as asking with all of them."""

from dataclasses import replace

import pytest

from amends.backends.cedar import native, tree
from amends.backends.cedar.answer import answer
from amends.backends.cedar.question import from_record
from amends.backends.cedar.tiers import EVERY_TIER, tier_steps
from amends.ports.authorizer import ApprovalFacts

UNDO = 'action == Partner::Action::"partner.reserve.undo"'
TIER = "context.approval.tier"
CONDITIONS = {
    f"{TIER} >= 2": {2},
    f"{TIER} > 2": {3},
    f"{TIER} < 3": {3},
    f"{TIER} <= 1": {2},
    f"{TIER} == 2": {2, 3},
    f"{TIER} != 1": {1, 2},
    f"2 <= {TIER}": {2},
    f"3 > {TIER}": {3},
    f"2 == {TIER}": {2, 3},
    f"[2].contains({TIER})": EVERY_TIER,
    f"{TIER} + 1 > 3": EVERY_TIER,
    f"{TIER} >= 1 && [3].contains({TIER})": EVERY_TIER,
    f"{TIER} >= context.approval.count": EVERY_TIER,
    "context.approval.count >= 2": frozenset(),
    "[context.approval] == [context.approval]": EVERY_TIER,
    "[context] == [context]": EVERY_TIER,
    f'{TIER} >= 2 && context.approval.roles.contains(Amends::Role::"finance")': {2},
    (f'{TIER} == 2 && context.approval.roles.containsAll([Amends::Role::"finance", Amends::Role::"operations"])'): {
        2,
        3,
    },
}


def policy(condition, effect="permit", id_="site"):
    clause = "when" if effect == "permit" else "unless"
    text = f'@id("{id_}") @reason("r") {effect} (principal, {UNDO}, resource) {clause} {{ {condition} }};'
    (found,), findings = tree.parse(text, "site.cedar")
    assert findings == []
    return found


@pytest.mark.parametrize(("condition", "steps"), CONDITIONS.items())
def test_tiers_that_matter_are_read_from_the_policy(condition, steps):
    """Where a comparison changes; every tier where anything else is done with it."""
    assert tier_steps([policy(f"context has approval && {condition}")]) == steps


@pytest.mark.parametrize("held", [None, 0, 1, 2, 3], ids=lambda tier: f"held {tier}")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_answers_are_those_of_asking_with_everything(load, ask, condition, held):
    """With a permit or a forbid over the condition, and whatever approval is held already."""
    authorizer = load(contributions={})
    request = ask(phase="undo")
    if held is not None:
        facts = ApprovalFacts(("maya",), ("sales",), max(held, 1), request.now_us, request.now_us + 1_000_000)
        request = replace(request, approval=facts)
    snapshot = authorizer._snapshot
    question = authorizer._question(request, authorizer.active)
    if held == 0:
        approval = {**question.context["approval"], "tier": 0}
        question = from_record({**question.record, "approval": approval})
    guarded = f"context has approval && {condition}"
    for own in ([policy(guarded)], [policy("true", id_="open"), policy(guarded, "forbid")]):
        policies = (*snapshot.policies, *own)
        fewer = replace(snapshot, policies=policies, _slices={})
        slice_ = fewer.slice(question.action_key)
        every = replace(
            snapshot, policies=policies, _slices={question.action_key: replace(slice_, tier_steps=EVERY_TIER)}
        )
        assert answer(fewer, question) == answer(every, question)


def test_what_no_approval_can_change_is_not_asked_with_one(load, ask, monkeypatch):
    """A forbid that does not look at the approval stands whatever people say: one evaluation is enough."""
    authorizer = load()
    asked = []
    real = native.evaluate
    monkeypatch.setattr(native, "evaluate", lambda *args: (asked.append(args), real(*args))[1])
    assert authorizer.decide(ask(phase="undo", tenant="other", age_us=10**10)).verdict == "deny"
    assert len(asked) == 1
