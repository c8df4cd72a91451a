"""What is the file's own matter: how it is written, who else writes it, and flagd's words for constraints."""

from __future__ import annotations

import fcntl
import json

import pytest

from amends.spi import NotSent
from amends_flags.flagd_file import FlagFile
from amends_flags.flagd_rules import branches, condition, with_changed, with_first, without

FLAGS = """{
\t"$schema": "https://flagd.dev/schema/v0/flags.json",
\t"flags": {
\t\t"panel": {
\t\t\t"state": "ENABLED",
\t\t\t"variants": {"on": true, "off": false},
\t\t\t"defaultVariant": "off",
\t\t\t"targeting": {"if": [{"in": [{"var": "email"}, ["maya@example.test"]]}, "on"]}
\t\t}
\t},
\t"$evaluators": {"ours": {"in": ["näh", {"var": "word"}]}}
}
"""
PANEL = {"feature": "panel", "cohort": "qa"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "flags.json"
    path.write_text(json.dumps(json.loads(FLAGS), indent="\t", ensure_ascii=False) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def capability(adapter, file, driver_of):
    def make(name, action="act-1", path=file, **args):
        return driver_of(adapter(backend="flagd", file=str(path)).capabilities[f"flags.{name}"], args, action)

    return make


def test_undone_the_file_has_its_former_bytes(file, capability):
    """Layout, order, letters and the final newline are kept, and no marker is left."""
    before = file.read_bytes()
    one = capability("strategy", **PANEL)
    one.do()
    changed = json.loads(file.read_text(encoding="utf-8"))["flags"]["panel"]
    assert changed["metadata"] == {"amends": "act-1"}
    assert changed["targeting"]["if"][:2] == [{"and": ["amends:act-1 qa", True]}, "on"]
    one.undo("remove")
    assert file.read_bytes() == before


def test_the_file_is_replaced_and_keeps_its_mode_and_its_link(file, capability, tmp_path):
    """Readers see the old file or the new one; a symbolic link stays one."""
    file.chmod(0o640)
    link = tmp_path / "linked.json"
    link.symlink_to(file)
    inode = file.stat().st_ino
    (tmp_path / ".flags.json.amends-new").write_text("left by a killed process")
    capability("set", path=link, feature="panel", enabled=False).do()
    assert link.is_symlink()
    assert file.stat().st_ino != inode
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(found.name for found in tmp_path.iterdir()) == ["flags.json", "flags.json.lock", "linked.json"]


def test_a_lock_that_somebody_holds_sends_nothing(file, capability, tmp_path):
    """Bounded by the call's time; the file is as it was."""
    before = file.read_bytes()
    one = capability("set", feature="panel", enabled=False)
    one.prepare()
    with (tmp_path / "flags.json.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(NotSent) as no:
            one.capability.do(one.call(timeout_seconds=0.05))
    assert no.value.code == "locked"
    assert file.read_bytes() == before


def test_a_writer_without_the_lock_is_noticed_and_not_overwritten(file):
    """Immediately before the rename the file is looked at once more."""

    def edit(document):
        file.write_text(FLAGS.replace("panel", "theirs"), encoding="utf-8")
        document["flags"].clear()
        return True

    with pytest.raises(NotSent) as no:
        FlagFile(file).change(edit, timeout_seconds=1.0, still_wanted=lambda: True)
    assert no.value.code == "changed_meanwhile"
    assert "theirs" in file.read_text(encoding="utf-8")


def test_what_is_no_longer_wanted_is_not_written(file, capability):
    """Asked immediately before the rename (rule 3)."""
    before = file.read_bytes()
    one = capability("set", feature="panel", enabled=False)
    one.prepare()
    with pytest.raises(NotSent) as no:
        one.capability.do(one.call(still_wanted=lambda: False))
    assert no.value.code == "not_wanted"
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    ["", "flags: {}", '{"flags": []}', '{"flags": {"a": {}, "a": {}}}', '{"flags": {"panel": {"state": "MAYBE"}}}'],
)
def test_a_file_that_flagd_would_not_read_is_no_answer(file, capability, content):
    """Nothing is prepared from it, and a probe of it proves nothing."""
    one = capability("set", feature="panel", enabled=False)
    one.do()
    file.write_text(content, encoding="utf-8")
    assert one.probe().seen == "inconclusive"
    with pytest.raises(NotSent):
        one.prepare()
    file.unlink()
    assert one.probe().seen == "inconclusive"


def test_the_file_of_another_environment_is_not_touched(file, capability, adapter):
    """Where the file names its environment it must be ours (field case U-04)."""
    file.write_text('{"flags": {}, "metadata": {"environment": "production"}}', encoding="utf-8")
    with pytest.raises(NotSent) as no:
        capability("create", feature="made").do()
    assert no.value.code == "other_environment"
    [look] = adapter(backend="flagd", file=str(file)).examinations
    assert look()[0].level == "problem"
    file.write_text('{"flags": {}, "metadata": {"environment": "staging"}}', encoding="utf-8")
    assert look()[0].level == "ok"
    capability("create", feature="made").do()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"segments": [2]}, "no segments"),
        ({"constraints": [{"contextName": "at", "operator": "DATE_AFTER", "value": "2026-01-01"}]}, "DATE_AFTER"),
        (
            {"constraints": [{"contextName": "a", "operator": "IN", "values": ["b"], "caseInsensitive": True}]},
            "caseInsensitive",
        ),
        ({"constraints": [{"operator": "IN", "values": ["b"]}]}, "contextName"),
    ],
)
def test_what_flagd_cannot_express_is_refused_before_anything_is_read(capability, args, said):
    """Never left out in silence: the cohort would be larger than was asked for."""
    with pytest.raises(NotSent, match=said) as no:
        capability("strategy", **PANEL, **args).prepare()
    assert no.value.code == "unsupported"


