"""`CallLine` and `Armed`: the same faults at the adapter's own boundary."""

import re

import pytest

from amends.spi import Call, Done, NotSent, Observation, Refused
from amends.testing.conformance import CallLine, Fault
from amends.testing.conformance.armed import Armed


class File:
    """A system without a wire: markers in a list."""

    def __init__(self):
        self.marks = []

    def send(self, call):
        self.marks.append(call.marker)
        return Done(reference=str(len(self.marks)))

    def ask(self, question):
        return Observation(seen="applied" if question.marker in self.marks else "absent")


@pytest.fixture
def file():
    return File()


@pytest.fixture
def line():
    return CallLine("/the/file")


def call(marker="m-1", undo_marker=""):
    return Call(
        run_id="r",
        action_id=marker,
        marker=marker,
        idempotency_key="k",
        args={},
        before={},
        allocated={},
        effect={},
        after={},
        reference="",
        attempt=1,
        sent_at_us=0,
        timeout_seconds=1.0,
        secret=lambda name: name,
        deadline_us=1,
        still_wanted=lambda: True,
        undo_marker=undo_marker,
    )


def send(line, file, marker="m-1"):
    return line.around_send(call(marker), file.send, file.ask)


def look(line, file):
    return line.around_ask(call(), file.ask).seen


def test_a_line_without_faults_makes_the_call(line, file):
    """And notes it with its marker; an undo's with its own."""
    assert send(line, file).reference == "1"
    assert look(line, file) == "applied"
    line.around_send(call("m-1", undo_marker="u-1"), file.send, file.ask)
    assert [(seen.target, seen.writes) for seen in line.exchanges()] == [("m-1", True), ("m-1", False), ("u-1", True)]


def test_an_unsent_call_is_not_made(line, file):
    """The adapter would have seen its connection refused."""
    line.arm(Fault("unsent"))
    with pytest.raises(NotSent):
        send(line, file)
    assert (file.marks, line.unfired()) == ([], ())


def test_a_lost_answer_is_lost_after_the_effect(line, file):
    """The call is made and its answer does not arrive."""
    line.arm(Fault("lost"))
    with pytest.raises(ConnectionResetError):
        send(line, file)
    assert (file.marks, line.unfired()) == (["m-1"], ())


def test_a_dropped_call_is_not_made(line, file):
    """It looks like a lost answer."""
    line.arm(Fault("dropped"))
    with pytest.raises(ConnectionResetError):
        send(line, file)
    assert (file.marks, line.unfired()) == ([], ())


@pytest.mark.parametrize(("kind", "marks"), [("lost", ["m-1"]), ("dropped", [])])
def test_silence_is_a_time_out(line, file, kind, marks):
    """Nobody waits for it: what the caller sees is the end of its patience."""
    line.arm(Fault(kind, how="silence"))
    with pytest.raises(TimeoutError):
        send(line, file)
    assert file.marks == marks


def test_a_replayed_answer_is_that_of_the_call_before(line, file):
    """The call is not made."""
    first = send(line, file)
    line.arm(Fault("replayed"))
    assert send(line, file, "m-2") is first
    assert file.marks == ["m-1"]


def test_nothing_to_replay_is_a_lost_call(line, file):
    """There is no success that the adapter could have made of it."""
    line.arm(Fault("replayed"))
    with pytest.raises(ConnectionError):
        send(line, file)
    assert file.marks == []


def test_a_denied_call_is_refused_and_not_made(line, file):
    """As often as it is asked, if the denial lasts."""
    line.arm(Fault("denied", status=403, lasting=True))
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            send(line, file)
        assert refused.value.code == "http_403"
    assert (file.marks, line.unfired()) == ([], ())


def test_a_late_call_lands_after_the_looks_it_was_told(line, file):
    """The first look says that nothing is there."""
    line.arm(Fault("late"))
    with pytest.raises(ConnectionResetError):
        send(line, file)
    assert (file.marks, line.unfired()) == ([], (Fault("late"),))
    assert [look(line, file), look(line, file)] == ["absent", "applied"]
    assert (file.marks, line.unfired()) == (["m-1"], ())


def test_a_call_is_made_two_times(line, file):
    """Both have their effect, and the second answer is given."""
    line.arm(Fault("twice"))
    assert send(line, file).reference == "2"
    assert file.marks == ["m-1", "m-1"]


def test_stale_looks_are_as_before_the_call(line, file):
    """As many as were told; then the truth."""
    line.arm(Fault("stale", reads=2))
    send(line, file)
    assert [look(line, file) for _ in range(3)] == ["absent", "absent", "applied"]
    assert line.unfired() == ()


def test_a_fault_that_the_line_cannot_make_is_refused(line):
    """There is no wire on which a page could be answered, or an answer be cut in its middle."""
    for fault in (Fault("html"), Fault("lost", how="cut_body")):
        with pytest.raises(ValueError, match=re.escape(f"cannot make `{fault}`")):
            line.arm(fault)


def test_a_fault_that_never_happened_is_told(line, file):
    """Whatever its kind."""
    for fault in (Fault("lost"), Fault("stale")):
        line.arm(fault)
    look(line, file)
    assert line.unfired() == (Fault("lost"), Fault("stale"))


def test_armed_faults_are_taken_in_order():
    """`next_is` takes a fault of the kind it asks for only if that one is next."""
    armed = Armed(frozenset({"unsent", "lost"}))
    armed.add(Fault("lost"))
    armed.add(Fault("unsent"))
    assert not armed.next_is("unsent")
    assert armed.write() == Fault("lost")
    assert armed.next_is("unsent")
    assert (armed.write(), armed.unfired()) == (None, ())


def test_a_lasting_fault_that_never_happened_is_told():
    """It counts as fired once it has met a request."""
    armed = Armed(frozenset({"denied"}))
    armed.add(Fault("denied", lasting=True))
    assert armed.unfired() == (Fault("denied", lasting=True),)
    armed.write()
    assert armed.unfired() == ()
