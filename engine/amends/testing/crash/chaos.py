"""Chaos: agents and those who recover are killed and frozen at random moments over real systems, and the systems count.

    python -m amends.testing.crash.chaos [--kills N] [--freezes N] [--seed S] [--jobs N]

The seed chooses who is stopped where; the moment it takes is the machine's. Exit 1 on two effects under one key, on any
under kills where effects can be found again, on anything undone twice or left, on a ledger that does not hold, and if
the control, the same calls without a ledger, shows no duplicate.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random  # noqa: TID251 - who runs a campaign names its seed

from rich.console import Console

from amends.testing.crash.audit import (
    again_made,
    audit,
    contradictions,
    meant,
    states,
    twice_made,
    unfolded,
    unmirrored,
)
from amends.testing.crash.campaign import CALLS, Campaign
from amends.testing.crash.counting import Cause, Chaos, Control, kind_of, tables_of
from amends.testing.crash.killer import KillPlan
from amends.testing.crash.project import ENVIRONMENT
from amends.testing.crash.showing import bar_over
from amends.testing.crash.stage import Stage
from amends.testing.crash.worker import calls_of

_SLEEPERS = 4  # threads that freeze: they mostly wait
_BETWEEN = 3  # every third freeze is exactly between the last check and the send
_CONTROL = 10  # one kill without a ledger for so many with one
_TOLD = 40


@dataclass
class _Rest:
    """How many are still to be stopped, shared by the threads that stop."""

    number: int
    done: Callable[[], int]
    told: Callable[[int], None]
    started: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def turns(self) -> Iterator[int]:
        """One turn after another, until enough were hit."""
        while True:
            with self.lock:
                hit = self.done()
                self.told(min(hit, self.number))
                if hit >= self.number:
                    return
                self.started += 1
                turn = self.started
            yield turn


def run(
    folder: Path, *, kills: int, freezes: int, seed: int, jobs: int, told: Callable[[str, int], None] | None = None
) -> Chaos:
    """Stop so many, recover all, and count. The environment must hold `project.ENVIRONMENT`."""
    tell = told or _nobody
    begun = time.monotonic()
    with ExitStack() as ends:
        stage = ends.enter_context(Stage(folder / "amends"))
        killing, freezing = Campaign(stage, "kill", 30.0), Campaign(stage, "freeze", 2.0, short_lease=True)
        ends.callback(killing.close)
        ends.callback(freezing.close)
        killing.begin(jobs)
        freezing.begin(_SLEEPERS)
        with _people(killing, freezing) as asked:
            _stop(killing, freezing, kills, freezes, seed, jobs, tell)
            killing.finish()
            freezing.finish()
        found = _examined(stage, killing, freezing)
        found.seed, found.jobs, found.asked = seed, jobs, asked
    control = max(1, kills // _CONTROL)
    with Stage(folder / "control") as stage:
        found.control = _control(stage, control, _dice(seed, "control"), lambda n: tell("control", n))
    found.seconds = time.monotonic() - begun
    return found


def _nobody(what: str, number: int) -> None:
    """Nobody is told."""


def _dice(seed: int, lane: str) -> Random:
    return Random(f"{seed}/{lane}")  # noqa: S311 - choices of a test


def _stop(
    killing: Campaign,
    freezing: Campaign,
    kills: int,
    freezes: int,
    seed: int,
    jobs: int,
    tell: Callable[[str, int], None],
) -> None:
    to_kill = _Rest(kills, lambda: len(killing.deaths), lambda n: tell("kills", n))
    to_freeze = _Rest(freezes, lambda: len(freezing.frozen) + len(freezing.slept), lambda n: tell("freezes", n))

    def kill(lane: int) -> None:
        dice = _dice(seed, f"kill/{lane}")
        for _ in to_kill.turns():
            killing.kill(lane, dice)

    def freeze(lane: int) -> None:
        dice = _dice(seed, f"freeze/{lane}")
        for turn in to_freeze.turns():
            between = turn // _BETWEEN % CALLS + 1 if turn % _BETWEEN == 0 else None
            freezing.freeze(lane, dice, between)

    with ThreadPoolExecutor(jobs + _SLEEPERS) as pool:
        lanes = [pool.submit(kill, n) for n in range(jobs)] + [pool.submit(freeze, n) for n in range(_SLEEPERS)]
        for lane in lanes:
            lane.result()


class _people:  # noqa: N801 - a context manager, used as a function
    """Somebody answers what is asked, all the while; counts the questions by their cause."""

    def __init__(self, *campaigns: Campaign) -> None:
        self._campaigns = campaigns
        self._over = threading.Event()
        self._asked: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._work, name="people", daemon=True)

    def __enter__(self) -> Counter[str]:
        self._thread.start()
        return self._asked

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(0.5):
            for campaign in self._campaigns:
                self._asked.update(campaign.answer())


# --- counting -------------------------------------------------------------------------------------------------


def _examined(stage: Stage, killing: Campaign, freezing: Campaign) -> Chaos:
    chaos = Chaos(0, 0, killing.deaths, freezing.frozen, freezing.slept)
    both = (killing, freezing)
    between = {f.order for f in freezing.frozen if f.between is not None}
    findings = audit(stage.partner, stage.slack, [marker for campaign in both for marker in meant(campaign.desk)])
    for effect in [*stage.partner.effects(), *stage.slack.effects()]:
        chaos.made[kind_of(effect)] += 1
    order_of = {a: s.run.run_key.split("#")[0] for c in both for s in states(c.desk) for a in s.actions}
    own = {effect["marker"] for system in (stage.partner, stage.slack) for effect, _ in again_made(system)}
    for effect, said in [*twice_made(stage.partner), *twice_made(stage.slack)]:
        order = order_of.get(effect["marker"], "")
        cause: Cause = "between" if order in between else "freeze" if order.startswith("freeze-") else "kill"
        chaos.twice[kind_of(effect), cause] += 1
        under_its_key = kind_of(effect) == "keyed" and effect["marker"] in own
        if cause != "between" or under_its_key:
            chaos.differences.append(f"{order}: {said}")
    chaos.undone_twice = findings.undone_twice
    wrong = [f"left behind: {left}" for left in findings.residue]
    for campaign in both:
        wrong += contradictions(campaign.desk, stage.partner, stage.slack)
        chaos.differences += [*campaign.wrong, *unfolded(campaign.desk), *unmirrored(campaign.desk)]
        chaos.differences += map(str, campaign.desk.kit.journal.verify())
        chaos.orders += len(campaign.orders)
        chaos.runs += len(campaign.desk.runs(limit=100_000))
        chaos.events += campaign.desk.kit.journal.info().events
    for found in wrong:
        honest = any(f"{order}{end}" in found for order in between for end in ("#", "-box", "-fee", " "))
        (chaos.stays if honest else chaos.differences).append(found)
    complaints = stage.log.read_text(encoding="utf-8")
    if "Traceback" in complaints:
        chaos.differences.append(f"a process broke: {complaints[-2000:]}")
    return chaos


def _control(stage: Stage, kills: int, dice: Random, told: Callable[[int], None]) -> Control:
    control = Control()
    while control.kills < kills:
        order = f"naive-{control.orders}"
        plan = KillPlan("any", "after_intent", delay_seconds=dice.uniform(0.0005, 0.02))
        killed = stage.naive([(order, 1, "commit")], plan)
        killed.ended.wait(60)
        if killed.death is not None:
            control.kills += 1
            stage.naive([(order, 2, "commit")]).ended.wait(60)
        control.orders += 1
        told(control.kills)
    control.expected = control.orders * len(calls_of("any"))
    control.seen = len(stage.partner.present())
    control.duplicates = sum(1 for _ in twice_made(stage.partner))
    return control


# --- what is told ---------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Stop, recover, count, print the tables."""
    parser = argparse.ArgumentParser(prog="amends.testing.crash.chaos", description="Kills and freezes at random.")
    parser.add_argument("--kills", type=int, default=1000, help="how many SIGKILLs (default %(default)s)")
    parser.add_argument("--freezes", type=int, default=200, help="how many SIGSTOPs (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="what chooses who is stopped where")
    parser.add_argument("--jobs", type=int, default=2, help="how many are killed at once (default %(default)s)")
    options = parser.parse_args(argv)
    if min(options.kills, options.freezes) < 0 or options.jobs < 1:
        parser.error("--kills and --freezes cannot be below 0, --jobs not below 1")
    os.environ.update(ENVIRONMENT)
    totals = {"kills": options.kills, "freezes": options.freezes, "control": max(1, options.kills // _CONTROL)}
    with tempfile.TemporaryDirectory(prefix="amends-chaos-") as folder, bar_over(totals) as told:
        chaos = run(
            Path(folder),
            kills=options.kills,
            freezes=options.freezes,
            seed=options.seed,
            jobs=options.jobs,
            told=told,
        )
    _tell(chaos)
    enough = len(chaos.deaths) >= options.kills and len(chaos.frozen) + len(chaos.slept) >= options.freezes
    return 0 if chaos.sound and enough else 1


def _tell(chaos: Chaos) -> None:
    console = Console(width=max(Console().width, 110))
    for table in tables_of(chaos):
        console.print(table)
    for found in [*chaos.differences, *chaos.undone_twice][:_TOLD]:
        console.print(found, style="red", highlight=False, markup=False)
    for found in chaos.stays[:_TOLD]:
        console.print(f"after a freeze between check and send: {found}", highlight=False, markup=False)
    for what, number in sorted(chaos.asked.items()):
        console.print(f"a person was asked {number} times: {what}", highlight=False)
    held = "nothing differs: ledger verified and mirrored" if not chaos.differences else "see above what differs"
    console.print(
        f"seed {chaos.seed}: {len(chaos.deaths)} kills and {len(chaos.frozen) + len(chaos.slept)} freezes in"
        f" {chaos.seconds:.0f} s; {chaos.orders} orders, {chaos.runs} runs, {chaos.events} events;"
        f" undone twice {len(chaos.undone_twice)}, differences {len(chaos.differences)}; {held}",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
