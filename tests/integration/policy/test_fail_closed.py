"""Every way in which raw Cedar lets something through, and every malformed request: each is a deny that says why."""

import threading
from dataclasses import replace

import cedarpy
import pytest

from amends.backends.cedar import authorizer as authorizer_module
from amends.backends.cedar import native, selftest, tree
from amends.backends.cedar.answer import answer
from amends.core.errors import ConfigError, InternalError
from amends.ports.authorizer import ApprovalFacts, Principal

SECRET = "4711-very-secret"

FAILING_FORBID = """
@id("overflows") @reason("this condition overflows")
forbid (principal, action in Amends::Action::"phase.forward", resource)
when { context.run.attempt * 3074457345618258602 < 0 };
"""  # from the fourth attempt on


def test_forbid_that_fails_denies(load, site, ask):
    """Raw Cedar skips a forbid that overflows and allows; here the error itself denies and names the policy."""
    authorizer = load(site_bundle=site(FAILING_FORBID))
    request = ask()
    decision = authorizer.decide(replace(request, run={**request.run, "attempt": 4}))
    assert (decision.verdict, decision.code, decision.policy_ids) == ("deny", "policy_error", ("overflows",))
    assert decision.reasons == ("`overflows` could not be evaluated",)


def test_raw_cedar_really_allows_that(load, site, ask):
    """The control: with the same policies and facts, plain Cedar says allow."""
    authorizer = load(site_bundle=site(FAILING_FORBID))
    request = ask()
    question = authorizer._question(replace(request, run={**request.run, "attempt": 4}), authorizer.active)
    cut = authorizer._snapshot.slice(question.action_key)
    entities = native.parse_entities(question.entities, authorizer._snapshot.schema)
    request = {**question.uids, "context": question.context}
    assert cedarpy.is_authorized(request, cut.handle, entities, authorizer._snapshot.schema).allowed


def test_condition_that_can_only_fail_is_refused_at_load(load, site):
    """`in` on a String drops the forbid at run time; strict validation refuses it before."""
    bad = """@id("bad") @reason("x") forbid (principal, action in Amends::Action::"phase.forward", resource)
    when { context.run.workflow in ["a", "b"] };"""
    with pytest.raises(ConfigError, match=r"site/site.cedar:1: policy `bad`"):
        load(site_bundle=site(bad))


def test_small_stack_of_the_caller_does_not_matter(load, site, ask):
    """A caller on a 128 KiB stack, on which raw Cedar would skip the forbid, still gets the deny."""
    deep = " && ".join("(context.run.attempt > 0 || context.run.attempt < 0)" for _ in range(20))
    forbid = f"""@id("deep") @reason("x") forbid (principal, action in Amends::Action::"phase.forward", resource)
    when {{ {deep} }};"""
    authorizer = load(site_bundle=site(forbid))
    found = []
    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(authorizer.decide(ask())))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert [(d.verdict, d.code, d.policy_ids) for d in found] == [("deny", "forbidden", ("deep",))]


def test_action_groups_are_always_there(load, site, ask):
    """Entities parsed without the schema have no groups, so a group-wide forbid would never match; here it does."""
    forbid = '@id("freeze") @reason("frozen") forbid (principal, action in Amends::Action::"phase.forward", resource);'
    assert load(site_bundle=site(forbid)).decide(ask()).policy_ids == ("freeze",)


@pytest.mark.parametrize(
    "value",
    [
        {"__extn": {"fn": "unknown", "arg": SECRET}},
        {"__entity": {"type": "Amends::Human", "id": SECRET}},
        {"__expr": SECRET},
        None,
        1.5,
        True,
        ["a", 1],
        {"a": SECRET},
    ],
    ids=["extn", "entity", "expr", "null", "float", "bool", "mixed list", "record"],
)
@pytest.mark.parametrize("name", ["item", "tags"])
def test_input_is_only_what_was_declared(load, ask, name, value):
    """Reserved keys, nulls, floats and structures in `input` are refused before Cedar sees them, value unsaid."""
    request = ask()
    decision = load().decide(replace(request, input={**request.input, name: value}))
    assert (decision.verdict, decision.code) == ("deny", "request_rejected")
    assert f"`input.{name}`" in decision.reasons[0]
    assert SECRET not in decision.model_dump_json()


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, "3", 3.0, None, True])
def test_long_input_must_fit(load, ask, value):
    """A Long is an integer of 64 bits and nothing that looks like one."""
    request = ask()
    decision = load().decide(replace(request, input={**request.input, "quantity": value}))
    assert (decision.verdict, decision.code) == ("deny", "request_rejected")


