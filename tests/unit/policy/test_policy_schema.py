"""The schema generated from contracts."""

import pytest

from amends.backends.cedar.schema import entity_type, vocabulary
from amends.core.contract import Alternative, Contract, Effect, ProbeRule, Readers, Release
from amends.core.errors import ConfigError


def contract(capability="my_shop.reserve", **changes):
    facts = {
        "capability": capability,
        "summary": "x",
        "effect": Effect(kind="x", system="shop", resource="draft_order:{id}"),
        "readers": Readers(audience="machine", where="api"),
        "reversibility": "compensatable",
        "probe": ProbeRule(strength="id"),
        "compensation": (Alternative(name="release"),),
    }
    return Contract(**(facts | changes))


def test_each_action_is_declared_in_its_one_phase():
    """Forward, probe, undo, renamed undo and release are actions of their own; recovery's accept no Agent."""
    rungs = (Alternative(name="release"), Alternative(name="refund", authority="my_shop.refund_order"))
    one = contract(compensation=rungs)
    two = contract("my_shop.notify", reversibility="irreversible", compensation=(), release=Release(mode="gate"))
    found = vocabulary([one, two])
    phases = {name: action.phase for (_, name), action in found.actions.items()}
    assert phases == {
        "my_shop.reserve": "forward",
        "my_shop.reserve.probe": "probe",
        "my_shop.reserve.undo": "undo",
        "my_shop.refund_order": "undo",
        "my_shop.notify": "forward",
        "my_shop.notify.probe": "probe",
        "my_shop.notify.release": "release",
    }
    text = found.texts["MyShop"]
    assert text.count("Amends::Agent") == 2
    assert text.count("in [Amends::Action::") == 7
    assert "entity DraftOrder in [Amends::Tenant] = { tenant: Amends::Tenant, environment: String };" in text


def test_corrector_has_no_forward_action():
    """A corrector's capability is `correct` and `probe`, nothing an agent could call."""
    found = vocabulary([contract("my_shop.post_note", corrects=True, compensation=())])
    assert {name: a.phase for (_, name), a in found.actions.items()} == {
        "my_shop.post_note.correct": "correct",
        "my_shop.post_note.probe": "probe",
    }


def test_generation_does_not_depend_on_order():
    """The same contracts in any order give the same text, so the effective digest is stable."""
    contracts = [contract("a.one"), contract("b.two"), contract("a.three", input={"n": "Long", "m": "Bool"})]
    assert vocabulary(contracts).texts == vocabulary(reversed(contracts)).texts


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capability": "amends.reserve"}, "core's namespace"),
        ({"input": {"__entity": "String"}}, "no usable field name"),
        ({"input": {"a-b": "String"}}, "no usable field name"),
        ({"effect": Effect(kind="x", system="s", resource="set:{id}")}, "a word of Cedar"),
    ],
)
def test_reserved_names_are_refused(changes, words):
    """Names that Cedar or the core owns are refused with the capability."""
    with pytest.raises(ConfigError, match=words):
        vocabulary([contract(**changes)])


def test_two_prefixes_may_not_share_a_namespace():
    """`a1_b` and `a1b` would both be `A1B`: refused, or one adapter could write the other's policies."""
    with pytest.raises(ConfigError, match="share the policy namespace"):
        vocabulary([contract("a1_b.x"), contract("a1b.x")])


def test_entity_type_is_pascal_case():
    """Resource types become Cedar type names."""
    assert [entity_type(name) for name in ("branch", "draft_pr", "Flag")] == ["Branch", "DraftPr", "Flag"]
