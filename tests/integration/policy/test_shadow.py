"""Shadows: asked beside the active policies, noted where they differ, and never heard."""

from dataclasses import replace

import pytest

from amends.backends.cedar import rederive, shadowing
from amends.backends.cedar.answer import answer
from amends.testing.worlds import keyed

FORBIDS = """@id("site:trial") @reason("no reservation at all") {annotation}
forbid (principal, action == Partner::Action::"partner.reserve", resource);"""
PERMITS = """@id("site:trial") @reason("everybody reserves anything") @shadow
permit (principal, action == Partner::Action::"partner.reserve", resource);"""
FAILS = """@id("site:trial") @reason("overflows from the fourth attempt on") @shadow
forbid (principal, action == Partner::Action::"partner.reserve", resource)
when { context.run.attempt * 3074457345618258602 < 0 };"""
SHUT = """
[[window]]
name = "shut"
time_zone = "UTC"
"""
WHILE_SHUT = """@id("site:shut") @reason("closed")
forbid (principal, action == Partner::Action::"partner.reserve", resource)
when { context.time.windows.contains("shut") && context.run.policy_version != "baseline" };
"""


def large(ask):
    request = ask()
    return replace(request, input={**request.input, "quantity": 30})


def test_a_shadow_forbid_forbids_nothing_and_is_noted(load, site, ask):
    """The answer is what it is without the policy; the note names it, with its reason and the version."""
    authorizer = load(site_bundle=site(FORBIDS.format(annotation="@shadow")))
    decision = authorizer.decide(ask())
    assert (decision.verdict, decision.policy_ids) == ("allow", ("partner:reserve",))
    (note,) = decision.shadow
    assert (note.of, note.verdict, note.policy_ids) == ("policies", "deny", ("site:trial",))
    assert note.reasons == ("no reservation at all",)
    assert note.policy_version == decision.policy_version
    control = load(site_bundle=site(FORBIDS.format(annotation="")))
    assert control.decide(ask()).verdict == "deny"


def test_a_shadow_permit_permits_nothing(load, site, ask):
    """Nor does it lower what is asked of people."""
    decision = load(site_bundle=site(PERMITS)).decide(large(ask))
    assert (decision.verdict, decision.roles) == ("needs_approval", ("operations",))
    assert [note.verdict for note in decision.shadow] == ["allow"]


def test_agreement_is_not_noted(load, site, ask):
    """The ledger grows by differences only."""
    authorizer = load(site_bundle=site(PERMITS))
    assert authorizer.decide(ask()).shadow == ()
    assert authorizer.decide(ask(tenant="other")).shadow == ()


def test_a_shadow_that_fails_is_a_note(load, site, ask, monkeypatch):
    """An evaluation error, and a defect of ours: the answer stands."""
    authorizer = load(site_bundle=site(FAILS))
    fourth = ask(run={**ask().run, "attempt": 4})
    decision = authorizer.decide(fourth)
    assert decision.allowed
    assert [(note.verdict, note.code) for note in decision.shadow] == [("deny", "policy_error")]
    monkeypatch.setattr(shadowing, "answer", lambda *_: 1 / 0)
    decision = authorizer.decide(ask())
    assert decision.allowed
    assert [note.code for note in decision.shadow] == ["engine_error"]
    assert decision.shadow[0].reasons == ("the shadow failed (ZeroDivisionError)",)


@pytest.fixture
def with_candidate(load, site, tmp_path):
    """The active policies without a site, and a site bundle beside them."""

    def made(policies, **files):
        authorizer = load()
        authorizer.shadow_with(load(site_bundle=site(policies, label="9.0.0-dev", **files)))
        return authorizer

    return made


