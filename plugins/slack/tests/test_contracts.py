"""The contracts are complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from amends.core.registration import check, refusals
from amends.spi import SPI_VERSION, AdapterContext
from amends.testing.policies import policy_problems
from amends_slack import contracts, plugin
from amends_slack.options import SlackOptions

OPTIONS = SlackOptions()
ALL = [
    contracts.post,
    contracts.reply,
    contracts.update,
    contracts.delete,
    contracts.schedule,
    contracts.ephemeral,
    contracts.upload,
    contracts.correction,
    contracts.note,
]


@pytest.mark.parametrize("contract", ALL, ids=lambda make: make.__name__)
def test_a_contract_gives_no_reason_to_refuse_it(contract):
    """Every capability can be taken back and verified, or leaves through the outbox with a complete signal."""
    assert refusals(contract(OPTIONS)) == ()


def test_no_two_contracts_clash():
    """Together they register: no policy action is in two phases."""
    check(make(OPTIONS) for make in ALL)


def test_a_posts_correction_ladder_is_declared_in_order():
    """Delete, else mark as withdrawn, else say so in the thread, else a person (S-01)."""
    ladder = contracts.post(OPTIONS).compensation
    assert [(rung.name, rung.undo) for rung in ladder] == [
        ("delete", "own"),
        ("withdraw", "own"),
        ("thread_correction", "correct"),
        ("person", "escalate"),
    ]


def test_messages_wait_for_success_and_removals_for_a_person():
    """Nothing irreversible leaves at once."""
    assert contracts.post(OPTIONS).release.mode == "on_success"
    assert contracts.delete(OPTIONS).release.mode == "on_approval"
    assert contracts.schedule(OPTIONS).release is None


def test_correctors_are_recoverys_alone():
    """No agent may call them, and they are neither undone nor queued (rules 21 and 32)."""
    for make in (contracts.correction, contracts.note):
        assert make(OPTIONS).corrects
        assert set(make(OPTIONS).action_names().values()) == {"correct", "probe"}


@pytest.mark.parametrize("token", ["xoxb-123", "", "SLACK_BOT_TOKEN"])
def test_a_token_in_the_configuration_is_refused(token):
    """The option holds a reference, never the value (rule 10)."""
    with pytest.raises(ValidationError):
        SlackOptions(token=token)


def test_an_unknown_option_is_refused():
    """A misspelt option must not be ignored."""
    with pytest.raises(ValidationError):
        SlackOptions.model_validate({"chanel": "C1"})


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


def context(**options):
    return AdapterContext("slack", "main", "acme", "test", options, lambda reference: "secret", ".")


def test_a_wrong_option_is_named_with_its_section_and_without_its_value():
    """The host shows one line: it must say what to correct, and must not repeat a token."""
    with pytest.raises(ValueError, match=r"^\[adapters\.slack\] `token`: .*") as wrong:
        plugin.amends_register_capabilities(context(token="xoxb-secret"), Kept())
    assert "xoxb-secret" not in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_the_hooks_register_everything_once():
    """Seven capabilities, a corrector per scheme, policies with tests, one examination."""
    kept = Kept()
    plugin.amends_register_capabilities(context(), kept)
    plugin.amends_register_policies(context(), kept)
    plugin.amends_register_doctor(context(), kept)
    names = [capability.contract.capability for capability in kept.capabilities]
    assert names == [make(OPTIONS).capability for make in ALL]
    assert {c.scheme for c in kept.capabilities if hasattr(c, "scheme")} == {"slack", "person"}
    assert len(kept.contributions) == len(kept.examinations) == 1
    assert SPI_VERSION.startswith("1.")


def test_the_default_policies_load_and_their_tests_pass():
    """Strictly validated against the schema generated from these contracts, with the baseline in force."""
    kept = Kept()
    plugin.amends_register_policies(context(), kept)
    assert policy_problems("slack", (make(OPTIONS) for make in ALL), kept.contributions[0]) == []


def test_the_readmes_contract_table_says_what_the_contracts_say():
    """Class, release and audience of every capability, row by row."""
    rows = {}
    for line in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("`slack.") and len(cells) == 5:
            rows[cells[0].strip("`")] = cells
    assert set(rows) == {make(OPTIONS).capability for make in ALL}
    for contract in (make(OPTIONS) for make in ALL):
        cells = rows[contract.capability]
        assert cells[1].startswith(contract.reversibility)
        assert cells[2].startswith(contract.readers.audience)
        if contract.release and "recovery" not in cells[1]:
            assert contract.release.mode.replace("_", " ") in cells[1]
