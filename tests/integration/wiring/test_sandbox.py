"""The sandbox of a project: its own systems and its own storage; the project's plugins and policies."""

import json

import pytest

from amends import Engine
from amends.bootstrap import sandboxed, settings_of
from amends.core.errors import ConfigError, UnknownName
from amends.testing.projects import make_project

SANDBOX = """
[adapters.shop.sandbox]
folder = "playground"
"""


@pytest.fixture
def project(tmp_path, distributions):
    """The path of a project's settings."""
    return make_project(tmp_path / "project", extra=SANDBOX)


def reserve(engine, key="1"):
    with engine.run(workflow="order", run_key=key, agent="coder") as run:
        run.call("shop.reserve", {"name": "lamp"})
    return run.run_id


def items(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_call_on_the_sandbox_reaches_the_sandbox_alone(project):
    """Its effects are there, its run is in the sandbox's own ledger, and the project's knows nothing of it."""
    with Engine.sandbox(project) as engine:
        run_id = reserve(engine)
        assert engine.kit.catalog.get("shop.reserve").context.environment == "sandbox"
        assert engine.settings.folder == project.parent / ".amends" / "sandbox"
    assert len(items(project.parent / "playground")) == 1
    assert items(project.parent / "shop") == []
    with Engine.desk(project) as production:
        assert production.runs() == []
    with Engine.desk(project, sandbox=True) as desk:
        assert desk.state(run_id).run.run_id == run_id


def test_both_are_open_beside_each_other_and_share_no_slot_and_no_key(project):
    """The same workflow and run key on both sides are two runs, and the digests of one say nothing in the other."""
    with Engine.open(project) as production, Engine.sandbox(project) as sandbox:
        assert reserve(production) != reserve(sandbox)
        assert production.kit.digest_key != sandbox.kit.digest_key
    assert len(items(project.parent / "shop")) == len(items(project.parent / "playground")) == 1


def test_options_that_the_table_does_not_name_are_those_of_the_section(project):
    """A table holds what is different, and replaces it whole."""
    there = sandboxed(settings_of(project)).adapters["shop"]
    assert there.options == {"folder": "playground", "refuse": ["nothing-left"]}
    assert (there.instance, there.environment) == ("", "sandbox")


def test_an_empty_table_says_that_the_section_names_a_sandbox(tmp_path, distributions):
    """Everything is the section's, but its environment and its storage."""
    project = make_project(tmp_path / "project", extra='\n[adapters.shop.sandbox]\nenvironment = "playground"\n')
    with Engine.sandbox(project) as engine:
        reserve(engine)
        assert engine.kit.catalog.get("shop.reserve").context.environment == "playground"
    assert len(items(project.parent / "shop")) == 1


def test_without_any_sandbox_there_is_no_such_engine(tmp_path, distributions):
    """The remedy names the table; nothing was made."""
    project = make_project(tmp_path / "project")
    with pytest.raises(ConfigError) as refused:
        Engine.sandbox(project)
    assert "[adapters.NAME.sandbox]" in refused.value.hint
    assert not (project.parent / ".amends").exists()


def test_an_adapter_without_a_sandbox_is_known_to_policies_and_not_there(tmp_path, distributions):
    """A bundle that speaks of it loads as it does in production; its calls are refused with the remedy."""
    other = '\n[adapters.depot]\nplugin = "shop"\nfolder = "depot"\n\n[policies]\nbundle = "policies"\n'
    project = make_project(tmp_path / "project", extra=SANDBOX + other)
    folder = project.parent / "policies"
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
    (folder / "site.cedar").write_text(
        '@id("site:depot") @reason("nobody reserves in the depot")\n'
        'forbid (principal, action == Depot::Action::"depot.reserve", resource);\n',
        encoding="utf-8",
    )
    with Engine.sandbox(project) as engine:
        assert [adapter.name for adapter in engine.plugins.adapters] == ["shop"]
        with pytest.raises(UnknownName) as refused:
            engine.kit.catalog.get("depot.reserve")
        assert "[adapters.NAME.sandbox]" in refused.value.hint
        reserve(engine)
    with Engine.open(project) as production:
        assert {adapter.name for adapter in production.plugins.adapters} == {"depot", "shop"}


def test_nobody_is_paged_for_a_sandbox(tmp_path, distributions):
    """The people on call are those of production."""
    notifier = '\n[notifiers.pager]\nkind = "command"\ncommand = ["false"]\n'
    project = make_project(tmp_path / "project", extra=SANDBOX + notifier)
    with Engine.sandbox(project) as engine:
        assert engine.kit.notifiers == ()


def test_the_storage_is_for_the_engines_account_alone_from_the_start(project):
    """Also where the sandbox is the first to make it."""
    Engine.sandbox(project).close()
    folder = project.parent / ".amends"
    assert [path.stat().st_mode & 0o077 for path in (folder, folder / "sandbox")] == [0, 0]


def test_the_bundle_that_decides_is_the_projects(project):
    """The same version and digest on both sides."""
    with Engine.open(project) as production, Engine.sandbox(project) as sandbox:
        told = [
            json.loads(stored.event.payload)["effective_digest"]
            for engine in (production, sandbox)
            for stored in engine.kit.journal.events("system")
            if stored.event.kind == "bundle_activated"
        ]
    assert len(told) == 2
    assert len(set(told)) == 1