def test_a_whole_bundle_is_asked_beside(with_candidate, ask):
    """Its answer is noted under its own version."""
    authorizer = with_candidate(FORBIDS.format(annotation=""))
    decision = authorizer.decide(ask())
    assert decision.allowed
    (note,) = decision.shadow
    assert (note.of, note.verdict, note.policy_ids) == ("bundle", "deny", ("site:trial",))
    assert note.policy_version.startswith("9.0.0-dev@")
    assert note.effective_digest == authorizer.shadow_bundle().effective_digest != decision.effective_digest
    assert authorizer.bundle().version == decision.policy_version


def test_a_whole_bundle_has_its_own_windows_and_version(with_candidate, ask):
    """It is asked as if it were active: what is open by its calendar, and whether the policies changed since."""
    decision = with_candidate(WHILE_SHUT, windows__toml=SHUT).decide(ask())
    assert decision.allowed
    assert decision.context["time"]["windows"] == ["office_hours_utc", "weekdays_utc"]
    assert [note.policy_ids for note in decision.shadow] == [("site:shut",)]


def test_a_bundle_in_the_shadow_can_be_taken_away_and_outlives_a_reload(with_candidate, load, ask):
    """Reloading the active policies changes nothing about it."""
    authorizer = with_candidate(FORBIDS.format(annotation=""))
    authorizer.adopt(load())
    assert authorizer.decide(ask()).shadow
    authorizer.shadow_with(None)
    assert authorizer.decide(ask()).shadow == ()
    assert authorizer.shadow_bundle() is None


def test_no_shadow_ever_changes_an_answer(load, site, ask, contracts):
    """Over phases, tenants, ages and quantities: with and without shadows, the same decision but for the note."""
    plain = load(site_bundle=site('@id("site:idle") @reason("x") forbid (principal, action, resource) when { false };'))
    shadowed = load(
        site_bundle=site(
            PERMITS.replace("partner.reserve", "partner.reserve.undo")
            + FORBIDS.format(annotation="@shadow").replace("site:trial", "site:trial-2")
        )
    )
    shadowed.shadow_with(load(site_bundle=site(FORBIDS.format(annotation=""), label="9.0.0-dev")))
    noted = 0
    for phase in ("forward", "probe", "undo"):
        for tenant in ("acme", "other"):
            for quantity in (3, 30):
                for hours in (0.5, 3, 9):
                    request = ask(phase=phase, tenant=tenant, age_us=int(hours * 3_600_000_000))
                    request = replace(request, input={**request.input, "quantity": quantity})
                    one, other = plain.decide(request), shadowed.decide(request)
                    noted += bool(other.shadow)
                    same = ("verdict", "tier", "approvers", "roles", "policy_ids", "code", "reasons")
                    assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
    assert noted == 8


def test_a_noted_decision_is_derived_again_without_its_shadow(load, site, ask):
    """What decided is in the sources; the note stays as it was recorded."""
    authorizer = load(site_bundle=site(FORBIDS.format(annotation="@shadow")))
    decision = authorizer.decide(ask())
    assert rederive(decision, authorizer.bundle()) == decision


def test_notes_are_recorded_with_the_decision(cedar_world):
    """In the ledger, on the action, in the very commit of the decision."""
    world = cedar_world(
        keyed("shop.reserve"),
        site="""@id("site:trial") @reason("agents stop reserving next month") @shadow
        forbid (principal, action == Shop::Action::"shop.reserve", resource);""",
    )
    with world.run() as run:
        assert run.call("shop.reserve", {"name": "o-1"}).status.value == "succeeded"
    (action,) = run.state.actions.values()
    assert [note.policy_ids for note in action.decided.shadow] == [("site:trial",)]
    payloads = [s.event.payload for s in world.journal.events(run.run_id) if s.event.kind == "decision_recorded"]
    assert any("agents stop reserving next month" in payload for payload in payloads)


def test_unsliced_and_sliced_shadows_agree(load, site, ask):
    """The shadow is cut like the active policies."""
    authorizer = load(site_bundle=site(PERMITS))
    (shadow,) = authorizer.active.shadows
    question = authorizer._question(large(ask), authorizer.active)
    assert answer(shadow.snapshot, question) == answer(shadow.snapshot, question, sliced=False)
