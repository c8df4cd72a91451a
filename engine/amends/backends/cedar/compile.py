"""From sources to something that can be asked: one immutable snapshot of schema, policies and windows.

Sources are a flat map from path to text (`baseline/…`, `plugins/<adapter>/…`, `site/…`, `generated/…`), the same
that the ledger keeps. So a snapshot can be built again from the ledger alone, without any contract or plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from amends.backends.cedar import bundle, doubts, lint, native, tree, windows
from amends.backends.cedar.bundle import MANIFEST, POLICY, SCHEMA, WINDOWS
from amends.backends.cedar.findings import PolicyFinding, error, has_errors, warning
from amends.backends.cedar.schema import CORE, PHASES
from amends.backends.cedar.text import guard, statements
from amends.backends.cedar.tiers import tier_steps
from amends.backends.cedar.tree import Policy
from amends.core.errors import ConfigError
from amends.core.events import SHIPPED_POLICIES

BASELINE, PLUGINS, SITE, GENERATED = SHIPPED_POLICIES, "plugins/", "site/", "generated/"


@dataclass(frozen=True, slots=True)
class Slice:
    """The policies that can match one action, as a parsed handle, and what they may ask of an approval."""

    handle: native.PolicyHandle
    policies: Mapping[str, Policy]
    roles: tuple[str, ...]
    reads_approval: bool
    counts_approvers: bool
    tier_steps: frozenset[int]  # the tiers at which an answer can change


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything one decision uses."""

    schema: native.SchemaHandle
    actions: Mapping[tuple[str, str], frozenset[tuple[str, str]]]
    policies: tuple[Policy, ...]
    windows: tuple[windows.Opening, ...]
    version: str
    effective_digest: str
    sources: Mapping[str, str]
    shadow: tuple[Policy, ...] = ()  # `@shadow`: asked beside, without effect
    _slices: dict[tuple[str, str], Slice] = field(default_factory=dict[tuple[str, str], Slice])

    def slice(self, action: tuple[str, str]) -> Slice:
        """The policies whose scope can match `action` (exact: slicing changes no answer). Raises `KeyError` for an
        action the schema does not have.
        """
        known = self._slices.get(action)
        if known is None:
            ancestors = self.actions[action]
            known = self._slices[action] = cut(p for p in self.policies if p.may_match(action, ancestors))
        return known

    @property
    def whole(self) -> Slice:
        """All policies, unsliced: what a plain Cedar tool would be given."""
        return cut(self.policies)


def cut(policies: Iterable[Policy]) -> Slice:
    """An evaluable slice of `policies`."""
    chosen = {policy.id: policy for policy in policies}
    return Slice(
        handle=native.build(policy.template for policy in chosen.values()),
        policies=chosen,
        roles=tuple(sorted({role for policy in chosen.values() for role in policy.roles})),
        reads_approval=any(policy.reads_approval for policy in chosen.values()),
        counts_approvers=any(policy.counts_approvers for policy in chosen.values()),
        tier_steps=tier_steps(chosen.values()),
    )


def compile_sources(
    sources: Mapping[str, str],
    version: str,
    *,
    owned: Mapping[str, Collection[str]] | None = None,
) -> tuple[Snapshot | None, list[PolicyFinding]]:
    """Guard, parse, lint and strictly validate `sources`. `owned`: adapter -> its namespaces; absent: the
    sources are the ledger's, and are asked again as they were, whatever lint says today. The snapshot is None if any
    finding is an error.
    """
    schema, findings = _schema(sources)
    policies, found = _policies(sources, schema, owned)
    findings += found
    kept, found = _switch_off(sources, policies)
    findings += found
    found, opened = _windows(sources)
    findings += found + _empty(sources, policies)
    if schema is None:
        return None, findings
    actions = native.action_parents(schema)
    findings += _phases(actions)
    if owned is not None and not any(finding.code == "windows" for finding in findings):
        findings += doubts.doubtful(_sound(policies, findings), schema, _names(actions, opened))
    if has_errors(findings):
        return None, findings
    digest = bundle.digest(sources)
    active = tuple(policy for policy in kept if not policy.shadow)
    shadow = tuple(policy for policy in kept if policy.shadow)
    return Snapshot(schema, actions, active, opened, version, digest, dict(sources), shadow), findings


def _schema(sources: Mapping[str, str]) -> tuple[native.SchemaHandle | None, list[PolicyFinding]]:
    texts = {file: text for file, text in sorted(sources.items()) if file.endswith(SCHEMA)}
    findings = [
        finding
        for file, text in texts.items()
        if not file.startswith(GENERATED)
        for finding in guard(text, file, schema=True)
    ]
    if findings:
        return None, findings
    try:
        return native.parse_schema("\n".join(texts.values())), []
    except native.Malformed as problem:
        suspect = _suspect(texts)
        hint = "correct the schema; a site declares namespaces of its own only"
        return None, [error("schema", str(problem).splitlines()[0], hint, file=suspect)]


