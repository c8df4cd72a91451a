"""Contract files and options: what is refused at load names file, key and remedy; what is sent holds what it should."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from amends.spi import ConfigError, NotSent
from amends.testing.policies import policy_problems
from amends_http.template import BadValueError, MissingValueError, render, render_headers, render_path

GOOD = """
name = "ping"
summary = "ping the partner"
reversibility = "compensatable"
effect = { kind = "ping", system = "partner", resource = "ping:{target}" }
readers = { audience = "machine", where = "nowhere" }
identity = { fields = ["target"] }
keying = { kind = "probeable" }
limits = { timeout_seconds = 2 }
[arguments]
target = "text"
card = { type = "secret", required = false }
note = { type = "text", required = false }
[request]
method = "POST"
path = "/v1/things/{target}"
headers = { X-Card = "{card}" }
body = { marker = "{marker}", note = "{note}", amount = "{before.x}", list = ["{target}", "{note}"], card = "{card}" }
[probe]
strength = "id"
[find]
by_id = { path = "/v1/things/{target}" }
[[compensation]]
name = "remove"
[compensation.request]
method = "DELETE"
path = "/v1/things/{target}"
"""


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ('name = "ping"', 'name = "Ping!"', "name", "pattern"),
        ('summary = "ping the partner"', "", "summary", "required"),
        ('method = "POST"', 'method = "GET"', "request.method", "'POST'"),
        ('path = "/v1/things/{target}"\nheaders', 'path = "/v1/{tarjet}"\nheaders', "request.path", "`{tarjet}`"),
        ('path = "/v1/things/{target}"\nheaders', 'path = "/v1/{card}"\nheaders', "request.path", "secret"),
        ('path = "/v1/things/{target}"\nheaders', 'path = "/v1/{observed.x}"\nheaders', "request.path", "`{observed}`"),
        ('target = "text"', 'target = "words"', "arguments.target", ""),
        ("note = { type", 'marker = "text"\nnote = { type', "arguments.marker", "reserved"),
        (
            '[compensation.request]\nmethod = "DELETE"\npath = "/v1/things/{target}"',
            "",
            "compensation.0.request",
            "no request",
        ),
        ('[find]\nby_id = { path = "/v1/things/{target}" }', "", "find", "nothing says what to read"),
        ("[find]", "[find]\nbogus = 1", "find.bogus", "not permitted"),
        ("[find]", '[input]\nnope = "String"\n[find]', "input.nope", "no argument"),
        ("[probe]", "[probe", "", "not TOML"),
        ("body = {", 'graphql = "{ x }"\nbody = {', "request.body", "its own body"),
        ("body = {", "variables = { a = 1 }\nbody = {", "request.variables", "GraphQL"),
        ("body = {", 'success = { where = { id = ["{tarjet}"] } }\nbody = {', "request.success", "`{tarjet}`"),
        ("body = {", 'query = { p = "{page}" }\nbody = {', "request.query", "`{page}`"),
        ("[find]", '[find]\nby_list = { path = "/x", match = {}, more = "m" }', "find.by_list.cursor", "how to ask"),
        (
            "[find]",
            '[find]\nby_list = { path = "/x", match = {}, link = "l", number = { parameter = "p" } }',
            "find.by_list",
            "more than one way",
        ),
        (
            "[find]",
            '[find]\nby_list = { path = "/x", match = {}, number = {} }',
            "find.by_list.number",
            "takes the page",
        ),
        ("[find]", '[find]\nby_search = { path = "/x", match = {} }', "probe.strength", "search"),
        ("[find]", '[find]\nby_list = { path = "/x", match = {}, body = {} }', "find.by_list.method", "GET"),
    ],
)
def test_a_wrong_contract_file_names_file_key_and_remedy(adapter, old, new, key, says):
    """The author of a contract is told where to look and what to do."""
    assert old in GOOD
    with pytest.raises(ConfigError) as wrong:
        adapter(files={"ping.toml": GOOD.replace(old, new, 1)})
    assert "`ping.toml`" in wrong.value.message
    assert key in wrong.value.message
    assert says in wrong.value.message
    assert wrong.value.hint


def test_two_files_of_one_name_are_refused(adapter):
    """Both files are named."""
    with pytest.raises(ConfigError, match=r"`b.toml`.*`a.toml`"):
        adapter(files={"a.toml": GOOD, "b.toml": GOOD})


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"base_url": "partner.example"}, "base_url"),
        ({"base_url": "https://user:pass@partner.example"}, "base_url"),
        ({"token": "sk_live_canary"}, "token"),
        ({"contracts": "package:nobody"}, "contracts"),
        ({"colour": "red"}, "colour"),
        ({"auth": {"kind": "magic", "secret": "env:X"}}, "auth.kind"),
    ],
)
def test_a_wrong_option_names_section_and_key(adapter, options, key):
    """A secret given as a value is refused, and not shown."""
    with pytest.raises(ConfigError) as wrong:
        adapter(**options)
    assert "[adapters.partner]" in wrong.value.message
    assert f"`{key}`" in wrong.value.message
    assert "sk_live_canary" not in str(wrong.value)


def test_a_value_that_nobody_gives_is_named(adapter):
    """Ready contracts check ownership by account: without one they do not load."""
    with pytest.raises(ConfigError, match=r"account"):
        adapter(account="")


def test_an_empty_folder_is_named(adapter):
    """No contract file is a mistake, not an adapter without operations."""
    with pytest.raises(ConfigError, match="no contract files"):
        adapter(files={})


def test_arguments_are_strict(adapter):
    """Nothing is coerced, nothing unknown passes, a secret is given by reference."""
    model = adapter(files={"ping.toml": GOOD}).capabilities["partner.ping"].arguments
    assert model.model_validate({"target": "a"}).model_dump() == {"target": "a", "card": None, "note": None}
    for wrong in ({"target": 5}, {"target": "a", "more": 1}, {"target": "a", "card": "4242"}, {}):
        with pytest.raises(ValidationError):
            model.model_validate(wrong)


def test_a_secret_argument_is_resolved_at_send_only(partner, adapter, driver):
    """Header and body carry the value; what the engine records has the reference."""
    shelf = adapter(partner.url, files={"ping.toml": GOOD})
    ping = driver("reserve_inventory")
    ping.capability = shelf.capabilities["partner.ping"]
    ping.args = {"target": "a", "card": "env:CARD"}
    with pytest.raises(Exception, match="404"):
        ping.do()
    [seen] = partner.requests("POST")
    assert seen["body"] == {"marker": "act-1", "list": ["a"], "card": "card-canary"}
    assert seen["headers"]["x-card"] == "card-canary"
    assert ping.capability.contract.secret_arguments == ("card",)


def test_a_secret_that_does_not_resolve_means_not_sent(partner, adapter, driver):
    """Nothing is sent without its credential, and the reference's failure is no doubt."""
    shelf = adapter(partner.url, files={"ping.toml": GOOD})
    ping = driver("reserve_inventory")
    ping.capability = shelf.capabilities["partner.ping"]
    ping.args = {"target": "a", "card": "env:NOWHERE"}
    with pytest.raises(NotSent) as no:
        ping.capability.do(ping.call())
    assert no.value.code == "secret_unavailable"
    assert partner.requests() == []


