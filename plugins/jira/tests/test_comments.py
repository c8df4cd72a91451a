"""Comments and corrections over real sockets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import Refused
from amends.spi.http import Ambiguous

KEY = "BILL-7"
PATH = f"/rest/api/3/issue/{KEY}/comment"
ARGS = {"key": KEY, "text": "first line\n\nsecond line"}


def test_a_comment_is_one_request_with_the_marker_in_a_property(site):
    """No reader sees the mark."""
    comment = site.capability("comment")
    done = site.done(comment, site.call(ARGS))
    assert site.writes() == [f"POST /issue/{KEY}/comment"]
    assert done.reference == f"{KEY}/{done.effect['comment_id']}"
    (held,) = site.system.objects("comment_properties")
    assert held["value"] == {"amends_action": "act-1"}
    (stored,) = site.system.objects("comments")
    assert len(stored["body"]["content"]) == 3


@pytest.mark.parametrize("where", ["property", "text"])
@pytest.mark.parametrize(
    ("fault", "parameters"),
    [("drop_after_commit", {}), ("error_after_commit", {"status": 500}), ("empty_answer", {"status": 201})],
)
def test_an_answer_lost_after_commit_is_found_by_the_marker(site, where, fault, parameters):
    """By property, or by a line of text where properties cannot be set."""
    comment = site.capability("comment", comment_marker=where)
    call = site.call(ARGS)
    site.system.arm(fault, path=PATH, **parameters)
    with pytest.raises(Ambiguous):
        comment.do(call)
    assert comment.probe(call).seen == "applied"
    assert site.system.count("comment") == 1
    assert site.writes() == [f"POST /issue/{KEY}/comment"]


def test_comments_of_a_series_are_told_apart(site):
    """Three comments, the second answered 500: each has its own marker, so the run can go on (J-04)."""
    comment = site.capability("comment")
    calls = [site.call({**ARGS, "text": f"part {number}"}, marker=f"act-{number}") for number in (1, 2, 3)]
    site.system.arm("error_after_commit", path=PATH, status=500, skip=1)
    comment.do(calls[0])
    with pytest.raises(Ambiguous):
        comment.do(calls[1])
    assert [comment.probe(call).seen for call in calls] == ["applied", "applied", "absent"]


def test_two_comments_of_one_call_are_found_as_many_and_the_twin_goes_alone(site):
    """F-22: the recorded one is kept."""
    site.system.arm("make_two", path=PATH)
    comment = site.capability("comment")
    done = site.done(comment, site.call(ARGS))
    seen = comment.probe(done)
    assert (seen.seen, len(seen.twins), seen.reference) == ("many", 2, done.reference)
    (twin,) = set(seen.twins) - {done.reference}
    assert site.undo(comment, replace(done, reference=twin), "delete").seen == "absent"
    assert comment.probe(done).seen == "applied"


def test_a_deleted_comment_is_verified_in_the_listing(site):
    """Undone, and undone again by somebody else: both are done."""
    comment = site.capability("comment")
    done = site.done(comment, site.call(ARGS))
    site.system.arm("already_gone", method="DELETE", path=f"{PATH}/*")
    assert site.undo(comment, done, "delete").seen == "absent"


def test_a_delete_that_did_nothing_is_seen(site):
    """204 is no proof."""
    comment = site.capability("comment")
    done = site.done(comment, site.call(ARGS))
    site.system.arm("answer_without_commit", method="DELETE", path=f"{PATH}/*")
    assert site.undo(comment, done, "delete").seen == "applied"


def test_a_refused_delete_is_a_refusal(site):
    """The next rung is a person."""
    comment = site.capability("comment")
    done = site.done(comment, site.call(ARGS))
    site.system.arm("refuse", method="DELETE", path=f"{PATH}/*", status=403)
    with pytest.raises(Refused):
        comment.undo(done)
    assert comment.verify_undone(done).seen == "applied"


@pytest.mark.parametrize("status", [404, 429, 503])
def test_a_listing_that_cannot_be_read_is_inconclusive(site, status):
    """Also 404: the issue may only be hidden from this account."""
    site.system.arm("refuse", method="GET", path=PATH, status=status)
    assert site.capability("comment").probe(site.call(ARGS)).seen == "inconclusive"


def test_a_comment_of_another_issue_is_never_deleted(site):
    """The reference does not belong to this call (rule 11)."""
    with pytest.raises(Refused):
        site.capability("comment").undo(site.call(ARGS, reference="BILL-8/20001"))
    assert site.writes() == []


def test_every_page_of_comments_is_read(site):
    """The marker may be far back; other people comment on."""
    comment = site.capability("comment")
    call = site.call(ARGS)
    done = site.done(comment, call)
    body = {"type": "doc", "version": 1, "content": []}
    for _ in range(120):
        site.foreign("POST", f"issue/{KEY}/comment", {"body": body})
    assert comment.probe(call).reference == done.reference
    assert len(site.system.requests("GET", PATH)) == 2


def test_a_correction_is_one_comment_on_its_issue_and_found_again(site):
    """Never posted a second time on doubt (rule 32)."""
    correction = site.capability("correction")
    call = site.call({"place": f"jira:{KEY}", "text": "run-1: reverted. Do nothing. Ask Maya."}, marker="cor-1")
    correction.prepare(call)
    site.system.arm("drop_after_commit", path=PATH)
    with pytest.raises(Ambiguous):
        correction.do(call)
    assert correction.probe(call).seen == "applied"
    assert site.system.count("comment") == 1


@pytest.mark.parametrize("place", ["jira:", "jira:bill", "slack:C1/1.1", f"jira:{KEY}/1"])
def test_a_place_that_is_no_issue_is_refused(site, place):
    """Nothing is posted anywhere else."""
    correction = site.capability("correction")
    with pytest.raises(Refused):
        correction.do(site.call({"place": place, "text": "x"}))
    assert site.writes() == []


def test_on_data_center_a_comment_is_plain_and_its_first_line_is_the_marker(each):
    """On Cloud it is a document and the mark is hidden; either way it is first in the body and found again."""
    comment = each.capability("comment")
    call = each.call({"key": KEY, "text": "[~maya] see {code}"})
    done = each.done(comment, call)
    (sent,) = [row["body"] for row in each.system.requests("POST", f"{each.api}/issue/{KEY}/comment")]
    if each.options.cloud:
        assert next(iter(sent)) == "properties"
    else:
        assert sent == {"body": "amends:act-1\n\\[~maya] see \\{code}"}
    assert comment.probe(call).reference == done.reference
    assert each.undo(comment, done, "delete").seen == "absent"


@pytest.mark.parametrize("where", ["property", "text"])
def test_a_comment_that_somebody_edited_is_not_deleted(each, where):
    """Their words are not ours to take: the probed state leads to a person, and the undo refuses by itself."""
    comment = each.capability("comment", comment_marker=where)
    done = each.done(comment, each.call(ARGS))
    text = each.text("amends:act-1\nsomebody adds a word" if where == "text" else "somebody adds a word")
    if where == "text" and each.options.cloud:
        text["content"].insert(0, {"type": "paragraph", "content": [{"type": "text", "text": "amends:act-1"}]})
    path = f"issue/{KEY}/comment/{done.effect['comment_id']}"
    assert each.foreign("PUT", path, {"body": text})["status"] == 200
    seen = comment.probe(done)
    assert (seen.seen, seen.state) == ("applied", {"comment": "edited"})
    with pytest.raises(Refused) as refused:
        comment.undo(done)
    assert refused.value.code == "diverged"
    assert each.system.count("comment") == 1


def test_an_answer_that_names_somebody_elses_comment_is_no_success(each):
    """A gateway replayed an earlier answer and sent nothing on: that comment does not bear our marker."""
    comment = each.capability("comment")
    theirs = each.foreign("POST", f"issue/{KEY}/comment", {"body": each.text("theirs")})["body"]
    each.system.arm("answer_without_commit", method="POST", status=201, body={"id": theirs["id"]})
    done = each.done(comment, each.call(ARGS))
    assert done.effect["comment_id"] == theirs["id"]
    assert comment.probe(done).seen != "applied"
    assert comment.contract.confirm == "probe"


def test_a_comment_that_is_gone_already_is_not_deleted_again(each):
    """Nothing is sent, and the separate read says gone."""
    comment = each.capability("comment")
    done = each.done(comment, each.call(ARGS))
    each.foreign("DELETE", f"issue/{KEY}/comment/{done.effect['comment_id']}")
    assert each.undo(comment, done, "delete").seen == "absent"
    assert [line.split(" ")[0] for line in each.writes()] == ["POST"]


@pytest.mark.parametrize("kind", ["comment", "assign", "create"])
def test_a_probe_that_is_told_to_wait_says_for_how_long(each, kind):
    """429 with Retry-After: the engine does not ask sooner."""
    args = {"comment": ARGS, "assign": {"key": KEY, "account_id": "acc-maya"}}
    args["create"] = {"project": "BILL", "issuetype": "Task", "summary": "x"}
    capability, call = each.ready(kind, args[kind])
    each.system.arm("refuse", method="*", status=429, headers={"Retry-After": "9"})
    seen = capability.probe(call)
    assert (seen.seen, seen.retry_after_seconds) == ("inconclusive", 9.0)
