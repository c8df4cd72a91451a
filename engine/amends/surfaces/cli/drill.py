"""`amends drill`: prove an undo on a sandbox before it is needed."""

from __future__ import annotations

import click

from amends.core.canonical import JsonMap
from amends.core.errors import InvalidInput
from amends.core.reading import json_of
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, whole_engine
from amends.surfaces.cli.output import moment


@click.command()
@click.argument("capability")
@click.option("--args", "arguments", default="{}", show_default=True, help="The arguments, as a JSON object.")
@click.option("--agent", default="drill", show_default=True, help="Who calls, in the eyes of policies.")
@click.option("--by", default="", envvar="AMENDS_PERSON", help="Who says yes where policies ask a person.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds to wait for looks, repeats and late checks.",
)
@output_option
def drill(session: Session, capability: str, arguments: str, agent: str, by: str, wait: float) -> None:
    """Do, verify, undo, verify CAPABILITY where it harms nobody, for a dated certificate.

    Migrations are drilled on a copy of the database, everything else on the adapter's sandbox, as amends.toml names it
    in [adapters.NAME.sandbox]: a run of its own, taken back by recovery, under the policies in force. What an earlier
    drill left is recovered first. Exit 1: a step did not hold, and the message names it and what is left; 4: policy
    said no.

    The certificate is about the capability, its contract and its subject (such as the migration file, or the adapter's
    version): another subject needs another drill.
    """
    if session.sandbox:
        raise InvalidInput("a drill goes to the sandbox by itself", hint="leave `--sandbox` out")
    args = _object(arguments)
    with whole_engine(session) as engine:
        certificate = engine.drill(capability, args, agent=agent, by=by, wait_seconds=wait)
    if session.output.as_json:
        session.output.document(certificate.model_dump(mode="json"))
        return
    session.output.fields(
        {
            "drilled": certificate.capability,
            "seen": certificate.detail,
            "subject": certificate.subject_digest,
            "contract": certificate.contract_digest,
            "valid until": moment(certificate.expires_us),
        }
    )


def _object(text: str) -> JsonMap:
    try:
        value = json_of(text)
    except ValueError as error:
        raise InvalidInput(f"--args is not JSON: {error}", hint="""write it as '{"name": "value"}'""") from None
    if not isinstance(value, dict):
        raise InvalidInput("--args is not a JSON object", hint="""write it as '{"name": "value"}'""")
    return value
