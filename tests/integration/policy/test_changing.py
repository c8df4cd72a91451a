"""What a change of policies changes: meaning, differences, replay, coverage, layout."""

from dataclasses import replace
from pathlib import Path

import pytest

from amends.backends.cedar.comparing import compare
from amends.backends.cedar.coverage import gaps
from amends.backends.cedar.formatting import formatted
from amends.backends.cedar.meaning import meaning_of
from amends.backends.cedar.recorded import policies_of, semantic_digest, snapshot_of
from amends.backends.cedar.replaying import question_of, replay
from amends.backends.cedar.testing import gathered, loaded, report_policy_tests
from amends.core.errors import ConfigError
from amends.spi import PolicyContribution

HOUR_US = 3_600_000_000
SITE = """// the site's own rules

@id("mine") @reason("not at night") // why
forbid (principal, action == Partner::Action::"partner.reserve", resource)
when { context.run.workflow == "night" && ["a", "b"].contains(context.input.item) };
"""
REWRITTEN = """
@id("mine")
@reason("another reason")
forbid (
  principal,
  action == Partner::Action::"partner.reserve",
  resource
)
when
{
  // said at length
  context.run.workflow == "night" &&
  ["b", "a"].contains(context.input.item)
};
"""
CALENDAR = '[[window]]\nname = "nights"\ntime_zone = "UTC"\nfrom = "22:00"\nuntil = "06:00"\n'


@pytest.fixture
def snapshot(load, site):
    """The baseline, the adapter `partner` and a site's policies."""

    def made(policies=SITE, label="1.0.0-dev", **files):
        return load(site_bundle=site(policies, label=label, **files))._snapshot

    return made


def changes(before, after):
    return [(change.change, change.policy_id) for change in compare(before, after).policies]


def test_comments_layout_order_and_reasons_are_not_the_meaning(snapshot):
    """Another digest of the sources, the same semantic digest."""
    before, after = snapshot(SITE), snapshot(REWRITTEN)
    assert before.effective_digest != after.effective_digest
    assert semantic_digest(before) == semantic_digest(after)
    found = compare(before, after)
    assert (found.same_sources, found.same_meaning, found.parts) == (False, True, ())
    assert changes(before, after) == [("reworded", "mine")]
    assert not found.policies[0].matters


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"night"', '"day"'),
        ("&&", "||"),
        ("when {", "unless {"),
        ("forbid", "permit"),
        ("principal, action", "principal is Amends::Agent, action"),
        ('@reason("not at night")', '@reason("not at night") @severity("high")'),
    ],
)
def test_whatever_a_policy_says_is_its_meaning(snapshot, old, new):
    """Condition, clause, effect, scope, and annotations that are not mere text."""
    before, after = snapshot(SITE), snapshot(SITE.replace(old, new))
    assert changes(before, after) == [("changed", "mine")]
    assert semantic_digest(before) != semantic_digest(after)


def test_policies_come_go_and_are_renamed(snapshot):
    """A policy that means the same under another id is renamed, not removed and added."""
    other = SITE.replace("mine", "other").replace("night", "day")
    assert changes(snapshot(SITE), snapshot(SITE + other)) == [("added", "other")]
    assert changes(snapshot(SITE + other), snapshot(SITE)) == [("removed", "other")]
    renamed = compare(snapshot(SITE), snapshot(SITE.replace('"mine"', '"yours"')))
    assert [(one.change, one.before_id, one.policy_id) for one in renamed.policies] == [("renamed", "mine", "yours")]
    assert not renamed.same_meaning


def test_schema_and_calendar_have_a_meaning_too(snapshot):
    """A comment in them changes nothing, another window does."""
    plain = snapshot(windows__toml=CALENDAR)
    commented = snapshot(windows__toml="# when it is dark\n" + CALENDAR)
    longer = snapshot(windows__toml=CALENDAR.replace("06:00", "07:00"))
    assert semantic_digest(plain) == semantic_digest(commented)
    assert compare(plain, longer).parts == ("windows",)
    declared = snapshot(windows__toml=CALENDAR, site__cedarschema="namespace Site { entity Thing; }")
    commented = snapshot(windows__toml=CALENDAR, site__cedarschema="// ours\nnamespace Site {entity Thing;}")
    assert compare(plain, declared).parts == ("schema",)
    assert compare(declared, commented).parts == ()


def test_label_is_no_meaning(snapshot):
    """A release of the same policies means the same."""
    assert semantic_digest(snapshot(label="1.0.0-dev")) == semantic_digest(snapshot(label="2.0.0-dev"))


