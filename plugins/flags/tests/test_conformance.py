"""The fault matrix over the flag capabilities, whole on both places where flags live; tests/real has it on Unleash
itself. The capabilities are the same, but each rests on other reads, other proof and another way back in each place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, CallLine, Line, Subject
from amends.testing.loopback import LoopbackSystem
from systems.matrices.flags import FlagServer, UnleashMatrix, cohort_args, variants_args
from systems.matrices.people import SECRETS, maya_is_told

TOKENS = {"*:*.of-the-kit": "amends-agent", "*:*.of-noor": "noor"}


class TestUnleash(UnleashMatrix):
    """Over a flag server with a line in between."""

    @contextmanager
    def system(self, folder: Path) -> Iterator[FlagServer]:
        del folder
        ours, theirs = TOKENS
        with LoopbackSystem.start("unleash", settings={"tokens": TOKENS}) as unleash, maya_is_told() as told:
            yield FlagServer(url=unleash.url, token=ours, theirs=theirs, environment="staging", person=told)


# --- the same on a file ---------------------------------------------------------------------------------------------

DIRECT = {
    "test_a_200_that_did_nothing_is_not_recorded_as_an_effect": "nobody stands between the adapter and its file who"
    " could answer for it: the rename that the adapter makes itself is the proof"
}


@dataclass(frozen=True)
class FlagFile:
    """A flagd file, looked at and changed by somebody with an editor."""

    path: Path
    person: Mapping[str, Json]

    def document(self) -> dict[str, Json]:
        return json.loads(self.path.read_text(encoding="utf-8"))

    def entry(self, args: Args) -> dict[str, Json]:
        return self.document()["flags"].get(args["feature"], {})

    def branch(self, args: Args) -> list[Json]:
        return self.entry(args).get("targeting", {}).get("if", [])

    def edit(self, change: Callable[[dict[str, Json]], object]) -> None:
        document = self.document()
        change(document["flags"])
        self.path.write_text(json.dumps(document), encoding="utf-8")

    def seeded(self, word: str, **fields: Json) -> str:
        flag = {"state": "DISABLED", "variants": {"on": True, "off": False}, "defaultVariant": "off", **fields}
        self.edit(lambda flags: flags.setdefault(f"f-{word}", flag))
        return f"f-{word}"


def _edited(change: Callable[[dict[str, Json]], object]) -> Callable[[FlagFile, Args], None]:
    return lambda file, args: file.edit(lambda flags: change(flags[args["feature"]]))


def _gone(file: FlagFile, args: Args) -> None:
    file.edit(lambda flags: flags.pop(args["feature"]))


def _gives(value: Json) -> Callable[[dict[str, Json]], None]:
    return lambda entry: entry["targeting"]["if"].__setitem__(1, value)


class TestFlagd(AdapterMatrix[FlagFile]):
    """Over a file; faults are made at the adapter's own boundary."""

    subjects = (
        Subject(
            capability="flags.set",
            args=lambda file, word: {"feature": file.seeded(word), "enabled": True},
            effects=lambda file, args: int(file.entry(args)["state"] == "ENABLED"),
            taken_away=_edited(lambda entry: entry.update(state="DISABLED")),
            edited=_edited(lambda entry: entry.update(targeting={"if": [True, "on"]})),
            kept=lambda file, args: file.branch(args) == [True, "on"],
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.strategy",
            args=lambda file, word: cohort_args(file.seeded(word)),
            effects=lambda file, args: int("amends:" in json.dumps(file.entry(args).get("targeting"))),
            taken_away=_edited(lambda entry: entry.pop("targeting")),
            edited=_edited(_gives("off")),
            kept=lambda file, args: file.branch(args)[1] == "off",
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.variants",
            args=lambda file, word: variants_args(
                file.seeded(word, targeting={"if": [{"and": ["amends:earlier qa", True]}, "on"]})
            ),
            effects=lambda file, args: int(file.branch(args)[1] != "on"),
            taken_away=_edited(_gives("on")),
            edited=_edited(_gives("off")),
            kept=lambda file, args: file.branch(args)[1] == "off",
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.create",
            args=lambda _, word: {"feature": f"f-{word}", "description": "the billing field"},
            effects=lambda file, args: int(bool(file.entry(args))),
            other=lambda args: {**args, "description": "in other words"},
            text="description",
            taken_away=_gone,
            edited=_edited(lambda entry: entry["metadata"].update(owner="them")),
            kept=lambda file, args: file.entry(args)["metadata"]["owner"] == "them",
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.archive",
            args=lambda file, word: {"feature": file.seeded(word)},
            effects=lambda file, args: int("amends_archived" in file.entry(args).get("metadata", {})),
            taken_away=_edited(lambda entry: entry.pop("metadata")),
            edited=_gone,
            kept=lambda file, args: file.entry(args) == {},
            exempt=DIRECT,
        ),
    )

    @contextmanager
    def system(self, folder: Path) -> Iterator[FlagFile]:
        path = folder / "flags.json"
        path.write_text('{"flags": {}}', encoding="utf-8")
        with maya_is_told() as told:
            yield FlagFile(path, told)

    def upstream(self, system: FlagFile) -> str:
        return ""

    def line(self, system: FlagFile, folder: Path) -> Line:
        return CallLine()

    def adapters(self, system: FlagFile, address: str) -> Mapping[str, Mapping[str, Json]]:
        given: dict[str, Json] = {"backend": "flagd", "file": str(system.path), "tell": "person:maya"}
        return {"flags": {**given, "absent_final_after_seconds": 0.5}, "slack": system.person}

    def secrets(self, system: FlagFile) -> Mapping[str, str]:
        return SECRETS
