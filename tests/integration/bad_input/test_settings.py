"""Projects that cannot be used: the error names file, key and remedy, or the rest goes on."""

import pytest

from amends import Engine
from amends.core.errors import ConfigError
from amends.testing.distributions import MadeDistributions


def add(project, text):
    with (project / "amends.toml").open("a", encoding="utf-8") as file:
        file.write(text)


def test_an_unknown_key_is_named_with_the_one_that_was_meant(project, sent):
    """File, key and remedy in one sentence; no engine, no journal."""
    add(project, "\n[policies]\nbundel = 'x'\n")
    with pytest.raises(ConfigError) as refused:
        Engine.open(project)
    assert "amends.toml" in refused.value.message
    assert "`policies.bundel`" in refused.value.message
    assert "did you mean `bundle`?" in refused.value.message
    assert not (project / ".amends").exists()
    assert sent() == []


def test_an_unknown_key_of_an_adapter_leaves_that_adapter_out(project):
    """The adapter's own options are checked by it; the problem names section and key."""
    text = (project / "amends.toml").read_text(encoding="utf-8")
    (project / "amends.toml").write_text(text.replace("account =", "acount ="), encoding="utf-8")
    with Engine.open(project) as engine:
        (problem,) = engine.plugins.problems
        assert problem.name == "partner"
        assert "acount" in problem.message
        assert problem.remedy


def test_a_contract_that_is_refused_leaves_its_adapter_out(project):
    """A consequential operation without an undo is no tool: the file is named, nothing of the adapter is offered."""
    path = project / "contracts" / "reserve_inventory.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[[compensation]]")], encoding="utf-8")
    with Engine.open(project) as engine:
        (problem,) = engine.plugins.problems
        assert "reserve_inventory" in problem.message
        assert "undo" in problem.message
        assert "partner" not in {adapter.name for adapter in engine.plugins.adapters}


def test_a_broken_policy_sends_nothing(project, sent):
    """The engine does not open on a policy that does not load; the message names file and line."""
    (project / "policies").mkdir()
    (project / "policies" / "bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
    (project / "policies" / "site.cedar").write_text("permit (principal", encoding="utf-8")
    add(project, '\n[policies]\nbundle = "policies"\n')
    with pytest.raises(ConfigError, match=r"site\.cedar"):
        Engine.open(project)
    assert sent() == []


@pytest.mark.parametrize("source", ["raise SystemExit('bye')", "raise RuntimeError('boom')", "import no_such_module"])
def test_a_plugin_that_fails_on_import_harms_no_other(project, tmp_path, monkeypatch, source, reserve):
    """It is left out with a problem; a run over the other adapters works."""
    made = MadeDistributions(tmp_path / "site")
    made.add("bad", source)
    monkeypatch.syspath_prepend(str(made.folder))
    add(project, "\n[adapters.bad]\n")
    with Engine.open(project) as engine:
        assert [problem.name for problem in engine.plugins.problems] == ["bad"]
        with engine.run(workflow="orders", run_key="1", agent="bot") as run:
            assert reserve(run).ok
    made.forget()


def test_two_plugins_of_one_name_are_both_refused(project, tmp_path, monkeypatch):
    """Nobody can tell which was meant: the problem names both distributions, and neither is loaded."""
    made = MadeDistributions(tmp_path / "site")
    for name in ("first", "second"):
        made.add(name, "raise RuntimeError('never imported')", entry_point="twin")
    monkeypatch.syspath_prepend(str(made.folder))
    add(project, "\n[adapters.twin]\n")
    with Engine.open(project) as engine:
        (problem,) = engine.plugins.problems
        assert "first 1.0" in problem.message
        assert "second 1.0" in problem.message
        assert {adapter.name for adapter in engine.plugins.adapters} == {"partner", "slack"}
