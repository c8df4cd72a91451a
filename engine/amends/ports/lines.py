"""An event as one line of JSON: what exports and golden ledgers are made of. Nothing is left out, so chains can be
checked by anybody.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from amends.core.errors import InvalidInput
from amends.ports.journal import EventRecord, StoredEvent


def to_line(stored: StoredEvent) -> str:
    """The columns by name, as stored; the payload stays the text that was digested. No newline."""
    columns = {"seq": stored.seq, **asdict(stored.event), "prev_hash": stored.prev_hash, "hash": stored.hash}
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":"))


def from_line(line: str) -> StoredEvent:
    """The event of a line, unchecked. Raises `InvalidInput` for a line that is none."""
    try:
        columns = json.loads(line)
        seq, prev_hash, link = columns.pop("seq"), columns.pop("prev_hash"), columns.pop("hash")
        return StoredEvent(seq, EventRecord(**columns), prev_hash, link)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"`{line[:60]}` is no event: {error}", hint="use what `amends ledger export` wrote"
        ) from error
