"""Looks that a partner makes hard: pages of every kind, GraphQL, searches that lag, operations that lie elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from amends.spi import Accepted, Refused
from amends.spi.http import Ambiguous
from amends_http.messages import form_fields
from amends_http.paging import next_link
from amends_http.template import lookup, spread, values_at

CONTRACT = """
name = "note"
summary = "leave a note"
reversibility = "compensatable"
effect = { kind = "note", system = "partner", resource = "note:{about}" }
readers = { audience = "machine", where = "nowhere" }
identity = { fields = ["about"] }
keying = { kind = "probeable" }
reference = { field = "id" }
[arguments]
about = "text"
[request]
path = "/notes"
body = { marker = "{marker}" }
[probe]
strength = "list"
counts = true
[find]
present = { state = ["there"] }
[find.by_list]
path = "/notes"
items = "rows"
match = { marker = "{marker}" }
PAGING
[[compensation]]
name = "remove"
[compensation.request]
method = "DELETE"
path = "/notes/{reference}"
answers = "any"
"""
OURS = {"id": "n-9", "marker": "act-1", "state": "there"}
OTHERS = [{"id": f"n-{number}", "marker": f"x-{number}", "state": "there"} for number in range(4)]


@pytest.fixture
def note(
    scripted: Callable[..., Any], adapter: Callable[..., Any], make_driver: Callable[..., Any]
) -> Callable[..., Any]:
    """A driver of the contract with this paging, at a partner that answers so; and the partner."""

    def make(say: Callable[..., Any], paging: str = "", *changes: tuple[str, str]) -> Any:
        partner = scripted(say)
        text = CONTRACT.replace("PAGING", paging)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        shelf = adapter(partner.url, files={"note.toml": text})
        return make_driver(shelf.capabilities["partner.note"], about="x"), partner

    return make


def test_counted_pages_are_read_until_one_is_empty(note):
    """`page=1, 2, 3`: a short page is no end, an empty one is."""
    pages = {"1": OTHERS[:2], "2": [OURS], "3": []}
    driver, partner = note(
        lambda heard: (200, {}, {"rows": pages[heard.query["page"]]}), 'number = { parameter = "page" }'
    )
    assert driver.probe().seen == "applied"
    assert [heard.query["page"] for heard in partner.heard] == ["1", "2", "3"]


def test_an_offset_is_counted_in_items_and_stops_at_the_total(note):
    """`skip=0, 2, 4`: no request beyond what the partner says there is."""
    rows = [*OTHERS[:3], OURS]

    def say(heard: Any) -> Any:
        skip = int(heard.query["skip"])
        return 200, {}, {"rows": rows[skip : skip + 2], "total": len(rows)}

    driver, partner = note(say, 'number = { parameter = "skip", first = 0, step = 2 }\ntotal = "total"')
    assert driver.probe().seen == "applied"
    assert [heard.query["skip"] for heard in partner.heard] == ["0", "2"]


def test_a_list_that_shows_less_than_it_counts_proves_nothing(note):
    """Three are counted, one is shown: inconclusive, not absent."""
    pages = {"0": OTHERS[:1], "2": []}
    driver, _ = note(
        lambda heard: (200, {}, {"rows": pages[heard.query["skip"]], "total": 3}),
        'number = { parameter = "skip", first = 0, step = 2 }\ntotal = "total"',
    )
    seen = driver.probe()
    assert (seen.seen, seen.detail[:10]) == ("inconclusive", "incomplete")


def test_a_token_leads_from_page_to_page(note):
    """The page names the next one; an empty token ends it."""
    pages = {"": (OTHERS[:2], "p2"), "p2": ([OURS], "")}

    def say(heard: Any) -> Any:
        rows, following = pages[heard.query.get("token", "")]
        return 200, {}, {"rows": rows, "next": following}

    driver, partner = note(say, 'cursor = { parameter = "token", page = "next" }')
    assert driver.probe().seen == "applied"
    assert len(partner.heard) == 2


def test_a_link_header_is_followed_with_our_credential(note):
    """RFC 8288, relative to the partner's own host."""

    def say(heard: Any) -> Any:
        if heard.query.get("page") == "2":
            return 200, {}, {"rows": [OURS]}
        return 200, {"Link": '</notes?page=2>; rel="next", </notes?page=9>; rel="last"'}, {"rows": OTHERS[:2]}

    driver, partner = note(say, 'link = "header:link"')
    assert driver.probe().seen == "applied"
    assert {heard.headers["authorization"] for heard in partner.heard} == {"Bearer partner-token"}


