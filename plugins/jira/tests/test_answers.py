"""What a Jira answer proves, by status and structured errors only."""

from __future__ import annotations

import json

import pytest

from amends.spi import Refused
from amends.spi.http import Ambiguous, HttpAnswer, HttpRequest, judge
from amends_jira import answers

PAGE = b"<html><body>could not link the epic to its parent field</body></html>"


def answer(status, body=None, headers=None):
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    request = HttpRequest("POST", "http://jira.test/rest/api/3/issue", body="json_or_empty")
    return HttpAnswer(status, headers or {}, content, request)


def judged(found):
    """As a mutating call judges it: the shared table first, then Jira's own."""
    return answers.accepted(judge(found, answers.OWN_STATUSES))


def said(*messages, **errors):
    return {"errorMessages": list(messages), "errors": errors}


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, said(summary="You must specify a summary"), "field_summary"),
        (400, said("Transition id '9' is not valid"), "bad_request"),
        (400, PAGE, "bad_request"),
        (401, said("no"), "http_401"),
        (403, said("no"), "http_403"),
        (404, said("Issue does not exist"), "not_found"),
    ],
)
def test_a_no_is_a_refusal_with_the_structured_reason_as_its_code(status, body, code):
    """The code comes from field names, never from words in a text (J-03)."""
    with pytest.raises(Refused) as refused:
        judged(answer(status, body))
    assert refused.value.code == code
    assert not refused.value.again


def test_a_conflicting_update_may_be_sent_again():
    """Jira's own 409 says that this request changed nothing."""
    with pytest.raises(Refused) as refused:
        judged(answer(409, said("conflicting update")))
    assert refused.value.again


def test_a_rate_limit_may_be_sent_again_after_its_wait():
    """429 is not a failure of the call."""
    with pytest.raises(Refused) as refused:
        judged(answer(429, said("slow down"), {"retry-after": "9"}))
    assert (refused.value.again, refused.value.retry_after_seconds) == (True, 9.0)


@pytest.mark.parametrize("status", [409, 500, 502, 503, 504])
def test_a_gateways_page_leaves_the_outcome_unknown_whatever_its_words(status):
    """A 504 whose HTML contains the word "link" is no refusal of a link (J-03)."""
    with pytest.raises(Ambiguous):
        judged(answer(status, PAGE))


def test_a_200_that_is_a_page_leaves_the_outcome_unknown():
    """A proxy answered, not Jira (C-01)."""
    with pytest.raises(Ambiguous):
        judged(answer(200, PAGE))


def test_an_empty_204_is_a_success_without_a_document():
    """Transitions and deletions answer so."""
    assert judged(answer(204)) == {}


@pytest.mark.parametrize("cut", range(285, 300))
def test_no_cut_leaves_a_part_of_a_secret_in_a_reason(cut):
    """What Jira says is masked first and shortened then: what a cut leaves of a token would not be known for one."""
    request = HttpRequest("POST", "http://jira.test/rest/api/3/issue", secrets=("canary-5f2a",))
    content = json.dumps(said("x" * cut + "canary-5f2a")).encode()
    with pytest.raises(Refused) as refused:
        judged(HttpAnswer(400, {}, content, request))
    assert "xxx" in str(refused.value)
    assert "ca" not in str(refused.value)
