"""The README's snippets that are no page of their own: the policy, the adapter's skeleton, the question in SQL.

Its Python example runs with the pages (test_pages.py), its commands are looked up in test_commands.py.
"""

import inspect
import re
from pathlib import Path

import pytest

from amends import Engine
from amends.spi import Capability
from amends.testing.loopback import LoopbackSystem

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = re.search(
    r"^```toml file=amends.toml\n(.*?)^```",
    (ROOT / "docs/python.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)[1]


def block(language, heading):
    """The first block of a language under a heading."""
    part = README.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.search(rf"^```{language}[^\n]*\n(.*?)^```", part, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def partner(monkeypatch):
    monkeypatch.setenv("PARTNER_TOKEN", "partner-token")
    with LoopbackSystem.start("partner") as system:
        yield system


@pytest.fixture
def engine(tmp_path, partner):
    """An engine whose site bundle is the README's policy."""
    text = PROJECT.replace("https://api.partner.example", partner.url) + '[policies]\nbundle = "site"\n'
    (tmp_path / "amends.toml").write_text(text, encoding="utf-8")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/bundle.toml").write_text('label = "1.0.0"\n', encoding="utf-8")
    (tmp_path / "site/site.cedar").write_text(block("cedar", "Write a policy"), encoding="utf-8")
    with Engine.open(tmp_path) as engine:
        yield engine


def dead_run(engine):
    """A run that queued an adjustment and failed."""
    run = engine.run(workflow="order-exception", run_key="ORD-1", agent="fulfilment-bot")
    run.call("partner.queue_adjustment", {"order": "ORD-1", "amount_minor": -500, "currency": "EUR"})
    return run.fail("the customer cancelled")


def test_the_policy_asks_finance(engine, partner):
    """The void waits for a yes of finance, and happens after it."""
    dead_run(engine)
    (asked,) = engine.approvals()
    assert (asked.roles, asked.reasons) == (("finance",), ("voiding a payment adjustment needs a yes from finance",))
    assert partner.count("adjustment") == 1
    engine.approve(asked.approval_id, by="maya")
    (state,) = engine.recover(wait_seconds=10)
    assert state.run.status == "recovered"
    assert partner.count("adjustment") == 0


def test_the_questions_in_sql_are_answered(engine):
    """Each statement of each `amends sql` command."""
    dead_run(engine)
    asked = re.findall(r'^amends sql "(.*)"', README, re.MULTILINE)
    assert asked
    assert [bool(engine.sql(statement).rows) for statement in asked] == [True] * len(asked)


def test_the_adapter_has_the_shape_of_a_capability():
    """The skeleton's methods take and return what the engine passes."""
    names = {}
    exec(block("python", "Write an adapter"), names)
    shown = names["CreateBranch"]
    assert issubclass(shown, Capability)
    assert not inspect.isabstract(shown)
    for method in ("do", "probe", "undo"):
        mine, real = (inspect.signature(getattr(kind, method)) for kind in (shown, Capability))
        assert list(mine.parameters) == list(real.parameters)
