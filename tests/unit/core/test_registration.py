"""Registration: every reason to refuse a contract, each triggered alone, and complete contracts that pass."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from amends.core.contract import (
    Alternative,
    Contract,
    Effect,
    Identity,
    Keying,
    ProbeRule,
    Readers,
    Release,
    Signal,
    namespace_of,
)
from amends.core.errors import ConfigError
from amends.core.registration import check, refusals, template_fields
from amends.core.status import Outcome
from amends.testing.contracts import corrector, irreversible, reversible, visible

SETS = Effect(kind="flag", system="flags", resource="flag:{name}", changes="sets")
READS = Effect(kind="flag", system="flags", resource="flag:{name}", changes="none")
HARMLESS = {"safe_when": (Outcome.SUCCEEDED, Outcome.UNKNOWN)}

REASONS = {
    "no inverse": (reversible(compensation=()), "no undo:"),
    "only a person": (reversible(compensation=(Alternative(name="person", undo="escalate"),)), "no undo:"),
    "no verify": (reversible(probe=None), "no way to verify the undo"),
    "released though reversible": (reversible(release=Release(mode="on_success")), "only irreversible calls"),
    "irreversible without outbox": (irreversible(release=None), "irreversible without a release"),
    "no before-image": (reversible(effect=SETS), "needs a before-image"),
    "before-image of a creation": (reversible(restores_before_image=True), "belongs to an effect that `sets`"),
    "customers read it": (visible(readers=Readers(audience="customer", where="mail")), "`customer` readers"),
    "partners read it": (visible(readers=Readers(audience="partner", where="api")), "`partner` readers"),
    "people see it, no signal": (reversible(readers=Readers(audience="team", where="chat")), "needs a complete signal"),
    "one name twice": (
        reversible(compensation=(Alternative(name="cancel"), Alternative(name="cancel"))),
        "two alternatives are called",
    ),
    "forward name as authority": (
        reversible(compensation=(Alternative(name="cancel", authority="partner.reserve"),)),
        "uses the forward name",
    ),
    "another phase's name as authority": (
        reversible(compensation=(Alternative(name="cancel", authority="partner.reserve.probe"),)),
        "of another phase",
    ),
    "unknown without a harmless inverse": (
        reversible(compensation=(Alternative(name="cancel", **HARMLESS),)),
        "safe when `unknown` only with",
    ),
    "unknown without a probe": (
        irreversible(
            probe=None,
            keying=Keying(kind="blind"),
            compensation=(Alternative(name="cancel", harmless_when_absent=True, **HARMLESS),),
        ),
        "safe when `unknown` only with",
    ),
    "none is no outcome": (
        reversible(compensation=(Alternative(name="cancel", safe_when=(Outcome.NONE,)),)),
        "`none` is not a forward",
    ),
    "probeable, no probe": (
        irreversible(keying=Keying(kind="probeable"), probe=None),
        "keying is `probeable` but there is no probe",
    ),
    "confirmed by a probe, no probe": (
        irreversible(confirm="probe", probe=None),
        "success is confirmed by a probe but there is no probe",
    ),
    "value fields of one": (
        reversible(identity=Identity(fields=("name",), value_fields=("value",))),
        "`value_fields` need cardinality",
    ),
    "corrector that posts nothing": (corrector(effect=READS), "posts something"),
    "corrector with an undo": (corrector(compensation=(Alternative(name="cancel"),)), "neither undone nor queued"),
    "corrector in the outbox": (corrector(release=Release(mode="on_success")), "neither undone nor queued"),
    "corrector that cannot be found": (corrector(probe=None), "no probe that finds the posting again"),
}

COMPLETE = {
    "reversible": reversible(),
    "visible": visible(),
    "outbox": irreversible(),
    "gate": irreversible(mode="gate"),
    "read": reversible(effect=READS, compensation=(), probe=None),
    "sets": reversible(effect=SETS, restores_before_image=True),
    "unknown is safe": reversible(compensation=(Alternative(name="cancel", harmless_when_absent=True, **HARMLESS),)),
    "customers, irreversible": irreversible(
        readers=Readers(audience="customer", where="mail"), signal=visible().signal
    ),
    "ladder ending at a person": reversible(
        compensation=(Alternative(name="void"), Alternative(name="person", undo="escalate"))
    ),
    "renamed authority": reversible(compensation=(Alternative(name="cancel", authority="partner.cancel"),)),
    "many values": reversible(identity=Identity(fields=("name",), cardinality="many", value_fields=("value",))),
    "corrector": corrector(),
    "blind corrector": corrector(probe=None, keying=Keying(kind="blind")),
}


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_is_found_alone(name):
    """The contract triggers exactly this reason: no false alarm beside it."""
    contract, words = REASONS[name]
    (reason,) = refusals(contract)
    assert words in reason


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_contract_passes(name):
    """Nothing to say, alone or together with others."""
    assert refusals(COMPLETE[name]) == ()
    check([COMPLETE[name]])


def test_one_error_lists_everything():
    """All contracts, all reasons, by name: fix once."""
    bad = reversible("a.one", compensation=(), probe=None)
    with pytest.raises(ConfigError) as caught:
        check([bad, reversible("a.two"), irreversible("a.three", release=None)])
    assert set(caught.value.data["refused"]) == {"a.one", "a.three"}
    assert len(caught.value.data["refused"]["a.one"]) == 2
    assert "`a.one`: no undo" in str(caught.value)


def test_a_policy_action_belongs_to_one_phase():
    """A forward permit can never match a compensation, across contracts too (DESIGN section 5)."""
    undo = reversible("a.make", compensation=(Alternative(name="cancel", authority="a.remove"),))
    with pytest.raises(ConfigError, match=r"`a\.remove` would be both `undo` and `forward`"):
        check([undo, reversible("a.remove")])


def test_what_a_contract_brings_to_the_policies():
    """Names by phase; only what exists."""
    renamed = reversible(
        "a.make", compensation=(Alternative(name="cancel", authority="a.unmake"), Alternative(name="b"))
    )
    assert renamed.action_names() == {
        "a.make": "forward",
        "a.make.probe": "probe",
        "a.make.undo": "undo",
        "a.unmake": "undo",
    }
    assert renamed.undo_action_name(renamed.undo_alternative("cancel")) == "a.unmake"
    assert renamed.undo_action_name(renamed.undo_alternative("b")) == "a.make.undo"
    assert irreversible("a.mail").action_names() == {
        "a.mail": "forward",
        "a.mail.probe": "probe",
        "a.mail.release": "release",
    }
    assert corrector("a.note").action_names() == {"a.note.correct": "correct", "a.note.probe": "probe"}
    with pytest.raises(KeyError):
        renamed.undo_alternative("other")


def test_names_and_digests_of_contracts():
    """The digest is the content's: any change voids certificates and approvals."""
    assert reversible("my_partner.reserve").namespace == "MyPartner"
    assert namespace_of("git") == "Git"
    assert reversible().effect.resource_type == "reservation"
    assert reversible().digest == reversible().digest
    assert reversible().digest != reversible(undo_cost="a fee").digest
    assert Contract.model_validate_json(visible().model_dump_json()) == visible()


