"""`amends drill`: prove an undo on a sandbox before it is needed."""

from __future__ import annotations

import json
from typing import cast

import click

from amends.core.canonical import JsonMap
from amends.core.errors import InvalidInput
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, whole_engine
from amends.surfaces.cli.output import moment


@click.command()
@click.argument("capability")
@click.option("--args", "arguments", default="{}", show_default=True, help="The arguments, as a JSON object.")
@output_option
def drill(session: Session, capability: str, arguments: str) -> None:
    """Do, verify, undo, verify CAPABILITY on a sandbox copy, for a dated certificate.

    The certificate is about the capability, its contract and its subject (such as the migration file): another
    subject needs another drill.
    """
    args = _object(arguments)
    with whole_engine(session) as engine:
        certificate = engine.drill(capability, args)
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
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"--args is not JSON: {error}", hint="""write it as '{"name": "value"}'""") from None
    if not isinstance(value, dict):
        raise InvalidInput("--args is not a JSON object", hint="""write it as '{"name": "value"}'""")
    return cast("JsonMap", value)
