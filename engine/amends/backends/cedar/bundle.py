"""A bundle on disk: manifest, schema fragments, policies, windows, tests; and its version.

The version is `label@sha256:…` over the LF-normalised sources that decide (tests and read-mes do not), because any
formatter's output changes between releases of the parser.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amends.backends.cedar.findings import PolicyFinding, error, refuse
from amends.backends.cedar.text import normalise
from amends.core.errors import ConfigError
from amends.core.reading import toml_of

MANIFEST = "bundle.toml"
WINDOWS = "windows.toml"
POLICY, SCHEMA, TEST = ".cedar", ".cedarschema", ".policytest.json"
MAX_FILES = 2_000


class Manifest(BaseModel):
    """`bundle.toml`. `switch_off` names default permits of adapters that this site does not want."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    label: str = Field(pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$")
    description: str = ""
    switch_off: list[str] = []


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a folder holds: `sources` decide, `tests` do not. Paths are relative, with `/`."""

    manifest: Manifest
    sources: Mapping[str, str]
    tests: Mapping[str, str]

    @property
    def version(self) -> str:
        """`label@sha256:…`."""
        return f"{self.manifest.label}@{digest(self.sources)}"

    @property
    def development(self) -> bool:
        """True for a `-dev` label, which may change its content."""
        return self.manifest.label.endswith("-dev")


def digest(sources: Mapping[str, str]) -> str:
    """`sha256:…` over sorted (path, text); no two different sets of sources share it."""
    return f"sha256:{hashlib.sha256(json.dumps(sorted(sources.items()), ensure_ascii=False).encode()).hexdigest()}"


def read(folder: Path) -> Bundle:
    """The bundle in `folder`. Raises `ConfigError` naming the file: no manifest, no policy, not UTF-8, too large, or a
    link to a folder.
    """
    sources: dict[str, str] = {}
    tests: dict[str, str] = {}
    findings = _linked_folders(folder)
    for path, file in _files(folder):
        text = _read(path, file)
        if isinstance(text, PolicyFinding):
            findings.append(text)
        elif file.endswith(TEST):
            tests[file] = text
        else:
            sources[file] = text
    refuse(findings)
    if MANIFEST not in sources:
        raise ConfigError(f"policy bundle `{folder}` has no `{MANIFEST}`", hint='write one with: label = "1.0.0"')
    if not any(file.endswith(POLICY) for file in sources):
        raise ConfigError(f"policy bundle `{folder}` has no policy", hint="add a `.cedar` file, or drop the bundle")
    return Bundle(manifest(sources[MANIFEST], f"{folder}/{MANIFEST}"), sources, tests)


def manifest(text: str, file: str) -> Manifest:
    """A parsed `bundle.toml`. Raises `ConfigError` naming file and key."""
    try:
        return Manifest.model_validate(toml_of(text))
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"`{file}`, key `{key}`: {first['msg']}", hint='a label looks like "1.0.0" or "1.1.0-dev"', file=file
        ) from None
    except ValueError as problem:
        raise ConfigError(f"`{file}` is not TOML: {problem}", hint="correct the file", file=file) from None


def check_label(bundle: Bundle, known_labels: Mapping[str, str]) -> None:
    """Raise `ConfigError` if the ledger knows this label with another digest; `-dev` labels may change."""
    known = known_labels.get(bundle.manifest.label)
    found = bundle.version.split("@", 1)[1]
    if known is None or bundle.development or known.rsplit("@", 1)[-1] == found:
        return
    raise ConfigError(
        f"policy label `{bundle.manifest.label}` is known with other sources (`{known}`, now `{found}`)",
        hint="raise the label in bundle.toml, or end it with `-dev` while you write",
        label=bundle.manifest.label,
    )


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that belong to a bundle, sorted; hidden folders and links to folders are not entered."""
    if not folder.is_dir():
        raise ConfigError(f"policy bundle `{folder}` is no folder", hint="correct the path in amends.toml")
    found: list[tuple[Path, str]] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = (Path(root) / name).relative_to(folder).as_posix()
            if file in {MANIFEST, WINDOWS} or name.endswith((POLICY, SCHEMA, TEST)):
                found.append((Path(root) / name, file))
        if len(found) > MAX_FILES:
            raise ConfigError(f"policy bundle `{folder}` has more than {MAX_FILES} files", hint="name the right folder")
    yield from sorted(found, key=lambda item: item[1])


def _linked_folders(folder: Path) -> list[PolicyFinding]:
    """A link to a folder is not entered (it may lead round in a circle), and what lies behind it is not left out."""
    hint = "remove the link, and copy the files that belong to the bundle"
    return [
        error("linked_folder", "a link to a folder is not entered", hint, file=path.relative_to(folder).as_posix())
        for root, folders, _ in os.walk(folder)
        for path in (Path(root) / name for name in sorted(folders))
        if path.is_symlink() and not path.relative_to(folder).as_posix().startswith(".")
    ]


def _read(path: Path, file: str) -> str | PolicyFinding:
    try:
        return normalise(path.read_bytes(), file)
    except OSError as problem:
        return error(
            "unreadable", f"cannot be read: {problem.strerror}", "correct the file or its permissions", file=file
        )
