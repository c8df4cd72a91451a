"""Bundles: versions, what a site and a plugin may do, and what is refused with file, line and id."""

import pytest

from amends.backends.cedar.testing import check_policies, run_policy_tests
from amends.core.contract import Alternative
from amends.core.errors import ConfigError
from amends.spi import PolicyContribution

FREEZE = '@id("freeze") @reason("frozen") forbid (principal, action in Amends::Action::"phase.forward", resource);\n'


def test_version_is_the_sites_label_and_digest(load, site):
    """The version names the site bundle; line ends, tests and read-mes do not change it, rules do."""
    folder = site(FREEZE)
    first = load(site_bundle=folder).bundle().version
    assert first.startswith("1.0.0@sha256:")
    (folder / "site.cedar").write_bytes(FREEZE.replace("\n", "\r\n").encode())
    (folder / "README.md").write_text("about", encoding="utf-8")
    assert load(site_bundle=folder).bundle().version == first
    site(FREEZE.replace("frozen", "stopped"))
    assert load(site_bundle=folder).bundle().version != first


def test_effective_digest_sees_defaults_and_contracts_too(load, site):
    """Same site bundle, other adapter defaults: same version, other effective digest."""
    folder = site(FREEZE)
    with_defaults = load(site_bundle=folder).bundle()
    without = load(site_bundle=folder, contributions={}).bundle()
    assert with_defaults.version == without.version
    assert with_defaults.effective_digest != without.effective_digest
    assert {"site/site.cedar", "plugins/partner/default.cedar", "generated/Partner.cedarschema"} <= set(
        with_defaults.sources
    )


def test_the_same_sources_are_compiled_once_in_a_process(load, site):
    """Another engine over what was loaded before gets the same snapshot; one changed rule makes another."""
    folder = site(FREEZE)
    first = load(site_bundle=folder).active.snapshot
    assert load(site_bundle=folder).active.snapshot is first
    site(FREEZE.replace("frozen", "stopped"))
    assert load(site_bundle=folder).active.snapshot is not first


def test_known_label_with_other_sources_is_refused(load, site):
    """A label means one thing for ever, except while it ends with `-dev`."""
    folder = site(FREEZE)
    version = load(site_bundle=folder).bundle().version
    known = {"1.0.0": version, "1.0.0-dev": "sha256:other"}
    assert load(site_bundle=folder, known_labels=known).bundle().version == version
    assert load(site_bundle=folder, known_labels={"1.0.0": version.split("@")[1]}).bundle().version == version
    site(FREEZE.replace("frozen", "stopped"))
    with pytest.raises(ConfigError, match="known with other sources"):
        load(site_bundle=folder, known_labels=known)
    site(FREEZE.replace("frozen", "stopped"), label="1.0.0-dev")
    assert load(site_bundle=folder, known_labels=known).bundle().version.startswith("1.0.0-dev@")


