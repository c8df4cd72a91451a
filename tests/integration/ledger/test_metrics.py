"""Every metric equals the same number computed in plain Python from raw events."""

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amends.backends.duckdb_ledger import METRICS, DuckdbLedger, metric_sql
from amends.core import events as e
from amends.core.errors import AmendsError
from amends.core.evidence import Evidence, Observation
from amends.core.outcomes import answered
from amends.core.status import ActionKind, Outcome, RunStatus
from amends.testing.contracts import irreversible, reversible
from amends.testing.fakes import SimClock
from amends.testing.ledger_builder import EventList, store
from amends.testing.metric_oracle import expected
from amends.testing.run_builder import RunBuilder

METRIC_NAMES = [metric.name for metric in METRICS]
DAY = 86_400.0


def told(ledger, name):
    """The metric as the database answers it, in the shape of the oracle."""
    table = ledger.query(metric_sql(name))
    extra = {"open_unknowns": 1, "queue_age": 1, "time_in_state": 2}.get(name, 0)
    width = 7 + extra
    rows = {row[:width]: dict(zip(table.columns[width:], row[width:], strict=True)) for row in table.rows}
    assert len(rows) == len(table.rows), "two rows for one group"
    return rows


def close(found, wanted):
    assert found.keys() == wanted.keys()
    for group, row in wanted.items():
        assert found[group] == pytest.approx(row), group


def late(outcome):
    evidence = Evidence(source="late", strength="authoritative", at_us=0, code="call_back")
    return e.LateEvidence(outcome=outcome, evidence=evidence)


def eventful(clock):
    """Runs in which everything happens that a metric counts."""
    first = RunBuilder(clock, run_id="r1", run_key="k1")
    first.planned("r1-a").decided().intent().later(2).lost().later(7).probed("applied")
    first.planned("r1-b").decided().intent().later(1).succeeded()
    first.planned("r1-twin", kind=ActionKind.DUPLICATE, of="r1-b").succeeded()
    first.planned("r1-c").record(e.ActionDenied(code="unregistered_inverse", reason="not the registered one"))
    first.planned("r1-d", irreversible(mode="on_approval")).decided().queued().later(3).asked().later(5).approved()
    first.planned("r1-w", irreversible()).decided().queued().later(4)
    first.moved(RunStatus.RECOVERING).on("r1-a").compensating().decided("undo").intent().later(1).not_sent()
    first.intent().later(2).lost().later(1).undone().later(6).record(
        e.EffectReappeared(observation=Observation(seen="applied"))
    )
    first.on("r1-b").compensating().decided("undo").intent().later(1).succeeded().undone("person")
    first.on("r1-twin").compensating().intent().later(9).lost().on("r1-twin").parked().escalated()
    first.moved(RunStatus.NEEDS_HUMAN)

    second = RunBuilder(clock, run_id="r2", run_key="k2", workflow="orders")
    second.later(DAY)
    second.planned("r2-a", reversible("jira.transition")).decided(version="site@sha256:2").intent().later(3).lost()
    second.planned("r2-b").decided().intent().later(1).not_sent().later(1).intent().later(1).refused()
    second.record(late(Outcome.SUCCEEDED))
    second.planned("r2-c").decided().intent().later(1).lost().later(1).parked().later(8).accepted()
    second.planned("r2-crash").decided().intent().later(3_600)

    third = RunBuilder(clock, run_id="r3", run_key="k3")
    third.planned("r3-a").decided().intent().later(1).succeeded().later(2)
    third.moved(RunStatus.RECOVERING).compensating().decided("undo").intent().later(1).succeeded().undone()
    third.moved(RunStatus.RECOVERED)
    return first, second, third


@pytest.fixture(scope="module")
def clock():
    return SimClock()


@pytest.fixture(scope="module")
def events(clock):
    events = EventList()
    store(events, *eventful(clock))
    return events


@pytest.fixture(scope="module")
def ledger(events, clock, tmp_path_factory):
    ledger = DuckdbLedger(events, tmp_path_factory.mktemp("ledger"), clock)
    ledger.refresh()
    return ledger


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_metric_equals_its_oracle(name, ledger, events, clock):
    """In an eventful ledger a metric has something to say, and it is what the oracle says."""
    wanted = expected(name, events.stored, as_of_us=clock.now_us())
    assert wanted
    close(told(ledger, name), wanted)


