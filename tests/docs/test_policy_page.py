"""`docs/policies.md`: its tutorial's bundle is sound and tested, its tables say of the context what the schema says,
and each fact on it can be asked for.

    python tests/docs/test_policy_page.py

writes the made parts of the page anew.
"""

import json
import re
from pathlib import Path

import pytest

from amends.backends.cedar import native
from amends.backends.cedar.schema import PHASES, PRINCIPALS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "policies.md"
SCHEMA = (ROOT / "policies" / "schema" / "amends.cedarschema").read_text(encoding="utf-8")
MADE = re.compile(r"<!-- made: (?P<what>\w+) -->\n(?P<text>.*?)<!-- /made -->", re.DOTALL)
FILE = re.compile(r"^```\w+ file=(?P<name>\S+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^  type (?P<name>\w+) = \{\n(?P<body>.*?)^  \};", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^    (?P<name>\w+)(?P<optional>\??): (?P<type>[^,/\s]+),? *// (?P<words>.+)$", re.MULTILINE)
ENUM = re.compile(r"^  entity (?P<name>\w+) enum \[(?P<values>[^\]]+)\];", re.MULTILINE)
ACTION = re.compile(r'action "selftest\.(?P<phase>\w+)".*?context: \{(?P<context>[^}]*)\}', re.DOTALL)
GROUP = re.compile(r"(?P<group>\w+)(?P<optional>\??): (?P<type>\w+)")
TABLE = re.compile(r"^\*\*`context\.(\w+)\??`\*\*.*?\n\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
MEANING = {
    "forward": "a call of an agent; of an irreversible one: may it be queued, or asked about at a gate",
    "probe": "a look at the real system",
    "undo": "a compensation, at the moment of sending",
    "release": "a queued or gated call, at the moment of sending",
    "correct": "a note to people who saw a signal",
}
VOUCHED = {
    "run": "the run",
    "forward": "the call that a look, compensation, release or correction is about",
    "evidence": "what is known about the effect",
    "contract": "what the capability declares, and what follows from it now",
    "time": "time",
    "approval": "people's yes, if there is one that counts",
}


def fields_of(type_name):
    """(name, optional, type, words) of a common type of the schema; no field is without words."""
    body = next(found["body"] for found in TYPE.finditer(SCHEMA) if found["name"] == type_name)
    fields = [(f["name"], bool(f["optional"]), f["type"], f["words"].strip()) for f in FIELD.finditer(body)]
    assert len(fields) == len(body.strip().splitlines()), f"a field of {type_name} says nothing about itself"
    return fields


def groups(phase):
    """(group, optional, type) of a phase's context."""
    context = next(found["context"] for found in ACTION.finditer(SCHEMA) if found["phase"] == phase)
    return [(g["group"], bool(g["optional"]), g["type"]) for g in GROUP.finditer(context) if g["group"] != "input"]


def phases():
    """The table of phases."""
    rows = []
    for phase in PHASES:
        who = ", ".join(f"`{name}`" for name in PRINCIPALS[phase])
        forward = [optional for group, optional, _ in groups(phase) if group == "forward"]
        has = "–" if not forward else "may be there" if forward[0] else "always there"
        rows.append(f'| `Amends::Action::"phase.{phase}"` | {MEANING[phase]} | {who} | {has} |\n')
    head = "\n| phase | a question about | who may ask | `context.forward` |\n|---|---|---|---|\n"
    return head + "".join(rows) + "\n"


def context():
    """The tables of the context, group by group, and the values of its enumerations."""
    parts = []
    for group, optional, type_name in groups("release"):
        mark = "?" if optional else ""
        parts.append(
            f"\n**`context.{group}{mark}`**: {VOUCHED[group]}\n\n| field | type | what it is |\n|---|---|---|\n"
        )
        for name, absent, type_, words in fields_of(type_name):
            parts.append(f"| `{name}{'?' if absent else ''}` | `{type_}` | {words} |\n")
    parts.append("\nWords that are entities, so that a typing error is found when the policy is loaded:\n\n")
    parts.append("| type | values |\n|---|---|\n")
    for found in ENUM.finditer(SCHEMA):
        values = ", ".join(f'`Amends::{found["name"]}::"{value}"`' for value in json.loads(f"[{found['values']}]"))
        parts.append(f"| `{found['name']}` | {values} |\n")
    return "".join(parts) + "\n"


def rendered(page):
    made = {"phases": phases, "context": context}
    return MADE.sub(lambda part: f"<!-- made: {part['what']} -->\n{made[part['what']]()}<!-- /made -->", page)


def on_the_page():
    """(group, field) of every row of the context tables."""
    for table in TABLE.finditer(PAGE.read_text(encoding="utf-8")):
        for name in re.findall(r"^\| `(\w+)(?:\?)?` \|", table[2], re.MULTILINE):
            yield table[1], name


def test_the_page_is_what_the_schema_says():
    """Phases, groups, fields, types, words and values; `python tests/docs/test_policy_page.py` makes them anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == rendered(page)


def test_every_fact_of_the_schema_is_on_the_page_and_no_other():
    """Asked of Cedar itself: what it declares for an action, it shows; what the page shows, a policy may ask for."""
    shown = list(on_the_page())
    schema = native.parse_schema(SCHEMA)
    declared = {(group, name) for group, _, type_ in groups("release") for name, *_ in fields_of(type_)}
    assert sorted(shown) == sorted(declared)
    for group, name in shown:
        guard = f"context has {group} && context.{group} has {name} && "
        asked = f"{guard}[context.{group}.{name}] == [context.{group}.{name}]"
        policy = f'permit (principal, action == Amends::Action::"selftest.release", resource) when {{ {asked} }};'
        assert native.validate(policy, schema) == [], (group, name)


def test_a_fact_that_is_not_on_the_page_is_refused():
    """The control: validation would find a row that is not in the schema."""
    policy = """permit (principal, action == Amends::Action::"selftest.release", resource)
    when { context.run.nothing == "x" };"""
    assert native.validate(policy, native.parse_schema(SCHEMA)) != []


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The page's project."""
    monkeypatch.setenv("PARTNER_TOKEN", "partner-token")
    for file in FILE.finditer(PAGE.read_text(encoding="utf-8")):
        (tmp_path / file["name"]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file["name"]).write_text(file["body"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_first_policy_is_sound_and_its_tests_pass(project, capsys):
    """The commands of the tutorial, in its project."""
    from amends.surfaces.cli import app

    commands = re.findall(r"^\$ amends (policy (?:check|test)[^\n]*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert commands == ["policy check", "policy test", "policy test --coverage"]
    for command in commands:
        assert app.run(command.split()) == 0, capsys.readouterr()


def test_a_misspelt_field_is_told_as_the_tutorial_says(project, capsys):
    """File, line, policy and remedy."""
    from amends.surfaces.cli import app

    policy = project / "policies" / "adjustments.cedar"
    policy.write_text(policy.read_text("utf-8").replace("amount_minor", "amount_minr"), encoding="utf-8")
    assert app.run(["policy", "check", "--json"]) == 1
    (first, *_) = json.loads(capsys.readouterr().out)["findings"]
    assert (first["file"], first["policy_id"]) == ("site/adjustments.cedar", "site:refund-needs-finance")
    assert first["line"] > 0
    assert first["hint"]


def test_every_policy_and_window_of_the_page_loads(project):
    """Those beside the tutorial, too."""
    from amends import bootstrap
    from amends.backends.cedar.testing import check_policies

    page = PAGE.read_text(encoding="utf-8")
    policies = re.findall(r"^```cedar\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    windows = [b for b in re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "[[window]]" in b]
    assert policies
    assert windows
    (project / "policies" / "others.cedar").write_text("\n".join(policies), encoding="utf-8")
    (project / "policies" / "windows.toml").write_text("\n".join(windows), encoding="utf-8")
    settings = bootstrap.settings_of(project)
    loaded = bootstrap.adapters_of(settings, bootstrap.secrets_of(settings))
    findings = check_policies(
        contracts=[offer.contract for offer in loaded.offers],
        contributions=loaded.contributions,
        owned_prefixes=loaded.owned_prefixes,
        site_bundle=project / "policies",
        known_labels={},
    )
    assert [str(finding) for finding in findings] == []


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
