"""Pull requests over a real socket, with real merges in a bare repository: opened, closed, merged, found again."""

import pytest

from amends.core.registration import check
from amends.spi import Refused
from amends.spi.http import Ambiguous
from amends.testing.loopback import LoopbackSystem
from amends_git import plugin

PULL = "/repos/acme/billing/pulls/1"
MERGE = "*/pulls/1/merge"


class Shelf:
    def __init__(self):
        self.capabilities, self.contributions = {}, []

    def capability(self, capability):
        self.capabilities[capability.contract.capability] = capability

    def policies(self, contribution):
        self.contributions.append(contribution)


@pytest.fixture
def hub(desk):
    """The server over the desk's bare repository, which has its pull requests there; a branch to ask for."""
    settings = {
        "repositories": {"acme/billing": str(desk.remote)},
        "tokens": {"value of env:HUB_TOKEN": "agent"},
    }
    with LoopbackSystem.start("github", settings=settings) as system:
        pulls = {"api": system.url, "project": "acme/billing", "token": "env:HUB_TOKEN"}
        desk.settings = {"pull_requests": pulls}
        desk.action("push", branch="feature/field", commit=desk.agent_commits()).run()
        yield system
        assert system.unfired() == []


def registered(desk):
    shelf = Shelf()
    plugin.amends_register_capabilities(desk.context(), shelf)
    return shelf


def action(desk, name, **args):
    made = desk.action("push", branch="main", commit=desk.remote_ref("main"))
    made.capability = registered(desk).capabilities[name]
    made.args = {"repo": "billing", **args}
    return made


def draft(desk):
    return action(desk, "git.draft_pr", branch="feature/field", title="Add the field", body="please look")


def theirs(hub, *, draft=False):
    """A pull request that somebody else opened; its head commit."""
    body = {"title": "t", "head": "feature/field", "base": "main", "body": "theirs", "draft": draft}
    return hub.foreign("POST", "/repos/acme/billing/pulls", body)["body"]["head"]["sha"]


def merge(desk, hub, **args):
    made = action(desk, "git.merge_pr", **{"number": 1, "head": theirs(hub), **args})
    made.prepare()
    return made


def pulls(hub):
    return {pull["number"]: pull["state"] for pull in hub.objects("pulls")}


def writes(hub):
    return [(row["method"], row["path"].rpartition("/")[2]) for row in hub.requests() if row["method"] != "GET"]


def test_draft_is_opened_found_closed_and_seen_closed(desk, hub):
    """One mutating request each way, and a separate read after the undo."""
    made = draft(desk)
    made.run()
    [pull] = hub.objects("pulls")
    assert (pull["draft"], pull["body"]) == (True, f"<!-- amends {made.action_id} -->\nplease look")
    assert (made.probe().seen, made.rung()) == ("applied", "close")
    made.undo()
    assert (made.verify().seen, pulls(hub)) == ("absent", {1: "closed"})
    assert writes(hub) == [("POST", "pulls"), ("PATCH", "1")]


def test_lost_answer_is_found_by_the_marker(desk, hub):
    """The request was carried out and its answer lost: the list shows our marker, once."""
    made = draft(desk)
    made.prepare()
    hub.arm("drop_after_commit", method="POST", path="*/pulls")
    with pytest.raises(Ambiguous):
        made.send()
    seen = made.probe()
    assert (seen.seen, seen.reference, hub.count("pull_request")) == ("applied", "1", 1)


def test_unprocessable_answer_about_our_own_draft_is_its_success(desk, hub):
    """422 reads as "exists", and what exists is compared: it bears our marker, so it is the one we asked for."""
    made = draft(desk)
    made.prepare()
    hub.arm("drop_after_commit", method="POST", path="*/pulls")
    with pytest.raises(Ambiguous):
        made.send()
    assert made.send().reference == "1"
    assert hub.count("pull_request") == 1


def test_unprocessable_answer_about_anothers_pull_request_is_a_refusal(desk, hub):
    """422 because somebody opened one in between: a proven no, and theirs is not ours."""
    made = draft(desk)
    made.prepare()
    theirs(hub)
    with pytest.raises(Refused) as refused:
        made.send()
    assert refused.value.code == "exists"
    assert made.probe().seen == "absent"