# The numbers a reader can check by hand: a mistake shared by SQL and oracle would show here.
HAND_COUNTED = {
    "unknown_rate": "SELECT sum(intents), sum(ever_unknown), sum(unanswered) FROM unknown_rate",
    "time_to_resolution": "SELECT sum(unknowns), sum(resolved), sum(closed_unresolved), sum(open) "
    "FROM time_to_resolution",
    "compensation_success": "SELECT sum(started), sum(verified), sum(by_person), sum(parked), sum(open) "
    "FROM compensation_success",
    "compensation_rate": "SELECT sum(effects), sum(compensated) FROM compensation_rate",
    "compensation_retries": "SELECT sum(compensations), sum(undo_sends), sum(retries) FROM compensation_retries",
    "escalation_rate": "SELECT count(DISTINCT tenant), max(needs_human), max(planned_approvals) FROM escalation_rate",
    "unregistered_inverse": "SELECT sum(calls), sum(unregistered) FROM unregistered_inverse",
    "duplicate_effects": "SELECT sum(effects), sum(duplicates) FROM duplicate_effects",
    "contradicted_outcomes": "SELECT sum(contradicted) FROM contradicted_outcomes",
    "open_unknowns": "SELECT sum(open), sum(overdue), max(oldest_seconds) FROM open_unknowns",
    "queue_age": "SELECT sum(waiting), sum(departed) FROM queue_age",
    "time_in_state": "SELECT sum(visits), sum(open) FROM time_in_state WHERE subject = 'run' AND status = 'open'",
}
BY_HAND = {
    "unknown_rate": (8, 4, 1),  # r1-a, r2-a, r2-c lost; r2-crash unanswered; r1-b, r3-a, r2-b twice told
    "time_to_resolution": (4, 1, 1, 2),  # r1-a proven; r2-c accepted; r2-a and r2-crash open
    "compensation_success": (4, 1, 1, 1, 1),  # r3-a; r1-b; r1-twin; r1-a came back
    "compensation_rate": (4, 3),  # r1-a, r1-b, r1-twin, r3-a had effects; the twin is not gone
    "compensation_retries": (4, 5, 1),  # r1-a took two sends
    "escalation_rate": (1, 1, 1),
    "unregistered_inverse": (10, 1),
    "duplicate_effects": (3, 1),
    "contradicted_outcomes": (2,),  # r1-a reappeared; r2-b's refusal was contradicted late
    "open_unknowns": (2, 1, 90_020.0),  # r2-a and the undo of r1-twin; r2-crash; the undo is oldest
    "queue_age": (3, 1),  # r1-d and r1-w in the outbox and an escalation wait; the approval was given
    "time_in_state": (3, 1),
}


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_metric_equals_what_a_person_counts(name, ledger):
    """The same ledger counted by hand."""
    assert ledger.query(HAND_COUNTED[name]).rows == (BY_HAND[name],)


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_window_selects_by_the_documented_moment(name, ledger):
    """Windows that meet, half open, add up to the whole, row for row; an empty window answers nothing."""
    midnight = "2023-11-15"  # the ledger begins on the 14th, UTC
    sql = metric_sql(name, windowed=True)
    before = ledger.query(sql, ["2023-01-01", midnight]).rows
    after = ledger.query(sql, [midnight, "2024-01-01 00:00:00"]).rows
    assert before + after == ledger.query(metric_sql(name)).rows
    assert before
    assert ledger.query(sql, ["2022-01-01", "2023-01-01"]).rows == ()


def observation(seen):
    return Observation(seen=seen)


STEPS = {
    "decided": lambda run: run.decided(),
    "policy changes": lambda run: run.decided(version="site@sha256:2"),
    "intent": lambda run: run.intent(),
    "lost": lambda run: run.lost(),
    "succeeded": lambda run: run.succeeded(),
    "not sent": lambda run: run.not_sent(),
    "refused": lambda run: run.refused(),
    "applied": lambda run: run.probed("applied"),
    "absent": lambda run: run.probed("absent"),
    "late yes": lambda run: run.record(late(Outcome.SUCCEEDED)),
    "late no": lambda run: run.record(late(Outcome.FAILED)),
    "queued": lambda run: run.queued(),
    "asked": lambda run: run.asked("forward"),
    "approved": lambda run: run.approved(),
    "expired": lambda run: run.closed("expired"),
    "withdrawn": lambda run: run.withdrawn(),
    "denied": lambda run: run.denied(),
    "compensating": lambda run: run.compensating(),
    "undone": lambda run: run.undone(),
    "person undid": lambda run: run.undone("person"),
    "reappeared": lambda run: run.record(e.EffectReappeared(observation=observation("applied"))),
    "parked": lambda run: run.parked(),
    "reopened": lambda run: run.reopened(),
    "accepted": lambda run: run.accepted(),
    "escalated": lambda run: run.escalated(),
    "recovering": lambda run: run.moved(RunStatus.RECOVERING),
    "needs human": lambda run: run.moved(RunStatus.NEEDS_HUMAN),
    "back": lambda run: run.on(run.state.actions[run.current].of or run.current),
    "next": lambda run: run.planned(run.fresh(f"{run.run_id}-act")),
    "twin": lambda run: run.planned(run.fresh(f"{run.run_id}-twin"), kind=ActionKind.DUPLICATE, of=run.current),
    "answer": lambda run: run.record(
        answered(run.action().contract, at_us=0, reference="x", effect={}, output={}, after={}, parts=())
    ),
}


@st.composite
def histories(draw):
    """Small ledgers: whatever sequence of facts the fold accepts."""
    clock = SimClock()
    runs = []
    for number in range(draw(st.integers(1, 2))):
        run = RunBuilder(clock, run_id=f"r{number}", run_key=f"k{number}").planned(f"r{number}-first")
        for step in draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=14)):
            with contextlib.suppress(AmendsError, KeyError):  # the fold refuses what cannot follow
                STEPS[step](run)
            run.later(draw(st.sampled_from((0.0, 0.5, 40.0, DAY))))
        runs.append(run)
    return clock, runs


@pytest.mark.timeout(900)  # the thorough profile takes its time
@settings(max_examples=settings().max_examples // 8)  # each example is a database of its own
@given(histories())
def test_metrics_equal_their_oracles_whatever_happened(history):
    """For any history that the fold accepts, all metrics agree with their oracles."""
    clock, runs = history
    events = EventList()
    store(events, *runs)
    with TemporaryDirectory() as folder:
        ledger = DuckdbLedger(events, Path(folder), clock)
        assert ledger.refresh().problems == ()
        for name in METRIC_NAMES:
            close(told(ledger, name), expected(name, events.stored, as_of_us=clock.now_us()))
