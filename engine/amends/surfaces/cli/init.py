"""`amends init`: a working project in an empty folder."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path

import click

from amends.config import FILE_NAME
from amends.core.errors import Conflict, SystemRefused
from amends.spi.process import TimeLimit, run
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option

_GIT_SECONDS = 30.0
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_IGNORED = ".amends/"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--tenant", default="", help="The tenant of this project.  [default: the folder's name]")
@click.option("--environment", default="staging", show_default=True, help="Where its adapters act.")
@click.option("--owner", default="", help="The person who answers for its runs.  [default: you]")
@output_option
def init(session: Session, folder: Path, tenant: str, environment: str, owner: str) -> None:
    """Make a working project in FOLDER: settings, a first policy with its tests, an agent to try.

    Nothing that exists is overwritten.
    """
    folder = folder.absolute()
    if (folder / FILE_NAME).exists():
        raise Conflict(f"`{folder / FILE_NAME}` exists already", hint="edit it, or choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    person = owner or _me()
    with_git = _git_is_there()
    settings = _filled(
        "amends.toml",
        tenant=json.dumps(tenant or folder.name or "example"),
        environment=json.dumps(environment),
        owner=person if _BARE_KEY.fullmatch(person) else json.dumps(person),
        adapters=_template("git.toml" if with_git else "no_git.toml").rstrip(),
    ).replace(f"owner = {person}", f"owner = {json.dumps(person)}")
    made = {
        "policies/bundle.toml": _template("bundle.toml"),
        "policies/site.cedar": _template("site.cedar"),
        "policies/tests/site.policytest.json": _template("site.policytest.json"),
        "agent.py": _template("agent.py.txt"),
    }
    written = [name for name, text in made.items() if _write(folder / name, text)]
    if _ignore(folder / ".gitignore"):
        written.append(".gitignore")
    if with_git and _make_repository(folder / "example"):
        written.append("example/")
    _write(folder / FILE_NAME, settings)  # last: with it the project is there
    _told(session, folder, [FILE_NAME, *written], with_git=with_git)


def _told(session: Session, folder: Path, written: list[str], *, with_git: bool) -> None:
    output = session.output
    if output.as_json:
        output.document({"folder": str(folder), "written": written})
        return
    for name in written:
        output.line(name)
    if not with_git:
        output.say("the example needs git and the plugin amends-git; its section is there, commented out", "yellow")
    output.say("next: amends doctor && python agent.py hello && amends runs list")


def _template(name: str) -> str:
    return (files("amends.surfaces.cli") / "templates" / name).read_text(encoding="utf-8")


def _filled(name: str, **values: str) -> str:
    text = _template(name)
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def _write(path: Path, text: str) -> bool:
    """Write a new file; False if there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _ignore(path: Path) -> bool:
    """Keep journal and ledger out of version control."""
    if _write(path, _template("gitignore")):
        return True
    known = path.read_text(encoding="utf-8")
    if _IGNORED in known.split():
        return False
    path.write_text(f"{known.rstrip()}\n{_template('gitignore')}", encoding="utf-8")
    return True


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return "owner"


def _git_is_there() -> bool:
    from amends.backends.plugin_host import installed

    return shutil.which("git") is not None and "git" in installed()


def _make_repository(folder: Path) -> bool:
    """A bare repository with one commit, and a checkout of it, for the example. False if the folder exists."""
    if folder.exists():
        return False
    origin, work = folder / "origin.git", folder / "work"
    person = ("-c", "user.name=Amends example", "-c", "user.email=amends@localhost", "-c", "commit.gpgSign=false")
    for arguments in (
        ("init", "--quiet", "--bare", "--initial-branch=main", str(origin)),
        ("init", "--quiet", "--initial-branch=main", str(work)),
        ("-C", str(work), "remote", "add", "origin", str(origin)),
        ("-C", str(work), *person, "commit", "--quiet", "--allow-empty", "--message=The beginning"),
        ("-C", str(work), "push", "--quiet", "origin", "main"),
    ):
        _git(arguments)
    return True


def _git(arguments: tuple[str, ...]) -> None:
    try:
        ended = run(("git", *arguments), env=os.environ, timeout_seconds=_GIT_SECONDS)
    except (OSError, TimeLimit) as error:
        raise SystemRefused(f"git cannot make the example: {error}", hint="install git 2.32 or later") from error
    if ended.returncode:
        raise SystemRefused(f"git cannot make the example: {ended.err.strip()}", hint="install git 2.32 or later")
