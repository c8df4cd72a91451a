"""The audit of a capability: what it changes, how it is undone and who allows it, from its contract alone.

A blank is an answer nobody has given: `amends audit` shows it in red, and `--ready` fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from amends.core.canonical import JsonMap
from amends.core.contract import Alternative, Contract
from amends.core.fold import certificate_key
from amends.core.rows import CertificateRow

DrillStanding: TypeAlias = Literal["valid", "expired", "void", "never", "none"]
ADAPTER_SUBJECT = "adapter:"  # begins the subject of a certificate that is about the adapter's version

_NOTHING = "nothing: it only reads"
_DAY_US = 86_400_000_000
_ELSEWHERE = frozenset({"escalate", "correct"})


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One capability, answered. An empty text is a blank."""

    capability: str
    effect: str
    lives: str
    readers: str
    undo: str
    undo_cost: str
    verify: str
    keying: str
    permitted_outcomes: str
    authorized_by: str
    queue: str
    proof: str

    @property
    def blanks(self) -> tuple[str, ...]:
        """The columns without an answer."""
        return tuple(column.name for column in fields(self) if not getattr(self, column.name))

    def as_dict(self) -> JsonMap:
        """As JSON, with `blanks`."""
        return {**{column.name: getattr(self, column.name) for column in fields(self)}, "blanks": list(self.blanks)}


def audit_line(contract: Contract, permits: Mapping[str, Sequence[str]], proof: str) -> AuditLine:
    """The audit of one contract. `permits`: policy action -> ids of the permits that could allow it; `proof`: the
    drill certificate in words, empty if there is none.
    """
    effect = contract.effect
    return AuditLine(
        capability=contract.capability,
        effect=f"{effect.changes} {effect.kind}" if contract.consequential else _NOTHING,
        lives=f"{effect.system}: {effect.resource}",
        readers=f"{contract.readers.audience}: {contract.readers.where}",
        undo=_undo(contract),
        undo_cost=_undo_cost(contract),
        verify=_verify(contract),
        keying=_keying(contract),
        permitted_outcomes=_outcomes(contract),
        authorized_by=_authorized(contract, permits),
        queue=contract.escalation.queue,
        proof=_proof(contract, proof),
    )


@dataclass(frozen=True, slots=True)
class DrillRecord:
    """How a capability stands with its drills. `void`: the newest certificate is about another contract, adapter or
    engine; `none`: there is nothing to drill. `why` says so; times in microseconds, `subjects` counts valid ones.
    """

    standing: DrillStanding
    why: str = ""
    drilled_us: int | None = None
    expires_us: int | None = None
    age_days: float | None = None
    subjects: int = 0


def drill_record(
    contract: Contract, certificates: Sequence[CertificateRow], *, adapter: str, engine_major: int, now_us: int
) -> DrillRecord:
    """How `contract` stands with its drills. `certificates`: of any capability; `adapter`: the adapter's subject, for
    certificates that are about its version.
    """
    own = sorted(
        (row for row in certificates if row.capability == contract.capability), key=lambda row: row.certified_us
    )
    void = {row.key: _void(contract, row, adapter, engine_major) for row in own}
    about_this = [row for row in own if not void[row.key]]
    if not own:
        reason = undrillable(contract)
        return DrillRecord("none", reason) if reason else DrillRecord("never", "it was never drilled")
    newest = (about_this or own)[-1]
    valid = [row for row in about_this if row.expires_us > now_us]
    why = void[newest.key] or ("" if valid else "its certificate has expired")
    return DrillRecord(
        "valid" if valid else "expired" if about_this else "void",
        why,
        newest.certified_us,
        newest.expires_us,
        round(max(0, now_us - newest.certified_us) / _DAY_US, 1),
        len(valid),
    )


def _void(contract: Contract, row: CertificateRow, adapter: str, engine_major: int) -> str:
    """Why a certificate of the capability is not about it as it is now; empty if it is."""
    if row.contract_digest != contract.digest:
        return "its contract has changed since"
    if row.subject_digest.startswith(ADAPTER_SUBJECT) and row.subject_digest != adapter:
        return f"its adapter has changed since: it was `{row.subject_digest.removeprefix(ADAPTER_SUBJECT)}`"
    if row.key != certificate_key(row.capability, row.contract_digest, row.subject_digest, engine_major):
        return "the engine has changed since"
    return ""


def undrillable(contract: Contract) -> str:
    """Why a call has no undo that could be drilled; empty if it has one."""
    if not contract.consequential:
        return "it only reads"
    if contract.corrects:
        return "a correction stays"
    if contract.irreversible or contract.release is not None:
        return "it cannot be taken back"
    if all(rung.undo in _ELSEWHERE for rung in contract.compensation):
        return "it is only corrected, or decided by a person"
    return ""


def _undo(contract: Contract) -> str:
    if not contract.consequential:
        return "not needed"
    if contract.corrects:
        return "none: a correction stays"
    if contract.release is not None:
        return f"none: it leaves through the {_way_out(contract)}"
    return " → ".join(_rung(alternative) for alternative in contract.compensation)


def _way_out(contract: Contract) -> str:
    mode = contract.release.mode if contract.release else ""
    return "gate, approved by a person" if mode == "gate" else f"outbox ({mode})"


def _rung(alternative: Alternative) -> str:
    when = ", ".join(f"{name} in {list(values)}" for name, values in alternative.when.items())
    return f"{alternative.name} when {when}" if when else alternative.name


def _undo_cost(contract: Contract) -> str:
    if contract.undo_cost:
        return contract.undo_cost
    if not contract.consequential:
        return "none"
    return "cannot be undone" if contract.irreversible or contract.corrects else ""


def _verify(contract: Contract) -> str:
    probe = contract.probe
    if probe is None:
        return "not needed" if not contract.consequential else ("a person looks" if contract.irreversible else "")
    pages = "" if probe.complete else ", not every page"
    final = probe.absent_final_after_seconds
    absent = f"absence final after {final:g} s" if probe.absence_can_be_final else "absence proves nothing"
    return f"read by {probe.strength}{pages}; {absent}"


def _keying(contract: Contract) -> str:
    keying = contract.keying
    if not contract.consequential:
        return "not needed"
    match keying.kind:
        case "keyed":
            return f"keyed by {keying.parameter or 'the request'} for {keying.ttl_seconds:g} s"
        case "probeable":
            return "found again by its probe"
        case _:
            return "blind: an unknown outcome goes to a person"


def _outcomes(contract: Contract) -> str:
    """The forward outcomes in which recovery may act on it by itself."""
    if not contract.consequential or contract.corrects:
        return "not needed"
    if contract.irreversible:
        return "none: never undone"
    parts = [f"{rung.name}: {', '.join(rung.safe_when)}" for rung in contract.compensation if rung.safe_when]
    return "; ".join(parts)


def _authorized(contract: Contract, permits: Mapping[str, Sequence[str]]) -> str:
    """Permits of the forward action, or of posting a correction; blank if no policy ever allows it."""
    main = f"{contract.capability}.correct" if contract.corrects else contract.capability
    if not permits.get(main):
        return ""
    named = [
        f"{name.removeprefix(contract.capability).lstrip('.') or 'call'}: {', '.join(ids)}"
        for name, ids in permits.items()
        if ids
    ]
    return "; ".join(named)


def _proof(contract: Contract, proof: str) -> str:
    return proof if contract.needs_drill else proof or "not needed"
