"""What a migration changes, and what a look at the database says about that (pure).

A delta is the items that differ between before and after; `None` stands for "not there".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Items: TypeAlias = Mapping[str, str | None]
Verdict: TypeAlias = Literal["applied", "absent", "diverged"]


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
    kept = [name for name in columns if name.removeprefix("column:").partition(".")[0] not in tables]
    return (*(f"table:{table}" for table in sorted(tables)), *sorted(kept))


def judge(image: Image, revisions: tuple[str, ...], items: Mapping[str, str]) -> tuple[Verdict, tuple[str, ...], str]:
    """Verdict, the names of items that are as after the action, and the reason in words. Never a guess: a state that
    is neither wholly before nor wholly after is `diverged`.
    """
    version = ",".join(revisions)
    done = tuple(name for name, definition in image.after.items() if items.get(name) == definition)
    untouched = [name for name, definition in image.before.items() if items.get(name) == definition]
    total = len(image.after)
    if version == image.after_revision:
        if len(done) == total:
            return "applied", done, f"at `{_shown(version)}` with all {total} parts"
        missing = ", ".join(sorted(set(image.after) - set(done)))
        return "diverged", done, f"the version table says `{_shown(version)}`, but not as applied: {missing}"
    if version == image.before_revision:
        if len(untouched) == total:
            return "absent", (), f"at `{_shown(version)}`, unchanged"
        changed = ", ".join(sorted(set(image.before) - set(untouched)))
        return "diverged", done, f"half applied: the version table says `{_shown(version)}`, but changed: {changed}"
    return (
        "diverged",
        done,
        f"at `{_shown(version)}`, neither `{_shown(image.before_revision)}` nor `{_shown(image.after_revision)}`",
    )


def _shown(revision: str) -> str:
    return revision or "base"
