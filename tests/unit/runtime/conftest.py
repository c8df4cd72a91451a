"""Worlds for tests of the runtime. Every test ends with a sound ledger: rows equal the fold of the events, the chain
holds, ledger time never ran backwards, and no secret is in a payload.
"""

import pytest

from amends.testing.worlds import examined_worlds


@pytest.fixture
def build():
    """Make worlds; each is examined and closed at the end of the test."""
    with examined_worlds() as make:
        yield make
