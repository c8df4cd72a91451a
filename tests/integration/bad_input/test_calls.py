"""Calls that cannot be made: a clear error or a recorded failure, and nothing sent."""

import json
import math
from decimal import Decimal

import pytest

from amends.core.errors import AmendsError, InvalidInput, UnknownName
from amends.core.status import ActionStatus

ARGS = {"order": "o1", "sku": "SKU-1", "quantity": 2}


@pytest.fixture
def run(engine):
    opened = engine.run(workflow="orders", run_key="1", agent="bot")
    yield opened
    opened.fail("the test is over")


def test_an_unknown_capability_is_named_with_those_there_are(run, sent):
    """The error lists what is offered; no action is registered."""
    with pytest.raises(UnknownName) as refused:
        run.call("partner.reserve_stock", ARGS)
    assert "`partner.reserve_stock`" in refused.value.message
    assert "amends.toml" in refused.value.hint
    assert "partner.reserve_inventory" in refused.value.data["known"]
    assert sent() == []
    assert run.state.actions == {}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"quantity": 0}, "quantity"),
        ({"quantity": "two"}, "quantity"),
        ({"order": "a b"}, "order"),
        ({"order": "a b"}, "[A-Za-z0-9-]"),  # the pattern as it is, to write better arguments by
        ({"extra": 1}, "extra"),
    ],
)
def test_arguments_that_do_not_validate_fail_before_anything_is_sent(run, sent, change, named):
    """A recorded failure that names the argument; the agent may call again with better ones."""
    result = run.call("partner.reserve_inventory", {**ARGS, **change})
    assert result.status is ActionStatus.FAILED
    assert result.error is not None
    assert named in result.error.message
    assert sent() == []
    assert run.call("partner.reserve_inventory", ARGS).ok
    assert sent() == [("POST", "/v1/reservations")]


@pytest.mark.parametrize("change", [{"order": None}, {"order": ["o1"]}, {"sku": {}}])
def test_arguments_that_name_no_thing_are_refused(run, sent, change):
    """Without a usable identity there is no slot to record a failure in: an error that names the argument."""
    with pytest.raises(InvalidInput) as refused:
        run.call("partner.reserve_inventory", {**ARGS, **change})
    assert f"`{next(iter(change))}`" in refused.value.message
    assert "nothing was sent" in refused.value.hint
    assert sent() == []


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"bytes", math.nan, math.inf, "lone \ud800", {1: "a key that is no text"}, lambda: None],
    ids=["object", "set", "bytes", "nan", "infinity", "surrogate", "key", "function"],
)
def test_arguments_that_do_not_serialise_are_refused(run, sent, value):
    """What cannot be written down and read back is not sent."""
    with pytest.raises(InvalidInput) as refused:
        run.call("partner.reserve_inventory", {**ARGS, "order": value})
    assert refused.value.hint
    assert sent() == []


def test_deep_arguments_are_refused(run, sent):
    """Nesting without end is no argument, and takes nothing down."""
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(AmendsError):
        run.call("partner.set_carrier_instructions", {"order": "o1", "address": deep})
    assert sent() == []


def test_numbers_that_json_would_bend_arrive_whole(run, partner):
    """Big integers and decimals are part of the intent as they are, not as floats."""
    address = {"line1": "1 Quay", "box": 2**70, "height": Decimal("0.10")}
    assert run.call("partner.set_carrier_instructions", {"order": "o1", "address": address}).ok
    (action,) = run.state.actions.values()
    assert str(2**70) in json.dumps(action.args)
    assert '"0.1"' in json.dumps(action.args)