def test_site_switches_off_a_default_but_never_the_baseline(load, site, ask):
    """`switch_off` takes permits of adapters only."""
    folder = site(FREEZE.replace("phase.forward", "phase.correct"), manifest='switch_off = ["partner:reserve"]')
    assert load(site_bundle=folder).decide(ask()).verdict == "needs_approval"
    site(FREEZE, manifest='switch_off = ["amends:tenant-isolation"]')
    with pytest.raises(ConfigError, match="no default permit"):
        load(site_bundle=folder)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ('permit (principal, action == Partner::Action::"partner.reserve", resource);', "no `@id`"),
        ('@id("a") permit (principal, action == Partner::Action::"partner.reserve", resource);', "no `@reason`"),
        ('@id("A b") @reason("x") forbid (principal, action, resource);', "must match"),
        ('@id("amends:mine") @reason("x") forbid (principal, action, resource);', "belong to baseline/"),
        ('@id("partner:mine") @reason("x") forbid (principal, action, resource);', "belong to plugins/partner/"),
        ('@id("a") @reason("x") permit (principal, action, resource);', "over all actions"),
        (
            '@id("a") @reason("x") forbid (principal, action == Amends::Action::"phase.undo", resource);',
            "matches nothing",
        ),
        (
            (
                '@id("a") @reason("x") permit (principal, action in Amends::Action::"phase.undo", resource) '
                'when { context has approval && context.approval.approvers.contains(Amends::Human::"maya") };'
            ),
            "names persons: `maya`",
        ),
        ('@id("a") @reason("x") forbid (principal == ?principal, action, resource);', "templates"),
        ('@id("a") @reason("x") forbid (principal, action, resource) when { context.nope };', "`nope`"),
        ('@id("a") @reason("x") forbid (principal, action, resource) when { context.approval.tier > 1 };', "approval"),
        (
            (
                '@id("a") @reason("x") forbid (principal, action in Amends::Action::"phase.undo", resource) '
                'when { context.forward.status == Amends::Outcome::"CONFIRMD" };'
            ),
            "CONFIRMD",
        ),
        ('@id("a") @reason("x") forbid (principal, action, resource) when { foo bar };', "bar"),
        (
            '@id("a") @reason("x") forbid (principal, action, resource) when { ' + "(" * 61 + "true" + ")" * 61 + "};",
            "deep",
        ),
        (
            '@id("a") @reason("x") forbid (principal, action, resource) when { ' + "true && " * 501 + "true };",
            "operators",
        ),
    ],
)
def test_refused_policy_is_named_by_file_and_line(load, site, policy, words):
    """Each refusal names file and line; nothing is half-loaded."""
    folder = site("// a comment\n\n" + FREEZE + policy)
    with pytest.raises(ConfigError) as caught:
        load(site_bundle=folder)
    assert words in caught.value.message
    assert "site/site.cedar:4:" in caught.value.message
    assert caught.value.hint


def test_duplicate_id_names_the_first_place(load, site):
    """Ids are unique over the whole bundle."""
    with pytest.raises(ConfigError, match=r"site/site.cedar:2: policy `freeze`: `@id` is taken by site/site.cedar:1"):
        load(site_bundle=site(FREEZE + FREEZE))


def test_site_schema_has_names_of_its_own(load, site, ask):
    """Common types, enumerations and entities in a namespace of the site's, for its policies to use."""
    schema = """namespace Orders {
      type Limit = { amount: Long, currency: String };
      entity Desk enum ["north", "south"];
      entity Order in [Amends::Tenant] = { desk: Desk, limit?: Limit };
    }"""
    rule = """@id("site:desks") @reason("agents act in the north only") forbid (principal is Amends::Agent,
    action in Amends::Action::"phase.forward", resource is Partner::Reservation)
    when { Orders::Desk::"north" == Orders::Desk::"south" };"""
    (folder := site(rule)).joinpath("schema").mkdir()
    (folder / "schema" / "orders.cedarschema").write_text(schema, encoding="utf-8")
    authorizer = load(site_bundle=folder)
    assert authorizer.decide(ask()).allowed
    assert authorizer.bundle().sources["site/schema/orders.cedarschema"] == schema
    (folder / "site.cedar").write_text(rule.replace('"south"', '"suoth"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"site/site.cedar:1: policy `site:desks`"):
        load(site_bundle=folder)


def test_site_schema_may_not_touch_namespaces_of_others(load, site):
    """A second declaration of an adapter's namespace is refused, and so is an action in two phases or in none."""
    folder = site(FREEZE)
    (folder / "schema").mkdir()
    extra = folder / "schema" / "site.cedarschema"
    extra.write_text("namespace Partner { entity Reservation; }", encoding="utf-8")
    with pytest.raises(ConfigError, match="Partner"):
        load(site_bundle=folder)
    for groups in (' in [Amends::Action::"phase.forward", Amends::Action::"phase.undo"]', ""):
        extra.write_text(f'namespace Site {{ action "x"{groups}; }}', encoding="utf-8")
        with pytest.raises(ConfigError, match="phase groups"):
            load(site_bundle=folder)


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda folder: (folder / "bundle.toml").unlink(), "has no `bundle.toml`"),
        (lambda folder: (folder / "site.cedar").unlink(), "has no policy"),
        (lambda folder: (folder / "bundle.toml").write_text("label = 1", "utf-8"), "key `label`"),
        (lambda folder: (folder / "bundle.toml").write_text("label", "utf-8"), "is not TOML"),
        (lambda folder: (folder / "site.cedar").write_bytes(b"\xff\xfe"), "not UTF-8"),
        (lambda folder: (folder / "site.cedar").write_text("// " + "x" * 300_000, "utf-8"), "more than 262144"),
        (lambda folder: (folder / "loop.cedar").symlink_to(folder / "loop.cedar"), "cannot be read"),
        (lambda folder: (folder / "windows.toml").write_text('[[window]]\nname = "x"', "utf-8"), "time_zone"),
    ],
)
def test_broken_bundle_says_what_is_wrong(load, site, break_it, words):
    """A broken folder is a `ConfigError` that names file and key."""
    folder = site(FREEZE)
    break_it(folder)
    with pytest.raises(ConfigError, match=words):
        load(site_bundle=folder)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            '@id("partner:x") @reason("x") permit (principal, action == Git::Action::"git.push", resource);',
            "of its own",
        ),
        (
            '@id("partner:x") @reason("x") permit (principal, action in Amends::Action::"phase.undo", resource);',
            "of its own",
        ),
        ('@id("partner:x") @reason("x") forbid (principal, action, resource);', "of its own"),
        (
            (
                '@id("partner:x") @reason("x") permit (principal, '
                'action in [Partner::Action::"partner.reserve", Amends::Action::"phase.probe"], resource);'
            ),
            "of its own",
        ),
        (
            '@id("other:x") @reason("x") permit (principal, action == Partner::Action::"partner.reserve", resource);',
            "prefix",
        ),
        (
            '@id("amends:x") @reason("x") permit (principal, action == Partner::Action::"partner.reserve", resource);',
            "prefix",
        ),
    ],
)
def test_plugin_stays_in_its_own_namespace(load, policy, words):
    """A contribution names actions of its own adapter, under ids of its own, and nothing else."""
    with pytest.raises(ConfigError, match=words):
        load(contributions={"partner": PolicyContribution(policies={"a.cedar": policy})})