def test_draft_of_a_branch_the_remote_does_not_have_is_refused(desk, hub):
    """422 for a reason of its own is a proven no too."""
    made = action(desk, "git.draft_pr", branch="nowhere", title="t")
    made.prepare()
    with pytest.raises(Refused) as refused:
        made.send()
    assert refused.value.code == "invalid"


def test_twin_of_a_draft_is_seen_beside_it_and_closed_by_its_number(desk, hub):
    """A server that made two shows two with our marker, also when the number of ours is known; each undo closes one."""
    hub.configure(one_per_head=False)
    hub.arm("make_two", method="POST", path="*/pulls")
    made = draft(desk)
    made.run()
    seen = made.probe()
    assert (seen.seen, seen.reference, sorted(seen.twins)) == ("many", made.done.reference, ["1", "2"])
    made.undo()
    assert made.verify().seen == "absent"
    assert sorted(pulls(hub).values()) == ["closed", "open"]


def test_other_peoples_pull_request_is_not_ours(desk, hub):
    """A pull request of the branch without our marker is neither adopted nor closed."""
    theirs(hub)
    made = draft(desk)
    assert made.probe().seen == "absent"
    with pytest.raises(Refused, match="#1"):
        made.prepare()


def test_merged_pull_request_is_beyond_closing(desk, hub):
    """Somebody merged it: a person decides."""
    made = draft(desk)
    made.run()
    hub.foreign("PATCH", PULL, {"draft": False})
    hub.foreign("PUT", f"{PULL}/merge", {})
    assert (made.probe().seen, made.rung()) == ("diverged", "person")


def test_correction_is_a_comment_in_that_pull_request(desk, hub):
    """The correction goes where the signal was, and is found again by its marker."""
    made = draft(desk)
    made.run()
    place = made.capability.place(made.question())
    assert place == "pr:billing/1"
    note = action(desk, "git.correction", place=place, text="This was withdrawn.")
    del note.args["repo"]
    note.prepare()
    assert note.probe().seen == "absent"
    note.send()
    assert (note.probe().seen, hub.count("comment")) == ("applied", 1)


def test_answer_about_another_comment_is_no_proof(desk, hub):
    """A gateway's replayed 200 does not bear our marker: unknown, and the probe finds nothing."""
    draft(desk).run()
    note = action(desk, "git.correction", place="pr:billing/1", text="This was withdrawn.")
    del note.args["repo"]
    hub.arm("answer_without_commit", method="POST", path="*/comments", body={"id": 7, "body": "another"})
    with pytest.raises(Ambiguous):
        note.send()
    assert note.probe().seen == "absent"


def test_closed_pull_request_is_opened_again(desk, hub):
    """The state before is the before-image; the undo restores it, and a separate read says so."""
    theirs(hub)
    made = action(desk, "git.close_pr", number=1)
    made.run()
    assert (pulls(hub), made.probe().seen, made.rung()) == ({1: "closed"}, "applied", "reopen")
    made.undo()
    assert (pulls(hub), made.verify().seen) == ({1: "open"}, "absent")


def test_pull_request_closed_anew_by_another_is_left_alone(desk, hub):
    """Opened and closed again by somebody since: their decision is not overwritten."""
    theirs(hub)
    made = action(desk, "git.close_pr", number=1)
    made.run()
    hub.foreign("PATCH", PULL, {"state": "open"})
    hub.configure(clock_skew_s=5.0)
    hub.foreign("PATCH", PULL, {"state": "closed"})
    assert (made.probe().seen, made.rung()) == ("diverged", "reopen")


def test_close_of_what_is_closed_sends_nothing(desk, hub):
    """Before equals after: no request, and nothing to undo."""
    theirs(hub)
    hub.foreign("PATCH", PULL, {"state": "closed"})
    made = action(desk, "git.close_pr", number=1)
    made.run()
    assert (made.before, made.done.after, writes(hub)) == ({"state": "closed"}, {"state": "closed"}, [])
    assert made.verify().seen == "absent"


