"""Named time windows: wall clocks, midnight, daylight saving, freezes."""

from datetime import UTC, datetime

import pytest

from amends.backends.cedar.windows import open_names, parse
from amends.core.errors import ConfigError


def us(*moment):
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * 1_000_000


def one(**keys):
    lines = [f"{key} = {value}" for key, value in {"name": '"w"', "time_zone": '"UTC"', **keys}.items()]
    return parse("[[window]]\n" + "\n".join(lines), "windows.toml")


@pytest.mark.parametrize(
    ("keys", "moment", "is_open"),
    [
        ({"from": '"09:00"', "until": '"17:00"'}, (2026, 3, 2, 9, 0), True),
        ({"from": '"09:00"', "until": '"17:00"'}, (2026, 3, 2, 17, 0), False),
        ({"days": '["sat"]'}, (2026, 3, 2, 12, 0), False),
        ({"from": '"09:00"'}, (2026, 3, 2, 23, 59), True),
        ({"from": '"09:00"'}, (2026, 3, 2, 8, 59), False),
        ({}, (2026, 3, 2, 0, 0), True),
        # past midnight: the day that counts is the one on which it opened
        ({"from": '"22:00"', "until": '"06:00"', "days": '["mon"]'}, (2026, 3, 2, 23, 0), True),
        ({"from": '"22:00"', "until": '"06:00"', "days": '["mon"]'}, (2026, 3, 3, 5, 59), True),
        ({"from": '"22:00"', "until": '"06:00"', "days": '["mon"]'}, (2026, 3, 3, 6, 0), False),
        ({"from": '"22:00"', "until": '"06:00"', "days": '["mon"]'}, (2026, 3, 2, 5, 0), False),
        # a freeze by date, in its own zone
        ({"time_zone": '"Europe/Berlin"', "first_day": "2026-12-18"}, (2026, 12, 17, 22, 59), False),
        ({"time_zone": '"Europe/Berlin"', "first_day": "2026-12-18"}, (2026, 12, 17, 23, 0), True),
        ({"last_day": "2026-12-18"}, (2026, 12, 18, 23, 59), True),
        ({"last_day": "2026-12-18"}, (2026, 12, 19, 0, 0), False),
        # Berlin is UTC+1 on Friday and UTC+2 on the Monday after the clocks changed
        ({"time_zone": '"Europe/Berlin"', "from": '"09:00"', "until": '"10:00"'}, (2026, 3, 27, 8, 30), True),
        ({"time_zone": '"Europe/Berlin"', "from": '"09:00"', "until": '"10:00"'}, (2026, 3, 30, 8, 30), False),
        ({"time_zone": '"Europe/Berlin"', "from": '"09:00"', "until": '"10:00"'}, (2026, 3, 30, 7, 30), True),
    ],
)
def test_window_follows_the_wall_clock_of_its_zone(keys, moment, is_open):
    """A window is open exactly when its zone's clock and calendar say so."""
    assert open_names(one(**keys), us(*moment)) == (("w",) if is_open else ())


def test_windows_of_one_name_are_a_union():
    """Two `[[window]]` of one name: open when either is; names come once, sorted."""
    text = "".join(f'[[window]]\nname = "{name}"\ntime_zone = "UTC"\n' for name in ("b", "a", "b"))
    assert open_names(parse(text, "f"), us(2026, 1, 1)) == ("a", "b")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"time_zone": '"Mars/Olympus"'}, "no IANA time zone"),
        ({"time_zone": '"../etc/passwd"'}, "no IANA time zone"),
        ({"days": '["monday"]'}, "days"),
        ({"from": '"9 am"'}, "from"),
        ({"from": '"09:00+02:00"'}, "without an offset"),
        ({"weekdays": "1"}, "weekdays"),
        ({"name": '"Year End"'}, "name"),
    ],
)
def test_wrong_window_names_file_and_key(keys, words):
    """A window that makes no sense is refused with its key."""
    with pytest.raises(ConfigError, match=words) as caught:
        one(**keys)
    assert "windows.toml" in caught.value.message


def freeze(*ranges, zone="UTC"):
    text = "".join(
        "\n[[calendar.range]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items()) for keys in ranges
    )
    return parse(f'[[calendar]]\nname = "freeze"\ntime_zone = "{zone}"\n{text}', "windows.toml")


