"""Adapters come in whole or not at all, and none of them takes another one, or the engine, down."""

import importlib.metadata

import pytest

from amends.backends import plugin_host
from amends.backends.plugin_host import ranges
from amends.config import AdapterSettings, ProjectSettings
from amends.testing.fakes import StaticSecrets

WHOLE = """
@hookimpl
def amends_register_capabilities(context, registry):
    registry.capability(shop(tiny.reserve(context.name)))
"""


def only_problem(loaded):
    assert len(loaded.problems) == 1, loaded.problems
    return loaded.problems[0]


def test_a_whole_adapter_is_adopted_with_its_context(site, load, tmp_path):
    """What the section leaves out comes from the project; other keys are the plugin's options."""
    site.distribution("alpha", WHOLE)
    loaded = load(alpha={"instance": "eu-1", "color": "red"})
    assert loaded.problems == ()
    (offer,) = loaded.offers
    assert offer.contract.capability == "alpha.reserve"
    assert (offer.context.instance, offer.context.tenant, offer.context.environment) == ("eu-1", "acme", "staging")
    assert offer.context.options == {"color": "red"}
    assert offer.context.base_path == str(tmp_path)
    assert loaded.owned_prefixes == {"alpha": frozenset({"alpha"})}


def test_one_plugin_serves_several_sections(site, load):
    """`plugin` names the entry point, so a plugin can be configured twice under two names."""
    site.distribution("partner", WHOLE)
    loaded = load(east={"plugin": "partner"}, west={"plugin": "partner"})
    assert [adapter.name for adapter in loaded.adapters] == ["east", "west"]
    assert {offer.contract.capability for offer in loaded.offers} == {"east.reserve", "west.reserve"}


def test_what_is_not_configured_is_not_even_imported(site, load):
    """An installed plugin without a section does nothing, however broken it is."""
    site.distribution("alpha", WHOLE)
    site.distribution("broken", "raise RuntimeError('boom')")
    loaded = load("alpha")
    assert [adapter.name for adapter in loaded.adapters] == ["alpha"]
    assert loaded.problems == ()


@pytest.mark.parametrize(
    ("source", "stage", "said"),
    [
        ("raise RuntimeError('boom')", "import", "RuntimeError: boom"),
        ("raise SystemExit(3)", "import", "exited with `3`"),
        ("import a_module_that_is_not_there", "import", "a_module_that_is_not_there"),
        (
            "@hookimpl\ndef amends_register_capabilitys(context, registry): ...",
            "hooks",
            "amends_register_capabilitys",
        ),
        ("@hookimpl\ndef amends_register_checks(context, register): ...", "hooks", "register"),
        ("def amends_register_checks(context, registry): ...", "hooks", "lacks `@hookimpl`"),
        ("VALUE = 1", "hooks", "implements no hook"),
        ("@hookimpl\ndef amends_register_checks(context, registry): raise KeyError('x')", "register", "KeyError"),
        ("@hookimpl\ndef amends_register_checks(context, registry): raise SystemExit", "register", "exited"),
        ("@hookimpl\ndef amends_register_checks(context, registry): registry.check('no')", "register", "not a `Check`"),
        (
            "@hookimpl\ndef amends_register_notifiers(context, registry): registry.notifier(object())",
            "register",
            "not a `Notifier`",
        ),
        (
            "@hookimpl\ndef amends_register_capabilities(context, registry): registry.capability(3)",
            "register",
            "not a `Capability`",
        ),
        (
            (
                "@hookimpl\ndef amends_register_policies(context, registry):\n"
                "    registry.policies(PolicyContribution({'../x.cedar': ''}))"
            ),
            "register",
            "leaves the adapter's own folder",
        ),
        (
            (
                "@hookimpl\ndef amends_register_capabilities(context, registry):\n"
                "    for _ in range(2): registry.capability(shop(tiny.reserve('bad')))"
            ),
            "register",
            "registered twice",
        ),
        (
            (
                "@hookimpl\ndef amends_register_capabilities(context, registry):\n"
                "    registry.capability(shop(tiny.reserve('bad').model_copy(update={'compensation': ()})))"
            ),
            "contracts",
            "no undo",
        ),
        ("SPI = '>=2,<3'" + WHOLE, "version", ">=2,<3"),
        ("SPI = 'two'" + WHOLE, "version", "no version clause"),
    ],
)
def test_a_bad_plugin_is_a_problem_with_a_remedy_and_the_others_go_on(site, load, source, stage, said):
    """Whatever one plugin does, the others are adopted and the problem says stage, words, distribution and remedy."""
    site.distribution("bad", source)
    site.distribution("zeta", WHOLE)
    loaded = load("bad", "zeta")
    assert [adapter.name for adapter in loaded.adapters] == ["zeta"]
    problem = only_problem(loaded)
    assert (problem.name, problem.stage, problem.distribution) == ("bad", stage, "bad 1.0")
    assert said in problem.message
    assert problem.remedy


