"""Branches, tags, pushes and reverts against a real remote: what is done, found again and taken back."""

import pytest

from amends.spi import NotSent, Refused


def head(desk):
    return desk.remote_ref("refs/heads/main")


def test_branch_is_created_at_the_base_and_deleted_again(desk):
    """A branch appears at the base's commit, a probe finds it, its undo removes it, and a separate read says so."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    assert action.probe().seen == "absent"
    done = action.send()
    assert done.reference == desk.remote_ref("refs/heads/feature/field") == head(desk)
    assert action.probe().seen == "applied"
    assert action.rung() == "delete"
    action.undo()
    assert desk.remote_ref("refs/heads/feature/field") == ""
    assert action.verify().seen == "absent"


def test_existing_branch_is_refused_before_anything_is_sent(desk):
    """A branch somebody made is not ours to adopt, or later to delete."""
    desk.somebody_pushes("feature/field")
    with pytest.raises(Refused, match="exists already") as refused:
        desk.action("create_branch", branch="feature/field").prepare()
    assert refused.value.code == "exists"


def test_branch_made_by_another_meanwhile_is_left_alone(desk):
    """The create-only lease holds between reading and sending: their branch stands, our call is refused."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    theirs = desk.somebody_pushes("feature/field")
    with pytest.raises(Refused, match="is at"):
        action.send()
    assert desk.remote_ref("refs/heads/feature/field") == theirs
    assert action.probe().seen == "diverged"


def test_branch_that_is_gone_already_counts_as_absent(desk):
    """Somebody removed our branch: compensated by looking, and an undo sent all the same is harmless."""
    action = desk.action("create_branch", branch="feature/field")
    action.run()
    desk.remote.joinpath("refs/heads/feature/field").unlink()
    assert action.probe().seen == "absent"
    action.capability.undo(action.call(rung="delete"))
    assert action.verify().seen == "absent"


def test_branch_others_built_on_is_not_deleted(desk):
    """Foreign commits on top make the state diverged: a person decides, nothing is overwritten."""
    action = desk.action("create_branch", branch="feature/field")
    action.run()
    theirs = desk.somebody_pushes("feature/field")
    seen = action.probe()
    assert (seen.seen, seen.state["relation"]) == ("diverged", "built_on")
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="delete"))
    assert desk.remote_ref("refs/heads/feature/field") == theirs


def test_ref_with_a_similar_end_is_not_ours(desk):
    """ls-remote matches ends of names; only the exact ref counts."""
    desk.somebody_pushes("feature/x")
    action = desk.action("create_branch", branch="x")
    action.prepare()
    assert action.probe().seen == "absent"


def test_call_nobody_wants_any_more_is_not_sent(desk):
    """The last check before the first byte stops the push."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    action.wanted = False
    with pytest.raises(NotSent):
        action.send()
    assert desk.remote_ref("refs/heads/feature/field") == ""


def test_remote_that_cannot_be_read_means_nothing_was_sent(desk):
    """A push to an unreadable remote never starts: not sent; and a probe cannot tell."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    desk.remote.rename(desk.root / "elsewhere.git")
    with pytest.raises(NotSent, match="cannot be read"):
        action.send()
    assert action.probe().seen == "inconclusive"


def test_rejection_by_a_hook_is_a_refusal(desk):
    """The server's no, seen together with an unmoved ref, proves that nothing changed."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    desk.hook("pre-receive", "echo 'frozen for release' >&2; exit 1")
    with pytest.raises(Refused, match="frozen for release") as refused:
        action.send()
    assert refused.value.code == "remote_rejected"
    assert action.probe().seen == "absent"


def test_push_moves_a_branch_forward_and_back(desk):
    """The remote's former value is the before-image, and the undo puts it back."""
    branch = desk.action("create_branch", branch="feature/field")
    branch.run()
    commit = desk.agent_commits()
    action = desk.action("push", branch="feature/field", commit=commit)
    action.run()
    assert desk.remote_ref("refs/heads/feature/field") == commit
    assert (action.probe().seen, action.rung()) == ("applied", "restore")
    action.undo()
    assert desk.remote_ref("refs/heads/feature/field") == head(desk)
    assert action.verify().seen == "absent"
    branch.undo()
    assert branch.verify().seen == "absent"


