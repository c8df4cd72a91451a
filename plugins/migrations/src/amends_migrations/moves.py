"""`migrations.upgrade` and `migrations.downgrade`: one class, two directions.

`prepare` records the files of the path with both sides of what they change, as tried on an empty copy; `do` and
`undo` run the recorded text under the database's lock; `probe` compares revision *and* schema with both sides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from amends_migrations.delta import Image, Judgement, concerns, judge
from amends_migrations.faults import Unfit, said
from amends_migrations.notes import Note, Noted
from amends_migrations.options import MigrationOptions
from amends_migrations.target import Snapshot, Target, TransactionStatus, target_of

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
        content = _digest(planned["kind"], planned["subject"])
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
        note = self._options.note(call.action_id)
        earlier = Note(note).read()
        try:
            result = self._move(call, image, up=self._up, rows={}, marker=call.marker, note=str(note))
        except Refused as error:
            if error.code == "moved" and self._may_be_ours(call, earlier):
                raise child.BrokeOff(f"{error}; an earlier attempt of this action may have moved it") from error
            raise
        return _done(effect | {"changed": True}, {"fingerprint": result["fingerprint"], "rows": result["rows"]})

    def probe(self, question: Question) -> Observation:
        # The reader is imported late: SQLAlchemy costs a third of a second that `--help` need not pay.
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        image = _image(question)
        try:
            target = self._target(question)
            noted = Note(self._options.note(question.action_id)).read()
            statuses = target.statuses(noted.transactions)
            # First who is at work, then what is there: in mid-migration the schema says nothing.
            busy = target.busy(question.marker)
            if busy or "in progress" in statuses:
                return Observation(seen="inconclusive", detail=f"a migration is running: {busy or 'not yet committed'}")
            now = target.look(image.inverse.dropped)
        except (Refused, Unfit, OSError, SQLAlchemyError) as error:
            return Observation(seen="inconclusive", detail=f"the database cannot be read: {said(error)}")
        return _observed(
            image, now, _own(image, judge(image, now.revisions, now.items, now.leftovers), noted, statuses), question
        )

    def undo(self, call: Call) -> Receipt:
        image = _image(call)
        if image.unchanged:
            return Done(effect={"revision": image.before_revision or _BASE, "changed": False})
        marker = call.undo_marker
        result = self._move(call, image.inverse, up=not self._up, rows=_rows(call), marker=marker, note="")
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
        return _digest(drilled["kind"], drilled["steps"]), detail

    def _request(self, op: str, question: Question) -> dict[str, Any]:
        database = self._options.database(_args(question).database)
        return {
            "op": op,
            "up": self._up,
            "url": self._options.address(database, question.secret),
            "scripts": database.scripts,
            "version_table": database.version_table,
            "python_path": list(database.python_path),
            "lock_wait_seconds": database.lock_wait_seconds,
        }

    def _target(self, question: Question) -> Target:
        database = self._options.database(_args(question).database)
        return target_of(self._options.address(database, question.secret), database.version_table)

    def _may_be_ours(self, call: Call, noted: Noted) -> bool:
        """Whether what was noted before this attempt may have changed the database."""
        statuses = self._target(call).statuses(noted.transactions)
        return noted.outside or any(status != "aborted" for status in statuses)

    def _move(
        self, call: Call, image: Image, *, up: bool, rows: Mapping[str, int], marker: str, note: str
    ) -> dict[str, Any]:
        request = self._request("move", call) | {
            "marker": marker,
            "note": note,
            "limit_seconds": call.timeout_seconds,
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


def _own(image: Image, judgement: Judgement, noted: Noted, statuses: Sequence[TransactionStatus]) -> Judgement:
    """The judgement, less what is somebody else's: at the revision without one of our transactions committed (M-09)."""
    ours_undone = bool(statuses) and not noted.outside and all(status == "aborted" for status in statuses)
    if judgement.seen == "applied" and ours_undone and not image.unchanged:
        detail = f"{judgement.detail}, but by somebody else: our transaction was rolled back"
        return Judgement("absent", judgement.extent, (), detail)
    if judgement.seen == "absent" and "committed" in statuses:
        return replace(judgement, detail=f"{judgement.detail}: our transaction was committed, and taken back since")
    return judgement


def _observed(image: Image, now: Snapshot, judgement: Judgement, question: Question) -> Observation:
    seen, detail = judgement.seen, judgement.detail
    if image.unchanged and seen != "diverged":
        seen, detail = "applied", "the database was there already"
    known = _rows(question)
    at_risk = sorted(name for name, count in now.rows.items() if count > known.get(name, 0))
    parts = cast("Json", list(judgement.parts))
    return Observation(
        seen=seen,
        state={
            "revision": ",".join(now.revisions) or _BASE,
            "changed": not image.unchanged,
            "extent": judgement.extent,
            "data_at_risk": bool(at_risk),
            "at_risk": cast("Json", at_risk),
            "parts": parts,
            "leftovers": cast("Json", [name for name in now.leftovers if concerns(image, name)]),
            "fingerprint": now.fingerprint,
            "fingerprint_restored": now.fingerprint == question.before.get("fingerprint"),
            "detail": detail,
        },
        effect={"revision": image.after_revision or _BASE, "parts": parts},
        reference=(image.after_revision or _BASE) if seen == "applied" else "",
        parts=judgement.parts,
        detail=detail,
    )


def _rows(question: Question) -> dict[str, int]:
    """Rows the migration itself brought, counted when it was done; unknown after a lost answer, then none."""
    rows = question.after.get("rows")
    if not isinstance(rows, dict):
        return {}
    return {name: count for name, count in rows.items() if isinstance(count, int)}


def _done(effect: dict[str, Json], after: dict[str, Json]) -> Done:
    return Done(effect=effect, output=effect, reference=str(effect["revision"]), after=after)


def _digest(kind: str, steps: list[dict[str, str]]) -> str:
    """What was shown and drilled: kind of database, order and text of the files."""
    facts = [kind, [[step["revision"], step["down_revision"], step["text"]] for step in steps]]
    return f"sha256:{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"
