"""Writes the golden ledger of the present format, from real runs of the engine over a scripted system.

    python tests/golden/ledgers/make.py

A golden ledger of a released format is never made again: it is what the users of that release have. Until the release
it may be, whenever a fact gains or loses a field. The time, the ids and the system are told, so equal code writes equal
bytes.
"""

import json
from dataclasses import replace
from pathlib import Path

from amends.core import events as e
from amends.core import fold
from amends.core.contract import Identity
from amends.core.errors import AmendsError
from amends.core.events import LEDGER_FORMAT
from amends.ports.journal import RowKey
from amends.ports.lines import to_line
from amends.runtime import policing
from amends.runtime.book import Draft
from amends.runtime.replaying import event_of
from amends.testing.fakes import DENY, needs_approval
from amends.testing.scripted import Thing
from amends.testing.worlds import (
    World,
    blind,
    corrector,
    gate,
    keyed,
    ledger_faults,
    prepared,
    queued,
    removing,
    setting,
    visible,
)

FOLDER = Path(__file__).parent
RULES = {
    "shop.forbidden": DENY,
    "shop.publish.release": needs_approval(1, "owner"),
    "shop.buy": needs_approval(2),
    "shop.buy.release": needs_approval(2),
}


def main():
    """Write `format-<n>.jsonl`, every event, and `format-<n>.json`, where each run and action stood at the end."""
    world = World(
        keyed("shop.reserve"),
        keyed("shop.book", identity=Identity(fields=("name",), scope="workflow")),
        keyed("shop.forbidden"),
        blind("shop.shout"),
        queued("shop.notify"),
        prepared("shop.publish"),
        gate("shop.buy"),
        setting("flags.set"),
        visible("shop.announce"),
        removing(),
        corrector(),
    )
    world.authorizer.rules = RULES
    first, second = world.engine("owner-1"), world.engine("owner-2")
    system_facts(world, first)
    forward_runs(world, first)
    recovered_runs(world, first)
    asked_runs(world, first)
    taken_over_run(world, second)
    late_facts(world, second)
    unreadable_run(world, second)
    faults = ledger_faults(world.journal)
    if faults:
        raise SystemExit("\n".join(faults))
    write(world.journal)
    world.close()


def write(journal):
    """Write the events, and what they fold to."""
    stored = journal.events_after(0)
    lines = "".join(f"{to_line(one)}\n" for one in stored)
    (FOLDER / f"format-{LEDGER_FORMAT}.jsonl").write_text(lines, encoding="utf-8")
    streams = {one.event.run_id for one in stored} - {e.SYSTEM_STREAM}
    ends = {run: end_of(fold.replay(event_of(x) for x in stored if x.event.run_id == run)) for run in sorted(streams)}
    (FOLDER / f"format-{LEDGER_FORMAT}.json").write_text(json.dumps(ends, indent=1) + "\n", encoding="utf-8")


def end_of(state):
    """Where a run stands: what must never read differently."""
    run = state.run
    return {
        "run": [run.run_key, run.status.value, run.epoch, run.head],
        "actions": {
            a.action_id: [a.kind.value, a.capability, a.status.value, a.outcome.value, a.attempt, a.compensated_how]
            for a in state.actions.values()
        },
        "approvals": {a.approval_id: a.status for a in state.approvals.values()},
        "escalations": {i.escalation_id: [i.cause, i.status, i.choice] for i in state.escalations.values()},
    }


def system_facts(world, engine):
    """A bundle, one that was refused, a pause and its end, a certificate."""
    bundle, journal = world.authorizer.bundle(), engine.kit.journal
    policing.keep_sources(engine.book, journal, [bundle])
    policing.activated(engine.book, journal, bundle)
    reasons = ("site/site.cedar:3: policy has no `@id`",)
    policing.refused(
        engine.book, journal, "active", version="2.0.0@sha256:0", digest="0", reasons=reasons, kept=bundle.version
    )
    certified = e.DrillCertified(
        capability="shop.reserve",
        contract_digest=world.capabilities[0].contract.digest,
        subject_digest="0" * 64,
        engine_major=0,
        expires_us=world.clock.now_us() + 86_400_000_000,
        detail="done, verified, undone, verified",
    )
    engine.book.record_system([certified])
    engine.pause("tenant:elsewhere", reason="they asked", by="maya")
    engine.lift_pause("tenant:elsewhere", by="maya")


def forward_runs(world, engine):
    """One commits, with its outbox; one is denied a call."""
    with world.run("commits", engine=engine) as run:
        run.call("shop.reserve", {"name": "o-1"})
        run.call("shop.book", {"name": "o-1"})
        run.call("flags.set", {"name": "beta", "value": "on"})
        run.call("shop.notify", {"name": "o-1"})
    with world.run("denied", engine=engine) as run:
        run.call("shop.forbidden", {"name": "o-1"})


