"""The composition root: what `Engine.open` makes of a file, and what it refuses."""

import json
import os
import stat
import subprocess
import sys

import pytest

from amends import Engine
from amends.backends.cedar import bundle
from amends.core.errors import CallerError, ConfigError, Conflict
from amends.testing.projects import make_project

SITE_POLICY = """
@id("site:no-tuesdays") @reason("a site's own rule")
forbid (principal is Amends::Agent, action in Amends::Action::"phase.forward", resource)
when {{ resource.environment == "{environment}" }};
"""


@pytest.fixture
def project(tmp_path, distributions):
    """The path of a project's settings."""
    return make_project(tmp_path / "project")


def with_bundle(project, *, label="1.0.0", environment="nowhere"):
    folder = project.parent / "policies"
    folder.mkdir(exist_ok=True)
    (folder / "bundle.toml").write_text(f'label = "{label}"\n', encoding="utf-8")
    (folder / "site.cedar").write_text(SITE_POLICY.format(environment=environment), encoding="utf-8")
    if "[policies]" not in project.read_text(encoding="utf-8"):
        with project.open("a", encoding="utf-8") as file:
            file.write('\n[policies]\nbundle = "policies"\n')


def test_a_run_goes_through_all_of_it(project):
    """Settings, plugin, policy, journal and ledger work together: a call, its end, its rows in SQL."""
    with Engine.open(project) as engine:
        with engine.run(workflow="order", run_key="1", agent="coder") as run:
            result = run.call("shop.reserve", {"name": "lamp"})
        assert result.ok
        assert run.outcome.status == "committed"
        table = engine.sql("SELECT capability, status FROM actions")
        assert table.rows == (("shop.reserve", "succeeded"),)
    assert len(list((project.parent / "shop").iterdir())) == 1


def test_a_folder_below_the_project_finds_it(project):
    """Like git, from anywhere inside."""
    inside = project.parent / "deep" / "down"
    inside.mkdir(parents=True)
    with Engine.desk(inside) as engine:
        assert engine.settings.project.tenant == "acme"
        assert engine.settings.folder == (project.parent / ".amends").resolve()


def test_no_project_says_how_to_make_one(tmp_path):
    """The remedy is a command."""
    with pytest.raises(ConfigError, match="amends init"):
        Engine.open(tmp_path)


