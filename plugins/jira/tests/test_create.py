"""Creating issues over real sockets: a key is success, and absence from search is not failure."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous

PATH = "/rest/api/3/issue"
ARGS = {"project": "BILL", "issuetype": "Task", "summary": "billing field", "description": "why"}


def test_a_key_in_the_answer_is_success_and_one_request(site):
    """No follow-up read of the library's own can turn it into a failure (A-07)."""
    create = site.capability("create")
    site.system.arm("refuse", method="GET", path=f"{PATH}/*", status=502)
    done = site.done(create, site.call(ARGS))
    assert site.writes() == ["POST /issue"]
    assert done.reference == done.effect["key"]
    assert create.probe(done).seen == "inconclusive"
    assert create.probe(done).seen == "applied"


@pytest.mark.parametrize(
    ("fault", "parameters"),
    [
        ("drop_after_commit", {"how": "rst"}),
        ("error_after_commit", {"status": 500}),
        ("error_after_commit", {"status": 504, "form": "html", "body": "<html>parent link</html>"}),
        ("error_after_commit", {"status": 201, "form": "json", "body": {}}),
    ],
)
def test_an_answer_lost_after_commit_is_found_by_its_property(site, fault, parameters):
    """One request, unknown, one issue; each search hit is re-checked on our side (J-03)."""
    create = site.capability("create")
    site.done(create, site.call(ARGS, marker="other"))
    call = site.call(ARGS)
    site.system.arm(fault, path=PATH, **parameters)
    with pytest.raises(Ambiguous):
        create.do(call)
    seen = create.probe(call)
    assert (seen.seen, seen.state) == ("applied", {"issue": "untouched"})
    (ours,) = [p for p in site.system.objects("issue_properties") if p["value"] == {"amends_action": "act-1"}]
    assert seen.reference == ours["owner"]
    assert site.writes() == ["POST /issue"] * 2


def test_while_search_lags_absent_is_said_but_never_final_and_the_key_is_enough(site):
    """Not in the index yet: without its key `absent` proves nothing, with it the issue is there (P-01)."""
    site.system.configure(search_lag_s=3600.0)
    create = site.capability("create")
    call = site.call(ARGS)
    done = site.done(create, call)
    assert create.probe(call).seen == "absent"
    assert not create.contract.probe.absence_can_be_final
    assert create.probe(done).seen == "applied"
    site.system.configure(search_lag_s=0.0)
    assert create.probe(call).reference == done.reference


def test_two_issues_of_one_call_are_found_as_many(site):
    """Both keys are named, the recorded one is kept (F-22)."""
    site.system.arm("make_two", path=PATH)
    create = site.capability("create")
    done = site.done(create, site.call(ARGS))
    seen = create.probe(done)
    assert (seen.seen, len(seen.twins), seen.reference) == ("many", 2, done.reference)
    (twin,) = set(seen.twins) - {done.reference}
    assert site.undo(create, replace(done, reference=twin), "delete").seen == "absent"


def test_a_known_key_that_is_not_found_is_inconclusive(site):
    """A 404 soon after the key was given out may only be late (P-06)."""
    create = site.capability("create")
    seen = create.probe(site.call(ARGS, reference="BILL-404"))
    assert seen.seen == "inconclusive"


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_search_that_cannot_be_read_is_inconclusive(site, status):
    """A failed look is no look."""
    site.system.arm("refuse", method="POST", path="/rest/api/3/search/jql", status=status)
    assert site.capability("create").probe(site.call(ARGS)).seen == "inconclusive"


def test_a_refused_create_is_proof_with_the_field_that_was_wrong(site):
    """The code is structured; nothing exists."""
    create = site.capability("create")
    with pytest.raises(Refused) as refused:
        create.do(site.call({**ARGS, "project": "NOPE"}))
    assert refused.value.code == "field_project"
    assert site.system.count("issue") == 0


def test_an_untouched_issue_is_deleted_and_verified_by_key(site):
    """The separate read is by key, not by search."""
    create = site.capability("create")
    done = site.done(create, site.call(ARGS))
    assert create.probe(done).state == {"issue": "untouched"}
    assert site.undo(create, done, "delete").seen == "absent"
    assert site.system.count("issue") == 0
    assert site.writes() == ["POST /issue", f"DELETE /issue/{done.reference}"]


def test_an_issue_somebody_works_on_is_not_deleted(site):
    """A comment by a colleague: the probed state leads to a person, and the undo refuses by itself."""
    create = site.capability("create")
    done = site.done(create, site.call(ARGS))
    body = {"type": "doc", "version": 1, "content": []}
    site.foreign("POST", f"issue/{done.reference}/comment", {"body": body})
    assert create.probe(done).state == {"issue": "worked_on"}
    with pytest.raises(Refused) as refused:
        create.undo(done)
    assert refused.value.code == "diverged"


