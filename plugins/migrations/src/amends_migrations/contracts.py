"""The contracts of the migration capabilities: one change of a schema per run and database, with a drilled way back."""

from __future__ import annotations

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    ProbeRule,
    Readers,
    Reference,
    Retry,
    Signal,
)
from amends_migrations.options import MigrationOptions

_PERSON = Alternative(name="person", undo="escalate")


def upgrade(options: MigrationOptions) -> Contract:
    """A second migration of the same run for the same database, whatever it is called, is the same intent."""
    return _contract(options, "migrations.upgrade", "moves a database's schema forward to a revision", "downgrade")


def downgrade(options: MigrationOptions) -> Contract:
    """Only where no data goes with it."""
    return _contract(options, "migrations.downgrade", "moves a database's schema back to a revision", "upgrade")


def _contract(options: MigrationOptions, capability: str, summary: str, way_back: str) -> Contract:
    return Contract(
        capability=capability,
        summary=summary,
        effect=Effect(kind="schema", system="database", resource="database:{database}", changes="sets"),
        readers=Readers(audience=options.audience, where=options.place or "programs that use the database"),
        reversibility="reversible",
        undo_cost=f"the recorded {way_back} runs; it is refused where rows would go with it",
        identity=Identity(fields=("database",)),
        keying=Keying(kind="probeable"),
        probe=ProbeRule(
            strength="id",
            deadline_seconds=options.probe_deadline_seconds,
            absent_final_after_seconds=options.absent_final_after_seconds,
        ),
        reference=Reference(field="revision", pattern=r"[A-Za-z0-9_.]{1,100}"),
        restores_before_image=True,
        compensation=(
            Alternative(
                name=way_back,
                when={"data_at_risk": (False,)},
                retry=Retry(attempts=3),
            ),
            _PERSON,
        ),
        signal=_signal(options),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        needs_drill=True,
        escalation=EscalationRule(evidence_fields=("revision", "extent", "parts", "leftovers", "at_risk", "detail")),
        input={"database": "String", "to": "String", "steps": "Long"},
    )


def _signal(options: MigrationOptions) -> Signal | None:
    if options.audience == "machine":
        return None
    return Signal(
        visible_to="everybody who works on this database",
        place=options.place,
        seen="that the schema of a shared database changed",
        reader_must="pull nothing that relies on the change; restart what cached the schema",
        comes_back="when the work is taken up again and its owner announces it",
    )
