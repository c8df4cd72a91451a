"""`flags.variants`: what a cohort that sees a flag gets, split by weight, in one environment."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt
from amends.spi.http import Unreadable
from amends_flags.contracts import variants_contract
from amends_flags.guard import cohorts_strategy, inconclusive, reading, reading_before_undo
from amends_flags.images import Flag, covers, feature_of, listed
from amends_flags.port import FlagPlace
from amends_flags.strategy import COHORT
from amends_flags.switch import FEATURE

_WHOLE = 100


class Variant(BaseModel):
    """One variant: its share of the cohort, and what those get who are given it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    weight_percent: int = Field(ge=0, le=_WHOLE)
    value: bool | int | str | dict[str, Json] | None = None


class VariantsArguments(BaseModel):
    """Arguments of `flags.variants`. The weights add up to 100; no variants at all takes them away."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)
    cohort: str = Field(pattern=COHORT)
    variants: list[Variant] = Field(max_length=20)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.variants and sum(one.weight_percent for one in self.variants) != _WHOLE:
            raise ValueError("the variants' `weight_percent` must add up to 100")
        if len({one.name for one in self.variants}) != len(self.variants):
            raise ValueError("two variants have the same name")
        return self


class SetVariants(Capability):
    """One change of the variants of the cohort's strategy; nothing else of it is touched."""

    arguments = VariantsArguments

    def __init__(self, place: FlagPlace) -> None:
        self.contract = variants_contract(place.options)
        self._place = place

    def prepare(self, question: Question) -> Prepared:
        flag = reading(self._place, question)
        ours = cohorts_strategy(flag, question)
        if ours is None:
            raise NotSent(
                f"no agent run has opened `{feature_of(question)}` to the cohort `{question.args.get('cohort')}`",
                code="no_such_cohort",
            )
        before: dict[str, Json] = {**flag.image(), "strategy_id": ours.id, "variants": ours.variants}
        self._place.variants(question)
        return Prepared(before=before)

    def do(self, call: Call) -> Receipt:
        wanted, identity = self._place.variants(call), str(call.before.get("strategy_id"))
        self._place.set_variants(call, identity, wanted, call.before.get("revision"))
        effect: dict[str, Json] = {
            "feature": feature_of(call),
            "environment": self._place.options.flag_environment,
            "cohort": call.args.get("cohort"),
            "strategy_id": identity,
        }
        return Done(effect=effect, reference=identity, output=effect, after={"variants": wanted})

    def probe(self, question: Question) -> Observation:
        try:
            flag = self._place.flag(question)
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        if flag is None:
            return Observation(seen="diverged", detail="the flag is gone or archived")
        if not question.before:
            return inconclusive("no before-image was recorded")
        return self._judge(flag, question)

    def undo(self, call: Call) -> Receipt:
        flag = reading_before_undo(self._place, call)
        seen = self._judge(flag, call)
        if seen.seen != "applied":
            raise NotSent(f"the variants are {seen.seen}: nothing is taken back", code="foreign_edit")
        self._place.set_variants(call, seen.reference, listed(call.before.get("variants")), flag.revision)
        return Done(effect={"feature": feature_of(call), "rung": call.rung}, reference=seen.reference)

    def _judge(self, flag: Flag, question: Question) -> Observation:
        """The variants of that very strategy stand as before, as after us, or neither."""
        identity = str(question.before.get("strategy_id"))
        state: dict[str, Json] = {
            "environment": self._place.options.flag_environment,
            "enabled": flag.enabled,
            "revision": flag.revision,
        }
        there = next((strategy for strategy in flag.strategies if strategy.id == identity), None)
        if there is None:
            return Observation(seen="diverged", state=state, detail="the cohort's strategy is gone")
        state["variants"] = there.variants
        if there.variants == question.before.get("variants"):
            return Observation(seen="absent", state=state, reference=identity)
        if covers(there.variants, self._place.variants(question)):
            effect: dict[str, Json] = {"strategy_id": identity}
            return Observation(seen="applied", state=state, reference=identity, effect=effect)
        return Observation(seen="diverged", state=state, reference=identity, detail="somebody changed the variants")
