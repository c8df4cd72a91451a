"""`amends inject --run`: a recorded run on the sandbox."""

import json
from pathlib import Path

import pytest

from amends import Engine


def puts(name):
    """What a drawer was sent by calls."""
    lines = [json.loads(line) for line in Path(f"{name}/drawer/log").read_text().splitlines()]
    return [(line["args"]["name"], line["args"]["beside"], line["key"]) for line in lines if line["what"] == "put"]


@pytest.fixture
def two_puts(drawer, recorded):
    """A committed run: a spoon, and a fork beside it, named by the spoon's reference."""
    drawer()
    spoon, _ = recorded(
        ("drawer.put", {"name": "spoon"}),
        lambda results: ("drawer.put", {"name": "fork", "beside": results[0].reference}),
    )
    return spoon


@pytest.mark.crash
def test_a_recorded_run_meets_the_faults_on_the_sandbox(inject, two_puts, monkeypatch):
    """Its secret references are resolved there, and an argument that was an earlier output is the new one."""
    monkeypatch.setenv("DRAWER_KEY", "the-sandbox-key")
    told = inject("", "--run", "orders/o-1", "--json", "--fault", "crash@put_2")
    assert told.verdicts() == {
        ("none", "", ""): "held",
        ("crash", "put_2", "before_call"): "held",
        ("crash", "put_2", "after_call"): "held",
    }
    assert puts("production") == [("spoon", "", "open-sesame"), ("fork", two_puts.reference, "open-sesame")]
    spoons = {beside for name, beside, _ in puts("staging") if name == "fork"}
    assert len(spoons) == 1
    assert two_puts.reference not in spoons
    assert [name for name, _, _ in puts("staging")] == ["spoon", "fork", "spoon", "spoon", "fork"]
    assert {key for _, _, key in puts("staging")} == {"the-sandbox-key"}


def test_redacted_arguments_are_said_before_anything_is_sent(inject, drawer, recorded):
    """A value that nobody has cannot be sent again; a workflow file with a reference can."""
    drawer()
    recorded(("drawer.put", {"name": "spoon"}), ("drawer.put", {"name": "fork", "beside": "the «redacted» one"}))
    told = inject("", "--run", "orders/o-1", code=2)
    assert "`drawer.put`: `beside` was redacted" in told.err
    assert "workflow file" in told.err
    assert not Path("staging/drawer/log").exists()


def test_a_text_that_looks_like_a_placeholder_is_sent_as_it_was(inject, drawer, recorded):
    """A recorded run's arguments are data."""
    drawer()
    recorded(("drawer.put", {"name": "spoon", "beside": "${world} and ${more}"}))
    inject("", "--run", "orders/o-1", "--fault", "lost_answer")
    assert {beside for _, beside, _ in puts("staging")} == {"${world} and ${more}"}


def test_an_unknown_run_is_not_found(inject, drawer, recorded):
    """By id and by name."""
    drawer()
    recorded(("drawer.put", {"name": "spoon"}))
    for name in ("orders/o-2", "nobody"):
        assert "`amends runs list` shows them" in inject("", "--run", name, code=3).err


def test_a_file_and_a_run_at_once_are_a_usage_error(inject):
    """One of them, and neither is as wrong."""
    assert "not both" in inject("", code=2).err


def test_a_recorded_yes_is_given_again(inject, project, drawer, tmp_path):
    """By the person who gave it, so that the replay gets as far as the run did."""
    drawer()
    bundle = tmp_path / "asking"
    bundle.mkdir()
    (bundle / "bundle.toml").write_text('label = "2.0.0"\n')
    (bundle / "site.cedar").write_text(
        '@id("site:ask") @reason("operations say yes first")\n'
        'forbid (principal, action == Drawer::Action::"drawer.put", resource)\n'
        "unless { context has approval && context.approval.tier >= 1 };\n"
    )
    settings = Path("amends.toml")
    settings.write_text(settings.read_text() + f"\n[policies]\nbundle = {json.dumps(str(bundle))}\n")
    with Engine.open(project, mirror=False) as engine:
        run = engine.run(workflow="orders", run_key="o-1", agent="butler", initiator="noah")
        engine.approve(run.call("drawer.put", {"name": "spoon"}).approval_id, by="maya")
        run.call("drawer.put", {"name": "spoon"})
        run.finish()
    told = inject("", "--run", "orders/o-1", "--json", "--fault", "lost_answer")
    assert set(told.verdicts().values()) == {"held"}
    assert puts("staging") == [("spoon", "", "open-sesame")] * 2
