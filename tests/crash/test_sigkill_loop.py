"""A run loop is killed again and again, at every point of a call and of a recovery, and recovered each time by another
process; the systems' own side counts. Beside it, the same loop without a ledger. `make chaos` is the long form.
"""

import random
import time
from collections import Counter, deque
from itertools import count

import pytest

from amends.testing.crash import GAPS, KillPlan, audit, contradictions, meant, unfolded, unmirrored

pytestmark = [pytest.mark.crash, pytest.mark.timeout(420)]

PATHS = ("/v1/reservations", "/v1/adjustments", "/v1/orders/*", "/v1/submissions")
FORWARD = {"pre-send": ("after_intent", "before_call"), "pre-outcome": ("after_call", "before_outcome")}
BACKWARD = {
    "freeze": ("after_freeze", "after_plan"),
    "undo": ("before_undo", "after_probe", "after_undo"),
    "verify": ("before_verify", "before_probe", "after_probe", "after_verify"),
    "correction": ("before_correction", "before_call", "after_call", "before_outcome", "after_correction"),
}
KILLS = 60
ONCE = {"freeze", "correction"}  # a run freezes once and tells one place


class Campaign:
    """Kills agents and rescuers by plan. Every order is taken up again until one run of it commits."""

    def __init__(self, stage, seed):
        self.stage = stage
        self.dice = random.Random(seed)
        self.orders = (f"order-{n}" for n in count(1))
        self.again = deque()  # (order, attempt) of runs that died or found the order taken
        self.made = []
        self.missed = []
        self.rescuer = stage.rescuer()

    def kill_agent(self, plan_of, ending="commit"):
        """One run loop: an order taken up again, then a new one, in which it is killed."""
        order = self._new_order()
        errands = [(order, 1, ending)]
        if len(self.again) > 4:
            earlier, attempt = self.again.popleft()
            errands.insert(0, (earlier, attempt, "commit"))
        agent = self.stage.agent(errands, plan_of(order))
        self._take_up(agent, errands, killed=True)

    def kill_rescuer(self, plan, before=None):
        """A run dies, and so does the process that recovers it; a third one takes over."""
        self.rescuer.aim(plan)
        self.kill_agent(before or (lambda order: held("between", "after_outcome", 4, order)))
        if not self.rescuer.ended.wait(20):
            self.missed.append(plan)
            self.rescuer.aim(None)
            return
        self.rescuer = self.stage.rescuer()

    def finish(self):
        """Take up what is left until each order has a run that committed, and end the rescuer."""
        until = time.monotonic() + 60
        while self.again and time.monotonic() < until:
            errands = [(order, attempt, "commit") for order, attempt in self.again]
            self.again.clear()
            self._take_up(self.stage.agent(errands), errands, killed=False)

    def _new_order(self):
        self.made.append(next(self.orders))
        return self.made[-1]

    def _take_up(self, agent, errands, *, killed):
        assert agent.ended.wait(60), f"{agent.name} hangs at {agent.said}"
        if killed and agent.death is None and not agent.plan.delay_seconds:
            self.missed.append(agent.plan)
        ran = {(said["order"], said["attempt"]): said["status"] for said in agent.of("ran")}
        for order, attempt, _ in errands:
            if ran.get((order, attempt)) != "committed":
                self.again.append((order, attempt + 1))


def held(gap, milestone, nth, order):
    return KillPlan(gap, milestone, nth, run=f"{order}#1")


def at_random(dice):
    """At any moment from the first intent on."""
    seconds = dice.uniform(0.001, 0.4)
    return lambda order: KillPlan("intent", "before_intent", run=f"{order}#1", delay_seconds=seconds)