def test_the_digest_key_is_made_once_for_its_owner_alone(project):
    """0600, 32 bytes, and the same at the next opening."""
    with Engine.desk(project) as engine:
        first = engine.kit.digest_key
    with Engine.desk(project) as engine:
        assert engine.kit.digest_key == first
    path = project.parent / ".amends" / "digest.key"
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_digest_key_is_refused(project):
    """Another key would make every recorded digest a stranger."""
    Engine.desk(project).close()
    (project.parent / ".amends" / "digest.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match="5 bytes"):
        Engine.desk(project)


def test_a_bundle_is_recorded_with_its_sources_once(project):
    """The ledger holds the sources of every policy it was decided by, and not twice."""
    with_bundle(project)
    for _ in range(2):
        Engine.open(project).close()
    with Engine.desk(project) as engine:
        recorded = [e for e in engine.kit.journal.events("system") if e.event.kind == "bundle_recorded"]
    assert len(recorded) == 1
    sources = json.loads(recorded[0].event.payload)["sources"]
    assert sources["site/site.cedar"] == SITE_POLICY.format(environment="nowhere")
    assert "plugins/shop/shop.cedar" in sources


def test_a_label_never_means_two_things(project):
    """The same label with other policies is refused; a new label, or one that ends with -dev, is taken."""
    with_bundle(project)
    Engine.open(project).close()
    with_bundle(project, environment="elsewhere")
    with pytest.raises(ConfigError, match=r"label `1\.0\.0` is known"):
        Engine.open(project)
    with_bundle(project, label="1.1.0", environment="elsewhere")
    Engine.open(project).close()


def test_broken_policies_stop_the_engine_but_not_the_desk(project):
    """Nothing is sent under policies that do not load; people can still read and decide."""
    with_bundle(project)
    (project.parent / "policies" / "site.cedar").write_text("permit (principal", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"site\.cedar"):
        Engine.open(project)
    with Engine.desk(project) as engine:
        assert engine.approvals() == ()
        engine.pause("all", reason="policies are broken", by="maya")
        assert [row.scope for row in engine.pauses()] == ["all"]


def test_an_adapter_with_broken_policies_is_left_out_alone(project, distributions):
    """The others are there, and the problem says why this one is not."""
    source = """
    from amends.spi import PolicyContribution, hookimpl

    @hookimpl
    def amends_register_policies(context, registry):
        registry.policies(PolicyContribution({"a.cedar": "permit (principal, action, resource);"}))
    """
    distributions.add("bad", source)
    with project.open("a", encoding="utf-8") as file:
        file.write("\n[adapters.bad]\n")
    with Engine.open(project) as engine:
        assert [adapter.name for adapter in engine.plugins.adapters] == ["shop"]
        (problem,) = engine.plugins.problems
        assert (problem.name, problem.stage) == ("bad", "policies")
        assert engine.kit.catalog.get("shop.reserve")


def test_an_adapter_that_exits_on_import_is_left_out_alone(project, distributions):
    """One bad plugin never takes the engine down."""
    distributions.add("exits", "raise SystemExit('bye')")
    with project.open("a", encoding="utf-8") as file:
        file.write("\n[adapters.exits]\n")
    with Engine.open(project) as engine, engine.run(workflow="order", run_key="1", agent="coder") as run:
        assert run.call("shop.reserve", {"name": "lamp"}).ok


def test_a_site_that_names_a_missing_adapter_says_so(project, distributions):
    """The error names the policy and the adapter that has to be repaired first."""
    with_bundle(project)
    (project.parent / "policies" / "site.cedar").write_text(
        '@id("site:x") @reason("x") forbid (principal, action == Gone::Action::"gone.do", resource);', encoding="utf-8"
    )
    distributions.add("gone", "raise RuntimeError('boom')")
    with project.open("a", encoding="utf-8") as file:
        file.write("\n[adapters.gone]\n")
    with pytest.raises(ConfigError, match="boom"):
        Engine.open(project)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('[checks.all_actions_succeeded]\ncommand = ["true"]', "built-in check"),
        ('[checks.shop_open]\ncommand = ["true"]', "registered by an adapter"),
    ],
)
def test_one_name_is_one_check(project, section, said):
    """A configured check may not shadow a built-in or an adapter's."""
    with project.open("a", encoding="utf-8") as file:
        file.write(f"\n{section}\n")
    with pytest.raises(ConfigError, match=said):
        Engine.open(project)


def test_a_second_driver_of_a_live_run_is_a_conflict(project):
    """Two engines, one run: the second learns who holds it and until when; nothing is sent."""
    with Engine.open(project) as one, Engine.open(project) as two:
        run = one.run(workflow="order", run_key="1", agent="coder")
        with pytest.raises(Conflict) as refused:
            two.run(workflow="order", run_key="1", agent="coder")
        assert refused.value.data["run_id"] == run.run_id
        run.finish()


def test_a_forked_child_may_not_use_the_engine(project):
    """It would share locks and connections with its parent."""
    with Engine.open(project) as engine:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                engine.runs()
                answer = "used"
            except CallerError as error:
                answer = str(error)
            os.write(write, answer.encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert b"forked child" in os.read(read, 1000)
        assert engine.runs() == []


def test_policy_sources_digest_tells_sources_apart():
    """Moving text between two files is another bundle."""
    assert bundle.digest({"a": "x", "b": ""}) != bundle.digest({"a": "", "b": "x"})


def test_the_spi_loads_neither_duckdb_nor_cedar_nor_the_engine():
    """A plugin's import is light, and never pulls the engine in."""
    code = (
        "import sys, amends.spi\n"
        "print([m for m in ('duckdb', 'cedarpy', 'amends.bootstrap', 'amends.runtime', 'sqlite3') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_names_of_the_package_are_there_when_asked_for():
    """`from amends import …` works for every public name, and an unknown one is an `AttributeError`."""
    import amends

    assert all(getattr(amends, name) is not None for name in amends.__all__)
    with pytest.raises(AttributeError):
        amends.nothing  # noqa: B018 - the access is the point
