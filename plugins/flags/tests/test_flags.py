"""The flag capabilities against an Unleash over real sockets, traps included; state is read at the server's side."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from amends.core.registration import refusals
from amends.spi import ConfigError, NotSent, Refused
from amends.spi.http import Ambiguous
from amends.testing.policies import policy_problems

FEATURE = "/api/admin/projects/default/features"
COHORT = {
    "feature": "billing",
    "cohort": "qa",
    "constraints": [{"contextName": "cohort", "operator": "IN", "values": ["qa"]}],
}


def seen_at_server(unleash, feature, environment="staging"):
    """Switch and strategies without ids, as they truly are."""
    body = unleash.foreign("GET", f"{FEATURE}/{feature}/environments/{environment}")["body"]
    hidden = {"id", "featureName", "projectId", "environment"}
    return body["enabled"], [{k: v for k, v in one.items() if k not in hidden} for one in body["strategies"]]


def fitting(capability, state):
    """The first rung whose `when` matches."""
    return next(a.name for a in capability.contract.compensation if all(state.get(k) in v for k, v in a.when.items()))


def writes(unleash):
    return [(row["method"], row["path"].rsplit("/", 1)[-1]) for row in unleash.requests() if row["method"] != "GET"]


def test_every_contract_may_be_registered(shelf):
    """Each contract is complete, names the environment in its resource, and tells a named person."""
    assert {name: refusals(c.contract) for name, c in shelf.capabilities.items()} == dict.fromkeys(
        ("flags.set", "flags.strategy", "flags.variants", "flags.create", "flags.archive"), ()
    )
    for capability in shelf.capabilities.values():
        assert capability.contract.effect.resource == "flag:default/{feature}@staging"
        assert capability.contract.signal.place == "person:maya"


def test_default_policies_hold_under_the_baseline(shelf):
    """They load in strict mode beside the baseline, and the tests that go with them pass."""
    [contribution] = shelf.contributions
    contracts = [capability.contract for capability in shelf.capabilities.values()]
    assert policy_problems("flags", contracts, contribution) == []


def test_on_adds_a_strategy_and_undo_takes_it_back_too(unleash, driver):
    """An environment without strategies: off alone would leave the strategy that lets everybody in."""
    before = seen_at_server(unleash, "fresh")
    switch = driver("set", feature="fresh", enabled=True)
    done = switch.do()
    assert done.effect["added_strategies"] == 1
    assert seen_at_server(unleash, "fresh")[0] is True
    seen = switch.probe()
    assert (seen.seen, seen.parts) == ("applied", ("enabled", "strategies"))
    rung = fitting(switch.capability, seen.state)
    assert rung == "remove_added_strategy"
    switch.undo(rung)
    assert switch.verify().seen == "absent"
    assert seen_at_server(unleash, "fresh") == before
    assert [method for method, _ in writes(unleash)] == ["POST", "DELETE"]


def test_off_is_undone_by_on_and_adds_nothing(unleash, driver):
    """The strategies stood there all the time."""
    before = seen_at_server(unleash, "billing")
    switch = driver("set", feature="billing", enabled=False)
    switch.do()
    seen = switch.probe()
    assert seen.parts == ("enabled",)
    switch.undo(fitting(switch.capability, seen.state))
    assert switch.verify().seen == "absent"
    assert seen_at_server(unleash, "billing") == before
    assert writes(unleash) == [("POST", "off"), ("POST", "on")]


def test_only_the_configured_environment_changes(unleash, driver):
    """Production has the same flag; nothing there moves, and no argument can name it (field case U-04)."""
    before = seen_at_server(unleash, "billing", "production")
    driver("set", feature="billing", enabled=False).do()
    driver("strategy", "act-2", **COHORT).do()
    assert seen_at_server(unleash, "billing", "production") == before
    with pytest.raises(ValidationError):
        driver("set", feature="billing", enabled=False, environment="production").call()


def test_the_environment_may_have_another_name_at_the_server(unleash, adapter, driver):
    """Policies see the adapter's environment; Unleash is asked by its own name for it."""
    switch = driver("set", feature="billing", enabled=False)
    switch.capability = adapter(unleash.url, flag_environment="production").capabilities["flags.set"]
    switch.do()
    assert seen_at_server(unleash, "billing", "production")[0] is False
    assert seen_at_server(unleash, "billing", "staging")[0] is True


