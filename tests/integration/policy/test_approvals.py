"""Approvals from the policy that asks to the call that is made: who may, who is asked, what they read, how long it
waits, and what the active bundle says when it is used (rule 30). Real Cedar, the runtime in memory.
"""

import pytest

from amends.config import PersonSettings
from amends.core.errors import CallerError, ConfigError
from amends.core.status import ActionStatus
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}
PEOPLE = {
    "fay": PersonSettings(roles=("finance",), tier=2),
    "fred": PersonSettings(roles=("finance",), tier=3),
    "oli": PersonSettings(roles=("operations",), tier=2),
    "both": PersonSettings(roles=("finance", "operations"), tier=2),
    "tim": PersonSettings(roles=(), tier=3),
}
HOUR_US = 3_600_000_000


def asking(condition, annotations=""):
    """A site that lets nobody take back a reservation unless `condition`."""
    return f"""@id("site:undo") @reason("a reservation is taken back after a yes") {annotations}
    forbid (principal, action == Shop::Action::"shop.reserve.undo", resource)
    unless {{ context has approval && {condition} }};"""


def waiting(cedar_world, condition, annotations=""):
    """A run whose undo waits for people; engine and question."""
    world = cedar_world(keyed("shop.reserve"), site=asking(condition, annotations), people=PEOPLE)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("it was told to", wait_seconds=60)
    (engine,) = world.engines
    (asked,) = engine.approvals()
    return world, run, engine, asked


def status_of(engine, approval_id):
    return next(row.status for s in [engine] for row in rows_of(s) if row.approval_id == approval_id)


def rows_of(engine):
    return [row for run in engine.runs() for row in engine.state(run.run_id).approvals.values()]


# --- who may ----------------------------------------------------------------------------------------------------


def test_any_of_several_roles_may_say_yes(cedar_world):
    """Where the policy takes either role, one person with one of them is enough."""
    either = (
        'context.approval.roles.containsAny([Amends::Role::"finance", Amends::Role::"operations"]) && '
        "context.approval.tier >= 2"
    )
    world, run, engine, asked = waiting(cedar_world, either)
    assert (asked.who_may, asked.people) == ("tier 2, finance or operations", 1)
    with pytest.raises(CallerError) as told:
        engine.approve(asked.approval_id, by="tim")
    assert told.value.hint == "it takes tier 2, finance or operations"
    engine.approve(asked.approval_id, by="oli")
    engine.recover(wait_seconds=60)
    assert engine.state(run.run_id).run.status.value == "recovered"
    assert world.system.count() == 0


def test_roles_that_are_needed_together_may_come_from_two_people(cedar_world):
    """One question; it is answered when the people who said yes hold every role between them."""
    both = 'context.approval.roles.containsAll([Amends::Role::"finance", Amends::Role::"operations"])'
    _, run, engine, asked = waiting(cedar_world, both)
    assert asked.who_may == "tier 1, finance and operations"
    engine.approve(asked.approval_id, by="fay")
    assert status_of(engine, asked.approval_id) == "pending"
    with pytest.raises(CallerError):
        engine.approve(asked.approval_id, by="fred")  # brings nothing that is missing
    engine.approve(asked.approval_id, by="oli")
    assert status_of(engine, asked.approval_id) == "approved"
    engine.recover(wait_seconds=60)
    assert engine.state(run.run_id).run.status.value == "recovered"


def test_roles_that_are_needed_together_may_come_from_one_person(cedar_world):
    """Who holds both says yes once."""
    both = 'context.approval.roles.containsAll([Amends::Role::"finance", Amends::Role::"operations"])'
    _, _, engine, asked = waiting(cedar_world, both)
    engine.approve(asked.approval_id, by="both")
    assert status_of(engine, asked.approval_id) == "approved"


def test_a_tier_that_takes_two_people_waits_for_both(cedar_world):
    """Four eyes: tier 2 twice, and one of the two from finance; the same person counts once."""
    finance = 'context.approval.roles.contains(Amends::Role::"finance")'
    two = f"context.approval.tier >= 2 && context.approval.count >= 2 && {finance}"
    world, run, engine, asked = waiting(cedar_world, two)
    assert asked.who_may == "tier 2, finance, 2 people"
    engine.approve(asked.approval_id, by="oli")
    with pytest.raises(CallerError):
        engine.approve(asked.approval_id, by="tim")  # then nobody from finance would have said yes
    engine.recover(wait_seconds=5)
    assert world.system.count() == 1
    engine.approve(asked.approval_id, by="fay")
    engine.recover(wait_seconds=60)
    state = engine.state(run.run_id)
    assert state.run.status.value == "recovered"
    (row,) = state.approvals.values()
    assert (row.status, row.approvers) == ("consumed", ("oli", "fay"))
    (undo,) = state.undos_of(next(iter(state.actions)))
    assert {entity["id"] for entity in undo.decided.context["approval"]["approvers"]} == {"oli", "fay"}


