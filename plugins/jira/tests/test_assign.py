"""Assignments over real sockets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous, HttpSender
from amends_jira.examine import examine
from amends_jira.options import JiraOptions

KEY = "BILL-7"
PATH = f"/rest/api/3/issue/{KEY}"


def ready(site, account_id="acc-maya"):
    assign = site.capability("assign")
    return assign, site.prepared(assign, site.call({"key": KEY, "account_id": account_id}))


@pytest.mark.parametrize("account_id", ["acc-maya", None])
def test_an_assignment_is_restored_to_who_had_it(site, account_id):
    """One request each way, both verified by reading the issue."""
    assign, call = ready(site, account_id)
    done = site.done(assign, call)
    assert assign.probe(done).seen == "applied"
    assert site.undo(assign, done).seen == "absent"
    assert site.fields()["assignee"] == "acc-noor"
    assert site.writes() == [f"PUT /issue/{KEY}"] * 2


def test_an_answer_lost_after_commit_is_found_by_reading(site):
    """Unknown, applied, one request."""
    assign, call = ready(site)
    site.system.arm("drop_after_commit", path=PATH)
    with pytest.raises(Ambiguous):
        assign.do(call)
    assert assign.probe(call).seen == "applied"
    assert site.writes() == [f"PUT /issue/{KEY}"]


def test_a_204_that_changed_nothing_is_seen(site):
    """The assignee still is the former one."""
    assign, call = ready(site)
    site.system.arm("answer_without_commit", path=PATH)
    assert assign.probe(site.done(assign, call)).seen == "absent"


def test_a_later_assignment_is_diverged_and_not_overwritten(site):
    """Somebody took it over (rule 18)."""
    assign, call = ready(site)
    done = site.done(assign, call)
    site.foreign("PUT", f"issue/{KEY}/assignee", {"accountId": "acc-agent"})
    assert assign.probe(done).seen == "diverged"
    with pytest.raises(Refused) as refused:
        assign.undo(done)
    assert refused.value.code == "diverged"
    assert site.fields()["assignee"] == "acc-agent"


def test_a_look_that_fails_before_the_undo_means_not_sent(site):
    """The undo may be tried again: nothing left."""
    assign, call = ready(site)
    done = site.done(assign, call)
    site.system.arm("refuse", method="GET", path=f"/rest/api/3/issue/{KEY}", status=503)
    with pytest.raises(NotSent):
        assign.undo(done)
    assert site.writes() == [f"PUT /issue/{KEY}"]


def test_setting_what_stands_already_leaves_nothing_to_undo(site):
    """Before equals after, in one form: verified as undone by looking."""
    assign, call = ready(site, "acc-noor")
    assert assign.do(call).after == call.before
    done = site.done(assign, call)
    assert assign.verify_undone(done).seen == "absent"


def test_an_unknown_person_is_refused(site):
    """Structured: the field is named."""
    assign, call = ready(site, "acc-nobody")
    with pytest.raises(Refused) as refused:
        assign.do(call)
    assert refused.value.code == "field_assignee"


def test_a_probe_that_cannot_look_is_inconclusive(site):
    """A failed read is no absence."""
    assign, call = ready(site)
    site.system.arm("refuse", method="GET", path=f"/rest/api/3/issue/{KEY}", status=503)
    assert assign.probe(call).seen == "inconclusive"


def test_a_token_that_cannot_be_had_means_not_sent(site):
    """Nothing left, a probe cannot look, and the secret store's words are not repeated."""

    def secret(reference):
        raise KeyError("jira-secret")

    assign, call = ready(site)
    with pytest.raises(NotSent) as missing:
        assign.do(replace(call, secret=secret))
    assert "jira-secret" not in str(missing.value)
    assert assign.probe(replace(call, secret=secret)).seen == "inconclusive"
    assert site.writes() == []


def test_doctor_says_who_is_signed_in_and_what_is_wrong_with_a_token(site):
    """A bad token names the reference, never the value."""
    good = examine(site.options, HttpSender(), lambda _: "jira-token")
    bad = examine(site.options, HttpSender(), lambda _: "wrong-value")
    assert {finding.level for finding in good} == {"ok"}
    assert [finding.level for finding in bad] == ["problem"]
    assert "env:JIRA_API_TOKEN" in bad[0].remedy
    assert "wrong-value" not in f"{bad}"


def test_doctor_survives_a_system_that_is_not_there():
    """Nobody listens: a finding, not an exception."""
    (finding,) = examine(JiraOptions(base_url="http://127.0.0.1:9"), HttpSender(), lambda _: "t")
    assert finding.level == "problem"


def test_an_assignment_bears_our_marker_and_names_people_as_the_product_does(each):
    """Account ids on Cloud, user names on Data Center; null is nobody."""
    for account_id in ("acc-maya", None):
        assign, call = each.ready("assign", {"key": KEY, "account_id": account_id})
        done = each.done(assign, call)
        assert assign.probe(done).seen == "applied"
        assert each.undo(assign, done).seen == "absent"
    assert each.fields()["assignee"] == "acc-noor"
    bodies = [row["body"] for row in each.system.requests("PUT")]
    assert [next(iter(body)) for body in bodies] == ["historyMetadata"] * 4
    assert bodies[0]["fields"] == {"assignee": {each.options.person_field: "acc-maya"}}
    assert bodies[2]["fields"] == {"assignee": None}


def test_an_assignment_like_ours_by_somebody_elses_hand_is_not_ours(each):
    """The changelog says who: our request never arrived."""
    assign, call = each.ready("assign", {"key": KEY, "account_id": "acc-maya"})
    each.foreign("PUT", f"issue/{KEY}", {"fields": {"assignee": {each.options.person_field: "acc-maya"}}})
    assert assign.probe(call).seen == "diverged"


def test_our_assignment_that_somebody_took_back_is_not_absent(each):
    """It landed, and its mail went out."""
    assign, call = each.ready("assign", {"key": KEY, "account_id": "acc-maya"})
    done = each.done(assign, call)
    each.foreign("PUT", f"issue/{KEY}", {"fields": {"assignee": {each.options.person_field: "acc-noor"}}})
    assert assign.probe(done).seen == "diverged"


@pytest.mark.parametrize(("api", "cut"), [("cloud", "applied"), ("data_center", "inconclusive")])
def test_a_changelog_that_is_cut_short_is_read_by_pages_or_is_no_evidence(site, api, cut):
    """Cloud shows the newest entries and has pages; Data Center has none, so whose hand it was is not known."""
    assign, call = ready(site)
    done = site.done(assign, call)
    fields = {"assignee": {"accountId": "acc-maya", "name": "acc-maya"}}
    shown = {"key": KEY, "fields": fields, "changelog": {"total": 9, "histories": []}}
    site.system.arm("refuse", method="GET", status=200, form="json", body=shown)
    assert site.capability("assign", api=api).probe(done).seen == cut
