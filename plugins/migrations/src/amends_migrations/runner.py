"""The child that runs Alembic: `python -m amends_migrations.runner`, one request, one answer, JSON lines.

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

from amends_migrations import rehearsal, schema, scripts
from amends_migrations.delta import Image, difference, judge
from amends_migrations.lock import Held, locked
from amends_migrations.schema import Snapshot
from amends_migrations.scripts import Step, Unfit


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
        say({"ok": serve(request, say)})
    except Unfit as unfit:
        say({"unfit": unfit.code, "detail": str(unfit)})
    except Held as held:
        say({"unfit": "locked", "detail": str(held)})
    except Exception as error:  # noqa: BLE001 - migrations raise anything; the engine looks at the database
        say({"failed": f"{type(error).__name__}: {getattr(error, 'orig', None) or error}"})


def plan(request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """What a move to `to` would run and change. Raises `Unfit` if it has no inverse, or one that loses something."""
    del say
    file, table, up = Path(request["file"]), request["version_table"], request["up"]
    versions = Path(request["scripts"]) / "versions"
    now = rehearsal.look(file, table)
    if len(now.revisions) > 1:
        raise Unfit(f"the database has {len(now.revisions)} heads: {', '.join(now.revisions)}", code="many_heads")
    current = "".join(now.revisions)
    target = scripts.resolve(versions, request["to"])
    steps = _steps(versions, current, target, up=up)
    answer: dict[str, Any] = {
        "from": current,
        "to": target,
        "steps": [step.facts() for step in steps],
        "subject": [step.facts() for step in steps or scripts.single(versions, target)],
        "before": {"fingerprint": now.fingerprint, "items": {}},
        "after": {"fingerprint": now.fingerprint, "items": {}},
    }
    if not steps:
        return answer
    scripts.require_code(steps, "downgrade" if up else "upgrade")
    after = rehearsal.attempt(file, steps, up=up, version_table=table)
    before_items, after_items = difference(now.items, after.items)
    image = Image(current, target, before_items, after_items)
    _refuse_loss(file, image.dropped, {})
    _refuse_bad_inverse(file, steps, now, up=up, version_table=table)
    answer["before"]["items"], answer["after"] = before_items, {"fingerprint": after.fingerprint, "items": after_items}
    return answer


def move(request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Carry out recorded steps under the lock, if the database still is as it was when they were recorded."""
    file, table, up = Path(request["file"]), request["version_table"], request["up"]
    steps = [Step(**facts) for facts in request["steps"]]
    image = Image(request["from"], request["to"], request["before"], request["after"])
    with locked(file, request["lock_wait_seconds"]):
        start = rehearsal.look(file, table)
        verdict, _, why = judge(image, start.revisions, start.items)
        if verdict != "absent":
            raise Unfit(f"the database is not as it was: {why}", code="moved")
        _refuse_loss(file, image.dropped, request["rows"])
        rehearsal.attempt(file, steps, up=up, version_table=table)
        say({"ready": True})
        if sys.stdin.readline().strip() != "go":
            raise Unfit("no longer wanted", code="not_wanted")
        try:
            rehearsal.go(file, steps, up=up, version_table=table)
        except Exception as error:
            end = rehearsal.look(file, table)
            if (end.revisions, end.fingerprint) == (start.revisions, start.fingerprint):
                raise Unfit(f"the migration failed and left nothing behind: {error}", code="failed_clean") from error
            raise
        end = rehearsal.look(file, table)
        with schema.reading(file) as connection:
            rows = schema.occupied(connection, image.inverse.dropped)
        return {"revisions": list(end.revisions), "fingerprint": end.fingerprint, "rows": rows}


def drill(request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Do, verify, undo, verify on a full copy. Raises `Unfit` with what did not hold."""
    planned = plan(request, say)
    table, up = request["version_table"], request["up"]
    steps = [Step(**facts) for facts in planned["steps"]]
    if not steps:
        raise Unfit(f"nothing to drill: the database is at `{planned['to'] or 'base'}` already", code="nothing_to_do")
    image = Image(planned["from"], planned["to"], planned["before"]["items"], planned["after"]["items"])
    with rehearsal.full_copy(Path(request["file"])) as copy:
        before = rehearsal.look(copy, table)
        rows_before = rehearsal.rows_digest(copy, before)
        _drilled("do", lambda: rehearsal.go(copy, steps, up=up, version_table=table))
        done = rehearsal.look(copy, table)
        _require(judge(image, done.revisions, done.items)[0] == "applied", "after `do` the schema is not as rehearsed")
        _drilled("undo", lambda: rehearsal.go(copy, steps, up=not up, version_table=table))
        undone = rehearsal.look(copy, table)
        _require(undone.revisions == before.revisions, "after `undo` the revision is not as before")
        _require(undone.fingerprint == before.fingerprint, "after `undo` the schema is not as before")
        _require(rehearsal.rows_digest(copy, before) == rows_before, "after `undo` rows are not as before")
    return {"steps": planned["steps"], "parts": len(image.after), "fingerprint": before.fingerprint}


def _steps(versions: Path, current: str, target: str, *, up: bool) -> list[Step]:
    if current == target:
        return []
    return scripts.between(versions, target, current) if up else scripts.between(versions, current, target)


def _refuse_bad_inverse(file: Path, steps: Sequence[Step], now: Snapshot, *, up: bool, version_table: str) -> None:
    with rehearsal.empty_copy(file, version_table) as copy:
        rehearsal.go(copy, steps, up=up, version_table=version_table)
        try:
            rehearsal.go(copy, steps, up=not up, version_table=version_table)
        except Exception as error:
            raise Unfit(f"its inverse fails: {error}", code="no_inverse") from error
        restored = rehearsal.look(copy, version_table)
    before, after = difference(now.items, restored.items)
    if before or after:
        raise Unfit(f"its inverse does not restore: {', '.join(sorted(before))}", code="no_inverse")


def _refuse_loss(file: Path, dropped: Sequence[str], known: dict[str, int]) -> None:
    """Rows beyond those that the action itself brought (`known`) are somebody's data."""
    with schema.reading(file) as connection:
        rows = schema.occupied(connection, dropped)
    lost = {name: count for name, count in rows.items() if count > known.get(name, 0)}
    if lost:
        text = ", ".join(f"{count} rows of `{name}`" for name, count in sorted(lost.items()))
        raise Unfit(f"it would lose data: {text}", code="data_loss")


def _drilled(what: str, act: Callable[[], None]) -> None:
    try:
        act()
    except Exception as error:
        raise Unfit(f"`{what}` failed on a full copy: {error}", code="drill_failed") from error


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, not a switch
    if not holds:
        raise Unfit(otherwise, code="drill_failed")


if __name__ == "__main__":
    main()
