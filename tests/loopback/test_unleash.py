"""The flag server keeps the product's traps."""

from __future__ import annotations

import pytest

FEATURES = "/api/admin/projects/default/features"
FLAG = f"{FEATURES}/billing"
DEV = f"{FLAG}/environments/development"
STRATEGY = {"name": "flexibleRollout", "title": "QA cohort", "parameters": {"rollout": "100"}, "segments": []}


def make(unleash, **fields):
    assert unleash("POST", FEATURES, {"name": "billing", **fields}).status == 201


def environment(unleash, name="development"):
    return unleash("GET", f"{FLAG}/environments/{name}").json


def events(unleash):
    found = unleash("GET", "/api/admin/search/events?feature=IS:billing").json["events"]
    return [event["type"] for event in found]


def test_a_name_exists_once_also_when_archived(unleash):
    """409 NameExistsError, before and after archiving; an archived flag is not found."""
    make(unleash)
    again = unleash("POST", FEATURES, {"name": "billing"})
    assert (again.status, again.json["name"]) == (409, "NameExistsError")
    assert unleash("DELETE", FLAG).status == 202
    assert unleash("GET", FLAG).status == 404
    assert unleash("POST", FEATURES, {"name": "billing"}).status == 409
    assert unleash.system.count("feature") == 0


def test_switching_on_adds_a_strategy_that_switching_off_leaves(unleash):
    """ON is not undone by OFF."""
    make(unleash)
    assert unleash("POST", f"{DEV}/on").status == 200
    assert events(unleash)[:2] == ["feature-environment-enabled", "feature-strategy-add"]
    unleash("POST", f"{DEV}/off")
    assert [strategy["name"] for strategy in environment(unleash)["strategies"]] == ["flexibleRollout"]
    assert unleash.system.count("feature_enabled") == 0
    assert unleash.system.count("strategy") == 1


def test_switching_on_twice_writes_one_event_in_one_environment(unleash):
    """Idempotent, and only where it was asked."""
    make(unleash)
    unleash("POST", f"{DEV}/strategies", STRATEGY)
    unleash("POST", f"{DEV}/on")
    unleash("POST", f"{DEV}/on")
    assert events(unleash).count("feature-environment-enabled") == 1
    assert len(environment(unleash)["strategies"]) == 1
    assert environment(unleash, "production")["enabled"] is False


def test_a_strategy_added_twice_is_two_and_one_added_again_has_a_new_id(unleash):
    """Content can be restored exactly, the id cannot, even when it is sent."""
    make(unleash)
    first, second = (unleash("POST", f"{DEV}/strategies", STRATEGY).json for _ in range(2))
    assert first["id"] != second["id"]
    assert len(unleash("GET", f"{DEV}/strategies").json) == 2
    unleash("DELETE", f"{DEV}/strategies/{first['id']}")
    again = unleash("POST", f"{DEV}/strategies", first).json
    assert again["id"] != first["id"]
    assert {**again, "id": ""} == {**first, "id": ""}


def test_putting_back_somebody_elses_strategy_undoes_its_removal(unleash):
    """The residue of a removal is gone when equal content is there again under a new id."""
    flag = {"environments": {"development": {"enabled": True, "strategies": [STRATEGY]}}}
    seeded = unleash.system.control("seed_flag", name="billing", **flag)
    before = seeded["environments"][0]["strategies"][0]
    unleash("DELETE", f"{DEV}/strategies/{before['id']}")
    assert unleash.system.counts() == {
        "strategy_removed": {"present": 1},
        "feature_enabled": {"present": 1},
    }
    unleash("POST", f"{DEV}/strategies", before)
    unleash("POST", f"{DEV}/on")
    assert unleash.system.present() == []


def test_the_last_strategy_takes_the_switch_with_it(unleash):
    """Deleting or disabling the last enabled one switches the environment off."""
    make(unleash)
    key = unleash("POST", f"{DEV}/strategies", STRATEGY).json["id"]
    unleash("POST", f"{DEV}/on")
    unleash("PUT", f"{DEV}/strategies/{key}", {**STRATEGY, "disabled": True})
    assert environment(unleash)["enabled"] is False
    unleash("POST", f"{DEV}/on?shouldActivateDisabledStrategies=true")
    assert (environment(unleash)["enabled"], len(environment(unleash)["strategies"])) == (True, 1)


def test_a_full_update_forgets_what_it_leaves_out(unleash):
    """PUT without a description sets null; PATCH is JSON Patch."""
    make(unleash, description="for billing")
    assert unleash("PUT", FLAG, {"type": "release"}).json["description"] is None
    patch = [{"op": "replace", "path": "/description", "value": "for billing"}]
    assert unleash("PATCH", FLAG, patch).json["description"] == "for billing"
    assert unleash("PATCH", FLAG, {"not": "a list"}).status == 400


def test_reviving_keeps_strategies_and_loses_switches(unleash):
    """Archive and revive is no round trip."""
    make(unleash)
    unleash("POST", f"{DEV}/on")
    unleash("DELETE", FLAG)
    assert unleash("POST", "/api/admin/archive/revive/billing").status == 200
    view = environment(unleash)
    assert (view["enabled"], len(view["strategies"])) == (False, 1)


def test_if_match_is_ignored_and_a_foreign_edit_shows_in_the_events(unleash):
    """There is no compare-and-set: the newest event id is the only witness."""
    make(unleash)
    etag = unleash("GET", FLAG).headers["ETag"]
    unleash.system.foreign("POST", f"{FLAG}/environments/production/on", actor="maya")
    assert unleash("PUT", FLAG, {"description": "x"}, headers={"If-Match": etag}).status == 200
    found = unleash("GET", "/api/admin/search/events?feature=IS:billing&limit=2&offset=1").json
    newest = found["events"][0]
    assert (newest["createdBy"], newest["environment"], found["total"]) == ("maya", "production", 4)
    assert unleash.system.counts() == {"feature": {"present": 1}, "feature_metadata": {"present": 1}}


def test_segments_are_referred_to_by_id(unleash):
    """An unknown segment is refused, a known one is kept on the strategy."""
    make(unleash)
    assert unleash("POST", f"{DEV}/strategies", {**STRATEGY, "segments": [1]}).status == 404
    unleash.system.foreign("POST", "/api/admin/segments", {"name": "qa"})
    assert unleash("POST", f"{DEV}/strategies", {**STRATEGY, "segments": [1]}).json["segments"] == [1]
    assert unleash("GET", "/api/admin/segments").json["segments"][0]["name"] == "qa"


def test_a_client_sees_only_its_environment(unleash):
    """The consumer's side, for verification."""
    make(unleash)
    unleash("POST", f"{DEV}/on")
    seen = {}
    for name in ("development", "production"):
        client = type(unleash)(unleash.system, f"default:{name}.secret")
        seen[name] = client("GET", "/api/client/features").json["features"][0]["enabled"]
    assert seen == {"development": True, "production": False}


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", f"{FEATURES}/nothing", 404, "NotFoundError"),
        ("POST", f"{FLAG}/environments/moon/on", 404, "NotFoundError"),
        ("PUT", f"{DEV}/variants", 403, "InvalidOperationError"),
        ("GET", f"{DEV}/strategies/none", 404, "NotFoundError"),
    ],
)
def test_refusals_have_the_products_shape(unleash, method, path, status, name):
    """`name`, `message`, `details`."""
    make(unleash)
    answer = unleash(method, path, {})
    assert (answer.status, answer.json["name"]) == (status, name)
    assert set(answer.json) == {"name", "message", "details"}
