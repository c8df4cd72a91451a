"""`migrations.upgrade` and `migrations.downgrade`: one class, two directions.

`prepare` records the files of the path with both sides of what they change, as tried on an empty copy; `do` and
`undo` run the recorded text under the database's lock; `probe` compares revision *and* schema with both sides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from amends.spi import (
    Call,
    Capability,
    Contract,
    Done,
    Json,
    NotSent,
    Observation,
    Prepared,
    Question,
    Receipt,
    Refused,
)
from amends.spi.process import TimeLimit
from amends_migrations import child
from amends_migrations.arguments import Move
from amends_migrations.delta import Image, judge
from amends_migrations.lock import Held, require_free
from amends_migrations.options import MigrationOptions

_ENGINE = "sqlite3"  # what a drill certificate is about besides the files
_BASE = "base"


class MoveSchema(Capability):
    """A move of one database's schema. `up` is the direction of `do`; `undo` goes the other way."""

    arguments = Move

    def __init__(self, contract: Contract, options: MigrationOptions, *, up: bool) -> None:
        self.contract = contract
        self._options = options
        self._up = up

    def prepare(self, question: Question) -> Prepared:
        request = self._request("plan", question) | {"to": _args(question).to}
        try:
            planned = child.ask(request, timeout_seconds=question.timeout_seconds)
        except NotSent as error:
            raise Refused(str(error), code=error.code, again=True) from error
        content = _digest(planned["subject"])
        return Prepared(
            before={"revision": planned["from"], **planned["before"]},
            allocated={"revision": planned["to"], "steps": planned["steps"], **planned["after"]},
            input={"steps": len(planned["steps"])},
            content_digest=content,
            subject_digest=content,
        )

    def do(self, call: Call) -> Receipt:
        image = _image(call)
        effect: dict[str, Json] = {
            "revision": image.after_revision or _BASE,
            "parts": cast("Json", sorted(image.after)),
        }
        if image.unchanged:
            return _done(effect | {"changed": False}, {"fingerprint": call.before["fingerprint"]})
        result = self._move(call, image, up=self._up, rows={})
        return _done(effect | {"changed": True}, {"fingerprint": result["fingerprint"], "rows": result["rows"]})

    def probe(self, question: Question) -> Observation:
        # The reader is imported late: SQLAlchemy costs a third of a second that `--help` need not pay.
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        from amends_migrations import schema  # noqa: PLC0415

        image = _image(question)
        try:
            database = self._options.database(_args(question).database)
            file = self._options.file(database, question.secret)
            require_free(file)  # in mid-migration the schema says nothing
            with schema.reading(file) as connection:
                now = schema.snapshot(connection, database.version_table)
                rows = schema.occupied(connection, image.inverse.dropped)
        except (Held, Refused, OSError, SQLAlchemyError) as error:
            return Observation(seen="inconclusive", detail=f"the database cannot be read: {error}")
        seen, parts, detail = judge(image, now.revisions, now.items)
        if image.unchanged and seen != "diverged":
            seen, detail = "applied", "the database was there already"
        known = _rows(question)
        at_risk = sorted(name for name, count in rows.items() if count > known.get(name, 0))
        return Observation(
            seen=seen,
            state={
                "revision": ",".join(now.revisions) or _BASE,
                "changed": not image.unchanged,
                "data_at_risk": bool(at_risk),
                "at_risk": cast("Json", at_risk),
                "parts": cast("Json", list(parts)),
                "fingerprint": now.fingerprint,
                "fingerprint_restored": now.fingerprint == question.before.get("fingerprint"),
                "detail": detail,
            },
            effect={"revision": image.after_revision or _BASE, "parts": cast("Json", list(parts))},
            reference=(image.after_revision or _BASE) if seen == "applied" else "",
            parts=parts,
            detail=detail,
        )

    def undo(self, call: Call) -> Receipt:
        image = _image(call)
        if image.unchanged:
            return Done(effect={"revision": image.before_revision or _BASE, "changed": False})
        result = self._move(call, image.inverse, up=not self._up, rows=_rows(call))
        return _done({"revision": image.before_revision or _BASE}, {"fingerprint": result["fingerprint"]})

    def verify_undone(self, question: Question) -> Observation:
        observation = self.probe(question)
        if observation.seen == "applied" and _image(question).unchanged:
            return observation.model_copy(update={"seen": "absent", "detail": "the action changed nothing"})
        return observation

    def drill(self, question: Question) -> tuple[str, str]:
        request = self._request("drill", question) | {"to": _args(question).to}
        try:
            drilled = child.ask(request, timeout_seconds=question.timeout_seconds)
        except (NotSent, TimeLimit) as error:
            raise Refused(f"the drill did not run: {error}", code="drill_not_run", again=True) from error
        names = ", ".join(step["file"] for step in drilled["steps"])
        detail = f"done and undone on a full copy: {names}; {drilled['parts']} parts; fingerprint and rows restored"
        return _digest(drilled["steps"]), detail

    def _request(self, op: str, question: Question) -> dict[str, Any]:
        database = self._options.database(_args(question).database)
        return {
            "op": op,
            "up": self._up,
            "file": str(self._options.file(database, question.secret)),
            "scripts": database.scripts,
            "version_table": database.version_table,
            "python_path": list(database.python_path),
            "lock_wait_seconds": database.lock_wait_seconds,
        }

    def _move(self, call: Call, image: Image, *, up: bool, rows: Mapping[str, int]) -> dict[str, Any]:
        request = self._request("move", call) | {
            "up": up,
            "steps": call.allocated["steps"],
            "from": image.before_revision,
            "to": image.after_revision,
            "before": dict(image.before),
            "after": dict(image.after),
            "rows": dict(rows),
        }
        return child.carry_out(request, timeout_seconds=call.timeout_seconds, still_wanted=call.still_wanted)


def _args(question: Question) -> Move:
    return Move.model_validate(dict(question.args))


def _image(question: Question) -> Image:
    before, after = question.before, question.allocated
    return Image(
        str(before["revision"]),
        str(after["revision"]),
        cast("Mapping[str, str | None]", before["items"]),
        cast("Mapping[str, str | None]", after["items"]),
    )


def _rows(question: Question) -> dict[str, int]:
    """Rows the migration itself brought, counted when it was done; unknown after a lost answer, then none."""
    rows = question.after.get("rows")
    if not isinstance(rows, dict):
        return {}
    return {name: count for name, count in rows.items() if isinstance(count, int)}


def _done(effect: dict[str, Json], after: dict[str, Json]) -> Done:
    return Done(effect=effect, output=effect, reference=str(effect["revision"]), after=after)


def _digest(steps: list[dict[str, str]]) -> str:
    """What was shown and drilled: engine, order and text of the files."""
    facts = [_ENGINE, [[step["revision"], step["down_revision"], step["text"]] for step in steps]]
    return f"sha256:{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"
