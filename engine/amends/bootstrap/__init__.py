"""The composition root: `amends.toml` in, a wired engine out. Nothing else constructs backends.

Two engines come out of one file. `Engine.open` is whole: adapters, policies, recovery. `Engine.desk` is for people:
it reads the journal and records their decisions, loads neither adapter nor policy, sends nothing, and so works while
those are broken.
"""

from amends.bootstrap.engine import Engine
from amends.bootstrap.making import (
    adapters_of,
    archive_of,
    back_up,
    journal_of,
    ledger_of,
    migrate,
    restore,
    secrets_of,
    settings_of,
)
from amends.bootstrap.policies import Reloaded, known_labels, policy_sources

__all__ = [
    "Engine",
    "Reloaded",
    "adapters_of",
    "archive_of",
    "back_up",
    "journal_of",
    "known_labels",
    "ledger_of",
    "migrate",
    "policy_sources",
    "restore",
    "secrets_of",
    "settings_of",
]
