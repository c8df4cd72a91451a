"""Merges beside the checkout: always a merge commit, with the parent that an undo goes back to."""

import pytest

from amends.spi import Refused


def merged(desk):
    """Somebody's `topic` merged into the local branch `feature/field`; the action."""
    desk.somebody_pushes("topic", name="topic.txt")
    desk.action("create_branch", branch="feature/field").run()
    action = desk.action("merge", branch="feature/field", source="topic")
    action.run()
    return action


def local(desk):
    return desk.git(desk.checkout, "rev-parse", "refs/heads/feature/field", check=False)


def test_merge_has_two_parents_and_goes_back_to_the_first(desk):
    """A fast-forward would have no inverse of its own: there is always a commit, and the branch returns."""
    action = merged(desk)
    parents = desk.git(desk.checkout, "rev-list", "--parents", "-n1", local(desk)).split()[1:]
    assert parents == [action.allocated["parent"], action.allocated["merged"]]
    assert (action.probe().seen, action.rung()) == ("applied", "restore")
    action.undo()
    assert desk.git(desk.checkout, "for-each-ref", "refs/heads/feature/field") == ""
    assert action.verify().seen == "absent"


def test_merge_pushed_by_another_process_is_reverted_against_its_first_parent(desk):
    """Memory says local, the remote says pushed: what the merge brought is taken back, other work stays."""
    action = merged(desk)
    desk.git(desk.checkout, "push", "-q", "origin", "feature/field")
    desk.somebody_pushes("feature/field", name="later.txt")
    assert action.rung() == "revert"
    action.undo()
    listed = desk.git(desk.remote, "ls-tree", "-r", "--name-only", "refs/heads/feature/field").split()
    assert listed == ["README.md", "later.txt"]
    assert action.verify().seen == "absent"


def test_merge_that_conflicts_is_refused_with_the_paths(desk):
    """Nothing is half-merged: the call fails before its intent and names the files."""
    desk.somebody_pushes("topic", name="field.txt")
    desk.agent_commits(name="field.txt")
    with pytest.raises(Refused, match=r"field\.txt") as refused:
        desk.action("merge", branch="feature/field", source="topic").prepare()
    assert refused.value.code == "conflict"


def test_merge_of_what_is_there_already_is_refused(desk):
    """Nothing to merge is no merge."""
    desk.action("create_branch", branch="feature/field").run()
    with pytest.raises(Refused) as refused:
        desk.action("merge", branch="feature/field", source="main").prepare()
    assert refused.value.code == "nothing_to_merge"
