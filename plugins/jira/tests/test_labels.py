"""Labels over real sockets: one by one, and only what this run changed comes back."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous
from amends_jira.arguments import LabelsArgs

KEY = "BILL-7"
PUT = f"PUT /issue/{KEY}"


def set_labels(site, *labels):
    assert site.foreign("PUT", f"issue/{KEY}", {"fields": {"labels": list(labels)}})["status"] == 204


def ready(site, add=("urgent", "kept"), remove=("old",), **facts):
    set_labels(site, "kept", "old", "theirs")
    return site.ready("labels", {"key": KEY, "add": list(add), "remove": list(remove)}, **facts)


def test_labels_are_changed_one_by_one_and_only_what_changed_comes_back(each):
    """One request each way; a label that stood already and one of somebody else stay."""
    labels, call = ready(each)
    done = each.done(labels, call)
    assert labels.probe(done).seen == "applied"
    assert set(each.fields()["labels"]) == {"kept", "urgent", "theirs"}
    each.foreign("PUT", f"issue/{KEY}", {"update": {"labels": [{"add": "later"}]}})
    assert labels.probe(done).seen == "applied"
    assert each.undo(labels, done, "restore").seen == "absent"
    assert set(each.fields()["labels"]) == {"kept", "old", "theirs", "later"}
    assert each.writes() == [PUT, PUT]


def test_the_change_bears_our_marker(each):
    """First in the body, and in the changelog's entry."""
    labels, call = ready(each)
    each.done(labels, call)
    body = next(row["body"] for row in each.system.requests("PUT"))
    assert next(iter(body)) == "historyMetadata"
    entry = each.system.objects("changelog")[-1]["entry"]
    assert entry["historyMetadata"]["extraData"]["amends_action"] == "act-1"


@pytest.mark.parametrize("kind", ["drop_after_commit", "error_after_commit"])
def test_an_answer_lost_after_commit_is_found_by_reading(each, kind):
    """Unknown, applied, one request."""
    labels, call = ready(each)
    each.system.arm(kind, method="PUT")
    with pytest.raises(Ambiguous):
        labels.do(call)
    assert labels.probe(call).seen == "applied"
    assert each.writes() == [PUT]


def test_a_204_that_changed_nothing_is_seen(each):
    """The answer is no proof."""
    labels, call = ready(each)
    each.system.arm("answer_without_commit", method="PUT")
    assert labels.probe(each.done(labels, call)).seen == "absent"
    assert labels.contract.confirm == "probe"


def test_one_of_our_labels_that_somebody_took_is_diverged_and_not_overwritten(each):
    """Rule 18: a person decides."""
    labels, call = ready(each)
    done = each.done(labels, call)
    each.foreign("PUT", f"issue/{KEY}", {"update": {"labels": [{"remove": "urgent"}]}})
    assert labels.probe(done).seen == "diverged"
    with pytest.raises(Refused) as refused:
        labels.undo(done)
    assert refused.value.code == "diverged"
    assert each.writes() == [PUT]


def test_labels_like_ours_by_somebody_elses_hand_are_not_ours(each):
    """Our request never arrived and a colleague made the same change."""
    labels, call = ready(each)
    set_labels(each, "kept", "urgent", "theirs")
    assert labels.probe(call).seen == "diverged"


def test_our_change_that_somebody_took_back_is_not_absent(each):
    """It landed: filters and automations have seen it."""
    labels, call = ready(each)
    done = each.done(labels, call)
    set_labels(each, "kept", "old", "theirs")
    assert labels.probe(done).seen == "diverged"


def test_what_stands_already_leaves_nothing_to_undo(each):
    """Before equals after, in one form."""
    labels, call = ready(each, ["kept"], [])
    assert labels.do(call).after == call.before
    assert labels.verify_undone(call).seen == "absent"


def test_a_look_that_fails_before_the_undo_means_not_sent(each):
    """It may be tried again."""
    labels, call = ready(each)
    done = each.done(labels, call)
    each.system.arm("refuse", method="GET", status=503)
    with pytest.raises(NotSent):
        labels.undo(done)


@pytest.mark.parametrize("status", [404, 429, 500])
def test_a_probe_that_cannot_look_is_inconclusive(each, status):
    """A failed look is no look."""
    labels, call = ready(each)
    each.system.arm("refuse", method="GET", status=status)
    assert labels.probe(call).seen == "inconclusive"


@pytest.mark.parametrize(
    ("add", "remove"), [([], []), (["a"], ["a"]), (["a", "a"], []), (["two words"], []), ([""], [])]
)
def test_labels_that_cannot_be_meant_are_refused(add, remove):
    """None, one twice, one in both, one with a space."""
    with pytest.raises(ValidationError):
        LabelsArgs.model_validate({"key": KEY, "add": add, "remove": remove})