def _without(facts, name):
    return {key: value for key, value in facts.items() if key != name}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: {"action": "partner.unheard_of"}, "does not exist"),
        (lambda r: {"phase": "undo"}, "is an action of phase `forward`"),
        (lambda r: {"resource_type": "order"}, "does not apply"),
        (lambda r: {"principal": Principal("Service", "recovery", "acme")}, "never acts in phase `forward`"),
        (lambda r: {"principal": Principal("Root", "x", "acme")}, "never acts"),
        (lambda r: {"input": _without(r.input, "item")}, "input `item` is declared"),
        (lambda r: {"input": {**r.input, "more": 1}}, "input `more` is not declared"),
        (lambda r: {"run": _without(r.run, "attempt")}, "`run.attempt` is not a Long"),
        (lambda r: {"run": {**r.run, "success_verified": "yes"}}, "`run.success_verified` is not a Bool"),
        (lambda r: {"evidence": {"complete": 1}}, "`evidence.complete` is not a Bool"),
        (lambda r: {"evidence": {"complete": True, "missing": "all"}}, "`evidence.missing`"),
        (lambda r: {"contract_facts": {"reversibility": "perhaps"}}, "does not fit"),
        (lambda r: {"now_us": 10**30}, "out of range"),
        (lambda r: {"approval": ApprovalFacts((), (), 1, 0, 10**16)}, "names no approver"),
        (lambda r: {"resource_id": "\ud800"}, "does not fit"),
    ],
)
def test_malformed_request_is_denied_in_words(load, ask, change, words):
    """Each malformed fact is a deny with a code and a sentence that names the field."""
    request = ask()
    decision = load().decide(replace(request, **change(request)))
    assert (decision.verdict, decision.code) == ("deny", "request_rejected")
    assert words in decision.reasons[0]


def test_undo_without_forward_facts_is_denied(load, ask):
    """An undo without the facts of the call it takes back is refused; a status that is no outcome, too."""
    authorizer = load()
    assert authorizer.decide(ask(phase="undo", forward=None)).code == "request_rejected"
    wrong = ask(phase="undo", forward={"status": "compensating", "principal": "bot"})
    assert "`forward.status` is no outcome" in authorizer.decide(wrong).reasons[0]


def test_defect_of_ours_denies(load, ask, monkeypatch):
    """If the engine itself fails, the answer is a deny that names the kind of failure and nothing else."""
    authorizer = load()

    def broken(*_):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(authorizer_module, "answer", broken)
    decision = authorizer.decide(ask())
    assert (decision.verdict, decision.code) == ("deny", "engine_error")
    assert decision.reasons == ("the policy engine failed (RuntimeError)",)


def test_a_panic_of_the_policy_engine_denies(load, ask, monkeypatch):
    """A panic in Rust reaches Python as a `BaseException`: it is a denial like any other defect, without its words."""
    authorizer = load()

    def panics(*_):
        raise type("PanicException", (BaseException,), {})(SECRET)

    monkeypatch.setattr(native, "_is_authorized", panics)
    decision = authorizer.decide(ask())
    assert (decision.verdict, decision.code) == ("deny", "engine_error")
    assert decision.reasons == ("the policy engine failed (Crashed)",)


def test_allow_that_no_policy_determined_denies(load, ask, monkeypatch):
    """An allow with empty reasons, which a partial evaluation can produce, is not believed."""
    authorizer = load()
    monkeypatch.setattr(native, "evaluate", lambda *_: native.RawAnswer(allowed=True, rejected=False))
    assert authorizer.decide(ask()).code == "no_determining_policy"


def test_start_is_refused_if_a_failing_forbid_would_allow(load, monkeypatch):
    """The self-test at start-up catches an engine that lets errors through."""
    authorizer_module._compiled_once.cache_clear()  # what this process compiled while the engine was sound
    real = native.evaluate
    monkeypatch.setattr(native, "evaluate", lambda *args: replace(real(*args), errors=0, errored=()))
    with pytest.raises(InternalError, match="did not deny"):
        load()


def test_start_is_refused_if_a_phase_cannot_be_asked(load, site):
    """A site forbid that always fails to evaluate is found when it is loaded, not when it is needed."""
    bad = """@id("bad") @reason("x") forbid (principal, action in Amends::Action::"phase.undo", resource)
    when { context.run.attempt * 9223372036854775807 > 0 };"""
    with pytest.raises(ConfigError, match="`bad` could not be evaluated"):
        load(site_bundle=site(bad))


def test_self_test_asks_every_phase(load):
    """The loaded snapshot answers all five self-test questions without an error."""
    snapshot = load()._snapshot
    codes = {phase: answer(snapshot, selftest.question(phase)).code for phase in selftest.PHASES}
    assert codes == {"forward": "no_permit", "probe": "", "undo": "no_permit", "release": "no_permit", "correct": ""}


def test_forked_child_gets_an_answer(load, ask):
    """A child process made by fork does not hang on its parent's thread."""
    authorizer = load()
    authorizer._worker._pid = -1  # what a child sees: another process id than the thread's
    assert authorizer.decide(ask()).verdict == "allow"


def test_names_of_failed_policies_are_read_from_engine_errors():
    """The only thing taken from cedarpy's error texts is the policy's id: pinned for each engine upgrade."""
    schema = native.parse_schema(
        "entity U; action a appliesTo { principal: [U], resource: [U], context: { n: Long } };"
    )
    policies, _ = tree.parse(
        '@id("p:x") @reason("r") permit (principal, action, resource) when { context.n + 1 > 0 };', "f"
    )
    uid = {"type": "U", "id": "u"}
    raw = native.evaluate(
        {"principal": uid, "action": {"type": "Action", "id": "a"}, "resource": uid},
        {"n": 2**63 - 1},
        native.build(policy.template for policy in policies),
        native.parse_entities([], schema),
        schema,
    )
    assert (raw.allowed, raw.errors, raw.errored) == (False, 1, ("p:x",))
