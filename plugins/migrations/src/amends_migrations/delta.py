"""What a migration changes, and what a look at the database says about that (pure).

A delta is the items that differ between before and after; `None` stands for "not there".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Items: TypeAlias = Mapping[str, str | None]
Verdict: TypeAlias = Literal["applied", "absent", "diverged"]
Extent: TypeAlias = Literal["none", "all", "partial"]

_BATCH = "table:_alembic_tmp_"


@dataclass(frozen=True, slots=True)
class Image:
    """A database before and after one action, as far as the action touches it. A revision is empty for `base`."""

    before_revision: str
    after_revision: str
    before: Items
    after: Items

    @property
    def unchanged(self) -> bool:
        """True if the database already was as wanted."""
        return self.before_revision == self.after_revision

    @property
    def inverse(self) -> Image:
        """The images of taking it back."""
        return Image(self.after_revision, self.before_revision, self.after, self.before)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Tables and columns the action removes; a column of a removed table is not named again."""
        return dropped(self.before, self.after)


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Items, Items]:
    """The delta between two schemas, as its before and after side."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def dropped(before: Items, after: Items) -> tuple[str, ...]:
    """Tables and columns that are in `before` and not in `after`."""
    gone = [name for name, definition in before.items() if definition is not None and after.get(name) is None]
    tables = {name.removeprefix("table:") for name in gone if name.startswith("table:")}
    columns = [name for name in gone if name.startswith("column:")]
    kept = [name for name in columns if not any(name.startswith(f"column:{table}.") for table in tables)]
    return (*(f"table:{table}" for table in sorted(tables)), *sorted(kept))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one look says about an action. `extent` is about the schema alone: none, all or a part of the delta is
    there; `parts` names the items that are as after the action.
    """

    seen: Verdict
    extent: Extent
    parts: tuple[str, ...]
    detail: str


def judge(
    image: Image, revisions: tuple[str, ...], items: Mapping[str, str], leftovers: tuple[str, ...] = ()
) -> Judgement:
    """Compare revision *and* schema with both sides. Never a guess: a state that is neither wholly before nor wholly
    after is `diverged`, and so is one where a half-made object of the action was left behind.
    """
    version = ",".join(revisions)
    done = tuple(name for name, definition in image.after.items() if items.get(name) == definition)
    untouched = {name for name, definition in image.before.items() if items.get(name) == definition}
    left = [name for name in leftovers if concerns(image, name)]
    missing = [_named(name, leftovers) for name in sorted(set(image.after) - set(done))]
    changed = [_named(name, leftovers) for name in sorted(set(image.before) - untouched)]
    changed += [_named(name, leftovers) for name in left if name not in image.before]
    extent = _extent(version, image, whole=not missing and not left, none=not changed)
    if version == image.after_revision:
        if extent == "all":
            return Judgement("applied", extent, done, f"at `{_shown(version)}` with all {len(image.after)} parts")
        wrong = ", ".join([*missing, *(_named(name, leftovers) for name in left if name not in image.after)])
        detail = f"the version table says `{_shown(version)}`, but not as applied: {wrong}"
        return Judgement("diverged", extent, done, detail)
    if version == image.before_revision:
        if extent == "none":
            return Judgement("absent", extent, (), f"at `{_shown(version)}`, unchanged")
        detail = f"half applied: the version table says `{_shown(version)}`, but changed: {', '.join(changed)}"
        return Judgement("diverged", extent, done, detail)
    neither = f"neither `{_shown(image.before_revision)}` nor `{_shown(image.after_revision)}`"
    return Judgement("diverged", extent, done, f"at `{_shown(version)}`, {neither}")


def concerns(image: Image, leftover: str) -> bool:
    """Whether something half-made (an invalid index, a batch operation's table) is of a thing the action touches."""
    if leftover in image.after:
        return True
    if not leftover.startswith(_BATCH):
        return False
    table = leftover.removeprefix(_BATCH)
    # `kind:table`, or `kind:table.part`, or `kind:table:definition`
    touched = {re.split(r"[.:]", name.partition(":")[2], maxsplit=1)[0] for name in image.after}
    return table in touched or any(name.partition(":")[2] == table for name in image.after)


def _extent(version: str, image: Image, *, whole: bool, none: bool) -> Extent:
    if whole and none:  # the action changes data only: the version table alone can tell
        return "all" if version == image.after_revision else "none"
    if whole:
        return "all"
    return "none" if none else "partial"


def _named(name: str, leftovers: tuple[str, ...]) -> str:
    return f"{name} (left half-made)" if name in leftovers else name


def _shown(revision: str) -> str:
    return revision or "base"
