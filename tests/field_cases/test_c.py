"""False success, false failure."""

from contextlib import suppress

from amends.core.errors import AmendsError
from amends.testing.worlds import keyed, queued

ARGS = {"name": "o-1"}


def test_c_02_a_delivery_that_the_agent_swallowed_is_no_success_of_the_run(build):
    """The post is refused, the agent goes on all the same: the run is not committed, and a person learns of it."""
    world = build(keyed(), queued("chat.post"), queued("chat.log"))
    world.system.tell("chat.post", "do", "refused")
    with world.run() as run:
        run.call("shop.reserve", ARGS)
        run.call("chat.log", ARGS, depends_on=[])
        with suppress(AmendsError):
            run.call("chat.post", ARGS, depends_on=[])
    assert run.outcome.status.value != "committed"
    assert world.system.count("chat.post") == 0
    report = world.engines[0].run_report(run.run_id)
    assert report["public_state"] == "needs_review"
    assert [item.cause for item in world.engines[0].escalations()] != []
