"""`amends.toml` into frozen settings. An error names file, key and remedy; an unknown key is an error."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from amends.core.canonical import Json
from amends.core.errors import ConfigError
from amends.core.reading import LONGEST_SECONDS, toml_of
from amends.core.redaction import redact_text

FILE_NAME = "amends.toml"
_LONGEST_DAYS = 1e4
_SHOWN_CHARACTERS = 60
_MAY_HOLD_SECRETS = frozenset({"adapters", "notifiers", "checks"})


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ProjectSettings(_Section):
    """Defaults of the project."""

    tenant: str = Field(min_length=1)
    environment: str = Field(min_length=1)
    owner: str = ""  # the named person who answers for runs that name nobody


class StorageSettings(_Section):
    """Where the journal, the ledger and the owner files live, and how long runs stay in the journal."""

    folder: str = ".amends"
    lock_wait_seconds: float = Field(default=5.0, gt=0, le=LONGEST_SECONDS)
    mirror: bool = True
    keep_days: float = Field(default=90.0, ge=0, le=_LONGEST_DAYS)


class EngineSettings(_Section):
    """Bounds of the runtime."""

    lease_seconds: float = Field(default=30.0, gt=0, le=LONGEST_SECONDS)
    skew_seconds: float = Field(default=2.0, ge=0, le=LONGEST_SECONDS)
    max_open_escalations: int = Field(default=500, ge=1)
    max_parallel_calls: int = Field(default=16, ge=1, le=256)
    page_every_seconds: float = Field(default=900.0, gt=0, le=LONGEST_SECONDS)
    check_every_seconds: float = Field(default=15.0, gt=0, le=LONGEST_SECONDS)
    check_deadline_seconds: float = Field(default=3600.0, gt=0, le=LONGEST_SECONDS)
    drill_valid_days: float = Field(default=30.0, gt=0, le=_LONGEST_DAYS)


class PolicySettings(_Section):
    """The site's policy bundle, a folder; empty: baseline and plugin contributions only. `shadow`: another one, asked
    beside it without effect.
    """

    bundle: str = ""
    shadow: str = ""


class PersonSettings(_Section):
    """A person who may decide, with roles and the highest approval tier they hold."""

    roles: tuple[str, ...] = ()
    tier: int = Field(default=1, ge=1, le=3)


class AgentSettings(_Section):
    """An agent's roles in policies."""

    roles: tuple[str, ...] = ()


class CheckSettings(_Section):
    """A success check: a command whose argv comes from configuration only. Exit 0 is passed, 1 is not, else unknown."""

    command: tuple[str, ...] = Field(min_length=1)
    folder: str = "."
    timeout_seconds: float = Field(default=600.0, gt=0, le=LONGEST_SECONDS)


class NotifierSettings(_Section):
    """How people are reached."""

    kind: Literal["command", "webhook"]
    command: tuple[str, ...] = ()
    url: str = ""  # or a reference, `env:NAME` or `file:PATH`, if the address is itself a secret
    timeout_seconds: float = Field(default=10.0, gt=0, le=LONGEST_SECONDS)

    @model_validator(mode="after")
    def _says_how(self) -> NotifierSettings:
        if not (self.command if self.kind == "command" else self.url):
            raise ValueError(f"kind `{self.kind}` needs the key `{'command' if self.kind == 'command' else 'url'}`")
        return self


class SandboxSettings(BaseModel):
    """What is different on an adapter's sandbox. Every further key replaces the section's option of that name."""

    model_config = ConfigDict(frozen=True, extra="allow")

    instance: str = ""  # empty: the section's
    environment: str = Field(default="sandbox", min_length=1)

    @property
    def options(self) -> dict[str, Json]:
        """The plugin's own options."""
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _same_plugin_same_tenant(self) -> SandboxSettings:
        for key in ("plugin", "tenant", "sandbox"):
            if key in self.options:
                raise PydanticCustomError("not_here", "a sandbox has no `{key}` of its own", {"key": key})
        return self


class AdapterSettings(BaseModel):
    """One configured adapter. Keys that are not named here are the plugin's options."""

    model_config = ConfigDict(frozen=True, extra="allow")

    plugin: str = ""  # the entry point's name; empty: the section's own name
    instance: str = ""  # empty: the section's name
    tenant: str = ""  # empty: the project's
    environment: str = ""  # empty: the project's
    sandbox: SandboxSettings | None = None  # None: there is none

    @property
    def options(self) -> dict[str, Json]:
        """The plugin's own options."""
        return dict(self.model_extra or {})