def test_a_switch_that_changed_nothing_has_nothing_to_undo(unleash, driver):
    """On when it was on: before and after are equal."""
    switch = driver("set", feature="billing", enabled=True)
    switch.do()
    assert switch.probe().seen == "absent"


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_lost_answer_to_on_is_found_and_wholly_undone(unleash, driver, how):
    """No after-image was recorded: the event log says which strategy came with the switch."""
    unleash.arm("drop_after_commit", method="POST", how=how)
    before = seen_at_server(unleash, "fresh")
    switch = driver("set", feature="fresh", enabled=True)
    with pytest.raises(Ambiguous):
        switch.do()
    assert len(writes(unleash)) == 1
    seen = switch.probe()
    assert seen.seen == "applied"
    switch.after = dict(seen.state)  # what the engine records as the after-image of a probed success
    assert switch.probe().seen == "applied"
    switch.undo(fitting(switch.capability, seen.state))
    assert switch.verify().seen == "absent"
    assert seen_at_server(unleash, "fresh") == before


def test_an_answer_lost_before_commit_reads_as_absent(unleash, driver):
    """The call landed nowhere: the flag equals its before-image."""
    unleash.arm("refuse", method="POST", status=503)
    switch = driver("set", feature="fresh", enabled=True)
    with pytest.raises(Ambiguous):
        switch.do()
    assert switch.probe().seen == "absent"


def test_a_refusal_is_refused(unleash, driver):
    """403, such as an environment that takes changes by request only: nothing changed."""
    unleash.arm("refuse", method="POST", status=403)
    with pytest.raises(Refused):
        driver("set", feature="fresh", enabled=True).do()


def test_a_dead_server_was_not_sent(driver, adapter):
    """Neither the preparation nor the call leaves anything in doubt."""
    switch = driver("set", feature="fresh", enabled=True)
    switch.capability = adapter().capabilities["flags.set"]
    with pytest.raises(NotSent):
        switch.prepare()
    switch.before = {"enabled": False, "strategies": [], "revision": 1}
    with pytest.raises(NotSent):
        switch.capability.do(switch.call())
    assert switch.probe().seen == "inconclusive"


def test_an_unknown_flag_fails_in_preparation(unleash, driver):
    """Nothing is sent for a flag that does not exist."""
    with pytest.raises(NotSent) as no:
        driver("set", feature="nobody", enabled=True).prepare()
    assert no.value.code == "no_such_flag"
    assert writes(unleash) == []


def test_a_foreign_edit_after_us_is_diverged_and_never_overwritten(unleash, driver):
    """Somebody added a strategy after our switch: people now rely on it, so a person decides."""
    switch = driver("set", feature="fresh", enabled=True)
    switch.do()
    observed = switch.probe()
    theirs = {"name": "default", "title": "theirs"}
    unleash.foreign("POST", f"{FEATURE}/fresh/environments/staging/strategies", theirs)
    assert switch.probe().seen == "diverged"
    with pytest.raises(NotSent) as no:
        switch.capability.undo(switch.call("remove_added_strategy", observed))
    assert no.value.code == "foreign_edit"
    enabled, strategies = seen_at_server(unleash, "fresh")
    assert enabled
    assert len(strategies) == 2


def test_a_foreign_edit_that_left_the_same_content_stops_the_undo_until_looked_at_again(unleash, driver):
    """Off and on again by somebody between look and undo: the newest event tells, content alone would not."""
    switch = driver("set", feature="billing", enabled=False)
    switch.do()
    observed = switch.probe()
    for way in ("on", "off"):
        unleash.foreign("POST", f"{FEATURE}/billing/environments/staging/{way}")
    with pytest.raises(NotSent) as no:
        switch.capability.undo(switch.call("switch_back", observed))
    assert no.value.code == "foreign_edit"
    switch.undo("switch_back")
    assert switch.verify().seen == "absent"


