"""`python -m fuzz.inside TARGET SECONDS [FILE]`: one reader under atheris, in a process of its own; never returns."""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz.targets import Target

_PLACE = Path(__file__).parents[2] / ".fuzz"
_LARGEST_BYTES = 8192
_HANG_SECONDS = 20


def fuzz(name: str, seconds: int, replay: str = "") -> None:
    """Search so long, or read one file. Atheris ends the process: with a code other than 0 if it found something."""
    atheris: Any = import_module("atheris")  # it must see our modules being imported
    with atheris.instrument_imports(include=["amends", "amends_http", "tomllib"]):
        from fuzz.targets import TARGETS

    target: Target = TARGETS[name]

    def read(data: bytes) -> None:
        with suppress(*target.refuses):
            target.read(data)

    options = [replay]
    if not replay:
        place = _seeded(name, target)
        options = [str(place), f"-max_total_time={seconds}", f"-max_len={_LARGEST_BYTES}", "-rss_limit_mb=2048"]
    atheris.Setup([name, *options, f"-timeout={_HANG_SECONDS}", f"-artifact_prefix={_PLACE}/found/{name}-"], read)
    atheris.Fuzz()


def _seeded(name: str, target: Target) -> Path:
    place = _PLACE / "corpus" / name
    place.mkdir(parents=True, exist_ok=True)
    (_PLACE / "found").mkdir(exist_ok=True)
    for data in target.beginnings():
        (place / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    return place


if __name__ == "__main__":
    fuzz(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