@pytest.mark.parametrize(
    ("variants", "code"),
    [
        ([{"name": "red", "weight_percent": 100}], "no_such_variant"),
        ([{"name": "on", "weight_percent": 100, "value": False}], "other_value"),
    ],
)
def test_a_run_splits_among_the_variants_that_there_are(capability, variants, code):
    """The variants are the flag's type: none is added and none gets another value."""
    capability("strategy", **PANEL).do()
    with pytest.raises(NotSent) as no:
        capability("variants", "act-2", **PANEL, variants=variants).prepare()
    assert no.value.code == code


def test_our_own_change_is_not_made_again(file, capability):
    """The same call once more finds its marker; an undo once more finds nothing."""
    one = capability("strategy", **PANEL)
    one.do()
    there = file.read_bytes()
    one.capability.do(one.call())
    assert file.read_bytes() == there


@pytest.mark.parametrize(
    ("constraint", "logic"),
    [
        ({"operator": "IN", "values": ["a"]}, {"in": [{"var": "x"}, ["a"]]}),
        ({"operator": "NOT_IN", "values": ["a"]}, {"!": [{"in": [{"var": "x"}, ["a"]]}]}),
        ({"operator": "IN", "values": ["a"], "inverted": True}, {"!": [{"in": [{"var": "x"}, ["a"]]}]}),
        ({"operator": "STR_STARTS_WITH", "values": ["a"]}, {"starts_with": [{"var": "x"}, "a"]}),
        (
            {"operator": "STR_ENDS_WITH", "values": ["a", "b"]},
            {"or": [{"ends_with": [{"var": "x"}, "a"]}, {"ends_with": [{"var": "x"}, "b"]}]},
        ),
        ({"operator": "STR_CONTAINS", "values": ["a"]}, {"in": ["a", {"var": "x"}]}),
        ({"operator": "NUM_GTE", "value": "7"}, {">=": [{"var": "x"}, 7]}),
        ({"operator": "SEMVER_LT", "value": "1.2.0"}, {"sem_ver": [{"var": "x"}, "<", "1.2.0"]}),
    ],
)
def test_constraints_in_flagds_words(constraint, logic):
    """As Unleash writes them, as flagd evaluates them."""
    assert condition([{"contextName": "x", **constraint}], 100) == logic


def test_several_constraints_and_a_share_must_all_hold():
    """Whom the share leaves out goes on to the next rule, as in Unleash."""
    whole = condition([{"contextName": "x", "operator": "IN", "values": ["a"]}], 30)
    share = {"==": [{"fractional": [["in", 30], ["out", 70]]}, "in"]}
    assert whole == {"and": [{"in": [{"var": "x"}, ["a"]]}, share]}


def test_a_branch_is_found_and_taken_out_wherever_people_moved_it():
    """Nested below another rule, or among the branches of one `if`; the others stay as they stand."""
    ours, theirs = with_first(None, "ours", "on"), {"if": ["theirs", "off"]}
    nested = with_first(ours, "theirs", "off")
    flat = {"if": ["a", 1, "ours", "on", "b", 2, "else"]}
    assert branches(nested) == [("theirs", "off"), ("ours", "on")]
    assert without(nested, 1) == {"if": ["theirs", "off", None]}
    assert without(flat, 1) == {"if": ["a", 1, "b", 2, "else"]}
    assert with_changed(flat, 1, "ours", "half") == {"if": ["a", 1, "ours", "half", "b", 2, "else"]}
    assert without(with_first(theirs, "ours", "on"), 0) == theirs
    assert without(ours, 0) is None


def test_a_wrong_option_is_named(adapter):
    """What belongs to a server has no place in a file's section."""
    for options, key in (({}, "file"), ({"file": "f.json", "ca_file": "x"}, "ca_file")):
        with pytest.raises(Exception, match=f"key `{key}`"):
            adapter(backend="flagd", **options)
