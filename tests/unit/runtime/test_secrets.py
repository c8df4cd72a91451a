"""Secrets: nothing secret enters the ledger, and nothing needed later is masked there (rule 10)."""

import pytest

from amends.core.errors import ConfigError, InvalidInput
from amends.core.status import ActionStatus
from amends.ports.services import Delivery
from amends.spi import Check
from amends.spi.capability import Done, Refused
from amends.testing.worlds import keyed, ledger_faults, queued, setting

CANARY = "canary-4711-token"
ARGS = {"name": "o-1"}


def revealed(world):
    """The adapter has resolved its secret once, as at every send."""
    world.secrets.resolve("env:SHOP_TOKEN")


@pytest.mark.parametrize("value", [CANARY, f"https://u:{CANARY}@shop/", "Bearer abcdefgh12345678"])
def test_arguments_that_hold_a_secret_are_refused_before_the_intent(build, value):
    """Rule 10: masking an argument would change what is sent, so the call is refused."""
    world = build(keyed())
    revealed(world)
    with world.run() as run:
        with pytest.raises(InvalidInput):
            run.call("shop.reserve", {"name": value})
        assert run.state.actions == {}
    assert world.system.requests == []


def test_a_secret_argument_must_be_a_reference(build):
    """Rule 10: secrets travel as references, which may be recorded."""
    world = build(keyed(secret_arguments=("value",)))
    with world.run() as run:
        with pytest.raises(InvalidInput):
            run.call("shop.reserve", {"name": "o-1", "value": "hunter22"})
        assert run.call("shop.reserve", {"name": "o-1", "value": "env:SHOP_TOKEN"}).ok
    assert len(world.system.sent("shop.reserve", "do")) == 1


def test_a_before_image_that_holds_a_secret_refuses_the_call(build):
    """Rule 10: what could not be restored from the ledger is not changed in the first place."""
    world = build(setting())
    revealed(world)
    world.system.values["f"] = CANARY
    with world.run() as run:
        result = run.call("flags.set", {"name": "f", "value": "on"})
        assert result.status is ActionStatus.FAILED
    assert world.system.values["f"] == CANARY


@pytest.mark.parametrize("how", ["error", "refusal", "output", "probe"])
def test_what_comes_back_is_masked_before_every_write(build, how, monkeypatch):
    """Rule 10: errors, answers and observations that echo a secret do not carry it into the ledger."""
    world = build(keyed())
    capability = world.capabilities[0]

    def do(call):
        thing = world.system.make("shop.reserve", call)
        call.secret("env:SHOP_TOKEN")
        if how == "refusal":
            world.system.remove(thing.reference)
            raise Refused(f"token={CANARY} is not allowed")
        if how == "error":
            raise ConnectionResetError(f"POST https://x/?token={CANARY} failed")
        if how == "probe":
            thing.state["note"] = CANARY
            raise TimeoutError
        return Done(effect={"id": thing.reference}, reference=thing.reference, output={"echo": f"auth {CANARY}"})

    monkeypatch.setattr(capability, "do", do)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    assert run.outcome.status.value == "recovered"
    assert ledger_faults(world.journal, canaries=(CANARY,)) == []


def test_an_undo_whose_input_was_masked_is_not_sent(build, monkeypatch):
    """Rule 10: a masked value is a missing one; policy hears that the evidence is not complete."""
    from amends.core.contract import Alternative

    world = build(keyed(compensation=(Alternative(name="cancel", required_fields=("handle",)),)))
    capability = world.capabilities[0]

    def do(call):
        thing = world.system.make("shop.reserve", call)
        return Done(effect={"id": thing.reference, "handle": call.secret("env:SHOP_TOKEN")}, reference=thing.reference)

    monkeypatch.setattr(capability, "do", do)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    asked = next(r for r in world.authorizer.requests if r.phase == "undo")
    assert asked.evidence == {"complete": False, "missing": ["handle"]}


def test_refusals_of_the_check_name_no_value(build):
    """Rule 10: the error that refuses a secret does not quote it."""
    world = build(keyed())
    revealed(world)
    with world.run() as run:
        with pytest.raises(InvalidInput) as told:
            run.call("shop.reserve", {"name": CANARY})
        assert CANARY not in str(told.value.as_dict())


# --- names, references, cuts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["workflow", "run_key", "agent", "initiator", "owner", "intent_ref"])
def test_a_run_named_by_a_secret_is_refused(build, field):
    """Rule 10: masked, the name would be another run's, and two runs would share it."""
    world = build(keyed())
    revealed(world)
    with pytest.raises(InvalidInput) as told:
        world.run(**{field: f"x {CANARY}"})
    assert CANARY not in str(told.value.as_dict())


def test_a_label_that_is_a_secret_is_refused(build):
    """Rule 10: the slot would be recorded under another name, and the second call would be sent again."""
    world = build(keyed())
    revealed(world)
    with world.run() as run, pytest.raises(InvalidInput):
        run.call("shop.reserve", ARGS, label=CANARY)
    assert world.system.requests == []


def test_a_checkpoint_that_is_a_secret_is_refused(build):
    """Rule 10: nobody could recover to it by its name."""
    world = build(keyed())
    revealed(world)
    with world.run() as run:
        with pytest.raises(InvalidInput):
            run.checkpoint(CANARY)
        run.checkpoint("packed")


