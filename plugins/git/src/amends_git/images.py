"""What a ref says about an action: before-image, after-image, and everything in between (rule 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amends.spi import Call, Done, Json, Observation, Question
from amends.spi.process import TimeLimit
from amends_git.command import GitFailed
from amends_git.workspace import Workspace

REVERTS = "Amends-Reverts"
ACTION = "Amends-Action"


@dataclass(frozen=True, slots=True)
class Image:
    """One ref of one action: what it was before, what the action makes it. An empty id means "no such ref"."""

    ref: str
    before: str
    intended: str

    @classmethod
    def of(cls, question: Question, ref: str) -> Image:
        """The images recorded with the intent."""
        return cls(ref, _text(question.before, "ref"), _text(question.allocated, "commit"))

    @property
    def unchanged(self) -> bool:
        """True if the ref already was as wanted: nothing is sent, and there is nothing to undo."""
        return self.before == self.intended

    def done(self, **effect: Json) -> Done:
        """The receipt of a ref that is as wanted."""
        facts: dict[str, Json] = {"ref": self.ref, "commit": self.subject, **effect}
        return Done(effect=facts, output=facts, reference=self.subject, after={"ref": self.intended})

    @property
    def subject(self) -> str:
        """The commit or tag the action is about: what it set, or what it removed."""
        return self.intended or self.before


def observe(work: Workspace, image: Image, now: str, *, shared: bool) -> Observation:
    """What `now` (the ref's value, empty: none) says about the action. Never raises: what cannot be told is
    `diverged`, where nobody overwrites anything.
    """
    if now == image.intended:
        return _seen("applied", image, now, relation="ours", shared=shared)
    if now == image.before:
        return _seen("absent", image, now, relation="before", shared=shared)
    if not now:
        return _seen("diverged", image, now, relation="gone", shared=shared, detail=f"`{image.ref}` is gone")
    relation = _relation(work, image, now)
    detail = f"`{image.ref}` is at {now}, which is {relation.replace('_', ' ')} {image.intended or 'nothing'}"
    if relation == "reverted":
        return _seen("absent", image, now, relation=relation, shared=shared, detail=f"reverted on `{image.ref}`")
    seen_built_on = relation == "built_on" and shared
    return _seen(
        "applied" if seen_built_on else "diverged", image, now, relation=relation, shared=shared, detail=detail
    )


def _relation(work: Workspace, image: Image, now: str) -> str:
    if not image.intended:
        return "made_again_after"
    try:
        work.bring(now, history=True)
        work.bring(image.intended, history=True)
        if not work.contains(now, image.intended):
            return "unrelated_to"
        found = work.run(
            "log", "--format=%H", "--fixed-strings", f"--grep={REVERTS}: {image.intended}", f"{image.intended}..{now}"
        )
    except (GitFailed, TimeLimit, OSError):
        return "not_comparable_with"
    return "reverted" if found else "built_on"


def _seen(seen: str, image: Image, now: str, *, relation: str, shared: bool, detail: str = "") -> Observation:
    state: dict[str, Json] = {"ref": now, "relation": relation, "shared": shared, "changed": not image.unchanged}
    applied = seen == "applied"
    return Observation.model_validate(
        {
            "seen": seen,
            "state": state,
            "effect": {"ref": image.ref, "commit": image.subject} if applied else {},
            "reference": image.subject if applied else "",
            "detail": detail,
        }
    )


def _text(facts: Mapping[str, Json], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""


def note_of(call: Call) -> str:
    """The marker an undo leaves in what it creates."""
    return call.undo_marker or call.marker
