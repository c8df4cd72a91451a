"""The reference of the SPI, made from its code.

    python -m amends.testing.spi_reference docs/spi.md tests/golden/spi.json

writes the page and the recorded surface; without files it prints the page. A test holds both equal to the code. The
surface is not written while `SPI_VERSION` says less than what has changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from amends.spi import SPI_VERSION
from amends.testing.spi_surface import Bump, SpiName, needed, promised, surface

_HEAD = """\
# The plugin interface

<!-- made by: python -m amends.testing.spi_reference docs/spi.md tests/golden/spi.json -->

Version {version}. All that a plugin may import is here: `amends.spi`, `amends.spi.http`, `amends.spi.process`. To
begin: [an adapter in an hour](adapter-in-an-hour.md); with a before-image and a corrector, [adapters](adapters.md).

## What may be raised

| where | what | means |
|---|---|---|
| any hook | `ConfigError` | the section in amends.toml is wrong; the message names the key, the hint the remedy |
| `prepare` | anything | nothing was sent: the call has failed |
| `do`, `undo` | `NotSent` | on proof only: nothing left this machine |
| `do`, `undo` | `Refused` | on proof only: the provider said no, and nothing changed |
| `do`, `undo` | anything else, such as `Ambiguous`, `TimeLimit` or a time-out | unknown: the engine looks |
| `probe`, `verify_undone` | anything | as `inconclusive`; better to answer that, with the reason |
| `drill` | `Refused` | it did not hold; the message says what |
| an examination for doctor | anything | is itself a finding |

Whatever a plugin raises, prints or exits with, the engine goes on without it, and `amends doctor` says why.

## Versions

`SPI_VERSION` is a version of its own, beside that of the distribution `amends`: `major.minor`.

| changes | when |
|---|---|
| major | something goes or is renamed; a type, default or result becomes another; something new is required |
| minor | something is added that a plugin may leave alone: a name, a method, a further choice, a field with a default |
| neither | words, and what no plugin can see |

A plugin says what it works with, in the module that its entry point names: clauses with `>=`, `<=`, `==`, `!=`, `>` and
`<`, all of which must hold. Say the minor version whose names you use, and exclude the next major:

```python
SPI = ">={version},<{next_major}"
```

A plugin that does not fit is left out, by name, before any of its hooks is called: `amends doctor` and
`amends plugins check` say which range it supports and which version the engine has. Without `SPI` every version is
taken for fitting. What the code promises is recorded in tests/golden/spi.json; a change that `SPI_VERSION` does not
tell fails the tests.
"""

_SECTIONS = (
    ("Hooks", "amends.spi.hookspecs.", "Each is marked with `@amends.spi.hookimpl`, and only registers."),
    ("amends.spi", "amends.spi.", ""),
    ("amends.spi.http", "amends.spi.http.", "How every HTTP adapter sends: once, on a fresh connection, no redirects."),
    ("amends.spi.process", "amends.spi.process.", "For adapters that run programs."),
)


_VALUES = {
    "CheckAnswer": "What a success check says.",
    "Json": "A JSON value: None, bool, int, float, str, or a list or dict of them.",
    "JsonMap": "A JSON object: `dict[str, Json]`.",
    "Receipt": "What `do` and `undo` return.",
    "hookimpl": "The decorator that marks a hook.",
}


def reference() -> str:
    """The whole page."""
    names = surface()
    major = int(SPI_VERSION.partition(".")[0])
    parts = [_HEAD.format(version=SPI_VERSION, next_major=major + 1)]
    for title, prefix, sentence in _SECTIONS:
        parts.append(f"## {title}\n")
        if sentence:
            parts.append(f"{sentence}\n")
        parts += [_shown(path[len(prefix) :], name) for path, name in names.items() if _within(path, prefix)]
    return "\n".join(parts)


def record() -> dict[str, Any]:
    """What is kept of the surface, to compare later ones with."""
    return {"version": SPI_VERSION, "names": promised(surface())}


def untold(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The changes since `recorded` that the version of `now` does not tell; empty if it tells them all."""
    bump, changes = needed(recorded["names"], now["names"])
    return [] if _tells(bump, recorded["version"], now["version"]) else changes or ["the version goes back"]


def _tells(bump: Bump, before: str, now: str) -> bool:
    old, new = (tuple(int(part) for part in version.split(".")) for version in (before, now))
    return {"none": new >= old, "minor": new > old, "major": new[0] > old[0]}[bump]


def _within(path: str, prefix: str) -> bool:
    return path.startswith(prefix) and "." not in path[len(prefix) :]


def _shown(title: str, name: SpiName) -> str:
    lines = [f"### `{title}`\n"]
    if name.text:
        lines.append(f"```text\n{title}{name.text}\n```\n" if name.text[0] == "(" else f"`{name.text}`\n")
    lines.append(f"{name.meaning or _VALUES[title]}\n")
    own = {field: one for field, one in name.fields.items() if not one.inherited}
    if own:
        rows = [
            f"| `{field}` | `{_cell(one.type)}` | {_default(one.default)} | {_cell(one.meaning)} |"
            for field, one in own.items()
        ]
        lines += ["| field | type | default | meaning |", "|---|---|---|---|", *rows, ""]
    methods = {method: one for method, one in name.methods.items() if not one.inherited}
    if methods:
        rows = [
            f"| `{method}{_cell(one.signature)}` | {_cell(_first(one.meaning))} |" for method, one in methods.items()
        ]
        lines += ["| method | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _default(text: str) -> str:
    if text.startswith("dict[") and text.endswith("()"):
        return "`{}`"
    return text if text == "required" else f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _first(words: str) -> str:
    return " ".join(words.partition("\n\n")[0].split())


def _written(argv: Sequence[str]) -> Iterator[str]:
    if not argv:
        yield reference()
        return
    page, golden = (Path(name) for name in argv)
    page.write_text(reference(), encoding="utf-8")
    now = record()
    changes = untold(json.loads(golden.read_text(encoding="utf-8")), now) if golden.exists() else []
    if changes:
        raise SystemExit(f"SPI_VERSION {SPI_VERSION} does not tell: {'; '.join(changes)}")
    golden.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.writelines(_written(sys.argv[1:]))
