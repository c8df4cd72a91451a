"""How a ledger file is opened: pinned settings, bounded waiting, and what DuckDB's refusals mean."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import duckdb

from amends.core.errors import SystemUnavailable

Config: TypeAlias = dict[str, str | bool | int | float | list[str]]

STORAGE_VERSION = "v1.5.0"  # DuckDB 1.5 and 2.x can read it
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Limits:
    """What the mirror and a query may use of this machine."""

    memory_limit: str = "1GB"
    threads: int = 2
    spill_limit: str = "4GB"  # of disk, for queries beyond the memory limit: the journal may share the disk


class Held(SystemUnavailable):
    """Another connection keeps the file in a way that excludes ours; `data["pid"]` is its process, 0 if unknown."""


class Unreadable(SystemUnavailable):
    """The file does not open, or what it holds cannot be read: it must be made anew."""


def open_writer(path: Path, limits: Limits, *, patience_seconds: float) -> duckdb.DuckDBPyConnection:
    """Open or create `path` for the mirror. Raises `Held` after `patience_seconds`, `Unreadable` at once."""
    config = _pinned(limits) | {"storage_compatibility_version": STORAGE_VERSION}
    return _patiently(lambda: path, config, read_only=False, patience_seconds=patience_seconds)


def open_reader(find: Callable[[], Path], limits: Limits, *, patience_seconds: float) -> duckdb.DuckDBPyConnection:
    """Open what `find` names, for people's SQL: no writing, no outside access, locked settings. `find` is asked again
    at every try, since the file may be replaced meanwhile. Raises as `open_writer`.
    """
    config = _pinned(limits) | {"enable_external_access": False, "lock_configuration": True}
    return _patiently(find, config, read_only=True, patience_seconds=patience_seconds)


def open_scratch(limits: Limits, spill: Path) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, for reading and writing sealed files. `spill` is made only if it must be used."""
    return duckdb.connect(config=_pinned(limits) | {"temp_directory": str(spill)})


def is_damage(error: duckdb.Error) -> bool:
    """True if the error speaks of the file and not of the statement."""
    kinds = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
    return isinstance(error, kinds) or "Corrupt database" in str(error)


def _pinned(limits: Limits) -> Config:
    return {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,  # or SQL could read the caller's Python variables
        "memory_limit": limits.memory_limit,
        "max_temp_directory_size": limits.spill_limit,
        "threads": limits.threads,
    }


def _patiently(
    find: Callable[[], Path], config: Config, *, read_only: bool, patience_seconds: float
) -> duckdb.DuckDBPyConnection:
    give_up = time.monotonic() + patience_seconds
    while True:
        path = find()
        try:
            return duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.Error as error:
            if not _passes(error):
                raise Unreadable(
                    f"the ledger file `{path}` cannot be opened: {first_line(error)}",
                    hint="the next refresh makes it anew from the journal; or run `amends ledger rebuild`",
                ) from error
            if time.monotonic() >= give_up:
                raise _held(path, error) from error
        time.sleep(_POLL_SECONDS)


def _passes(error: duckdb.Error) -> bool:
    text = str(error)
    if isinstance(error, duckdb.ConnectionException) and "different configuration" in text:
        return True  # the mirror and a query of this process exclude each other like those of two processes
    held = "Could not set lock" in text or "already attached" in text
    return held or "database does not exist" in text


def _held(path: Path, error: duckdb.Error) -> Held:
    found = re.search(r"\(PID (\d+)\)", str(error))
    pid = int(found[1]) if found else 0
    who = f"process `{pid}`" if pid else "another connection"
    return Held(f"{who} keeps the ledger file `{path}` open", hint="close it there, or try again later", pid=pid)


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return str(error).strip().partition("\n")[0]
