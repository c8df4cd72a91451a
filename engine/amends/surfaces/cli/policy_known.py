"""`amends policy list`, `show` and `history`: the bundles the ledger knows, with their sources."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amends.core.errors import InvalidInput, UnknownName
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import desk, output_option
from amends.surfaces.cli.output import moment
from amends.surfaces.cli.policy_ledger import KnownBundle, known_bundles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amends.backends.cedar.comparing import Comparison
    from amends.backends.cedar.compile import Snapshot
    from amends.bootstrap import Engine

_SHORT = 19  # of a digest: `sha256:` and twelve digits


@click.command(name="list")
@output_option
def list_(session: Session) -> None:
    """Every bundle that was ever in force: since when, how many policies, how many decisions were made under it."""
    with desk(session) as engine:
        bundles = known_bundles(engine)
        made = _decisions_under(engine)
    rows = [_summary(bundle, made) for bundle in bundles]
    if session.output.as_json:
        session.output.document({"bundles": rows})
        return
    columns = ("version", "since", "policies", "decisions", "meaning", "effective digest")
    session.output.table(
        columns,
        [
            (
                row["version"],
                moment(bundle.first_us),
                row["policies"],
                row["decisions"],
                str(row["meaning"])[:_SHORT],
                str(row["effective_digest"])[:_SHORT],
            )
            for row, bundle in zip(rows, bundles, strict=True)
        ],
    )


@click.command()
@click.argument("version", required=False)
@click.option("--policy", "policy_id", help="Print the text of this policy only.")
@click.option("--export", type=click.Path(path_type=Path, file_okay=False), help="Write all sources into a new folder.")
@output_option
def show(session: Session, version: str | None, *, policy_id: str | None, export: Path | None) -> None:
    """The policies of a bundle the ledger knows; without VERSION, of the latest.

    The exported sources are plain Cedar: `*.cedarschema` together and all `*.cedar` are what any Cedar tool is given.
    """
    with desk(session) as engine:
        bundle = _one(known_bundles(engine), version)
    if export is not None:
        _write(export, bundle.texts)
        session.output.say(f"{len(bundle.texts)} files in {export}")
    snapshot = _snapshot(bundle)
    if policy_id is not None:
        text = _text(snapshot, policy_id)
        if session.output.as_json:
            session.output.document({"policy_id": policy_id, "version": bundle.version, "text": text})
        else:
            session.output.line(text)
        return
    _show_bundle(session, bundle, snapshot)


@click.command()
@click.argument("policy_id", required=False)
@output_option
def history(session: Session, policy_id: str | None) -> None:
    """How the policies changed from bundle to bundle; with POLICY_ID, only where that policy did, with its text."""
    with desk(session) as engine:
        bundles = known_bundles(engine)
    changes = list(_changes(bundles, policy_id))
    if session.output.as_json:
        from dataclasses import asdict

        session.output.document(
            {
                "changes": [
                    {"version": b.version, "effective_digest": b.effective_digest, "at_us": b.first_us, **asdict(found)}
                    for b, found in changes
                ]
            }
        )
        return
    for bundle, found in changes:
        words = "" if not found.same_meaning else "  (same meaning)"
        session.output.heading(f"{moment(bundle.first_us)}  {bundle.version}{words}")
        for change in found.policies:
            session.output.line(f"  {change.change} {change.policy_id}  {change.file}:{change.line}")
            for line in change.lines if policy_id else ():
                session.output.line(f"    {line}", {"+": "green", "-": "red"}.get(line[:1], "dim"))
        for part in found.parts:
            session.output.line(f"  changed {part}")
    if not changes:
        session.output.say("one bundle, no change" if bundles else "the ledger knows no bundle yet")


def _changes(bundles: list[KnownBundle], policy_id: str | None) -> list[tuple[KnownBundle, Comparison]]:
    from dataclasses import replace

    from amends.backends.cedar.comparing import compare

    found: list[tuple[KnownBundle, Comparison]] = []
    for before, after in pairwise(bundles):
        comparison = compare(_snapshot(before), _snapshot(after))
        if policy_id is not None:
            own = tuple(one for one in comparison.policies if policy_id in {one.policy_id, one.before_id})
            if not own:
                continue
            comparison = replace(comparison, policies=own, parts=())
        found.append((after, comparison))
    return found


def _one(bundles: list[KnownBundle], version: str | None) -> KnownBundle:
    """The bundle that `version` names. Raises `UnknownName`, or `InvalidInput` if several fit."""
    fitting = bundles[-1:] if version is None else [bundle for bundle in bundles if bundle.fits(version)]
    if not fitting:
        raise UnknownName(f"the ledger knows no bundle `{version or ''}`", hint="`amends policy list` shows them")
    if len(fitting) > 1:
        digests = ", ".join(bundle.effective_digest[:_SHORT] for bundle in fitting)
        raise InvalidInput(f"`{version}` fits {len(fitting)} bundles", hint=f"give the effective digest: {digests}")
    return fitting[0]


def _summary(bundle: KnownBundle, made: Mapping[str, int]) -> dict[str, object]:
    from amends.backends.cedar.recorded import semantic_digest

    snapshot = _snapshot(bundle)
    return {
        "version": bundle.version,
        "effective_digest": bundle.effective_digest,
        "meaning": semantic_digest(snapshot),
        "first_us": bundle.first_us,
        "policies": len(snapshot.policies),
        "decisions": made.get(bundle.effective_digest, 0),
    }


def _decisions_under(engine: Engine) -> dict[str, int]:
    table = engine.sql("SELECT effective_digest, count(*) FROM decisions GROUP BY ALL")
    return {str(digest): int(str(count)) for digest, count in table.rows}


def _snapshot(bundle: KnownBundle) -> Snapshot:
    from amends.backends.cedar.recorded import snapshot_of

    return snapshot_of(bundle.sources())


def _text(snapshot: Snapshot, policy_id: str) -> str:
    from amends.backends.cedar.comparing import source_of

    for policy in (*snapshot.policies, *snapshot.shadow):
        if policy.id == policy_id:
            return source_of(policy, snapshot)
    raise UnknownName(f"the bundle has no policy `{policy_id}`", hint="`amends policy show` lists them")


def _show_bundle(session: Session, bundle: KnownBundle, snapshot: Snapshot) -> None:
    from dataclasses import asdict

    from amends.backends.cedar.recorded import policies_of, semantic_digest

    known = policies_of(snapshot)
    if session.output.as_json:
        session.output.document(
            {
                "version": bundle.version,
                "effective_digest": bundle.effective_digest,
                "meaning": semantic_digest(snapshot),
                "first_us": bundle.first_us,
                "policies": [asdict(policy) for policy in known],
                "sources": dict(bundle.texts),
            }
        )
        return
    session.output.fields(
        {
            "version": bundle.version,
            "since": moment(bundle.first_us),
            "effective digest": bundle.effective_digest,
            "meaning": semantic_digest(snapshot),
        }
    )
    columns = ("policy", "effect", "of", "reason", "where")
    rows = [(p.policy_id, p.effect, p.origin, p.reason, f"{p.file}:{p.line}") for p in known]
    session.output.table(columns, rows)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Every source under `folder`, which must be new. Raises `InvalidInput`."""
    root = folder.resolve()
    try:
        folder.mkdir(parents=True)
        for file, text in texts.items():
            path = (root / file).resolve()
            if root not in path.parents:
                raise InvalidInput(f"the source `{file}` would be written outside `{folder}`", hint="report this")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except FileExistsError:
        raise InvalidInput(f"`{folder}` exists", hint="name a folder that does not") from None
    except OSError as problem:
        raise InvalidInput(f"`{folder}` cannot be written: {problem.strerror}", hint="name another") from None
