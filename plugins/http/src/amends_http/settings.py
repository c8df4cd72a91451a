"""The `[adapters.<name>]` section of an http adapter: where the partner is, who we are there, which contracts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from amends.spi import AdapterContext, ConfigError


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Auth(_Model):
    """How a request is signed. `secret` is a reference (`env:NAME`, `file:PATH`), never a value."""

    kind: Literal["bearer", "basic", "header"] = "bearer"
    secret: str = Field(pattern=r"^(env|file):.+$")
    user: str = ""
    header: str = "Authorization"

    def headers(self, value: str) -> dict[str, str]:
        """The header that carries the secret `value`."""
        if self.kind == "bearer":
            return {self.header: f"Bearer {value}"}
        if self.kind == "basic":
            return {self.header: "Basic " + base64.b64encode(f"{self.user}:{value}".encode()).decode()}
        return {self.header: value}


class HttpSettings(_Model):
    """The adapter's options. `contracts` is a folder of the project, or `package:partner` for the ready ones.

    `token = "env:NAME"` is short for a bearer `auth`. `values` are what contracts may call `{values.<name>}`.
    """

    base_url: str
    contracts: str = "contracts"
    token: str = Field(default="", pattern=r"^((env|file):.+)?$")
    auth: Auth | None = None
    account: str = ""  # ours at the partner: what `{values.account}` says in ownership checks
    values: dict[str, str] = Field(default_factory=dict[str, str])
    ca_file: str = ""
    proxy: str = ""
    default_policies: bool = True

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in value or parts.query:
            raise ValueError("must be http(s)://host[:port][/path] without credentials or query")
        return value.rstrip("/")

    @property
    def signing(self) -> Auth | None:
        """The configured `auth`, or the bearer that `token` is short for."""
        return self.auth or (Auth(secret=self.token) if self.token else None)

    def scope(self) -> Mapping[str, str]:
        """What `{values.…}` may say."""
        return {**({"account": self.account} if self.account else {}), **self.values}


def read_settings(context: AdapterContext) -> HttpSettings:
    """The adapter's options, checked. Raises `ConfigError` that names section, key and remedy."""
    try:
        return HttpSettings.model_validate(dict(context.options))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"amends.toml, `[adapters.{context.name}]`, key `{key}`: {sentence(first['msg'])}",
            hint="see the table of options in the amends-http README",
            key=key,
        ) from None


def sentence(message: str) -> str:
    """A validator's message in house style: lower-case at its start, values as they are."""
    text = message.removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def contract_folder(settings: HttpSettings, context: AdapterContext) -> Path:
    """Where the contracts lie. Raises `ConfigError` if there is no such folder."""
    ready = settings.contracts.removeprefix("package:")
    if ready != settings.contracts:
        folder = Path(__file__).parent / "contracts" / ready
    else:
        folder = Path(context.base_path) / settings.contracts
    if not folder.is_dir():
        raise ConfigError(
            f"amends.toml, `[adapters.{context.name}]`, key `contracts`: there is no folder `{settings.contracts}`",
            hint="name a folder with one .toml file per operation, or `package:partner`",
        )
    return folder
