"""Why: the condition that made the difference, in words; and requests that people write."""

import json
from dataclasses import replace

import cedarpy
import pytest

from amends.backends.cedar import requests
from amends.backends.cedar.answer import answer
from amends.backends.cedar.explaining import explain
from amends.backends.cedar.schema import vocabulary
from amends.backends.cedar.tracing import Tracer
from amends.core.errors import InvalidInput, UnknownName
from amends.ports.authorizer import ApprovalFacts

HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def _shared():
    return {}


@pytest.fixture
def authorizer(_shared, load):
    """One loaded authorizer for the whole module: it is immutable."""
    return _shared.setdefault("authorizer", load())


@pytest.fixture
def why(authorizer, ask):
    """The explanation of a request."""

    def explained(*arguments, **changes):
        question = authorizer._question(ask(*arguments, **changes), authorizer.active)
        return explain(authorizer._snapshot, question)

    return explained


def words(told):
    return [condition.words for said in told.policies for condition in said.conditions]


def test_denied_compensation_names_the_false_condition(why):
    """In words, with the policy, its reason and where it is written."""
    told = why(phase="undo", evidence={"complete": False, "missing": ["reference"]})
    assert (told.verdict, told.code) == ("deny", "forbidden")
    (said,) = told.policies
    assert (said.policy_id, said.say) == ("amends:undo-needs-complete-evidence", "forbids")
    assert said.file == "baseline/compensation.cedar"
    assert [(one.clause, one.text, one.value, one.words) for one in said.conditions] == [
        ("unless", "context.evidence.complete", False, "the evidence about the effect is not complete")
    ]


def test_denied_for_want_of_a_permit_says_why_each_did_not_permit(why):
    """A deny that no policy determined rests on permits that were not fulfilled."""
    told = why(input={"quantity": 30, "urgent": False, "item": "bolt", "tags": []}, tenant="acme", age_us=0)
    assert told.verdict == "needs_approval"
    denied = why(phase="undo", age_us=3 * HOUR_US, contract_facts={"safe": False, "reference_owned": True})
    assert [said.say for said in denied.policies] == ["forbids", "does not permit", "does not permit"]
    assert "the age of the effect is more than 1h: it was 3h" in words(denied)
    assert "there is no approval" in words(denied)


def test_needed_approval_says_what_it_lacks_and_who_could_give_it(why):
    """The policy that asks would permit; tier, roles and people come with it."""
    told = why(phase="undo", age_us=3 * HOUR_US)
    assert (told.verdict, told.tier, told.approvers, told.roles) == ("needs_approval", 2, 1, ("finance",))
    assert [(said.policy_id, said.say) for said in told.policies] == [("partner:undo-older", "would permit")]
    assert words(told) == ["there is no approval"]


def test_allow_says_by_what(why):
    """The permit and the conditions that were true."""
    told = why()
    assert [(said.policy_id, said.say) for said in told.policies] == [("partner:reserve", "permits")]
    assert words(told) == ["the input `quantity` is at most `10`: it was 3"]


def test_scope_that_does_not_match_is_a_reason_too(authorizer, ask):
    """An action that a policy reserves to agents, asked by a person."""
    request = ask()
    human = replace(request, principal=replace(request.principal, type="Human", id="maya"), tenant="acme")
    told = explain(authorizer._snapshot, authorizer._question(human, authorizer.active))
    assert "who asks is not of type Agent: it was Human `maya`" in words(told)


def test_both_versions_are_named_when_policies_changed(why, ask):
    """Forward under one bundle, recovery under another: the explanation has both."""
    told = why(phase="undo", run={**ask().run, "forward_policy_version": "0.9.0@sha256:old"})
    assert told.policy_changed
    assert told.forward_policy_version == "0.9.0@sha256:old"
    assert told.policy_version.startswith("baseline-")


