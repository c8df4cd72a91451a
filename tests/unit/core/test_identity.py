"""Slots, claims, keys and approval digests: what makes two calls the same intent (rules 5, 6 and 30)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.contract import Effect, Identity
from amends.core.errors import InvalidInput, Unidentified
from amends.core.identity import approval_digest, claim_of, idempotency_key, render, run_claim, slot_of
from amends.core.status import ActionKind
from amends.testing.contracts import reversible

ONE = reversible("git.create_branch", identity=Identity(fields=("repo",)))
MANY = reversible("flags.set", identity=Identity(fields=("flag",), cardinality="many", value_fields=("value",)))
NAMELESS = reversible("jira.comment", identity=Identity())


def slot(contract, label="", **args):
    return slot_of(contract, "main", "staging", args, label)


def test_a_slot_is_readable():
    """A person sees in the ledger what the call is for."""
    assert slot(ONE, repo="web") == 'git.create_branch@main/staging?{"repo":"web"}#'


@given(st.dictionaries(st.sampled_from(["name", "text", "revision"]), st.text(max_size=10)))
def test_what_a_model_rewords_is_no_part_of_the_slot(wording):
    """Branch names and texts stay out: a reworded call is the same intent."""
    assert slot(ONE, repo="web", **wording) == slot(ONE, repo="web")


@pytest.mark.parametrize(
    "other",
    [
        slot(ONE, repo="api"),
        slot(ONE, "second", repo="web"),
        slot_of(ONE, "other", "staging", {"repo": "web"}),
        slot_of(ONE, "main", "production", {"repo": "web"}),
        slot(reversible("git.tag", identity=ONE.identity), repo="web"),
        slot(ONE),
    ],
)
def test_target_label_instance_environment_and_capability_tell_slots_apart(other):
    """Each is a difference a person would name."""
    assert other != slot(ONE, repo="web")


def test_values_of_one_meaning_share_the_slot():
    """1 and 1.0, and two spellings of a letter, are one identity."""
    assert slot(ONE, repo=1) == slot(ONE, repo=1.0)
    assert slot(ONE, repo="e\u0301") == slot(ONE, repo="\u00e9")


def test_a_named_later_value_is_a_new_action_where_many_are_declared():
    """Update-type calls: another value is another slot, the same value is the same."""
    assert slot(MANY, flag="beta", value=True) != slot(MANY, flag="beta", value=False)
    assert slot(MANY, flag="beta", value=True, note="x") == slot(MANY, flag="beta", value=True)


def test_many_without_value_fields_needs_a_label():
    """Identity alone does not say which of many this is."""
    contract = reversible("jira.comment", identity=Identity(fields=("key",), cardinality="many"))
    with pytest.raises(Unidentified, match="needs a label"):
        slot(contract, key="BILL-1")
    assert slot(contract, "greeting", key="BILL-1") != slot(contract, "farewell", key="BILL-1")


def test_a_consequential_call_without_identity_needs_a_label_and_a_read_does_not():
    """Rule 5: refused, with the remedy in the hint."""
    with pytest.raises(Unidentified) as caught:
        slot(NAMELESS, text="hi")
    assert caught.value.hint == "pass label='…' naming what this call is for; the same label is the same call"
    assert caught.value.data == {"capability": "jira.comment"}
    assert slot(NAMELESS, "greeting", text="hi") == slot(NAMELESS, "greeting", text="hello")
    reading = reversible(
        "jira.read",
        identity=Identity(),
        effect=Effect(kind="issue", system="jira", resource="issue:{key}", changes="none"),
    )
    assert slot(reading) == "jira.read@main/staging?{}#"


def test_a_long_identity_is_digested_and_stays_distinct():
    """The slot has a bounded length; two long values are still two slots."""
    one, other = slot(ONE, repo="w" * 500), slot(ONE, repo="w" * 499 + "x")
    assert one != other
    assert max(len(one), len(other)) <= 200
    assert "a1:" in one
    room = 200 - len(slot(ONE, repo=""))
    assert slot(ONE, repo="w" * room) == slot(ONE, repo="").replace('""', f'"{"w" * room}"')
    assert "a1:" in slot(ONE, repo="w" * (room + 1))


def test_no_label_and_no_ladder_are_the_empty_ones():
    """A key or slot computed with less words is the same one."""
    assert slot_of(ONE, "main", "staging", {"repo": "web"}) == slot(ONE, "", repo="web")
    intent = ("run-1", ActionKind.DO, "slot", 1)
    assert idempotency_key(*intent) == idempotency_key(*intent, "", "")


@pytest.mark.parametrize(
    ("scope", "claim"),
    [
        ("run", ""),
        ("workflow", "effect:acme:billing:s"),
        ("tenant", "effect:acme:s"),
    ],
)
def test_a_claim_reaches_as_far_as_the_scope(scope, claim):
    """Identity past the run is a claim; within it, none is needed (rule 6)."""
    contract = reversible(identity=Identity(fields=("name",), scope=scope))
    assert claim_of(contract, "acme", "billing", "s") == claim


def test_a_run_is_tenant_workflow_and_key():
    """Separators in the names cannot make two runs one."""
    assert run_claim("a", "b", "c") == 'run:["a","b","c"]'
    assert run_claim('a","b', "c", "d") != run_claim("a", 'b","c', "d")


def test_a_key_changes_with_the_intent_and_its_generation_only():
    """Every part of the intent counts; the same intent has the same key for ever."""
    base = ("run-1", ActionKind.DO, "slot", 1, "", "")
    assert idempotency_key(*base) == "amends-d4193aebe20f558dada7f8a312632b9403e8030c"
    variants = [
        ("run-2", *base[1:]),
        (base[0], ActionKind.UNDO, *base[2:]),
        (*base[:2], "other", *base[3:]),
        (*base[:3], 2, "", ""),
        (*base[:4], "a", ""),
        (*base[:5], "cancel"),
    ]
    assert len({idempotency_key(*parts) for parts in [base, *variants]}) == 7


@pytest.mark.parametrize(
    "field",
    [
        "principal",
        "action",
        "resource",
        "args_digest",
        "policy_input",
        "content_digest",
        "forward_outcome",
        "contract_digest",
    ],
)
def test_an_approval_binds_every_field(field):
    """Whatever a person was shown: a change of it needs another yes (rule 30)."""
    shown = {
        "principal": "Agent::coder",
        "action": "git.push:forward:",
        "resource": "ref:main",
        "args_digest": "a1:1",
        "policy_input": {"lines": 3},
        "content_digest": "sha-1",
        "forward_outcome": "none",
        "contract_digest": "a1:2",
    }
    changed = shown | {field: {"lines": 4} if field == "policy_input" else "other"}
    assert approval_digest(**shown) == approval_digest(**dict(reversed(shown.items())))
    assert approval_digest(**changed) != approval_digest(**shown)


def test_a_template_is_filled_from_values():
    """Numbers and booleans are written as text; escaping is for path parts."""
    assert render("branch:{repo}/{name}", {"repo": "web", "name": "a/b"}) == "branch:web/a/b"
    assert render("/v1/{name}", {"name": "a/b c"}, escape=True) == "/v1/a%2Fb%20c"
    assert render("item:{n}", {"n": 0}) == "item:0"
    assert render("{{fixed}}:{n}/{m}", {"n": 1, "m": 2}) == "{fixed}:1/2"
    assert render("fixed", {}) == "fixed"


@pytest.mark.parametrize("value", [None, [], {"a": 1}])
def test_a_template_without_its_value_is_refused(value):
    """The field is named; a list or a mapping is no name of anything."""
    with pytest.raises(InvalidInput, match="`name`") as caught:
        render("branch:{name}", {"name": value})
    assert caught.value.data == {"field": "name"}
    assert caught.value.hint == "pass it"