def test_a_reference_that_was_masked_is_never_asked_by(build, monkeypatch):
    """Rule 10: "not found" of what stands where a secret stood would be told as undone: a person decides."""
    world = build(keyed())
    capability = world.capabilities[0]
    asked = []

    def do(call):
        world.system.make("shop.reserve", call)
        call.secret("env:SHOP_TOKEN")
        return Done(effect={"id": "x"}, reference=f"thing/{CANARY}")

    probe = capability.probe
    monkeypatch.setattr(capability, "do", do)
    monkeypatch.setattr(capability, "probe", lambda question: asked.append(question.reference) or probe(question))
    run = world.run()
    assert run.call("shop.reserve", ARGS).ok
    run.fail("stop", wait_seconds=3600)
    assert run.outcome.status.value == "needs_human"
    assert [reference for reference in asked if reference] == []
    assert world.system.sent("shop.reserve", "undo") == []
    assert ledger_faults(world.journal, canaries=(CANARY,)) == []


def test_an_input_of_which_a_part_was_masked_is_a_missing_one(build, monkeypatch):
    """Rule 10: `hold-` and a mask name nothing; before, only a value that was nothing but a mask counted as missing."""
    from amends.core.contract import Alternative

    world = build(keyed(compensation=(Alternative(name="cancel", required_fields=("handle",)),)))
    capability = world.capabilities[0]

    def do(call):
        thing = world.system.make("shop.reserve", call)
        handle = f"hold-{call.secret('env:SHOP_TOKEN')}"
        return Done(effect={"id": thing.reference, "handle": handle}, reference=thing.reference)

    monkeypatch.setattr(capability, "do", do)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    asked = next(r for r in world.authorizer.requests if r.phase == "undo")
    assert asked.evidence == {"complete": False, "missing": ["handle"]}


@pytest.mark.parametrize("cut", range(486, 500))
def test_no_cut_leaves_a_part_of_a_secret(build, monkeypatch, cut):
    """Texts are masked first and shortened then: the limit falls into the secret, and nothing of it is recorded."""
    world = build(keyed())
    capability = world.capabilities[0]

    def do(call):
        raise Refused("x" * cut + call.secret("env:SHOP_TOKEN") + " is not allowed", code="refused")

    monkeypatch.setattr(capability, "do", do)
    with world.run() as run:
        result = run.call("shop.reserve", ARGS)
    assert result.error is not None
    assert CANARY[:4] not in str(result)
    assert ledger_faults(world.journal, canaries=(CANARY[:4],)) == []


def test_what_policies_are_told_holds_no_secret(build, monkeypatch):
    """Rule 10: a masked input would make the recorded decision another one; the call is refused before its intent."""
    from amends.spi.capability import Prepared

    world = build(setting())
    capability = world.capabilities[0]
    before = capability.prepare

    def prepare(question):
        secret = question.secret("env:SHOP_TOKEN")
        return Prepared(before(question).before, input={"plan": f"with {secret}"})

    monkeypatch.setattr(capability, "prepare", prepare)
    with world.run() as run:
        assert run.call("flags.set", {"name": "f", "value": "on"}).status is ActionStatus.FAILED
    assert world.system.sent("flags.set", "do") == []


def test_a_secret_that_is_a_name_of_the_project_refuses_the_call(build):
    """Rule 10: `shop.reserve` cannot be recorded beside a secret of that name. That is said, without the secret, and
    nothing is sent.
    """
    world = build(keyed())
    world.secrets._values["env:SHOP_TOKEN"] = "shop.reserve"
    revealed(world)
    with pytest.raises(ConfigError, match="action_planned") as told, world.run() as run:
        run.call("shop.reserve", ARGS)
    assert "shop.reserve" not in str(told.value.as_dict())
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__
    assert world.system.requests == []


@pytest.mark.parametrize("cut", range(486, 500))
def test_no_cut_leaves_a_part_of_a_secret_that_a_check_said(build, cut):
    """A check's reason is masked first and shortened then."""
    world = build(keyed(), queued())
    revealed(world)
    world.checks["ci"] = Check("ci", lambda run_id: ("not_passed", "x" * cut + CANARY))
    run = world.run(check="ci")
    run.call("shop.notify", ARGS)
    run.finish()
    assert "check_answered" in [stored.event.kind for stored in world.journal.events_after(0)]
    assert ledger_faults(world.journal, canaries=(CANARY[:4],)) == []


@pytest.mark.parametrize("how", ["failure", "exception"])
@pytest.mark.parametrize("cut", range(486, 500))
def test_no_cut_leaves_a_part_of_a_secret_that_a_notifier_said(build, monkeypatch, cut, how):
    """Why a notice was not delivered is masked first and shortened then, told or raised."""
    world = build(keyed())
    revealed(world)

    def fail(notice):
        if how == "exception":
            raise RuntimeError("x" * cut + CANARY)
        return Delivery(delivered=False, detail="x" * cut + CANARY)

    monkeypatch.setattr(world.notifier, "deliver", fail)
    run = world.run()
    run.call("shop.reserve", ARGS)
    run.fail("stop", wait_seconds=60)
    told = [stored.event.payload for stored in world.journal.events_after(0) if "xxxx" in stored.event.payload]
    assert told
    assert ledger_faults(world.journal, canaries=(CANARY[:4],)) == []