def test_every_question_of_the_sweep_is_explained_by_what_decided(authorizer, ask, contracts):
    """Policies that determined the answer are those the trace finds to apply: two independent ways to the same."""
    tracer = Tracer(authorizer._snapshot)
    for name, phase in (("reserve", "forward"), ("reserve", "undo"), ("reserve", "probe"), ("notify", "release")):
        for tenant in ("acme", "other"):
            for approved in (False, True):
                request = ask(contracts[name], phase, tenant=tenant, age_us=2 * HOUR_US)
                if approved:
                    facts = ApprovalFacts(("li",), ("finance",), 2, request.now_us, request.now_us + HOUR_US)
                    request = replace(request, approval=facts)
                question = authorizer._question(request, authorizer.active)
                traces = tracer.trace(question)
                forbids = {one.policy.id for one in traces if one.applies and one.policy.effect == "forbid"}
                permits = {one.policy.id for one in traces if one.applies and one.policy.effect == "permit"}
                found = answer(authorizer._snapshot, question)
                if found.verdict == "allow":
                    assert (set(found.policy_ids), forbids) == (permits, set())
                elif found.code == "forbidden":
                    assert set(found.policy_ids) == forbids


def test_question_that_does_not_fit_is_explained_without_policies(authorizer, ask):
    """A refused request was never put to a policy."""
    question = authorizer._question(ask(), authorizer.active)
    odd = replace(question, context={**question.context, "more": 1})
    told = explain(authorizer._snapshot, odd)
    assert (told.verdict, told.code, told.policies) == ("deny", "request_rejected", ())
    unknown = replace(question, action={"type": "Partner::Action", "id": "partner.unheard_of"})
    assert explain(authorizer._snapshot, unknown).policies == ()


# --- stock Cedar -----------------------------------------------------------------------------------------------


def stock_answers(authorizer, records):
    """What plain cedarpy says to exported requests over the whole, unsliced bundle, as text."""
    sources = authorizer.bundle().sources
    policies = "\n".join(text for file, text in sources.items() if file.endswith(".cedar"))
    schema = "\n".join(text for file, text in sources.items() if file.endswith(".cedarschema"))
    for record in records:
        exported = json.loads(json.dumps(requests.stock(record)))
        entities = exported.pop("entities")
        yield cedarpy.is_authorized(exported, policies, entities, schema).allowed


def test_any_cedar_tool_agrees_on_allow_and_deny(authorizer, ask, contracts):
    """Requests exported as text, all policies unsliced, no handle of ours: the same allow or deny; an approval that is
    needed and not there is a deny."""
    questions, ours = [], []
    for name, phase in (
        ("reserve", "forward"),
        ("reserve", "undo"),
        ("reserve", "probe"),
        ("notify", "release"),
        ("correct", "correct"),
    ):
        for tenant in ("acme", "other"):
            for evidence in (True, False):
                for tier in (0, 1, 2):
                    request = ask(
                        contracts[name],
                        phase,
                        tenant=tenant,
                        age_us=2 * HOUR_US,
                        evidence={"complete": evidence, "missing": []},
                    )
                    if tier:
                        facts = ApprovalFacts(("li",), ("finance",), tier, request.now_us, request.now_us + HOUR_US)
                        request = replace(request, approval=facts)
                    questions.append(authorizer._question(request, authorizer.active))
                    ours.append(authorizer.decide(request).allowed)
    assert list(stock_answers(authorizer, questions)) == ours
    assert True in ours
    assert False in ours


# --- requests that people write --------------------------------------------------------------------------------


@pytest.fixture
def unremarkable(load, contracts):
    """An unremarkable request about a reservation's undo, from words."""
    return requests.about(vocabulary(contracts.values()), "partner.reserve.undo")