def test_what_is_switched_off_is_missing(load, site):
    """A default permit that a site does not want is a difference of meaning."""
    forbid = SITE.replace(".contains(context.input.item)", ".contains(context.run.workflow)")
    before = load(site_bundle=site(forbid, label="1.0.0-dev"))._snapshot
    off = load(site_bundle=site(forbid, label="1.0.0-dev", manifest='switch_off = ["partner:notify"]'))._snapshot
    assert changes(before, off) == [("removed", "partner:notify")]


def test_recorded_bundle_means_what_it_meant(load, site):
    """From the ledger's sources alone: the same policies, the same meaning."""
    authorizer = load(site_bundle=site(SITE))
    again = snapshot_of(authorizer.bundle())
    assert meaning_of(again) == meaning_of(authorizer._snapshot)
    known = {policy.policy_id: policy for policy in policies_of(again)}
    assert (known["mine"].origin, known["mine"].file, known["mine"].line) == ("site", "site/site.cedar", 3)
    assert known["amends:tenant-isolation"].origin == "baseline"
    assert known["partner:reserve"].origin == "adapter"


def test_recorded_bundle_is_asked_again_whatever_lint_says_today(load, site):
    """Old sources that today's lint would refuse still derive their decisions."""
    bundle = load(site_bundle=site(SITE)).bundle()
    doubtful = '@id("old") @reason("r") forbid (principal, action, resource) when { context has nonsense };'
    assert snapshot_of(replace(bundle, sources={**bundle.sources, "site/old.cedar": doubtful}))


# --- replay ----------------------------------------------------------------------------------------------------


@pytest.fixture
def decisions(load, ask, contracts):
    """Decisions of every kind, under the adapter's policies alone."""
    authorizer = load()
    requests = [
        ask(),
        ask(input={"quantity": 30, "urgent": False, "item": "a", "tags": []}),
        ask(phase="undo"),
        ask(phase="undo", age_us=3 * HOUR_US),
        ask(phase="undo", evidence={"complete": False, "missing": ["reference"]}),
        ask(phase="probe", tenant="other"),
        ask(contracts["notify"], "release"),
    ]
    found = [authorizer.decide(replace(one, decision_id=f"d{n}")) for n, one in enumerate(requests)]
    assert {one.verdict for one in found} == {"allow", "deny", "needs_approval"}
    return found


def kinds(decisions, snapshot):
    return {one.decision.decision_id: one.kind for one in replay(decisions, snapshot) if one.kind != "same"}


def contributed(load, old, new):
    """The adapter's policies with one text replaced."""
    policies = load().bundle().sources["plugins/partner/default.cedar"]
    assert old in policies
    changed = PolicyContribution(policies={"default.cedar": policies.replace(old, new)})
    return load(contributions={"partner": changed})._snapshot


def test_same_policies_and_mere_comments_change_no_decision(decisions, snapshot, load):
    """Every decision comes out the same, for the same reasons."""
    assert kinds(decisions, load()._snapshot) == {}
    commented = contributed(load, "@id(", "// a comment\n@id(")
    assert kinds(decisions, commented) == {}
    assert semantic_digest(commented) == semantic_digest(load()._snapshot)


def test_loosened_candidate_is_found_out(decisions, load):
    """Deny to allow, deny to approval, approval to allow, and an approval that asks less."""
    assert kinds(decisions, contributed(load, 'duration("1h")', 'duration("9h")')) == {"d3": "loosened"}
    assert kinds(decisions, contributed(load, "tier >= 2", "tier >= 1")) == {"d3": "loosened"}
    finance = ' && context.approval.roles.contains(Amends::Role::"finance")'
    assert kinds(decisions, contributed(load, finance, "")) == {"d3": "loosened"}
    wider = ' && context.approval.roles.containsAny([Amends::Role::"finance", Amends::Role::"sales"])'
    assert kinds(decisions, contributed(load, finance, wider)) == {"d3": "loosened"}


def test_tightened_candidate_is_found_out(decisions, load, snapshot):
    """Allow to deny, allow to approval, and an approval that asks more."""
    assert kinds(decisions, contributed(load, "quantity <= 10", "quantity <= 1")) == {"d0": "tightened"}
    assert kinds(decisions, contributed(load, "tier >= 2", "tier >= 3")) == {"d3": "tightened"}
    finance = 'contains(Amends::Role::"finance")'
    both = 'containsAll([Amends::Role::"finance", Amends::Role::"sales"])'
    assert kinds(decisions, contributed(load, finance, both)) == {"d3": "tightened"}


def test_same_outcome_by_another_policy_is_told(decisions, load):
    """A renamed policy decides the same under another id."""
    assert kinds(decisions, contributed(load, "partner:undo-fresh", "partner:undo-early")) == {"d2": "same_by_others"}


