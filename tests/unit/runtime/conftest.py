"""Worlds for tests of the runtime. Every test ends with a sound ledger: rows equal the fold of the events, the chain
holds, ledger time never ran backwards, and no secret is in a payload.
"""

import pytest

from amends.testing.worlds import World, ledger_faults

CANARY = "canary-4711-token"


@pytest.fixture
def build():
    """Make worlds; each is examined and closed at the end of the test."""
    worlds: list[World] = []

    def make(*capabilities, **options):
        world = World(*capabilities, **options)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        faults = ledger_faults(world.journal, canaries=(CANARY,))
        world.close()
        assert faults == []
