"""The baseline bundle and the documents about it hold."""

import re
from pathlib import Path

import pytest

from amends import _resources
from amends.backends.cedar import CedarAuthorizer
from amends.backends.cedar.testing import run_policy_tests
from amends.core.contract import Contract, Effect, ProbeRule, Readers, Release, Signal
from amends.core.registration import refusals
from amends.spi import Alternative, PolicyContribution
from amends.testing.policies import policy_problems

README = Path(__file__).parents[3] / "policies" / "README.md"


def fenced(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def readme_contracts():
    reserve = Contract(
        capability="partner.reserve",
        summary="reserve stock",
        effect=Effect(kind="reservation", system="partner", resource="reservation:{id}"),
        readers=Readers(audience="machine", where="the partner's order system"),
        reversibility="compensatable",
        probe=ProbeRule(strength="id"),
        compensation=(Alternative(name="release"),),
        input={"quantity": "Long"},
    )
    notify = Contract(
        capability="partner.notify",
        summary="write to the partner",
        effect=Effect(kind="message", system="partner", resource="message:{id}"),
        readers=Readers(audience="partner", where="the partner's inbox"),
        reversibility="irreversible",
        release=Release(mode="on_success"),
        signal=Signal(
            visible_to="the partner", place="mail:{to}", seen="a message", reader_must="nothing", comes_back="never"
        ),
    )
    return reserve, notify


def test_every_baseline_test_passes():
    """`policies/tests` holds for `policies/`."""
    results = run_policy_tests(contracts=(), contributions={}, site_bundle=None, known_labels={})
    assert len(results) > 20
    assert [f"{result.name}: {result.problem}" for result in results if not result.passed] == []


def test_every_baseline_policy_determines_a_decision():
    """No policy is there for decoration: each one determined some tested decision."""
    results = run_policy_tests(contracts=(), contributions={}, site_bundle=None, known_labels={})
    determined = {id_ for result in results for id_ in result.policy_ids}
    texts = [path.read_text(encoding="utf-8") for path in _resources.policies_path().glob("*.cedar")]
    written = {id_ for text in texts for id_ in re.findall(r'@id\("([^"]+)"\)', text)}
    assert len(written) > 10
    assert written - determined == set()


def test_example_of_an_adapter_loads_and_passes_its_tests():
    """The defaults shown in the README are accepted as a plugin's, and the tests shown beside them pass."""
    policies, tests = fenced("cedar")[0], fenced("json")[0]
    contribution = PolicyContribution(policies={"default.cedar": policies}, tests={"default.policytest.json": tests})
    assert [refusals(contract) for contract in readme_contracts()] == [(), ()]
    assert policy_problems("partner", readme_contracts(), contribution) == []


def test_example_of_a_site_loads(tmp_path):
    """The site bundle shown in the README loads."""
    adapter, site = fenced("cedar")
    manifest, windows = fenced("toml")
    (tmp_path / "bundle.toml").write_text(manifest, encoding="utf-8")
    (tmp_path / "windows.toml").write_text(windows, encoding="utf-8")
    (tmp_path / "site.cedar").write_text(site, encoding="utf-8")
    authorizer = CedarAuthorizer.load(
        contracts=readme_contracts(),
        contributions={"partner": PolicyContribution(policies={"default.cedar": adapter})},
        site_bundle=tmp_path,
        known_labels={},
    )
    assert authorizer.bundle().version.startswith("1.0.0@sha256:")


def test_author_of_an_adapter_is_told_what_is_wrong():
    """`policy_problems` gives a refusal or a failed test as one line."""
    wrong = PolicyContribution(policies={"a.cedar": "permit (principal, action, resource);"})
    assert any("no `@id`" in line for line in policy_problems("partner", readme_contracts(), wrong))
    failing = PolicyContribution(tests={"a.policytest.json": "[]"})
    assert policy_problems("partner", readme_contracts(), failing)


def test_a_corrector_registers_without_undo():
    """A correction is what stays: its contract needs neither undo nor outbox, and must not have them."""
    corrector = Contract(
        capability="partner.correct",
        summary="post a correction",
        effect=Effect(kind="note", system="partner", resource="note:{place}"),
        readers=Readers(audience="partner", where="the partner's inbox"),
        reversibility="irreversible",
        corrects=True,
    )
    assert refusals(corrector) == ()
    assert corrector.action_names() == {"partner.correct.correct": "correct", "partner.correct.probe": "probe"}
    assert refusals(corrector.model_copy(update={"compensation": (Alternative(name="delete"),)}))


@pytest.mark.parametrize("find", [_resources.policies_path, _resources.scenarios_path])
def test_shipped_data_is_found(find):
    """The data folders are found from the installed package."""
    assert find().is_dir()
