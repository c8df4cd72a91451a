"""What a status and a changelog say about our transition."""

from __future__ import annotations

import pytest

from amends.spi import Refused
from amends_jira import history, marker, workflow

WAYS = workflow.ways(
    {
        "transitions": [
            {
                "id": "1",
                "name": "Finish",
                "to": {"name": "Done"},
                "fields": {
                    "resolution": {"required": True, "allowedValues": [{"id": "1", "name": "Fixed"}]},
                    "worklog": {"required": False, "operations": ["add"]},
                },
            },
            {"id": "2", "name": "Pause", "to": {"name": "To Do"}},
            {"id": "3", "name": "Stop", "to": {"name": "To Do"}},
            {"id": "4", "name": "Hidden", "to": {"name": "Secret"}, "isAvailable": False},
            {
                "id": "5",
                "name": "Close",
                "to": {"name": "Closed"},
                "fields": {"x": {"required": True, "hasDefaultValue": True}},
            },
        ]
    }
)


def entry(to, author="acc-agent", meta=None):
    found = {"id": "1", "author": {"accountId": author}, "items": [{"field": "status", "toString": to}]}
    return {**found, "historyMetadata": meta} if meta else found


def judge(status, *entries):
    account = history.Account("accountId", "acc-agent")
    hands = history.hands(entries, history.field_is("status"), our_marker="act-1", account=account)
    return workflow.judge(hands, status=status, before="To Do", to="Done")


OURS = entry("Done", meta=marker.history("act-1"))
HALF_WAY = entry("In Review", meta=marker.history("undo-1", undo_of="act-1"))
UNDO = entry("To Do", meta=marker.history("undo-1", undo_of="act-1"))


@pytest.mark.parametrize(
    ("seen", "status", "entries"),
    [
        ("applied", "Done", [OURS]),
        ("applied", "done", [OURS]),
        ("applied", "Done", [entry("Done")]),
        (
            "applied",
            "Done",
            [
                OURS,
                entry("Later", meta=marker.history("act-2")),
                entry("Done", meta=marker.history("undo-2", undo_of="act-2")),
            ],
        ),
        ("absent", "To Do", []),
        ("absent", "To Do", [OURS, UNDO]),
        ("diverged", "To Do", [OURS, entry("To Do", "acc-noor")]),
        ("diverged", "Done", [entry("Done", "acc-noor")]),
        ("diverged", "Done", [entry("Done", meta=marker.history("act-9"))]),
        ("diverged", "In Review", [OURS, entry("In Review", "acc-noor")]),
        ("diverged", "In Review", []),
        ("applied", "In Review", [OURS, HALF_WAY]),
        ("diverged", "In Review", [OURS, HALF_WAY, entry("In Review", "acc-noor")]),
    ],
)
def test_the_status_and_who_made_it_decide(seen, status, entries):
    """A state equal to ours by somebody else's hand is not ours to take back (rule 18)."""
    assert judge(status, *entries).seen == seen


def test_other_changes_of_the_issue_do_not_matter():
    """A changed label is no move."""
    label = {"id": "2", "author": {"accountId": "acc-noor"}, "items": [{"field": "labels"}]}
    assert judge("Done", OURS, label).state == {"status": "Done", "moved": "ours"}


def test_a_transition_is_chosen_by_its_target_and_by_name_where_several_lead_there():
    """Ids differ between workflows; names do not look at case."""
    assert workflow.choose(WAYS, "to do", "stop", {}).id == "3"
    assert workflow.choose(WAYS, "Done", "", {"resolution": {"name": "Fixed"}}).id == "1"
    assert workflow.choose(WAYS, "Closed", "", {}).id == "5"


@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("Secret", "no_transition"),
        ("Nowhere", "no_transition"),
        ("To Do", "which_transition"),
        ("Done", "field_required"),
    ],
)
def test_what_cannot_be_done_now_is_refused_with_the_reason(to, code):
    """Nothing is sent that Jira would refuse, and nothing is guessed."""
    with pytest.raises(Refused) as refused:
        workflow.choose(WAYS, to, "", {})
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"resolution": {"name": "Burnt"}}, "field_resolution"),
        ({"resolution": {"name": "Fixed"}, "colour": "red"}, "field_unknown"),
    ],
)
def test_what_the_screen_would_not_take_is_refused(given, code):
    """A value that is not allowed, and a field that is not on the screen."""
    with pytest.raises(Refused) as refused:
        workflow.choose(WAYS, "Done", "", given)
    assert refused.value.code == code


def test_a_field_that_can_only_be_added_to_is_told_from_one_that_is_set():
    """A worklog goes under `update`, a resolution under `fields`."""
    given = {"resolution": {"id": "1"}, "worklog": {"timeSpent": "1h"}}
    assert workflow.choose(WAYS, "Done", "", given).added(given) == ["worklog"]
