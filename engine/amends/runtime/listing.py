"""Reading lists of stored rows of many runs: what is damaged in one of them hides none of the others (rule 16)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from amends.ports.journal import StoredRow

_Model = TypeVar("_Model", bound=BaseModel)


def readable(rows: Iterable[StoredRow], model: type[_Model]) -> tuple[_Model, ...]:
    """The rows that can be read back. The run of any other says so, and is quarantined, when it is looked at."""
    found: list[_Model] = []
    for row in rows:
        with contextlib.suppress(ValidationError):
            found.append(model.model_validate_json(row.body))
    return tuple(found)
