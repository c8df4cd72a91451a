"""What agents may pass: strict models, refused before anything is read or sent."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Move(BaseModel):
    """The database's configured name, and the revision to be at: an id, `head`, or (down only) `base`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    database: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=100)]
    to: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.]+$", max_length=100)]
