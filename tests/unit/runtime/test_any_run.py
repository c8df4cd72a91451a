"""Any run, whatever its systems do: it settles or a person has an item about it, and the ledger tells the truth.

The system never lies about what is there (a lagging read is tested by itself); everything else may go wrong.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.contract import Alternative
from amends.core.status import ActionKind, ActionStatus, Outcome
from amends.testing.worlds import (
    QUICK,
    World,
    corrector,
    gate,
    keyed,
    ledger_faults,
    probeable,
    queued,
    setting,
    visible,
)

COUNTING = QUICK.model_copy(update={"counts": True})
MAKES = {
    "shop.reserve": keyed(),
    "shop.list": probeable(),
    "shop.count": keyed("shop.count", probe=COUNTING),
    "shop.announce": visible(),
    "shop.ladder": keyed("shop.ladder", compensation=(Alternative(name="void"), Alternative(name="refund"))),
    "shop.notify": queued(),
    "shop.ask": queued("shop.ask", "on_approval"),
    "shop.buy": gate(),
    "flags.set": setting(),
}
DO_FAULTS = ["lost", "nothing", "refused", "busy", "not_sent", "twice", "twice_lost"]
UNDO_FAULTS = ["lie", "lie", "lost", "nothing", "refused", "busy", "not_sent"]

# Faults of one call: of the call itself, of the reads about it, of the undos of it. `None`: it behaves.
DO = st.one_of(st.none(), st.sampled_from(DO_FAULTS))
READS = st.lists(st.sampled_from(["inconclusive", "broken"]), max_size=5)
UNDOS = st.lists(st.sampled_from(UNDO_FAULTS), max_size=6)
POSTS = st.lists(st.sampled_from(["lost", "nothing", "refused", "not_sent"]), max_size=2)
calls = st.lists(
    st.tuples(st.sampled_from(sorted(MAKES)), st.sampled_from(["a", "b"]), st.booleans(), DO, READS, UNDOS),
    min_size=1,
    max_size=6,
)
endings = st.sampled_from(["finish", "fail", "die", "detach"])


def play(world, script, ending):
    """The agent's part: every call, some of them twice, then the end."""
    run = world.run()
    for capability, name, independent, do, reads, undos in script:
        world.system.tell(capability, "do", *([do] if do else []))
        world.system.tell(capability, "probe", *reads)
        world.system.tell(capability, "undo", *undos)
        args = {"name": name, "value": "on"} if capability == "flags.set" else {"name": name}
        run.call(capability, args, depends_on=[] if independent else None)
        if run.state.run.status.value != "open":
            break
    if ending == "die":
        world.die()
    elif ending == "detach":
        run.detach()
    else:
        getattr(run, ending)(*(["stop"] if ending == "fail" else []))
    return run


def people_answer(engine, answer):
    """Everybody says yes, or takes things as they are."""
    for asked in engine.approvals():
        engine.approve(asked.approval_id, by="maya")
    for item in engine.escalations():
        engine.resolve(
            item.escalation_id, answer if answer in item.choices else item.choices[0], by="maya", evidence="x"
        )


def truth(world, state):
    """Where the ledger claims more than the systems' own account bears out."""
    wrong = []
    for action in state.forward_actions():
        if action.capability.startswith("flags") or action.kind is ActionKind.DUPLICATE or action.accepted_by:
            continue
        here = [t for t in world.system.things.values() if t.marker == action.action_id]
        by_person = any(e.source == "person" for e in action.evidence) or action.compensated_how == "person"
        twins = [a for a in state.actions.values() if a.of == action.action_id and a.kind is ActionKind.DUPLICATE]
        mine = [t for t in here if t.reference not in {t.reference for t in twins}]
        if by_person:
            continue
        if action.status is ActionStatus.COMPENSATED and mine:
            wrong.append(f"{action.slot}: compensated, and {len(mine)} there")
        if action.outcome is Outcome.FAILED and here:
            wrong.append(f"{action.slot}: failed, and {len(here)} there")
        if action.status is ActionStatus.SUCCEEDED and not here:
            wrong.append(f"{action.slot}: succeeded, and nothing there")
    return wrong


@pytest.mark.timeout(900)
@given(script=calls, posts=POSTS, ending=endings)
def test_any_run_settles_or_has_an_item_for_a_person(script, posts, ending):
    """Rules 16 to 23 and 34: no run is stuck without a word, none spins, and none claims what is not so."""
    world = World(*MAKES.values(), corrector())
    try:
        first, second = world.engine("owner-1"), world.engine("owner-2")
        world.system.tell("note.correct", "do", *posts)
        run = play(world, script, ending)
        second.recover(wait_seconds=900)
        state = second.state(run.run_id)
        sweeper = second._made.sweeper
        assert sweeper.stuck == {}
        waits = [*second.escalations(), *second.approvals()]
        assert state.run.terminal or waits, (state.run.status, state.run.reason)
        assert len(world.system.requests) < 40 * len(script) + 100
        assert truth(world, state) == []
        before = world.journal.info().max_seq
        second.recover()
        assert world.journal.info().max_seq == before  # nothing new, nothing done
        assert ledger_faults(world.journal) == []
        for _ in range(8):
            if second.state(run.run_id).run.terminal:
                break
            people_answer(second, "accept_as_is")
            second.recover(wait_seconds=900)
        ended = second.state(run.run_id)
        assert ended.run.terminal, (ended.run.status, [(a.capability, a.status) for a in ended.actions.values()])
        assert truth(world, ended) == []
        assert ledger_faults(world.journal) == []
        assert first.escalations() == ()
    finally:
        world.close()
