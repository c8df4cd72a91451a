"""What the adapter registers, and what it says about wrong configuration."""

import pytest

from amends.core.registration import check
from amends.spi import ConfigError
from amends_git import plugin
from amends_git.options import options_of


class Shelf:
    """Keeps what hooks hand over."""

    def __init__(self):
        self.capabilities, self.contributions, self.examinations = [], [], []

    def capability(self, capability):
        self.capabilities.append(capability)

    def policies(self, contribution):
        self.contributions.append(contribution)

    def doctor(self, examine):
        self.examinations.append(examine)


def test_contracts_pass_registration(desk):
    """Every capability declares effect, probe, undo and verification."""
    shelf = Shelf()
    plugin.amends_register_capabilities(desk.context(), shelf)
    check(capability.contract for capability in shelf.capabilities)
    assert {c.contract.capability for c in shelf.capabilities} >= {"git.create_branch", "git.push", "git.commit"}


def test_default_policies_name_every_action_that_may_run(desk):
    """Each capability has a forward permit and an undo permit for the recovery Service."""
    shelf = Shelf()
    plugin.amends_register_capabilities(desk.context(), shelf)
    plugin.amends_register_policies(desk.context(), shelf)
    text = "".join(shelf.contributions[0].policies.values())
    for capability in shelf.capabilities:
        for name, phase in capability.contract.action_names().items():
            assert (f'"{name}"' in text) is (phase != "probe")


def test_force_is_a_capability_of_its_own(desk):
    """No argument turns a push into a forced one: force is another call, with its own policy and its own backup."""
    shelf = Shelf()
    plugin.amends_register_capabilities(desk.context(), shelf)
    named = [c.contract.capability for c in shelf.capabilities if "force" in c.contract.capability]
    fields = [name for c in shelf.capabilities for name in c.arguments.model_fields]
    assert (named, [word for word in fields if "force" in word]) == (["git.force_push"], [])


def test_doctor_names_what_is_wrong(desk):
    """A remote that does not answer is a problem with a remedy; a sound one shows where its base stands."""
    shelf = Shelf()
    plugin.amends_register_doctor(desk.context(), shelf)
    assert [finding.level for finding in shelf.examinations[0]()] == ["ok", "ok"]
    desk.remote.rename(desk.root / "gone.git")
    found = shelf.examinations[0]()[-1]
    assert (found.level, bool(found.remedy)) == ("problem", True)


def test_doctor_names_a_lock_that_is_in_the_way(desk):
    """A lock file of a git that may be dead is a warning with its path."""
    shelf = Shelf()
    plugin.amends_register_doctor(desk.context(), shelf)
    (desk.checkout / ".git/index.lock").touch()
    found = shelf.examinations[0]()[-1]
    assert (found.level, "index.lock" in found.message) == ("warning", True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"remote": "https://me:hunter2@git.example.com/x.git"}, "password"),
        ({"remot": "x"}, "remot"),
        ({"token": "hunter2"}, "token"),
    ],
)
def test_wrong_section_is_refused_without_showing_secrets(desk, settings, said):
    """The error names section and key, and repeats no value."""
    desk.settings = settings
    with pytest.raises(ConfigError) as error:
        options_of(desk.context())
    assert said in str(error.value)
    assert "adapters.git" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_repository_nobody_configured_is_refused(desk):
    """An agent cannot name an address, only a configured repository."""
    from amends.spi import Refused

    action = desk.action("create_branch", branch="x")
    action.args["repo"] = "elsewhere"
    with pytest.raises(Refused, match="elsewhere"):
        action.prepare()