def forward_plans(campaign):
    """Kills between intent and outcome, at each of the four calls."""
    stage = campaign.stage
    for gap, milestones in FORWARD.items():
        for n in range(4):
            yield lambda order, g=gap, m=milestones[n % 2], nth=n % 4 + 1: held(g, m, nth, order)
    for n in range(8):
        yield lambda order, nth=n % 4 + 1, n=n: in_call(stage, order, nth, ("before", "after")[n // 4 % 2])


def in_call(stage, order, nth, moment):
    """The request has reached the partner, which commits before or after the kill."""
    method = "PUT" if nth == 3 else "POST"
    path = PATHS[nth - 1] if nth != 3 else f"/v1/orders/{order}/carrier-instructions"
    where = {} if nth == 3 else {"order": order}
    fault = stage.partner.arm(f"delay_{moment}_commit", method=method, path=path, where=where, seconds=0.2)
    return KillPlan("pre-send", "before_call", nth, run=f"{order}#1", in_flight=lambda: stage.partner.fired(fault) > 0)


def undo_in_flight(stage, order):
    """The undo of the carrier's instructions is at the partner."""
    path = f"/v1/orders/{order}/carrier-instructions"
    fault = stage.partner.arm("delay_after_commit", method="DELETE", path=path, seconds=0.2)
    return KillPlan("undo", "after_probe", 2, run=f"{order}#1", in_flight=lambda: stage.partner.fired(fault) > 0)


def backward_plans(stage, times):
    """Kills between freeze and settled, for an agent that fails its own run."""
    for gap, milestones in BACKWARD.items():
        for n in range(times[gap]):
            milestone, nth = milestones[n % len(milestones)], 1 if gap in ONCE else n % 4 + 1
            yield lambda order, g=gap, m=milestone, nth=nth: held(g, m, nth, order)
    yield lambda order: undo_in_flight(stage, order)


def rescuer_plans(times):
    """The same for the process that recovers."""
    for gap, milestones in BACKWARD.items():
        for n in range(times[gap]):
            yield KillPlan(gap, milestones[n % len(milestones)], 1 if gap in ONCE else n % 4 + 1)


def test_sixty_kills_leave_no_duplicate_and_no_residue(stage, open_desk, unsettled_after, capsys):
    """After sixty SIGKILLs, each followed by recovery in another process, ledger and systems say the same."""
    campaign = Campaign(stage, seed=7)
    begun = time.monotonic()
    schedule = [lambda p=p: campaign.kill_agent(p) for p in forward_plans(campaign)]
    own = {"freeze": 2, "undo": 4, "verify": 4, "correction": 3}
    schedule += [lambda p=p: campaign.kill_agent(p, "fail") for p in backward_plans(stage, own)]
    others = {"freeze": 2, "undo": 3, "verify": 4, "correction": 3}
    schedule += [lambda p=p: campaign.kill_rescuer(p) for p in rescuer_plans(others)]
    probing = KillPlan("probe", "after_probe")
    schedule.append(lambda: campaign.kill_rescuer(probing, lambda order: held("pre-outcome", "after_call", 2, order)))
    campaign.dice.shuffle(schedule)
    for kill in schedule:
        kill()
    while len(stage.killer.deaths) < KILLS:  # the rest at random: some finish before they are hit
        campaign.kill_agent(at_random(campaign.dice), "fail")
    killed_seconds = time.monotonic() - begun
    campaign.finish()
    desk = open_desk()
    unsettled = unsettled_after(desk, 30)
    seconds = time.monotonic() - begun

    deaths = stage.killer.deaths
    gaps = Counter(death.gap for death in deaths)
    findings = audit(stage.partner, stage.slack, meant(desk))
    with capsys.disabled():
        print(f"\n{'gap':<12} {'kills':>5}  agent rescuer  held in-flight random")
        for gap in (*GAPS, *sorted(set(gaps) - set(GAPS))):
            mine = [death for death in deaths if death.gap == gap]
            who = Counter(death.name.split("-")[0] for death in mine)
            how = Counter(death.how for death in mine)
            print(
                f"{gap:<12} {len(mine):>5}  {who['agent']:>5} {who['rescuer']:>7}"
                f"  {how['held']:>4} {how['in flight']:>9} {how['at random']:>6}"
            )
        print(
            f"{len(deaths)} kills in {killed_seconds:.0f} s, settled after {seconds:.0f} s; "
            f"{len(desk.runs(limit=10_000))} runs of {len(campaign.made)} orders, "
            f"{desk.kit.journal.info().events} events; duplicates {len(findings.duplicates)}, "
            f"undone twice {len(findings.undone_twice)}, residue {len(findings.residue)}"
        )
    assert "Traceback" not in stage.log.read_text()
    assert campaign.missed == []
    assert len(deaths) == KILLS
    assert all(gaps[gap] >= 2 for gap in GAPS)
    assert unsettled == []
    assert findings.duplicates == []
    assert findings.undone_twice == []
    assert findings.residue == []
    assert contradictions(desk, stage.partner, stage.slack) == []
    assert desk.kit.journal.verify() == ()
    assert unfolded(desk) == []
    assert unmirrored(desk) == []
    assert not campaign.again
    for kind in ("reservation", "adjustment", "carrier_instructions", "submission"):
        assert stage.partner.count(kind) == len(campaign.made), kind


def test_the_naive_control_leaves_duplicates_and_residue(stage, capsys):
    """The same orders, killed in the same places, restarted from the beginning, without a ledger: it must fail."""
    dice = random.Random(7)
    cancelled, placed = [], []
    for n in range(12):
        order = f"naive-{n}"
        gap, milestone = dice.choice([("in-call", "in_flight"), ("pre-outcome", "after_call"), ("undo", "before_undo")])
        nth = n % 4 + 1
        ending = "fail" if gap == "undo" or n % 2 else "commit"
        plan = in_call(stage, order, nth, "before") if gap == "in-call" else held(gap, milestone, nth, order)
        killed = stage.naive([(order, 1, ending)], plan)
        assert killed.ended.wait(30)
        assert killed.death is not None
        again = stage.naive([(order, 2, ending)])
        assert again.ended.wait(30)
        (cancelled if ending == "fail" else placed).append(order)
    findings = audit(stage.partner, stage.slack, ())
    residue = [e for e in stage.partner.present() if any(f":{order}" in f"{e['resource']}/" for order in cancelled)]
    with capsys.disabled():
        print(
            f"\nnaive control: {len(stage.killer.deaths)} kills, {len(findings.duplicates)} duplicates, "
            f"{len(residue)} effects left of {len(cancelled)} cancelled orders"
        )
    assert findings.duplicates
    assert residue
