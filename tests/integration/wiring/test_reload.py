"""Policies change under a running engine: a sound bundle is swapped in, a bad one leaves the last good one deciding."""

import json
import threading
from pathlib import Path

import pytest

from amends import Engine
from amends.core.errors import ConfigError, JournalUnavailable
from amends.core.status import ActionStatus
from amends.runtime import policing
from amends.testing.projects import make_project

FORBID = """
@id("site:{name}") @reason("{name} is forbidden here")
forbid (principal is Amends::Agent, action == Shop::Action::"shop.reserve", resource)
when {{ {condition} }};
"""
OPEN, SHUT = FORBID.format(name="none", condition="false"), FORBID.format(name="all", condition="true")
TEST = """[{{"name": "an agent reserves", "expect": {{"outcome": "{outcome}"}}, "given": {{"fixture": "forward",
  "overrides": {{
  "action": {{"type": "Shop::Action", "id": "shop.reserve"}},
  "resource": {{"type": "Shop::Reservation"}}, "input": null}}}}}}]"""


@pytest.fixture
def project(tmp_path, distributions):
    """The path of a project's settings, with the tiny shop and a site bundle."""
    return make_project(tmp_path / "project", extra='\n[policies]\nbundle = "policies"\nshadow = "next"\n')


def write(project, policies, label="1.0.0", folder="policies", **files):
    folder = project.parent / folder
    folder.mkdir(exist_ok=True)
    (folder / "bundle.toml").write_text(f'label = "{label}"\n', encoding="utf-8")
    (folder / "site.cedar").write_text(policies, encoding="utf-8")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


@pytest.fixture
def engine(project):
    """An engine under a bundle that forbids nothing, with a sound one in the shadow."""
    write(project, OPEN)
    write(project, SHUT, "9.0.0-dev", "next")
    with Engine.open(project) as opened:
        yield opened


def told(engine, kind):
    stored = engine.kit.journal.events("system")
    return [json.loads(s.event.payload) for s in stored if s.event.kind == kind]


def reserve(engine, key):
    """One call in a run of its own."""
    with engine.run(workflow="order", run_key=key, agent="coder") as run:
        return run.call("shop.reserve", {"name": key})


def test_a_sound_bundle_decides_from_the_next_call_on(project, engine):
    """In the same process, in the same run; the ledger says since when and what it replaced, with the sources."""
    run = engine.run(workflow="order", run_key="1", agent="coder")
    assert run.call("shop.reserve", {"name": "a"}).ok
    before = engine.kit.authorizer.bundle()
    write(project, SHUT, "1.1.0")
    reloaded = engine.reload_policies()
    assert reloaded.outcome == "activated"
    assert reloaded.version == engine.kit.authorizer.bundle().version != before.version
    assert run.call("shop.reserve", {"name": "b"}).status is ActionStatus.DENIED
    assert [fact["policy_version"].split("@")[0] for fact in told(engine, "bundle_activated")] == ["1.0.0", "1.1.0"]
    assert told(engine, "bundle_activated")[-1]["replaced"] == before.version
    recorded = {fact["effective_digest"]: fact for fact in told(engine, "bundle_recorded")}
    now = recorded[engine.kit.authorizer.bundle().effective_digest]
    assert now["sources"]["site/site.cedar"] == SHUT
    assert now["semantic_digest"].startswith("sha256:")
    run.fail("the end of the test", wait_seconds=5)


def test_what_has_not_changed_is_not_looked_at_again(engine, monkeypatch):
    """A worker asks at every round: it costs a digest of the files."""
    monkeypatch.setattr("amends.backends.policies.examine", lambda _: pytest.fail("examined"))
    before = engine.kit.authorizer.active
    for _ in range(3):
        assert engine.reload_policies().outcome == "unchanged"
    assert engine.kit.authorizer.active is before
    assert len(told(engine, "bundle_activated")) == 1