def test_adapter_owns_the_prefixes_it_registered(load, ask):
    """An adapter whose capabilities bear other prefixes, such as declared HTTP partners, is told which are its own."""
    policy = (
        '@id("http:reserve") @reason("x") permit (principal is Amends::Agent, '
        'action == Partner::Action::"partner.reserve", resource);'
    )
    contribution = {"http": PolicyContribution(policies={"a.cedar": policy})}
    with pytest.raises(ConfigError, match="of its own"):
        load(contributions=contribution)
    authorizer = load(contributions=contribution, owned_prefixes={"http": ("partner",)})
    assert authorizer.decide(ask()).policy_ids == ("http:reserve",)


def test_plugin_cannot_weaken_the_baseline(load, ask):
    """A plugin's widest permit leaves every baseline forbid in force."""
    policy = (
        '@id("partner:all") @reason("x") '
        'permit (principal, action == Partner::Action::"partner.reserve.undo", resource);'
    )
    authorizer = load(contributions={"partner": PolicyContribution(policies={"a.cedar": policy})})
    assert authorizer.decide(ask(phase="undo")).verdict == "allow"
    assert authorizer.decide(ask(phase="undo", evidence={"complete": False})).verdict == "deny"


def test_windows_reach_policies(load, site, ask):
    """A named window of the site is computed in its own time zone and decides."""
    permit = (
        '@id("hours") @reason("x") forbid (principal, action in Amends::Action::"phase.forward", resource) '
        'unless { context.time.windows.contains("office") };'
    )
    window = '[[window]]\nname = "office"\ntime_zone = "America/New_York"\nfrom = "09:00"\nuntil = "17:00"\n'
    authorizer = load(site_bundle=site(permit, windows__toml=window))
    morning = ask()  # 10:00 in UTC is 05:00 in New York
    assert authorizer.decide(morning).policy_ids == ("hours",)
    afternoon = ask(now_us=morning.now_us + 5 * 3_600_000_000)
    decision = authorizer.decide(afternoon)
    assert (decision.verdict, "office" in decision.context["time"]["windows"]) == ("allow", True)


