"""The worktree shows something else, and everything a person had there comes back."""

import pytest

from amends.spi import NotSent, Refused
from amends_git.command import GitFailed
from amends_git.worktree import Worktree


@pytest.fixture
def topic(desk):
    """A checkout on `main` that also has a branch `topic` with other files; the branch's commit."""
    git, root = desk.git, desk.checkout
    git(root, "checkout", "-q", "-b", "topic")
    for name, text in {"README.md": "topic\n", "new/file.txt": "topic\n", "built.log": "topic\n"}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "topic")
    commit = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-q", "main")
    return commit


def picture(desk):
    """What a person sees: HEAD, status with ignored files, and every file's bytes."""
    root = desk.checkout
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
    status = desk.git(root, "status", "--porcelain", "--branch", "--ignored", "--untracked-files=all")
    return desk.git(root, "symbolic-ref", "--quiet", "HEAD", check=False), status, files


def work_begins(desk):
    """Uncommitted work: changed, staged and changed again, untracked and ignored in the way, and in nobody's way."""
    root = desk.checkout
    (root / ".git/info/exclude").write_text("*.log\n")
    (root / "staged.txt").write_text("staged\n")
    desk.git(root, "add", "staged.txt")
    (root / "staged.txt").write_text("staged, then changed\n")
    (root / "README.md").write_text("half-written\r\n")
    (root / "new").mkdir()
    (root / "new/file.txt").write_bytes(b"not yet added \xff\x00\n")
    (root / "built.log").write_text("an hour of computing\n")
    (root / "beside.txt").write_text("in nobody's way\n")


def test_worktree_shows_the_branch_and_goes_back(desk, topic):
    """HEAD, index and files follow the branch, and the undo brings them back; both are seen by separate reads."""
    before = picture(desk)
    action = desk.action("checkout", target="topic")
    done = action.run()
    assert (desk.checkout / "new/file.txt").read_text() == "topic\n"
    assert picture(desk)[:2] == ("refs/heads/topic", "## topic")
    assert (done.reference, action.probe().seen, action.rung()) == (topic, "applied", "restore")
    action.undo()
    assert picture(desk) == before
    assert action.verify().seen == "absent"


def test_uncommitted_work_is_refused_with_its_paths(desk, topic):
    """Nobody said that the work may be put aside: nothing is touched, and the text names it."""
    work_begins(desk)
    before = picture(desk)
    with pytest.raises(Refused, match=r"README\.md") as refused:
        desk.action("checkout", target="topic").prepare()
    assert (refused.value.code, picture(desk)) == ("dirty", before)


def test_uncommitted_work_is_kept_and_comes_back_exactly(desk, topic):
    """Staged, changed, untracked and ignored files: all in the backup before the tree changes, all back afterwards."""
    work_begins(desk)
    before = picture(desk)
    action = desk.action("checkout", target="topic", put_aside=True)
    assert action.prepare().input["dirty"] is True
    action.send()
    kept = f"refs/amends/worktree/{action.action_id}"
    assert desk.git(desk.checkout, "show", f"{kept}:built.log") == "an hour of computing"
    assert desk.git(desk.checkout, "show", f"{kept}^2:staged.txt") == "staged"
    assert (desk.checkout / "built.log").read_text() == "topic\n"
    assert (desk.checkout / "beside.txt").read_text() == "in nobody's way\n"
    assert action.probe().seen == "applied"
    action.undo()
    assert picture(desk) == before
    assert action.verify().seen == "absent"


def test_hard_reset_of_a_dirty_tree_is_a_checkout_of_what_is_shown(desk):
    """The same branch with `put_aside` discards; what was discarded is kept and comes back (G-05)."""
    (desk.checkout / "README.md").write_text("half-written\n")
    before = picture(desk)
    action = desk.action("checkout", target="main", put_aside=True)
    action.run()
    assert (desk.checkout / "README.md").read_text() == "billing\n"
    action.undo()
    assert picture(desk) == before


def test_work_begun_since_is_not_overwritten(desk, topic):
    """A file in a third state is a person's: diverged, and an undo sent all the same writes nothing."""
    action = desk.action("checkout", target="topic")
    action.run()
    (desk.checkout / "README.md").write_text("their new work\n")
    before = picture(desk)
    assert action.probe().seen == "diverged"
    with pytest.raises(Refused, match=r"README\.md"):
        action.capability.undo(action.call(rung="restore"))
    assert picture(desk) == before


def test_commit_made_since_is_not_hidden(desk, topic):
    """Somebody committed on the shown branch: going back would take it from their sight, so a person decides."""
    action = desk.action("checkout", target="topic")
    action.run()
    desk.git(desk.checkout, "commit", "-q", "--allow-empty", "-m", "theirs")
    assert action.probe().seen == "diverged"


def test_work_that_begins_between_intent_and_call_stops_it(desk, topic):
    """What was put down is not what is there any more: nothing is sent."""
    action = desk.action("checkout", target="topic")
    action.prepare()
    (desk.checkout / "README.md").write_text("just typed\n")
    with pytest.raises(NotSent, match="changed"):
        action.send()
    assert (desk.checkout / "README.md").read_text() == "just typed\n"


