"""Links between issues and to pages elsewhere, over real sockets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous, Unreadable

KEY, TARGET = "BILL-7", "BILL-8"
LINK = {"key": KEY, "type": "Blocks", "target": TARGET}
PAGE = {"key": KEY, "url": "https://wiki.test/decision", "title": "Décision 🚀", "relationship": "explains"}
CASES = [("link", LINK, "POST /issueLink"), ("remote_link", PAGE, f"POST /issue/{KEY}/remotelink")]
each_kind = pytest.mark.parametrize(("kind", "args", "post"), CASES)


def ready(site, kind, args, **facts):
    site.system.control("seed_issue", key=TARGET, summary="other")
    return site.ready(kind, args, **facts)


def ends(site):
    return {"type": {"name": "Blocks"}, "inwardIssue": {"key": KEY}, "outwardIssue": {"key": TARGET}}


def kept(capability, call):
    """The call as it stands once a look has found its effect."""
    seen = capability.probe(call)
    assert seen.seen == "applied"
    return replace(call, reference=seen.reference)


@each_kind
def test_a_link_is_one_request_confirmed_and_taken_back_by_another(each, kind, args, post):
    """The answer names nothing that is ours: a separate read finds it, and finds it gone."""
    link, call = ready(each, kind, args)
    each.done(link, call)
    assert each.system.count("issue_link" if kind == "link" else "remote_link") == 1
    found = kept(link, call)
    assert each.undo(link, found, "delete").seen == "absent"
    assert each.system.present() == []
    assert [line.split("/")[0] for line in each.writes()] == ["POST ", "DELETE "]
    assert each.writes()[0] == post
    assert link.contract.confirm == "probe"


@each_kind
@pytest.mark.parametrize("fault", ["drop_after_commit", "error_after_commit", "html_answer"])
def test_an_answer_lost_after_commit_is_found_by_reading(each, kind, args, post, fault):
    """Unknown, applied, one request."""
    link, call = ready(each, kind, args)
    each.system.arm(fault)
    with pytest.raises(Ambiguous):
        link.do(call)
    kept(link, call)
    assert each.writes() == [post]


@each_kind
def test_a_success_that_made_nothing_is_seen(each, kind, args, post):
    """A replayed answer is no proof."""
    link, call = ready(each, kind, args)
    each.system.arm("answer_without_commit")
    done = each.done(link, call)
    assert link.probe(done).seen == "absent"
    assert each.writes() == [post]


@each_kind
def test_a_refusal_is_proof(each, kind, args, post):
    """Nothing stands."""
    link, call = ready(each, kind, args)
    each.system.arm("refuse", status=403)
    with pytest.raises(Refused):
        link.do(call)
    assert link.probe(call).seen == "absent"
    assert each.writes() == [post]


@each_kind
def test_a_link_that_is_gone_already_is_not_deleted_again(each, kind, args, post):
    """Nothing is sent, and the separate read says gone."""
    link, call = ready(each, kind, args)
    found = kept(link, each.done(link, call))
    for row in each.system.objects("issue_links"):
        each.foreign("DELETE", f"issueLink/{row['id']}")
    for row in each.system.objects("remote_links"):
        each.foreign("DELETE", f"issue/{KEY}/remotelink/{row['id']}")
    assert each.undo(link, found, "delete").seen == "absent"
    assert each.writes() == [post]


@each_kind
def test_a_delete_that_did_nothing_and_one_whose_answer_was_lost_are_told_apart(each, kind, args, post):
    """Neither answer counts; what stands does."""
    link, call = ready(each, kind, args)
    found = kept(link, each.done(link, call))
    each.system.arm("answer_without_commit", method="DELETE")
    assert each.undo(link, found, "delete").seen == "applied"
    each.system.arm("drop_after_commit", method="DELETE")
    with pytest.raises(Ambiguous):
        link.undo(found)
    assert link.verify_undone(found).seen == "absent"


@each_kind
def test_a_look_that_fails_is_no_look(each, kind, args, post):
    """Before an undo nothing has left; a probe is inconclusive."""
    link, call = ready(each, kind, args)
    found = kept(link, each.done(link, call))
    each.system.arm("refuse", method="GET", status=503, times=2)
    with pytest.raises(NotSent):
        link.undo(found)
    assert link.probe(found).seen == "inconclusive"
    assert each.writes() == [post]


def test_a_link_that_stands_already_is_refused_before_anything_is_sent(each):
    """What is found later is then new since."""
    each.system.control("seed_issue", key=TARGET, summary="other")
    each.foreign("POST", "issueLink", ends(each))
    with pytest.raises(Refused) as refused:
        each.ready("link", LINK)
    assert refused.value.code == "already_there"
    assert each.writes() == []


@pytest.mark.parametrize("target", [KEY, "BILL-99"])
def test_a_link_to_itself_or_to_nothing_is_not_sent(each, target):
    """An issue that cannot be seen cannot be linked."""
    with pytest.raises((Refused, Unreadable)):
        each.ready("link", {**LINK, "target": target})
    assert each.writes() == []


def test_a_link_that_somebody_else_made_meanwhile_is_not_taken_for_ours(each):
    """The changelog says whose hand it was: it can carry no marker."""
    link, call = ready(each, "link", LINK)
    each.foreign("POST", "issueLink", ends(each))
    assert link.probe(call).seen == "diverged"
    with pytest.raises(Refused) as refused:
        link.undo(call)
    assert refused.value.code == "diverged"
    assert each.writes() == []


def test_the_link_the_other_way_round_is_another_link(each):
    """Blocked by is not blocks."""
    each.system.control("seed_issue", key=TARGET, summary="other")
    each.foreign("POST", "issueLink", {**ends(each), "inwardIssue": {"key": TARGET}, "outwardIssue": {"key": KEY}})
    link, call = each.ready("link", LINK)
    assert link.probe(call).seen == "absent"
    each.done(link, call)
    assert link.probe(call).seen == "applied"


def test_a_remote_link_is_told_by_a_global_id_with_our_marker(each):
    """A second send updates the first: one link, whatever the answer said."""
    link, call = ready(each, "remote_link", PAGE)
    each.system.arm("make_two")
    each.done(link, call)
    (row,) = each.system.objects("remote_links")
    assert (row["globalId"], row["object"]["title"]) == ("amends:act-1", PAGE["title"])
    assert link.probe(call).seen == "applied"


def test_a_remote_link_that_points_elsewhere_by_now_is_diverged(each):
    """Somebody went on with it: it is not deleted."""
    link, call = ready(each, "remote_link", PAGE)
    found = kept(link, each.done(link, call))
    thing = {"globalId": "amends:act-1", "object": {"url": "https://wiki.test/other", "title": "w"}}
    each.foreign("POST", f"issue/{KEY}/remotelink", thing)
    assert link.probe(found).seen == "diverged"
    with pytest.raises(Refused) as refused:
        link.undo(found)
    assert refused.value.code == "diverged"


def test_other_remote_links_of_the_issue_are_left_alone(each):
    """The list is looked through on our side, and the id is the one that ours has now."""
    each.foreign("POST", f"issue/{KEY}/remotelink", {"object": {"url": "https://wiki.test/theirs", "title": "t"}})
    link, call = ready(each, "remote_link", PAGE)
    found = kept(link, each.done(link, call))
    assert each.undo(link, found, "delete").seen == "absent"
    (left,) = each.system.objects("remote_links")
    assert left["object"]["title"] == "t"
