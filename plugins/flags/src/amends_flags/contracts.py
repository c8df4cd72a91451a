"""The contracts of the flag capabilities: what people see, how it is found again, how it is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    Outcome,
    ProbeRule,
    Readers,
    Reference,
    Retry,
    Signal,
)
from amends_flags.options import FlagOptions

InputTypes: TypeAlias = Mapping[str, Literal["String", "Long", "Bool"]]

_SAFE = (Outcome.SUCCEEDED, Outcome.UNKNOWN)
_RETRY = Retry(attempts=5, backoff_seconds=0.5)
_PERSON = Alternative(name="person", undo="escalate")
_STRATEGY_ID = Reference(field="id", pattern=r"[A-Za-z0-9-]{1,64}")
_ESCALATION = EscalationRule(
    queue="flags", evidence_fields=("feature", "environment", "enabled", "revision", "changed_by")
)


def set_contract(options: FlagOptions) -> Contract:
    """`flags.set`: a strategy that switching on added is taken away, which also switches off; else the switch turns."""
    return _contract(
        options,
        "set",
        "turns a flag on or off in one environment",
        identity=Identity(fields=("feature",), cardinality="many", value_fields=("enabled",)),
        compensation=(
            _rung("remove_added_strategy", added_strategies=(1,)),
            _rung("switch_back", added_strategies=(0,), switched=(True,)),
            _PERSON,
        ),
        seen="a feature that was switched for you",
        inputs={"feature": "String", "enabled": "Bool"},
    ).model_copy(update={"parts": ("enabled", "strategies"), "partial_inverse": True})


def strategy_contract(options: FlagOptions) -> Contract:
    """`flags.strategy`: one cohort's strategy; every other strategy is left alone, whoever changes it meanwhile."""
    contract = _contract(
        options,
        "strategy",
        "lets a cohort see a flag in one environment, beside whoever sees it already",
        identity=Identity(
            fields=("feature", "cohort"),
            cardinality="many",
            value_fields=("segments", "constraints", "rollout_percent"),
        ),
        compensation=(
            _rung("remove", had_before=(False,), last_one=(False,)),
            _rung("restore", had_before=(True,)),
            _PERSON,
        ),
        seen="a feature that was opened to your cohort",
        inputs={"feature": "String", "cohort": "String", "rollout_percent": "Long"},
    )
    probe = _probe(options).model_copy(update={"counts": True})
    return contract.model_copy(update={"probe": probe, "reference": _STRATEGY_ID})


def variants_contract(options: FlagOptions) -> Contract:
    """`flags.variants`: set back as they were; the strategy they belong to is not touched."""
    contract = _contract(
        options,
        "variants",
        "splits what a cohort gets that sees a flag in one environment",
        identity=Identity(fields=("feature", "cohort"), cardinality="many", value_fields=("variants",)),
        compensation=(_rung("restore"), _PERSON),
        seen="another variant of a feature than the one you had",
        inputs={"feature": "String", "cohort": "String"},
    )
    return contract.model_copy(update={"reference": _STRATEGY_ID})


def create_contract(options: FlagOptions) -> Contract:
    """`flags.create`: taken away again while nobody has begun to use or edit it."""
    contract = _contract(
        options,
        "create",
        "creates a flag, off everywhere",
        identity=Identity(fields=("feature",)),
        compensation=(_rung("take_away", in_use=(False,), edited=(False,)), _PERSON),
        seen="a new flag in the flag list",
        inputs={"feature": "String"},
    )
    return contract.model_copy(
        update={
            "effect": contract.effect.model_copy(update={"changes": "creates"}),
            "restores_before_image": False,
            "reversibility": "compensatable",
            "undo_cost": options.undo_of_create,
        }
    )


def archive_contract(options: FlagOptions) -> Contract:
    """`flags.archive`: only of a flag that is off everywhere, because reviving one loses every switch."""
    return _contract(
        options,
        "archive",
        "archives a flag that is off everywhere",
        identity=Identity(fields=("feature",)),
        compensation=(_rung("revive", archived=(True,)), _PERSON),
        seen="a flag that disappeared from the flag list",
        inputs={"feature": "String"},
    )


def _contract(
    options: FlagOptions,
    name: str,
    summary: str,
    *,
    identity: Identity,
    compensation: tuple[Alternative, ...],
    seen: str,
    inputs: InputTypes,
) -> Contract:
    where = f"the flag's environment `{options.flag_environment}`"
    resource = f"flag:{options.project}/{{feature}}@{options.flag_environment}"
    return Contract(
        capability=f"flags.{name}",
        summary=summary,
        effect=Effect(kind=f"flag_{name}", system=options.system, resource=resource, changes="sets"),
        readers=Readers(audience="team", where=where),
        undo_cost="none, but who saw the feature has seen it",
        reversibility="reversible",
        identity=identity,
        keying=Keying(kind="probeable"),
        probe=_probe(options),
        restores_before_image=True,
        compensation=compensation,
        signal=Signal(
            visible_to=f"whoever evaluates flags in `{options.flag_environment}`",
            place=options.tell,
            seen=seen,
            reader_must="do not rely on what you saw of it; report what you stored with it",
            comes_back="when the change is made again, which you will be told",
        ),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=_ESCALATION,
        input=dict(inputs),
    )


def _rung(name: str, **when: tuple[bool | int, ...]) -> Alternative:
    return Alternative(
        name=name,
        when={field: tuple(values) for field, values in when.items()},
        input_from="reconciliation",
        safe_when=_SAFE,
        harmless_when_absent=True,
        retry=_RETRY,
    )


def _probe(options: FlagOptions) -> ProbeRule:
    return ProbeRule(
        strength="id",
        schedule_seconds=(0.0, 0.5, 2.0, 5.0, 15.0, 60.0),
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=options.absent_final_after_seconds,
    )
