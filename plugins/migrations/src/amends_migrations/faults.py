"""What the parts of this adapter tell one another about moves that cannot be made."""

from __future__ import annotations


class Unfit(Exception):
    """Files or database do not allow what was asked; nothing changed. `code` is a short word, the text says why."""

    def __init__(self, detail: str, *, code: str) -> None:
        super().__init__(detail)
        self.code = code


class Held(Exception):
    """Another migration is at work on the database; the text names it."""


class BrokenPromise(Exception):
    """The move ended without an error, and the database is not as it should be."""


def said(error: BaseException) -> str:
    """The driver's own words, without the wrapping and the statement that SQLAlchemy adds."""
    return " ".join(str(getattr(error, "orig", None) or error).split())
