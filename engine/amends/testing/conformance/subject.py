"""What an author says about one capability; everything else in the matrix follows from it and from the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

from amends.core.canonical import Json

S = TypeVar("S")

Args: TypeAlias = Mapping[str, Json]
Ending: TypeAlias = Literal["done", "failed", "gone"]
ENDINGS: tuple[Ending, ...] = ("done", "failed", "gone")


@dataclass(frozen=True, kw_only=True)
class Denial:
    """How this system says no: the answer that the kit gives in its place."""

    status: int = 403
    body: Json = field(default_factory=lambda: dict[str, Json](error="forbidden"))


@dataclass(frozen=True, kw_only=True)
class Subject(Generic[S]):
    """One capability under test, on a running system `S`.

    Needed: its name, fresh valid arguments, and a count of effects asked of the system itself. The rest lets more of
    the matrix apply; what is left out is reported as not tried, with the reason.
    """

    capability: str
    args: Callable[[S, str], Args]
    """Fresh, valid arguments, told apart by a word (lower-case letters and digits) that no other test is given. Makes
    at the system what the call needs to exist before.
    """
    effects: Callable[[S, Args], int]
    """How many effects of these arguments exist now, asked at the system's own side, never through the adapter."""
    other: Callable[[Args], Args] | None = None
    """Other arguments of the same slot: the same intent in other words."""
    text: str = ""
    """The argument that takes free text: it is given Unicode, a long text, and a secret."""
    taken_away: Callable[[S, Args], None] | None = None
    """Somebody else takes the effect away."""
    edited: Callable[[S, Args], None] | None = None
    """Somebody else changes what the effect is about."""
    kept: Callable[[S, Args], bool] | None = None
    """Whether that change is still there."""
    crowd: Callable[[S, Args], None] | None = None
    """Make so many other things that a probe of one page misses the effect. Called before the call and again after it:
    some lists begin with the oldest, and some with the newest.
    """
    later: Mapping[Ending, Callable[[S, Args], None]] = field(default_factory=dict[Ending, Callable[[S, Args], None]])
    """For calls that are answered 202: make the operation of these arguments end so. Called before the call."""
    denial: Denial = Denial()
    takes_seconds: float = 1.0
    """No call takes as long on a busy machine: one that hears nothing for so long has been given up."""
    exempt: Mapping[str, str] = field(default_factory=dict[str, str])
    """Test name -> why it says nothing about this capability. Stands in the report."""

    def __str__(self) -> str:
        return self.capability