def recovered_runs(world, engine):
    """Lost answers on the way there and back, a proposed inverse, a correction; and one only a person can settle."""
    world.system.tell("shop.reserve", "do", "lost")
    world.system.tell("flags.set", "undo", "lost")
    run = world.run("dies", engine=engine)
    run.call("shop.reserve", {"name": "o-2"})
    run.call("flags.set", {"name": "gamma", "value": "on"})
    run.call("shop.announce", {"name": "o-2"})
    world.clock.advance(25)
    run.call("shop.release", {"name": "o-2"})
    run.call("shop.notify", {"name": "o-2"})
    run.fail("it was told to", wait_seconds=60)
    world.system.tell("shop.shout", "do", "lost")
    run = world.run("shouts", engine=engine)
    run.call("shop.shout", {"name": "o-5"})
    run.fail("it was told to", wait_seconds=60)
    for item in engine.escalations():
        engine.acknowledge(item.escalation_id, by="maya")
        choice = "accept_as_is" if "accept_as_is" in item.choices else item.choices[0]
        engine.resolve(item.escalation_id, choice, by="maya", comment="seen", evidence="ticket 7")
    engine.recover(wait_seconds=60)


def asked_runs(world, engine):
    """A yes, a no, no answer in time, and a gate in mid-run."""
    for key in ("yes", "no", "expires"):
        with world.run(key, engine=engine) as run:
            run.call("shop.publish", {"name": key})
        (asked,) = engine.approvals()
        if key == "yes":
            engine.approve(asked.approval_id, by="noor", comment="fine")
        elif key == "no":
            engine.reject(asked.approval_id, by="maya", comment="not now")
        else:
            world.clock.advance(90_000)
        engine.recover(wait_seconds=60)
    run = world.run("gated", engine=engine)
    run.call("shop.buy", {"name": "o-9"})
    for asked in engine.approvals():
        engine.approve(asked.approval_id, by="noor")
    run.call("shop.buy", {"name": "o-9"})
    run.finish(wait_seconds=60)


def taken_over_run(world, engine):
    """Its driver dies; another goes back to a checkpoint, a session resumes, a lease is renewed."""
    run = world.run("taken")
    run.call("shop.reserve", {"name": "o-6"})
    run.checkpoint("reserved")
    world.system.tell("shop.announce", "do", "lost")
    lost = run.call("shop.announce", {"name": "o-6"})
    made = [thing.reference for thing in world.system.things.values() if thing.capability == "shop.announce"]
    engine.report(run.run_id, lost.action_id, happened=True, source="the shop", reference=made[-1])
    world.die("owner-1")
    engine.recover(run.run_id, to="reserved", by="maya", wait_seconds=120)
    again = world.run("taken", engine=engine, resume=True)
    again.call("shop.reserve", {"name": "o-6b"})
    until_us = world.clock.now_us() + 30_000_000
    engine.book.record(run.run_id, lambda _: [Draft(e.LeaseRenewed(lease_until_us=until_us))])
    again.finish(wait_seconds=60)


def late_facts(world, engine):
    """An effect lands after its undo was verified; a bundle reopens what another parked; a success is revoked."""
    world.system.tell("shop.reserve", "do", "lost")
    run = world.run("late", engine=engine)
    result = run.call("shop.reserve", {"name": "o-7"})
    run.fail("it was told to")
    world.system.things["late"] = Thing("late", "shop.reserve", "o-7", result.action_id, "")
    engine.recover(run.run_id, wait_seconds=200)
    run = world.run("policy", engine=engine)
    run.call("shop.reserve", {"name": "o-8"})
    world.authorizer.rules, world.authorizer.version = {"*.undo": DENY}, "fake@sha256:2"
    run.fail("it was told to", wait_seconds=60)
    world.authorizer.rules, world.authorizer.version = RULES, "fake@sha256:3"
    engine.recover(wait_seconds=60)
    run = world.run("revoked", engine=engine)
    result = run.call("shop.reserve", {"name": "o-11"})
    run.finish(wait_seconds=60)
    engine.report(run.run_id, result.action_id, happened=False, source="the shop")


def unreadable_run(world, engine):
    """Its row is damaged, is found so, and is put right again; a person is told and lifts its quarantine."""
    key = RowKey("run", engine.find("order", "revoked").run.run_id)
    good = world.journal._rows[key]
    world.journal._rows[key] = replace(good, body="{}")
    engine.book.forget(key.key)
    try:
        engine.state(key.key)
    except AmendsError:
        world.journal._rows[key] = good
    engine._made.sweeper.pager.page_quarantines()
    engine.lift_quarantine(key.key, by="maya", comment="its row is whole again")


if __name__ == "__main__":
    main()