UNKNOWN_ACTION = OPEN.replace("shop.reserve", "shop.unheard_of")
BAD = {
    "syntax": ({"policies": "forbid (", "label": "1.1.0"}, "site/site.cedar:1"),
    "unknown action": ({"policies": UNKNOWN_ACTION, "label": "1.1.0"}, "policy `site:none`"),
    "no reason": ({"policies": OPEN.replace("@reason", "@why"), "label": "1.1.0"}, "@reason"),
    "same label": ({"policies": SHUT, "label": "1.0.0"}, "label `1.0.0` is known with other sources"),
    "a phase fails": (
        {
            "policies": OPEN.replace("false", "context.run.attempt * 9223372036854775807 > 0").replace(
                'Shop::Action::"shop.reserve"', 'Amends::Action::"selftest.forward"'
            ),
            "label": "1.1.0",
        },
        "no decision is possible in phase `forward`",
    ),
    "no windows": ({"policies": OPEN, "label": "1.1.0", "windows__toml": "[[window]]\n"}, "windows.toml"),
    "a test fails": (
        {"policies": SHUT, "label": "1.1.0", "a__policytest__json": TEST.format(outcome="allow")},
        "test `an agent reserves`",
    ),
    "not UTF-8": ({"policies": OPEN, "label": "1.1.0", "more__cedar": "\ud800"}, "not UTF-8"),
    "too deep": ({"policies": OPEN.replace("false", "(" * 70 + "false" + ")" * 70), "label": "1.1.0"}, "nest"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_candidate_leaves_the_last_good_one_deciding(project, engine, bad, monkeypatch):
    """Calls go on as before; the ledger has the reasons, and what goes on deciding, once."""
    files, words = BAD[bad]
    files = dict(files)
    if bad == "not UTF-8":
        (project.parent / "policies" / "more.cedar").write_bytes(b"\xff\xfe")
        files.pop("more__cedar")
    write(project, **files)
    before = engine.kit.authorizer.bundle().version
    for _ in range(2):
        engine.reload_policies()
    reloaded = engine._wiring.policies.reload(engine.book)
    assert reloaded.outcome == "unchanged"  # the same fault is not examined again
    assert engine.kit.authorizer.bundle().version == reloaded.version == before
    assert reserve(engine, "after").ok
    (fact,) = told(engine, "bundle_rejected")
    assert (fact["role"], fact["kept"]) == ("active", before)
    assert words in " ".join(fact["reasons"])
    assert policing.standing_refusal(engine.kit.journal).policy_version == fact["policy_version"]


def test_a_repaired_candidate_is_taken_up_and_the_refusal_is_over(project, engine):
    """Whether it is repaired or taken back."""
    write(project, "forbid (", "1.1.0")
    assert engine.reload_policies().outcome == "rejected"
    write(project, OPEN)
    assert engine.reload_policies().outcome == "unchanged"
    assert policing.standing_refusal(engine.kit.journal) is None
    write(project, "forbid (", "1.1.0")
    assert engine.reload_policies().outcome == "rejected"
    assert policing.standing_refusal(engine.kit.journal) is not None
    write(project, SHUT, "1.1.0")
    assert engine.reload_policies().outcome == "activated"
    assert policing.standing_refusal(engine.kit.journal) is None
    assert reserve(engine, "after").status is ActionStatus.DENIED


def test_nothing_decides_whose_sources_the_ledger_did_not_take(project, engine, monkeypatch):
    """If the journal does not answer, nothing is swapped, and the next look tries again."""
    write(project, SHUT, "1.1.0")
    before = engine.kit.authorizer.active

    def gone(*_):
        raise JournalUnavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(engine.kit.journal, "commit", gone)
        with pytest.raises(JournalUnavailable):
            engine.reload_policies()
    assert engine.kit.authorizer.active is before
    assert engine.reload_policies().outcome == "activated"


def test_decisions_under_way_end_under_what_they_began_with(project, engine):
    """While bundles are swapped back and forth, each decision is one bundle's: its verdict fits its version."""
    seen, stop = [], threading.Event()

    def decide():
        with engine.run(workflow="order", run_key=threading.current_thread().name, agent="coder") as run:
            for number in range(200):
                if stop.is_set():
                    return
                result = run.call("shop.reserve", {"name": f"{threading.current_thread().name}-{number}"})
                action = run.state.actions[result.action_id]
                seen.append((action.decided.policy_version.split("@")[0], action.decided.verdict))

    threads = [threading.Thread(target=decide, name=f"t{n}") for n in range(2)]
    for thread in threads:
        thread.start()
    for number in range(6):
        write(project, SHUT if number % 2 == 0 else OPEN, f"1.{number + 1}.0")
        assert engine.reload_policies().outcome == "activated"
    stop.set()
    for thread in threads:
        thread.join()
    wanted = {"1.0.0": "allow"} | {f"1.{n + 1}.0": "deny" if n % 2 == 0 else "allow" for n in range(6)}
    assert seen
    assert [(version, verdict) for version, verdict in seen if wanted[version] != verdict] == []


def test_an_engine_does_not_start_under_a_bad_bundle(project, engine):
    """The running one goes on; a new one would have to decide by something else than its site says."""
    write(project, "forbid (", "1.1.0")
    with pytest.raises(ConfigError, match=r"site/site.cedar:1"):
        Engine.open(project)
    assert reserve(engine, "after").ok


def test_a_denied_compensation_goes_on_when_a_sound_bundle_permits_it(project, engine):
    """Rule 22: the reload is what reopens it; nobody has to do anything else."""
    write(
        project,
        OPEN
        + SHUT.replace("site:all", "site:undo").replace(
            'principal is Amends::Agent, action == Shop::Action::"shop.reserve"',
            'principal, action == Shop::Action::"shop.reserve.undo"',
        ),
        "1.1.0",
    )
    engine.reload_policies()
    run = engine.run(workflow="order", run_key="1", agent="coder")
    run.call("shop.reserve", {"name": "a"})
    run.fail("it was told to", wait_seconds=5)
    assert engine.state(run.run_id).run.status.value == "needs_human"
    write(project, OPEN, "1.2.0")
    assert engine.reload_policies().outcome == "activated"
    engine.recover(wait_seconds=5)
    assert engine.state(run.run_id).run.status.value == "recovered"


# --- a desk, and the shadow ------------------------------------------------------------------------------------------


def test_a_desk_says_what_engines_will_do(project, engine):
    """It loads what they would load and decides nothing; the running engine takes it up without saying it again."""
    write(project, SHUT, "1.1.0")
    with Engine.desk(project) as desk:
        assert desk.reload_policies().outcome == "activated"
        assert desk.reload_policies().outcome == "unchanged"
        assert desk.kit.authorizer.bundle().version == "none"
    assert engine.reload_policies().outcome == "activated"
    assert [fact["policy_version"].split("@")[0] for fact in told(engine, "bundle_activated")] == ["1.0.0", "1.1.0"]


def test_a_desk_says_why_a_bundle_is_refused(project, engine):
    """And what goes on deciding."""
    write(project, "forbid (", "1.1.0")
    with Engine.desk(project) as desk:
        reloaded = desk.reload_policies()
    assert (reloaded.outcome, reloaded.version) == ("rejected", engine.kit.authorizer.bundle().version)
    assert "site/site.cedar:1" in reloaded.problems[0]


def test_the_shadow_bundle_is_asked_and_its_sources_are_kept(engine):
    """What it would have answered stands beside the decision, under a version whose sources the ledger has."""
    with engine.run(workflow="order", run_key="1", agent="coder") as run:
        result = run.call("shop.reserve", {"name": "a"})
    assert result.ok
    (note,) = run.state.actions[result.action_id].decided.shadow
    assert (note.of, note.verdict) == ("bundle", "deny")
    assert note.effective_digest in {fact["effective_digest"] for fact in told(engine, "bundle_recorded")}


def test_what_a_shadow_would_have_changed_is_a_query(engine):
    """The one of docs/policies.md."""
    page = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    query = page.partition("```sql\n")[2].partition("```")[0]
    with engine.run(workflow="order", run_key="1", agent="coder") as run:
        for name in ("a", "b"):
            run.call("shop.reserve", {"name": name})
    table = engine.sql(query)
    assert table.rows == (("shop.reserve", "deny", '["all is forbidden here"]', 2),)


def test_a_bad_shadow_prevents_nothing(project, engine):
    """Neither a start nor a reload; it is said, and the one before goes on being asked."""
    write(project, "forbid (", "9.1.0-dev", "next")
    assert engine.reload_policies().outcome == "unchanged"
    (fact,) = told(engine, "bundle_rejected")
    assert (fact["role"], fact["kept"].split("@")[0]) == ("shadow", "9.0.0-dev")
    assert policing.standing_refusal(engine.kit.journal) is None
    with engine.run(workflow="order", run_key="1", agent="coder") as run:
        result = run.call("shop.reserve", {"name": "a"})
    assert run.state.actions[result.action_id].decided.shadow
    with Engine.open(project, mirror=False) as other:
        assert other.kit.authorizer.shadow_bundle() is None
        assert reserve(other, "2").ok


def test_a_shadow_is_taken_up_when_it_changes(project, engine):
    """Like the active bundle, and for less: nothing is decided by it."""
    write(project, OPEN, "9.1.0-dev", "next")
    engine.reload_policies()
    with engine.run(workflow="order", run_key="1", agent="coder") as run:
        result = run.call("shop.reserve", {"name": "a"})
    assert run.state.actions[result.action_id].decided.shadow == ()
    assert engine.kit.authorizer.shadow_bundle().version.startswith("9.1.0-dev@")