def test_a_lower_tier_may_not_answer(cedar_world):
    """Tiers are people's, from configuration; a policy's condition names the one it takes."""
    _, _, engine, asked = waiting(cedar_world, "context.approval.tier >= 3")
    with pytest.raises(CallerError, match="tier 2"):
        engine.approve(asked.approval_id, by="fay")
    engine.approve(asked.approval_id, by="tim")


def test_the_initiator_neither_approves_nor_counts_as_the_second(cedar_world):
    """Whatever tier and roles they hold."""
    people = {**PEOPLE, "user-7": PersonSettings(roles=("finance",), tier=3)}
    world = cedar_world(keyed("shop.reserve"), site=asking("context.approval.count >= 2"), people=people)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("it was told to", wait_seconds=60)
    (engine,) = world.engines
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="fay")
    with pytest.raises(CallerError, match="started this run"):
        engine.approve(asked.approval_id, by="user-7")


# --- what they read, whom it reaches, how long it waits ------------------------------------------------------------

WORDS = '@gate("Is this order really to be taken back?") @approver_role("finance") @ttl("2h")'


def test_the_asking_policy_says_why_and_what_and_until_when(cedar_world):
    """Its reason and its question are shown; its time is the default of the question's."""
    world, _, _, asked = waiting(cedar_world, "context.approval.tier >= 2", WORDS)
    assert asked.reasons == ("a reservation is taken back after a yes",)
    assert asked.question == "Is this order really to be taken back?"
    assert asked.asked_of == ("finance",)
    assert asked.expires_us == asked.asked_us + 2 * HOUR_US
    assert world.clock.now_us() < asked.expires_us


def test_annotations_permit_nothing_and_forbid_nothing(cedar_world):
    """`@approver_role` is whom to ask first: anybody whom the condition takes may answer, and nobody else."""
    _, _, engine, asked = waiting(cedar_world, "context.approval.tier >= 2", WORDS)
    assert asked.roles == ()
    engine.approve(asked.approval_id, by="oli")  # not from finance
    assert status_of(engine, asked.approval_id) == "approved"
    _, _, engine, asked = waiting(cedar_world, "context.approval.tier >= 3", WORDS)
    with pytest.raises(CallerError):
        engine.approve(asked.approval_id, by="fay")  # from finance, and tier 2


def test_a_policy_with_annotations_and_without_a_condition_asks_nobody(cedar_world):
    """A `@gate` on a plain forbid is a forbid."""
    site = f"""@id("site:undo") @reason("no") {WORDS}
    forbid (principal, action == Shop::Action::"shop.reserve.undo", resource);"""
    world = cedar_world(keyed("shop.reserve"), site=site)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("it was told to", wait_seconds=60)
    (engine,) = world.engines
    assert engine.approvals() == ()
    assert engine.state(run.run_id).run.status.value == "needs_human"


def test_of_several_asking_policies_the_shortest_time_counts(cedar_world):
    """And every question and role is shown."""
    site = (
        asking("context.approval.tier >= 1", WORDS)
        + """@id("site:second") @reason("the stock must be counted")
    @gate("Is it on the shelf?") @approver_role("stock") @ttl("30m")
    forbid (principal, action == Shop::Action::"shop.reserve.undo", resource)
    unless { context has approval };"""
    )
    world = cedar_world(keyed("shop.reserve"), site=site)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("it was told to", wait_seconds=60)
    (asked,) = world.engines[0].approvals()
    assert asked.expires_us == asked.asked_us + HOUR_US // 2
    assert asked.question == "Is it on the shelf?; Is this order really to be taken back?"
    assert asked.asked_of == ("finance", "stock")


def test_a_release_waits_no_longer_than_its_contract_lets_it(cedar_world):
    """A policy may shorten the time of a queued item, never lengthen it."""
    times = {}
    for ttl in ("1h", "90d"):
        site = f"""@id("site:send") @reason("somebody reads it first") @ttl("{ttl}")
        forbid (principal, action == Shop::Action::"shop.notify.release", resource)
        unless {{ context has approval }};"""
        world = cedar_world(queued("shop.notify", mode="on_approval"), site=site)
        run = world.run()
        run.call("shop.notify", ARGS)
        run.finish()
        (asked,) = world.engines[0].approvals()
        times[ttl] = (asked.expires_us - asked.asked_us) // HOUR_US
    assert times == {"1h": 1, "90d": 24}


@pytest.mark.parametrize("ttl", ["2 hours", "3600", "PT1H", "0s", "1.5h", "-1h", "2h1d", ""])
def test_a_time_that_is_none_is_refused_when_it_is_loaded(cedar_world, ttl):
    """By file, line, policy and remedy."""
    with pytest.raises(ConfigError, match=r"site/site.cedar:1: policy `site:undo`: `@ttl\(.*\)` is no time") as caught:
        cedar_world(keyed("shop.reserve"), site=asking("context.approval.tier >= 1", f'@ttl("{ttl}")'))
    assert '@ttl("2h")' in caught.value.hint


