"""The write freeze: one name in a site's calendar stops every forward write, and recovery goes on."""

import pytest

from amends.core.errors import ConfigError
from amends.core.status import ActionStatus
from amends.testing.worlds import keyed, queued

FREEZE = """
[[calendar]]
name = "write_freeze"
time_zone = "UTC"
[[calendar.range]]
first_day = 2026-03-02
last_day = 2026-03-03
"""
ONLY_READS = '@id("site:none") @reason("x") forbid (principal is Amends::Human, action, resource) when { false };'
DAY_US = 86_400_000_000


@pytest.fixture
def frozen(load, site):
    """The authorizer of a site that freezes the Monday and Tuesday of the requests."""
    return load(site_bundle=site(ONLY_READS, windows__toml=FREEZE))


def test_forward_writes_and_releases_are_denied_by_policy(frozen, ask, contracts):
    """The decision names the baseline's policy and records the open name it rests on."""
    for request in (ask(), ask(contracts["notify"]), ask(contracts["notify"], "release")):
        decision = frozen.decide(request)
        assert (decision.verdict, decision.code) == ("deny", "forbidden")
        assert "amends:write-freeze" in decision.policy_ids
        assert "write_freeze" in decision.context["time"]["windows"]


def test_recovery_goes_on(frozen, ask, contracts):
    """Looking, taking back and telling people are no forward writes."""
    for request in (ask(phase="probe"), ask(phase="undo"), ask(contracts["correct"], "correct")):
        assert frozen.decide(request).allowed


def test_reads_go_on(frozen, ask, contracts):
    """A capability that changes nothing may be called."""
    reserve = contracts["reserve"]
    reading = reserve.model_copy(update={"effect": reserve.effect.model_copy(update={"changes": "none"})})
    assert frozen.decide(ask(reading, input=ask().input)).allowed


def test_freeze_ends_by_itself(frozen, ask):
    """The day after the range the same call is allowed again."""
    request = ask(now_us=ask().now_us + 2 * DAY_US)
    assert frozen.decide(request).allowed


def test_nobody_is_asked_whether_the_freeze_may_be_broken(frozen, ask):
    """What only an approval permits is denied as well: no tier opens a write freeze."""
    request = ask()
    assert frozen.decide(ask(input={**request.input, "quantity": 30})).verdict == "deny"


def test_no_site_removes_it(load, site):
    """It is the baseline's: `switch_off` names default permits of adapters only."""
    with pytest.raises(ConfigError, match="`amends:write-freeze` is no default permit"):
        load(site_bundle=site(ONLY_READS, manifest='switch_off = ["amends:write-freeze"]\n'))


UNTIL_MIDNIGHT = """
[[calendar]]
name = "write_freeze"
time_zone = "UTC"
[[calendar.range]]
first_day = 2023-11-14
last_day = 2023-11-14
"""  # the day on which worlds begin
ARGS = {"name": "o-1"}


def test_a_release_that_a_freeze_stopped_is_asked_about_again_when_a_person_says_so(cedar_world):
    """Rule 22: the end of the freeze is no new bundle; a person lets it be looked at again, and it leaves."""
    world = cedar_world(queued("shop.notify"))
    (engine,) = world.engines
    run = world.run()
    run.call("shop.notify", ARGS)
    world.authorizer.adopt(world.load(ONLY_READS, "1.1.0", **{"windows.toml": UNTIL_MIDNIGHT}))
    assert run.finish(wait_seconds=5).status.value == "needs_human"
    assert world.system.count() == 0
    (item,) = engine.escalations()
    assert "a write freeze is in force" in item.in_doubt
    world.clock.advance(86_400)
    engine.recover(wait_seconds=5)
    assert engine.state(run.run_id).run.status.value == "needs_human"
    engine.resolve(item.escalation_id, "look_again", by="maya")
    engine.recover(wait_seconds=5)
    assert engine.state(run.run_id).run.status.value == "committed"
    assert world.system.count() == 1


def test_a_run_that_died_before_a_freeze_is_recovered_during_it(cedar_world):
    """What the agent may not do any more, recovery takes back."""
    world = cedar_world(keyed("shop.reserve"))
    run = world.run()
    run.call("shop.reserve", ARGS)
    world.authorizer.adopt(world.load(ONLY_READS, "1.1.0", **{"windows.toml": UNTIL_MIDNIGHT}))
    assert run.call("shop.reserve", {"name": "o-2"}).status is ActionStatus.DENIED
    run.fail("the freeze began", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert world.system.count() == 0