def test_push_that_is_no_fast_forward_is_refused(desk):
    """Somebody's commits are never pushed away: there is no force."""
    commit = desk.agent_commits()
    theirs = desk.somebody_pushes("feature/field")
    with pytest.raises(Refused, match="does not build on") as refused:
        desk.action("push", branch="feature/field", commit=commit).prepare()
    assert refused.value.code == "not_fast_forward"
    assert desk.remote_ref("refs/heads/feature/field") == theirs


def test_push_after_the_remote_moved_is_refused(desk):
    """The lease names the value that was read; another push in between ends ours, and a retry does not force."""
    commit = desk.agent_commits()
    action = desk.action("push", branch="feature/field", commit=commit)
    action.prepare()
    theirs = desk.somebody_pushes("feature/field")
    for _ in range(2):
        with pytest.raises(Refused):
            action.send()
    assert desk.remote_ref("refs/heads/feature/field") == theirs


def test_push_of_what_is_there_already_changes_nothing(desk):
    """Before equals after: the push succeeds without sending, and there is nothing to undo."""
    action = desk.action("push", branch="main", commit=head(desk))
    done = action.run()
    assert done.effect["changed"] is False
    assert action.probe().seen == "applied"
    assert action.verify().seen == "absent"
    action.capability.undo(action.call(rung="revert"))
    assert head(desk) == action.before["ref"]


def test_pushed_work_on_a_shared_branch_is_reverted(desk):
    """On a shared branch the undo is a revert commit, later work is kept, and a second look says absent."""
    commit = desk.agent_commits()
    action = desk.action("push", branch="main", commit=commit)
    action.run()
    desk.somebody_pushes("main")
    assert (action.probe().seen, action.rung()) == ("applied", "revert")
    action.undo()
    files = set(git_files(desk, "main"))
    assert files == {"README.md", "other.txt"}
    assert action.verify().seen == "absent"
    assert action.verify().state["relation"] == "reverted"


def git_files(desk, branch):
    from subprocess import run

    listed = run(
        ["git", "-C", desk.remote, "ls-tree", "-r", "--name-only", branch], capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def test_revert_that_conflicts_with_later_work_is_refused(desk):
    """Later work on the same lines stands: the revert is refused and names the reason."""
    commit = desk.agent_commits(name="field.txt")
    action = desk.action("push", branch="main", commit=commit)
    action.run()
    theirs = desk.somebody_pushes("main", name="field.txt")
    with pytest.raises(Refused) as refused:
        action.capability.undo(action.call(rung="revert"))
    assert refused.value.code == "conflict"
    assert head(desk) == theirs


def test_deleted_branch_comes_back_at_its_commit(desk):
    """The undo of a deletion pushes the former commit, kept in the checkout even if the server lost it."""
    theirs = desk.somebody_pushes("old")
    action = desk.action("delete_branch", branch="old")
    action.run()
    assert desk.remote_ref("refs/heads/old") == ""
    assert action.probe().seen == "applied"
    git_gc(desk)
    action.undo()
    assert desk.remote_ref("refs/heads/old") == theirs
    assert action.verify().seen == "absent"


def git_gc(desk):
    from subprocess import run

    run(["git", "-C", desk.remote, "gc", "-q", "--prune=now"], check=True)


def test_branch_made_again_after_its_deletion_is_left_alone(desk):
    """Somebody used the name anew: restoring ours would overwrite theirs."""
    desk.somebody_pushes("old")
    action = desk.action("delete_branch", branch="old")
    action.run()
    theirs = desk.somebody_pushes("old", name="new.txt")
    assert action.probe().seen == "diverged"
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="restore"))
    assert desk.remote_ref("refs/heads/old") == theirs


def test_tag_bears_the_action_and_is_removed_again(desk):
    """The tag's id is known before it is pushed, and its text names the action."""
    action = desk.action("tag", name="v1", commit=head(desk), message="release")
    action.prepare()
    known = action.allocated["commit"]
    action.send()
    assert desk.remote_ref("refs/tags/v1") == known
    action.undo()
    assert desk.remote_ref("refs/tags/v1") == ""
    assert action.verify().seen == "absent"


