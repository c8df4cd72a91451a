"""The whole engine in simulated worlds: no rule is broken in any of them, and an engine that is broken is found out."""

import importlib.util
from pathlib import Path

import pytest

from amends.testing.simulation import exploring, simulate

FOUND_ONCE = {
    74: "an effect that a lagging read did not show yet was taken for gone",
    104: "the same, for a keyed call",
    110: "the same, for a call answered 202",
    115: "the same, for a probeable call",
    128: "a committing run stalled: the twin waited for steps that nobody undoes before the pivot",
    458: "a value that landed late was held against recovery",
    459: "a process froze between its look and the record: absence counted as if it had been seen when it was recorded",
}
WORLDS = 40
PATIENCE = 400  # worlds until a mutant must be found

pytestmark = pytest.mark.timeout(600)


def _mutants():
    spec = importlib.util.spec_from_file_location("mutants", Path(__file__).with_name("mutants.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTANTS


MUTANTS = _mutants()


@pytest.mark.parametrize("first", range(0, WORLDS, 10))
def test_no_rule_is_broken_in_foul_weather(first):
    """Lost, late, doubled and refused answers, lagging reads, kills, freezes, a full disk, people and policies in
    between; then fair weather: every run settles or a person is told, and what is claimed is what is there.
    """
    broken = {seed: verdict.violations for seed in range(first, first + 10) if (verdict := simulate(seed)).violations}
    assert broken == {}


@pytest.mark.parametrize("seed", FOUND_ONCE, ids=str)
def test_what_a_seed_once_found_stays_found(seed):
    """Worlds in which a rule was broken before the engine was mended (`FOUND_ONCE` says how)."""
    assert simulate(seed).violations == ()


def test_the_same_seed_is_the_same_world():
    """A failure that is reported by its seed replays exactly."""
    once, again = simulate(11), simulate(11)
    assert once == again
    assert once.digest == again.digest


@pytest.mark.crash
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_engine_is_found_out(name, record_property):
    """Each of five plausible faults of an engine breaks a rule in some world, soon."""
    with MUTANTS[name]():
        for seed in range(PATIENCE):
            try:
                found = simulate(seed).violations
            except RuntimeError as error:  # a process died of what the mutant made of it
                found = (str(error),)
            if found:
                record_property("found by seed", seed)
                print(f"`{name}` is found out by seed {seed}: {found[0]}")
                return
    pytest.fail(f"`{name}` was not found out in {PATIENCE} worlds")


@pytest.mark.parametrize("ending", exploring.ENDINGS)
@pytest.mark.parametrize("budget", [exploring.Budget(faults=1), exploring.Budget(kills=1)], ids=str)
def test_every_world_of_a_small_configuration_keeps_the_rules(budget, ending):
    """One thing goes wrong in each: every fault of every request, a kill at every point."""
    seen = exploring.explored(exploring.Errand(budget, ending))
    assert seen.broken == {}
    assert seen.worlds > 30
    assert len(seen.states) > 100
