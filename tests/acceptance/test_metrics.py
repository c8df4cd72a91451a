"""Every metric has something to say about real runs, and it is the same number that plain Python finds in the events.

The runs are real: a whole engine, a partner over real sockets, told faults. Only the ledger's clock is stopped while
both sides count, because open things grow older.
"""

import time
from importlib.resources import files

import pytest

from amends import Engine
from amends.backends.duckdb_ledger import METRICS, DuckdbLedger, metric_sql
from amends.core.status import ActionStatus
from amends.testing.fakes import SimClock
from amends.testing.loopback import LoopbackSystem
from amends.testing.metric_oracle import expected

SETTINGS = """
[project]
tenant = "acme"
environment = "staging"
owner = "maya"

[storage]
mirror = false

[adapters.partner]
plugin = "http"
base_url = "{url}"
contracts = "contracts"
token = "env:METRICS_PARTNER_TOKEN"
account = "acct_main"
"""

DROP = """
name = "drop_stock"
summary = "give held stock back"
reversibility = "irreversible"
undo_cost = "somebody else may have taken it"
effect = { kind = "drop", system = "partner", resource = "reservation:{order}/{sku}", changes = "removes" }
readers = { audience = "machine", where = "the partner's stock system" }
identity = { fields = ["order", "sku"] }
keying = { kind = "keyed", parameter = "Idempotency-Key", ttl_seconds = 86400 }
release = { mode = "on_approval" }

[arguments]
order = "text"
sku = "text"

[request]
method = "POST"
path = "/v1/drops"
headers = { Idempotency-Key = "{key}" }
body = { order = "{order}", sku = "{sku}" }
"""

# The column of each metric that must not be zero.
SAYS = {
    "unknown_rate": "ever_unknown",
    "time_to_resolution": "resolved",
    "compensation_success": "verified",
    "compensation_rate": "compensated",
    "compensation_retries": "retries",
    "escalation_rate": "needs_human",
    "unregistered_inverse": "unregistered",
    "duplicate_effects": "duplicates",
    "contradicted_outcomes": "contradicted",
    "open_unknowns": "open",
    "queue_age": "waiting",
    "time_in_state": "visits",
}
MORE_GROUPS = {"open_unknowns": 1, "queue_age": 1, "time_in_state": 2}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """An engine after an eventful day, with two runs still open."""
    folder = tmp_path_factory.mktemp("metrics")
    with pytest.MonkeyPatch.context() as patch, LoopbackSystem.start("partner") as partner:
        patch.setenv("METRICS_PARTNER_TOKEN", "partner-token")
        (folder / "amends.toml").write_text(SETTINGS.format(url=partner.url), encoding="utf-8")
        (folder / "contracts").mkdir()
        for file in (files("amends_http") / "contracts" / "partner").iterdir():
            text = file.read_text(encoding="utf-8").replace("timeout_seconds = 10", "timeout_seconds = 1.5")
            (folder / "contracts" / file.name).write_text(text, encoding="utf-8")
        (folder / "contracts" / "drop_stock.toml").write_text(DROP, encoding="utf-8")
        with Engine.open(folder) as opened:
            assert opened.plugins.problems == ()
            lost_answer_and_slow_undo(opened, partner)
            made_twice(opened, partner)
            approved_too_soon(opened, partner)
            left_open(opened, partner)
            assert partner.unfired() == []
            yield opened


def reserve(run, order):
    return run.call("partner.reserve_inventory", {"order": order, "sku": "SKU-1", "quantity": 1})


def adjust(run, order):
    return run.call("partner.queue_adjustment", {"order": order, "amount_minor": -100, "currency": "EUR"})


def submit(run, order):
    return run.call("partner.submit_for_approval", {"order": order, "kind": "express"})


