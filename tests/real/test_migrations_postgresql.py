"""Schema moves on a real PostgreSQL server: what is done, found again, lost, half-made, and taken back."""

import contextlib
import itertools
import os
import signal
import textwrap
import threading
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from amends.spi import AdapterContext, Call, Done, NotSent, Question, Refused
from amends.testing.conformance import Fault, TcpLine
from amends_migrations import contracts
from amends_migrations.child import BrokeOff
from amends_migrations.moves import MoveSchema
from amends_migrations.notes import Note
from amends_migrations.options import options_of
from amends_migrations.postgresql.target import PostgresqlTarget

ADD = 'op.add_column("billing", sa.Column("note", sa.String(20)))'
DROP = 'op.drop_column("billing", "note")'
HAS_ROWS = 'op.get_bind().exec_driver_sql("SELECT count(*) FROM billing").scalar()'
UNIQUE = """with op.get_context().autocommit_block():
    op.create_index("ux_amount", "billing", ["amount"], unique=True, postgresql_concurrently=True)"""
WITHOUT = """with op.get_context().autocommit_block():
    op.drop_index("ux_amount", "billing", postgresql_concurrently=True)"""
_names = itertools.count(1)


@dataclass
class Bench:
    """Staging at revision `r1` (table `billing`, two rows), with files up to `r2` (column `note`)."""

    root: Path
    dsn: str
    settings: dict = field(default_factory=dict)

    def write(self, up, back, *, revision="r2", down="r1", extra=""):
        """Write one migration file; `up` and `back` are bodies."""
        head = f"from alembic import op\nimport sqlalchemy as sa\n{extra}\n"
        head += f"revision = {revision!r}\ndown_revision = {down!r}\n"
        sides = (("upgrade", up), ("downgrade", back))
        bodies = [f"def {name}():\n{textwrap.indent(body, '    ')}" for name, body in sides]
        folder = self.root / "migrations" / "versions"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{revision}.py").write_text("\n".join([head, *bodies, ""]))

    def sql(self, *statements):
        """Run statements as another client, each for itself; the rows of the last one."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def columns(self):
        where = "table_name = 'billing' ORDER BY ordinal_position"
        return [row[0] for row in self.sql(f"SELECT column_name FROM information_schema.columns WHERE {where}")]

    def version(self):
        return self.sql("SELECT version_num FROM alembic_version")[0][0]

    def oid(self):
        return self.sql("SELECT oid FROM pg_database WHERE datname = current_database()")[0][0]

    def scratches(self):
        names = f"SELECT datname FROM pg_database WHERE starts_with(datname, 'amends_scratch_{self.oid()}_') ORDER BY 1"
        return [row[0] for row in self.sql(names)]

    def wait_until(self, sql):
        """Ask until the server answers with a row."""
        while not self.sql(sql):
            os.sched_yield()

    def behind(self, line):
        """The address of the database along a line."""
        facts = psycopg.conninfo.conninfo_to_dict(self.dsn)
        return f"postgresql://{facts['user']}@{line.address.removeprefix('tcp://')}/{facts['dbname']}"

    def action(self, to="r2", *, up=True, dsn=None):
        database = {"url_secret": "env:STAGING_URL", "scripts": "migrations", **self.settings}
        context = AdapterContext(
            name="migrations",
            instance="migrations",
            tenant="acme",
            environment="staging",
            options={"databases": {"billing": database}},
            secret=lambda reference: dsn or self.dsn,
            base_path=str(self.root),
        )
        options = options_of(context)
        contract = contracts.upgrade(options) if up else contracts.downgrade(options)
        return Action(MoveSchema(contract, options, up=up), to, f"action-{next(_names)}", context.secret, options)


class Action:
    """What the engine records about one action, and the questions and calls it makes of that."""

    def __init__(self, capability, to, action_id, secret, options):
        self.capability, self.to, self.action_id, self.secret, self.options = capability, to, action_id, secret, options
        self.before, self.allocated, self.done = {}, {}, Done()

    def _facts(self):
        return {
            "run_id": "run-1",
            "action_id": self.action_id,
            "marker": f"amends {self.action_id}",
            "idempotency_key": f"key-{self.action_id}",
            "args": {"database": "billing", "to": self.to},
            "before": self.before,
            "allocated": self.allocated,
            "effect": self.done.effect,
            "after": self.done.after,
            "reference": self.done.reference,
            "attempt": 1,
            "sent_at_us": 1,
            "timeout_seconds": 50.0,
            "secret": self.secret,
        }

    def call(self, **extra):
        return Call(**self._facts(), deadline_us=2, still_wanted=lambda: True, **extra)

    def prepare(self):
        prepared = self.capability.prepare(Question(**self._facts()))
        self.before, self.allocated = dict(prepared.before), dict(prepared.allocated)
        return prepared

    def send(self):
        self.done = self.capability.do(self.call())
        return self.done

    def run(self):
        self.prepare()
        return self.send()

    def probe(self):
        return self.capability.probe(Question(**self._facts()))

    def settle(self):
        """Probe until the server is done with what it still works on."""
        while (seen := self.probe()).seen == "inconclusive":
            assert "a migration is running" in seen.detail
        return seen

    def undo(self):
        return self.capability.undo(
            self.call(rung="downgrade", undo_key="k", undo_marker=f"amends undo-{self.action_id}")
        )

    def verify(self):
        return self.capability.verify_undone(Question(**self._facts()))

    def drill(self):
        return self.capability.drill(Question(**self._facts()))

    def noted(self):
        return Note(self.options.note(self.action_id)).read()


@pytest.fixture
def bench(tmp_path, postgresql):
    """Staging at r1, with two rows of the same amount; r2 waits to be run."""
    bench = Bench(tmp_path, postgresql.database(f"migrations_{os.getpid()}_{next(_names)}"))
    bench.write('op.create_table("billing")', 'op.drop_table("billing")', revision="r1", down=None)
    bench.write(ADD, DROP)
    bench.sql(
        "CREATE TABLE billing (id serial PRIMARY KEY, amount integer)",
        "INSERT INTO billing (amount) VALUES (42), (42)",
        "CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)",
        "INSERT INTO alembic_version VALUES ('r1')",
    )
    return bench


@pytest.fixture
def line(postgresql):
    """A line before the server: faults meet the COMMIT of a move. Each armed one must have happened."""
    commit = rb"amends action-\d+\x00.*UPDATE alembic_version .*COMMIT"
    with TcpLine(f"tcp://{postgresql.host}:{postgresql.port}", write=commit) as line:
        yield line
        assert line.unfired() == ()


def test_upgrade_is_done_found_and_taken_back(bench):
    """Revision and schema move in one transaction, which is noted; the undo restores the fingerprint."""
    action = bench.action()
    action.prepare()
    assert (action.probe().seen, action.probe().state["extent"]) == ("absent", "none")
    action.send()
    seen = action.probe()
    assert (seen.seen, seen.state["extent"], seen.parts) == ("applied", "all", ("column:billing.note",))
    assert (bench.version(), bench.columns()) == ("r2", ["id", "amount", "note"])
    assert len(action.noted().transactions) == 1
    action.undo()
    seen = action.verify()
    assert (seen.seen, seen.state["fingerprint_restored"], bench.columns()) == ("absent", True, ["id", "amount"])
    assert bench.scratches() == []


def test_error_in_the_middle_leaves_nothing(bench):
    """Two statements of one transaction: the second fails on real rows, and the first is gone with it: refused."""
    bench.write(
        f'{ADD}\nop.create_index("ux_amount", "billing", ["amount"], unique=True)',
        f'op.drop_index("ux_amount")\n{DROP}',
    )
    action = bench.action()
    action.prepare()
    with pytest.raises(Refused, match="could not create unique index") as refused:
        action.send()
    assert refused.value.code == "failed_clean"
    assert (action.probe().seen, bench.columns()) == ("absent", ["id", "amount"])


def test_path_of_several_files_is_one_transaction(bench):
    """The second file fails on real rows: the first is not left standing half-way."""
    unique = 'op.create_index("ux_amount", "billing", ["amount"], unique=True)'
    bench.write(unique, 'op.drop_index("ux_amount")', revision="r3", down="r2")
    action = bench.action("r3")
    action.prepare()
    with pytest.raises(Refused, match="left nothing behind"):
        action.send()
    assert (bench.version(), bench.columns()) == ("r1", ["id", "amount"])
    bench.sql("UPDATE billing SET amount = id")
    action.send()
    action.undo()
    assert (action.verify().seen, action.verify().state["fingerprint_restored"]) == ("absent", True)


def test_table_in_use_is_waited_for_only_so_long(bench):
    """Whoever comes after a waiting migration waits with it: it gives up, and nothing has changed."""
    bench.settings = {"lock_wait_seconds": 0.2}
    action = bench.action()
    action.prepare()
    with psycopg.connect(bench.dsn) as user:
        user.execute("SELECT * FROM billing")
        with pytest.raises(Refused, match="lock timeout") as refused:
            action.send()
    assert (refused.value.code, action.probe().seen) == ("failed_clean", "absent")


def test_runner_killed_in_the_middle_leaves_nothing(bench):
    """The server rolls back what its client did not live to commit."""
    bench.write(f"{ADD}\nif {HAS_ROWS}:\n    os.kill(os.getpid(), signal.SIGKILL)", DROP, extra="import os, signal")
    action = bench.action()
    action.prepare()
    with pytest.raises(BrokeOff):
        action.send()
    assert (action.settle().seen, bench.columns(), bench.version()) == ("absent", ["id", "amount"], "r1")


def test_lost_commit_that_landed_is_found_as_ours(bench, line):
    """The answer to COMMIT is lost: unknown to the caller, and the server knows the transaction that was noted."""
    line.arm(Fault("lost"))
    action = bench.action(dsn=bench.behind(line))
    action.prepare()
    with pytest.raises(BrokeOff):
        action.send()
    assert (action.settle().seen, bench.version()) == ("applied", "r2")
    (transaction,) = action.noted().transactions
    assert bench.sql(f"SELECT txid_status({transaction})") == [("committed",)]
    with pytest.raises(BrokeOff, match="an earlier attempt of this action may have moved it"):
        action.send()
    action.undo()
    assert action.verify().seen == "absent"


def test_commit_that_never_arrived_is_not_ours_even_when_others_get_there(bench, line):
    """COMMIT did not reach the server. Later somebody else upgrades: what is there is theirs, and no undo of ours."""
    line.arm(Fault("dropped"))
    action = bench.action(dsn=bench.behind(line))
    action.prepare()
    with pytest.raises(BrokeOff):
        action.send()
    assert (action.settle().seen, bench.version()) == ("absent", "r1")
    bench.action().run()
    seen = action.probe()
    assert (seen.seen, bench.version()) == ("absent", "r2")
    assert "by somebody else" in seen.detail
    with pytest.raises(Refused) as refused:
        action.send()
    assert refused.value.code == "moved"


def test_failed_concurrent_index_is_named_as_half_made(bench):
    """The build failed on duplicates and left the index INVALID: partial, with the index named."""
    bench.write(f"{UNIQUE}\n{ADD}", f"{DROP}\n{WITHOUT}")
    action = bench.action()
    action.prepare()
    with pytest.raises(BrokeOff, match="could not create unique index"):
        action.send()
    seen = action.probe()
    assert (seen.seen, seen.state["extent"], seen.state["leftovers"]) == ("diverged", "partial", ["index:ux_amount"])
    assert "index:ux_amount (left half-made)" in seen.detail
    with pytest.raises(Refused, match="ux_amount") as refused:
        bench.action().prepare()
    assert refused.value.code == "leftovers"
    bench.sql("DROP INDEX ux_amount", "UPDATE billing SET amount = id")
    assert action.probe().seen == "absent"
    action.send()
    assert (action.probe().seen, action.noted().outside) == ("applied", True)


def test_if_not_exists_over_an_invalid_index_is_no_success(bench):
    """The migration ends without an error because the name is taken; the schema is not as it was rehearsed."""
    again = UNIQUE.replace("unique=True,", "unique=True, if_not_exists=True,").replace("\n", "\n    ")
    bench.write(
        f"try:\n    {again}\nexcept Exception:\n    {again}\n{ADD}",
        f"{DROP}\n{WITHOUT}",
    )
    action = bench.action()
    action.prepare()
    with pytest.raises(BrokeOff, match="ended without an error, but"):
        action.send()
    seen = action.probe()
    assert (seen.seen, bench.version()) == ("diverged", "r2")
    assert "index:ux_amount (left half-made)" in seen.detail


def test_invalid_index_of_others_makes_nothing_doubtful(bench):
    """Half-made things that the migration does not touch stand in nobody's way."""
    with contextlib.suppress(psycopg.errors.UniqueViolation):
        bench.sql("CREATE UNIQUE INDEX CONCURRENTLY theirs ON billing (amount)")
    action = bench.action()
    action.run()
    assert (action.probe().seen, action.probe().state["leftovers"]) == ("applied", [])