def test_request_from_words_is_answered(authorizer, unremarkable):
    """An action's name is enough; the rest can be set by path."""
    record = requests.with_settings(unremarkable, ["time.age=3h", "input.quantity=7", "context.run.workflow=orders"])
    record = requests.with_resource(requests.with_principal(record, "Human:maya"), "reservation:res-1")
    found = answer(authorizer._snapshot, requests.question(record))
    assert (found.verdict, found.tier) == ("needs_approval", 2)
    assert requests.stock(requests.question(record))["resource"] == 'Partner::Reservation::"res-1"'


def test_windows_of_a_written_request_are_the_calendars(authorizer, unremarkable):
    """Who writes a time does not have to know which windows are open then."""
    sunday = requests.with_settings(unremarkable, ["time.now=2026-03-01T10:00:00Z"])
    assert requests.with_open_windows(sunday, authorizer._snapshot)["time"]["windows"] == []
    monday = requests.with_open_windows(unremarkable, authorizer._snapshot)
    assert monday["time"]["windows"] == ["office_hours_utc", "weekdays_utc"]


@pytest.mark.parametrize(
    ("setting", "words_"),
    [
        ('input.x={"__extn": {"fn": "ip", "arg": "1.1.1.1"}}', "`input.x` holds the reserved key `__extn`"),
        ('input.x={"__entity": {"type": "T", "id": "i"}}', "`input.x` holds the reserved key `__entity`"),
        ('input.x={"__expr": "1"}', "reserved key `__expr`"),
        ("input.x=1.5", "`input.x` is a fraction"),
        ("input.x=[1, null]", "`input.x` is null"),
        ("input.quantity=9223372036854775808", "does not fit a Long"),
        ("input.quantity=-9223372036854775809", "does not fit a Long"),
        ("time.now=2026-03-02T10:00:00", "has no time zone"),
        ("time.now=soon", "is no time"),
        ('input.x={"a": 1, "a": 2}', "`a` stands twice"),
        ("forward.decided_at=2026-03-02T10:00:00", "has no time zone"),
        ("input.x=" + "[" * 30 + "]" * 30, "nests deeper"),
    ],
)
def test_written_value_that_would_be_read_otherwise_is_refused(unremarkable, setting, words_):
    """Before anything is evaluated, by the name of the field."""
    if "twice" in words_:
        text = json.dumps(unremarkable)[:-1] + ', "input": {"x": ' + setting.partition("=")[2] + "}}"
        with pytest.raises(InvalidInput, match=words_):
            requests.from_text(text)
        return
    with pytest.raises(InvalidInput, match=words_):
        requests.question(requests.with_settings(unremarkable, [setting]))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"principal": "nobody"}', "[" * 100_000])
def test_written_request_that_is_none_is_refused(text):
    """No JSON, no object, no uid: each is the caller's error, never a crash."""
    with pytest.raises(InvalidInput):
        requests.question(requests.from_text(text))


def test_written_request_may_start_from_a_fixture(authorizer):
    """As a policy test does."""
    text = '{"fixture": "probe", "overrides": {"resource": {"tenant": "other"}}}'
    assert answer(authorizer._snapshot, requests.question(requests.from_text(text))).verdict == "deny"
    with pytest.raises(UnknownName, match="no fixture"):
        requests.from_text('{"fixture": "undone"}')


def test_unknown_action_principal_or_resource_is_named(unremarkable, contracts):
    """With what there is instead."""
    with pytest.raises(UnknownName, match=r"no policy action `partner.reserv`") as caught:
        requests.about(vocabulary(contracts.values()), "partner.reserv")
    assert "partner.reserve.undo" in caught.value.hint
    for bad in ("maya", "Root:maya"):
        with pytest.raises(InvalidInput, match="no principal"):
            requests.with_principal(unremarkable, bad)
    for bad in ("res-1", ":res-1"):
        with pytest.raises(InvalidInput, match="no resource"):
            requests.with_resource(unremarkable, bad)
    for bad in ("time.age", "=3", "a..b=1"):
        with pytest.raises(InvalidInput, match="sets nothing"):
            requests.with_settings(unremarkable, [bad])
