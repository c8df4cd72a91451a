"""The policy author's commands in a project: what they print, and exit codes that a CI can gate on."""

import json
import shutil
from xml.etree import ElementTree as ET

import pytest

from amends import Engine, _resources
from amends.surfaces.cli import app

SITE = """// the site's own rules

@id("keep") @reason("what this workflow makes stays")
forbid (principal, action == Shop::Action::"shop.reserve.undo", resource)
when { context.run.workflow == "keep" };
"""
TEST = """[
  {"name": "kept", "given": {"fixture": "undo", "overrides": {"action": {"type": "Shop::Action",
   "id": "shop.reserve.undo"}, "resource": {"type": "Shop::Reservation"}, "run": {"workflow": "keep"}}},
   "expect": {"outcome": "deny", "determining": ["keep"]}},
  {"name": "taken back", "given": {"fixture": "undo", "overrides": {"action": {"type": "Shop::Action",
   "id": "shop.reserve.undo"}, "resource": {"type": "Shop::Reservation"}}},
   "expect": {"outcome": "allow"}}
]"""


@pytest.fixture
def bundle(project):
    """The folder of the project's policy bundle."""
    folder = project.parent / "policies"
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
    (folder / "site.cedar").write_text(SITE, encoding="utf-8")
    (folder / "site.policytest.json").write_text(TEST, encoding="utf-8")
    with project.open("a", encoding="utf-8") as file:
        file.write('\n[policies]\nbundle = "policies"\n')
    return folder


def given_up(engine, *, workflow, name):
    """A run that made one reservation and whose agent failed."""

    def agent():
        with engine.run(workflow=workflow, run_key=name, agent="coder") as run:
            run.call("shop.reserve", {"name": name})
            raise RuntimeError("the agent gave up")

    with pytest.raises(RuntimeError):
        agent()


@pytest.fixture
def decided(bundle, project):
    """Runs whose decisions were allow, needs_approval and deny; the ids of the last two."""
    with Engine.open(project) as engine:
        with engine.run(workflow="order", run_key="good", agent="coder") as run:
            run.call("shop.reserve", {"name": "lamp"})
        with engine.run(workflow="order", run_key="asks", agent="coder", initiator="noah") as run:
            run.call("shop.reserve", {"name": "table"})
            run.call("shop.notify", {"name": "customer"})
        given_up(engine, workflow="keep", name="chair")
        engine.recover()
        rows = engine.sql("SELECT verdict, decision_id, action_id FROM decisions ORDER BY seq").rows
    return {verdict: (decision, action) for verdict, decision, action in rows}


@pytest.fixture
def candidate(bundle, tmp_path):
    """Another bundle: the project's with one text replaced."""

    def made(old="", new=""):
        folder = tmp_path / "candidate"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(bundle, folder)
        assert old in SITE
        (folder / "site.cedar").write_text(SITE.replace(old, new) if old else SITE + new, encoding="utf-8")
        return folder

    return made


# --- check, fmt, test ------------------------------------------------------------------------------------------


def test_check_tells_every_mistake_with_its_place_and_remedy(amends, bundle):
    """Exit 1, a document that a CI can read, and nothing in the terminal's way."""
    assert "sound" in amends("policy", "check").out
    (bundle / "bad.cedar").write_text(
        '@id("x") @reason("r")\nforbid (principal, action, resource)\nwhen { context.no };'
    )
    (bundle / "worse.cedar").write_bytes(b"\xff\xfe")
    (finding,) = amends("policy", "check", "--json", code=1).json["findings"]
    assert (finding["code"], finding["file"]) == ("not_utf8", "worse.cedar")
    (bundle / "worse.cedar").unlink()
    told = amends("policy", "check", "--json", code=1).json
    (finding,) = told["findings"]
    assert not told["ok"]
    assert (finding["file"], finding["line"], finding["policy_id"]) == ("site/bad.cedar", 1, "x")
    assert finding["hint"]


def test_check_warns_and_is_strict_if_told(amends, bundle):
    """A warning fails only with --strict."""
    (bundle / "more.cedar").write_text("// later\n", encoding="utf-8")
    assert "warning" in amends("policy", "check").out
    amends("policy", "check", "--strict", code=1)


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda folder: (folder / "bundle.toml").unlink(), "no `bundle.toml`"),
        (lambda folder: (folder / "bundle.toml").write_text("label"), "not TOML"),
        (lambda folder: (folder / "site.cedar").unlink(), "no policy"),
        (lambda folder: (folder / "again").symlink_to(folder), "link to a folder"),
        (lambda folder: (folder / "loop.cedar").symlink_to(folder / "loop.cedar"), "cannot be read"),
        (lambda folder: (folder / "big.cedar").write_text("// " + "x" * 300_000), "more than 262144"),
        (lambda folder: (folder / "deep.cedar").write_text("permit (" + "(" * 5000), "deep"),
    ],
)
def test_bundle_that_cannot_be_read_is_a_finding(amends, bundle, break_it, words):
    """No manifest, no policy, links, size, depth: exit 1 and a sentence."""
    break_it(bundle)
    (finding,) = amends("policy", "check", "--json", code=1).json["findings"]
    assert words in finding["message"]


