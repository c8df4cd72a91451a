"""Branches, tags, pushes and reverts against a real remote: what is done, found again and taken back."""

import pytest

from amends.spi import NotSent, Refused


def head(bench):
    return bench.remote_ref("refs/heads/main")


def test_branch_is_created_at_the_base_and_deleted_again(bench):
    """A branch appears at the base's commit, a probe finds it, its undo removes it, and a separate read says so."""
    action = bench.action("create_branch", branch="feature/field")
    action.prepare()
    assert action.probe().seen == "absent"
    done = action.send()
    assert done.reference == bench.remote_ref("refs/heads/feature/field") == head(bench)
    assert action.probe().seen == "applied"
    assert action.rung() == "delete"
    action.undo()
    assert bench.remote_ref("refs/heads/feature/field") == ""
    assert action.verify().seen == "absent"


def test_existing_branch_is_refused_before_anything_is_sent(bench):
    """A branch somebody made is not ours to adopt, or later to delete."""
    bench.somebody_pushes("feature/field")
    with pytest.raises(Refused, match="exists already") as refused:
        bench.action("create_branch", branch="feature/field").prepare()
    assert refused.value.code == "exists"


def test_branch_made_by_another_meanwhile_is_left_alone(bench):
    """The create-only lease holds between reading and sending: their branch stands, our call is refused."""
    action = bench.action("create_branch", branch="feature/field")
    action.prepare()
    theirs = bench.somebody_pushes("feature/field")
    with pytest.raises(Refused, match="is at"):
        action.send()
    assert bench.remote_ref("refs/heads/feature/field") == theirs
    assert action.probe().seen == "diverged"


def test_branch_that_is_gone_already_counts_as_absent(bench):
    """Somebody removed our branch: compensated by looking, and an undo sent all the same is harmless."""
    action = bench.action("create_branch", branch="feature/field")
    action.run()
    bench.remote.joinpath("refs/heads/feature/field").unlink()
    assert action.probe().seen == "absent"
    action.capability.undo(action.call(rung="delete"))
    assert action.verify().seen == "absent"


def test_branch_others_built_on_is_not_deleted(bench):
    """Foreign commits on top make the state diverged: a person decides, nothing is overwritten."""
    action = bench.action("create_branch", branch="feature/field")
    action.run()
    theirs = bench.somebody_pushes("feature/field")
    seen = action.probe()
    assert (seen.seen, seen.state["relation"]) == ("diverged", "built_on")
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="delete"))
    assert bench.remote_ref("refs/heads/feature/field") == theirs


def test_ref_with_a_similar_end_is_not_ours(bench):
    """ls-remote matches ends of names; only the exact ref counts."""
    bench.somebody_pushes("feature/x")
    action = bench.action("create_branch", branch="x")
    action.prepare()
    assert action.probe().seen == "absent"


def test_call_nobody_wants_any_more_is_not_sent(bench):
    """The last check before the first byte stops the push."""
    action = bench.action("create_branch", branch="feature/field")
    action.prepare()
    action.wanted = False
    with pytest.raises(NotSent):
        action.send()
    assert bench.remote_ref("refs/heads/feature/field") == ""


def test_remote_that_cannot_be_read_means_nothing_was_sent(bench):
    """A push to an unreadable remote never starts: not sent; and a probe cannot tell."""
    action = bench.action("create_branch", branch="feature/field")
    action.prepare()
    bench.remote.rename(bench.root / "elsewhere.git")
    with pytest.raises(NotSent, match="cannot be read"):
        action.send()
    assert action.probe().seen == "inconclusive"


def test_rejection_by_a_hook_is_a_refusal(bench):
    """The server's no, seen together with an unmoved ref, proves that nothing changed."""
    action = bench.action("create_branch", branch="feature/field")
    action.prepare()
    bench.hook("pre-receive", "echo 'frozen for release' >&2; exit 1")
    with pytest.raises(Refused, match="frozen for release") as refused:
        action.send()
    assert refused.value.code == "remote_rejected"
    assert action.probe().seen == "absent"


def test_push_moves_a_branch_forward_and_back(bench):
    """The remote's former value is the before-image, and the undo puts it back."""
    branch = bench.action("create_branch", branch="feature/field")
    branch.run()
    commit = bench.agent_commits()
    action = bench.action("push", branch="feature/field", commit=commit)
    action.run()
    assert bench.remote_ref("refs/heads/feature/field") == commit
    assert (action.probe().seen, action.rung()) == ("applied", "restore")
    action.undo()
    assert bench.remote_ref("refs/heads/feature/field") == head(bench)
    assert action.verify().seen == "absent"
    branch.undo()
    assert branch.verify().seen == "absent"


