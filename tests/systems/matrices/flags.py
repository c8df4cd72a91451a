"""The fault matrix of the flag capabilities, over any server with Unleash's admin API.

A subclass says how its server is started, as a `FlagServer`. Flags are seeded, effects counted, and other people act by
that admin API without the adapter. Whoever saw a flag is told through a Slack of our own; it is not under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, Subject
from systems.matrices.people import SECRETS
from systems.web import Answer, call

NO_BODY = "Unleash's switches take no body, and it keeps no header; its event log tells"
STATE = "variants are a state that is set, not a thing that is made; a strategy's title is another action's"
UNMARKED = {"test_the_request_names_our_action": NO_BODY}
CHAIN = {"test_the_request_names_our_action": STATE}
QA: Json = {"contextName": "group", "operator": "IN", "values": ["qa"]}
SPLIT: Json = [{"name": "on", "weight_percent": 30}, {"name": "off", "weight_percent": 70}]


@dataclass(frozen=True, kw_only=True)
class FlagServer:
    """A running server. `token` is the adapter's; `theirs` is that of somebody else who uses the server."""

    url: str
    token: str
    theirs: str
    environment: str
    person: Mapping[str, Json]

    def say(self, method: str, path: str, body: Json = None) -> Answer:
        """Somebody else's request; `path` goes on after `/api/admin/`."""
        return call(method, f"{self.url}/api/admin/{path}", body, headers={"authorization": self.theirs})

    def want(self, method: str, path: str, body: Json = None) -> Any:
        """The same, if it must succeed. Raises `AssertionError` with the answer."""
        answer = self.say(method, path, body)
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.text[:500]}")
        return answer.data


def cohort_args(feature: str) -> Args:
    """Arguments of `flags.strategy`."""
    return {"feature": feature, "cohort": "qa", "constraints": [QA]}


def variants_args(feature: str) -> Args:
    """Arguments of `flags.variants`."""
    return {"feature": feature, "cohort": "qa", "variants": SPLIT}


# --- the flag of a call, and what it shows ----------------------------------------------------------------------------


def _flag(args: Args) -> str:
    return f"projects/default/features/{args['feature']}"


def _there(server: FlagServer, args: Args, below: str = "") -> str:
    return f"{_flag(args)}/environments/{server.environment}{below}"


def _live(server: FlagServer, args: Args) -> int:
    return int(server.say("GET", _flag(args)).status == 200)


def _strategies(server: FlagServer, args: Args) -> list[dict[str, Json]]:
    shown = server.want("GET", _flag(args))["environments"]
    return next(item["strategies"] for item in shown if item["name"] == server.environment)


def _titled(server: FlagServer, args: Args, title: str) -> list[dict[str, Json]]:
    return [one for one in _strategies(server, args) if title in str(one["title"])]


def _seeded(server: FlagServer, word: str) -> str:
    """A flag of that word, off everywhere and without a strategy, if there is none."""
    if not _live(server, {"feature": f"f-{word}"}):
        server.want("POST", "projects/default/features", {"name": f"f-{word}", "type": "release"})
    return f"f-{word}"


def _opened(server: FlagServer, word: str, **strategy: Json) -> str:
    """A flag of that word which is on, with this one strategy."""
    feature = _seeded(server, word)
    if not _strategies(server, {"feature": feature}):
        server.want("POST", _there(server, {"feature": feature}, "/strategies"), dict(strategy))
        server.want("POST", _there(server, {"feature": feature}, "/on"))
    return feature


# --- what somebody else does ------------------------------------------------------------------------------------------


def _bare(server: FlagServer, args: Args) -> None:
    """Takes every strategy away, and the switch with the last one."""
    for strategy in _strategies(server, args):
        server.want("DELETE", _there(server, args, f"/strategies/{strategy['id']}"))


def _add_theirs(server: FlagServer, args: Args) -> None:
    server.want("POST", _there(server, args, "/strategies"), {"name": "flexibleRollout", "title": "theirs"})


