"""What `amends doctor` looks at, one function a part. Each part is looked at even if another one failed."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

from amends import __version__, bootstrap
from amends.backends import plugin_host
from amends.backends.cedar.testing import run_policy_tests
from amends.backends.clock import SystemClock
from amends.backends.digest_key import FILE_NAME as KEY_NAME
from amends.backends.ids import UuidV7
from amends.backends.owners import OwnerFiles
from amends.backends.plugin_host import Loaded
from amends.backends.policies import PolicySources, examine_shadow, load_authorizer
from amends.bootstrap.references import leaves, references_of, sandbox_references_of
from amends.config import Settings
from amends.core.canonical import Json
from amends.core.errors import AmendsError
from amends.core.redaction import redact, redact_text
from amends.core.rows import QuarantineRow
from amends.ports.journal import Journal
from amends.ports.services import Secrets
from amends.runtime import policing, quarantines
from amends.runtime.listing import readable
from amends.spi import DoctorFinding

_LITTLE_DISK_BYTES = 512 * 1024 * 1024
_NO_DISK_BYTES = 32 * 1024 * 1024
_MANY_EVENTS = 200_000  # more are verified when `amends ledger verify` is called
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def examine_all(config: Path | None, *, as_agent: bool) -> Iterator[DoctorFinding]:
    """Every finding, in the order of what rests on what, without secrets. `as_agent`: only what an agent must not be
    able to do.
    """
    known: list[Secrets] = []
    for found in _findings(config, known, as_agent=as_agent):
        secrets = known[0].revealed() if known else frozenset[str]()
        yield replace(found, message=redact_text(found.message, secrets), remedy=redact_text(found.remedy, secrets))


def _findings(config: Path | None, known: list[Secrets], *, as_agent: bool) -> Iterator[DoctorFinding]:
    """As `examine_all`; the project's secrets go into `known` once there is a project."""
    yield _ok("versions", f"amends {__version__}, Python {platform.python_version()}")
    try:
        settings = bootstrap.settings_of(config)
    except AmendsError as error:
        yield _problem("settings", error.message, error.hint)
        return
    known.append(bootstrap.secrets_of(settings))
    yield _ok("settings", f"tenant {settings.project.tenant}, environment {settings.project.environment}")
    if as_agent:
        yield from _agent(settings)
        return
    yield from _guarded("folder", lambda: _folder(settings))
    yield from _guarded("owners", lambda: _owners(settings))
    yield from _guarded("secrets", lambda: _secrets(settings))
    loaded = bootstrap.adapters_of(settings, known[0])
    yield from _plugins(loaded)
    yield from _sandboxes(settings, loaded)
    yield from _guarded("journal", lambda: _journal_and_what_rests_on_it(settings, loaded))
    yield from _guarded("people", lambda: _people(settings, loaded))
    for examination in loaded.examinations:
        yield from plugin_host.examine(examination)


def _folder(settings: Settings) -> Iterator[DoctorFinding]:
    folder = settings.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    level: Literal["ok", "warning", "problem"] = "ok"
    if free < _LITTLE_DISK_BYTES:
        level = "problem" if free < _NO_DISK_BYTES else "warning"
    yield DoctorFinding(level, "disk", f"{free // (1024 * 1024)} MB free for `{folder}`", "make space")
    for path in (folder, folder / KEY_NAME):
        if path.exists() and path.stat().st_mode & _OTHERS:
            yield _warning("folder", f"other accounts can reach `{path}`", f"chmod go-rwx {path}")


def _owners(settings: Settings) -> Iterator[DoctorFinding]:
    clock = SystemClock()
    with closing(OwnerFiles(settings.folder / "owners", clock, UuidV7(clock))):
        yield _ok("owners", "a dead process can be told from a living one")


def _secrets(settings: Settings) -> Iterator[DoctorFinding]:
    secrets = bootstrap.secrets_of(settings)
    references = dict(references_of(settings))
    for reference, where in references.items():
        try:
            secrets.resolve(reference)
        except AmendsError as error:
            yield _problem("secrets", f"{error.message} (needed by {where})", error.hint)
            continue
        yield _ok("secrets", f"`{reference}` resolves (for {where})")
        path = settings.base / Path(reference.removeprefix("file:")).expanduser()
        if reference.startswith("file:") and path.stat().st_mode & _OTHERS:
            yield _warning("secrets", f"other accounts can reach `{path}`", f"chmod go-rwx {path}")
    for place, options in _option_tables(settings):
        for key in _literal_secrets(options):
            yield _problem(
                "secrets",
                f"`{key}` of [{place}] looks like a secret written into amends.toml",
                "put it into the environment or a file, and write `env:NAME` or `file:PATH`",
            )


