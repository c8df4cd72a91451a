"""One suite over both places where flags live: whatever holds of a capability holds on a server and in a file."""

from __future__ import annotations

import json

import pytest

from amends.core.registration import refusals
from amends.spi import NotSent, Refused
from amends.testing.loopback import LoopbackSystem

FEATURES = "/api/admin/projects/default/features"
QA = {"feature": "fresh", "cohort": "qa", "constraints": [{"contextName": "group", "operator": "IN", "values": ["qa"]}]}
SPLIT = [{"name": "on", "weight_percent": 30}, {"name": "off", "weight_percent": 70}]
NAMES = ["flags.set", "flags.strategy", "flags.variants", "flags.create", "flags.archive"]


class Server:
    """The loopback flag server, looked at and changed from outside."""

    def __init__(self, unleash):
        self._unleash = unleash
        self.options = {"url": unleash.url}
        unleash.control("seed_flag", name="fresh")
        unleash.control("seed_flag", name="other")

    def view(self):
        """Everything that evaluators can see, without ids and the fields of the log."""
        shown = [self._feature(name) for name in ("fresh", "other", "made")]
        return json.loads(json.dumps(shown))

    def foreign(self, enabled):
        self._unleash.foreign("POST", f"{FEATURES}/fresh/environments/staging/{'on' if enabled else 'off'}")

    def foreign_rule(self):
        body = {"name": "default", "title": "theirs"}
        self._unleash.foreign("POST", f"{FEATURES}/fresh/environments/staging/strategies", body)

    def foreign_elsewhere(self):
        self._unleash.foreign("PATCH", f"{FEATURES}/other", [{"op": "replace", "path": "/description", "value": "x"}])

    def _feature(self, name):
        body = self._unleash.foreign("GET", f"{FEATURES}/{name}")["body"]
        environments = body.get("environments", [])
        for environment in environments:
            for strategy in environment["strategies"]:
                del strategy["id"]
        return name, body.get("description"), environments


class File:
    """A flagd file, looked at and changed by somebody with an editor."""

    def __init__(self, path):
        self._path = path
        self.options = {"backend": "flagd", "file": str(path)}
        flag = {"state": "DISABLED", "variants": {"on": True, "off": False}, "defaultVariant": "off"}
        document = {"$schema": "https://flagd.dev/schema/v0/flags.json", "flags": {"fresh": flag, "other": flag}}
        path.write_text(json.dumps(document, indent=4) + "\n", encoding="utf-8")

    def view(self):
        return json.loads(self._path.read_text(encoding="utf-8"))

    def foreign(self, enabled):
        self._edit("fresh", lambda flag: flag.update(state="ENABLED" if enabled else "DISABLED"))

    def foreign_rule(self):
        self._edit("fresh", lambda flag: flag.update(targeting={"if": [True, "on", flag.get("targeting")]}))

    def foreign_elsewhere(self):
        self._edit("other", lambda flag: flag.update(metadata={"description": "x"}))

    def _edit(self, name, change):
        document = self.view()
        change(document["flags"][name])
        self._path.write_text(json.dumps(document, indent=4) + "\n", encoding="utf-8")


@pytest.fixture(params=["unleash", "flagd"])
def place(request, tmp_path):
    if request.param == "flagd":
        yield File(tmp_path / "flags.json")
        return
    with LoopbackSystem.start("unleash") as system:
        yield Server(system)


@pytest.fixture
def on_place(place, adapter, driver_of):
    capabilities = adapter(**place.options).capabilities

    def make(name, action="act-1", **args):
        return driver_of(capabilities[f"flags.{name}"], args, action)

    make.capabilities = capabilities
    return make


def fitting(capability, state):
    """The first rung whose `when` matches."""
    return next(a.name for a in capability.contract.compensation if all(state.get(k) in v for k, v in a.when.items()))


def undo(one):
    """Probe, choose, take back, look again: as the engine does."""
    seen = one.probe()
    assert seen.seen == "applied"
    one.undo(fitting(one.capability, seen.state))
    assert one.verify().seen == "absent"


def test_both_offer_the_same_capabilities(on_place):
    """Five, each with a contract that may be registered, in the one environment of the adapter."""
    assert list(on_place.capabilities) == NAMES
    for capability in on_place.capabilities.values():
        assert refusals(capability.contract) == ()
        assert capability.contract.effect.resource == "flag:default/{feature}@staging"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("set", {"feature": "fresh", "enabled": True}),
        ("strategy", QA),
        ("strategy", {**QA, "rollout_percent": 25, "constraints": []}),
        ("create", {"feature": "made", "description": "näh 漢字 😀"}),
        ("archive", {"feature": "fresh"}),
    ],
)
def test_what_is_done_is_seen_and_taken_back_whole(place, on_place, name, args):
    """The snapshot before, the change, a read of it, and afterwards nothing is left of it anywhere."""
    before = place.view()
    one = on_place(name, **args)
    one.do()
    assert place.view() != before
    undo(one)
    assert place.view() == before


