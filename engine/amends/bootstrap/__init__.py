"""The composition root: `amends.toml` in, a wired engine out. Nothing else constructs backends.

Three engines come out of one file. `Engine.open` is whole: adapters, policies, recovery. `Engine.sandbox` is as whole,
over the systems that adapters name for trying things out. `Engine.desk` is for people: it reads the journal and records
their decisions, loads neither adapter nor policy, sends nothing, and so works while those are broken.
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
from amends.bootstrap.sandboxing import sandboxed, sandboxes

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
    "sandboxed",
    "sandboxes",
    "secrets_of",
    "settings_of",
]