def test_revert_is_a_known_commit_with_one_inverse(desk):
    """A revert is pushed under an id settled before, and taken back on a private branch by a lease."""
    desk.settings = {"shared_branches": []}
    commit = desk.agent_commits()
    desk.action("push", branch="main", commit=commit).run()
    action = desk.action("revert", branch="main", commit=commit)
    action.prepare()
    action.send()
    assert head(desk) == action.allocated["commit"]
    assert git_files(desk, "main") == ["README.md"]
    action.undo()
    assert head(desk) == commit
    assert action.verify().seen == "absent"


def force(desk):
    """Their commits on a branch, replaced by ours; returns the action and theirs."""
    theirs = desk.somebody_pushes("feature/field")
    commit = desk.agent_commits()
    action = desk.action("force_push", branch="feature/field", commit=commit, over=theirs)
    action.run()
    return action, theirs


def test_force_keeps_what_it_replaces_and_gives_it_back(desk):
    """The replaced commit stays on the remote under a backup ref, survives its garbage collection, and comes back."""
    action, theirs = force(desk)
    backup = action.allocated["backup"]
    assert desk.remote_ref("refs/heads/feature/field") == action.done.reference
    assert desk.remote_ref(backup) == theirs
    assert action.probe().state["backup"] == backup
    git_gc(desk)
    action.undo()
    assert desk.remote_ref("refs/heads/feature/field") == theirs
    assert desk.remote_ref(backup) == ""
    assert action.verify().seen == "absent"


def test_force_is_all_or_nothing(desk):
    """A server that refuses the backup ref refuses the whole push: nothing is replaced without a backup."""
    theirs = desk.somebody_pushes("feature/field")
    action = desk.action("force_push", branch="feature/field", commit=desk.agent_commits(), over=theirs)
    action.prepare()
    desk.hook("update", 'case "$1" in refs/amends/*) exit 1;; esac')
    with pytest.raises(Refused):
        action.send()
    assert desk.remote_ref("refs/heads/feature/field") == theirs
    assert action.probe().seen == "absent"


def test_force_over_commits_the_caller_did_not_name_is_refused(desk):
    """Unknown commits of others are never forced away, before the call or under it."""
    theirs = desk.somebody_pushes("feature/field")
    commit = desk.agent_commits()
    with pytest.raises(Refused, match="is at"):
        desk.action("force_push", branch="feature/field", commit=commit, over=head(desk)).prepare()
    action = desk.action("force_push", branch="feature/field", commit=commit, over=theirs)
    action.prepare()
    later = desk.somebody_pushes("feature/field", name="more.txt")
    with pytest.raises(Refused):
        action.send()
    assert desk.remote_ref("refs/heads/feature/field") == later


def test_force_undone_after_another_push_leaves_theirs_alone(desk):
    """Somebody pushed on top of what we forced: diverged, and an undo sent all the same is refused."""
    action, _ = force(desk)
    later = desk.somebody_pushes("feature/field", name="more.txt")
    assert (action.probe().seen, action.rung()) == ("diverged", "person")
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="restore"))
    assert desk.remote_ref("refs/heads/feature/field") == later


def test_force_whose_backup_somebody_cleaned_away_still_comes_back(desk):
    """Without the backup ref the object is taken from wherever it still is."""
    action, theirs = force(desk)
    desk.remote.joinpath(action.allocated["backup"]).unlink()
    assert (action.probe().state["backup"], action.rung()) == ("", "restore")
    action.undo()
    assert desk.remote_ref("refs/heads/feature/field") == theirs


def test_force_where_a_plain_push_would_do_is_refused(desk):
    """Force is for replacing: what builds on the branch goes by an ordinary push."""
    commit = desk.agent_commits()
    with pytest.raises(Refused) as refused:
        desk.action("force_push", branch="main", commit=commit, over=head(desk)).prepare()
    assert refused.value.code == "fast_forward"


def test_merge_on_the_remote_is_reverted_against_the_named_parent(desk):
    """A revert of a merge says which parent stays; without it the call is refused and says what is missing."""
    commit = desk.agent_commits()
    desk.somebody_pushes("main")
    merge = desk.action("merge", branch="release", source=commit, message="join")
    desk.action("push", branch="release", commit=head(desk)).run()
    merge.run()
    desk.action("push", branch="release", commit=merge.done.reference).run()
    with pytest.raises(Refused, match="mainline"):
        desk.action("revert", branch="release", commit=merge.done.reference).prepare()
    desk.action("revert", branch="release", commit=merge.done.reference, mainline=1).run()
    assert set(git_files(desk, "release")) == {"README.md", "other.txt"}
