"""The drill: do, verify, undo, verify on a full copy, before anybody relies on the way back."""

import pytest

from amends.core.registration import check
from amends.spi import ConfigError, Refused
from amends_migrations import plugin
from amends_migrations.options import options_of


def test_drill_certifies_the_very_files_that_will_run(staging):
    """The certificate's subject equals the subject of the call; the real database stays as it was."""
    action = staging.action()
    subject, detail = action.capability.drill(action.question())
    assert subject == action.prepare().subject_digest
    assert "r2.py" in detail
    assert (staging.version(), staging.columns()) == (["r1"], ["id", "amount"])


def test_changed_file_needs_a_new_drill(staging):
    """One changed statement is another subject."""
    action = staging.action()
    subject, _ = action.capability.drill(action.question())
    staging.write(
        "r2", "r1", 'op.add_column("billing", sa.Column("note", sa.Text))', 'op.drop_column("billing", "note")'
    )
    assert action.prepare().subject_digest != subject


def test_drill_fails_on_what_only_real_rows_show(staging):
    """The empty copy let it pass; the full copy shows that the way back changes people's rows."""
    staging.write(
        "r2",
        "r1",
        'op.add_column("billing", sa.Column("note", sa.String(20)))\nop.execute("UPDATE billing SET amount = 0")',
        'op.drop_column("billing", "note")',
    )
    action = staging.action()
    with pytest.raises(Refused, match="rows are not as before") as refused:
        action.capability.drill(action.question())
    assert refused.value.code == "drill_failed"
    assert staging.sql("SELECT amount FROM billing ORDER BY id") == [(42,), (7,)]


def test_drill_fails_where_the_upgrade_does(staging):
    """A migration that cannot run on the real rows gets no certificate."""
    staging.write(
        "r2",
        "r1",
        'op.add_column("billing", sa.Column("note", sa.String(20)))\n'
        'op.execute("INSERT INTO billing (id) SELECT id FROM billing")',
        'op.drop_column("billing", "note")',
    )
    action = staging.action()
    with pytest.raises(Refused, match="UNIQUE"):
        action.capability.drill(action.question())


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


@pytest.mark.parametrize("section", [{}, {"audience": "team", "place": "slack:C012"}])
def test_contracts_pass_registration(staging, section):
    """Both capabilities are complete, for machines and for a team that is told where it reads."""
    shelf = Shelf()
    plugin.amends_register_capabilities(staging.context(**section), shelf)
    check(capability.contract for capability in shelf.capabilities)
    assert all(capability.contract.needs_drill for capability in shelf.capabilities)


def test_default_policies_name_every_action_that_may_run(staging):
    """Each capability has a forward permit and an undo permit for the recovery Service."""
    shelf = Shelf()
    plugin.amends_register_capabilities(staging.context(), shelf)
    plugin.amends_register_policies(staging.context(), shelf)
    text = "".join(shelf.contributions[0].policies.values())
    for capability in shelf.capabilities:
        for name, phase in capability.contract.action_names().items():
            assert (f'"{name}"' in text) is (phase != "probe")


def test_doctor_names_what_is_wrong(staging):
    """A sound database shows revision and fingerprint; a missing one is a problem with a remedy."""
    shelf = Shelf()
    plugin.amends_register_doctor(staging.context(), shelf)
    assert "at r1" in shelf.examinations[0]()[0].message
    staging.file.unlink()
    (found,) = shelf.examinations[0]()
    assert (found.level, bool(found.remedy)) == ("problem", True)


@pytest.mark.parametrize(
    ("settings", "section", "said"),
    [
        ({"url": ""}, {}, "either"),
        ({"url": "mysql://db/hunter2"}, {}, "sqlite"),
        ({"url": "postgresql://me:hunter2@db/x"}, {}, "url_secret"),
        ({"url": "postgresql://db/x?password=hunter2"}, {}, "url_secret"),
        ({"skripts": "x"}, {}, "skripts"),
        ({}, {"audience": "team"}, "place"),
    ],
)
def test_wrong_section_is_refused_without_showing_secrets(staging, settings, section, said):
    """The error names section and key, and repeats no value."""
    staging.settings = settings
    with pytest.raises(ConfigError) as error:
        options_of(staging.context(**section))
    assert said in str(error.value)
    assert "adapters.migrations" in str(error.value)
    assert "hunter2" not in str(error.value)
