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
from amends_flags.flagd_entry import (
    branch_condition,
    branch_of,
    changer,
    created,
    creator,
    entry_of,
    flag_in,
    is_archived,
    is_on,
    mark_archived,
    stamp,
    strategy_id,
    turn,
)
from amends_flags.flagd_file import FlagFile, fingerprint
from amends_flags.flagd_rules import branches, condition, split, with_changed, with_first, without
from amends_flags.images import Ending, Flag, Origin, Switched, feature_of, listed, mapped, title_of
from amends_flags.options import FlagdOptions


class Flagd:
    """One flagd file. Every write is one step under the file's lock, its look at the revision included."""

    def __init__(self, options: FlagdOptions) -> None:
        self.options = options
        self._file = FlagFile(Path(options.file))

    def flag(self, question: Question) -> Flag | None:
        entry = self._entry(question)
        return None if entry is None or is_archived(entry) else flag_in(entry, self.options.flag_environment)

    def switched(self, question: Question) -> Switched:
        """The file is the record, and a switch brings nothing else with it."""
        flag = self.flag(question)
        return Switched(flag is not None and flag.enabled == (question.args.get("enabled") is True))

    def origin(self, question: Question) -> Origin | None:
        entry = self._entry(question)
        if entry is None or is_archived(entry):
            return None
        ours, in_use = creator(entry) == question.marker, is_on(entry) or bool(entry.get("targeting"))
        edited = ours and not in_use and entry != created(question, self.options)
        return Origin(ours=ours, edited=edited, in_use=in_use)

    def ending(self, question: Question) -> tuple[Ending, str]:
        entry = self._entry(question)
        if entry is None:
            return "deleted", ""
        return ("archived", str(changer(entry) or "")) if is_archived(entry) else ("live", "")

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
        self._change(call, lambda entry: turn(entry, on=on), revision)

    def add_strategy(self, call: Call, content: Mapping[str, Json], revision: Json) -> str:
        def edit(entry: dict[str, Json]) -> bool:
            [then] = listed(content.get("variants"))
            if then not in mapped(entry.get("variants")):
                raise NotSent(f"the flag has no variant `{then}`; see `on_variant`", code="no_such_variant")
            entry["targeting"] = with_first(entry.get("targeting"), branch_condition(content), then)
            return True

        self._change(call, edit, revision)
        return strategy_id(title_of(call), 0, 0)

    def replace_strategy(self, call: Call, strategy: str, content: Mapping[str, Json], revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            place = branch_of(entry, strategy)
            if place is None:
                raise NotSent("the cohort's rule is gone", code="changed_since_prepared")
            [then] = listed(content.get("variants"))
            entry["targeting"] = with_changed(entry.get("targeting"), place, branch_condition(content), then)
            return True

        self._change(call, edit, revision)

    def remove_strategy(self, call: Call, strategy: str, revision: Json) -> None:
        def edit(entry: dict[str, Json]) -> bool:
            place = branch_of(entry, strategy)
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
            place = branch_of(entry, strategy)
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
                flags[feature_of(call)] = created(call, self.options)
            return not taken

        self._write(call, edit)
        return not taken

    def discard(self, call: Call) -> None:
        """Out of the file, and only as it was created: the look at it and the change are one step."""

        def edit(document: dict[str, Json]) -> bool:
            flags = mapped(document["flags"])
            if flags.get(feature_of(call)) != created(call, self.options):
                raise NotSent("the flag is not as it was created", code="foreign_edit")
            del flags[feature_of(call)]
            return True

        self._write(call, edit)

    def archive(self, call: Call, revision: Json) -> None:
        self._change(call, lambda entry: mark_archived(entry, archived=True), revision)

    def revive(self, call: Call) -> None:
        self._change(call, lambda entry: mark_archived(entry, archived=False), None)

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
        return entry_of(self._document(), feature_of(question))

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
            if not call.rung and changer(entry) == call.marker:
                return False
            if revision is not None and fingerprint(entry) != revision:
                raise NotSent("the flag was changed after it was looked at", code="changed_since_prepared")
            changed = edit(entry)
            if changed:
                stamp(call, entry)
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


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0