def _suspect(texts: Mapping[str, str]) -> str:
    """The first schema file that does not even parse alone; the last site file if each does (they clash)."""
    for file, text in texts.items():
        try:
            native.parse_schema(text)
        except native.Malformed as problem:
            if "failed to resolve" not in str(problem):
                return file
    return next((file for file in reversed(list(texts)) if file.startswith(SITE)), "schema")


def _policies(
    sources: Mapping[str, str], schema: native.SchemaHandle | None, owned: Mapping[str, Collection[str]] | None
) -> tuple[list[Policy], list[PolicyFinding]]:
    policies: list[Policy] = []
    findings: list[PolicyFinding] = []
    for file, text in sorted(sources.items()):
        if not file.endswith(POLICY):
            continue
        own, found = tree.parse(text, file)
        if owned is not None and file.startswith(PLUGINS):
            adapter = file.split("/")[1]
            found += lint.foreign(own, adapter, owned.get(adapter, ()))
        if schema is not None and own:
            found += lint.validate(text, own, schema)
        policies += own
        findings += found
    reserved = {f"{adapter}:": f"{PLUGINS}{adapter}/" for adapter in owned or ()} | {"amends:": BASELINE}
    return policies, findings + lint.lint(policies, reserved)


def _switch_off(sources: Mapping[str, str], policies: list[Policy]) -> tuple[list[Policy], list[PolicyFinding]]:
    file = SITE + MANIFEST
    if file not in sources:
        return policies, []
    try:
        off = set(bundle.manifest(sources[file], file).switch_off)
    except ConfigError as problem:
        return policies, [error("manifest", problem.message, problem.hint, file=file)]
    may = {policy.id for policy in policies if policy.file.startswith(PLUGINS) and policy.effect == "permit"}
    findings = [
        error("switch_off", f"`{id_}` is no default permit of an adapter", "only those can be switched off", file=file)
        for id_ in sorted(off - may)
    ]
    return [policy for policy in policies if policy.id not in off], findings


def _empty(sources: Mapping[str, str], policies: Iterable[Policy]) -> list[PolicyFinding]:
    """Policy files of people that hold no policy."""
    full = {policy.file for policy in policies}
    files = [file for file in sources if file.endswith(POLICY) and file.startswith((PLUGINS, SITE))]
    return [
        warning("empty_file", "the file holds no policy", "write one, or remove the file", file=file)
        for file in files
        if file not in full and not any(True for _ in statements(sources[file]))
    ]


def _sound(policies: Iterable[Policy], findings: Sequence[PolicyFinding]) -> list[Policy]:
    """The policies without an error so far."""
    wrong = {(finding.file, finding.line) for finding in findings if finding.level == "error"}
    return [policy for policy in policies if (policy.file, policy.line) not in wrong]


def _names(
    actions: Mapping[tuple[str, str], frozenset[tuple[str, str]]], opened: Iterable[windows.Opening]
) -> doubts.KnownNames:
    """What strings in conditions may name."""
    forward = (f"{CORE}::Action", "phase.forward")
    capabilities = {action[1] for action, ancestors in actions.items() if forward in ancestors}
    return doubts.KnownNames({window.name for window in opened}, capabilities)


def _windows(sources: Mapping[str, str]) -> tuple[list[PolicyFinding], tuple[windows.Opening, ...]]:
    """The site's windows and calendars replace the baseline's of the same name."""
    chosen: dict[str, list[windows.Opening]] = {}
    for file in (BASELINE + WINDOWS, SITE + WINDOWS):
        if file not in sources:
            continue
        named: dict[str, list[windows.Opening]] = {}
        try:
            for window in windows.parse(sources[file], file):
                named.setdefault(window.name, []).append(window)
        except ConfigError as problem:
            return [error("windows", problem.message, problem.hint, file=file)], ()
        chosen |= named
    return [], tuple(window for group in chosen.values() for window in group)


def _phases(actions: Mapping[tuple[str, str], frozenset[tuple[str, str]]]) -> list[PolicyFinding]:
    """Each action in exactly one phase, through the closure of groups: else a forward permit could match an undo."""
    groups = {(f"{CORE}::Action", f"phase.{phase}") for phase in PHASES}
    findings: list[PolicyFinding] = []
    for action, ancestors in sorted(actions.items()):
        phases = ({action} | ancestors) & groups
        if len(phases) != 1:
            found = ", ".join(sorted(id_ for _, id_ in phases)) or "none"
            findings.append(
                error(
                    "phase",
                    f"action `{action[1]}` is in {len(phases)} phase groups ({found})",
                    "put it in exactly one",
                    file="schema",
                )
            )
    return findings
