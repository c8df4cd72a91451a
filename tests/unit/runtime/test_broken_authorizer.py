"""An authorizer that breaks its port has denied: in every phase nothing is sent, the denial is recorded, and a person
has an item about what stands still (any evaluation error denies).
"""

import signal
import threading

import pytest

from amends.core.events import DecisionRecorded, decode
from amends.core.status import ActionStatus, RunStatus
from amends.runtime import asking
from amends.testing.fakes import FakeAuthorizer
from amends.testing.worlds import corrector, keyed, prepared, queued, visible

MAKES = (keyed(), visible(), corrector(), queued(), prepared())


class Broken(FakeAuthorizer):
    """Breaks its port in one way for the policy actions named; answers for the others."""

    def __init__(self, how, actions):
        super().__init__()
        self.how, self.actions, self.blind = how, actions, False

    def decide(self, request):
        if not request.action.endswith(self.actions):
            return super().decide(request)
        self.requests.append(request)
        return self.how(self, request)

    def bundle(self):
        if self.blind:
            raise OSError("the bundle is gone")
        return super().bundle()


def raises(error):
    def how(authorizer, request):
        raise error

    return how


WAYS = {
    "runtime error": raises(RuntimeError("all about user-7")),
    "exit": raises(SystemExit(1)),
    "no decision": lambda *_: None,
    "a truthy thing": lambda *_: True,
    "another question's yes": lambda a, r: FakeAuthorizer.decide(a, r).model_copy(update={"decision_id": "other"}),
    "another action's yes": lambda a, r: FakeAuthorizer.decide(a, r).model_copy(update={"action": "shop.other"}),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def how(request):
    return request.param


def denials(world, run_id):
    """The recorded denials of a broken authorizer: the phase and the policy action asked about."""
    found = [
        (body.phase, body.decision.action)
        for stored in world.journal.events(run_id)
        if isinstance(body := decode(stored.event.payload, stored.event.event_id), DecisionRecorded)
        if body.decision.code == "engine_error"
    ]
    assert "all about user-7" not in str([stored.event.payload for stored in world.journal.events(run_id)])
    return found


def recovered(world, run):
    world.die()
    engine = world.engine("owner-2")
    engine.recover(wait_seconds=900)
    assert engine._made.sweeper.stuck == {}
    return engine, engine.state(run.run_id)


def test_forward(build, how):
    """The call is refused, nothing is sent, and the action keeps the denial."""
    world = build(*MAKES)
    world.authorizer = Broken(how, "shop.reserve")
    with world.run() as run:
        result = run.call("shop.reserve", {"name": "o-1"})
    assert result.status is ActionStatus.DENIED
    assert result.reason.startswith("the authorizer ")
    assert world.system.requests == []
    assert denials(world, run.run_id) == [("forward", "shop.reserve")]


def test_probe(build, how):
    """A read that nobody permits is not made; the action waits for a person."""
    world = build(*MAKES)
    world.authorizer = Broken(how, ".probe")
    world.system.tell("shop.reserve", "do", "lost")
    run = world.run()
    run.call("shop.reserve", {"name": "o-1"})
    engine, state = recovered(world, run)
    assert state.run.status is RunStatus.NEEDS_HUMAN
    assert world.system.sent("shop.reserve", "probe") == []
    assert denials(world, run.run_id) == [("probe", "shop.reserve.probe")]
    assert [item.cause for item in engine.escalations()] == ["denied"]


def test_reading_before_a_call(build, how):
    """What a call would read first is not read, and the call is not made."""
    world = build(*MAKES)
    world.authorizer = Broken(how, ".probe")
    with world.run() as run:
        result = run.call("shop.publish", {"name": "o-1"})
    assert result.status is ActionStatus.DENIED
    assert world.system.requests == []
    assert denials(world, run.run_id) == [("probe", "shop.publish.probe")]


def test_undo(build, how):
    """Nothing is taken back without a permit; a person decides."""
    world = build(*MAKES)
    world.authorizer = Broken(how, ".undo")
    run = world.run()
    run.call("shop.reserve", {"name": "o-1"})
    engine, state = recovered(world, run)
    assert state.run.status is RunStatus.NEEDS_HUMAN
    assert world.system.sent("shop.reserve", "undo") == []
    assert world.system.count("shop.reserve") == 1
    assert denials(world, run.run_id) == [("undo", "shop.reserve.undo")]
    assert len(engine.escalations()) == 1


def test_correction(build, how):
    """A note is not posted without a permit, the denial is recorded, and the run is not called recovered."""
    world = build(*MAKES)
    world.authorizer = Broken(how, ".correct")
    run = world.run()
    run.call("shop.announce", {"name": "o-1"})
    engine, state = recovered(world, run)
    assert state.run.status is RunStatus.NEEDS_HUMAN
    assert world.system.notes == []
    assert denials(world, run.run_id) == [("correct", "note.correct.correct")]
    assert [item.cause for item in engine.escalations()] == ["denied"]


def test_release(build, how):
    """What cannot be undone stays in the outbox, and a person is asked."""
    world = build(*MAKES)
    world.authorizer = Broken(how, ".release")
    run = world.run()
    run.call("shop.notify", {"name": "o-1"})
    run.finish()
    engine = world.engines[0]
    assert engine.state(run.run_id).run.status is RunStatus.NEEDS_HUMAN
    assert world.system.sent("shop.notify", "do") == []
    assert denials(world, run.run_id) == [("release", "shop.notify.release")]
    assert [item.cause for item in engine.escalations()] == ["denied"]


def test_late_look_after_an_undo(build, how):
    """A verified undo that may not be looked at once more: one denial, one item, and no end of questions."""
    world = build(*MAKES)
    run = world.run()
    run.call("shop.reserve", {"name": "o-1"})
    world.system.tell("shop.reserve", "undo", "lost")
    world.die()
    first = world.engine("owner-2")
    first.recover()
    world.authorizer = Broken(how, ".probe")
    engine = world.engine("owner-3")
    world.die("owner-2")
    engine.recover(wait_seconds=900)
    state = engine.state(run.run_id)
    assert engine._made.sweeper.stuck == {}
    assert state.run.status is RunStatus.NEEDS_HUMAN
    assert denials(world, run.run_id) == [("probe", "shop.reserve.probe")]
    assert len(engine.escalations()) == 1


def test_policies_that_cannot_be_named(build):
    """An authorizer that fails to say which policies are in force has denied all the same."""
    world = build(*MAKES)
    world.authorizer = Broken(WAYS["runtime error"], "shop.reserve")
    world.authorizer.blind = True
    with world.run() as run:
        result = run.call("shop.reserve", {"name": "o-1"})
    assert result.status is ActionStatus.DENIED
    assert run.state.actions[result.action_id].decided.policy_version == "unknown"


def test_interrupt_is_no_answer(build):
    """A person who stops the program stops it, even while policy is asked: nothing is recorded and nothing sent."""
    world = build(*MAKES)

    def interrupted(authorizer, request):
        signal.raise_signal(signal.SIGINT)  # heard by the main thread, which waits for the answer
        gone.wait(20)
        return FakeAuthorizer.decide(authorizer, request)

    gone = threading.Event()
    world.authorizer = Broken(interrupted, "shop.reserve")
    run = world.run()
    with pytest.raises(KeyboardInterrupt):
        run.call("shop.reserve", {"name": "o-1"})
    gone.set()
    assert world.system.requests == []
    run.fail("stopped", wait_seconds=60)


# --- one that never answers ----------------------------------------------------------------------------------


@pytest.fixture
def hung(monkeypatch):
    """How an authorizer hangs, until this event is set; it says yes then."""
    monkeypatch.setattr(asking, "LONGEST_DECISION_SECONDS", 0.05)
    gone = threading.Event()

    def how(authorizer, request):
        gone.wait(60)
        return FakeAuthorizer.decide(authorizer, request)

    how.gone = gone
    yield how
    gone.set()


@pytest.mark.parametrize(("action", "capability"), [("shop.reserve", "shop.reserve"), (".probe", "shop.publish")])
def test_a_call_whose_question_hangs_is_denied(build, hung, action, capability):
    """After the bound, recorded; the yes that comes later is heard by nobody."""
    world = build(*MAKES)
    world.authorizer = Broken(hung, action)
    with world.run() as run:
        result = run.call(capability, {"name": "o-1"})
        assert result.status is ActionStatus.DENIED
        hung.gone.set()
        again = run.state.actions[result.action_id]
    assert "did not answer in time" in result.reason
    assert again.decided.verdict == "deny"
    assert world.system.requests == []
    assert len(denials(world, run.run_id)) == 1


def test_a_hung_question_about_one_run_holds_up_no_other(build, hung, monkeypatch):
    """Rule 16: the sweep goes on, the others are taken back, and a person has an item about the one that was denied."""
    monkeypatch.setattr(asking, "LONGEST_DECISION_SECONDS", 2.0)  # plenty for the others
    world = build(*MAKES)
    runs = [world.run(str(n)) for n in range(4)]
    for n, run in enumerate(runs):
        run.call("shop.reserve", {"name": f"o-{n}"})
    world.authorizer = Broken(
        lambda a, r: (hung if r.run["run_id"] == runs[0].run_id else FakeAuthorizer.decide)(a, r), ".undo"
    )
    engine, state = recovered(world, runs[0])
    assert state.run.status is RunStatus.NEEDS_HUMAN
    assert {engine.state(run.run_id).run.status for run in runs[1:]} == {RunStatus.RECOVERED}
    assert denials(world, runs[0].run_id) == [("undo", "shop.reserve.undo")]
    assert [item.run_id for item in engine.escalations()] == [runs[0].run_id]
    hung.gone.set()
    engine.recover(wait_seconds=60)
    assert engine.state(runs[0].run_id).run.status is RunStatus.NEEDS_HUMAN, "a late yes is worth nothing"
    engine.resolve(engine.escalations()[0].escalation_id, "compensate", by="maya")
    engine.recover(wait_seconds=60)
    assert engine.state(runs[0].run_id).run.status is RunStatus.RECOVERED


def test_threads_of_hung_questions_are_few(build, hung, monkeypatch):
    """Two about one action of one run; then it is denied at once, for they take no place of a call on an adapter."""
    world = build(*MAKES)
    engine = world.engine(settings={"max_parallel_calls": 1})
    world.authorizer = engine.kit.authorizer
    run = world.run()
    asked = []

    def decide(request):
        asked.append(request)
        world.clock.advance(1)  # its time passes on the engine's clock, too
        return hung(FakeAuthorizer(), request)

    answer, world.authorizer.decide = world.authorizer.decide, decide
    for n in range(6):
        assert run.call("shop.reserve", {"name": f"o-{n}"}).status is ActionStatus.DENIED
    assert len(asked) == 2
    world.authorizer.decide = answer
    monkeypatch.undo()
    assert run.call("shop.announce", {"name": "o-9"}).ok
    hung.gone.set()
    run.finish()