def test_an_adapter_that_fails_half_way_leaves_nothing_behind(site, load):
    """A capability registered before the failing hook is not offered."""
    site.distribution(
        "half",
        WHOLE + "\n@hookimpl\ndef amends_register_doctor(context, registry): raise OSError('disk')\n",
    )
    loaded = load("half")
    assert loaded.offers == ()
    assert only_problem(loaded).stage == "register"


def test_two_distributions_of_one_name_are_both_refused_by_name(site, load):
    """Nobody can tell which one was meant, so neither is used."""
    site.distribution("first", WHOLE, plugin="shared")
    site.distribution("second", WHOLE, plugin="shared")
    problem = only_problem(load("shared"))
    assert problem.stage == "find"
    assert "first 1.0" in problem.message
    assert "second 1.0" in problem.message


def test_a_plugin_that_is_not_installed_is_named_with_those_that_are(site, load):
    """The remedy says what to install."""
    site.distribution("alpha", WHOLE)
    problem = only_problem(load("missing"))
    assert "`missing`" in problem.message
    assert "`alpha`" in problem.message
    assert "pip install amends-missing" in problem.remedy


def test_a_taken_capability_belongs_to_the_first_in_name_order(site, load):
    """Adoption goes in name order, so the outcome never depends on how things were installed."""
    same = WHOLE.replace("context.name", '"x"')
    site.distribution("one", same)
    site.distribution("two", same)
    loaded = load("two", "one")
    assert [adapter.name for adapter in loaded.adapters] == ["one"]
    problem = only_problem(loaded)
    assert (problem.name, problem.stage) == ("two", "adopt")
    assert "`x.reserve`" in problem.message
    assert "`one`" in problem.message


def test_what_a_plugin_prints_is_not_data(site, load, capsys):
    """Standard output belongs to commands, even while plugins are imported and called."""
    site.distribution("loud", "print('hello from import')" + WHOLE)
    assert load("loud").problems == ()
    told = capsys.readouterr()
    assert told.out == ""
    assert "hello from import" in told.err


def test_a_secret_in_a_plugins_words_is_masked(site, load):
    """A problem is shown to people, so it holds no secret that was resolved."""
    site.distribution(
        "leaky",
        "@hookimpl\ndef amends_register_checks(context, registry):\n"
        "    raise RuntimeError('cannot log in with ' + context.secret('env:TOKEN'))",
    )
    problem = only_problem(load("leaky", secrets=StaticSecrets({"env:TOKEN": "s3cr3t-value"})))
    assert "s3cr3t-value" not in problem.message


def test_an_examination_that_exits_is_a_finding(site, load):
    """`amends doctor` hears from every adapter, or why not."""
    site.distribution(
        "sick",
        "@hookimpl\ndef amends_register_doctor(context, registry):\n"
        "    registry.doctor(lambda: [DoctorFinding('ok', 'sick', 'fine')])\n"
        "    def leave(): raise SystemExit(1)\n"
        "    registry.doctor(leave)",
    )
    fine, left = load("sick").examinations
    assert [finding.message for finding in plugin_host.examine(fine)] == ["fine"]
    (finding,) = plugin_host.examine(left)
    assert finding.level == "problem"
    assert "exited" in finding.message


def test_policies_live_under_the_prefix_of_the_capabilities(site, load):
    """A plugin whose capabilities bear its own name keeps it for its policies, whatever the section is called."""
    fixed = """
@hookimpl
def amends_register_capabilities(context, registry):
    registry.capability(shop(tiny.reserve("alpha")))
@hookimpl
def amends_register_policies(context, registry):
    registry.policies(PolicyContribution({"a.cedar": "text"}))
"""
    site.distribution("alpha", fixed)
    loaded = load(renamed={"plugin": "alpha"})
    assert list(loaded.contributions) == ["alpha"]


def test_the_six_adapters_of_the_project_are_found_here():
    """The workspace's own plugins are installed, one distribution each."""
    found = plugin_host.installed()
    for name in ("flags", "git", "http", "jira", "migrations", "slack"):
        assert [one.distribution for one in found[name]] == [f"amends-{name}"]


def test_entry_points_are_listed_without_importing(site):
    """`amends plugins list` is safe whatever is installed."""
    site.distribution("broken", "raise RuntimeError('boom')")
    assert [one.version for one in plugin_host.installed()["broken"]] == ["1.0"]


def test_an_entry_point_of_no_distribution_still_has_words(tmp_path):
    """A hand-made entry point that cannot be loaded is a problem like any other."""
    point = importlib.metadata.EntryPoint("odd", "no_such_module_anywhere", "amends")
    loaded = plugin_host.load(
        {"odd": AdapterSettings()},
        project=ProjectSettings(tenant="acme", environment="test"),
        base=tmp_path,
        secrets=StaticSecrets({}),
        plugins={"odd": [plugin_host.Installed("odd", "an unnamed distribution", "", point)]},
    )
    assert only_problem(loaded).stage == "import"


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (">=1.0,<2", True),
        ("", True),
        ("==1", True),
        (">1.0", False),
        ("<=1.0.0", True),
        ("!=1.0", False),
        ("<1", False),
    ],
)
def test_ranges_compare_versions_number_by_number(wanted, fits):
    """`1` and `1.0` are the same version."""
    assert ranges.supports(wanted, "1.0") is fits
