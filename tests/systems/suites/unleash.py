"""What the flags adapter relies on in Unleash's admin API, asked over plain HTTP of whichever server is given.

Every function of `CASES` takes a server's address and an admin token, and asserts what 8.2.0 answers; it makes flags of
its own names and needs nothing beforehand, so that it runs on a shared server. `problems(system, base_url, token)` asks
them all. The same functions hold the loopback system to the product; what it does not imitate is named, with a reason.

    python tests/systems/suites/unleash.py http://127.0.0.1:4242 '*:*.admin-token'
"""

from __future__ import annotations

import http.client
import json
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from amends.testing.differences import Behaviour, Difference, Site
from amends.testing.differences import problems as compared

Case: TypeAlias = Callable[[str, str], None]

VERSION = "8.2.0"
TIMEOUT_SECONDS = 10.0

DIFFERENCES: tuple[Difference, ...] = ()  # every behaviour that is asked for, both have

NOT_IMITATED: tuple[tuple[str, str], ...] = (
    (
        "some answers of the product have more fields, such as `createdBy` of a feature or `summary` of an event",
        "nothing of ours reads them",
    ),
    (
        "the product says in more detail which property of a body is wrong",
        "status and `name` decide, the message is for people",
    ),
    ("the ETag of the product's reads is a digest, the loopback's the newest event", "neither is honoured in If-Match"),
    (
        "the product shows a strategy's segments in an order that differs from one view to the next",
        "the adapter compares them without one",
    ),
    (
        "the product limits lengths, counts and the operators of constraints by its schema, the loopback takes them",
        "the adapter's own arguments are narrower",
    ),
    (
        "the loopback has an environment `staging`; a fresh product has `development` and `production`",
        "the behaviours ask which there are",
    ),
    (
        "the loopback's client tokens are not registered: any token that names an environment may read",
        "only tests read as a client",
    ),
)

