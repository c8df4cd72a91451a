"""Bad policies: each is told with file, line, policy id and remedy, and nothing of the bundle is used."""

import subprocess
import sys
from dataclasses import replace

import pytest

from amends.backends.cedar import isolated
from amends.backends.cedar.testing import check_policies, gathered
from amends.core.errors import ConfigError

FORWARD = 'action in Amends::Action::"phase.forward"'
UNDO = 'action in Amends::Action::"phase.undo"'


def rule(conditions, scope=FORWARD, effect="forbid"):
    return f'@id("mine") @reason("r") {effect} (principal, {scope}, resource) {conditions};\n'


@pytest.fixture
def findings(contracts, site):
    """The findings about a site policy, which begins in line 2."""

    def found(policy, **files):
        folder = site("// about\n" + policy, **files)
        return check_policies(contracts=contracts.values(), contributions={}, site_bundle=folder, known_labels={})

    return found


@pytest.mark.parametrize(
    ("policy", "code", "words", "remedy"),
    [
        (rule("unless { context has aproval }"), "undeclared_has", "`context has aproval` is never true", "schema"),
        (
            rule("unless { context has approval && context.approval has teir }"),
            "undeclared_has",
            "`context.approval has teir` is never true",
            "schema",
        ),
        (rule("when { resource has owner }"), "undeclared_has", "`resource has owner`", "schema"),
        (rule("when { context has forward }"), "undeclared_has", "`context has forward`", "schema"),
        (
            rule("when { context.run.agent.tenant == resource.tenant }"),
            "unloaded_entity",
            "`context.run.agent`",
            "`==`",
        ),
        (rule('when { context.run.agent in Amends::Role::"x" }'), "unloaded_entity", "roles of", "`==`"),
        (
            rule('when { Amends::Human::"maya".tenant == resource.tenant }'),
            "unloaded_entity",
            "are not known when policies are asked",
            "`==`",
        ),
        (
            rule('when { context.time.windows.contains("ofice_hours_utc") }'),
            "unknown_window",
            "no time window `ofice_hours_utc`",
            "did you mean `office_hours_utc`?",
        ),
        (
            rule('when { context.time.windows.containsAny(["weekdays_utc", "full_moon"]) }'),
            "unknown_window",
            "no time window `full_moon`",
            "there are: ",
        ),
        (
            rule(
                'when { context.forward has caused_by_action && context.forward.caused_by_action == "partner.reserv" }',
                UNDO,
            ),
            "unknown_capability",
            "no capability `partner.reserv`",
            "did you mean `partner.reserve`?",
        ),
        (rule('when { context.forward.status == "succeeded" }', UNDO), "invalid", "String", "Amends::Outcome::"),
        (rule("when { context.approval.tier > 1 }"), "invalid", "optional attribute", "has"),
        (rule("when { context.aproval }"), "invalid", "`aproval`", "schema"),
        (rule("when { true }", 'action == Amends::Action::"phase.forwrd"'), "invalid", "phase.forwrd", "schema"),
        (rule('when { ip("300.1.1.1").isIpv4() }'), "invalid", "300.1.1.1", "schema"),
    ],
)
def test_condition_that_cannot_be_meant_is_an_error(findings, policy, code, words, remedy):
    """It names the place and what to do; the validator alone would have let most of these pass."""
    found = [one for one in findings(policy) if one.code == code]
    assert found
    assert all(
        (one.level, one.file, one.line, one.policy_id) == ("error", "site/site.cedar", 2, "mine") for one in found
    )
    assert any(words in one.message and remedy in one.hint for one in found), found


@pytest.mark.parametrize(
    "condition", ["context.run.attempt * 2 > 10", "-context.run.attempt < 0", "context.run.attempt + 1 > 1"]
)
@pytest.mark.parametrize("effect", ["forbid", "permit"])
def test_condition_that_may_fail_one_day_is_a_warning(findings, condition, effect):
    """It would deny everything it looks at on the day of the overflow; the bundle still loads, and fails closed."""
    found = findings(rule(f"when {{ {condition} }}", effect=effect))
    assert [(one.level, one.code, one.policy_id) for one in found] == [("warning", "can_fail", "mine")]
    assert "denied" in found[0].message


