"""Every shipped scenario holds: whole engine, real processes, and the systems' own accounts.

The billing-field family has a file of its own.
"""

import json

import pytest

from amends import _resources
from amends.bootstrap import Engine
from amends.core.status import ActionStatus, Outcome, RunStatus
from amends.surfaces.cli.app import run as command_line
from amends.testing.scenarios.checking import check
from amends.testing.scenarios.loading import load_scenario
from amends.testing.scenarios.model import ExpectedCount, ExpectedRequests
from amends.testing.scenarios.running import every_form, run, run_scenario
from amends.testing.scenarios.script_model import FaultSpec

pytestmark = pytest.mark.timeout(120)
ROOT = _resources.scenarios_path()
FORMS = [form for form in every_form(ROOT) if not form[0].startswith("billing-field")]
FIELDS = [
    "scenario",
    "run_id",
    "run_status",
    "public_state",
    "actions",
    "residual_effects",
    "corrections",
    "escalations",
    "ok",
]
ACTION_FIELDS = [
    "seq",
    "kind",
    "capability",
    "slot",
    "status",
    "outcome",
    "attempts",
    "registered_seq",
    "sent_seq",
    "provider_reference",
    "evidence",
    "decision",
    "user_message",
]


@pytest.mark.parametrize(("scenario", "variant"), FORMS, ids=["/".join(form).rstrip("/") for form in FORMS])
def test_scenario_holds(scenario, variant):
    """State, evidence, order at the provider, policy version, messages, residue: all as its file says."""
    verdict = run_scenario(ROOT, scenario, variant)
    assert verdict.problems == ()
    assert verdict.document["ok"] is True
    assert list(verdict.document) == FIELDS
    for action in verdict.document["actions"]:
        assert list(action) == ACTION_FIELDS
        assert action["sent_seq"] is None or action["registered_seq"] < action["sent_seq"]


def test_every_row_of_the_table_is_a_variant():
    """What `order-exception` has to show, nothing forgotten."""
    shown = {variant for scenario, variant in FORMS if scenario == "order-exception"}
    assert shown >= {
        "base",
        "validation-refused",
        "lost-answer",
        "probe-confirms",
        "probe-confirms-nothing",
        "already-removed",
        "stronger-permission",
        "endpoint-down",
        "endpoint-down-exhausted",
        "two-branches",
        "unregistered-inverse",
        "policy-denies",
        "policy-asks",
        "already-settling",
        "settling-refused",
    }


def test_the_command_line_answers_with_one_document(capsys):
    """`--json` prints the document alone, and exit 0 says that it holds."""
    assert command_line(["scenario", "run", "order-exception", "--variant", "already-settling", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["scenario"], document["ok"]) == ("order-exception/already-settling", True)


def test_the_command_line_lists_what_there_is(capsys):
    """Every scenario with its variants."""
    assert command_line(["scenario", "list", "--json"]) == 0
    listed = {row["id"]: row["variants"] for row in json.loads(capsys.readouterr().out)}
    assert list(listed["gate"]) == ["yes", "no", "expiry", "yes-then-ci-fails"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 3, "no scenario `nowhere`"),
        (["gate", "--variant", "maybe"], 3, "its variants are yes, no"),
        ([], 2, "name scenarios or say `--all`"),
        (["gate", "--all"], 2, "not both"),
        (["--variant", "yes"], 2, "goes with one scenario"),
    ],
)
def test_the_command_line_refuses_what_it_cannot_run(arguments, code, words, capsys):
    """Unknown names are not found; contradictions are usage; each says what would be right."""
    assert command_line(["scenario", "run", *arguments]) == code
    assert words in capsys.readouterr().err


# --- a verdict that can fail ----------------------------------------------------------------------------------


def action(number, **changes):
    """The scenario with another expectation about its action `number`."""

    def tampered(scenario):
        actions = list(scenario.expect.actions)
        actions[number] = actions[number].model_copy(update=changes)
        return expecting(actions=tuple(actions))(scenario)

    return tampered


