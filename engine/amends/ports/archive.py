"""The archive: files of whole runs that the journal has let go of. They are kept for good and never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from amends.ports.journal import Head, Seal, StoredEvent


class Archive(Protocol):
    """Files beside the journal, named by its seals; a file no seal names counts for nothing."""

    def exclusively(self) -> AbstractContextManager[None]:
        """Let one process at a time seal. Raises `SystemUnavailable` naming the holder after a bounded time."""
        ...

    def write(self, generation: str, events: Iterable[StoredEvent]) -> tuple[Seal, dict[str, Head]]:
        """One file of whole runs, with where each of them ends: durable, and read back and compared before it gets its
        name. A file of the same name that is left from an interrupted sealing is replaced.

        Raises `CorruptLedger` if an event is not what was written or does not follow the one before it,
        `SystemUnavailable` if the file cannot be written.
        """
        ...

    def events(self, seals: Sequence[Seal], run_id: str = "") -> Iterator[StoredEvent]:
        """The events of these files in order of `seq`, or those of one run, checked from the first of each run on.
        Raises `CorruptLedger` for a file that is missing or not what was sealed.
        """
        ...

    def problems(self, seals: Sequence[Seal], on_file: Callable[[Seal], None] | None = None) -> tuple[str, ...]:
        """What is wrong with each file, in words, after reading all of it. `on_file` is told before each."""
        ...

    def copy_to(self, seals: Sequence[Seal], storage: str) -> None:
        """Copy these files, durably, to where the archive of the storage folder `storage` has them. Raises
        `CorruptLedger` for a file that is missing or not what was sealed.
        """
        ...

    def sweep(self, generation: str, seals: Sequence[Seal]) -> None:
        """Remove what interrupted sealings of this journal left: half files, and files that no seal names."""
        ...