@pytest.mark.parametrize(
    "conditions",
    [
        "unless { context has approval && context.approval.tier >= 1 }",
        "when { context.run has initiator }",
        'when { context.run.agent == Amends::Agent::"bot" }',
        'when { context.time.windows.contains("write_freeze") }',
        "when { 2 * 3 < context.run.attempt }",
        'when { context.time.age > duration("1h") }',
    ],
)
def test_condition_that_can_be_meant_is_not_doubted(findings, conditions):
    """No finding for what is right, nor for a window that the baseline asks for and a site may define."""
    assert findings(rule(conditions)) == []


def test_every_mistake_of_a_bundle_is_told_at_once(findings):
    """One mistake hides no other, in whatever step it is found."""
    bad = rule("when { context.nope }") + '@id("second") forbid (principal, action, resource);\n'
    bad += rule("unless { context has aproval }").replace('"mine"', '"third"') + rule("when { true }")
    found = {(one.code, one.policy_id) for one in findings(bad)}
    assert found == {
        ("invalid", "mine"),
        ("no_reason", "second"),
        ("undeclared_has", "third"),
        ("duplicate_id", "mine"),
    }


def test_validation_is_told_once_a_policy(findings):
    """The validator repeats itself for every action of a group."""
    assert len(findings(rule("when { context.nope }"))) == 1


def test_file_without_a_policy_is_a_warning(findings):
    """A file that holds only comments is probably not finished."""
    found = findings(rule("when { true }"), more__cedar="// later\n")
    assert [(one.level, one.code, one.file) for one in found] == [("warning", "empty_file", "site/more.cedar")]


def test_linked_folder_is_refused_and_a_loop_ends(site, load):
    """What lies behind a link is not silently left out, and a link that leads round is not followed."""
    folder = site(rule("when { true }"))
    (folder / "again").symlink_to(folder)
    with pytest.raises(ConfigError, match="again: a link to a folder is not entered"):
        load(site_bundle=folder)


def test_linked_file_is_read(site, load, tmp_path):
    """A link to a file is the file, as configuration mounts make them."""
    folder = site(rule("when { true }"))
    (folder / "linked.cedar").symlink_to(folder / "site.cedar")
    with pytest.raises(ConfigError, match="is taken by"):
        load(site_bundle=folder)


# --- in a process of its own -----------------------------------------------------------------------------------


@pytest.fixture
def collected(contracts, site):
    """All sources with one site policy."""
    folder = site(rule("when { true }"))
    return gathered(contracts.values(), {}, folder, {}, {})


def test_child_finds_what_this_process_finds(collected):
    """The same findings, in the same order."""
    wrong = replace(collected, sources={**collected.sources, "site/site.cedar": rule("when { context.nope }")})
    assert isolated.check(collected) == []
    assert [one.code for one in isolated.check(wrong)] == ["invalid"]


def test_child_that_dies_is_a_finding_about_the_file(collected, tmp_path):
    """Whatever ends the parser's process ends no command: the file that does it is named."""
    program = tmp_path / "child.py"
    program.write_text(
        "import os, signal, sys\n"
        "from amends.backends.cedar import isolated\n"
        "job = isolated.Job.model_validate_json(sys.stdin.read())\n"
        "if any('BOOM' in text for text in job.sources.values()):\n"
        "    os.kill(os.getpid(), signal.SIGSEGV)\n"
        "sys.stdout.write(isolated.answer(job).model_dump_json())\n",
        encoding="utf-8",
    )
    wrong = replace(collected, sources={**collected.sources, "site/boom.cedar": "// BOOM\n"})
    (found,) = isolated.check(wrong, program=(sys.executable, str(program)))
    assert (found.level, found.code, found.file) == ("error", "crash", "site/boom.cedar")
    assert "signal 11" in found.message
    texts, findings = isolated.format_files({"a.cedar": "// BOOM\n"}, program=(sys.executable, str(program)))
    assert texts == {"a.cedar": "// BOOM\n"}
    assert [one.code for one in findings] == ["crash"]


def test_parser_really_dies_of_what_the_guards_keep_out(tmp_path):
    """The control: without the guard, text like this ends the process."""
    text = "permit (principal, action, resource) when { " + "(" * 20_000 + "true" + ")" * 20_000 + " };"
    code = "import sys, cedarpy; cedarpy.policies_to_pst(sys.stdin.read())"
    child = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False)
    assert child.returncode < 0
