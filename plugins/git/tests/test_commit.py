"""Commits made beside the checkout: nothing of a person's index, worktree or branches is disturbed."""

import pytest

from amends.spi import NotSent, Refused


def git(*args):
    from subprocess import run

    return run(["git", *map(str, args)], capture_output=True, text=True, check=True).stdout.strip()


def committed(desk, **args):
    desk.action("create_branch", branch="feature/field").run()
    given = {"message": "add the field", "files": {"app/field.py": "FIELD = 1\n"}, **args}
    action = desk.action("commit", branch="feature/field", **given)
    action.run()
    return action


def local(desk, branch="feature/field"):
    return git("-C", desk.checkout, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")


def test_commit_lands_on_the_branch_and_leaves_the_checkout_alone(desk):
    """Dirty files, staged changes and a stale index lock of a killed git stay as they are."""
    (desk.checkout / "README.md").write_text("half-written\n")
    git("-C", desk.checkout, "add", "README.md")
    (desk.checkout / "notes.txt").write_text("untracked\n")
    (desk.checkout / ".git/index.lock").touch()
    before = git("-C", desk.checkout, "--no-optional-locks", "status", "--porcelain", "--branch")
    action = committed(desk)
    assert git("-C", desk.checkout, "--no-optional-locks", "status", "--porcelain", "--branch") == before
    assert local(desk) == action.allocated["commit"] == action.done.reference
    assert git("-C", desk.checkout, "show", f"{local(desk)}:app/field.py") == "FIELD = 1"
    message = git("-C", desk.checkout, "log", "-1", "--format=%(trailers:key=Amends-Action,valueonly)", local(desk))
    assert message.strip() == f"amends {action.action_id}"
    assert action.probe().seen == "applied"


def test_commit_goes_back_and_stays_reachable(desk):
    """The branch returns to its former state; a backup ref still holds the commit."""
    action = committed(desk)
    assert action.rung() == "restore"
    action.undo()
    assert local(desk) == ""
    assert action.verify().seen == "absent"
    assert git("-C", desk.checkout, "rev-parse", f"refs/amends/actions/{action.action_id}") == action.done.reference


def test_later_local_commit_is_not_reset_away(desk):
    """Work made on top after us stays: diverged, and an undo sent all the same is refused."""
    action = committed(desk)
    git("-C", desk.checkout, "checkout", "-q", "feature/field")
    git("-C", desk.checkout, "commit", "-q", "--allow-empty", "-m", "later")
    later = local(desk)
    git("-C", desk.checkout, "checkout", "-q", "--detach")
    assert action.probe().seen == "diverged"
    with pytest.raises(Refused):
        action.capability.undo(action.call(rung="restore"))
    assert local(desk) == later


def test_commit_pushed_by_somebody_is_reverted(desk):
    """Memory says local, the remote says pushed: the rung is a revert, and afterwards it counts as undone."""
    action = committed(desk)
    git("-C", desk.checkout, "push", "-q", "origin", "feature/field")
    assert action.rung() == "revert"
    action.undo()
    tip = desk.remote_ref("refs/heads/feature/field")
    assert git("-C", desk.remote, "ls-tree", "-r", "--name-only", tip) == "README.md"
    assert action.verify().seen == "absent"


def test_run_of_branch_commit_and_push_is_taken_back_in_reverse(desk):
    """Each undo finds its own effect: push back, commit back, branch gone, main untouched."""
    main = desk.remote_ref("refs/heads/main")
    branch = desk.action("create_branch", branch="feature/field")
    branch.run()
    commit = desk.action("commit", branch="feature/field", message="field", files={"f.py": "x\n"})
    commit.run()
    push = desk.action("push", branch="feature/field", commit=commit.done.reference)
    push.run()
    for action in (push, commit, branch):
        assert action.probe().seen == "applied"
        action.undo()
        assert action.verify().seen == "absent"
    assert (desk.remote_ref("refs/heads/feature/field"), desk.remote_ref("refs/heads/main")) == ("", main)


def test_checked_out_branch_is_not_moved_under_a_person(desk):
    """A branch that a worktree shows is refused, with the way out."""
    with pytest.raises(Refused, match="checked out"):
        desk.action("commit", branch="main", message="m", files={"a": "b"}).prepare()


def test_worktree_files_are_committed_with_mode_and_deletion(desk):
    """`paths` are read from the worktree: content, executable bit, and a missing file as a deletion."""
    script = desk.checkout / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (desk.checkout / "README.md").unlink()
    action = committed(desk, files={}, paths=["run.sh", "README.md"])
    assert git("-C", desk.checkout, "ls-tree", "-r", action.done.reference).split("\t") == [
        git("-C", desk.checkout, "ls-tree", "-r", action.done.reference).split("\t")[0],
        "run.sh",
    ]
    assert git("-C", desk.checkout, "ls-tree", action.done.reference).startswith("100755 blob")


def test_worktree_that_changes_between_intent_and_call_is_not_committed(desk):
    """What was shown and authorized is what is committed, or nothing is."""
    (desk.checkout / "run.sh").write_text("echo one\n")
    desk.action("create_branch", branch="feature/field").run()
    action = desk.action("commit", branch="feature/field", message="m", paths=["run.sh"])
    action.prepare()
    (desk.checkout / "run.sh").write_text("echo two\n")
    with pytest.raises(NotSent, match="changed"):
        action.send()
    assert local(desk) == ""


def test_symbolic_links_do_not_lead_out_of_the_worktree(desk):
    """A path over a link, which could name any file of the host, is refused."""
    (desk.root / "secret").write_text("s3cret")
    (desk.checkout / "link").symlink_to(desk.root)
    desk.action("create_branch", branch="feature/field").run()
    with pytest.raises(Refused, match="symbolic link"):
        desk.action("commit", branch="feature/field", message="m", paths=["link/secret"]).prepare()


def test_leftover_ref_lock_is_named_and_not_broken(desk):
    """The lock of a killed git does not say whose it is: the call is refused, may be repeated, and names the file."""
    desk.action("create_branch", branch="feature/field").run()
    action = desk.action("commit", branch="feature/field", message="m", files={"a": "b"})
    action.prepare()
    lock = desk.checkout / ".git/refs/heads/feature/field.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(Refused, match=r"field\.lock") as refused:
        action.send()
    assert refused.value.again
    assert lock.exists()
    lock.unlink()
    action.send()
    assert action.probe().seen == "applied"


def test_checkout_that_is_gone_took_its_branch_along(desk):
    """Removed with its folder still listable: absent. Replaced by something unreadable: nobody can tell."""
    action = committed(desk)
    desk.checkout.rename(desk.root / "moved")
    assert action.probe().seen == "absent"
    desk.checkout.mkdir()
    assert action.probe().seen == "inconclusive"


def test_hooks_and_configuration_of_the_checkout_do_not_run(desk):
    """An agent can write its checkout's hooks and configuration: nothing of them is executed."""
    trap = desk.root / "trap"
    for name in ("pre-push", "reference-transaction", "post-index-change", "pre-commit"):
        hook = desk.checkout / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
        hook.chmod(0o755)
    git("-C", desk.checkout, "config", "core.sshCommand", f"touch {trap}")
    git("-C", desk.checkout, "config", f"url.ext::touch {trap}.insteadOf", str(desk.remote))
    action = committed(desk)
    push = desk.action("push", branch="feature/field", commit=action.done.reference)
    push.run()
    push.undo()
    action.undo()
    assert not trap.exists()


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", ".git/config", "a//b", "a/./b"])
def test_path_outside_the_tree_is_refused(desk, path):
    """A path that leaves the tree or touches git's own files does not validate."""
    with pytest.raises(ValueError, match="not a path"):
        desk.action("commit", branch="x", message="m", files={path: ""}).prepare()


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "a.lock", "HEAD", "a~1", "refs/", "a/.b", "@", "a@{1}"])
def test_name_git_does_not_accept_is_refused(desk, name):
    """A branch name that git would refuse or misread does not validate."""
    with pytest.raises(ValueError, match="branch"):
        desk.action("create_branch", branch=name).prepare()
