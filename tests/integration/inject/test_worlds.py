"""`amends inject`: a user's workflow on their sandbox, a fault in each world, and what is left."""

import hashlib
import json
from pathlib import Path

import pytest

RESERVE = """
workflow = "orders"
agent = "order-agent"

[values]
sku = "kettle"

[[script]]
call = "partner.reserve_inventory"
as = "reserve"
args = { order = "o-${world}", sku = "${values.sku}", quantity = 2 }
"""
PUT = """
workflow = "tidying"
agent = "butler"

[[script]]
call = "drawer.put"
as = "spoon"
args = { name = "spoon-${world}" }
"""


def log_of(folder):
    """What a drawer was sent."""
    path = folder / "log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def things(folder):
    """What is in a drawer."""
    return [path.name for path in folder.glob("thing-*")]


def bundle(folder, policy):
    """A site bundle with one policy of its own."""
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "2.0.0"\n')
    (folder / "site.cedar").write_text(policy)
    return folder


@pytest.mark.crash
def test_a_workflow_that_survives_everything(inject, staging, production):
    """Every world is taken back, each fault is seen to happen, and nothing reaches production."""
    told = inject(RESERVE, "--json", "--fault", "lost_answer", "--fault", "late_answer", "--fault", "crash")
    assert told.verdicts() == {
        ("none", "", ""): "held",
        ("lost_answer", "reserve", ""): "held",
        ("late_answer", "reserve", ""): "held",
        ("crash", "reserve", "before_call"): "held",
        ("crash", "reserve", "after_call"): "held",
    }
    assert {world["run_status"] for world in told.json["worlds"]} == {"recovered"}
    assert staging.count("reservation", "removed") == 4  # all but the one whose process died before the send
    assert staging.count("reservation") == 0
    assert told.json["left_on_the_sandbox"] == []
    assert production.requests() == []


def test_each_world_is_told_as_it_ends(inject, drawer):
    """On standard error, so that whoever waits sees how far it is."""
    drawer()
    told = inject(PUT, "--fault", "lost_answer")
    assert told.err.splitlines() == ["[1/2] no fault: held", "[2/2] lost_answer@spoon: held"]
    assert told.out.splitlines()[0].split() == ["fault", "verdict", "run", "left", "duplicates"]
    assert told.out.splitlines()[2].split() == ["lost_answer@spoon", "held", "recovered", "-", "0"]


def test_an_adapter_that_overstates_its_undo_is_caught(inject, drawer):
    """The ledger believes its verification; the look through fresh adapters does not."""
    folder = drawer(lies=True)
    told = inject(PUT, "--json", "--fault", "lost_answer", code=1)
    assert told.json["verdict"] == "left"
    effect = told.world("none")["effects"][0]
    assert (effect["status"], effect["seen"], effect["standing"]) == ("compensated", "applied", "left")
    assert effect["who"] == "the adapter's author"
    assert len(things(folder)) == len(told.json["left_on_the_sandbox"]) == 2


def test_a_rejected_undo_waits_for_a_person(inject, drawer):
    """With who must act and how; afterwards recovery takes back what the world had left."""
    folder = drawer()
    told = inject(PUT, "--json", "--fault", "undo_rejected", code=6)
    world = told.world("undo_rejected")
    assert (world["verdict"], world["run_status"]) == ("waits", "needs_human")
    (effect,) = world["effects"]
    assert (effect["status"], effect["seen"]) == ("needs_human", "applied")
    assert effect["who"] == "maya (queue recovery)"
    assert effect["how"].startswith("undo_failed: undo it by hand")
    assert things(folder) == []
    assert told.json["left_on_the_sandbox"] == []


def test_the_next_rung_survives_a_rejected_undo(inject, drawer):
    """The first inverse is rejected each time; the ladder's second one takes the effect back."""
    folder = drawer(rungs=["take_out", "throw_away"])
    inject(PUT, "--fault", "undo_rejected")
    assert [line["what"] for line in log_of(folder)] == ["put", "take_out", "put", "throw_away"]


def test_a_fault_that_cannot_happen_is_no_success(inject, staging):
    """What was so before is not taken back, so its undo cannot be rejected; the others of the workflow are."""
    staging.foreign("PUT", "/v1/orders/o-1/carrier-instructions", {"address": {"line1": "Dock 3"}}, account="acct_main")
    flow = RESERVE + (
        "\n[[script]]\ncall = 'partner.set_carrier_instructions'\nas = 'carrier'\n"
        "args = { order = 'o-1', address = { line1 = 'Dock 3' } }\n"
    )
    told = inject(flow, "--json", "--fault", "undo_rejected@carrier", code=1)
    world = told.world("undo_rejected")
    assert world["verdict"] == "did_not_fire"
    assert world["run_status"] == "recovered"


