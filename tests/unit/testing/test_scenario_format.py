"""`scenario.toml`: what is refused, and with which words: file, key, remedy."""

from pathlib import Path

import pytest

from amends.core.errors import ConfigError, UnknownName
from amends.testing.scenarios.loading import list_scenarios, load_scenario, merge, parse_scenario
from amends.testing.scenarios.values import fill

PATH = Path("/scenarios/tiny/scenario.toml")


def tiny(**changes):
    return merge(
        {
            "id": "tiny",
            "title": "a run",
            "systems": {"partner": {"kind": "partner"}},
            "script": [
                {"open": {"workflow": "w", "key": "k"}},
                {"call": "partner.make_export", "as": "export", "args": {"title": "t"}},
                {"finish": {}},
            ],
            "expect": {"run_status": "committed", "public_state": "recovered", "policy": "1.0.0", "actions": []},
        },
        changes,
    )


def script(*entries):
    return tiny(script=list(entries))


OPEN = {"open": {"workflow": "w", "key": "k"}}


@pytest.mark.parametrize(
    ("data", "key", "words"),
    [
        (tiny(tittle="x"), "tittle", "there is no such key"),
        (tiny(systems={"partner": {"kind": "fax"}}), "systems.partner.kind", "it is `fax`: change it"),
        (tiny(systems={"partner": {"kynd": "partner"}}), "systems.partner.kynd", "there is no such key"),
        (tiny(expect={"run_status": "fine"}), "expect.run_status", "it is `fine`"),
        (tiny(expect={"actions": [{"capability": "a.b"}]}), "expect.actions.0.status", "is missing"),
        (script(OPEN, {"cal": "partner.x"}, {"finish": {}}), "script.1", "did you mean `call`?"),
        (script(OPEN, {"call": "a.b", "gate": "a.b"}, {"finish": {}}), "script.1", "has 2 verbs"),
        (script(OPEN, {"call": "a.b", "arguments": {}}, {"finish": {}}), "script.1.arguments", "no such key"),
        (script(OPEN), "the file", "the last session does not end"),
        (script(OPEN, OPEN, {"finish": {}}), "the file", "the session before has not ended"),
        (script({"call": "a.b"}), "the file", "`open` one first"),
        (script({"finish": {}}), "the file", "there is no session to end"),
        (script(OPEN, {"kill": True}), "the file", 'say `process = "apart"`'),
        (script(OPEN, {"call": "a.b", "kill_at": "after_call"}, {"finish": {}}), "the file", "only a process"),
        (tiny(faults=[{"system": "fax", "kind": "refuse"}]), "the file", "there is no system `fax`"),
        (
            tiny(
                expect={
                    "actions": [
                        {"capability": "a.b", "step": "no", "status": "failed", "outcome": "failed", "attempts": 0}
                    ]
                }
            ),
            "the file",
            "no step is called `no`",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_file_key_and_remedy(data, key, words):
    """Whatever is wrong, the author reads where and what to do."""
    with pytest.raises(ConfigError) as raised:
        parse_scenario(data, PATH)
    assert str(PATH) in raised.value.message
    assert f"`{key}`" in raised.value.message
    assert words in raised.value.message
    assert "docs/scenarios.md" in raised.value.hint


def test_a_variant_changes_parts_of_the_whole():
    """Tables merge, lists are replaced, and named entries get others around them or in their place."""
    data = tiny(
        variants={
            "late": {
                "title": "later",
                "expect": {"run_status": "recovered"},
                "before": {"export": [{"checkpoint": "one"}]},
                "after": {"export": [{"checkpoint": "two"}]},
            },
            "other": {"replace": {"export": [{"checkpoint": "three"}]}},
        }
    )
    late = parse_scenario(data, PATH, "late")
    assert [getattr(entry, "checkpoint", "") for entry in late.script] == ["", "one", "", "two", ""]
    assert (late.name, late.title, late.expect.run_status, late.expect.policy) == (
        "tiny/late",
        "later",
        "recovered",
        "1.0.0",
    )
    other = parse_scenario(data, PATH, "other")
    assert [getattr(entry, "checkpoint", "") for entry in other.script] == ["", "three", ""]


def test_a_variant_that_edits_no_step_is_refused():
    """A name that is wrong changes nothing silently."""
    with pytest.raises(
        ConfigError, match=r"variants\.v\.before\.exprot`: no step is called `exprot`; the steps are export"
    ):
        parse_scenario(tiny(variants={"v": {"before": {"exprot": []}}}), PATH, "v")


@pytest.mark.parametrize(("variants", "wanted"), [({}, "x"), ({"a": {}}, ""), ({"a": {}}, "b")])
def test_an_unknown_variant_is_not_found(variants, wanted):
    """With variants, one is named; without, none."""
    with pytest.raises(UnknownName, match="its variants are"):
        parse_scenario(tiny(variants=variants), PATH, wanted)


def test_a_scenario_is_called_as_its_folder():
    """So that a name in a report is a place on disk."""
    with pytest.raises(ConfigError, match="call it as its folder, `tiny`"):
        parse_scenario(tiny(id="huge"), PATH)


def test_an_unknown_scenario_is_not_found(tmp_path):
    """The error shows where to look."""
    with pytest.raises(UnknownName, match="no scenario `x`"):
        load_scenario(tmp_path, "x")


def test_broken_toml_names_the_file(tmp_path):
    """And the line."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/scenario.toml").write_text("id = \n")
    with pytest.raises(ConfigError, match=r"broken/scenario\.toml` is not valid TOML: .*line 1"):
        list_scenarios(tmp_path)


def test_placeholders_take_values_as_they_are_and_texts_as_parts():
    """Numbers stay numbers; what nothing fills is an error that names it."""
    known = {"step": {"output": {"n": 7}}, "place": "here"}
    assert fill({"a": ["${step.output.n}", "no. ${step.output.n} ${place}"]}, known) == {"a": [7, "no. 7 here"]}
    with pytest.raises(UnknownName, match=r"`\$\{step\.output\.m\}`"):
        fill("${step.output.m}", known)
