"""The fakes keep the promises that tests lean on."""

from uuid import UUID

import pytest

from amends.core.errors import ConfigError, JournalUnavailable
from amends.ports.authorizer import ApprovalFacts, AuthorizationRequest, Principal
from amends.ports.journal import Commit, Committed, EventRecord, seal
from amends.testing.fakes import (
    DENY,
    FakeAuthorizer,
    FakeOwners,
    RecordingNotifier,
    SequentialIds,
    SimClock,
    StaticSecrets,
    needs_approval,
)
from amends.testing.memory_journal import MemoryJournal


def question(action, approval=None):
    """A request as the runtime asks it; the fake looks at action and approval alone."""
    return AuthorizationRequest(
        decision_id="d-1",
        phase="forward",
        action=action,
        contract=None,
        principal=Principal("Agent", "coder", "acme"),
        resource_type="branch",
        resource_id="repo/x",
        tenant="acme",
        environment="staging",
        now_us=1,
        age_us=0,
        run={},
        evidence={},
        contract_facts={},
        approval=approval,
    )


def test_simulated_time_moves_only_when_told():
    """Sleeping advances both times; setting the wall clock leaves the steady one alone."""
    clock = SimClock()
    wall, steady = clock.now_us(), clock.monotonic()
    clock.sleep(1.5)
    assert (clock.now_us() - wall, clock.monotonic() - steady) == (1_500_000, 1.5)
    clock.jump_to(wall)
    assert (clock.now_us(), clock.monotonic() - steady) == (wall, 1.5)


def test_sequential_ids_sort_and_are_uuids():
    """They look like real ids, grow across all carries, and nodes never meet."""
    ids, others = SequentialIds(), SequentialIds(node=1)
    made = [ids.new() for _ in range(70_000)]
    assert made == sorted(set(made))
    assert UUID(made[-1]).version == 7
    assert others.new() not in made


def test_owners_die_when_the_test_says_so():
    """Only who was put into `dead` is dead."""
    owners, other = FakeOwners(), FakeOwners("owner-2").me()
    assert not owners.proven_dead(other)
    owners.dead.add("owner-2")
    assert owners.proven_dead(other)


def test_secrets_reveal_what_was_resolved():
    """And name a reference that nobody gave."""
    secrets = StaticSecrets({"env:A": "one", "env:B": "two"})
    assert secrets.resolve("env:A") == "one"
    assert secrets.revealed() == {"one"}
    with pytest.raises(ConfigError, match="`env:C`"):
        secrets.resolve("env:C")


def test_a_notifier_can_be_made_to_fail():
    """Delivered unless a failure is set; what was asked is kept either way."""
    notifier = RecordingNotifier()
    assert notifier.deliver("notice").delivered
    notifier.failure = "pager is down"
    assert not notifier.deliver("again").delivered
    assert len(notifier.notices) == 2


def test_rules_decide_by_action_and_the_rest_is_allowed():
    """First matching pattern rules; an approval of the asked tier turns a question into an allow."""
    authorizer = FakeAuthorizer({"git.*": DENY, "*.undo": needs_approval(2, "lead")})
    assert authorizer.decide(question("jira.comment")).allowed
    assert authorizer.decide(question("git.undo")).verdict == "deny"
    asked = authorizer.decide(question("jira.comment.undo"))
    assert (asked.verdict, asked.tier, asked.roles) == ("needs_approval", 2, ("lead",))
    low, high = (ApprovalFacts(("maya",), ("lead",), tier, 1, 9) for tier in (1, 2))
    assert authorizer.decide(question("jira.comment.undo", low)).verdict == "needs_approval"
    assert authorizer.decide(question("jira.comment.undo", high)).allowed
    authorizer.rules = {}
    authorizer.version = "fake@sha256:2"
    assert authorizer.decide(question("git.push")).policy_version == authorizer.bundle().version == "fake@sha256:2"
    assert len(authorizer.requests) == 6


def test_the_memory_journal_can_fail_before_and_after():
    """Gone: nothing is stored. Answer lost: it is stored, and found again by the moved head."""
    columns = dict.fromkeys(EventRecord.__slots__, "")
    numbers = {"ts_us": 1, "run_seq": 1, "generation": 1, "attempt": 0, "epoch": 1}
    command = Commit("r", 0, [seal(EventRecord(**{**columns, **numbers, "event_id": "e", "run_id": "r"}))])
    journal = MemoryJournal()
    journal.fails_before = JournalUnavailable("gone")
    with pytest.raises(JournalUnavailable):
        journal.commit(command)
    journal.fails_before, journal.fails_after = None, JournalUnavailable("answer lost")
    assert journal.events("r") == ()
    with pytest.raises(JournalUnavailable):
        journal.commit(command)
    journal.fails_after = None
    assert len(journal.events("r")) == 1
    assert not isinstance(journal.commit(command), Committed)
