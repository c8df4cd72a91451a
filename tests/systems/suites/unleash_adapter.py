"""The life of every effect of the flags adapter, on any server with Unleash's admin API.

Each function makes an effect through the adapter, finds it again without its answer, takes it back and looks. It works
in the first environment that the server names. `problems(system, base_url, token)` is empty if all lives go as they
should.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amends.spi import Call, Capability, Json
from amends.spi.http import HttpSender
from amends.testing.differences import Behaviour, Difference, Site
from amends.testing.differences import problems as compared
from amends_flags.lifecycle import ArchiveFlag, CreateFlag
from amends_flags.options import UnleashOptions
from amends_flags.strategy import SetStrategy
from amends_flags.switch import SetFlag
from amends_flags.unleash import Unleash
from amends_flags.variants import SetVariants

FEATURES = "/api/admin/projects/default/features"
QA: Json = {"contextName": "group", "operator": "IN", "values": ["qa"]}
_numbers = itertools.count(1)


def problems(system: str, base_url: str, token: str) -> list[str]:
    """What is not as this page says of `system` (`loopback` or `unleash`); empty if all is."""
    return compared(LIVES, DIFFERENCES, system=system, site=Site(base_url, token))


class Flag:
    """A fresh name at a server, what it shows of it, and the adapter's actions on it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.name = f"amends-{uuid.uuid4().hex[:12]}"
        self.environment = str(_read(site, "/api/admin/environments")["environments"][0]["name"])
        options = UnleashOptions(
            base_url=site.base_url, token="env:TOKEN", tell="person:maya", flag_environment=self.environment
        )
        self._place = Unleash(options, lambda _: site.token, HttpSender())

    def shown(self) -> Any:
        """The environment as everybody sees it, without ids."""
        found = _read(self.site, f"{FEATURES}/{self.name}")["environments"]
        [ours] = [item for item in found if item["name"] == self.environment]
        for strategy in ours["strategies"]:
            del strategy["id"]
            strategy["segments"].sort()  # the product's order of them says nothing
        return ours

    def act(self, kind: type[SetFlag | SetStrategy | SetVariants | CreateFlag | ArchiveFlag], **args: Json) -> Action:
        """Prepare and do one action."""
        return Action(kind(self._place), {"feature": self.name, **args})


class Action:
    """One action as the engine carries it: prepared and done; then found, taken back, and looked at."""

    def __init__(self, capability: Capability, args: Mapping[str, Json]) -> None:
        self.capability = capability
        marker = f"life-{time.time_ns() // 1000}-{next(_numbers)}"
        whole = capability.arguments.model_validate(dict(args)).model_dump(mode="json")
        self.call = Call(
            run_id="run-1", action_id=marker, marker=marker, idempotency_key=f"key-{marker}", args=whole, before={},
            allocated={}, effect={}, after={}, reference="", attempt=1, sent_at_us=None, timeout_seconds=10.0,
            secret=str, deadline_us=0, still_wanted=lambda: True,
        )  # fmt: skip
        self.call = replace(self.call, before=capability.prepare(self.call).before)
        capability.do(self.call)

    def take_back(self) -> None:
        """As if its answer had been lost: found by a probe, taken back by the rung that fits, verified."""
        seen = self.capability.probe(self.call)
        assert seen.seen == "applied", seen
        rungs = self.capability.contract.compensation
        rung = next(r.name for r in rungs if all(seen.state.get(key) in values for key, values in r.when.items()))
        found = replace(self.call, after=seen.state, reference=seen.reference, rung=rung, observed=seen)
        self.capability.undo(found)
        verified = self.capability.verify_undone(found)
        assert verified.seen == "absent", verified


def a_flag_is_created_and_taken_away(site: Site) -> None:
    """Archived again; its name is taken."""
    flag = Flag(site)
    flag.act(CreateFlag, description="näh 漢字").take_back()
    assert site.call("GET", f"{FEATURES}/{flag.name}".lstrip("/")).status == 404


def a_switch_takes_its_strategy_back(site: Site) -> None:
    """On adds a strategy; nothing of it is left."""
    flag = Flag(site)
    flag.act(CreateFlag)
    before = flag.shown()
    switch = flag.act(SetFlag, enabled=True)
    assert flag.shown()["enabled"] is True
    switch.take_back()
    assert flag.shown() == before


def a_cohort_is_opened_split_and_widened_and_all_goes_back(site: Site) -> None:
    """Segments, constraints, rollout and variants, in another order than they are kept: each step restores what it
    found.
    """
    flag = Flag(site)
    flag.act(CreateFlag)
    segments = [
        site.call("POST", "api/admin/segments", {"name": f"{flag.name}-{part}", "constraints": [QA]}).json["id"]
        for part in ("a", "b", "c")
    ]
    bare = flag.shown()
    first = flag.act(SetStrategy, cohort="qa", segments=segments[::-1], constraints=[QA], rollout_percent=40)
    opened = flag.shown()
    assert opened["strategies"][0]["segments"] == segments
    blue: Json = {"name": "blue", "weight_percent": 30, "value": "#00f"}
    red: Json = {"name": "red", "weight_percent": 70, "value": {"hue": 0}}
    split = flag.act(SetVariants, cohort="qa", variants=[red, blue])
    parted = flag.shown()
    wider = flag.act(SetStrategy, cohort="qa", rollout_percent=70)
    for action, expected in ((wider, parted), (split, opened), (first, bare)):
        action.take_back()
        assert flag.shown() == expected


def an_archived_flag_is_revived_as_it_was(site: Site) -> None:
    """It was off everywhere, so nothing is lost."""
    flag = Flag(site)
    flag.act(CreateFlag)
    flag.act(SetStrategy, cohort="qa", constraints=[QA])
    before = flag.shown()
    flag.act(ArchiveFlag).take_back()
    assert flag.shown() == before


def _read(site: Site, path: str) -> Any:
    said = site.call("GET", path.lstrip("/"))
    assert said.status == 200, said
    return said.json


LIVES: tuple[Behaviour, ...] = (
    a_flag_is_created_and_taken_away,
    a_switch_takes_its_strategy_back,
    a_cohort_is_opened_split_and_widened_and_all_goes_back,
    an_archived_flag_is_revived_as_it_was,
)

DIFFERENCES: tuple[Difference, ...] = ()