def test_a_change_elsewhere_does_not_stop_us(unleash, driver):
    """Another environment of the same flag is none of our business."""
    switch = driver("set", feature="billing", enabled=False)
    switch.prepare()
    unleash.foreign("POST", f"{FEATURE}/billing/environments/production/off")
    switch.capability.do(switch.call())
    assert switch.probe().seen == "applied"


def test_a_change_between_preparation_and_call_sends_nothing(unleash, driver):
    """The before-image would be a lie."""
    switch = driver("set", feature="billing", enabled=False)
    switch.prepare()
    unleash.foreign("POST", f"{FEATURE}/billing/environments/staging/strategies", {"name": "default"})
    with pytest.raises(NotSent) as no:
        switch.capability.do(switch.call())
    assert no.value.code == "changed_since_prepared"
    assert writes(unleash) == []


def test_an_undo_that_lies_is_seen_by_the_verification(unleash, driver):
    """The server says 200 and does nothing."""
    switch = driver("set", feature="billing", enabled=False)
    switch.do()
    unleash.arm("answer_without_commit", method="POST")
    switch.undo("switch_back")
    assert switch.verify().seen == "applied"


def test_what_somebody_undid_already_is_absent(unleash, driver):
    """Compensated by looking: nothing is sent."""
    switch = driver("set", feature="billing", enabled=False)
    switch.do()
    unleash.foreign("POST", f"{FEATURE}/billing/environments/staging/on")
    assert switch.probe().seen == "absent"


def test_a_half_undone_switch_goes_on_with_the_other_rung(unleash, driver):
    """Only the strategy is gone, the switch still stands: partly ours, and the next rung fits."""
    unleash.foreign("POST", f"{FEATURE}/fresh/environments/staging/strategies", {"name": "default", "disabled": True})
    switch = driver("set", feature="fresh", enabled=True)
    switch.do()
    unleash.foreign("POST", f"{FEATURE}/fresh/environments/staging/off")
    seen = switch.probe()
    assert (seen.seen, seen.parts) == ("applied", ("strategies",))
    rung = fitting(switch.capability, seen.state)
    assert rung == "remove_added_strategy"
    switch.undo(rung)
    assert switch.verify().seen == "absent"


def test_a_cohort_is_added_beside_those_who_see_it_already(unleash, driver):
    """One POST with our marker in the title; the other segment stays on, before, during and after."""
    before = seen_at_server(unleash, "billing")
    strategy = driver("strategy", **COHORT)
    done = strategy.do()
    enabled, strategies = seen_at_server(unleash, "billing")
    assert enabled
    assert [one["title"] for one in strategies] == ["beta testers", "amends:act-1 qa"]
    assert strategies[1]["constraints"][0]["values"] == ["qa"]
    seen = strategy.probe()
    assert (seen.seen, seen.reference) == ("applied", done.reference)
    rung = fitting(strategy.capability, seen.state)
    assert rung == "remove"
    strategy.undo(rung)
    assert strategy.verify().seen == "absent"
    assert seen_at_server(unleash, "billing") == before
    assert [method for method, _ in writes(unleash)] == ["POST", "DELETE"]


def test_others_may_edit_their_own_strategies_meanwhile(unleash, driver):
    """Field-wise: a foreign strategy that came or went does not make ours diverge, and survives our undo."""
    strategy = driver("strategy", **COHORT)
    strategy.do()
    unleash.foreign("POST", f"{FEATURE}/billing/environments/staging/strategies", {"name": "default", "title": "new"})
    assert strategy.probe().seen == "applied"
    strategy.undo("remove")
    assert strategy.verify().seen == "absent"
    assert [one["title"] for one in seen_at_server(unleash, "billing")[1]] == ["beta testers", "new"]


