"""Named time windows: which are open at a moment, by the wall clock of their own time zone.

Cedar has no weekday and no time zone, so the engine computes the open names from `windows.toml` and policies read
them; they are recorded with the decision, so a replay needs no calendar.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from amends.core.errors import ConfigError

Day: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIDNIGHT = time()


class Window(BaseModel):
    """One `[[window]]`. Several with one name are open when any of them is."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    time_zone: str
    days: tuple[Day, ...] = DAYS
    begins: time = Field(default=_MIDNIGHT, alias="from")
    until: time = _MIDNIGHT
    first_day: date | None = None
    last_day: date | None = None

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
            raise ValueError(f"`{value}` is no IANA time zone") from problem
        return value

    @field_validator("begins", "until")
    @classmethod
    def _wall_clock(cls, value: time) -> time:
        if value.tzinfo is not None:
            raise ValueError("the time is a wall clock's, in `time_zone`: write it without an offset")
        return value

    def open_at(self, moment: datetime) -> bool:
        """True if the window is open at the aware `moment`; the day that counts is the one on which it opened."""
        local = moment.astimezone(ZoneInfo(self.time_zone))
        now, today = local.time(), local.date()
        if self.begins < self.until:
            return self._on(today) and self.begins <= now < self.until
        if self.until in {_MIDNIGHT, self.begins}:
            return self._on(today) and now >= self.begins
        yesterday = today - timedelta(days=1)
        return (now >= self.begins and self._on(today)) or (now < self.until and self._on(yesterday))

    def _on(self, day: date) -> bool:
        return (
            DAYS[day.weekday()] in self.days
            and (self.first_day is None or self.first_day <= day)
            and (self.last_day is None or day <= self.last_day)
        )


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    window: tuple[Window, ...] = ()


def parse(text: str, file: str) -> tuple[Window, ...]:
    """The windows of one `windows.toml`. Raises `ConfigError` naming file and key."""
    try:
        return _File.model_validate(tomllib.loads(text)).window
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"`{file}` is not TOML: {problem}", hint="correct the file", file=file) from None
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"`{file}`, key `{key}`: {first['msg']}", hint="see policies/windows.toml", file=file
        ) from None


def open_names(windows: Iterable[Window], now_us: int) -> tuple[str, ...]:
    """The names of the windows open at `now_us` (microseconds), sorted."""
    moment = EPOCH + timedelta(microseconds=now_us)
    return tuple(sorted({window.name for window in windows if window.open_at(moment)}))
