"""Two processes recover the same twenty dead runs at once."""

from collections import Counter

import pytest

from amends.testing.crash import KillPlan, audit, contradictions, meant, states, unfolded
from amends.testing.crash.worker import calls_of

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]

AGENTS, RUNS_EACH = 4, 5
UNDO_PATHS = ("/v1/reservations/*/release", "/v1/adjustments/*/void", "/v1/submissions/*/cancel")


def test_two_recoverers_share_twenty_dead_runs(stage, open_desk, capsys):
    """Every compensation happens once at the systems' side, every run settles, and both took runs over."""
    for agent in range(AGENTS):
        orders = [f"dead-{agent}-{n}" for n in range(RUNS_EACH)]
        plan = KillPlan("between", "after_outcome", 4, run=f"{orders[-1]}#1")
        killed = stage.agent([(order, 1, "leave") for order in orders], plan)
        assert killed.ended.wait(60)
        assert killed.death is not None
    effects = len(calls_of("any")) * AGENTS * RUNS_EACH
    assert len(stage.partner.present()) == effects

    one, two = stage.rescue_once(60), stage.rescue_once(60)
    assert one.ended.wait(120)
    assert two.ended.wait(120)

    desk = open_desk()
    owners = [child.of("swept")[0]["owner_id"] for child in (one, two)]
    runs = list(states(desk))
    claims = Counter(owner for run in runs for owner in _claimants(desk, run.run.run_id) if owner in owners)
    undone = Counter(e["effect_seq"] for e in stage.partner.effect_events() if e["event"] == "removed")
    sent = sum(
        request["handled_status"] == 200 for path in UNDO_PATHS for request in stage.partner.requests("POST", path)
    )
    sent += sum(request["handled_status"] == 204 for request in stage.partner.requests("DELETE"))
    with capsys.disabled():
        print(
            f"\n{len(runs)} dead runs, {effects} effects: take-overs {claims[owners[0]]} and {claims[owners[1]]}; "
            f"{sum(undone.values())} compensations at the partner's side, {sent} undo requests that took effect, "
            f"{stage.slack.count('message')} corrections"
        )
    assert "Traceback" not in stage.log.read_text()
    assert len(runs) == AGENTS * RUNS_EACH
    assert {run.run.status.value for run in runs} == {"recovered"}
    assert len(undone) == effects
    assert set(undone.values()) == {1}
    assert sent == effects
    assert stage.slack.count("message") == len(runs)
    assert all(claims[owner] > 0 for owner in owners)
    findings = audit(stage.partner, stage.slack, meant(desk))
    assert (findings.duplicates, findings.undone_twice, findings.residue) == ([], [], [])
    assert contradictions(desk, stage.partner, stage.slack) == []
    assert unfolded(desk) == []
    assert desk.kit.journal.verify() == ()


def _claimants(desk, run_id):
    """The owners that took a run over."""
    found = desk.sql(
        "SELECT payload ->> '$.holder.owner_id' FROM events WHERE run_id = ? AND kind = 'run_claimed'", (run_id,)
    )
    return [owner for (owner,) in found.rows]