def test_work_that_begins_under_the_call_stops_it(desk, topic, monkeypatch):
    """Typed after the last look: git itself finds the path changed before it writes the first one."""
    action = desk.action("checkout", target="topic")
    action.prepare()
    show = Worktree.show

    def typed_then_show(tree, *args):
        (desk.checkout / "README.md").write_text("just typed\n")
        show(tree, *args)

    monkeypatch.setattr(Worktree, "show", typed_then_show)
    with pytest.raises(NotSent, match="somebody works"):
        action.send()
    assert (desk.checkout / "README.md").read_text() == "just typed\n"
    assert not (desk.checkout / ".git/index.lock").exists()


def test_call_that_died_before_head_moved_is_taken_back(desk, topic, monkeypatch):
    """Files and index show the branch, HEAD does not: a part is there, and the undo takes back just that."""
    work_begins(desk)
    before = picture(desk)
    action = desk.action("checkout", target="topic", put_aside=True)
    action.prepare()
    with monkeypatch.context() as patch:
        patch.setattr(Worktree, "_point", lambda *_: (_ for _ in ()).throw(GitFailed("killed")))
        with pytest.raises(GitFailed):
            action.send()
    seen = action.probe()
    assert (seen.seen, seen.parts) == ("applied", ("files",))
    action.undo()
    assert picture(desk) == before


def test_call_that_died_between_two_files_is_taken_back(desk, topic):
    """Some paths show the branch, the index none of them: each is in the state before or after, so all are ours."""
    work_begins(desk)
    before = picture(desk)
    action = desk.action("checkout", target="topic", put_aside=True)
    action.run()
    action.undo()
    (desk.checkout / "README.md").write_text("topic\n")
    (desk.checkout / "new/file.txt").write_text("topic\n")
    seen = action.probe()
    assert (seen.seen, seen.parts) == ("applied", ())
    action.undo()
    assert picture(desk) == before


def test_nothing_is_hidden_behind_line_ends(desk, topic):
    """A file that git would give back with other line ends is not put aside."""
    desk.git(desk.checkout, "config", "core.autocrlf", "input")
    (desk.checkout / "README.md").write_bytes(b"half-written\r\n")
    with pytest.raises(Refused) as refused:
        desk.action("checkout", target="topic", put_aside=True).prepare()
    assert refused.value.code == "not_lossless"


def test_merge_under_way_is_not_disturbed(desk, topic):
    """In the middle of somebody's merge nothing is touched."""
    (desk.checkout / ".git/MERGE_HEAD").write_text(topic + "\n")
    with pytest.raises(Refused, match="MERGE_HEAD"):
        desk.action("checkout", target="topic", put_aside=True).prepare()


def test_folder_in_the_way_is_refused(desk, topic):
    """A folder of untracked files where the branch has a file: it would have to be removed, so the call is refused."""
    (desk.checkout / "built.log").mkdir()
    (desk.checkout / "built.log/precious").write_text("x")
    with pytest.raises(Refused, match=r"built\.log"):
        desk.action("checkout", target="topic", put_aside=True).prepare()


def test_branch_of_another_worktree_is_refused(desk, topic):
    """Two worktrees on one branch make each other lie."""
    desk.git(desk.checkout, "worktree", "add", "-q", str(desk.root / "second"), "topic")
    with pytest.raises(Refused) as refused:
        desk.action("checkout", target="topic").prepare()
    assert refused.value.code == "checked_out"


def test_linked_worktree_has_its_own_index_and_head(desk, topic):
    """The checkout may itself be a linked worktree: its index and HEAD move, the main one's stay."""
    desk.git(desk.checkout, "worktree", "add", "-q", "--detach", str(desk.root / "second"), "main")
    desk.settings = {"checkout": str(desk.root / "second")}
    action = desk.action("checkout", target="topic")
    action.run()
    assert desk.git(desk.root / "second", "symbolic-ref", "HEAD") == "refs/heads/topic"
    assert desk.git(desk.checkout, "symbolic-ref", "HEAD") == "refs/heads/main"
    action.undo()
    assert action.verify().seen == "absent"


def test_call_that_comes_two_times_finds_its_own_work(desk, topic):
    """The second one changes nothing and claims nothing else; what somebody else showed meanwhile is not ours."""
    action = desk.action("checkout", target="topic")
    first = action.run()
    assert action.send() == first
    assert action.probe().seen == "applied"
    other = desk.action("checkout", target="main")
    other.prepare()
    desk.git(desk.checkout, "checkout", "-q", "main")
    with pytest.raises(NotSent, match="changed after"):
        other.send()


def test_call_that_never_came_to_act_is_absent(desk, topic):
    """Prepared and not sent: the worktree is as before."""
    (desk.checkout / "README.md").write_text("half-written\n")
    action = desk.action("checkout", target="topic", put_aside=True)
    action.prepare()
    assert action.probe().seen == "absent"
