"""What one look says about an action: none, all or a part of it, and never a guess."""

import pytest

from amends_migrations.delta import Image, concerns, dropped, judge

IMAGE = Image("r1", "r2", {"column:a.x": None, "index:ix": None}, {"column:a.x": "int", "index:ix": "on x"})


@pytest.mark.parametrize(
    ("version", "items", "seen", "extent", "said"),
    [
        ("r1", {}, "absent", "none", "unchanged"),
        ("r2", {"column:a.x": "int", "index:ix": "on x"}, "applied", "all", "all 2 parts"),
        ("r1", {"column:a.x": "int"}, "diverged", "partial", "changed: column:a.x"),
        ("r1", {"column:a.x": "int", "index:ix": "on x"}, "diverged", "all", "half applied"),
        ("r2", {"column:a.x": "int"}, "diverged", "partial", "not as applied: index:ix"),
        ("r2", {}, "diverged", "none", "not as applied"),
        ("r2", {"column:a.x": "int", "index:ix": "other"}, "diverged", "partial", "index:ix"),
        ("r3", {"column:a.x": "int", "index:ix": "on x"}, "diverged", "all", "neither `r1` nor `r2`"),
    ],
)
def test_revision_and_schema_both_count(version, items, seen, extent, said):
    """Only where both agree is the action there, or not there."""
    judgement = judge(IMAGE, (version,), items)
    assert (judgement.seen, judgement.extent, said in judgement.detail) == (seen, extent, True)


@pytest.mark.parametrize(("version", "seen", "extent"), [("r1", "absent", "none"), ("r2", "applied", "all")])
def test_version_table_decides_about_data_alone(version, seen, extent):
    """A migration without a trace in the schema is where the version table says it is."""
    judgement = judge(Image("r1", "r2", {}, {}), (version,), {"table:a": "x"})
    assert (judgement.seen, judgement.extent) == (seen, extent)


def test_half_made_object_of_the_action_is_named():
    """An invalid index of ours makes the state neither; one that nobody's delta names does not."""
    assert "index:ix (left half-made)" in judge(IMAGE, ("r1",), {"index:ix": "bad"}, ("index:ix",)).detail
    assert judge(IMAGE, ("r1",), {"index:iy": "bad"}, ("index:iy",)).seen == "absent"
    left = judge(IMAGE, ("r2",), dict(IMAGE.after), ("table:_alembic_tmp_a",))
    assert (left.seen, left.extent, "table:_alembic_tmp_a" in left.detail) == ("diverged", "partial", True)


@pytest.mark.parametrize(("left", "ours"), [("a", True), ("ab", False), ("x", False)])
def test_batch_table_belongs_to_the_table_it_was_to_replace(left, ours):
    """Names that only begin alike are others' business."""
    assert concerns(IMAGE, f"table:_alembic_tmp_{left}") is ours


def test_column_of_a_dropped_table_is_not_named_again():
    """Also where the table is in a schema; a column of another table is."""
    before = {"table:acc.line": "t", "column:acc.line.id": "i", "column:acc.liner.id": "i"}
    assert dropped(before, dict.fromkeys(before)) == ("table:acc.line", "column:acc.liner.id")
