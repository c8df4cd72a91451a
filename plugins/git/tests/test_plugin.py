"""What the adapter registers, and what it says about wrong configuration."""

import pytest

from amends.core.registration import check
from amends.spi import ConfigError
from amends_git import objects, plugin
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
        ({"remote": "https://me:hunter2@git.example.com/x.git"}, "credential"),
        ({"remote": "https://hunter2@git.example.com/x.git"}, "credential"),
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


def _tag(desk):
    return desk.action("tag", name="v1", commit=desk.remote_ref("main"), message="release")


def _revert(desk):
    commit = desk.agent_commits()
    desk.action("push", branch="main", commit=commit).run()
    return desk.action("revert", branch="main", commit=commit)


def _commit(desk):
    return desk.action("commit", branch="topic", base="main", message="m", files={"a": "b"})


def _merge(desk):
    desk.somebody_pushes("topic")
    desk.action("create_branch", branch="feature/field").run()
    return desk.action("merge", branch="feature/field", source="topic")


def _checkout(desk):
    (desk.checkout / "README.md").write_text("half-written\n")
    return desk.action("checkout", target="main", put_aside=True)


@pytest.mark.parametrize("make", [_tag, _revert, _commit, _merge, _checkout])
def test_a_yes_holds_when_the_call_is_prepared_again_later(desk, monkeypatch, make):
    """What people are shown stays the same while only time passes; dates and marks are no content (rule 30)."""
    action = make(desk)
    shown = action.prepare().content_digest
    first = dict(action.allocated)
    monkeypatch.setattr(objects, "date_now", lambda _: "1900000000 +0000")
    action.action_id = "another-action"
    assert shown
    assert action.prepare().content_digest == shown
    assert action.allocated != first