@pytest.mark.parametrize("host", ["http://127.0.0.1:1", "//elsewhere.example", "http://partner-token@127.0.0.1"])
def test_a_page_on_another_host_is_not_asked(note, host):
    """Our credential goes nowhere else, and a list that is not read to its end proves nothing."""
    driver, partner = note(lambda heard: (200, {}, {"rows": [], "next": f"{host}/notes?page=2"}), 'link = "next"')
    assert driver.probe().seen == "inconclusive"
    assert len(partner.heard) == 1


@pytest.mark.parametrize("paging", ['link = "next"', 'cursor = { parameter = "token", page = "next" }'])
def test_a_page_that_leads_to_itself_ends_the_look(note, paging):
    """No endless reading, and no absence."""
    driver, partner = note(lambda heard: (200, {}, {"rows": [], "next": "/notes?token=a"}), paging)
    assert driver.probe().seen == "inconclusive"
    assert len(partner.heard) == 2


def test_a_missing_list_is_no_empty_list(note):
    """A 200 of another shape: inconclusive."""
    driver, _ = note(lambda heard: (200, {}, {"message": "welcome"}))
    assert driver.probe().seen == "inconclusive"


def test_a_search_that_finds_nothing_proves_nothing_and_one_that_finds_is_believed(note):
    """An index lags: absent is never said (field case P-01)."""
    search = ("[find.by_list]", "[find.by_search]"), ('strength = "list"', 'strength = "search"')
    driver, _ = note(lambda heard: (200, {}, {"rows": []}), "", *search)
    assert driver.probe().seen == "inconclusive"
    assert driver.verify().seen == "inconclusive"
    driver, _ = note(lambda heard: (200, {}, {"rows": [OURS]}), "", *search)
    assert driver.probe().seen == "applied"


def test_a_look_that_is_refused_for_now_says_when_to_come_back(note):
    """Retry-After of a look is told to the engine."""
    driver, _ = note(lambda heard: (429, {"Retry-After": "7"}, {}))
    seen = driver.probe()
    assert (seen.seen, seen.retry_after_seconds) == ("inconclusive", 7.0)


GRAPHQL = (
    """path = "/notes"
items = "rows"
match = { marker = "{marker}" }
""",
    """graphql = "query ($m: String) { notes(marker: $m) { id marker state } }"
variables = { m = "{marker}" }
items = "data.notes"
match = { marker = "{marker}" }
""",
)


def test_a_look_may_be_a_post(note):
    """A GraphQL query changes nothing; its text is sent as it stands, its variables are filled."""
    driver, partner = note(lambda heard: (200, {}, {"data": {"notes": [OURS]}}), "", GRAPHQL)
    assert driver.probe().seen == "applied"
    [heard] = partner.heard
    assert heard.method == "POST"
    body = json.loads(heard.body)
    assert body["variables"] == {"m": "act-1"}
    assert body["query"].startswith("query ($m: String) { notes")


def test_a_look_with_errors_in_a_200_proves_nothing(note):
    """`errors` beside an empty list: what is missing may be there."""
    driver, _ = note(lambda heard: (200, {}, {"data": {"notes": []}, "errors": [{"message": "no"}]}), "", GRAPHQL)
    assert driver.probe().seen == "inconclusive"


CALL = 'path = "/notes"\nbody = { marker = "{marker}" }', 'graphql = "mutation { note }"\ndocument = "data.note"'


@pytest.mark.parametrize("data", [None, {"note": {"id": "n-1"}}])
def test_a_mutation_with_errors_is_ambiguous_unless_they_are_declared(note, data):
    """A resolver may fail after it has written; what is declared to be a refusal is one."""
    answer = {"data": data, "errors": [{"extensions": {"code": "FORBIDDEN"}}]}
    driver, _ = note(lambda heard: (200, {}, answer), "", CALL)
    with pytest.raises(Ambiguous):
        driver.do()
    rule = 'refusals = [{ status = 200, where = { "errors.0.extensions.code" = ["FORBIDDEN"] }, means = "refused" }]'
    driver, _ = note(lambda heard: (200, {}, answer), "", (CALL[0], f"{CALL[1]}\n{rule}"))
    with pytest.raises(Refused):
        driver.do()


def test_a_form_says_nesting_with_brackets():
    """As Stripe reads it: no value, no field."""
    body = {"metadata": {"a b": "ü&"}, "items": [{"price": 5}, "x"], "flag": True, "off": False, "none": None}
    assert form_fields(body) == {
        "metadata[a b]": "ü&",
        "items[0][price]": "5",
        "items[1]": "x",
        "flag": "true",
        "off": "false",
    }


