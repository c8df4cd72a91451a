"""Workflow files that are wrong: file, key and remedy, and nothing is sent."""

from pathlib import Path

import pytest

GOOD = 'workflow = "orders"\n[[script]]\ncall = "partner.reserve_inventory"\nas = "reserve"\nargs = { order = "1" }\n'
SECOND = '[[script]]\ncall = "partner.reserve_inventory"\n'

WRONG = {
    "no TOML": ("workflow = ", "is not valid TOML"),
    "no script": ('workflow = "orders"', "`script`: is missing (add it)"),
    "unknown key": (
        f"wait = 1\n{GOOD}",
        "`wait`: there is no such key (take it out, or look for its right name in docs",
    ),
    "no verb": (f"{GOOD}[[script]]\ncal = 'x.y'", "`script.1`: has no verbs (did you mean `call`?)"),
    "another verb": (
        f"{GOOD}[[script]]\nkill = true",
        "`script.1`: has no verbs (give it one of call, approve, finish)",
    ),
    "key of another verb": (f"{GOOD}kill_at = 'after_call'", "`script.0.kill_at`: there is no such key"),
    "no call": ('workflow = "orders"\n[[script]]\nfinish = {}', "the script calls nothing; add an entry with `call`"),
    "one name twice": (f"{GOOD}{SECOND}as = 'reserve'", "2 steps are called `reserve`; tell them apart with `as`"),
    "later step": (
        f"{GOOD}{SECOND}depends_on = ['ship']",
        "`depends_on` names `ship`, and no earlier step is called so",
    ),
    "nothing fills": (f"{GOOD}{SECOND}args = {{ order = '${{ship.id}}' }}", "nothing fills `${ship.id}`; there are"),
    "no such value": (GOOD.replace('"1"', '"${values.order}"'), "nothing fills `${values.order}`; there are"),
    "value of a step": (f"{GOOD}[values]\nid = '${{reserve.reference}}'", "nothing fills `${reserve.reference}` there"),
    "after the end": (f"{GOOD}[[script]]\nfinish = {{}}\n{SECOND}", "nothing comes after `finish`"),
    "finish with keys": (f"{GOOD}[[script]]\nfinish = {{ status = 'committed' }}", "`finish` has no keys here"),
    "approve first": ('workflow = "x"\n[[script]]\napprove = { by = "maya" }\n' + SECOND, "stands after the call"),
    "ledger's values": (f"{GOOD}[recorded]\nx = 1", "`recorded`: there is no such key"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_explained(inject, staging, text, said):
    """File, key, what is wrong, and the remedy."""
    told = inject(text, code=2)
    assert said in told.err
    assert "flow.toml" in told.err
    assert staging.requests() == []


def test_a_missing_file_is_named(inject):
    """With where its format is told."""
    told = inject("", "nowhere.toml", code=2)
    assert "there is no workflow file `nowhere.toml`" in told.err
    assert "docs/inject.md" in told.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fault", "lost_anser"), "the faults are lost_answer, late_answer"),
        (("--fault", "crash@ship"), "no step is called `ship`"),
        (("--candidate-bundle", "nowhere"), "is no folder"),
    ],
)
def test_a_wrong_option_is_explained(inject, staging, words, said):
    """Before anything is sent."""
    assert said in inject(GOOD, *words, code=2).err
    assert staging.requests() == []


def test_an_unknown_capability_is_not_found(inject, staging):
    """No adapter of the sandbox offers it."""
    Path("flow.toml").write_text(GOOD.replace("reserve_inventory", "reserve_nothing"))
    assert "no adapter offers `partner.reserve_nothing`" in inject("", "flow.toml", code=3).err
    assert staging.requests() == []