_FLEXIBLE = {"name": "flexibleRollout"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body; `json` is None where there is no JSON."""

    status: int
    json: Any


@dataclass(frozen=True, slots=True)
class Server:
    """One server, one fresh flag name, and the environment that is looked at."""

    base_url: str
    token: str
    flag: str
    environment: str

    @property
    def flags(self) -> str:
        """Where flags are created."""
        return "/api/admin/projects/default/features"

    @property
    def path(self) -> str:
        """Our flag."""
        return f"{self.flags}/{self.flag}"

    @property
    def there(self) -> str:
        """Our flag in the environment."""
        return f"{self.path}/environments/{self.environment}"

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request on a connection of its own."""
        return ask(self.base_url, self.token, method, path, body, headers)

    def create(self, **fields: Any) -> Any:
        """Create our flag."""
        made = self.ask("POST", self.flags, {"name": self.flag, **fields})
        assert made.status == 201, made
        return made.json

    def add(self, **fields: Any) -> Any:
        """Add a strategy to our flag there."""
        made = self.ask("POST", f"{self.there}/strategies", {**_FLEXIBLE, **fields})
        assert made.status == 200, made
        return made.json

    def within(self) -> Any:
        """The environment as the whole flag shows it."""
        shown = self.ask("GET", self.path).json["environments"]
        return next(item for item in shown if item["name"] == self.environment)

    def events(self) -> list[Any]:
        """Our flag's events, newest first."""
        found = self.ask("GET", f"/api/admin/search/events?feature=IS:{self.flag}&limit=50").json
        assert found["total"] == len(found["events"])
        return list(found["events"])

    def kinds(self) -> list[str]:
        """The kinds of those events."""
        return [str(event["type"]) for event in self.events()]


def ask(
    base_url: str, token: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """One request on a connection of its own; never repeated."""
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_SECONDS)
    content = body if isinstance(body, str) else None if body is None else json.dumps(body)
    sent = {"Content-Type": "application/json", **({"Authorization": token} if token else {}), **(headers or {})}
    try:
        connection.request(method, path, content, sent)
        response = connection.getresponse()
        raw = response.read()
    finally:
        connection.close()
    try:
        return Answer(response.status, json.loads(raw) if raw else None)
    except ValueError:
        return Answer(response.status, None)


def serve(base_url: str, token: str) -> Server:
    """The server with a flag name of our own."""
    found = ask(base_url, token, "GET", "/api/admin/environments")
    assert found.status == 200, found
    return Server(base_url, token, f"amends-{uuid.uuid4().hex[:12]}", str(found.json["environments"][0]["name"]))


# --- a flag's life ------------------------------------------------------------------------------------------------


def a_created_flag_is_off_everywhere_and_bears_its_description(base_url: str, token: str) -> None:
    """201 with the flag itself: name, project and description are read back in the answer."""
    server = serve(base_url, token)
    made = server.create(description="[amends:act-1] ours", type="release")
    assert (made["name"], made["project"], made["description"]) == (server.flag, "default", "[amends:act-1] ours")
    shown = server.ask("GET", server.path).json
    assert (shown["name"], shown["archived"]) == (server.flag, False)
    assert [item["enabled"] for item in shown["environments"]] == [False] * len(shown["environments"])
    assert all(item["strategies"] == [] for item in shown["environments"])
    assert server.kinds() == ["feature-created"]
    assert "[amends:act-1] ours" in str(server.events()[0]["data"])


def a_name_is_taken_once_and_for_all(base_url: str, token: str) -> None:
    """409 NameExistsError, also of an archived flag; only deleting frees the name."""
    server = serve(base_url, token)
    server.create()
    for way in ((), ("DELETE", server.path)):
        if way:
            assert server.ask(*way).status == 202
        again = server.ask("POST", server.flags, {"name": server.flag})
        assert (again.status, again.json["name"]) == (409, "NameExistsError")
    assert server.ask("DELETE", f"/api/admin/archive/{server.flag}").status == 200
    assert server.kinds()[0] == "feature-deleted"
    assert server.ask("POST", server.flags, {"name": server.flag}).status == 201


def what_is_no_flag_is_refused_before_anything_exists(base_url: str, token: str) -> None:
    """No name, no URL friendly name, no known type: 400. No project: 404. No JSON: 400 and a page."""
    server = serve(base_url, token)
    for body in ({}, {"name": "not friendly!"}, {"name": server.flag, "type": "nonsuch"}):
        refused = server.ask("POST", server.flags, body)
        assert (refused.status, refused.json["name"]) == (400, "BadDataError"), body
    elsewhere = server.ask("POST", "/api/admin/projects/nonsuch/features", {"name": server.flag})
    assert (elsewhere.status, elsewhere.json["name"]) == (404, "NotFoundError")
    assert server.ask("POST", server.flags, "not json") == Answer(400, None)
    assert server.ask("GET", server.path).status == 404


def a_full_update_forgets_and_a_patch_does_not(base_url: str, token: str) -> None:
    """PUT without a description sets null; PATCH takes JSON Patch, and only a list."""
    server = serve(base_url, token)
    server.create(description="for people", type="experiment")
    forgotten = server.ask("PUT", server.path, {"name": server.flag}).json
    assert (forgotten["description"], forgotten["type"]) == (None, "release")
    patch = [{"op": "replace", "path": "/description", "value": "again"}]
    assert server.ask("PATCH", server.path, patch).json["description"] == "again"
    refused = server.ask("PATCH", server.path, {"op": "replace"})
    assert (refused.status, refused.json["name"]) == (400, "BadDataError")


def if_match_is_ignored_and_events_are_the_witness(base_url: str, token: str) -> None:
    """There is no compare-and-set; each change raises the newest event's id."""
    server = serve(base_url, token)
    server.create()
    before = server.events()[0]["id"]
    stale = server.ask("PUT", server.path, {"description": "x"}, {"If-Match": 'W/"stale"'})
    assert stale.status == 200
    newest = server.events()[0]
    assert newest["id"] > before
    assert (newest["type"], newest["featureName"], newest["environment"]) == (
        "feature-metadata-updated",
        server.flag,
        None,
    )
    page = server.ask("GET", f"/api/admin/search/events?feature=IS:{server.flag}&limit=1&offset=1").json
    assert [event["id"] for event in page["events"]] == [before]
    assert server.ask("GET", f"/api/admin/search/events?feature=IS:{server.flag}-not").json["events"] == []


# --- archive and revive ----------------------------------------------------------------------------------------------


def archive_and_revive_loses_every_switch(base_url: str, token: str) -> None:
    """202 with nothing in it; strategies stay, all environments come back off."""
    server = serve(base_url, token)
    server.create()
    server.ask("POST", f"{server.there}/on")
    assert server.ask("DELETE", server.path) == Answer(202, None)
    assert server.ask("GET", server.path).json["name"] == "NotFoundError"
    assert server.kinds()[0] == "feature-archived"
    revive = "/api/admin/projects/default/revive"
    assert server.ask("POST", revive, {"features": [server.flag]}) == Answer(200, None)
    assert server.kinds()[0] == "feature-revived"
    assert (server.within()["enabled"], len(server.within()["strategies"])) == (False, 1)


def archiving_twice_is_accepted_twice(base_url: str, token: str) -> None:
    """202 and one more event: the answer does not tell the first from the second."""
    server = serve(base_url, token)
    server.create()
    assert [server.ask("DELETE", server.path).status for _ in range(2)] == [202, 202]
    assert server.kinds()[:2] == ["feature-archived", "feature-archived"]
    missing = server.ask("DELETE", f"{server.path}-not")
    assert (missing.status, missing.json["name"]) == (404, "NotFoundError")


def reviving_a_live_flag_depends_on_the_address(base_url: str, token: str) -> None:
    """By its project nothing happens, and 200 is the answer; by the archive it is switched off everywhere."""
    server = serve(base_url, token)
    server.create()
    server.ask("POST", f"{server.there}/on")
    names = {"features": [server.flag, f"{server.flag}-not"]}
    assert server.ask("POST", "/api/admin/projects/default/revive", names).status == 200
    assert server.within()["enabled"] is True
    assert "feature-revived" not in server.kinds()
    assert server.ask("POST", f"/api/admin/archive/revive/{server.flag}").status == 200
    assert server.within()["enabled"] is False
    assert server.kinds()[0] == "feature-revived"
    assert server.ask("POST", f"/api/admin/archive/revive/{server.flag}-not").status == 404


def an_archived_flag_is_hidden_only_as_a_whole(base_url: str, token: str) -> None:
    """The environment's own view goes on to show it, on as it was; it takes strategies, but no switch."""
    server = serve(base_url, token)
    server.create()
    server.ask("POST", f"{server.there}/on")
    server.ask("DELETE", server.path)
    assert server.ask("GET", server.path).status == 404
    view = server.ask("GET", server.there)
    assert (view.status, view.json["enabled"]) == (200, True)
    refused = server.ask("POST", f"{server.there}/on")
    assert (refused.status, refused.json["name"]) == (400, "ArchivedFeatureError")
    assert server.ask("POST", f"{server.there}/strategies", _FLEXIBLE).status == 200


def deleting_a_live_flag_does_nothing_and_says_so_to_nobody(base_url: str, token: str) -> None:
    """200 from the archive for a flag that is not in it."""
    server = serve(base_url, token)
    server.create()
    assert server.ask("DELETE", f"/api/admin/archive/{server.flag}").status == 200
    assert server.ask("GET", server.path).status == 200
    assert server.kinds() == ["feature-created"]


# --- switches ----------------------------------------------------------------------------------------------------


def on_is_not_undone_by_off(base_url: str, token: str) -> None:
    """An empty 200; where no enabled strategy stands one is added, before the switch in the log; off leaves it."""
    server = serve(base_url, token)
    server.create()
    assert server.ask("POST", f"{server.there}/on") == Answer(200, None)
    assert server.kinds()[:2] == ["feature-environment-enabled", "feature-strategy-add"]
    switched, added = server.events()[:2]
    assert (switched["environment"], added["environment"]) == (server.environment, server.environment)
    assert switched["createdBy"] == added["createdBy"]
    [strategy] = server.within()["strategies"]
    assert strategy["parameters"] == {"groupId": server.flag, "rollout": "100", "stickiness": "default"}
    assert added["data"] == strategy
    assert server.ask("POST", f"{server.there}/off").status == 200
    assert (server.within()["enabled"], server.within()["strategies"]) == (False, [strategy])
    assert server.kinds()[0] == "feature-environment-disabled"


def switching_twice_writes_one_event_in_one_environment(base_url: str, token: str) -> None:
    """Idempotent, and the other environments do not move."""
    server = serve(base_url, token)
    server.create()
    for _ in range(2):
        assert server.ask("POST", f"{server.there}/on").status == 200
    assert server.kinds().count("feature-environment-enabled") == 1
    assert len(server.within()["strategies"]) == 1
    others = [item for item in server.ask("GET", server.path).json["environments"] if item != server.within()]
    assert others
    assert not any(item["enabled"] or item["strategies"] for item in others)


def a_disabled_strategy_does_not_count(base_url: str, token: str) -> None:
    """Switching on beside it adds another, or enables it where that is asked for."""
    server = serve(base_url, token)
    server.create()
    server.add(title="asleep", disabled=True)
    server.ask("POST", f"{server.there}/on")
    assert [one["disabled"] for one in server.within()["strategies"]] == [True, False]
    other = serve(base_url, token)
    other.create()
    other.add(title="asleep", disabled=True)
    other.ask("POST", f"{other.there}/on?shouldActivateDisabledStrategies=true")
    assert [one["disabled"] for one in other.within()["strategies"]] == [False]


def the_last_enabled_strategy_takes_the_switch_with_it(base_url: str, token: str) -> None:
    """Deleted or disabled: the environment is off, with an event of its own."""
    server = serve(base_url, token)
    server.create()
    made = server.add(title="only")
    server.ask("POST", f"{server.there}/on")
    patch = [{"op": "replace", "path": "/disabled", "value": True}]
    assert server.ask("PATCH", f"{server.there}/strategies/{made['id']}", patch).json["disabled"] is True
    assert server.within()["enabled"] is False
    assert server.kinds()[:2] == ["feature-environment-disabled", "feature-strategy-update"]
    other = serve(base_url, token)
    other.create()
    other.ask("POST", f"{other.there}/on")
    [strategy] = other.within()["strategies"]
    assert other.ask("DELETE", f"{other.there}/strategies/{strategy['id']}") == Answer(200, None)
    assert (other.within()["enabled"], other.within()["strategies"]) == (False, [])
    assert other.kinds()[:2] == ["feature-strategy-remove", "feature-environment-disabled"]


def an_unknown_flag_or_environment_is_not_found(base_url: str, token: str) -> None:
    """404 NotFoundError wherever it is asked; adding a strategy in no environment is 400."""
    server = serve(base_url, token)
    nowhere = f"{server.path}/environments/nowhere"
    for method, path in (("GET", server.path), ("GET", server.there), ("POST", f"{server.there}/on")):
        missing = server.ask(method, path)
        assert (missing.status, missing.json["name"]) == (404, "NotFoundError"), path
    server.create()
    for method, path in (("GET", nowhere), ("POST", f"{nowhere}/on"), ("POST", f"{nowhere}/off")):
        missing = server.ask(method, path)
        assert (missing.status, missing.json["name"]) == (404, "NotFoundError"), path
    refused = server.ask("POST", f"{nowhere}/strategies", _FLEXIBLE)
    assert (refused.status, refused.json["name"]) == (400, "BadDataError")


# --- strategies, segments, variants ------------------------------------------------------------------------------


def a_strategy_added_twice_is_two(base_url: str, token: str) -> None:
    """The answer is the strategy; an id of one's own is not taken; the second goes to the end."""
    server = serve(base_url, token)
    server.create()
    constraint = {"contextName": "cohort", "operator": "IN", "values": ["qa"]}
    made = [server.add(id="mine", title="amends:act-1 qa", constraints=[constraint]) for _ in range(2)]
    assert made[0]["id"] != made[1]["id"] != "mine"
    assert {**made[0], "id": "", "sortOrder": 1} == {**made[1], "id": ""}
    assert (made[0]["title"], made[0]["constraints"], made[0]["disabled"]) == ("amends:act-1 qa", [constraint], False)
    assert [one["id"] for one in server.within()["strategies"]] == [one["id"] for one in made]


def a_strategy_put_back_has_another_id(base_url: str, token: str) -> None:
    """Its content can be restored exactly."""
    server = serve(base_url, token)
    server.create()
    former = server.add(title="theirs", parameters={"rollout": "30", "stickiness": "userId", "groupId": "g"})
    server.ask("DELETE", f"{server.there}/strategies/{former['id']}")
    again = server.add(**former)
    assert again["id"] != former["id"]
    assert {**again, "id": ""} == {**former, "id": ""}
    gone = server.ask("DELETE", f"{server.there}/strategies/{former['id']}")
    assert (gone.status, gone.json["name"]) == (404, "NotFoundError")


def a_strategy_put_anew_forgets_all_but_segments_and_order(base_url: str, token: str) -> None:
    """What a full update leaves out goes back to its default."""
    server = serve(base_url, token)
    server.create()
    segment = _segment(server)
    variants = [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    constraint = {"contextName": "cohort", "operator": "IN", "values": ["qa"]}
    server.add(title="first")
    made = server.add(
        title="t", segments=[segment], constraints=[constraint], variants=variants, parameters={"rollout": "5"}
    )
    put = server.ask("PUT", f"{server.there}/strategies/{made['id']}", {**_FLEXIBLE, "title": "u"}).json
    assert (put["id"], put["title"], put["segments"], put["sortOrder"]) == (made["id"], "u", [segment], 1)
    assert (put["constraints"], put["variants"], put["parameters"]["rollout"]) == ([], [], "100")
    assert server.within()["strategies"][1] == put
    assert server.kinds()[0] == "feature-strategy-update"
    newest = server.events()[0]
    assert (newest["preData"]["title"], newest["data"]["title"]) == ("t", "u")
    whole = server.ask("PUT", f"{server.there}/strategies/{made['id']}", made).json
    assert whole == made


def an_environments_own_view_leaves_segments_out(base_url: str, token: str) -> None:
    """The flag as a whole shows them, and so does the strategy by its id."""
    server = serve(base_url, token)
    server.create()
    segment = _segment(server)
    made = server.add(title="t", segments=[segment])
    [within] = server.within()["strategies"]
    assert within == made
    [view] = server.ask("GET", server.there).json["strategies"]
    assert "segments" not in view
    assert {**view, "segments": [segment]} == {**made, "featureName": server.flag}
    assert server.ask("GET", f"{server.there}/strategies/{made['id']}").json == made
    [listed] = server.ask("GET", f"{server.there}/strategies").json
    assert listed == {**made, "milestoneId": None}


def segments_are_referred_to_by_number(base_url: str, token: str) -> None:
    """One that does not exist is refused, with nothing added; names are unique."""
    server = serve(base_url, token)
    server.create()
    refused = server.ask("POST", f"{server.there}/strategies", {**_FLEXIBLE, "segments": [987654]})
    assert (refused.status, refused.json["name"]) == (404, "NotFoundError")
    assert server.within()["strategies"] == []
    segment = _segment(server)
    shown = server.ask("GET", f"/api/admin/segments/{segment}").json
    assert (shown["id"], shown["name"]) == (segment, server.flag)
    again = server.ask("POST", "/api/admin/segments", {"name": server.flag, "constraints": []})
    assert (again.status, again.json["name"]) == (409, "NameExistsError")


def what_is_no_strategy_is_refused(base_url: str, token: str) -> None:
    """Without a name, or of a type that the server does not have: 400, and nothing is added."""
    server = serve(base_url, token)
    server.create()
    for body in ({"title": "no name"}, {"name": "nonsuch"}):
        refused = server.ask("POST", f"{server.there}/strategies", body)
        assert (refused.status, refused.json["name"]) == (400, "BadDataError"), body
    assert server.within()["strategies"] == []
    assert server.ask("POST", f"{server.there}/strategies", {"name": "default"}).json["parameters"] == {}


def variants_belong_to_strategies(base_url: str, token: str) -> None:
    """JSON Patch sets them, and nothing else of the strategy; the variable ones share what the fixed ones leave."""
    server = serve(base_url, token)
    server.create()
    made = server.add(title="t", parameters={"rollout": "40"})
    address = f"{server.there}/strategies/{made['id']}"
    blue: dict[str, Any] = {"name": "blue", "weight": 300, "weightType": "fix", "stickiness": "default"}
    blue["payload"] = {"type": "string", "value": "#00f"}
    red = {"name": "red", "weight": 700, "weightType": "variable", "stickiness": "default"}
    patched = server.ask("PATCH", address, [{"op": "replace", "path": "/variants", "value": [blue, red]}])
    assert (patched.status, patched.json) == (200, {**made, "variants": [blue, red]})
    uneven = [blue, {**red, "weight": 1}, {**red, "name": "green", "weight": 1}]
    shared = server.ask("PATCH", address, [{"op": "replace", "path": "/variants", "value": uneven}]).json
    assert [one["weight"] for one in shared["variants"]] == [300, 350, 350]
    fixed = server.ask("PATCH", address, [{"op": "replace", "path": "/variants", "value": [blue]}])
    assert (fixed.status, fixed.json["name"]) == (400, "BadDataError")
    emptied = server.ask("PATCH", address, [{"op": "replace", "path": "/variants", "value": []}])
    assert emptied.json == made


def variants_are_kept_by_name(base_url: str, token: str) -> None:
    """In whatever order they are sent, when a strategy is added, put or patched."""
    server = serve(base_url, token)
    server.create()
    first = {"name": "on", "weight": 300, "weightType": "fix", "stickiness": "default"}
    then = {"name": "Off", "weight": 700, "weightType": "variable", "stickiness": "default"}
    made = server.add(variants=[first, then])
    address = f"{server.there}/strategies/{made['id']}"
    put = server.ask("PUT", address, {**_FLEXIBLE, "variants": [first, then]}).json
    patched = server.ask("PATCH", address, [{"op": "replace", "path": "/variants", "value": [first, then]}]).json
    [shown] = server.within()["strategies"]
    assert made["variants"] == put["variants"] == patched["variants"] == shown["variants"] == [then, first]


def variants_of_an_environment_or_a_flag_are_gone(base_url: str, token: str) -> None:
    """403 InvalidOperationError for the former, no such address for the latter: strategy variants are what is left."""
    server = serve(base_url, token)
    server.create()
    variants = [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    patch = [{"op": "add", "path": "/0", "value": variants[0]}]
    for method, body in (("PUT", variants), ("PATCH", patch)):
        refused = server.ask(method, f"{server.there}/variants", body)
        assert (refused.status, refused.json["name"]) == (403, "InvalidOperationError")
        missing = server.ask(method, f"{server.path}/variants", body)
        assert (missing.status, missing.json["name"]) == (404, "NotFoundError")
    assert server.ask("GET", f"{server.there}/variants").json["variants"] == []


def a_new_order_is_one_event_of_its_own(base_url: str, token: str) -> None:
    """It changes no strategy's content but the order."""
    server = serve(base_url, token)
    server.create()
    first, second = server.add(title="a"), server.add(title="b")
    order = [{"id": first["id"], "sortOrder": 3}, {"id": second["id"], "sortOrder": 1}]
    assert server.ask("POST", f"{server.there}/strategies/set-sort-order", order).status == 200
    assert [one["title"] for one in server.within()["strategies"]] == ["b", "a"]
    assert server.events()[0]["type"] == "strategy-order-changed"
    assert server.events()[0]["data"] == {"strategyIds": [second["id"], first["id"]]}


# --- who may ask -------------------------------------------------------------------------------------------------


def without_a_known_token_nothing_is_told(base_url: str, token: str) -> None:
    """401, with and without one."""
    server = serve(base_url, token)
    for wrong in ("nobody", ""):
        refused = ask(base_url, wrong, "POST", server.flags, {"name": server.flag})
        assert refused.status == 401
        assert refused.json["message"].startswith("You must log in to use Unleash.")
    assert server.ask("GET", server.path).status == 404


def an_unknown_address_says_so_in_other_words_than_a_missing_flag(base_url: str, token: str) -> None:
    """Both are NotFoundError: only the message tells a wrong base address from a flag that is not there."""
    server = serve(base_url, token)
    missing = server.ask("GET", "/api/admin/nonsuch")
    assert (missing.status, missing.json["name"]) == (404, "NotFoundError")
    assert missing.json["message"].startswith("The path you were looking for")
    assert not server.ask("GET", server.path).json["message"].startswith("The path you were looking for")


def a_project_names_its_environments(base_url: str, token: str) -> None:
    """The overview; a project that is not there has none."""
    server = serve(base_url, token)
    found = server.ask("GET", "/api/admin/projects/default/overview").json
    assert {"environment": server.environment}.items() <= found["environments"][0].items()
    assert server.ask("GET", "/api/admin/projects/nonsuch/overview").status == 404


def _segment(server: Server) -> int:
    constraint = {"contextName": "userId", "operator": "IN", "values": ["1"]}
    made = server.ask("POST", "/api/admin/segments", {"name": server.flag, "constraints": [constraint]})
    assert made.status == 201, made
    return int(made.json["id"])


CASES: tuple[Case, ...] = (
    a_created_flag_is_off_everywhere_and_bears_its_description,
    a_name_is_taken_once_and_for_all,
    what_is_no_flag_is_refused_before_anything_exists,
    a_full_update_forgets_and_a_patch_does_not,
    if_match_is_ignored_and_events_are_the_witness,
    archive_and_revive_loses_every_switch,
    archiving_twice_is_accepted_twice,
    reviving_a_live_flag_depends_on_the_address,
    an_archived_flag_is_hidden_only_as_a_whole,
    deleting_a_live_flag_does_nothing_and_says_so_to_nobody,
    on_is_not_undone_by_off,
    switching_twice_writes_one_event_in_one_environment,
    a_disabled_strategy_does_not_count,
    the_last_enabled_strategy_takes_the_switch_with_it,
    an_unknown_flag_or_environment_is_not_found,
    a_strategy_added_twice_is_two,
    a_strategy_put_back_has_another_id,
    a_strategy_put_anew_forgets_all_but_segments_and_order,
    an_environments_own_view_leaves_segments_out,
    segments_are_referred_to_by_number,
    what_is_no_strategy_is_refused,
    variants_belong_to_strategies,
    variants_are_kept_by_name,
    variants_of_an_environment_or_a_flag_are_gone,
    a_new_order_is_one_event_of_its_own,
    without_a_known_token_nothing_is_told,
    an_unknown_address_says_so_in_other_words_than_a_missing_flag,
    a_project_names_its_environments,
)


def problems(system: str, base_url: str, token: str) -> list[str]:
    """What is not as this page says of `system` (`loopback` or `unleash`); empty if all is."""
    behaviours = [_behaviour(case) for case in CASES]
    return compared(behaviours, DIFFERENCES, system=system, site=Site(base_url, token))


def _behaviour(case: Case) -> Behaviour:
    def asked(site: Site) -> None:
        case(site.base_url, site.token)

    asked.__name__ = case.__name__
    return asked


if __name__ == "__main__":
    found = problems("unleash", *sys.argv[1:3])
    sys.stdout.write("".join(f"{line}\n" for line in [*found, f"{len(CASES) - len(found)} of {len(CASES)} hold"]))
    sys.exit(1 if found else 0)