class Settings(_Section):
    """The whole file."""

    project: ProjectSettings
    storage: StorageSettings = StorageSettings()
    engine: EngineSettings = EngineSettings()
    policies: PolicySettings = PolicySettings()
    people: dict[str, PersonSettings] = Field(default_factory=dict[str, PersonSettings])
    agents: dict[str, AgentSettings] = Field(default_factory=dict[str, AgentSettings])
    checks: dict[str, CheckSettings] = Field(default_factory=dict[str, CheckSettings])
    notifiers: dict[str, NotifierSettings] = Field(default_factory=dict[str, NotifierSettings])
    adapters: dict[str, AdapterSettings] = Field(default_factory=dict[str, AdapterSettings])
    base: Path = Path()

    @property
    def folder(self) -> Path:
        """The storage folder, absolute."""
        return (self.base / self.storage.folder).resolve()

    def path(self, relative: str) -> Path:
        """A path of the file, relative to the file's own folder."""
        return (self.base / relative).resolve()


def find(start: Path) -> Path:
    """The nearest `amends.toml` at or above `start`. Raises `ConfigError` if there is none."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise ConfigError(f"no `{FILE_NAME}` in `{start}` or above", hint="run `amends init` in your project's folder")


def load(path: Path) -> Settings:
    """The settings in `path`. Raises `ConfigError` naming file, key and remedy."""
    try:
        data = toml_of(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"`{path}` does not exist", hint="run `amends init`") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"`{path}` is not UTF-8 at byte {error.start}", hint="save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror}", hint="correct its permissions") from error
    except ValueError as error:
        raise ConfigError(f"`{path}` is not valid TOML: {error}", hint="fix the line it names") from error
    return parse(data, path)


def parse(data: dict[str, object], path: Path) -> Settings:
    """Settings from parsed TOML. Raises one `ConfigError` that lists every wrong key with its remedy."""
    wrong = [("base", "there is no such key", _did_you_mean(["base"]))] if "base" in data else []
    try:
        settings = Settings.model_validate({**data, "base": path.parent.resolve()})
    except ValidationError as error:
        wrong += [_wrong_key(item) for item in error.errors(include_url=False)]
    else:
        if not wrong:
            return settings
    listed = "; ".join(f"`{key}`: {message} ({remedy})" for key, message, remedy in wrong)
    raise ConfigError(
        f"`{path}` has wrong keys: {listed}",
        hint="correct each key; docs/configuration.md has them all",
        file=str(path),
        keys=[{"key": key, "message": message, "remedy": remedy} for key, message, remedy in wrong],
    )


def _wrong_key(item: ErrorDetails) -> tuple[str, str, str]:
    """A wrong key, what is wrong with it, and the remedy."""
    places = [str(part) for part in item["loc"]]
    key = ".".join(places)
    match item["type"]:
        case "extra_forbidden":
            return key, "there is no such key", _did_you_mean(places)
        case "missing":
            section = ".".join(places[:-1])
            return key, "is missing", f"add `{places[-1]}` to [{section}]" if section else f"add [{key}]"
        case "value_error":
            return key, item["msg"].removeprefix("Value error, "), "add it"
        case "not_here":
            return key, item["msg"], "remove it"
        case _:
            return key, item["msg"].lower(), f"it is {_shown(places, item['input'])}: change it"


def _did_you_mean(places: list[str]) -> str:
    """The key that was meant, or those that exist there."""
    known = _keys_at(places[:-1])
    near = get_close_matches(places[-1], known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the keys here are {', '.join(known)}"


def _keys_at(places: list[str]) -> list[str]:
    model: type[BaseModel] = Settings
    sections: dict[str, type[BaseModel]] = {
        "project": ProjectSettings,
        "storage": StorageSettings,
        "engine": EngineSettings,
        "policies": PolicySettings,
        "people": PersonSettings,
        "agents": AgentSettings,
        "checks": CheckSettings,
        "notifiers": NotifierSettings,
        "adapters": AdapterSettings,
    }
    if places:
        model = sections.get(places[0], Settings)
    return sorted(set(model.model_fields) - {"base"})


def _shown(places: list[str], value: object) -> str:
    """A wrong value in words. Where a secret may stand by mistake, text is told by its kind alone (rule 10)."""
    if places[0] in _MAY_HOLD_SECRETS and places[-1] != "kind" and not isinstance(value, bool | int | float):
        return "text" if isinstance(value, str) else "another kind of value"
    text = redact_text(str(value))
    return f"`{text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + '…'}`"
