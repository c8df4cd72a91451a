"""The vendors' own SDKs (slack_sdk, jira, stripe) as an agent's code calls them, each call in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from systems.catalog import BLOCKS, HERE
from systems.server import require

_BLOCK = BLOCKS["sdks"]
Sdk: TypeAlias = Literal["slack", "jira", "stripe"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a caller got: the reference of what was made, or the class of the error that was raised."""

    reference: str
    error: str

    @property
    def words(self) -> str:
        """`made`, or the class of the error."""
        return self.error or "made"


@dataclass(frozen=True, slots=True)
class Sdks:
    """One call at a time, so that nothing is remembered between two."""

    @classmethod
    def ready(cls) -> Self:
        """The SDKs; raises NotInstalled."""
        require(_BLOCK)
        return cls()

    def call(self, sdk: Sdk, url: str, token: str, *, retries: bool = True, **args: object) -> Told:
        """Post (`slack`), create (`jira`) or charge (`stripe`) with `args`, by the SDK's defaults unless `retries` are
        switched off.
        """
        asked = json.dumps({"sdk": sdk, "url": url, "token": token, "retries": retries, "args": args})
        command = [str(_BLOCK.python), str(HERE / "launch" / "sdk_call.py"), asked]
        plain = {"PATH": os.environ["PATH"]}  # no proxy, no settings of this machine
        said = subprocess.run(command, check=True, capture_output=True, text=True, env=plain).stdout
        return Told(**json.loads(said))
