"""The fault matrix over the flag capabilities, on both places where flags live."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, CallLine, Line, Subject
from amends.testing.loopback import LoopbackSystem

FEATURES = "/api/admin/projects/default/features"
NO_BODY = "Unleash's switches take no body, and it keeps no header; its event log tells"
STATE = "variants are a state that is set, not a thing that is made; a strategy's title is another action's"
UNMARKED = {"test_the_request_names_our_action": NO_BODY}
CHAIN = {"test_the_request_names_our_action": STATE}


def _at(args: Args, below: str = "") -> str:
    return f"{FEATURES}/{args['feature']}/environments/staging{below}"


def _seeded(unleash: LoopbackSystem, word: str, **environment: Json) -> str:
    name = f"f-{word}"
    if unleash.foreign("GET", f"{FEATURES}/{name}")["status"] != 200:
        unleash.control("seed_flag", name=name, environments={"staging": environment})
    return name


def _within(unleash: LoopbackSystem, args: Args) -> dict[str, Json]:
    body = unleash.foreign("GET", f"{FEATURES}/{args['feature']}")["body"]
    return next((item for item in body.get("environments", []) if item["name"] == "staging"), {"strategies": []})


def _titled(unleash: LoopbackSystem, args: Args, title: str) -> list[dict[str, Json]]:
    return [one for one in _within(unleash, args)["strategies"] if title in str(one["title"])]


def _off_and_bare(unleash: LoopbackSystem, args: Args) -> None:
    for strategy in _within(unleash, args)["strategies"]:
        unleash.foreign("DELETE", _at(args, f"/strategies/{strategy['id']}"))


def _theirs(unleash: LoopbackSystem, args: Args) -> None:
    unleash.foreign("POST", _at(args, "/strategies"), {"name": "default", "title": "theirs"})


def _patched(field: str, value: Json) -> Callable[[LoopbackSystem, Args], None]:
    def patch(unleash: LoopbackSystem, args: Args) -> None:
        [ours] = _titled(unleash, args, " qa")
        operation = {"op": "replace", "path": f"/{field}", "value": value}
        unleash.foreign("PATCH", _at(args, f"/strategies/{ours['id']}"), [operation])

    return patch


def _without_cohort(unleash: LoopbackSystem, args: Args) -> None:
    [ours] = _titled(unleash, args, " qa")
    unleash.foreign("DELETE", _at(args, f"/strategies/{ours['id']}"))


def _describe(unleash: LoopbackSystem, args: Args) -> None:
    operation = {"op": "replace", "path": "/description", "value": "theirs now"}
    unleash.foreign("PATCH", f"{FEATURES}/{args['feature']}", [operation])


def _is_described(unleash: LoopbackSystem, args: Args) -> bool:
    return unleash.foreign("GET", f"{FEATURES}/{args['feature']}")["body"].get("description") == "theirs now"


def _live(unleash: LoopbackSystem, args: Args) -> int:
    return int(unleash.foreign("GET", f"{FEATURES}/{args['feature']}")["status"] == 200)


def _archive(unleash: LoopbackSystem, args: Args) -> None:
    unleash.foreign("DELETE", f"{FEATURES}/{args['feature']}")


def _revive(unleash: LoopbackSystem, args: Args) -> None:
    unleash.foreign("POST", "/api/admin/projects/default/revive", {"features": [args["feature"]]})


def _cohort(word: str) -> Args:
    constraint = {"contextName": "group", "operator": "IN", "values": ["qa"]}
    return {"feature": f"f-{word}", "cohort": "qa", "constraints": [constraint]}


def _strategy_args(unleash: LoopbackSystem, word: str) -> Args:
    _seeded(unleash, word, enabled=True, strategies=[{"name": "default", "title": "beta"}])
    return _cohort(word)


def _variants_args(unleash: LoopbackSystem, word: str) -> Args:
    _seeded(unleash, word, enabled=True, strategies=[{"name": "flexibleRollout", "title": "amends:earlier qa"}])
    variants = [{"name": "on", "weight_percent": 30}, {"name": "off", "weight_percent": 70}]
    return {"feature": f"f-{word}", "cohort": "qa", "variants": variants}


@contextmanager
def _people() -> Iterator[LoopbackSystem]:
    """Whoever saw a flag is told through Slack: corrections need somewhere to go."""
    with LoopbackSystem.start("slack") as slack:
        slack.control("seed_user", id="U0MAYA", name="maya")
        yield slack


def _told(slack: LoopbackSystem) -> dict[str, Json]:
    return {"base_url": f"{slack.url}/api", "token": "env:SLACK_TOKEN", "people": {"maya": "U0MAYA"}}


class TestUnleash(AdapterMatrix[LoopbackSystem]):
    """Over a flag server with a line in between."""

    slack: ClassVar[LoopbackSystem]

    subjects = (
        Subject(
            capability="flags.set",
            args=lambda unleash, word: {"feature": _seeded(unleash, word), "enabled": True},
            effects=lambda unleash, args: int(bool(_within(unleash, args)["strategies"])),
            taken_away=_off_and_bare,
            edited=_theirs,
            kept=lambda unleash, args: bool(_titled(unleash, args, "theirs")),
            exempt=UNMARKED,
        ),
        Subject(
            capability="flags.strategy",
            args=_strategy_args,
            effects=lambda unleash, args: len(_titled(unleash, args, " qa")),
            taken_away=_without_cohort,
            edited=_patched("constraints", []),
            kept=lambda unleash, args: _titled(unleash, args, " qa")[0]["constraints"] == [],
        ),
        Subject(
            capability="flags.variants",
            args=_variants_args,
            effects=lambda unleash, args: int(bool(_titled(unleash, args, " qa")[0]["variants"])),
            taken_away=_patched("variants", []),
            edited=_patched("variants", [{"name": "theirs", "weight": 1000, "weightType": "variable"}]),
            kept=lambda unleash, args: _titled(unleash, args, " qa")[0]["variants"][0]["name"] == "theirs",
            exempt=CHAIN,
        ),
        Subject(
            capability="flags.create",
            args=lambda _, word: {"feature": f"f-{word}", "description": "the billing field"},
            effects=_live,
            other=lambda args: {**args, "description": "in other words"},
            text="description",
            taken_away=_archive,
            edited=_describe,
            kept=_is_described,
        ),
        Subject(
            capability="flags.archive",
            args=lambda unleash, word: {"feature": _seeded(unleash, word)},
            effects=lambda unleash, args: 1 - _live(unleash, args),
            taken_away=_revive,
            edited=lambda unleash, args: unleash.foreign("DELETE", f"/api/admin/archive/{args['feature']}"),
            kept=lambda unleash, args: not _live(unleash, args),
            exempt=UNMARKED,
        ),
    )

    @contextmanager
    def system(self, folder: Path) -> Iterator[LoopbackSystem]:
        tokens = {"*:*.of-the-kit": "amends-agent"}
        with LoopbackSystem.start("unleash", settings={"tokens": tokens}) as unleash, _people() as type(self).slack:
            yield unleash

    def upstream(self, system: LoopbackSystem) -> str:
        return system.url

    def adapters(self, system: LoopbackSystem, address: str) -> dict[str, dict[str, Json]]:
        return {
            "flags": {
                "base_url": address,
                "token": "env:UNLEASH_TOKEN",
                "tell": "person:maya",
                "flag_environment": "staging",
                "absent_final_after_seconds": 0.5,
            },
            "slack": _told(self.slack),
        }

    def secrets(self, system: LoopbackSystem) -> dict[str, str]:
        return {"UNLEASH_TOKEN": "*:*.of-the-kit", "SLACK_TOKEN": "xoxb-loopback"}


# --- the same on a file ---------------------------------------------------------------------------------------------


def _document(file: Path) -> dict[str, Json]:
    return json.loads(file.read_text(encoding="utf-8"))


def _entry(file: Path, args: Args) -> dict[str, Json]:
    return _document(file)["flags"].get(args["feature"], {})


def _edited(change: Callable[[dict[str, Json]], object]) -> Callable[[Path, Args], None]:
    """Somebody with an editor."""

    def edit(file: Path, args: Args) -> None:
        document = _document(file)
        change(document["flags"][args["feature"]])
        file.write_text(json.dumps(document), encoding="utf-8")

    return edit


def _in_file(file: Path, word: str, **fields: Json) -> str:
    document = _document(file)
    flag = {"state": "DISABLED", "variants": {"on": True, "off": False}, "defaultVariant": "off", **fields}
    document["flags"].setdefault(f"f-{word}", flag)
    file.write_text(json.dumps(document), encoding="utf-8")
    return f"f-{word}"


def _branch(file: Path, args: Args) -> list[Json]:
    return _entry(file, args).get("targeting", {}).get("if", [])


def _file_strategy(file: Path, word: str) -> Args:
    _in_file(file, word)
    return _cohort(word)


def _file_variants(file: Path, word: str) -> Args:
    _in_file(file, word, targeting={"if": [{"and": ["amends:earlier qa", True]}, "on"]})
    variants = [{"name": "on", "weight_percent": 30}, {"name": "off", "weight_percent": 70}]
    return {"feature": f"f-{word}", "cohort": "qa", "variants": variants}


def _gone(file: Path, args: Args) -> None:
    document = _document(file)
    del document["flags"][args["feature"]]
    file.write_text(json.dumps(document), encoding="utf-8")


def _gives(value: Json) -> Callable[[dict[str, Json]], None]:
    return lambda entry: entry["targeting"]["if"].__setitem__(1, value)


DIRECT = {
    "test_a_200_that_did_nothing_is_not_recorded_as_an_effect": "nobody stands between the adapter and its file who"
    " could answer for it: the rename that the adapter makes itself is the proof"
}


class TestFlagd(AdapterMatrix[Path]):
    """Over a file; faults are made at the adapter's own boundary."""

    slack: ClassVar[LoopbackSystem]

    subjects = (
        Subject(
            capability="flags.set",
            args=lambda file, word: {"feature": _in_file(file, word), "enabled": True},
            effects=lambda file, args: int(_entry(file, args)["state"] == "ENABLED"),
            taken_away=_edited(lambda entry: entry.update(state="DISABLED")),
            edited=_edited(lambda entry: entry.update(targeting={"if": [True, "on"]})),
            kept=lambda file, args: _branch(file, args) == [True, "on"],
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.strategy",
            args=_file_strategy,
            effects=lambda file, args: int("amends:" in json.dumps(_entry(file, args).get("targeting"))),
            taken_away=_edited(lambda entry: entry.pop("targeting")),
            edited=_edited(_gives("off")),
            kept=lambda file, args: _branch(file, args)[1] == "off",
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.variants",
            args=_file_variants,
            effects=lambda file, args: int(_branch(file, args)[1] != "on"),
            taken_away=_edited(_gives("on")),
            edited=_edited(_gives("off")),
            kept=lambda file, args: _branch(file, args)[1] == "off",
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.create",
            args=lambda _, word: {"feature": f"f-{word}", "description": "the billing field"},
            effects=lambda file, args: int(bool(_entry(file, args))),
            other=lambda args: {**args, "description": "in other words"},
            text="description",
            taken_away=_gone,
            edited=_edited(lambda entry: entry["metadata"].update(owner="them")),
            kept=lambda file, args: _entry(file, args)["metadata"]["owner"] == "them",
            exempt=DIRECT,
        ),
        Subject(
            capability="flags.archive",
            args=lambda file, word: {"feature": _in_file(file, word)},
            effects=lambda file, args: int("amends_archived" in _entry(file, args).get("metadata", {})),
            taken_away=_edited(lambda entry: entry.pop("metadata")),
            edited=_gone,
            kept=lambda file, args: _entry(file, args) == {},
            exempt=DIRECT,
        ),
    )

    @contextmanager
    def system(self, folder: Path) -> Iterator[Path]:
        file = folder / "flags.json"
        file.write_text('{"flags": {}}', encoding="utf-8")
        with _people() as type(self).slack:
            yield file

    def upstream(self, system: Path) -> str:
        return ""

    def line(self, system: Path, folder: Path) -> Line:
        return CallLine()

    def adapters(self, system: Path, address: str) -> dict[str, dict[str, Json]]:
        return {
            "flags": {
                "backend": "flagd",
                "file": str(system),
                "tell": "person:maya",
                "absent_final_after_seconds": 0.5,
            },
            "slack": _told(self.slack),
        }

    def secrets(self, system: Path) -> dict[str, str]:
        return {"SLACK_TOKEN": "xoxb-loopback"}
