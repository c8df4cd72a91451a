"""The write freeze: one name in a site's calendar stops every forward write, and recovery goes on."""

import pytest

from amends.core.errors import ConfigError

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
