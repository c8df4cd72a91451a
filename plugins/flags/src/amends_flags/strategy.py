"""`flags.strategy`: let one cohort see a flag in one environment, beside whoever sees it already."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Call, Capability, Done, Json, NotSent, Observation, Prepared, Question, Receipt
from amends.spi.http import HttpRequest, Unreadable
from amends_flags.contracts import strategy_contract
from amends_flags.guard import feature_of, inconclusive, reading, unchanged_since
from amends_flags.images import Flag, Strategy, listed, summary
from amends_flags.switch import FEATURE
from amends_flags.unleash import Unleash

_TITLE = re.compile(r"amends:(\S+) (.*)", re.DOTALL)


class StrategyArguments(BaseModel):
    """Arguments of `flags.strategy`. `segments` are Unleash's segment ids; `constraints` as Unleash writes them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    feature: str = Field(pattern=FEATURE)
    cohort: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,59}$")
    segments: list[int] = Field(default_factory=list[int], max_length=50)
    constraints: list[dict[str, Json]] = Field(default_factory=list[dict[str, Json]], max_length=50)
    rollout_percent: int = Field(default=100, ge=0, le=100)


class SetStrategy(Capability):
    """One POST for a new cohort, one PUT for one that has a strategy already. The title carries marker and cohort."""

    arguments = StrategyArguments

    def __init__(self, unleash: Unleash) -> None:
        self.contract = strategy_contract(unleash.options)
        self._unleash = unleash

    def prepare(self, question: Question) -> Prepared:
        flag = reading(self._unleash, question)
        ours = _of_cohort(flag, question)
        if len(ours) > 1:
            raise NotSent(
                f"the cohort `{question.args.get('cohort')}` has {len(ours)} strategies; one must go first",
                code="many_strategies",
            )
        before: dict[str, Json] = {"newest_event": flag.newest_event, "enabled": flag.enabled, "strategy": None}
        if ours:
            before |= {"strategy": dict(ours[0].content), "strategy_id": ours[0].id}
        return Prepared(before=before, allocated={"summary": summary(flag.image())})

    def do(self, call: Call) -> Receipt:
        unchanged_since(self._unleash, call, call.before.get("newest_event"))
        feature, content = feature_of(call), self._content(call)
        former = call.before.get("strategy_id")
        answer = self._unleash.send(call, lambda: self._request(feature, former, content))
        identity = former if isinstance(former, str) else answer.document().get("id")
        effect: dict[str, Json] = {
            "feature": feature,
            "environment": self._unleash.options.flag_environment,
            "cohort": call.args.get("cohort"),
            "strategy_id": identity,
        }
        after: dict[str, Json] = {"strategy": content}
        return Done(effect=effect, reference=str(identity or ""), output=effect, after=after)

    def probe(self, question: Question) -> Observation:
        return self._look(question, counting=question.action_id == question.marker)

    def verify_undone(self, question: Question) -> Observation:
        """A separate read of this very strategy: a twin that is still there is not this one."""
        return self._look(question, counting=False)

    def undo(self, call: Call) -> Receipt:
        flag = reading(self._unleash, call)
        seen = self._judge(flag, call, counting=False)
        if seen.seen != "applied" or seen.reference == "":
            raise NotSent(f"the strategy is {seen.seen}: nothing is taken back", code="foreign_edit")
        observed = call.observed.state.get("newest_event") if call.observed else None
        if observed is not None and observed != flag.newest_event:
            raise NotSent("the flag was changed after it was looked at", code="foreign_edit")
        feature, former = feature_of(call), call.before.get("strategy")
        if call.rung == "restore" and isinstance(former, dict):
            self._unleash.send(call, lambda: self._unleash.replace_strategy(feature, seen.reference, former))
        elif call.rung == "remove" and former is None and not seen.state.get("last_one"):
            gone = frozenset({404})
            self._unleash.send(call, lambda: self._unleash.delete_strategy(feature, seen.reference), gone)
        else:
            raise NotSent(f"the rung `{call.rung}` does not fit what is there", code="nothing_to_undo")
        return Done(effect={"feature": feature, "rung": call.rung}, reference=seen.reference)

    def _look(self, question: Question, *, counting: bool) -> Observation:
        try:
            flag = self._unleash.flag(question, feature_of(question))
        except Unreadable as lost:
            return inconclusive(f"{lost.code}: {lost}")
        if flag is None:
            return Observation(seen="diverged", detail="the flag is gone or archived")
        if not question.before:
            return inconclusive("no before-image was recorded")
        return self._judge(flag, question, counting=counting)

    def _judge(self, flag: Flag, question: Question, *, counting: bool) -> Observation:
        """Our strategy alone is compared; `counting` also finds twins that bear our marker."""
        former = question.before.get("strategy")
        wanted: Mapping[str, Json] = self._content(question)
        known = _known(flag, question)
        own_only = bool(question.reference) and not counting
        found = known if own_only else _bearing(flag, question) or known
        state: dict[str, Json] = {
            "environment": self._unleash.options.flag_environment,
            "enabled": flag.enabled,
            "newest_event": flag.newest_event,
            "had_before": former is not None,
            "last_one": _switches_off(flag, found, question),
        }
        own = question.reference or (found[0].id if found else "")
        if len(found) > 1 or (found and found[0].id != own):
            return Observation(seen="many", state=state, reference=own, twins=tuple(one.id for one in found))
        if not found:
            return Observation(seen="absent" if former is None else "diverged", state=state)
        content: dict[str, Json] = dict(found[0].content)
        if content == former:
            return Observation(seen="absent", state=state, reference=found[0].id)
        if _same(content, wanted):
            return Observation(seen="applied", state=state, reference=found[0].id, effect={"strategy_id": found[0].id})
        return Observation(seen="diverged", state=state, reference=found[0].id, detail="somebody changed our strategy")

    def _request(self, feature: str, former: Json, content: dict[str, Json]) -> HttpRequest:
        if isinstance(former, str):
            return self._unleash.replace_strategy(feature, former, content)
        return self._unleash.add_strategy(feature, content)

    def _content(self, question: Question) -> dict[str, Json]:
        rollout = str(question.args.get("rollout_percent", 100))
        parameters: dict[str, Json] = {"rollout": rollout, "stickiness": "default", "groupId": feature_of(question)}
        return {
            "title": f"amends:{question.marker} {question.args.get('cohort')}",
            "name": "flexibleRollout",
            "parameters": parameters,
            "segments": listed(question.args.get("segments", [])),
            "constraints": listed(question.args.get("constraints", [])),
        }


