"""The framework or the host executes the call again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from amends.core.errors import AmendsError, Conflict, JournalUnavailable
from amends.testing.memory_journal import MemoryJournal
from amends.testing.worlds import gate, keyed, ledger_faults, probeable, queued

ARGS = {"name": "o-1"}


def test_f_01_a_node_that_starts_from_its_first_line_after_each_of_three_approvals_has_one_effect_of_each(build):
    """Every resume replays the charge and all earlier approved calls; the ledger answers for them."""
    world = build(keyed("shop.charge"), gate())

    def node(run):
        run.call("shop.charge", ARGS)
        return all(run.gate("shop.buy", {"name": f"part-{n}"}).ok for n in (1, 2, 3))

    run, starts = world.run(), 1
    while not node(run):
        run.detach()
        (asked,) = world.engines[0].approvals()
        world.engines[0].approve(asked.approval_id, by="noor")
        run = world.run(resume=True)
        starts += 1
    run.finish()
    assert starts == 4
    assert run.outcome.status.value == "committed"
    assert (world.system.count("shop.charge"), world.system.count("shop.buy")) == (1, 3)
    assert len(world.system.sent("shop.charge", "do")) == 1


def test_f_03_answers_that_come_to_the_wrong_one_of_two_questions_let_nothing_pass(build):
    """A yes carries the digest of what was shown; swapped or given twice, it is refused and nothing is sent."""
    world = build(gate("flags.delete"), gate("shop.refund"))
    run = world.run()
    run.gate("flags.delete", {"name": "x"}, depends_on=[])
    run.gate("shop.refund", {"name": "5"}, depends_on=[])
    engine = world.engines[0]
    asked = {question.shown["action"]: question for question in engine.approvals()}
    delete, refund = asked["flags.delete"], asked["shop.refund"]
    for question, other in ((delete, refund), (refund, delete)):
        with pytest.raises(AmendsError):
            engine.approve(question.approval_id, by="noor", digest=other.digest)
    assert not run.gate("flags.delete", {"name": "x"}).ok
    assert not run.gate("shop.refund", {"name": "5"}).ok
    assert world.system.count() == 0
    engine.approve(refund.approval_id, by="noor", digest=refund.digest)
    with pytest.raises(Conflict):
        engine.approve(refund.approval_id, by="maya", digest=refund.digest)
    assert run.gate("shop.refund", {"name": "5"}).ok
    assert not run.gate("flags.delete", {"name": "x"}).ok
    assert [thing.capability for thing in world.system.things.values()] == ["shop.refund"]
    run.detach()


class TornJournal(MemoryJournal):
    """Dies at its n-th commit, before or after storing it, and for good: what a process meets that is killed there."""

    def __init__(self, dies_at, *, stored):
        super().__init__()
        self.left, self.stored, self.gone = dies_at, stored, False

    def commit(self, command):
        self.left -= 1
        if self.gone or self.left < 0:
            raise JournalUnavailable("the process is gone", hint="none")
        if self.left == 0:
            self.gone = True
            if self.stored:
                super().commit(command)
            raise JournalUnavailable("the process is gone", hint="none")
        return super().commit(command)


@pytest.mark.parametrize("stored", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("make", [keyed, probeable])
def test_f_05_a_crash_at_any_write_leaves_no_second_effect_and_no_forgotten_one(build, make, stored):
    """Killed before or after each commit of a run in turn, recovery decides from the ledger alone."""
    for dies_at in range(1, 40):
        journal = TornJournal(dies_at, stored=stored)
        world = build(make("shop.reserve"), make("shop.pay"), queued(), journal=journal)
        try:
            with world.run() as run:
                run.call("shop.reserve", ARGS)
                run.call("shop.pay", ARGS)
                run.call("shop.notify", ARGS)
        except AmendsError:
            assert journal.gone
        finished = not journal.gone
        world.engines[0]._made.sending._unwritten.clear()  # a dead process writes nothing later
        world.die()
        journal.gone, journal.left = False, 10_000
        second = world.engine("owner-2")
        second.recover(wait_seconds=600)
        for state in map(second.state, [row.run_id for row in second.runs()]):
            expected = {"committed": 3, "recovered": 0}[state.run.status.value]
            assert world.system.count() == expected, dies_at
        sent = [(request.capability, request.name) for request in world.system.requests if request.verb == "do"]
        assert len(sent) == len(set(sent)), dies_at
        assert ledger_faults(journal) == []
        if finished:
            assert dies_at > 8
            return
    pytest.fail("the run never came to its end")


@pytest.mark.parametrize("make", [keyed, probeable])
def test_f_07_rewording_a_call_whose_answer_was_lost_makes_no_second_one(build, make):
    """Every retry comes with another wording: the slot is the same, so the first one is looked for and stands alone."""
    world = build(make("jira.create"))
    world.system.tell("jira.create", "do", "lost")
    with world.run() as run:
        first = run.call("jira.create", ARGS | {"value": "title A"})
        for wording in ("title A'", "Title a", "", "title A, second attempt"):
            again = run.call("jira.create", ARGS | {"value": wording})
            assert (again.conflict, again.action_id) == (True, first.action_id)
        world.clock.advance(5)
        assert run.call("jira.create", ARGS | {"value": "title A"}).ok
    assert run.outcome.status.value == "committed"
    assert world.system.count() == 1
    assert len(world.system.sent("jira.create", "do")) == 1


def test_f_07_rewording_a_call_that_provably_never_happened_is_a_new_try(build):
    """A proven refusal frees the slot: other arguments are then another generation under another key."""
    world = build(keyed("jira.create"))
    world.system.tell("jira.create", "do", "refused")
    with world.run() as run:
        assert not run.call("jira.create", ARGS | {"value": "title A"}).ok
        second = run.call("jira.create", ARGS | {"value": "title B"})
        assert (second.ok, second.conflict) == (True, False)
    assert len({request.key for request in world.system.sent("jira.create", "do")}) == 2
    assert world.system.count() == 1


def test_f_08_a_run_that_is_played_again_after_each_error_of_the_model_charges_once(build):
    """The charge succeeded, then the model answers 500, and the host starts the agent over: three times."""
    world = build(keyed("shop.charge"))
    for attempt in range(4):
        run = world.run(resume=attempt > 0)
        result = run.call("shop.charge", ARGS)
        assert (result.ok, result.repeated) == (True, attempt > 0)
        run.detach()
    assert len(world.system.sent("shop.charge", "do")) == 1


def test_f_15_a_call_that_was_restored_twice_from_a_transcript_is_one_intent(build):
    """Two copies in one message and one more after a resume: one action, one intent, one effect."""
    world = build(keyed())
    run = world.run()
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: run.call("shop.reserve", ARGS), range(2)))
    run.detach()
    resumed = world.run(resume=True)
    third = resumed.call("shop.reserve", ARGS)
    assert len({result.action_id for result in (*both, third)}) == 1
    kinds = [stored.event.kind for stored in world.journal.events(run.run_id)]
    assert kinds.count("intent_recorded") == 1
    resumed.finish()


@pytest.mark.parametrize("landed", [True, False])
def test_f_17_what_a_resumed_agent_is_told_of_an_orphaned_call_is_what_the_system_says(build, landed):
    """Killed in the middle of a call: neither a made-up error nor a made-up success; the outcome is looked for."""
    world = build(probeable("git.push"))
    if not landed:
        world.system.tell("git.push", "do", "nothing")
    held = world.system.hold("git.push", "do")
    run = world.run()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(run.call, "git.push", ARGS)
        assert held.arrived.wait(10)
        if landed:
            held.go()
            call.result(10)
        world.die()
        second = world.engine("owner-2")
        resumed = world.run(engine=second, resume=True)
        result = resumed.call("git.push", ARGS)
        held.go()
    assert result.ok is landed
    if not landed:
        assert result.outcome.value == "unknown"
        assert "not" in result.message
    assert len(world.system.sent("git.push", "do")) == 1
    resumed.fail("enough", wait_seconds=600)
    assert resumed.outcome.status.value == "recovered"
