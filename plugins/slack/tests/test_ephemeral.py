"""Messages that one person sees."""

from __future__ import annotations

import pytest

from amends.spi import Refused
from amends.spi.http import Ambiguous

CHANNEL = "C0BILLING"
ARGS = {"channel": CHANNEL, "person": "maya", "text": "your invoice run starts"}


@pytest.fixture
def member(workspace):
    workspace.system.control("seed_channel", id=CHANNEL, name="billing", members=["U0AGENT", "U0MAYA"])
    return workspace


def test_an_ephemeral_message_is_one_request_to_the_person_the_site_mapped(member):
    """It is in no history; a correction goes to the person."""
    ephemeral = member.capability("ephemeral")
    done = member.done(ephemeral, member.prepared(ephemeral, member.call(ARGS)))
    (shown,) = member.system.effects("ephemeral")
    assert shown["resource"] == f"slack:{CHANNEL}/U0MAYA"
    assert done.reference == f"{CHANNEL}/{shown['reference']}"
    assert member.sent("chat.postEphemeral") == 1
    assert member.messages() == []
    assert ephemeral.place(done) == ephemeral.contract.signal.place.format(**ARGS) == "person:maya"


def test_nothing_can_find_it_again(member):
    """An answer that is lost leaves it to a person: blind, and never sent twice."""
    ephemeral = member.capability("ephemeral")
    member.system.arm("drop_after_commit", path="/api/chat.postEphemeral")
    call = member.call(ARGS)
    with pytest.raises(Ambiguous):
        ephemeral.do(call)
    assert ephemeral.probe(call).seen == "inconclusive"
    assert (ephemeral.contract.keying.kind, ephemeral.contract.probe) == ("blind", None)
    assert member.system.count("ephemeral") == 1


@pytest.mark.parametrize("ts", ["", None, 5, "1700000000.000100"], ids=str)
def test_an_ok_that_names_no_message_of_this_moment_proves_nothing(member, ts):
    """A repeated answer is older than the send."""
    body = {"ok": True, "message_ts": ts}
    member.system.arm("answer_without_commit", path="/api/chat.postEphemeral", status=200, body=body)
    with pytest.raises(Ambiguous):
        member.capability("ephemeral").do(member.call(ARGS))
    assert member.system.count("ephemeral") == 0


def test_a_clock_that_is_behind_ours_is_no_repeated_answer(member):
    """Two seconds are within the margin (P-07)."""
    member.system.configure(clock_skew_s=-2.0)
    assert member.capability("ephemeral").do(member.call(ARGS)).after == {"message": "shown"}


def test_a_person_nobody_mapped_is_refused_before_anything_is_sent(workspace):
    """Who cannot be told of a mistake is shown nothing."""
    ephemeral = workspace.capability("ephemeral")
    for step in (ephemeral.prepare, ephemeral.do):
        with pytest.raises(Refused):
            step(workspace.call({**ARGS, "person": "nobody"}))
    assert workspace.system.requests() == []


def test_a_person_outside_the_channel_is_refused(workspace):
    """Slack's word for it, and nothing shown."""
    with pytest.raises(Refused) as refused:
        workspace.capability("ephemeral").do(workspace.call(ARGS))
    assert refused.value.code == "user_not_in_channel"
