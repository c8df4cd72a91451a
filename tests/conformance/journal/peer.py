"""Other processes for the machine in `test_durability.py`: each serves one journal, and dies where it is told.

    python peer.py CONTROL

For every socket that comes over the socket with the descriptor CONTROL a child is forked, which takes a folder first
and then words, pickled. A child whose socket closes is gone at once, as if killed: nothing is closed or drained.
"""

import os
import resource
import signal
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from amends.backends.duckdb_ledger import ParquetArchive
from amends.backends.sqlite_journal import SqliteJournal, writer
from amends.core.errors import AmendsError
from amends.runtime.sealing import seal
from amends.testing.fakes import SequentialIds, SimClock

# Where a process can die -> the statement before which it does, the first of them after the one beside it.
STATEMENTS = {
    "before the commit": ("COMMIT", ""),
    "after the commit": ("SELECT max_seq", "COMMIT"),
    "before the checkpoint": ("PRAGMA wal_checkpoint", ""),
}


class Served:
    """The words of one child. What they answer or raise goes back."""

    def __init__(self, folder, connection):
        self.folder = folder
        self.connection = connection
        self.journal = SqliteJournal.open(folder, clock=SimClock(), ids=SequentialIds(node=5))

    def commit(self, command):
        return self.journal.commit(command)

    def die(self, point):
        """From now on the next pass of `point` is the last thing that happens."""
        if point == "with the note written":
            remember = self.journal._lock.remember
            self.journal._lock.remember = lambda *given: (remember(*given), dead())
        elif point == "before tidying up":  # after a commit that failed
            self.journal._writer._drop_connection = dead
        elif point == "after the checkpoint":
            writer.CHECKPOINT_EVERY_COMMANDS = 1
            self.trace("PRAGMA wal_checkpoint", "", then=self.die_letting_go)
        else:
            writer.CHECKPOINT_EVERY_COMMANDS = 1 if "checkpoint" in point else writer.CHECKPOINT_EVERY_COMMANDS
            self.trace(*STATEMENTS[point], then=dead)

    def die_letting_go(self):
        self.journal._lock.release = dead

    def trace(self, wanted, first, *, then):
        seen = []

        def look(statement):
            if statement.startswith(wanted) and (not first or first in seen):
                then()
            seen.append(statement)

        def traced(*given, **parts):
            connection = connect(*given, **parts)
            connection.set_trace_callback(look)
            return connection

        connect, writer.writer_connection = writer.writer_connection, traced
        if (connection := self.journal._writer.connection()) is not None:  # none after a commit that failed
            connection.set_trace_callback(look)

    def commit_torn(self, command, nbytes):
        """A commit for which the disk has room for `nbytes` more of the log only."""
        log = self.folder / "journal.sqlite-wal"
        size = log.stat().st_size if log.exists() else 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + nbytes, resource.RLIM_INFINITY))
        try:
            return self.journal.commit(command)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def look(self):
        journal = self.journal
        return journal.info(), journal.verify(), journal.events_after(0), journal.seals(), journal.rows("run")

    def seal(self, now_us):
        return seal(self.journal, ParquetArchive(self.folder), now_us=now_us, keep_us=0).seals

    def hold(self):
        """Keep the write lock until the next word, which says nothing."""
        self.journal._lock.acquire()
        try:
            self.connection.send(os.getpid())
            self.connection.recv()
        finally:
            self.journal._lock.release()

    def close(self):
        self.journal.close()


def dead():
    os.kill(os.getpid(), signal.SIGKILL)


def serve(connection):
    served = Served(Path(connection.recv()), connection)
    connection.send("open")
    while True:
        word, *given = connection.recv()
        try:
            answer = getattr(served, word)(*given)
        except AmendsError as error:
            answer = (type(error).__name__, error.message)
        connection.send(answer)


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while descriptors := socket.recv_fds(control, 1, 1)[1]:
        if os.fork() == 0:
            control.close()
            try:
                serve(Connection(descriptors[0]))
            except (EOFError, ConnectionError):
                os._exit(0)
            finally:
                os._exit(1)
        os.close(descriptors[0])


if __name__ == "__main__":
    main()
