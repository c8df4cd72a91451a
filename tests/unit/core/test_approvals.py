"""Who may approve: what is said of it, whose yes helps and when it is complete (rule 30)."""

import pytest

from amends.core.rows import ApprovalRow


def asked(**changes):
    """A question to people, as a row."""
    fields = {"approval_id": "p", "run_id": "r", "action_id": "a", "phase": "release", "tier": 2, "shown": {}}
    return ApprovalRow(**(fields | {"digest": "d", "asked_us": 1, "expires_us": 2} | changes))


EITHER = {"roles": ("finance", "operations")}
BOTH = EITHER | {"roles_together": True}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "tier 2"),
        (EITHER, "tier 2, finance or operations"),
        (BOTH, "tier 2, finance and operations"),
        ({"people": 2}, "tier 2, 2 people"),
        ({"roles": ("finance",), "people": 3}, "tier 2, finance, 3 people"),
    ],
)
def test_who_may_say_yes_is_said_in_words(changes, words):
    """A person reads what it takes."""
    assert asked(**changes).who_may == words


@pytest.mark.parametrize(
    ("changes", "held", "covered"),
    [
        ({}, (), True),
        ({}, ("cook",), True),
        (EITHER, (), False),
        (EITHER, ("cook",), False),
        (EITHER, ("cook", "finance"), True),
        (BOTH, ("finance",), False),
        (BOTH, ("finance", "operations", "cook"), True),
    ],
)
def test_roles_are_one_of_several_or_all_together(changes, held, covered):
    """As the policies that would permit it combine them; other roles neither help nor harm."""
    assert asked(**changes).covered_by(held) is covered


@pytest.mark.parametrize(
    ("changes", "held", "helps"),
    [
        ({}, (), True),
        (EITHER, ("operations",), True),
        (EITHER, ("cook",), False),
        (BOTH, ("finance",), True),
        (BOTH, ("cook",), False),
        (BOTH | {"approvers": ("mo",), "approver_roles": ("finance",)}, ("operations",), True),
        (BOTH | {"approvers": ("mo",), "approver_roles": ("finance",)}, ("finance",), False),
        (BOTH | {"people": 2}, ("cook",), True),
        (BOTH | {"people": 2, "approvers": ("mo",)}, ("cook",), False),
        (EITHER | {"people": 2, "approvers": ("mo",), "approver_roles": ("finance",)}, ("cook",), True),
        (EITHER | {"people": 3, "approvers": ("mo",)}, ("cook",), True),
    ],
)
def test_a_yes_helps_if_it_completes_brings_a_role_or_leaves_room_for_one(changes, held, helps):
    """The last place is kept for whoever brings what is missing, or the approval could never be completed."""
    assert asked(**changes).helped_by(held) is helps


@pytest.mark.parametrize(
    ("changes", "people", "held", "complete"),
    [
        ({}, ("mo",), (), True),
        ({}, (), (), False),
        (EITHER, ("mo",), ("cook",), False),
        (EITHER | {"people": 2}, ("mo",), ("finance",), False),
        (EITHER | {"people": 2}, ("mo", "al"), ("finance",), True),
        (BOTH | {"people": 2}, ("mo", "al", "bo"), ("finance",), False),
    ],
)
def test_an_approval_is_complete_with_enough_people_who_hold_the_roles(changes, people, held, complete):
    """Heads and roles are counted apart."""
    assert asked(**changes).complete(people, held) is complete