def test_a_look_that_fails_before_the_delete_means_not_sent(site):
    """Whether somebody worked on it cannot be told now; nothing left, so it may be tried again."""
    create = site.capability("create")
    done = site.done(create, site.call(ARGS))
    site.system.arm("refuse", method="GET", path=f"{PATH}/*/comment", status=503)
    with pytest.raises(NotSent):
        create.undo(done)
    assert site.writes() == ["POST /issue"]


def test_a_delete_that_is_not_allowed_is_a_refusal(site):
    """Bots rarely may delete issues; the next rung is a person."""
    site.system.configure(may_delete_issues=False)
    create = site.capability("create")
    done = site.done(create, site.call(ARGS))
    with pytest.raises(Refused):
        create.undo(done)
    assert create.verify_undone(done).seen == "applied"


def test_a_delete_whose_answer_was_lost_is_found_gone(site):
    """Unknown undo, separate read: absent; the second delete is no error (A-03)."""
    create = site.capability("create")
    done = site.done(create, site.call(ARGS))
    site.system.arm("drop_after_commit", method="DELETE", path=f"{PATH}/*")
    with pytest.raises(Ambiguous):
        create.undo(done)
    assert create.verify_undone(done).seen == "absent"


def test_on_data_center_the_marker_is_a_label_and_text_is_plain(each):
    """On Cloud it is a hidden property; either way first in the body, and labels that were asked for stay."""
    create = each.capability("create")
    args = {**ARGS, "description": "see [x]", "fields": {"labels": ["asked"]}}
    done = each.done(create, each.call(args))
    (issue,) = [item for item in each.system.objects("issues") if item["key"] == done.reference]
    if each.options.cloud:
        assert issue["fields"]["labels"] == ["asked"]
    else:
        assert issue["fields"]["labels"] == ["amends-act-1", "asked"]
        assert issue["fields"]["description"] == "see \\[x]"
    assert [row["marker"] for row in each.system.effects("issue")] == ["act-1"]
    assert create.probe(done).seen == "applied"


def test_an_issue_whose_answer_was_lost_is_found_on_either_product(each):
    """By property or by label, and not another one."""
    create = each.capability("create")
    each.done(create, each.call(ARGS, marker="other"))
    each.system.arm("drop_after_commit")
    call = each.call(ARGS)
    with pytest.raises(Ambiguous):
        create.do(call)
    seen = create.probe(call)
    assert (seen.seen, seen.state) == ("applied", {"issue": "untouched"})
    assert each.undo(create, replace(call, reference=seen.reference), "delete").seen == "absent"


def test_a_search_hit_that_does_not_bear_our_marker_does_not_count(each):
    """A server that ignores a clause answers with every issue."""
    each.system.control("seed_issue", key="BILL-40", summary="another", labels=["amends-else"])
    hit = {"key": "BILL-40", "id": "1", "fields": {"labels": ["amends-else"]}, "properties": {}}
    each.system.arm("refuse", method="*", path="*/search*", status=200, form="json", body={"total": 1, "issues": [hit]})
    assert each.capability("create").probe(each.call(ARGS)).seen == "absent"


def test_an_answer_that_names_somebody_elses_issue_is_no_success(each):
    """A gateway replayed an earlier answer: that issue is there and not ours, so it stays unknown and untouched."""
    create = each.capability("create")
    each.system.arm("answer_without_commit", status=201, body={"id": "1", "key": "BILL-7"})
    done = each.done(create, each.call(ARGS))
    seen = create.probe(done)
    assert (seen.seen, "marker" in seen.detail) == ("inconclusive", True)
    assert create.contract.confirm == "probe"
    with pytest.raises(Refused) as refused:
        create.undo(done)
    assert refused.value.code == "foreign_reference"
    assert create.verify_undone(done).seen == "inconclusive"


def test_an_issue_that_was_seen_and_is_gone_is_absent_while_its_project_is_visible(each):
    """Somebody deleted it: nothing is left to undo. Before it was ever seen, a 404 may only be late (P-06)."""
    create = each.capability("create")
    done = each.done(create, each.call(ARGS))
    seen = create.probe(done)
    each.foreign("DELETE", f"issue/{done.reference}")
    assert create.probe(done).seen == "inconclusive"
    known = replace(done, after=seen.state)
    assert create.probe(known).seen == "absent"
    each.system.configure(projects=[])
    assert create.probe(known).seen == "inconclusive"


def test_an_issue_with_a_change_is_not_deleted(each):
    """A label by a colleague is work, too."""
    create = each.capability("create")
    done = each.done(create, each.call(ARGS))
    each.foreign("PUT", f"issue/{done.reference}", {"update": {"labels": [{"add": "theirs"}]}})
    assert create.probe(done).state == {"issue": "worked_on"}


def test_the_search_stops_where_issues_are_older_than_the_call(site):
    """Newest first: a large project is not read to its end."""
    for number in range(100, 300):
        site.system.control("seed_issue", key=f"BILL-{number}", summary="old")
    later = int((time.time() + 3600) * 1_000_000)
    assert site.capability("create").probe(site.call(ARGS, sent_at_us=later)).seen == "absent"
    assert len(site.system.requests("POST", "/rest/api/3/search/jql")) == 1