def test_push_that_is_no_fast_forward_is_refused(bench):
    """Somebody's commits are never pushed away: there is no force."""
    commit = bench.agent_commits()
    theirs = bench.somebody_pushes("feature/field")
    with pytest.raises(Refused, match="does not build on") as refused:
        bench.action("push", branch="feature/field", commit=commit).prepare()
    assert refused.value.code == "not_fast_forward"
    assert bench.remote_ref("refs/heads/feature/field") == theirs


def test_push_after_the_remote_moved_is_refused(bench):
    """The lease names the value that was read; another push in between ends ours, and a retry does not force."""
    commit = bench.agent_commits()
    action = bench.action("push", branch="feature/field", commit=commit)
    action.prepare()
    theirs = bench.somebody_pushes("feature/field")
    for _ in range(2):
        with pytest.raises(Refused):
            action.send()
    assert bench.remote_ref("refs/heads/feature/field") == theirs


def test_push_of_what_is_there_already_changes_nothing(bench):
    """Before equals after: the push succeeds without sending, and there is nothing to undo."""
    action = bench.action("push", branch="main", commit=head(bench))
    done = action.run()
    assert done.effect["changed"] is False
    assert action.probe().seen == "applied"
    assert action.verify().seen == "absent"
    action.capability.undo(action.call(rung="revert"))
    assert head(bench) == action.before["ref"]


def test_pushed_work_on_a_shared_branch_is_reverted(bench):
    """On a shared branch the undo is a revert commit, later work is kept, and a second look says absent."""
    commit = bench.agent_commits()
    action = bench.action("push", branch="main", commit=commit)
    action.run()
    bench.somebody_pushes("main")
    assert (action.probe().seen, action.rung()) == ("applied", "revert")
    action.undo()
    files = set(git_files(bench, "main"))
    assert files == {"README.md", "other.txt"}
    assert action.verify().seen == "absent"
    assert action.verify().state["relation"] == "reverted"


def git_files(bench, branch):
    from subprocess import run

    listed = run(
        ["git", "-C", bench.remote, "ls-tree", "-r", "--name-only", branch], capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def test_revert_that_conflicts_with_later_work_is_refused(bench):
    """Later work on the same lines stands: the revert is refused and names the reason."""
    commit = bench.agent_commits(name="field.txt")
    action = bench.action("push", branch="main", commit=commit)
    action.run()
    theirs = bench.somebody_pushes("main", name="field.txt")
    with pytest.raises(Refused) as refused:
        action.capability.undo(action.call(rung="revert"))
    assert refused.value.code == "conflict"
    assert head(bench) == theirs


def test_deleted_branch_comes_back_at_its_commit(bench):
    """The undo of a deletion pushes the former commit, kept in the checkout even if the server lost it."""
    theirs = bench.somebody_pushes("old")
    action = bench.action("delete_branch", branch="old")
    action.run()
    assert bench.remote_ref("refs/heads/old") == ""
    assert action.probe().seen == "applied"
    git_gc(bench)
    action.undo()
    assert bench.remote_ref("refs/heads/old") == theirs
    assert action.verify().seen == "absent"


def git_gc(bench):
    from subprocess import run

    run(["git", "-C", bench.remote, "gc", "-q", "--prune=now"], check=True)


def test_branch_made_again_after_its_deletion_is_left_alone(bench):
    """Somebody used the name anew: restoring ours would overwrite theirs."""
    bench.somebody_pushes("old")
    action = bench.action("delete_branch", branch="old")
    action.run()
    theirs = bench.somebody_pushes("old", name="new.txt")
    assert action.probe().seen == "diverged"
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="restore"))
    assert bench.remote_ref("refs/heads/old") == theirs


def test_tag_bears_the_action_and_is_removed_again(bench):
    """The tag's id is known before it is pushed, and its text names the action."""
    action = bench.action("tag", name="v1", commit=head(bench), message="release")
    action.prepare()
    known = action.allocated["commit"]
    action.send()
    assert bench.remote_ref("refs/tags/v1") == known
    action.undo()
    assert bench.remote_ref("refs/tags/v1") == ""
    assert action.verify().seen == "absent"