def _plugins(loaded: Loaded) -> Iterator[DoctorFinding]:
    for adapter in loaded.adapters:
        what = f"{len(adapter.offers)} capabilities from {adapter.distribution} {adapter.version}"
        yield _ok("plugins", f"adapter `{adapter.name}`: {what}")
    for problem in loaded.problems:
        yield _problem("plugins", str(problem), problem.remedy)
    if not loaded.adapters and not loaded.problems:
        yield _warning("plugins", "no adapter is configured: agents can do nothing", "add [adapters.<name>]")


def _sandboxes(settings: Settings, loaded: Loaded) -> Iterator[DoctorFinding]:
    """Whether every `[adapters.<name>.sandbox]` can be drilled on; what cannot harms nothing but drills."""
    names = bootstrap.sandboxes(settings)
    remedy = "correct its table `sandbox`; drills of it fail until then"
    there = bootstrap.sandboxed(settings)
    offered = {offer.contract.capability: offer.contract.digest for offer in loaded.offers}
    found = bootstrap.adapters_of(there, bootstrap.secrets_of(settings)).only(names)
    for adapter in found.adapters:
        others = [
            offer.contract.capability
            for offer in adapter.offers
            if offered.get(offer.contract.capability, offer.contract.digest) != offer.contract.digest
        ]
        if others:
            what = f"the contract of `{others[0]}` is another one on the sandbox of `{adapter.name}`"
            yield _warning("sandbox", what, "let it change where calls go, not what they promise")
        else:
            yield _ok("sandbox", f"adapter `{adapter.name}` has one, in environment `{adapter.context.environment}`")
    for problem in found.problems:
        yield _warning("sandbox", f"the sandbox of {problem}", f"{problem.remedy}; {remedy}")
    secrets = bootstrap.secrets_of(settings)
    for reference, where in sandbox_references_of(settings):
        try:
            secrets.resolve(reference)
        except AmendsError as error:
            yield _warning("sandbox", f"{error.message} (needed by {where})", error.hint)


def _journal_and_what_rests_on_it(settings: Settings, loaded: Loaded) -> Iterator[DoctorFinding]:
    with closing(bootstrap.journal_of(settings)) as journal:
        info = journal.info()
        yield _ok("journal", f"{info.events} events in `{info.location}`, format {info.format}")
        if info.events <= _MANY_EVENTS:
            for problem in journal.verify():
                yield _problem("journal", problem, "restore a backup; the run it names is quarantined meanwhile")
        yield from _quarantines(journal)
        yield from _guarded("ledger", lambda: _ledger(settings, journal))
        yield from _guarded("policies", lambda: _policies(settings, journal, loaded))


def _quarantines(journal: Journal) -> Iterator[DoctorFinding]:
    for held in readable(quarantines.in_force(journal), QuarantineRow):
        yield _problem(
            "journal",
            f"run `{held.run_id}` is quarantined: {held.reason}",
            "put its rows right (`amends ledger verify`), then `amends quarantine lift RUN --by YOU`",
        )


def _ledger(settings: Settings, journal: Journal) -> Iterator[DoctorFinding]:
    with closing(bootstrap.ledger_of(settings, journal)) as ledger:
        state = ledger.refresh()
        yield _ok("ledger", f"{state.events} events in `{state.location}`{', made anew' if state.rebuilt else ''}")
        for problem in state.problems:
            yield _problem("ledger", problem, "run `amends ledger verify`")


def _policies(settings: Settings, journal: Journal, loaded: Loaded) -> Iterator[DoctorFinding]:
    sources = bootstrap.policy_sources(settings, journal, loaded)
    yield from _refused_policies(journal)
    yield from _shadow(sources)
    authorizer, kept = load_authorizer(sources)
    yield _ok("policies", f"in force: {authorizer.bundle().version}")
    for problem in kept.problems[len(loaded.problems) :]:
        yield _problem("policies", str(problem), problem.remedy)
    results = run_policy_tests(
        contracts=[offer.contract for offer in kept.offers],
        contributions=kept.contributions,
        owned_prefixes=kept.owned_prefixes,
        site_bundle=sources.site_bundle,
        known_labels=sources.known_labels,
    )
    failed = [result for result in results if not result.passed]
    for result in failed:
        yield _problem("policies", f"test `{result.name}` of {result.file}: {result.problem}", "amends policy test")
    if not failed:
        yield _ok("policies", f"{len(results)} policy tests pass")


