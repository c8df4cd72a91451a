"""The `[adapters.git]` section: the repositories agents may name, checked once at start-up."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from amends.spi import AdapterContext, ConfigError, Refused

SecretReference = Annotated[str, Field(pattern=r"^((env|file):.+)?$")]
_SCP_LIKE = re.compile(r"^[^/]+:.*")
_LOCAL_FINAL_SECONDS = 2.0
_NETWORK_FINAL_SECONDS = 60.0


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PullRequests(_Section):
    """Where draft pull requests of a repository are opened: the GitHub REST API, or a server that speaks it."""

    api: str = Field(default="https://api.github.com", pattern=r"^https?://")
    project: str = Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")
    token: SecretReference = ""


class Repository(_Section):
    """One repository. `remote` is an address without credentials; `checkout` the agent's local repository, whose
    hooks and configuration never run here; `token` a secret reference, sent only over http(s).
    """

    remote: str = Field(min_length=1)
    checkout: str = ""
    base: str = "main"
    shared_branches: tuple[str, ...] = ("main", "master")  # patterns; others build on them, so pushes are reverted
    token: SecretReference = ""
    username: str = "x-access-token"
    author_name: str = "Amends agent"
    author_email: str = "amends@localhost"
    exclusive: bool = False  # every process that uses the checkout can be seen from here: dead locks may be removed
    ssh_command: str = ""  # how ssh is started, such as `ssh -i key -oBatchMode=yes`; empty: GIT_SSH_COMMAND, or ssh
    pull_requests: PullRequests | None = None

    @field_validator("remote")
    @classmethod
    def _without_password(cls, remote: str) -> str:
        parts = urlsplit(remote) if "://" in remote else None
        if parts and (parts.password is not None or (parts.scheme in {"http", "https"} and "@" in parts.netloc)):
            raise ValueError("the address holds a credential: give `token` a reference such as env:GIT_TOKEN instead")
        if remote.startswith("-"):
            raise ValueError("an address does not begin with a dash")
        return remote

    @property
    def local(self) -> bool:
        """True if the remote is a folder of this host."""
        return self.remote.startswith(("/", "file://"))

    def shared(self, branch: str) -> bool:
        """True for branches others build on: what was pushed there is taken back by a revert, never by a reset."""
        return any(fnmatchcase(branch, pattern) for pattern in self.shared_branches)


class GitOptions(_Section):
    """The whole section."""

    repositories: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")], Repository] = Field(min_length=1)
    timeout_seconds: float = Field(default=60.0, gt=0, le=3600)
    probe_deadline_seconds: float = Field(default=300.0, gt=0)
    absent_final_after_seconds: float | None = Field(default=None, ge=0)

    @property
    def final_after_seconds(self) -> float:
        """How long a push may still land after its client is dead: short only if every remote is on this host."""
        if self.absent_final_after_seconds is not None:
            return self.absent_final_after_seconds
        local = all(repository.local for repository in self.repositories.values())
        return _LOCAL_FINAL_SECONDS if local else _NETWORK_FINAL_SECONDS

    def repository(self, name: str) -> Repository:
        """The repository an agent named. Raises `Refused` (nothing sent) if the section has none of that name."""
        try:
            return self.repositories[name]
        except KeyError:
            known = ", ".join(sorted(self.repositories))
            raise Refused(f"no repository `{name}`: this adapter serves {known}", code="unknown_repository") from None


def options_of(context: AdapterContext) -> GitOptions:
    """The adapter's options with paths made absolute. Raises `ConfigError` naming section, key and remedy."""
    try:
        options = GitOptions.model_validate(dict(context.options))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"`{key}` in [adapters.{context.name}] of amends.toml: {first['msg']}",
            hint="correct the key, or see the table of options in the adapter's README",
            key=key,
        ) from None
    base = Path(context.base_path)
    resolved = {name: _absolute(repository, base) for name, repository in options.repositories.items()}
    return options.model_copy(update={"repositories": resolved})


def _absolute(repository: Repository, base: Path) -> Repository:
    changes: dict[str, str] = {}
    if "://" not in repository.remote and not _SCP_LIKE.match(repository.remote):
        changes["remote"] = str((base / repository.remote).resolve())
    if repository.checkout:
        changes["checkout"] = str((base / repository.checkout).resolve())
    return repository.model_copy(update=changes)