def test_changed_policy_version_is_a_fact(load, site, ask):
    """A policy can ask whether the bundle has changed since the effect was made."""
    forbid = """@id("changed") @reason("policies changed since the call: a person looks first")
    forbid (principal, action in Amends::Action::"phase.undo", resource)
    when { context.run.policy_changed } unless { context has approval && context.approval.tier >= 1 };"""
    authorizer = load(site_bundle=site(forbid))
    request = ask(phase="undo")
    version = authorizer.bundle().version
    same = {**request.run, "forward_policy_version": version}
    other = {**request.run, "forward_policy_version": "0.9.0@sha256:00"}
    assert authorizer.decide(ask(phase="undo", run=same)).verdict == "allow"
    asked = authorizer.decide(ask(phase="undo", run=other))
    assert (asked.verdict, asked.tier) == ("needs_approval", 1)
    assert asked.context["run"]["forward_policy_version"] != asked.context["run"]["policy_version"]


def test_shared_authority_takes_the_fields_both_contracts_have(load, contracts, ask):
    """Two contracts may share an undo authority: fields that only one declares become optional in it."""
    review = Alternative(name="review", authority="partner.finance_review")
    second = contracts["reserve"].model_copy(
        update={"capability": "partner.adjust", "compensation": (review,), "input": {"quantity": "Long"}}
    )
    authorizer = load(contracts=(*contracts.values(), second))
    request = ask(second, "undo", action="partner.finance_review", input={"quantity": 1})
    assert authorizer.decide(request).verdict == "needs_approval"
    clash = second.model_copy(update={"input": {"quantity": "String"}})
    with pytest.raises(ConfigError, match="input `quantity`"):
        load(contracts=(*contracts.values(), clash))


def test_check_returns_what_load_would_raise(site):
    """`check_policies` is `load` as findings, for the command line."""
    clean = check_policies(contracts=(), contributions={}, site_bundle=site(FREEZE), known_labels={})
    assert clean == []
    broken = check_policies(
        contracts=(), contributions={}, site_bundle=site(FREEZE + "permit (principal, action"), known_labels={}
    )
    assert [(f.code, f.file, f.line) for f in broken] == [("syntax", "site/site.cedar", 2)]
    relabelled = check_policies(
        contracts=(), contributions={}, site_bundle=site(FREEZE), known_labels={"1.0.0": "sha256:0"}
    )
    assert [f.code for f in relabelled] == ["config_error"]


def test_failed_and_unreadable_tests_are_results(site):
    """A wrong expectation, a misspelt key and broken JSON are failed results with words; the rest still runs."""
    folder = site(FREEZE)
    (folder / "tests").mkdir()
    one = '[{"name": "one", "given": {"fixture": "forward"}, "expect": {"outcome": "allow"}}]'
    (folder / "tests" / "a.policytest.json").write_text(one, encoding="utf-8")
    (folder / "tests" / "b.policytest.json").write_text(one.replace('"given"', '"givn"'), encoding="utf-8")
    (folder / "tests" / "c.policytest.json").write_text("{", encoding="utf-8")
    (folder / "tests" / "d.policytest.json").write_text(one.replace('"allow"', '"deny"'), encoding="utf-8")
    stock = """[{"request": {"principal": "Amends::Agent::\\"a\\"", "action": "Amends::Action::\\"selftest.forward\\"",
      "resource": "Amends::Run::\\"r\\"", "context": {}}, "entities": [], "decision": "deny", "num_errors": 0}]"""
    (folder / "tests" / "e.policytest.json").write_text(stock, encoding="utf-8")
    results = run_policy_tests(contracts=(), contributions={}, site_bundle=folder, known_labels={})
    problems = {result.file: result.problem for result in results if result.file.startswith("site/")}
    assert problems["site/tests/a.policytest.json"] == "outcome is `deny`, not `allow`"
    assert "givn" in problems["site/tests/b.policytest.json"]
    assert "not JSON" in problems["site/tests/c.policytest.json"]
    assert problems["site/tests/d.policytest.json"] == ""
    assert problems["site/tests/e.policytest.json"] == ""