def test_a_form_reaches_the_partner_with_the_marker_first(note):
    """The content type is a form's, and Unicode survives."""
    form = (
        'body = { marker = "{marker}" }',
        'encoding = "form"\nbody = { metadata = { m = "{marker}" }, about = "{about}" }',
    )
    driver, partner = note(lambda heard: (200, {}, {"id": "n-1"}), "", form)
    driver.args = {"about": "grüße & co"}
    driver.do()
    [heard] = partner.heard
    assert heard.headers["content-type"] == "application/x-www-form-urlencoded"
    assert heard.body == b"metadata%5Bm%5D=act-1&about=gr%C3%BC%C3%9Fe+%26+co"


OPERATION = """
[request.operation]
url = "job.href"
status = "state"
done = ["ok"]
failed = ["bad"]
gone = ["lost"]
reference = "id"
"""


def accepted(note: Callable[..., Any], job: dict[str, Any], href: str = "/jobs/1", **headers: str) -> Any:
    """A note that was accepted, whose operation reads as `job`."""

    def say(heard: Any) -> Any:
        if heard.path == "/notes" and heard.method == "POST":
            return 202, {}, {"job": {"href": href}}
        return 200, headers if heard.path == "/jobs/1" else {}, job if heard.path == "/jobs/1" else {"rows": []}

    return note(say, "", ('body = { marker = "{marker}" }', f'body = {{ marker = "{{marker}}" }}\n{OPERATION}'))


def test_an_operation_on_another_host_is_never_recorded(note):
    """The call is ambiguous, and only the list can tell; our credential stays at home."""
    driver, partner = accepted(note, {}, href="http://127.0.0.1:1/jobs/1")
    with pytest.raises(Ambiguous) as lost:
        driver.do()
    assert lost.value.code == "foreign_operation"
    assert len(partner.heard) == 1


def test_an_absolute_address_on_the_partners_own_host_works(note):
    """The default port may be named or not (field case C-04)."""
    driver, partner = accepted(note, {"state": "running"})
    driver.do()
    driver.effect = {"operation": f"{partner.url}/jobs/1?x="}
    assert driver.probe().seen == "inconclusive"
    assert partner.heard[-1].path == "/jobs/1"


@pytest.mark.parametrize(("state", "seen"), [("bad", "absent"), ("lost", "absent"), ("working", "inconclusive")])
def test_an_operation_reads_as_declared(note, state, seen):
    """Failed is absent; forgotten is looked up in the list; anything else is not final."""
    driver, _ = accepted(note, {"state": state})
    assert isinstance(driver.do(), Accepted)
    assert driver.probe().seen == seen


def test_an_operation_that_is_not_final_says_when_to_come_back(note):
    """Retry-After of a poll is told to the engine."""
    driver, _ = accepted(note, {"state": "working"}, **{"Retry-After": "3"})
    driver.do()
    assert driver.probe().retry_after_seconds == 3.0


@pytest.mark.parametrize(("status", "seen"), [(404, "applied"), (200, "absent"), (500, "inconclusive")])
def test_a_removal_has_its_effect_where_nothing_stands(note, status, seen):
    """Nothing there is the effect of a removal, and the thing itself is its absence."""
    removal = (
        ('resource = "note:{about}"', 'resource = "note:{about}", changes = "removes"'),
        ('[find.by_list]\npath = "/notes"\nitems = "rows"\nmatch = { marker = "{marker}" }', ""),
        ("[find]", '[find]\nby_id = { path = "/notes/{about}" }'),
        ("counts = true", ""),
    )
    driver, _ = note(lambda heard: (status, {}, OURS), "", *removal)
    assert driver.probe().seen == seen


def test_what_a_link_header_says():
    """Quoted or not, among others, or not at all."""
    assert next_link('<https://x/?a=1,2>; title="a, b"; rel="prev next"') == "https://x/?a=1,2"
    assert next_link("</b>; rel=next") == "/b"
    assert next_link('</b>; rel="last"') == ""
    assert next_link("nonsense") == ""


def test_paths_reach_into_lists():
    """By number, or through every item."""
    document = {"errors": [{"code": "A"}], "orders": [{"p": [{"id": 1}]}, {"p": [{"id": 2}, {"id": 3}]}]}
    assert lookup(document, "errors.0.code") == "A"
    assert lookup(document, "errors.7.code") is None
    assert spread(document, "orders.*.p") == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert spread(document, "orders.*.q") is None
    assert values_at(document, "orders.*.p.*.id") == [1, 2, 3]
    assert values_at(document, "nothing.*.id") == []