def test_our_strategy_edited_by_somebody_is_diverged(unleash, driver):
    """They made our cohort larger: not ours to delete any more."""
    strategy = driver("strategy", **COHORT)
    done = strategy.do()
    path = f"{FEATURE}/billing/environments/staging/strategies/{done.reference}"
    unleash.foreign("PATCH", path, [{"op": "replace", "path": "/constraints", "value": []}])
    assert strategy.probe().seen == "diverged"
    with pytest.raises(NotSent):
        strategy.undo("remove")
    assert len(seen_at_server(unleash, "billing")[1]) == 2


def test_a_later_value_replaces_the_cohorts_strategy_and_is_restored(unleash, driver):
    """A second value for the same cohort is an update; its before-image is the first value."""
    driver("strategy", **COHORT).do()
    first = seen_at_server(unleash, "billing")
    later = driver("strategy", "act-2", **{**COHORT, "rollout_percent": 50})
    later.do()
    assert len(seen_at_server(unleash, "billing")[1]) == 2
    seen = later.probe()
    rung = fitting(later.capability, seen.state)
    assert rung == "restore"
    later.undo(rung)
    assert later.verify().seen == "absent"
    assert seen_at_server(unleash, "billing") == first


def test_a_lost_answer_to_a_new_strategy_is_found_by_its_marker(unleash, driver):
    """No id came back; the title tells, and nothing is sent twice, which would make two."""
    unleash.arm("drop_after_commit", method="POST")
    strategy = driver("strategy", **COHORT)
    with pytest.raises(Ambiguous):
        strategy.do()
    seen = strategy.probe()
    assert (seen.seen, bool(seen.reference)) == ("applied", True)
    strategy.reference = seen.reference
    strategy.undo("remove")
    assert strategy.verify().seen == "absent"


def test_two_strategies_of_one_call_are_counted(unleash, driver):
    """The server made two: the probe names both, and each is taken back by itself."""
    unleash.arm("make_two", method="POST")
    strategy = driver("strategy", **COHORT)
    strategy.do()
    seen = strategy.probe()
    assert seen.seen == "many"
    assert len(seen.twins) == 2
    strategy.undo("remove")
    assert strategy.verify().seen == "absent"
    assert strategy.probe().seen == "many"
    twin = driver("strategy", **COHORT)
    twin.action_id = "twin-1"
    twin.reference = next(one for one in seen.twins if one != strategy.reference)
    assert twin.probe().seen == "applied"
    twin.undo("remove")
    assert twin.verify().seen == "absent"
    assert len(seen_at_server(unleash, "billing")[1]) == 1


def test_the_last_strategy_of_an_environment_that_was_on_is_a_persons_matter(unleash, driver):
    """Deleting it would switch the environment off, which it was not before us."""
    strategy = driver("strategy", **COHORT)
    strategy.do()
    [theirs] = [one for one in unleash.objects("strategies") if one["title"] == "beta testers"]
    unleash.foreign("DELETE", f"{FEATURE}/billing/environments/staging/strategies/{theirs['id']}")
    seen = strategy.probe()
    assert fitting(strategy.capability, seen.state) == "person"
    with pytest.raises(NotSent):
        strategy.undo("remove")
    assert seen_at_server(unleash, "billing")[0] is True


def test_a_created_flag_is_found_and_archived_again(unleash, driver):
    """The description begins with our marker; the undo archives."""
    create = driver("create", feature="new-one", description="a field")
    create.do()
    assert unleash.foreign("GET", f"{FEATURE}/new-one")["body"]["description"] == "[amends:act-1] a field"
    seen = create.probe()
    assert (seen.seen, seen.reference) == ("applied", "new-one")
    create.undo(fitting(create.capability, seen.state))
    assert create.verify().seen == "absent"
    assert unleash.count("feature") == 0


def test_creating_again_after_a_lost_answer_finds_our_own(unleash, driver):
    """409 on our own name is no failure: the marker says that it is ours (field case K-09)."""
    unleash.arm("drop_after_commit", method="POST")
    create = driver("create", feature="new-one")
    with pytest.raises(Ambiguous):
        create.do()
    assert create.do().reference == "new-one"


