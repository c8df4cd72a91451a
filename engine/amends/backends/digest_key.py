"""The key of argument digests: made once per project, kept beside the journal for its owner alone (rule 1)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from amends.core.errors import ConfigError

FILE_NAME = "digest.key"
KEY_BYTES = 32


def load_or_create(folder: Path) -> bytes:
    """The key in `folder`, made from the system's chance if there is none. Two processes that start at once agree.

    Raises `ConfigError` if it cannot be read or made, or is not a key.
    """
    path = folder / FILE_NAME
    try:
        if not path.exists():
            _create(path)
        key = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the digest key `{path}` cannot be used: {error.strerror}", hint="make it readable for this user alone"
        ) from error
    if len(key) != KEY_BYTES:
        raise ConfigError(
            f"the digest key `{path}` has {len(key)} bytes, not {KEY_BYTES}",
            hint="restore it from the backup of the journal it belongs to",
        )
    return key


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    fd = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # somebody was first: theirs is the key
            os.link(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)