def test_two_instances_have_their_own_names_and_policies(adapter):
    """The adapter's name is the prefix and the namespace, so two partners live side by side."""
    shelf = adapter(name="north_freight")
    assert "north_freight.reserve_inventory" in shelf.capabilities
    [contribution] = shelf.contributions
    text = contribution.policies["north_freight.cedar"]
    assert 'NorthFreight::Action::"north_freight.reserve_inventory"' in text
    assert 'NorthFreight::Action::"payment.adjustment.void"' in text
    assert "Partner::" not in text


def test_default_policies_hold_under_the_baseline(adapter):
    """They load in strict mode beside the baseline, and the tests that go with them pass."""
    shelf = adapter(name="north_freight")
    [contribution] = shelf.contributions
    contracts = [capability.contract for capability in shelf.capabilities.values()]
    assert policy_problems("north_freight", contracts, contribution) == []
    assert contribution.tests["north_freight.policytest.json"].count('"name"') > 15


def test_default_policies_can_be_switched_off(adapter):
    """A site that writes its own policies takes none of ours."""
    assert adapter(default_policies=False).contributions == []


def test_doctor_tells_a_dead_partner_and_a_bad_credential(partner, adapter):
    """Read-only: reachability and the credential."""
    [look] = adapter(partner.url).examinations
    assert [finding.level for finding in look()] == ["ok", "ok"]
    [look] = adapter(partner.url, token="env:BAD").examinations
    assert [finding.level for finding in look()] == ["ok", "problem"]
    [look] = adapter(token="env:NOWHERE").examinations
    assert [finding.level for finding in look()] == ["problem"]
    [look] = adapter().examinations
    assert look()[-1].level == "problem"


SCOPE = {"order": "a/b", "n": 5, "flag": True, "none": None, "doc": {"x": [1]}, "dots": ".."}


def test_values_keep_their_type_and_never_become_syntax():
    """A lone placeholder is the value; inside text it is text; JSON is built, never glued."""
    template = {
        "n": "{n}",
        "flag": "{flag}",
        "text": "no {n}: {order}",
        "doc": "{doc}",
        "gone": "{none}",
        "brace": "{{x}}",
    }
    expected = {"n": 5, "flag": True, "text": "no 5: a/b", "doc": {"x": [1]}, "brace": "{x}"}
    assert render(template, SCOPE) == expected
    assert render({"inner": {"only": "{none}"}, "empty": {}}, SCOPE) == {"empty": {}}
    assert render({"x": "{evil}"}, {"evil": '", "admin": true'}) == {"x": '", "admin": true'}


def test_a_path_value_stays_in_its_segment():
    """Slashes are encoded; empty values and dot segments are refused."""
    assert render_path("/v1/{order}/x", SCOPE) == "/v1/a%2Fb/x"
    for bad in ("{dots}", "{empty}"):
        with pytest.raises(BadValueError):
            render_path(f"/v1/{bad}", {**SCOPE, "empty": ""})
    with pytest.raises(MissingValueError):
        render_path("/v1/{none}", SCOPE)
    with pytest.raises(BadValueError):
        render_path("/v1/{doc}", SCOPE)


def test_a_header_value_cannot_hold_a_line_break():
    """Header injection is refused before anything is sent."""
    assert render_headers({"A": "{n}", "B": "{none}"}, SCOPE) == {"A": "5"}
    with pytest.raises(BadValueError):
        render_headers({"A": "{evil}"}, {"evil": "1\r\nX: 2"})
