"""The contracts are complete, whatever a site declares."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pydantic import ValidationError

from amends.core.registration import check, refusals
from amends.spi import AdapterContext
from amends.testing.policies import policy_problems
from amends_jira import contracts, plugin
from amends_jira.options import JiraOptions

ALL = [
    contracts.transition,
    contracts.comment,
    contracts.create,
    contracts.assign,
    contracts.labels,
    contracts.link,
    contracts.remote_link,
    contracts.correction,
]
SITES = [
    {"customer_facing": facing, "create_told": told, "transition": transition}
    for facing, told, transition in itertools.product((True, False), ("", "maya"), ("irreversible", "compensatable"))
    if not (facing and transition == "compensatable")
]


def options(**given):
    return JiraOptions.model_validate({"base_url": "https://acme.atlassian.net", **given})


@pytest.mark.parametrize("site", SITES, ids=str)
def test_no_contract_gives_a_reason_to_refuse_it(site):
    """Every combination of options registers."""
    made = [make(options(**site)) for make in ALL]
    assert {contract.capability: refusals(contract) for contract in made if refusals(contract)} == {}
    check(made)


def test_a_transition_that_customers_hear_of_waits_for_a_person():
    """Irreversible and on approval, unless the site says that nobody outside reads it."""
    outside = contracts.transition(options())
    assert (outside.reversibility, outside.readers.audience, outside.release.mode) == (
        "irreversible",
        "customer",
        "on_approval",
    )
    inside = contracts.transition(options(customer_facing=False))
    assert (inside.reversibility, inside.readers.audience, inside.release.mode) == (
        "irreversible",
        "team",
        "on_success",
    )
    free = contracts.transition(options(customer_facing=False, transition="compensatable"))
    assert (free.reversibility, free.release) == ("compensatable", None)


def test_what_customers_read_cannot_be_declared_compensatable():
    """The configuration error names the remedy."""
    with pytest.raises(ValidationError, match="customer_facing = false"):
        options(transition="compensatable")


def test_absence_from_search_is_never_final():
    """An issue whose answer was lost may only be late in the index (P-01)."""
    assert not contracts.create(options()).probe.absence_can_be_final


def test_creating_is_compensatable_only_where_somebody_hears_of_the_deletion():
    """A deleted issue has no comments to correct in."""
    assert contracts.create(options()).irreversible
    told = contracts.create(options(create_told="maya"))
    assert (told.reversibility, told.signal.place) == ("compensatable", "person:maya")


@pytest.mark.parametrize("bad", [{"token": "abc123"}, {"tokn": "env:X"}, {"base_url": "acme.atlassian.net"}])
def test_a_wrong_option_is_refused(bad):
    """A token by value, a misspelt key, an address without scheme."""
    with pytest.raises(ValidationError):
        options(**bad)


class Kept:
    """A registry that keeps what it is handed."""

    def __init__(self) -> None:
        self.capabilities = []
        self.contributions = []
        self.examinations = []

    def capability(self, capability):
        self.capabilities.append(capability)

    def policies(self, contribution):
        self.contributions.append(contribution)

    def doctor(self, examine):
        self.examinations.append(examine)


def registered(**given):
    given = {"base_url": "https://acme.atlassian.net", **given}
    context = AdapterContext("jira", "main", "acme", "test", given, lambda reference: "secret", ".")
    kept = Kept()
    plugin.amends_register_capabilities(context, kept)
    plugin.amends_register_policies(context, kept)
    plugin.amends_register_doctor(context, kept)
    return kept


def test_a_wrong_option_is_named_with_its_section_and_without_its_value():
    """The host shows one line: it must say what to correct, and must not repeat a token."""
    with pytest.raises(ValueError, match=r"^\[adapters\.jira\] `token`: .*") as wrong:
        registered(token="jira-secret")
    assert "jira-secret" not in str(wrong.value)
    with pytest.raises(ValueError, match=r"^\[adapters\.jira\] `transition = .*customer_facing = false"):
        registered(transition="compensatable")


def test_the_hooks_register_everything_once():
    """Seven capabilities, one corrector, policies, one examination."""
    kept = registered()
    assert [c.contract.capability for c in kept.capabilities] == [make(options()).capability for make in ALL]
    assert [c.scheme for c in kept.capabilities if hasattr(c, "scheme")] == ["jira"]
    assert len(kept.contributions) == len(kept.examinations) == 1


@pytest.mark.parametrize("site", SITES, ids=str)
def test_the_default_policies_load_and_their_tests_pass(site):
    """Strictly validated against the schema generated from these contracts, with the baseline in force."""
    kept = registered(**site)
    declared = [capability.contract for capability in kept.capabilities]
    assert policy_problems("jira", declared, kept.contributions[0]) == []


@pytest.mark.parametrize("site", SITES, ids=str)
def test_policies_speak_only_of_actions_that_exist(site):
    """A release is permitted exactly where the contract is irreversible."""
    kept = registered(**site)
    text = "\n".join(kept.contributions[0].policies.values())
    for capability in kept.capabilities[:-1]:
        names = capability.contract.action_names()
        for phase in ("release", "undo"):
            name = f"{capability.contract.capability}.{phase}"
            assert (f'"{name}"' in text) == (name in names)
    assert '"jira.correction"' not in text


def test_the_readmes_contract_table_says_what_the_contracts_say():
    """Class, release and audience of every capability, as a site gets them by default."""
    rows = {}
    for line in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("`jira.") and len(cells) == 5:
            rows[cells[0].strip("`")] = cells
    declared = [make(options()) for make in ALL]
    assert set(rows) == {contract.capability for contract in declared}
    for contract in declared:
        cells = rows[contract.capability]
        assert cells[1].startswith(contract.reversibility)
        assert cells[2].startswith(contract.readers.audience)
        if contract.release and "recovery" not in cells[1]:
            assert contract.release.mode.replace("_", " ") in cells[1]