@pytest.mark.parametrize(
    ("changes", "final"),
    [
        ({}, True),
        ({"strength": "list"}, True),
        ({"strength": "search"}, False),
        ({"complete": False}, False),
        ({"absent_final_after_seconds": None}, False),
    ],
)
def test_search_an_incomplete_read_and_an_undeclared_time_never_prove_absence(changes, final):
    """Absence may be final only for an authoritative, complete read (rule 4)."""
    fields = {"strength": "id", "complete": True, "absent_final_after_seconds": 1.0}
    assert ProbeRule(**(fields | changes)).absence_can_be_final is final


@pytest.mark.parametrize(
    "broken",
    [
        lambda: reversible("NoDots"),
        lambda: reversible(summary=""),
        lambda: reversible(effect=Effect(kind="x", system="y", resource="no type")),
        lambda: reversible(surprise=1),
        lambda: Signal(visible_to="t", place="p", seen="s", reader_must="", comes_back="c"),
        lambda: Alternative(name="Cancel Now"),
    ],
)
def test_blanks_and_unknown_fields_never_become_a_contract(broken):
    """An empty field of a correction would be an empty sentence later."""
    with pytest.raises(ValidationError):
        broken()


def test_contracts_are_frozen():
    """What was registered is what recovery reads."""
    with pytest.raises(ValidationError):
        reversible().summary = "other"


def test_template_fields_are_named():
    """What a resource or place needs from the arguments."""
    assert template_fields("branch:{repo}/{name}") == ("repo", "name")
    assert template_fields("fixed") == ()