def test_a_cohort_is_opened_split_and_widened_and_all_of_it_goes_back(place, on_place):
    """Each step restores what it found: the split goes first, then the wider rule, then the first one."""
    bare = place.view()
    first = on_place("strategy", **QA)
    first.do()
    opened = place.view()
    split = on_place("variants", "act-2", feature="fresh", cohort="qa", variants=SPLIT)
    split.do()
    parted = place.view()
    wider = on_place("strategy", "act-3", **{**QA, "constraints": []})
    wider.do()
    for one, expected in ((wider, parted), (split, opened), (first, bare)):
        undo(one)
        assert place.view() == expected


def test_what_others_add_stays(place, on_place):
    """Field-wise: a foreign rule that came after ours survives our undo, and so does a change to another flag."""
    one = on_place("strategy", **QA)
    one.do()
    place.foreign_rule()
    place.foreign_elsewhere()
    undo(one)
    assert "theirs" in json.dumps(place.view()) or '{"if": [true, "on", null]}' in json.dumps(place.view())
    assert '"x"' in json.dumps(place.view())


@pytest.mark.parametrize("name", ["set", "strategy", "archive"])
def test_a_change_between_snapshot_and_call_sends_nothing(place, on_place, name):
    """The revision was journalled with the snapshot; at another one nothing is done."""
    args = {"set": {"feature": "fresh", "enabled": True}, "strategy": QA, "archive": {"feature": "fresh"}}[name]
    one = on_place(name, **args)
    one.prepare()
    place.foreign_rule()
    there = place.view()
    with pytest.raises(NotSent) as no:
        one.capability.do(one.call())
    assert no.value.code == "changed_since_prepared"
    assert place.view() == there


def test_a_change_between_look_and_undo_stops_the_undo(place, on_place):
    """Off and on again by somebody leaves the same content: only the revision tells, on a server as in a file."""
    one = on_place("set", feature="fresh", enabled=True)
    one.do()
    observed = one.probe()
    place.foreign_rule()
    with pytest.raises(NotSent) as no:
        one.capability.undo(one.call(fitting(one.capability, observed.state), observed))
    assert no.value.code == "foreign_edit"
    assert one.probe().seen == "diverged"


def test_what_somebody_undid_already_is_absent(place, on_place):
    """Nothing is left to take back."""
    place.foreign_rule()
    one = on_place("set", feature="fresh", enabled=True)
    one.do()
    place.foreign(enabled=False)
    assert one.probe().seen == "absent"


def test_a_switch_that_stands_already_changes_nothing(place, on_place):
    """No marker is left for nothing."""
    place.foreign_rule()
    place.foreign(enabled=True)
    before = place.view()
    one = on_place("set", feature="fresh", enabled=True)
    one.do()
    assert (one.probe().seen, place.view()) == ("absent", before)


def test_a_name_that_somebody_took_is_refused(place, on_place):
    """Neither adopted nor taken away; an archived one is taken too."""
    one = on_place("create", feature="fresh")
    for archived in (False, True):
        if archived:
            on_place("archive", "act-2", feature="fresh").do()
        with pytest.raises(Refused) as no:
            one.do()
        assert no.value.code == "name_exists"
        assert one.probe().seen == "absent"
    with pytest.raises(NotSent):
        one.undo("take_away")


def test_a_flag_that_is_on_is_not_archived(place, on_place):
    """It must be switched off first, by a call of its own."""
    place.foreign_rule()
    place.foreign(enabled=True)
    with pytest.raises(NotSent) as no:
        on_place("archive", feature="fresh").do()
    assert no.value.code == "still_on"


def test_an_archived_flag_takes_no_change(on_place):
    """It is not there, whatever one of the server's views shows."""
    on_place("archive", feature="fresh").do()
    for name, args in (("set", {"feature": "fresh", "enabled": True}), ("strategy", QA)):
        with pytest.raises(NotSent) as no:
            on_place(name, "act-2", **args).prepare()
        assert no.value.code == "no_such_flag"


def test_variants_need_a_cohort_of_ours(on_place):
    """Nobody else's strategy is split."""
    one = on_place("variants", feature="fresh", cohort="qa", variants=SPLIT)
    with pytest.raises(NotSent) as no:
        one.prepare()
    assert no.value.code == "no_such_cohort"


@pytest.mark.parametrize(
    "variants",
    [
        [{"name": "on", "weight_percent": 99}],
        [{"name": "on", "weight_percent": 50}, {"name": "on", "weight_percent": 50}],
    ],
)
def test_variants_that_do_not_add_up_are_refused(on_place, variants):
    """The whole cohort gets something, and no name stands twice."""
    with pytest.raises(ValueError, match=r"add up to 100|same name"):
        on_place("variants", feature="fresh", cohort="qa", variants=variants).call()