def test_a_changed_bundle_says_who_could_approve(inject, drawer, tmp_path):
    """The run was made under one bundle and is taken back under another, which asks a person first."""
    drawer()
    candidate = bundle(
        tmp_path / "candidate",
        '@id("site:ask") @reason("operations say yes first")\n'
        'forbid (principal, action == Drawer::Action::"drawer.put.undo", resource)\n'
        "unless { context has approval && context.approval.tier >= 2 };\n",
    )
    told = inject(PUT, "--json", "--fault", "bundle_changed", "--candidate-bundle", str(candidate), code=6)
    (effect,) = told.world("bundle_changed")["effects"]
    assert (effect["standing"], effect["seen"]) == ("waits", "applied")
    assert "tier 2" in effect["who"]
    assert told.json["left_on_the_sandbox"] == []  # taken back under the site's own bundle


def test_a_bundle_that_forbids_the_undo_leaves_the_effect_to_a_person(inject, drawer, tmp_path):
    """Nobody's yes would do: the work item says whose decision it is."""
    folder = drawer()
    candidate = bundle(
        tmp_path / "candidate",
        '@id("site:never") @reason("nothing is taken out any more")\n'
        'forbid (principal, action == Drawer::Action::"drawer.put.undo", resource);\n',
    )
    told = inject(PUT, "--json", "--fault", "bundle_changed", "--candidate-bundle", str(candidate), code=6)
    (effect,) = told.world("bundle_changed")["effects"]
    assert (effect["status"], effect["seen"]) == ("needs_human", "applied")
    assert effect["who"] == "maya (queue recovery)"
    assert things(folder) == []


def test_what_somebody_else_has_there_is_not_ours(inject, drawer):
    """A call that the system refuses because the thing exists has left nothing, though the look finds the thing."""
    folder = drawer()
    folder.mkdir(parents=True)
    inject(PUT.replace("spoon-${world}", "spoon"), "--fault", "lost_answer")
    (name,) = {line["what"] for line in log_of(folder)} - {"take_out"}
    assert name == "put"
    ident = "thing-" + hashlib.sha256(f"{folder}spoon".encode()).hexdigest()[:12]
    (folder / ident).write_text("somebody's")
    told = inject(PUT.replace("spoon-${world}", "spoon"), "--json", "--fault", "lost_answer", code=1)
    assert [world["verdict"] for world in told.json["worlds"]] == ["stopped"]
    (effect,) = told.world("none")["effects"]
    assert (effect["status"], effect["standing"]) == ("failed", "held")
    assert (folder / ident).read_text() == "somebody's"


def test_a_person_of_the_workflow_says_yes(inject, drawer, tmp_path):
    """A call that asks is made again after the `approve` behind it; without one the agent stops there."""
    folder = drawer()
    asking = bundle(
        tmp_path / "asking",
        '@id("site:ask") @reason("operations say yes first")\n'
        'forbid (principal, action == Drawer::Action::"drawer.put", resource)\n'
        "unless { context has approval && context.approval.tier >= 2 };\n",
    )
    settings = Path("amends.toml")
    settings.write_text(settings.read_text() + f"\n[policies]\nbundle = {json.dumps(str(asking))}\n")
    told = inject(PUT, "--json", "--fault", "lost_answer", code=6)
    assert told.world("none")["verdict"] == "waits"
    assert "`awaiting_approval`" in told.world("none")["detail"]
    assert log_of(folder) == []
    yes = "\n[[script]]\napprove = { by = 'maya' }\n"
    told = inject(PUT + yes, "--json", "--fault", "lost_answer")
    assert [line["what"] for line in log_of(folder)] == ["put", "take_out", "put", "take_out"]


def test_duplicates_are_counted(inject, staging):
    """A provider that makes two of one call is told by the number of its twins, though all are taken back."""
    staging.arm("make_two", method="POST", path="/v1/reservations")
    told = inject(RESERVE, "--json", "--fault", "undo_rejected", code=6)
    assert told.world("none")["duplicates"] == 1
    assert told.world("undo_rejected")["duplicates"] == 0
    assert staging.fired() == 1
    assert staging.count("reservation") == 0