def test_check_refuses_a_label_that_means_something_else_already(amends, bundle, decided):
    """A label means one thing for ever; the other findings are told, too."""
    assert "sound" in amends("policy", "check").out
    (bundle / "site.cedar").write_text(SITE + SITE, encoding="utf-8")
    findings = amends("policy", "check", "--json", code=1).json["findings"]
    assert {finding["file"] for finding in findings} == {"site/bundle.toml", "site/site.cedar"}


def test_commands_take_a_folder_where_there_is_no_project(amends, tmp_path, monkeypatch):
    """A repository of policies alone: the baseline's own folder is checked and tested as it is."""
    monkeypatch.delenv("AMENDS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    baseline = _resources.policies_path()
    assert "sound" in amends("policy", "check", baseline).out
    amends("policy", "check", code=2)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
    rule = '@id("mine") @reason("r") forbid (principal, action, resource) when { context.run.attempt > 9 };'
    (folder / "mine.cedar").write_text(rule, encoding="utf-8")
    assert "sound" in amends("policy", "check", folder).out
    assert amends("policy", "test", folder, "--json").json["ok"]


def test_baseline_is_tested_and_covered_whole(amends, tmp_path, monkeypatch):
    """All pass, every policy determined a decision, every condition was seen both ways: 100 percent is the gate."""
    monkeypatch.delenv("AMENDS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    told = amends("policy", "test", _resources.policies_path(), "--coverage", "--threshold", "100")
    assert "0 failed" in told.out
    assert "100.0 % covered" in told.out
    document = amends("policy", "test", _resources.policies_path(), "--coverage", "--json").json
    policies = document["coverage"]["policies"]
    assert len(policies) > 10
    assert all(one["determined"] for one in policies)
    assert all(condition["true"] and condition["false"] for one in policies for condition in one["conditions"])


def test_fmt_checks_without_writing_and_then_writes(amends, bundle):
    """--check is a gate; the second run has nothing to do; the policies mean what they meant."""
    before = (bundle / "site.cedar").read_bytes()
    assert "would change" in amends("policy", "fmt", "--check", code=1).out
    assert (bundle / "site.cedar").read_bytes() == before
    assert amends("policy", "fmt", "--json").json["changed"] == [str(bundle / "site.cedar")]
    assert (bundle / "site.cedar").read_text("utf-8").startswith("// the site's own rules\n\n@id")
    amends("policy", "fmt", "--check")
    amends("policy", "check")


def test_fmt_leaves_what_does_not_parse(amends, bundle):
    """It is named, and every other file is formatted."""
    (bundle / "bad.cedar").write_text("permit (", encoding="utf-8")
    told = amends("policy", "fmt", bundle, code=1)
    assert "bad.cedar" in told.out
    assert (bundle / "bad.cedar").read_text("utf-8") == "permit ("
    amends("policy", "fmt", "--check", bundle / "site.cedar")


def test_tests_are_reported_to_a_ci(amends, bundle, tmp_path):
    """JUnit XML with a case for each test and a failure for each that failed; coverage below the threshold fails."""
    report = tmp_path / "report.xml"
    amends("policy", "test", "--junit", report)
    suites = ET.parse(report).getroot()
    assert int(suites.get("tests")) > 30
    assert suites.get("failures") == "0"
    told = amends("policy", "test", "--coverage", "--threshold", "100", code=1)
    assert "`shop:notify` never determined an answer" in told.out
    (bundle / "site.policytest.json").write_text(TEST.replace('"allow"', '"deny"'), encoding="utf-8")
    told = amends("policy", "test", "--junit", report, code=1)
    assert "outcome is `allow`, not `deny`" in told.out
    (failure,) = ET.parse(report).getroot().iter("failure")
    assert "outcome is `allow`" in failure.get("message")


# --- eval, explain ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--action", "shop.reserve.undo"), 0, "shop:undo permits"),
        (("--action", "shop.reserve.undo", "--set", "run.workflow=keep"), 4, "because the workflow is `keep`"),
        (("--action", "shop.notify.release"), 6, "because there is no approval"),
        (("--action", "shop.reserve", "--principal", "Human:maya"), 4, "who asks is not of type Agent"),
        (("--action", "shop.reserve", "--resource", "reservation:lamp"), 0, "shop:reserve permits"),
    ],
)
def test_one_question_is_answered_with_its_reason(amends, bundle, arguments, code, words):
    """Exit 0 for allow, 4 for deny, 6 where a person is needed."""
    assert words in amends("policy", "eval", *arguments, code=code).out


