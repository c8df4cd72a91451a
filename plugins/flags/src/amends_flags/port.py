"""The port: what the flag capabilities need of a place where flags live. Two places fill it: `unleash` and `flagd`.

A place knows one project and one environment. The flag is the one that the question's `feature` names.

Reads raise `Unreadable` (of `amends.spi.http`) if they give no usable answer; a flag that is archived is not there.
Writes make exactly one change and raise `NotSent` if nothing left, `Refused` if it was declined, and anything else if
that is not known. `revision` is the one that the caller decided on: where the flag stands at another, a write raises
`NotSent` with the code `changed_since_prepared`. On Unleash that look and the change are two requests, in a file they
are one step under its lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from amends.spi import Call, DoctorFinding, Json, Question
from amends_flags.images import Ending, Flag, Origin, Switched
from amends_flags.options import FlagOptions


class FlagPlace(Protocol):
    """One project and one environment of a place where flags live. Stateless; thread-safe."""

    @property
    def options(self) -> FlagOptions:
        """The adapter's options."""
        ...

    # --- reads ------------------------------------------------------------------------------------------------

    def flag(self, question: Question) -> Flag | None:
        """The flag in our environment; None if there is none."""
        ...

    def switched(self, question: Question) -> Switched:
        """What has come of our switch since the before-image. Strategies that others added are not among it."""
        ...

    def origin(self, question: Question) -> Origin | None:
        """Who made the flag; None if there is none."""
        ...

    def ending(self, question: Question) -> tuple[Ending, str]:
        """Whether the flag is there, archived or deleted, and by whom as far as it is known."""
        ...

    # --- what arguments become here -----------------------------------------------------------------------------

    def rule(self, question: Question) -> dict[str, Json]:
        """The content of the cohort's strategy. `NotSent` for what this place cannot express."""
        ...

    def variants(self, question: Question) -> list[Json]:
        """The variants as a strategy's content holds them. `NotSent` for what this place cannot express."""
        ...

    # --- writes -------------------------------------------------------------------------------------------------

    def switch(self, call: Call, *, on: bool, revision: Json) -> None:
        """Turn the flag on or off in our environment."""
        ...

    def add_strategy(self, call: Call, content: Mapping[str, Json], revision: Json) -> str:
        """Add a strategy and return its id."""
        ...

    def replace_strategy(self, call: Call, strategy: str, content: Mapping[str, Json], revision: Json) -> None:
        """Replace a strategy's whole content."""
        ...

    def remove_strategy(self, call: Call, strategy: str, revision: Json) -> None:
        """Remove a strategy. One that is gone already is no error."""
        ...

    def set_variants(self, call: Call, strategy: str, variants: list[Json], revision: Json) -> None:
        """Replace a strategy's variants, and nothing else of it."""
        ...

    def create(self, call: Call) -> bool:
        """Create the flag, off everywhere, with our marker; False if the name is taken."""
        ...

    def discard(self, call: Call) -> None:
        """Take a created flag away, as `options.undo_of_create` says."""
        ...

    def archive(self, call: Call, revision: Json) -> None:
        """Archive the flag."""
        ...

    def revive(self, call: Call) -> None:
        """Bring an archived flag back."""
        ...

    # --- `amends doctor` ----------------------------------------------------------------------------------------

    def examine(self) -> list[DoctorFinding]:
        """Whether the place can be read and is the one that is meant. Read-only; shows no secret."""
        ...
