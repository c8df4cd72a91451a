"""`flags.strategy`: let one cohort see a flag in one environment, beside whoever sees it already."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt
from amends.spi.http import Unreadable
from amends_flags.contracts import strategy_contract
from amends_flags.guard import cohorts_strategy, inconclusive, reading, reading_before_undo
from amends_flags.images import Flag, Strategy, covers, feature_of, mapped, summary
from amends_flags.port import FlagPlace
from amends_flags.switch import FEATURE

COHORT = r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,59}$"


class StrategyArguments(BaseModel):
    """Arguments of `flags.strategy`. `segments` are Unleash's segment ids; `constraints` as Unleash writes them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)
    cohort: str = Field(pattern=COHORT)
    segments: list[int] = Field(default_factory=list[int], max_length=50)
    constraints: list[dict[str, Json]] = Field(default_factory=list[dict[str, Json]], max_length=50)
    rollout_percent: int = Field(default=100, ge=0, le=100)


class SetStrategy(Capability):
    """A new strategy for a new cohort, a replaced one for a cohort that has one. The title carries marker and cohort.

    Variants are another capability's: a later value keeps them.
    """

    arguments = StrategyArguments

    def __init__(self, place: FlagPlace) -> None:
        self.contract = strategy_contract(place.options)
        self._place = place

    def prepare(self, question: Question) -> Prepared:
        self._place.rule(question)
        flag = reading(self._place, question)
        ours = cohorts_strategy(flag, question)
        before: dict[str, Json] = {**flag.image(), "strategy": None}
        if ours is not None:
            before |= {"strategy": dict(ours.content), "strategy_id": ours.id}
        return Prepared(before=before, allocated={"summary": summary(before)})

    def do(self, call: Call) -> Receipt:
        content, revision = self._content(call), call.before.get("revision")
        identity = call.before.get("strategy_id")
        if isinstance(identity, str):
            self._place.replace_strategy(call, identity, content, revision)
        else:
            identity = self._place.add_strategy(call, content, revision)
        effect: dict[str, Json] = {
            "feature": feature_of(call),
            "environment": self._place.options.flag_environment,
            "cohort": call.args.get("cohort"),
            "strategy_id": identity,
        }
        return Done(effect=effect, reference=identity, output=effect, after={"strategy": content})

    def probe(self, question: Question) -> Observation:
        return self._look(question, counting=question.action_id == question.marker)

    def verify_undone(self, question: Question) -> Observation:
        """A separate read of this very strategy: a twin that is still there is not this one."""
        return self._look(question, counting=False)

    def undo(self, call: Call) -> Receipt:
        flag = reading_before_undo(self._place, call)
        seen = self._judge(flag, call, counting=False)
        if seen.seen != "applied" or seen.reference == "":
            raise NotSent(f"the strategy is {seen.seen}: nothing is taken back", code="foreign_edit")
        former = call.before.get("strategy")
        if call.rung == "restore" and isinstance(former, dict):
            self._place.replace_strategy(call, seen.reference, former, flag.revision)
        elif call.rung == "remove" and former is None and not seen.state.get("last_one"):
            self._place.remove_strategy(call, seen.reference, flag.revision)
        else:
            raise NotSent(f"the rung `{call.rung}` does not fit what is there", code="nothing_to_undo")
        return Done(effect={"feature": feature_of(call), "rung": call.rung}, reference=seen.reference)

    def _look(self, question: Question, *, counting: bool) -> Observation:
        try:
            flag = self._place.flag(question)
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        if flag is None:
            return Observation(seen="diverged", detail="the flag is gone or archived")
        twin = question.action_id != question.marker  # it was added beside ours, and has no before-image of its own
        if not question.before and not twin:
            return inconclusive("no before-image was recorded")
        return self._judge(flag, question, counting=counting)

    def _judge(self, flag: Flag, question: Question, *, counting: bool) -> Observation:
        """Our strategy alone is compared; `counting` also finds twins that bear our marker."""
        former = question.before.get("strategy")
        known = _known(flag, question)
        own_only = bool(question.reference) and not counting
        found = known if own_only else _bearing(flag, question) or known
        state: dict[str, Json] = {
            "environment": self._place.options.flag_environment,
            "enabled": flag.enabled,
            "revision": flag.revision,
            "had_before": former is not None,
            "last_one": self._switches_off(flag, found, question),
        }
        own = question.reference or (found[0].id if found else "")
        if len(found) > 1 or (found and found[0].id != own):
            return Observation(seen="many", state=state, reference=own, twins=tuple(one.id for one in found))
        if not found:
            return Observation(seen="absent" if former is None else "diverged", state=state)
        content: dict[str, Json] = dict(found[0].content)
        if content == former:
            return Observation(seen="absent", state=state, reference=found[0].id)
        if _same(content, self._content(question)):
            return Observation(seen="applied", state=state, reference=found[0].id, effect={"strategy_id": found[0].id})
        return Observation(seen="diverged", state=state, reference=found[0].id, detail="somebody changed our strategy")

    def _content(self, question: Question) -> dict[str, Json]:
        """What the strategy holds after us; a former one's variants stay."""
        former = mapped(question.before.get("strategy"))
        return self._place.rule(question) | ({"variants": former["variants"]} if former else {})

    def _switches_off(self, flag: Flag, ours: list[Strategy], question: Question) -> bool:
        """True if taking ours away would switch off an environment that was on before us: others rely on it."""
        others = [strategy for strategy in flag.strategies if strategy.enabled and strategy not in ours]
        on_before = flag.enabled and question.before.get("enabled") is not False
        return self._place.options.last_strategy_switches_off and on_before and not others


def _same(content: Mapping[str, Json], wanted: dict[str, Json]) -> bool:
    return covers(dict(content), wanted) and not content.get("disabled")


def _known(flag: Flag, question: Question) -> list[Strategy]:
    """The strategy that our reference, or the before-image, names."""
    identity = question.reference or question.before.get("strategy_id")
    return [strategy for strategy in flag.strategies if strategy.id == identity]


def _bearing(flag: Flag, question: Question) -> list[Strategy]:
    """The strategies that bear our marker."""
    return [strategy for strategy in flag.strategies if strategy.marker == question.marker]
