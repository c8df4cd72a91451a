"""`amends plugins`: which adapters are installed, which are in use, and what is wrong with the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amends.core.errors import ConfigError
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, settings_of
from amends.surfaces.cli.exits import Exit
from amends.surfaces.cli.plugins_new import new

if TYPE_CHECKING:
    from amends.backends.plugin_host import Loaded
    from amends.config import Settings


@click.group()
def plugins() -> None:
    """Installed adapters, what is wrong with them, and a new one to start from."""


plugins.add_command(new)


@plugins.command("list")
@output_option
def list_plugins(session: Session) -> None:
    """Every installed plugin and the sections of amends.toml that use it. Imports none of them."""
    from amends.backends.plugin_host import installed

    try:
        used = _sections(settings_of(session))
    except ConfigError as error:
        session.output.say(f"sections are not shown: {error.message}", "yellow")
        used = {}
    found = [(name, one, used.get(name, [])) for name, group in installed().items() for one in group]
    if session.output.as_json:
        session.output.document(
            {
                "plugins": [
                    {"plugin": name, "distribution": one.distribution, "version": one.version, "adapters": sections}
                    for name, one, sections in found
                ]
            }
        )
        return
    rows = [(name, one.distribution, one.version, sections) for name, one, sections in found]
    session.output.table(("plugin", "distribution", "version", "adapters"), rows)


@plugins.command()
@output_option
def check(session: Session) -> int:
    """Load every adapter of amends.toml as the engine does, and say what is wrong with those it would leave out."""
    from amends import bootstrap

    settings = settings_of(session)
    loaded = bootstrap.adapters_of(settings, bootstrap.secrets_of(settings))
    _show(session, loaded)
    return Exit.FAILED if loaded.problems else Exit.OK


def _show(session: Session, loaded: Loaded) -> None:
    if session.output.as_json:
        session.output.document(
            {
                "ok": not loaded.problems,
                "adapters": [
                    {
                        "adapter": a.name,
                        "plugin": a.plugin,
                        "distribution": a.distribution,
                        "version": a.version,
                        "capabilities": [offer.contract.capability for offer in a.offers],
                    }
                    for a in loaded.adapters
                ],
                "problems": [
                    {
                        "adapter": p.name,
                        "distribution": p.distribution,
                        "stage": p.stage,
                        "message": p.message,
                        "remedy": p.remedy,
                    }
                    for p in loaded.problems
                ],
            }
        )
        return
    rows = [
        (a.name, "whole", f"{a.distribution} {a.version}", f"{len(a.offers)} capabilities", "") for a in loaded.adapters
    ]
    rows += [(p.name, f"left out ({p.stage})", p.distribution, p.message, p.remedy) for p in loaded.problems]
    session.output.table(("adapter", "state", "distribution", "what", "remedy"), sorted(rows))


def _sections(settings: Settings) -> dict[str, list[str]]:
    used: dict[str, list[str]] = {}
    for name, section in settings.adapters.items():
        used.setdefault(section.plugin or name, []).append(name)
    return used