def lost_answer_and_slow_undo(engine, partner):
    """An answer is lost and found by a probe; the partner has no time for the first void."""
    run = engine.run(workflow="orders", run_key="lost", agent="bot")
    partner.arm("drop_after_commit", method="POST", path="/v1/reservations", how="rst")
    assert reserve(run, "o1").status is ActionStatus.UNKNOWN
    assert adjust(run, "o1").ok
    partner.arm("refuse", method="POST", path="/v1/adjustments/*/void", status=429)
    assert run.fail("the customer cancelled", wait_seconds=10).status.value == "recovered"


def made_twice(engine, partner):
    """The partner makes two of one; the twin is found and taken back, the run commits."""
    run = engine.run(workflow="orders", run_key="twice", agent="bot")
    partner.arm("make_two", method="POST", path="/v1/submissions")
    assert submit(run, "o2").ok
    assert run.finish(wait_seconds=10).status.value == "committed"


def approved_too_soon(engine, partner):
    """What a person at the partner approved cannot be cancelled; the agent's own way of giving stock back is denied."""
    run = engine.run(workflow="orders", run_key="approved", agent="bot")
    assert reserve(run, "o3").ok
    denied = run.call("partner.drop_stock", {"order": "o3", "sku": "SKU-1"})
    assert denied.status is ActionStatus.DENIED
    sent = submit(run, "o3")
    reference = run.state.actions[sent.action_id].reference
    partner.control("set_status", collection="submissions", id=reference, status="approved")
    assert run.fail("the customer cancelled", wait_seconds=5).status.value == "needs_human"


def left_open(engine, partner):
    """A refusal that a later call-back contradicts, a message in the outbox, and an answer nobody can find."""
    run = engine.run(workflow="orders", run_key="open", agent="bot")
    partner.arm("refuse", method="POST", path="/v1/adjustments", status=422)
    refused = adjust(run, "o4")
    assert refused.status is ActionStatus.FAILED
    engine.report(run.run_id, refused.action_id, happened=True, source="the partner's call-back", reference="adj_9")
    queued = run.call("partner.notify_partner", {"order": "o4", "message": "your parcel is late"})
    assert queued.status is ActionStatus.QUEUED
    partner.arm("drop_after_commit", method="POST", path="/v1/reservations", how="rst")
    partner.arm("refuse", method="GET", path="/v1/reservations", status=503, times=None)
    assert reserve(run, "o4").status is ActionStatus.UNKNOWN
    assert reserve(run, "o4").status is ActionStatus.UNKNOWN  # asked again: the probe cannot tell either


@pytest.fixture(scope="module")
def events(engine):
    """Every event of the journal."""
    return engine.kit.journal.events_after(0)


@pytest.fixture(scope="module")
def ledger(engine, tmp_path_factory):
    """The journal in DuckDB, at a moment that does not pass."""
    clock = SimClock(time.time_ns() // 1000)
    stopped = DuckdbLedger(engine.kit.journal, tmp_path_factory.mktemp("ledger"), clock)
    assert stopped.refresh().problems == ()
    yield stopped, clock.now_us()
    stopped.close()


def test_every_metric_has_a_number_to_say():
    """The list below names each metric that there is."""
    assert set(SAYS) == {metric.name for metric in METRICS}


@pytest.mark.parametrize("name", SAYS)
def test_a_metric_is_not_zero_and_equals_the_independent_number(ledger, events, name):
    """SQL over the mirror and Python over raw events agree, group by group, and there is something to agree about."""
    mirror, now_us = ledger
    table = mirror.query(metric_sql(name))
    width = 7 + MORE_GROUPS.get(name, 0)
    found = {row[:width]: dict(zip(table.columns[width:], row[width:], strict=True)) for row in table.rows}
    wanted = expected(name, events, as_of_us=now_us)
    assert sum(row[SAYS[name]] for row in wanted.values()) > 0
    assert found.keys() == wanted.keys()
    for group, row in wanted.items():
        assert found[group] == pytest.approx(row), group
