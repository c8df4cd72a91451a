"""What whoever evaluates flags sees of a run's changes in a flagd file: OpenFeature's own provider reads it."""

from __future__ import annotations

import json

import pytest

QA = {"contextName": "group", "operator": "IN", "values": ["qa"]}
PANEL = {"feature": "panel", "cohort": "qa"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "flags.json"
    text = {"state": "ENABLED", "variants": {"blue": "#00f", "red": "#f00", "grey": "#888"}, "defaultVariant": "grey"}
    gate = {"state": "DISABLED", "variants": {"on": True, "off": False}, "defaultVariant": "on"}
    theirs = {"if": [{"in": ["@example.test", {"var": "email"}]}, "red"]}
    flags = {"panel": {**text, "targeting": theirs}, "gate": gate}
    path.write_text(json.dumps({"flags": flags}, indent=2), encoding="utf-8")
    return path


@pytest.fixture
def run(adapter, driver_of, file):
    """Does one action on the file, as a run that opens flags to a cohort with `blue`."""
    capabilities = adapter(backend="flagd", file=str(file), on_variant="blue", off_variant="grey").capabilities

    def act(name, action="act-1", **args):
        one = driver_of(capabilities[f"flags.{name}"], args, action)
        one.do()
        return one

    return act


@pytest.fixture
def panel(flagd_reader, file):
    """The variant that somebody gets of `panel`, with the reason."""

    def see(**context):
        seen = flagd_reader.read(file, "panel", "none", **context)
        assert seen.error == ""
        return seen.variant

    return see


def undo(one):
    """Takes it back by the rung that fits, and looks."""
    state = one.probe().state
    rungs = one.capability.contract.compensation
    one.undo(next(r.name for r in rungs if all(state.get(key) in values for key, values in r.when.items())))
    assert one.verify().seen == "absent"


def test_a_switch_is_seen_and_its_undo_too(flagd_reader, file, run):
    """A disabled flag is as good as none; on, it gives its default."""

    def gate():
        seen = flagd_reader.read(file, "gate")
        return seen.value, seen.error

    before = gate()
    assert before[0] is False
    switch = run("set", feature="gate", enabled=True)
    assert gate() == (True, "")
    undo(switch)
    assert gate() == before


def test_a_cohort_gets_what_it_was_opened_to_and_nobody_else_does(file, run, panel):
    """Whom our rule does not let in goes on to the rule that stood there before; undone, so does the cohort."""
    before = file.read_bytes()
    opened = run("strategy", **PANEL, constraints=[QA])
    assert panel(group="qa") == "blue"
    assert panel(group="sales") == "grey"
    assert panel(group="sales", email="maya@example.test") == "red"
    undo(opened)
    assert panel(group="qa") == "grey"
    assert panel(group="qa", email="maya@example.test") == "red"
    assert file.read_bytes() == before


def test_a_share_of_the_cohort_is_let_in_and_the_rest_goes_on(run, panel):
    """By the targeting key, the same ones at every look."""
    run("strategy", **PANEL, constraints=[QA], rollout_percent=50)
    people = [f"user-{number}" for number in range(4)]
    seen = {name: panel(targeting_key=name, group="qa") for name in people}
    assert set(seen.values()) == {"blue", "grey"}
    assert panel(targeting_key=people[0], group="qa") == seen[people[0]]


def test_a_split_is_seen_and_its_undo_gives_everybody_the_same_again(run, panel):
    """The cohort's variants by weight; afterwards what it was opened to."""
    run("strategy", **PANEL, constraints=[QA])
    split = run("variants", "act-2", **PANEL, variants=[{"name": "red", "weight_percent": 100}])
    assert panel(targeting_key="user-1", group="qa") == "red"
    assert panel(targeting_key="user-1", group="sales") == "grey"
    undo(split)
    assert panel(targeting_key="user-1", group="qa") == "blue"
    halves = [{"name": name, "weight_percent": 50} for name in ("red", "blue")]
    run("variants", "act-3", **PANEL, variants=halves)
    assert {panel(targeting_key=f"user-{number}", group="qa") for number in range(4)} == {"red", "blue"}
