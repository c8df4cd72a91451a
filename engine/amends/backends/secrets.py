"""Secrets by reference: `env:NAME` from the environment, `file:PATH` from a file (rule 10)."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from amends.core.errors import ConfigError
from amends.core.events import words
from amends.core.redaction import unfit

_MAX_BYTES = 64 * 1024


class ReferencedSecrets:
    """Resolves references anew at each use, so that a rotated secret is the one that is sent.

    A relative `file:` path starts at `base`. One trailing line end of a file is not part of the secret. What `known`
    references stand for counts as revealed from the start, before any adapter has asked: an agent may hold it already.
    A secret that redaction could not keep out of the ledger is refused, so nothing is sent with it.
    """

    def __init__(self, base: Path, environment: Mapping[str, str] | None = None, *, known: Iterable[str] = ()) -> None:
        self._base = base
        self._environment = os.environ if environment is None else environment
        self._lock = threading.Lock()
        self._revealed: set[str] = set()
        for reference in known:
            with contextlib.suppress(ConfigError):  # said where it is needed
                self.resolve(reference)

    def resolve(self, reference: str) -> str:
        scheme, found, name = reference.partition(":")
        if not found or not name or scheme not in {"env", "file"}:
            raise ConfigError(
                "a secret reference is neither `env:NAME` nor `file:PATH`",  # not shown: it may be the secret itself
                hint="put the secret into the environment or a file, and its reference into amends.toml",
            )
        value = self._from_environment(reference, name) if scheme == "env" else self._from_file(reference, name)
        if value not in self.revealed() and (reason := unfit(value, words())):
            raise ConfigError(
                f"secret `{reference}` {reason}, so it could not be masked there",
                hint="use a longer one that is no word",
                reference=reference,
            )
        with self._lock:
            self._revealed.add(value)
        return value

    def revealed(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._revealed)

    def _from_environment(self, reference: str, name: str) -> str:
        value = self._environment.get(name, "")
        if not value:
            raise ConfigError(
                f"secret `{reference}` is not set", hint=f"set the environment variable {name}", reference=reference
            )
        return value

    def _from_file(self, reference: str, name: str) -> str:
        path = self._base / Path(name).expanduser()
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            value = data.decode().removesuffix("\n").removesuffix("\r")
        except OSError as error:
            raise ConfigError(
                f"secret `{reference}` cannot be read: {error.strerror}",
                hint="create the file, readable for this user alone",
                reference=reference,
            ) from error
        except UnicodeDecodeError:
            raise ConfigError(
                f"secret `{reference}` is not text", hint="store it as UTF-8", reference=reference
            ) from None
        if not value or len(data) > _MAX_BYTES:
            raise ConfigError(
                f"secret `{reference}` is empty or longer than {_MAX_BYTES} bytes",
                hint="store the secret, and nothing else, in the file",
                reference=reference,
            )
        return value
