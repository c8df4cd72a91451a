"""The `[adapters.migrations]` section: the databases agents may name, checked once at start-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from amends.spi import AdapterContext, ConfigError, Refused
from amends_migrations.target import POSTGRESQL, SQLITE

SecretReference = Annotated[str, Field(pattern=r"^((env|file):.+)?$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Database(_Section):
    """One database and its Alembic scripts. Exactly one of `url` and `url_secret` (a secret reference) is given.

    The project's own `env.py` does not run: it could connect elsewhere than what is probed.
    """

    url: str = ""
    url_secret: SecretReference = ""
    scripts: str = Field(min_length=1)  # Alembic's script folder, the one that holds `versions/`
    version_table: str = Field(default="alembic_version", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    python_path: tuple[str, ...] = ()  # folders that migrations import from
    lock_wait_seconds: float = Field(default=10.0, ge=0)

    @model_validator(mode="after")
    def _one_address(self) -> Database:
        if bool(self.url) == bool(self.url_secret):
            raise ValueError("give either `url` or `url_secret`")
        if self.url and not self.url.startswith((SQLITE, *POSTGRESQL)):
            raise ValueError(f"only addresses such as {SQLITE}staging.db and {POSTGRESQL[0]}host/staging are served")
        if self.url.startswith(POSTGRESQL) and _has_password(self.url):
            raise ValueError("an address with a password is a secret: give a reference to it in `url_secret`")
        return self


class MigrationOptions(_Section):
    """The whole section. `audience = "team"` says that people work on these databases; `place` is where they read."""

    databases: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")], Database] = Field(min_length=1)
    audience: Literal["machine", "team"] = "machine"
    place: str = ""
    timeout_seconds: float = Field(default=120.0, gt=0, le=3600)
    probe_deadline_seconds: float = Field(default=300.0, gt=0)
    absent_final_after_seconds: float = Field(default=2.0, ge=0)
    notes: str = Field(default=".amends/migrations", min_length=1)  # where transactions are noted before each commit
    base_path: str = ""

    @model_validator(mode="after")
    def _team_has_a_place(self) -> MigrationOptions:
        if self.audience == "team" and not self.place:
            raise ValueError('`audience = "team"` needs `place`, such as "slack:C012"')
        return self

    def database(self, name: str) -> Database:
        """The database an agent named. Raises `Refused` (nothing sent) if the section has none of that name."""
        try:
            return self.databases[name]
        except KeyError:
            known = ", ".join(sorted(self.databases))
            raise Refused(f"no database `{name}`: this adapter serves {known}", code="unknown_database") from None

    def address(self, database: Database, secret: Callable[[str], str]) -> str:
        """The database's address with its driver, or the absolute path of its file; for `target_of`. Raises `Refused`
        if the secret address is of another kind.
        """
        url = database.url or secret(database.url_secret)
        if url.startswith(POSTGRESQL):
            return f"postgresql+psycopg://{url.partition('://')[2]}"
        if not url.startswith(SQLITE) or "?" in url:
            raise Refused("the database's address is of a kind this adapter does not serve", code="unsupported")
        return f"{SQLITE}{(Path(self.base_path) / url.removeprefix(SQLITE)).resolve()}"

    def note(self, action_id: str) -> Path:
        """Where the transactions of an action are noted."""
        return Path(self.base_path) / self.notes / f"{action_id}.jsonl"


def options_of(context: AdapterContext) -> MigrationOptions:
    """The adapter's options with paths made absolute. Raises `ConfigError` naming section, key and remedy."""
    try:
        options = MigrationOptions.model_validate({**context.options, "base_path": context.base_path})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"`{key}` in [adapters.{context.name}] of amends.toml: {first['msg']}",
            hint="correct the key, or see the table of options in the adapter's README",
            key=key,
        ) from None
    base = Path(context.base_path)
    databases = {
        name: database.model_copy(
            update={
                "scripts": str((base / database.scripts).resolve()),
                "python_path": tuple(str((base / folder).resolve()) for folder in database.python_path),
            }
        )
        for name, database in options.databases.items()
    }
    return options.model_copy(update={"databases": databases})


def _has_password(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.password) or "password=" in parts.query