def test_question_comes_from_a_file_or_a_decision(amends, bundle, decided, tmp_path):
    """A request as a policy test has it, or one that was recorded; printed as any Cedar tool takes it."""
    file = tmp_path / "request.json"
    file.write_text('{"fixture": "probe", "overrides": {"resource": {"tenant": "other"}}}', encoding="utf-8")
    told = amends("policy", "eval", file, "--json", code=4).json
    assert told["policies"][0]["policy_id"] == "amends:tenant-isolation"
    assert set(told["request"]) == {"principal", "action", "resource", "context", "entities"}
    decision, _ = decided["deny"]
    assert "keep forbids" in amends("policy", "eval", "--decision", decision, code=4).out
    again = amends("policy", "eval", "--decision", decision, "--set", "run.workflow=order")
    assert "shop:undo permits" in again.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 2),
        (("--action", "shop.reserve", "--decision", "x"), 2),
        (("--action", "shop.unheard_of"), 3),
        (("--action", "shop.reserve", "--set", "time.now=2026-03-02T10:00:00"), 2),
        (("--action", "shop.reserve", "--set", "input.x=1.5"), 2),
        (("--decision", "unheard-of"), 3),
        (("missing.json",), 2),
    ],
)
def test_question_that_is_none_is_a_usage_error(amends, bundle, arguments, code):
    """Nothing is evaluated."""
    amends("policy", "eval", *arguments, code=code)


def test_denied_compensation_is_explained_in_words(amends, decided, bundle):
    """The condition, the policy, its reason and where it stands, from the ledger alone: the files are gone."""
    shutil.rmtree(bundle)
    decision, action = decided["deny"]
    for name in (decision, decision[-12:], action):
        told = amends("policy", "explain", name)
        assert "because the workflow is `keep`" in told.out
        assert "site/site.cedar:3" in told.out
        assert "what this workflow makes stays" in told.out
    document = amends("policy", "explain", decision, "--json").json
    assert document["verdict"] == document["why"]["verdict"] == "deny"
    assert document["why"]["policies"][0]["conditions"][0]["text"] == 'context.run.workflow == "keep"'


def test_needed_approval_is_explained_with_who_could_give_it(amends, decided):
    """People of the project with tier and roles, never the one on whose behalf the run was started."""
    decision, _ = decided["needs_approval"]
    told = amends("policy", "explain", decision)
    assert "needs approval of tier 1" in told.out
    assert "because there is no approval" in told.out
    assert "who could approve: maya" in told.out  # noah started the run
    assert amends("policy", "explain", decision, "--json").json["who_could_approve"] == ["maya"]


def test_both_versions_are_named_where_policies_changed(amends, decided, bundle, project):
    """The effect was made under one bundle, its recovery decided under another."""
    with Engine.open(project) as engine:
        engine.run(workflow="late", run_key="late", agent="coder").call("shop.reserve", {"name": "desk"})
        before = engine.kit.authorizer.bundle().version
    (bundle / "bundle.toml").write_text('label = "2.0.0"\n', encoding="utf-8")
    with Engine.open(project) as engine:
        engine.recover()
        after = engine.kit.authorizer.bundle().version
        rows = engine.sql("SELECT decision_id FROM decisions WHERE phase = 'undo' AND workflow = 'late'").rows
    told = amends("policy", "explain", rows[-1][0]).out
    assert before in told
    assert after in told


def test_decision_that_is_none_is_not_found(amends, decided):
    """And a start that fits several is named with them."""
    amends("policy", "explain", "unheard-of", code=3)
    told = amends("policy", "explain", decided["deny"][0][:3], code=2)
    assert "fits" in told.err


# --- diff, replay ----------------------------------------------------------------------------------------------


def test_comment_changes_no_decision_and_no_meaning(amends, decided, candidate):
    """All same, exit 0, and the semantic digests are equal though the sources' digests differ."""
    folder = candidate(new="// a comment\n")
    told = amends("policy", "replay", folder, "--json").json
    assert told["counts"]["same"] == told["decisions"] > 3
    assert told["changed"] == []
    compared = amends("policy", "diff", "1.0.0", folder, "--json", "--exit-code").json
    assert compared["a"]["meaning"] == compared["b"]["meaning"]
    assert compared["a"]["effective_digest"] != compared["b"]["effective_digest"]
    assert (compared["same_meaning"], compared["same_sources"]) == (True, False)


