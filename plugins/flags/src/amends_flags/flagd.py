"""Flags in a flagd JSON file: the port over one file, which is one environment.

    on, off     `state` is `ENABLED` or `DISABLED`
    strategy    one branch of `targeting` (see `flagd_rules`); segments are refused: `$evaluators` are other people's
    variants    what the branch gives; only variants that the flag has
    create      `on` and `off`, DISABLED, with our marker in `metadata`
    archive     DISABLED and marked as archived in `metadata`: flagd has no archive, and the definition is not lost

The newest change of an agent run is named in the flag's `metadata.amends`; taking it back puts the former one back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from amends.spi import Call, DoctorFinding, Json, NotSent, Question
from amends.spi.http import Unreadable
from amends_flags.flagd_file import FlagFile, fingerprint
from amends_flags.flagd_rules import (
    branches,
    condition,
    labelled,
    split,
    unlabelled,
    with_changed,
    with_first,
    without,
)
from amends_flags.images import Ending, Flag, Origin, Strategy, Switched, feature_of, listed, mapped, title_of
from amends_flags.options import FlagdOptions

_CHANGED, _CREATED, _ARCHIVED = "amends", "amends_created", "amends_archived"
_STATES = {"ENABLED": True, "DISABLED": False}


class Flagd:
    """One flagd file. Every write is one step under the file's lock, its look at the revision included."""

    def __init__(self, options: FlagdOptions) -> None:
        self.options = options
        self._file = FlagFile(Path(options.file))

    def flag(self, question: Question) -> Flag | None:
        entry = self._entry(question)
        return None if entry is None or _archived(entry) else self._flag(entry)

    def switched(self, question: Question) -> Switched:
        """The file is the record, and a switch brings nothing else with it."""
        flag = self.flag(question)
        return Switched(flag is not None and flag.enabled == (question.args.get("enabled") is True))

    def origin(self, question: Question) -> Origin | None:
        entry = self._entry(question)
        if entry is None or _archived(entry):
            return None
        ours = mapped(entry.get("metadata")).get(_CREATED) == question.marker
        in_use = entry.get("state") == "ENABLED" or bool(entry.get("targeting"))
        return Origin(ours=ours, edited=ours and entry != self._created(question) and not in_use, in_use=in_use)

    def ending(self, question: Question) -> tuple[Ending, str]:
        entry = self._entry(question)
        if entry is None:
            return "deleted", ""
        return ("archived", str(mapped(entry.get("metadata")).get(_CHANGED, ""))) if _archived(entry) else ("live", "")

    def rule(self, question: Question) -> dict[str, Json]:
        if question.args.get("segments"):
            raise NotSent("a flagd file has no segments: write the constraints themselves", code="unsupported")
        rollout = question.args.get("rollout_percent", 100)
        try:
            when = condition(listed(question.args.get("constraints")), rollout if isinstance(rollout, int) else 100)
        except ValueError as error:
            raise NotSent(str(error), code="unsupported") from None
        return {"title": title_of(question), "when": when, "variants": [self.options.on_variant]}

    def variants(self, question: Question) -> list[Json]:
        """What the branch gives. The flag's variants are its type: a run splits among them and adds none."""
        given = [mapped(item) for item in listed(question.args.get("variants"))]
        known = mapped(mapped(question.before.get("snapshot")).get("variants")) or self._known_variants(question)
        for item in given:
            name, value = str(item.get("name")), item.get("value")
            if name not in known:
                raise NotSent(f"the flag has no variant `{name}`: {', '.join(sorted(known))}", code="no_such_variant")
            if value is not None and value != known[name]:
                raise NotSent(f"the variant `{name}` has another value in the file", code="other_value")
        weights = [(str(item.get("name")), _whole(item.get("weight_percent"))) for item in given]
        return [split(weights) if weights else self.options.on_variant]

    def switch(self, call: Call, *, on: bool, revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            changes = _STATES[str(entry["state"])] is not on
            entry["state"] = "ENABLED" if on else "DISABLED"
            return changes

        self._change(call, edit, revision)

    def add_strategy(self, call: Call, content: Mapping[str, Json], revision: Json) -> str:
        def edit(entry: dict[str, Json]) -> bool:
            [then] = listed(content.get("variants"))
            if then not in mapped(entry.get("variants")):
                raise NotSent(f"the flag has no variant `{then}`; see `on_variant`", code="no_such_variant")
            entry["targeting"] = with_first(entry.get("targeting"), _when(content), then)
            return True

        self._change(call, edit, revision)
        return _identity(title_of(call), 0, 0)

    def replace_strategy(self, call: Call, strategy: str, content: Mapping[str, Json], revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            place = _place(entry, strategy)
            if place is None:
                raise NotSent("the cohort's rule is gone", code="changed_since_prepared")
            [then] = listed(content.get("variants"))
            entry["targeting"] = with_changed(entry.get("targeting"), place, _when(content), then)
            return True

        self._change(call, edit, revision)

    def remove_strategy(self, call: Call, strategy: str, revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            place = _place(entry, strategy)
            if place is None:
                return False
            left = without(entry.get("targeting"), place)
            entry["targeting"] = left
            if left is None:
                del entry["targeting"]
            return True

        self._change(call, edit, revision)

    def set_variants(self, call: Call, strategy: str, variants: list[Json], revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            place = _place(entry, strategy)
            if place is None:
                raise NotSent("the cohort's rule is gone", code="changed_since_prepared")
            when, then = branches(entry.get("targeting"))[place]
            entry["targeting"] = with_changed(entry.get("targeting"), place, when, variants[0])
            return then != variants[0]

        self._change(call, edit, revision)

    def create(self, call: Call) -> bool:
        taken = False

        def edit(document: dict[str, Json]) -> bool:
            nonlocal taken
            flags = mapped(document["flags"])
            taken = feature_of(call) in flags
            if not taken:
                flags[feature_of(call)] = self._created(call)
            return not taken

        self._write(call, edit)
        return not taken

    def discard(self, call: Call) -> None:
        """Out of the file, and only as it was created: the look at it and the change are one step."""

        def edit(document: dict[str, Json]) -> bool:
            flags = mapped(document["flags"])
            if flags.get(feature_of(call)) != self._created(call):
                raise NotSent("the flag is not as it was created", code="foreign_edit")
            del flags[feature_of(call)]
            return True

        self._write(call, edit)

    def archive(self, call: Call, revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            entry["metadata"] = {**mapped(entry.get("metadata")), _ARCHIVED: True}
            return True

        self._change(call, edit, revision)

    def revive(self, call: Call) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            metadata = mapped(entry.get("metadata"))
            return metadata.pop(_ARCHIVED, None) is not None

        self._change(call, edit, None)

    def examine(self) -> list[DoctorFinding]:
        subject = "adapters.flags"
        try:
            flags = mapped(self._document()["flags"])
        except Unreadable as lost:
            return [DoctorFinding("problem", subject, str(lost), "check `file` and `flag_environment`")]
        said = f"`{self._file.path.name}` can be read: {len(flags)} flags; it is `{self.options.flag_environment}`"
        return [DoctorFinding("ok", subject, said)]

    # --- the file -----------------------------------------------------------------------------------------------

    def _document(self) -> dict[str, Json]:
        """The file. Raises `Unreadable` too if it says of itself that it is another environment's."""
        document = self._file.read()
        _right_environment(document, self.options.flag_environment)
        return document

    def _entry(self, question: Question) -> dict[str, Json] | None:
        """The flag's own document; None if there is none. Raises `Unreadable` if flagd could not evaluate it."""
        found = mapped(self._document()["flags"]).get(feature_of(question))
        if found is None:
            return None
        if not isinstance(found, dict) or found.get("state") not in _STATES:
            raise Unreadable(f"the flag `{feature_of(question)}` has no `state` that flagd knows", code="undecodable")
        return found

    def _flag(self, entry: Mapping[str, Json]) -> Flag:
        enabled = _STATES[str(entry.get("state"))]
        on_in = (self.options.flag_environment,) if enabled else ()
        return Flag(enabled, tuple(_strategies(entry)), fingerprint(dict(entry)), on_in, entry)

    def _created(self, question: Question) -> dict[str, Json]:
        """A flag as we create it."""
        metadata: dict[str, Json] = {_CREATED: question.marker, "type": question.args.get("type", "release")}
        if question.args.get("description"):
            metadata["description"] = question.args["description"]
        return {
            "state": "DISABLED",
            "variants": {self.options.on_variant: True, self.options.off_variant: False},
            "defaultVariant": self.options.off_variant,
            "metadata": metadata,
        }

    def _known_variants(self, question: Question) -> dict[str, Json]:
        """The variants that the flag has now. Raises `NotSent`: they are asked for before anything is sent."""
        try:
            return mapped((self._entry(question) or {}).get("variants"))
        except Unreadable as lost:
            raise NotSent(f"the flag could not be read: {lost}", code=lost.code) from None

    def _change(self, call: Call, edit: Callable[[dict[str, Json]], bool], revision: Json) -> None:
        """Change the flag's own document, if it is still at `revision` (None: whatever it is at).

        Where it names our action already, the change is there and is not made again.
        """

        def in_file(document: dict[str, Json]) -> bool:
            entry = mapped(document["flags"]).get(feature_of(call))
            if not isinstance(entry, dict):
                raise NotSent("the flag was changed after it was looked at", code="changed_since_prepared")
            if not call.rung and mapped(entry.get("metadata")).get(_CHANGED) == call.marker:
                return False
            if revision is not None and fingerprint(entry) != revision:
                raise NotSent("the flag was changed after it was looked at", code="changed_since_prepared")
            changed = edit(entry)
            if changed:
                _stamp(call, entry)
            return changed

        self._write(call, in_file)

    def _write(self, call: Call, edit: Callable[[dict[str, Json]], bool]) -> None:
        def checked(document: dict[str, Json]) -> bool:
            try:
                _right_environment(document, self.options.flag_environment)
            except Unreadable as lost:
                raise NotSent(str(lost), code=lost.code) from None
            return edit(document)

        self._file.change(checked, timeout_seconds=call.timeout_seconds, still_wanted=call.still_wanted)


def _right_environment(document: Mapping[str, Json], environment: str) -> None:
    named = mapped(document.get("metadata")).get("environment")
    if named is not None and named != environment:
        raise Unreadable(f"the file is that of the environment `{named}`", code="other_environment")


def _archived(entry: Mapping[str, Json]) -> bool:
    return mapped(entry.get("metadata")).get(_ARCHIVED) is True


def _stamp(call: Call, entry: dict[str, Json]) -> None:
    """Name the run's action in the flag, or, where its change is taken back, what was named before it."""
    metadata = mapped(entry.get("metadata"))
    former = mapped(mapped(call.before.get("snapshot")).get("metadata")).get(_CHANGED)
    if not call.rung:
        metadata[_CHANGED] = call.marker
    elif metadata.get(_CHANGED) == call.marker:
        metadata[_CHANGED] = former
    if metadata.get(_CHANGED) is None:
        metadata.pop(_CHANGED, None)
    entry["metadata"] = metadata
    if not metadata:
        del entry["metadata"]


def _strategies(entry: Mapping[str, Json]) -> list[Strategy]:
    found: list[Strategy] = []
    titles: list[str] = []
    for place, (when, then) in enumerate(branches(entry.get("targeting"))):
        title, bare = unlabelled(when)
        identity = _identity(title, place, titles.count(title))
        titles.append(title)
        found.append(Strategy(identity, {"title": title, "when": bare, "variants": [then]}))
    return found


def _place(entry: Mapping[str, Json], strategy: str) -> int | None:
    """Which branch a strategy is; None if it is gone."""
    return next((at for at, found in enumerate(_strategies(entry)) if found.id == strategy), None)


def _identity(title: str, place: int, earlier: int) -> str:
    """A branch of ours is known by its cohort, which a later value keeps; another's by where it stands."""
    cohort = title.partition(" ")[2]
    if not cohort:
        return f"rule-{place}"
    return f"cohort-{fingerprint(cohort)[:12]}" + (f"-{earlier + 1}" if earlier else "")


def _when(content: Mapping[str, Json]) -> Json:
    return labelled(str(content.get("title") or ""), content.get("when"))


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0
