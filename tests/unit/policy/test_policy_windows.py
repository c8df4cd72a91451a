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