# --- time, and the bundle that is active when it is used -------------------------------------------------------------


def test_no_timer_answers_a_question(cedar_world):
    """Past the policy's own time the question is closed, unanswered; a person decides what becomes of the effect."""
    world, run, engine, asked = waiting(cedar_world, "context.approval.tier >= 2", WORDS)
    world.clock.advance(2 * 3600 + 1)
    engine.recover(run.run_id, wait_seconds=5)
    assert engine.approvals() == ()
    assert status_of(engine, asked.approval_id) in {"expired", "pending"}
    assert world.system.count() == 1


SAME = ("same", ActionStatus.COMPENSATED, None)
LOOSER = ("looser", ActionStatus.COMPENSATED, None)
HIGHER = ("higher", ActionStatus.NEEDS_HUMAN, "policy_changed")
DENIES = ("denies", ActionStatus.NEEDS_HUMAN, "policy_changed")
SECOND = {
    "same": asking("context.approval.tier >= 2"),
    "looser": asking("context.approval.tier >= 1"),
    "higher": asking("context.approval.tier >= 3"),
    "denies": """@id("site:undo") @reason("never")
    forbid (principal, action == Shop::Action::"shop.reserve.undo", resource);""",
}


@pytest.mark.parametrize(("second", "status", "cause"), [SAME, LOOSER, HIGHER, DENIES], ids=str)
def test_an_approved_undo_is_decided_again_under_the_active_bundle(cedar_world, second, status, cause):
    """Still fine: it is sent. A higher tier or a deny: a person decides, and the item names both versions."""
    world, run, engine, asked = waiting(cedar_world, "context.approval.tier >= 2")
    engine.approve(asked.approval_id, by="fay")
    world.authorizer.adopt(world.load(SECOND[second], "2.0.0"))
    engine.recover(wait_seconds=60)
    state = engine.state(run.run_id)
    (forward,) = state.forward_actions()
    assert forward.status is status
    (undo,) = state.undos_of(forward.action_id)
    assert undo.decided.policy_version.startswith("2.0.0@")
    assert undo.decided.context["run"]["forward_policy_version"].startswith("1.0.0@")
    assert undo.decided.context["run"]["policy_changed"] is True
    assert world.system.count() == (0 if status is ActionStatus.COMPENSATED else 1)
    items = [item for item in engine.escalations() if item.cause == cause] if cause else []
    assert bool(items) is bool(cause)
    for item in items:
        assert "1.0.0@sha256:" in item.in_doubt
        assert "2.0.0@sha256:" in item.in_doubt


@pytest.mark.parametrize("second", ["looser", "higher", "denies"])
def test_an_approved_release_is_decided_again_under_the_active_bundle(cedar_world, second):
    """The same for what leaves the outbox."""

    def site(text):
        return text.replace("shop.reserve.undo", "shop.notify.release")

    world = cedar_world(
        queued("shop.notify", mode="on_approval"), site=site(asking("context.approval.tier >= 2")), people=PEOPLE
    )
    run = world.run()
    run.call("shop.notify", ARGS)
    run.finish()
    (engine,) = world.engines
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="fay")
    world.authorizer.adopt(world.load(site(SECOND[second]), "2.0.0"))
    engine.recover(wait_seconds=5)
    state = engine.state(run.run_id)
    assert state.run.status.value == ("committed" if second == "looser" else "needs_human")
    assert world.system.count("shop.notify") == (1 if second == "looser" else 0)
    if second != "looser":
        assert [item.cause for item in engine.escalations()] == ["policy_changed"]
        assert status_of(engine, asked.approval_id) == "voided"


@pytest.mark.parametrize("second", ["looser", "higher", "denies"])
def test_an_approved_call_is_decided_again_under_the_active_bundle(cedar_world, second):
    """The same for a forward call that policy wanted approved."""

    def site(text):
        return text.replace("shop.reserve.undo", "shop.reserve")

    world = cedar_world(keyed("shop.reserve"), site=site(asking("context.approval.tier >= 2")), people=PEOPLE)
    run = world.run()
    assert run.call("shop.reserve", ARGS).status is ActionStatus.AWAITING_APPROVAL
    (engine,) = world.engines
    (asked,) = engine.approvals()
    engine.approve(asked.approval_id, by="fay")
    world.authorizer.adopt(world.load(site(SECOND[second]), "2.0.0"))
    result = run.call("shop.reserve", ARGS)
    assert result.status is (ActionStatus.SUCCEEDED if second == "looser" else ActionStatus.NEEDS_HUMAN)
    assert world.system.count() == (1 if second == "looser" else 0)
    if second != "looser":
        assert [item.cause for item in engine.escalations()] == ["policy_changed"]
    run.fail("the end of the test", wait_seconds=60)