def _same(content: Mapping[str, Json], wanted: Mapping[str, Json]) -> bool:
    """True if everything that we asked for stands there; what Unleash adds by itself is not ours to compare."""
    return all(_covers(content.get(name), value) for name, value in wanted.items()) and not content.get("disabled")


def _covers(there: Json, asked: Json) -> bool:
    if isinstance(asked, dict) and isinstance(there, dict):
        return all(_covers(there.get(name), value) for name, value in asked.items())
    if isinstance(asked, list) and isinstance(there, list):
        return len(there) == len(asked) and all(_covers(one, other) for one, other in zip(there, asked, strict=True))
    return there == asked


def _marker(strategy: Strategy) -> str:
    match = _TITLE.fullmatch(strategy.title)
    return match[1] if match else ""


def _known(flag: Flag, question: Question) -> list[Strategy]:
    """The strategy that our reference, or the before-image, names."""
    identity = question.reference or question.before.get("strategy_id")
    return [strategy for strategy in flag.strategies if strategy.id == identity]


def _bearing(flag: Flag, question: Question) -> list[Strategy]:
    """The strategies that bear our marker."""
    return [strategy for strategy in flag.strategies if _marker(strategy) == question.marker]


def _of_cohort(flag: Flag, question: Question) -> list[Strategy]:
    """Strategies that an agent run made for this cohort."""
    titles = [(strategy, _TITLE.fullmatch(strategy.title)) for strategy in flag.strategies]
    return [strategy for strategy, match in titles if match and match[2] == question.args.get("cohort")]


def _switches_off(flag: Flag, ours: list[Strategy], question: Question) -> bool:
    """True if taking ours away would switch off an environment that was on before us: others rely on it."""
    others = [strategy for strategy in flag.strategies if strategy.enabled and strategy not in ours]
    return flag.enabled and question.before.get("enabled") is True and not others
