"""Transitions over real sockets: one request, verified by status and changelog, taken back where the workflow can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous, Unreadable

KEY = "BILL-7"
POST = f"POST /issue/{KEY}/transitions"
PATH = f"/rest/api/3/issue/{KEY}/transitions"
ARGS = {"key": KEY, "to": "In Review"}


def ready(site, args=ARGS, **facts):
    transition = site.capability("transition", customer_facing=False, transition="compensatable")
    return transition, site.prepared(transition, site.call(args, **facts))


def test_a_transition_is_one_request_and_a_separate_read_confirms_it(site):
    """The transition's id is read at that moment; the status and the changelog say that it was ours."""
    transition, call = ready(site)
    assert call.before == {"status": "In Progress", "summary": "In Progress", "fields": {"resolution": None}}
    done = site.done(transition, call)
    assert site.writes() == [POST]
    seen = transition.probe(done)
    assert (seen.seen, seen.state) == ("applied", {"status": "In Review", "moved": "ours"})
    assert transition.contract.confirm == "probe"


@pytest.mark.parametrize(
    ("fault", "parameters"),
    [
        ("drop_after_commit", {"how": "fin"}),
        ("drop_after_commit", {"how": "rst"}),
        ("error_after_commit", {"status": 500}),
        ("error_after_commit", {"status": 504, "form": "html"}),
        ("html_answer", {}),
    ],
)
def test_an_answer_lost_after_commit_is_found_by_looking(site, fault, parameters):
    """One request, unknown, applied (A-06)."""
    transition, call = ready(site)
    site.system.arm(fault, path=PATH, **parameters)
    with pytest.raises(Ambiguous):
        transition.do(call)
    assert transition.probe(call).seen == "applied"
    assert site.writes() == [POST]


def test_a_204_that_changed_nothing_is_seen(site):
    """The answer is no proof; the status still is the former one (verify after write)."""
    transition, call = ready(site)
    site.system.arm("answer_without_commit", path=PATH)
    assert transition.probe(site.done(transition, call)).seen == "absent"


@pytest.mark.parametrize(("status", "form"), [(403, "native"), (404, "native"), (409, "native"), (401, "native")])
def test_a_refusal_is_proof_that_nothing_moved(site, status, form):
    """The engine need not look."""
    transition, call = ready(site)
    site.system.arm("refuse", path=PATH, status=status, form=form)
    with pytest.raises(Refused) as refused:
        transition.do(call)
    assert refused.value.again == (status == 409)
    assert site.fields()["status"] == "In Progress"


def test_a_request_that_arrives_a_second_time_is_not_refused(site):
    """The first one took the transition, so the second finds it no more: its 400 does not say that nothing moved."""
    transition, call = ready(site)
    transition.do(call)
    with pytest.raises(Ambiguous):
        transition.do(call)
    assert transition.probe(call).seen == "applied"


def test_a_transition_that_is_gone_by_now_is_refused_while_the_issue_stands(site):
    """The workflow was changed since `prepare`: the same 400 is proof, with Jira's reason."""
    transition, call = ready(site)
    site.system.configure(transitions=[])
    with pytest.raises(Refused, match="not valid") as refused:
        transition.do(call)
    assert (refused.value.code, site.fields()["status"]) == ("bad_request", "In Progress")


@pytest.mark.parametrize(("to", "code"), [("Done", "no_transition"), ("In Progress", "already_there")])
def test_a_move_that_is_not_available_is_refused_before_anything_is_sent(site, to, code):
    """Nothing fires for a status that cannot be reached or stands already."""
    with pytest.raises(Refused) as refused:
        ready(site, {"key": KEY, "to": to})
    assert refused.value.code == code
    assert site.writes() == []


def test_a_required_screen_field_must_be_given(site):
    """Named in the refusal; given, it is sent with the transition."""
    way = {"id": "61", "name": "Close", "from": ["In Progress"], "to": "Done", "required": ["resolution"]}
    site.system.configure(transitions=[way])
    with pytest.raises(Refused) as refused:
        ready(site, {"key": KEY, "to": "Done"})
    assert refused.value.code == "field_required"
    transition, call = ready(site, {"key": KEY, "to": "Done", "fields": {"resolution": {"name": "Fixed"}}})
    assert transition.probe(site.done(transition, call)).seen == "applied"


