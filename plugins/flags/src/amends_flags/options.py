"""The `[adapters.flags]` section: where the flags live, which project and environment, and who is told."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from amends.spi import AdapterContext, ConfigError


class FlagOptions(BaseModel):
    """One adapter acts in one project and one environment: neither is an argument that a model could choose.

    `flag_environment` is the place's name for the environment, where it is not the adapter's own. `tell` is the place
    of a named person who answers for whoever sees the flags (`person:maya`). Seconds throughout.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: ClassVar[str]
    undo_of_create: ClassVar[str]  # what becomes of a flag whose creation is taken back
    last_strategy_switches_off: ClassVar[bool]  # removing the last enabled strategy also switches the environment off

    tell: str = Field(pattern=r"^[a-z][a-z0-9+.-]*:.+$")
    project: str = Field(default="default", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.~-]*$")
    flag_environment: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9_.~-]*)?$")
    timeout_seconds: float = Field(default=10.0, gt=0, le=300)
    probe_deadline_seconds: float = Field(default=120.0, gt=0)
    absent_final_after_seconds: float = Field(default=2.0, ge=0)


class UnleashOptions(FlagOptions):
    """A server with the Unleash admin API."""

    system: ClassVar[str] = "unleash"
    undo_of_create: ClassVar[str] = "the flag is archived; its name stays taken"
    last_strategy_switches_off: ClassVar[bool] = True

    backend: Literal["unleash"] = "unleash"
    base_url: str
    token: str = Field(pattern=r"^(env|file):.+$")
    ca_file: str = ""
    proxy: str = ""

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in value or parts.query:
            raise ValueError("must be http(s)://host[:port][/path] without credentials or query")
        return value.rstrip("/")


class FlagdOptions(FlagOptions):
    """One flagd JSON file, which is one environment. `project` is the name under which policies see the file.

    `on_variant` is what a cohort gets that a flag is opened to; `off_variant` what a created flag gives all others.
    """

    system: ClassVar[str] = "flagd"
    undo_of_create: ClassVar[str] = "the flag is taken out of the file"
    last_strategy_switches_off: ClassVar[bool] = False

    backend: Literal["flagd"] = "flagd"
    file: str = Field(min_length=1)
    on_variant: str = Field(default="on", min_length=1)
    off_variant: str = Field(default="off", min_length=1)


AnyOptions: TypeAlias = UnleashOptions | FlagdOptions


def read_options(context: AdapterContext) -> AnyOptions:
    """The adapter's options, checked. Raises `ConfigError` that names section, key and remedy, never a value."""
    options: AnyOptions
    try:
        if context.options.get("backend", "unleash") == "flagd":
            options = FlagdOptions.model_validate(dict(context.options))
            options = options.model_copy(update={"file": str(Path(context.base_path) / options.file)})
        else:
            options = UnleashOptions.model_validate(dict(context.options))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        raise ConfigError(
            f"amends.toml, `[adapters.{context.name}]`, key `{key}`: {text[:1].lower()}{text[1:]}",
            hint="see the table of options in the amends-flags README",
            key=key,
        ) from None
    named = options.flag_environment or context.environment
    return options.model_copy(update={"flag_environment": named})