def test_a_name_that_somebody_else_took_is_refused_and_left_alone(unleash, driver):
    """Theirs is neither adopted nor archived."""
    create = driver("create", feature="billing")
    with pytest.raises(Refused) as no:
        create.do()
    assert no.value.code == "name_exists"
    assert create.probe().seen == "absent"
    with pytest.raises(NotSent):
        create.undo("take_away")


def test_a_created_flag_in_use_is_a_persons_matter(unleash, driver):
    """Somebody edited its description and switched it on."""
    create = driver("create", feature="new-one")
    create.do()
    unleash.foreign("PATCH", f"{FEATURE}/new-one", [{"op": "replace", "path": "/description", "value": "ours now"}])
    seen = create.probe()
    assert (seen.seen, seen.state["edited"]) == ("applied", True)
    assert fitting(create.capability, seen.state) == "person"
    unleash.foreign("POST", f"{FEATURE}/new-one/environments/production/on")
    assert create.probe().state["in_use"] is True
    with pytest.raises(NotSent):
        create.undo("take_away")


def test_an_archived_flag_is_revived(unleash, driver):
    """Archive and revive; a second look tells archived from deleted."""
    archive = driver("archive", feature="fresh")
    archive.do()
    seen = archive.probe()
    assert seen.seen == "applied"
    archive.undo(fitting(archive.capability, seen.state))
    assert archive.verify().seen == "absent"
    archive = driver("archive", "act-2", feature="fresh")
    archive.do()
    unleash.foreign("DELETE", "/api/admin/archive/fresh")
    assert archive.probe().seen == "diverged"


def test_a_flag_that_is_on_is_not_archived(unleash, driver):
    """Reviving would bring it back off: the run must switch it off first, by a call of its own."""
    with pytest.raises(NotSent) as no:
        driver("archive", feature="billing").do()
    assert no.value.code == "still_on"
    assert writes(unleash) == []


def test_a_read_that_fails_is_inconclusive(unleash, driver):
    """Whatever is asked, an unreadable server proves nothing."""
    drivers = [
        driver("set", feature="billing", enabled=False),
        driver("strategy", "act-2", **COHORT),
        driver("create", "act-3", feature="new-one"),
        driver("archive", "act-4", feature="fresh"),
    ]
    for one in drivers:
        one.do()
    unleash.arm("refuse", method="reads", status=503, times=None)
    assert [one.probe().seen for one in drivers] == ["inconclusive"] * 4


def test_a_switch_that_cannot_be_read_back_is_unknown_until_it_can(unleash, driver):
    """Unleash answers 200 with nothing in it, as a gateway would: only what is read back is proof."""
    unleash.arm("refuse", method="reads", path="*/events", status=502, skip=2)
    switch = driver("set", feature="fresh", enabled=True)
    with pytest.raises(Ambiguous):
        switch.do()
    assert switch.probe().seen == "applied"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"base_url": "unleash.example"}, "base_url"),
        ({"token": "*:*.canary"}, "token"),
        ({"tell": "maya"}, "tell"),
        ({"colour": "red"}, "colour"),
        ({"project": "../x"}, "project"),
    ],
)
def test_a_wrong_option_names_section_and_key(adapter, options, key):
    """A secret given as a value is refused, and not shown."""
    with pytest.raises(ConfigError) as wrong:
        adapter(**options)
    assert "[adapters.flags]" in wrong.value.message
    assert f"`{key}`" in wrong.value.message
    assert "canary" not in str(wrong.value)


def test_doctor_tells_a_dead_server_and_a_bad_credential(unleash, adapter):
    """Read-only; no finding shows a token."""
    for options, level in (({}, "ok"), ({"token": "env:BAD"}, "problem"), ({"token": "env:NOWHERE"}, "problem")):
        [look] = adapter(unleash.url, **options).examinations
        [finding] = look()
        assert finding.level == level
        assert "canary" not in finding.message
    [look] = adapter().examinations
    assert look()[0].level == "problem"
