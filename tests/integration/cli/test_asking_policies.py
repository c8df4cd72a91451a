"""What an approver reads in `amends inbox`: the words of the policy that asks, who may answer, until when."""

import pytest

from amends import Engine

RULE = """@id("site:reserve") @reason("the last lamps are kept for regular customers")
@gate("Is this a regular customer?") @approver_role("sales") @ttl("30m")
forbid (principal is Amends::Agent, action == Shop::Action::"shop.reserve", resource)
unless { context has approval && context.approval.tier >= 2 && context.approval.count >= 2 };
"""


@pytest.fixture
def asked(project):
    """A call that waits for two people, because of a site's policy."""
    with project.open("a", encoding="utf-8") as file:
        file.write('\n[policies]\nbundle = "policies"\n\n[people.olga]\ntier = 3\n')
    folder = project.parent / "policies"
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
    (folder / "site.cedar").write_text(RULE, encoding="utf-8")
    with Engine.open(project) as engine:
        run = engine.run(workflow="order", run_key="1", agent="coder", initiator="sam")
        run.call("shop.reserve", {"name": "lamp"})
        (row,) = engine.approvals()
        yield row, run
        run.fail("the end of the test", wait_seconds=5)


def test_the_words_of_the_asking_policy_are_shown(amends, asked):
    """Reason, question, whom to ask, who may, until when; and who has said yes so far."""
    row, _ = asked
    assert "tier 2, 2 people" in amends("inbox", "list").out
    shown = amends("inbox", "show", row.approval_id).out
    for words in (
        "the last lamps are kept for regular customers",
        "Is this a regular customer?",
        "sales",
        "tier 2, 2 people",
        "nobody yet",
    ):
        assert words in shown
    assert round((row.expires_us - row.asked_us) / 60_000_000) == 30
    amends("inbox", "approve", row.approval_id, "--by", "maya")
    assert "maya" in amends("inbox", "show", row.approval_id).out


def test_two_people_say_yes_at_the_command_line(amends, asked):
    """One yes of two leaves the question open; a lower tier, and the same person again, are refused."""
    row, run = asked
    amends("inbox", "approve", row.approval_id, "--by", "maya")
    amends("inbox", "approve", row.approval_id, "--by", "maya", code=5)
    told = amends("inbox", "approve", row.approval_id, "--by", "noah", code=2)
    assert "it takes tier 2, 2 people" in told.err
    assert run.call("shop.reserve", {"name": "lamp"}).status.value == "awaiting_approval"
    amends("inbox", "approve", row.approval_id, "--by", "olga")
    assert run.call("shop.reserve", {"name": "lamp"}).ok
