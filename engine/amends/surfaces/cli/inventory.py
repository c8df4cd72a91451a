"""`amends inventory`: what this project's agents could do, and who is there to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, whole_engine

if TYPE_CHECKING:
    from amends.bootstrap import Engine


COLUMNS = ("capability", "does", "class", "readers", "adapter", "environment")


@click.command()
@output_option
def inventory(session: Session) -> None:
    """Adapters, capabilities, checks, notifiers, people and agents of this project."""
    with whole_engine(session) as engine:
        capabilities, beside = _capabilities(engine), _beside(engine)
    output = session.output
    if output.as_json:
        output.document({"capabilities": capabilities, **beside})
        return
    output.table(COLUMNS, [[row[column] for column in COLUMNS] for row in capabilities])
    output.heading("Beside them")
    output.fields({name: ", ".join(names) or "none" for name, names in beside.items()})


def _capabilities(engine: Engine) -> list[dict[str, str]]:
    return [
        {
            "capability": offer.contract.capability,
            "does": offer.contract.summary,
            "class": offer.contract.reversibility if offer.contract.consequential else "reads",
            "readers": f"{offer.contract.readers.audience}: {offer.contract.readers.where}",
            "adapter": offer.context.name,
            "environment": offer.context.environment,
        }
        for offer in engine.kit.catalog.all()
    ]


def _beside(engine: Engine) -> dict[str, list[str]]:
    kit = engine.kit
    return {
        "adapters": [f"{a.name} ({a.distribution} {a.version})" for a in engine.plugins.adapters],
        "corrections can be posted at": sorted(f"{scheme}:" for scheme in kit.catalog.schemes),
        "checks": ["all_actions_succeeded", *sorted(kit.checks)],
        "notifiers": [notifier.name for notifier in kit.notifiers],
        "people": [f"{name} (tier {p.tier} {'/'.join(p.roles)})".replace(" )", ")") for name, p in kit.people.items()],
        "agents": sorted(kit.agent_roles),
    }