def test_revert_is_a_known_commit_with_one_inverse(bench):
    """A revert is pushed under an id settled before, and taken back on a private branch by a lease."""
    bench.settings = {"shared_branches": []}
    commit = bench.agent_commits()
    bench.action("push", branch="main", commit=commit).run()
    action = bench.action("revert", branch="main", commit=commit)
    action.prepare()
    action.send()
    assert head(bench) == action.allocated["commit"]
    assert git_files(bench, "main") == ["README.md"]
    action.undo()
    assert head(bench) == commit
    assert action.verify().seen == "absent"


def force(bench):
    """Their commits on a branch, replaced by ours; returns the action and theirs."""
    theirs = bench.somebody_pushes("feature/field")
    commit = bench.agent_commits()
    action = bench.action("force_push", branch="feature/field", commit=commit, over=theirs)
    action.run()
    return action, theirs


def test_force_keeps_what_it_replaces_and_gives_it_back(bench):
    """The replaced commit stays on the remote under a backup ref, survives its garbage collection, and comes back."""
    action, theirs = force(bench)
    backup = action.allocated["backup"]
    assert bench.remote_ref("refs/heads/feature/field") == action.done.reference
    assert bench.remote_ref(backup) == theirs
    assert action.probe().state["backup"] == backup
    git_gc(bench)
    action.undo()
    assert bench.remote_ref("refs/heads/feature/field") == theirs
    assert bench.remote_ref(backup) == ""
    assert action.verify().seen == "absent"


def test_force_is_all_or_nothing(bench):
    """A server that refuses the backup ref refuses the whole push: nothing is replaced without a backup."""
    theirs = bench.somebody_pushes("feature/field")
    action = bench.action("force_push", branch="feature/field", commit=bench.agent_commits(), over=theirs)
    action.prepare()
    bench.hook("update", 'case "$1" in refs/amends/*) exit 1;; esac')
    with pytest.raises(Refused):
        action.send()
    assert bench.remote_ref("refs/heads/feature/field") == theirs
    assert action.probe().seen == "absent"


def test_force_over_commits_the_caller_did_not_name_is_refused(bench):
    """Unknown commits of others are never forced away, before the call or under it."""
    theirs = bench.somebody_pushes("feature/field")
    commit = bench.agent_commits()
    with pytest.raises(Refused, match="is at"):
        bench.action("force_push", branch="feature/field", commit=commit, over=head(bench)).prepare()
    action = bench.action("force_push", branch="feature/field", commit=commit, over=theirs)
    action.prepare()
    later = bench.somebody_pushes("feature/field", name="more.txt")
    with pytest.raises(Refused):
        action.send()
    assert bench.remote_ref("refs/heads/feature/field") == later


def test_force_undone_after_another_push_leaves_theirs_alone(bench):
    """Somebody pushed on top of what we forced: diverged, and an undo sent all the same is refused."""
    action, _ = force(bench)
    later = bench.somebody_pushes("feature/field", name="more.txt")
    assert (action.probe().seen, action.rung()) == ("diverged", "person")
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="restore"))
    assert bench.remote_ref("refs/heads/feature/field") == later


def test_force_whose_backup_somebody_cleaned_away_still_comes_back(bench):
    """Without the backup ref the object is taken from wherever it still is."""
    action, theirs = force(bench)
    bench.remote.joinpath(action.allocated["backup"]).unlink()
    assert (action.probe().state["backup"], action.rung()) == ("", "restore")
    action.undo()
    assert bench.remote_ref("refs/heads/feature/field") == theirs


def test_force_where_a_plain_push_would_do_is_refused(bench):
    """Force is for replacing: what builds on the branch goes by an ordinary push."""
    commit = bench.agent_commits()
    with pytest.raises(Refused) as refused:
        bench.action("force_push", branch="main", commit=commit, over=head(bench)).prepare()
    assert refused.value.code == "fast_forward"


def test_merge_on_the_remote_is_reverted_against_the_named_parent(bench):
    """A revert of a merge says which parent stays; without it the call is refused and says what is missing."""
    commit = bench.agent_commits()
    bench.somebody_pushes("main")
    merge = bench.action("merge", branch="release", source=commit, message="join")
    bench.action("push", branch="release", commit=head(bench)).run()
    merge.run()
    bench.action("push", branch="release", commit=merge.done.reference).run()
    with pytest.raises(Refused, match="mainline"):
        bench.action("revert", branch="release", commit=merge.done.reference).prepare()
    bench.action("revert", branch="release", commit=merge.done.reference, mainline=1).run()
    assert set(git_files(bench, "release")) == {"README.md", "other.txt"}
