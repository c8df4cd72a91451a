"""The things a system keeps, as documents in collections, with every earlier version.

Reads go through a `View`, which is how a told fault makes a list lag or a GET lie without touching what is true.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from amends.testing.loopback.store import Rows
from amends.testing.loopback.wire import Doc, now


@dataclass(frozen=True, slots=True)
class View:
    """How reads are distorted. The default is the truth.

    `lag_s` hides objects younger than that from lists, and with `lag_by_id` from reads by id too. `says`: `absent`
    hides everything, `present` shows objects as they were before their last undo, `stale` one version back.
    """

    lag_s: float = 0.0
    lag_by_id: bool = False
    says: Literal["truth", "absent", "present", "stale"] = "truth"


TRUTH = View()


class Objects:
    """Documents by (collection, id), inside one transaction."""

    def __init__(self, rows: Rows, view: View = TRUTH) -> None:
        self._rows = rows
        self._view = view

    def get(self, collection: str, key: str) -> Doc | None:
        """The document as this request is shown it, or None."""
        row = self._row(collection, key)
        return None if row is None else self._shown(collection, row, by_id=True)

    def peek(self, collection: str, key: str) -> Doc | None:
        """The document as it truly is, whatever reads are told to say."""
        row = self._row(collection, key)
        return None if row is None or row["removed"] else json.loads(row["doc"])

    def all(self, collection: str) -> list[Doc]:
        """Every document of a collection as this request is shown it, oldest first."""
        rows = self._rows.all("SELECT * FROM objects WHERE collection = ? ORDER BY ord", (collection,))
        shown = (self._shown(collection, row, by_id=False) for row in rows)
        return [doc for doc in shown if doc is not None]

    def truth(self, collection: str) -> list[Doc]:
        """Every document of a collection as it truly is, oldest first."""
        rows = self._rows.all(
            "SELECT doc FROM objects WHERE collection = ? AND NOT removed ORDER BY ord", (collection,)
        )
        return [json.loads(row["doc"]) for row in rows]

    def last(self, collection: str, key: str) -> Doc | None:
        """The newest content of a document, also after its removal."""
        return self._version(collection, key, "AND doc != 'null' ORDER BY ord DESC LIMIT 1")

    def indexed(self, collection: str, lag_s: float) -> list[Doc]:
        """A collection as a search index shows it: every document in the version of `lag_s` seconds ago."""
        if self._view.says != "truth":
            return self.all(collection)
        rows = self._rows.all(
            "SELECT doc FROM object_versions WHERE ord IN (SELECT max(ord) FROM object_versions"
            " WHERE collection = ? AND ts <= ? GROUP BY id) AND doc != 'null' ORDER BY ord",
            (collection, now() - max(lag_s, self._view.lag_s)),
        )
        return [json.loads(row["doc"]) for row in rows]

    def put(self, collection: str, key: str, doc: Doc, *, undo: bool = False) -> Doc:
        """Store a document; `undo` marks the version that takes an effect back. Returns the document."""
        text = json.dumps(doc)
        ts = now()
        self._rows.run(
            "INSERT INTO objects (collection, id, created_ts, updated_ts, removed, doc) VALUES (?, ?, ?, ?, 0, ?)"
            " ON CONFLICT (collection, id)"
            " DO UPDATE SET updated_ts = excluded.updated_ts, removed = 0, doc = excluded.doc",
            (collection, key, ts, ts, text),
        )
        self._remember(collection, key, undo=undo, text=text)
        return doc

    def remove(self, collection: str, key: str) -> None:
        """Take a document away. Its versions stay, for reads that are told to lie."""
        self._rows.run(
            "UPDATE objects SET removed = 1, updated_ts = ? WHERE collection = ? AND id = ?", (now(), collection, key)
        )
        self._remember(collection, key, undo=True, text="null")

    def _remember(self, collection: str, key: str, *, undo: bool, text: str) -> None:
        self._rows.run(
            "INSERT INTO object_versions (collection, id, ts, undo, doc) VALUES (?, ?, ?, ?, ?)",
            (collection, key, now(), undo, text),
        )

    def _row(self, collection: str, key: str) -> Doc | None:
        return self._rows.first("SELECT * FROM objects WHERE collection = ? AND id = ?", (collection, key))

    def _shown(self, collection: str, row: Doc, *, by_id: bool) -> Doc | None:
        view = self._view
        if view.says == "absent":
            return None
        if view.says == "present":
            return self._version(collection, row["id"], "AND NOT undo ORDER BY ord DESC LIMIT 1")
        if view.says == "stale":
            return self._version(collection, row["id"], "ORDER BY ord DESC LIMIT 1 OFFSET 1")
        hidden = view.lag_s > now() - row["created_ts"] and (view.lag_by_id or not by_id)
        return None if hidden or row["removed"] else json.loads(row["doc"])

    def _version(self, collection: str, key: str, which: str) -> Doc | None:
        sql = f"SELECT doc FROM object_versions WHERE collection = ? AND id = ? {which}"  # noqa: S608 - literals of this module
        row = self._rows.first(sql, (collection, key))
        return None if row is None else json.loads(row["doc"])