def _refused_policies(journal: Journal) -> Iterator[DoctorFinding]:
    """A bundle that running engines refused, and that nobody has repaired or taken back."""
    refused = policing.standing_refusal(journal)
    if refused is None:
        return
    what = refused.policy_version or "a bundle that cannot be read"
    kept = f"`{refused.kept}` goes on deciding in engines that run" if refused.kept else "nothing decides yet"
    for reason in refused.reasons:
        yield _problem("policies", f"{what} was refused: {reason}", f"repair it, then `amends policy reload`; {kept}")


def _shadow(sources: PolicySources) -> Iterator[DoctorFinding]:
    """The bundle that is asked beside the active one: a broken one prevents nothing."""
    candidate = examine_shadow(sources)
    if candidate is None:
        return
    if candidate.authorizer is not None:
        yield _ok("policies", f"in the shadow: {candidate.version}")
    for problem in candidate.problems:
        yield _warning(
            "policies", f"the shadow bundle cannot be asked: {problem}", "repair the bundle of [policies] shadow"
        )


def _people(settings: Settings, loaded: Loaded) -> Iterator[DoctorFinding]:
    asked = [
        o.contract.capability for o in loaded.offers if o.contract.release and o.contract.release.mode != "on_success"
    ]
    if settings.people:
        yield _ok("people", f"who may decide: {', '.join(sorted(settings.people))}")
    else:
        what = f"`{asked[0]}` needs an approval, and nobody may give one" if asked else "nobody may decide anything"
        yield _warning("people", what, "add [people.<name>] with roles and tier")
    if not settings.notifiers and not loaded.notifiers:
        yield _warning("people", "nobody is paged: escalations wait in `amends inbox list`", "add [notifiers.<name>]")
    for name, notifier in settings.notifiers.items():
        if notifier.kind == "command":
            yield from _program(f"notifier `{name}`", notifier.command[0], settings.base)
    for name, check in settings.checks.items():
        yield from _program(f"check `{name}`", check.command[0], settings.path(check.folder))


def _agent(settings: Settings) -> Iterator[DoctorFinding]:
    """An agent holds a handle that can call. What it must not have: the adapters' secrets, and the journal's files."""
    secrets = bootstrap.secrets_of(settings)
    for reference, where in (*references_of(settings), *sandbox_references_of(settings)):
        try:
            secrets.resolve(reference)
        except AmendsError:
            yield _ok("agent", f"cannot read `{reference}`")
            continue
        yield _problem("agent", f"can read `{reference}` of {where}", "run the engine under another account")
    for path in (settings.folder, settings.folder / "journal.sqlite"):
        if path.exists() and os.access(path, os.W_OK):
            yield _problem("agent", f"can write `{path}`", "run the engine under another account")
            return
    yield _ok("agent", f"cannot write `{settings.folder}`")


def _option_tables(settings: Settings) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Every table of an adapter's options, with its name."""
    for name, section in settings.adapters.items():
        yield f"adapters.{name}", section.options
        if section.sandbox is not None:
            yield f"adapters.{name}.sandbox", section.sandbox.options


def _literal_secrets(options: Mapping[str, Json]) -> Iterator[str]:
    for key, value in leaves(options):
        if redact({key: value}) != {key: value}:
            yield key


def _program(who: str, program: str, folder: Path) -> Iterator[DoctorFinding]:
    """A problem if there is no such program, looked for as it will be: on `PATH`, or relative to its folder."""
    there = os.access(folder / program, os.X_OK) if os.sep in program else shutil.which(program) is not None
    if not there:
        yield _problem("programs", f"{who}: there is no program `{program}`", "correct its argv in amends.toml")


def _guarded(subject: str, look: Callable[[], Iterable[DoctorFinding]]) -> Iterator[DoctorFinding]:
    try:
        yield from look()
    except AmendsError as error:
        yield _problem(subject, error.message, error.hint)
    except OSError as error:
        yield _problem(subject, f"`{error.filename}` cannot be used: {error.strerror}", "correct its permissions")


def _ok(subject: str, message: str) -> DoctorFinding:
    return DoctorFinding("ok", subject, message)


def _warning(subject: str, message: str, remedy: str) -> DoctorFinding:
    return DoctorFinding("warning", subject, message, remedy)


def _problem(subject: str, message: str, remedy: str) -> DoctorFinding:
    return DoctorFinding("problem", subject, message, remedy)