def test_decision_that_cannot_be_asked_again_says_why(decisions, load, ask, contracts):
    """The action is gone, its schema has changed, or nothing was recorded."""
    gone = load(contracts=[contracts["notify"]], contributions={})._snapshot
    found = {one.decision.decision_id: one for one in replay(decisions, gone)}
    assert found["d0"].kind == "not_evaluable"
    assert "no action `partner.reserve`" in found["d0"].problem
    reserve = contracts["reserve"].model_copy(update={"input": {"quantity": "String"}})
    moved = load(contracts=[reserve, contracts["notify"]], contributions={})._snapshot
    found = {one.decision.decision_id: one for one in replay(decisions, moved)}
    assert "schema of `partner.reserve` has changed" in found["d0"].problem
    refused = load().decide(ask(input={}))
    (one,) = replay([refused], load()._snapshot)
    assert (one.kind, one.found) == ("not_evaluable", None)


def test_windows_are_the_candidates(decisions, snapshot):
    """A candidate's freeze is in force at the recorded time, though nobody knew it then."""
    freeze = '[[calendar]]\nname = "write_freeze"\ntime_zone = "UTC"\n[[calendar.range]]\n'
    freeze += "first_day = 2026-03-01\nlast_day = 2026-03-05\n"
    found = kinds(decisions, snapshot(windows__toml=freeze))
    assert found["d0"] == "tightened"
    assert "d2" not in found  # recovery goes on


def test_recorded_question_comes_back_word_for_word(decisions):
    """What a decision recorded is what is asked again."""
    for decision in decisions:
        assert dict(question_of(decision).record) == decision.context


# --- coverage and layout ---------------------------------------------------------------------------------------


def test_baseline_is_covered_whole():
    """Every baseline policy determined a decision, and every condition was seen true and false."""
    baseline = gathered((), {}, None, {})
    report = report_policy_tests(baseline, baseline)
    assert [result for result in report.results if not result.passed] == []
    assert len(report.coverage.policies) > 10
    assert gaps(report.coverage) == []
    assert report.coverage.percent == 100.0


def test_what_no_test_sees_is_named(contracts, site):
    """File, line, id and condition; a condition that was only ever true is half seen."""
    test = (
        '[{"name": "x", "given": {"fixture": "forward", "overrides": {"action": {"type": "Partner::Action", '
        '"id": "partner.reserve"}, "resource": {"type": "Partner::Reservation"}, "run": {"workflow": "night"}, '
        '"input": {"quantity": 1, "urgent": false, "item": "a", "tags": []}}}, "expect": {"outcome": "deny"}}]'
    )
    folder = site(SITE, site__policytest__json=test)
    whole = gathered(contracts.values(), {}, folder, {})
    report = report_policy_tests(whole, gathered(contracts.values(), {}, None, {}))
    assert all(result.passed for result in report.results)
    assert gaps(report.coverage) == [
        'site/site.cedar:3: `mine`, when `context.run.workflow == "night"`: never false',
        'site/site.cedar:3: `mine`, when `["a", "b"].contains(context.input.item)`: never false',
    ]
    (mine,) = [policy for policy in report.coverage.policies if policy.policy_id == "mine"]
    assert (mine.matched, mine.determined, mine.complete) == (1, 1, False)
    assert report.coverage.percent < 100


def test_layout_keeps_comments_and_meaning_and_is_reached_at_once(snapshot):
    """Formatting twice is formatting once; a comment about the file stays apart from the first policy."""
    made = formatted(SITE, "site.cedar")
    assert made.findings == ()
    assert made.text.startswith("// the site's own rules\n\n@id")
    assert "// why" in made.text
    assert formatted(made.text, "site.cedar").text == made.text
    assert semantic_digest(snapshot(made.text)) == semantic_digest(snapshot(SITE))


@pytest.mark.parametrize("text", ["forbid (principal", "permit (principal, action, resource) when { " + "(" * 99])
def test_file_that_does_not_parse_is_left_as_it_is(text):
    """It is told with file and line."""
    made = formatted(text, "x.cedar")
    assert made.text == text
    assert made.findings[0].line == 1


def test_file_without_policies_is_left_alone():
    """Nothing to lay out."""
    assert formatted("\n\n", "x.cedar").text == "\n\n"
    assert formatted("// only words\n", "x.cedar").text == "// only words\n"


def test_shipped_policies_are_in_the_layout():
    """What the project ships is what `amends policy fmt` would write."""
    root = Path(__file__).parents[3]
    files = [file for part in ("policies", "plugins/*/src", "engine") for file in root.glob(f"{part}/**/*.cedar")]
    assert len(files) > 10
    wrong = [
        file for file in files if formatted(file.read_text(encoding="utf-8"), file.name).text != file.read_text("utf-8")
    ]
    assert wrong == []


def test_loaded_says_what_does_not_load(contracts, site):
    """As a `ConfigError`, for tests and tools."""
    with pytest.raises(ConfigError, match="do not load"):
        loaded(gathered(contracts.values(), {}, site("permit (principal, action, resource);"), {}))
