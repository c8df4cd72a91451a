"""Named time windows and freeze calendars: which are open at a moment, by the wall clock of their own time zone.

Cedar has no weekday, no time zone and no calendar, so the engine computes the open names from `windows.toml` and
policies read them; they are recorded with the decision, so a replay needs no calendar.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, Self, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from amends.core.errors import ConfigError
from amends.core.reading import toml_of

Day: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAP_YEAR = 2000  # every day of a year exists in it
_MIDNIGHT = time()


class _Timed(BaseModel):
    """`from` and `until` on the wall clock."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    begins: time = Field(default=_MIDNIGHT, alias="from")
    until: time = _MIDNIGHT

    @field_validator("begins", "until")
    @classmethod
    def _wall_clock(cls, value: time) -> time:
        if value.tzinfo is not None:
            raise ValueError("the time is a wall clock's, in `time_zone`: write it without an offset")
        return value


class _Named(BaseModel):
    """What policies ask for, and whose clock counts."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    time_zone: str

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
            raise ValueError(f"`{value}` is no IANA time zone") from problem
        return value

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(ZoneInfo(self.time_zone)).replace(tzinfo=None)


class Window(_Named, _Timed):
    """One `[[window]]`. Several with one name are open when any of them is."""

    days: tuple[Day, ...] = DAYS
    first_day: date | None = None
    last_day: date | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.first_day and self.last_day and self.last_day < self.first_day:
            raise ValueError("`last_day` comes before `first_day`")
        return self

    def open_at(self, moment: datetime) -> bool:
        """True if the window is open at the aware `moment`; the day that counts is the one on which it opened."""
        local = self._local(moment)
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


class Range(_Timed):
    """One `[[calendar.range]]`: from `begins` on the first day without a break until `until` on the last day.

    Both days are dates (2026-12-18), or both are days of every year ("12-24"); such a range may pass the year's end.
    """

    first_day: date | str
    last_day: date | str

    @field_validator("first_day", "last_day")
    @classmethod
    def _exists(cls, value: date | str) -> date | str:
        if isinstance(value, str):
            try:
                datetime.strptime(f"{LEAP_YEAR}-{value}", "%Y-%m-%d")  # noqa: DTZ007 - a wall clock's day
            except ValueError as problem:
                raise ValueError(f'`{value}` is no day: write 2026-12-18, or "12-24" for every year') from problem
        return value

    @model_validator(mode="after")
    def _alike_and_in_order(self) -> Self:
        if isinstance(self.first_day, str) != isinstance(self.last_day, str):
            raise ValueError("`first_day` and `last_day` are both dates, or both days of every year")
        if not isinstance(self.first_day, str) and not self._start() < self._end():
            raise ValueError("the range ends before it begins")
        return self

    def covers(self, local: datetime) -> bool:
        """True if the naive `local` moment lies in the range."""
        if not isinstance(self.first_day, str):
            return self._start() <= local < self._end()
        now, start, end = local.replace(year=LEAP_YEAR), self._start(), self._end()
        return start <= now < end if start < end else now >= start or now < end

    def _start(self) -> datetime:
        return datetime.combine(_day(self.first_day), self.begins)

    def _end(self) -> datetime:
        day = _day(self.last_day)
        if self.until == _MIDNIGHT:
            return datetime.combine(day + timedelta(days=1), _MIDNIGHT)
        return datetime.combine(day, self.until)


class Calendar(_Named):
    """One `[[calendar]]`: a name that is open in each of its ranges, such as a freeze; without any, never."""

    ranges: tuple[Range, ...] = Field(default=(), alias="range")

    def open_at(self, moment: datetime) -> bool:
        """True if the aware `moment` lies in one of the ranges."""
        local = self._local(moment)
        return any(range_.covers(local) for range_ in self.ranges)


Opening: TypeAlias = Window | Calendar


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    window: tuple[Window, ...] = ()
    calendar: tuple[Calendar, ...] = ()


def _day(value: date | str) -> date:
    return date.fromisoformat(f"{LEAP_YEAR}-{value}") if isinstance(value, str) else value


def parse(text: str, file: str) -> tuple[Opening, ...]:
    """The windows and calendars of one `windows.toml`. Raises `ConfigError` naming file and key."""
    try:
        found = _File.model_validate(toml_of(text))
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"`{file}`, key `{key}`: {first['msg']}", hint="see policies/windows.toml", file=file
        ) from None
    except ValueError as problem:
        raise ConfigError(f"`{file}` is not TOML: {problem}", hint="correct the file", file=file) from None
    return (*found.window, *found.calendar)


def open_names(windows: Iterable[Opening], now_us: int) -> tuple[str, ...]:
    """The names open at `now_us` (microseconds), sorted."""
    moment = EPOCH + timedelta(microseconds=now_us)
    return tuple(sorted({window.name for window in windows if window.open_at(moment)}))
