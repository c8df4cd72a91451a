"""The child that runs Alembic: one request, one answer, JSON lines.

Alembic is not safe for threads of one process, and a migration may hang or kill its process: neither may happen to
the engine. What migrations print goes to standard error; the answer has a descriptor of its own.

Requests (`op`): `plan` reads and rehearses; `move` locks, looks again, says `ready`, waits for `go`, and moves;
`drill` does and undoes on a full copy. Answers: `{"ok": …}`, `{"unfit": code, "detail": …}` (nothing changed), or
`{"failed": …}` (it broke off: look).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from amends_migrations import rehearsal, scripts
from amends_migrations.delta import Image, judge
from amends_migrations.faults import BrokenPromise, Held, Unfit, said
from amends_migrations.notes import Note
from amends_migrations.scripts import Step
from amends_migrations.target import Snapshot, Target, target_of


def main() -> None:
    """Serve the one request on standard input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    for folder in reversed(request["python_path"]):
        sys.path.insert(0, folder)
    serve = {"plan": plan, "move": move, "drill": drill}[request["op"]]

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        say({"ok": serve(target_of(request["url"], request["version_table"]), request, say)})
    except Unfit as unfit:
        say({"unfit": unfit.code, "detail": str(unfit)})
    except Held as held:
        say({"unfit": "locked", "detail": str(held)})
    except Exception as error:  # noqa: BLE001 - migrations raise anything; the engine looks at the database
        say({"failed": f"{type(error).__name__}: {said(error)}"})


def plan(target: Target, request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """What a move to `to` would run and change. Raises `Unfit` if it has no inverse, or one that loses something."""
    del say
    up, versions = request["up"], Path(request["scripts"]) / "versions"
    now = target.look()
    if len(now.revisions) > 1:
        raise Unfit(f"the database has {len(now.revisions)} heads: {', '.join(now.revisions)}", code="many_heads")
    current = "".join(now.revisions)
    aim = scripts.resolve(versions, request["to"])
    steps = _steps(versions, current, aim, up=up)
    answer: dict[str, Any] = {
        "kind": target.kind,
        "from": current,
        "to": aim,
        "steps": [step.facts() for step in steps],
        "subject": [step.facts() for step in steps or scripts.single(versions, aim)],
        "before": {"fingerprint": now.fingerprint, "items": {}},
        "after": {"fingerprint": now.fingerprint, "items": {}},
    }
    if not steps:
        return answer
    scripts.require_code(steps, "downgrade" if up else "upgrade")
    table = request["version_table"]
    image, after = rehearsal.there_and_back(target, steps, up=up, version_table=table, leftovers=now.leftovers)
    _refuse_loss(target, image.dropped, {})
    answer["before"]["items"] = dict(image.before)
    answer["after"] = {"fingerprint": after.fingerprint, "items": dict(image.after)}
    return answer


def move(target: Target, request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Carry out recorded steps under the lock, if the database still is as it was when they were recorded."""
    up, table = request["up"], request["version_table"]
    steps = [Step(**facts) for facts in request["steps"]]
    image = Image(request["from"], request["to"], request["before"], request["after"])
    note = Note(Path(request["note"]) if request["note"] else None)
    with target.migrating(
        marker=request["marker"],
        wait_seconds=request["lock_wait_seconds"],
        limit_seconds=request["limit_seconds"],
        note=note,
    ) as connection:
        start = target.look()
        judgement = judge(image, start.revisions, start.items, start.leftovers)
        if judgement.seen != "absent":
            raise Unfit(f"the database is not as it was: {judgement.detail}", code="moved")
        _refuse_loss(target, image.dropped, request["rows"])
        rehearsal.require_way(target, steps, image, up=up, version_table=table)
        say({"ready": True})
        if sys.stdin.readline().strip() != "go":
            raise Unfit("no longer wanted", code="not_wanted")
        try:
            scripts.run(connection, steps, up=up, version_table=table)
        except Exception as error:
            # A session that was lost may still be committing; only one that answers has nothing under way.
            if not connection.invalidated and _same(start, target.look()):
                raise Unfit(
                    f"the migration failed and left nothing behind: {said(error)}", code="failed_clean"
                ) from error
            raise
        end = target.look(image.inverse.dropped)
        judgement = judge(image, end.revisions, end.items, end.leftovers)
        if judgement.seen != "applied":
            raise BrokenPromise(f"the migration ended without an error, but {judgement.detail}")
        return {"revisions": list(end.revisions), "fingerprint": end.fingerprint, "rows": dict(end.rows)}


def drill(target: Target, request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Do, verify, undo, verify on a full copy. Raises `Unfit` with what did not hold."""
    planned = plan(target, request, say)
    table, up = request["version_table"], request["up"]
    steps = [Step(**facts) for facts in planned["steps"]]
    if not steps:
        raise Unfit(f"nothing to drill: the database is at `{planned['to'] or 'base'}` already", code="nothing_to_do")
    image = Image(planned["from"], planned["to"], planned["before"]["items"], planned["after"]["items"])
    with target.full_copy() as copy:
        before = copy.look()
        rows_before = copy.rows_digest(before)
        _drilled("do", lambda: rehearsal.go(copy, steps, up=up, version_table=table))
        done = copy.look()
        _require(
            judge(image, done.revisions, done.items).seen == "applied", "after `do` the schema is not as rehearsed"
        )
        _drilled("undo", lambda: rehearsal.go(copy, steps, up=not up, version_table=table))
        undone = copy.look()
        _require(undone.revisions == before.revisions, "after `undo` the revision is not as before")
        _require(undone.fingerprint == before.fingerprint, "after `undo` the schema is not as before")
        _require(copy.rows_digest(before) == rows_before, "after `undo` rows are not as before")
    return {
        "kind": target.kind,
        "steps": planned["steps"],
        "parts": len(image.after),
        "fingerprint": before.fingerprint,
    }


def _same(one: Snapshot, other: Snapshot) -> bool:
    return (one.revisions, one.fingerprint) == (other.revisions, other.fingerprint)


def _steps(versions: Path, current: str, target: str, *, up: bool) -> list[Step]:
    if current == target:
        return []
    return scripts.between(versions, target, current) if up else scripts.between(versions, current, target)


def _refuse_loss(target: Target, dropped: Sequence[str], known: dict[str, int]) -> None:
    """Rows beyond those that the action itself brought (`known`) are somebody's data."""
    if not dropped:
        return
    rows = target.look(dropped).rows
    lost = {name: count for name, count in rows.items() if count > known.get(name, 0)}
    if lost:
        text = ", ".join(f"{count} rows of `{name}`" for name, count in sorted(lost.items()))
        raise Unfit(f"it would lose data: {text}", code="data_loss")


def _drilled(what: str, act: Callable[[], None]) -> None:
    try:
        act()
    except Exception as error:
        raise Unfit(f"`{what}` failed on a full copy: {said(error)}", code="drill_failed") from error


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, not a switch
    if not holds:
        raise Unfit(otherwise, code="drill_failed")