def test_pull_request_whose_branch_is_gone_stays_closed(desk, hub):
    """The server cannot open it again: a refusal, for a person."""
    theirs(hub)
    made = action(desk, "git.close_pr", number=1)
    made.run()
    desk.git(desk.remote, "update-ref", "-d", "refs/heads/feature/field")
    with pytest.raises(Refused, match="422"):
        made.undo()


def test_merge_is_found_by_its_commit_and_taken_back_by_a_revert(desk, hub):
    """The merge commit names the action; the undo is a revert commit on the base branch, and is seen there."""
    made = merge(desk, hub)
    done = made.send()
    assert done.reference == desk.remote_ref("refs/heads/main")
    assert (made.probe().seen, made.rung()) == ("applied", "revert")
    desk.somebody_pushes("main", name="later.txt")
    assert (made.probe().seen, made.rung()) == ("applied", "revert")
    made.undo()
    assert desk.git(desk.remote, "ls-tree", "--name-only", "main").split() == ["README.md", "later.txt"]
    assert made.verify().seen == "absent"


@pytest.mark.parametrize("method", ["merge", "squash"])
def test_merge_that_answered_500_has_happened_once(desk, hub, method):
    """Committed, then 500: state and merge commit say it is ours (A-09), and a second send merges nothing more."""
    made = merge(desk, hub, method=method)
    hub.arm("error_after_commit", method="PUT", path=MERGE)
    with pytest.raises(Ambiguous):
        made.send()
    tip = desk.remote_ref("refs/heads/main")
    seen = made.probe()
    assert (seen.seen, seen.reference, seen.effect["commit"]) == ("applied", tip, tip)
    with pytest.raises(Ambiguous):
        made.send()
    assert (desk.remote_ref("refs/heads/main"), hub.count("merge")) == (tip, 1)


def test_merge_by_somebody_else_is_not_taken_for_ours(desk, hub):
    """Merged in between without our mark: our 405 is no refusal of an unmerged one, and a person decides."""
    made = merge(desk, hub)
    hub.foreign("PUT", f"{PULL}/merge", {})
    with pytest.raises(Ambiguous):
        made.send()
    assert (made.probe().seen, made.rung()) == ("diverged", "person")


def test_head_that_moved_is_not_merged(desk, hub):
    """The head commit goes along as a precondition; a push in between is a proven no."""
    made = merge(desk, hub)
    desk.somebody_pushes("feature/field", name="more.txt")
    with pytest.raises(Refused) as refused:
        made.send()
    assert (refused.value.code, made.probe().seen) == ("head_moved", "absent")
    with pytest.raises(Refused, match="head of #1"):
        made.prepare()


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("Base branch was modified. Review and try the merge again.", True),
        ("Merge commits are not allowed on this repository.", False),
    ],
)
def test_two_meanings_of_405_are_told_apart(desk, hub, said, again):
    """Both are proven refusals; only the passing one may be sent again (A-11)."""
    made = merge(desk, hub)
    hub.configure(no_merge=said)
    with pytest.raises(Refused) as refused:
        made.send()
    assert (refused.value.again, made.probe().seen) == (again, "absent")


def test_answer_that_merged_nothing_is_not_believed(desk, hub):
    """200 without an effect: the contract asks for a read, and the read says that nothing was merged."""
    made = merge(desk, hub)
    hub.arm("answer_without_commit", method="PUT", path=MERGE)
    made.send()
    assert (made.capability.contract.confirm, made.probe().seen) == ("probe", "absent")


def test_draft_is_not_merged(desk, hub):
    """A draft says that it is not ready."""
    made = action(desk, "git.merge_pr", number=1, head=theirs(hub, draft=True))
    with pytest.raises(Refused, match="draft"):
        made.prepare()


def test_no_text_shows_the_token(desk, hub):
    """The token travels as a header; what is recorded and said does not hold it."""
    made = draft(desk)
    done = made.run()
    with pytest.raises(Refused) as refused:
        made.prepare()
    assert "HUB_TOKEN" not in repr((done, made.before, made.allocated, str(refused.value)))


def test_contracts_of_pull_requests_pass_registration(desk, hub):
    """They are offered only where a repository has pull requests, and are complete."""
    shelf = registered(desk)
    check(capability.contract for capability in shelf.capabilities.values())
    desk.settings = {}
    assert "git.draft_pr" not in registered(desk).capabilities
