"""What may rest on what: declared, by outputs used as inputs, or by what was known before (rule 20)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amends.core.order import dependents, depends_on, inputs_from
from amends.core.status import ActionKind, Outcome
from amends.testing.run_builder import RunBuilder


def names(actions):
    return [action.action_id for action in actions]


def on(run: RunBuilder, name: str):
    return depends_on(run.state, run.action(name))


def three(**third) -> RunBuilder:
    """a, then b, both known before c is sent."""
    run = RunBuilder().planned("a").intent().succeeded().planned("b").intent().refused()
    return run.planned("c", **third).intent().succeeded()


def test_with_nothing_declared_everything_known_before_counts():
    """Also what failed: its outcome may have shaped the call."""
    assert on(three(), "c") == {"a", "b"}


def test_what_was_in_flight_together_is_independent():
    """Parallel siblings were sent before either outcome was known."""
    run = RunBuilder().planned("a").intent().planned("b").intent().on("a").succeeded().on("b").succeeded()
    assert on(run, "a") == on(run, "b") == frozenset()


def test_declared_dependencies_win_and_nothing_may_be_declared():
    """`()` is independent."""
    assert on(three(depends_on=("a",)), "c") == {"a"}
    assert on(three(depends_on=()), "c") == frozenset()


def test_an_output_used_as_input_is_always_an_edge():
    """It only makes the order stricter, whatever was declared."""
    assert on(three(depends_on=(), inputs_from=("b",)), "c") == {"b"}


def test_unknown_and_later_actions_are_no_dependencies():
    """So no cycle can be declared that would wait for ever."""
    run = RunBuilder().planned("a", depends_on=("b", "a", "nobody")).planned("b", depends_on=("a",))
    assert on(run, "a") == frozenset()
    assert on(run, "b") == {"a"}


def test_nothing_rests_on_what_was_sent_after_it_whatever_was_declared():
    """`b` was declared on `a`, which waited for its approval, and went out alone: neither waits for the other."""
    run = RunBuilder().planned("a").asked("forward").planned("b", depends_on=("a",))
    assert on(run, "b") == {"a"}
    run.intent().succeeded().on("a").approved().intent().succeeded()
    assert on(run, "a") == {"b"}
    assert on(run, "b") == frozenset()
    assert names(dependents(run.state, "a")) == []
    assert names(dependents(run.state, "b")) == ["a"]


def test_what_was_sent_goes_before_what_was_not_and_a_twin_stands_where_it_was_found():
    """Unsent things go by the order in which they were planned."""
    run = RunBuilder().planned("queued", depends_on=()).planned("a").intent().succeeded()
    run.planned("twin", kind=ActionKind.DUPLICATE, of="a", depends_on=()).settled(Outcome.SUCCEEDED)
    run.planned("b", depends_on=("queued", "a", "twin")).planned("c", depends_on=("b", "queued", "twin"))
    assert on(run, "b") == {"queued", "a", "twin"}
    assert on(run, "c") == {"b", "queued", "twin"}
    assert on(run.on("b").intent(), "b") == {"a", "twin"}
    assert on(run, "c") == {"b", "queued", "twin"}


def test_the_first_send_says_what_could_be_known():
    """A re-send rests on nothing new, not on its own first try, and nobody new rests on it."""
    run = RunBuilder().planned("a").intent().not_sent().planned("b").intent().succeeded().on("a").intent().succeeded()
    assert on(run, "a") == frozenset()
    assert on(run, "b") == {"a"}


def test_an_input_is_an_edge_also_while_its_source_is_in_flight():
    """Its outcome was not recorded yet, but a value of it was used; what was known stays as well."""
    run = RunBuilder().planned("a").intent().planned("k").intent().succeeded()
    assert on(run.planned("b", inputs_from=("a",)).intent(), "b") == {"a", "k"}


def test_an_undo_rests_on_what_its_action_rests_on():
    """The inverse needs the same things in place, besides its own."""
    run = three(depends_on=("a",)).compensating()
    assert on(run, run.action().action_id) == {"a"}
    run = three(depends_on=("a",)).planned("u", kind=ActionKind.UNDO, of="c", depends_on=("b",))
    assert on(run, "u") == {"a", "b"}
    stray = RunBuilder().planned("u", kind=ActionKind.UNDO, of="gone")
    assert on(stray, "u") == frozenset()


def test_dependents_reach_through_others_and_are_forward_actions():
    """Undo actions are no dependents; the action itself is not either."""
    run = RunBuilder().planned("a", depends_on=()).planned("b", depends_on=("a",)).planned("c", depends_on=("b",))
    run.planned("d", depends_on=()).planned("u", kind=ActionKind.UNDO, of="c")
    assert names(dependents(run.state, "a")) == ["b", "c"]
    assert names(dependents(run.state, "c")) == []


@given(st.data())
def test_no_action_depends_on_itself_through_others(data):
    """Whatever is declared, in whatever order things are sent: a reverse topological order exists."""
    run = RunBuilder()
    pool = [f"a{i}" for i in range(6)]
    made: list[str] = []
    for _ in range(data.draw(st.integers(1, 10))):
        unsent = [name for name in made if not run.action(name).ever_sent]
        if not unsent or data.draw(st.booleans()):
            if len(made) == len(pool):
                continue
            declared = data.draw(st.none() | st.lists(st.sampled_from(pool), unique=True, max_size=3))
            made.append(f"a{len(made)}")
            run.planned(made[-1], depends_on=None if declared is None else tuple(declared))
        else:
            run.on(data.draw(st.sampled_from(unsent))).intent()
            if data.draw(st.booleans()):
                run.succeeded()
    edges = {name: on(run, name) for name in made}
    left = set(made)
    while left:
        free = {name for name in left if not edges[name] & left}
        assert free
        left -= free


def outputs(**effect) -> RunBuilder:
    return (
        RunBuilder()
        .planned("a", args={"name": "billing-field"})
        .intent()
        .succeeded(reference="order-4711", effect=effect)
    )


def test_an_argument_equal_to_a_recorded_output_is_an_edge():
    """Text of six letters, references, numbers from a million, nested values."""
    run = outputs(id="made-by-a", number=1_234_567, million=-1_000_000, word="sixsix", deep={"list": ["also-this"]})
    for used in (
        "made-by-a",
        "order-4711",
        "1234567",
        1_234_567,
        {"x": ["also-this"]},
        ["made-by-a"],
        -(10**6),
        "sixsix",
    ):
        assert inputs_from(run.state, {"given": used}) == ("a",)


def test_short_values_and_the_actions_own_inputs_tell_nothing():
    """`main`, 7 and true appear everywhere; what went in and came out again was not produced."""
    run = outputs(branch="main", count=7, on=True, name="billing-field", big=-2, nearly=999_999)
    for used in ("main", 7, True, "billing-field", None, "other-value", {"a": "main"}, 999_999):
        assert inputs_from(run.state, {"given": used}) == ()
