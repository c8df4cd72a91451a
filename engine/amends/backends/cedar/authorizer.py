"""The authorizer: the port over Cedar. `load` refuses what is wrong before any run; `decide` never raises."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from amends import _resources
from amends.backends.cedar import bundle, schema, selftest, shadowing, windows
from amends.backends.cedar.answer import ENGINE_ERROR, REQUEST_REJECTED, Answer, answer, deny
from amends.backends.cedar.bundle import Bundle
from amends.backends.cedar.compile import BASELINE, GENERATED, PLUGINS, SITE, Snapshot, compile_sources
from amends.backends.cedar.findings import refuse
from amends.backends.cedar.meaning import meaning_of
from amends.backends.cedar.question import Question, RequestRejected, from_record, from_request
from amends.backends.cedar.schema import Vocabulary
from amends.backends.cedar.shadowing import Shadow
from amends.backends.cedar.worker import Worker
from amends.core.canonical import Json
from amends.core.contract import Contract, namespace_of
from amends.core.evidence import Decision
from amends.ports.authorizer import AuthorizationRequest, PolicyBundle
from amends.spi import PolicyContribution


@dataclass(frozen=True, slots=True)
class Collected:
    """All sources that decide, the tests beside them, and what the contracts declare."""

    sources: Mapping[str, str]
    tests: Mapping[str, str]
    version: str
    vocabulary: Vocabulary
    owned: Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class Active:
    """Everything one decision is made from: read once, swapped as a whole."""

    snapshot: Snapshot
    vocabulary: Vocabulary
    semantic_digest: str
    shadows: tuple[Shadow, ...] = ()


class CedarAuthorizer:
    """Implements `amends.ports.authorizer.Authorizer`. Safe to share between threads; one decision, one snapshot."""

    def __init__(self, active: Active, worker: Worker) -> None:
        self.active = active
        self._worker = worker

    @classmethod
    def load(
        cls,
        *,
        contracts: Iterable[Contract],
        contributions: Mapping[str, PolicyContribution],
        site_bundle: Path | None,
        known_labels: Mapping[str, str],
        owned_prefixes: Mapping[str, Collection[str]] | None = None,
    ) -> CedarAuthorizer:
        """Check everything, then be ready. `known_labels`: label -> version or digest the ledger knows.
        `owned_prefixes`: adapter -> the capability prefixes it registered, where they differ from its own name.
        Raises `ConfigError` naming file, line, policy id and remedy; nothing is half-loaded.
        """
        site = bundle.read(site_bundle) if site_bundle else None
        if site is not None:
            bundle.check_label(site, known_labels)
        collected = collect(contracts, contributions, site, owned_prefixes or {})
        worker = Worker()
        snapshot, means = worker.run(lambda: _compiled(collected))
        return cls(Active(snapshot, collected.vocabulary, means, shadowing.of_annotations(snapshot)), worker)

    def adopt(self, candidate: CedarAuthorizer) -> None:
        """Decide as `candidate` would from now on; decisions under way end under what they began with. A shadow
        bundle stays.
        """
        kept = tuple(shadow for shadow in self.active.shadows if shadow.of == "bundle")
        own = tuple(shadow for shadow in candidate.active.shadows if shadow.of == "policies")
        self.active = replace(candidate.active, shadows=(*own, *kept))

    def shadow_with(self, candidate: CedarAuthorizer | None) -> None:
        """Ask the policies of `candidate` beside the active ones, without effect; None: no other bundle."""
        own = tuple(shadow for shadow in self.active.shadows if shadow.of == "policies")
        others = (
            ()
            if candidate is None
            else (Shadow("bundle", candidate.active.snapshot, candidate.active.semantic_digest),)
        )
        self.active = replace(self.active, shadows=(*own, *others))

    def decide(self, request: AuthorizationRequest) -> Decision:
        """One recorded authorization. Never raises: whatever goes wrong is a deny that says what. What shadows would
        have answered is noted where it differs.
        """
        active = self.active
        snapshot = active.snapshot
        question: Question | None = None
        try:
            question = self._question(request, active)
            found = self._worker.run(lambda: answer(snapshot, question))
        except RequestRejected as problem:
            found = deny(REQUEST_REJECTED, str(problem))
        except Exception as problem:  # noqa: BLE001 - a defect of ours must deny, too
            found = deny(ENGINE_ERROR, f"the policy engine failed ({type(problem).__name__})")
        decision = _decision(request, found, question, snapshot)
        if not active.shadows or question is None:
            return decision
        notes = self._worker.run(lambda: shadowing.notes(active.shadows, question, found, request.now_us))
        return decision.model_copy(update={"shadow": notes}) if notes else decision

    def bundle(self) -> PolicyBundle:
        """What is in force, with all sources."""
        return _bundle_of(self.active.snapshot, self.active.semantic_digest)

    def shadow_bundle(self) -> PolicyBundle | None:
        """The bundle that is asked beside it, if there is one."""
        found = [shadow for shadow in self.active.shadows if shadow.of == "bundle"]
        return _bundle_of(found[0].snapshot, found[0].semantic_digest) if found else None

    def permits(self, namespace: str, action: str) -> tuple[str, ...]:
        """The ids of the permits whose scope can match this policy action; empty if there is no such action."""
        active = self.active
        if (namespace, action) not in active.vocabulary.actions:
            return ()
        chosen = self._worker.run(lambda: active.snapshot.slice((f"{namespace}::Action", action)))
        return tuple(sorted(policy.id for policy in chosen.policies.values() if policy.effect == "permit"))

    @property
    def _snapshot(self) -> Snapshot:
        return self.active.snapshot

    def _question(self, request: AuthorizationRequest, active: Active) -> Question:
        snapshot = active.snapshot
        declared = active.vocabulary.actions.get((request.contract.namespace, request.action))
        if declared is None:
            raise RequestRejected(f"the policy action `{request.action}` does not exist here")
        try:
            open_windows = windows.open_names(snapshot.windows, request.now_us)
        except OverflowError:
            raise RequestRejected("the time of the request is out of range") from None
        return from_request(request, declared, open_windows, snapshot.version)


def _bundle_of(snapshot: Snapshot, semantic_digest: str) -> PolicyBundle:
    return PolicyBundle(snapshot.version, snapshot.effective_digest, snapshot.sources, semantic_digest)


def collect(
    contracts: Iterable[Contract],
    contributions: Mapping[str, PolicyContribution],
    site: Bundle | None,
    owned_prefixes: Mapping[str, Collection[str]],
) -> Collected:
    """Everything that decides, by path. The version is the site bundle's; without one, the baseline's own."""
    baseline = bundle.read(_resources.policies_path())
    vocabulary = schema.vocabulary(contracts)
    sources = {f"{BASELINE}{file}": text for file, text in baseline.sources.items()}
    tests = {f"{BASELINE}{file}": text for file, text in baseline.tests.items()}
    owned: dict[str, Collection[str]] = {}
    for adapter, contribution in sorted(contributions.items()):
        prefixes = owned_prefixes.get(adapter, (adapter,))
        owned[adapter] = frozenset(namespace_of(prefix) for prefix in prefixes)
        sources |= {f"{PLUGINS}{adapter}/{file}": _lf(text) for file, text in contribution.policies.items()}
        tests |= {f"{PLUGINS}{adapter}/{file}": _lf(text) for file, text in contribution.tests.items()}
    if site is not None:
        sources |= {f"{SITE}{file}": text for file, text in site.sources.items()}
        tests |= {f"{SITE}{file}": text for file, text in site.tests.items()}
    sources |= {f"{GENERATED}{name}.cedarschema": text for name, text in vocabulary.texts.items()}
    version = site.version if site else f"baseline-{baseline.version}"
    return Collected(sources, tests, version, vocabulary, owned)


def rederive(decision: Decision, recorded: PolicyBundle) -> Decision:
    """The same decision again, from nothing but what the ledger holds. Raises `ConfigError` if the recorded sources
    no longer load.
    """
    worker = Worker()
    snapshot, findings = worker.run(lambda: compile_sources(recorded.sources, recorded.version))
    refuse(findings)
    if snapshot is None or not decision.context:
        return decision
    question = from_record(decision.context)
    found = worker.run(lambda: answer(snapshot, question))
    return decision.model_copy(
        update={
            "verdict": found.verdict,
            "tier": found.tier,
            "policy_ids": found.policy_ids,
            "policy_version": snapshot.version,
            "effective_digest": snapshot.effective_digest,
            "code": found.code,
            "reasons": found.reasons,
            **_who(found),
        }
    )


def _compiled(collected: Collected) -> tuple[Snapshot, str]:
    """The snapshot, and the digest of what it means. A process that loads the same sources again, for another engine
    or on a reload that changed nothing, gets the same snapshot.
    """
    owned = tuple((adapter, frozenset(namespaces)) for adapter, namespaces in sorted(collected.owned.items()))
    return _compiled_once(tuple(sorted(collected.sources.items())), collected.version, owned)


@lru_cache(maxsize=4)
def _compiled_once(
    sources: tuple[tuple[str, str], ...], version: str, owned: tuple[tuple[str, frozenset[str]], ...]
) -> tuple[Snapshot, str]:
    snapshot, findings = compile_sources(dict(sources), version, owned=dict(owned))
    refuse(findings)
    if snapshot is None:  # findings without an error would be a defect of the compiler
        raise RuntimeError("no snapshot and no finding")
    selftest.run(snapshot)
    return snapshot, meaning_of(snapshot).digest


def _decision(request: AuthorizationRequest, found: Answer, question: Question | None, snapshot: Snapshot) -> Decision:
    context: dict[str, Json] = dict(question.record) if question else {}
    return Decision(
        decision_id=request.decision_id,
        verdict=found.verdict,
        action=request.action,
        tier=found.tier,
        policy_ids=found.policy_ids,
        policy_version=snapshot.version,
        effective_digest=snapshot.effective_digest,
        code=found.code,
        reasons=found.reasons,
        **_who(found),
        principal=f"{request.principal.type}:{request.principal.id}",
        resource=f"{request.resource_type}:{request.resource_id}",
        context=context,
    )


class _Who(TypedDict):
    roles: tuple[str, ...]
    roles_together: bool
    approvers: int
    ttl_seconds: float
    question: str
    asked_of: tuple[str, ...]


def _who(found: Answer) -> _Who:
    """Who may approve, who is asked, and for how long."""
    return {
        "roles": found.roles,
        "roles_together": found.roles_together,
        "approvers": found.approvers,
        "ttl_seconds": found.ttl_seconds,
        "question": found.question,
        "asked_of": found.asked_of,
    }


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
