"""Migration files: which ones lie between two revisions, what their code holds, and how they are run.

What runs is always a copy made from recorded text, never the checkout: the file cannot change between what was
shown and what is done, and a later checkout that lost it loses no undo (M-08).
"""

from __future__ import annotations

import ast
import hashlib
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from alembic.util import CommandError
from sqlalchemy import Connection

from amends_migrations.faults import Unfit

_STUB = '''"""Stands for everything up to this revision."""

revision = {revision!r}
down_revision = None


def upgrade():
    """Everything up to here is there already."""


def downgrade():
    """Everything up to here stays."""
'''


@dataclass(frozen=True, slots=True)
class Step:
    """One migration file, as recorded with the intent. `down_revision` is empty for the first one."""

    revision: str
    down_revision: str
    file: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the file's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def facts(self) -> dict[str, str]:
        """The step as JSON."""
        return asdict(self)


def resolve(versions: Path, name: str) -> str:
    """The full revision id behind `name` (an id, its unique beginning, `head` or `base`; empty for `base`).

    Raises `Unfit` if the files have no such revision, or `head` is not one.
    """
    if name == "base":
        return ""
    directory = _directory(versions)
    try:
        heads = directory.get_heads()
        if name == "head" and len(heads) > 1:
            raise Unfit(f"the files have {len(heads)} heads: {', '.join(sorted(heads))}; name one", code="many_heads")
        found = directory.get_revision(name)
    except KeyError as error:
        raise Unfit(f"a file in `{versions}` follows {error}, and no file has that revision", code="no_path") from error
    except CommandError as error:
        raise Unfit(f"no revision `{name}` in `{versions}`: {error}", code="unknown_revision") from error
    return found.revision


def between(versions: Path, upper: str, lower: str) -> list[Step]:
    """The files from just above `lower` up to `upper`, oldest first. Raises `Unfit` if `upper` does not descend from
    `lower` in one line, or a file depends on others by more than its one predecessor.
    """
    try:
        scripts = list(_directory(versions).iterate_revisions(upper or "base", lower or "base"))
    except (CommandError, RevisionError) as error:
        raise Unfit(f"`{upper}` does not descend from `{lower or 'base'}`: {error}", code="no_path") from error
    steps: list[Step] = []
    for script in reversed(scripts):
        down = script.down_revision
        if isinstance(down, tuple | list) or script.dependencies or script.branch_labels:
            raise Unfit(f"`{script.revision}` merges, branches or depends on others", code="not_linear")
        text = Path(script.path).read_text(encoding="utf-8")
        steps.append(Step(script.revision, down or "", Path(script.path).name, text))
    return steps


def single(versions: Path, revision: str) -> list[Step]:
    """The one file of a revision; none for `base` (empty)."""
    return [step for step in between(versions, revision, "") if step.revision == revision] if revision else []


def require_code(steps: Sequence[Step], function: str) -> None:
    """Raise `Unfit` naming the first file in which `function` is missing or does nothing."""
    for step in steps:
        body = _body(step, function)
        if body is None:
            raise Unfit(f"`{step.file}` has no `{function}`", code="no_inverse")
        if all(_idle(statement) for statement in body):
            raise Unfit(f"`{function}` of `{step.file}` does nothing", code="no_inverse")


def run(connection: Connection, steps: Sequence[Step], *, up: bool, version_table: str) -> None:
    """Carry out the steps on `connection`, from recorded text. Raises whatever the migration raises."""
    first, last = steps[0], steps[-1]
    with tempfile.TemporaryDirectory(prefix="amends-migrations-") as folder, _environment() as environment:
        versions = Path(folder)
        for number, step in enumerate(steps):
            (versions / f"step_{number:04d}.py").write_text(step.text, encoding="utf-8")
        if first.down_revision:
            (versions / "stub.py").write_text(_STUB.format(revision=first.down_revision), encoding="utf-8")
        config = Config()
        config.set_main_option("script_location", str(environment).replace("%", "%%"))
        config.set_main_option("version_locations", str(versions).replace("%", "%%"))
        config.set_main_option("path_separator", "newline")
        config.attributes.update(connection=connection, version_table=version_table)
        if up:
            command.upgrade(config, last.revision)
        else:
            command.downgrade(config, first.down_revision or "base")


def _environment() -> AbstractContextManager[Path]:
    return as_file(files("amends_migrations") / "environment")


def _directory(versions: Path) -> ScriptDirectory:
    with _environment() as environment:
        return ScriptDirectory(str(environment), version_locations=[str(versions)])


def _body(step: Step, function: str) -> list[ast.stmt] | None:
    for node in ast.parse(step.text, step.file).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return node.body
    return None


def _idle(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None) | ast.Raise():
            return True
        case _:
            return False
