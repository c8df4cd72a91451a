"""The ways in which raw Cedar lets something through that a `forbid` was meant to stop: each row, allowed by plain
cedarpy (the control) and denied here, either for the request or already when the policies are loaded.
"""

import json
import threading
from dataclasses import replace

import cedarpy
import pytest

from amends.backends.cedar.question import RequestRejected, from_record
from amends.core.errors import ConfigError

SCOPE = 'principal, action in Amends::Action::"phase.forward", resource'
DEEP = " && ".join("(context.run.attempt > 0 || context.run.attempt < 0)" for _ in range(20))


def forbid(condition):
    return f'@id("stop") @reason("must not be let through") forbid ({SCOPE}) when {{ {condition} }};'


def raw(condition, context, *, schema=False, entities="[]", scope="principal, action, resource", key="context"):
    """What plain cedarpy says: a permit for everything, and a forbid under `condition`."""
    policies = f"permit (principal, action, resource); forbid ({scope}) when {{ {condition} }};"
    request = {"principal": 'U::"u"', "action": 'Action::"a"', "resource": 'U::"r"', key: context}
    applies = "principal: [U], resource: [U], context: { s: String, n: Long }"
    given = f"entity U; action g; action a in [g] appliesTo {{ {applies} }};"
    return cedarpy.is_authorized(request, policies, entities, given if schema else None)


# --- a condition that fails ---------------------------------------------------------------------------------------


def test_overflow(load, site, ask):
    """The schema does not keep a number from overflowing: raw Cedar drops the forbid; here the error denies."""
    control = raw("context.n * 2 < 0", {"s": "x", "n": 2**62}, schema=True)
    assert control.allowed
    assert control.diagnostics.errors
    authorizer = load(site_bundle=site(forbid("context.run.attempt * 2 < 0")))
    decision = authorizer.decide(replace(ask(), run={**ask().run, "attempt": 2**62}))
    assert (decision.verdict, decision.code, decision.policy_ids) == ("deny", "policy_error", ("stop",))


@pytest.mark.parametrize(
    ("control", "ours"),
    [
        ("context.gone == 1", "context.run.gone == 1"),
        ("context.s < 3", "context.run.workflow < 3"),
        ('context.s in ["a", "b"]', 'context.run.workflow in ["a", "b"]'),
        ("context.s.n == 1", "context.run.workflow.n == 1"),
    ],
    ids=["missing attribute", "wrong type", "in on a String", "attribute of a String"],
)
def test_condition_that_can_only_fail(load, site, control, ours):
    """Without a schema raw Cedar drops the forbid; here the bundle is refused, by file, line and policy."""
    said = raw(control, {"s": "a", "n": 1})
    assert said.allowed
    assert said.diagnostics.errors
    with pytest.raises(ConfigError, match=r"site/site.cedar:1: policy `stop`"):
        load(site_bundle=site(forbid(ours)))


def test_small_stack(load, site, ask):
    """On 128 KiB raw Cedar does not get to the end of the condition; here the caller's stack does not matter."""
    found = {}
    authorizer = load(site_bundle=site(forbid(DEEP)))
    context = {"run": {"attempt": 1}}

    def work():
        found["raw"] = raw(DEEP, context)
        found["ours"] = authorizer.decide(ask())

    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    clean_deny = found["raw"].decision is cedarpy.Decision.Deny and not found["raw"].diagnostics.errors
    assert not clean_deny
    assert (found["ours"].verdict, found["ours"].code, found["ours"].policy_ids) == ("deny", "forbidden", ("stop",))


# --- a question that is not the one that was meant -------------------------------------------------------------------


def test_entities_without_the_schema(load, site, ask):
    """A handle built without the schema has no action groups: `action in` silently never matches."""
    group = 'principal, action in Action::"g", resource'
    assert raw("true", {"s": "x", "n": 1}, entities=cedarpy.Entities.from_json_str("[]"), scope=group).allowed
    control = raw("true", {"s": "x", "n": 1}, schema=True, scope=group)
    assert not control.allowed  # with the schema it does
    decision = load(site_bundle=site(forbid("true"))).decide(ask())
    assert (decision.verdict, decision.policy_ids) == ("deny", ("stop",))


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ('context.s == "x"', {"__extn": {"fn": "unknown", "arg": "x"}}),
        ('context.s == "x"', {"__entity": {"type": "U", "id": "x"}}),
    ],
    ids=["__extn", "__entity"],
)
def test_value_that_is_a_structure(load, site, ask, control, value):
    """An untrusted value with a reserved key makes a comparison fail or be false; here it is no String, and denied."""
    assert raw(control, {"s": value, "n": 1}).allowed
    authorizer = load(
        site_bundle=site(
            '@id("stop") @reason("x") forbid (principal, '
            'action == Partner::Action::"partner.reserve", resource) when { context.input.item == "x" };'
        )
    )
    request = ask()
    assert authorizer.decide(replace(request, input={**request.input, "item": "x"})).policy_ids == ("stop",)
    decision = authorizer.decide(replace(request, input={**request.input, "item": value}))
    assert (decision.verdict, decision.code) == ("deny", "request_rejected")


def test_misspelt_key_of_a_request(load, ask):
    """Raw Cedar ignores it, and the context is empty; here a request has known parts and no others."""
    assert raw("context.n > 0", {"s": "x", "n": 1}, key="contxt").allowed
    record = dict(load().decide(ask()).context)
    record["tiem"] = record.pop("time")
    with pytest.raises(RequestRejected, match="a request has no `tiem`"):
        from_record(record)


# --- allowed by nothing ----------------------------------------------------------------------------------------------


def test_every_row_denies_with_a_code(load, site, ask):
    """No decision that came from trouble is an allow, whatever permits there are."""
    everything = (
        '@id("all") @reason("everything") permit (principal, action in Amends::Action::"phase.forward", resource);'
    )
    authorizer = load(site_bundle=site(everything + forbid("context.run.attempt * 2 < 0")))
    request = ask()
    assert authorizer.decide(request).allowed
    trouble = [
        replace(request, run={**request.run, "attempt": 2**62}),
        replace(request, input={**request.input, "item": {"__extn": {"fn": "unknown", "arg": "x"}}}),
        replace(request, input={**request.input, "quantity": 2**63}),
        replace(request, input={**request.input, "quantity": 1.5}),
        replace(request, input={}),
        replace(request, run={}),
        replace(request, evidence={"complete": "yes"}),
        replace(request, resource_type="order"),
        replace(request, action="partner.reserv"),
        replace(request, now_us=-(10**30)),
    ]
    codes = {authorizer.decide(one).code for one in trouble}
    assert [authorizer.decide(one).verdict for one in trouble] == ["deny"] * len(trouble)
    assert codes == {"policy_error", "request_rejected"}
    assert json.dumps([authorizer.decide(one).model_dump(mode="json") for one in trouble])
