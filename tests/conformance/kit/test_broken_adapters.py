"""The kit finds what it is for: one edit makes the scaffold's example wrong, and the tests that name the fault fail."""

import pytest

PLAIN = "test_the_plain_call_has_one_effect_made_by_one_request"
LOST = "test_a_lost_answer_is_found_and_never_sent_again[fin]"
PAGES = "test_a_look_reads_every_page"
TWINS = "test_two_effects_of_one_call_are_both_accounted_for"
TAKEN_BACK = "test_what_was_done_is_taken_back_and_looked_at"
DID_NOTHING = "test_an_undo_that_says_ok_and_did_nothing_is_not_believed"
LAGS = "test_a_look_that_lags_behind_the_undo_is_waited_for"
TESTS = (PLAIN, LOST, PAGES, TWINS, TAKEN_BACK, DID_NOTHING, LAGS)

SENDS = """\
        answer = self._sender.send(call, self._request("POST", _notes_of(notebook), json=body), own_statuses=())
"""
RETRIES = """\
        try:
            answer = self._sender.send(call, self._request("POST", _notes_of(notebook), json=body), own_statuses=())
        except Ambiguous:
            answer = self._sender.send(call, self._request("POST", _notes_of(notebook), json=body), own_statuses=())
"""
LOOKS = """\
        if not question.reference:
            return self.probe(question)
"""
LIES = """\
        return Observation(seen="absent")
"""
TURNS_PAGES = """\
            if page is None:
                return found
"""
STOPS = """\
            return found
"""

pytestmark = pytest.mark.timeout(120)


def test_the_example_holds(example):
    """Without an edit nothing fails: what the other tests see is their edit."""
    verdict = example.matrix(*TESTS)
    assert verdict.failed == {}, verdict.said
    assert verdict.held == set(TESTS)
    assert f"demo.create_note: {len(TESTS)} held, 0 failed, 0 say nothing about it" in verdict.said


def test_a_client_that_retries_like_an_sdk_is_found(example):
    """It sends again when the answer is lost, below the adapter, where the engine does not see it: the system has
    two effects wherever an answer was lost, and nowhere else.
    """
    example.edit("service.py", SENDS, RETRIES)
    verdict = example.matrix(*TESTS)
    assert set(verdict.failed) == {LOST, PAGES}
    assert "assert 2 == 1" in verdict.failed[LOST]
    assert "where 2 = effects()" in verdict.failed[LOST]


def test_a_verification_that_does_not_read_is_found(example):
    """It answers `absent` from memory: no read follows the undo, and an undo that did nothing is believed."""
    example.edit("notes.py", LOOKS, LIES)
    verdict = example.matrix(*TESTS)
    assert set(verdict.failed) == {TAKEN_BACK, DID_NOTHING, LAGS}
    assert "nobody looked at the system after the undo" in verdict.failed[TAKEN_BACK]
    assert "`one` is recorded as compensated, and the system has 1 such effects" in verdict.failed[DID_NOTHING]
    assert "the fault `stale` was armed and never happened" in verdict.failed[LAGS]


def test_a_probe_that_reads_one_page_is_found(example):
    """It does not see what stands on the second page, so the effect counts as failed while it is there."""
    example.edit("service.py", TURNS_PAGES, STOPS)
    verdict = example.matrix(*TESTS)
    assert set(verdict.failed) == {PAGES}
    assert "the effect is there, and its action is `failed`" in verdict.failed[PAGES]
    assert "`one` is recorded as failed, and the system has 1 such effects" in verdict.failed[PAGES]
