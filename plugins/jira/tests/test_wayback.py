"""The way back through the workflow: direct, in several steps, within limits, and with what its screens ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused

KEY = "BILL-7"
POST = f"POST /issue/{KEY}/transitions"
ARGS = {"key": KEY, "to": "In Review"}


def step(number, start, end, **more):
    return {"id": str(number), "name": f"{start} to {end}", "from": [start], "to": end, **more}


THERE = step(1, "In Progress", "In Review")
ROUND = [THERE, step(2, "In Review", "Done"), step(3, "Done", "To Do"), step(4, "To Do", "In Progress")]


def done(site, steps, args=ARGS, peers=("Done", "To Do")):
    site.system.configure(transitions=steps)
    for number, status in enumerate(peers, 20):
        site.system.control("seed_issue", key=f"BILL-{number}", summary="peer", status=status)
    transition, call = site.ready("transition", args)
    return transition, site.done(transition, call)


def undo(site, transition, call):
    return site.undo(transition, call, "reverse")


def test_a_way_back_of_several_steps_is_one_request_for_each_attempt(each):
    """Half-way the effect still is ours and applied, so that the engine sends the next step."""
    transition, call = done(each, ROUND)
    seen = [undo(each, transition, call) for _ in range(3)]
    assert [one.seen for one in seen] == ["applied", "applied", "absent"]
    assert seen[0].state == {"status": "Done", "moved": "ours"}
    assert transition.probe(call).seen == "absent"
    assert each.fields()["status"] == "In Progress"
    assert each.writes() == [POST] * 4
    assert transition.contract.compensation[0].retry.attempts >= 3


def test_a_direct_way_back_is_taken_without_looking_at_other_issues(each):
    """The shortest way, and no read that it does not need."""
    transition, call = done(each, [*ROUND, step(5, "In Review", "In Progress")])
    assert undo(each, transition, call).seen == "absent"
    assert each.system.requests(path="*/search*") == []


@pytest.mark.parametrize("limit", [1, 2])
def test_a_way_that_is_too_long_is_not_begun(each, limit):
    """Nothing is sent: an issue is not left somewhere on its way."""
    each.options = each.options.model_copy(update={"way_back_steps": limit})
    transition, call = done(each, ROUND)
    with pytest.raises(Refused) as refused:
        transition.undo(call)
    assert refused.value.code == "no_reverse_transition"
    assert each.writes() == [POST]


def test_a_way_that_no_other_issue_shows_is_not_guessed(each):
    """No issue stands in the status between, or only one of another type."""
    transition, call = done(each, ROUND, peers=())
    each.system.control("seed_issue", key="BILL-30", summary="bug", status="Done", issuetype="Bug")
    with pytest.raises(Refused, match="no way back"):
        transition.undo(call)
    assert each.writes() == [POST]


def test_a_way_of_several_steps_is_not_begun_where_the_history_shows_no_marks(each):
    """Some servers drop them: half-way nobody could tell our step from somebody else's move."""
    each.system.configure(keeps_history_metadata=False)
    transition, call = done(each, ROUND)
    assert transition.probe(call).seen == "applied"
    with pytest.raises(Refused) as refused:
        transition.undo(call)
    assert refused.value.code == "no_reverse_transition"
    assert each.writes() == [POST]


def test_somebody_who_moves_the_issue_on_its_way_back_is_not_overridden(each):
    """Rule 18, also between two steps."""
    transition, call = done(each, ROUND)
    undo(each, transition, call)
    each.foreign_move("3")
    assert transition.verify_undone(call).seen == "diverged"
    with pytest.raises(Refused) as refused:
        transition.undo(call)
    assert refused.value.code == "diverged"
    assert each.fields()["status"] == "To Do"


def test_a_search_that_fails_before_a_step_means_not_sent(each):
    """It may be tried again."""
    transition, call = done(each, ROUND)
    each.system.arm("refuse", method="*", path="*/search*", status=503)
    with pytest.raises(NotSent):
        transition.undo(call)
    assert each.writes() == [POST]


def test_a_way_back_that_asks_for_what_only_a_person_knows_is_not_taken(each):
    """The refusal names the field."""
    worklog = {"worklog": {"required": True, "operations": ["add"]}}
    transition, call = done(each, [THERE, step(2, "In Review", "In Progress", screen=worklog)])
    with pytest.raises(Refused, match="worklog"):
        transition.undo(call)
    assert each.writes() == [POST]


def test_a_way_back_is_given_the_former_resolution(each):
    """A reopened issue is closed again as it was."""
    each.system.configure(transitions=[step(9, "In Progress", "Done", required=["resolution"])])
    each.foreign(
        "POST", f"issue/{KEY}/transitions", {"transition": {"id": "9"}, "fields": {"resolution": {"name": "Fixed"}}}
    )
    steps = [step(1, "Done", "To Do"), step(2, "To Do", "Done", required=["resolution"])]
    transition, call = done(each, steps, {"key": KEY, "to": "To Do"}, peers=())
    assert undo(each, transition, call).seen == "absent"
    assert each.fields()["resolution"] == {"name": "Fixed"}


def test_what_the_screen_had_set_is_given_back_where_the_way_back_takes_it(each):
    """The before-image is the status and what was set with it."""
    person = each.options.person_field
    screen = {"assignee": {"required": False, "operations": ["set"]}}
    steps = [{**THERE, "screen": screen}, step(2, "In Review", "In Progress", screen=screen)]
    transition, call = done(each, steps, {**ARGS, "fields": {"assignee": {person: "acc-maya"}}})
    assert each.fields()["assignee"] == "acc-maya"
    assert undo(each, transition, call).seen == "absent"
    assert each.fields()["assignee"] == "acc-noor"


def test_what_the_screen_had_set_and_the_way_back_does_not_take_is_seen(each):
    """The status is back and the effect is not: a person decides."""
    screen = {"assignee": {"required": False, "operations": ["set"]}}
    steps = [{**THERE, "screen": screen}, step(2, "In Review", "In Progress")]
    transition, call = done(each, steps, {**ARGS, "fields": {"assignee": {each.options.person_field: "acc-maya"}}})
    seen = undo(each, transition, call)
    assert (seen.seen, "assignee" in seen.detail) == ("diverged", True)


def test_a_field_that_is_added_to_is_sent_as_an_addition(each):
    """A required worklog is not set but added."""
    worklog = {"worklog": {"required": True, "operations": ["add"]}}
    given = {**ARGS, "fields": {"worklog": {"timeSpent": "1h"}}}
    transition, call = done(each, [{**THERE, "screen": worklog}, step(2, "In Review", "In Progress")], given)
    (sent,) = [row["body"] for row in each.system.requests("POST", f"{each.api}/issue/{KEY}/transitions")]
    assert next(iter(sent)) == "historyMetadata"
    assert (sent["update"], "fields" in sent) == ({"worklog": [{"add": {"timeSpent": "1h"}}]}, False)
    assert undo(each, transition, replace(call, reference=KEY)).seen == "absent"