def test_loosened_candidate_fails_and_the_decisions_are_named(amends, decided, candidate):
    """Exit 1 by default; the decision's id, what it was and what it would be."""
    folder = candidate('== "keep"', '== "never"')
    decision, _ = decided["deny"]
    told = amends("policy", "replay", folder, code=1)
    assert decision in told.out
    assert "deny (keep)" in told.out
    assert "allow (shop:undo)" in told.out
    document = amends("policy", "replay", folder, "--json", code=1).json
    (changed,) = document["changed"]
    assert (changed["kind"], changed["decision_id"]) == ("loosened", decision)
    assert document["failed_on"] == ["loosened"]
    amends("policy", "replay", folder, "--fail-on", "none")
    amends("policy", "replay", folder, "--fail-on", "tightened,not-evaluable")
    assert amends("policy", "replay", folder, "--since", "2099-01-01", "--json").json["decisions"] == 0
    assert amends("policy", "replay", folder, "--since", "1h", "--json", code=1).json["decisions"] > 3


def test_tightened_candidate_fails_if_asked_to(amends, decided, candidate):
    """A stricter candidate is no failure by default."""
    folder = candidate('context.run.workflow == "keep"', "true")
    assert amends("policy", "replay", folder, "--json").json["counts"]["same"]
    folder = candidate('action == Shop::Action::"shop.reserve.undo"', 'action == Shop::Action::"shop.reserve"')
    told = amends("policy", "replay", folder, "--fail-on", "tightened", code=1)
    assert "tightened" in told.out


@pytest.mark.parametrize("arguments", [("--fail-on", "worse"), ("--since", "soon")])
def test_replay_with_wrong_options_is_a_usage_error(amends, decided, candidate, arguments):
    """Nothing is replayed."""
    amends("policy", "replay", candidate(), *arguments, code=2)


def test_candidate_that_does_not_load_is_refused(amends, decided, candidate):
    """A folder with mistakes, a version nobody knows."""
    amends("policy", "replay", candidate("context.run.workflow", "context.nope"), code=2)
    amends("policy", "replay", "9.9.9", code=3)


def test_difference_of_meaning_is_shown_and_can_be_a_gate(amends, decided, candidate):
    """By policy id, with the lines; a recorded version is compared with what is configured now."""
    folder = candidate('== "keep"', '== "never"')
    told = amends("policy", "diff", "1.0.0", folder, "--exit-code", code=1)
    assert "changed keep" in told.out
    assert '-when { context.run.workflow == "keep" };' in told.out
    assert amends("policy", "diff", "1.0.0", "--json", "--exit-code").json["same_sources"]


# --- list, show, history ---------------------------------------------------------------------------------------


def test_bundles_the_ledger_knows_are_listed_shown_and_compared(amends, decided, bundle, project, tmp_path):
    """With their sources, also when the files are gone or changed."""
    (bundle / "bundle.toml").write_text('label = "1.1.0"\n', encoding="utf-8")
    (bundle / "site.cedar").write_text(SITE.replace('== "keep"', '== "never"'), encoding="utf-8")
    with Engine.open(project):
        pass
    first, second = amends("policy", "list", "--json").json["bundles"]
    assert first["version"].startswith("1.0.0@sha256:")
    assert first["decisions"] > 3
    assert (second["version"].split("@")[0], second["decisions"]) == ("1.1.0", 0)
    assert first["meaning"] != second["meaning"]
    assert '"never"' in amends("policy", "show", "--policy", "keep").out
    assert '"keep"' in amends("policy", "show", "1.0.0", "--policy", "keep").out
    shown = amends("policy", "show", "1.0.0", "--json").json
    assert shown["sources"]["site/site.cedar"] == SITE
    assert {one["origin"] for one in shown["policies"]} == {"baseline", "adapter", "site"}
    amends("policy", "show", "1.0.0", "--export", tmp_path / "out")
    assert (tmp_path / "out" / "site" / "site.cedar").read_text("utf-8") == SITE
    amends("policy", "show", "--export", tmp_path / "out", code=2)
    (change,) = amends("policy", "history", "keep", "--json").json["changes"]
    assert change["policies"][0]["change"] == "changed"
    assert "changed keep" in amends("policy", "history").out
    assert amends("policy", "history", "amends:tenant-isolation", "--json").json["changes"] == []


def test_what_the_ledger_does_not_know_is_not_found(amends, decided):
    """A version, a policy."""
    amends("policy", "show", "9.9.9", code=3)
    amends("policy", "show", "--policy", "unheard-of", code=3)


def test_new_project_has_no_bundle_yet(amends, project):
    """Nothing to show is said, not crashed on."""
    assert amends("policy", "list", "--json").json == {"bundles": []}
    amends("policy", "show", code=3)
    assert "no bundle yet" in amends("policy", "history").err
    assert amends("policy", "fmt", code=2).err


def test_errors_are_documents_with_json(project, bundle, capsys):
    """A script reads the error where it reads the data."""
    assert app.run(["policy", "show", "9.9.9", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["hint"]
