"""A real SQLite database, real Alembic files, and calls as the engine makes them."""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from amends.spi import AdapterContext, Call, Done, Question
from amends_migrations import contracts
from amends_migrations.moves import MoveSchema
from amends_migrations.options import options_of

HEAD = "from alembic import op\nimport sqlalchemy as sa\n"


@dataclass
class Staging:
    """Staging at revision `r1` (table `billing`), with files up to `r2` (column `note` and its index)."""

    root: Path
    settings: dict = field(default_factory=dict)
    actions: int = 0

    @property
    def file(self):
        return self.root / "staging.db"

    @property
    def versions(self):
        return self.root / "migrations" / "versions"

    def write(self, revision, down, up, back, extra=""):
        """Write one migration file; `up` and `back` are bodies, `back=None` leaves the function out."""

        def function(name, body):
            return f"\n\ndef {name}():\n" + "\n".join(f"    {line}" for line in body.splitlines()) + "\n"

        text = f"{HEAD}{extra}\nrevision = {revision!r}\ndown_revision = {down!r}\n" + function("upgrade", up)
        text += function("downgrade", back) if back is not None else ""
        (self.versions / f"{revision}.py").write_text(text)

    def sql(self, *statements):
        """Run statements as another client; the rows of the last one."""
        connection = sqlite3.connect(self.file)
        try:
            rows = [connection.execute(statement).fetchall() for statement in statements][-1]
            connection.commit()
            return rows
        finally:
            connection.close()

    def columns(self, table="billing"):
        return [row[1] for row in self.sql(f"PRAGMA table_info({table})")]

    def version(self):
        return [row[0] for row in self.sql("SELECT version_num FROM alembic_version")]

    def context(self, **section):
        database = {"url": "sqlite:///staging.db", "scripts": "migrations", **self.settings}
        return AdapterContext(
            name="migrations",
            instance="migrations",
            tenant="acme",
            environment="staging",
            options={"databases": {"billing": database}, **section},
            secret=self.secret,
            base_path=str(self.root),
        )

    def secret(self, reference):
        return "sqlite:///staging.db" if reference == "env:STAGING_URL" else f"value of {reference}"

    def action(self, to="r2", *, up=True, timeout_seconds=60.0):
        self.actions += 1
        options = options_of(self.context())
        contract = contracts.upgrade(options) if up else contracts.downgrade(options)
        capability = MoveSchema(contract, options, up=up)
        return Action(capability, {"database": "billing", "to": to}, f"action-{self.actions}", timeout_seconds, self)


class Action:
    """What the engine records about one action, and the questions and calls it makes of that."""

    def __init__(self, capability, args, action_id, timeout_seconds, staging):
        self.capability, self.args, self.action_id, self.staging = capability, args, action_id, staging
        self.timeout_seconds = timeout_seconds
        self.before, self.allocated, self.done, self.wanted = {}, {}, Done(), True

    def _facts(self):
        return {
            "run_id": "run-1",
            "action_id": self.action_id,
            "marker": f"amends {self.action_id}",
            "idempotency_key": f"key-{self.action_id}",
            "args": self.args,
            "before": self.before,
            "allocated": self.allocated,
            "effect": self.done.effect,
            "after": self.done.after,
            "reference": self.done.reference,
            "attempt": 1,
            "sent_at_us": 1,
            "timeout_seconds": self.timeout_seconds,
            "secret": self.staging.secret,
        }

    def question(self):
        return Question(**self._facts())

    def call(self, **extra):
        return Call(**self._facts(), deadline_us=2, still_wanted=lambda: self.wanted, **extra)

    def prepare(self):
        prepared = self.capability.prepare(self.question())
        self.before, self.allocated = dict(prepared.before), dict(prepared.allocated)
        return prepared

    def send(self):
        self.done = self.capability.do(self.call())
        return self.done

    def run(self):
        self.prepare()
        return self.send()

    def probe(self):
        return self.capability.probe(self.question())

    def rung(self):
        """The rung the planner would take after a probe, or None."""
        state = self.probe().state
        for rung in self.capability.contract.compensation:
            if all(state.get(name) in accepted for name, accepted in rung.when.items()):
                return rung.name
        return None

    def undo(self):
        return self.capability.undo(self.call(rung=self.rung(), undo_key="undo-key", undo_marker="undo"))

    def verify(self):
        return self.capability.verify_undone(self.question())


@pytest.fixture
def staging(tmp_path):
    """Staging at r1, with rows; r2 waits to be run."""
    staging = Staging(tmp_path)
    staging.versions.mkdir(parents=True)
    staging.write(
        "r1",
        None,
        'op.create_table("billing", sa.Column("id", sa.Integer, primary_key=True), sa.Column("amount", sa.Integer))',
        'op.drop_table("billing")',
    )
    staging.write(
        "r2",
        "r1",
        'op.add_column("billing", sa.Column("note", sa.String(20)))\nop.create_index("ix_note", "billing", ["note"])',
        'op.drop_index("ix_note", "billing")\nop.drop_column("billing", "note")',
    )
    staging.sql(
        "CREATE TABLE billing (id INTEGER NOT NULL, amount INTEGER, PRIMARY KEY (id))",
        "INSERT INTO billing VALUES (1, 42), (2, 7)",
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        "INSERT INTO alembic_version VALUES ('r1')",
    )
    return staging
