"""Idempotency keys."""

from amends.testing.worlds import keyed

ARGS = {"name": "o-1"}


def test_k_02_a_card_that_was_declined_may_be_replaced_on_the_same_day(build):
    """A proven refusal opens a fresh key for the next card; a double click in between adds nothing."""
    world = build(keyed("shop.charge"))
    world.system.tell("shop.charge", "do", "refused")
    with world.run() as run:
        declined = run.call("shop.charge", ARGS | {"value": "card-1"})
        assert declined.outcome.value == "failed"
        paid = [run.call("shop.charge", ARGS | {"value": "card-2"}) for _ in range(2)]
        assert [(result.ok, result.repeated) for result in paid] == [(True, False), (True, True)]
    assert world.system.count() == 1
    assert len({request.key for request in world.system.sent("shop.charge", "do")}) == 2


def test_k_04_a_token_that_is_minted_anew_for_every_try_does_not_change_the_key(build):
    """The call names where the token is kept, so what it is at the moment of sending is no part of the key."""
    world = build(keyed("shop.charge", secret_arguments=("value",)))
    world.system.tell("shop.charge", "do", "not_sent", "busy")
    with world.run() as run:
        for token in ("canary-4711-token", "canary-4711-token-2", "canary-4711-token-3"):
            world.secrets._values["env:SHOP_TOKEN"] = token
            result = run.call("shop.charge", ARGS | {"value": "env:SHOP_TOKEN"})
            world.clock.advance(60)
        assert result.ok
    attempts = world.system.sent("shop.charge", "do")
    assert len(attempts) == 3
    assert len({request.key for request in attempts}) == 1
