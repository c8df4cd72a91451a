"""The naive control: the same calls as a scenario's agent makes, made directly. No ledger, no outbox, no recovery.

    python -m amends.testing.naive <handover.json>

The tools are the same (prepare and do of the same adapters), so what is left at the systems is the difference that
Amends makes. An error is tried once more, as frameworks do.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from amends import bootstrap
from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.backends.plugin_host import Offered
from amends.core.canonical import Json, normalise_map
from amends.core.errors import UnknownName
from amends.runtime.flights import call_of
from amends.spi import Capability, Question, Receipt
from amends.spi.process import run
from amends.testing.scenarios.script_model import Call, Command, Entry
from amends.testing.scenarios.values import fill
from amends.testing.scenarios.world import Stage

_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])
_CHECK_SECONDS = 60.0
_TRIES = 2


def handover(stage: Stage, entries: Sequence[Entry], *, check: str, check_before: str) -> str:
    """What a naive agent's process needs, as JSON. It runs the configured check `check` before the step
    `check_before`, because that is when an agent without an outbox has to know.
    """
    said = _ENTRIES.dump_python(tuple(entries), mode="json", by_alias=True, exclude_unset=True)
    return json.dumps({"stage": asdict(stage), "entries": said, "check": check, "check_before": check_before})


class NaiveAgent:
    """Calls adapters one after the other and remembers their answers, like a transcript does."""

    def __init__(self, stage: Stage, check: str, check_before: str) -> None:
        self._stage = stage
        self._check = check
        self._check_before = check_before
        self._settings = bootstrap.settings_of(Path(stage.project))
        loaded = bootstrap.adapters_of(self._settings, bootstrap.secrets_of(self._settings))
        self._offers: dict[str, Offered] = {offer.contract.capability: offer for offer in loaded.offers}
        self._ids = UuidV7(SystemClock())

    def play(self, entries: Sequence[Entry]) -> None:
        """Make every call of the script. Stops where the check does not pass; raises what a tool raises twice."""
        for entry in entries:
            match entry:
                case Call():
                    if entry.step == self._check_before and not self._passes():
                        return
                    receipt = self._persistently(entry)
                    output = dict(receipt.effect) | dict(getattr(receipt, "output", {}))
                    self._stage.known[entry.step or entry.call] = {"output": output, "effect": dict(receipt.effect)}
                case Command():
                    argv = [str(part) for part in fill(list(entry.command), self._stage.known)]
                    run(argv, env=os.environ, cwd=self._stage.project, timeout_seconds=_CHECK_SECONDS)
                case _:
                    continue  # sessions, people and recovery: there are none here

    def _passes(self) -> bool:
        settings = self._settings.checks[self._check]
        folder = str(self._settings.path(settings.folder))
        return run(settings.command, env=os.environ, cwd=folder, timeout_seconds=_CHECK_SECONDS).returncode == 0

    def _persistently(self, entry: Call) -> Receipt:
        for left in reversed(range(_TRIES)):
            try:
                return self._call(entry)
            except Exception:
                if not left:
                    raise
                time.sleep(0.2)
        raise UnknownName(f"`{entry.call}` was not called", hint="report this")

    def _call(self, entry: Call) -> Receipt:
        offer = self._offers.get(entry.call)
        if offer is None:
            raise UnknownName(f"no capability `{entry.call}`", known=sorted(self._offers))
        capability: Capability = offer.capability
        args = capability.arguments.model_validate(fill(entry.args, self._stage.known)).model_dump(mode="json")
        question = self._question(offer, normalise_map(args))
        prepared = capability.prepare(question)
        call = call_of(
            replace(question, before=prepared.before, allocated=prepared.allocated),
            deadline_us=SystemClock().now_us() + round(question.timeout_seconds * 1_000_000),
            still_wanted=lambda: True,
        )
        return capability.do(call)  # whatever it says: nobody looks again

    def _question(self, offer: Offered, args: Mapping[str, Json]) -> Question:
        name = self._ids.new()
        return Question(
            run_id=name,
            action_id=name,
            marker=name,
            idempotency_key=name,
            args=args,
            before={},
            allocated={},
            effect={},
            after={},
            reference="",
            attempt=1,
            sent_at_us=None,
            timeout_seconds=offer.contract.limits.timeout_seconds,
            secret=bootstrap.secrets_of(self._settings).resolve,
        )


def main(path: Path) -> int:
    """Play what was handed over."""
    data = json.loads(path.read_text(encoding="utf-8"))
    agent = NaiveAgent(Stage(**data["stage"]), data["check"], data["check_before"])
    agent.play(_ENTRIES.validate_python(data["entries"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
