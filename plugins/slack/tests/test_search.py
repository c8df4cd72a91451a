"""How our messages are found again."""

from __future__ import annotations

from amends.spi.http import Unreadable
from amends_slack import search
from amends_slack.marker import metadata


def reader(*pages):
    """A server that gives these pages one after the other; an exception is raised."""
    rest = list(pages)
    asked = []

    def read(method, query):
        asked.append((method, dict(query)))
        page = rest.pop(0)
        if isinstance(page, Exception):
            raise page
        return page

    read.asked = asked
    return read


def page(*messages, cursor=""):
    return {"ok": True, "messages": list(messages), "response_metadata": {"next_cursor": cursor}}


def message(ts, marker):
    return {"ts": ts, "text": "x", "metadata": metadata(marker)}


def test_every_page_is_read_and_metadata_is_asked_for():
    """The marker may be on the last page, and Slack shows metadata only on request."""
    read = reader(page(message("3.1", "other"), cursor="next"), page(message("1.1", "act-1")))
    found = search.history(read, "C1", 0)
    assert found.complete
    assert [item["ts"] for item in found.marked("act-1")] == ["1.1"]
    assert read.asked[1][1]["cursor"] == "next"
    assert all(query["include_all_metadata"] == "true" for _, query in read.asked)


def test_a_missing_page_makes_the_listing_incomplete_and_keeps_what_was_seen():
    """A rate limit in mid-listing must not turn into `absent`."""
    read = reader(page(message("3.1", "act-1"), cursor="next"), Unreadable("limited", code="ratelimited"))
    found = search.history(read, "C1", 0)
    assert not found.complete
    assert len(found.marked("act-1")) == 1


def test_a_cursor_that_repeats_ends_the_listing_as_incomplete():
    """A server that pages in circles must not hang recovery."""
    read = reader(page(cursor="a"), page(cursor="a"))
    assert not search.history(read, "C1", 0).complete


def test_more_without_a_cursor_is_incomplete():
    """`has_more` without a cursor means that something was not shown."""
    read = reader({"ok": True, "messages": [], "has_more": True})
    assert not search.history(read, "C1", 0).complete


def test_a_message_shown_on_two_pages_is_one_message():
    """Listings shift while they are read; a ts is counted once."""
    read = reader(page(message("3.1", "act-1"), cursor="b"), page(message("3.1", "act-1")))
    assert len(search.history(read, "C1", 0).marked("act-1")) == 1


def test_our_own_filter_decides_not_the_servers():
    """A server that ignores every filter shows strangers; only the marker counts."""
    read = reader(page(message("1.1", "act-1"), message("2.1", "act-2"), {"ts": "3.1", "text": "x"}))
    assert [item["ts"] for item in search.history(read, "C1", 0).marked("act-1")] == ["1.1"]