YEAR_END = {"first_day": '"12-24"', "last_day": '"01-02"'}
MAY_DAY = {"first_day": '"04-30"', "last_day": '"05-01"', "from": '"18:00"', "until": '"06:00"'}
MORNING = {"first_day": "2026-05-04", "last_day": "2026-05-04", "from": '"08:00"', "until": '"09:00"'}
ONCE = {"first_day": "2026-12-18", "last_day": "2027-01-06"}


@pytest.mark.parametrize(
    ("keys", "zone", "moment", "is_open"),
    [
        (ONCE, "Europe/Berlin", (2026, 12, 17, 22, 59), False),
        (ONCE, "Europe/Berlin", (2026, 12, 17, 23, 0), True),
        (ONCE, "Europe/Berlin", (2027, 1, 6, 22, 59), True),
        (ONCE, "Europe/Berlin", (2027, 1, 6, 23, 0), False),
        (ONCE, "Europe/Berlin", (2027, 12, 20, 12, 0), False),
        # every year, across its end
        (YEAR_END, "UTC", (2026, 12, 23, 23, 59), False),
        (YEAR_END, "UTC", (2026, 12, 24, 0, 0), True),
        (YEAR_END, "UTC", (2031, 12, 31, 23, 59), True),
        (YEAR_END, "UTC", (2032, 1, 2, 23, 59), True),
        (YEAR_END, "UTC", (2032, 1, 3, 0, 0), False),
        (YEAR_END, "UTC", (2032, 7, 1, 0, 0), False),
        # without a break between the first evening and the last morning
        (MAY_DAY, "UTC", (2026, 4, 30, 17, 59), False),
        (MAY_DAY, "UTC", (2026, 4, 30, 18, 0), True),
        (MAY_DAY, "UTC", (2026, 5, 1, 5, 59), True),
        (MAY_DAY, "UTC", (2026, 5, 1, 6, 0), False),
        # a day that most years do not have
        ({"first_day": '"02-29"', "last_day": '"02-29"'}, "UTC", (2028, 2, 29, 12, 0), True),
        ({"first_day": '"02-29"', "last_day": '"02-29"'}, "UTC", (2027, 3, 1, 0, 0), False),
        ({"first_day": '"01-01"', "last_day": '"12-31"'}, "UTC", (2027, 12, 31, 23, 59), True),
        (MORNING, "UTC", (2026, 5, 4, 8, 30), True),
    ],
)
def test_calendar_is_open_in_its_ranges(keys, zone, moment, is_open):
    """Dated ranges happen once, ranges without a year every year, both by the clock of the calendar's zone."""
    assert open_names(freeze(keys, zone=zone), us(*moment)) == (("freeze",) if is_open else ())


def test_calendar_with_several_ranges_and_a_window_of_its_name_are_a_union():
    """Whatever bears the name can open it."""
    both = freeze(ONCE, MAY_DAY) + one(name='"freeze"', days='["sun"]')
    days = [(2026, 12, 20), (2026, 5, 1), (2026, 3, 1), (2026, 3, 2)]
    assert [bool(open_names(both, us(*day))) for day in days] == [True, True, True, False]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"first_day": "2026-12-18", "last_day": "2026-12-17"}, "ends before it begins"),
        ({"first_day": "2026-12-18", "last_day": '"01-06"'}, "both dates, or both days of every year"),
        ({"first_day": '"02-30"', "last_day": '"03-01"'}, "`02-30` is no day"),
        ({"first_day": '"Christmas"', "last_day": '"03-01"'}, "is no day"),
        ({"first_day": "2026-12-18"}, "last_day"),
        ({**ONCE, "from": '"18:00Z"'}, "without an offset"),
        ({**ONCE, "days": '["mon"]'}, "days"),
        (
            {"first_day": "2026-05-04", "last_day": "2026-05-04", "from": '"09:00"', "until": '"08:00"'},
            "ends before it begins",
        ),
    ],
)
def test_wrong_calendar_names_file_and_key(keys, words):
    """A range that makes no sense is refused with its key."""
    with pytest.raises(ConfigError, match=words) as caught:
        freeze(keys)
    assert "windows.toml" in caught.value.message


def test_calendar_without_a_range_is_never_open():
    """So a name can be kept, ready for the next freeze."""
    assert open_names(freeze(), us(2026, 12, 24)) == ()


def test_window_that_ends_before_it_begins_is_refused():
    """It could never be open."""
    with pytest.raises(ConfigError, match="`last_day` comes before"):
        one(first_day="2026-05-04", last_day="2026-05-03")
