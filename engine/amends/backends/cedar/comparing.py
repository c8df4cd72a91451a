"""What is different between two sets of policies: by id, and by meaning."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from amends.backends.cedar import text
from amends.backends.cedar.compile import GENERATED, Snapshot
from amends.backends.cedar.meaning import meaning_of
from amends.backends.cedar.tree import Policy

# `reworded`: written otherwise (layout, `@reason`), with the same meaning; `renamed`: the same under another id.
Change = Literal["added", "removed", "changed", "renamed", "reworded"]
CHANGES: tuple[Change, ...] = ("added", "removed", "changed", "renamed", "reworded")


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One policy that differs. `lines` is a unified diff of its text, without a head."""

    change: Change
    policy_id: str
    before_id: str  # of a renamed one
    effect: str
    file: str
    line: int
    lines: tuple[str, ...]

    @property
    def matters(self) -> bool:
        """True if a decision could come out otherwise, or under another id."""
        return self.change != "reworded"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that differs. `parts` names what else changed its meaning: `schema`, `windows`."""

    policies: tuple[PolicyChange, ...]
    parts: tuple[str, ...]
    same_sources: bool
    same_meaning: bool


def compare(before: Snapshot, after: Snapshot) -> Comparison:
    """How `after` differs from `before`, changes in the order of `CHANGES`, then of ids."""
    old, new = meaning_of(before), meaning_of(after)
    olds = {policy.id: policy for policy in (*before.policies, *before.shadow)}
    news = {policy.id: policy for policy in (*after.policies, *after.shadow)}
    changes = _renamed(old.policies, new.policies)
    found = [_change("renamed", olds[a], news[b], before, after) for a, b in changes.items()]
    gone, come = set(changes), set(changes.values())
    for id_ in sorted(olds.keys() | news.keys()):
        if id_ in gone or id_ in come:
            continue
        a, b = olds.get(id_), news.get(id_)
        if a is None or b is None:
            found.append(_change("removed" if b is None else "added", a, b, before, after))
        elif old.policies[id_] != new.policies[id_]:
            found.append(_change("changed", a, b, before, after))
        elif source_of(a, before) != source_of(b, after):
            found.append(_change("reworded", a, b, before, after))
    return Comparison(
        policies=tuple(sorted(found, key=lambda change: (CHANGES.index(change.change), change.policy_id))),
        parts=tuple(sorted(name for name in old.parts if old.parts[name] != new.parts.get(name))),
        same_sources=_own(before) == _own(after),
        same_meaning=old.digest == new.digest,
    )


def _renamed(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Old id -> new id of policies that mean the same; only where one left and one came, so there is no doubt."""
    left: dict[str, list[str]] = {}
    for id_ in sorted(old.keys() - new.keys()):
        left.setdefault(old[id_], []).append(id_)
    came: dict[str, list[str]] = {}
    for id_ in sorted(new.keys() - old.keys()):
        came.setdefault(new[id_], []).append(id_)
    return {ids[0]: came[digest][0] for digest, ids in left.items() if len(ids) == 1 == len(came.get(digest, ()))}


def _change(change: Change, before: Policy | None, after: Policy | None, old: Snapshot, new: Snapshot) -> PolicyChange:
    shown = after or before
    if shown is None:
        raise ValueError("a change of no policy")
    lines = difflib.unified_diff(
        source_of(before, old).splitlines() if before else [],
        source_of(after, new).splitlines() if after else [],
        lineterm="",
        n=2,
    )
    before_id = before.id if before and change == "renamed" else ""
    told = tuple(line for line in lines if not line.startswith(("---", "+++")))
    return PolicyChange(change, shown.id, before_id, shown.effect, shown.file, shown.line, told)


def source_of(policy: Policy, snapshot: Snapshot) -> str:
    """The policy as its author wrote it."""
    written = list(text.statements(snapshot.sources[policy.file]))
    return written[policy.number].text


def _own(snapshot: Snapshot) -> dict[str, str]:
    """What people wrote."""
    return {file: source for file, source in snapshot.sources.items() if not file.startswith(GENERATED)}
