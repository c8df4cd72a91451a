"""Trying a migration where it can hurt nobody: on an empty copy of the schema."""

from __future__ import annotations

from collections.abc import Sequence

from amends_migrations import scripts
from amends_migrations.delta import Image, difference
from amends_migrations.faults import Unfit, said
from amends_migrations.scripts import Step
from amends_migrations.target import Snapshot, Target


def go(target: Target, steps: Sequence[Step], *, up: bool, version_table: str) -> None:
    """Run the steps on a copy. Raises whatever they raise."""
    with target.writing() as connection:
        scripts.run(connection, steps, up=up, version_table=version_table)


def there_and_back(
    target: Target, steps: Sequence[Step], *, up: bool, version_table: str, leftovers: tuple[str, ...]
) -> tuple[Image, Snapshot]:
    """Run the steps and their inverse on an empty copy of the database as it is now: the image of the steps, and the
    schema they lead to. Raises `Unfit` naming what stands in the way (something of `leftovers`, perhaps), or what the
    inverse does not restore.
    """
    with target.empty_copy() as copy:
        before, after = _attempt(copy, steps, up=up, version_table=version_table, leftovers=leftovers)
        try:
            go(copy, steps, up=not up, version_table=version_table)
        except Exception as error:
            raise Unfit(f"its inverse fails: {said(error)}", code="no_inverse") from error
        restored = copy.look()
    unlike, _ = difference(before.items, restored.items)
    if unlike:
        raise Unfit(f"its inverse does not restore: {', '.join(sorted(unlike))}", code="no_inverse")
    image = Image(",".join(before.revisions), ",".join(after.revisions), *difference(before.items, after.items))
    return image, after


def require_way(target: Target, steps: Sequence[Step], image: Image, *, up: bool, version_table: str) -> None:
    """Run the steps on an empty copy of the database as it is now. Raises `Unfit` naming what stands in the way, or
    what would go along with them that is not in `image`: an index on a column, a view dropped by `CASCADE`.
    """
    with target.empty_copy() as copy:
        before, after = _attempt(copy, steps, up=up, version_table=version_table, leftovers=())
    also = sorted(difference(before.items, after.items)[0].keys() - image.before.keys())
    if also:
        raise Unfit(f"it would change more than it did when it was recorded: {', '.join(also)}", code="blocked")


def _attempt(
    copy: Target, steps: Sequence[Step], *, up: bool, version_table: str, leftovers: tuple[str, ...]
) -> tuple[Snapshot, Snapshot]:
    """The copy before and after the steps."""
    before, broken_before = copy.look(), copy.broken()
    try:
        go(copy, steps, up=up, version_table=version_table)
    except Exception as error:
        detail = f"tried on an empty copy, it fails: {said(error)}"
        if leftovers:
            detail += f"; left half-made by an earlier migration: {', '.join(leftovers)}"
        raise Unfit(detail, code="blocked") from error
    news = {name: why for name, why in copy.broken().items() if name not in broken_before}
    if news:
        raise Unfit(
            "it would break " + "; ".join(f"{name} ({why})" for name, why in sorted(news.items())), code="blocked"
        )
    after = copy.look()
    in_the_way = [name for name in leftovers if before.items.get(name) != after.items.get(name)]
    if in_the_way:
        raise Unfit(
            f"left half-made by an earlier migration, and in the way: {', '.join(in_the_way)}; drop it first",
            code="leftovers",
        )
    return before, after