def test_the_same_bundle_is_no_change(inject, drawer, tmp_path):
    """The fault did not happen, and that is said."""
    drawer()
    same = bundle(
        tmp_path / "same",
        '@id("site:x") @reason("x")\n'
        'permit (principal is Amends::Agent, action == Drawer::Action::"drawer.put", resource);',
    )
    settings = Path("amends.toml")
    settings.write_text(settings.read_text() + f"\n[policies]\nbundle = {json.dumps(str(same))}\n")
    told = inject(PUT, "--json", "--fault", "bundle_changed", "--candidate-bundle", str(same), code=1)
    assert told.world("bundle_changed")["verdict"] == "did_not_fire"


def test_a_fault_that_is_not_tried_is_said(inject, drawer):
    """Without the other bundle `bundle_changed` is not tried, and the report says what it needs."""
    drawer()
    told = inject(PUT, "--json", "--fault", "bundle_changed", "--fault", "lost_answer")
    assert told.json["not_tried"] == [
        {"fault": "bundle_changed", "step": "spoon", "reason": "it needs the other bundle: --candidate-bundle DIR"}
    ]


def test_what_a_committed_world_left_blocks_the_next(inject, drawer):
    """Its name is fixed, so the next world would meet it instead of its fault; the report says what to do."""
    folder = drawer()
    told = inject(
        PUT.replace("spoon-${world}", "spoon") + "\n[[script]]\nfinish = {}\n",
        "--json",
        "--fault",
        "lost_answer",
        code=1,
    )
    assert told.world("none")["run_status"] == "committed"
    assert told.world("lost_answer")["verdict"] == "blocked"
    assert "put ${world} into its name" in told.world("lost_answer")["detail"]
    assert len(things(folder)) == 1
    assert [left["resource"] for left in told.json["left_on_the_sandbox"]] == ["thing:spoon"]


def test_a_setting_that_stays_set_keeps_the_next_world_from_trying(inject, staging):
    """It would set what is set already, and prove nothing: it is not played at all."""
    flow = (
        "workflow = 'orders'\n[[script]]\ncall = 'partner.set_carrier_instructions'\nas = 'carrier'\n"
        "args = { order = 'o-1', address = { line1 = 'Dock 3' } }\n[[script]]\nfinish = {}\n"
    )
    told = inject(flow, "--json", "--fault", "lost_answer", code=1)
    assert told.world("none")["run_status"] == "committed"
    assert told.world("lost_answer")["verdict"] == "blocked"
    assert "carrier_instructions:o-1" in told.world("lost_answer")["detail"]
    assert len(staging.requests("PUT")) == 1


def test_a_workflow_that_fails_by_itself_meets_no_fault(inject, drawer):
    """What does not get through without trouble proves nothing with it."""
    drawer()
    again = "\n[[script]]\ncall = 'drawer.put'\nas = 'again'\nargs = { name = '${spoon.output.nothing}' }\n"
    told = inject(PUT + again, "--json", "--fault", "crash", code=1)
    assert [world["verdict"] for world in told.json["worlds"]] == ["stopped"]
    assert "nothing fills the placeholder" in told.world("none")["detail"]
    assert {one["reason"] for one in told.json["not_tried"]} == {"without any fault the agent stops at `again`"}


def test_without_a_sandbox_nothing_is_sent(inject, staging, production):
    """Injection never runs on what an adapter is configured for by day."""
    settings = Path("amends.toml")
    settings.write_text(settings.read_text().partition("[adapters.partner.sandbox]")[0])
    told = inject(RESERVE, code=2)
    assert "no adapter of amends.toml has a sandbox" in told.err
    assert "[adapters.NAME.sandbox]" in told.err
    assert staging.requests() == production.requests() == []


def test_a_step_whose_adapter_has_no_sandbox_is_refused(inject, drawer, staging, production):
    """Before anything is sent, also to those that have one."""
    drawer()
    settings = Path("amends.toml")
    kept, _, rest = settings.read_text().partition("[adapters.partner.sandbox]")
    settings.write_text(kept + "\n[adapters.drawer]" + rest.partition("[adapters.drawer]")[2])
    told = inject(
        PUT + RESERVE.partition("[values]")[2].partition("\n\n")[2].replace("${values.sku}", "kettle"), code=2
    )
    assert "adapter `partner` has no sandbox; nothing was sent" in told.err
    assert staging.requests() == production.requests() == []
    assert log_of(Path("staging/drawer")) == []