def _patched(field: str, value: Json) -> Callable[[FlagServer, Args], None]:
    def patch(server: FlagServer, args: Args) -> None:
        [ours] = _titled(server, args, " qa")
        operation = {"op": "replace", "path": f"/{field}", "value": value}
        server.want("PATCH", _there(server, args, f"/strategies/{ours['id']}"), [operation])

    return patch


def _close_cohort(server: FlagServer, args: Args) -> None:
    [ours] = _titled(server, args, " qa")
    server.want("DELETE", _there(server, args, f"/strategies/{ours['id']}"))


def _describe(server: FlagServer, args: Args) -> None:
    server.want("PATCH", _flag(args), [{"op": "replace", "path": "/description", "value": "theirs now"}])


def _is_described(server: FlagServer, args: Args) -> bool:
    return bool(server.want("GET", _flag(args))["description"] == "theirs now")


def _archive(server: FlagServer, args: Args) -> None:
    server.want("DELETE", _flag(args))


def _revive(server: FlagServer, args: Args) -> None:
    server.want("POST", "projects/default/revive", {"features": [args["feature"]]})


def _delete_for_good(server: FlagServer, args: Args) -> None:
    server.want("DELETE", f"archive/{args['feature']}")


# --- the subjects -----------------------------------------------------------------------------------------------------

SET = Subject[FlagServer](
    capability="flags.set",
    args=lambda server, word: {"feature": _seeded(server, word), "enabled": True},
    effects=lambda server, args: int(bool(_strategies(server, args))),
    taken_away=_bare,
    edited=_add_theirs,
    kept=lambda server, args: bool(_titled(server, args, "theirs")),
    exempt=UNMARKED,
)

STRATEGY = Subject[FlagServer](
    capability="flags.strategy",
    args=lambda server, word: cohort_args(_opened(server, word, name="flexibleRollout", title="beta")),
    effects=lambda server, args: len(_titled(server, args, " qa")),
    taken_away=_close_cohort,
    edited=_patched("constraints", []),
    kept=lambda server, args: _titled(server, args, " qa")[0]["constraints"] == [],
)

VARIANTS = Subject[FlagServer](
    capability="flags.variants",
    args=lambda server, word: variants_args(_opened(server, word, name="flexibleRollout", title="amends:earlier qa")),
    effects=lambda server, args: int(bool(_titled(server, args, " qa")[0]["variants"])),
    taken_away=_patched("variants", []),
    edited=_patched(
        "variants", [{"name": "theirs", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    ),
    kept=lambda server, args: "theirs" in str(_titled(server, args, " qa")[0]["variants"]),
    exempt=CHAIN,
)

CREATE = Subject[FlagServer](
    capability="flags.create",
    args=lambda _, word: {"feature": f"f-{word}", "description": "the billing field"},
    effects=_live,
    other=lambda args: {**args, "description": "in other words"},
    text="description",
    taken_away=_archive,
    edited=_describe,
    kept=_is_described,
)

ARCHIVE = Subject[FlagServer](
    capability="flags.archive",
    args=lambda server, word: {"feature": _seeded(server, word)},
    effects=lambda server, args: 1 - _live(server, args),
    taken_away=_revive,
    edited=_delete_for_good,
    kept=lambda server, args: not _live(server, args),
    exempt=UNMARKED,
)


class UnleashMatrix(AdapterMatrix[FlagServer]):
    """Every flag capability on a server."""

    subjects = (SET, STRATEGY, VARIANTS, CREATE, ARCHIVE)

    def upstream(self, system: FlagServer) -> str:
        return system.url

    def adapters(self, system: FlagServer, address: str) -> Mapping[str, Mapping[str, Json]]:
        given: dict[str, Json] = {
            "base_url": address,
            "token": "env:UNLEASH_TOKEN",
            "tell": "person:maya",
            "flag_environment": system.environment,
            "absent_final_after_seconds": 0.5,
        }
        return {"flags": given, "slack": system.person}

    def secrets(self, system: FlagServer) -> Mapping[str, str]:
        return {"UNLEASH_TOKEN": system.token, **SECRETS}