def expecting(**changes):
    """The scenario with another expectation."""

    def tampered(scenario):
        return scenario.model_copy(update={"expect": scenario.expect.model_copy(update=changes)})

    return tampered


def with_fault(**changes):
    """The scenario as if it had armed this fault."""

    def tampered(scenario):
        return scenario.model_copy(update={"faults": (FaultSpec(system="partner", kind="refuse", **changes),)})

    return tampered


WRONG = {
    "run status": (expecting(run_status=RunStatus.ABANDONED), "the run is `recovered`"),
    "public state": (expecting(public_state="needs_review"), "people are told"),
    "status": (action(0, status=ActionStatus.SUCCEEDED), "is `compensated`, not `succeeded`"),
    "outcome": (action(2, outcome=Outcome.UNKNOWN), "outcome is `failed`"),
    "attempts": (action(1, attempts=2), "was sent 1 times"),
    "evidence": (action(0, evidence=("person",)), "has no evidence `person`"),
    "message": (action(0, says="all is lost"), "people are told"),
    "policy version": (expecting(policy="9.9.9"), "not `9.9.9`"),
    "missing action": (action(0, capability="partner.make_export", step=""), "nobody expects do"),
    "request order": (
        expecting(requests=(ExpectedRequests(system="partner", order=("POST */release", "POST */void")),)),
        "saw no `POST */void`",
    ),
    "request count": (
        expecting(requests=(ExpectedRequests(system="partner", match="PUT *", count=0),)),
        "1 times, not 0",
    ),
    "effect count": (
        expecting(counts=(ExpectedCount(system="partner", kind="reservation", present=1),)),
        "counts reservation",
    ),
    "unheard fault": (with_fault(), "was told 0 faults, not 1"),
    "report": (expecting(reports_in=("the moon",)), "does not say `the moon`"),
}


@pytest.fixture(scope="module")
def found():
    """What is found wrong with one good run, for each wrong expectation."""
    scenario = load_scenario(ROOT, "order-exception", "base")
    problems = {}

    def look(world, runs):
        engine = Engine.desk(world.project)
        try:
            for name, (tampered, _) in WRONG.items():
                problems[name] = check(tampered(scenario), world, engine, runs, next(iter(runs.values())))
        finally:
            engine.close()

    assert run(scenario, look=look).ok
    return problems


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_expectation_is_found(found, name):
    """No check passes whatever happens."""
    assert any(WRONG[name][1] in problem for problem in found[name]), found[name]


def test_a_fault_that_never_fired_makes_the_scenario_fail():
    """What was armed in vain has tested nothing."""
    scenario = load_scenario(ROOT, "order-exception", "base")
    vain = FaultSpec(system="partner", kind="refuse", options={"method": "POST", "path": "/v1/submissions"})
    verdict = run(scenario.model_copy(update={"faults": (vain,)}))
    assert verdict.problems == ("the fault `refuse` of `partner` never fired",)
    assert verdict.document["ok"] is False


def test_residue_at_a_system_makes_the_scenario_fail():
    """What nobody expects to be left is found at the system, not in the ledger."""
    scenario = load_scenario(ROOT, "order-exception", "already-settling")
    expect = scenario.expect.model_copy(update={"run_status": RunStatus.OPEN})
    kept = [entry for entry in scenario.script if not hasattr(entry, "recover") and not hasattr(entry, "raise_")]
    told = [entry.model_dump(by_alias=True, exclude_unset=True) for entry in kept]
    changed = type(scenario).model_validate(
        {**scenario.model_dump(by_alias=True, exclude_unset=True), "script": [*told, {"detach": True}]}
    )
    verdict = run(changed.model_copy(update={"expect": expect}))
    assert "`partner` still holds reservation order:o-1007 (res_000001)" in verdict.problems