def test_statement_that_goes_on_without_its_client_is_waited_for(bench):
    """The runner is killed while its index is being built: inconclusive and locked until the server is done."""
    pid = bench.root / "pid"
    bench.sql("UPDATE billing SET amount = id")
    bench.write(
        f"if {HAS_ROWS}:\n    pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n{UNIQUE}\n{ADD}",
        f"{DROP}\n{WITHOUT}",
        extra="import os, pathlib",
    )
    action = bench.action()
    action.prepare()
    building = (
        f"SELECT pid FROM pg_stat_activity WHERE application_name = 'amends {action.action_id}'"
        " AND query LIKE '%CONCURRENTLY%' AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(bench.dsn) as reader:  # an open snapshot: the build waits for its end
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT * FROM billing")
        sender = threading.Thread(target=_expect_broken, args=(action,))
        sender.start()
        bench.wait_until(building)
        os.kill(int(pid.read_text()), signal.SIGKILL)
        sender.join()
        seen = action.probe()
        assert (seen.seen, f"(amends {action.action_id})" in seen.detail) == ("inconclusive", True)
        bench.settings = {"lock_wait_seconds": 0.1}
        late = bench.action()
        late.before, late.allocated = action.before, action.allocated
        with pytest.raises(NotSent, match=action.action_id):
            late.send()
    seen = action.settle()
    assert (seen.seen, seen.parts, bench.version()) == ("diverged", ("index:ux_amount",), "r1")


def _expect_broken(action):
    with contextlib.suppress(BrokeOff):
        action.send()


def test_two_upgrades_at_once_have_one_winner_and_the_loser_looks_again(bench):
    """Both hold the same before-image; one gets the lock, the other is refused, and then finds nothing to do."""
    actions = [bench.action(), bench.action()]
    for action in actions:
        action.prepare()
    answers = []

    def run(action):
        try:
            action.send()
            answers.append("done")
        except Refused as error:
            answers.append(error.code)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["done", "moved"]
    again = bench.action()
    assert again.run().effect["changed"] is False
    assert again.verify().seen == "absent"


def test_data_in_the_way_of_the_down_goes_to_a_person(bench):
    """Values beyond NULL and constant defaults are somebody's, whatever their default would be."""
    bench.write(
        f'{ADD}\nop.add_column("billing", sa.Column("state", sa.String(9), server_default="a:b"))',
        f'op.drop_column("billing", "state")\n{DROP}',
    )
    action = bench.action()
    action.run()
    assert action.probe().state["data_at_risk"] is False
    bench.sql("UPDATE billing SET note = 'call back' WHERE id = 1")
    assert action.probe().state["at_risk"] == ["column:billing.note"]
    with pytest.raises(Refused, match="1 rows of") as refused:
        action.undo()
    assert refused.value.code == "data_loss"


@pytest.mark.parametrize("back", [DROP, 'op.execute("ALTER TABLE billing DROP COLUMN note CASCADE")'])
def test_later_view_blocks_the_down_and_is_named(bench, back):
    """An object that came later is reported; not even a down that says CASCADE takes it along (M-11)."""
    bench.write(ADD, back)
    action = bench.action()
    action.run()
    bench.sql("CREATE VIEW notes AS SELECT note FROM billing")
    with pytest.raises(Refused, match="notes") as refused:
        action.undo()
    assert (refused.value.code, bench.columns()) == ("blocked", ["id", "amount", "note"])


def test_drill_works_on_a_scratch_database_and_drops_it(bench):
    """The certificate is about the very files; what only rows show fails it; the real database stays as it was."""
    action = bench.action()
    subject, detail = action.drill()
    assert subject == action.prepare().subject_digest
    assert ("r2.py" in detail, bench.columns()) == (True, ["id", "amount"])
    bench.write(f'{ADD}\nop.execute("UPDATE billing SET amount = 0")', DROP)
    with pytest.raises(Refused, match="rows are not as before"):
        bench.action().drill()
    assert bench.sql("SELECT sum(amount) FROM billing") == [(84,)]
    assert bench.scratches() == []


def test_scratch_database_of_a_dead_maker_is_dropped_by_the_next(bench):
    """One whose maker lives keeps its lock, and its database."""
    own = bench.oid()
    bench.sql(f"CREATE DATABASE amends_scratch_{own}_7", f"CREATE DATABASE amends_scratch_{own}_8")
    with psycopg.connect(bench.dsn, autocommit=True) as maker:
        maker.execute("SELECT pg_advisory_lock(x'616d7363'::int, 8)")
        bench.action().prepare()
        assert bench.scratches() == [f"amends_scratch_{own}_8"]
    bench.sql(f"DROP DATABASE amends_scratch_{own}_8")


def test_session_of_a_client_that_fell_silent_is_ended_by_the_server(bench):
    """Nothing tells the server that the network is gone: the lock comes free when the time of the move is over."""
    target = PostgresqlTarget(bench.dsn.replace("postgresql://", "postgresql+psycopg://"), "alembic_version")
    with target.migrating(marker="silent", wait_seconds=1, limit_seconds=0.2, note=Note(None)):
        bench.wait_until("SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'silent')")
        assert target.busy("") == ""


def test_role_that_may_make_no_scratch_database_is_told_so(bench):
    """Without a rehearsal nothing is promised: refused before anything is sent, with the remedy."""
    bench.sql(
        f"CREATE ROLE plain_{os.getpid()} LOGIN",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO plain_{os.getpid()}",
    )
    facts = psycopg.conninfo.conninfo_to_dict(bench.dsn)
    address = f"postgresql://plain_{os.getpid()}@{facts['host']}:{facts['port']}/{facts['dbname']}"
    try:
        with pytest.raises(Refused, match="CREATEDB") as refused:
            bench.action(dsn=address).prepare()
        assert refused.value.code == "no_scratch"
    finally:
        bench.sql(f"DROP OWNED BY plain_{os.getpid()}", f"DROP ROLE plain_{os.getpid()}")


RICH = """
CREATE SCHEMA acc;
CREATE TYPE mood AS ENUM ('a', 'b''c');
CREATE DOMAIN pos AS integer DEFAULT 3 CONSTRAINT above CHECK (value > 0);
CREATE TYPE pair AS (a integer, b text);
CREATE FUNCTION shown(pair) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ($1).b || '':%s''';
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
ALTER TABLE billing ADD m mood DEFAULT 'a', ADD p pos, ADD g integer GENERATED ALWAYS AS (amount * 2) STORED,
    ADD t timestamptz DEFAULT now(), ADD o text DEFAULT 'x:y%' COLLATE "C", ADD q pair, ADD "odd name" integer;
CREATE TABLE acc.line (
    id bigint GENERATED BY DEFAULT AS IDENTITY (START 5) PRIMARY KEY, c text,
    bill integer REFERENCES billing (id) ON DELETE CASCADE, UNIQUE (bill, c), CHECK (id < 1000));
CREATE TABLE part (id integer, d date, PRIMARY KEY (id, d)) PARTITION BY RANGE (d);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE parent (x integer NOT NULL) WITH (fillfactor = 70);
CREATE TABLE child (y integer) INHERITS (parent);
CREATE INDEX ON billing (lower(o)) WHERE amount > 3;
CREATE VIEW deep AS SELECT id FROM billing WHERE o LIKE '%x:y%';
CREATE VIEW above AS SELECT id FROM deep;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM billing;
CREATE TRIGGER filling BEFORE INSERT ON billing FOR EACH ROW EXECUTE FUNCTION fill();
ALTER TABLE billing DISABLE TRIGGER filling;
ALTER TABLE acc.line ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON acc.line USING (bill > 0) WITH CHECK (bill > 1);
COMMENT ON TABLE billing IS 'it''s';
COMMENT ON COLUMN billing.o IS 'no:te';
INSERT INTO acc.line (bill, c) SELECT 1, 'line ' || n FROM generate_series(1, 10) n;
INSERT INTO part VALUES (1, '2020-02-02');
"""


def test_copy_of_a_rich_schema_is_true_with_its_rows(bench):
    """Types, domains, partitions, views on views, triggers, policies: the copy looks the same, row for row."""
    bench.sql(RICH)
    target = PostgresqlTarget(bench.dsn.replace("postgresql://", "postgresql+psycopg://"), "alembic_version")
    now = target.look(["table:acc.line", "column:acc.line.c", "column:billing.o", "column:billing.g"])
    assert dict(now.rows) == {"table:acc.line": 10, "column:acc.line.c": 10, "column:billing.o": 0}
    with target.full_copy() as copy:
        assert copy.look().fingerprint == now.fingerprint
        assert copy.rows_digest(now) == target.rows_digest(now)
    with target.empty_copy() as copy:
        assert (copy.look().fingerprint, copy.look().revisions) == (now.fingerprint, ("r1",))
        assert set(copy.look(["table:acc.line", "table:billing"]).rows.values()) == {0}


def test_what_cannot_be_copied_is_not_rehearsed_past(bench):
    """An aggregate has no definition the server gives out: no promise is made on a copy that lacks it."""
    bench.sql("CREATE AGGREGATE total (integer) (SFUNC = int4pl, STYPE = integer)")
    with pytest.raises(Refused, match=r"function:total") as refused:
        bench.action().prepare()
    assert refused.value.code == "no_copy"


def test_server_that_cannot_be_reached_is_inconclusive_and_keeps_its_secret(bench):
    """No answer proves nothing, and the password is in nothing that is recorded."""
    action = bench.action()
    action.run()
    action.secret = lambda reference: "postgresql://me:hunter2@127.0.0.1:1/staging"
    seen = action.probe()
    assert (seen.seen, "hunter2" in repr((seen, action.before, action.allocated))) == ("inconclusive", False)
    with pytest.raises(NotSent) as error:
        action.send()
    assert "hunter2" not in str(error.value)