def test_a_call_no_longer_wanted_sends_nothing(site):
    """The last look happens before the first byte (rule 3)."""
    transition, call = ready(site)
    with pytest.raises(NotSent):
        transition.do(replace(call, still_wanted=lambda: False))
    assert site.writes() == []


def test_the_reverse_transition_takes_it_back(site):
    """Undone is what the separate read says; the changelog names the undo as ours."""
    transition, call = ready(site)
    done = site.done(transition, call)
    assert site.undo(transition, done).seen == "absent"
    assert site.fields()["status"] == "In Progress"
    assert transition.probe(done).seen == "absent"
    assert site.writes() == [POST, POST]


def test_without_a_reverse_transition_the_undo_is_refused(site):
    """The workflow is one-way: nothing is sent, and the next rung is a person."""
    way = {"id": "71", "name": "Forward", "from": ["In Progress"], "to": "In Review"}
    site.system.configure(transitions=[way])
    transition, call = ready(site)
    done = site.done(transition, call)
    with pytest.raises(Refused) as refused:
        transition.undo(done)
    assert refused.value.code == "no_reverse_transition"
    assert [rung.undo for rung in transition.contract.compensation] == ["own", "escalate"]
    assert site.writes() == [POST]


def test_a_look_that_fails_before_the_undo_means_not_sent(site):
    """The undo may be tried again: nothing left."""
    transition, call = ready(site)
    done = site.done(transition, call)
    site.system.arm("refuse", method="GET", path=PATH, status=503)
    with pytest.raises(NotSent):
        transition.undo(done)
    assert site.writes() == [POST]


def test_a_foreign_move_after_ours_is_diverged_and_not_overwritten(site):
    """Somebody went on working: the undo refuses (rule 18)."""
    transition, call = ready(site)
    done = site.done(transition, call)
    site.foreign_move("31")
    assert transition.probe(done).seen == "diverged"
    with pytest.raises(Refused) as refused:
        transition.undo(done)
    assert refused.value.code == "diverged"
    assert site.fields()["status"] == "Done"


def test_a_foreign_move_to_the_same_status_is_not_taken_for_ours(site):
    """Our request never arrived and a colleague moved the issue there."""
    transition, call = ready(site)
    site.foreign_move("21")
    assert transition.probe(call).seen == "diverged"


def test_our_move_that_somebody_took_back_is_not_absent(site):
    """It landed, its webhook fired: the status equals the before-image and still it must not be sent again."""
    transition, call = ready(site)
    site.system.arm("drop_after_commit", path=PATH)
    with pytest.raises(Ambiguous):
        transition.do(call)
    site.foreign_move("51")
    assert transition.probe(call).seen == "diverged"


def test_two_moves_of_one_run_are_taken_back_one_after_the_other(site):
    """After the second is undone the first is ours again."""
    transition, call = ready(site)
    first = site.done(transition, call)
    site.system.configure(
        transitions=[
            {"id": "31", "name": "Done", "from": ["In Review"], "to": "Done"},
            {"id": "32", "name": "Reopen", "from": ["Done"], "to": "In Review"},
            {"id": "33", "name": "Back", "from": ["In Review"], "to": "In Progress"},
        ]
    )
    _, later = ready(site, {"key": KEY, "to": "Done"}, marker="act-2")
    second = site.done(transition, later)
    assert site.undo(transition, second).seen == "absent"
    assert transition.probe(first).seen == "applied"
    assert site.undo(transition, first).seen == "absent"


@pytest.mark.parametrize("status", [404, 429, 500])
def test_a_probe_that_cannot_look_is_inconclusive(site, status):
    """Also 404: gone and not visible look alike (P-06)."""
    transition, call = ready(site)
    site.system.arm("refuse", method="GET", path=f"/rest/api/3/issue/{KEY}", status=status)
    assert transition.probe(call).seen == "inconclusive"


def test_an_issue_that_cannot_be_seen_is_not_moved(site):
    """`prepare` cannot read it, so nothing is sent."""
    with pytest.raises(Unreadable):
        ready(site, {"key": "BILL-99", "to": "Done"})
    assert site.writes() == []
